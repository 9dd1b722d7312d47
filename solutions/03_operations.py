# %% [markdown]
# # 03 Operations
#
# ## Why
#
# A team wrote its own attention, forward and backward, to save a copy. The loss was right: with the same weights it
# agreed with the slow version's to the last digit. Training was not: after an hour the slow version was far ahead. They
# compared the gradients of all weights, from the loss downwards. All agreed, down to the projection in front of the
# heads, and that one did not. So they looked at the gradient that arrived there. It had the right shape, the right mean
# and the right norm. It held the right numbers. They stood in the wrong places.
#
# The line was found on the second day. On the way forward the activations had been reshaped into heads and *permuted*.
# On the way back they were reshaped. A reshape reads elements in the order in which they lie, and after the permute
# they lay in another order. With four heads and four positions in the test, even the shapes had nothing to say.
#
# Chapter 02 built the machine that carries gradients. This chapter fills it with operations, some sixty of them, in
# six families. There is one trap in each family, and you will have met it before it meets you. After it you can
#
# - derive the gradient of an elementwise operation, and say what happens at its kinks and ties;
# - send a gradient back through means, variances, maxima, products and running sums;
# - write the backward of a matrix product for vectors, matrices and stacks;
# - undo reshapes, permutes and repeats without moving a number to the wrong place;
# - add up gradients where an index was used many times;
# - derive the softmax's coupling term, and keep float32 gradients float32.
#
# Allow about four hours; each section is a good place to stop.

# %%
import matplotlib.pyplot as plt

import gradwright
from autograder import check
from gradwright.widgets import jacobian_view

gradwright.chapter(3)

# %% [markdown]
# Two modules stand below this chapter. `plain` is chapter 01, functions that know nothing of gradients; `autodiff` is
# chapter 02, whose `Operation` you subclass here as you did there: `forward` computes and saves, `backward` takes a
# NumPy array and gives one for each input. `send`, in the machine, does the rest: it sums what was broadcast, casts to
# the input's dtype, and refuses a wrong shape.

# %% given="imports"
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache, wraps
from inspect import isgeneratorfunction
from typing import Any, ClassVar, Self

import numpy as np

from gradwright.chapters import autodiff
from gradwright.chapters import tensor as plain
from gradwright.chapters.autodiff import GradcheckError, Operation, spread, state, unbroadcast

# %% [markdown]
# The tensor of this chapter comes first. It has a method for every operation that is to come, each of them a line or
# two: check the arguments, then go through the door, `apply`. Nothing in it is new but the names, which are PyTorch's.
# A method works as soon as the cell with its function has run, and its gradient as soon as the operation is written.
#
# Arguments that PyTorch has and this course has not are refused by name: `x.norm(3)` says that p is 1, 2 or inf, and
# `x.var(unbiased=False)` that there is no such argument.


