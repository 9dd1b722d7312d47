# %% [markdown]
# # 10 Mixed precision
#
# ## Why
#
# A second task was added to a network that had trained well: one more head, its loss added to the total with a weight
# of 0.00001, so that it would not disturb the first. In float32 both tasks learned. Then the training moved to 16 bits.
# The loss of the first task fell as before, that of the second was printed, finite and plausible, and it never moved
# again. Nothing had failed. The gradients of the second head were of the order of 0.00000001, and float16 has no
# number between 0 and 0.00000006: they had been rounded to zero, every one of them, on every step.
#
# Half the bits are half the memory, and on hardware that is made for it a multiple of the speed. The price is range and
# digits, and it is paid silently. After this chapter you can
#
# - round to float16 and to bfloat16 by hand, and say what each cannot hold;
# - say which operations may round to 16 bits and which must not, and have the engine see to it;
# - count the memory that a training saves, and the part that it does not save;
# - keep master weights, and scale a loss so that its gradients survive;
# - write a gradient scaler that notices an overflow, skips the step, and moves nothing.
#
# Allow about three hours. Nothing here gets faster: a CPU under NumPy has no 16-bit arithmetic worth the name. What we
# measure is memory, range and rounding, which are the same on every machine.

# %%
import time
from pathlib import Path

import matplotlib.pyplot as plt

import gradwright
from autograder import check
from gradwright import nn, optim
from gradwright.nn import functional as F
from gradwright.widgets import number_line

gradwright.chapter(10)

# %% given="imports"
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ContextDecorator
from functools import cache
from typing import Any, Self

import numpy as np

from gradwright.chapters import autodiff, layers, losses, operations
from gradwright.chapters import tensor as plain
from gradwright.chapters.autodiff import OPERATIONS, Operation
from gradwright.chapters.losses import clip_grad_norm_
from gradwright.chapters.operations import Mode, Tensor
from gradwright.chapters.tensor import float16

# %% [markdown]
# ## Sixteen bits
#
# **Idea.** A floating-point number is a sign, an exponent and a fraction: $\pm\, 2^e \cdot 1.f$. Sixteen bits can be
# shared out in two ways that are in use.
#
# | format | exponent | fraction | largest | smallest normal | smallest | step above 1 |
# |---|---|---|---|---|---|---|
# | float32 | 8 bits | 23 bits | 3.4e38 | 1.2e-38 | 1.4e-45 | 0.00000012 |
# | float16 | 5 bits | 10 bits | 65504 | 0.000061 | 0.00000006 | 0.00098 |
# | bfloat16 | 8 bits | 7 bits | 3.4e38 | 1.2e-38 | 9.2e-41 | 0.0078 |
#
# float16 spends its bits on digits, three of them, and pays with range. bfloat16 has float32's range, and hardly more
# than two digits. Between two powers of two the numbers of a format are evenly spaced, and at each power the spacing
# doubles. Below the smallest normal number it stays as it is, down to 0: the *subnormal* numbers, which have fewer and
# fewer digits.

# %% figure="ranges"
"""Three bars on a logarithmic axis from 2 to the minus 150 to 2 to the 130. float32 and bfloat16 reach from 2 to the
minus 126 to 2 to the 128, with a pale part of subnormal numbers below, down to 2 to the minus 149 and minus 133.
float16 is a short bar from 2 to the minus 14 to 2 to the 16, with subnormal numbers down to 2 to the minus 24."""
figure, axes = plt.subplots(figsize=(7, 1.9))
bars = [("float32", -149, -126, 128, "#0072b2"), ("bfloat16", -133, -126, 128, "#009e73")]
for y, (_, low, normal, high, color) in enumerate([*bars, ("float16", -24, -14, 16, "#d55e00")]):
    axes.barh(y, high - normal, left=normal, color=color, height=0.6)
    axes.barh(y, normal - low, left=low, color=color, height=0.6, alpha=0.35, hatch="//")
axes.set_yticks(range(3), ["float32", "bfloat16", "float16"])
axes.set_xticks([-126, -24, 16, 128], ["$2^{-126}$", "$2^{-24}$", "$2^{16}$", "$2^{128}$"])
axes.grid(False)

# %% [markdown]
# Four facts, each of which has ended a training. Guess each line before you run it.

# %%
print("0.00000001 is", np.float16(1e-8), "  1 + 0.0001 is", np.float16(1) + np.float16(1e-4))
with np.errstate(over="ignore"):
    print("70000 is", np.float16(70_000))
total, tenth = np.float16(0), np.float16(0.1)
for _ in range(10_000):
    total = total + tenth
print("0.1, added 10,000 times, is", total)

# %% [markdown]
# The last one is the slow kind: at 256 the spacing is 0.25, a tenth is less than half of it, and the sum stands still.
#
# **Rounding** takes the nearest number of the format; of two that are equally near, the one whose last bit is 0
# (*nearest even*). So all it takes is the spacing around $x$. For $2^e \le |x| < 2^{e+1}$ it is $2^{e-10}$ in float16,
# but never less than $2^{-24}$, that of the subnormal numbers. Then $x$ is divided by it, rounded to a whole number,
# and multiplied by it again. What ends beyond 65504 becomes infinite. By hand: 0.1 lies between $2^{-4}$ and $2^{-3}$,
# the spacing is $2^{-14}$, $0.1 \cdot 2^{14} = 1638.4$, which is rounded to 1638, and $1638 \cdot 2^{-14} =
# 0.0999755859375$.
#
# `np.rint` rounds to nearest even, `np.frexp(x)` returns $m$ and $e$ with $x = m \cdot 2^e$ and $\frac12 \le |m| < 1$,
# and `np.ldexp(1.0, n)` is $2^n$.
#
# ### Exercise 10.1: `to_float16`
# Medium, 25 minutes, 4 points.


