# %% [markdown]
# # 00 Start
#
# ## Why
#
# A training run owned eight GPUs and kept them busy for six minutes in every hour. The rest of the hour went into one
# similarity score, computed in Python, element by element. The rewrite was one line and a hundred times faster. It
# also stopped at once: 512 numbers had met 511. The old loop had walked both vectors with `zip`, which ends quietly
# with the shorter one, and for weeks the last feature had counted for nothing.
#
# This chapter is the smallest version of that story, and a tour of the workshop. After it you can
#
# - run a check and read its verdict;
# - write a dot product as a loop and as one vectorised call;
# - measure how far apart they are, and say why;
# - read a traceback, last line first;
# - build on your own code, and hand it in.
#
# It takes about half an hour, exercises included. Click into the cell below and press **Shift+Enter**: the cell runs
# and the next one is selected. It prints nothing: it fetches what you need, and its last line tells the checks which
# chapter this is. Every notebook of the course begins with such a cell.

# %%
import matplotlib.pyplot as plt
import numpy as np

import gradwright
from autograder import check

gradwright.chapter(0)

# %% [markdown]
# ## Idea
#
# The dot product of two vectors of the same length $n$ multiplies what stands in the same place, and adds the
# products up:
#
# $$a \cdot b = \sum_{i=0}^{n-1} a_i\, b_i$$
#
# For $a = (2, 1, 3)$ and $b = (4, 5, 6)$ that is $2 \cdot 4 + 1 \cdot 5 + 3 \cdot 6 = 8 + 5 + 18 = 31$. With no
# elements at all the sum is $0$. With different lengths some element has no partner, and there is no answer, only an
# error. Layers, convolutions and attention are made of dot products: a network spends its life in this line.

# %%
a = np.array([2.0, 1.0, 3.0])
b = np.array([4.0, 5.0, 6.0])
print("products:", a[0] * b[0], a[1] * b[1], a[2] * b[2])
print("their sum:", a[0] * b[0] + a[1] * b[1] + a[2] * b[2])

# %% figure="diagonal"
"""A table of nine products. Its rows belong to a = (2, 1, 3), its columns to b = (4, 5, 6). The three products on the
diagonal, 8, 5 and 18, are framed and add up to 31; the other six are grey."""
a, b = np.array([2, 1, 3]), np.array([4, 5, 6])
figure, axes = plt.subplots(figsize=(3.4, 2.9))
for (i, j), product in np.ndenumerate(np.outer(a, b)):
    paired = i == j
    axes.add_patch(
        plt.Rectangle(
            (j - 0.45, i - 0.45),
            0.9,
            0.9,
            facecolor="#cfe3f1" if paired else "#f2f2f2",
            edgecolor="#0072b2" if paired else "#d0d0d0",
            linewidth=2.5 if paired else 1,
        )
    )
    axes.text(j, i, product, ha="center", va="center", fontsize=13, color="black" if paired else "#696969")
axes.set(xlim=(-0.6, 2.6), ylim=(2.6, -0.6), aspect="equal")
axes.set_xticks(range(3), [f"$b_{j} = {value}$" for j, value in enumerate(b)], fontsize=10)
axes.set_yticks(range(3), [f"$a_{i} = {value}$" for i, value in enumerate(a)], fontsize=10)
axes.xaxis.tick_top()
axes.tick_params(length=0)
axes.grid(False)
axes.spines[:].set_visible(False)
axes.set_xlabel("the diagonal: 8 + 5 + 18 = 31", fontsize=10)

# %% [markdown]
# ## How a check speaks
#
# Before you write anything, watch somebody else get it wrong: this function adds up each vector and multiplies the
# two totals. Run it.


# %%
def totals_multiplied(a, b):
    return sum(a) * sum(b)


check("start-dot-loop", totals_multiplied)

