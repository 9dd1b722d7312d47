"""What the checks of chapter 01 do: a probe for each exercise, and how its inputs are made.

A tensor that a probe hands over is described by a storage, a shape, strides and an offset, and made by the Tensor that
stands beside the learner's function. A view is held to its word: the storage is changed after it was made, and the view
must show the change.
"""

from __future__ import annotations

import inspect
import re
import warnings
from math import prod

import numpy as np

from autograder.checks.exercise import raised
from autograder.checks.exercises.tensor_layouts import describe, draw_layout, draw_shape
from autograder.errors import BadInput

REFUSED = "refused with ValueError"
OUTSIDE = "refused with IndexError"


def whole(result):
    """A tuple or list of whole numbers as an array, also if it is empty. Anything else stays as it is."""
    if isinstance(result, tuple | list) and all(isinstance(n, int | np.integer) for n in result):
        return np.array(result, dtype=np.int64)
    return result


def numbers(array):
    return tuple(array.tolist())


def tensor_class(target):
    """The class Tensor of the notebook that the function stands in."""
    found = getattr(inspect.unwrap(target), "__globals__", {}).get("Tensor")
    if found is None:
        raise BadInput("there is no Tensor yet: run the folded cells of the section `The class`, then this check")
    return found


def build(target, arrays):
    """The tensor that a case describes."""
    shape, strides, offset = numbers(arrays["shape"]), numbers(arrays["strides"]), int(arrays["offset"])
    return tensor_class(target)(arrays["storage"].copy()).see(shape, strides, offset)


def elements(result):
    """A tensor's elements as they are now."""
    if result is None:
        return None
    if not hasattr(result, "see"):
        kind = type(result).__name__
        raise TypeError(f"a Tensor is asked for and this is a {kind}: end with t.see(...) or t.new(...)")
    return np.array(result.array)


def look_twice(function, t, argument):
    """What the view function(t, argument) shows, before and after its storage is changed."""
    rule = t.shape, t.strides, t.offset
    view = function(t, argument)
    if (t.shape, t.strides, t.offset) != rule:
        raise ValueError("t itself was changed, and others may hold it: leave it as it is and end with t.see(...)")
    first = elements(view)
    t.storage.data[...] = 3 - 2 * t.storage.data
    return {"elements": first, "elements after the storage has changed": elements(view)}


# 1.1 to 1.3


def probe_strides(target, arrays, framework):
    return {"strides": whole(target(numbers(arrays["shape"])))}


def inputs_shape(rng, *shape):
    return {"shape": np.array(shape, dtype=np.int64)}


def probe_offset(target, arrays, framework):
    index, strides, offset = numbers(arrays["index"]), numbers(arrays["strides"]), int(arrays["offset"])
    if "to be refused" in arrays:
        return {REFUSED: raised(ValueError, target, index, strides, offset)}
    if "offset left out" in arrays:
        return {"place": target(index, strides)}
    return {"place": target(index, strides, offset)}


def inputs_offset(rng, index, strides, offset, note=None):
    arrays = {
        "index": np.array(index, dtype=np.int64),
        "strides": np.array(strides, dtype=np.int64),
        "offset": np.array(offset),
    }
    return arrays | ({note: np.array(True)} if note else {})


def draw_offset(rng):
    _, shape, strides, offset = draw_layout(rng)
    return tuple(int(rng.integers(0, n)) for n in shape), strides, offset


def probe_unravel(target, arrays, framework):
    position, shape = int(arrays["position"]), numbers(arrays["shape"])
    if "to be refused" in arrays:
        return {OUTSIDE: raised(IndexError, target, position, shape)}
    return {"index": whole(target(position, shape))}


def inputs_unravel(rng, position, shape, refuse=False):
    arrays = {"position": np.array(position), "shape": np.array(shape, dtype=np.int64)}
    return arrays | ({"to be refused": np.array(True)} if refuse else {})


def draw_unravel(rng):
    shape = draw_shape(rng)
    return int(rng.integers(0, prod(shape))), shape


# 1.4 and 1.5


def probe_permute(target, arrays, framework):
    t, dims = build(target, arrays), numbers(arrays["dims"])
    if "to be refused" in arrays:
        return {REFUSED: raised(ValueError, target, t, dims)}
    return look_twice(target, t, dims)


def inputs_permute(rng, layout, dims, refuse=False):
    arrays = describe(rng, *layout) | {"dims": np.array(dims, dtype=np.int64)}
    return arrays | ({"to be refused": np.array(True)} if refuse else {})


def draw_permute(rng):
    layout = draw_layout(rng, int(rng.integers(2, 5)))
    ndim = len(layout[1])
    return layout, tuple(int(i) - ndim * int(rng.random() < 0.3) for i in rng.permutation(ndim))


