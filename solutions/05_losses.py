# %% [markdown]
# # 05 Losses
#
# ## Why
#
# A small network learned from a large one: from its *logits*, stored on disk for a million images. After nine hours the
# loss was `nan`, and a minute later so was every weight. The team lowered the learning rate, and it happened again at
# the same step. They clipped the gradients, and clipping made it worse: the norm was `nan`, so every gradient was
# multiplied by `nan`, where before it had been only some. On the third day somebody counted. Three of the stored
# logits were `inf`. The file held no `inf`: it held three numbers near $10^{39}$ in float64, from a corrupt image, and
# the data reader cast everything to float32, whose largest number is $3.4 \cdot 10^{38}$. A row with an `inf` has a
# softmax of `nan`, a batch with a `nan` has a loss of `nan`, and a loss of `nan` leaves nothing as it was.
#
# Mathematics says which number is meant. This chapter is about how it is reached on the way from finite numbers to
# finite numbers, and about finding the place where it was not. After it you can
#
# - compute a softmax, its logarithm and a cross entropy that survive logits of 10,000 and masks of `-inf`;
# - read every argument of `cross_entropy`, and say what its mean divides by;
# - write the binary, the robust and the distilled loss, each with its gradient;
# - clip a gradient, and say what happens when it is not finite;
# - find the operation that made the first `nan`, and mend it.
#
# Allow about three hours; each section is a good place to stop.

# %%
import matplotlib.pyplot as plt

import gradwright
from autograder import check
from gradwright.widgets import softmax_temperature

gradwright.chapter(5)

# %% given="imports"
import linecache
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from gradwright.chapters import tensor as plain
from gradwright.chapters.autodiff import Operation, state
from gradwright.chapters.layers import Module, refuse_dtypes, refuse_others, refuse_whole_numbers
from gradwright.chapters.operations import Mode, Tensor

# %% [markdown]
# ## Sums of exponentials
#
# **Idea.** A network's last layer gives one number a class, its *logits* $x_1, \dots, x_C$: any real numbers. The
# softmax turns them into probabilities:
#
# $$p_i = \frac{e^{x_i}}{\sum_j e^{x_j}}$$
#
# On paper nothing can go wrong. In a machine, $e^{x}$ leaves the range of the format while $x$ is still an everyday
# number.

# %% figure="ranges"
"""Three bars on a line from minus 750 to 750: the numbers x for which exp(x) is neither 0 nor inf. float16: from about
minus 17 to 11. float32: from about minus 103 to 88. float64: from about minus 745 to 709. Logits of 1,000 lie outside
all three."""
figure, axes = plt.subplots(figsize=(7, 2.3))
spans = {"float16": (-17.3, 11.1), "float32": (-103.9, 88.7), "float64": (-745.1, 709.8)}
for row, (low, high) in enumerate(spans.values()):
    axes.barh(row, high - low, left=low, height=0.5, color=["#d55e00", "#e69f00", "#0072b2"][row])
    axes.text(high + 12, row, f"exp({int(high)}) still fits", va="center", fontsize=9)
axes.set_yticks(range(3), list(spans))
axes.grid(False)
axes.set(xlim=(-780, 1000), xlabel="x, where exp(x) is neither 0 nor inf")
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# The way out is an identity. Pull the largest logit $m$ out of the sum:
#
# $$\log \sum_j e^{x_j} \;=\; m + \log \sum_j e^{x_j - m}$$
#
# On the right no exponent is above 0, so nothing overflows; one of them is exactly 0, so the sum is at least 1 and its
# logarithm is harmless. What underflows to 0 is smaller than the sum's last digit anyhow. For $x = (1000, 1000)$ the
# left side overflows, and the right side is $1000 + \log 2$.
#
# Two rows need a thought of their own. A row of `-inf` alone, as a mask leaves it where everything is masked, has the
# sum 0 and so the logarithm `-inf`; but $m$ is `-inf` too, and `-inf - -inf` is `nan`. A row with `+inf` has the
# logarithm `inf`, and meets the same difference. What should be subtracted there instead?
#
# ### Exercise 5.1: `logsumexp`
# Easy, 10 minutes, 2 points.


# %% exercise="losses-logsumexp"
def logsumexp(x: np.ndarray, axis: int) -> np.ndarray:
    """log(sum(exp(x))) along an axis, without overflow on the way.

    x        an array of floats; every axis has at least one element
    axis     which one disappears
    returns  an array of x's dtype, with one axis fewer: -inf where all elements are -inf,
             inf where one is inf

    >>> logsumexp(np.array([[1000.0, 1000.0]]), 1).round(4).tolist()
    [1000.6931]

    PyTorch: torch.logsumexp
    """
    ### BEGIN SOLUTION
    top = x.max(axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.log(np.exp(x - top).sum(axis)) + top.squeeze(axis)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Large logits still give inf</summary>
#
# Which number does `exp` get to see? Print `x - top` for the first case. Is anything in it above 0?
# </details>
# <details><summary>A row of -inf gives nan</summary>
#
# Any finite number may be pulled out of the sum; the largest element is only the best choice. Where it is not finite,
# choose another: `np.where` and `np.isfinite` say so in one line.
# </details>
# <details><summary>The shapes do not fit along another axis</summary>
#
# With `keepdims=True` the maxima broadcast against x. At the end the axis of size 1 has to go again: `squeeze`.
# </details>

# %% check="losses-logsumexp"
check("losses-logsumexp", logsumexp)

# %% [markdown]
# Losses want the logarithm of the softmax, $\log p_i = x_i - \log \sum_j e^{x_j}$. Never take it in two steps: a
# probability below $10^{-45}$ is 0 in float32, its logarithm is `-inf`, and the true answer was about -104.
#
# There is a second trap, less known. In float32, numbers near a million are 0.06 apart. Whoever computes
# $x_i - (m + \log s)$ rounds the bracket to such a step and has lost the logarithm. Whoever computes
# $(x_i - m) - \log s$ has not: both terms are small.
#
# ### Exercise 5.2: `log_softmax`
# Easy, 10 minutes, 2 points.


# %% exercise="losses-log-softmax"
def log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    """The logarithm of the softmax along an axis.

    x        an array of floats, none of them +inf or nan; every axis has at least one element
    axis     along which exp(result) sums to 1
    returns  an array of x's shape and dtype: -inf where x is -inf, but nan in a row of -inf
             alone, which has no softmax

    >>> log_softmax(np.array([[1000.0, 0.0]]), 1).tolist()
    [[0.0, -1000.0]]

    PyTorch: torch.log_softmax
    """
    ### BEGIN SOLUTION
    with np.errstate(invalid="ignore"):
        shifted = x - x.max(axis, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))
    ### END SOLUTION


# %% [markdown]
# <details><summary>It is right in float64 and off in float32</summary>
#
# In which order are three numbers added up, of which two are huge and nearly cancel? Subtract those two first.
# </details>
# <details><summary>I get -inf where -1000 is wanted</summary>
#
# Somewhere a probability was computed, and it was 0. Where does the formula need probabilities at all?
# </details>