# %% [markdown]
# Read the verdict from the top: the exercise, and how many cases came out right; one **case** that failed, by a name
# that says what it is there to find out; your value beside the right one; a likely **cause**; where to look **next**.
# A row **array** appears when the result has the wrong shape or kind of number; a single number counts as an array of
# shape `()`. Compare with the picture: $6 \cdot 15 = 90$ is the sum of all nine products. `CheckFailed` at the bottom
# only tells Jupyter that the exercise is not done.
#
# A check calls your function on inputs of its own, some chosen and some drawn at random, and compares with stored
# values from PyTorch. It judges what comes back, never how you wrote it. Run it as often as you like: nobody counts.

# %% [markdown]
# ## Exercises
#
# An exercise is a cell that ends in `raise NotImplementedError(...)`. Put your code in place of that line and leave
# the name and arguments as they are; run the cell, then the check below it. If you are stuck, open the folded hint
# that sounds like you. Four things to know before you write:
#
# - **A loop that does not end** keeps `[*]` beside its cell. Press the square in the toolbar, or choose **Kernel**,
#   **Interrupt Kernel**.
# - **After a restart of the kernel** Python has forgotten every cell. Click on the check you want to run and choose
#   **Run**, **Run All Above Selected Cell**; then run the check.
# - **A cell that ends in a `SyntaxError` has defined nothing.** The function from its last good run is still there,
#   and it is the one that a check judges. Run the cell until it ends without an error.
# - **Three dots are a folded cell**: code that the course needs and you need not read. Run it like any other. The
#   first one follows.

# %% given="imports"
import numpy as np

# %% [markdown]
# ### Exercise 0.1: `dot_loop`
# Easy, 5 minutes, 2 points.


# %% exercise="start-dot-loop"
def dot_loop(a: np.ndarray, b: np.ndarray) -> float:
    """The dot product of two vectors, by a loop over their elements.

    a, b:    arrays of shape (n,), of any real dtype
    returns  a number, as a Python float or a NumPy scalar; 0.0 for n = 0
    raises   ValueError where the lengths differ;
             it helps if its message names both

    >>> float(dot_loop(np.array([2.0, 1.0, 3.0]), np.array([4.0, 5.0, 6.0])))
    31.0
    """
    ### BEGIN SOLUTION
    if len(a) != len(b):
        raise ValueError(f"a has {len(a)} elements and b has {len(b)}")
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
    ### END SOLUTION


# %% [markdown]
# <details><summary>I do not know where to begin</summary>
#
# How did you get from 8, 5 and 18 to 31 in your head? What did you have to remember from one step to the next?
# </details>
# <details><summary>The number is wrong</summary>
#
# Three parts: a total before the loop, one line inside it that makes the total grow, one return after it. Follow the
# first case on paper, and write down the total after each step.
# </details>
# <details><summary>It accepts vectors of different lengths</summary>
#
# When would your loop notice? Ask `len` for both before the loop, and `raise` if they differ.
# </details>
# <details><summary>It ends in an error that I did not raise</summary>
#
# What do the rows **raised** and **where** say? A `NameError` names something that Python does not know: is it spelled
# as it was above, and has the cell that makes it been run? An `IndexError` is about a place that a vector does not
# have: which is the last place of three?
# </details>

# %% check="start-dot-loop"
check("start-dot-loop", dot_loop)

# %% [markdown]
# **Reading a traceback.** Now ask for something that has no answer. If your function is right, the next cell ends in
# an error, and it is *your* error.

# %%
dot_loop(np.ones(512), np.ones(511))

# %% [markdown]
# Read it from the last line upwards. The last line says what happened, in the words of whoever wrote the `raise`. If
# yours says `ValueError` and no more, add a message with both lengths and run it again: you will be glad of it one day.
# Above it stands each call that was under way, the innermost lowest, with an arrow at its line: find the lowest arrow
# in code of your own. Had the team of our story read `a has 512 elements and b has 511` on the first day, there would
# be no story.
#
# ### Exercise 0.2: `dot`
# Easy, 5 minutes, 2 points.
#
# Now without a loop of your own. *Vectorised* means that one call hands the whole array to NumPy.


