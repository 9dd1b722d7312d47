"""A typed view expression such as `x[::-1, 1:].T`, read from its syntax tree: nothing that is typed is ever run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from autograder.errors import BadInput

from .shapes import hold_to_limits

__all__ = ["View", "evaluate"]

HOW = (
    "type x with indices, such as x[::-1, 1:], or one of x.T, permute, transpose, view, reshape, broadcast_to, expand, "
    "contiguous"
)
BASIC = "the explorer takes integers, slices, ... and None as indices"
LONGEST_TEXT, LARGEST = 80, 9999


@dataclass(frozen=True)
class View:
    """A window on a flat storage. `copied` is the call that had to make this storage, empty where it is that of x."""

    array: np.ndarray
    storage: np.ndarray
    copied: str = ""

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements, as PyTorch counts them; NumPy counts bytes."""
        return tuple(stride // self.storage.itemsize for stride in self.array.strides)

    @property
    def offset(self) -> int:
        start, first = (array.__array_interface__["data"][0] for array in (self.storage, self.array))
        return (first - start) // self.storage.itemsize

    def see(self, array: np.ndarray, call: str) -> View:
        """The view after one more step; a result in other memory is a storage of its own."""
        if array.size == 0 or np.may_share_memory(array, self.storage):
            return View(array, self.storage, self.copied)
        return View(array, array.reshape(-1), call)


def evaluate(text: str, shape: tuple[int, ...]) -> View:
    """The view that `text` takes of an x of this shape, whose elements are numbered as they lie in storage.

    Raises BadInput for text that is no view expression, does not fit the shape, or is too large to draw.
    """
    if not text.strip():
        raise BadInput(f"There is no view yet: {HOW}.")
    if len(text) > LONGEST_TEXT:
        raise BadInput(f"The view has {len(text)} characters: use at most {LONGEST_TEXT}.")
    storage = np.arange(int(np.prod(shape)))
    return read(parse(text.strip()), View(storage.reshape(shape), storage))


def parse(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            # What Python merely warns of is no view either.
            warnings.simplefilter("error")
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise BadInput(f"{text!r} cannot be read as an expression: {HOW}.") from None


def read(node: ast.expr, x: View) -> View:
    match node:
        case ast.Name(id="x"):
            return x
        case ast.Attribute(value=inner, attr="T"):
            before, step, call = read(inner, x), np.transpose, "T"
        case ast.Subscript(value=inner, slice=index):
            before, step, call = read(inner, x), indexing(index), "an index"
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=args, keywords=[]) if name in METHODS:
            numbers = integers(args, node)
            before, call = read(inner, x), called(name, numbers)
            step = method(name, numbers)
        case _:
            raise BadInput(f"{ast.unparse(node)!r} is not a view that the explorer knows: {HOW}.")
    return take(step, before, call, ast.unparse(node))


def take(step: Callable[[np.ndarray], np.ndarray], before: View, call: str, written: str) -> View:
    try:
        array = step(before.array)
    except BadInput:
        raise
    except (IndexError, ValueError) as error:
        raise BadInput(f"{written} does not fit the shape {before.array.shape}: {error}.") from None
    hold_to_limits(written, array.shape)
    return before.see(array, call)


def indexing(node: ast.expr) -> Callable[[np.ndarray], np.ndarray]:
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    index = tuple(index_item(item) for item in items)
    # With an Ellipsis NumPy answers a full index with a 0-d view; without one it would be a number.
    whole = index if Ellipsis in index else (*index, Ellipsis)
    return lambda array: array[whole]


def index_item(node: ast.expr) -> object:
    match node:
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if part is None else whole_or_none(part) for part in (lower, upper, step)))
        case ast.Constant(value=value) if value is Ellipsis:
            return Ellipsis
        case _:
            return whole_or_none(node)


def whole_or_none(node: ast.expr) -> int | None:
    return None if isinstance(node, ast.Constant) and node.value is None else integer(node, BASIC)


def integer(node: ast.expr, remedy: str) -> int:
    sign, digits = (-1, node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else (1, node)
    if isinstance(digits, ast.Constant) and type(digits.value) is int:
        if digits.value > LARGEST:
            raise BadInput(f"{digits.value} is too large for this explorer: use numbers up to {LARGEST}.")
        return sign * digits.value
    raise BadInput(f"{ast.unparse(node)!r} is not an integer: {remedy}.")


def integers(args: list[ast.expr], node: ast.expr) -> tuple[int, ...]:
    """The numbers of a call, one by one or as one tuple: `permute(1, 0)` and `permute((1, 0))`."""
    parts = args[0].elts if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List) else args
    return tuple(integer(part, f"{ast.unparse(node)} takes whole numbers") for part in parts)


def called(name: str, numbers: tuple[int, ...]) -> str:
    return f"{name}({', '.join(map(str, numbers))})"


def method(name: str, numbers: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: METHODS[name](array, numbers)


def permute(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    if sorted(axis % max(array.ndim, 1) for axis in axes) != list(range(array.ndim)):
        raise BadInput(f"{called('permute', axes)} does not name each of the {array.ndim} axes of {array.shape} once.")
    return array.transpose(axes)


def transpose(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    if len(axes) != 2:
        raise BadInput(f"transpose got {len(axes)} numbers: it takes the two axes to swap, such as transpose(0, 1).")
    return array.swapaxes(*axes)


def expand(array: np.ndarray, sizes: tuple[int, ...], name: str = "expand") -> np.ndarray:
    """PyTorch's: −1 keeps the size of an axis that is there."""
    call, added = called(name, sizes), len(sizes) - array.ndim
    if added < 0:
        raise BadInput(f"{call} has fewer axes than the shape {array.shape}: give a size for each.")
    old = (1,) * added + array.shape
    new = tuple(
        had if size == -1 and n >= added else size for n, (had, size) in enumerate(zip(old, sizes, strict=True))
    )
    for had, size in zip(old, new, strict=True):
        if size < 0 or had not in (1, size):
            raise BadInput(
                f"{call} does not fit the shape {array.shape}: only an axis of 1 is repeated, any other keeps its size."
            )
    hold_to_limits(call, new)
    return np.broadcast_to(array, new)


def reshape(array: np.ndarray, sizes: tuple[int, ...], name: str = "reshape") -> np.ndarray:
    if min(sizes, default=0) < -1:
        raise BadInput(f"{called(name, sizes)} has a negative size: only −1 may stand for the size that is left.")
    return array.reshape(sizes)


def view(array: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    seen = reshape(array, sizes, "view")
    if array.size and not np.may_share_memory(seen, array):
        raise BadInput(f"No strides fit {called('view', sizes)}: use reshape, which copies.")
    return seen


def contiguous(array: np.ndarray, nothing: tuple[int, ...]) -> np.ndarray:
    if nothing:
        raise BadInput(f"{called('contiguous', nothing)} has numbers in it: it takes none, write contiguous().")
    return array if array.flags.c_contiguous else array.copy()


METHODS = {
    "broadcast_to": partial(expand, name="broadcast_to"),
    "contiguous": contiguous,
    "expand": expand,
    "permute": permute,
    "reshape": reshape,
    "transpose": transpose,
    "view": view,
}