# %% exercise="precision-float16"
def to_float16(x: np.ndarray) -> np.ndarray:
    """Each number rounded to the nearest that float16 has, to even where two are equally near.

    x        a float32 array of any shape
    returns  a float32 array of the same shape, which holds numbers of float16 alone: inf with
             x's sign from 65520 on, 0 with x's sign for what is nearer to 0 than to 2**-24; inf
             and nan stay

    Not by way of NumPy's own float16.

    >>> to_float16(np.array([0.1, 1e-8, 70000.0], np.float32)).tolist()
    [0.0999755859375, 0.0, inf]

    PyTorch: x.half().float()
    """
    ### BEGIN SOLUTION
    _, exponent = np.frexp(x)
    spacing = np.ldexp(1.0, np.maximum(exponent - 11, -24))
    rounded = np.rint(x / spacing) * spacing
    return np.where(np.abs(rounded) > 65504, np.copysign(np.inf, x), rounded).astype(np.float32)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Everything is off by a factor of two at the most</summary>
#
# In which interval does frexp's fraction lie, and in which the $1.f$ of the text? By how much do the two exponents
# differ?
# </details>
# <details><summary>Tiny numbers come out with too many digits</summary>
#
# What is the spacing below $2^{-14}$? It does not go on shrinking. `np.maximum` can hold an exponent up.
# </details>

# %% check="precision-float16"
check("precision-float16", to_float16)

# %% [markdown]
# bfloat16 is float32 with the lower half of its bits cut off: sign and exponent are in the same place, and the fraction
# loses its last 16 bits. Here rounding is done on the bits themselves. Seen as whole numbers, two neighbours of the
# format are $2^{16}$ apart, and an overflow of the fraction runs into the exponent by itself, as it should:
#
# - add just under half a step, `0x7FFF`, and one more if the last bit that stays is 1: that is nearest even;
# - then set the lower 16 bits to 0.
#
# `x.view(np.uint32)` shows the bits of a float32 array as whole numbers, and `.view(np.float32)` turns them back. One
# kind of number must not be treated so: for a nan the addition can run over and give a zero.
#
# NumPy has no bfloat16. We **emulate** it: float32 arrays that hold only numbers of bfloat16. Range and rounding are
# the true ones; the memory is not halved, and where this chapter counts memory it counts float16.
#
# ### Exercise 10.2: `to_bfloat16`
# Medium, 15 minutes, 3 points.


# %% exercise="precision-bfloat16"
def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Each number rounded to the nearest that bfloat16 has, to even where two are equally near.

    x        a float32 array of any shape
    returns  a float32 array of the same shape, which holds numbers of bfloat16 alone; inf and
             nan stay

    >>> to_bfloat16(np.array([0.1, 1.00390625, 1.01171875], np.float32)).tolist()
    [0.10009765625, 1.0, 1.015625]

    PyTorch: x.bfloat16().float()
    """
    ### BEGIN SOLUTION
    bits = x.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return np.where(np.isnan(x), x, rounded.view(np.float32))
    ### END SOLUTION


# %% [markdown]
# <details><summary>Only ties are wrong</summary>
#
# Exactly half a step is `0x8000`. If you add that, which way do all ties go? Which bit decides, and where does it
# stand?
# </details>
# <details><summary>A nan has become 0, or inf</summary>
#
# Put the nans back at the end: `np.where`.
# </details>

# %% check="precision-bfloat16"
check("precision-bfloat16", to_bfloat16)

# %% [markdown]
# ## Sixteen bits to store, thirty-two to compute
#
# **Idea.** The sum that stood still at 256 is inside every matrix product. Hardware for 16 bits therefore has wide
# accumulators: it reads float16, multiplies and adds up in float32, and rounds **once**, when it writes. We do the
# same: widen, compute, narrow. It is also the only way to a bearable speed, for NumPy multiplies float16 matrices
# number by number, without the library that does it for float32:

# %%
rng = np.random.default_rng(0)
a, b = (rng.standard_normal((128, 128)).astype(np.float16) for _ in range(2))


def shortest(function, times=5):
    """Seconds that a call takes at the least."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def widened():
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)


ratio = shortest(lambda: a @ b) / shortest(widened)
print(f"NumPy's own float16 product takes {ratio:.0f} times as long")

# %% [markdown]
# ### Exercise 10.3: `in_float32`
# Easy, 10 minutes, 2 points.


# %% exercise="precision-wide"
def in_float32(
    function: Callable,
    arrays: Sequence[np.ndarray | None],
    narrow: Callable[[np.ndarray], np.ndarray],
) -> Any:
    """function(*arrays), computed in float32 and then narrowed.

    function  takes as many arrays as there are, and returns an array, or a tuple of arrays and None
    arrays    float16 arrays are widened to float32 first; whole numbers, other floats and None
              are handed over as they are
    narrow    rounds an array to 16 bits
    returns   what function returns, with every array in it narrowed

    >>> a = np.full((1, 4096), 0.5, np.float16)
    >>> in_float32(lambda x: x.sum(1), [a], lambda x: x.astype(np.float16))
    array([2048.], dtype=float16)

    PyTorch: what its 16-bit kernels do inside
    """
    ### BEGIN SOLUTION
    wide = [a.astype(np.float32) if a is not None and a.dtype == np.float16 else a for a in arrays]
    with np.errstate(over="ignore", invalid="ignore"):
        result = function(*wide)
        if isinstance(result, tuple):
            return tuple([None if x is None else narrow(x) for x in result])
        return narrow(result)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Only some of the results are float16</summary>
#
# Which forms can a result have? A tuple needs a look at each of its parts, and None stays None.
# </details>
# <details><summary>Class ids have become floats</summary>
#
# Which arrays are to be widened, and how do you ask an array for its kind?
# </details>

# %% check="precision-wide"
check("precision-wide", in_float32)

# %% [markdown]
# From here it is a short way to operations. `Narrowed` is mixed into the class of any operation of the chapters before:
# what it saves for backward are the 16-bit inputs, and both ways through it go by your function. A gradient that comes
# out of it is rounded to 16 bits too, which is where the second head of our story lost everything.


# %% given="bfloat16"
class BFloat16:
    """The format bfloat16, for autocast. No tensor has it as its dtype: it is emulated in float32."""

    def __repr__(self) -> str:
        return "gradwright.bfloat16"


bfloat16 = BFloat16()


def round_bfloat16(t: plain.Tensor) -> plain.Tensor:
    return t.new(to_bfloat16(t.array.astype(np.float32, copy=False)))