def probe_index(target, arrays, framework):
    t, key = build(target, arrays), parse(str(arrays["key"]))
    if "to be refused" in arrays:
        return {OUTSIDE: raised(IndexError, target, t, key)}
    return look_twice(target, t, key)


def parse(text):
    """What stands between the brackets: "1:, None" is (slice(1, None), None), and "1" is 1."""
    items = [parse_item(part.strip()) for part in text.split(",") if part.strip()]
    return items[0] if len(items) == 1 and "," not in text else tuple(items)


def parse_item(text):
    if ":" in text:
        return slice(*(int(part) if part.strip() else None for part in text.split(":")))
    return {"None": None, "...": Ellipsis}[text] if text in ("None", "...") else int(text)


def inputs_index(rng, layout, key, refuse=False):
    arrays = describe(rng, *layout) | {"key": np.array(key)}
    return arrays | ({"to be refused": np.array(True)} if refuse else {})


def draw_index(rng):
    """One item for each axis or fewer, with a None and `...` here and there: behind the dots stand the last axes."""
    layout = draw_layout(rng)
    sizes = layout[1]
    count = int(rng.integers(1, len(sizes) + 1))
    dots = int(rng.integers(0, count + 1)) if rng.random() < 0.5 else count
    items = [draw_item(rng, size) for size in (*sizes[:dots], *sizes[len(sizes) - count + dots :])]
    if dots < count or rng.random() < 0.25:
        items.insert(dots, "...")
    if rng.random() < 0.5:
        items.insert(int(rng.integers(0, len(items) + 1)), "None")
    return layout, ", ".join(items)


def draw_item(rng, size):
    if rng.random() < 0.35:
        return str(int(rng.integers(-size, size)))
    start, stop = (str(int(rng.integers(-size, size + 1))) if rng.random() < 0.5 else "" for _ in range(2))
    return f"{start}:{stop}:{rng.choice([1, 2, -1, -2])}"


# 1.6


def probe_view_strides(target, arrays, framework):
    shape, strides, new = (numbers(arrays[name]) for name in ("shape", "strides", "new"))
    result = target(shape, strides, new)
    if result is None:
        return {"there is a view": False}
    if not isinstance(result, (tuple, list, np.ndarray)):
        raise TypeError(f"strides or None are asked for, and this is a {type(result).__name__}: {result!r:.40}")
    return {"there is a view": True, "strides, 0 where any will do": strides_that_matter(whole(result), new)}


def strides_that_matter(strides, new):
    """An axis of size 1 is never walked along, and a tensor without elements not at all."""
    if np.shape(strides) != np.shape(new):
        return strides
    return np.where((np.array(new) == 1) | (prod(new) == 0), 0, strides)


def inputs_view_strides(rng, shape, strides, new):
    return {name: np.array(n, np.int64) for name, n in (("shape", shape), ("strides", strides), ("new", new))}


def draw_view_strides(rng):
    """A regular layout with gaps between blocks, and a new shape that cuts some block or goes across two."""
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4], size=rng.integers(2, 5)))
    strides, step = [], int(rng.choice([1, 2]))
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size if rng.random() < 0.7 else 2 * size
    return shape, tuple(strides), draw_factors(rng, prod(shape))


def draw_factors(rng, n):
    factors = []
    while n > 1 and len(factors) < 4:
        factors.append(int(rng.choice([d for d in range(1, n + 1) if n % d == 0])))
        n //= factors[-1]
    return (*factors, n)


# 1.7 and 1.8


def probe_broadcast_shape(target, arrays, framework):
    a, b = numbers(arrays["a"]), numbers(arrays["b"])
    if "axis at fault" not in arrays:
        return {"shape": whole(target(a, b))}
    message = message_of(ValueError, target, a, b)
    axes = re.findall(r"-\d+", message or "")
    return {
        REFUSED: message is not None,
        "message names both shapes": str(a) in (message or "") and str(b) in (message or ""),
        "message names the axis": str(int(arrays["axis at fault"])) in axes,
    }


def message_of(error, function, *arguments):
    """The message of the `error` that a call raises, or None where it raises none."""
    try:
        function(*arguments)
    except error as caught:
        return str(caught)
    return None


def inputs_broadcast_shape(rng, a, b, axis=None):
    arrays = {"a": np.array(a, dtype=np.int64), "b": np.array(b, dtype=np.int64)}
    return arrays | ({"axis at fault": np.array(axis)} if axis else {})


def draw_broadcast_shape(rng):
    full = draw_shape(rng)
    a, b = (tuple(1 if rng.random() < 0.4 else n for n in full[rng.integers(0, len(full) + 1) :]) for _ in range(2))
    return (a, b) if rng.random() < 0.5 else (b, a)


def probe_broadcast_to(target, arrays, framework):
    t, new = build(target, arrays), numbers(arrays["new"])
    if "to be refused" in arrays:
        return {REFUSED: raised(ValueError, target, t, new)}
    return look_twice(target, t, new)


