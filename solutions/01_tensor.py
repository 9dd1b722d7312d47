# %% [markdown]
# # 01 Tensor
#
# ## Why
#
# A ranking model compared each of `B` users with candidates through a loss that expected vectors of shape `(B, 1, D)`.
# A refactoring added a `repeat`, and from then on `(B, K, D)` arrived. `K` was the number of candidates that a filter
# had let through. Where `K` was 1, all was well. Where it was 8, broadcasting stretched the other input, and the loss
# averaged over pairs that did not exist. Where it was 0, the loss was the mean of nothing, `nan`, and training died
# on a Tuesday. Nobody could say which axis was which: the code held `reshape`, `repeat` and `permute` in a row, and
# every one of them had done exactly what it was told.
#
# Most errors in a deep-learning framework are shape errors, and the silent ones are worse than those that raise. This
# chapter takes the mystery out of shapes by building the thing that has them. After it you can
#
# - say where element `(i, j, k)` of any tensor lies in memory, and which element lies at a given place;
# - build slices, transpositions and broadcasts that copy nothing, and say who shares memory with whom;
# - tell when a reshape is free, when it must copy, and why;
# - predict the shape and the dtype of `a + b`, `a.mean(dim)` and `a @ b`, or the error;
# - find the transposed axis behind a shape error from the shapes alone.
#
# Allow about four hours; each section is a good place to stop. Everything later in the course runs on the
# class that you complete here.

# %%
import matplotlib.pyplot as plt

import gradwright
from autograder import check
from gradwright.widgets import broadcasting_explorer, stride_explorer

gradwright.chapter(1)

# %% given="imports"
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, reduce
from itertools import combinations
from math import prod
from operator import index as as_integer
from typing import Any, NamedTuple, Self

import numpy as np

# The allocator of Linux returns large freed blocks to the system, and getting one back costs a page fault for every
# 4 KiB, at each step of a training loop. Once it has seen a large block come and go, it keeps them: let it see one.
large = np.empty(30 * 2**20, np.uint8)
del large

# %% [markdown]
# ## Storage and strides
#
# **Idea.** Memory has one dimension. A tensor of shape `(3, 4)` is twelve numbers in a row, its *storage*, together
# with a rule that says where element $(i, j)$ lies. The rule is always the same kind of sum:
#
# $$\text{place}(i_0, i_1, \dots) \;=\; \text{offset} + i_0 s_0 + i_1 s_1 + \dots$$
#
# The numbers $s_0, s_1, \dots$ are the *strides*: how many places you walk when an index grows by one. The *offset* is
# where you start. We count both in elements, as PyTorch does; NumPy counts in bytes.

# %% figure="storage"
"""Twelve storage cells in a row, numbered 0 to 11, and below them the same cells as three rows of four. A step to the
right moves one place, a step down moves four: the strides are (4, 1). Cell (1, 2), which is place 6, is framed in
both."""
figure, (line, grid) = plt.subplots(2, 1, figsize=(7, 3.4), height_ratios=[1.6, 3.7], layout="constrained")
for place in range(12):
    row, column = divmod(place, 4)
    tint = ["#cfe3f1", "#e8eef2", "#f6e3c5"][row]
    marked = {"edgecolor": "#d55e00", "linewidth": 2.5, "zorder": 3} if place == 6 else {"edgecolor": "#8a8a8a"}
    line.add_patch(plt.Rectangle((place, 0), 1, 1, facecolor=tint, **marked))
    line.text(place + 0.5, 0.5, place, ha="center", va="center", fontsize=12)
    grid.add_patch(plt.Rectangle((4 + column, 2 - row), 1, 1, facecolor=tint, **marked))
    grid.text(4.5 + column, 2.5 - row, place, ha="center", va="center", fontsize=12)
line.set(xlim=(-0.1, 12.1), ylim=(-0.1, 1.4), title="storage: one row")
grid.annotate("", (7.5, 3.25), (6.5, 3.25), arrowprops={"arrowstyle": "->", "color": "#0072b2", "lw": 2})
grid.text(7.7, 3.15, "next column: 1 place on", color="#00558a")
grid.annotate("", (3.7, 1.5), (3.7, 2.5), arrowprops={"arrowstyle": "->", "color": "#0072b2", "lw": 2})
grid.text(3.5, 1.9, "next row:\n4 places on", ha="right", color="#00558a")
grid.text(8.3, 1.4, "element (1, 2):\n0 + 1·4 + 2·1 = 6", color="#a04600")
grid.set(xlim=(-0.1, 12.1), ylim=(-0.1, 3.6))
for axes in (line, grid):
    axes.set_aspect("equal")
    axes.axis("off")

# %% [markdown]
# In *row-major* order the last index runs fastest, as in the picture: each row is finished before the next begins. A
# step along the last axis is then one place. A step along the axis before it skips one whole last axis, and so on:
# every stride is the product of all sizes to its right. For shape `(2, 3, 4)` the strides are `(12, 4, 1)`.
#
# Row-major is a habit, not a law. Fortran, MATLAB and most BLAS libraries let the *first* index run fastest. With
# strides it makes no difference to anybody who reads: the rule is the same, only the numbers differ.
#
# One convention for later: a tensor with no elements still has strides, and an axis of size 0 counts as 1 in the
# product, so that no stride becomes 0. PyTorch does the same.
#
# ### Exercise 1.1: `row_major_strides`
# Easy, 10 minutes, 2 points.


# %% exercise="tensor-strides"
def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a tensor whose elements lie in row-major order without gaps.

    shape    a size for each axis; () for a tensor of one element without axes
    returns  a stride for each axis; an axis of size 0 counts as 1

    >>> row_major_strides((2, 3, 4))
    (12, 4, 1)

    PyTorch: torch.empty(shape).stride()
    """
    ### BEGIN SOLUTION
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
    ### END SOLUTION


# %% [markdown]
# <details><summary>My numbers are right, their order is not</summary>
#
# Which axis has stride 1: the one whose neighbours lie side by side in the picture. Is that your first or your last?
# </details>
# <details><summary>Everything to the left of a 0 becomes 0</summary>
#
# Multiply by 1 instead wherever the size is 0. Python's `max` can say that.
# </details>
# <details><summary>I do not know where to begin</summary>
#
# Walk over the shape from the right with one running product. Note the product first, then multiply the size into it;
# at the end, turn the list round.
# </details>

# %% check="tensor-strides"
check("tensor-strides", row_major_strides)

# %% [markdown]
# Now the rule itself. It does not ask where the strides came from; that is what makes the whole chapter possible.
#
# ### Exercise 1.2: `flat_offset`
# Easy, 5 minutes, 2 points.


# %% exercise="tensor-offset"
def flat_offset(index: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> int:
    """The place in the storage of the element at `index`.

    index    a number for each axis, counted from 0
    strides  a stride for each axis, in elements; a stride may be 0 or negative
    offset   the place of element (0, 0, ...)
    raises   ValueError where index and strides differ in length

    >>> flat_offset((1, 2), (4, 1))
    6

    PyTorch: no such function; it is what every kernel computes
    """
    ### BEGIN SOLUTION
    if len(index) != len(strides):
        raise ValueError(f"index {index} has {len(index)} numbers for {len(strides)} axes")
    return offset + sum(i * stride for i, stride in zip(index, strides, strict=True))
    ### END SOLUTION


# %% [markdown]
# <details><summary>It is right until the offset is not 0</summary>
#
# Where does the walk begin? The first summand of the formula is easy to overlook.
# </details>
# <details><summary>A wrong number of indices goes through</summary>
#
# What does `zip` do when one side is longer? Compare the two lengths before you add anything up.
# </details>

# %% check="tensor-offset"
check("tensor-offset", flat_offset)

# %% [markdown]
# And backwards: somebody reads a tensor aloud, row by row. Which index is being read when the reader reaches number
# 17? For shape `(2, 3, 4)`, 17 is 1 whole block of 12 and 5 more; 5 is 1 whole row of 4 and 1 more; so it is
# `(1, 1, 1)`. We will use it to walk over all elements of a tensor in a single loop.
#
# ### Exercise 1.3: `unravel_index`
# Easy, 10 minutes, 2 points.


# %% exercise="tensor-unravel"
def unravel_index(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index that row-major reading reaches after `position` elements.

    position  0 for the first element
    shape     a size for each axis
    raises    IndexError where a tensor of this shape has no such position; -1 is none

    >>> unravel_index(17, (2, 3, 4))
    (1, 1, 1)

    PyTorch: torch.unravel_index, which takes tensors
    """
    ### BEGIN SOLUTION
    if not 0 <= position < prod(shape):
        outside = f"a tensor of shape {shape}, which has {prod(shape)} elements"
        raise IndexError(f"position {position} is outside {outside}")
    index = []
    for size in reversed(shape):
        position, i = divmod(position, size)
        index.append(i)
    return tuple(reversed(index))
    ### END SOLUTION


# %% [markdown]
# <details><summary>The first number of my index is larger than the axis</summary>
#
# Did you divide by the size of an axis, or by its stride? Going from the left you divide by strides, going from the
# right by sizes; mixing the two gives numbers that look almost right.
# </details>
# <details><summary>It accepts positions that do not exist</summary>
#
# How many elements are there? `math.prod` is imported. What do you want for -1?
# </details>
# <details><summary>I do not know where to begin</summary>
#
# From the right: what is left over when the position is divided by the last size? And how many whole rows have been
# read before it? `divmod` answers both at once, and the second answer is the same question with one axis fewer.
# </details>

# %% check="tensor-unravel"
check("tensor-unravel", unravel_index)
# %% [markdown]
# ## The class
#
# A `Tensor` is four things: a storage, a shape, strides and an offset. Everything that this course does with one falls
# into two kinds.
#
# - **Kernels** calculate. They read numbers and put new ones into a new storage: `add`, `exp`, `sum`, `matmul`. They
#   end in `t.new(array)`.
# - **Views** look. They keep the storage and choose another shape, strides and offset: slices, `permute`,
#   `broadcast_to`. They end in `t.see(shape, strides, offset)` and move no number at all.
#
# Each operation is a plain function from tensors to a tensor. The methods are only names for them, and all of them go
# through one door, `Tensor.apply(function, *inputs, **options)`, which so far does nothing but call the function.
# Chapter 02 will stand at that door and write down what passes.
#
# Why go through a door, if it does nothing? Because later everything has to be noticed: by the graph that computes
# gradients, by the profiler, by mixed precision. A class whose operators calculate by themselves has to be changed in a
# hundred places for each of these, and the place that was forgotten loses its gradient silently. With a door there is
# one place.
#
# The class is given, folded below. Read `Strided` now: it is short, and the rest hangs on it. The class is complete
# from here on; a method whose function is yours to write says so when you call it.