class RoundBfloat16(Operation, of=round_bfloat16):
    """As for every change of format, the gradient passes."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad


def to_format(t: Any, dtype: Any) -> Any:
    """A tensor in a format, a recorded step; anything else as it is."""
    if not isinstance(t, plain.Strided):
        return t
    return t.apply(round_bfloat16, t) if dtype is bfloat16 else t.to(dtype)


def narrow_float16(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float16)


# %% given="narrowed"
class Narrowed:
    """Mixed in before an Operation: 16 bits to keep, 32 to compute."""

    narrow: Callable[[np.ndarray], np.ndarray]

    def forward(self, *inputs: Any, **options: Any) -> plain.Tensor:
        return computed_wide(super().forward, self.narrow, inputs, options)

    def save(self, *tensors: Any) -> None:
        """Of an input, the 16 bits that it came in."""
        super().save(*[getattr(t, "came_as", t) for t in tensors])

    @property
    def saved(self) -> list[np.ndarray | None]:
        return [a.astype(np.float32) if a is not None and a.dtype == np.float16 else a for a in super().saved]

    def backward(self, grad: np.ndarray) -> Any:
        return in_float32(super().backward, [grad], self.narrow)


def computed_wide(function: Callable, narrow: Callable, inputs: Sequence[Any], options: Mapping) -> plain.Tensor:
    """A function of tensors, by way of in_float32."""
    first = next(x for x in inputs if isinstance(x, plain.Strided))

    def on_arrays(*arrays: np.ndarray | None) -> np.ndarray:
        wide = [stand_in(x, a) if isinstance(x, plain.Strided) else x for x, a in zip(inputs, arrays, strict=True)]
        return function(*wide, **options).array

    return first.new(in_float32(on_arrays, [x.array if isinstance(x, plain.Strided) else None for x in inputs], narrow))


def stand_in(t: Tensor, array: np.ndarray) -> Tensor:
    """A tensor on a wide copy of t's numbers, which asks for a gradient if t does and remembers t."""
    wide = t.new(array)
    wide._requires_grad, wide.came_as = t.requires_grad, t
    return wide


@cache
def narrowed(function: Callable, kind: type[Operation], dtype: Any) -> Callable:
    """The 16-bit form of a function that has an operation."""
    narrow = to_bfloat16 if dtype is bfloat16 else narrow_float16

    def recipe(*inputs: Any, **options: Any) -> plain.Tensor:
        return computed_wide(function, narrow, inputs, options)

    recipe.__name__ = function.__name__
    recipe.operation = type(kind.__name__, (Narrowed, kind), {"narrow": staticmethod(narrow)})
    return recipe


# %% [markdown]
# ## Who may round
#
# **Idea.** Matrix products cost nearly all of the time and most of the memory, and they are robust: each output is a
# sum over many terms, whose rounding errors cancel. Other operations are cheap and fragile. An exponential overflows
# float16 from 11.1 on. A sum over a batch loses digits, or stands still. A loss is one number on which everything
# hangs. So the operations are sorted into three:
#
# - **lower**: products (`@`, `addmm`, `linear`, `einsum`): inputs go down to 16 bits;
# - **float32**: exponentials, logarithms and powers, softmax, norms, losses, reductions: 16-bit inputs go up;
# - **the rest** (`+`, `relu`, `reshape`, ...) takes what comes. Two dtypes that meet are settled by chapter 01's rules.
#
# This sorting is *autocast*. It leaves whole numbers alone, and float64 as well: who asks for double precision means
# it.
#
# ### Exercise 10.4: `input_dtypes`
# Easy, 10 minutes, 3 points.


# %% exercise="precision-policy"
def input_dtypes(policy: str, dtypes: Sequence[np.dtype | None], low: Any) -> list:
    """The dtypes that an operation's inputs are to have.

    policy   "lower" or "float32" for operations of the two lists, "" for all others
    dtypes   those that the inputs have: any that NumPy knows, or None for an input that is no
             tensor
    low      the 16-bit format
    returns  a list as long as dtypes

    >>> input_dtypes("lower", [np.dtype("float32"), np.dtype("int64"), None], np.dtype("float16"))
    [dtype('float16'), dtype('int64'), None]

    PyTorch: what torch.autocast decides by
    """
    ### BEGIN SOLUTION
    target = {"lower": low, "float32": np.dtype("float32")}.get(policy)
    narrow = (np.dtype("float16"), np.dtype("float32"))
    return [target if target is not None and dtype in narrow else dtype for dtype in dtypes]
    ### END SOLUTION


# %% [markdown]
# <details><summary>float64 comes out as something else</summary>
#
# Which two dtypes are ever changed? Name them, and leave all others alone.
# </details>
# <details><summary>Operations of neither list are converted</summary>
#
# What are the inputs of an addition to become? Nothing else than they are.
# </details>

# %% check="precision-policy"
check("precision-policy", input_dtypes)

# %% [markdown]
# Your decision stands at the engine's one door: `autocast` is a *mode*, as anomaly detection was in chapter 05. For the
# length of a block every operation passes it, inputs are converted, and the conversion is recorded. So backward turns
# the gradient of a converted weight back into the **weight's** dtype: `weight.grad` is float32, whatever happened in
# between. Backward itself is called outside of the block: its operations use the formats that forward has chosen.


# %% given="autocast"
LOWER: set[Callable] = {plain.matmul, operations.product, operations.add_product, operations.einsum_of, layers.affine}
"""Functions whose inputs autocast turns into 16 bits. A later chapter adds its own."""

IN_FLOAT32: set[Callable] = {
    *(plain.exp, operations.expm1, plain.log, operations.log1p, plain.power, operations.rsqrt, operations.reciprocal),
    *(plain.sum_over, plain.mean_over, operations.var, operations.std, operations.norm, operations.prod),
    *(operations.cumsum, operations.logsumexp, operations.softmax, operations.log_softmax, operations.softplus_of),
    *(layers.normalize, layers.normalize_by),
    *(losses.mean_cross_entropy, losses.soft_cross_entropy, losses.squared_errors, losses.absolute_errors),
    *(losses.huber_errors, losses.bce_errors, losses.kl_errors, losses.kl_log_errors),
}
"""Functions whose 16-bit inputs autocast turns into float32. PyTorch's list for GPUs, with mean, var and std."""