def inputs_broadcast_to(rng, layout, new, refuse=False):
    arrays = describe(rng, *layout) | {"new": np.array(new, dtype=np.int64)}
    return arrays | ({"to be refused": np.array(True)} if refuse else {})


def draw_broadcast_to(rng):
    size, shape, strides, offset = draw_layout(rng, 2)
    keep = int(rng.integers(0, 3))
    one = tuple(1 if i == keep else n for i, n in enumerate(shape))
    new = tuple(int(rng.integers(1, 5)) if n == 1 else n for n in one)
    return (size, one, strides, offset), draw_shape(rng, 2) + new


# 1.9


def probe_result_type(target, arrays, framework):
    make = tensor_class(target)
    result = target(*(make(ones_of(str(arrays[name]))) for name in ("a", "b")))
    return {"dtype": result if result is None else np.array(np.dtype(result).name)}


def ones_of(text):
    """An array as a case writes it: "float32 (3,)"."""
    dtype, shape = text.split(" ", 1)
    return np.ones([int(n) for n in re.findall(r"\d+", shape)], dtype)


def inputs_result_type(rng, a, a_shape, b, b_shape):
    return {"a": np.array(f"{a} {a_shape}"), "b": np.array(f"{b} {b_shape}")}


def draw_result_type(rng):
    names = ["bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64"]
    a, b = (str(name) for name in rng.choice(names, 2))
    a_shape, b_shape = (() if rng.random() < 0.5 else (2,) for _ in range(2))
    return a, a_shape, b, b_shape


# 1.10


def probe_mean(target, arrays, framework):
    t, dim = build(target, arrays), arrays.get("dim")
    if dim is not None:
        dim = numbers(dim) if dim.ndim else int(dim)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = elements(target(t, dim, bool(arrays["keepdim"])))
    return {"mean": result, "warned": bool(caught)}


def inputs_mean(rng, layout, dim, keepdim, dtype="float64"):
    arrays = describe(rng, *layout, dtype) | {"keepdim": np.array(keepdim)}
    return arrays | ({} if dim is None else {"dim": np.array(dim)})


def draw_mean(rng):
    layout = draw_layout(rng)
    dims = tuple(int(i) for i in rng.permutation(3)[: rng.integers(1, 3)])
    return layout, dims if len(dims) > 1 else dims[0] - 3, bool(rng.random() < 0.5)


# 1.11


def probe_matmul(target, arrays, framework):
    a, b = (in_columns(tensor_class(target), arrays[name], name in ("b",)) for name in ("a", "b"))
    if "to be refused" not in arrays:
        return {"product": elements(target(a, b))}
    message = message_of(ValueError, target, a, b)
    named = [str(shape) in (message or "") for shape in (a.shape, b.shape)]
    return {REFUSED: message is not None, "message names both shapes": all(named)}


def in_columns(make, array, transposed):
    """A tensor of these elements; if `transposed`, it lies in memory column by column."""
    if not transposed:
        return make(array)
    t = make(np.swapaxes(array, -1, -2).copy())
    shape, strides = (*t.shape[:-2], t.shape[-1], t.shape[-2]), (*t.strides[:-2], t.strides[-1], t.strides[-2])
    return t.see(shape, strides, t.offset)


def inputs_matmul(rng, a, b, dtype="float64", refuse=False):
    if dtype == "int64":
        arrays = {"a": rng.integers(-9, 10, a), "b": rng.integers(-9, 10, b)}
    else:
        arrays = {"a": rng.standard_normal(a).astype(dtype), "b": rng.standard_normal(b).astype(dtype)}
    return arrays | ({"to be refused": np.array(True)} if refuse else {})


def draw_matmul(rng):
    n, k, m = (int(size) for size in rng.integers(1, 5, size=3))
    a, b = draw_broadcast_shape(rng)
    return (*a[-2:], n, k), (*b[-2:], k, m)


# 1.12


def probe_debug_shape(target, arrays, framework):
    want = tuple(None if n < 0 else n for n in numbers(arrays["want, -1 for any"]))
    pairs = target(numbers(arrays["got"]), want)
    if not isinstance(pairs, list | tuple):
        return {"pairs": pairs}
    return {"pairs": np.array(pairs, dtype=np.int64).reshape(-1, 2) if len(pairs) == 0 else np.array(list(pairs))}


def inputs_debug_shape(rng, got, want):
    sizes = [-1 if n is None else n for n in want]
    return {"got": np.array(got, dtype=np.int64), "want, -1 for any": np.array(sizes, dtype=np.int64)}


def draw_debug_shape(rng):
    got = tuple(int(n) for n in rng.integers(2, 5, size=rng.integers(2, 5)))
    i, j = sorted(int(n) for n in rng.choice(len(got), 2, replace=False))
    want = list(got)
    want[i], want[j] = want[j], want[i]
    return got, tuple(None if rng.random() < 0.3 else n for n in want)