# %% exercise="start-dot"
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """The dot product of two vectors, in NumPy calls that take whole arrays.

    a, b:    arrays of shape (n,), of any real dtype
    returns  a number, as a Python float or a NumPy scalar; 0.0 for n = 0
    raises   ValueError where the lengths differ, even if one is 1;
             it helps if its message names both

    >>> float(dot(np.array([2.0, 1.0, 3.0]), np.array([4.0, 5.0, 6.0])))
    31.0

    PyTorch: torch.dot
    """
    ### BEGIN SOLUTION
    if len(a) != len(b):  # `@` refuses them too, but says it less plainly
        raise ValueError(f"a has {len(a)} elements and b has {len(b)}")
    return a @ b
    ### END SOLUTION


# %% [markdown]
# <details><summary>I get an array, not a number</summary>
#
# Which of the two steps of the formula have you done so far, and which is missing?
# </details>
# <details><summary>It fails only where one vector has a single element</summary>
#
# What is `np.ones(4) * np.ones(1)`? NumPy repeats an axis of size 1, and nothing tells you. Compare the lengths
# first.
# </details>
# <details><summary>I know no such function</summary>
#
# Multiplying two arrays multiplies place by place, and an array can sum itself. There is also an operator made for
# this, written with the sign of e-mail addresses.
# </details>

# %% check="start-dot"
check("start-dot", dot)

# %% [markdown]
# ## Look
#
# Now the time, with a third version beside your two. One measurement tells little, since the machine also does other
# things, so we keep the fastest of several. The stopwatch is the folded cell: run it too.

# %% given="stopwatch"
import time


