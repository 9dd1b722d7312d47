# %% [markdown]
# # 06 Optimizers
#
# ## Why
#
# Four machines trained one model. Each computed the gradients of its own quarter of a batch, the four were averaged,
# and then all four took the same step. In a tidy-up, one line moved: `optimizer.step()` now stood above the averaging.
# Each machine stepped along a gradient of its own. A safety net hid it: every hundred steps the weights were copied
# from machine 0 to the others, so whoever compared weights found them equal. Nobody compared what an optimizer keeps
# *beside* the weights. Each machine carried its own momentum and its own scale for every parameter, four different
# memories of one training. It showed weeks later: the run was resumed from a checkpoint, which held the memory of
# machine 0, and the loss jumped to where it had been days before.
#
# An optimizer is more than its formula. It is a formula, a memory, and a place in the order of things. After this
# chapter you can
#
# - write SGD with momentum, Adam, AdamW and RMSprop from memory, and say what each keeps;
# - tell weight decay from L2 regularisation, and say when the decay happens;
# - give parts of a model settings of their own;
# - save an optimizer and load it back, so that no later step is different by a bit;
# - put accumulation, clipping and the step into the right order.
#
# Allow about three hours; each section is a good place to stop. At the end your layers, your loss and your optimizer
# learn to read handwritten digits.

# %%
import json
from pathlib import Path

import matplotlib.pyplot as plt

import gradwright
from autograder import check
from gradwright import nn
from gradwright.nn import functional as F
from gradwright.widgets import optimizer_paths

gradwright.chapter(6)

# %% given="imports"
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from gradwright.chapters import tensor as plain
from gradwright.chapters.autodiff import enable_grad
from gradwright.chapters.losses import clip_grad_norm_
from gradwright.chapters.operations import Tensor

# %% [markdown]
# ## Downhill with momentum
#
# **Idea.** *Stochastic gradient descent* moves every parameter against its gradient: $p \leftarrow p - \eta\, g$, with
# the *learning rate* $\eta$. In a valley that is steep across and flat along, one rate cannot suit both: what is right
# for the flat direction overshoots in the steep one, back and forth.
#
# *Momentum* remembers. A buffer $b$ sums the gradients up while old ones fade, and the step goes along the buffer:
#
# $$b \leftarrow \mu\, b + (1 - \delta)\, g \qquad\qquad p \leftarrow p - \eta\, b$$
#
# Across the valley the gradients change sign and cancel in the sum; along it they add up, to $1/(1-\mu)$ times a single
# one. With $\mu = 0.9$ that is a tenfold step where the road is straight. The *dampening* $\delta$ is nearly always 0.

# %% figure="valley"
"""Contours of a valley, long from left to right. Plain descent, in orange, jumps from wall to wall and has covered two
thirds of the way to the minimum after 25 steps. With momentum, in blue, the jumps die away and the path has arrived at
the minimum in the same number of steps."""


def path(momentum, rate):
    p, b, places = np.array([-9.0, 1.2]), np.zeros(2), []
    for _ in range(26):
        places.append(p.copy())
        b = momentum * b + np.array([0.05, 2.0]) * p
        p = p - rate * b
    return np.array(places).T


figure, axes = plt.subplots(figsize=(7, 2.6))
x, y = np.meshgrid(np.linspace(-10, 3, 200), np.linspace(-1.7, 1.7, 100))
axes.contour(x, y, 0.025 * x**2 + y**2, levels=[0.03, 0.2, 0.6, 1.3, 2.2, 3.5], colors="#b0b0b0", linewidths=0.8)
axes.plot(*path(0.0, 0.92), "o-", color="#d55e00", markersize=3, linewidth=1.2, label="plain, rate 0.92")
axes.plot(*path(0.6, 1.0), "s-", color="#0072b2", markersize=3, linewidth=1.2, label="momentum 0.6, rate 1")
axes.plot(0, 0, "k*", markersize=10)
axes.grid(False)
axes.set(xlim=(-10, 3), ylim=(-1.7, 1.7))
axes.legend(fontsize=8, loc="lower right")

# %% [markdown]
# Two details decide whether your numbers are PyTorch's.
#
# - At the **first** step there is nothing to remember: the buffer becomes $g$ itself, *without* dampening.
# - *Nesterov's* variant looks one step ahead: it moves along $g + \mu\, b$, with the buffer just updated.
#
# Follow it once by hand, with $\mu = 0.5$, $\eta = 0.1$ and the gradients 4, 2: the buffer is 4, then $0.5 \cdot 4 + 2
# = 4$; the steps are $-0.4$ and $-0.4$. Nesterov steps along $4 + 2 = 6$, then along $2 + 2 = 4$.
#
# The functions of this chapter change arrays **in place**: `p -= ...`, `buffer *= ...`, `buffer[...] = g`. A new array
# under an old name, `p = p - ...`, changes nothing for the model, which holds the old one.
#
# ### Exercise 6.1: `sgd_step`
# Medium, 20 minutes, 3 points.


# %% exercise="optimizers-sgd"
def sgd_step(
    p: np.ndarray,
    g: np.ndarray,
    buffer: np.ndarray | None,
    lr: float,
    momentum: float = 0.0,
    dampening: float = 0.0,
    nesterov: bool = False,
    first: bool = False,
) -> None:
    """One step of stochastic gradient descent, in place.

    p       the parameter, changed in place
    g       its gradient, of the same shape, left as it is
    buffer  the momentum buffer, of the same shape, changed in place; None where momentum is 0
    first   whether this is the first step, so that the buffer holds nothing yet

    >>> p, buffer = np.array([1.0]), np.array([4.0])
    >>> sgd_step(p, np.array([2.0]), buffer, lr=0.1, momentum=0.5)
    >>> p, buffer
    (array([0.6]), array([4.]))

    PyTorch: torch.optim.SGD
    """
    ### BEGIN SOLUTION
    if buffer is None:
        p -= lr * g
        return
    if first:
        buffer[...] = g
    else:
        buffer *= momentum
        buffer += (1 - dampening) * g
    p -= lr * (g + momentum * buffer if nesterov else buffer)
    ### END SOLUTION