# %% given="methods-elementwise"
class Elementwise:
    """Methods that work on each element by itself. `other` is a tensor or a Python number."""

    def log1p(self) -> Self:
        return self.apply(log1p, self)

    def expm1(self) -> Self:
        return self.apply(expm1, self)

    def rsqrt(self) -> Self:
        return self.apply(rsqrt, self)

    def sin(self) -> Self:
        return self.apply(sin, self)

    def cos(self) -> Self:
        return self.apply(cos, self)

    def reciprocal(self) -> Self:
        return self.apply(reciprocal, self)

    def square(self) -> Self:
        return self.apply(square, self)

    def sigmoid(self) -> Self:
        return self.apply(sigmoid, self)

    def relu(self) -> Self:
        return self.apply(relu, self)

    def maximum(self, other: Any) -> Self:
        """The larger of two, element by element; max() finds the largest of one tensor."""
        return self.apply(maximum, self, self.beside(other))

    def minimum(self, other: Any) -> Self:
        return self.apply(minimum, self, self.beside(other))

    def clamp(self, min: float | None = None, max: float | None = None) -> Self:
        """Every element moved into [min, max], where one of the two may be left out. They are Python numbers."""
        if min is None and max is None:
            raise ValueError("clamp needs a bound: give it min, max or both")
        for name, bound in (("min", min), ("max", max)):
            if isinstance(bound, plain.Strided):
                raise TypeError(f"clamp takes a number for {name}: for a tensor use maximum and minimum")
        low, high = -np.inf if min is None else min, np.inf if max is None else max
        bounds = [n for n in (min, max) if n is not None]
        dtype = np.result_type(*[plain.number_dtype(self.dtype, n) for n in bounds])
        t = self.to(dtype)
        if t.dtype.kind != "f":
            low, high = (np.iinfo(t.dtype).min if min is None else min), (np.iinfo(t.dtype).max if max is None else max)
        return self.apply(clamp, t, low=low, high=high)

    def where(self, condition: Self, other: Any) -> Self:
        """self where the condition holds, other where it does not."""
        return where(condition, self, other)

    def masked_fill(self, mask: Self, value: Any) -> Self:
        """This tensor with `value`, a number or a tensor without axes, wherever the mask is True. The dtype stays."""
        if isinstance(value, plain.Strided) and value.ndim:
            raise ValueError(f"masked_fill takes one number and this tensor has shape {value.shape}: use where")
        value = self.beside(value)
        return where(mask, value.to(self.dtype), self)

    def isnan(self) -> Self:
        return self.apply(isnan, self)

    def isinf(self) -> Self:
        return self.apply(isinf, self)

    def isfinite(self) -> Self:
        return self.apply(isfinite, self)

    def equal(self, other: Self) -> bool:
        """Whether shape and all elements are the same: one answer, where == gives one for each element."""
        return self.shape == other.shape and bool(np.array_equal(self.array, other.array))

    def allclose(self, other: Self, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
        return bool(np.allclose(self.array, other.array, rtol, atol, equal_nan))

    def beside(self, other: Any) -> Any:
        """`other` as a tensor: a Python number gets no axes, and the dtype that it has beside self."""
        if isinstance(other, plain.Strided):
            return other
        if not isinstance(other, int | float | np.generic):
            raise TypeError(f"a tensor or a number is wanted beside a tensor, and this is a {type(other).__name__}")
        return self.new(np.asarray(other, plain.number_dtype(self.dtype, other)))


# %% given="methods-reductions"
class FurtherReductions:
    """Methods that make axes disappear, or look along one. `dim` is an axis; where it says so, or a tuple, or None."""

    def var(self, dim: int | tuple[int, ...] | None = None, *, correction: float = 1, keepdim: bool = False) -> Self:
        """The variance, divided by count - correction: 1 for a sample, 0 for all there is."""
        return self.apply(var, self.real_only("var"), dim=dim, correction=correction, keepdim=keepdim)

    def std(self, dim: int | tuple[int, ...] | None = None, *, correction: float = 1, keepdim: bool = False) -> Self:
        return self.apply(std, self.real_only("std"), dim=dim, correction=correction, keepdim=keepdim)

    def prod(self, dim: int | None = None, keepdim: bool = False) -> Self:
        if isinstance(dim, tuple | list):
            raise NotImplementedError(f"prod over dim {dim} is not offered: one axis at a time, or all")
        return self.apply(prod, self, dim=dim, keepdim=keepdim)

    def cumsum(self, dim: int) -> Self:
        return self.apply(cumsum, self, dim=dim)

    def logsumexp(self, dim: int | tuple[int, ...], keepdim: bool = False) -> Self:
        return self.apply(logsumexp, self, dim=dim, keepdim=keepdim)

    def softmax(self, dim: int) -> Self:
        plain.axis_of(dim, self.ndim)
        return self.apply(softmax, self.real_only("softmax"), dim=dim)

    def log_softmax(self, dim: int) -> Self:
        plain.axis_of(dim, self.ndim)
        return self.apply(log_softmax, self.real_only("log_softmax"), dim=dim)

    def norm(self, p: float | str = 2, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Self:
        """The length of a vector: p is 1, 2 or inf."""
        p = {"fro": 2}.get(p, p)
        if p not in (1, 2, math.inf):
            raise NotImplementedError(f"norm with p={p!r} is not offered: use 1, 2 or inf")
        if p == math.inf:
            plain.refuse_empty("norm with p=inf", self, plain.dims_of(dim, self.ndim))
        return self.apply(norm, self.real_only("norm"), p=p, dim=dim, keepdim=keepdim)

    def max(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """The largest element. With a dim: the largest along it, and where it is (the first of several)."""
        return self.apply(largest, self) if dim is None else super().max(dim, keepdim)

    def min(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """The smallest element. With a dim: the smallest along it, and where it is (the first of several)."""
        return self.apply(smallest, self) if dim is None else super().min(dim, keepdim)

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        return self.apply(argsort_along, self, dim=plain.axis_of(dim, self.ndim), descending=descending)

    def sort(self, dim: int = -1, descending: bool = False) -> plain.Extremum:
        """The elements along an axis in order, and where each came from. Equal ones keep their order."""
        order = self.argsort(dim, descending)
        return plain.Extremum(self.gather(dim, order), order)

    def topk(self, k: int, dim: int = -1, largest: bool = True) -> plain.Extremum:
        """The k largest elements along an axis, the largest first, and where they are."""
        size = self.shape[plain.axis_of(dim, self.ndim)] if self.ndim else 1
        if not 0 <= k <= size:
            raise ValueError(f"topk of {k} elements along dim {dim} of shape {self.shape}, which has {size}")
        order = self.argsort(dim, largest)
        order = order.narrow(dim, 0, k) if self.ndim else order
        return plain.Extremum(self.gather(dim, order), order)

    def real_only(self, name: str) -> Self:
        if self.dtype.kind != "f":
            raise TypeError(f"{name} is for floats and this tensor holds {self.dtype}: convert first, as in x.float()")
        return self


# %% given="methods-products"
class Products:
    """Matrix products, by their many names."""

    def __matmul__(self, other: Any) -> Self:
        """The product over the last axis of self and the last but one of other, or the only one of a vector."""
        if not isinstance(other, plain.Strided):
            if isinstance(other, np.ndarray):
                raise TypeError("an array and a tensor do not mix: make it a tensor first, as in tensor(array)")
            return NotImplemented
        if not (self.shape and other.shape):
            raise ValueError(f"matmul needs an axis to sum over: shapes {self.shape} and {other.shape}, use * instead")
        return self.apply(product, self, other)

    matmul = __matmul__

    def mm(self, mat2: Self) -> Self:
        return self.demand("mm", 2, mat2, 2) @ mat2

    def bmm(self, mat2: Self) -> Self:
        self.demand("bmm", 3, mat2, 3)
        if self.shape[0] != mat2.shape[0]:
            raise ValueError(
                f"bmm of {self.shape} and {mat2.shape}: both need equally many matrices; matmul broadcasts"
            )
        return self @ mat2

    def mv(self, vec: Self) -> Self:
        return self.demand("mv", 2, vec, 1) @ vec

    def dot(self, tensor: Self) -> Self:
        return self.demand("dot", 1, tensor, 1) @ tensor

    def outer(self, vec2: Self) -> Self:
        return self.demand("outer", 1, vec2, 1).unsqueeze(1) * vec2

    def addmm(self, mat1: Self, mat2: Self, *, beta: float = 1, alpha: float = 1) -> Self:
        """beta * self + alpha * (mat1 @ mat2), as one operation. With beta 0, self is not looked at, whatever it holds.

        self    any shape that broadcasts to the product's
        raises  ValueError for other shapes, TypeError for tensors of several dtypes
        """
        mat1.demand("addmm", 2, mat2, 2)
        shape = (mat1.shape[0], mat2.shape[1])
        if plain.remember(plain.broadcast_shape, self.shape, shape) != shape:
            raise ValueError(f"addmm: a tensor of shape {self.shape} cannot be added to a product of shape {shape}")
        return self.apply(add_product, self, mat1, mat2, beta=beta, alpha=alpha)

    def demand(self, name: str, axes: int, other: Any, others: int) -> Self:
        if (self.ndim, other.ndim) != (axes, others):
            raise ValueError(f"{name} wants {axes} and {others} axes and got shapes {self.shape} and {other.shape}")
        return self


# %% [markdown]
# Cutting, repeating and indexing. Parts of a tensor are views, as in chapter 01, so `split`, `chunk` and `unbind` copy
# nothing; what repeats or turns is copied.


# %% given="methods-shapes"
class Shapes:
    """Methods that cut, turn and repeat. Parts are views; what repeats or turns is copied."""

    def narrow(self, dim: int, start: int, length: int) -> Self:
        """The part of an axis that begins at start."""
        return self[(slice(None),) * plain.axis_of(dim, self.ndim) + (slice(start, start + length),)]

    def split(self, split_size: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """Parts along an axis, each of split_size, the last perhaps smaller; or of the sizes in a list."""
        size = self.shape[plain.axis_of(dim, self.ndim)]
        if isinstance(split_size, int):
            if split_size < 1 and (split_size or size):
                raise ValueError(f"split into parts of size {split_size}: a part has at least one element")
            count = max(1, -(-size // (split_size or 1)))
            split_size = [*[split_size] * (count - 1), size - (count - 1) * split_size]
        if sum(split_size) != size:
            raise ValueError(f"split {list(split_size)} of axis {dim} of shape {self.shape}: the sum is not {size}")
        ends = np.cumsum(split_size).tolist()
        return tuple([self.narrow(dim, end - n, n) for end, n in zip(ends, split_size, strict=True)])

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Self, ...]:
        """At most `chunks` parts of equal size along an axis, the last perhaps smaller."""
        if chunks < 1:
            raise ValueError(f"chunk into {chunks} parts: one is the least")
        size = self.shape[plain.axis_of(dim, self.ndim)]
        return self.split(-(-size // chunks), dim) if size else self.split([0] * chunks, dim)

    def unbind(self, dim: int = 0) -> tuple[Self, ...]:
        """Every slice along an axis, which is gone from them."""
        axis = plain.axis_of(dim, self.ndim)
        return tuple([self[(slice(None),) * axis + (i,)] for i in range(self.shape[axis])])

    def flip(self, *dims: int) -> Self:
        return self.apply(flip, self, dims=plain.dims_of(plain.unpack(dims), self.ndim) if plain.unpack(dims) else ())

    def roll(self, shifts: int | tuple[int, ...], dims: int | tuple[int, ...] | None = None) -> Self:
        """Elements pushed along; what falls off comes in again at the other end. Without dims, in reading order."""
        if dims is None:
            return self.flatten().roll(shifts, 0).reshape(self.shape)
        shifts, dims = (tuple(n) if isinstance(n, tuple | list) else (n,) for n in (shifts, dims))
        if len(shifts) != len(dims):
            raise ValueError(f"roll by {shifts} along {dims}: give one shift for each axis")
        dims = tuple([plain.axis_of(dim, self.ndim) for dim in dims])
        return self.apply(roll, self, shifts=shifts, dims=dims) if self.ndim else self.clone()

    def repeat(self, *sizes: int) -> Self:
        """The whole tensor, laid side by side as often as `sizes` says for each axis; axes may be added in front."""
        sizes = plain.unpack(sizes)
        if len(sizes) < self.ndim or min(sizes, default=0) < 0:
            raise ValueError(f"repeat{sizes} of shape {self.shape}: give each axis a number that is not negative")
        return self.apply(tile, self, sizes=tuple(sizes))

    def repeat_interleave(self, repeats: int | Self, dim: int | None = None) -> Self:
        """Each element `repeats` times in a row; without a dim, of the flattened tensor. A tensor of whole numbers says
        for each place how often."""
        if dim is None:
            return self.flatten().repeat_interleave(repeats, 0)
        dim = plain.axis_of(dim, self.ndim)
        if not isinstance(repeats, plain.Strided):
            if not isinstance(repeats, int | np.integer) or repeats < 0:
                raise ValueError(f"repeat_interleave by {repeats}: how often is a whole number from 0 on")
            t = self if self.ndim else self.reshape(1)
            return self.apply(repeat_interleave, t, repeats=repeats, dim=dim)
        return self.index_select(dim, self.new(np.repeat(np.arange(self.shape[dim]), repeats.array)))

    def tril(self, diagonal: int = 0) -> Self:
        """The lower triangle of each matrix, 0 above. Diagonal 1 keeps one line more, -1 one less."""
        return self.apply(tril, self.matrices("tril"), diagonal=diagonal)

    def triu(self, diagonal: int = 0) -> Self:
        """The upper triangle of each matrix, 0 below. Diagonal 1 keeps one line less, -1 one more."""
        return self.apply(triu, self.matrices("triu"), diagonal=diagonal)

    def matrices(self, name: str) -> Self:
        if self.ndim < 2:
            raise ValueError(f"{name} is for matrices and this tensor has shape {self.shape}")
        return self


# %% given="methods-indexing"
class Indexing:
    """Square brackets with lists, tensors of whole numbers and masks in them, and their relatives."""

    def __getitem__(self, key: Any) -> Self:
        if not is_advanced(key):
            return super().__getitem__(key)
        first, second = two_steps(key)
        return self.apply(take, self.part(first), key=second)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not is_advanced(key):
            super().__setitem__(key, value)
            return
        first, second = two_steps(key)
        part = self.part(first)
        part.copy_(self.apply(replace, part, self.beside(value).to(self.dtype), key=second))

    def part(self, key: tuple) -> Self:
        """The view that a key without arrays names; this tensor itself where that is all of it."""
        return self if all(item == slice(None) for item in key) else super().__getitem__(key)

    def gather(self, dim: int, index: Self) -> Self:
        """out[i][j][k] = self[i][index[i][j][k]][k], for dim 1 of three. The index may be smaller along other axes."""
        axis, t = plain.axis_of(dim, self.ndim), self if self.ndim else self.reshape(1)
        places = refuse_outside("gather", index, t.shape[axis])
        if not self.ndim:
            return self.apply(take, t, key=(places.reshape(-1),)).reshape(index.shape)
        if index.ndim != t.ndim or any(
            n > m for i, (n, m) in enumerate(zip(index.shape, t.shape, strict=True)) if i != axis
        ):
            raise ValueError(f"gather along dim {dim} of shape {self.shape} by an index of shape {index.shape}")
        return self.apply(take, t, key=places_along(axis, places))

    def index_select(self, dim: int, index: Self) -> Self:
        """The slices along an axis that `index`, one axis of whole numbers, names."""
        axis, t = plain.axis_of(dim, self.ndim), self if self.ndim else self.reshape(1)
        if index.ndim > 1:
            raise ValueError(f"index_select takes an index with one axis, and this one has shape {index.shape}")
        places = refuse_outside("index_select", index, t.shape[axis]).reshape(-1)
        out = self.apply(take, t, key=(slice(None),) * axis + (places,))
        return out if self.ndim else out.reshape(())

    def masked_select(self, mask: Self) -> Self:
        """The elements where the mask is True, in reading order, along one axis."""
        if mask.dtype.kind != "b":
            raise TypeError(f"masked_select takes a mask of truth values, and this one holds {mask.dtype}")
        shape = plain.broadcast_shapes(self.shape, mask.shape)
        return self.broadcast_to(shape)[mask.broadcast_to(shape)].reshape(-1)


def is_advanced(key: Any) -> bool:
    """Whether there is a list, an array or a mask in the brackets, beside numbers, slices, None and `...`."""
    for item in key if isinstance(key, tuple) else (key,):
        if isinstance(item, list):
            return True
        if isinstance(item, plain.Strided | np.ndarray) and (item.ndim or item.dtype.kind == "b"):
            return True
    return False


def refuse_outside(name: str, index: plain.Tensor, size: int) -> np.ndarray:
    """The index as an array of its own. Negative numbers are refused here, as in PyTorch."""
    if index.dtype.kind not in "iu":
        raise TypeError(f"{name} takes an index of whole numbers, and this one holds {index.dtype}")
    outside = (index.array < 0) | (index.array >= size)
    if outside.any():
        raise IndexError(f"{name}: index {index.array[outside][0]} is out of range for an axis of size {size}")
    return index.array.astype(np.intp)


# %% [markdown]
# Chapter 02 kept its tensor short. The rest of what PyTorch's can do with gradients follows: attributes that refuse
# what cannot be, and changes in place that are recorded. `Mode` is for whoever wants to stand at the door. The section
# after this one shows them at work.


# %% given="methods-history"
class History:
    """What chapter 02 keeps about a tensor, behind properties that refuse what cannot be and keep views in step."""

    grad_like: tuple | None = None
    _requires_grad = False
    _grad: Any = None
    _grad_fn: Operation | None = None
    _retains: Any = None
    _base: Any = None  # what this tensor is a view of; None if it is no view
    _writes = 0  # how many recorded changes this storage has seen, counted at the base
    _seen = 0  # and how many there were when a view's own grad_fn was made

    @property
    def node(self) -> Any:
        base = self._base
        if base is not None and base._writes != self._seen:
            self.refresh()
        return self._grad_fn or (self if self._requires_grad else None)

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded. Set it on leaves of floats alone."""
        base = self._base
        if base is not None and base._writes != self._seen:
            self.refresh()
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if not self.is_leaf:
            if not flag:
                raise RuntimeError("requires_grad can be switched off on leaves only: detach() cuts a tensor off")
            return
        if flag and self.dtype.kind != "f":
            raise RuntimeError(f"only floats can require a gradient, and this tensor holds {self.dtype}")
        self._requires_grad, self.grad_like = bool(flag), (self.shape, self.dtype)

    @property
    def grad_fn(self) -> Operation | None:
        """The operation that made this tensor; None for a leaf."""
        node = self.node
        return None if node is self else node

    @property
    def grad(self) -> Self | None:
        """The gradient that backward has left here, or None. Leaves have one, and tensors after retain_grad()."""
        if self._grad is None and self._grad_fn is not None and self._retains is None:
            warnings.warn("the gradient of a tensor that is no leaf is kept only after retain_grad()", stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, grad: Self | None) -> None:
        if grad is not None and not isinstance(grad, plain.Strided):
            raise TypeError(f"a gradient is a tensor or None, and this is a {type(grad).__name__}")
        if grad is not None and (grad.shape, grad.dtype) != (self.shape, self.dtype):
            raise RuntimeError(
                f"the gradient of a tensor of shape {self.shape} and dtype {self.dtype} cannot be one of shape "
                f"{grad.shape} and dtype {grad.dtype}"
            )
        if grad is self:
            raise RuntimeError("a tensor cannot be its own gradient, since backward adds to it: use detach().clone()")
        if grad is not None and grad.is_folded():
            raise RuntimeError("this gradient names one place in memory more than once: clone() it, to be added to")
        self._grad = grad

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def follow(self, operation: Operation) -> None:
        retained = self._retains
        self._requires_grad, self._grad_fn = True, operation
        if retained is not None:
            retained.keeper = None
            self.retain_grad()

    def accumulate(self, grad: np.ndarray) -> None:
        if self._grad is None:
            self._grad = self.new(grad)  # of the right shape and dtype: there is nothing to refuse
        else:
            super().accumulate(grad)

    def retain_grad(self) -> None:
        """Keep the gradient of this tensor in .grad, though it is not a leaf."""
        super().retain_grad()
        self._retains = None if self.is_leaf else self.watch()

    def register_hook(self, hook: Callable[[Any], Any]) -> autodiff.RemovableHandle:
        """Call hook(grad) with this tensor's whole gradient in each backward. What it returns, if anything, goes on.
        Nothing in it is recorded."""
        if not callable(hook):
            raise TypeError(f"a hook is a function of one gradient, and this is a {type(hook).__name__}")
        return super().register_hook(no_grad(hook))

    def detach_(self) -> Self:
        """Cut this tensor off from what it was made of."""
        if self._base is not None:
            raise RuntimeError("a view cannot be cut off from what it is a view of: use detach()")
        self._grad_fn, self._requires_grad = None, False
        return self

    def numpy(self) -> np.ndarray:
        """A NumPy array on the same memory. NumPy's writes would go unseen, so first cut the tensor off."""
        if self.requires_grad:
            raise RuntimeError("this tensor requires a gradient, which NumPy does not know of: use detach().numpy()")
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype, copy=copy)

    def __deepcopy__(self, memo: dict) -> Self:
        if not self.is_leaf:
            raise RuntimeError("only a leaf can be copied deeply, since a graph cannot: use detach().clone()")
        twin = memo[id(self)] = object.__new__(type(self))
        vars(twin).update(vars(self.detach().clone()), grad_like=self.grad_like, _requires_grad=self._requires_grad)
        if self._grad is not None:
            twin._grad = self._grad.detach().clone()
        return twin


# %% given="methods-in-place"
class InPlace:
    """Changes in place, recorded if a gradient may pass. Views share memory, so they follow one another's changes."""

    def see(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> Self:
        view = plain.Tensor.see(self, shape, strides, offset)
        base = self if self._base is None else self._base
        view._base, view._seen = base, base._writes
        return view

    def refresh(self) -> None:
        """Bring a view's history up to date, after its base was changed through another tensor."""
        self._seen = self._base._writes
        self.follow(Window.between(self._base, self))

    def write(self, ufunc: Callable, other: Any) -> Self:
        """This tensor becomes ufunc(self, other), in the memory that it has."""
        other = self.beside(other)
        self.refuse_write(other)
        base = self if self._base is None else self._base
        if not (state.enabled and (self.requires_grad or other.requires_grad or base.requires_grad)):
            return super().write(ufunc, other)
        if base.requires_grad and base.is_leaf:
            what = "a leaf that requires" if base is self else "a view of a leaf that requires"
            raise RuntimeError(f"{what} a gradient cannot be changed in place: write x = x + y, or use no_grad()")
        if base.requires_grad and not self.requires_grad:
            raise RuntimeError("a view made under no_grad() has no part in the graph: change it there, or make it anew")
        result = self.apply(WRITTEN[ufunc], self, other)
        copy_saved(result.grad_fn, self.storage)
        np.copyto(self.array, result.array, casting="same_kind")
        self.follow(result.grad_fn)
        if base is not self:
            base.follow(Patch.between(base, self))
        base._writes += 1
        self.storage.version += 1
        return self

    def refuse_write(self, other: plain.Tensor) -> None:
        if plain.remember(plain.broadcast_shape, self.shape, other.shape) != self.shape:
            raise ValueError(f"shape {other.shape} does not fit into {self.shape}, which cannot grow in place")
        if self.is_folded():
            strides = f"shape {self.shape} and strides {self.strides}"
            raise RuntimeError(f"{strides} name one place in memory more than once: clone() before you write")
        if plain.CATEGORY[other.dtype.kind] > plain.CATEGORY[self.dtype.kind]:
            raise RuntimeError(f"a tensor of {self.dtype} cannot hold {other.dtype} numbers: convert one of them first")

    def is_folded(self) -> bool:
        """Whether several elements lie in one place in memory, as after expand."""
        return any(stride == 0 and size > 1 for size, stride in zip(self.shape, self.strides, strict=True))

    def add_(self, other: Any, *, alpha: float = 1) -> Self:
        return super().add_(other if alpha == 1 else other * alpha)

    def sub_(self, other: Any, *, alpha: float = 1) -> Self:
        return super().sub_(other if alpha == 1 else other * alpha)

    def div_(self, other: Any) -> Self:
        if self.dtype.kind != "f":
            raise RuntimeError(f"a tensor of {self.dtype} cannot hold quotients: convert first, as in x.float()")
        return self.write(np.divide, other)

    def copy_(self, source: Any) -> Self:
        """Every element becomes that of `source`, which may broadcast and may have another dtype."""
        return super().copy_(source.to(self.dtype) if isinstance(source, plain.Strided) else source)

    def fill_(self, value: Any) -> Self:
        return self.copy_(value)

    def zero_(self) -> Self:
        return self.copy_(0)

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self[key]
        geometry = part.storage, part.shape, part.strides, part.offset
        if isinstance(value, Tensor) and (value.storage, value.shape, value.strides, value.offset) == geometry:
            return  # the second half of x[key] += y, which has changed x already
        part.copy_(value)

    __iadd__, __isub__, __itruediv__ = add_, sub_, div_


# %% given="modes"
class Mode:
    """Stands at the door for the length of a with block. Later chapters watch, time and convert from here.

    A subclass overrides forward or backward, or both, and hands on what it is given, or something else in its place.
    """

    def __enter__(self) -> Self:
        enabled, modes = state.now
        state.now = enabled, (*modes, self)
        return self

    def __exit__(self, *exception: object) -> None:
        enabled, modes = state.now
        state.now = enabled, modes[:-1]

    def ask(self, step: str, *arguments: Any) -> Any:
        """Do a step, as the innermost mode. While it does, those outside it stand at the door."""
        modes = state.now[1]
        state.now = state.enabled, modes[:-1]
        try:
            return getattr(self, step)(*arguments)
        finally:
            state.now = state.enabled, modes

    def forward(self, function: Callable, inputs: tuple, options: dict) -> Any:
        return Tensor.apply(function, *inputs, **options)

    def backward(self, operation: Operation, grad: np.ndarray) -> Any:
        modes = state.now[1]
        return modes[-1].ask("backward", operation, grad) if modes else operation.backward(grad)


# %% [markdown]
# With all of that, the class itself has nothing left to say. The makers follow.


# %% given="tensor"
class Tensor(Elementwise, FurtherReductions, Products, Shapes, Indexing, InPlace, History, autodiff.Tensor):
    """The tensor of chapter 02 with all its operations."""


make = plain.Makers(Tensor.leaf)
tensor, from_numpy, empty, full = make.tensor, make.from_numpy, make.empty, make.full
zeros, ones, zeros_like, ones_like = make.zeros, make.ones, make.zeros_like, make.ones_like
eye, arange, linspace = make.eye, make.arange, make.linspace
rand, randn, randint, randperm = make.rand, make.randn, make.randint, make.randperm


def full_like(t: Tensor, fill_value: float, dtype: Any = None, **options: Any) -> Tensor:
    return full(t.shape, fill_value, dtype=dtype or t.dtype, **options)


def rand_like(t: Tensor, dtype: Any = None, **options: Any) -> Tensor:
    return rand(t.shape, dtype=dtype or t.dtype, **options)


def randn_like(t: Tensor, dtype: Any = None, **options: Any) -> Tensor:
    return randn(t.shape, dtype=dtype or t.dtype, **options)


# %% [markdown]
# Last, those that PyTorch offers as functions alone.


# %% given="functions"
def where(condition: Tensor, input: Any, other: Any) -> Tensor:
    """input where the condition holds, other where it does not: tensors or Python numbers; all of them broadcast."""
    if not isinstance(condition, plain.Strided) or condition.dtype.kind != "b":
        held = condition.dtype if isinstance(condition, plain.Strided) else type(condition).__name__
        raise TypeError(f"where takes a tensor of truth values as its condition, and got {held}")
    if not isinstance(input, plain.Strided):
        input = other.beside(input) if isinstance(other, plain.Strided) else condition.beside(input)
    return condition.apply(choose, condition, input, input.beside(other))


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after the other along an axis. All other axes must agree; tensors of shape (0,) are passed over."""
    whole = list(tensors)
    if not whole:
        raise ValueError("cat of no tensors has no shape: give it one at least")
    refuse_others("cat", whole)
    first = next((t for t in whole if t.shape != (0,)), whole[0])
    axis = plain.axis_of(dim, first.ndim)
    nothing = (*first.shape[:axis], 0, *first.shape[axis + 1 :])
    tensors = [t.reshape(nothing) if t.shape == (0,) else t for t in whole]
    for t in tensors:
        if not t.ndim or t.ndim != first.ndim or any(t.shape[i] != n for i, n in enumerate(first.shape) if i != axis):
            raise ValueError(f"cat along dim {dim} of shapes {first.shape} and {t.shape}: all other axes must agree")
    return first.apply(concatenate, *tensors, dim=axis)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new axis."""
    tensors = list(tensors)
    if not tensors:
        raise ValueError("stack of no tensors has no shape: give it one at least")
    refuse_others("stack", tensors)
    for t in tensors:
        if t.shape != tensors[0].shape:
            raise ValueError(f"stack of shapes {tensors[0].shape} and {t.shape}: all must be the same")
    return tensors[0].apply(stack_of, *tensors, dim=plain.axis_of(dim, tensors[0].ndim + 1))


def refuse_others(name: str, tensors: Sequence[Any]) -> None:
    for t in tensors:
        if not isinstance(t, plain.Strided):
            raise TypeError(f"{name} is for tensors and got a {type(t).__name__}: make it one first, as in tensor(x)")


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """Products summed over named axes: einsum("ij,jk->ik", a, b) is a @ b. A letter that is not behind the arrow is
    summed; `...` stands for axes without a name."""
    terms, out = read_equation(equation, [t.ndim for t in operands])
    return operands[0].apply(einsum_of, *operands, terms=terms, out=out)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the share of a normal distribution below x; approximate="tanh" is the older, quicker formula."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f'gelu with approximate={approximate!r} is not offered: use "none" or "tanh"')
    return input.apply(gelu_of, input.real_only("gelu"), approximate=approximate)


def silu(input: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return input.apply(silu_of, input.real_only("silu"))


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, a smooth relu; x itself where beta * x is above the threshold."""
    return input.apply(softplus_of, input.real_only("softplus"), beta=beta, threshold=threshold)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class id a row with a single 1. Without num_classes, there are as many as the largest id asks for."""
    ids = tensor.array
    if ids.dtype.kind not in "iu":
        raise TypeError(f"one_hot takes class ids, which are whole numbers, and this tensor holds {ids.dtype}")
    if num_classes == -1:
        if not ids.size:
            raise ValueError("one_hot of no ids cannot tell how many classes there are: give it num_classes")
        num_classes = int(ids.max()) + 1
    outside = (ids < 0) | (ids >= num_classes)
    if outside.any():
        raise ValueError(f"one_hot: id {ids[outside].ravel()[0]} is not among {num_classes} classes")
    return tensor.new((ids[..., None] == np.arange(num_classes)).astype(np.int64))


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0) -> Tensor:
    """A border of `value`: `pad` has front and back of the last axis, then of the last but one, ...; negative cuts."""
    if mode != "constant":
        raise NotImplementedError(f"pad with mode={mode!r} is not offered: only 'constant' is")
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ValueError(f"pad {tuple(pad)} of shape {input.shape}: give two numbers for each axis, from the last on")
    pairs = [tuple(pad[i : i + 2]) for i in range(0, len(pad), 2)]
    widths = [(0, 0)] * (input.ndim - len(pairs)) + pairs[::-1]
    for dim, (size, (before, after)) in enumerate(zip(input.shape, widths, strict=True)):
        if size + before + after < 0:
            raise ValueError(f"pad {tuple(pad)} of shape {input.shape}: axis {dim} would get a negative size")
        cut = min(0, before)
        if cut or after < 0:
            input = input.narrow(dim, -cut, size + cut + min(0, after))
    positive = tuple([(max(0, before), max(0, after)) for before, after in widths])
    return input.apply(enlarge, input, widths=positive, value=value)


# %% [markdown]
# ## The rest of the machine
#
# Chapter 02 left out what it did not need. Here is the remainder, given and folded; read what you are curious about.
# First, gradients for the functions of chapter 01 that have none yet, in the style of `Add`, and those of views: the
# gradient of a view is laid out by the opposite view.


# %% given="arithmetic"
class Negative(Operation, of=plain.negative):
    def backward(self, grad: np.ndarray) -> np.ndarray:
        return -grad


class Divide(Operation, of=plain.divide):
    """a / b. The gradient of b is -a / b**2 times what arrives."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        self.save(a if b.requires_grad else None, b)
        return plain.divide(a, b)

    def backward(self, grad: np.ndarray) -> tuple:
        a, b = self.saved
        quotient = grad / b
        return quotient, None if a is None else -quotient * (a / b)


class Power(Operation, of=plain.power):
    """a ** b. An exponent of 0 gives 1 everywhere, and so the gradient 0, at a = 0 too."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        out = plain.power(a, b)
        self.save(a, b, out if b.requires_grad else None)
        return out

    def backward(self, grad: np.ndarray) -> tuple:
        a, b, out = self.saved
        to_a = to_b = None
        if self.needs_input_grad[0]:
            n = b if b.ndim else b.item()
            to_a = grad * (n * a ** (n - (n != 0)))
        if out is not None:
            with np.errstate(invalid="ignore"):
                to_b = grad * out * np.log(np.where((a == 0) & (b >= 0), 1, a))
        return to_a, to_b


class Exp(Operation, of=plain.exp):
    """Its own derivative: the output is all that backward needs."""

    def forward(self, t: plain.Tensor) -> plain.Tensor:
        out = plain.exp(t)
        self.save(out)
        return out

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (out,) = self.saved
        return grad * out


class Log(Operation, of=plain.log):
    def forward(self, t: plain.Tensor) -> plain.Tensor:
        self.save(t)
        return plain.log(t)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (t,) = self.saved
        return grad / t


class Mean(Operation, of=plain.mean_over):
    def forward(self, t: plain.Tensor, dim: Any = None, keepdim: bool = False) -> plain.Tensor:
        self.dims = plain.dims_of(dim, t.ndim)
        return plain.mean_over(t, dim, keepdim)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        count = plain.prod([self.input_shape[dim] for dim in self.dims])
        return spread(grad / (count or 1), self.input_shape, self.dims)


# %% given="views"
class Permute(Operation, of=plain.permute):
    """The gradient of a view is laid out by the opposite view: here, every axis goes back to where it was."""

    def forward(self, t: plain.Tensor, dims: tuple[int, ...]) -> plain.Tensor:
        self.dims, out = dims, plain.permute(t, dims)
        out.array = t.array.transpose(dims)  # what it would work out of its strides, in less time
        return out

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad.transpose(plain.remember(opposite, self.dims))


def opposite(dims: tuple[int, ...]) -> list[int]:
    """The order of axes that undoes `dims`."""
    back = [0] * len(dims)
    for axis, dim in enumerate(dims):
        back[dim] = axis
    return back


class View(Operation, of=plain.view):
    def forward(self, t: plain.Tensor, shape: tuple[int, ...]) -> plain.Tensor:
        out = plain.view(t, shape)
        out.array = t.array.reshape(shape)
        return out

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad.reshape(self.input_shape)


class Broadcast(Operation, of=plain.broadcast_to):
    """Read many times: `send` sums what comes back, as for every operation that broadcasts."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad


class Copy(Operation, of=plain.copy):
    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad.reshape(self.input_shape)


class Cast(Operation, of=plain.cast):
    """`send` turns the gradient back into the input's dtype."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad


class Index(Operation, of=plain.index):
    """Elements that were not taken get 0."""

    def forward(self, t: plain.Tensor, key: Any) -> plain.Tensor:
        self.key = key
        return plain.index(t, key)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        whole = np.zeros(self.input_shape, grad.dtype)
        whole[tuple(plain.expand_key(self.key, whole.ndim))] = grad
        return whole


# %% [markdown]
# **Changes in place, recorded.** In chapter 02 nothing that required a gradient could be written to. Now a write is
# itself an operation: `y.mul_(3)` is `y * 3`, whose result moves into `y`'s memory, and from then on `y` has another
# `grad_fn`. Through a view it is the same, with one more step. If `row` is a view of `y`, then a write into `row`
# changes what `y` is made of, and `y` gets a new node as well: a `Patch`, which sends that part of its gradient to the
# write and the rest to the old `y`. And a view that was taken *before* the write must learn of it: a `Window` is how it
# looks at its base from then on. A leaf that requires a gradient still refuses, since it would be a leaf no more.


# %% given="windows"
def overwrite(t: plain.Tensor, source: plain.Tensor) -> plain.Tensor:
    """What copy_ leaves in t: source, in t's shape and dtype."""
    return t.new(plain.broadcast_to(source, t.shape).array)


WRITTEN = {
    np.add: plain.add,
    np.subtract: plain.subtract,
    np.multiply: plain.multiply,
    np.divide: plain.divide,
    autodiff.put: overwrite,
}
"""What is recorded for each ufunc that `write` can be given."""


def copy_saved(operation: Operation, storage: plain.Storage) -> None:
    """Copy what an operation has saved from a storage that is about to be changed by this same operation."""
    for i, kept in enumerate(operation.kept):
        if kept is not None and kept[1] is storage:
            array = kept[0].copy()
            operation.kept[i] = array, plain.Storage(array), 0


class Overwrite(Operation, of=overwrite):
    """copy_: the old elements no longer matter, the new ones are those of the source."""

    def backward(self, grad: np.ndarray) -> tuple:
        return None, grad


class Placed(Operation):
    """An operation between a tensor and a view of it, which knows where the view lies."""

    def __init__(self, base: Tensor, view: Tensor, inputs: tuple[Tensor, ...], output: Tensor):
        order = sorted(range(base.ndim), key=lambda axis: -base.strides[axis])
        if not base.array.transpose(order).flags.c_contiguous:
            raise NotImplementedError("a view of a detached part was changed in place: clone() the part first")
        self.whole = base.shape, base.strides, 0
        self.place = view.shape, view.strides, view.offset - base.offset
        self.targets = [t.node for t in inputs]
        self.size, self.grad_like = base.numel(), (output.shape, output.dtype)


class Window(Placed):
    """A view, seen from its base: the view's gradient goes where the view lies, and 0 everywhere else."""

    @classmethod
    def between(cls, base: Tensor, view: Tensor) -> Self:
        return cls(base, view, (base,), view)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (shape, strides, offset), flat = self.place, np.zeros(self.size, grad.dtype)
        once = tuple([1 if stride == 0 else size for size, stride in zip(shape, strides, strict=True)])
        part(flat, once, strides, offset)[...] = unbroadcast(grad, once)
        return part(flat, *self.whole)


class Patch(Placed):
    """A base after a write through a view: where the view lies its gradient is the view's, elsewhere the old base's."""

    @classmethod
    def between(cls, base: Tensor, view: Tensor) -> Self:
        return cls(base, view, (base, view), base)

    def backward(self, grad: np.ndarray) -> tuple:
        flat = np.empty(self.size, grad.dtype)
        rest, hole = part(flat, *self.whole), part(flat, *self.place)
        rest[...] = grad
        inner = hole.copy()
        hole[...] = 0
        return rest, inner


def part(flat: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> np.ndarray:
    """Part of a flat array, named as chapter 01 names a view."""
    if 0 in shape:
        return np.empty(shape, flat.dtype)
    size = flat.itemsize
    return np.ndarray(shape, flat.dtype, flat, offset * size, [stride * size for stride in strides])


# %% [markdown]
# So a table can be filled piece by piece:

# %%
w = tensor([1.0, 2.0, 3.0], requires_grad=True)
table = zeros(3, 3)
for i in range(3):
    table[i] = w * i
table[:, 0].mul_(10)
table.sum().backward()
print(table)
print(w.grad.tolist())

# %% [markdown]
# **Operations of your own.** `Function` is PyTorch's way to write one: two static methods, with a context `ctx` between
# them in which forward leaves what backward needs. **Modes.** Whoever stands at the door sees every operation pass, in
# both directions: the class `Mode` was in a folded cell above. Anomaly detection, mixed precision and the profiler of
# later chapters are modes.


# %% given="function"
class Context:
    """What forward leaves for backward in a custom Function: attributes of any name, and saved tensors."""

    needs_input_grad: tuple[bool, ...] = ()
    saved_tensors: tuple = ()
    to_save: tuple = ()
    constant = False

    def save_for_backward(self, *tensors: Any) -> None:
        for t in tensors:
            if t is not None and not isinstance(t, plain.Strided):
                raise TypeError(f"save_for_backward is for tensors, not a {type(t).__name__}: put it on ctx")
        self.to_save = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.constant = True

    def mark_dirty(self, *tensors: Any) -> None:
        raise NotImplementedError("ctx.mark_dirty is not offered: let forward return a new tensor")

    def set_materialize_grads(self, value: bool) -> None:
        raise NotImplementedError(
            "ctx.set_materialize_grads is not offered: with one output its gradient is never None"
        )


class Function:
    """A custom operation: subclass it with two static methods and call Name.apply(*inputs).

    forward(ctx, *inputs)   makes a tensor of tensors and other things; nothing in it is recorded
    backward(ctx, grad)     the gradient of each input, None where there is none; a tuple if there are several inputs

    For None the machine sends zeros on, so an input that gets nothing else has zeros in its .grad, where PyTorch
    leaves None: an optimizer then still applies weight decay and momentum to it.
    """

    recipe: ClassVar[Callable]

    @staticmethod
    def forward(ctx: Context, *inputs: Any) -> Any:
        raise NotImplementedError("a Function needs a static method forward(ctx, *inputs)")

    @staticmethod
    def backward(ctx: Context, grad: Any) -> Any:
        raise NotImplementedError("a Function needs a static method backward(ctx, grad), or no gradient can pass")

    def __init_subclass__(cls) -> None:
        if "setup_context" in vars(cls):
            raise NotImplementedError("setup_context is not offered: write forward(ctx, *inputs), and save there")

        def recipe(*inputs: Any) -> Any:
            return kind().forward(*inputs)

        kind = type(cls.__name__, (Custom,), {"written": cls})
        recipe.__name__, recipe.operation = cls.__name__, kind
        cls.recipe = staticmethod(recipe)

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        out = Tensor.apply(cls.recipe, *inputs)
        node = out.grad_fn
        return out.detach() if isinstance(node, Custom) and node.ctx.constant else out


class Custom(Operation):
    """The node of a custom Function."""

    written: ClassVar[type[Function]]

    def forward(self, *inputs: Any) -> Any:
        ctx = self.ctx = Context()
        ctx.needs_input_grad = tuple([isinstance(x, Tensor) and x.requires_grad for x in inputs])
        with no_grad():
            out = self.written.forward(ctx, *inputs)
        if not isinstance(out, Tensor):
            raise TypeError(f"{self}: forward returned {type(out).__name__}, and one tensor is wanted")
        if any(out is x for x in inputs) or out.requires_grad:
            out = out.detach()
        self.save(*ctx.to_save)
        self.like, ctx.to_save = out.new(np.empty(0)), ()
        return out

    def backward(self, grad: np.ndarray) -> tuple:
        self.ctx.saved_tensors = tuple([None if array is None else self.like.new(array) for array in self.saved])
        with no_grad():
            grads = self.written.backward(self.ctx, self.like.new(grad if grad.flags.writeable else grad.copy()))
        self.ctx.saved_tensors = ()
        grads = grads if isinstance(grads, tuple) else (grads,)
        while len(grads) > len(self.targets) and grads[-1] is None:
            grads = grads[:-1]
        return tuple([None if g is None else self.lent(g) for g in grads])

    def lent(self, g: Any) -> np.ndarray:
        """The array of what backward returned. Others may hold it, so a leaf must copy it, as it does with a view."""
        if not isinstance(g, plain.Strided):
            raise TypeError(f"{self}: backward returned a {type(g).__name__}, and tensors are wanted, or None")
        return g.array[...]


# %% [markdown]
# Last, switches and checks. `set_grad_enabled` is a third switch, which records or not by a value, and all three now
# know generators. `grad` gives gradients without leaving them anywhere. And where chapter 02's `gradcheck` only says
# that a gradient is wrong, this one says which element.


# %% given="switches"
class Stepwise:
    """Lets a switch decorate generators too: it holds while a step runs, and not between two steps."""

    def __call__(self, function: Callable) -> Callable:
        if not isgeneratorfunction(function):
            return super().__call__(function)

        @wraps(function)
        def steps(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            go_on, given = generator.send, None
            while True:
                try:
                    with self._recreate_cm():
                        value = go_on(given)
                except StopIteration as end:
                    return end.value
                try:
                    go_on, given = generator.send, (yield value)
                except BaseException as error:  # thrown in, or GeneratorExit: it is the generator's to answer
                    go_on, given = generator.throw, error

        return steps


class no_grad(Stepwise, autodiff.no_grad):
    """Nothing is recorded in a `with no_grad():` block, or in a function below `@no_grad`."""


class enable_grad(Stepwise, autodiff.enable_grad):
    """Operations are recorded again, inside a no_grad."""


class set_grad_enabled(Stepwise, autodiff.Switch):
    """Records or not, as `mode` says: from the call on, or for a with block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(state, bool(mode))
        self.mode, self.undo, state.enabled = bool(mode), state.enabled, bool(mode)

    def __enter__(self) -> None:
        self.begin_later()
        super().__enter__()

    def __call__(self, function: Callable) -> Callable:
        self.begin_later()
        return super().__call__(function)

    def _recreate_cm(self) -> autodiff.Switch:
        return autodiff.Switch(state, self.mode)

    def begin_later(self) -> None:
        """Take back what the call itself has set: a block or a function follows that it is meant for."""
        if self.undo is not None:
            state.enabled, self.undo = self.undo, None


# %% given="grad"
class Root(Operation):
    """Where a walk from several tensors begins: they are its inputs."""

    def __init__(self, outputs: Sequence[Tensor], gradients: Sequence[Tensor | None]):
        self.targets, self.grad_like = [t.node for t in outputs], ((), plain.float64)
        self.seeds = tuple([autodiff.seed(t, gradient) for t, gradient in zip(outputs, gradients, strict=True)])

    def backward(self, grad: np.ndarray) -> tuple:
        return self.seeds


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool = False,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple:
    """The gradients of the sum of the outputs with respect to the inputs, which are not left in anybody's .grad.

    outputs       a tensor or several of them
    inputs        a tensor or several, as in model.parameters(); leaves or anything in between. Only what lies between
                  outputs and inputs is walked, and freed. An input's hooks have the last word on its gradient.
    grad_outputs  where to begin, one for each output; may be left out for outputs of one element
    allow_unused  give None for an input that no output depends on, where otherwise RuntimeError is raised
    """
    outputs, inputs = some_tensors("outputs", outputs), some_tensors("inputs", inputs)
    begins = [None] * len(outputs) if grad_outputs is None else as_list(grad_outputs)
    if len(begins) != len(outputs):
        raise ValueError(f"grad got {len(begins)} grad_outputs for {len(outputs)} outputs: give one for each")
    wanted: dict[Any, np.ndarray | None] = dict.fromkeys([t.node for t in inputs])
    if None in wanted:
        raise RuntimeError("one of the inputs requires no gradient: set requires_grad before it is used")
    root = Tensor(np.zeros(()))
    root.follow(Root(outputs, begins))
    between = nodes_between(root.node, wanted)

    def arrive(node: Any, grad: np.ndarray) -> np.ndarray | None:
        if node.hooks is not None and (node in between or node in wanted):
            grad = node.hooks.run(grad)
        if node in wanted:
            wanted[node] = grad
        return grad if node in between else None

    autodiff.run_backward(root, None, retain_graph, create_graph, arrive)
    found = [wanted[t.node] for t in inputs]
    if not allow_unused and any(array is None for array in found):
        raise RuntimeError("no output depends on one of the inputs: allow_unused=True gives None for it")
    return tuple([None if array is None else t.new(array.copy()) for t, array in zip(inputs, found, strict=True)])


def as_list(tensors: Any) -> list:
    return list(tensors) if isinstance(tensors, Iterable) and not isinstance(tensors, plain.Strided) else [tensors]


def some_tensors(name: str, tensors: Any) -> list[Tensor]:
    tensors = as_list(tensors)
    if not tensors:
        raise ValueError(f"grad got no {name}: give it one at least")
    for t in tensors:
        if not isinstance(t, Tensor):
            raise TypeError(f"grad takes tensors as {name}, and got a {type(t).__name__}")
    return tensors


def nodes_between(root: Any, wanted: Collection) -> set:
    """The nodes that have to send something on, so that the wanted ones get all that is theirs. One that was freed may
    have led to them, and is kept for its error."""
    sources: dict[Any, list] = {}
    for node in autodiff.count_arrivals(root):
        for target in node.targets:
            sources.setdefault(target, []).append(node)
    freed = [node for node in sources if isinstance(node, Operation) and not node.targets and node not in wanted]
    between, unseen = set(freed), [*wanted, *freed]
    while unseen:
        new = [source for source in sources.get(unseen.pop(), ()) if source not in between]
        between.update(new)
        unseen += new
    return between


# %% given="gradcheck"
FEW = 100
"""Elements up to which gradcheck looks at each one."""


def gradcheck(func: Callable, inputs: Any, *, raise_exception: bool = True, **options: float) -> bool:
    """Chapter 02's gradcheck, with its arguments and errors, of a function that returns a tensor or a tuple of them, of
    which whole numbers are passed over. Where an input has few elements it also says which of them has a wrong
    gradient; raise_exception=False returns False instead of raising."""
    inputs = as_list(inputs)
    with no_grad():
        outputs = func(*inputs)
    if isinstance(outputs, tuple):
        smooth = [i for i, t in enumerate(outputs) if not (isinstance(t, plain.Strided) and t.dtype.kind in "biu")]
        parts = [lambda *inputs, i=i: func(*inputs)[i] for i in smooth]
        return all(gradcheck(part, inputs, raise_exception=raise_exception, **options) for part in parts)
    try:
        return autodiff.gradcheck(func, inputs, **options)
    except GradcheckError as error:
        if not raise_exception:
            return False
        few = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad and t.numel() <= FEW]
        found = "".join([first_wrong(func, inputs, i, **options) for i in few])
        raise GradcheckError(found or str(error)) from None


def first_wrong(func: Callable, inputs: list, i: int, eps: float = 6e-6, atol: float = 1e-6, rtol: float = 1e-5) -> str:
    """The first element of input i whose gradient is not what small steps say."""
    f, vjp = autodiff.as_functions(func, inputs, i)
    x = inputs[i].array
    u = np.random.default_rng(i).standard_normal(f(x).shape)
    claims, facts = vjp(x, u), autodiff.numerical_gradient(lambda x: float((u * f(x)).sum()), x, eps)
    for place in np.argwhere(~np.isclose(claims, facts, rtol, atol)).tolist()[:1]:
        claim, fact = claims[tuple(place)], facts[tuple(place)]
        return f"input {i}: at {place}, backward gives {claim:.9g} and small steps give {fact:.9g}\n"
    return ""


# %% [markdown]
# ## Elementwise operations
#
# **Idea.** An elementwise operation $y_i = f(x_i)$ has the simplest Jacobian there is: $y_i$ depends on $x_i$ and on
# nothing else, so the matrix of all derivatives is diagonal, and the product with it is a product element by element:
#
# $$\bar{x}_i = \bar{y}_i \, f'(x_i)$$
#
# A bar means "the gradient of the loss with respect to". All that remains is to choose what to save. The derivative can
# be written with the input or, often, with the output, and the choice is worth a thought: the output exists anyhow,
# because the next operation keeps it, while an input that nobody else needs is memory paid for until backward.
#
# The sigmoid is the best example. From $s = 1 / (1 + e^{-x})$ follows
#
# $$\frac{ds}{dx} = \frac{e^{-x}}{(1 + e^{-x})^2}
#   = \frac{1}{1 + e^{-x}} \cdot \frac{e^{-x}}{1 + e^{-x}} = s\,(1 - s)$$
#
# The left side needs the input and an `exp` that overflows for $x = -800$. The right side needs the output, one
# subtraction and one product.


# %% given="sigmoid"
def sigmoid(t: plain.Tensor) -> plain.Tensor:
    return t.new(logistic(plain.real(t)))


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), written so that exp is never given anything above 0."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


# %% [markdown]
# ### Exercise 3.1: `Sigmoid`
# Easy, 10 minutes, 2 points.


# %% exercise="operations-sigmoid"
class Sigmoid(Operation, of=sigmoid):
    """The sigmoid, element by element."""

    def forward(self, t: plain.Tensor) -> plain.Tensor:
        """The sigmoid of t; saves the one tensor that backward needs.

        t        a tensor of floats, of any shape
        returns  sigmoid(t)
        """
        ### BEGIN SOLUTION
        out = sigmoid(t)
        self.save(out)
        return out
        ### END SOLUTION

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """The gradient of t from that of the output: an array of the same shape and dtype.

        Write it without a call of exp.
        """
        ### BEGIN SOLUTION
        (s,) = self.saved
        return grad * ((1 - s) * s)
        ### END SOLUTION


# %% [markdown]
# <details><summary>The gradients are far too large, or negative</summary>
#
# Which of the two did you save? In the last formula, is $s$ what goes in or what comes out?
# </details>
# <details><summary>It says that two arrays were kept</summary>
#
# Everything that `save` is given stays in memory until backward. Which one array does the last formula need?
# </details>
# <details><summary>I do not know how the two methods talk to each other</summary>
#
# `forward` makes the output as a tensor, hands it to `self.save(...)` and returns it. `backward` finds it, as an array,
# in the list `self.saved`, and returns one array: what arrived times the slope.
# </details>

# %% check="operations-sigmoid"
check("operations-sigmoid", Sigmoid)

# %% [markdown]
# All others of this kind follow, given. Two small classes hold what they share: `OfInput` saves the input, `OfOutput`
# the output, and each operation adds its slope. Reading down the list is a good way to revise a calculus course.


# %% given="slopes"
class OfInput(Operation):
    """An elementwise operation whose slope is written with its input."""

    def forward(self, t: plain.Tensor, **options: Any) -> plain.Tensor:
        self.save(t)
        self.options = options
        return self.function(t, **options)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (x,) = self.saved
        return grad * self.slope(x, **self.options)


class OfOutput(Operation):
    """An elementwise operation whose slope is written with its output, which is kept anyhow by whoever uses it."""

    def forward(self, t: plain.Tensor) -> plain.Tensor:
        out = self.function(t)
        self.save(out)
        return out

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (y,) = self.saved
        return grad * self.slope(y)


# %% given="elementwise"
def log1p(t: plain.Tensor) -> plain.Tensor:
    return t.new(np.log1p(plain.real(t)))


def expm1(t: plain.Tensor) -> plain.Tensor:
    return t.new(np.expm1(plain.real(t)))


def rsqrt(t: plain.Tensor) -> plain.Tensor:
    return t.new(1 / np.sqrt(plain.real(t)))


def sin(t: plain.Tensor) -> plain.Tensor:
    return t.new(np.sin(plain.real(t)))


def cos(t: plain.Tensor) -> plain.Tensor:
    return t.new(np.cos(plain.real(t)))


def reciprocal(t: plain.Tensor) -> plain.Tensor:
    return t.new(1 / plain.real(t))


def square(t: plain.Tensor) -> plain.Tensor:
    return t.new(t.array * t.array)


class Log1p(OfInput, of=log1p):
    def slope(self, x: np.ndarray) -> np.ndarray:
        return 1 / (1 + x)


class Expm1(OfOutput, of=expm1):
    def slope(self, y: np.ndarray) -> np.ndarray:
        return y + 1


class Sqrt(OfOutput, of=plain.sqrt):
    def slope(self, y: np.ndarray) -> np.ndarray:
        return 0.5 / y


class Rsqrt(OfOutput, of=rsqrt):
    def slope(self, y: np.ndarray) -> np.ndarray:
        return -0.5 * (y * y * y)


class Sin(OfInput, of=sin):
    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.cos(x)


class Cos(OfInput, of=cos):
    def slope(self, x: np.ndarray) -> np.ndarray:
        return -np.sin(x)


class Tanh(OfOutput, of=plain.tanh):
    def slope(self, y: np.ndarray) -> np.ndarray:
        return 1 - y * y


class Reciprocal(OfOutput, of=reciprocal):
    def slope(self, y: np.ndarray) -> np.ndarray:
        return -(y * y)


class Square(OfInput, of=square):
    def slope(self, x: np.ndarray) -> np.ndarray:
        return 2 * x


# %% [markdown]
# GELU needs the error function, which NumPy does not have. Here it is from a table of Taylor series, one for each
# sixteenth between -6 and 6; Python's `math.erf` gives the first row.

# %% given="error-function"
CENTRES = np.arange(-96, 97) / 16


def taylor_of_erf(terms: int = 9) -> np.ndarray:
    """Coefficient j of the Taylor series of the error function, in row j, at each of CENTRES."""
    rows = [np.array([math.erf(x) for x in CENTRES])]
    slope = 2 / math.sqrt(math.pi) * np.exp(-(CENTRES**2))
    before, hermite = np.zeros_like(CENTRES), np.ones_like(CENTRES)
    for n in range(terms):
        rows.append(slope * hermite / math.factorial(n + 1))
        before, hermite = hermite, -2 * CENTRES * hermite - 2 * n * before
    return np.array(rows)


TAYLOR = taylor_of_erf()


def erf(x: np.ndarray) -> np.ndarray:
    """The error function to 15 digits, which NumPy does not have: a short series around the nearest of CENTRES."""
    wide = np.clip(x, -6, 6).astype(np.float64)  # beyond 6 it is 1 to the last bit
    place = np.rint(np.nan_to_num(wide) * 16).astype(np.intp) + 96
    step = wide - CENTRES[place]
    total = TAYLOR[-1][place]
    for row in TAYLOR[-2::-1]:
        total = total * step + row[place]
    return total.astype(x.dtype)


# %% given="activations"
def relu(t: plain.Tensor) -> plain.Tensor:
    return t.new(np.maximum(t.array, 0))


def silu_of(t: plain.Tensor) -> plain.Tensor:
    return t.new(t.array * logistic(t.array))


def softplus_of(t: plain.Tensor, beta: float, threshold: float) -> plain.Tensor:
    """log(1 + exp(beta * x)) / beta; above the threshold, where the two are equal in all digits, x itself."""
    x = t.array
    scaled = x * beta
    return t.new(np.where(scaled > threshold, x, np.log1p(np.exp(np.minimum(scaled, threshold))) / beta))


def gelu_of(t: plain.Tensor, approximate: str) -> plain.Tensor:
    x = t.array
    return t.new(x * (bell_area(x) if approximate == "none" else 0.5 * (1 + np.tanh(bent(x)))))


def bell_area(x: np.ndarray) -> np.ndarray:
    """The share of a standard normal distribution that lies below x."""
    return 0.5 * (1 + erf(x * math.sqrt(0.5)))


def bent(x: np.ndarray) -> np.ndarray:
    return math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))


class Relu(Operation, of=relu):
    """At the kink the slope is 0, as in PyTorch. The output is positive exactly where the input is."""

    def forward(self, t: plain.Tensor) -> plain.Tensor:
        out = relu(t)
        self.save(out)
        return out

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (y,) = self.saved
        return let_pass(grad, ~(y <= 0))


def let_pass(grad: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """grad where the mask is True, 0 elsewhere. A product is three times as fast as a choice, but 0 * inf is nan."""
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.asarray(grad * mask)
        return np.where(mask, grad, 0) if np.isnan(np.vdot(out, out)) else out


class Silu(OfInput, of=silu_of):
    def slope(self, x: np.ndarray) -> np.ndarray:
        s = logistic(x)
        return s * (1 + x * (1 - s))


class Softplus(OfInput, of=softplus_of):
    def slope(self, x: np.ndarray, beta: float, threshold: float) -> np.ndarray:
        scaled = x * beta
        return np.where(scaled > threshold, 1, logistic(scaled))


class Gelu(OfInput, of=gelu_of):
    def slope(self, x: np.ndarray, approximate: str) -> np.ndarray:
        if approximate == "none":
            return bell_area(x) + x * (np.exp(-0.5 * (x * x)) / math.sqrt(2 * math.pi))
        t = np.tanh(bent(x))
        slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * (x * x))
        return 0.5 * (1 + t) + 0.5 * x * ((1 - t * t) * slope)


# %% [markdown]
# **Look.** An elementwise operation has one slope for each element, so one backward with ones draws the whole
# derivative. Which of the four can switch a unit off for good? Which of them fall before they rise?

# %%
figure, (values, slopes) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for function, style in [(Tensor.relu, "-"), (gelu, "--"), (silu, "-."), (softplus, ":")]:
    x = linspace(-4, 4, 401, requires_grad=True)
    y = function(x)
    y.backward(ones(401))
    values.plot(x.detach().numpy(), y.detach().numpy(), style)
    slopes.plot(x.detach().numpy(), x.grad.numpy(), style, label=function.__name__)
values.set(title="value", xlabel="x")
slopes.set(title="slope", xlabel="x")
slopes.legend()
plt.show()

# %% [markdown]
# **Kinks and ties.** $|x|$ has no derivative at 0, and `maximum(a, b)` none where the two are equal. Frameworks must
# still return a number, and every number between the slopes on either side can be defended. They have settled on a few
# habits, and a framework that differs from them is a riddle to its users:
#
# | operation | where | slope there |
# |---|---|---|
# | `relu` | $x = 0$ | 0 |
# | `abs` | $x = 0$ | 0, half-way between -1 and 1 |
# | `clamp` | on a bound | 1: the value was not replaced |
# | `maximum`, `minimum` | $a = b$ | 1/2 for each |
#
# It matters more than it seems. After a relu about half of all numbers are exactly 0, so ties are everyday company, and
# the maximum of two *equal* branches is no rare accident where both began with zeros. One rule has no exception: for a
# tie the shares add up to 1.
# If both inputs got everything, then `maximum(x, x)`, which is `x`, would have slope 2.

# %% figure="kinks-and-slopes"
"""Two pictures. On the left maximum(a, 1) against a: flat at 1 up to a = 1, then rising. On the right its slope for a,
0 below 1, one half exactly at 1, and 1 above; and the slope for b, which is 1 below, one half at 1, and 0 above."""
a = np.linspace(-0.5, 2.5, 301)
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3), layout="constrained")
left.plot(a, np.maximum(a, 1), color="#0072b2")
left.plot([1], [1], "o", color="#d55e00")
left.set(xlabel="a", title="maximum(a, b) for b = 1")
for a_gets, part in [(0, a < 1), (1, a > 1)]:
    right.plot(a[part], 0 * a[part] + a_gets, "-", color="#0072b2", label="for a" if a_gets else None)
    right.plot(a[part], 0 * a[part] + 1 - a_gets, "--", color="#e69f00", label="for b" if a_gets else None)
right.plot([1], [0.5], "o", color="#d55e00")
right.text(1.15, 0.46, "a = b: half for each", color="#a04600")
right.legend(loc="center left")
right.set(xlabel="a", title="its slopes", yticks=[0, 0.5, 1])

# %% [markdown]
# One more citizen of the edges: `nan`. The maximum of a number and `nan` is `nan`, and both inputs get the whole
# gradient, so that whoever looks for the source finds it on either path. Every comparison with `nan` is false; decide
# for yourself whether to ask "is a larger?" or "is a smaller?".


# %% given="maximum"
def maximum(a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
    return a.new(plain.calculate(np.maximum, a, b))


# %% [markdown]
# ### Exercise 3.2: `Maximum`
# Medium, 15 minutes, 3 points.


# %% exercise="operations-maximum"
class Maximum(Operation, of=maximum):
    """The larger of a and b, element by element."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        self.save(a, b)
        return maximum(a, b)

    def backward(self, grad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradients of a and of b, both in the shape and dtype of grad.

        Where one is larger it gets all of grad, and where they are equal each gets half. Where one
        is nan, so is the maximum, and both get all of grad.

        a and b broadcast to the shape of grad; summing what was broadcast is done for you.
        """
        ### BEGIN SOLUTION
        a, b = self.saved
        half = grad / 2
        to_a, to_b = np.where(a < b, 0, grad), np.where(b < a, 0, grad)
        return np.where(a == b, half, to_a), np.where(a == b, half, to_b)
        ### END SOLUTION


# %% [markdown]
# <details><summary>Equal elements get too much together, or nothing</summary>
#
# Three cases: a larger, b larger, both equal. In which of your masks is the third? Add your two gradients: do you get
# grad everywhere?
# </details>
# <details><summary>Only the case with nan is wrong</summary>
#
# `nan > 1` is False, and so is `nan < 1`. Which of the two questions makes False mean "pass the gradient on"?
# </details>
# <details><summary>float32 comes back as float64</summary>
#
# A mask times 0.5 is a float64 array, since a mask has no float dtype of its own. `np.where(mask, half, ...)` chooses
# from arrays that have the right dtype already.
# </details>

# %% check="operations-maximum"
check("operations-maximum", Maximum)

# %% [markdown]
# `where` is the most useful of the family, and has a trap of its own. A gradient is *chosen* there, as the value was,
# and not multiplied by the mask: 0 times infinity is `nan`. The same happens one step earlier, out of reach of any
# framework, where both branches are computed and one of them has a pole.


# %% given="kinks"
def minimum(a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
    return a.new(plain.calculate(np.minimum, a, b))


def clamp(t: plain.Tensor, low: float, high: float) -> plain.Tensor:
    return t.new(np.minimum(np.maximum(t.array, low), high))


class Minimum(Operation, of=minimum):
    """The smaller of the two is the larger, seen from the other side."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        self.save(a, b)
        return minimum(a, b)

    def backward(self, grad: np.ndarray) -> tuple:
        a, b = self.saved
        half = grad / 2
        return np.where(a == b, half, np.where(a > b, 0, grad)), np.where(a == b, half, np.where(b > a, 0, grad))


class Absolute(OfInput, of=plain.absolute):
    """-1, 0 at the kink, 1."""

    def slope(self, x: np.ndarray) -> np.ndarray:
        return sign(x)


def sign(x: np.ndarray) -> np.ndarray:
    """The sign of each element, in its dtype; 0 for 0 and for nan, where NumPy's has nan."""
    return (x > 0).astype(x.dtype) - (x < 0)


class Clamp(Operation, of=clamp):
    """Nothing passes where the value was replaced. A value that lies on a bound was not."""

    def forward(self, t: plain.Tensor, low: float, high: float) -> plain.Tensor:
        self.save(t)
        self.bounds = low, high
        return clamp(t, low, high)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (x,), (low, high) = self.saved, self.bounds
        return let_pass(grad, (x >= low) & (x <= high))


# %% given="where"
def choose(condition: plain.Tensor, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
    dtype = plain.result_type(a, b)
    plain.broadcast_shapes(condition.shape, a.shape, b.shape)  # NumPy broadcasts by itself; this is for the error
    return a.new(np.where(condition.array, a.array.astype(dtype, copy=False), b.array.astype(dtype, copy=False)))


class Choose(Operation, of=choose):
    """A gradient is chosen too, never multiplied by the mask: 0 * inf would be nan."""

    def forward(self, condition: plain.Tensor, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        self.save(condition)
        return choose(condition, a, b)

    def backward(self, grad: np.ndarray) -> tuple:
        (condition,) = self.saved
        _, to_a, to_b = self.needs_input_grad
        return None, np.where(condition, grad, 0) if to_a else None, np.where(condition, 0, grad) if to_b else None


# %%
x = tensor([0.0, 4.0], requires_grad=True)
with np.errstate(divide="ignore", invalid="ignore"):
    where(x > 0, x.sqrt(), 0.0).sum().backward()
print("pole in the branch not taken:", x.grad)

x.grad = None
safe = where(x > 0, x, 1.0)
where(x > 0, safe.sqrt(), 0.0).sum().backward()
print("the input made safe before:  ", x.grad)

# %% [markdown]
# The root's slope at 0 is infinite, what arrives is 0, and their product is `nan`. PyTorch gives the same. The remedy
# is the second version: replace the *input* where the branch is not taken, then choose.
#
# ## Reductions
#
# **Idea.** A reduction reads many elements into one number. On its way back, the gradient of that number is read into
# all of their places, times how much each of them moved it. For `sum` that is 1, and for `mean` $1/n$: you have seen
# `Sum` in chapter 02 and `Mean` above. The interesting ones are those where an element's share depends on the others.
#
# **Variance.** With $n$ elements, mean $\mu$ and correction $c$ (1 for a sample, 0 for all there is),
#
# $$v = \frac{1}{n - c} \sum_j (x_j - \mu)^2$$
#
# An element acts in two ways: by itself, and through $\mu$, in which every element has a share of $1/n$.
#
# $$\frac{\partial v}{\partial x_i}
#   = \frac{2}{n - c} \Big[ (x_i - \mu) - \frac{1}{n} \sum_j (x_j - \mu) \Big]
#   = \frac{2}{n - c}\,(x_i - \mu)$$
#
# The second way brings nothing, because distances from the mean add up to 0. Keep the argument: in chapter 04, where
# the mean is used twice in a layer norm, the sum will *not* be 0, and forgetting the second way is the most common
# fault of all.
#
# ### Exercise 3.3: `var_gradient`
# Medium, 20 minutes, 4 points.


# %% exercise="operations-var"
def var_gradient(
    grad: np.ndarray,
    x: np.ndarray,
    dims: tuple[int, ...],
    correction: float,
) -> np.ndarray:
    """The gradient of x, from that of its variance along `dims`.

    grad        the gradient of the variance, with the axes `dims` kept, of size 1: shape (2, 1) for
                x of shape (2, 5) and dims (1,)
    x           an array of floats
    dims        the axes that were reduced, counted from the front
    correction  the variance is the sum of (x - mean)**2, divided by count - correction
    returns     an array of x's shape and dtype

    Where count equals the correction, the variance was a division by 0: let the factor be infinite,
    so that an element at its mean gets nan.

    >>> var_gradient(np.array([[3.0]]), np.array([[1.0, 2.0, 6.0]]), (1,), 1)
    array([[-6., -3.,  9.]])

    PyTorch: what Tensor.var computes on its way back
    """
    ### BEGIN SOLUTION
    count = plain.prod([x.shape[d] for d in dims])
    mean = np.add.reduce(x, dims, keepdims=True) / max(count, 1)
    factor = 2 / (count - correction) if count != correction else np.inf
    return (grad * factor) * (x - mean)
    ### END SOLUTION


# %% [markdown]
# <details><summary>One row is right, several are not</summary>
#
# Each row has a mean and a count of its own. Which axes do they go over, and what does `keepdims` have to do with
# subtracting the mean?
# </details>
# <details><summary>Everything is off by one constant factor</summary>
#
# Write down $n$, $n - c$ and the number of all elements for shape (2, 5) and dims (1,). Which of them did you divide
# by, and where is the 2?
# </details>
# <details><summary>ZeroDivisionError</summary>
#
# Python refuses to divide by 0. The docstring says what the factor should be then; `np.inf` is that number.
# </details>

# %% check="operations-var"
check("operations-var", var_gradient)

# %% [markdown]
# **The largest element.** Only the largest moves when it is nudged; the others get 0. And when several are the largest?
# For $[2, 2, 1]$ there are two conventions, and both are in use:
#
# - `max()` over everything, `amax` and `amin` **share evenly**: $[\tfrac12, \tfrac12, 0]$. Nobody asked which element
#   it was.
# - `max(dim)` returns the place as well, the *first* one, and **that element gets everything**: $[1, 0, 0]$.
#
# Both add up to 1. $[1, 1, 0]$, which a careless mask gives, does not.
#
# ### Exercise 3.4: `share_evenly`
# Medium, 15 minutes, 3 points.


# %% exercise="operations-ties"
def share_evenly(
    grad: np.ndarray,
    x: np.ndarray,
    extreme: np.ndarray,
    dims: tuple[int, ...],
) -> np.ndarray:
    """The gradient of x, from that of its largest (or smallest) elements along `dims`.

    grad     the gradient of the extreme, with the axes `dims` kept, of size 1: shape (2, 1) for
             x of shape (2, 5) and dims (1,)
    x        an array
    extreme  the largest (or smallest) elements along dims, in the shape of grad
    dims     the axes that were reduced, counted from the front
    returns  an array of x's shape and grad's dtype: grad, shared evenly among all elements that are
             equal to their extreme, and 0 elsewhere

    >>> x = np.array([[2.0, 2.0, 1.0]])
    >>> share_evenly(np.array([[8.0]]), x, np.array([[2.0]]), (1,))
    array([[4., 4., 0.]])

    PyTorch: what Tensor.amax and Tensor.amin compute on their way back
    """
    ### BEGIN SOLUTION
    ties = x == extreme
    count = np.add.reduce(ties, dims, dtype=grad.dtype, keepdims=True)
    with np.errstate(invalid="ignore"):  # an extreme of nan is equal to nothing
        return ties * (grad / count)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Ties get the whole gradient each</summary>
#
# A mask of equal elements is half the way. How many True are there along `dims`, for each extreme?
# </details>
# <details><summary>It is right for one row alone</summary>
#
# Each row counts its own ties. Give the count the same axes as grad: `keepdims`.
# </details>
# <details><summary>float32 comes back as float64</summary>
#
# A count of True is an int64 array, and NumPy makes float64 of float32 and int64 arrays. `np.add.reduce` takes a
# `dtype` to count in.
# </details>

# %% check="operations-ties"
check("operations-ties", share_evenly)

# %% [markdown]
# **Products.** The derivative of $x_1 x_2 \cdots x_n$ with respect to $x_i$ is the product of all *others*. Everybody's
# first thought is to divide the whole by $x_i$, and as long as no element is 0 that is right. With a single 0 it is
# $0/0$, although the answer exists: for $[2, 0, 5]$ it is $[0, 10, 0]$. The element that is 0 is the only one whose
# others are not.
#
# Without division it takes two running products, one from the left and one from the right, each shifted by one place:
#
# | | | | | |
# |---|---|---|---|---|
# | x | 2 | 3 | 0 | 5 |
# | product of those on its left | 1 | 2 | 6 | 0 |
# | product of those on its right | 0 | 0 | 5 | 1 |
# | product of both: the others | 0 | 0 | 30 | 0 |
#
# ### Exercise 3.5: `products_of_others`
# Hard, 25 minutes, 4 points.


# %% exercise="operations-prod"
def products_of_others(x: np.ndarray) -> np.ndarray:
    """For each element, the product of all others along the last axis.

    x        an array of floats of any shape, with one axis at least
    returns  an array of the same shape and dtype: out[..., i] is the product of x[..., j] over all
             j other than i; 1 where there are no others

    Zeros are ordinary numbers here: no division.

    >>> products_of_others(np.array([2.0, 0.0, 5.0]))
    array([ 0., 10.,  0.])

    PyTorch: what Tensor.prod computes on its way back where there are zeros
    """
    ### BEGIN SOLUTION
    one = np.ones((*x.shape[:-1], min(1, x.shape[-1])), x.dtype)
    before = np.cumprod(np.concatenate([one, x[..., :-1]], -1), -1)
    behind = np.cumprod(np.concatenate([one, x[..., :0:-1]], -1), -1)[..., ::-1]
    return before * behind
    ### END SOLUTION


# %% [markdown]
# <details><summary>nan, or a division warning</summary>
#
# Nothing has to be divided. Which two products, multiplied together, leave exactly one element out?
# </details>
# <details><summary>Everything is shifted by one, or each element is in its own product</summary>
#
# In the table both rows begin with a 1, one at the left end, one at the right. What does the running product have to be
# taken of, so that the 1 comes first and the last element is never used?
# </details>
# <details><summary>It fails for an empty axis</summary>
#
# With no elements there is no place for the 1 either. How long should the piece with the 1 be, for an axis of size 0?
# </details>

# %% check="operations-prod"
check("operations-prod", products_of_others)

# %% [markdown]
# **Running sums.** In `cumsum` output $i$ is the sum of inputs $0$ to $i$. The Jacobian is a triangle of ones:
#
# $$\begin{pmatrix} y_0 \\ y_1 \\ y_2 \end{pmatrix} =
#   \begin{pmatrix} 1 & 0 & 0 \\ 1 & 1 & 0 \\ 1 & 1 & 1 \end{pmatrix}
#   \begin{pmatrix} x_0 \\ x_1 \\ x_2 \end{pmatrix}
#   \qquad
#   \bar{x} = J^{\mathsf T} \bar{y}$$
#
# Row $i$ says of which inputs an output is made. *Column* $j$ says in which outputs an input takes part, and backward
# reads columns. No framework ever makes the matrix: a product with it is a running sum, and so is a product with its
# transpose, in some direction.
#
# ### Exercise 3.6: `cumsum_gradient`
# Easy, 10 minutes, 2 points.


# %% exercise="operations-cumsum"
def cumsum_gradient(grad: np.ndarray, dim: int) -> np.ndarray:
    """The gradient of x, from that of its running sums along an axis.

    grad     an array of floats with one axis at least
    dim      the axis, counted from the front
    returns  an array of the same shape and dtype

    >>> cumsum_gradient(np.array([1.0, 10.0, 100.0]), 0)
    array([111., 110., 100.])

    PyTorch: what Tensor.cumsum computes on its way back
    """
    ### BEGIN SOLUTION
    return np.flip(np.cumsum(np.flip(grad, dim), dim), dim)
    ### END SOLUTION


# %% [markdown]
# <details><summary>The last element is right, or the first, and the others are not</summary>
#
# In which running sums does the first element take part, and in which the last? From which end do the gradients add up?
# </details>
# <details><summary>The right numbers, in reverse order</summary>
#
# If you turned the gradient round to sum it from the other end, the result still stands the wrong way round.
# </details>

# %% check="operations-cumsum"
check("operations-cumsum", cumsum_gradient)

# %% [markdown]
# The operations around your four functions, and two more reductions. `logsumexp` is short and worth reading: its
# gradient is a softmax, which the last section is about.


# %% given="var"
def var(t: plain.Tensor, dim: Any = None, correction: float = 1, keepdim: bool = False) -> plain.Tensor:
    """The mean squared distance from the mean, with count - correction in place of the count."""
    x, dims = t.array, plain.dims_of(dim, t.ndim)
    count = plain.prod([x.shape[d] for d in dims])
    with np.errstate(divide="ignore", invalid="ignore"):  # too few elements: nan or inf
        centred = x - np.add.reduce(x, dims, keepdims=True) / count if count else x
        total = np.asarray(np.add.reduce(centred * centred, dims, keepdims=keepdim))
        return t.new(total / total.dtype.type(max(count - correction, 0)))


def std(t: plain.Tensor, dim: Any = None, correction: float = 1, keepdim: bool = False) -> plain.Tensor:
    return t.new(np.sqrt(var(t, dim, correction, keepdim).array))


class Var(Operation, of=var):
    def forward(self, t: plain.Tensor, dim: Any = None, correction: float = 1, keepdim: bool = False) -> plain.Tensor:
        self.save(t)
        self.dims, self.correction = plain.dims_of(dim, t.ndim), correction
        return var(t, dim, correction, keepdim)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (x,) = self.saved
        return var_gradient(kept(grad, x.shape, self.dims), x, self.dims, self.correction)


class OverAxes(Operation):
    """An operation over axes whose backward reads both the input and the output."""

    def forward(self, t: plain.Tensor, dim: Any = None, **options: Any) -> plain.Tensor:
        out = self.function(t, dim=dim, **options)
        self.save(t, out)
        self.dims, self.options = plain.dims_of(dim, t.ndim), options
        return out


class Std(OverAxes, of=std):
    """The root of the variance. Where nothing varies its slope is infinite, and PyTorch lets 0 pass there."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        x, out = self.saved
        with np.errstate(divide="ignore", invalid="ignore"):
            grad = np.where(out == 0, 0, grad / (2 * out))
        return var_gradient(kept(grad, x.shape, self.dims), x, self.dims, self.options["correction"])


def kept(array: np.ndarray, shape: tuple[int, ...], dims: tuple[int, ...]) -> np.ndarray:
    """What a reduction of `shape` over `dims` gave, with these axes back in place, of size 1."""
    return array.reshape([1 if axis in dims else size for axis, size in enumerate(shape)])


# %% given="extrema"
class Extreme(OverAxes):
    """amax and amin."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        x, out = self.saved
        grad, out = kept(grad, x.shape, self.dims), kept(out, x.shape, self.dims)
        return share_evenly(grad, *self.comparable(x, out), self.dims)

    def comparable(self, x: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x, out


class MaxOver(Extreme, of=plain.max_over):
    pass


class MinOver(Extreme, of=plain.min_over):
    pass


def largest(t: plain.Tensor, dim: None = None, keepdim: bool = False) -> plain.Tensor:
    return plain.max_over(t)


def smallest(t: plain.Tensor, dim: None = None, keepdim: bool = False) -> plain.Tensor:
    return plain.min_over(t)


class ExtremeOfAll(Extreme):
    """max() and min() without a dim. As in PyTorch they differ from amax and amin in one thing: nan is equal to nan."""

    def comparable(self, x: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (np.isnan(x), np.isnan(out)) if np.isnan(out).any() else (x, out)


class Largest(ExtremeOfAll, of=largest):
    pass


class Smallest(ExtremeOfAll, of=smallest):
    pass


class Along(Operation):
    """max and min over one axis, which say where the element was: it alone gets the gradient."""

    def forward(self, t: plain.Tensor, dim: int, keepdim: bool = False) -> plain.Tensor:
        self.dims = plain.dims_of(dim, t.ndim)
        self.place = self.find(t, dim, True).array
        return self.function(t, dim, keepdim)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        if not self.dims:
            return grad
        whole = np.zeros(self.input_shape, grad.dtype)
        np.put_along_axis(whole, self.place, kept(grad, whole.shape, self.dims), self.dims[0])
        return whole


class MaxAlong(Along, of=plain.max_along):
    find = staticmethod(plain.argmax)


class MinAlong(Along, of=plain.min_along):
    find = staticmethod(plain.argmin)


# %% given="products"
def prod(t: plain.Tensor, dim: int | None = None, keepdim: bool = False) -> plain.Tensor:
    """Products along one axis or over everything. Whole numbers and truth values are multiplied as int64."""
    dtype = None if t.dtype.kind == "f" else plain.int64
    return t.new(np.multiply.reduce(t.array, plain.dims_of(dim, t.ndim), dtype, keepdims=keepdim))


class Prod(OverAxes, of=prod):
    """The gradient of an element is the product of all others: the whole divided by it, as long as nothing is 0."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        x, out = self.saved
        grad = kept(grad, x.shape, self.dims)
        if x.all():
            return grad * (kept(out, x.shape, self.dims) / x)
        if len(self.dims) == x.ndim:
            return grad * products_of_others(x.ravel()).reshape(x.shape)
        others = products_of_others(np.moveaxis(x, self.dims[0], -1))
        return grad * np.moveaxis(others, -1, self.dims[0])


# %% [markdown]
# `cumsum`, `logsumexp` and `norm`. Note how each says what happens where there is no slope: at the origin the norm's
# gradient is 0.


# %% given="cumsum"
def cumsum(t: plain.Tensor, dim: int) -> plain.Tensor:
    """The sum of each element and all before it, along an axis."""
    axis = plain.axis_of(dim, t.ndim)
    dtype = None if t.dtype.kind == "f" else plain.int64
    return t.new(np.cumsum(t.array.reshape(t.shape or 1), axis, dtype).reshape(t.shape))


class Cumsum(Operation, of=cumsum):
    def forward(self, t: plain.Tensor, dim: int) -> plain.Tensor:
        self.dim = plain.axis_of(dim, t.ndim)
        return cumsum(t, dim)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return cumsum_gradient(grad, self.dim) if grad.ndim else grad


# %% given="logsumexp"
def logsumexp(t: plain.Tensor, dim: Any = None, keepdim: bool = False) -> plain.Tensor:
    """log(sum(exp(x))), with the largest element taken out first, so that no exp overflows."""
    x, dims = plain.real(t), plain.dims_of(dim, t.ndim)
    top = np.maximum.reduce(x, dims, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        out = np.log(np.add.reduce(np.exp(x - top), dims, keepdims=True)) + top
    return t.new(out if keepdim else out.squeeze(dims))


class Logsumexp(OverAxes, of=logsumexp):
    """The gradient is the softmax: exp(x) divided by the sum, which is exp(out)."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        x, out = self.saved
        with np.errstate(invalid="ignore"):
            return kept(grad, x.shape, self.dims) * np.exp(x - kept(out, x.shape, self.dims))


# %% given="norm"
def norm(t: plain.Tensor, p: float, dim: Any = None, keepdim: bool = False) -> plain.Tensor:
    x, dims = t.array, plain.dims_of(dim, t.ndim)
    if p == 2:
        return t.new(np.sqrt(np.add.reduce(x * x, dims, keepdims=keepdim)))
    reduce = np.add.reduce if p == 1 else np.maximum.reduce
    return t.new(reduce(np.abs(x), dims, keepdims=keepdim))


class Norm(OverAxes, of=norm):
    """How long a vector is, for p = 1, 2 and inf. At the origin, where none has a slope, the gradient is 0."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (x, out), p = self.saved, self.options["p"]
        grad, out = kept(grad, x.shape, self.dims), kept(out, x.shape, self.dims)
        if p == 1:
            return grad * sign(x)
        if p == 2:
            return x * np.where(out == 0, 0, grad / np.where(out == 0, 1, out))
        reached = (np.abs(x) == out) | np.isnan(x)
        return share_evenly(grad, reached, np.True_, self.dims) * sign(x)


# %% [markdown]
# **Look.** Both conventions for ties, and the sum of the shares.

# %%
ways = {"max()": lambda x: x.max(), "max(0)": lambda x: x.max(0).values, "amax": Tensor.amax}
for name, largest_of in ways.items():
    x = tensor([2.0, 2.0, 1.0], requires_grad=True)
    largest_of(x).backward()
    print(f"{name:7} {x.grad.tolist()}, together {x.grad.sum().item()}")
shares = share_evenly(np.ones(1), np.array([2.0, 2.0, 1.0]), np.array([2.0]), (0,))
print("by hand", shares.tolist())

# %% [markdown]
# ## Matrix products
#
# **Idea.** For two matrices you know the answer from chapter 02: with $C = AB$,
#
# $$\bar{A} = \bar{C} B^{\mathsf T} \qquad \bar{B} = A^{\mathsf T} \bar{C}$$
#
# If you ever forget it, let the shapes remember: $\bar A$ must be $(n, k)$, and from $\bar C$, which is $(n, m)$, and
# $B$, which is $(k, m)$, there is only one product of that shape. What is left is everything that is not two matrices.
#
# | a | b | a @ b | what it means |
# |---|---|---|---|
# | `(n, k)` | `(k, m)` | `(n, m)` | the matrix product |
# | `(n, k)` | `(k,)` | `(n,)` | b is a column `(k, 1)`, which is dropped again |
# | `(k,)` | `(k, m)` | `(m,)` | a is a row `(1, k)`, which is dropped again |
# | `(k,)` | `(k,)` | `()` | both at once: one number |
# | `(..., n, k)` | `(..., k, m)` | `(..., n, m)` | many products; the axes in front broadcast |
# | `(B, T, k)` | `(k, m)` | `(B, T, m)` | one matrix meets all: every linear layer |
# | `(k,)` | `(B, k, m)` | `(B, m)` | one row meets all |
#
# Three steps cover the table. *Lend* each vector its axis of size 1, in a, in b, and in grad, where it had been
# dropped. *Multiply* by the two formulas, with `.mT`, the transpose of the last two axes. *Return* the lent axis.
# Broadcast axes in front may stay: the machine sums them away, as it does for every operation.
#
# The last row but one deserves speed. For a of shape (64, 32, 256) and one matrix b, the formula makes 64 gradients of
# b and then adds them up. Folding the 64 × 32 rows into one long matrix makes the same sum inside *one* product. The
# check accepts both.


# %% given="product"
def product(a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
    """The matrix product for any number of axes. A vector is lent an axis of size 1, which it then gives back."""
    if a.dtype is not b.dtype and a.dtype != b.dtype:  # behind the door, where chapter 10 converts
        raise TypeError(f"matmul of {a.dtype} and {b.dtype}: convert one of them first, as in x.to(y.dtype)")
    if len(a.shape) > 1 and len(b.shape) > 1:
        return plain.matmul(a, b)
    rows = a if a.ndim > 1 else a.new(a.array[None, :])
    columns = b if b.ndim > 1 else b.new(b.array[:, None])
    out = plain.matmul(rows, columns)
    lead = out.shape[:-2]
    return out.new(out.array.reshape(lead + out.shape[-2:-1] * (a.ndim > 1) + out.shape[-1:] * (b.ndim > 1)))


def for_blas(grad: np.ndarray) -> np.ndarray:
    """A gradient that comes from a sum has a stride of 0, which BLAS does not read: then a copy."""
    return grad.copy() if 0 in grad.strides else grad


def fitted(grad: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """A gradient without the axis that a vector was lent."""
    return grad[..., 0] if grad is not None and len(shape) == 1 else grad


# %% [markdown]
# ### Exercise 3.7: `Product`
# Hard, 30 minutes, 5 points.


# %% exercise="operations-matmul"
class Product(Operation, of=product):
    """a @ b, for any two tensors with at least one axis each."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        self.save(a if b.requires_grad else None, b if a.requires_grad else None)
        self.shapes = a.shape, b.shape
        return product(a, b)

    def backward(self, grad: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The gradients of a and b, from that of the output.

        self.saved    a and b as arrays; None for one that the gradients wanted do not need
        self.shapes   the shapes of a and of b, one axis or more each
        returns       two arrays, or None for a gradient that is not wanted: the *other* one was not
                      saved. Where leading axes were broadcast, leave them in: the machine sums them
                      away.
        """
        ### BEGIN SOLUTION
        (a, b), (left, right) = self.saved, self.shapes
        grad = for_blas(grad)
        if len(right) == 1:
            grad, b = grad[..., None], None if b is None else b[:, None]
        if len(left) == 1:
            a = None if a is None else a[None, :]
            to_a, to_b = autodiff.matmul_gradients(grad[..., None, :], a, b)
            return None if to_a is None else to_a[..., 0, :], fitted(to_b, right)
        if len(right) <= 2 < len(left):  # one matrix met all rows: one large product
            count = plain.prod(left[:-1])
            a = None if a is None else a.reshape(count, left[-1])
            grad = grad.reshape(count, grad.shape[-1])
        if a is not None and b is not None and left[:-2] == right[:-2] and len(left) > 2:
            # In the memory order of a and b: the views behind them then copy nothing on their way.
            to_a, to_b = np.empty_like(a), np.empty_like(b)
            return np.matmul(grad, b.mT, out=to_a), np.matmul(a.mT, grad, out=to_b)
        to_a, to_b = autodiff.matmul_gradients(grad, a, b)
        if len(right) <= 2 < len(left) and to_a is not None:
            to_a = to_a.reshape(left)
        return to_a, fitted(to_b, right)
        ### END SOLUTION


# %% [markdown]
# <details><summary>Matrices work, vectors raise an error about shapes</summary>
#
# Write the table's second row down with sizes: a (2, 3), b (3,), grad (2,). Which of the three needs an axis, and at
# which end, before the formulas fit?
# </details>
# <details><summary>"backward gave a gradient of shape ..."</summary>
#
# The machine can sum away axes in front, never one that you lent to a vector. Take it out again: `[..., 0]` or
# `[..., 0, :]`, on the side where it was put in.
# </details>
# <details><summary>'NoneType' has no attribute 'mT'</summary>
#
# Where b's gradient is not wanted, a was not saved. Which of the two arrays does each gradient need? Ask before you use
# it.
# </details>
# <details><summary>Stacks are wrong though every matrix in them is right</summary>
#
# `.T` reverses *all* axes of a stack; `.mT` exchanges the last two.
# </details>

# %% check="operations-matmul"
check("operations-matmul", Product)

# %% [markdown]
# A product is often followed by a sum: every linear layer adds a bias. `addmm` does both as one operation. It adds into
# the array of the product, so no second one is made, and backward has one node to visit instead of two. The gradients
# of the product are your `matmul_gradients` from chapter 02.


# %% given="addmm"
def add_product(t: plain.Tensor, a: plain.Tensor, b: plain.Tensor, beta: float, alpha: float) -> plain.Tensor:
    if t.dtype != a.dtype:
        raise TypeError(f"addmm of {t.dtype} and {a.dtype}: convert one of them first, as in x.to(y.dtype)")
    if t.dtype.kind != "f" and not (isinstance(beta, int) and isinstance(alpha, int)):
        raise TypeError(f"addmm of {t.dtype} with beta {beta} and alpha {alpha}: whole numbers take whole numbers only")
    out = product(a, b)
    if alpha != 1:
        out.array *= alpha
    if beta != 0:
        out.array += t.array if beta == 1 else t.array * beta
    return out


class AddProduct(Operation, of=add_product):
    def forward(self, t: plain.Tensor, a: plain.Tensor, b: plain.Tensor, beta: float, alpha: float) -> plain.Tensor:
        _, to_a, to_b = self.targets
        self.save(None if to_b is None else a, None if to_a is None else b)
        self.beta, self.alpha = beta, alpha
        return add_product(t, a, b, beta, alpha)

    def backward(self, grad: np.ndarray) -> tuple:
        grad = for_blas(grad)
        to_product = grad if self.alpha == 1 else grad * self.alpha
        return self.to_sum(grad), *autodiff.matmul_gradients(to_product, *self.saved)

    def to_sum(self, grad: np.ndarray) -> np.ndarray | None:
        target = self.targets[0]
        if target is None:
            return None
        if len(target.grad_like[0]) == 1:  # a bias, added to every row
            grad = np.add.reduce(grad, 0)
        return grad if self.beta == 1 else grad * self.beta


# %% [markdown]
# `einsum` is all of the table in one notation, and its gradient is a lesson in notation: exchange the output with the
# operand that you want the gradient of. For `"ij,jk->ik"` that gives `"ik,jk->ij"`, which is $\bar{C} B^{\mathsf T}$
# without a transpose in sight. Three cases need care, and the class below names them: a letter that only this operand
# has, a letter that it has twice, and an axis of size 1 that was broadcast.


# %% given="einsum"
def einsum_of(*operands: plain.Tensor, terms: tuple[str, ...], out: str) -> plain.Tensor:
    return operands[0].new(summed(terms, [t.array for t in operands], out))


def summed(terms: Sequence[str], arrays: Sequence[np.ndarray], out: str) -> np.ndarray:
    return np.asarray(np.einsum(f"{','.join(terms)}->{out}", *arrays, optimize=len(arrays) > 1))


class Einsum(Operation, of=einsum_of):
    """The gradient of an operand is an einsum again: of the output's gradient and all other operands."""

    def forward(self, *operands: plain.Tensor, terms: tuple[str, ...], out: str) -> plain.Tensor:
        self.save(*operands)
        self.terms, self.out = terms, out
        return einsum_of(*operands, terms=terms, out=out)

    def backward(self, grad: np.ndarray) -> tuple:
        arrays, wanted = self.saved, self.needs_input_grad
        return tuple([self.to(i, grad, arrays) if wanted[i] else None for i in range(len(arrays))])

    def to(self, i: int, grad: np.ndarray, arrays: list[np.ndarray]) -> np.ndarray:
        """The gradient of operand i. A letter that only this operand has was summed, so its gradient is repeated."""
        own, (terms, others) = self.terms[i], (self.terms[:i] + self.terms[i + 1 :], arrays[:i] + arrays[i + 1 :])
        letters = "".join(dict.fromkeys(own))
        sizes = dict(zip(own, arrays[i].shape, strict=True))
        elsewhere = {*self.out, *"".join(terms)}
        shared = "".join([letter for letter in letters if letter in elsewhere])
        found = summed((self.out, *terms), (grad, *others), shared)
        found = found.reshape([found.shape[shared.index(c)] if c in shared else 1 for c in letters])
        found = np.broadcast_to(found, [sizes[c] if n == 1 else n for c, n in zip(letters, found.shape, strict=True)])
        if letters == own:
            return found
        whole = np.zeros([found.shape[letters.index(c)] for c in own], found.dtype)
        np.einsum(f"{own}->{letters}", whole)[...] = found  # a letter twice: the diagonal, as a view
        return whole


def read_equation(equation: str, ndims: Sequence[int]) -> tuple[tuple[str, ...], str]:
    """The letters of each operand and of the output, with `...` written out and a missing output filled in."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum {equation!r} names {len(terms)} operands and got {len(ndims)}")
    named = [term.replace("...", "") for term in terms]
    if not "".join([*named, right.replace("...", "")]).isalpha() and "".join(named):
        raise ValueError(f"einsum {equation!r}: use letters, commas, `...` and one arrow")
    extra = [ndim - len(letters) for ndim, letters in zip(ndims, named, strict=True)]
    for term, n, ndim in zip(terms, extra, ndims, strict=True):
        if n < 0 or (n and "..." not in term):
            raise ValueError(f"einsum {equation!r}: {term!r} does not name the {ndim} axes of its operand")
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation][: max(extra)]
    if not arrow:
        once = sorted({c for c in "".join(named) if "".join(named).count(c) == 1})
        right = "..." * ("..." in left) + "".join(once)
    filled = [term.replace("...", "".join(free[len(free) - n :])) for term, n in zip(terms, extra, strict=True)]
    return tuple(filled), right.replace("...", "".join(free))


# %%
a, b = randn(2, 3, 4, requires_grad=True), randn(4, 5, requires_grad=True)
seed = randn(2, 3, 5)
out = a @ b
out.backward(seed)
print("made by your Product:", isinstance(out.grad_fn, Product))
by_hand = {a: einsum("btm,km->btk", seed, b.detach()), b: einsum("btk,btm->km", a.detach(), seed)}
print("equal to its einsum: ", [grad.allclose(t.grad, atol=1e-5) for t, grad in by_hand.items()])

# %% [markdown]
# ## Shapes
#
# **Idea.** Operations on shapes compute nothing. Each output element *is* an input element, so the Jacobian holds a
# single 1 in each row, and the gradient goes home: every number to the place that it was read from. There is nothing to
# derive. There is only one way to fail, which is to send a number to the wrong house, and no error will ever tell.
#
# - The opposite of `permute` is the permute that puts each axis back.
# - The opposite of `reshape` is a reshape to the old shape, **of the gradient in its logical order**.
# - The opposite of reading an element several times (`expand`, `repeat`, `repeat_interleave`) is a sum.
# - The opposite of `cat` is to cut, of `split` to lay side by side, with 0 for the parts that were not used.
#
# They compose like dressing: what was put on last comes off first.
#
# Now the team's line. Multi-head attention takes x of shape `(B, T, H * D)`, cuts its last axis into H heads of D
# numbers and brings the heads to the front:
#
#     heads = x.reshape(B, T, H, D).permute(0, 2, 1, 3)        # (B, H, T, D)
#
# A gradient of shape `(B, H, T, D)` arrives, and `(B, T, H * D)` is wanted. There are as many numbers as before, so
# `reshape` will not object.

# %% figure="two-ways-back"
"""Three grids. On the left the gradient of two heads with three positions, labelled by head and position: A0, A1, A2 in
the first row, B0, B1, B2 in the second. In the middle the right way back, one row for each position: A0 B0, A1 B1, A2
B2. On the right what a reshape alone gives: A0 A1, A2 B0, B1 B2, where only the first and the last are in their
places."""
grids = [
    ("gradient: heads, positions", [["A0", "A1", "A2"], ["B0", "B1", "B2"]]),
    ("permuted back, then reshaped", [["A0", "B0"], ["A1", "B1"], ["A2", "B2"]]),
    ("reshaped only", [["A0", "A1"], ["A2", "B0"], ["B1", "B2"]]),
]
figure, panels = plt.subplots(1, 3, figsize=(9, 3), width_ratios=[3, 2, 2], layout="constrained")
right_way = grids[1][1]
for axes, (title, rows) in zip(panels, grids, strict=True):
    for i, row in enumerate(rows):
        for j, text in enumerate(row):
            wrong = title == "reshaped only" and text != right_way[i][j]
            edge = {"edgecolor": "#d55e00", "linewidth": 2.5, "zorder": 3} if wrong else {"edgecolor": "#8a8a8a"}
            axes.add_patch(plt.Rectangle((j, -i), 1, 1, facecolor="#cfe3f1" if text[0] == "A" else "#f6e3c5", **edge))
            axes.text(j + 0.5, 0.5 - i, text, ha="center", va="center", fontsize=12)
    axes.set_title(title, fontsize=11)
    axes.set(xlim=(-0.1, len(rows[0]) + 0.1), ylim=(-len(rows) + 0.8, 1.1))
    axes.set_aspect("equal")
    axes.axis("off")

# %% [markdown]
# In the picture D is 1, A and B are two heads and 0, 1, 2 three positions. On the right four of six numbers are in a
# wrong place: the gradient of position 1 in head A is credited to position 0 in head B. Sum, mean and norm are all
# right.
#
# ### Exercise 3.8: `split_heads_gradient`
# Easy, 10 minutes, 2 points.


# %% exercise="operations-heads"
def split_heads_gradient(grad: np.ndarray) -> np.ndarray:
    """The gradient of x, from that of x.reshape(B, T, H, D).permute(0, 2, 1, 3).

    grad     shape (B, H, T, D)
    returns  shape (B, T, H * D), of the same dtype

    >>> split_heads_gradient(np.array([[[[1.0], [2.0]], [[3.0], [4.0]]]])).tolist()
    [[[1.0, 3.0], [2.0, 4.0]]]

    PyTorch: what the two calls compute on their way back
    """
    ### BEGIN SOLUTION
    batch, heads, length, width = grad.shape
    return grad.transpose(0, 2, 1, 3).reshape(batch, length, heads * width)
    ### END SOLUTION


# %% [markdown]
# <details><summary>The shape is right and most numbers are in the wrong place</summary>
#
# Which two steps happened on the way forward, and in which order? Undo the last one first. What do the axes look like
# then, and which two lie side by side?
# </details>
# <details><summary>I cannot tell which permutation undoes (0, 2, 1, 3)</summary>
#
# The axis that went from place 1 to place 2 must go back from 2 to 1. Write the letters: B, T, H, D became B, H, T, D.
# </details>

# %% check="operations-heads"
check("operations-heads", split_heads_gradient)

# %% [markdown]
# **When the input is not contiguous** nothing changes, and that is a rule to hold on to: a gradient belongs to an
# element by its *index*, never by its place in memory. x may be transposed, sliced or broadcast; the gradient that
# arrives may be laid out in yet another way (that of a `permute` is a permuted view, that of a `sum` has stride 0).
# Code that uses indices and shapes does not notice. Code that reads `ravel(order="K")`, `.data` or a raw buffer does.

# %%
B, T, H, D = 2, 3, 4, 5
x = randn(B, T, H * D, requires_grad=True)
seed = randn(B, H, T, D)
x.reshape(B, T, H, D).permute(0, 2, 1, 3).backward(seed)
by_hand = split_heads_gradient(seed.numpy())
print("permuted back, then reshaped:", by_hand.tolist() == x.grad.tolist())
storage_order = seed.reshape(B, T, H * D)
print("reshaped only:               ", storage_order.allclose(x.grad))
print(f"norms:                        {storage_order.norm():.4f} and {x.grad.norm():.4f}")

# %% [markdown]
# **Copies.** `repeat` and `repeat_interleave` give the same shape and lay the copies differently. For `[1, 2, 3]`:
#
#     x.repeat(2)               1  2  3  1  2  3      copies lie a whole tensor apart
#     x.repeat_interleave(2)    1  1  2  2  3  3      copies are neighbours
#
# To give every key head of an attention layer to two query heads one needs the second; the first gives each query head
# a key head too, and not its own. The gradients differ in the same way: which of the six numbers belong together?
#
# ### Exercise 3.9: `repeat_interleave_gradient`
# Medium, 15 minutes, 3 points.


# %% exercise="operations-repeat-interleave"
def repeat_interleave_gradient(grad: np.ndarray, repeats: int, dim: int) -> np.ndarray:
    """The gradient of x, from that of x with each element `repeats` times in a row along an axis.

    grad     shape (..., n * repeats, ...), where axis dim has n * repeats elements
    repeats  1 or more
    dim      the axis, counted from the front
    returns  shape (..., n, ...), of the same dtype

    >>> repeat_interleave_gradient(np.array([1.0, 10.0, 2.0, 20.0]), 2, 0)
    array([11., 22.])

    PyTorch: what Tensor.repeat_interleave computes on its way back
    """
    ### BEGIN SOLUTION
    shape = (*grad.shape[:dim], grad.shape[dim] // repeats, repeats, *grad.shape[dim + 1 :])
    return np.add.reduce(grad.reshape(shape), dim + 1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>The shape is right, the wrong numbers were added</summary>
#
# If you reshape the axis of six into two axes, is it (3, 2) or (2, 3)? In which of the two do the neighbours 1 1 share
# a row?
# </details>
# <details><summary>It works for the last axis only, or for one axis only</summary>
#
# Keep the sizes in front of `dim` and behind it, and replace the one between by two. Over which of them do you sum?
# </details>

# %% check="operations-repeat-interleave"
check("operations-repeat-interleave", repeat_interleave_gradient)

# %% [markdown]
# The rest of the family: joining, repeating as a whole, turning. (`split`, `chunk` and `unbind` are slices, and the
# gradient of a slice is that of `Index`, given above.)


# %% given="joining"
def concatenate(*tensors: plain.Tensor, dim: int) -> plain.Tensor:
    dtype = common_dtype(tensors)
    return tensors[0].new(np.concatenate([t.array.astype(dtype, copy=False) for t in tensors], dim))


def stack_of(*tensors: plain.Tensor, dim: int) -> plain.Tensor:
    dtype = common_dtype(tensors)
    return tensors[0].new(np.stack([t.array.astype(dtype, copy=False) for t in tensors], dim))


def common_dtype(tensors: Sequence[plain.Tensor]) -> np.dtype:
    dtype = tensors[0].dtype
    for t in tensors[1:]:
        if t.dtype != dtype:
            dtype = plain.result_type(plain.Tensor(np.empty(1, dtype)), plain.Tensor(np.empty(1, t.dtype)))
    return dtype


class Concatenate(Operation, of=concatenate):
    """Each input gets back its own part of the gradient."""

    def forward(self, *tensors: plain.Tensor, dim: int) -> plain.Tensor:
        self.dim, self.sizes = dim, [t.shape[dim] for t in tensors]
        return concatenate(*tensors, dim=dim)

    def backward(self, grad: np.ndarray) -> tuple:
        return tuple(np.split(grad, np.cumsum(self.sizes)[:-1], self.dim))


class Stack(Operation, of=stack_of):
    def forward(self, *tensors: plain.Tensor, dim: int) -> plain.Tensor:
        self.dim = dim
        return stack_of(*tensors, dim=dim)

    def backward(self, grad: np.ndarray) -> tuple:
        return tuple(np.moveaxis(grad, self.dim, 0))


# %% given="repeating"
def repeat_interleave(t: plain.Tensor, repeats: int, dim: int) -> plain.Tensor:
    return t.new(np.repeat(t.array, repeats, dim))


def tile(t: plain.Tensor, sizes: tuple[int, ...]) -> plain.Tensor:
    return t.new(np.tile(t.array, sizes))


class RepeatInterleave(Operation, of=repeat_interleave):
    def forward(self, t: plain.Tensor, repeats: int, dim: int) -> plain.Tensor:
        self.repeats, self.dim = repeats, dim
        return repeat_interleave(t, repeats, dim)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return repeat_interleave_gradient(grad, self.repeats, self.dim) if self.repeats else None


class Tile(Operation, of=tile):
    """The whole tensor, over and over: copies lie a tensor apart, where those of repeat_interleave are neighbours."""

    def forward(self, t: plain.Tensor, sizes: tuple[int, ...]) -> plain.Tensor:
        self.sizes = sizes
        return tile(t, sizes)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        shape = (1,) * (len(self.sizes) - len(self.input_shape)) + self.input_shape
        apart = [n for pair in zip(self.sizes, shape, strict=True) for n in pair]
        return np.add.reduce(grad.reshape(apart), tuple(range(0, len(apart), 2))).reshape(self.input_shape)


# %% given="turning"
def flip(t: plain.Tensor, dims: tuple[int, ...]) -> plain.Tensor:
    return t.new(np.flip(t.array, dims).copy())


def roll(t: plain.Tensor, shifts: tuple[int, ...], dims: tuple[int, ...]) -> plain.Tensor:
    return t.new(np.roll(t.array, shifts, dims))


class Flip(Operation, of=flip):
    def forward(self, t: plain.Tensor, dims: tuple[int, ...]) -> plain.Tensor:
        self.dims = dims
        return flip(t, dims)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return np.flip(grad, self.dims)


class Roll(Operation, of=roll):
    def forward(self, t: plain.Tensor, shifts: tuple[int, ...], dims: tuple[int, ...]) -> plain.Tensor:
        self.back, self.dims = tuple([-n for n in shifts]), dims
        return roll(t, shifts, dims)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return np.roll(grad, self.back, self.dims)


# %% [markdown]
# ## Indexing
#
# **Idea.** `x[[0, 0, 2]]` reads element 0 twice and element 1 not at all. Backward is the same arrows turned round:
# what was read twice gets two gradients, and they add up; what was not read gets 0. An embedding is nothing else. Its
# table has a row for every word, a batch names the rows it needs, and "the" is named a thousand times.

# %% figure="arrows-that-meet"
"""Two rows of pictures with arrows. Above, forward: elements 10, 20, 30 of x are read into 10, 10, 30, with two arrows
leaving the first element and none leaving the second. Below, backward: gradients 1, 5, 2 go back along the same arrows;
the first place gets 1 + 5 = 6, the second 0 and the third 2."""
figure, panels = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained")
read = [0, 0, 2]
rows = [("forward: x[[0, 0, 2]]", ["10", "20", "30"], ["10", "10", "30"], "->", "x", "out")]
rows.append(("backward", ["1 + 5 = 6", "0", "2"], ["1", "5", "2"], "<-", "gradient\nof x", "gradient\nof out"))
for axes, (title, top, bottom, arrow, above, below) in zip(panels, rows, strict=True):
    for j in range(3):
        meets = arrow == "<-" and j == 0
        edge = {"edgecolor": "#d55e00", "linewidth": 2.5} if meets else {"edgecolor": "#8a8a8a"}
        axes.add_patch(plt.Rectangle((1.5 * j, 2), 1.3, 0.8, facecolor="#cfe3f1", **edge))
        axes.add_patch(plt.Rectangle((1.5 * j, 0), 1.3, 0.8, facecolor="#f6e3c5", edgecolor="#8a8a8a"))
        axes.text(1.5 * j + 0.65, 2.4, top[j], ha="center", va="center", fontsize=11)
        axes.text(1.5 * j + 0.65, 0.4, bottom[j], ha="center", va="center", fontsize=11)
        ends = (1.5 * j + 0.65, 0.82), (1.5 * read[j] + 0.65, 1.98)
        axes.annotate("", *ends, arrowprops={"arrowstyle": arrow, "color": "#0072b2", "lw": 1.8})
    axes.text(-0.15, 2.4, above, ha="right", va="center")
    axes.text(-0.15, 0.4, below, ha="right", va="center")
    axes.set_title(title)
    axes.set(xlim=(-1.3, 4.5), ylim=(-0.2, 3.1))
    axes.axis("off")

# %% [markdown]
# In NumPy the obvious line does not do it. `whole[key] += grad` reads `whole[key]`, adds, and writes back; where a
# place is named twice, the second write covers the first. The result is right for every batch in which no word occurs
# twice, which is every batch of the unit test.
#
# Any key, whatever it holds, can be turned into flat places: index an array that holds its own places, 0, 1, 2, ...,
# and see which of them come out.
#
# ### Exercise 3.10: `index_gradient`
# Hard, 25 minutes, 4 points.


# %% exercise="operations-index"
def index_gradient(grad: np.ndarray, shape: tuple[int, ...], key: tuple) -> np.ndarray:
    """The gradient of x, from that of x[key].

    grad     an array in the shape of x[key]
    shape    the shape of x
    key      what stood in the brackets: arrays of whole numbers, in which a place may be named many
             times, and masks; slice(None) for axes that are taken whole
    returns  an array of this shape and of grad's dtype: for each element the sum of the gradients
             of all its copies, 0 where it was not taken

    >>> index_gradient(np.array([1.0, 10.0, 5.0]), (3,), (np.array([0, 0, 2]),))
    array([11.,  0.,  5.])

    PyTorch: Tensor.index_put_ with accumulate=True
    """
    ### BEGIN SOLUTION
    size = plain.prod(shape)
    places = np.arange(size).reshape(shape)[key]
    whole = np.bincount(places.ravel(), grad.ravel(), size)
    return whole.astype(grad.dtype, copy=False).reshape(shape)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Right until a place is named twice</summary>
#
# How often does `whole[[0, 0]] += 1` change `whole[0]`? Try it in a cell of your own. NumPy has a function for sums
# that must not swallow one another: look at the methods of `np.add`.
# </details>
# <details><summary>It is right and very slow</summary>
#
# Look for a function that counts how often each whole number occurs, and can count with weights.
# </details>
# <details><summary>I do not know how to treat masks, slices and several arrays</summary>
#
# You need not tell them apart. `np.arange(size).reshape(shape)[key]` names every place that was read, in the shape of
# grad.
# </details>

# %% check="operations-index"
check("operations-index", index_gradient)

# %% [markdown]
# Around it, given: the operation itself, with writing by key as its opposite; triangles, borders and order. A mask
# needs no addition, since it names no place twice; `masked_fill` is a `where`; `gather` and `index_select` are keys
# that somebody else writes.


# %% given="take"
def take(t: plain.Tensor, key: tuple) -> plain.Tensor:
    """Advanced indexing: arrays of whole numbers or truth values in the key, for other axes `:` and perhaps `...`."""
    return t.new(t.array[key])


def replace(t: plain.Tensor, value: plain.Tensor, key: tuple) -> plain.Tensor:
    """A copy of t with other elements at `key`."""
    array = t.array.copy("C")
    array[key] = value.array
    return t.new(array)


class Take(Operation, of=take):
    def forward(self, t: plain.Tensor, key: tuple) -> plain.Tensor:
        self.key = key
        return take(t, key)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return index_gradient(grad, self.input_shape, self.key)


class Replace(Operation, of=replace):
    """What was replaced gets no gradient; what came instead gets all of it."""

    def forward(self, t: plain.Tensor, value: plain.Tensor, key: tuple) -> plain.Tensor:
        self.key = key
        return replace(t, value, key)

    def backward(self, grad: np.ndarray) -> tuple:
        rest = grad.copy("C")
        rest[self.key] = 0
        return rest, grad[self.key]


def two_steps(key: Any) -> tuple[tuple, tuple]:
    """A key as two, of which the first makes a view and the second takes what its arrays name, as PyTorch does it."""
    first, second = [], []
    for item in key if isinstance(key, tuple) else (key,):
        if is_advanced(item):
            second.append(as_places(item))
            first += [slice(None)] * (second[-1].ndim if second[-1].dtype.kind == "b" else 1)
        else:
            first.append(item)
            if item is None or isinstance(item, slice):
                second.append(slice(None))
            elif item is Ellipsis:
                second.append(item)
    return tuple(first), tuple(second)


def as_places(item: Any) -> np.ndarray:
    places = np.array(item)
    if not places.size and isinstance(item, list):
        places = places.astype(np.intp)
    if places.dtype.kind not in "ib":
        raise TypeError(f"an index is made of whole numbers or truth values, and this one of {places.dtype}")
    return places


def places_along(dim: int, index: np.ndarray) -> tuple:
    """The key of gather: at each place of `index`, that place itself, with the number found there on axis `dim`."""
    places = list(np.indices(index.shape, sparse=True))
    places[dim] = index
    return tuple(places)


# %% given="bands"
def tril(t: plain.Tensor, diagonal: int) -> plain.Tensor:
    return t.new(np.where(np.tri(*t.shape[-2:], diagonal, bool), t.array, t.dtype.type(0)))


def triu(t: plain.Tensor, diagonal: int) -> plain.Tensor:
    return t.new(np.where(np.tri(*t.shape[-2:], diagonal - 1, bool), t.dtype.type(0), t.array))


class Band(Operation):
    """What was cut away gets no gradient: cut away the same part of the gradient."""

    def forward(self, t: plain.Tensor, diagonal: int) -> plain.Tensor:
        self.diagonal = diagonal
        return self.function(t, diagonal)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return self.function(plain.Tensor(grad), self.diagonal).array


class Tril(Band, of=tril):
    pass


class Triu(Band, of=triu):
    pass


# %% given="pad"
def enlarge(t: plain.Tensor, widths: tuple[tuple[int, int], ...], value: float) -> plain.Tensor:
    """t with a border of `value`: for each axis, how much in front and behind."""
    shape = [before + size + after for size, (before, after) in zip(t.shape, widths, strict=True)]
    whole = np.full(shape, value, t.dtype)
    whole[inside(t.shape, widths)] = t.array
    return t.new(whole)


def inside(shape: tuple[int, ...], widths: tuple[tuple[int, int], ...]) -> tuple[slice, ...]:
    return tuple([slice(before, before + size) for size, (before, _) in zip(shape, widths, strict=True)])


class Enlarge(Operation, of=enlarge):
    def forward(self, t: plain.Tensor, widths: tuple[tuple[int, int], ...], value: float) -> plain.Tensor:
        self.inside = inside(t.shape, widths)
        return enlarge(t, widths, value)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad[self.inside]


# %% [markdown]
# Sorting has no slope of its own: `argsort` gives whole numbers, which do not move when the input does. The sorted
# *values* are the input's elements at those places, so their gradient is that of `gather`.


# %% given="order"
def argsort_along(t: plain.Tensor, dim: int, descending: bool) -> plain.Tensor:
    """Which element comes first, second, ... along an axis. Equal ones keep their order; nan counts as the largest."""
    x = t.array.reshape(t.shape or 1)
    if descending:
        order = x.shape[dim] - 1 - np.flip(np.argsort(np.flip(x, dim), dim, kind="stable"), dim)
    else:
        order = np.argsort(x, dim, kind="stable")
    return t.new(order.reshape(t.shape))


def isnan(t: plain.Tensor) -> plain.Tensor:
    return t.new(np.isnan(t.array))


def isinf(t: plain.Tensor) -> plain.Tensor:
    return t.new(np.isinf(t.array))


def isfinite(t: plain.Tensor) -> plain.Tensor:
    return t.new(np.isfinite(t.array))


autodiff.NOT_DIFFERENTIABLE.update((argsort_along, isnan, isinf, isfinite))

# %%
table = randn(5, 2, requires_grad=True)
ids = tensor([3, 1, 3, 3])
table[ids].sum().backward()
print("rows of the table:", table.grad[:, 0].tolist())
print("by your function: ", index_gradient(np.ones(4), (5,), (ids.numpy(),)).tolist())

scores = randn(4, 4, requires_grad=True)
later = ones(4, 4).triu(1) > 0
scores.masked_fill(later, -math.inf).exp().sum().backward()
print("a masked score's gradient is 0:")
print(scores.grad)

# %% [markdown]
# ## Softmax
#
# **Idea.** Softmax turns a row of numbers into shares that are positive and add up to 1:
#
# $$p_i = \frac{e^{x_i}}{\sum_k e^{x_k}}$$
#
# It is not elementwise. Every input stands in the sum below the fraction, so raising one share lowers all others. The
# logarithm makes the derivation short. From $\log p_i = x_i - \log \sum_k e^{x_k}$ follows
#
# $$\frac{\partial \log p_i}{\partial x_j} = \delta_{ij} - p_j
#   \qquad\text{and so}\qquad
#   \frac{\partial p_i}{\partial x_j} = p_i\,(\delta_{ij} - p_j)$$
#
# where $\delta_{ij}$ is 1 for $i = j$ and 0 otherwise. That is a full matrix. On the diagonal stands $p_i(1 - p_i)$,
# which many remember from the sigmoid and stop at; off the diagonal stands $-p_i p_j$.
#
# **Look.** Choose preset *softmax* below and walk through the outputs: each row of the Jacobian is what backward gives
# when only that output matters. Add up a row, or a column: why is it 0? Then choose *softmax of two rows* and see the
# blocks. Try other operations of this chapter, and predict each pattern before you look.

# %% widget="jacobian"
jacobian_view()

# %% [markdown]
# Backward never makes this matrix. For a row of 50,000 words it would have 2.5 billion entries. It needs the product
# with *one* vector, and there the matrix collapses:
#
# $$\bar{x}_j = \sum_i \bar{p}_i \, p_i (\delta_{ij} - p_j)
#   = p_j \Big( \bar{p}_j - \underbrace{\sum_i \bar{p}_i \, p_i}_{\text{one number a row}} \Big)$$
#
# The sum is the *coupling term*: through it every output's gradient reaches every input. In words: an input's gradient
# is its share, times how much better its own gradient is than the average, weighted by the shares. A consequence to
# check by eye: the gradients of a row add up to 0.
#
# Softmax is one operation here, as in every framework, and not an exp, a sum and a division. That saves two arrays, and
# it is what makes the largest element's trick possible: subtracting the maximum changes nothing, since it cancels, and
# keeps `exp` from overflowing.


# %% given="softmax"
def softmax(t: plain.Tensor, dim: int) -> plain.Tensor:
    """exp(x) divided by its sum along an axis. The largest element is taken out first, so that nothing overflows."""
    x, dims = t.array, plain.dims_of(dim, t.ndim)
    with np.errstate(invalid="ignore"):  # a row of -inf alone is nan, as in PyTorch
        p = np.asarray(x - np.maximum.reduce(x, dims, keepdims=True, initial=-np.inf))
        np.exp(p, out=p)
        p /= sum_along(p, dims)
    return t.new(p)


def log_softmax(t: plain.Tensor, dim: int) -> plain.Tensor:
    """log(softmax(x)) without the detour: x - logsumexp(x)."""
    x, dims = t.array, plain.dims_of(dim, t.ndim)
    with np.errstate(invalid="ignore"):
        z = np.asarray(x - np.maximum.reduce(x, dims, keepdims=True, initial=-np.inf))
        z -= np.log(sum_along(np.exp(z), dims))
    return t.new(z)


def sum_along(x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """Sums along one axis, which is kept. Along the last, a product with ones is several times as fast as a sum."""
    if dims and dims[0] == x.ndim - 1 and x.size:
        return x @ column_of_ones(x.shape[-1], x.dtype)
    return np.add.reduce(x, dims, keepdims=True)


@lru_cache
def column_of_ones(size: int, dtype: np.dtype) -> np.ndarray:
    """Kept, since the same few are asked for all the time, and for reading alone."""
    ones = np.ones((size, 1), dtype)
    ones.flags.writeable = False
    return ones


class AlongAxis(Operation):
    """An operation along one axis whose backward reads the output. The two exercises of this section complete it."""

    def forward(self, t: plain.Tensor, dim: int) -> plain.Tensor:
        out = self.function(t, dim)
        self.save(out)
        self.dims = plain.dims_of(dim, t.ndim)
        return out


# %% [markdown]
# ### Exercise 3.11: `Softmax`
# Hard, 25 minutes, 4 points.


# %% exercise="operations-softmax"
class Softmax(AlongAxis, of=softmax):
    """softmax along one axis, as one operation."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """The gradient of t from that of the output: an array of the same shape and dtype.

        self.saved   the output, as an array in a list
        self.dims    the axis, counted from the front, in a tuple of one; empty where t has no axes
        """
        ### BEGIN SOLUTION
        (p,) = self.saved
        if self.dims == (p.ndim - 1,):
            weighted = np.vecdot(grad, p)[..., None]
        else:
            weighted = np.add.reduce(grad * p, self.dims, keepdims=True)
        out = grad - weighted
        out *= p
        return out
        ### END SOLUTION


# %% [markdown]
# <details><summary>The gradients of a row do not add up to 0</summary>
#
# Then the coupling term is missing, or is not weighted. What stands inside the brackets of the last line?
# </details>
# <details><summary>One row is right, several are not</summary>
#
# The weighted sum is one number *for each row*. Over which axis does it go, and how does it come to stand beside the
# whole row again?
# </details>
# <details><summary>It is right the first time and wrong the second</summary>
#
# Do you change an array in place that is not yours? `p *= ...` changes what was saved, `grad -= ...` what others still
# need.
# </details>

# %% check="operations-softmax"
check("operations-softmax", Softmax)

# %% [markdown]
# **log_softmax.** Losses want $\log p$, and the logarithm of a softmax is not the way to get it: a share of $10^{-400}$
# is 0 in any float, and its logarithm is $-\infty$. Directly, it is $x_i - \log\sum_k e^{x_k}$, a plain subtraction.
# The derivative stands above already, $\delta_{ij} - p_j$, and the product with it is
#
# $$\bar{x}_j = \bar{y}_j - p_j \sum_i \bar{y}_i$$
#
# Compare with softmax: the factor $p_j$ is gone from the front, and so are the weights in the sum. With one target $t$
# the loss is $-y_t$, so $\bar y$ is $-1$ at $t$ and 0 elsewhere, and what comes back is $p - \text{one-hot}(t)$: the
# famous gradient of cross entropy, for which nothing more has to be derived.
#
# ### Exercise 3.12: `LogSoftmax`
# Medium, 15 minutes, 3 points.


# %% exercise="operations-log-softmax"
class LogSoftmax(AlongAxis, of=log_softmax):
    """log_softmax along one axis, as one operation."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """The gradient of t from that of the output: an array of the same shape and dtype.

        self.saved   the output, as an array in a list
        self.dims    the axis, counted from the front, in a tuple of one; empty where t has no axes
        """
        ### BEGIN SOLUTION
        (log_p,) = self.saved
        return grad - np.exp(log_p) * sum_along(grad, self.dims)
        ### END SOLUTION


# %% [markdown]
# <details><summary>I remember p minus one-hot, and it is refused</summary>
#
# That is the product for one special gradient. Which number takes the place of the 1 for any other?
# </details>
# <details><summary>Probabilities were not saved</summary>
#
# What was saved is their logarithm. Which function takes a logarithm back?
# </details>

# %% check="operations-log-softmax"
check("operations-log-softmax", LogSoftmax)

# %% [markdown]
# ## All of them at once
#
# **Dtypes.** A float32 tensor gets a float32 gradient: that is half the memory, and for a matrix product half the time.
# The machine casts to be sure, but a cast at the end comes too late to save anything. Three habits of NumPy widen in
# secret: a Python number is harmless, a *NumPy* float64 number or an array of float64 is not; a count (int64) beside
# float32 gives float64; `True * 0.5` is float64. Your answers were checked for it.
#
# **Look.** `gradcheck` of chapter 02 knows nothing of derivatives. It nudges, and compares. Here it goes over a sample
# of every family, in float64. First the cell makes sure that the machine uses your classes.

# %%
sample = {
    "elementwise": [Tensor.sigmoid, Tensor.tanh, Tensor.rsqrt, Tensor.log1p, gelu, silu, softplus],
    "reductions": [Tensor.var, Tensor.std, Tensor.amax, Tensor.prod, lambda x: x.logsumexp((0, 2))],
    "products": [lambda x: x @ x.mT, lambda x: x @ x[0, 0], lambda x: einsum("bij,bkj->ik", x, x)],
    "shapes": [lambda x: x.flip(0).roll(1, 2), lambda x: cat([x.repeat_interleave(2, 1), x], 1)],
    "indexing": [lambda x: x[:, [0, 2, 0]], Tensor.tril, lambda x: pad(x.sort(1).values, (1, -1))],
    "softmax": [lambda x: x.softmax(1), lambda x: x.log_softmax(-1)],
}
yours = [Sigmoid, Maximum, Product, Softmax, LogSoftmax]
print("your classes are in use:", all(autodiff.OPERATIONS[kind.function] is kind for kind in yours))
x = (rand(2, 3, 4, dtype=plain.float64) + 0.5).requires_grad_()
for family, functions in sample.items():
    print(f"{family:12}", all(gradcheck(function, x) for function in functions))

# %% [markdown]
# A gradcheck sees what is wrong, and not what is slow or in the wrong dtype; and it sees only the points that it was
# given. On the ties and kinks of this chapter small steps give *some* slope between the two, and no convention. So the
# tests of this course compare with PyTorch as well: thousands of random programs made of these operations, every value
# and every gradient.
#
# ## In PyTorch
#
# Names, arguments and results are the same. A few differences are worth knowing.
#
# | | here | PyTorch |
# |---|---|---|
# | `split`, `chunk`, `unbind` | one view for each part | the same, and one node for all parts |
# | `sort`, `topk` | equal elements keep their order | any order, unless `stable=True` |
# | `x.var(unbiased=False)` | `x.var(correction=0)` | both |
# | `clamp` with tensors | refused: use `maximum`, `minimum` | allowed |
# | `norm` | p is 1, 2 or inf | any p |
# | a `Function` that returns None for an input | zeros are sent on | nothing is sent on |
# | `pad` | `mode="constant"` | also reflect, replicate, circular |
# | sums of gradients by index | in float64, then cast | in the dtype of the gradient |
#
# In a custom `autograd.Function` you write what you wrote here; PyTorch's machine, like ours, sums what was broadcast
# and refuses a wrong shape. Its `index_put_` has an argument `accumulate`, which is False by default: the trap of
# exercise 3.10, with a name.
#
# ## Check yourself
#
# Write two or three sentences each; there is nothing to run.
#
# 1. A colleague speeds up a custom attention by replacing `grad.permute(0, 2, 1, 3).reshape(B, T, -1)` with
#    `grad.reshape(B, T, -1)`. All shapes agree, the loss of the first step is the same, and so is the norm of the
#    gradient that leaves this line. Which single number or test would have caught it, and why is the loss of the first
#    step no help?
# 2. Someone's softmax returns `grad * p * (1 - p)`. With cross entropy on two classes the model still learns, more
#    slowly. Why does it learn at all? What is missing when there are a thousand classes?
#
# You can now
#
# - ✓ derive the gradient of an elementwise operation, and say what happens at its kinks and ties;
# - ✓ send a gradient back through means, variances, maxima, products and running sums;
# - ✓ write the backward of a matrix product for vectors, matrices and stacks;
# - ✓ undo reshapes, permutes and repeats without moving a number to the wrong place;
# - ✓ add up gradients where an index was used many times;
# - ✓ derive the softmax's coupling term, and keep float32 gradients float32.
#
# Chapter 04 puts these operations into layers: objects that own their weights, and know which of their numbers must be
# saved when the model is.