# %% given="shared-storage"
class Storage:
    """Flat memory, shared by all views of it."""

    version = 0  # how often it was written to; nothing writes before chapter 02

    def __init__(self, data: np.ndarray):
        self.data = data


@lru_cache(maxsize=4096)
def remember(function: Callable, *arguments: Any) -> tuple | None:
    """function(*arguments), a tuple or None, worked out once.

    The function is part of the key, so that a new version of an exercise is not answered with the old one's results.
    """
    result = function(*arguments)
    return result if result is None else tuple(result)


# %% given="strided"
def without_gaps(array: np.ndarray) -> np.ndarray:
    """`array`, if its elements fill their memory, in whatever order of the axes; otherwise a row-major copy.

    NumPy leaves what it calculates in the order of what it was given: x.T + 1 lies in memory as x.T does.
    """
    turned = array.transpose(remember(longest_first, array.strides))
    return array if turned.flags.c_contiguous else array.copy("C")


def longest_first(strides: tuple[int, ...]) -> list[int]:
    """The axes, in the order in which a row-major array would have them."""
    return sorted(range(len(strides)), key=strides.__getitem__, reverse=True)


class Lazily:
    """Decorates a method that works an attribute out, the first time that it is asked for."""

    def __init__(self, rule: Callable):
        self.rule, self.name = rule, rule.__name__

    def __get__(self, t: Any, kind: type) -> Any:
        if t is None:  # asked of the class
            return self
        value = self.rule(t)
        setattr(t, self.name, value)  # which Python finds before it looks for this method again
        return value