# %% check="losses-log-softmax"
check("losses-log-softmax", log_softmax)

# %% [markdown]
# Chapter 03 has derived what comes back through it: $\partial \log p_i / \partial x_j = [i = j] - p_j$. It also made
# `x.softmax(dim)` and `x.log_softmax(dim)` in this way, so from now on you may trust them.
#
# **A softmax is sure of itself by magnitude.** Adding the same number to all logits changes nothing; doubling them
# changes a lot. Dividing by a *temperature* $T$ before the softmax undoes it, and is all that it takes to *calibrate* a
# network that is right 80 % of the time and says 99 %: one number, fitted on held-out data, and no class changes its
# rank.

# %% figure="temperature"
"""Three groups of four bars: the softmax of the logits 3, 2, 1, 0 at temperatures 0.3, 1 and 5. At 0.3 the first bar is
at 0.96 and the others vanish; at 1 they fall from 0.64 to 0.03; at 5 all four lie between 0.33 and 0.18."""
figure, panels = plt.subplots(1, 3, figsize=(7, 2.4), sharey=True, layout="constrained")
logits = np.array([3.0, 2.0, 1.0, 0.0])
for axes, temperature in zip(panels, (0.3, 1, 5), strict=True):
    p = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
    bars = axes.bar(range(4), p, color="#0072b2")
    axes.bar_label(bars, fmt="%.2f", fontsize=9)
    axes.set_title(f"T = {temperature}", fontsize=11)
    axes.set_xticks(range(4), ["3", "2", "1", "0"])
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("probability")
panels[1].set_xlabel("logit")
panels[0].set_ylim(0, 1.1)

# %% [markdown]
# **Look.** Move *T* and see the bars sharpen and flatten, then raise *c* until the naive formula breaks: at which logit
# does float32 give up, and at which float16?

# %% widget="softmax-temperature"
softmax_temperature(preset="overflow in float16")

# %% [markdown]
# ## Cross entropy
#
# **Idea.** The loss of one example is $-\log p_y$: how surprised the network is by the right class $y$. It is 0 for
# certainty and grows without limit. For a batch we take the mean. Its gradient is the reason why everybody uses it:
#
# $$\frac{\partial}{\partial x_j} \left( -\log p_y \right) = p_j - [j = y]$$
#
# What the network says minus what is true. Neither a division nor a logarithm is left; for logits $(1000, 0)$ and
# $y = 1$ the loss is 1000 and the gradient $(1, -1)$: large error, full signal. Composed of a softmax, a `log` and an
# index, the same loss gives `inf` and `nan` there. This is why it is *one* operation, from logits to loss.
#
# It also means: **hand it logits**. A model that ends in a softmax and feeds `cross_entropy` applies it twice. Nothing
# raises. The inputs then lie between 0 and 1, the second softmax can hardly tell them apart, with ten classes the loss
# never falls below 1.46, and the gradients are faint. It trains, badly.
#
# The plain function comes first, since an operation names the function that it stands for.


# %% given="mean-cross-entropy"
def mean_cross_entropy(logits: plain.Tensor, ids: np.ndarray) -> plain.Tensor:
    return CrossEntropy().forward(logits, ids)


# %% [markdown]
# ### Exercise 5.3: `CrossEntropy`
# Medium, 20 minutes, 4 points.


# %% exercise="losses-cross-entropy"
class CrossEntropy(Operation, of=mean_cross_entropy):
    """Mean of -log softmax(logits)[id] over the rows, as one operation."""

    def forward(self, logits: plain.Tensor, ids: np.ndarray) -> plain.Tensor:
        """The mean loss; saves what backward will need (self.save is for tensors, ids can be
        kept as an attribute).

        logits   shape (N, C), floats
        ids      shape (N,), whole numbers from 0 to C - 1
        returns  a tensor without axes, made by logits.new(...), in the dtype of the logits
        """
        ### BEGIN SOLUTION
        x = logits.array
        with np.errstate(invalid="ignore"):
            shifted = x - np.maximum.reduce(x, axis=1, keepdims=True)
        p = np.exp(shifted)
        sums = np.add.reduce(p, axis=1, keepdims=True)
        p /= sums
        self.save(logits.new(p))
        self.ids = ids
        losses = np.log(sums[:, 0]) - shifted[np.arange(len(ids)), ids]
        return logits.new(np.add.reduce(losses) / len(ids))
        ### END SOLUTION

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """The gradient of the logits, a new array of their shape and dtype, from that of the
        loss, of shape ().
        """
        ### BEGIN SOLUTION
        (p,) = self.saved
        slope = p.copy()
        slope[np.arange(len(slope)), self.ids] -= 1
        slope *= grad / len(slope)
        return slope
        ### END SOLUTION


# %% [markdown]
# <details><summary>How do I pick one number from every row?</summary>
#
# With two index arrays of the same length: `a[rows, columns]` takes the elements (rows[0], columns[0]), (rows[1],
# columns[1]), and so on. Which rows do you want?
# </details>
# <details><summary>The loss is right, the gradient is too large by the same factor everywhere</summary>
#
# The forward takes a mean over N rows. What does one row weigh in it? And `grad` is what arrives from further up: is it
# in your result?
# </details>
# <details><summary>A second backward gives something else</summary>
#
# Whose memory do you change in place? What was saved is needed again: change a copy, or what `np.exp` has just made.
# </details>

# %% check="losses-cross-entropy"
check("losses-cross-entropy", CrossEntropy)

# %% [markdown]
# **Every variant is the same sum.** Give each row a vector of targets $q$ in place of one id. Then
#
# $$\text{loss} \;=\; \frac{1}{\text{count}} \sum_n \sum_j -q_{nj} \log p_{nj}$$
#
# and the arguments of `cross_entropy` only say what $q$ and the count are.
#
# | argument | what it does to row $n$ with id $y$ | what it does to the count |
# |---|---|---|
# | none | $q_{ny} = 1$, the rest 0 | 1 a row |
# | `label_smoothing` $\varepsilon$ | $q_{nj} = (1 - \varepsilon)[j = y] + \varepsilon / C$ | nothing |
# | `weight` $w$ | every $q_{nj}$ is multiplied by $w_j$ | $w_y$ a row instead of 1 |
# | `ignore_index` | where $y$ is this number: $q_n = 0$ | such a row counts 0 |
#
# An example with $C = 3$, $\varepsilon = 0.3$, $w = (1, 2, 4)$ and $y = 1$: smoothing gives $(0.1, 0.8, 0.1)$, the
# weights make it $(0.1, 1.6, 0.4)$, and the row counts 2.
#
# *The mean over what counts* is where implementations differ in silence. Padding tokens are ignored: whoever still
# divides by all tokens gets a loss that falls when sentences are short. And if **nothing** counts, the mean is 0 / 0:
# `nan`, with gradients of 0, in PyTorch as here. A `nan` in the log that no weight ever saw has usually been a batch
# of padding alone.
#
# ### Exercise 5.4: `soft_targets`
# Medium, 25 minutes, 4 points.