class autocast(ContextDecorator, Mode):
    """In a `with autocast(dtype=float16):` block, or a function below `@autocast(...)`, products are taken in 16 bits.

    device_type  "cpu": there is no other device here
    dtype        float16, or bfloat16, the default, which is emulated in float32
    enabled      False: nothing is converted, also inside of a block where it would be
    raises       ValueError for another device or dtype
    """

    def __init__(self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True):
        if device_type != "cpu":
            raise ValueError(f"autocast for the device {device_type!r} is not offered: NumPy computes on the 'cpu'")
        if dtype is not None and dtype is not bfloat16 and plain.known_dtype(dtype) != float16:
            raise ValueError(f"autocast to {dtype} is not offered: use float16 or bfloat16")
        self.dtype = bfloat16 if dtype is None or dtype is bfloat16 else float16
        self.enabled = enabled
        self.before: list[tuple] = []

    def __enter__(self) -> Self:
        """The innermost block decides: those around it step aside."""
        enabled, modes = autodiff.state.now
        self.before.append(modes)
        autodiff.state.now = enabled, (*[mode for mode in modes if not isinstance(mode, autocast)], self)
        return self

    def __exit__(self, *exception: object) -> None:
        autodiff.state.now = autodiff.state.enabled, self.before.pop()

    def _recreate_cm(self) -> Self:
        """What ContextDecorator enters for each call: an object of its own, since threads find different things."""
        return type(self)(dtype=self.dtype, enabled=self.enabled)

    def forward(self, function: Callable, inputs: tuple, options: dict) -> Any:
        policy = "lower" if function in LOWER else "float32" if function in IN_FLOAT32 else ""
        if not (self.enabled and policy):
            return super().forward(function, inputs, options)
        wanted = input_dtypes(policy, [getattr(x, "dtype", None) for x in inputs], self.dtype)
        inputs = tuple([to_format(x, dtype) for x, dtype in zip(inputs, wanted, strict=True)])
        if policy == "lower" and {dtype for dtype in wanted if dtype is not None} == {self.dtype}:
            function = narrowed(function, OPERATIONS[function], self.dtype)
        return super().forward(function, inputs, options)


# %% [markdown]
# What comes out of each layer, and what is in the parameters' gradients:

# %%
gradwright.manual_seed(0)
model = nn.Sequential(
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.LayerNorm(64),
    nn.Linear(64, 10),
    nn.Softmax(1),
)
x = gradwright.randn(32, 64)
with autocast(dtype=gradwright.float16):
    for layer in model:
        x = layer(x)
        print(f"{type(layer).__name__:<10} {x.dtype}")
x.sum().backward()
print("gradients ", {p.grad.dtype.name for p in model.parameters()})

# %% [markdown]
# ## What it saves
#
# **Idea.** Training with Adam holds, for each parameter, its weight, its gradient and two means. For each example in
# the batch it holds what the operations have saved for backward: the activations. Autocast halves only the second part.
#
# | | float32 | autocast to float16 |
# |---|---|---|
# | each parameter: weight, gradient, two means | 4 + 4 + 8 bytes | 4 + 4 + 8 bytes |
# | its 16-bit copy, kept for backward | | 2 bytes |
# | each number saved for backward | 4 bytes | 2 bytes, 4 where an operation stays in float32 |
#
# So it pays where batches are large or sequences long, and costs two bytes a parameter. To count, walk the graph from
# the loss. Each node has `node.kept`, a list of triples (array, storage, version) or None, and `node.targets`, where
# its gradients go: nodes again, None, or leaves. A leaf has no `kept`; it has a `storage`.
#
# Three things would be counted wrongly by a plain sum. Two operations may save the **same storage**: it is there once.
# A **view** occupies its whole storage, so `storage.data.nbytes` counts and not the array's own size. And a saved
# weight is the **leaf's own** memory, there with or without a graph.
#
# ### Exercise 10.5: `saved_bytes`
# Medium, 20 minutes, 3 points.


# %% exercise="precision-memory"
def saved_bytes(root: Any) -> dict[str, int]:
    """How many bytes the graph behind a result keeps for backward, by dtype.

    root     a node: `loss.grad_fn`
    returns  the name of each dtype that is kept, as in storage.data.dtype.name, and the bytes of
             all storages that hold it. Each storage counts once; that of a leaf does not count.

    Nodes can be reached by several ways, and there may be 100,000 in a row.

    PyTorch: what hooks from torch.autograd.graph.saved_tensors_hooks can count
    """
    ### BEGIN SOLUTION
    seen, unseen, kept, owned = {id(root)}, [root], {}, set()
    while unseen:
        node = unseen.pop()
        if not hasattr(node, "kept"):
            owned.add(id(node.storage))
            continue
        kept.update({id(saved[1]): saved[1].data for saved in node.kept if saved is not None})
        for target in node.targets:
            if target is not None and id(target) not in seen:
                seen.add(id(target))
                unseen.append(target)
    counted: dict[str, int] = {}
    for key, data in kept.items():
        if key not in owned:
            counted[data.dtype.name] = counted.get(data.dtype.name, 0) + data.nbytes
    return counted
    ### END SOLUTION


# %% [markdown]
# <details><summary>Too many bytes where a value was used twice</summary>
#
# What did you remember: which nodes you have visited, or which storages you have counted? You need both.
# </details>
# <details><summary>The weights are in it</summary>
#
# You meet the leaves on your walk, but perhaps only after a node that has saved one. When can you tell?
# </details>

# %% check="precision-memory"
check("precision-memory", saved_bytes)

# %% [markdown]
# Measured on a network like the one that will read digits, wider, with 512 examples: every number that is saved for
# backward.

# %%
gradwright.manual_seed(0)
model = nn.Sequential(
    nn.Linear(64, 256),
    nn.ReLU(),
    nn.Linear(256, 256),
    nn.ReLU(),
    nn.Linear(256, 10),
)
x, ids = gradwright.randn(512, 64), gradwright.randint(0, 10, (512,))
for enabled in (False, True):
    with autocast(dtype=gradwright.float16, enabled=enabled):
        loss = F.cross_entropy(model(x), ids)
    counted = {name: f"{count:,}" for name, count in saved_bytes(loss.grad_fn).items()}
    print("autocast" if enabled else "float32 ", counted)

