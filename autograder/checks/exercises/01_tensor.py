"""Chapter 01: a strided tensor.

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

from autograder.checks.exercise import Exercise, raised
from autograder.errors import BadInput

REFUSED = "refused with ValueError"
OUTSIDE = "refused with IndexError"


def whole(result):
    """A tuple or list of whole numbers as an array, also if it is empty. Anything else stays as it is."""
    if isinstance(result, tuple | list) and all(isinstance(n, int | np.integer) for n in result):
        return np.array(result, dtype=np.int64)
    return result


def numbers(array):
    return tuple(int(n) for n in array)


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


def look_twice(view, t):
    """What a view shows, before and after its storage is changed."""
    first = elements(view)
    t.storage.data[...] = 3 - 2 * t.storage.data
    return {"elements": first, "elements after the storage has changed": elements(view)}


# How tensors of the cases lie in their storage


def laid_out(shape, key=(), dims=None):
    """Storage size, shape, strides and offset of a view: an array of `shape`, indexed by `key`, its axes permuted."""
    places = np.arange(prod(shape))
    view = places.reshape(shape)[key]
    view = view.transpose(dims) if dims else view
    strides = tuple(step // view.itemsize for step in view.strides)
    return prod(shape), view.shape, strides, int(view.flat[0]) if view.size else 0


def describe(rng, size, shape, strides, offset, dtype=np.float64):
    return {
        "storage": rng.standard_normal(size).astype(dtype),
        "shape": np.array(shape, dtype=np.int64),
        "strides": np.array(strides, dtype=np.int64),
        "offset": np.array(offset),
    }


PLAIN = laid_out((2, 3, 4))
GAPS = laid_out((4, 5, 6), np.s_[1:, ::2, 1:5])
TURNED = laid_out((4, 3, 2), dims=(2, 0, 1))
BACKWARDS = laid_out((3, 3, 4), np.s_[:, ::-1, ::-2])
REPEATED = (5, (2, 3, 4), (0, 1, 0), 1)


def draw_layout(rng, ndim=3):
    """A view with gaps, an offset, axes in another order, and sometimes a negative stride."""
    base = tuple(int(n) for n in rng.integers(3, 6, size=ndim))
    key = tuple(slice(int(rng.integers(0, 2)), None, int(rng.choice([1, 2]))) for _ in base)
    if rng.random() < 0.4:
        key = (slice(None, None, -1), *key[1:])
    return laid_out(base, key, tuple(int(i) for i in rng.permutation(ndim)))


def draw_shape(rng, most=4):
    return tuple(int(n) for n in rng.integers(1, 5, size=rng.integers(1, most + 1)))


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
    return look_twice(target(t, dims), t)


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
    return look_twice(target(t, key), t)


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
    """One item for each axis or fewer, with a None and `...` here and there."""
    layout = draw_layout(rng)
    items = [draw_item(rng, size) for size in layout[1][: rng.integers(1, len(layout[1]) + 1)]]
    for extra in ("None", "..."):
        if rng.random() < 0.5:
            items.insert(int(rng.integers(0, len(items) + 1)), extra)
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
    return look_twice(target(t, new), t)


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


exercises = [
    Exercise(
        id="tensor-strides",
        name="row_major_strides",
        difficulty="Easy",
        minutes=10,
        points=2,
        probe=probe_strides,
        cases={
            "all sizes different, to follow by hand": (2, 3, 4),
            "a square, where sizes cannot tell the axes apart": (3, 3),
            "one axis": (5,),
            "no axes: one number": (),
            "axes of size 1": (1, 4, 1, 3),
            "no elements: a 0 counts as 1 in the product": (3, 0, 2),
            "the 0 in front, where it is in no product": (0, 3),
            "the 0 at the end": (2, 3, 0),
            "five axes": (2, 1, 3, 5, 2),
        },
        inputs=inputs_shape,
        draw=draw_shape,
        see="the picture at the top of the section, and the sentence about size 0",
    ),
    Exercise(
        id="tensor-offset",
        name="flat_offset",
        difficulty="Easy",
        minutes=5,
        points=2,
        probe=probe_offset,
        cases={
            "row-major, to follow by hand": ((1, 2), (4, 1), 0),
            "a view that begins elsewhere": ((1, 0, 2), (12, 4, 1), 5),
            "transposed: strides that do not fall": ((2, 1), (1, 4), 0),
            "a negative stride": ((1, 2), (4, -1), 7),
            "stride 0: a repeated axis": ((3, 2), (0, 2), 1),
            "no axes: only the offset": ((), (), 3),
            "the offset left out": ((2, 1), (3, 1), 0, "offset left out"),
            "an index too short": ((1,), (4, 1), 0, "to be refused"),
            "an index too long": ((1, 2, 3), (4, 1), 0, "to be refused"),
        },
        inputs=inputs_offset,
        draw=draw_offset,
        see="the formula at the top of the section",
    ),
    Exercise(
        id="tensor-unravel",
        name="unravel_index",
        difficulty="Easy",
        minutes=10,
        points=2,
        probe=probe_unravel,
        cases={
            "the worked example": (17, (2, 3, 4)),
            "the first": (0, (2, 3)),
            "the last": (23, (2, 3, 4)),
            "one axis": (4, (7,)),
            "no axes: the empty index": (0, ()),
            "axes of size 1": (5, (1, 3, 1, 2)),
            "a long last axis, so that sizes and strides differ much": (11, (3, 2, 5)),
            "one past the end": (6, (2, 3), True),
            "far past the end": (40, (2, 3), True),
            "-1, which Python would count from the end": (-1, (2, 3), True),
            "a tensor without elements": (0, (2, 0), True),
        },
        inputs=inputs_unravel,
        draw=draw_unravel,
        see="the worked example above the exercise",
    ),
    Exercise(
        id="tensor-permute",
        name="permute",
        difficulty="Easy",
        minutes=10,
        points=2,
        probe=probe_permute,
        cases={
            "two axes exchanged": (laid_out((3, 4)), (1, 0)),
            "three axes turned round, where the inverse is another order": (PLAIN, (2, 0, 1)),
            "a square: only the strides tell": (laid_out((3, 3)), (1, 0)),
            "axes counted from the end": (PLAIN, (-1, 0, -2)),
            "nothing moves": (PLAIN, (0, 1, 2)),
            "a view with gaps and an offset": (GAPS, (1, 2, 0)),
            "permuted already": (TURNED, (1, 2, 0)),
            "strides negative and zero": (BACKWARDS, (2, 1, 0)),
            "no axes": ((2, (), (), 1), ()),
            "no elements": ((4, (2, 0, 3), (3, 3, 1), 0), (2, 0, 1)),
            "an axis named twice": (PLAIN, (0, 0, 1), True),
            "an axis left out": (PLAIN, (1, 0), True),
            "an axis that does not exist": (laid_out((3, 4)), (0, 2), True),
        },
        inputs=inputs_permute,
        draw=draw_permute,
        see="the second row of the picture above: which two things are exchanged?",
        needs=("tensor-strides",),
    ),
    Exercise(
        id="tensor-index",
        name="index",
        difficulty="Hard",
        minutes=30,
        points=5,
        probe=probe_index,
        cases={
            "a row": (laid_out((3, 4)), "1"),
            "a column": (laid_out((3, 4)), ":, 2"),
            "the last row, counted from the end": (PLAIN, "-1"),
            "one element, which is a tensor without axes": (PLAIN, "1, 2, -3"),
            "a slice with a start": (PLAIN, "1:, 1:3"),
            "a step that does not divide the length": (laid_out((5, 3)), "::2"),
            "backwards": (laid_out((5, 3)), "::-1"),
            "backwards with a step and bounds": (laid_out((7, 2)), "5:1:-2, ::-1"),
            "slices that reach past the end": (laid_out((3, 4)), "1:99, -99:2"),
            "an empty slice": (PLAIN, ":, 2:1"),
            "a new axis in front": (laid_out((3, 4)), "None, 1:"),
            "new axes between": (PLAIN, ":, None, 1, None, ::2"),
            "dots in the middle": (PLAIN, "1, ..., ::2"),
            "dots that stand for nothing": (laid_out((3, 4)), "..., 1, 2"),
            "nothing in the brackets": (laid_out((3, 4)), ""),
            "a view with gaps and an offset": (GAPS, "1, ::-1, 2"),
            "a permuted tensor": (TURNED, "1, 1:, ::-1"),
            "a slice of a tensor that runs backwards": (BACKWARDS, "1:, 0, ::-1"),
            "a tensor that repeats elements": (REPEATED, "1, ::2, -1"),
            "one past the end": (laid_out((3, 4)), "3", True),
            "before the beginning": (laid_out((3, 4)), ":, -5", True),
        },
        inputs=inputs_index,
        draw=draw_index,
        see="the table of items above the exercise",
        needs=("tensor-strides",),
    ),
    Exercise(
        id="tensor-view-strides",
        name="view_strides",
        difficulty="Hard",
        minutes=30,
        points=5,
        probe=probe_view_strides,
        cases={
            "contiguous, flattened": ((2, 3, 4), (12, 4, 1), (24,)),
            "contiguous, cut otherwise": ((4, 6), (6, 1), (3, 2, 4)),
            "the example with a gap, cut inside its block": ((2, 3, 4), (40, 4, 1), (2, 6, 2)),
            "the example with a gap, cut across it": (
                (2, 3, 4),
                (40, 4, 1),
                (6, 4),
            ),
            "transposed and flattened": ((4, 3), (1, 4), (12,)),
            "transposed, its axes split but not merged": ((4, 6), (1, 4), (2, 2, 3, 2)),
            "transposed, cut across its axes": ((4, 6), (1, 4), (6, 4)),
            "a size that fits the block with a remainder": ((2, 6), (10, 1), (3, 4)),
            "every second element": ((4, 3), (6, 2), (12,)),
            "backwards": ((2, 6), (-6, -1), (4, 3)),
            "a repeated row": ((3, 4), (0, 1), (3, 2, 2)),
            "a repeated row, flattened": ((3, 4), (0, 1), (12,)),
            "one number, repeated": ((3, 4), (0, 0), (2, 6)),
            "axes of size 1 with strides of no meaning": ((2, 1, 3, 1), (3, 77, 1, 50), (6,)),
            "new axes of size 1": ((6,), (2,), (1, 2, 1, 3, 1)),
            "no axes, seen with some": ((), (), (1, 1)),
            "one element, seen without axes": ((1, 1), (5, 9), ()),
            "no elements": ((2, 0, 3), (3, 3, 1), (0, 4)),
            "three blocks, each cut by itself": ((2, 4, 6), (100, 20, 2), (2, 2, 2, 3, 2)),
        },
        inputs=inputs_view_strides,
        draw=draw_view_strides,
        see="the two steps, merge and split, above the exercise",
    ),
    Exercise(
        id="tensor-broadcast-shape",
        name="broadcast_shape",
        difficulty="Medium",
        minutes=15,
        points=3,
        probe=probe_broadcast_shape,
        cases={
            "the table": ((8, 1, 6), (7, 6)),
            "equal shapes": ((2, 3), (2, 3)),
            "a stretches": ((1, 3), (2, 3)),
            "b stretches": ((2, 3), (2, 1)),
            "both stretch": ((4, 1), (1, 3)),
            "a shorter than b": ((3,), (2, 4, 3)),
            "no axes beside some": ((), (2, 3)),
            "no axes at all": ((), ()),
            "0 beside 1 is 0": ((3, 1), (3, 0)),
            "0 beside 0": ((0, 2), (1, 2)),
            "the last axis does not fit": ((2, 3), (2, 4), -1),
            "the axis before it does not fit": ((2, 3), (4, 3), -2),
            "they would fit if lined up on the left": ((3, 4), (3,), -1),
            "0 beside 4": ((4, 2), (0, 2), -2),
            "the first of three does not fit": ((5, 1, 2), (3, 4, 2), -3),
        },
        inputs=inputs_broadcast_shape,
        draw=draw_broadcast_shape,
        see="the table above the exercise, and the sentence about 0",
    ),
    Exercise(
        id="tensor-broadcast-to",
        name="broadcast_to",
        difficulty="Medium",
        minutes=10,
        points=3,
        probe=probe_broadcast_to,
        cases={
            "a column, repeated to the right": ((3, (3, 1), (1, 1), 0), (3, 4)),
            "a row, repeated downwards": (laid_out((4,)), (3, 4)),
            "both at once": ((3, (1, 3, 1), (3, 1, 1), 0), (2, 3, 4)),
            "one number everywhere": ((2, (), (), 1), (2, 3)),
            "nothing to repeat": (PLAIN, (2, 3, 4)),
            "an axis of size 1 that stays": (laid_out((1, 3)), (2, 1, 3)),
            "a permuted view with an offset": ((12, (4, 1), (1, 4), 4), (2, 4, 3)),
            "a row that runs backwards": ((5, (1, 5), (5, -1), 4), (3, 5)),
            "repeated already": (REPEATED, (2, 2, 3, 4)),
            "size 1 to size 0": (laid_out((1, 3)), (0, 3)),
            "a size that is neither 1 nor the same": (laid_out((2, 3)), (4, 3), True),
            "a size that would shrink": (laid_out((3, 4)), (1, 4), True),
            "too few axes": (laid_out((1, 4)), (4,), True),
        },
        inputs=inputs_broadcast_to,
        draw=draw_broadcast_to,
        see="the sentence about an axis with stride 0",
        needs=("tensor-strides", "tensor-broadcast-shape"),
    ),
    Exercise(
        id="tensor-result-type",
        name="result_type",
        difficulty="Medium",
        minutes=15,
        points=3,
        probe=probe_result_type,
        cases={
            "the same dtype": ("float32", (3,), "float32", (3,)),
            "a wider float wins": ("float32", (3,), "float64", (3,)),
            "float64 without axes does not widen float32": ("float32", (3,), "float64", ()),
            "the same with a and b exchanged": ("float64", (), "float32", (3,)),
            "both without axes": ("float32", (), "float64", ()),
            "a real number without axes makes whole numbers real": ("int64", (3,), "float64", ()),
            "the same with a and b exchanged, in float16": ("float16", (), "int32", (3,)),
            "int64 beside float16": ("int64", (3,), "float16", (3,)),
            "int64 beside float32, where NumPy says float64": ("float32", (2,), "int64", (2,)),
            "whole numbers without axes beside narrower ones": ("int8", (3,), "int64", ()),
            "signed beside unsigned needs a wider one": ("uint8", (3,), "int8", (3,)),
            "signed beside unsigned, one of them without axes": ("uint8", (3,), "int8", ()),
            "truth values beside whole numbers without axes": ("bool", (3,), "int32", ()),
            "whole numbers beside truth values": ("uint8", (), "bool", ()),
            "truth values on both sides": ("bool", (3,), "bool", ()),
            "no elements, but axes": ("float32", (0,), "float64", ()),
        },
        inputs=inputs_result_type,
        draw=draw_result_type,
        see="the four rules and the table above the exercise",
        needs=("tensor-strides",),
    ),
    Exercise(
        id="tensor-mean",
        name="mean_over",
        difficulty="Medium",
        minutes=15,
        points=3,
        probe=probe_mean,
        cases={
            "over the last axis": (laid_out((2, 3)), 1, False),
            "over the first axis": (laid_out((2, 5)), 0, False),
            "over an axis counted from the end": (PLAIN, -2, False),
            "over everything": (PLAIN, None, False),
            "over everything, axes kept": (PLAIN, None, True),
            "over two axes": (PLAIN, (0, 2), False),
            "over two axes that are counted from the end, kept": (PLAIN, (-1, 0), True),
            "over one axis, kept": (PLAIN, 1, True),
            "a view with gaps and an offset": (GAPS, 1, False),
            "a view that runs backwards": (BACKWARDS, (0, 1), True),
            "a tensor that repeats elements": (REPEATED, (0, 1), False),
            "float32 stays float32": (laid_out((3, 4)), 0, False, "float32"),
            "no axes: a number is its own mean": ((2, (), (), 1), None, False),
            "the mean of nothing": ((4, (0, 3), (3, 1), 0), None, False),
            "three means of nothing": ((4, (0, 3), (3, 1), 0), 0, False),
            "three means of nothing in float32, axes kept": ((4, (0, 3), (3, 1), 0), 0, True, "float32"),
            "no mean at all": ((4, (0, 3), (3, 1), 0), 1, False),
        },
        inputs=inputs_mean,
        draw=draw_mean,
        see="the paragraph about the count, above the exercise",
        needs=("tensor-strides",),
    ),
    Exercise(
        id="tensor-matmul",
        name="matmul",
        difficulty="Medium",
        minutes=20,
        points=4,
        probe=probe_matmul,
        cases={
            "two matrices": ((2, 3), (3, 4)),
            "two square matrices, where only the numbers tell": ((3, 3), (3, 3)),
            "a batch, and one matrix for all of it": ((2, 4, 3), (3, 5)),
            "two leading axes, and one matrix": ((2, 3, 4, 3), (3, 2)),
            "one matrix, and a batch on the right": ((4, 3), (2, 3, 5)),
            "a batch on both sides": ((2, 4, 3), (2, 3, 5)),
            "batches that stretch": ((3, 1, 2, 4), (5, 4, 2)),
            "square everywhere": ((3, 3, 3), (3, 3, 3)),
            "inner size 1": ((3, 1), (1, 4)),
            "inner size 0: sums of nothing": ((2, 3, 0), (0, 4)),
            "no rows": ((2, 0, 3), (3, 4)),
            "an empty batch": ((0, 2, 3), (0, 3, 2)),
            "float32 stays float32": ((2, 3, 4), (4, 2), "float32"),
            "whole numbers stay whole": ((2, 3), (3, 2), "int64"),
            "inner sizes that differ": ((2, 3), (4, 5), "float64", True),
            "inner sizes that differ, in a batch": ((2, 4, 3), (4, 3), "float64", True),
            "leading axes that do not fit": ((2, 4, 3), (5, 3, 2), "float64", True),
        },
        inputs=inputs_matmul,
        draw=draw_matmul,
        see="the formula, and the three things left to you",
        needs=("tensor-strides", "tensor-broadcast-shape"),
    ),
    Exercise(
        id="tensor-debug-shape",
        name="debug_shape",
        difficulty="Medium",
        minutes=15,
        points=3,
        probe=probe_debug_shape,
        cases={
            "the line of the log": ((32, 64, 256), (None, None, 64)),
            "the same, with sizes that tell less": ((64, 64, 256), (None, None, 64)),
            "two axes exchanged": ((3, 5), (5, 3)),
            "it fits as it is": ((3, 5, 7), (3, None, 7)),
            "it fits, and two sizes are equal": ((4, 4, 3), (4, 4, 3)),
            "first and last exchanged": ((7, 3, 5), (5, 3, 7)),
            "turned round, which no single exchange undoes": ((2, 3, 4), (4, 2, 3)),
            "a size that is nowhere": ((2, 3, 4), (2, 3, 5)),
            "two places differ, and exchanging them does not help": ((2, 3, 4), (2, 5, 6)),
            "more axes than wanted": ((2, 3, 4), (3, 2)),
            "fewer axes than wanted": ((3, 2), (None, 2, 3)),
            "an axis of size 0": ((0, 4), (4, 0)),
            "no axes": ((), ()),
            "a blank on both places of the exchange": ((5, 2, 6, 4), (None, 6, None, 4)),
        },
        inputs=inputs_debug_shape,
        draw=draw_debug_shape,
        see="the two examples in the docstring",
    ),
]