# %% exercise="losses-targets"
def soft_targets(
    ids: np.ndarray,
    classes: int,
    weight: np.ndarray | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> tuple[np.ndarray, float]:
    """What the sum of a cross entropy is taken over, and what its mean divides by.

    ids              shape (N,), whole numbers: from 0 to classes - 1, or ignore_index
    classes          C, how many there are
    weight           shape (C,): how much each class counts; None: all count 1
    ignore_index     rows with this id do not count; it may be negative, or the number of a class
    label_smoothing  from 0 to 1: which part of a row's target is shared out evenly among all
                     classes
    returns          the targets q, shape (N, C), float64, and the count, a float

    >>> soft_targets(np.array([1, -100]), 3, np.array([1.0, 2.0, 4.0]), label_smoothing=0.3)
    (array([[0.1, 1.6, 0.4],
           [0. , 0. , 0. ]]), 2.0)

    PyTorch: what cross_entropy does with these arguments
    """
    ### BEGIN SOLUTION
    counts = ids != ignore_index
    own = np.where(counts, ids, 0)
    weight = np.ones(classes) if weight is None else weight.astype(np.float64)
    targets = np.full((len(ids), classes), label_smoothing / classes)
    targets[np.arange(len(ids)), own] += 1 - label_smoothing
    return targets * weight * counts[:, None], float(weight[own][counts].sum())
    ### END SOLUTION


# %% [markdown]
# <details><summary>An id of -100 raises an IndexError, or marks the wrong class</summary>
#
# Give such a row any valid id while you build the table, and set it to 0 at the end. Which rows those are you have to
# note first.
# </details>
# <details><summary>The sum is right and the mean is not</summary>
#
# The count is a sum over rows, and each row adds the weight of one class: of which? And what does an ignored row add?
# </details>
# <details><summary>Smoothing and weights together are off</summary>
#
# Smooth first: the row then sums to 1. Then multiply each *column* by the weight of its class.
# </details>

# %% check="losses-targets"
check("losses-targets", soft_targets)

# %% [markdown]
# The rest is given: the sum over a table of targets as one operation, and the function that you know from PyTorch. The
# plain case, ids and nothing else, goes to your `CrossEntropy`; everything else goes through the table. Targets may
# also be probabilities, one row for each example.


# %% given="cross-entropy"
def soft_cross_entropy(logits: plain.Tensor, targets: plain.Tensor) -> plain.Tensor:
    return SoftCrossEntropy().forward(logits, targets)


class SoftCrossEntropy(Operation, of=soft_cross_entropy):
    """For each row the sum of -q log softmax(x): rows of logits and rows of targets to one loss a row."""

    def forward(self, logits: plain.Tensor, targets: plain.Tensor) -> plain.Tensor:
        log_p, q = log_softmax(logits.array, 1), targets.array
        self.save(logits.new(log_p), targets)
        with np.errstate(invalid="ignore"):
            return logits.new(-np.where(q == 0, 0, q * log_p).sum(1))

    def backward(self, grad: np.ndarray) -> tuple:
        log_p, q = self.saved
        grad = grad[:, None]
        to_logits = grad * (np.exp(log_p) * q.sum(1, keepdims=True) - q)
        return to_logits, -grad * log_p if self.needs_input_grad[1] else None


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits with class ids, or with class probabilities.

    input            logits: shape (C,), (N, C) or (N, C, d1, ...)
    target           whole numbers of input's shape without its class axis, or floats of input's shape
    weight           shape (C,): how much each class counts
    ignore_index     an id that does not count
    reduction        "mean" over what counts (nan where nothing does), "sum", or "none": a loss for each place
    label_smoothing  from 0 to 1, how much of the target is shared out among all classes
    raises           ValueError for shapes that do not fit or an unknown reduction, IndexError for an id of no class
    """
    check_arguments("cross_entropy", input, target, weight, reduction, label_smoothing)
    axis = min(1, input.ndim - 1)
    classes = input.shape[axis]
    if target.dtype.kind == "f":
        return with_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    places = input.shape[:axis] + input.shape[axis + 1 :]
    ids, all_count = class_ids(target, places, classes, ignore_index)
    if all_count and weight is None and not label_smoothing and reduction == "mean":
        return input.apply(mean_cross_entropy, as_rows(input), ids=ids)
    q, count = soft_targets(ids, classes, None if weight is None else weight.array, ignore_index, label_smoothing)
    losses = input.apply(soft_cross_entropy, as_rows(input), input.new(q.astype(input.dtype)))
    return mean_of(losses, count) if reduction == "mean" else reduced(losses.reshape(places), reduction)


def with_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, smoothing: float
) -> Tensor:
    """Targets that are probabilities. The mean is taken over all places, whatever the weights are, as in PyTorch."""
    if target.shape != input.shape:
        wanted = f"probabilities need {input.shape} as the logits have, and class ids are whole numbers"
        raise ValueError(f"the target holds floats, in shape {target.shape}: {wanted}")
    if ignore_index >= 0:
        raise ValueError(f"ignore_index={ignore_index} is for class ids, and the target holds probabilities")
    dtype = plain.result_type(input, target)
    rows, q = as_rows(input).to(dtype), as_rows(target).to(dtype)
    if smoothing:
        q = q * (1 - smoothing) + smoothing / rows.shape[1]
    losses = input.apply(soft_cross_entropy, rows, q if weight is None else q * weight)
    if reduction == "mean":
        return mean_of(losses, losses.numel())
    places = input.shape[:1] + input.shape[2:] if input.ndim > 1 else ()
    return reduced(losses.reshape(places), reduction)


def check_arguments(
    name: str, input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float
) -> None:
    refuse_reduction(reduction)
    refuse_others(name, input, target, weight)
    refuse_whole_numbers(name, input)
    if input.ndim == 0:
        raise ValueError(f"{name} needs an axis of classes, and its input has no axes")
    refuse_dtypes(name, input, weight)
    classes = input.shape[min(1, input.ndim - 1)]
    if weight is not None and weight.shape != (classes,):
        raise ValueError(f"the weight of {classes} classes has shape ({classes},), and this one {weight.shape}")
    if not 0 <= smoothing <= 1:
        raise ValueError(f"label_smoothing={smoothing} is not between 0 and 1")


def class_ids(target: Tensor, places: tuple[int, ...], classes: int, ignore_index: int) -> tuple[np.ndarray, bool]:
    """The ids in one row, after a look whether they fit, and whether there are some and all of them count."""
    if target.dtype.kind not in "iu":
        raise TypeError(f"the target holds {target.dtype}, and class ids are whole numbers")
    if target.shape != places:
        raise ValueError(f"the target has shape {target.shape}, and the logits have a row for each place of {places}")
    ids = target.array.reshape(-1)
    if not ids.size:
        return ids, False
    lowest, highest = np.minimum.reduce(ids), np.maximum.reduce(ids)
    if lowest < 0 or highest >= classes:
        wrong = ids[((ids < 0) | (ids >= classes)) & (ids != ignore_index)]
        if wrong.size:
            raise IndexError(f"target {wrong[0]} is none of the {classes} classes, which count from 0")
    return ids, not lowest <= ignore_index <= highest


def as_rows(t: Tensor) -> Tensor:
    """The axis of classes moved to the end, and all others made one: shape (M, C)."""
    if t.ndim > 2:
        t = t.permute(0, *range(2, t.ndim), 1)
    return t if t.ndim == 2 else t.reshape(-1, t.shape[-1])


def mean_of(losses: Tensor, count: float) -> Tensor:
    """The sum by the count. Where nothing counts the mean is nan, and no gradient moves anything."""
    total = losses.sum()
    return total / count if count else total + math.nan


def reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return mean_of(losses, losses.numel())
    return losses.sum() if reduction == "sum" else losses


def refuse_reduction(reduction: str, allowed: Sequence[str] = ("mean", "sum", "none")) -> None:
    if reduction not in allowed:
        raise ValueError(f"reduction={reduction!r} is not offered: use one of {', '.join(allowed)}")


# %% given="nll"
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The second half of cross_entropy, for an input that holds log-probabilities already.

    input    log-probabilities: shape (C,), (N, C) or (N, C, d1, ...); the other arguments are those of cross_entropy
    """
    check_arguments("nll_loss", input, target, weight, reduction, 0)
    axis = min(1, input.ndim - 1)
    places = input.shape[:axis] + input.shape[axis + 1 :]
    ids, _ = class_ids(target, places, input.shape[axis], ignore_index)
    q, count = soft_targets(ids, input.shape[axis], None if weight is None else weight.array, ignore_index)
    own = np.where(ids == ignore_index, 0, ids)
    picked = as_rows(input).gather(1, input.new(own[:, None])).reshape(-1)
    weighed = input.new(q[np.arange(len(own)), own].astype(input.dtype))
    losses = -(picked * weighed).masked_fill(input.new(ids == ignore_index), 0)
    return mean_of(losses, count) if reduction == "mean" else reduced(losses.reshape(places), reduction)


# %% [markdown]
# See both at work, and the softmax that was applied twice:

# %%
logits = gradwright.tensor([[1000.0, 0.0], [2.0, -1.0]], requires_grad=True)
loss = cross_entropy(logits, gradwright.tensor([1, 0]))
loss.backward()
print("loss    ", loss.item())
print("gradient", logits.grad.numpy().round(4).tolist())

sure = gradwright.tensor([[10.0] + [0.0] * 9])
right = gradwright.tensor([0])
print("once    ", round(cross_entropy(sure, right).item(), 4))
twice = cross_entropy(sure.softmax(1), right)
print("twice   ", round(twice.item(), 4), "for a network that is sure, and right")

# %% [markdown]
# ## Yes or no, and how far off
#
# **Idea.** Where each output answers a question of its own, yes or no, each gets a sigmoid instead of a softmax. With a
# logit $x$ and the truth $y$ in $[0, 1]$, the *binary cross entropy* is
#
# $$-\,y \log \sigma(x) - (1 - y) \log(1 - \sigma(x)) \;=\; (1 - y)\,x + \operatorname{softplus}(-x)$$
#
# where $\operatorname{softplus}(z) = \log(1 + e^{z})$. The left side *saturates*: for $x = 40$, $\sigma(x)$ rounds to
# 1, the logarithm of $1 - 1$ is `-inf`, and for $x = 20$ the gradient has lost half of its digits. The right side needs
# only a softplus that does not overflow, and that is
#
# $$\operatorname{softplus}(z) = \max(z, 0) + \log\left(1 + e^{-|z|}\right)$$
#
# If only one example in fifty is a yes, `pos_weight` $= 49$ lets each yes count 49 times: it multiplies the first term
# on the left. Work out what that makes of the right side before you write it down. The slope follows by the rule
# $\operatorname{softplus}'(z) = \sigma(z)$.
#
# ### Exercise 5.5: `bce_with_logits`
# Medium, 25 minutes, 4 points.


# %% exercise="losses-bce"
def bce_with_logits(
    x: np.ndarray, y: np.ndarray, pos_weight: np.ndarray | float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """The binary cross entropy of each element, and its slope.

    x           logits, an array of floats, as large as they like
    y           the truth, of x's shape and dtype: 1 for yes, 0 for no, or a probability
    pos_weight  what the term of yes is multiplied by; broadcasts against x
    returns     two arrays in the shape and dtype of x: the losses, and their derivatives with
                respect to x

    >>> bce_with_logits(np.array([0.0, 1000.0]), np.array([1.0, 0.0]))[0].round(4).tolist()
    [0.6931, 1000.0]

    PyTorch: torch.nn.functional.binary_cross_entropy_with_logits
    """
    ### BEGIN SOLUTION
    small = np.exp(-np.abs(x))
    softplus = np.maximum(-x, 0) + np.log1p(small)
    yes = 1 + (pos_weight - 1) * y
    sigmoid_of_minus_x = np.where(x > 0, small, 1) / (1 + small)
    return (1 - y) * x + yes * softplus, (1 - y) - yes * sigmoid_of_minus_x
    ### END SOLUTION


# %% [markdown]
# <details><summary>It is right for small logits and nan or inf for 1,000</summary>
#
# Which `exp` in your code gets a positive number? There is a form of softplus, and one of the sigmoid, in which none
# does.
# </details>
# <details><summary>pos_weight changes the wrong term</summary>
#
# Write the loss with both logarithms first, `pos_weight` before the first of them. Then use $\log \sigma(x) =
# -\operatorname{softplus}(-x)$ and $\log(1 - \sigma(x)) = -x - \operatorname{softplus}(-x)$, and collect what stands
# before the softplus.
# </details>
# <details><summary>The loss is right, the slope is not</summary>
#
# Derive the right side of the formula term by term, and mind the inner derivative of $-x$.
# </details>

# %% check="losses-bce"
check("losses-bce", bce_with_logits)

# %% [markdown]
# **How far off** is the other question. With $d = x - y$, the squared error $d^2$ has the slope $2d$: a single label
# that is wrong by 1,000 pulls as hard as a thousand that are wrong by 1. The absolute error $|d|$ has slope 1 however
# far away, and so never settles at the goal. *Huber's loss* is the first near the goal and the second far from it.

# %% figure="robust"
"""Two panels over the error d from minus 4 to 4. Left, the losses: d squared leaves the picture at d = 2.4; the
absolute value is a V; Huber's loss with delta 1 is round at the bottom and straight further out, below the V. Right,
their slopes: a steep line through 0 without end; a step from minus 1 to 1; and Huber's, a line through 0 that stays at
minus 1 and 1 beyond."""
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.7), layout="constrained")
d = np.linspace(-4, 4, 401)
clipped = np.clip(d, -1, 1)
curves = [
    ("squared", d**2, 2 * d, "#555555", ":"),
    ("absolute", np.abs(d), np.sign(d), "#d55e00", "--"),
    ("Huber, delta = 1", clipped * (d - clipped / 2), clipped, "#0072b2", "-"),
]
for name, loss, slope, color, style in curves:
    left.plot(d, loss, style, color=color, label=name)
    right.plot(d, slope, style, color=color)