class Strided:
    """A storage, and the rule that says where element (i, j, ...) lies in it: offset + i * strides[0] + ..."""

    def __init__(self, array: np.ndarray):
        """A tensor on the memory of `array`, which is copied only where it has gaps or runs backwards."""
        if type(array) is not np.ndarray:  # NumPy hands back a scalar where a result has no axes
            array = np.asarray(array)
        if not array.flags.c_contiguous:
            array = without_gaps(array)
        self.storage = Storage(array.ravel("K"))  # "K": as the elements lie in memory, so this copies nothing
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape
        self.offset = 0

    def new(self, array: np.ndarray) -> Self:
        """A tensor of the same class on the memory of a new array: how a kernel ends."""
        return type(self)(array)

    def see(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Self:
        """A tensor of the same class on the same storage: how a view ends."""
        view = object.__new__(type(self))
        view.storage = self.storage
        view.dtype = self.dtype
        view.shape = tuple(shape)
        view.strides = tuple(strides)
        view.offset = offset
        return view

    @Lazily
    def strides(self) -> tuple[int, ...]:
        """Of a new tensor; they are a view's whole point, and it has been given its own."""
        if self.array.flags.c_contiguous:
            return remember(row_major_strides, self.shape)
        return tuple([step // self.array.itemsize for step in self.array.strides])

    @Lazily
    def array(self) -> np.ndarray:
        """A view as kernels read it: NumPy's rule of shape, strides and offset, laid on our storage without a copy.
        NumPy counts in bytes. (A new tensor was made from its array, and has kept it.)"""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        size = self.dtype.itemsize
        strides = [stride * size for stride in self.strides]
        return np.ndarray(self.shape, self.dtype, self.storage.data, self.offset * size, strides)

    @staticmethod
    def apply(function: Callable, *inputs: Any, **options: Any) -> Any:
        """The one door: every method calls its function here, with tensors as inputs and the rest as options."""
        return function(*inputs, **options)

    def refuse_other_door(self, kind: "type[Strided]") -> None:
        """Raise where tensors of `kind`, made in another chapter, have another door: ours would forget what it does."""
        if kind.apply is not type(self).apply:
            raise TypeError("tensors of two chapters do not mix: make both with tensor() of the later chapter")

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    def numel(self) -> int:
        """How many elements there are."""
        return prod(self.shape)

    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps. (The stride of an axis of size 1 is never used.)"""
        return self.array.flags.c_contiguous


# %% [markdown]
# Two remarks on it. `array` is the whole trick of the vectorised code to come: NumPy accepts a shape, strides and an
# offset on somebody else's memory, so a kernel can read any view of ours, however twisted, without a copy.
# `row_major_strides` is *your* function. Until the check of exercise 1.1 has passed, no tensor has strides.
#
# And `remember` keeps what your functions returned, since a training loop asks for the same few shapes a million times.
#
# The methods follow, by theme. There is nothing to learn in them except that nearly all are one line through the door.


# %% given="methods-of-views"
class Views:
    """Methods that return the same storage under another rule (reshape and contiguous may have to copy)."""

    def size(self, dim: int | None = None) -> tuple[int, ...] | int:
        return self.shape if dim is None else self.shape[axis_of(dim, self.ndim)]

    def dim(self) -> int:
        return self.ndim

    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        return self.strides if dim is None else self.strides[axis_of(dim, self.ndim)]

    def storage_offset(self) -> int:
        return self.offset

    def __getitem__(self, key: Any) -> Self:
        return self.apply(index, self, key=key)

    def permute(self, *dims: int) -> Self:
        return self.apply(permute, self, dims=unpack(dims))

    def transpose(self, dim0: int, dim1: int) -> Self:
        dims = list(range(len(self.shape)))
        i, j = axis_of(dim0, len(dims)), axis_of(dim1, len(dims))
        dims[i : i + 1], dims[j : j + 1] = (
            dims[j : j + 1],
            dims[i : i + 1],
        )  # nothing to exchange where there are no axes
        return self.apply(permute, self, dims=tuple(dims))

    def t(self) -> Self:
        if self.ndim > 2:
            raise ValueError(f"t() is for two axes at most and this tensor has shape {self.shape}: use transpose or mT")
        return self.T

    @property
    def T(self) -> Self:
        return self.apply(permute, self, dims=tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> Self:
        return self.transpose(-2, -1)

    def contiguous(self) -> Self:
        return self if self.is_contiguous() else self.apply(copy, self)

    def clone(self) -> Self:
        return self.apply(copy, self)

    def view(self, *shape: int) -> Self:
        return self.apply(view, self, shape=remember(fill_in, unpack(shape), self.shape))

    def reshape(self, *shape: int) -> Self:
        shape = remember(fill_in, unpack(shape), self.shape)
        if remember(view_strides, self.shape, self.strides, shape) is None:
            return self.apply(copy, self, shape=shape)
        return self.apply(view, self, shape=shape)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        if not self.ndim:
            return self.reshape(1)
        i, j = axis_of(start_dim, self.ndim), axis_of(end_dim, self.ndim)
        if i > j:
            raise ValueError(f"flatten from axis {i} to axis {j}: the first must not come after the last")
        return self.reshape(*self.shape[:i], prod(self.shape[i : j + 1]), *self.shape[j + 1 :])

    def unsqueeze(self, dim: int) -> Self:
        i = axis_of(dim, self.ndim + 1)
        return self.apply(view, self, shape=(*self.shape[:i], 1, *self.shape[i:]))

    def squeeze(self, dim: int | tuple[int, ...] | None = None) -> Self:
        dims = dims_of(dim, self.ndim)
        shape = tuple(n for i, n in enumerate(self.shape) if n != 1 or i not in dims)
        return self.apply(view, self, shape=shape)

    def expand(self, *shape: int) -> Self:
        shape = unpack(shape)
        added = len(shape) - self.ndim
        shape = tuple(self.shape[i - added] if n == -1 and i >= added else n for i, n in enumerate(shape))
        if min(shape, default=0) < 0:
            raise ValueError(f"expand to {shape}: -1 keeps the size of an axis, and an axis that is new has none")
        return self.apply(broadcast_to, self, shape=shape)

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        return self.apply(broadcast_to, self, shape=tuple(shape))


# %% given="axes"
def unpack(numbers: tuple) -> tuple[int, ...]:
    """Sizes or axes, written as x.permute(1, 0) or as x.permute((1, 0))."""
    if len(numbers) == 1 and isinstance(numbers[0], (tuple, list)):
        numbers = numbers[0]
    for n in numbers:
        if type(n) is not int:
            return tuple(map(as_integer, numbers))
    return tuple(numbers)


def axis_of(dim: int, ndim: int) -> int:
    """An axis counted from the front: -1 is the last. As in PyTorch, a tensor without axes takes 0 and -1."""
    if type(dim) is not int:  # x.sum(True) means something else
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise TypeError(f"an axis is a whole number, and this one is a {type(dim).__name__}: {dim!r:.40}")
        dim = as_integer(dim)
    n = ndim or 1
    if not -n <= dim < n:
        raise IndexError(f"dim {dim} is out of range for {ndim} axes: use {-n} to {n - 1}")
    return dim % n


def dims_of(dim: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The axes that `dim` names, counted from the front. None and () name all of them."""
    if type(dim) is int and ndim:  # the usual case, without detours
        return (axis_of(dim, ndim),)
    if dim is None:
        return tuple(range(ndim))
    dims = [axis_of(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    if len(set(dims)) < len(dims):
        raise ValueError(f"dim {dim} names an axis twice")
    return tuple(dims if dims and ndim else range(ndim))


def fill_in(shape: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with its -1 replaced by what the number of elements of a tensor of shape `old` leaves for it."""
    known, count = prod(shape), prod(old)
    if known == count and (not shape or min(shape) >= 0):
        return shape
    if -1 not in shape:
        if min(shape, default=0) < 0:
            raise ValueError(f"a size is 0 or more, or -1 once for whatever is left: {shape} has another one")
        raise ValueError(f"shape {old} has {count} elements and {shape} has {known}")
    known = -known
    if shape.count(-1) > 1 or min(shape) < -1 or known <= 0 or count % known:
        raise ValueError(f"shape {old} has {count} elements: that does not settle the -1 in {shape}")
    return tuple([count // known if n == -1 else n for n in shape])


# %% [markdown]
# The operators and functions. A Python number beside a tensor becomes a tensor without axes on the way in, so that
# kernels only ever meet tensors.


# %% given="methods-of-arithmetic"
NUMBERS = (int, float, np.integer, np.floating, np.bool_)


class Arithmetic:
    """Operators and elementwise methods. `other` is a tensor or a Python number."""

    __hash__ = object.__hash__  # == compares element by element, so a tensor in a set or dict is known by its identity
    __array_ufunc__ = None  # array + tensor: NumPy steps back, and `binary` says that the two do not mix

    def binary(self, function: Callable, other: Any, swapped: bool = False) -> Self:
        if type(other) is not type(self):
            if isinstance(other, NUMBERS):
                other = self.number(other)
            elif isinstance(other, Strided):
                self.refuse_other_door(type(other))
            elif isinstance(other, np.ndarray):
                raise TypeError("an array and a tensor do not mix: make it a tensor first, as in tensor(array)")
            else:
                return NotImplemented
        return self.apply(function, other, self) if swapped else self.apply(function, self, other)

    def number(self, value: int | float) -> Self:
        """A number as the tensor without axes that stands for it beside self."""
        dtype = number_dtype(self.dtype, value)
        if dtype == float16 and self.shape:
            dtype = float32  # a factor keeps its digits and its range; what comes out is float16
        try:
            return self.new(np.array(value, dtype))
        except OverflowError as error:
            raise OverflowError(f"{dtype} has no room for {value}: convert the tensor first, as in x.long()") from error

    def __add__(self, other: Any) -> Self:
        return self.binary(add, other)

    def __sub__(self, other: Any) -> Self:
        return self.binary(subtract, other)

    def __rsub__(self, other: Any) -> Self:
        return self.binary(subtract, other, swapped=True)

    def __mul__(self, other: Any) -> Self:
        return self.binary(multiply, other)

    def __truediv__(self, other: Any) -> Self:
        return self.binary(divide, other)

    def __rtruediv__(self, other: Any) -> Self:
        return self.binary(divide, other, swapped=True)

    def __pow__(self, other: Any) -> Self:
        return self.binary(power, other)

    def __rpow__(self, other: Any) -> Self:
        return self.binary(power, other, swapped=True)

    __radd__, __rmul__ = __add__, __mul__
    add, sub, mul, div, pow = __add__, __sub__, __mul__, __truediv__, __pow__

    def __eq__(self, other: Any) -> Self:
        return self.binary(equal, other)

    def __ne__(self, other: Any) -> Self:
        return self.binary(not_equal, other)

    def __lt__(self, other: Any) -> Self:
        return self.binary(less, other)

    def __le__(self, other: Any) -> Self:
        return self.binary(less_equal, other)

    def __gt__(self, other: Any) -> Self:
        return self.binary(greater, other)

    def __ge__(self, other: Any) -> Self:
        return self.binary(greater_equal, other)

    def __and__(self, other: Any) -> Self:
        return self.binary(bitwise_and, other)

    def __or__(self, other: Any) -> Self:
        return self.binary(bitwise_or, other)

    __rand__, __ror__ = __and__, __or__
    eq, ne, lt, le, gt, ge = __eq__, __ne__, __lt__, __le__, __gt__, __ge__

    def __invert__(self) -> Self:
        return self.apply(bitwise_not, self)

    def __neg__(self) -> Self:
        return self.apply(negative, self)

    def __abs__(self) -> Self:
        return self.apply(absolute, self)

    neg, abs = __neg__, __abs__

    def exp(self) -> Self:
        return self.apply(exp, self)

    def log(self) -> Self:
        return self.apply(log, self)

    def sqrt(self) -> Self:
        return self.apply(sqrt, self)

    def tanh(self) -> Self:
        return self.apply(tanh, self)

    def to(self, dtype: np.dtype) -> Self:
        """This tensor with another dtype; itself where it has that dtype already."""
        return self if self.dtype == dtype else self.apply(cast, self, dtype=known_dtype(dtype))

    def half(self) -> Self:
        return self.to(float16)

    def float(self) -> Self:
        return self.to(float32)

    def double(self) -> Self:
        return self.to(float64)

    def long(self) -> Self:
        return self.to(int64)

    def bool(self) -> Self:
        return self.to(bool_)


# %% given="methods-of-reductions"
class Extremum(NamedTuple):
    """What max and min over one axis return."""

    values: Any
    indices: Any


class Reductions:
    """Methods that make axes disappear, and matmul. `dim` is an axis, a tuple of axes, or None for all of them."""

    def sum(self, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Self:
        return self.apply(sum_over, self, dim=dim, keepdim=keepdim)

    def mean(self, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Self:
        if self.dtype.kind != "f":
            raise TypeError(f"the mean of {self.dtype} numbers has no dtype of its own: convert first, as in x.float()")
        return self.apply(mean_over, self, dim=dim, keepdim=keepdim)

    def amax(self, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Self:
        return self.apply(max_over, self, dim=dim, keepdim=keepdim)

    def amin(self, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Self:
        return self.apply(min_over, self, dim=dim, keepdim=keepdim)

    def argmax(self, dim: int | None = None, keepdim: bool = False) -> Self:
        return self.apply(argmax, self, dim=dim, keepdim=keepdim)

    def argmin(self, dim: int | None = None, keepdim: bool = False) -> Self:
        return self.apply(argmin, self, dim=dim, keepdim=keepdim)

    def max(self, dim: int | None = None, keepdim: bool = False) -> Self | Extremum:
        """The largest element. With a dim: the largest along it, and where it is (the first of several)."""
        if dim is None:
            return self.amax()
        values = self.apply(max_along, self, dim=dim, keepdim=keepdim)
        return Extremum(values, self.argmax(dim, keepdim))

    def min(self, dim: int | None = None, keepdim: bool = False) -> Self | Extremum:
        """The smallest element. With a dim: the smallest along it, and where it is (the first of several)."""
        if dim is None:
            return self.amin()
        values = self.apply(min_along, self, dim=dim, keepdim=keepdim)
        return Extremum(values, self.argmin(dim, keepdim))

    def all(self, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Self:
        return self.apply(all_over, self, dim=dim, keepdim=keepdim)

    def any(self, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Self:
        return self.apply(any_over, self, dim=dim, keepdim=keepdim)

    def __matmul__(self, other: Any) -> Self:
        """The product over the last axis of self and the last but one of other; a vector is lent an axis of size 1."""
        if not isinstance(other, Strided):
            return NotImplemented
        left, right = len(self.shape), len(other.shape)
        if not (left and right):
            raise ValueError(f"matmul needs an axis to sum over: shapes {self.shape} and {other.shape}, use * instead")
        if self.dtype != other.dtype:
            raise TypeError(f"matmul of {self.dtype} and {other.dtype}: convert one of them first, as in x.to(y.dtype)")
        if type(other) is not type(self):
            self.refuse_other_door(type(other))
        if left == 1 or right == 1:
            return self.with_vector(other)
        return self.apply(matmul, self, other)

    matmul = __matmul__

    def with_vector(self, other: Self) -> Self:
        """self @ other, where a vector on the left counts as a row, one on the right as a column."""
        row, column = self.ndim == 1, other.ndim == 1
        axis = -1 if column else -2
        if self.shape[-1] != other.shape[axis]:
            sizes = f"axis -1 of the first is {self.shape[-1]}, axis {axis} of the second {other.shape[axis]}"
            raise ValueError(f"matmul of {self.shape} and {other.shape}: {sizes}")
        left = self.apply(view, self, shape=(1, *self.shape)) if row else self
        right = self.apply(view, other, shape=(*other.shape, 1)) if column else other
        shape = self.shape[:-1] if column else (*other.shape[:-2], other.shape[-1])
        return self.apply(view, self.apply(matmul, left, right), shape=shape)


# %% [markdown]
# The last of them answers Python itself: `len`, `float`, iteration, printing. Then the class is put together, and the
# functions that make tensors.


# %% given="methods-of-python"
class Conversions:
    """What Python asks of a tensor: numbers, lists, truth, length, iteration and a printed form."""

    def item(self) -> int | float | bool:
        """The only element, as a Python number."""
        if self.numel() != 1:
            raise ValueError(f"item() needs one element and shape {self.shape} has {self.numel()}: use tolist()")
        return self.array.item()

    def tolist(self) -> Any:
        return self.array.tolist()

    def numpy(self) -> np.ndarray:
        """A NumPy array on the same memory."""
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.array, dtype, copy=copy)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a tensor without axes has no length: item() gives its number")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        return iter([self[i] for i in range(len(self))])

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ValueError(f"the truth of {self.numel()} elements is not one value: use any() or all()")
        return bool(self.array.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"an index is a whole number and this tensor holds {self.dtype}")
        return self.item()

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    def __repr__(self) -> str:
        text = np.array2string(self.array, precision=4, separator=", ", prefix="tensor(", threshold=1000)
        note = "" if self.numel() else f", size={self.shape}"
        note += "" if self.dtype in (float32, int64, bool_) else f", dtype={self.dtype}"
        return f"tensor({text}{note})"


# %% given="tensor"
class Tensor(Views, Arithmetic, Reductions, Conversions, Strided):
    """Numbers of one dtype in a box with axes: storage, shape, strides and offset. `tensor(data)` makes one."""


# %% [markdown]
# Last, dtypes and makers. float32 is the default, as in PyTorch: lists of Python floats become float32, NumPy arrays
# keep what they are. All random numbers come from one generator with a known seed, so that a run can be repeated;
# `manual_seed` starts it anew, and a `Generator` of your own keeps a stream apart from all others.

# %% given="dtypes"
float16, float32, float64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
uint8, int8, int16, int32, int64 = (np.dtype(name) for name in ("uint8", "int8", "int16", "int32", "int64"))
bool_ = np.dtype("bool")

DTYPES = (float16, float32, float64, uint8, int8, int16, int32, int64, bool_)
CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2}
"""dtype.kind to what kind of number it is: truth, whole, real. The larger one wins."""


def known_dtype(dtype: Any) -> np.dtype:
    """`dtype`, or its name, as one of DTYPES."""
    with suppress(TypeError):  # where NumPy knows no such thing, the sentence below names it
        dtype = np.dtype(dtype)
    if dtype not in DTYPES:
        raise TypeError(f"a tensor cannot hold {dtype}: it holds {', '.join(map(str, DTYPES))}")
    return dtype


def number_dtype(dtype: np.dtype, value: int | float | np.generic) -> np.dtype:
    """The dtype of a Python number beside a tensor of `dtype`: the tensor's, unless the number is of a larger kind."""
    return dtype_beside(dtype, type(value))


@lru_cache
def dtype_beside(dtype: np.dtype, number: type) -> np.dtype:
    """number_dtype, which does not depend on the value, worked out once."""
    kind = 2 if issubclass(number, (float, np.floating)) else 0 if issubclass(number, (bool, np.bool_)) else 1
    return dtype if kind <= CATEGORY[dtype.kind] else (bool_, int64, float32)[kind]


class Generator:
    """A stream of random numbers with a seed of its own."""

    def __init__(self, seed: int = 0):
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Self:
        """Start the stream anew; the same seed gives the same numbers."""
        self.rng = np.random.default_rng(seed)
        return self


default_generator = Generator()
manual_seed = default_generator.manual_seed


# %% given="makers"
class Makers:
    """The functions that make tensors of one class. `options` go to that class, which takes none in this chapter."""

    def __init__(self, kind: type):
        self.kind = kind

    def tensor(self, data: Any, dtype: Any = None, **options: Any) -> Tensor:
        """A tensor with a copy of `data`: numbers, nested lists, arrays, tensors. Python floats become float32."""
        array = np.array(data, dtype, order="C")
        if dtype is None and array.dtype == float64 and not hasattr(data, "dtype"):
            array = array.astype(float32)
        known_dtype(array.dtype)
        return self.kind(array, **options)

    def from_numpy(self, array: np.ndarray, **options: Any) -> Tensor:
        """A tensor on the memory of a row-major array: what is written to one is seen in the other."""
        if not array.flags.c_contiguous:
            raise ValueError(f"an array with strides {array.strides} is not in row-major order: copy it with tensor()")
        known_dtype(array.dtype)
        return self.kind(array, **options)

    def empty(self, *size: int, dtype: Any = float32, **options: Any) -> Tensor:
        """A tensor with whatever was in memory."""
        return self.kind(np.empty(unpack(size), dtype), **options)

    def zeros(self, *size: int, dtype: Any = float32, **options: Any) -> Tensor:
        return self.kind(np.zeros(unpack(size), dtype), **options)

    def ones(self, *size: int, dtype: Any = float32, **options: Any) -> Tensor:
        return self.kind(np.ones(unpack(size), dtype), **options)

    def full(self, size: tuple[int, ...], fill_value: float, dtype: Any = None, **options: Any) -> Tensor:
        dtype = number_dtype(bool_, fill_value) if dtype is None else dtype
        return self.kind(np.full(size, fill_value, dtype), **options)

    def zeros_like(self, t: Tensor, dtype: Any = None, **options: Any) -> Tensor:
        return self.zeros(t.shape, dtype=dtype or t.dtype, **options)

    def ones_like(self, t: Tensor, dtype: Any = None, **options: Any) -> Tensor:
        return self.ones(t.shape, dtype=dtype or t.dtype, **options)

    def eye(self, n: int, m: int | None = None, dtype: Any = float32, **options: Any) -> Tensor:
        return self.kind(np.eye(n, m, dtype=dtype), **options)

    def arange(
        self, start: float, end: float | None = None, step: float = 1, dtype: Any = None, **options: Any
    ) -> Tensor:
        """start, start + step, ... below end; arange(n) counts from 0. Floats where one of the three is a float."""
        start, end = (0, start) if end is None else (start, end)
        array = np.arange(start, end, step)
        default = int64 if array.dtype.kind == "i" else float32
        return self.kind(array.astype(dtype or default), **options)

    def linspace(self, start: float, end: float, steps: int, dtype: Any = float32, **options: Any) -> Tensor:
        return self.kind(np.linspace(start, end, steps, dtype=dtype), **options)

    def rand(
        self, *size: int, generator: Generator = default_generator, dtype: Any = float32, **options: Any
    ) -> Tensor:
        """Uniform random numbers from 0 up to, not including, 1."""
        return self.kind(generator.rng.random(unpack(size), np.dtype(dtype)), **options)

    def randn(
        self, *size: int, generator: Generator = default_generator, dtype: Any = float32, **options: Any
    ) -> Tensor:
        """Random numbers of the standard normal distribution."""
        return self.kind(generator.rng.standard_normal(unpack(size), np.dtype(dtype)), **options)

    def randint(
        self, low: int, high: int, size: tuple[int, ...], generator: Generator = default_generator, **options: Any
    ) -> Tensor:
        """Random whole numbers from low up to, not including, high."""
        return self.kind(generator.rng.integers(low, high, size), **options)

    def randperm(self, n: int, generator: Generator = default_generator, **options: Any) -> Tensor:
        """0 to n - 1 in random order."""
        return self.kind(generator.rng.permutation(n), **options)


make = Makers(Tensor)
tensor, from_numpy, empty, full = make.tensor, make.from_numpy, make.empty, make.full
zeros, ones, zeros_like, ones_like = make.zeros, make.ones, make.zeros_like, make.ones_like
eye, arange, linspace = make.eye, make.arange, make.linspace
rand, randn, randint, randperm = make.rand, make.randn, make.randint, make.randperm

# %% [markdown]
# The four things, then, of a small one. With exercise 1.1 done, this runs; with 1.2 done as well, the last line is a 6,
# the element that is framed in the picture above.

# %%
x = tensor([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]])
print(x)
print(f"storage {x.storage.data}")
print(f"shape {x.shape}, strides {x.strides}, offset {x.offset}, dtype {x.dtype}")
print(x.storage.data[flat_offset((1, 2), x.strides, x.offset)])
# %% [markdown]
# ## Views
#
# **Idea.** Turn a table on its side. Nothing has to move: read it with the two sizes exchanged *and the two strides
# exchanged*, and every element is where the new rule says. The same trick gives a column, every second row, a row read
# backwards. All of them are the old storage, seen through other numbers.
#
# The picture draws one storage four times. The number in a cell is not what lies there: it says when the view reads the
# cell, 0 first. A cell without a number is never read.

# %% figure="views"
"""One storage of twelve cells, drawn four times, with the cells that a view touches marked and numbered in the order in
which it reads them. x of strides (4, 1) reads 0 to 11 in turn. x.T, strides (1, 4), reads 0, 4, 8, 1, 5, 9 and so on.
x[:, 1], stride (4,) and offset 1, reads 1, 5, 9. x[1, ::-1], stride (-1,) and offset 7, reads 7, 6, 5, 4."""
x = np.arange(12).reshape(3, 4)
shown = [
    ("x", x, "shape (3, 4), strides (4, 1), offset 0"),
    ("x.T", x.T, "shape (4, 3), strides (1, 4), offset 0"),
    ("x[:, 1]", x[:, 1], "shape (3,), strides (4,), offset 1"),
    ("x[1, ::-1]", x[1, ::-1], "shape (4,), strides (-1,), offset 7"),
]
figure, rows = plt.subplots(4, 1, figsize=(7.2, 4.6), layout="constrained")
for axes, (name, seen, rule) in zip(rows, shown, strict=True):
    order = {int(place): turn for turn, place in enumerate(seen.ravel())}
    for place in range(12):
        tint = plt.cm.Blues(0.08 + 0.4 * order[place] / 12) if place in order else "#f7f7f7"
        axes.add_patch(plt.Rectangle((place, 0), 1, 1, facecolor=tint, edgecolor="#8a8a8a"))
        if place in order:
            axes.text(place + 0.5, 0.5, order[place], ha="center", va="center", fontsize=11)
    axes.text(-0.3, 0.5, name, ha="right", va="center", family="monospace", fontsize=11)
    axes.text(0, 1.2, rule, fontsize=9.5)
    axes.set(xlim=(-2.6, 12.1), ylim=(-0.1, 1.8), aspect="equal")
    axes.axis("off")

# %% [markdown]
# `permute` is the general form: it puts the axes in the order that you name. In `x.permute(2, 0, 1)` the first axis of
# the result is the old axis 2, the second the old axis 0. Each axis takes its size and its stride along: from shape
# `(2, 3, 4)` with strides `(12, 4, 1)` comes shape `(4, 2, 3)` with strides `(1, 12, 4)`. Element `(3, 1, 2)` of the
# result lies at place 3·1 + 1·12 + 2·4 = 23, and that is where element `(1, 2, 3)` of x lies.
#
# ### Exercise 1.4: `permute`
# Easy, 10 minutes, 2 points.


# %% exercise="tensor-permute"
def permute(t: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The same storage with the axes in another order. Nothing is copied.

    t        a tensor of any shape, strides and offset
    dims     for each axis of the result, which axis of t it is; -1 is the last
    returns  t.see(shape, strides, offset)
    raises   ValueError unless dims names every axis of t exactly once

    >>> permute(tensor([[1, 2, 3], [4, 5, 6]]), (1, 0)).tolist()
    [[1, 4], [2, 5], [3, 6]]

    PyTorch: Tensor.permute
    """
    ### BEGIN SOLUTION
    axes, shape, strides = [*range(len(t.shape))], [], []
    if sorted(dims) != axes and sorted([d + len(axes) if d < 0 else d for d in dims]) != axes:
        wanted = f"each of the {len(axes)} axes of shape {t.shape}"
        raise ValueError(f"dims {tuple(dims)} do not name {wanted} once")
    for dim in dims:
        shape.append(t.shape[dim])
        strides.append(t.strides[dim])
    return t.see(shape, strides, t.offset)
    ### END SOLUTION


# %% [markdown]
# <details><summary>It is right for two axes and wrong for three</summary>
#
# Exchanging two axes is its own inverse; turning three round is not. Does your `dims[0]` say where the first axis of t
# goes, or which axis comes first?
# </details>
# <details><summary>The numbers are scrambled, the shape is right</summary>
#
# Two of the three things that describe a tensor have to be reordered. Which one did you leave as it was?
# </details>
# <details><summary>Sometimes I get the numbers of another tensor</summary>
#
# t may be a view itself, with an offset of its own and strides that are not those of its shape. Take all three from t.
# </details>

# %% check="tensor-permute"
check("tensor-permute", permute)

# %% [markdown]
# **Indexing.** In `x[1:, None, ..., ::-2]` each item does one thing to one axis, and only arithmetic is needed:
#
# | item | size | stride | offset |
# |---|---|---|---|
# | a number `i` | the axis goes | | grows by `i` strides |
# | a slice `start:stop:step` | how many it takes | times `step` | grows by `start` strides |
# | `None` | a new axis of size 1 | any (say 0) | stays |
# | `...` | whole axes, as many as are left over | stay | stays |
#
# A negative step needs nothing more: the stride turns negative, and the offset starts at the far end. PyTorch refuses
# it, NumPy allows it, and so do we. The fiddly part of a slice, which numbers it takes once the missing and negative
# ones are filled in, Python does for you: `slice(None, None, -2).indices(5)` is `(4, -1, -2)`, the arguments of a
# `range`.
#
# Take `x[1, ::-1]` of the picture. The 1 makes axis 0 go and moves the offset by one stride of 4. The slice stands for
# the numbers 3, 2, 1, 0: its start moves the offset by 3 strides of 1, to 7; it takes 4 of them; and each step walks
# -1 times the stride 1. So the view has shape `(4,)`, strides `(-1,)` and offset 7, and not one number was read.
#
# Sorting out the key is given: `expand_key` returns a list with one item for each axis of the tensor, a number or a
# slice, with `None` wherever a new axis is wanted. `...` is gone, and so is every question about how many items there
# should be.

# %% given="keys"
WHOLE = slice(None)


def expand_key(key: Any, ndim: int) -> list:
    """What stands in the brackets as a list: a number or slice for each of `ndim` axes, and None for new axes."""
    items, dots, used = [], None, 0
    for item in key if isinstance(key, tuple) else (key,):
        if type(item) is int or type(item) is slice:
            items.append(item)
            used += 1
        elif item is None:
            items.append(None)
        elif item is Ellipsis:
            if dots is not None:
                raise IndexError("a key can hold only one `...`")
            dots = len(items)
        else:
            items.append(as_number(item))
            used += 1
    if used > ndim:
        raise IndexError(f"{used} indices are too many for {ndim} axes")
    end = len(items) if dots is None else dots
    items[end:end] = [WHOLE] * (ndim - used)
    return items


def as_number(item: Any) -> int:
    """A whole number of any kind as int. Lists, arrays and masks of indices come in chapter 03."""
    if isinstance(item, bool) or not hasattr(item, "__index__") or getattr(item, "ndim", 0):
        kind = type(item).__name__
        raise TypeError(f"an index is a whole number, a slice, None or `...`, and this one is a {kind}: {item!r:.40}")
    return as_integer(item)


# %% [markdown]
# ### Exercise 1.5: `index`
# Hard, 30 minutes, 5 points.


# %% exercise="tensor-index"
def index(t: Tensor, key: Any) -> Tensor:
    """Basic indexing: the part of t that `key` names, on the same storage. Nothing is copied.

    t        a tensor of any shape, strides and offset
    key      what stands in the brackets of t[...]: whole numbers, slices, None and `...`,
             alone or in a tuple
    returns  t.see(shape, strides, offset)
    raises   IndexError where a number is outside its axis; let it name the number, the axis
             and the axis's size

    >>> x = tensor([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    >>> index(x, (slice(None), 1)).tolist()
    [1, 5, 9]

    PyTorch: Tensor.__getitem__, without negative steps
    """
    ### BEGIN SOLUTION
    shape, strides, offset, axis = [], [], t.offset, 0
    for item in expand_key(key, t.ndim):
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = t.shape[axis], t.strides[axis]
        if isinstance(item, slice):
            start, stop, step = item.indices(size)
            offset += start * stride
            shape.append(len(range(start, stop, step)))
            strides.append(step * stride)
        else:
            if not -size <= item < size:
                raise IndexError(f"index {item} is out of range for axis {axis} of size {size}")
            offset += item % size * stride
        axis += 1
    return t.see(shape, strides, offset)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Slices with a step give one element too few or too many</summary>
#
# How many numbers are in `range(0, 5, 2)`? Python will count them for you.
# </details>
# <details><summary>After a None everything is one axis off</summary>
#
# Two things are being counted here: items of the key and axes of t. Which of them does a `None` use up?
# </details>
# <details><summary>Negative numbers give values from a neighbouring row</summary>
#
# `x[-1]` is the last row. How far is it from the first, in strides? What does `%` do to -1?
# </details>
# <details><summary>I do not know where to begin</summary>
#
# Start with empty lists for shape and strides, with t's offset, and with axis 0. Walk over the expanded key; each item
# appends to the two lists or does not, moves the offset or does not, and goes on to the next axis or does not. The
# table has one row for each case.
# </details>

# %% check="tensor-index"
check("tensor-index", index)

# %% [markdown]
# **Look.** Type a view expression into the explorer and step through it: the cells of the storage light up in the order
# in which the view reads them. Choose *transpose* and watch the jumps. Then find an expression that reads the storage
# backwards from its end, and one that touches only its four corners.

# %% widget="stride-explorer"
stride_explorer()

# %% [markdown]
# **Who shares with whom?** Two tensors share when they have the same storage. Change a number there, and every view
# sees it. So far we only read: writing through tensors comes in chapter 02, when there are gradients that it could
# spoil. Predict the three lines of the next cell before you run it.

# %%
x = tensor([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
column, corners, again = x[:, 1], x.T[::3, ::2], tensor(x)
for name, y in [("column", column), ("corners", corners), ("again", again)]:
    shares = y.storage is x.storage
    print(f"{name:8} strides {y.strides}, offset {y.offset}, shares with x: {shares}")

# %% [markdown]
# Sharing has a price that is easy to forget: `column` keeps all twelve numbers alive. A view of one row of a large
# tensor holds the whole tensor in memory for as long as the view exists, and `clone()` is the way out.
#
# ## Reshape
#
# **Idea.** `reshape` keeps the elements and their reading order, and draws the boundaries between axes anew. Where the
# elements lie evenly, new strides are enough. Where they do not, the elements must first be copied into a row.
#
# When is that? Take `x` of shape `(3, 4)`, and read it as 12. The storage is read in steps of 1 throughout, so stride
# 1 does it. Now `x.T`, of shape `(4, 3)` with strides `(1, 4)`: its reading order is 0, 4, 8, 1, 5, 9, ... The first
# steps are 4, then comes one of -7. No single stride walks like that, and so `x.T.reshape(12)` must copy.
#
# The general rule has two steps.
#
# **Merge.** Two neighbouring axes walk as one when the outer stride is exactly one whole inner axis:
#
# $$s_i = n_{i+1}\, s_{i+1}$$
#
# Merge wherever it holds, and drop axes of size 1, which are never walked along. What is left are *blocks*, each a
# number of elements at an even distance. `x` is a single block of 12 with stride 1; `x.T` is two blocks, 4 with
# stride 1 and 3 with stride 4.
#
# **Split.** Cut the blocks into the new axes, from the right. The last axis gets the stride of the last block, and what
# remains of that block is shorter by the axis's size and walks in steps larger by it. A block of 12 with stride 1, cut
# into `(2, 6)`, gives 6 with stride 1 and 2 with stride 6. Each new axis has to fit into what is left of one block,
# without remainder. If it does not, it would have to bend round a corner, and there is no such view.
#
# For example, shape `(2, 3, 4)` with strides `(40, 4, 1)` has the blocks 2 with stride 40 and 12 with stride 1. As
# `(2, 6, 2)` it can be seen, with strides `(40, 2, 1)`. As `(6, 4)` it cannot: 4 fits into the 12 and leaves 3 with
# stride 4, and 6 does not fit into 3.
#
# Two cases apart: a tensor without elements can take any shape without elements, and the stride of an axis of size 1
# never matters, so the check lets you put any number there.
#
# ### Exercise 1.6: `view_strides`
# Hard, 30 minutes, 5 points.


# %% exercise="tensor-view-strides"
def view_strides(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    new: tuple[int, ...],
) -> tuple[int, ...] | None:
    """The strides that show the same elements, in the same reading order, in the shape `new`.

    shape, strides  of a tensor, any strides: with gaps, 0, negative
    new             another shape of as many elements
    returns         a stride for each axis of `new`, or None where no strides can do it and
                    reshape has to copy

    >>> view_strides((2, 3, 4), (40, 4, 1), (2, 6, 2))
    (40, 2, 1)
    >>> view_strides((4, 3), (1, 4), (12,)) is None
    True

    PyTorch: what Tensor.view decides by
    """
    ### BEGIN SOLUTION
    if prod(shape) == 0:
        return (1,) * len(new)
    blocks = [(1, 1)]
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        outer, outer_stride = blocks[-1]
        if len(blocks) > 1 and outer_stride == size * stride:
            blocks[-1] = outer * size, stride
        else:
            blocks.append((size, stride))
    result, (left, step) = [], blocks.pop()
    for size in reversed(new):
        if left == 1 and size > 1 and blocks:
            left, step = blocks.pop()
        if left % size:
            return None
        result.append(step)
        left, step = left // size, step * size
    return tuple(reversed(result))
    ### END SOLUTION


# %% [markdown]
# <details><summary>It says that a contiguous tensor needs a copy</summary>
#
# How many blocks do you find for shape `(2, 3, 4)` with strides `(12, 4, 1)`? After a merge, which of the two strides
# does the block keep? Compare the next axis with that one.
# </details>
# <details><summary>It goes wrong only where an axis of size 1 is about</summary>
#
# Its stride may be anything, so it must not take part in any comparison. On the new side, does an axis of size 1 use
# anything up?
# </details>
# <details><summary>It accepts a transposed tensor</summary>
#
# When you take a new axis out of a block, what must be true of the block's size? And when may you go on to the next
# block: only when this one is used up completely.
# </details>
# <details><summary>I do not know where to begin</summary>
#
# Two loops. The first walks over the old axes and builds a list of (size, stride) pairs, changing its last pair where
# the rule for merging holds. The second walks over the new sizes from the right with one pair in hand.
# </details>

# %% check="tensor-view-strides"
check("tensor-view-strides", view_strides)

# %% [markdown]
# The rest is given. `view` shows or raises, `copy` writes the elements into a row, and the method `reshape` that you
# saw in the class asks your function which of the two it needs.


# %% given="reshape"
def view(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    """t in another shape on the same storage. Raises ValueError where the strides do not allow that."""
    strides = remember(view_strides, t.shape, t.strides, shape)
    if strides is None:
        raise ValueError(f"shape {t.shape} with strides {t.strides} is not {shape} without a copy: use reshape")
    return t.see(shape, strides, t.offset)


def copy(t: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """The elements of t in row-major order in a storage of their own; in another shape, if one is given."""
    array = t.array.copy("C")
    return t.new(array if shape is None else array.reshape(shape))


# %% [markdown]
# This is the place where silent mistakes are born. The next cell has scores for 2 examples, 3 heads and 4 positions,
# and wants, for each position, the scores of all heads side by side: `(2, 4, 3)`. Both lines give that shape. One of
# them gives the right numbers.

# %%
scores = arange(24).reshape(2, 3, 4)
print(scores.permute(0, 2, 1)[0].tolist())
print(scores.reshape(2, 4, 3)[0].tolist())

# %% [markdown]
# `reshape` never moves an axis: it reads on and draws new boundaries. To exchange axes is the work of `permute`. When a
# network trains badly and all shapes are right, look for a `reshape` that stands where a `permute` should.
# %% [markdown]
# ## Broadcasting
#
# **Idea.** Two shapes that differ can still be added, when one of them can be read more than once. Write the shapes
# below each other, *lined up on the right*. In each column the sizes must be equal, or one of them must be 1 or
# missing; the result takes the other.
#
# |  |  |  |  |
# |---|---|---|---|
# | a | 8 | 1 | 6 |
# | b |   | 7 | 6 |
# | result | 8 | 7 | 6 |
#
# Note what the rule says of 0: it is a size like any other. 0 beside 1 gives 0, and 0 beside 8 is an error. The team at
# the top of this chapter met the first of the two.
#
# When shapes do not fit, the error should save somebody an hour. It names both shapes, and the axis where they part,
# counted from the right as the rule does: -1 is the last axis.
#
# ### Exercise 1.7: `broadcast_shape`
# Medium, 15 minutes, 3 points.


# %% exercise="tensor-broadcast-shape"
def broadcast_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an elementwise operation on tensors of shapes a and b.

    returns  a size for each axis; as many axes as the longer of the two has
    raises   ValueError where they do not fit; it names both shapes and the axis, counted from
             the right (-1 is the last); where several axes do not fit, any of them

    >>> broadcast_shape((8, 1, 6), (7, 6))
    (8, 7, 6)

    PyTorch: torch.broadcast_shapes
    """
    ### BEGIN SOLUTION
    result = []
    for axis in range(-max(len(a), len(b)), 0):
        p, q = (shape[axis] if -axis <= len(shape) else 1 for shape in (a, b))
        if p != q and 1 not in (p, q):
            sizes = f"axis {axis} is {p} in the first, {q} in the second"
            raise ValueError(f"shapes {a} and {b} do not broadcast: {sizes}")
        result.append(q if p == 1 else p)
    return tuple(result)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Shapes of different length come out wrong</summary>
#
# Which of the two ends do you line up? Try `(3, 4)` and `(3,)` on paper: they do not fit.
# </details>
# <details><summary>It gives 1 where there should be 0</summary>
#
# Taking the larger of two sizes looks right for all sizes but one. What does the rule say: the larger one, or the one
# that is not 1?
# </details>
# <details><summary>I do not know where to begin</summary>
#
# Count an axis from `-max(len(a), len(b))` up to -1 and look up both sizes, 1 where a shape is too short. Then there
# are three cases: equal, one of them 1, neither.
# </details>

# %% check="tensor-broadcast-shape"
check("tensor-broadcast-shape", broadcast_shape)


# %% given="broadcast-shapes"
def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that any number of shapes broadcast to."""
    return reduce(broadcast_shape, shapes, ())


# %% [markdown]
# How can one element be read many times without being copied? By not walking: **an axis with stride 0**. However often
# its index grows, the place stays the same. A bias of 6 numbers, seen as `(8, 7, 6)` with strides `(0, 0, 1)`, is 336
# elements in 6 places.
#
# ### Exercise 1.8: `broadcast_to`
# Medium, 10 minutes, 3 points.


# %% exercise="tensor-broadcast-to"
def broadcast_to(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    """t, read as often as it takes to fill a larger shape. Nothing is copied.

    t        a tensor of any shape, strides and offset
    shape    at least as many axes as t; each of t's sizes is 1 or stays
    returns  t.see(shape, strides, offset), with stride 0 along axes that repeat
    raises   ValueError where t does not broadcast to exactly this shape

    >>> broadcast_to(tensor([[10], [20]]), (2, 3)).tolist()
    [[10, 10, 10], [20, 20, 20]]

    PyTorch: Tensor.broadcast_to, Tensor.expand
    """
    ### BEGIN SOLUTION
    shape = tuple(shape)
    if broadcast_shape(t.shape, shape) != shape:
        raise ValueError(f"shape {t.shape} cannot fill {shape}: only axes of size 1 are repeated")
    strides = [0] * (len(shape) - t.ndim)
    strides += [0 if size == 1 else stride for size, stride in zip(t.shape, t.strides, strict=True)]
    return t.see(shape, strides, t.offset)
    ### END SOLUTION


# %% [markdown]
# <details><summary>It runs, and the numbers come from somewhere else</summary>
#
# An axis that repeats must not move the place at all. Which stride did you give it? And the axes that are added in
# front, where there was none?
# </details>
# <details><summary>It shrinks tensors, where it should raise</summary>
#
# `(3, 4)` and `(1, 4)` broadcast together, and the result is `(3, 4)`. Is that the shape that was asked for? Your
# function from the exercise before answers that.
# </details>

# %% check="tensor-broadcast-to"
check("tensor-broadcast-to", broadcast_to)

# %% [markdown]
# **Look.** Choose two shapes and see, for each element of the result, which element of either input it reads. Preset
# *outer* stretches both. Preset *the K trap* is the team's loss: step through it, then turn the 3 into a 1, which is
# what the loss was written for, and into a 0.

# %% widget="broadcasting-explorer"
broadcasting_explorer()

# %% [markdown]
# ## Calculating
#
# **Idea.** Adding two tensors now needs no new thought. Broadcast both to the common shape, walk over all positions,
# find each element by its own strides, add, and write to the next place of a new storage. The cell below says exactly
# that, in your own functions.


# %%
def add_by_loop(a, b):
    shape = broadcast_shape(a.shape, b.shape)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    out = np.empty(prod(shape), np.float32)
    for position in range(prod(shape)):
        place = unravel_index(position, shape)
        x = a.storage.data[flat_offset(place, a.strides, a.offset)]
        y = b.storage.data[flat_offset(place, b.strides, b.offset)]
        out[position] = x + y
    return tensor(out.reshape(shape))


add_by_loop(tensor([[1.0], [2.0]]), tensor([10.0, 20.0, 30.0]))

# %% [markdown]
# It is right for every view there is, for transposed ones, broadcast ones and empty ones, and there is nothing in it
# that you have not written. It also takes several microseconds an element, and a modest layer has a hundred thousand.
# So the kernels below, given, hand the whole walk to NumPy: `t.array` is the same memory under the same shape, strides
# and offset, and NumPy's loop over it is compiled. `calculate` holds the two questions that every elementwise kernel
# has to ask first: do the shapes fit, and what is the dtype of the result?
#
# One thing differs. The loop wrote row by row; NumPy, like PyTorch, walks its inputs in the order in which they lie in
# memory and leaves the result in that same order, since jumping about costs time. So `x.T + 1` has the strides of
# `x.T`: it is new and without gaps, and not row-major. `new` reads the strides off the array, nobody else needs to
# know, and who does want rows asks for `contiguous()`.


# %% given="kernels"
def calculate(ufunc: np.ufunc, a: Tensor, b: Tensor) -> np.ndarray:
    """`ufunc` over two tensors, element by element, in the dtype that result_type chooses."""
    if a.shape != b.shape:
        remember(broadcast_shape, a.shape, b.shape)  # NumPy broadcasts by itself; this is for the error
    if a.dtype is b.dtype:
        return ufunc(a.array, b.array)
    dtype = result_type(a, b)
    with np.errstate(over="ignore"):
        if dtype == float16 and ufunc in (np.multiply, np.divide):  # by a wider number: round once, at the end
            return ufunc(a.array.astype(float32), b.array.astype(float32)).astype(float16)
        x, y = a.array.astype(dtype, copy=False), b.array.astype(dtype, copy=False)
    return ufunc(x, y)


def add(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.add, a, b))


def subtract(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.subtract, a, b))


def multiply(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.multiply, a, b))


def divide(a: Tensor, b: Tensor) -> Tensor:
    """A quotient of whole numbers is float32, as in PyTorch; NumPy would make it float64."""
    if a.dtype.kind != "f" and b.dtype.kind != "f":
        a, b = cast(a, float32), cast(b, float32)  # before they meet in a dtype that may be too small for one of them
    return a.new(calculate(np.divide, a, b))


def power(a: Tensor, b: Tensor) -> Tensor:
    """NumPy has short cuts for roots, and for 2 and -1 where they are Python's whole numbers."""
    if b.ndim == 0 and (a.dtype == b.dtype or (a.shape and a.dtype == float16)):
        exponent = b.array.item()
        return a.new(a.array ** (int(exponent) if exponent in (2, -1) else exponent))
    return a.new(calculate(np.power, a, b))


def equal(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.equal, a, b))


def not_equal(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.not_equal, a, b))


def less(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.less, a, b))


def less_equal(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.less_equal, a, b))


def greater(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.greater, a, b))


def greater_equal(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.greater_equal, a, b))


def bitwise_and(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.bitwise_and, a, b))


def bitwise_or(a: Tensor, b: Tensor) -> Tensor:
    return a.new(calculate(np.bitwise_or, a, b))


# %% given="kernels-of-one-input"
def real(t: Tensor) -> np.ndarray:
    """t's array, as float32 where it holds whole numbers."""
    return t.array if t.dtype.kind == "f" else t.array.astype(float32)


def exp(t: Tensor) -> Tensor:
    return t.new(np.exp(real(t)))


def log(t: Tensor) -> Tensor:
    return t.new(np.log(real(t)))


def sqrt(t: Tensor) -> Tensor:
    return t.new(np.sqrt(real(t)))


def tanh(t: Tensor) -> Tensor:
    return t.new(np.tanh(real(t)))


def negative(t: Tensor) -> Tensor:
    return t.new(-t.array)


def absolute(t: Tensor) -> Tensor:
    return t.new(np.abs(t.array))


def bitwise_not(t: Tensor) -> Tensor:
    return t.new(~t.array)


def cast(t: Tensor, dtype: np.dtype) -> Tensor:
    """A copy of t that holds another dtype. What is too large for it becomes inf, without a warning."""
    with np.errstate(over="ignore"):
        return t.new(t.array.astype(dtype))


# %% [markdown]
# **Dtypes.** A float32 number takes half the memory of a float64 one, and a kernel on them half the time. It takes one
# stray float64 to lose that: the result is float64, and so is everything computed from it. NumPy widens gladly; PyTorch
# has rules that keep float32 alive, and we follow them.
#
# 1. There are three *categories*: truth values, whole numbers, real numbers. `CATEGORY[dtype.kind]` is 0, 1 or 2.
# 2. Of two dtypes in different categories the higher category wins, and its dtype is the result: int64 and float16 give
#    float16. Within a category the result is the smallest dtype that holds both: `np.promote_types` knows it.
# 3. A tensor *without axes* gives way to one with axes: beside them it counts only if its category is higher. A mean in
#    float64 cannot widen a float32 matrix, yet a real number does turn whole ones into reals.
# 4. A Python number gives way to any tensor in the same manner. That is done already, when the number is made a tensor.
#
# | a | b | result |
# |---|---|---|
# | float32, shape (3,) | float64, shape (3,) | float64 |
# | float32, shape (3,) | float64, shape () | float32 |
# | int64, shape (3,) | float64, shape () | float64 |
# | int64, shape (3,) | float16, shape (3,) | float16 |
# | bool, shape () | uint8, shape () | uint8 |
#
# ### Exercise 1.9: `result_type`
# Medium, 15 minutes, 3 points.


# %% exercise="tensor-result-type"
def result_type(a: Tensor, b: Tensor) -> np.dtype:
    """The dtype of an elementwise operation on a and b.

    a, b     tensors; their dtype and whether they have axes decide, their values never do
    returns  a dtype

    >>> result_type(ones(3, dtype=float32), ones((), dtype=float64))
    dtype('float32')

    PyTorch: torch.result_type
    """
    ### BEGIN SOLUTION
    p, q = CATEGORY[a.dtype.kind], CATEGORY[b.dtype.kind]
    if a.ndim and not b.ndim and p >= q:
        return a.dtype
    if b.ndim and not a.ndim and q >= p:
        return b.dtype
    if p == q:
        return np.promote_types(a.dtype, b.dtype)
    return a.dtype if p > q else b.dtype
    ### END SOLUTION


# %% [markdown]
# <details><summary>int64 beside float32 gives float64</summary>
#
# That is NumPy's rule, which wants to lose no digit of a large whole number. Which rule comes before
# `np.promote_types` here?
# </details>
# <details><summary>A tensor without axes always loses</summary>
#
# What should `counts * 0.5` be, where the half came out of another computation as a tensor? Read rule 3 to its end.
# </details>
# <details><summary>It is right only with the arguments in one order</summary>
#
# Rule 3 has two sides: a may be the one without axes, or b. And when both are, is there any reason to prefer one?
# </details>

# %% check="tensor-result-type"
check("tensor-result-type", result_type)

# %% [markdown]
# Now `+` works on every pair of tensors, and the two versions can race. The curve of the loop is short because nobody
# would wait for the rest.

# %%
from gradwright.chapters.start import fastest

sizes = [10, 100, 1_000, 10_000]
by_loop = [fastest(add_by_loop, rand(n), rand(n), repeats=3) for n in sizes]
long_sizes = [*sizes, 100_000, 1_000_000]
vectorised = [fastest(add, rand(n), rand(n)) for n in long_sizes]
ratio = by_loop[-1] / vectorised[3]

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.loglog(sizes, by_loop, "o-", color="#d55e00", label="add_by_loop")
axes.loglog(long_sizes, vectorised, "s--", color="#0072b2", label="add")
axes.set(xlabel="elements", ylabel="seconds", title=f"At 10,000: {ratio:,.0f} times")
axes.legend()
plt.show()

# %% [markdown]
# The curve of `add` is flat up to some thousand elements. There the kernel is not what you pay for: Python walks from
# the method through the door to the function, asks about shapes and dtypes, and makes a new tensor. That is about two
# microseconds a call, and no kernel can be faster. Large operations do not notice; a network of many tiny ones consists
# of nothing else.
#
# ### Reductions
#
# `sum`, `mean` and `max` make axes disappear. The loop that defines a sum over axis 1 of a tensor of shape `(2, 3, 4)`:
# start with zeros of shape `(2, 4)` and add element `(i, j, k)` to place `(i, k)`. With `keepdim=True` the place is
# `(i, 0, k)` in shape `(2, 1, 4)`, which broadcasts against the input again; that is how a mean is subtracted from what
# it was taken of.
#
# `dim` may be one axis, several, or `None` for all; negative ones count from the end. `dims_of`, given with the class,
# turns all of that into a tuple of axes counted from the front. The sums and extremes are given as well. They show the
# style: `np.add.reduce` is the compiled loop.


# %% given="reductions"
def sum_over(t: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    """Sums along `dim`. Whole numbers and truth values are added up as int64; float16 in float32, and rounded once."""
    dtype = int64 if t.dtype.kind != "f" else float32 if t.dtype == float16 else None
    total = t.new(np.add.reduce(t.array, dims_of(dim, t.ndim), dtype, keepdims=keepdim))
    return cast(total, float16) if t.dtype == float16 else total


def max_over(t: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    return t.new(extreme(np.maximum, t, dim, keepdim))


def min_over(t: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    return t.new(extreme(np.minimum, t, dim, keepdim))


def max_along(t: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """Over one axis. The values of max_over; the gradient will differ, where several elements are largest."""
    return t.new(extreme(np.maximum, t, dim, keepdim))


def min_along(t: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    return t.new(extreme(np.minimum, t, dim, keepdim))


def extreme(ufunc: np.ufunc, t: Tensor, dim: int | tuple[int, ...] | None, keepdim: bool) -> np.ndarray:
    dims = dims_of(dim, t.ndim)
    refuse_empty(ufunc.__name__, t, dims)
    return ufunc.reduce(t.array, dims, keepdims=keepdim)


def refuse_empty(name: str, t: Tensor, dims: tuple[int, ...]) -> None:
    for dim in dims:
        if not t.shape[dim]:
            raise ValueError(f"the {name} over axis {dim} of shape {t.shape} does not exist: there is no element")


def argmax(t: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element is, the first if there are several; with dim None, its position in reading order."""
    return t.new(t.array.argmax(searched("argmax", t, dim), keepdims=keepdim))


def argmin(t: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element is, the first if there are several; with dim None, its position in reading order."""
    return t.new(t.array.argmin(searched("argmin", t, dim), keepdims=keepdim))


def searched(name: str, t: Tensor, dim: int | None) -> int | None:
    """The one axis that argmax or argmin look along, None for reading order; refused where it has no elements."""
    refuse_empty(name, t, dims_of(dim, t.ndim))
    return None if dim is None or not t.ndim else axis_of(dim, t.ndim)


def all_over(t: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    return t.new(np.logical_and.reduce(t.array, dims_of(dim, t.ndim), keepdims=keepdim))


def any_over(t: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    return t.new(np.logical_or.reduce(t.array, dims_of(dim, t.ndim), keepdims=keepdim))


# %% [markdown]
# A mean is a sum divided by a count, and the count is where it goes wrong: it is the number of elements *that were
# added up*, which is neither the number of elements that are there nor, over several axes, the size of one of them.
# And the mean of nothing is `nan`: not 0, which would look like an answer, and not an error, since PyTorch and NumPy
# have settled on `nan`. NumPy adds a warning, which this function should not.
#
# ### Exercise 1.10: `mean_over`
# Medium, 15 minutes, 3 points.


# %% exercise="tensor-mean"
def mean_over(t: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    """Means along `dim`.

    t        a tensor of floats
    dim      an axis, a tuple of axes, or None for all; may be negative
    keepdim  whether the axes stay, with size 1
    returns  a tensor of t's dtype: t.new(array); nan where there was nothing to average

    >>> mean_over(tensor([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]]), dim=1).tolist()
    [2.0, 6.0]

    PyTorch: Tensor.mean
    """
    ### BEGIN SOLUTION
    dims = dims_of(dim, t.ndim)
    count = prod(t.shape[d] for d in dims)
    total = np.add.reduce(t.array, dims, keepdims=keepdim)
    return t.new(total / count if count else np.full_like(total, np.nan))
    ### END SOLUTION


# %% [markdown]
# <details><summary>A mean over all axes is right, over one it is too small</summary>
#
# How many elements went into each sum? Work it out for shape `(2, 3)` and dim 1.
# </details>
# <details><summary>A float32 tensor gives float64</summary>
#
# Dividing by a Python number keeps the dtype. What kind of number is your count, and what does `np.mean` return for no
# elements?
# </details>
# <details><summary>There is a warning, or a division by zero, for empty tensors</summary>
#
# The count can be 0 while the result still has elements: the mean over axis 0 of shape `(0, 3)` has three. Treat the
# case before you divide. `np.full_like` fills a shape with one number.
# </details>

# %% check="tensor-mean"
check("tensor-mean", mean_over)
# %% [markdown]
# ## Matrix products
#
# **Idea.** This is where deep learning spends its time. For matrices of shape `(n, k)` and `(k, m)`
#
# $$C_{ij} = \sum_{p=0}^{k-1} A_{ip}\, B_{pj}$$
#
# is three loops, and what they say fits in five lines. The loops may stand in any order: every order adds the same
# products. They differ only in how they walk through memory.


# %%
def matmul_by_loops(a, b):
    (n, k), m = a.shape, b.shape[1]
    out = np.zeros((n, m), a.dtype)
    for i in range(n):
        for j in range(m):
            for p in range(k):
                out[i, j] += a.array[i, p] * b.array[p, j]
    return tensor(out)


matmul_by_loops(tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([[5.0, 6.0], [7.0, 8.0]]))

# %% [markdown]
# Tensors have more axes than two. `matmul` multiplies along the last two, as above, and **all axes before them
# broadcast**, by the rule that you wrote: `(8, 1, 5, 3) @ (4, 3, 2)` gives `(8, 4, 5, 2)`, which is 32 products of
# small matrices. Vectors never arrive here, since the method `@` lends a vector an axis and takes it away again.
#
# NumPy's `@` on arrays does all of this in compiled code, so three things are left to you. The size that is summed away
# must be the same on both sides, and an error about it names both shapes. So must the leading axes broadcast; that
# error you have already. And one case deserves care: when `b` is a single matrix, as every linear layer's weight is,
# then `(8, 64, 256) @ (256, 256)` need not be 8 products. Its 512 rows all meet the same matrix, so it is *one*
# product, of `(512, 256)` with `(256, 256)`, reshaped. BLAS, the library underneath, is at its best with large
# matrices.
#
# ### Exercise 1.11: `matmul`
# Medium, 20 minutes, 4 points.


# %% exercise="tensor-matmul"
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product over the last two axes; the axes before them broadcast.

    a        shape (..., n, k)
    b        shape (..., k, m), of the same dtype
    returns  a tensor of shape (..., n, m): a.new(array)
    raises   ValueError where the two k differ, or the leading axes do not broadcast; let it
             name both shapes

    >>> matmul(tensor([[1, 2], [3, 4]]), tensor([[5, 6], [7, 8]])).tolist()
    [[19, 22], [43, 50]]

    PyTorch: torch.matmul
    """
    ### BEGIN SOLUTION
    k, inner = a.shape[-1], b.shape[-2]
    if k != inner:
        shapes = f"matmul of {a.shape} and {b.shape}"
        raise ValueError(f"{shapes}: axis -1 of the first is {k}, axis -2 of the second {inner}")
    if len(b.shape) == 2 < len(a.shape):
        rows = a.array.reshape(prod(a.shape[:-1]), k) @ b.array
        return a.new(rows.reshape(*a.shape[:-1], b.shape[-1]))
    if a.shape[:-2] != b.shape[:-2]:
        try:
            broadcast_shape(a.shape[:-2], b.shape[:-2])
        except ValueError as error:
            raise ValueError(f"matmul of {a.shape} and {b.shape}: leading {error}") from error
    return a.new(a.array @ b.array)
    ### END SOLUTION


# %% [markdown]
# <details><summary>The error names other shapes than those of a and b</summary>
#
# NumPy's message is about its arrays, and calls things by other names. Compare the two sizes yourself, before you
# multiply, and say what you found.
# </details>
# <details><summary>Two axes work, more do not</summary>
#
# Count axes from the end: the last is -1 whatever comes before it. Which of your lines says 0 or 1?
# </details>
# <details><summary>The numbers are right but the shape is flat</summary>
#
# After one large product, the rows have to be sorted back into the leading axes of a. Only the last axis has changed
# its size.
# </details>

# %% check="tensor-matmul"
check("tensor-matmul", matmul)

# %% [markdown]
# One habit pays more than any other here: write the shapes beside each product, in a comment, and read them like
# units in physics. `(B, T, D) @ (D, H)` gives `(B, T, H)`: the two inner letters meet and vanish. If they are not the
# same letter, the product is wrong even where the sizes happen to agree.
#
# **Look.** Four ways to the same product, timed. *Three loops* is the definition. *Rows by columns* lets NumPy do the
# innermost loop, a dot product: row `i` of A lies in memory in order, column `j` of B does not, each of its elements is
# a whole row further. *Row by matrix* reads B as it lies. The last is a single call, in which BLAS cuts the matrices
# into blocks that stay in the cache while they are needed.


# %%
def rows_by_columns(a, b):
    return np.array([[row @ b[:, j] for j in range(b.shape[1])] for row in a])


def row_by_matrix(a, b):
    return np.array([row @ b for row in a])


def one_call(a, b):
    return a @ b


sizes = [8, 16, 32, 64, 128, 256]
pairs = {n: (rand(n, n), rand(n, n)) for n in sizes}
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
loops = [fastest(matmul_by_loops, *pairs[n], repeats=1) for n in sizes[:4]]
axes.loglog(sizes[:4], loops, "o-", color="#d55e00", label="three loops")
ways = [
    (rows_by_columns, "^-.", "#cc79a7"),
    (row_by_matrix, "v:", "#009e73"),
    (one_call, "s--", "#0072b2"),
]
for way, mark, color in ways:
    seconds = [fastest(way, a.array, b.array, repeats=3) for a, b in pairs.values()]
    axes.loglog(sizes, seconds, mark, color=color, label=way.__name__.replace("_", " "))
axes.set(xlabel="n, for two matrices of n x n", ylabel="seconds")
axes.legend()
plt.show()

# %% [markdown]
# The next picture shows the cache by itself: a sum over equally many elements each time, which lie 1, 2, 4, ... places
# apart. The arithmetic is the same, and the time is not. Memory comes in *lines* of 64 bytes, 16 float32 numbers. With
# stride 1 all 16 are used; with stride 16 one is used and 15 were fetched for nothing. Strides are free to write and
# not free to walk.

# %%
storage = zeros(2**24)
steps = [1, 2, 4, 8, 16, 32, 64]
views = [storage[: step * 2**18 : step] for step in steps]
nanoseconds = [fastest(sum_over, v) / v.numel() * 1e9 for v in views]

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.semilogx(steps, nanoseconds, "o-", color="#0072b2", base=2)
axes.set(xlabel="stride, in elements", ylabel="nanoseconds an element", ylim=0)
axes.set(xticks=steps, xticklabels=steps)
plt.show()

# %% [markdown]
# Both pictures once more, as one core of an ordinary machine recorded them.

# %% figure="walking-through-memory"
"""Two pictures. On the left, seconds against the size n of two square matrices, both axes logarithmic: three loops take
0.2 seconds at n = 64; at n = 256, rows by columns take 0.1 seconds, row by matrix 1.3 milliseconds and one call 0.36
milliseconds. On the right, nanoseconds an element of a sum against the stride: 0.2 at strides 1 and 2, 0.5 at 8, about
1 from 16 on."""
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), width_ratios=[3, 2], layout="constrained")
sizes = [8, 16, 32, 64, 128, 256]
recorded = [
    ("three loops", [3.8e-4, 3.0e-3, 2.5e-2, 2.0e-1], "o-", "#d55e00"),
    ("rows by columns", [8.4e-5, 3.2e-4, 1.3e-3, 5.1e-3, 2.3e-2, 1.0e-1], "^-.", "#cc79a7"),
    ("row by matrix", [1.2e-5, 2.3e-5, 4.5e-5, 9.6e-5, 3.0e-4, 1.3e-3], "v:", "#009e73"),
    ("one call", [1.4e-6, 1.6e-6, 2.7e-6, 8.2e-6, 5.3e-5, 3.6e-4], "s--", "#0072b2"),
]
for name, seconds, mark, color in recorded:
    left.loglog(sizes[: len(seconds)], seconds, mark, color=color, label=name)
left.set(xlabel="n, for two matrices of n x n", ylabel="seconds")
left.set_xticks(sizes, sizes)
left.minorticks_off()
left.legend()
steps = [1, 2, 4, 8, 16, 32, 64]
right.semilogx(steps, [0.20, 0.21, 0.30, 0.47, 0.84, 1.1, 0.92], "o-", color="#0072b2", base=2)
right.set(xlabel="stride, in elements", ylabel="nanoseconds an element", ylim=0)
right.set_xticks(steps, steps)
# %% [markdown]
# ## Reading a shape error
#
# **Idea.** Someone sends you one line of a log:
#
#     matmul of (32, 64, 256) and (64, 128): axis -1 of the first is 256, axis -2 of the second 64
#
# Before you open a debugger, ask the shapes. Write down what the operation *wants*, with a blank where any size will
# do: `(any, any, 64)`. What it *got* is `(32, 64, 256)`. Is there one exchange of two axes that makes the two fit?
# Axes 1 and 2: `(32, 256, 64)`. So somewhere above, two axes were exchanged, or an exchange was forgotten.
#
# The answer can be that there is none, and then the mistake is of another kind. It can also be that there are several,
# and that is worth knowing too: sizes that are equal cannot tell axes apart. This is why one debugs with a batch of 3,
# a length of 5 and a width of 7, and not with 64 everywhere.
#
# ### Exercise 1.12: `debug_shape`
# Medium, 15 minutes, 3 points.


# %% exercise="tensor-debug-shape"
def debug_shape(got: tuple[int, ...], want: tuple[int | None, ...]) -> list[tuple[int, int]]:
    """Which single exchange of two axes turns the shape we got into one that is wanted?

    got      a shape
    want     a size for each axis, or None where any size will do
    returns  every pair (i, j), i < j, such that exchanging axes i and j of `got` fits `want`,
             in ascending order; an empty list where `got` fits as it is, where no exchange
             helps, or where the numbers of axes differ

    >>> debug_shape((32, 64, 256), (None, None, 64))
    [(1, 2)]
    >>> debug_shape((64, 64, 256), (None, None, 64))
    [(0, 2), (1, 2)]

    PyTorch: no such function
    """

    ### BEGIN SOLUTION
    def fits(shape):
        if len(shape) != len(want):
            return False
        return all(w in (None, n) for n, w in zip(shape, want, strict=True))

    def exchanged(i, j):
        order = list(range(len(got)))
        order[i], order[j] = j, i
        return [got[axis] for axis in order]

    if fits(got):
        return []
    return [(i, j) for i, j in combinations(range(len(got)), 2) if fits(exchanged(i, j))]
    ### END SOLUTION


# %% [markdown]
# <details><summary>It reports exchanges for a shape that is fine</summary>
#
# Two axes of equal size can always be exchanged. Is anything wrong in that case?
# </details>
# <details><summary>It finds one pair where there are two</summary>
#
# When do you return: at the first pair that fits, or after all of them have been tried?
# </details>
# <details><summary>A blank is treated as a size</summary>
#
# `None` stands for any size. Which comparison should it win without looking?
# </details>
# <details><summary>I do not know where to begin</summary>
#
# Two questions make it easy: does this shape fit? And what is the shape after exchanging i and j? Then try all pairs;
# `itertools.combinations` is imported.
# </details>

# %% check="tensor-debug-shape"
check("tensor-debug-shape", debug_shape)

# %% [markdown]
# Here is the kind of error that your own framework now raises. Read it, write down what the product wants of its left
# side, and ask.

# %%
hidden, weight = rand(3, 7, 5), rand(7, 4)
hidden @ weight

# %%
debug_shape(hidden.shape, (None, None, weight.shape[0]))

# %% [markdown]
# ## In PyTorch
#
# Everything of this chapter is there under the same names, and works the same way: a `torch.Tensor` is a storage,
# sizes, strides and an offset, in elements. Some differences are worth knowing.
#
# | | here | PyTorch | NumPy |
# |---|---|---|---|
# | strides count | elements | elements | bytes |
# | negative steps in a slice | yes | an error: use `flip`, which copies | yes |
# | shapes that do not fit | `ValueError` | `RuntimeError` | `ValueError` |
# | int64 with float32 | float32 | float32 | float64 |
# | float32 matrix with a float64 scalar array | float32 | float32 | float64 |
# | `1 / 0` on tensors | `inf`, and NumPy's warning | `inf`, silently | `inf`, with a warning |
#
# PyTorch adds a *device* to every tensor: the storage may lie in the memory of a GPU, and an operation runs where its
# inputs are. Strides work there as here, and cost more: neighbouring threads should read neighbouring places.
#
# Set side by side, with NumPy's bytes divided by the four of a float32:

# %%
ours, theirs = zeros(2, 3, 4), np.zeros((2, 3, 4), np.float32)
views = {
    "x": lambda x: x,
    "x[:, 1:]": lambda x: x[:, 1:],
    "x[..., ::-2]": lambda x: x[..., ::-2],
    "x.T": lambda x: x.T,
    "x[1, None]": lambda x: x[1, None],
}
for name, view_of in views.items():
    a, b = view_of(ours), view_of(theirs)
    print(f"{name:14} {a.shape!s:12} {a.strides!s:13} {tuple(step // 4 for step in b.strides)}")

# %% [markdown]
# ## Check yourself
#
# Write two or three sentences each; there is nothing to run.
#
# 1. A colleague replaces `x.permute(0, 2, 1).reshape(64, -1)` by `x.reshape(64, -1)`, "because the shapes are the same
#    and it saves a copy". What does the network see from then on, and why does no error appear?
# 2. `loss = ((prediction - target) ** 2).mean()` runs with `prediction` of shape `(64, 1)` and `target` of shape
#    `(64,)`. What is the shape of the difference, how many pairs are averaged, and which single line would have caught
#    it?
#
# You can now
#
# - ✓ say where element `(i, j, k)` of any tensor lies in memory, and which element lies at a given place;
# - ✓ build slices, transpositions and broadcasts that copy nothing, and say who shares memory with whom;
# - ✓ tell when a reshape is free, when it must copy, and why;
# - ✓ predict the shape and the dtype of `a + b`, `a.mean(dim)` and `a @ b`, or the error;
# - ✓ find the transposed axis behind a shape error from the shapes alone.
#
# In chapter 02 the door begins to listen: every operation that passes it will leave a note of what was done, and
# reading the notes backwards gives the gradient.