def fastest(function, *arguments, repeats: int = 5) -> float:
    """Seconds that the fastest of several calls took."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


# %%
def products_summed(a, b):
    return (a * b).sum()


rng = np.random.default_rng(0)
sizes = [10, 100, 1_000, 10_000, 100_000, 1_000_000]
vectors = [(rng.standard_normal(n), rng.standard_normal(n)) for n in sizes]
loop = [fastest(dot_loop, a, b) for a, b in vectors]
summed = [fastest(products_summed, a, b) for a, b in vectors]
single = [fastest(dot, a, b) for a, b in vectors]
print(f"At a million elements dot is {loop[-1] / single[-1]:.0f} times as fast as dot_loop.")

figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
axes.loglog(sizes, loop, "o-", color="#d55e00", label="dot_loop")
axes.loglog(sizes, summed, "^:", color="#555555", label="products_summed")
axes.loglog(sizes, single, "s--", color="#0072b2", label="dot")
axes.set_xlabel("elements")
axes.set_ylabel("seconds")
axes.legend()
plt.show()

# %% [markdown]
# One core of an ordinary machine recorded this, for when you read without running. Your numbers will be others; the
# three shapes will be the same.

# %% figure="loop-and-vectorised"
"""Seconds against number of elements, both axes logarithmic. The line of dot_loop rises straight from two microseconds
at ten elements to a fifth of a second at a million. The line of dot stays flat at about one microsecond up to a
thousand elements, then rises to a third of a millisecond at a million: several hundred times less than the loop. The
line of products_summed lies a little above it."""
sizes = [10, 100, 1_000, 10_000, 100_000, 1_000_000]
loop = [2.5e-6, 2.0e-5, 2.0e-4, 2.0e-3, 2.0e-2, 2.0e-1]
summed = [1.9e-6, 1.9e-6, 2.5e-6, 6.8e-6, 8.0e-5, 7.3e-4]
vectorised = [1.2e-6, 1.1e-6, 1.3e-6, 2.8e-6, 3.4e-5, 3.3e-4]
figure, axes = plt.subplots(figsize=(6, 3.6))
axes.loglog(sizes, loop, "o-", color="#d55e00")
axes.loglog(sizes, summed, "^:", color="#555555")
axes.loglog(sizes, vectorised, "s--", color="#0072b2")
axes.text(8e3, 8e-3, "dot_loop", ha="right", color="#a04600")
axes.text(1.7e4, 1.5e-5, "products_summed", ha="right", color="#333333")
axes.text(3e4, 3e-6, "dot", ha="left", color="#00558a")
axes.annotate("", (1.4e6, 3.0e-4), (1.4e6, 2.2e-1), arrowprops={"arrowstyle": "<->", "color": "#555555"})
axes.text(1.1e6, 5e-3, "several\nhundred\ntimes", ha="right", color="#333333")
axes.set(xlabel="elements", ylabel="seconds")

# %% [markdown]
# - **The loop climbs straight**, a fraction of a microsecond an element. Each time the interpreter looks up two
#   places, makes an object of each number, finds out which `*` and which `+` are meant, and throws the objects away.
# - **A single call is flat at first.** It costs a few microseconds at most, however little it does. Up to about a
#   thousand elements that is nearly all you pay.
# - **Then memory sets the pace.** A million pairs are sixteen megabytes, read once. `(a * b).sum()` takes a few times
#   as long: it also writes eight megabytes of products, and reads them again.
#
# At a million elements the single call is several hundred times as fast as the loop.
#
# This is how the whole course goes: the loop says what is meant, the vectorised line is what runs.

# %% [markdown]
# ## In PyTorch
#
# It is `torch.dot(a, b)`, or `a @ b`. It keeps the dtype, refuses a float32 vector beside a float64 one, and raises
# `RuntimeError` where we raise `ValueError`. On a GPU the call returns before the work is done: a stopwatch there
# must first wait, with `torch.cuda.synchronize()`.

# %% [markdown]
# ## Your work
#
# **Building on your own code.** Later chapters build on earlier ones. They take the reference implementation for
# these, so you can begin anywhere. A line in a later notebook takes yours, and says chapter by chapter whose code is
# in use:
#
# ```python
# gradwright.use("mine")
# ```
# ```text
# 00 start        yours (work/00_start/start.ipynb), 2 of 2 exercises
# ```
#
# Yours is taken when all of its checks pass; until then the line begins with `reference` and says what is missing.
# Notebooks are read from the disk, so save first (**Ctrl+S**). After changing one that another has already loaded,
# restart the other's kernel (menu **Kernel**): Python keeps what it has read.
#
# **Handing in.** Save; that is all. Your instructor collects `work/00_start/start.ipynb`, so keep the file's name. A
# terminal (menu **File**, **New**, **Terminal**) knows three commands:
#
# | command | what it does |
# |---|---|
# | `autograder check 00` | checks the saved notebook: the verdicts you have seen here |
# | `autograder status` | lists chapters, exercises and points, and what to do next |
# | `autograder fresh 00` | puts an untouched copy beside yours, for a second pass with the book closed |
#
# **On Binder** you write in `course/00_start/start.ipynb` itself, and the machine is thrown away when you leave. Take
# the notebook home: right-click it in the list of files and choose **Download**. Next time, drag it back to its
# folder.

# %% [markdown]
# ## Check yourself
#
# Two questions, a sentence or two each, in a cell of your own: **Esc**, **B** adds one below, **M** makes it text,
# **Enter** lets you write.
#
# 1. For ten elements the two functions take nearly the same time. Where does each of them spend it?
# 2. `(a * b).sum()` accepts a `b` with a single element. Which number comes out, and why would a training run hardly
#    notice?
#
# Here is the list from the beginning again. Tick what you could now show somebody: double-click this text, put an `x`
# between the brackets, and press **Shift+Enter**. Whatever stays open is worth another look.
#
# - [ ] run a check and read its verdict;
# - [ ] write a dot product as a loop and as one vectorised call;
# - [ ] measure how far apart they are, and say why;
# - [ ] read a traceback, last line first;
# - [ ] build on your own code, and hand it in.
#
# When both checks are right, compare with [the solution of this chapter](../../solutions/00_start.py). In a week, try
# `autograder fresh 00`: five minutes, book closed. Next comes the tensor, of which these vectors are the simplest
# case.