left.set(ylim=(0, 6), xlabel="d", title="loss")
right.set(ylim=(-3, 3), xlabel="d", title="slope")
left.legend(fontsize=8, loc="upper center")

# %% [markdown]
# These are short, and given. Each is a rule: two arrays in, the losses and their two slopes out. Your
# `bce_with_logits` is put to work in the same way.
#
# The last, `kl_div`, measures how far one distribution is from another: $\sum_j q_j (\log q_j - \log p_j)$. It takes
# $\log p$ as its input, because that is what a stable computation has at hand, and $q$, or with `log_target=True`
# $\log q$, as its target. Its `reduction="mean"` divides by the number of *elements*, which is rarely meant;
# `"batchmean"` divides by the number of examples.


# %% given="pair-losses"
class PairLoss(Operation):
    """A loss of pairs (x, y), element by element. A subclass gives rule(x, y, ...): losses, slopes of x and of y."""

    def forward(self, x: plain.Tensor, y: plain.Tensor, **options: Any) -> plain.Tensor:
        losses, to_x, to_y = self.rule(x.array, y.array, **options)
        self.save(x.new(to_x) if x.requires_grad else None, x.new(to_y) if y.requires_grad else None)
        return x.new(losses)

    def backward(self, grad: np.ndarray) -> tuple:
        to_x, to_y = self.saved
        return None if to_x is None else grad * to_x, None if to_y is None else grad * to_y