# %% [markdown]
# float32 is left over where it has to be: the loss keeps its logarithms, of 512 rows of ten.
#
# ## Master weights, and a scaled loss
#
# **Idea.** Why does the weight stay in float32? Because of the step. A weight of 0.1 has neighbours in float16 at a
# distance of 0.00006. A step of learning rate times gradient is often smaller than half of that, and then `p - step` is
# `p`: not a small step but none, however often it is repeated. So the weight that is updated, the *master*, is float32,
# and small steps add up in it; what the products use is its rounded copy, made anew after every step.
#
# And the gradients? Those of our second head lie below $2^{-25}$ and are rounded to 0. But the upper end of float16,
# from 1 to 65504, is nearly empty: gradients are small numbers. So the whole histogram is moved up. Multiply the
# **loss** by a constant $S$: by the chain rule every gradient on the way is multiplied by it too, and nothing is lost.
# Before the step, divide by $S$ again, **in float32**: divided in float16, the gradient falls back to where it came
# from.
#
# With $S = 1024$, a gradient of $10^{-8}$ travels as 0.00001, which float16 holds to about two digits. Divided by 1024
# in float32, it is $10^{-8}$ again.
#
# ### Exercise 10.6: `master_step`
# Medium, 15 minutes, 3 points.


# %% exercise="precision-master"
def master_step(
    weight: np.ndarray,
    master: np.ndarray,
    gradient: np.ndarray,
    lr: float,
    scale: float,
) -> None:
    """One step of plain descent, in place.

    weight    float16, what products use: afterwards the master, rounded
    master    float32, the weight that is moved along the gradient of the loss
    gradient  float16, of the scaled loss; it stays as it is
    scale     what the loss was multiplied by

    >>> weight, master = np.array([0.5], np.float16), np.array([0.5], np.float32)
    >>> master_step(weight, master, np.array([0.1], np.float16), lr=0.5, scale=1024.0)
    >>> weight, master
    (array([0.5], dtype=float16), array([0.4999512], dtype=float32))

    PyTorch: no such function; autocast keeps the weights themselves in float32
    """
    ### BEGIN SOLUTION
    master -= lr * (gradient.astype(np.float32) / scale)
    weight[...] = master
    ### END SOLUTION


# %% [markdown]
# <details><summary>The master is right for large gradients and stands still for small ones</summary>
#
# Which dtype has the gradient at the moment of the division? A float16 array divided by a Python number stays float16.
# </details>
# <details><summary>The weight is not the rounded master</summary>
#
# Was the step taken once, on the master, or on both? The weight needs no step of its own.
# </details>

# %% check="precision-master"
check("precision-master", master_step)

# %% [markdown]
# ## A scale that finds itself
#
# **Idea.** Which $S$? Too small, and gradients underflow without a sign. Too large, and some overflow: they become inf,
# which is a very clear sign. So begin too large, and let inf decide. This is *dynamic* loss scaling:
#
# - after backward, divide all gradients by the scale and look for inf and nan;
# - if there is one, **skip the step**: parameters, moments and step counters stay as they are; and halve the scale;
# - if there was none in 2,000 steps in a row, double it.
#
# First the look. Every gradient has to be divided, also those after the one that was found; and the search must not
# make what it searches for, as a sum of large finite numbers would.
#
# ### Exercise 10.7: `unscale`
# Easy, 10 minutes, 3 points.


# %% exercise="precision-unscale"
def unscale(gradients: Iterable[np.ndarray], scale: float) -> bool:
    """Divide all gradients by the scale, in place.

    gradients  float32 arrays of any shapes, perhaps from a generator
    scale      a positive number
    returns    whether any element of any of them is inf, -inf or nan; a Python bool

    >>> g = np.array([512.0, 1024.0], np.float32)
    >>> unscale([g], 1024.0), g
    (False, array([0.5, 1. ], dtype=float32))

    PyTorch: torch._amp_foreach_non_finite_check_and_unscale_
    """
    ### BEGIN SOLUTION
    found = False
    for g in gradients:
        found = found or not np.isfinite(g).all()
        g *= np.float32(1 / scale)
    return bool(found)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Some gradients are still scaled</summary>
#
# Do you return as soon as something is found? `any(...)` over a generator stops early, too.
# </details>
# <details><summary>A nan passes, or a finite gradient is refused</summary>
#
# `np.isfinite` answers for both kinds at once, element by element. What have you summed before asking?
# </details>

# %% check="precision-unscale"
check("precision-unscale", unscale)

# %% [markdown]
# Then the scale. It is kept as a float32 number, and it never grows to inf: where doubling would do that, it stays.
# The counter of good steps begins anew in both cases, after an overflow and after growth.
#
# ### Exercise 10.8: `next_scale`
# Easy, 10 minutes, 2 points.


# %% exercise="precision-scale"
def next_scale(
    scale: float,
    good_steps: int,
    found_inf: bool,
    growth_factor: float = 2.0,
    backoff_factor: float = 0.5,
    growth_interval: int = 2000,
) -> tuple[float, int]:
    """The scale after a step, and how many good steps there were in a row since it last changed.

    good_steps       how many before this one
    found_inf        whether this one was skipped
    growth_interval  as soon as this many were good, the scale is multiplied by growth_factor
    returns          the new scale, rounded to float32, and the new count; a float and an int

    >>> next_scale(1024.0, 3, False, growth_interval=4), next_scale(1024.0, 3, True)
    ((2048.0, 0), (512.0, 0))

    PyTorch: torch._amp_update_scale_
    """
    ### BEGIN SOLUTION
    if found_inf:
        return float(np.float32(scale * backoff_factor)), 0
    if good_steps + 1 < growth_interval:
        return scale, good_steps + 1
    with np.errstate(over="ignore"):
        grown = float(np.float32(scale * growth_factor))
    return (grown if np.isfinite(grown) else scale), 0
    ### END SOLUTION