# %% [markdown]
# <details><summary>The parameter does not move</summary>
#
# Does your code contain `p =` or `buffer =`? That gives a new array an old name. Which operators change the array that
# is there?
# </details>
# <details><summary>Only the cases with dampening are wrong</summary>
#
# What is the buffer after the very first step? Read the two details above once more.
# </details>
# <details><summary>Later steps are wrong though the first is right</summary>
#
# After `buffer[...] = g`, is the buffer an array of its own, or did you keep the gradient's? And in Nesterov's variant:
# is it the old or the new buffer that enters?
# </details>

# %% check="optimizers-sgd"
check("optimizers-sgd", sgd_step)

# %% [markdown]
# ## A rate for every parameter
#
# **Idea.** The gradients of one model differ by factors of thousands from layer to layer, and one learning rate meets
# them all. *RMSprop* divides each gradient by its own usual size, which it tracks as a fading mean of squares:
#
# $$v \leftarrow \alpha\, v + (1 - \alpha)\, g^2 \qquad\qquad p \leftarrow p - \eta\, \frac{g}{\sqrt{v} + \epsilon}$$
#
# What is left is a step of about $\eta$, whatever the size of the gradient: the sign counts, and how steady it is. The
# small $\epsilon$ keeps a parameter whose gradient is always 0 from dividing by 0. It is added *after* the root.
#
# Two options. *Centered* subtracts the square of the mean gradient under the root, so that the denominator is a
# standard deviation: $a \leftarrow \alpha\, a + (1 - \alpha)\, g$, and $\sqrt{v - a^2} + \epsilon$ below. With
# *momentum* the quotient is not used at once but summed up: $b \leftarrow \mu\, b + g / (\dots)$ and $p \leftarrow p -
# \eta\, b$. All memories begin at 0.
#
# ### Exercise 6.2: `rmsprop_step`
# Medium, 20 minutes, 4 points.


# %% exercise="optimizers-rmsprop"
def rmsprop_step(
    p: np.ndarray,
    g: np.ndarray,
    v: np.ndarray,
    mean: np.ndarray | None,
    buffer: np.ndarray | None,
    lr: float,
    alpha: float = 0.99,
    eps: float = 1e-8,
    momentum: float = 0.0,
) -> None:
    """One step of RMSprop, in place.

    p, g    the parameter and its gradient; g is left as it is
    v       the fading mean of squares, changed in place
    mean    the fading mean of gradients, changed in place; None for the variant that is not
            centered
    buffer  what momentum sums up, changed in place; None where momentum is 0

    >>> p, v = np.array([1.0]), np.array([0.0])
    >>> rmsprop_step(p, np.array([2.0]), v, None, None, lr=0.1, alpha=0.75)
    >>> p, v
    (array([0.8]), array([1.]))

    PyTorch: torch.optim.RMSprop
    """
    ### BEGIN SOLUTION
    v *= alpha
    v += (1 - alpha) * (g * g)
    spread = v
    if mean is not None:
        mean *= alpha
        mean += (1 - alpha) * g
        spread = v - mean * mean
    step = g / (np.sqrt(spread) + eps)
    if buffer is not None:
        buffer *= momentum
        buffer += step
        step = buffer
    p -= lr * step
    ### END SOLUTION


# %% [markdown]
# <details><summary>It is right for one step and drifts off over several</summary>
#
# Which memory is not what it should be after a step? Print v, mean and buffer, and compare them with the formulas one
# by one. Was one of them bound to a new array?
# </details>
# <details><summary>Only small gradients are off</summary>
#
# Where does eps stand: under the root or beside it?
# </details>

# %% check="optimizers-rmsprop"
check("optimizers-rmsprop", rmsprop_step)

# %% [markdown]
# ## Adam, and the zero it began with
#
# **Idea.** *Adam* has both: a fading mean $m$ of the gradient and one, $v$, of its square. It divides the first by the
# root of the second.
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2$$
#
# Both begin at 0, and a fading mean that begins at 0 is too small for a while. After the first step, $m = 0.1\, g$ and
# $v = 0.001\, g^2$ for the usual $\beta = (0.9, 0.999)$. Their quotient, $0.1\, g / \sqrt{0.001\, g^2}$, is 3.2 and not
# 1: the very first steps, along the noisiest gradients of the whole training, would be three times too long. The
# *correction* divides each mean by the share that it has seen so far, where $t$ is the number of this step, from 1 on:
#
# $$\hat m = \frac{m}{1 - \beta_1^t} \qquad \hat v = \frac{v}{1 - \beta_2^t} \qquad
# p \leftarrow p - \eta\, \frac{\hat m}{\sqrt{\hat v} + \epsilon}$$
#
# With $p = 1$, $g = 0.5$ and $\eta = 0.1$ the first step ends at 0.9, whatever $g$ is. Without the correction it ends
# at 0.684.

# %% figure="bias"
"""Length of Adam's step, in learning rates, against the number of the step, for a gradient that never changes. With the
correction it is 1 from the first step on. Without it, it begins at 3.2, rises to 6.6 at step 12, and is still above 2
after 250 steps."""
figure, axes = plt.subplots(figsize=(7, 2.6))
t = np.arange(1, 301)
axes.plot(t, (1 - 0.9**t) / np.sqrt(1 - 0.999**t), "--", color="#d55e00", label="without the correction")
axes.plot(t, np.ones(300), color="#0072b2", label="with it")
axes.set(xlabel="step", ylabel="learning rates", ylim=(0, 7.5))
axes.legend(fontsize=9)

