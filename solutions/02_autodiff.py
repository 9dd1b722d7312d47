# %% [markdown]
# # 02 Autodiff
#
# ## Why
#
# A model had two tasks and one loss: an error in position and an error in direction, added up. The position became
# better by the hour; the direction stayed poor for three days. Somebody had once measured how long the direction's loss
# took to compute, under `no_grad`, as one should, and the line had stayed in the code. So the loss was computed. Its
# shape was right, its value was right, it stood in every log, and it even fell a little at first, since the two tasks
# shared their lower layers. Only no gradient ever came out of it. Everybody had looked at the loss. Nobody had looked
# at what came back.
#
# In this chapter you build the part of a framework that sends something back. After it you can
#
# - measure a derivative by small steps, and say how far such a measurement can be trusted;
# - write an operation with its backward, for sums, products, broadcasts and matrix products;
# - walk a graph of a hundred thousand operations backwards, visiting each of them once;
# - say what is added to `.grad`, when, and what one large batch has in common with many small ones;
# - find the branch of a loss that has lost its gradient, and the in-place change that has spoilt one;
# - watch gradients on their way, and check a backward that you do not trust.
#
# Allow about four hours; each section is a good place to stop. What you write here computes every gradient in the rest
# of the course.

# %%
import time

import matplotlib.pyplot as plt

import gradwright
from autograder import check
from gradwright.widgets import graph_viewer, visit_counter

gradwright.chapter(2)

# %% [markdown]
# Everything stands on chapter 01. Its functions know nothing of gradients, and its module is called `plain` here, so
# that `plain.multiply` is always the multiplication that only multiplies.

# %% given="imports"
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from inspect import isgeneratorfunction
from typing import Any, ClassVar, Self

import numpy as np

from gradwright.chapters import tensor as plain

# %% [markdown]
# ## Sensitivity
#
# **Idea.** A derivative answers a question that one could ask with a screwdriver in hand: if I turn this knob a little,
# how much does the needle move? For a number $L$ that depends on a number $x$, turn $x$ by a small step $h$ to either
# side, and compare:
#
# $$\frac{dL}{dx} \approx \frac{L(x + h) - L(x - h)}{2h}$$
#
# Take $L = x^2$ at $x = 3$ with $h = 0.1$. Above, $3.1^2 = 9.61$; below, $2.9^2 = 8.41$. The difference is $1.2$ over a
# distance of $0.2$, so the needle moves 6 times as far as the knob. That is $2x$, exactly, as it happens.
#
# When $x$ is an array, every element is a knob of its own. Turn one, leave all the others alone, and note what the
# needle does; then turn it back. The numbers, laid out in the shape of $x$, are the *gradient*.
#
# ### Exercise 2.1: `numerical_gradient`
# Easy, 10 minutes, 2 points.


# %% exercise="autodiff-numerical"
def numerical_gradient(f: Callable, x: np.ndarray, step: float = 6e-6) -> np.ndarray:
    """The gradient of f at x by central differences, one element at a time.

    f        takes an array of x's shape and returns a number
    x        a float64 array of any shape; it is left as it was
    step     how far each element moves, to either side
    returns  an array of x's shape: how fast f grows with each element

    >>> numerical_gradient(lambda x: (x**2).sum(), np.array([1.0, 3.0])).round(6)
    array([2., 6.])

    PyTorch: what torch.autograd.gradcheck does inside
    """
    ### BEGIN SOLUTION
    gradient = np.empty_like(x)
    for place in np.ndindex(x.shape):
        above, below = x.copy(), x.copy()
        above[place] += step
        below[place] -= step
        gradient[place] = (f(above) - f(below)) / (2 * step)
    return gradient
    ### END SOLUTION


# %% [markdown]
# <details><summary>One element is right, with several I get too much</summary>
#
# Is every knob back where it was before you turn the next one? Copy x afresh for each element.
# </details>
# <details><summary>It is nearly right, with an error that grows with the step</summary>
#
# Compare your fraction with the formula: how many evaluations of f are there, and how far do they lie apart?
# </details>
# <details><summary>I do not know how to loop over an array of any shape</summary>
#
# `np.ndindex(x.shape)` runs through all places as tuples, and `x[place]` takes such a tuple. It works for no axes too.
# </details>

# %% check="autodiff-numerical"
check("autodiff-numerical", numerical_gradient)

# %% [markdown]
# **Look.** How small should the step be? The next cell asks for the derivative of $e^{\sin x}$ at 1, with steps from
# $10^{-15}$ to 1, and compares with the truth. Predict the shape of the curve before you run it: is smaller always
# better?


# %%
def one_sided(f, x, step):
    return (f(x + step) - f(x)) / step


here, truth = np.array(1.0), np.cos(1.0) * np.exp(np.sin(1.0))
steps = 10.0 ** np.arange(-15, 0.5, 0.25)
figure, axes = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
for way, mark, color in [(one_sided, "o-", "#d55e00"), (numerical_gradient, "s--", "#0072b2")]:
    errors = [abs(way(lambda x: np.exp(np.sin(x)), here, h) - truth) for h in steps]
    name = way.__name__.replace("_", " ")
    axes.loglog(steps, errors, mark, color=color, markersize=4, label=name)
axes.set(xlabel="step", ylabel="error")
axes.legend()
plt.show()

# %% [markdown]
# Two errors pull in opposite directions. On the right the step is too long: a curve is not a straight line, and the
# part that is missed shrinks with $h$ for one side and with $h^2$ for two, because the bend to the left and the bend to
# the right cancel. On the left the step is too short: $L(x+h)$ and $L(x-h)$ agree in all their leading digits, the
# difference keeps the few that are left, and dividing by a tiny $2h$ makes the rounding large. A float64 has 16 digits,
# so rounding contributes about $10^{-16} / h$. The sum $h^2 + 10^{-16}/h$ is smallest near the cube root of $10^{-16}$,
# a few millionths; hence the default of `6e-6`, and an error of about $10^{-11}$. In float32 the same sum gives a
# step of $5 \cdot 10^{-3}$ and four good digits: **check gradients in float64.**
#
# So why is this not the end of the chapter? Because of the bill. Each element costs two runs of the model, and a small
# model has a million elements. What follows computes all of them in one walk that costs about as much as two more runs.
# The slow way remains the judge: it knows nothing about calculus, so it cannot make the same mistake.
#
# ## Two nodes
#
# **Idea.** Follow one number through a computation: $L = (a + b) \cdot c$ with $a = 2$, $b = 3$, $c = 4$. Forward, $s =
# a + b = 5$ and $L = 20$. Now ask from the end, how sensitive is $L$ to each of these numbers?
#
# - To itself: if $L$ moves, $L$ moves as much. The walk begins with 1.
# - The product $s \cdot c$. If $s$ moves by 1, $L$ moves by $c = 4$. If $c$ moves by 1, $L$ moves by $s = 5$.
#   **Multiply crosses**: each input gets the *other* one, times what arrived.
# - The sum $a + b$. If $a$ moves, $s$ moves as far, and we know already that $L$ then moves 4 times that. **Add passes
#   on**: each input gets what arrived.

# %% figure="nodes"
"""The computation L = (a + b) times c as circles from left to right. Above each line the value, forward: a = 2
and b = 3 enter a plus, s = 5 leaves it; s and c = 4 enter a times, L = 20 leaves it. Below each line, in orange, the
gradient on the way back: 1 at L, 4 at s, 5 at c, and 4 at both a and b."""
figure, axes = plt.subplots(figsize=(7.4, 3.3), layout="constrained")
places = {"a": (0, 2.3), "b": (0, 0.7), "c": (2.6, -0.1), "+": (2.6, 1.5), "×": (5, 1), "L": (7, 1)}
wires = [("a", "+", 2, 4), ("b", "+", 3, 4), ("+", "×", "s = 5", 4), ("c", "×", 4, 5), ("×", "L", 20, 1)]
for start, end, value, gradient in wires:
    (x0, y0), (x1, y1) = places[start], places[end]
    axes.annotate("", (x1 - 0.3, y1), (x0 + 0.3, y0), arrowprops={"arrowstyle": "->", "color": "#595959"})
    x, y = x0 + 0.42 * (x1 - x0), y0 + 0.42 * (y1 - y0)
    axes.text(x, y + 0.13, value, ha="center", color="#00558a", fontsize=12)
    axes.text(x, y - 0.32, gradient, ha="center", color="#a04600", fontsize=12)
for name, (x0, y0) in places.items():
    operation = name in "+×"
    axes.plot(x0, y0, "o", markersize=26, color="#cfe3f1" if operation else "white", markeredgecolor="#595959")
    axes.text(x0, y0 - 0.015, name, ha="center", va="center", fontsize=13)
axes.text(5.3, 2.2, "value, forward", color="#00558a", fontsize=12)
axes.text(5.3, 1.85, "gradient, back", color="#a04600", fontsize=12)
axes.set(xlim=(-0.5, 7.5), ylim=(-0.5, 2.7))
axes.axis("off")

# %% [markdown]
# That is the chain rule, and all there is to it: *what arrives, times what happens here*. A node needs to know two
# things only, the gradient of its output and whatever it remembers of its own inputs. It need not know what the loss
# is, or how many layers lie between.
#
# In code an operation is a class. `forward` calculates and saves what backward will want; `backward` takes the gradient
# of the output as a NumPy array, and returns one gradient for each input. An *instance* is one use of the operation:
# where the model adds forty times, there are forty instances of `Add`, each with memories of its own.
#
# `self.save(...)` takes tensors, or None in the place of one that is not needed, and `self.saved` gives their arrays
# back in the same order. The class is given, folded below. Open it and read `save` and `saved`; the rest can wait.