def squared_rule(x: np.ndarray, y: np.ndarray) -> tuple:
    d = x - y
    return d * d, 2 * d, -2 * d


def absolute_rule(x: np.ndarray, y: np.ndarray) -> tuple:
    d = x - y
    return np.abs(d), np.sign(d), -np.sign(d)


def huber_rule(x: np.ndarray, y: np.ndarray, delta: float) -> tuple:
    d = x - y
    clipped = np.clip(d, -delta, delta)
    return clipped * (d - clipped / 2), clipped, -clipped


def kl_rule(x: np.ndarray, y: np.ndarray) -> tuple:
    with np.errstate(invalid="ignore"):  # below 0 there is no probability, and no logarithm
        log_y = np.log(np.where(y == 0, 1, y))
    return y * log_y - y * x, -y, log_y + 1 - x


def kl_log_rule(x: np.ndarray, y: np.ndarray) -> tuple:
    q = np.exp(y)
    return q * (y - x), -q, q * (y - x + 1)


def bce_rule(x: np.ndarray, y: np.ndarray, pos_weight: np.ndarray | float) -> tuple:
    losses, slopes = bce_with_logits(x, y, pos_weight)
    return losses, slopes, -x if isinstance(pos_weight, float) else (pos_weight - 1) * np.logaddexp(0, -x) - x


def pair_loss(rule: Callable) -> Callable:
    """The function that tensors meet, with the Operation of this rule behind it."""

    def function(x: plain.Tensor, y: plain.Tensor, **options: Any) -> plain.Tensor:
        return kind().forward(x, y, **options)

    function.__name__ = rule.__name__.removesuffix("_rule") + "_errors"

    class kind(PairLoss, of=function):
        pass

    kind.rule, kind.__name__ = staticmethod(rule), rule.__name__.removesuffix("_rule").title().replace("_", "")
    return function


squared_errors, absolute_errors, huber_errors = map(pair_loss, (squared_rule, absolute_rule, huber_rule))
kl_errors, kl_log_errors, bce_errors = map(pair_loss, (kl_rule, kl_log_rule, bce_rule))


# %% given="pair-functions"
def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """(input - target)**2, reduced: "mean", "sum" or "none". Unequal shapes broadcast, with a warning."""
    return of_pairs("mse_loss", squared_errors, input, target, reduction)