# %% [markdown]
# What may look like a detail decides over the first hundreds of steps, and is the reason why a run without it needs
# a longer warm-up.
#
# ### Exercise 6.3: `adam_step`
# Medium, 20 minutes, 4 points.


# %% exercise="optimizers-adam"
def adam_step(
    p: np.ndarray,
    g: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    step: int,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> None:
    """One step of Adam, in place.

    p, g  the parameter and its gradient; g is left as it is
    m, v  the fading means of the gradient and of its square, changed in place: they stay
          uncorrected
    step  the number of this step, 1 for the first

    >>> p, m, v = np.array([1.0]), np.array([0.0]), np.array([0.0])
    >>> adam_step(p, np.array([0.5]), m, v, step=1, lr=0.1)
    >>> p.round(6)
    array([0.9])

    PyTorch: torch.optim.Adam
    """
    ### BEGIN SOLUTION
    beta1, beta2 = betas
    root = math.sqrt(1 - beta2**step)
    part = np.empty_like(g)  # one array for all that is calculated on the way: fresh memory is slow
    np.multiply(g, 1 - beta1, out=part)
    m *= beta1
    m += part
    np.multiply(g, g, out=part)
    part *= 1 - beta2
    v *= beta2
    v += part
    np.sqrt(v, out=part)
    part += eps * root  # numerator and denominator times root, which saves a walk over all of v
    np.divide(m, part, out=part)
    part *= lr * root / (1 - beta1**step)
    p -= part
    ### END SOLUTION


# %% [markdown]
# <details><summary>The first step is right, the second is not</summary>
#
# What is in `m` and `v` afterwards: the means, or the corrected means? The correction is for this step's use alone.
# </details>
# <details><summary>It fails with a warning about a division by zero</summary>
#
# For which number of the step is $1 - \beta^t$ zero? The first step is number 1, and it is handed to you.
# </details>

# %% check="optimizers-adam"
check("optimizers-adam", adam_step)

# %% [markdown]
# ## Two kinds of decay
#
# **Idea.** Large weights are usually memory of single examples, so training pulls every weight towards 0 a little.
# There are two ways to write that down.
#
# - *L2 regularisation* adds $\frac{\lambda}{2} \lVert p \rVert^2$ to the loss, so its gradient $\lambda p$ is added to
#   $g$.
# - *Decoupled weight decay* leaves the gradient alone and shrinks the weight itself: $p \leftarrow p - \eta \lambda\,
#   p$.
#
# For plain SGD they are the same thing. For Adam they are not: what is added to $g$ gets divided by the usual size of
# $g$ with all the rest. Weights with large gradients are then hardly decayed, weights with small ones strongly, and on
# the first step $\lambda$ does nothing at all. *AdamW* is Adam with the second kind, and trains nearly every large
# model of today.
#
# The **order** counts: the weight is shrunk *before* the step is taken. From $p = 1$, $g = 0.5$, $\eta = \lambda =
# 0.1$: $1 \to 0.99 \to 0.89$. Shrunk afterwards it would be 0.891; with L2 it is 0.9.
#
# ### Exercise 6.4: `adamw_step`
# Easy, 10 minutes, 3 points.


# %% exercise="optimizers-adamw"
def adamw_step(
    p: np.ndarray,
    g: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    step: int,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> None:
    """One step of AdamW, in place: the weight is shrunk, and then Adam's step is taken with the
    gradient as it is.

    The arguments are those of adam_step, with the decay behind them.

    >>> p, m, v = np.array([1.0]), np.array([0.0]), np.array([0.0])
    >>> adamw_step(p, np.array([0.5]), m, v, step=1, lr=0.1, weight_decay=0.1)
    >>> p.round(6)
    array([0.89])

    PyTorch: torch.optim.AdamW
    """
    ### BEGIN SOLUTION
    p *= 1 - lr * weight_decay
    adam_step(p, g, m, v, step, lr, betas, eps)
    ### END SOLUTION


# %% [markdown]
# <details><summary>I get 0.9, or 0.99</summary>
#
# 0.9 has no decay in it, or one that Adam's division has swallowed: where did you add it? 0.99 has nothing else.
# </details>
# <details><summary>I get 0.891</summary>
#
# Which of the two has happened first?
# </details>

# %% check="optimizers-adamw"
check("optimizers-adamw", adamw_step)

# %% [markdown]
# **Look.** Press *Play* on each surface, and see who crosses the valley first, who is last to leave the saddle, and how
# far RMSprop jumps in its very first step: why tenfold the rate, and why does Adam not?

# %% widget="optimizer-paths"
optimizer_paths(preset="valley")

# %% [markdown]
# ## Groups, and who moves
#
# **Idea.** An optimizer holds its parameters in *groups*. Each group is a dictionary: `"params"`, a list, and the
# settings that hold for them. Biases and the weights of norms, for instance, are usually spared the decay:
#
# ```python
# AdamW([{"params": weights}, {"params": biases, "weight_decay": 0.0}], lr=1e-3)
# ```
#
# What a group does not say comes from the optimizer's defaults. A scheduler later changes `group["lr"]`, and the next
# step obeys: the group's dictionary is the one place where a setting lives.
#
# Two mistakes are worth an error. The same parameter in two groups would be moved twice a step. And a tensor that was
# calculated, not a leaf, has no gradient of its own to be moved by.
#
# ### Exercise 6.5: `complete_group`
# Easy, 15 minutes, 3 points.


# %% exercise="optimizers-group"
def complete_group(
    group: dict[str, Any],
    defaults: dict[str, Any],
    others: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """A group with all that was left out, ready to be added to an optimizer.

    group     "params": one tensor, or many in any order and kind of collection, a generator too;
              and some settings
    defaults  every setting that a group has, with its value where the group does not say
    others    the groups that the optimizer has already, each with a list "params"
    returns   a new dictionary, in which "params" is a list; `group` itself stays as it is
    raises    TypeError for a parameter that is no tensor
              ValueError for one that is no leaf (`.is_leaf`), or is in another group or twice in
              this one, and for a setting that is not among the defaults; let it name what is
              wrong

    PyTorch: Optimizer.add_param_group
    """
    ### BEGIN SOLUTION
    params = group["params"]
    params = [params] if isinstance(params, plain.Strided) else list(params)
    taken = {id(p) for other in others for p in other["params"]}
    for p in params:
        if not isinstance(p, plain.Strided):
            kind = type(p).__name__
            raise TypeError(f"an optimizer moves tensors, and among its parameters is a {kind}")
        this = f"the parameter of shape {p.shape}"
        if not p.is_leaf:
            raise ValueError(f"{this} is not a leaf: hand over what it was made from")
        if id(p) in taken:
            raise ValueError(f"{this} is there twice, and would be moved twice a step")
        taken.add(id(p))
    unknown = sorted(group.keys() - defaults.keys() - {"params"})
    if unknown:
        raise ValueError(f"no setting is called {unknown[0]!r}: there are {', '.join(defaults)}")
    return {**defaults, **group, "params": params}
    ### END SOLUTION


# %% [markdown]
# <details><summary>The same parameter is accepted twice</summary>
#
# How do you compare? `p in list` asks with `==`, which for tensors works element by element. Two different tensors may
# hold equal numbers; `id(p)` or `is` tells them apart.
# </details>
# <details><summary>A generator comes out empty</summary>
#
# How often have you walked over it? Make it a list first.
# </details>
# <details><summary>The group's own setting is lost</summary>
#
# Two dictionaries are laid over each other. Which one has to win, and so comes last?
# </details>

# %% check="optimizers-group"
check("optimizers-group", complete_group)

# %% [markdown]
# Now the step itself. It is a loop over groups and parameters, and three things can go wrong in it without an error.
#
# - A parameter whose `.grad` is **None** took no part in this loss. It is passed over: no step, no decay, and its
#   memory does not age. That is not the same as a gradient of 0, for which momentum carries on and decay goes on. It is
#   the reason why `zero_grad` sets to `None`.
# - With `maximize` the gradient enters with its sign turned.
# - The memory of a parameter belongs to that parameter: one dictionary each, empty until its first step.
#
# ### Exercise 6.6: `step_all`
# Medium, 15 minutes, 3 points.


# %% exercise="optimizers-step"
def step_all(
    param_groups: Sequence[dict[str, Any]],
    state: dict[Tensor, dict[str, Any]],
    update: Callable[[Tensor, np.ndarray, dict, dict], None],
) -> None:
    """Call `update` for every parameter that has a gradient.

    param_groups  dictionaries with a list "params" of tensors, "maximize", and more
    state         a dictionary by parameter, where each has a dictionary of its own: its memory.
                  A parameter that moves for the first time may be missing here, and gets an
                  empty one.
    update        update(p, g, memory, group): the parameter, its gradient as an array, its
                  memory, its group

    Neither a gradient nor its memory is changed here; a parameter without a gradient is passed
    over.

    PyTorch: Optimizer.step
    """
    ### BEGIN SOLUTION
    for group in param_groups:
        for p in group["params"]:
            if p.grad is None:
                continue
            g = p.grad.array
            update(p, -g if group["maximize"] else g, state.setdefault(p, {}), group)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Parameters without a gradient make it fail, or move</summary>
#
# What is `.grad` there? Ask for it with `is None`, and go on to the next.
# </details>
# <details><summary>The second step begins from nothing</summary>
#
# Is the dictionary that you hand to update the one in `state`, or a new one that nobody keeps? `setdefault` looks up
# and, if there is nothing, puts in.
# </details>

# %% check="optimizers-step"
check("optimizers-step", step_all)

# %% [markdown]
# ## What an optimizer remembers
#
# **Idea.** To resume a training where it stopped, the weights are not enough. Adam's two means and its step count are
# twice the size of the model, and without them the resumed run takes its first steps like a new one, with old weights:
# the jump in the curve of our story.
#
# The memory is kept by *parameter*, and a parameter of the next process is another object. So on the way out each is
# given a number, in the order of the groups: 0, 1, 2, ..., counted on from group to group.
#
# ```python
# {"state": {0: {"step": 7, "exp_avg": ..., "exp_avg_sq": ...}, 1: {...}},
#  "param_groups": [{"lr": 0.001, ..., "params": [0, 1]}]}
# ```
#
# ### Exercise 6.7: `pack_state`
# Medium, 15 minutes, 3 points.


# %% exercise="optimizers-pack"
def pack_state(
    param_groups: Sequence[dict[str, Any]],
    state: dict[Tensor, dict[str, Any]],
) -> dict[str, Any]:
    """Groups and memories without a parameter in them, to be saved.

    param_groups  dictionaries with a list "params" of tensors, and settings
    state         the memory of each parameter that has moved so far; others are missing
    returns       "state": a dictionary from a parameter's number to its memory, for those that
                  have one
                  "param_groups": a list of new dictionaries, with the settings, and numbers in
                  "params"

    The tensors in the memories are handed over as they are; neither argument is changed.

    PyTorch: Optimizer.state_dict
    """
    ### BEGIN SOLUTION
    params = [p for group in param_groups for p in group["params"]]
    number = {id(p): i for i, p in enumerate(params)}
    numbers = [[number[id(p)] for p in group["params"]] for group in param_groups]
    pairs = zip(param_groups, numbers, strict=True)
    return {
        "state": {number[id(p)]: memory for p, memory in state.items() if id(p) in number},
        "param_groups": [{**group, "params": own} for group, own in pairs],
    }
    ### END SOLUTION


# %% [markdown]
# <details><summary>The numbers begin at 0 in every group</summary>
#
# One count runs through all groups. Make one long list of all parameters first.
# </details>
# <details><summary>The optimizer is broken afterwards</summary>
#
# Whose "params" did you replace by numbers? Make a new dictionary for each group: `{**group, "params": ...}`.
# </details>

# %% check="optimizers-pack"
check("optimizers-pack", pack_state)

# %% [markdown]
# And back in. The new process has built its model and its optimizer anew, with parameters of its own; what was saved
# brings settings and memories. Two things make the difference between "loads" and "is the same as before":
#
# - **Copies.** A memory that shares its arrays with the dictionary it came from is changed by the next step in both
#   places. Load one checkpoint into two optimizers, and they write into each other.
# - **Fit.** Groups that differ in number or size mean that this is another model. Nothing must be loaded then.
#
# ### Exercise 6.8: `unpack_state`
# Medium, 20 minutes, 4 points.


# %% exercise="optimizers-unpack"
def unpack_state(
    saved: dict[str, Any], param_groups: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[Tensor, dict[str, Any]]]:
    """Groups and memories for the parameters that are here, from what pack_state has made
    elsewhere.

    saved         what pack_state returns; it stays as it is
    param_groups  the groups that are here, with their parameters and with settings that are to
                  be replaced
    returns       new groups: the saved settings, with the parameters that are here, in their order
                  the memories, by parameter; every tensor in them is a copy (`clone()`)
    raises        ValueError where the number of groups, or of parameters in one, is not the
                  saved one

    PyTorch: Optimizer.load_state_dict
    """
    ### BEGIN SOLUTION
    sizes = [len(group["params"]) for group in param_groups]
    saved_sizes = [len(group["params"]) for group in saved["param_groups"]]
    if sizes != saved_sizes:
        theirs = f"the saved groups have {saved_sizes} parameters"
        raise ValueError(f"{theirs}, and this optimizer has {sizes}")
    groups, params = [], {}
    for old, here in zip(saved["param_groups"], param_groups, strict=True):
        groups.append({**old, "params": list(here["params"])})
        params.update(zip(old["params"], here["params"], strict=True))
    return groups, {params[number]: copied(memory) for number, memory in saved["state"].items()}
    ### END SOLUTION


# %% given="copied"
def copied(memory: dict[str, Any]) -> dict[str, Any]:
    """A memory with tensors of its own. What is no tensor is a number or None, and cannot be shared."""
    return {name: value.clone() if isinstance(value, plain.Strided) else value for name, value in memory.items()}


# %% [markdown]
# <details><summary>Memories end up at the wrong parameter, in the second group</summary>
#
# The numbers run through all groups. Which list do they count in?
# </details>
# <details><summary>A step changes what was saved</summary>
#
# `dict(memory)` copies the dictionary and not the tensors in it. Each tensor has a `clone()`.
# </details>

# %% check="optimizers-unpack"
check("optimizers-unpack", unpack_state)

# %% [markdown]
# ## The machine
#
# All parts are there; what puts them together is given. `Optimizer` knows groups, memories and the way in and out. Each
# kind of optimizer says which settings it has, which memory a parameter needs, and which of your functions is its rule.
#
# One thing in it is worth a look. A rule like `adam_step` walks a dozen times over arrays of the size of a layer, and a
# large array leaves the processor's cache between two walks. Since every rule works element by element, the machine
# hands it *pieces* of 65,536 numbers, which stay in the cache for all of the dozen. On a layer of 2048 × 2048 that
# saves a third of the time, and the rules stay as readable as you wrote them.


# %% given="optimizer"
PIECE = 65_536


def pieces(arrays: Sequence[np.ndarray | None]) -> list[Sequence[np.ndarray | None]]:
    """The same arrays in short flat parts, all from the same place: a rule's temporaries then stay in the cache."""
    size = arrays[0].size
    if size <= PIECE or not all(a is None or a.flags.c_contiguous for a in arrays):
        return [arrays]
    flat = [None if a is None else a.reshape(-1) for a in arrays]
    starts = range(0, size, PIECE)
    return [[None if a is None else a[start : start + PIECE] for a in flat] for start in starts]


class Optimizer:
    """Moves parameters along their gradients. A subclass has `memories` and a `rule`."""

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]):
        """params    tensors, or dictionaries with "params" and settings: groups
        defaults  every setting, with its value for groups that do not say
        """
        if isinstance(params, plain.Strided) or not isinstance(params, Iterable):
            got = "one tensor: put it in a list" if isinstance(params, plain.Strided) else type(params).__name__
            raise TypeError(f"an optimizer takes tensors or groups, such as model.parameters(), and got {got}")
        for name, value in defaults.items():
            refuse_setting(name, value)
        self.defaults, self.param_groups = {**defaults, "maximize": defaults.get("maximize", False)}, []
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        given = list(params)
        if not given:
            raise ValueError("an optimizer without parameters moves nothing: is the list, or the generator, used up?")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """One more group; what it does not say comes from the defaults."""
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise TypeError(f'a group is a dictionary with "params", its tensors, and this is {param_group!r}')
        group = complete_group(param_group, self.defaults, self.param_groups)
        self.refuse_group(group)
        self.param_groups.append(group)

    def refuse_group(self, group: dict[str, Any]) -> None:
        """Raise for settings that cannot be."""
        for name, value in group.items():
            refuse_setting(name, value)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients; with set_to_none=False make them 0, in place."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step for every parameter that has a gradient. A closure computes loss and gradients first; its loss is
        returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        step_all(self.param_groups, self.state, self.update)
        return loss

    def update(self, p: Tensor, g: np.ndarray, memory: dict[str, Any], group: dict[str, Any]) -> None:
        """Move one parameter: its rule, piece by piece, on the arrays themselves."""
        names = self.memories(group)
        for name in names:
            if name and name not in memory:  # at the first step, or when a schedule has brought momentum in
                memory[name] = p.new(np.zeros(p.shape, p.dtype))
        memory["step"] = memory.get("step", 0) + 1
        arrays = [p.array, g]
        for name in names:
            arrays.append(memory[name].array if name else None)
            if name:
                memory[name].storage.version += 1
        p.storage.version += 1  # a graph that has saved it must notice
        for values, slope, *kept in pieces(arrays):
            self.rule(values, slope, kept, memory["step"], group)

    def memories(self, group: dict[str, Any]) -> Sequence[str | None]:
        """What a parameter's memory is made of beside its step count; None in place of one that is not kept."""
        raise NotImplementedError(f"{type(self).__name__} has no memories(): say what it keeps for each parameter")

    def rule(self, p: np.ndarray, g: np.ndarray, kept: list, step: int, group: dict[str, Any]) -> None:
        """Move p in place, and what is kept with it."""
        raise NotImplementedError(f"{type(self).__name__} has no rule(): say how it moves a parameter")

    def state_dict(self) -> dict[str, Any]:
        """Settings and memories, by number; the tensors are the optimizer's own, so copy them before the next step."""
        return pack_state(self.param_groups, self.state)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over settings and memories that another optimizer has given. All of it is copied.

        raises  ValueError where they are those of another kind of optimizer or another model; then nothing is loaded
        """
        if not isinstance(state_dict, dict) or not {"state", "param_groups"} <= state_dict.keys():
            raise ValueError('a state has "state" and "param_groups": hand over what state_dict() of an optimizer gave')
        groups, state = unpack_state(state_dict, self.param_groups)
        state = {p: fitted(memory, p) for p, memory in state.items()}
        for group in groups:
            kept = [name for name in self.memories({**self.defaults, **group}) if name]
            wanted = {*self.defaults, *kept} if any(p in state for p in group["params"]) else {*self.defaults}
            missing = wanted - group.keys() - {name for p in group["params"] for name in state.get(p, ())}
            if missing:
                raise ValueError(f"{min(missing)} is missing: is this the state of another kind of optimizer?")
        self.param_groups, self.state = groups, defaultdict(dict, state)

    def __repr__(self) -> str:
        lines = [
            f"  group {i}: {len(group['params'])} parameters, "
            + ", ".join(f"{name}={value}" for name, value in group.items() if name != "params")
            for i, group in enumerate(self.param_groups)
        ]
        return "\n".join([f"{type(self).__name__} (", *lines, ")"])


def fitted(memory: dict[str, Any], p: Tensor) -> dict[str, Any]:
    """A memory in the dtype of its parameter, as PyTorch loads it."""
    for name, value in memory.items():
        if isinstance(value, plain.Strided) and value.shape != p.shape:
            raise ValueError(f"the saved {name} has shape {value.shape}, and its parameter {p.shape}: another model?")
    return {n: v.to(p.dtype) if isinstance(v, plain.Strided) else v for n, v in memory.items()}


RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("lr", "eps", "weight_decay", "momentum"), (0, math.inf)),
    **dict.fromkeys(("alpha", "betas"), (0, 1)),
}
"""From where to where a setting may lie; the upper end is not included."""


def refuse_setting(name: str, value: Any) -> None:
    if name not in RANGES:
        return
    low, high = RANGES[name]
    numbers = value if name == "betas" and isinstance(value, Sequence) else (value,)
    if len(numbers) != 1 + (name == "betas") or not all(isinstance(one, Real) for one in numbers):
        raise TypeError(f"{name}={value!r} is not possible: give {'two numbers' if name == 'betas' else 'a number'}")
    if not all(low <= one < high for one in numbers):
        raise ValueError(f"{name}={value} is not possible: it begins at {low} and stays below {high}")


# %% given="optimizers"
class SGD(Optimizer):
    """Stochastic gradient descent, with momentum, and L2 regularisation by weight_decay."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def refuse_group(self, group: dict[str, Any]) -> None:
        super().refuse_group(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("nesterov=True needs a momentum above 0, and a dampening of 0")

    def memories(self, group: dict[str, Any]) -> Sequence[str | None]:
        return ["momentum_buffer" if group["momentum"] else None]

    def rule(self, p: np.ndarray, g: np.ndarray, kept: list, step: int, group: dict[str, Any]) -> None:
        (buffer,) = kept
        sgd_step(
            p,
            with_decay(g, p, group),
            buffer,
            group["lr"],
            group["momentum"],
            group["dampening"],
            group["nesterov"],
            first=step == 1,
        )


def with_decay(g: np.ndarray, p: np.ndarray, group: dict[str, Any]) -> np.ndarray:
    """The gradient of the loss with its L2 term."""
    return g + group["weight_decay"] * p if group["weight_decay"] else g


class Adam(Optimizer):
    """Adam. Its weight_decay is L2 regularisation: a part of the gradient."""

    usual_decay: ClassVar[float] = 0.0

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float | None = None,
        *,
        maximize: bool = False,
    ):
        decay = self.usual_decay if weight_decay is None else weight_decay
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": decay, "maximize": maximize})

    def memories(self, group: dict[str, Any]) -> Sequence[str | None]:
        return ["exp_avg", "exp_avg_sq"]

    def rule(self, p: np.ndarray, g: np.ndarray, kept: list, step: int, group: dict[str, Any]) -> None:
        adam_step(p, with_decay(g, p, group), *kept, step, group["lr"], group["betas"], group["eps"])


class AdamW(Adam):
    """Adam with decoupled weight decay: the weight shrinks, and the gradient stays as it is."""

    usual_decay: ClassVar[float] = 1e-2

    def rule(self, p: np.ndarray, g: np.ndarray, kept: list, step: int, group: dict[str, Any]) -> None:
        adamw_step(p, g, *kept, step, group["lr"], group["betas"], group["eps"], group["weight_decay"])


class RMSprop(Optimizer):
    """RMSprop, with momentum, centered or not, and L2 regularisation by weight_decay."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "centered": centered,
                "maximize": maximize,
            },
        )

    def memories(self, group: dict[str, Any]) -> Sequence[str | None]:
        return [
            "square_avg",
            "grad_avg" if group["centered"] else None,
            "momentum_buffer" if group["momentum"] else None,
        ]

    def rule(self, p: np.ndarray, g: np.ndarray, kept: list, step: int, group: dict[str, Any]) -> None:
        rmsprop_step(p, with_decay(g, p, group), *kept, group["lr"], group["alpha"], group["eps"], group["momentum"])


# %% [markdown]
# PyTorch's optimizers can be told apart from yours by nothing but their speed on a GPU. Here is a weight that is
# trained towards 3, in the group of its own that a bias would have:

# %%
weight = gradwright.tensor([1.0], requires_grad=True)
bias = gradwright.tensor([0.0], requires_grad=True)
optimizer = AdamW([{"params": [weight]}, {"params": [bias], "weight_decay": 0.0}], lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    ((2 * weight + bias - 6) ** 2).sum().backward()
    optimizer.step()
w, b, y = (round(t.item(), 3) for t in (weight, bias, 2 * weight + bias))
print("2 *", w, "+", b, "=", y)
print(optimizer)

# %% [markdown]
# ## The order of things
#
# **Idea.** One step of training is five calls, and every wrong order runs.
#
# | order | what it is for | and if it is elsewhere |
# |---|---|---|
# | 1. `zero_grad` | forget the last step | gradients of all steps so far add up |
# | 2. loss, `backward` | once for each part of the batch; gradients add up | |
# | 3. weigh each part | by its share of the examples | a mean of means: short parts count too much |
# | 4. clip | when the gradient is complete | clipping each part lets the sum be as long as there are parts |
# | 5. `step` | use it | clipped after the step: clipped in vain |
#
# Several parts make one large batch out of pieces that fit into memory. In the story above there was a line more, the
# averaging over machines, and it belongs where the parts are complete: between 3 and 4. The rule behind all of it:
# **`step` uses what is in `.grad` at that moment**, and knows nothing of what you still meant to do with it.
#
# ### Exercise 6.9: `training_step`
# Medium, 15 minutes, 4 points.


# %% exercise="optimizers-training-step"
def training_step(
    optimizer: Any,
    parameters: Sequence[Tensor],
    loss_of: Callable[[np.ndarray], Tensor],
    parts: Sequence[np.ndarray],
    max_norm: float,
) -> tuple[float, float]:
    """One step along the gradient of the mean loss over all examples of all parts.

    optimizer   has zero_grad() and step(); what it moves are the parameters
    parameters  whose gradients are clipped together to max_norm, by clip_grad_norm_. Old
                gradients may be left in them.
    loss_of     loss_of(part) is the mean loss of one part's examples, a tensor of one element
    parts       arrays with one example a row; they need not be equally long
    returns     the mean loss over all examples, before the step, and the norm of its gradient,
                before clipping; floats

    PyTorch: no such function; these lines are in every training loop
    """
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    total, mean = sum(len(part) for part in parts), 0.0
    for part in parts:
        loss = loss_of(part) * (len(part) / total)
        loss.backward()
        mean += loss.item()
    norm = clip_grad_norm_(parameters, max_norm)
    optimizer.step()
    return mean, norm.item()
    ### END SOLUTION


# %% [markdown]
# <details><summary>The first step is right, later ones are not</summary>
#
# What is still in `.grad` when the second step begins? And in the case where even the first is wrong: what was in it
# before you came?
# </details>
# <details><summary>Unequal parts give a slightly different loss</summary>
#
# How much does one example of the last, short part weigh in your mean, and how much one of a long part?
# </details>
# <details><summary>The norm is too small</summary>
#
# How often do you call `clip_grad_norm_`, and is the gradient complete each time?
# </details>

# %% check="optimizers-training-step"
check("optimizers-training-step", training_step)

# %% [markdown]
# ## Reading digits
#
# Now all of it together: the layers of chapter 04, the loss of chapter 05, your optimizer and your step. The data are
# 1,797 handwritten digits, 8 × 8 pixels with 17 shades of grey.

# %%
data = np.load(Path(gradwright.__file__).parents[1] / "data" / "digits.npz")
images, labels = data["images"].reshape(-1, 64) / 16, data["labels"].astype(np.int64)
training, testing = np.split(np.random.default_rng(0).permutation(len(images)), [1437])

figure, panels = plt.subplots(2, 8, figsize=(7, 2.1))
for axes, image, label in zip(panels.flat, data["images"], labels, strict=False):
    axes.imshow(image, cmap="gray_r")
    axes.set_title(label, fontsize=9)
    axes.axis("off")
plt.show()

# %% [markdown]
# A network with one hidden layer, 20 epochs, batches of 64 in two parts each. It takes a few seconds and gets more than
# 95 of 100 unseen digits right.


# %%
def train(model, epochs, optimizer):
    """Train in place; returns the losses of all steps."""
    losses, rng = [], np.random.default_rng(1)
    parameters = list(model.parameters())

    def loss_of(rows):
        x, ids = gradwright.tensor(images[rows]).float(), gradwright.tensor(labels[rows])
        return F.cross_entropy(model(x), ids)

    for _ in range(epochs):
        order = rng.permutation(training)
        for start in range(0, len(order), 64):
            parts = np.array_split(order[start : start + 64], 2)
            losses.append(training_step(optimizer, parameters, loss_of, parts, max_norm=1.0)[0])
    return losses


gradwright.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
losses = train(model, 20, AdamW(model.parameters(), lr=3e-3))
with gradwright.no_grad():
    said = model(gradwright.tensor(images[testing]).float()).argmax(1).numpy()
print(f"loss {losses[0]:.3f} at first, {np.mean(losses[-20:]):.3f} at last")
print(f"{(said == labels[testing]).mean():.1%} of the digits that it has not seen")

# %% [markdown]
# **Is it PyTorch's training?** A test accuracy says little: an optimizer without bias correction gets there too. So
# here is the stricter question. PyTorch was given the same network in float64, with the same weights and the same 100
# batches, and its losses were written down. Yours must follow them to the ninth digit, each step building on all steps
# before.

# %%
folder = Path(gradwright.__file__).parents[1] / "data"
recorded = json.loads((folder / "digits_curve.json").read_text())

rng = np.random.default_rng(recorded["seed"])
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).double()
with gradwright.no_grad():
    for p in model.parameters():
        p.copy_(gradwright.tensor(rng.uniform(-0.2, 0.2, p.shape)))
optimizer, losses = AdamW(model.parameters(), lr=3e-3), []
for _ in recorded["losses"]:
    rows = rng.integers(0, len(images), 32)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(gradwright.tensor(images[rows])), gradwright.tensor(labels[rows]))
    loss.backward()
    clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    losses.append(loss.item())
print("largest difference in 100 steps:", np.abs(np.array(losses) - recorded["losses"]).max())

# %% [markdown]
# For when you read without running, here is the recorded curve, and beside it the same training by an Adam whose bias
# correction was left out. The wrong one is *lower*: at a rate this small, steps three to seven times too long are a
# gain. At a rate that was tuned they would be a loss. A curve that looks better proves nothing; one that is equal does.

# %% figure="curves"
"""Loss against step, for 100 steps on the digits. PyTorch's recorded losses, as dots, fall from 2.3 to 0.6. The
dashed line of an Adam without bias correction falls much faster, to 0.5 at step 25, and then jumps between 0.1 and
0.4."""
recorded = [2.32, 2.27, 2.24, 2.21, 2.16, 2.09, 2.0, 2.01, 1.94, 1.89, 1.91, 1.79, 1.73, 1.66, 1.58, 1.44, 1.53, 1.4]
recorded += [1.34, 1.2, 1.23, 1.21, 1.02, 0.92, 0.94, 0.8, 1.03, 0.9, 0.89, 0.82, 0.7, 0.68, 0.74, 0.56]
uncorrected = [2.32, 2.13, 1.96, 1.68, 1.31, 1.01, 0.76, 0.71, 0.5, 0.49, 0.6, 0.55, 0.44, 0.43, 0.34, 0.17, 0.43]
uncorrected += [0.17, 0.27, 0.14, 0.43, 0.23, 0.23, 0.17, 0.26, 0.12, 0.3, 0.2, 0.28, 0.22, 0.27, 0.13, 0.22, 0.16]
figure, axes = plt.subplots(figsize=(7, 2.8))
axes.plot(range(0, 100, 3), recorded, "o", color="#0072b2", markersize=4, label="recorded from PyTorch")
axes.plot(range(0, 100, 3), uncorrected, "--", color="#d55e00", label="without bias correction")
axes.set(xlabel="step", ylabel="loss", ylim=(0, 2.5))
axes.legend(fontsize=9)

# %% [markdown]
# ## In PyTorch
#
# `torch.optim.SGD`, `Adam`, `AdamW`, `RMSprop`: the same settings and, to rounding, the same numbers. What it adds is
# speed on devices: `foreach=True` treats all parameters in one call, `fused=True` runs a rule as a single kernel, and
# `capturable=True` lets a whole step be recorded. Our pieces are the same idea for a processor's cache. `amsgrad=True`,
# a variant of Adam that never lets its denominator shrink, is there and rarely used.
#
# With several machines, `DistributedDataParallel` hangs the averaging of gradients onto `backward` itself, as hooks, so
# that there is no line left that could be moved. `ZeroRedundancyOptimizer` goes on from there: each machine keeps only
# its own quarter of the memory.

# %% [markdown]
# ## Check yourself
#
# Two questions, a sentence or two each, in a cell of your own.
#
# 1. You freeze half of a model by `requires_grad = False`, and another half-finished script instead multiplies the
#    gradients of that half by 0. Both use AdamW. What happens to the frozen weights in each?
# 2. A checkpoint holds the weights and not the optimizer. Which of SGD, SGD with momentum, and Adam would resume as if
#    nothing had happened?
#
# You can now
#
# - [x] write SGD with momentum, Adam, AdamW and RMSprop from memory, and say what each keeps;
# - [x] tell weight decay from L2 regularisation, and say when the decay happens;
# - [x] give parts of a model settings of their own;
# - [x] save an optimizer and load it back, so that no later step is different by a bit;
# - [x] put accumulation, clipping and the step into the right order.
#
# When all checks are right, compare with [the solution of this chapter](../../solutions/06_optimizers.py). In a week,
# try `autograder fresh 06`. Next come the schedules, which change the learning rate while the training runs.