# %% [markdown]
# <details><summary>The scale grows one step late</summary>
#
# This step counts as well. How many good steps are there after it?
# </details>

# %% check="precision-scale"
check("precision-scale", next_scale)

# %% [markdown]
# Both go into the scaler. What is left is **order**, for it is called from a loop that others write:
#
# | call | what it does | at the wrong moment |
# |---|---|---|
# | `scale(loss)` | multiplies | |
# | `unscale_(optimizer)` | divides the gradients, notes whether inf was found; optional | twice: would divide twice |
# | `step(optimizer)` | unscales if nobody has; steps unless inf was found | twice: would move twice |
# | `update()` | next scale; forgets what was found | before any look: would count a step that never was |
#
# Several optimizers can share one scaler. Each is looked at by itself, and an overflow among the gradients of one skips
# that one alone. The scale is common, and one overflow is enough to halve it.
#
# ### Exercise 10.9: `Scaler`
# Hard, 30 minutes, 5 points.


# %% exercise="precision-scaler"
class Scaler:
    """Scales a loss dynamically, and takes an optimizer's step or skips it."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
    ):
        self.current, self.good_steps = float(init_scale), 0
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval = growth_interval
        # by id(optimizer): those that were unscaled since the last update
        self.found_inf: dict[int, bool] = {}
        self.stepped: set[int] = set()  # id(optimizer) of those whose step was called since then

    def scale(self, loss: Any) -> Any:
        """The loss, a tensor, times the current scale."""
        ### BEGIN SOLUTION
        return loss * self.current
        ### END SOLUTION

    def unscale_(self, optimizer: Any) -> None:
        """Unscale the gradients of all of the optimizer's parameters, and note in found_inf
        whether one is inf or nan.

        raises  RuntimeError where this was done, or step called, for this optimizer since the
                last update

        gradients_of(optimizer) gives the arrays; unscale(arrays, scale) is the exercise above.
        """
        ### BEGIN SOLUTION
        if id(optimizer) in self.stepped:
            raise RuntimeError("unscale_() after step(): call it before, or call update() first")
        if id(optimizer) in self.found_inf:
            twice = "unscale_() was called twice for this optimizer"
            raise RuntimeError(f"{twice}: once a step is enough, then update()")
        self.found_inf[id(optimizer)] = unscale(gradients_of(optimizer), self.current)
        ### END SOLUTION

    def step(self, optimizer: Any) -> Any:
        """Unscale, if that has not been done; then optimizer.step(), unless inf or nan was found.

        returns  what optimizer.step() returns; None where it was skipped
        raises   RuntimeError where step was called for this optimizer since the last update
        """
        ### BEGIN SOLUTION
        if id(optimizer) in self.stepped:
            twice = "step() was called twice for this optimizer"
            raise RuntimeError(f"{twice}: call update() at the end of each step")
        if id(optimizer) not in self.found_inf:
            self.unscale_(optimizer)
        self.stepped.add(id(optimizer))
        return None if self.found_inf[id(optimizer)] else optimizer.step()
        ### END SOLUTION

    def update(self) -> None:
        """Go on to the next scale, and be ready for the next step.

        raises  RuntimeError where no optimizer was unscaled or stepped since the last update
        """
        ### BEGIN SOLUTION
        if not self.found_inf:
            nothing = "there was nothing to find inf in"
            raise RuntimeError(f"update() before any step(): {nothing}, so call step() first")
        self.current, self.good_steps = next_scale(
            self.current,
            self.good_steps,
            any(self.found_inf.values()),
            self.growth_factor,
            self.backoff_factor,
            self.growth_interval,
        )
        self.found_inf.clear()
        self.stepped.clear()
        ### END SOLUTION


# %% given="gradients-of"
def gradients_of(optimizer: Any) -> list[np.ndarray]:
    """The gradients of an optimizer's parameters as arrays, to be changed in place."""
    grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    for grad in grads:
        grad.storage.version += 1
    return [grad.array for grad in grads]


# %% [markdown]
# <details><summary>A second optimizer is skipped, or stepped, because of the first</summary>
#
# Where do you keep what was found: in one place, or one for each optimizer? `found_inf` is a dictionary.
# </details>
# <details><summary>Gradients are divided twice</summary>
#
# Who calls `unscale_` when the loop has called it already? How can `step` know?
# </details>
# <details><summary>The second round raises</summary>
#
# What has `update` to forget?
# </details>

# %% check="precision-scaler"
check("precision-scaler", Scaler)

# %% [markdown]
# `GradScaler` is your scaler with the rest of PyTorch's interface: lists of losses, a switch, its state to save, and
# sentences for a loop that has left something out.