# %% given="operation"
class Operation:
    """What is done to tensors, with its gradient. An instance is one use of it, a node of the graph.

    A subclass `class Exp(Operation, of=plain.exp)` says which function of chapter 01 it stands for. It writes
        forward(*tensors, **options)   the function itself, where backward needs something saved; else leave it out
        backward(grad)                 the gradient of each input, a tuple if there are several: new arrays, or grad and
                                       views of it, never one that is kept elsewhere
    Both call functions of chapter 01 and NumPy, never methods of tensors, which would be recorded once more.
    """

    targets: Sequence[Any] = ()  # where each input's gradient goes: the operation that made it, a leaf, or None
    grad_like: tuple | None = None  # shape and dtype of the output, and so of the gradient that arrives
    kept: Sequence[tuple | None] = ()
    hooks: Any = None
    function: ClassVar[Callable]

    def __init_subclass__(cls, of: Callable | None = None):
        if of is not None:
            OPERATIONS[of], cls.function = cls, staticmethod(of)
            if not hasattr(cls, "forward"):
                cls.forward = staticmethod(of)

    def save(self, *tensors: Any) -> None:
        """Keep what backward needs and no more: this is the memory that training costs. None is kept as None."""
        self.kept = [None if t is None else (t.array, t.storage, t.storage.version) for t in tensors]

    @property
    def saved(self) -> list[np.ndarray | None]:
        """The arrays of what was saved, in the same order."""
        return [unpack(kept) for kept in self.kept]

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each input, whether its gradient is wanted."""
        return tuple([target is not None for target in self.targets])

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the input, where there is only one."""
        return self.targets[0].grad_like[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


OPERATIONS: dict[Callable, type[Operation]] = {}


def unpack(kept: tuple | None) -> np.ndarray | None:
    """The array of a saved value. Exercise 2.10 will put something more careful in the place of this function."""
    return None if kept is None else kept[0]


# %% [markdown]
# `Add` is the shortest operation there is, and `Subtract` is its sister. They save nothing, so they need no `forward`
# of their own: `plain.add` itself will do.


# %% given="add"
class Add(Operation, of=plain.add):
    """a + b. Each input moves the output as far as it moves itself: the gradient passes through."""

    def backward(self, grad: np.ndarray) -> tuple:
        return grad, grad


class Subtract(Operation, of=plain.subtract):
    """a - b. The output goes down as b goes up."""

    def backward(self, grad: np.ndarray) -> tuple:
        return grad, -grad if self.needs_input_grad[1] else None


# %% [markdown]
# `Multiply` is yours. Look at what crosses: the gradient of `a` needs `b`, so `b` has to be kept *if the gradient of
# `a` is wanted*, and not otherwise. Tensors say so themselves: `a.requires_grad`. This matters. The input of the first
# layer is data, nobody asks for its gradient, and whatever is saved for it sits in memory until the walk back. Here a
# saved None doubles as the sign that nothing is wanted.
#
# ### Exercise 2.2: `Multiply`
# Medium, 15 minutes, 3 points.


# %% exercise="autodiff-multiply"
class Multiply(Operation, of=plain.multiply):
    """a * b, element by element."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        """The product; saves what backward will need.

        a, b     tensors that broadcast; `requires_grad` says whether the gradient of one is wanted
        returns  plain.multiply(a, b)
        """
        ### BEGIN SOLUTION
        self.save(a if b.requires_grad else None, b if a.requires_grad else None)
        return plain.multiply(a, b)
        ### END SOLUTION

    def backward(self, grad: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The gradients of a and b from that of the output.

        grad     an array, in the shape of the output
        returns  two arrays in the shape of grad, or None in place of one that is not wanted
        """
        ### BEGIN SOLUTION
        a, b = self.saved
        return None if b is None else grad * b, None if a is None else grad * a
        ### END SOLUTION


# %% [markdown]
# <details><summary>The gradients are exchanged</summary>
#
# Which of the two values does `a`'s gradient need? Follow the 4 and the 5 in the picture.
# </details>
# <details><summary>The gradients are right and "arrays kept" is wrong</summary>
#
# Suppose only `a.requires_grad` is true. Which of the two arrays will backward read? Which one can be None?
# </details>
# <details><summary>'numpy.ndarray' has no attribute 'array', or an array and a tensor do not mix</summary>
#
# On which side of `self.save` are you? It takes tensors, and `self.saved` gives arrays, as `grad` is one.
# </details>
# <details><summary>I do not know where to begin</summary>
#
# Forward is two lines: one that saves, with two conditions in it, and one that returns the product. Backward is two
# lines as well: unpack `self.saved` into a and b, and return a pair, where each member is a product or None.
# </details>

# %% check="autodiff-multiply"
check("autodiff-multiply", Multiply)

# %% [markdown]
# ## Undoing a broadcast
#
# **Idea.** Add a bias of 3 numbers to a batch of 64 rows. `Add` passes on what arrives, which has the shape `(64, 3)`.
# The bias has the shape `(3,)`. What is its gradient?
#
# Think of the knob again. Broadcasting *reads* the one number $b_j$ in 64 places. Turn it, and 64 outputs move at once,
# each pulling at the loss with its own strength:
#
# $$\frac{\partial L}{\partial b_j} = \sum_{i=1}^{64} \frac{\partial L}{\partial y_{ij}}$$
#
# **Read many times on the way forward, summed on the way back.** The operation does not matter: add, multiply or
# divide, its gradient comes out in the shape of the output, and has to be summed down to the shape of the input.

# %% figure="broadcast-and-back"
"""Two halves. Left, forward: a row b of the numbers 10, 20, 30, with an arrow down from each to both places that
read it. Right, back: a gradient of two rows, 1 2 3 and 4 5 6, with arrows up from both places of each column to their
sums, 5, 7, 9."""
figure, halves = plt.subplots(1, 2, figsize=(7.2, 2.9), layout="constrained")
contents = [
    ("forward: b is read twice", [[10, 20, 30]], [[10, 20, 30], [10, 20, 30]], "#00558a"),
    ("back: the gradients meet in a sum", [[5, 7, 9]], [[1, 2, 3], [4, 5, 6]], "#a04600"),
]
for axes, (title, top, below, color) in zip(halves, contents, strict=True):
    for numbers, height in ((top, 3.0), (below, 1.0)):
        for i, row in enumerate(numbers):
            for j, value in enumerate(row):
                face = "#e8eef2" if height > 2 else "#f7f7f7"
                axes.add_patch(plt.Rectangle((j, height - i), 1, 1, facecolor=face, edgecolor="#8a8a8a"))
                axes.text(j + 0.5, height - i + 0.5, value, ha="center", va="center", fontsize=12)
    for j in range(3):
        for side, end in ((0.22, 1.75), (0.78, 0.75)):
            points = [(j + side, 2.98), (j + side, end)] if color == "#00558a" else [(j + side, end), (j + side, 2.98)]
            axes.annotate("", points[1], points[0], arrowprops={"arrowstyle": "->", "color": color, "lw": 1.6})
    axes.set(xlim=(-0.1, 3.1), ylim=(-0.1, 4.1), title=title)
    axes.axis("off")

# %% [markdown]
# Two different things can have happened to a shape, and they are undone differently.
#
# | forward | example | on the way back |
# |---|---|---|
# | an axis of size 1 was stretched | `(3, 1)` read as `(3, 4)` | sum over it and keep it, with size 1 |
# | axes were added in front | `(4,)` read as `(2, 3, 4)` | sum over them and drop them |
#
# A common slip is to take the mean, since "the gradient of a batch is a mean". It is, if the *loss* is a mean; then the
# factor 1/64 is in the numbers that arrive already.
#
# ### Exercise 2.3: `unbroadcast`
# Medium, 10 minutes, 3 points.


# %% exercise="autodiff-unbroadcast"
def unbroadcast(grad: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The gradient of an input that was broadcast, from the gradient of what it was broadcast to.

    grad     an array, in the shape of the output, say (2, 3, 4)
    shape    of the input, which broadcasts to grad.shape, say (3, 1)
    returns  an array of exactly this shape, of grad's dtype

    >>> unbroadcast(np.ones((2, 3, 4)), (3, 1)).tolist()
    [[8.0], [8.0], [8.0]]

    PyTorch: Tensor.sum_to_size
    """
    ### BEGIN SOLUTION
    added = grad.ndim - len(shape)
    if added:
        grad = np.add.reduce(grad, axis=tuple(range(added)))
    if grad.shape == shape:
        return grad
    stretched = tuple([axis for axis, size in enumerate(shape) if size == 1])
    return np.add.reduce(grad, axis=stretched, keepdims=True)
    ### END SOLUTION


# %% [markdown]
# <details><summary>The numbers are right, the shape is not</summary>
#
# Which row of the table are you in? An axis of size 1 stays an axis: what does `keepdims` do?
# </details>
# <details><summary>It fails for the shape ()</summary>
#
# Then every axis of the gradient was added in front. How many are they, and what are they called? `range` can name
# them.
# </details>
# <details><summary>Shapes such as (3, 3) and (3,) give wrong numbers</summary>
#
# Equal sizes cannot tell you which axis was added; the rule can. Broadcasting lines shapes up on the right, so the new
# axes are the first ones.
# </details>
# <details><summary>I do not know where to begin</summary>
#
# Two steps. First bring the gradient to as many axes as the shape has, by summing over the surplus ones in front. Then
# look for axes where the shape says 1, and sum over those.
# </details>

# %% check="autodiff-unbroadcast"
check("autodiff-unbroadcast", unbroadcast)

# %% [markdown]
# From here on, no operation has to think of it again: the machine will call your function wherever the gradient of an
# input comes back larger than the input. `Multiply` may go on returning gradients in the shape of its output.
#
# ## Matrix products
#
# **Idea.** For matrices $C = AB$, that is $C_{ij} = \sum_p A_{ip} B_{pj}$, call the gradient that arrives $G$; it has
# the shape of $C$. The number $A_{ip}$ takes part in row $i$ of $C$, in every column $j$, each time multiplied by
# $B_{pj}$. Summing over the places where it was used:
#
# $$\frac{\partial L}{\partial A_{ip}} = \sum_j G_{ij}\, B_{pj} \qquad\text{that is}\qquad G\,B^{\mathsf T}$$
#
# The same for $B_{pj}$, which takes part in column $j$, in every row: $A^{\mathsf T} G$. Nobody remembers on which side
# the transpose stands, and nobody needs to, because the shapes say it:
#
#     G (n, m)      A (n, k)      B (k, m)
#     gradient of A: (n, k) = (n, m) @ (m, k)        gradient of B: (k, m) = (k, n) @ (n, m)
#
# There is one way only to make these shapes meet. (Test with three different sizes. A square matrix accepts every
# mistake.)
#
# Models rarely multiply two matrices; they multiply *stacks* of them, say `(8, 64, 16) @ (8, 16, 64)`. Then every
# matrix of the stack has its own gradient, by the same formula. `.T` would turn round all axes of a stack; NumPy's name
# for "exchange the last two" is `.mT`.
#
# ### Exercise 2.4: `matmul_gradients`
# Medium, 20 minutes, 4 points.


# %% exercise="autodiff-matmul"
def matmul_gradients(grad: np.ndarray, a: np.ndarray | None, b: np.ndarray | None) -> tuple:
    """The gradients of a and b, from that of a @ b.

    grad     shape (n, m)
    a        shape (n, k); None where the gradient of b is not wanted
    b        shape (k, m); None where the gradient of a is not wanted
    returns  two arrays in the shapes of a and b, or None in place of one that is not wanted

    All three may be stacks of matrices, of shape (..., n, m) and so on. A stack's transpose: `.mT`.

    >>> matmul_gradients(np.array([[1.0, 10.0]]), np.array([[2.0]]), np.array([[3.0, 4.0]]))
    (array([[43.]]), array([[ 2., 20.]]))

    PyTorch: what torch.matmul computes on its way back
    """
    ### BEGIN SOLUTION
    return None if b is None else grad @ b.mT, None if a is None else a.mT @ grad
    ### END SOLUTION


# %% [markdown]
# <details><summary>The shapes do not meet</summary>
#
# Write the three shapes on paper with n = 2, k = 3, m = 4. Which matrices have an m in them, and where must it stand in
# the product to be summed away?
# </details>
# <details><summary>Single matrices are right, stacks are not</summary>
#
# What is the shape of `x.T` if x has the shape (5, 2, 3)? And of `x.mT`?
# </details>
# <details><summary>It fails where one of a and b is None</summary>
#
# a is given for b's gradient and b for a's. If b is None, which of the two results do you leave out?
# </details>

# %% check="autodiff-matmul"
check("autodiff-matmul", matmul_gradients)

# %% [markdown]
# `MatMul` wraps your function. Where a stack meets a single matrix, as the weight of every linear layer is one, the
# gradient of that matrix comes out as a stack, and your `unbroadcast` adds it up. (It can be had in one large product
# instead of many small ones: chapter 03 comes back to that.)
#
# `Sum` is given as well, as the mirror image of a broadcast: forward it adds many numbers into one, so backward one
# gradient is read in many places. Nothing is copied for that; `spread` makes an axis of stride 0.


# %% given="matmul"
class MatMul(Operation, of=plain.matmul):
    """a @ b, for matrices and stacks of them."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        self.save(a if b.requires_grad else None, b if a.requires_grad else None)
        return plain.matmul(a, b)

    def backward(self, grad: np.ndarray) -> tuple:
        return matmul_gradients(grad, *self.saved)


class Sum(Operation, of=plain.sum_over):
    """Sums along axes. One sum read many elements: its gradient is read into all of their places."""

    def forward(self, t: plain.Tensor, dim: Any = None, keepdim: bool = False) -> plain.Tensor:
        self.dims = plain.dims_of(dim, t.ndim)
        return plain.sum_over(t, dim, keepdim)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return spread(grad, self.input_shape, self.dims)


def spread(grad: np.ndarray, shape: tuple[int, ...], dims: tuple[int, ...]) -> np.ndarray:
    """The gradient of a reduction over `dims`, read into every place of `shape`: stride 0, nothing is copied."""
    kept = grad.reshape([1 if axis in dims else size for axis, size in enumerate(shape)])
    if kept.size == 1:  # the same as below, in a tenth of the time
        return np.ndarray(shape, grad.dtype, kept.tobytes(), strides=(0,) * len(shape))
    return np.broadcast_to(kept, shape)


# %% [markdown]
# ## The graph
#
# **Idea.** Somebody has to remember which operations were used, and in which order. We do not ask the user. In chapter
# 01 every method went through one door, `Tensor.apply`, for no reason that was visible then. Now a subclass of that
# `Tensor` overrides the door. It carries the function out as before; and if one of the inputs has `requires_grad`, it
# makes an instance of the function's `Operation`, lets it keep what it needs, and hangs it on the result as its
# `grad_fn`. The instance notes for each input where the gradient will have to go. There are three answers:
#
# - to the operation that made the input: its `grad_fn`;
# - to the input itself, if nobody made it and it wants a gradient: a *leaf*, such as a weight;
# - nowhere, if it wants none: None.
#
# These notes, `targets`, are the edges of the graph. They point backwards only, from results to what they were made of.

# %% figure="graph"
"""A graph drawn from right to left. The tensor loss has Sum as its grad_fn. Sum points to Add; Add points to Multiply
and to the leaf b; Multiply points to the leaf w, and its other arrow ends at the word nowhere, for the data x."""
figure, axes = plt.subplots(figsize=(7.6, 2.9), layout="constrained")
places = {
    "loss": (8.6, 1.3),
    "Sum": (6.6, 1.3),
    "Add": (4.6, 1.3),
    "Multiply": (2.4, 2),
    "b": (2.4, 0.4),
    "nowhere": (0, 2.4),
    "w": (0, 1.4),
}
half = {"Sum": 0.42, "Add": 0.4, "Multiply": 0.64, "b": 0.25, "w": 0.27, "nowhere": 0.55}
for start, end in [("Sum", "Add"), ("Add", "Multiply"), ("Add", "b"), ("Multiply", "nowhere"), ("Multiply", "w")]:
    (x0, y0), (x1, y1) = places[start], places[end]
    dashes = "dotted" if end == "nowhere" else "solid"
    line = {"arrowstyle": "->", "color": "#a04600", "lw": 1.6, "linestyle": dashes}
    axes.annotate("", (x1 + half[end], y1), (x0 - half[start], y0), arrowprops=line)
axes.annotate("", (7.02, 1.3), (8.2, 1.3), arrowprops={"arrowstyle": "->", "color": "#595959", "lw": 1.6})
axes.text(7.6, 1.45, "grad_fn", ha="center", color="#595959")
axes.text(5.6, 1.45, "targets", ha="center", color="#a04600")
for name, (x0, y0) in places.items():
    operation = name in ("Sum", "Add", "Multiply")
    shape = {"boxstyle": "round,pad=0.45" if operation else "square,pad=0.45", "edgecolor": "#595959"}
    shape["facecolor"] = "#cfe3f1" if operation else "white"
    axes.text(x0, y0, name, ha="center", va="center", fontsize=12, bbox=None if name == "nowhere" else shape)
axes.text(0, 0.85, "a leaf", ha="center", fontsize=10, color="#595959")
axes.text(2.4, -0.15, "a leaf", ha="center", fontsize=10, color="#595959")
axes.set(xlim=(-0.8, 9.2), ylim=(-0.45, 2.8))
axes.axis("off")

# %% [markdown]
# | | made by | `requires_grad` | `grad_fn` | `is_leaf` |
# |---|---|---|---|---|
# | data | you | False | None | True |
# | a weight | you, with `requires_grad=True` | True | None | True |
# | anything computed from a weight | an operation | True | the operation | False |
# | anything computed from data alone | an operation | False | None | True |
#
# Note what does *not* point where: an operation does not hold the tensor that it made. If it did, tensor and operation
# would hold each other, and every step of training would leave a heap of circles for Python's garbage collector. As it
# is, a graph disappears, all its saved arrays with it, at the moment when nobody holds its last tensor any more.
#
# The code is given in the folded cells that follow. The heart of it is `apply`, in twenty lines. If a function has no
# `Operation`, it raises, unless it is listed as one that cannot have a gradient: a forgotten operation is an error
# here, never a gradient that is silently missing.


# %% given="state"
class State(threading.local):
    """What holds at the door, for each thread by itself.

    now  whether operations are recorded, and who stands at the door: nobody before chapter 03. One tuple, since every
         operation asks, and a look into a thread's own memory takes as long as the addition of two numbers
    """

    now: tuple[bool, tuple] = (True, ())

    @property
    def enabled(self) -> bool:
        return self.now[0]

    @enabled.setter
    def enabled(self, flag: bool) -> None:
        self.now = flag, self.now[1]


state = State()

NOT_DIFFERENTIABLE = {
    *(plain.equal, plain.not_equal, plain.less, plain.less_equal, plain.greater, plain.greater_equal),
    *(plain.bitwise_and, plain.bitwise_or, plain.bitwise_not, plain.all_over, plain.any_over),
    *(plain.argmax, plain.argmin),
}
"""Functions whose output does not move when the input does, or is no real number. Every other has an Operation."""


def operation_of(function: Callable) -> type[Operation] | None:
    """What is recorded for a function outside OPERATIONS; None for one that has no gradient by its nature."""
    kind = getattr(function, "operation", None)
    if kind is None and function not in NOT_DIFFERENTIABLE:
        name = function.__name__
        hint = f"write class {name.title().replace('_', '')}(Operation, of=...) for it, or call it under no_grad()"
        raise NotImplementedError(f"{name} has no gradient yet: {hint}")
    return kind


# %% [markdown]
# The tensor itself, in two halves: what belongs to gradients, and what belongs to changes in place, which will be
# explained in their own section. What they call is partly yours to write, and says so when you get there.
#
# This is the machine, and no more than that. Most functions of chapter 01 have no gradient here, and raise by name if
# one is wanted; chapter 03 has an operation for each of them. There the tensor also gets what is convenience and not
# mechanism: changes in place that are recorded, a `requires_grad` that can be set as an attribute with all checks,
# `set_grad_enabled`, `autograd.grad` and `autograd.Function`.


# %% given="gradients"
class Gradients:
    """What chapter 02 adds to a tensor: whether it wants a gradient, where it came from, and the way back."""

    requires_grad: bool = False  # whether operations on this tensor are recorded
    grad: Any = None  # what backward has left here: a tensor, once it has been here
    grad_fn: Operation | None = None  # the operation that made this tensor; None for a leaf
    hooks: Any = None
    targets = ()

    @staticmethod
    def apply(function: Callable, *inputs: Any, **options: Any) -> Any:
        """The door of chapter 01: the function is carried out as before, and now also recorded."""
        enabled, modes = state.now
        if modes:
            return modes[-1].ask("forward", function, inputs, options)
        if enabled:
            targets, needed = [], False
            for x in inputs:
                target = None
                if isinstance(x, Tensor):
                    target = x.node
                    needed = needed or target is not None
                elif isinstance(x, plain.Strided):
                    x.refuse_other_door(Tensor)
                targets.append(target)
            kind = needed and (OPERATIONS.get(function) or operation_of(function))
            if kind:
                operation = kind()
                operation.targets = targets
                out = operation.forward(*inputs, **options)
                if out.dtype.kind == "f":
                    operation.grad_like = out.shape, out.dtype
                    out.follow(operation)
                return out
        return function(*inputs, **options)

    @property
    def node(self) -> Any:
        """Where this tensor's gradient goes: to the operation that made it, to itself if it is a leaf, or nowhere."""
        return self.grad_fn or (self if self.requires_grad else None)

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor."""
        return self.grad_fn is None

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        if requires_grad and self.dtype.kind != "f":
            raise RuntimeError(f"only floats can require a gradient, and this tensor holds {self.dtype}")
        self.requires_grad, self.grad_like = requires_grad, (self.shape, self.dtype)
        return self

    def follow(self, operation: Operation) -> None:
        """From now on, this tensor is what `operation` made."""
        self.requires_grad, self.grad_fn = True, operation

    def detach(self) -> Self:
        """A tensor on the same storage that no gradient passes through."""
        return plain.Tensor.see(self, self.shape, self.strides, self.offset).requires_grad_(False)

    def backward(self, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Add the gradient of this tensor to .grad of every leaf that it depends on.

        gradient      where to begin, in this tensor's shape; a tensor of one element begins at 1 by itself
        retain_graph  keep what was saved, so that the same graph can be walked once more
        raises        RuntimeError where nothing requires a gradient, `gradient` is missing or does not fit, a saved
                      tensor was changed in place, or the graph was freed by an earlier backward
        """
        run_backward(self, gradient, retain_graph, create_graph)

    def accumulate(self, grad: np.ndarray) -> None:
        """Add an array to .grad. It must be ours alone, for the first one is kept without a copy."""
        if self.grad is None:
            self.grad = self.new(grad)
        else:
            self.grad.storage.version += 1
            np.add(self.grad.array, grad, out=self.grad.array)

    def register_hook(self, hook: Callable[[Any], Any]) -> "RemovableHandle":
        """Call hook(grad) with this tensor's whole gradient in each backward. What it returns, if anything, goes on."""
        return RemovableHandle(self.watch().functions, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this tensor in .grad, though it is not a leaf."""
        if not (self.is_leaf and self.requires_grad):
            self.watch().keeper = weakref.ref(self)  # a strong reference would close a circle

    def watch(self) -> "Hooks":
        node = self.node
        if node is None:
            raise RuntimeError("this tensor requires no gradient, so none will pass here: set requires_grad first")
        if node.hooks is None:
            node.hooks = Hooks(self.new(np.empty(0, self.dtype)))
        return node.hooks

    def __repr__(self) -> str:
        note = f", grad_fn={self.grad_fn}" if self.grad_fn else ", requires_grad=True" if self.requires_grad else ""
        return f"{super().__repr__()[:-1]}{note})"


# %% given="in-place"
class Writes:
    """In-place changes, each counted in the storage's version. None is recorded yet: that is left to chapter 03."""

    def write(self, ufunc: Callable, other: Any) -> Self:
        """This tensor becomes ufunc(self, other), in the memory that it has."""
        other = other if isinstance(other, plain.Strided) else self.number(other)
        if state.enabled and (self.requires_grad or other.requires_grad):
            raise RuntimeError("a change in place is not recorded here: write x = x + y, or use no_grad()")
        ufunc(self.array, other.array, out=self.array, casting="same_kind")
        self.storage.version += 1
        return self

    def add_(self, other: Any) -> Self:
        return self.write(np.add, other)

    def sub_(self, other: Any) -> Self:
        return self.write(np.subtract, other)

    def mul_(self, other: Any) -> Self:
        return self.write(np.multiply, other)

    def copy_(self, source: Any) -> Self:
        """Every element becomes that of `source`, which may broadcast."""
        return self.write(put, source)

    def __setitem__(self, key: Any, value: Any) -> None:
        plain.index(self, key).requires_grad_(self.requires_grad).copy_(value)  # a view that refuses what self would

    __iadd__, __isub__, __imul__ = add_, sub_, mul_


def put(old: np.ndarray, new: np.ndarray, out: np.ndarray, casting: str) -> None:
    np.copyto(out, new, casting)


# %% given="tensor"
class Tensor(Gradients, Writes, plain.Tensor):
    """The tensor of chapter 01 with a memory of where it came from."""

    @classmethod
    def leaf(cls, array: np.ndarray, requires_grad: bool = False) -> Self:
        """A tensor on the memory of `array`, for the makers."""
        return cls(array).requires_grad_(requires_grad)


make = plain.Makers(Tensor.leaf)
tensor, from_numpy, empty, full = make.tensor, make.from_numpy, make.empty, make.full
zeros, ones, zeros_like, ones_like = make.zeros, make.ones, make.zeros_like, make.ones_like
eye, arange, linspace = make.eye, make.arange, make.linspace
rand, randn, randint, randperm = make.rand, make.randn, make.randint, make.randperm

# %% [markdown]
# With that, tensors remember. The next cell builds the graph of the picture and prints it from the end.


# %%
def show_graph(node, depth=0):
    print("    " * depth + ("nowhere" if node is None else repr(node)))
    for target in getattr(node, "targets", ()):
        show_graph(target, depth + 1)


print("your Multiply is in use:", OPERATIONS[plain.multiply] is Multiply)
x = tensor([1.0, 2.0])
w, b = tensor([3.0, 4.0], requires_grad=True), tensor(0.5, requires_grad=True)
loss = (x * w + b).sum()
show_graph(loss.grad_fn)

# %% [markdown]
# Read it from the top. `Sum` will send its gradient to `Add`, which sends one to `Multiply` and one to the leaf `b`, of
# shape `()`. `Multiply` sends nothing to the data and one gradient to `w`. And it has kept one array, not two:

# %%
multiply = loss.grad_fn.targets[0].targets[0]
print(multiply, [None if kept is None else kept.tolist() for kept in multiply.saved])

# %% [markdown]
# ## Walking back
#
# **Idea.** Backward is a walk from the loss to the leaves. At each node the same work is done: call the operation's
# `backward`, fit the results to the inputs' shapes with your `unbroadcast`, and see where they go. We keep that work
# apart from the question of *where to go next*, which is the interesting one. So the functions below are handed a
# `visit`: `visit(node, grad)` does the work at one node and returns a list of pairs `(target, gradient)`. At a leaf it
# takes the gradient in, and the list is empty.
#
# The first idea that comes to mind is the right one for understanding. To walk back from a node: visit it, and walk
# back from each target with the gradient beside it.
#
# ### Exercise 2.5: `backward_by_recursion`
# Easy, 10 minutes, 2 points.


# %% exercise="autodiff-recursion"
def backward_by_recursion(node: Any, grad: np.ndarray, visit: Callable) -> None:
    """Send a gradient from a node to everything that it depends on, along every path.

    node     where to begin
    grad     the gradient of its output
    visit    visit(node, grad) does the work at one node, and returns a list of pairs
             (target, gradient): where to go next, and with what. The list is empty at a leaf.

    PyTorch: no such function, for the reasons below
    """
    ### BEGIN SOLUTION
    for target, g in visit(node, grad):
        backward_by_recursion(target, g, visit)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Only one of two leaves gets anything</summary>
#
# How often does your loop run before the function returns?
# </details>
# <details><summary>The gradient never changes on its way</summary>
#
# There are two gradients in sight, that of the node, and the one in the pair. Which one belongs to the target?
# </details>
# <details><summary>How does it end?</summary>
#
# By itself: a leaf's list is empty, so a loop over it does nothing. The whole answer has two lines.
# </details>

# %% check="autodiff-recursion"
check("autodiff-recursion", backward_by_recursion)

# %% [markdown]
# It is right, and it has two faults. The next cell doubles a number $n$ times, `y = y + y`, walks back and counts the
# visits. Both inputs of every addition are the same tensor, so from each node two paths lead down. It also walks a
# plain chain, `y = y * 1`, that is a little longer than Python's stack is deep. Guess both results first.


# %%
def doubled(n):
    y = tensor(1.0, requires_grad=True)
    for _ in range(n):
        y = y + y
    return y


def counting(counts):
    def visit(node, grad):
        counts.append(node)
        return [(target, grad) for target in node.targets if target is not None]

    return visit


depths, visits = range(1, 15), []
for n in depths:
    seen = []
    backward_by_recursion(doubled(n).grad_fn, np.array(1.0), counting(seen))
    visits.append(len(seen))
figure, axes = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
axes.semilogy(depths, visits, "o-", color="#d55e00", label="visits by recursion")
axes.semilogy(depths, [n + 1 for n in depths], "s--", color="#0072b2", label="nodes")
axes.set(xlabel="additions", ylabel="count")
axes.legend()
plt.show()

# %%
y = tensor(1.0, requires_grad=True)
for _ in range(3_000):
    y = y * 1
try:
    backward_by_recursion(y.grad_fn, np.array(1.0), counting([]))
except RecursionError as error:
    print("RecursionError:", error)

# %% [markdown]
# **Look.** The widget walks back through a row of diamonds in two ways at once. The upper walk is yours. The lower one
# you are about to write; ask yourself how it knows when to wait. Both walks go forward together, one visit a step; one
# more diamond makes recursion twice as long and topological order 3 visits longer. Add diamonds, and predict both
# counts. Then watch how many calls are open at once: that is the stack which the long chain has overflowed.

# %% widget="visit-counter"
visit_counter(preset="three diamonds", visit=12)

# %% [markdown]
# Thirty additions would take two billion visits, and a residual network has a path for each subset of its blocks. The
# cure is to **wait**. A gradient that arrives at a node may be passed on at once, or it can be added to the others that
# are still to come, and be passed on once. Since a sum goes through every formula as its parts would, the result is the
# same. But a node must not go too early. It has to know how many are still to come.
#
# Take two diamonds, `b = a + a` and `c = b + b`. From `c`, two gradients arrive at `b`'s node, one for each input of
# the addition. From `b`, two arrive at `a`. The number of *paths* from `c` to `a` is four; the number of *arrivals* is
# two, since `b` passes on once. So count arrivals: for each node that can be reached, how often do the nodes above it,
# each looked at once, name it as a target? The root gets 0.
#
# The deep chain says how *not* to look: by a function that calls itself. Keep a list of nodes that are still to be
# looked at, take one out, put its new targets in, until the list is empty.
#
# ### Exercise 2.6: `count_arrivals`
# Medium, 15 minutes, 3 points.


# %% exercise="autodiff-arrivals"
def count_arrivals(root: Any) -> dict[Any, int]:
    """How many gradients each node will get in a walk from root, before it may pass on their sum.

    root     a node; node.targets says where its gradients go: to nodes, or None, which is nowhere
    returns  a number for every node that can be reached, root included, which gets none from others

    PyTorch: the `dependencies` of its engine
    """
    ### BEGIN SOLUTION
    arrivals, unseen = {root: 0}, [root]
    while unseen:
        for target in unseen.pop().targets:
            if target in arrivals:
                arrivals[target] += 1
            elif target is not None:
                arrivals[target] = 1
                unseen.append(target)
    return arrivals
    ### END SOLUTION


# %% [markdown]
# <details><summary>The counts grow far too large, or it never ends</summary>
#
# You meet a node once for each arrival. How often may you look at *its* targets? When is a node new?
# </details>
# <details><summary>It stops with RecursionError</summary>
#
# Nodes that still have to be looked at must not wait in calls that are not finished yet. Where else could they wait?
# </details>
# <details><summary>A node is looked up under None</summary>
#
# None means that an input wants no gradient. Nothing is sent there, so nothing arrives.
# </details>
# <details><summary>I do not know where to begin</summary>
#
# Begin with a dictionary that holds the root, and a list that holds the root. While the list is not empty, take a node
# out, and go through its targets: one that the dictionary knows gets one more, one that it does not know gets 1 and
# goes into the list.
# </details>

# %% check="autodiff-arrivals"
check("autodiff-arrivals", count_arrivals)

# %% [markdown]
# Now the walk. It keeps three things: how many gradients each node is `waiting` for, the sum of what has `arrived` so
# far, and a list of nodes that are `ready`. In the beginning only the root is ready, with the gradient that the caller
# gave. Then, as long as a node is ready:
#
# 1. take it out, together with the sum that has arrived for it, and visit it;
# 2. add each gradient that comes back to what its target has so far;
# 3. the target now waits for one less; if that was the last, it is ready.
#
# The order in which ready nodes are taken does not matter, which is pleasant: no sorting is needed.
#
# One trap is laid by `Add`, which hands the *same array* to both of its inputs. Whoever adds to it in place, with `+=`,
# changes a gradient that belongs to somebody else. Make a new array for a sum.
#
# ### Exercise 2.7: `walk`
# Hard, 30 minutes, 5 points.


# %% exercise="autodiff-walk"
def walk(root: Any, grad: np.ndarray, visit: Callable) -> None:
    """Send a gradient from root to everything that it depends on, visiting each node once.

    root     where to begin
    grad     the gradient of its output
    visit    visit(node, grad) does the work at one node, and returns a list of pairs
             (target, gradient). It is called once for each node, with the sum of all gradients that
             the node gets.

    PyTorch: Engine::evaluate_function
    """
    ### BEGIN SOLUTION
    waiting = count_arrivals(root)
    arrived, ready = {root: grad}, [root]
    while ready:
        node = ready.pop()
        for target, g in visit(node, arrived.pop(node)):
            arrived[target] = arrived[target] + g if target in arrived else g
            waiting[target] = left = waiting[target] - 1
            if not left:
                ready.append(target)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Chains are right, diamonds are too small</summary>
#
# What happens to the second gradient that arrives at a node: is it added, does it replace the first, or does it come
# when the node has gone already?
# </details>
# <details><summary>Diamonds are too large, and nodes are visited more than once</summary>
#
# Write down `waiting` for two diamonds before the first step and after each. When exactly may a node be put on the
# list?
# </details>
# <details><summary>One case has wrong numbers: "one array handed to two nodes"</summary>
#
# Which statement of yours writes into an array that it did not make?
# </details>
# <details><summary>I do not know where to begin</summary>
#
# Three lines set the stage: `waiting` from exercise 2.6, `arrived` with the root's gradient in it, `ready` with the
# root in it. Then a loop with a loop inside: the outer one takes nodes, the inner one goes through the pairs of
# `visit`.
# </details>

# %% check="autodiff-walk"
check("autodiff-walk", walk)

# %% [markdown]
# **Look.** Here is your walk, one node at a time, by button or arrow key. The result is at the top and its gradient
# flows down; watch where two arrows meet: that node waits until both gradients are there. Preset *diamond* shows the
# wait and the sum, *reuse* a leaf that gets three gradients, *broadcast bias* your `unbroadcast` at work. *Detached
# branch* is the team's loss: find the edge that carries nothing.

# %% widget="graph-viewer"
graph_viewer(preset="diamond", step=2)

# %% [markdown]
# The work at one node is given. `send` turns the results of a `backward` into pairs: each gradient is summed to the
# shape of its target and takes its dtype. `run_backward` puts `visit` and your `walk` together, behind the method
# `backward`. Leaves are changed at the very end, all together, so that an error on the way leaves every `.grad` as it
# was.


# %% given="visit"
def send(operation: Operation, results: Any, targets: Sequence) -> list[tuple]:
    """The gradients of an operation's inputs, each with the node that it goes to, fitted to what that node takes."""
    results = results if type(results) is tuple else (results,)
    if len(results) != len(targets):
        raise RuntimeError(f"{operation} gave {len(results)} gradients for {len(targets)} inputs: return a tuple")
    pairs = []
    for target, g in zip(targets, results):  # noqa: B905, the lengths are equal
        if target is not None:
            shape, dtype = target.grad_like
            if type(g) is not np.ndarray or g.shape != shape or g.dtype is not dtype:
                g = fit(operation, g, shape, dtype)
            pairs.append((target, g))
    return pairs


def fit(operation: Operation, g: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A gradient as its node takes it: summed where the input was broadcast, in the input's dtype, zeros for None."""
    if g is None:
        return np.zeros(shape, dtype)
    g = np.asarray(g)
    fitted = unbroadcast(g, shape) if g.shape != shape and g.ndim >= len(shape) else g
    if fitted.shape != shape:
        raise RuntimeError(f"{operation}: backward gave a gradient of shape {g.shape} to an input of shape {shape}")
    if fitted.dtype is dtype:
        return fitted
    with np.errstate(over="ignore"):
        return fitted.astype(dtype)


# %% given="backward"
def seed(t: Any, gradient: Any) -> np.ndarray:
    """Where backward begins at t."""
    if t.node is None:
        raise RuntimeError("no gradient can begin here: the tensor requires none and was not made of any that does")
    if gradient is None:
        if t.numel() != 1:
            raise RuntimeError(f"backward from shape {t.shape} needs a gradient of that shape: or take sum() first")
        return np.ones(t.shape, t.dtype)
    if not isinstance(gradient, plain.Strided):
        raise TypeError(f"backward begins with a tensor, and got a {type(gradient).__name__}: wrap it in tensor()")
    if gradient.shape != t.shape:
        raise RuntimeError(f"the gradient has shape {gradient.shape}, and the tensor that it is for {t.shape}")
    return gradient.array.astype(t.dtype)


def run_backward(t: Any, gradient: Any, retain_graph: bool, create_graph: bool, arrive: Any = None) -> None:
    """Walk back from t. Leaves accumulate, unless arrive(node, grad) takes the gradients, and says where to go on."""
    if create_graph:
        raise NotImplementedError("create_graph=True: gradients of gradients are not offered here")
    leaves: list[tuple[Any, np.ndarray]] = []
    modes = state.now[1]

    def visit(node: Any, grad: np.ndarray) -> Sequence[tuple]:
        if arrive is not None:
            grad = arrive(node, grad)
            if grad is None:
                return ()
        elif node.hooks is not None:
            grad = node.hooks.run(grad)
        targets = node.targets
        if not targets:  # no operation is recorded without one
            if isinstance(node, Operation):
                raise RuntimeError("an earlier backward has freed this graph: give it retain_graph=True to walk twice")
            leaves.append((node, grad))
            return ()
        results = modes[-1].ask("backward", node, grad) if modes else node.backward(grad)
        if not retain_graph:
            node.targets = node.kept = ()
        return send(node, results, targets)

    walk(t.node, seed(t, gradient), visit)
    keep(leaves)


def keep(leaves: Sequence[tuple[Any, np.ndarray]]) -> None:
    """Let each leaf add its gradient. One that may be somebody else's too, a view or another leaf's, is copied."""
    taken = set()
    with accumulating:
        for leaf, grad in leaves:
            leaf.accumulate(grad if grad.base is None and id(grad) not in taken else grad.copy())
            taken.add(id(grad))


accumulating = threading.Lock()


# %% [markdown]
# Here is the moment. The gradient of a small model by one walk, and by the slow judge of exercise 2.1:


# %%
def loss_of_weights(w):
    y = tensor(x) @ w
    return (y * y).sum()


x = np.array([[0.5, -1.0], [2.0, 0.3], [-0.7, 1.1]])
w = tensor(np.array([[0.2, -0.4], [0.1, 0.3]]), requires_grad=True)
loss_of_weights(w).backward()
print(w.grad.array)
print(numerical_gradient(lambda array: loss_of_weights(tensor(array)).item(), w.array))

# %% [markdown]
# The viewer takes any tensor of yours too. It leaves `.grad` alone and frees nothing, so look as often as you like:

# %%
graph_viewer(loss_of_weights(w))

# %% [markdown]
# And depth no longer hurts:

# %%
for n in (1_000, 10_000, 100_000):
    x = y = tensor(1.0, requires_grad=True)
    for _ in range(n):
        y = y * 1
    begun = time.perf_counter()
    y.backward()
    each = (time.perf_counter() - begun) / n * 1e6
    print(f"{n:7,} operations: gradient {x.grad.item()}, {each:.1f} microseconds each")

# %% [markdown]
# ## Accumulation
#
# **Idea.** `backward` does not *set* `.grad`, it **adds** to it. Inside one walk there is no choice: a weight that is
# used twice gets the sum of two gradients. Across walks it is a convention, and a good one, since the gradient of a sum
# is the sum of gradients: two losses, walked one after the other, leave the same as their sum walked once. The price is
# that old gradients have to be cleared by hand before each step. A forgotten one does not raise. It makes the
# step of today contain that of yesterday.

# %%
w = tensor([1.0, 2.0], requires_grad=True)
for _ in range(3):
    (w * w).sum().backward()
    print(w.grad.tolist())
w.grad = None
(w * w).sum().backward()
print(w.grad.tolist())

# %% [markdown]
# `w.grad = None` is what `zero_grad` of an optimizer does; setting it to zeros works too, and costs memory and one more
# addition.
#
# The convention earns its keep when a batch does not fit into memory. Split it into parts, and walk back from each part
# before the next one begins: only one part's graph is alive at a time, and `.grad` collects. One question remains.
# The loss of a batch is a mean, so which multiple of each part's mean do you walk back from? With $N$ examples in
# parts of $n_1, n_2, \dots$:
#
# $$\frac1N \sum_{i=1}^{N} \ell_i \;=\; \sum_k \frac{n_k}{N} \cdot \Big(\frac{1}{n_k} \sum_{i \in k} \ell_i\Big)$$
#
# Each part counts by its share of the *examples*. Dividing by the number of parts is the same only if all are equally
# long, and in most epochs the last one is not: its few examples would then weigh more than all others. With padded
# sequences the count is that of tokens, and the lengths differ in every batch.
#
# ### Exercise 2.8: `backward_in_parts`
# Medium, 15 minutes, 3 points.


# %% exercise="autodiff-parts"
def backward_in_parts(loss_of: Callable, parts: Sequence[np.ndarray]) -> float:
    """Leave the gradient of the mean loss over all examples, with one part in memory at a time.

    loss_of  loss_of(part) is the mean loss of one part's examples: a tensor of one element
    parts    arrays of examples, one example a row; they need not be equally long
    returns  the mean loss over all examples, as a Python float

    backward is called once for each part, before the next part's loss is computed.

    PyTorch: no such function; "gradient accumulation" is written out in the training loop
    """
    ### BEGIN SOLUTION
    total = sum(len(part) for part in parts)
    mean = 0.0
    for part in parts:
        loss = loss_of(part) * (len(part) / total)
        loss.backward()
        mean += loss.item()
    return mean
    ### END SOLUTION


# %% [markdown]
# <details><summary>It is right for equal parts and wrong for a short last one</summary>
#
# What is the share of a part with 1 example out of 9: a third of three parts, or a ninth?
# </details>
# <details><summary>The loss is right, the gradient is too large</summary>
#
# On which of the two did you call backward, on the part's own mean or on the weighed one?
# </details>
# <details><summary>"losses alive at once" is too large</summary>
#
# When does your loop call backward: after each loss, or when all of them have been computed?
# </details>

# %% check="autodiff-parts"
check("autodiff-parts", backward_in_parts)

# %% [markdown]
# Nine examples in parts of 4, 4 and 1, beside all nine at once. The difference is rounding:

# %%
examples, w = rand(9, 3), tensor([[0.3], [-0.2], [0.9]], requires_grad=True)


def mean_square(part):
    y = tensor(part) @ w
    return (y * y).sum() * (1 / len(part))


mean_square(examples.array).backward()
at_once, w.grad = w.grad, None
backward_in_parts(mean_square, [examples.array[:4], examples.array[4:8], examples.array[8:]])
print((w.grad - at_once).tolist())

# %% [markdown]
# ## Switching off
#
# **Idea.** Recording costs memory, and sometimes it is wrong. There are two switches.
#
# `t.detach()` cuts *one tensor* off. The result lies on the same storage and has no history: for everything that is
# computed from it, it is data. This is how a target is frozen, and how a loss is logged
# (`losses.append(loss.detach())`; without it, the list holds the graph of every step).
#
# `no_grad()` switches recording off for *a stretch of time*. Nothing in the block is recorded. It is right for
# evaluation, and for the update `w -= 0.1 * w.grad`, which must not become part of the next step's graph.
#
# The switch has to be put back to what it was, not to on: it may have been off before, in a block around this one. It
# has to be put back after an exception too. And a decorated function may call itself, so one and the same object is
# then entered again before it has been left. Each time it has to remember what it found, and the last one entered is
# the first one left.
#
# `ContextDecorator` of the standard library makes decorators of classes that have `__enter__` and `__exit__`.
# Python calls `__exit__` with the exception, or with three None; if it returns something true, the exception is
# swallowed.
#
# ### Exercise 2.9: `Switch`
# Medium, 15 minutes, 3 points.


# %% exercise="autodiff-switch"
class Switch(ContextDecorator):
    """Sets state.enabled for the length of a with block, or of a call of a decorated function."""

    def __init__(self, state: Any, value: bool):
        """state   an object with an attribute `enabled`; it stays as it is until the block begins
        value   what to set it to
        """
        ### BEGIN SOLUTION
        self.state, self.value = state, value
        self.before: list[bool] = []
        ### END SOLUTION

    def __enter__(self) -> None:
        """Remember what state.enabled is, and set it.

        The same object may be entered again before it is left.
        """
        ### BEGIN SOLUTION
        self.before.append(self.state.enabled)
        self.state.enabled = self.value
        ### END SOLUTION

    def __exit__(self, *exception: object) -> None:
        """Make state.enabled what it was at the matching __enter__. An exception goes on."""
        ### BEGIN SOLUTION
        self.state.enabled = self.before.pop()
        ### END SOLUTION


# %% [markdown]
# <details><summary>It is right once, and wrong when blocks lie inside each other</summary>
#
# To which value did you switch back? To True, to the opposite, or to what you had found?
# </details>
# <details><summary>"one object, entered again" fails, or the decorated function</summary>
#
# How many old values must one object be able to remember at the same time? In which order are they wanted?
# </details>
# <details><summary>"changed between making and entering" fails</summary>
#
# At which moment do you look at `state.enabled`? `__init__` may run long before `__enter__`.
# </details>

# %% check="autodiff-switch"
check("autodiff-switch", Switch)


# %% given="switches"
class Recording(Switch):
    """A switch of `state`. It decorates a function with brackets or without: `@no_grad()` or `@no_grad`."""

    def __new__(cls, function: Callable | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __call__(self, function: Callable) -> Callable:
        if isgeneratorfunction(function):
            raise TypeError(f"{function.__name__} is a generator, which goes on later: use a with block inside it")
        return super().__call__(function)

    def _recreate_cm(self) -> Self:
        """What ContextDecorator enters for each call: an object of its own, since threads find different things."""
        return type(self)()


class no_grad(Recording):
    """Nothing is recorded in a `with no_grad():` block, or in a function below `@no_grad()`."""

    def __init__(self) -> None:
        super().__init__(state, False)


class enable_grad(Recording):
    """Operations are recorded again, inside a no_grad."""

    def __init__(self) -> None:
        super().__init__(state, True)


def is_grad_enabled() -> bool:
    """Whether operations are recorded, in this thread."""
    return state.enabled


# %% [markdown]
# The team from the beginning, in ten lines. Run it, then find out which of the two losses is dead *without reading
# `direction_loss`*: one attribute of each loss is enough.


# %%
def position_loss(move):
    return ((move - 1) * (move - 1)).sum()


@no_grad()
def direction_loss(turn):
    return ((turn - 0.4) * (turn - 0.4)).sum()


shared, move, turn = (tensor([value], requires_grad=True) for value in (0.5, 1.0, 2.0))
first, second = position_loss(shared * move), direction_loss(shared * turn)
(first + second).backward()
print("losses", first.item(), second.item())
print("gradients", shared.grad, move.grad, turn.grad)

# %% [markdown]
# `second.requires_grad` is False, and `turn.grad` is None. Those are the two signs, and they cost a line each: after
# the first step of a new training script, look for parameters whose gradient is None.
#
# **A graph is walked once.** When `backward` leaves a node, it lets go of what the node had saved, and so the memory
# shrinks while the walk goes on. A second walk over the same graph raises, and names the way out: `retain_graph=True`
# at the first call. Most of the time the error means something else, that a tensor from the step before has found its
# way into this step, and should have been detached.

# %%
y = (w * w).sum()
y.backward(retain_graph=True)
y.backward()
y.backward()

# %% [markdown]
# ## Changes in place
#
# **Idea.** `y.mul_(2)`, `y += 1`, `y[0] = 5`: all of them write into memory that is there already. Three things can
# be in the way.
#
# *Somebody else looks at the same memory.* Views share storage, so a write through one of them is seen by all. This is
# what the writer wants in `image[mask] = 0`, and seldom wants elsewhere: `clone()` gives a tensor of one's own.
#
# *The tensor is a leaf that wants a gradient.* Its value would then have been made by an operation, and it would be no
# leaf any more. That raises; an update belongs under `no_grad`.
#
# *Backward needs the old numbers.* That is the dangerous one. `Multiply` has not copied what it saved, it holds the
# same array. Here is what happens, with the machine as it stands:

# %%
x = tensor([1.0, 2.0], requires_grad=True)
y = (x * x).sum()
with no_grad():
    x[0] = 10.0
y.backward()
print(x.grad.tolist())

# %% [markdown]
# The value of `y` was computed at `x = [1, 2]`, where its gradient is `[2, 4]`. What came out, `[20, 4]`, is the
# gradient of no function at all: half of it belongs to the old point, half to the new one. Nothing was raised, and the
# shape is right.
#
# Copying everything that is saved would be safe and would double the memory. Instead, each storage counts how often it
# was written to: its *version*. `save` keeps the version beside the array, as a tuple `(array, storage, version)`. When
# backward wants the array, the two numbers are compared. If they are equal, nobody has written, and the array is as
# good as a copy. If not, there is no way to get the old numbers back, and an error is the only honest answer.
#
# Since views share the storage, they share its version. A write through any of them counts.
#
# The cell below puts your `unpack` in the place of the careless one from the beginning of the chapter.
#
# ### Exercise 2.10: `unpack`
# Easy, 10 minutes, 2 points.


# %% exercise="autodiff-unpack"
def unpack(kept: tuple[np.ndarray, Any, int] | None) -> np.ndarray | None:
    """The array of a saved value, provided that nothing was written to its storage since.

    kept     what Operation.save has kept: the array, its storage, and the version then; or None
    returns  the array; None for None
    raises   RuntimeError where the storage's version is another now; let it name both

    PyTorch: SavedVariable::unpack
    """
    ### BEGIN SOLUTION
    if kept is None:
        return None
    array, storage, version = kept
    if storage.version != version:
        now = f"it was saved at version {version}, and its storage is at {storage.version}"
        raise RuntimeError(f"a tensor that backward needs was changed in place: {now}; clone() it")
    return array
    ### END SOLUTION


# %% [markdown]
# <details><summary>It refuses tensors that were written to before they were saved</summary>
#
# Which two numbers do you compare? One of them is the third value in the tuple; neither is 0.
# </details>
# <details><summary>Small versions work and large ones do not</summary>
#
# Two numbers can be equal without being the same object. Which operator asks which?
# </details>

# %% check="autodiff-unpack"
check("autodiff-unpack", unpack)

# %% [markdown]
# The cell from above once more, word for word. It should end in your error now.

# %%
x = tensor([1.0, 2.0], requires_grad=True)
y = (x * x).sum()
with no_grad():
    x[0] = 10.0
y.backward()

# %% [markdown]
# Not every write is a sin. `Add` saves nothing, so its inputs may change. An operation that saves its *output* does
# not mind what happens to its input. And a write can itself be an operation: `y.mul_(3)` is `y * 3`, whose result moves
# into `y`'s memory. So far `write` refuses whatever would have to be recorded in this way; chapter 03 adds it.

# %% [markdown]
# ## Hooks
#
# **Idea.** A loss that is `nan`, a layer that does not learn: to understand such things one has to see gradients where
# they pass, and most of the tensors on the way have no `.grad`. A *hook* is a function that a tensor calls with its
# gradient during backward. It belongs on the way back, and not on the way forward. The team of this chapter had printed
# every forward value there was, and all of them were right.
#
# A hook returns None, and has only watched; or it returns a gradient, which then takes the place of the one it was
# given. Several hooks run in the order in which they were registered, and each sees what those before it have made of
# the gradient. Clipping, scaling and "stop here if it is not finite" are hooks of one line.
#
# ### Exercise 2.11: `run_hooks`
# Easy, 10 minutes, 2 points.


# %% exercise="autodiff-hooks"
def run_hooks(hooks: Sequence[Callable], grad: Any) -> Any:
    """The gradient after all hooks have seen it, in the order in which they were registered.

    hooks    functions of one gradient. One that returns None has only watched; what another returns
             takes the gradient's place, for the next hook and for everything after.
    grad     a tensor
    returns  the gradient that goes on

    PyTorch: what Tensor.register_hook asks for
    """
    ### BEGIN SOLUTION
    for hook in hooks:
        edited = hook(grad)
        if edited is not None:
            grad = edited
    return grad
    ### END SOLUTION


# %% [markdown]
# <details><summary>After a hook that only watches, there is nothing left</summary>
#
# What does a Python function return if it has no `return`? What do you do with that?
# </details>
# <details><summary>One case with a gradient of 0 fails</summary>
#
# `if edited:` and `edited or grad` ask whether a tensor is *true*. Is that your question?
# </details>

# %% check="autodiff-hooks"
check("autodiff-hooks", run_hooks)


# %% given="hooks"
class Hooks:
    """Who waits at one node for its gradient."""

    def __init__(self, like: Tensor):
        self.like = like  # an empty tensor of the class that hooks should be given
        self.functions: dict[object, Callable] = {}
        self.keeper: Callable[[], Tensor | None] | None = None

    def run(self, grad: np.ndarray) -> np.ndarray:
        """The gradient that goes on. Hooks get a copy, since others may hold the same array."""
        after = run_hooks(tuple(self.functions.values()), self.like.new(grad.copy()))
        if not isinstance(after, plain.Strided) or after.shape != grad.shape:
            found = f"{type(after).__name__} of shape {getattr(after, 'shape', ())}"
            raise RuntimeError(f"a hook returned a {found} for a gradient of shape {grad.shape}: return one like it")
        after = after.array.astype(grad.dtype)
        keeper = self.keeper and self.keeper()
        if keeper is not None:
            keeper.accumulate(after.copy())
        return after


class RemovableHandle:
    """What register_hook returns: remove() takes the hook away again."""

    def __init__(self, hooks: dict[object, Callable], hook: Callable):
        self.hooks, self.key = hooks, object()
        hooks[self.key] = hook

    def remove(self) -> None:
        self.hooks.pop(self.key, None)


# %% [markdown]
# Twenty layers that each multiply by 0.6. A hook on each notes the size of the gradient that arrives. `register_hook`
# gives back a handle, and `handle.remove()` takes the hook away again: a forgotten one keeps watching, and keeps what
# it has seen.

# %%
sizes, handles = [], []
h = x = tensor([1.0, -1.0], requires_grad=True)
for _ in range(20):
    h = h * 0.6
    handles.append(h.register_hook(lambda g: sizes.append(float((g * g).sum()) ** 0.5)))
h.sum().backward()
for handle in handles:
    handle.remove()

figure, axes = plt.subplots(figsize=(5.6, 3), layout="constrained")
axes.semilogy(range(20, 0, -1), sizes, "o-", color="#0072b2")
axes.set(xlabel="layer", ylabel="size of its gradient")
plt.show()

# %% [markdown]
# The gradient shrinks from right to left: the first layer hears less than a ten-thousandth of what the last one hears.
# Chapter 04 draws this picture for whole models.
#
# When it is only the number that you want, `h.retain_grad()` before `backward` keeps the gradient of a tensor in
# between in its `.grad`, as if it were a leaf.
#
# ## Trust
#
# **Idea.** You will write backward functions, and you will get some of them wrong. The slow judge from the beginning
# finds that out, and it can be made fast. An operation with $n$ inputs and $m$ outputs has a table of $n \cdot m$
# derivatives, the Jacobian $J$. Nobody wants to see it. Take a random direction $v$ among the inputs and a random
# direction $u$ among the outputs, and look at a single number:
#
# $$u^{\mathsf T} J\, v$$
#
# It can be had from both sides. $Jv$ is how all the outputs move when the inputs move along $v$: two runs of the
# function, whatever $n$ is. $u^{\mathsf T} J$ is what backward computes when it begins with $u$: one walk. If any entry
# of the table is wrong, the two numbers differ, unless the direction happens to be blind to just that error, and a
# random one is not. With $u$ all ones, many an error hides: gradients sent to the wrong element still have the right
# sum.
#
# ### Exercise 2.12: `project`
# Medium, 20 minutes, 4 points.


# %% exercise="autodiff-projection"
def project(
    f: Callable, vjp: Callable, x: np.ndarray, u: np.ndarray, v: np.ndarray, step: float = 6e-6
) -> tuple[float, float]:
    """One number that depends on the whole Jacobian J of f at x, u^T J v, found in two ways.

    f        takes an array of x's shape and returns an array
    vjp      vjp(x, u) is what backward claims: u^T J, an array of x's shape
    x        a float array; it is left as it was
    u        a direction in the space of outputs, in the shape of f(x)
    v        a direction in the space of inputs, in the shape of x
    returns  two floats: the numerical one, by moving x a step along v to either side, and the one
             that uses vjp
    raises   TypeError where x does not hold floats: whole numbers cannot move by a small step

    PyTorch: torch.autograd.gradcheck(..., fast_mode=True)
    """
    ### BEGIN SOLUTION
    if x.dtype.kind != "f":
        raise TypeError(f"x holds {x.dtype} numbers, which cannot move by {step}: give it floats")
    difference = (f(x + step * v) - f(x - step * v)) / (2 * step)
    return float((u * difference).sum()), float((vjp(x, u) * v).sum())
    ### END SOLUTION


# %% [markdown]
# <details><summary>Both numbers always agree, even for a backward that is wrong</summary>
#
# Where does your first number come from? It must not use vjp.
# </details>
# <details><summary>One output works, several do not</summary>
#
# Where does u come in on the numerical side? Every output has a weight of its own before they are added up.
# </details>
# <details><summary>How do I refuse whole numbers?</summary>
#
# `x.dtype.kind` is "f" for floats. Ask before anything is computed: adding a small step would turn x into floats, and
# nobody would notice.
# </details>

# %% check="autodiff-projection"
check("autodiff-projection", project)

# %% [markdown]
# `gradcheck` applies your function to each input of a function of tensors.


# %% given="gradcheck"
class GradcheckError(RuntimeError):
    """A gradient that is not what small steps say."""


def gradcheck(func: Callable, inputs: Any, *, eps: float = 6e-6, atol: float = 1e-6, rtol: float = 1e-5) -> bool:
    """Whether backward agrees with small steps along a random direction, for each input that requires a gradient.

    func    takes the inputs and returns a tensor
    inputs  a tensor or a sequence of tensors, of float64: float32 has too few digits for a small step
    raises  TypeError for inputs that do not hold float64, ValueError where none requires a gradient, and
            GradcheckError, which says how they differ
    """
    inputs = [inputs] if isinstance(inputs, plain.Strided) else list(inputs)
    places = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    if not places:
        kinds = ", ".join([str(t.dtype) for t in inputs if isinstance(t, plain.Strided)])
        raise ValueError(f"gradcheck has nothing to check: none of the inputs ({kinds}) requires a gradient")
    for i in places:
        if inputs[i].dtype != plain.float64:
            raise TypeError(f"gradcheck needs float64 and input {i} holds {inputs[i].dtype}: use double()")
        f, vjp = as_functions(func, inputs, i)
        x, rng = inputs[i].array, np.random.default_rng(i)
        u, v = rng.standard_normal(f(x).shape), rng.standard_normal(x.shape)
        numerical, analytic = project(f, vjp, x, u, v, eps)
        if not np.isclose(analytic, numerical, rtol, atol):
            raise GradcheckError(f"input {i}: along a random direction {analytic:.9g}, by small steps {numerical:.9g}")
    return True


def as_functions(func: Callable, inputs: list, i: int) -> tuple[Callable, Callable]:
    """func of input i alone, all others fixed, and what backward claims of it: f and vjp for exercise 2.12."""

    def f(x: np.ndarray) -> np.ndarray:
        with no_grad():
            out = func(*inputs[:i], inputs[i].new(x), *inputs[i + 1 :])
        if not isinstance(out, Tensor):
            raise TypeError(f"gradcheck wants a function that returns a tensor: it returned a {type(out).__name__}")
        return out.array

    def vjp(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        leaves = [t.detach().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t for t in inputs]
        leaf = leaves[i] = inputs[i].new(x.copy()).requires_grad_()
        func(*leaves).backward(leaf.new(u))
        return np.zeros_like(x) if leaf.grad is None else leaf.grad.array

    return f, vjp


# %% [markdown]
# Here is an operation with an error that no shape gives away. The derivative of $\tanh$ is $1 - \tanh^2$, and somebody
# was in a hurry:


# %%
class Tanh(Operation, of=plain.tanh):
    def forward(self, t):
        out = plain.tanh(t)
        self.save(out)
        return out

    def backward(self, grad):
        (out,) = self.saved
        return grad * (1 - out)


gradcheck(Tensor.tanh, tensor(np.linspace(-2, 2, 5), requires_grad=True))

# %% [markdown]
# Mend it and run the cell again: `True` is the answer you want. Then give it
# `tensor(np.linspace(-2, 2, 5)).float().requires_grad_()`, and see what it says about float32.
#
# ## In PyTorch
#
# Names and behaviour are the same, and the machine is close to the one you have built: nodes that point backwards, a
# count of dependencies for each, a list of nodes that are ready, versions on storages.
#
# | | here | PyTorch |
# |---|---|---|
# | a node | `Multiply` | `MulBackward0` |
# | where gradients go | `grad_fn.targets` | `grad_fn.next_functions` |
# | a leaf in the graph | the tensor | an `AccumulateGrad` node |
# | summing a broadcast | the machine, with `unbroadcast` | the engine, with `sum_to_size` |
# | gradients of gradients | an error | `create_graph=True` |
# | a second walk without `retain_graph` | an error | an error if anything was saved on the way |
# | your own operation | `Operation`, and `Function` from chapter 03 on | `Function`, any number of outputs |
# | an operation without backward | an error when it is used | an error when it is used |
#
# PyTorch adds threads: one for each GPU, so that the walk runs on several devices at once. It adds gradients of
# gradients, by making every backward out of operations that are recorded in turn. And `torch.compile` records the whole
# walk ahead of time.
#
# ## Check yourself
#
# Write two or three sentences each; there is nothing to run.
#
# 1. A colleague divides the loss by the number of micro-batches and says that accumulation now equals the large batch.
#    Name two situations in which it does not, and say what should be done in each.
# 2. A training script runs out of memory after 300 steps, always at the same one. `total += loss` stands in the loop,
#    for the log. What is alive at step 300, and which word is missing?
#
# You can now
#
# - ✓ measure a derivative by small steps, and say how far such a measurement can be trusted;
# - ✓ write an operation with its backward, for sums, products, broadcasts and matrix products;
# - ✓ walk a graph of a hundred thousand operations backwards, visiting each of them once;
# - ✓ say what is added to `.grad`, when, and what one large batch has in common with many small ones;
# - ✓ find the branch of a loss that has lost its gradient, and the in-place change that has spoilt one;
# - ✓ watch gradients on their way, and check a backward that you do not trust.
#
# Chapter 03 fills the machine with operations, one family after the other, and has you derive the ones that people get
# wrong.