def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """|input - target|, reduced. At 0 its slope is 0."""
    return of_pairs("l1_loss", absolute_errors, input, target, reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """d**2 / 2 for errors up to delta, delta * (|d| - delta / 2) beyond, reduced."""
    if not delta > 0:
        raise ValueError(f"delta={delta}: the bend of Huber's loss lies at a positive error")
    return of_pairs("huber_loss", huber_errors, input, target, reduction, delta=delta)


def of_pairs(name: str, function: Callable, input: Tensor, target: Tensor, reduction: str, **options: Any) -> Tensor:
    refuse_reduction(reduction)
    refuse_others(name, input, target)
    if input.shape != target.shape:
        shape = plain.broadcast_shapes(input.shape, target.shape)
        warnings.warn(
            f"{name} of shapes {input.shape} and {target.shape} compares everything in {shape}: give both one shape",
            UserWarning,
            stacklevel=3,
        )
    dtype = plain.result_type(input, target)
    if dtype.kind != "f":
        raise TypeError(f"{name} compares floats, and both sides hold whole numbers or truth values: convert one")
    return reduced(input.apply(function, input.to(dtype), target.to(dtype), **options), reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross entropy of logits with truths between 0 and 1.

    weight      how much each element counts; it broadcasts, and the mean still divides by the number of elements
    pos_weight  how much more the term of yes counts; it broadcasts, often one number for each of the last axis
    raises      ValueError for two shapes or an unknown reduction
    """
    refuse_reduction(reduction)
    name = "binary_cross_entropy_with_logits"
    refuse_others(name, input, target, weight, pos_weight)
    refuse_whole_numbers(name, input)
    for one in (weight, pos_weight):
        if one is not None and plain.broadcast_shapes(input.shape, one.shape) != input.shape:
            raise ValueError(f"a weight of shape {one.shape} is larger than logits of shape {input.shape}")
    if input.shape != target.shape:
        raise ValueError(f"logits of shape {input.shape} and truths of shape {target.shape}: give both one shape")
    factor = 1.0 if pos_weight is None else pos_weight.array.astype(input.dtype)
    losses = input.apply(bce_errors, input, target.to(input.dtype), pos_weight=factor)
    return reduced(losses if weight is None else losses * weight, reduction)


def kl_div(input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target * (log(target) - input): how far the distribution with the logarithm `input` is from `target`.

    log_target  whether the target is given by its logarithm too
    reduction   "batchmean" divides the sum by the length of axis 0, "mean" by the number of elements, "sum", "none"
    """
    refuse_reduction(reduction, ("mean", "batchmean", "sum", "none"))
    refuse_others("kl_div", input, target)
    plain.broadcast_shapes(input.shape, target.shape)  # says it where they do not
    losses = input.apply(kl_log_errors if log_target else kl_errors, input, target)
    if reduction == "batchmean":
        return losses.sum() / (losses.shape[0] if losses.ndim else 1)
    return reduced(losses, reduction)


# %% [markdown]
# **Distillation**, as in our story, lets a student learn from a teacher's whole distribution rather than from one id.
# At a temperature $T$ both are softened, so that the student also learns which wrong answers are *less* wrong. It is
# the KL divergence of the student from the teacher, both at temperature $T$, as a mean over examples. Its gradient with
# respect to the student's logits is $(p_T - q_T) / T$, and since the two distributions come together as $T$ grows, it
# shrinks like $1/T^2$. The factor $T^2$ in front puts that right: the temperature can then be tuned without retuning
# the learning rate.
#
# $$\text{loss} \;=\; T^2 \cdot \operatorname{KL}(q_T \,\|\, p_T), \qquad q_T = \operatorname{softmax}(t / T), \quad
# p_T = \operatorname{softmax}(s / T)$$
#
# ### Exercise 5.6: `distillation_loss`
# Medium, 15 minutes, 3 points.


# %% exercise="losses-distillation"
def distillation_loss(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """How far the student's softened distribution is from the teacher's.

    student, teacher  logits, shape (N, C)
    temperature       a positive number
    returns           a tensor without axes: the mean over the N rows. No gradient goes to the
                      teacher.

    Both logits may be in the thousands. `kl_div` is there, and the tensor's own `log_softmax`.

    >>> a, b = gradwright.tensor([[2.0, 0.0]]), gradwright.tensor([[0.0, 0.0]])
    >>> round(distillation_loss(a, b, 2.0).item(), 4)
    0.4805

    PyTorch: no such function; it is written out as here
    """
    ### BEGIN SOLUTION
    log_p = (student / temperature).log_softmax(1)
    log_q = (teacher.detach() / temperature).log_softmax(1)
    return temperature**2 * kl_div(log_p, log_q, reduction="batchmean", log_target=True)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Which one is the input, which the target?</summary>
#
# The divergence weighs each class by the distribution that is right. Which of the two is the truth here?
# </details>
# <details><summary>The number is too small by the number of classes</summary>
#
# What does `reduction="mean"` divide by? Read the paragraph about `kl_div` again.
# </details>
# <details><summary>nan for large logits</summary>
#
# Where is a logarithm taken of something that has become 0? `log_target=True` lets you hand over logarithms on both
# sides.
# </details>

# %% check="losses-distillation"
check("losses-distillation", distillation_loss)

# %% [markdown]
# ## Clipping
#
# **Idea.** One bad batch can send a gradient a hundred times as long as usual, and one step along it undoes an hour.
# *Clipping by norm* looks at the gradients of all parameters as one long vector $g$. If it is longer than
# `max_norm` it is shortened to that length, all parts by the same factor, so that its direction stays:
#
# $$g \leftarrow g \cdot \min\left(1, \frac{\text{max\_norm}}{\lVert g \rVert + 10^{-6}}\right)$$
#
# *Clipping by value* cuts each number by itself, and so turns the direction.

# %% figure="clipping"
"""Arrows from the origin. The gradient (4, 1) reaches far outside a circle of radius 2 and a square of half-width 1.
Clipped by norm it ends on the circle, in the same direction. Clipped by value it ends in the square's corner (1, 1),
in another direction."""
figure, axes = plt.subplots(figsize=(5.4, 2.8))
gradient = np.array([4.0, 1.0])
ends = [
    (gradient, "#555555", "gradient (4, 1)", (3.3, 1.15)),
    (gradient * 2 / np.linalg.norm(gradient), "#0072b2", "by norm, 2", (2.1, 0.2)),
    (np.clip(gradient, -1, 1), "#d55e00", "by value, 1", (0.3, 1.12)),
]
for end, color, name, place in ends:
    axes.annotate("", end, (0, 0), arrowprops={"arrowstyle": "->", "color": color, "lw": 2.2})
    axes.text(*place, name, color=color, fontsize=9)
axes.add_patch(plt.Circle((0, 0), 2, fill=False, color="#0072b2", linestyle=":"))
axes.add_patch(plt.Rectangle((-1, -1), 2, 2, fill=False, color="#d55e00", linestyle="--"))
axes.set(xlim=(-2.2, 4.8), ylim=(-2.1, 2.1), aspect="equal")

# %% [markdown]
# Where it stands decides what it does: **after** `backward`, when the gradients are complete, and **before** the
# optimizer's `step`, which uses them up. It returns the norm as it was *before* clipping, the most useful number to
# write into a log: between 1 and 10 all is well, above 100 have a look, above 1,000 stop.
#
# And if the norm is not finite? With one `inf` in it the norm is `inf`, the factor 0, every finite gradient becomes 0,
# and `inf` times 0 is `nan`. With one `nan` the factor is `nan`, and so is everything afterwards: this is how clipping
# made our story worse. `error_if_nonfinite=True` stops before anything is changed.
#
# A trap for Python: `model.parameters()` is a *generator*. Whoever walks over it once for the norm finds nothing left
# to scale on the second walk, and no error says so.
#
# The norm itself is not the point here, and is given: `p_norm(numbers, p)`, of an array or of a list of numbers.


# %% given="p-norm"
def p_norm(numbers: Any, p: float) -> float:
    """The p-norm of an array or of a list of numbers, as a Python float: 0 where there are none."""
    if p == 0:
        raise ValueError("there is no norm with p=0: give a number above 0, or math.inf")
    x, p = np.asarray(numbers).reshape(-1), float(p)
    if p == 2:
        return math.sqrt(np.vdot(x, x))
    if p == math.inf:
        return float(np.abs(x).max(initial=0))
    return float((np.abs(x) ** p).sum() ** (1 / p))


# %% [markdown]
# ### Exercise 5.7: `clip_grad_norm_`
# Medium, 20 minutes, 4 points.


# %% exercise="losses-clip-norm"
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale the gradients of all parameters together, in place, so that their norm is max_norm
    at the most.

    parameters          one tensor, or many, perhaps from a generator; those whose .grad is None
                        are passed over
    norm_type           2 for the root of the sum of squares, 1 for the sum of sizes, math.inf
                        for the largest size, or any p above 0: the sum of |g|**p, to the power
                        1 / p
    error_if_nonfinite  raise RuntimeError where the norm is nan or inf, and leave the gradients
                        as they are
    returns             the norm before clipping, a tensor without axes; 0 where there are no
                        gradients

    The factor is max_norm / (norm + 1e-6), and never above 1. `t.mul_(number)` changes a tensor
    in place.

    PyTorch: torch.nn.utils.clip_grad_norm_
    """
    ### BEGIN SOLUTION
    parameters = [parameters] if isinstance(parameters, plain.Strided) else parameters
    grads = [p.grad for p in parameters if p.grad is not None]
    if not grads:
        return Tensor(np.zeros((), np.float32))
    norm = p_norm([p_norm(g.array, norm_type) for g in grads], norm_type)
    if error_if_nonfinite and not math.isfinite(norm):
        refused = f"the norm of the gradients is {norm}, so they cannot be clipped"
        raise RuntimeError(f"{refused}: find out where it began")
    factor = float(max_norm) / (norm + 1e-6)
    if not factor >= 1:  # below 1, or nan
        for g in grads:  # as g.mul_(factor) does, without its questions
            np.multiply(g.array, factor, out=g.array)
            g.storage.version += 1
    return grads[0].new(np.asarray(norm, grads[0].dtype))
    ### END SOLUTION


# %% [markdown]
# <details><summary>Each parameter ends up with length max_norm</summary>
#
# How many norms does the formula speak of? Walk twice: once over all gradients for *one* norm, once to scale.
# </details>
# <details><summary>The norm is returned, and nothing was scaled</summary>
#
# In which case was that: with a generator? Make a list of it first. Or did you scale a copy, as `p.grad * factor` makes
# one?
# </details>
# <details><summary>The norm of norms, for p other than 2</summary>
#
# Take the p-norm of each gradient, then the p-norm of these numbers. For p = inf both steps are a maximum.
# </details>

# %% check="losses-clip-norm"
check("losses-clip-norm", clip_grad_norm_)


# %% given="clip-value"
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Cut every element of every gradient to [-clip_value, clip_value], in place."""
    for p in [parameters] if isinstance(parameters, plain.Strided) else parameters:
        if p.grad is not None:
            p.grad.copy_(p.grad.clamp(-clip_value, clip_value))


# %% [markdown]
# ## Three killers, and how to find them
#
# **Idea.** Whatever produced a first `nan` or `inf` was nearly always one of three things.
#
# - **An exploding product.** Many factors, each harmless: a hundred of 2,000 are beyond any float. Calculate with
#   logarithms, where a product is a sum and a power is a product.
# - **Saturation.** A function that has become flat in all of its digits, followed by its inverse: `log` of a sigmoid,
#   `log` of a softmax, `1 - p`. Make one formula of the two, as in the last section.
# - **A zero denominator.** A mean over nothing, a vector of length 0, a variance of one sample. Decide what the answer
#   is there, and mind the *gradient*: the slope of $\sqrt{x}$ at 0 is infinite, whatever is done with the root
#   afterwards.
#
# The geometric mean of $n$ positive numbers is the $n$-th root of their product, a fair average of speed-ups, say. A
# colleague has written it down as it stands. It works for five numbers.


# %%
def geometric_mean_as_it_stands(x):
    return x.prod(dim=-1) ** (1 / x.shape[-1])


for n in (5, 50, 500):
    print(f"{n:3d} factors of 0.1:", geometric_mean_as_it_stands(gradwright.full((n,), 0.1)).item())

# %% [markdown]
# ### Exercise 5.8: `geometric_mean`
# Easy, 10 minutes, 2 points.


# %% exercise="losses-geometric-mean"
def geometric_mean(x: Tensor) -> Tensor:
    """The n-th root of the product of n numbers, along the last axis.

    x        shape (..., n), positive floats; there may be thousands of them
    returns  shape (...), of x's dtype, through which gradients pass

    >>> geometric_mean(gradwright.tensor([2.0, 8.0])).item()
    4.0

    PyTorch: no such function
    """
    ### BEGIN SOLUTION
    return x.log().mean(dim=-1).exp()
    ### END SOLUTION


# %% [markdown]
# <details><summary>How can I avoid the product?</summary>
#
# What is the logarithm of a product? And of an n-th root? Take both at once, on paper, and go back at the end.
# </details>

# %% check="losses-geometric-mean"
check("losses-geometric-mean", geometric_mean)

# %% [markdown]
# The next one is the third killer in its meanest form. Rows are to be scaled to length 1, and a row of zeros is to stay
# one. The obvious mend is to choose: `where(length > 0, x / length, 0)`. The output is right everywhere. The gradient
# of that row is `nan`: on the way back, `where` sends a 0 into the branch that was not chosen, there it meets the
# infinite slope of the root, and 0 times `inf` is `nan`. **Choosing afterwards does not help; the bad number must never
# be made.**
#
# ### Exercise 5.9: `normalize`
# Medium, 15 minutes, 3 points.


# %% exercise="losses-normalize"
def normalize(x: Tensor, eps: float = 1e-12) -> Tensor:
    """Every row divided by its length, or by eps where the row is shorter than that.

    x        shape (N, D), floats
    eps      a small positive number
    returns  shape (N, D), of x's dtype; finite, with a finite gradient, for rows of zeros too

    A row as short as eps is divided by a constant, so its gradient is simply that of x / eps.

    >>> normalize(gradwright.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]

    PyTorch: torch.nn.functional.normalize
    """
    ### BEGIN SOLUTION
    squares = (x * x).sum(dim=1, keepdim=True)
    return x / squares.clamp(min=eps**2).sqrt()
    ### END SOLUTION


# %% [markdown]
# <details><summary>The output is right, and a row of zeros has a gradient of nan</summary>
#
# Of which number do you take the root there, and what is the slope of the root at that number? Make it larger *before*
# the root.
# </details>
# <details><summary>Long rows are a little too short</summary>
#
# Did you add eps, or take the larger of the two? Added, it changes every row.
# </details>

# %% check="losses-normalize"
check("losses-normalize", normalize)

# %% [markdown]
# **Who was the first?** By the time a loss is `nan`, hundreds of operations have handed it on. Interesting is only the
# one whose inputs were in order and whose output was not. So let somebody stand at the door and look at each.
#
# What counts as *made here*? `nan` from inputs without a `nan` does, also if an `inf` was among them: `inf - inf`. An
# `inf` from inputs that are all finite does: `log(0)`. An `inf` handed on is not made here: attention masks put `-inf`
# into a tensor on purpose, and the softmax behind them takes it out again. Where an operation makes both, `nan` is the
# one to report.
#
# ### Exercise 5.10: `made_here`
# Easy, 10 minutes, 2 points.


# %% exercise="losses-made-here"
def made_here(inputs: Sequence[np.ndarray], output: np.ndarray) -> str:
    """Whether an operation made a number that is none.

    inputs   arrays, of any dtype
    output   what an operation made of them
    returns  "nan" where the output has a nan and no input has; otherwise "inf" where the output
             has an inf (of either sign) and all inputs are finite; otherwise ""

    >>> made_here([np.array([0.0, 1.0])], np.array([-np.inf, 0.0]))
    'inf'

    PyTorch: what torch.autograd.detect_anomaly asks, for nan and on the way back alone
    """
    ### BEGIN SOLUTION
    if np.isnan(output).any() and not any(np.isnan(x).any() for x in inputs):
        return "nan"
    if np.isinf(output).any() and all(np.isfinite(x).all() for x in inputs):
        return "inf"
    return ""
    ### END SOLUTION


# %% [markdown]
# <details><summary>It reports an inf that was only handed on</summary>
#
# Look at the inputs too: is one of them not finite? Then this operation is not the culprit for an `inf`.
# </details>
# <details><summary>inf - inf is not reported</summary>
#
# For a `nan` ask whether the inputs hold a *nan*, not whether they are finite.
# </details>

# %% check="losses-made-here"
check("losses-made-here", made_here)

# %% [markdown]
# The rest is a mode at the door of chapter 03, and is given. It looks at what every operation makes, forward and
# backward, and remembers with each operation the line of *your* code that called it, so that a gradient which turns bad
# much later still points at a line that you can change.


# %% given="anomaly"
class detect_anomaly(Mode):
    """In a `with detect_anomaly():` block, the first operation that makes a nan or an inf raises RuntimeError, forward
    or backward. The message names it, and the line that called it. Everything takes longer meanwhile."""

    def forward(self, function: Callable, inputs: tuple, options: dict) -> Any:
        line = calling_line()
        with np.errstate(all="ignore"):  # NumPy would warn of the same, without saying where
            out = super().forward(function, inputs, options)
        if isinstance(out, plain.Strided):
            arrays = [x.array for x in inputs if isinstance(x, plain.Strided)]
            report_anomaly(function.__name__, "its output", arrays, out.array, line)
            node = getattr(out, "grad_fn", None)
            if node is not None:
                node.line = line
        return out

    def backward(self, operation: Operation, grad: np.ndarray) -> Any:
        with np.errstate(all="ignore"):
            results = super().backward(operation, grad)
        name = f"the backward of {getattr(operation, 'function', type(operation)).__name__}"
        line = getattr(operation, "line", "called before detect_anomaly was on")
        for i, result in enumerate(results if isinstance(results, tuple) else (results,)):
            if result is not None:
                report_anomaly(name, f"the gradient of input {i}", [grad], result, line)
        return results


def report_anomaly(name: str, what: str, inputs: Sequence[np.ndarray], output: np.ndarray, line: str) -> None:
    kind = made_here(inputs, output)
    if kind:
        wrong = np.isnan(output) if kind == "nan" else np.isinf(output)
        place = tuple(np.argwhere(wrong)[0].tolist())
        where = f", of shape {output.shape}, at {place}" if output.ndim else ""
        raise RuntimeError(f"{name} made {kind} in {what}{where}: it got no {kind} from outside.\n{line}")


def calling_line() -> str:
    """The innermost line outside the framework, as whoever wrote it knows it."""
    frame = sys._getframe(2)  # past this function and the mode
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("gradwright."):
        frame = frame.f_back
    file, number = frame.f_code.co_filename, frame.f_lineno
    return f"{file_as_known(file)}, line {number}: {linecache.getline(file, number).strip()}"


def file_as_known(file: str) -> str:
    """A file's name; of a cell, which lies in a temporary file, the number that stands beside it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    cell = shell and shell.compile.format_code_name(file)
    return " ".join(cell) if cell else Path(file).name


class set_detect_anomaly:
    """Anomaly detection on or off, as `mode` says: from the call on, or for a with block."""

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(f"set_detect_anomaly takes True or False, and got {mode!r}")
        enabled, self.before = state.now
        others = tuple([other for other in self.before if not isinstance(other, detect_anomaly)])
        state.now = enabled, (*others, detect_anomaly()) if mode else others

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        state.now = state.enabled, self.before


# %% [markdown]
# All three killers are in the next model. Each by itself is plausible. Run it and read the last line of the error; mend
# what it names with what you have written (`geometric_mean`, `normalize`, and `binary_cross_entropy_with_logits` on the
# logits), and run again, until a loss comes out and the gradients are finite.


# %%
def similarity_loss(gains, features, weights, truth):
    length = (features * features).sum(dim=1, keepdim=True).sqrt()
    directions = gradwright.where(length > 0, features / length.clamp(min=1e-30), 0.0)
    scale = gains.prod() ** (1 / gains.numel())
    p = (scale * (directions @ weights)).sigmoid()
    return -(truth * p.log() + (1 - truth) * (1 - p).log()).mean()


rng = np.random.default_rng(0)
gains = gradwright.full((300,), 30.0, requires_grad=True)
rows = np.vstack([rng.standard_normal((3, 4)), np.zeros((1, 4))])
features = gradwright.tensor(rows.tolist(), requires_grad=True)
weights = gradwright.tensor([9.0, -9.0, 9.0, -9.0], requires_grad=True)
truth = gradwright.tensor([0.0, 1.0, 1.0, 0.0])

with detect_anomaly():
    loss = similarity_loss(gains, features, weights, truth)
    loss.backward()
print(loss.item())

# %% [markdown]
# Three rounds: `prod` overflows; `log` meets a probability that has saturated; and the backward of `sqrt`, in a row
# that `where` had put aside, turns 0 times infinity into `nan`. The loss was finite in the third round, so nobody who
# watches the loss alone would have seen it.
#
# In our story the search would have been shorter still. The teacher's logits came into the program as `inf`, so no
# operation made them. An `assert` behind the data reader, one line, is the cheapest anomaly detection there is.

# %% [markdown]
# ## As modules
#
# A loss function with its arguments fixed is often handier as a module, made once and then called. They do nothing of
# their own. Class weights are *buffers*: they are saved with a model and converted with it, and nothing trains them.


# %% given="modules"
class Loss(Module):
    """What all losses have: how the losses of single elements are reduced."""

    def __init__(self, reduction: str = "mean"):
        super().__init__()
        refuse_reduction(reduction, ("mean", "sum", "none", "batchmean"))
        self.reduction = reduction


class CrossEntropyLoss(Loss):
    """cross_entropy with its arguments kept."""

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(Loss):
    """nll_loss with its arguments kept."""

    def __init__(self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean"):
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class BCEWithLogitsLoss(Loss):
    """binary_cross_entropy_with_logits with its arguments kept."""

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean", pos_weight: Tensor | None = None):
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class MSELoss(Loss):
    """mse_loss with its reduction kept."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return mse_loss(input, target, reduction=self.reduction)


class L1Loss(Loss):
    """l1_loss with its reduction kept."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return l1_loss(input, target, reduction=self.reduction)


class HuberLoss(Loss):
    """huber_loss with its arguments kept."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(Loss):
    """kl_div with its arguments kept."""

    def __init__(self, reduction: str = "mean", log_target: bool = False):
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


# %% [markdown]
# ## In PyTorch
#
# Everything here has its name and its numbers there: `torch.nn.functional.cross_entropy`, `torch.nn.CrossEntropyLoss`,
# `torch.nn.utils.clip_grad_norm_`, `torch.autograd.detect_anomaly`. The last asks less: `nan` alone, and on the way
# back alone. It adds the stack of the forward call, as we do.
#
# It also has `binary_cross_entropy`, for probabilities, which cuts its logarithms off at -100 so as not to be infinite:
# the loss is then finite and the gradient still wrong. Prefer logits. On a GPU the norm of a gradient is a number that
# the processor does not have yet; `clip_grad_norm_` returns a tensor, and whoever prints it at every step waits at
# every step.

# %% [markdown]
# ## Check yourself
#
# Two questions, a sentence or two each, in a cell of your own.
#
# 1. A team trains on sentences padded to the length of the longest, with `ignore_index` for the padding, and
#    accumulates gradients over four micro-batches, the mean loss of each divided by four. Which sentences weigh too
#    much?
# 2. The norm that clipping returns is 0.3 every step, with `max_norm=1.0`, and then `nan` for good. What do you run
#    next, and on which step?
#
# You can now
#
# - [x] compute a softmax, its logarithm and a cross entropy that survive logits of 10,000 and masks of `-inf`;
# - [x] read every argument of `cross_entropy`, and say what its mean divides by;
# - [x] write the binary, the robust and the distilled loss, each with its gradient;
# - [x] clip a gradient, and say what happens when it is not finite;
# - [x] find the operation that made the first `nan`, and mend it.
#
# When all checks are right, compare with [the solution of this chapter](../../solutions/05_losses.py). In a week, try
# `autograder fresh 05`. Next come the optimizers, which turn gradients into steps.