# %% given="grad-scaler"
class GradScaler(Scaler):
    """Dynamic loss scaling with PyTorch's interface.

    device   "cpu": there is no other device here
    enabled  False: scale and unscale_ do nothing, step is the optimizer's own, get_scale() is 1
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if device != "cpu":
            raise ValueError(f"GradScaler for the device {device!r} is not offered: NumPy computes on the 'cpu'")
        if enabled and growth_factor <= 1:
            raise ValueError(f"growth_factor={growth_factor} does not grow: give it a number above 1")
        if enabled and backoff_factor >= 1:
            raise ValueError(f"backoff_factor={backoff_factor} does not back off: give it a number below 1")
        super().__init__(init_scale, growth_factor, backoff_factor, growth_interval)
        self.enabled, self.used = enabled, False

    def scale(self, outputs: Any) -> Any:
        """A tensor times the scale; of a list or tuple, or of any iterable, each in the same way."""
        if not self.enabled:
            return outputs
        if isinstance(outputs, plain.Strided):
            self.used = True
            # In float32, for float16 has no number as large as the scale.
            wide = outputs.float() if outputs.dtype == float16 else outputs
            return super().scale(wide).to(outputs.dtype)
        if not isinstance(outputs, Iterable):
            raise ValueError(f"scale takes a tensor or tensors in a list, and got a {type(outputs).__name__}")
        return (
            type(outputs)(map(self.scale, outputs)) if isinstance(outputs, list | tuple) else map(self.scale, outputs)
        )

    def unscale_(self, optimizer: Any) -> None:
        if not self.enabled:
            return
        self.refuse_unused("unscale_")
        if any(g.dtype == np.float16 for g in gradients_of(optimizer)):
            raise ValueError(
                "a float16 gradient cannot be unscaled, for it would underflow: keep the weights in float32"
            )
        super().unscale_(optimizer)
        if not gradients_of(optimizer):
            self.found_inf[id(optimizer)] = None  # nothing was looked at

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.enabled:
            return optimizer.step(*args, **kwargs)
        if args or kwargs:
            raise RuntimeError(
                "step takes no closure here: compute loss and gradients before, so that inf can be found"
            )
        self.refuse_unused("step")
        if id(optimizer) not in self.found_inf:
            self.unscale_(optimizer)
        if self.found_inf[id(optimizer)] is None:
            raise RuntimeError("step() found no gradient to look at: call scale(loss).backward() before")
        return super().step(optimizer)

    def update(self, new_scale: Any = None) -> None:
        """Go on to the next scale, or to new_scale, a number or a tensor of one element."""
        if not self.enabled:
            return
        self.refuse_unused("update")
        if new_scale is None:
            if self.found_inf and all(found is None for found in self.found_inf.values()):
                raise RuntimeError("update(), and no gradient was looked at: call scale(loss).backward(), then step()")
            super().update()
            return
        self.current = float(np.float32(float(new_scale)))
        self.found_inf.clear()
        self.stepped.clear()

    def refuse_unused(self, name: str) -> None:
        if not self.used:
            raise RuntimeError(f"{name}() before scale(): multiply the loss first, as in scaler.scale(loss).backward()")

    def is_enabled(self) -> bool:
        return self.enabled

    def get_scale(self) -> float:
        return self.current if self.enabled else 1.0

    def get_growth_factor(self) -> float:
        return self.growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self.growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self.backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self.backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self.growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self.growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and count, to be saved between two steps. Empty where the scaler is disabled."""
        if not self.enabled:
            return {}
        return {
            "scale": self.current,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
            "_growth_tracker": self.good_steps,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        if not self.enabled:
            return
        if not state_dict:
            raise RuntimeError("the state is empty: it was saved from a scaler with enabled=False")
        self.current, self.good_steps = state_dict["scale"], state_dict["_growth_tracker"]
        self.growth_factor, self.backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self.growth_interval = state_dict["growth_interval"]


# %% [markdown]
# ## The order of things, once more
#
# **Idea.** One training step has now eight calls, and again every wrong order runs.
#
# 1. `zero_grad`; the loss, under autocast.
# 2. `scaler.scale(loss).backward()`.
# 3. `scaler.unscale_(optimizer)`, **before** clipping. A gradient of $(3, 4)$ arrives as $(3072, 4096)$ under a scale
#    of 1024. Clipped to a norm of 1 and then unscaled, it is a thousandth of what was meant.
# 4. clip; `scaler.step(optimizer)`; `scaler.update()`.
# 5. The schedule, only if a step was taken: a warm-up that moves on over ten skipped steps has warmed nothing. The
#    scaler does not say so in words, but the scale is *smaller* after `update` than before exactly if it was skipped.
#
# ### Exercise 10.10: `scaled_step`
# Medium, 15 minutes, 4 points.


# %% exercise="precision-step"
def scaled_step(
    loss_of: Callable[[], Tensor],
    optimizer: Any,
    scaler: Any,
    parameters: Sequence[Tensor],
    max_norm: float,
    scheduler: Any,
) -> tuple[float, bool]:
    """One step of training with a scaled loss.

    loss_of     loss_of() computes the loss, a tensor of one element, under autocast
    optimizer   moves the parameters; old gradients may be left in them
    scaler      has scale, unscale_, step, update and get_scale
    parameters  whose gradients, those of the true loss, are clipped together to max_norm, by
                clip_grad_norm_
    scheduler   has step(), to be called after a step that was taken
    returns     the loss, not scaled, and whether the step was taken

    PyTorch: no such function; these lines are in every training loop
    """
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    loss = loss_of()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    clip_grad_norm_(parameters, max_norm)
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    taken = scaler.get_scale() >= before
    if taken:
        scheduler.step()
    return loss.item(), taken
    ### END SOLUTION


# %% [markdown]
# <details><summary>The clipped step is a thousand times too small</summary>
#
# Which gradients did `clip_grad_norm_` see: those of the loss, or those of the scaled loss?
# </details>
# <details><summary>The schedule stands still when the scale grows</summary>
#
# Compare with "smaller", not with "different": growth is no skipped step.
# </details>

# %% check="precision-step"
check("precision-step", scaled_step)

# %% [markdown]
# ## Three trainings
#
# Now the second head of our story: the digits of chapter 06, with a loss of weight 0.00001. Adam divides the gradient
# by its own size, so in float32 the weight changes nothing (as long as `eps` is smaller still). Three trainings, with
# the same weights to begin with and the same batches: in float32, in float16 without a scale, and in float16 with your
# scaler. It begins far too high, at $2^{40}$, and may grow every 25 steps, so that there is something to see.

# %%
data = np.load(Path(gradwright.__file__).parents[1] / "data" / "digits.npz")
images = (data["images"].reshape(-1, 64) / 16).astype(np.float32)
labels = data["labels"].astype(np.int64)
training, testing = np.split(np.random.default_rng(0).permutation(len(images)), [897])
WEIGHT = 1e-5


class WarmUp:
    """Raises the learning rate to its full height over so many steps."""

    def __init__(self, optimizer, steps):
        self.optimizer, self.steps, self.taken = optimizer, steps, 0
        self.full = optimizer.param_groups[0]["lr"]
        self.step()

    def step(self):
        self.taken += 1
        self.optimizer.param_groups[0]["lr"] = self.full * min(1, self.taken / self.steps)


def train(half, scaled, epochs=15):
    """The model, and for each step the loss without its weight and the scale."""
    gradwright.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    parameters = list(model.parameters())
    optimizer = optim.AdamW(parameters, lr=3e-3, eps=1e-12)
    scaler = GradScaler(init_scale=2.0**40, growth_interval=25, enabled=scaled)
    scheduler = WarmUp(optimizer, 10)
    rng, history = np.random.default_rng(1), []
    orders = (rng.permutation(training) for _ in range(epochs))
    for rows in (rows for order in orders for rows in np.array_split(order, 14)):

        def loss_of(rows=rows):
            with autocast(dtype=gradwright.float16, enabled=half):
                x, ids = gradwright.tensor(images[rows]), gradwright.tensor(labels[rows])
                return WEIGHT * F.cross_entropy(model(x), ids)

        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is an ordinary event here
            loss, _ = scaled_step(loss_of, optimizer, scaler, parameters, 1e-4, scheduler)
        history.append((loss / WEIGHT, scaler.get_scale()))
    return model, np.array(history).T


def accuracy(model):
    with gradwright.no_grad():
        said = model(gradwright.tensor(images[testing])).argmax(1).numpy()
    return (said == labels[testing]).mean()


runs = {
    "float32": train(half=False, scaled=False),
    "float16, no scale": train(half=True, scaled=False),
    "float16, scaled": train(half=True, scaled=True),
}
for name, (model, (curve, _)) in runs.items():
    last, share = curve[-14:].mean(), accuracy(model)
    print(f"{name:<18} loss {curve[0]:.2f} to {last:.2f}, {share:.1%} of unseen digits right")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
for (name, (_, (curve, _))), look in zip(runs.items(), ("-", ":", "--"), strict=True):
    left.plot(curve, look, label=name)
left.set(xlabel="step", ylabel="loss / weight")
left.legend(fontsize=8)
right.step(range(len(curve)), np.log2(runs["float16, scaled"][1][1]), where="post")
right.set(xlabel="step", ylabel="log2 of the scale")
plt.show()

# %% [markdown]
# In the first steps the scale falls until nothing overflows; later it tries the next power of two, and is thrown back.
# A step is lost at each attempt, one in 25 here, and with PyTorch's interval one in 2,000. The training without a scale
# is the one of our story. Its loss is finite, it is printed, and it goes nowhere: at the first step every gradient of
# the first layer is 0, and what gets through to the second has a digit or two.
#
# For when you read without running, here is the same as a picture.

# %% figure="three-runs"
"""Loss against step for three trainings. float32, and scaled float16 five steps behind it, fall from 2.3 to below 0.2.
float16 without a scale stays between 2.1 and 2.4."""
wide = [2.31, 2.2, 1.92, 1.61, 1.23, 1.02, 0.7, 0.53, 0.42, 0.38, 0.3, 0.36, 0.34, 0.17, 0.24, 0.14, 0.18]
scaled = [2.31, 2.28, 2.06, 1.79, 1.45, 1.2, 0.83, 0.64, 0.49, 0.43, 0.34, 0.38, 0.37, 0.19, 0.25, 0.15, 0.18]
none = [2.31, 2.32, 2.29, 2.28, 2.28, 2.23, 2.28, 2.32, 2.27, 2.24, 2.29, 2.24, 2.28, 2.18, 2.31, 2.16, 2.36]
figure, axes = plt.subplots(figsize=(7, 2.8))
axes.plot(range(0, 170, 10), none, ":", color="#d55e00", linewidth=2, label="float16, no scale")
axes.plot(range(0, 170, 10), wide, color="#0072b2", label="float32")
axes.plot(range(0, 170, 10), scaled, "s", color="#009e73", markersize=4, label="float16, scaled")
axes.set(xlabel="step", ylabel="loss / weight", ylim=(0, 2.7))
axes.legend(fontsize=9)

# %% [markdown]
# **Look.** The widget shows the gradients of such a network on the number line of float16. Choose *weight 0.00001* and
# move the scale up until nothing becomes 0; then on, until something becomes inf. How many powers of two lie between
# the two? Then choose *a scale too large* and follow the run with *Play*: where does the scale settle, and why does it
# keep trying?

# %% widget="number-line"
number_line(preset="weight 0.00001")

# %% [markdown]
# Your own gradients fit in there too, of a model after backward or in a list of arrays, and the scales of your run.
# These have no weight in front of their loss.

# %%
model, (_, scales) = runs["float16, scaled"]
model.zero_grad()
x, ids = gradwright.tensor(images[training]), gradwright.tensor(labels[training])
F.cross_entropy(model(x), ids).backward()
number_line(model, scales)

# %% [markdown]
# ## In PyTorch
#
# `torch.autocast(device_type="cuda", dtype=torch.float16)` and `torch.amp.GradScaler("cuda")`, used as here. PyTorch's
# list of operations depends on the device: on a GPU it is ours without mean, var and std, whose kernels add up in
# float32 inside; on a CPU softmax and norms are left where they are, for the same reason. It remembers the 16-bit copy
# of a weight that is used twice in one block, and its scaler leaves the result of the look on the device, so that
# `step` need not wait for it.
#
# With bfloat16, `autocast` is all you need: its range is float32's, so nothing underflows that did not before, and
# there is no scaler. Most large models are trained so. `model.half()` is something else: the weights themselves in
# float16, without a master. That is for using a model, not for training it.

# %% [markdown]
# ## Check yourself
#
# Two questions, a sentence or two each, in a cell of your own.
#
# 1. A colleague clips gradients at a norm of 1 and forgets `unscale_`. The training runs and learns, slowly, and the
#    norm that is logged is in the ten thousands. How long are the steps, and what will happen when the scale grows?
# 2. Of 40 GB that a training needs in float32, 30 are parameters, gradients and Adam's means. What does autocast save?
#
# You can now
#
# - [x] round to float16 and to bfloat16 by hand, and say what each cannot hold;
# - [x] say which operations may round to 16 bits and which must not, and have the engine see to it;
# - [x] count the memory that a training saves, and the part that it does not save;
# - [x] keep master weights, and scale a loss so that its gradients survive;
# - [x] write a gradient scaler that notices an overflow, skips the step, and moves nothing.
#
# When all checks are right, compare with [the solution of this chapter](../../solutions/10_precision.py). In a week,
# try `autograder fresh 10`. Next comes the rest of the memory: what to do when even 16 bits are too many.
