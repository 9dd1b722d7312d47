"""Chapter 01: the right values, wrong answers, and other right ones. A mistake's docstring is what learners read."""

from __future__ import annotations

import re
from itertools import combinations, pairwise, permutations
from math import prod

import numpy as np

from gradwright.chapters.tensor import (
    CATEGORY,
    Tensor,  # noqa: F401 (where the probes look for it)
    broadcast_shape,
    dims_of,
    expand_key,
    index,
    matmul,
    mean_over,
    permute,
    result_type,
    row_major_strides,
    unravel_index,
    view_strides,
)

WRITTEN = "elements after the storage has changed"


def numbers(array):
    return tuple(int(n) for n in array)


def tensor_of(arrays, torch):
    """The view of a case as a torch tensor of float64. torch has no negative strides: NumPy makes the view then."""
    storage = arrays["storage"].astype(np.float64)
    shape, strides, offset = numbers(arrays["shape"]), numbers(arrays["strides"]), int(arrays["offset"])
    if min(strides, default=0) >= 0:
        return torch.as_strided(torch.from_numpy(storage), shape, strides, offset)
    view = np.lib.stride_tricks.as_strided(storage[offset:], shape, [8 * step for step in strides])
    return torch.from_numpy(view.copy())


def twice(x):
    """A view's elements, and again after its storage went through 3 - 2 * storage."""
    return {"elements": x, WRITTEN: 3 - 2 * x}


class tensor_strides:
    def oracle(arrays, torch):
        return {"strides": np.array(torch.empty(numbers(arrays["shape"])).stride(), dtype=np.int64)}

    class mistakes:
        def first_axis_fastest(shape):
            """The strides grow from left to right, so the first index runs fastest: that is column-major order. Walk
            over the shape from the right."""
            return tuple(prod(max(n, 1) for n in shape[:i]) for i in range(len(shape)))

        def own_size_included(shape):
            """Each stride holds its own axis's size too: note the product before you multiply the size into it."""
            return tuple(prod(max(n, 1) for n in shape[i:]) for i in range(len(shape)))

        def order_not_turned_round(shape):
            """The right numbers from right to left: the loop ran backwards, so turn its result round."""
            return row_major_strides(shape)[::-1]

        def zero_multiplied_in(shape):
            """A size of 0 made every stride to its left 0: let it count as 1."""
            return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))

        def neighbour_only(shape):
            """Each stride is the size of the next axis alone. It is the product of all sizes to the right."""
            return tuple(max(n, 1) for n in (*shape[1:], 1)[: len(shape)])

        def in_bytes(shape):
            """These are bytes, as NumPy counts. Count in elements: a step along the last axis is 1."""
            return tuple(8 * n for n in row_major_strides(shape))

        def ones_skipped(shape):
            """An axis of size 1 got stride 0. It has a stride like any other: the product of the sizes to its right."""
            return tuple(0 if n == 1 else s for n, s in zip(shape, row_major_strides(shape), strict=True))

        def one_stride_too_many(shape):
            """For () there is one stride, and there is no axis that it could belong to: the answer is ()."""
            return row_major_strides(shape) or (1,)

        def sizes(shape):
            """This is the shape itself. A stride says how many places a step walks, not how many steps there are."""
            return tuple(shape)

    class alternatives:
        def products_of_tails(shape):
            return tuple(prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape)))

        def filled_in_backwards(shape):
            strides = [1] * len(shape)
            for axis in range(len(shape) - 2, -1, -1):
                strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
            return tuple(strides)

        def cumulative_product(shape):
            sizes = [1, *np.maximum(shape[:0:-1], 1).tolist()]
            return tuple(np.cumprod(sizes[: len(shape)])[::-1].tolist()) if shape else ()


def refuse_unequal(indices, strides):
    if len(indices) != len(strides):
        raise ValueError(f"index {indices} has {len(indices)} numbers for {len(strides)} axes")


class tensor_offset:
    def oracle(arrays, torch):
        """Where torch's own as_strided reads, in a storage that holds its places."""
        if "to be refused" in arrays:
            return {"refused with ValueError": True}
        places, strides = torch.arange(400), arrays["strides"]
        reach = int((arrays["index"] * np.abs(strides)).sum())
        if (strides < 0).any():  # torch has none: by the formula
            return {"place": int(arrays["offset"] + (arrays["index"] * strides).sum())}
        shape = [int(i) + 1 for i in arrays["index"]]
        view = torch.as_strided(
            places[: reach + int(arrays["offset"]) + 1], shape, numbers(strides), int(arrays["offset"])
        )
        return {"place": int(view[numbers(arrays["index"])])}

    class mistakes:
        def offset_forgotten(index, strides, offset=0):
            """The walk began at place 0: add the offset, where element (0, 0, ...) lies."""
            refuse_unequal(index, strides)
            return sum(i * s for i, s in zip(index, strides, strict=True))

        def strides_backwards(index, strides, offset=0):
            """The strides were used in reverse: the first index belongs to the first stride."""
            refuse_unequal(index, strides)
            return offset + sum(i * s for i, s in zip(index, reversed(strides), strict=True))

        def counted_from_one(index, strides, offset=0):
            """The indices were counted from 1. Element 0 of an axis lies where the axis begins."""
            refuse_unequal(index, strides)
            return offset + sum((i - 1) * s for i, s in zip(index, strides, strict=True))

        def negative_made_positive(index, strides, offset=0):
            """A negative stride was walked forwards: leave its sign, it leads back towards the beginning."""
            refuse_unequal(index, strides)
            return offset + sum(i * abs(s) for i, s in zip(index, strides, strict=True))

        def repeated_axis_walked(index, strides, offset=0):
            """A stride of 0 was taken for 1. Along a repeated axis no step is taken at all."""
            refuse_unequal(index, strides)
            return offset + sum(i * (s or 1) for i, s in zip(index, strides, strict=True))

        def offset_scaled(index, strides, offset=0):
            """The offset was multiplied by the first stride. It is a number of places already: only add it."""
            refuse_unequal(index, strides)
            first = strides[0] if strides else 1
            return offset * first + sum(i * s for i, s in zip(index, strides, strict=True))

        def surplus_ignored(index, strides, offset=0):
            """An index of the wrong length was accepted, because zip stops at the shorter side: compare the lengths
            first and raise ValueError."""
            return offset + sum(i * s for i, s in zip(index, strides, strict=False))

        def asserted(index, strides, offset=0):
            """A wrong length ends in an AssertionError, which python -O switches off: raise ValueError."""
            assert len(index) == len(strides)
            return offset + sum(i * s for i, s in zip(index, strides, strict=True))

    class alternatives:
        def loop(index, strides, offset=0):
            refuse_unequal(index, strides)
            for i, step in zip(index, strides, strict=True):
                offset += i * step
            return offset

        def strict_zip(index, strides, offset=0):
            return sum((i * s for i, s in zip(index, strides, strict=True)), offset)

        def dot(index, strides, offset=0):
            return offset + int(np.dot(np.array(index, dtype=int), np.array(strides, dtype=int)))


def refuse_outside(position, shape):
    if not 0 <= position < prod(shape):
        raise IndexError(f"position {position} is outside shape {shape}")


class tensor_unravel:
    def oracle(arrays, torch):
        if "to be refused" in arrays:
            return {"refused with IndexError": True}
        position, shape = torch.tensor(int(arrays["position"])), numbers(arrays["shape"])
        index = torch.unravel_index(position, shape) if shape else ()
        return {"index": np.array([int(i) for i in index], dtype=np.int64)}

    class mistakes:
        def column_major(position, shape):
            """The first index runs fastest here, as in column-major order. Row-major reading finishes a row first:
            divide by the last size first."""
            refuse_outside(position, shape)
            result = []
            for size in shape:
                position, i = divmod(position, size)
                result.append(i)
            return tuple(result)

        def reversed_index(position, shape):
            """The right numbers from right to left: the loop ran backwards, so turn its result round."""
            refuse_outside(position, shape)
            return unravel_index(position, shape)[::-1]

        def remainder_not_taken(position, shape):
            """What was left of the position was not passed on: after dividing by a stride, go on with the remainder."""
            refuse_outside(position, shape)
            return tuple(position // step for step in row_major_strides(shape))

        def strides_as_sizes(position, shape):
            """Each number was taken modulo its stride. The remainder belongs to the size of the axis."""
            refuse_outside(position, shape)
            return tuple(position % step for step in row_major_strides(shape))

        def outer_axes_not_divided(position, shape):
            """Every axis got the remainder of the whole position: divide by the sizes on the right first."""
            refuse_outside(position, shape)
            return tuple(position % size for size in shape)

        def wrapped_round(position, shape):
            """Positions past the end were accepted and came out as another element: compare with the number of
            elements, and raise IndexError."""
            if position < 0 or not prod(shape):
                raise IndexError(position)
            return unravel_index(position % prod(shape), shape)

        def end_let_through(position, shape):
            """One position too many was accepted: the last one is the number of elements minus 1."""
            if not 0 <= position <= prod(shape):
                raise IndexError(position)
            return unravel_index(position, shape) if position < prod(shape) else tuple(shape)

        def negative_accepted(position, shape):
            """-1 was accepted and counted from the end. No reader is ever at position -1: raise IndexError."""
            if position >= prod(shape) or not prod(shape):
                raise IndexError(position)
            return unravel_index(position % prod(shape), shape)

        def refused_otherwise(position, shape):
            """A position outside is refused with a ValueError. What is outside its range is an IndexError."""
            if not 0 <= position < prod(shape):
                raise ValueError(position)
            return unravel_index(position, shape)

    class alternatives:
        def by_strides(position, shape):
            refuse_outside(position, shape)
            result = []
            for step in row_major_strides(shape):
                result.append(position // step)
                position %= step
            return tuple(result)

        def formula(position, shape):
            refuse_outside(position, shape)
            return tuple(position // step % n for step, n in zip(row_major_strides(shape), shape, strict=True))


def checked(t, dims):
    """dims counted from the front, or ValueError."""
    dims = [dim % t.ndim if -t.ndim <= dim < t.ndim else dim for dim in dims]
    if sorted(dims) != list(range(t.ndim)):
        raise ValueError(f"dims {dims}")
    return dims


class tensor_permute:
    def oracle(arrays, torch):
        if "to be refused" in arrays:
            return {"refused with ValueError": True}
        return twice(tensor_of(arrays, torch).permute(numbers(arrays["dims"])))

    class mistakes:
        def inverse(t, dims):
            """The axes went the other way: dims[0] names the axis that comes first, not where the first axis goes.
            For two axes both are the same, for three they are not."""
            dims = checked(t, dims)
            return permute(t, [dims.index(i) for i in range(t.ndim)])

        def strides_left(t, dims):
            """Only the shape was put in order. Without its stride an axis reads other elements: reorder both."""
            return t.see([t.shape[d] for d in checked(t, dims)], t.strides, t.offset)

        def shape_left(t, dims):
            """Only the strides were put in order. The sizes belong to the same axes: reorder both."""
            return t.see(t.shape, [t.strides[d] for d in checked(t, dims)], t.offset)

        def row_major_again(t, dims):
            """The strides were worked out from the new shape, as if the elements had moved. Take t's own strides in
            the new order."""
            shape = [t.shape[d] for d in checked(t, dims)]
            return t.see(shape, row_major_strides(tuple(shape)), t.offset)

        def offset_lost(t, dims):
            """The view begins at place 0: hand on t's offset, t may be a view itself."""
            dims = checked(t, dims)
            return t.see([t.shape[d] for d in dims], [t.strides[d] for d in dims], 0)

        def copied(t, dims):
            """The elements are right and were copied: the storage changed, and this tensor did not. End in t.see(...)
            with the old storage."""
            return t.new(t.array.transpose(checked(t, dims)).copy())

        def t_itself_changed(t, dims):
            """t itself was changed, and others may hold it: leave it as it is, and end in t.see(...)."""
            dims = checked(t, dims)
            t.shape, t.strides = tuple(t.shape[d] for d in dims), tuple(t.strides[d] for d in dims)
            vars(t).pop("array", None)
            return t

        def axes_wrapped_round(t, dims):
            """An axis that does not exist was accepted: % makes a valid one of every number. Add the number of axes
            to negative ones only, and compare."""
            return permute(t, [dim % max(t.ndim, 1) for dim in dims])

        def axes_reversed(t, dims):
            """The axes were reversed, whatever dims says: look up each axis in dims."""
            checked(t, dims)
            return permute(t, range(t.ndim - 1, -1, -1))

        def negative_refused(t, dims):
            """An axis counted from the end was refused: -1 is the last axis."""
            if sorted(dims) != list(range(t.ndim)):
                raise ValueError(f"dims {dims}")
            return permute(t, dims)

        def nothing_refused(t, dims):
            """Dims that name an axis twice, or leave one out, were accepted: raise ValueError unless each is named
            once."""
            dims = [dim % max(t.ndim, 1) for dim in dims]
            return t.see([t.shape[d] for d in dims], [t.strides[d] for d in dims], t.offset)

    class alternatives:
        def pairs(t, dims):
            if sorted(d % max(t.ndim, 1) for d in dims) != list(range(t.ndim)) or any(d >= t.ndim for d in dims):
                raise ValueError(f"dims {dims}")
            axes = list(zip(t.shape, t.strides, strict=True))
            axes = [axes[d] for d in dims]
            return t.see([n for n, _ in axes], [s for _, s in axes], t.offset)

        def filled_in(t, dims):
            shape, strides = list(t.shape), list(t.strides)
            for place, dim in enumerate(checked(t, dims)):
                shape[place], strides[place] = t.shape[dim], t.strides[dim]
            return t.see(shape, strides, t.offset)


def walk(t, key, one_axis):
    """index, with `one_axis(item, size, stride)` -> (places skipped, new size or None, new stride) for each axis."""
    shape, strides, offset, axis = [], [], t.offset, 0
    for item in expand_key(key, t.ndim):
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        skipped, size, stride = one_axis(item, t.shape[axis], t.strides[axis])
        offset += skipped
        axis += 1
        if size is not None:
            shape.append(size)
            strides.append(stride)
    return t.see(shape, strides, offset)


def one_axis(item, size, stride):
    if isinstance(item, slice):
        start, stop, step = item.indices(size)
        return start * stride, len(range(start, stop, step)), step * stride
    if not -size <= item < size:
        raise IndexError(f"index {item} is out of range for size {size}")
    return item % size * stride, None, None


class tensor_index:
    def oracle(arrays, torch):
        """torch, and NumPy where a step is negative."""
        if "to be refused" in arrays:
            return {"refused with IndexError": True}
        text = str(arrays["key"])
        x = tensor_of(arrays, torch)
        key = eval(f"np.s_[{text or '()'}]", {"np": np})
        if any(
            isinstance(item, slice) and (item.step or 1) < 0 for item in (key if isinstance(key, tuple) else (key,))
        ):
            return twice(torch.from_numpy(x.numpy()[key].copy()))
        return twice(x[key])

    class mistakes:
        def start_ignored(t, key):
            """A slice began at the front of its axis, whatever its start: the offset grows by start strides."""

            def axis(item, size, stride):
                skipped, n, step = one_axis(item, size, stride)
                return (skipped if n is None else 0), n, step

            return walk(t, key, axis)

        def step_ignored(t, key):
            """The step did not reach the stride: every step-th element is step times as far away."""

            def axis(item, size, stride):
                skipped, n, _ = one_axis(item, size, stride)
                return skipped, n, stride

            return walk(t, key, axis)

        def length_rounded_down(t, key):
            """A slice whose step does not divide its length lost its last element: count with len(range(...))."""

            def axis(item, size, stride):
                skipped, n, step = one_axis(item, size, stride)
                if n is not None:
                    start, stop, jump = item.indices(size)
                    n = max(0, int((stop - start) / jump))
                return skipped, n, step

            return walk(t, key, axis)

        def step_not_counted(t, key):
            """The new size is stop - start, as if the step were 1: count with len(range(...))."""

            def axis(item, size, stride):
                skipped, n, step = one_axis(item, size, stride)
                if n is not None:
                    start, stop, _ = item.indices(size)
                    n = abs(stop - start) if n else 0
                return skipped, n, step

            return walk(t, key, axis)

        def start_in_places(t, key):
            """The offset grew by the start itself. A start is a number of steps: multiply by the stride."""

            def axis(item, size, stride):
                skipped, n, step = one_axis(item, size, stride)
                return (skipped if n is None else item.indices(size)[0]), n, step

            return walk(t, key, axis)

        def number_in_places(t, key):
            """The offset grew by the index itself. An index is a number of steps: multiply by the stride."""

            def axis(item, size, stride):
                skipped, n, step = one_axis(item, size, stride)
                return (item % size if n is None else skipped), n, step

            return walk(t, key, axis)

        def number_keeps_axis(t, key):
            """A number left an axis of size 1 behind. Only a slice keeps its axis; a number makes it go."""

            def axis(item, size, stride):
                skipped, n, step = one_axis(item, size, stride)
                return skipped, 1 if n is None else n, 0 if n is None else step

            return walk(t, key, axis)

        def negative_not_wrapped(t, key):
            """A negative number walked backwards from the beginning: -1 is the last, so add the size of the axis."""

            def axis(item, size, stride):
                skipped, n, step = one_axis(item, size, stride)
                return (item * stride if n is None else skipped), n, step

            return walk(t, key, axis)

        def negative_step_positive(t, key):
            """A slice with a negative step was read forwards: it starts at the far end, and its stride turns
            negative."""

            def axis(item, size, stride):
                skipped, n, step = one_axis(item, size, stride)
                if n and item.step and item.step < 0:
                    return skipped + (n - 1) * step, n, -step
                return skipped, n, step

            return walk(t, key, axis)

        def slice_taken_literally(t, key):
            """The slice's own start and stop were used, which may be missing, negative or past the end:
            item.indices(size) fills them in."""

            def axis(item, size, stride):
                if not isinstance(item, slice):
                    return one_axis(item, size, stride)
                start, step = item.start or 0, item.step or 1
                stop = size if item.stop is None else item.stop
                return start * stride, len(range(start, stop, step)), step * stride

            return walk(t, key, axis)

        def none_uses_an_axis(t, key):
            """A None used up an axis, so what follows it was applied one axis too late: None makes a new axis, and
            only numbers and slices go on to the next."""
            items = expand_key(key, t.ndim)[: t.ndim]
            parts = [
                (0, 1, 0) if item is None else one_axis(item, size, stride)
                for item, size, stride in zip(items, t.shape, t.strides, strict=True)
            ]
            kept = [(size, stride) for _, size, stride in parts if size is not None]
            return t.see(
                [size for size, _ in kept],
                [stride for _, stride in kept],
                t.offset + sum(skipped for skipped, _, _ in parts),
            )

        def offset_lost(t, key):
            """The view was laid out from place 0: begin with t's offset, t may be a view itself."""
            view = index(t, key)
            return t.see(view.shape, view.strides, view.offset - t.offset)

        def row_major_assumed(t, key):
            """The strides were worked out from t's shape. t may be a view with strides of its own: take those."""
            return index(t.see(t.shape, row_major_strides(t.shape), t.offset), key)

        def copied(t, key):
            """The elements are right and were copied: the storage changed, and this tensor did not. End in t.see(...)
            with the old storage."""
            return t.new(index(t, key).array.copy())

        def range_not_checked(t, key):
            """A number outside its axis was accepted, and wraps round to another element: raise IndexError."""

            def axis(item, size, stride):
                return one_axis(item if isinstance(item, slice) else item % size, size, stride)

            return walk(t, key, axis)

    class alternatives:
        def by_numpy_strides(t, key):
            bad = [i for i in expand_key(key, t.ndim) if i is not None]
            for item, size in zip(bad, t.shape, strict=True):
                if not isinstance(item, slice) and not -size <= item < size:
                    raise IndexError(f"index {item} is out of range for size {size}")
            view = t.array[(*expand_key(key, t.ndim), ...)]
            at = (view.__array_interface__["data"][0] - t.storage.data.__array_interface__["data"][0]) // 8
            return t.see(view.shape, [s // 8 for s in view.strides], at)

        def axis_by_axis(t, key):
            return walk(t, key, one_axis)


class tensor_view_strides:
    def oracle(arrays, torch):
        """torch's view, and NumPy's reshape without a copy where a stride is negative."""
        shape, strides, new = (numbers(arrays[name]) for name in ("shape", "strides", "new"))
        reach = sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True) if n) + 1
        try:
            if min(strides, default=0) < 0:
                first = np.zeros(2 * reach)[reach:]
                x = np.lib.stride_tricks.as_strided(first, shape, [8 * s for s in strides])
                found = tuple(s // 8 for s in x.reshape(new, copy=False).strides)
            else:
                found = torch.zeros(reach).as_strided(shape, strides).view(new).stride()
        except (RuntimeError, ValueError):
            return {"there is a view": False}
        mask = (np.array(new) == 1) | (prod(new) == 0)
        return {"there is a view": True, "strides, 0 where any will do": np.where(mask, 0, np.array(found, dtype=int))}

    class mistakes:
        def always_row_major(shape, strides, new):
            """The strides of a contiguous tensor were given without a look at the old ones: where the elements do not
            lie in a row, they show other elements."""
            return row_major_strides(new)

        def only_contiguous(shape, strides, new):
            """A view was found for contiguous tensors only. Elements at an even distance, or blocks that are cut each
            by itself, need no copy either."""
            usual = row_major_strides(shape)
            fits = all(s == u or n == 1 for n, s, u in zip(shape, strides, usual, strict=True))
            return row_major_strides(new) if fits or not prod(shape) else None

        def scaled_by_the_last_stride(shape, strides, new):
            """The new strides are row-major ones times the last old stride. That is right for a single block only:
            cut each block by its own stride."""
            return tuple((strides[-1] if strides else 1) * s for s in row_major_strides(new))

        def even_only(shape, strides, new):
            """A view was found only where all axes merge into one block. Several blocks can be cut too, each by
            itself."""
            if not prod(shape):
                return row_major_strides(new)
            axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
            if any(s != m * t for (_, s), (m, t) in pairwise(axes)):
                return None
            last = axes[-1][1] if axes else 1
            return tuple(last * s for s in row_major_strides(new))

        def nothing_merged(shape, strides, new):
            """Axes that walk as one were not merged, so that a new axis across two of them was refused: where the
            outer stride is one whole inner axis, they are one block."""
            if not prod(shape):
                return row_major_strides(new)
            return split(list(zip(*without_ones(shape, strides), strict=True)), new)

        def everything_merged(shape, strides, new):
            """Axes were merged that do not walk as one. Merge only where the outer stride is the inner size times the
            inner stride."""
            return split([(prod(shape), strides[-1] if strides else 1)], new)

        def ones_compared(shape, strides, new):
            """An axis of size 1 took part in the comparison of strides. It is never walked along: leave it out."""
            return split(merged(shape, strides), new) if prod(shape) else row_major_strides(new)

        def compared_with_the_size(shape, strides, new):
            """Two axes were merged where the outer stride is the inner size. It has to be the inner size times the
            inner stride."""
            if not prod(shape):
                return row_major_strides(new)
            blocks = []
            for n, s in [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]:
                if blocks and blocks[-1][1] == n:
                    blocks[-1] = blocks[-1][0] * n, s
                else:
                    blocks.append((n, s))
            return split(blocks, new)

        def outer_stride_kept(shape, strides, new):
            """A merged block kept the outer stride. It walks in steps of the inner one."""
            if not prod(shape):
                return row_major_strides(new)
            blocks = []
            for n, s in [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]:
                inner = blocks[-1][2] if blocks else None
                if blocks and inner == n * s:
                    blocks[-1] = blocks[-1][0] * n, blocks[-1][1], s
                else:
                    blocks.append((n, s, s))
            return split([(n, s) for n, s, _ in blocks], new)

        def remainder_allowed(shape, strides, new):
            """A new axis was put into a block that it does not divide, so that it bends round a corner: there is no
            such view, the answer is None."""
            if not prod(shape):
                return row_major_strides(new)
            blocks, result = merged(*without_ones(shape, strides)) or [(1, 1)], []
            left, step = blocks.pop()
            for size in reversed(new):
                if left <= 1 and size > 1 and blocks:
                    left, step = blocks.pop()
                result.append(step)
                left, step = left // size, step * size
            return tuple(reversed(result))

        def always_a_copy(shape, strides, new):
            """None was returned where there is a view: that is safe, and it copies tensors that could be seen as they
            are."""
            return None

        def raised_instead_of_none(shape, strides, new):
            """Where there is no view, an exception was raised. reshape asks this function, and copies when it hears
            None: return None."""
            result = view_strides(shape, strides, new)
            if result is None:
                raise ValueError(f"{shape} with strides {strides} cannot be seen as {new}")
            return result

        def cut_from_the_left(shape, strides, new):
            """The blocks were cut from the left, where the large steps are: begin with the last block and the last new
            axis."""
            if not prod(shape):
                return row_major_strides(new)
            backwards = split(merged(*without_ones(shape, strides))[::-1], new[::-1])
            return None if backwards is None else backwards[::-1]

        def empty_refused(shape, strides, new):
            """A tensor without elements was refused. It has nothing that could lie in the wrong place: any strides
            do."""
            return view_strides(shape, strides, new) if prod(shape) else None

    class alternatives:
        def by_places(shape, strides, new):
            """Work the places out, and see whether strides can describe them."""
            places = np.zeros((), dtype=int)
            for size, step in zip(shape, strides, strict=True):
                places = np.add.outer(places, step * np.arange(size))
            wanted = places.reshape(new)
            if not wanted.size:
                return row_major_strides(new)
            first = wanted[(0,) * len(new)]
            found = [
                int(wanted[tuple(int(i == axis) for i in range(len(new)))] - first) if n > 1 else 0
                for axis, n in enumerate(new)
            ]
            described = np.array(first)
            for size, step in zip(new, found, strict=True):
                described = np.add.outer(described, step * np.arange(size))
            return tuple(found) if (described == wanted).all() else None

        def two_functions(shape, strides, new):
            return split(merged(*without_ones(shape, strides)), new) if prod(shape) else row_major_strides(new)


def without_ones(shape, strides):
    return [n for n in shape if n != 1], [s for n, s in zip(shape, strides, strict=True) if n != 1]


def merged(shape, strides):
    """Neighbouring axes that walk as one, as (size, stride)."""
    blocks = []
    for size, stride in zip(shape, strides, strict=True):
        if blocks and blocks[-1][1] == size * stride:
            blocks[-1] = blocks[-1][0] * size, stride
        else:
            blocks.append((size, stride))
    return blocks


def split(blocks, new):
    """The strides of `new` cut from blocks, or None."""
    blocks, result = list(blocks) or [(1, 1)], []
    left, step = blocks.pop()
    for size in reversed(new):
        while left == 1 and size > 1 and blocks:
            left, step = blocks.pop()
        if left % size:
            return None
        result.append(step)
        left, step = left // size, step * size
    return tuple(reversed(result))


def padded(a, b):
    """Both shapes with ones in front, as long as the longer."""
    n = max(len(a), len(b))
    return (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)


def under_their_names(a, b, left, right):
    """broadcast_shape(left, right), with a and b in its error."""
    try:
        return broadcast_shape(left, right)
    except ValueError as error:
        raise ValueError(f"shapes {a} and {b}:{str(error).partition(':')[2]}") from None


class tensor_broadcast_shape:
    def oracle(arrays, torch):
        a, b = numbers(arrays["a"]), numbers(arrays["b"])
        if "axis at fault" in arrays:
            return {"refused with ValueError": True, "message names both shapes": True, "message names the axis": True}
        return {"shape": np.array(torch.broadcast_shapes(a, b), dtype=np.int64)}

    class mistakes:
        def lined_up_on_the_left(a, b):
            """The shapes were lined up on the left. Broadcasting lines them up on the right."""
            n = max(len(a), len(b))
            return under_their_names(a, b, (*a, *[1] * (n - len(a))), (*b, *[1] * (n - len(b))))

        def larger_size(a, b):
            """The larger of two sizes was taken. Beside a 1 the other size counts, and it may be 0."""
            broadcast_shape(a, b)
            n = max(len(a), len(b))
            a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
            return tuple(max(p, q) for p, q in zip(a, b, strict=True))

        def never_refused(a, b):
            """Sizes that differ were accepted though neither is 1: raise ValueError."""
            n = max(len(a), len(b))
            a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
            return tuple(q if p == 1 else p for p, q in zip(a, b, strict=True))

        def zero_fits_everything(a, b):
            """0 was accepted beside 4. It is a size like any other: it fits itself and 1."""
            left, right = padded(a, b)
            if any(p != q and not {p, q} & {0, 1} for p, q in zip(left, right, strict=True)):
                return broadcast_shape(a, b)
            return tuple(min(p, q) if 0 in (p, q) else max(p, q) for p, q in zip(left, right, strict=True))

        def only_the_first_stretches(a, b):
            """Only the first shape was stretched. Either may have the 1: look at both sides."""
            n = max(len(a), len(b))
            left, right = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
            if any(p not in (1, q) for p, q in zip(left, right, strict=True)):
                raise ValueError(f"shapes {a} and {b} do not broadcast: axis -1")
            return right

        def lengths_must_match(a, b):
            """Shapes of different length were refused. The shorter one counts as if it had ones in front."""
            if len(a) != len(b):
                raise ValueError(f"shapes {a} and {b} do not broadcast: axis {-max(len(a), len(b))}")
            return broadcast_shape(a, b)

        def missing_axes_dropped(a, b):
            """The axes that only the longer shape has were dropped. They stay: the result has as many axes as the
            longer."""
            n = min(len(a), len(b))
            return broadcast_shape(a, b)[max(len(a), len(b)) - n :]

        def axis_not_named(a, b):
            """The error does not name the axis, counted from the right. It is what the reader needs most: -1 is the
            last axis, whatever the shapes' lengths."""
            try:
                return broadcast_shape(a, b)
            except ValueError:
                raise ValueError(f"shapes {a} and {b} do not broadcast") from None

        def padded_shapes_named(a, b):
            """The error names the shapes with ones in front. Nobody has tensors of these shapes: name them as they
            were given."""
            return broadcast_shape(*padded(a, b))

        def shapes_not_named(a, b):
            """The error does not name both shapes: put them into the message as they were given."""
            try:
                return broadcast_shape(a, b)
            except ValueError as error:
                raise ValueError(str(error).partition(":")[2]) from None

    class alternatives:
        def padded(a, b):
            n = max(len(a), len(b))
            left, right = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
            for axis, pair in enumerate(zip(left, right, strict=True)):
                if len(set(pair) - {1}) > 1:
                    raise ValueError(f"{a} and {b} differ in axis {axis - n}")
            return tuple(next((n for n in pair if n != 1), 1) for pair in zip(left, right, strict=True))

        def recursive(a, b):
            if not a or not b:
                return tuple(a) + tuple(b)
            if a[-1] != b[-1] and 1 not in (a[-1], b[-1]):
                return broadcast_shape(a, b)
            try:
                front = tensor_broadcast_shape.alternatives.recursive(a[:-1], b[:-1])
            except ValueError:
                return broadcast_shape(a, b)
            return (*front, b[-1] if a[-1] == 1 else a[-1])


def repeated(t, shape, stretch=0, added=0):
    """broadcast_to, with these strides for axes that are stretched and added."""
    n = len(shape) - t.ndim
    return t.see(
        shape,
        [added] * n
        + [
            stretch if size == 1 and new != 1 else s for size, s, new in zip(t.shape, t.strides, shape[n:], strict=True)
        ],
        t.offset,
    )


def refuse_unfit(t, shape):
    if broadcast_shape(t.shape, shape) != tuple(shape):
        raise ValueError(f"shape {t.shape} cannot fill {shape}")


class tensor_broadcast_to:
    def oracle(arrays, torch):
        if "to be refused" in arrays:
            return {"refused with ValueError": True}
        return twice(tensor_of(arrays, torch).broadcast_to(numbers(arrays["new"])))

    class mistakes:
        def strides_kept(t, shape):
            """A stretched axis kept its stride, and walks on into other elements: an axis that repeats has stride 0."""
            refuse_unfit(t, shape)
            n = len(shape) - t.ndim
            return t.see(shape, [0] * n + list(t.strides), t.offset)

        def row_major_again(t, shape):
            """The strides were worked out from the new shape. There are not that many elements: the axes that repeat
            have stride 0, the others keep theirs."""
            refuse_unfit(t, shape)
            return t.see(shape, row_major_strides(tuple(shape)), t.offset)

        def added_axes_walk(t, shape):
            """The axes added in front walk in steps of 1. They repeat everything: their stride is 0."""
            refuse_unfit(t, shape)
            return repeated(t, shape, added=1)

        def stretched_axes_walk(t, shape):
            """The stretched axes walk in steps of 1. The same element is to be read again: their stride is 0."""
            refuse_unfit(t, shape)
            return repeated(t, shape, stretch=1)

        def everything_repeats(t, shape):
            """Every axis got stride 0, so one element fills everything. Only axes of size 1 and added ones repeat."""
            refuse_unfit(t, shape)
            return t.see(shape, [0] * len(shape), t.offset)

        def own_strides_ignored(t, shape):
            """The axes that stay got the strides of a contiguous tensor. t may be a view: keep its own."""
            refuse_unfit(t, shape)
            return repeated(t.see(t.shape, row_major_strides(t.shape), t.offset), shape)

        def offset_lost(t, shape):
            """The view begins at place 0: hand on t's offset, t may be a view itself."""
            refuse_unfit(t, shape)
            return repeated(t.see(t.shape, t.strides, 0), shape)

        def copied(t, shape):
            """The elements are right and were copied: the storage changed, and this tensor did not. Stride 0 repeats
            without copying."""
            refuse_unfit(t, shape)
            return t.new(np.broadcast_to(t.array, shape).copy())

        def shrinking_accepted(t, shape):
            """A shape that is smaller than t's was accepted: broadcasting repeats, and never drops elements. Raise
            ValueError."""
            full = broadcast_shape(t.shape, shape)
            return repeated(t, full)

        def shapes_not_compared(t, shape):
            """A size that is neither 1 nor the new one was accepted, and elements beyond the axis were read or left
            out: raise ValueError."""
            n = len(shape) - t.ndim
            if n < 0:
                raise ValueError(f"{shape} has fewer axes than {t.shape}")
            return repeated(t, shape)

    class alternatives:
        def axis_by_axis(t, shape):
            refuse_unfit(t, shape)
            sizes, strides = list(t.shape), list(t.strides)
            while len(sizes) < len(shape):
                sizes.insert(0, 1)
                strides.insert(0, 0)
            for axis, new in enumerate(shape):
                if sizes[axis] != new:
                    strides[axis] = 0
            return t.see(shape, strides, t.offset)

        def from_the_right(t, shape):
            if t.ndim > len(shape) or any(n not in (1, m) for n, m in zip(t.shape[::-1], shape[::-1], strict=False)):
                raise ValueError(f"shape {t.shape} cannot fill {shape}")
            return repeated(t, shape)


def kinds(a, b):
    return CATEGORY[a.dtype.kind], CATEGORY[b.dtype.kind]


class tensor_result_type:
    def oracle(arrays, torch):
        def ones_of(text):
            dtype, shape = text.split(" ", 1)
            return torch.ones([int(n) for n in re.findall(r"\d+", shape)], dtype=getattr(torch, dtype))

        found = torch.result_type(ones_of(str(arrays["a"])), ones_of(str(arrays["b"])))
        return {"dtype": np.array(str(found).removeprefix("torch."))}

    class mistakes:
        def numpy_rule(a, b):
            """This is NumPy's rule: whole numbers and floats widen each other, and axes do not matter. Compare the
            categories first."""
            return np.promote_types(a.dtype, b.dtype)

        def axes_ignored(a, b):
            """A tensor without axes counted like any other, so that a single float64 widens a float32 tensor: beside
            axes it counts only if its category is higher."""
            p, q = kinds(a, b)
            return np.promote_types(a.dtype, b.dtype) if p == q else a.dtype if p > q else b.dtype

        def always_gives_way(a, b):
            """A tensor without axes gave way even where its category is higher: a real number makes whole numbers
            real."""
            if bool(a.ndim) != bool(b.ndim):
                return a.dtype if a.ndim else b.dtype
            return result_type(a, b)

        def one_order_only(a, b):
            """Only b was allowed to give way. It may be a that has no axes."""
            p, q = kinds(a, b)
            if a.ndim and not b.ndim and p >= q:
                return a.dtype
            return np.promote_types(a.dtype, b.dtype) if p == q else a.dtype if p > q else b.dtype

        def numpy_across_categories(a, b):
            """int64 and float32 gave float64, as in NumPy. Across categories the higher one's dtype is the result."""
            if bool(a.ndim) != bool(b.ndim) and kinds(a, b)[0] != kinds(a, b)[1]:
                return result_type(a, b)
            if kinds(a, b)[0] == kinds(a, b)[1]:
                return result_type(a, b)
            return np.promote_types(a.dtype, b.dtype)

        def default_float(a, b):
            """Whole numbers and floats gave float32, whatever the float is. Its own dtype is the result."""
            p, q = kinds(a, b)
            return np.dtype("float32") if p != q and 2 in (p, q) else result_type(a, b)

        def wider_of_two(a, b):
            """Of uint8 and int8 one was chosen. Neither holds all numbers of the other: np.promote_types finds a
            dtype that does."""
            p, q = kinds(a, b)
            if p == q == 1 and bool(a.ndim) == bool(b.ndim):
                return a.dtype if a.dtype.itemsize >= b.dtype.itemsize else b.dtype
            return result_type(a, b)

        def first_wins(a, b):
            """The dtype of a was taken. The result must not depend on the order: look at both."""
            return a.dtype

        def both_without_axes_give_way(a, b):
            """Where neither has axes, a's dtype was taken. Then neither gives way, and the usual rules decide."""
            p, q = kinds(a, b)
            return a.dtype if not b.ndim and p >= q else result_type(a, b)

        def size_instead_of_axes(a, b):
            """A tensor was taken for one without axes because it has no elements. Look at the number of its axes."""
            p, q = kinds(a, b)
            if a.ndim and not b.ndim and a.numel() == 0 and p == q:
                return np.promote_types(a.dtype, b.dtype)
            return result_type(a, b)

    class alternatives:
        def by_priority(a, b):
            def rank(t):
                return CATEGORY[t.dtype.kind], t.ndim > 0

            low, high = sorted((a, b), key=rank)
            if rank(low) == rank(high):
                return np.promote_types(a.dtype, b.dtype)
            return high.dtype

        def steps(a, b):
            if CATEGORY[a.dtype.kind] != CATEGORY[b.dtype.kind]:
                return max(a, b, key=lambda t: CATEGORY[t.dtype.kind]).dtype
            with_axes = [t.dtype for t in (a, b) if t.ndim] or [a.dtype, b.dtype]
            return np.result_type(*with_axes)


def averaged(t, dim, keepdim, count):
    """Sums along dim, divided by `count`."""
    dims = dims_of(dim, t.ndim)
    total = np.add.reduce(t.array, dims, keepdims=keepdim)
    return t.new(total / count if count else np.full_like(total, np.nan))


def counted(t, dim):
    return prod(t.shape[d] for d in dims_of(dim, t.ndim))


class tensor_mean:
    def oracle(arrays, torch):
        x, dim = tensor_of(arrays, torch), arrays.get("dim")
        if dim is not None:
            dim = numbers(dim) if dim.ndim else int(dim)
        return {"mean": torch.mean(x, dim, bool(arrays["keepdim"])), "warned": False}

    class mistakes:
        def not_divided(t, dim=None, keepdim=False):
            """This is the sum: divide it by the number of elements that were added up."""
            return averaged(t, dim, keepdim, 1 if counted(t, dim) else 0)

        def divided_by_all(t, dim=None, keepdim=False):
            """The sum was divided by the number of elements of the whole tensor: count only those along dim."""
            return averaged(t, dim, keepdim, t.numel() if counted(t, dim) else 0)

        def one_axis_counted(t, dim=None, keepdim=False):
            """Over several axes the count is that of one of them. It is the product of their sizes."""
            dims = dims_of(dim, t.ndim)
            return averaged(t, dim, keepdim, t.shape[dims[0]] if dims else 1)

        def sizes_added(t, dim=None, keepdim=False):
            """Over several axes the sizes were added. As many elements are added up as their product says."""
            dims = dims_of(dim, t.ndim)
            return averaged(t, dim, keepdim, sum(t.shape[d] for d in dims) if dims else 1)

        def axes_that_stay_counted(t, dim=None, keepdim=False):
            """The sum was divided by the number of results, the sizes of the axes that stay: count along dim."""
            return averaged(t, dim, keepdim, t.numel() // counted(t, dim) if counted(t, dim) else 0)

        def keepdim_ignored(t, dim=None, keepdim=False):
            """keepdim=True changed nothing: the axes have to stay, with size 1."""
            return mean_over(t, dim)

        def always_kept(t, dim=None, keepdim=False):
            """The axes stayed, with size 1, though keepdim is False."""
            return mean_over(t, dim, True)

        def dim_ignored(t, dim=None, keepdim=False):
            """The mean was taken over everything, whatever dim says."""
            return mean_over(t, None, keepdim)

        def zero_for_nothing(t, dim=None, keepdim=False):
            """The mean of nothing came out as 0, which looks like an answer. It is nan."""
            return averaged(t, dim, keepdim, max(counted(t, dim), 1))

        def divided_by_zero(t, dim=None, keepdim=False):
            """The mean of nothing came out of a division by zero, with a warning or an error: treat the case first,
            and return nan."""
            dims = dims_of(dim, t.ndim)
            total = np.add.reduce(t.array, dims, keepdims=keepdim)
            return t.new(np.divide(total, np.float64(counted(t, dim)).astype(t.dtype)))

        def nothing_refused(t, dim=None, keepdim=False):
            """The mean of nothing was refused: return nan, and let the reader see it."""
            if not counted(t, dim):
                raise ValueError("no elements")
            return mean_over(t, dim, keepdim)

        def widened(t, dim=None, keepdim=False):
            """The mean is float64 whatever went in: float32 in, float32 out."""
            return t.new(mean_over(t, dim, keepdim).array.astype(np.float64))

        def storage_read(t, dim=None, keepdim=False):
            """The storage was read from its beginning, past the tensor's own strides: use t.array."""
            n = t.numel()
            base = np.resize(t.storage.data, n).reshape(t.shape) if t.storage.data.size else t.array
            return mean_over(t.new(base.copy()), dim, keepdim)

    class alternatives:
        def means_one_after_the_other(t, dim=None, keepdim=False):
            dims = dims_of(dim, t.ndim)
            if not counted(t, dim):
                return mean_over(t, dim, keepdim)
            array = t.array
            for d in dims:
                array = array.mean(axis=d, keepdims=True)
            return t.new(np.asarray(array) if keepdim else np.squeeze(array, axis=dims))

        def last_axes_flattened(t, dim=None, keepdim=False):
            dims = dims_of(dim, t.ndim)
            kept = [d for d in range(t.ndim) if d not in dims]
            count = counted(t, dim)
            rows = t.array.transpose(*kept, *dims).reshape([t.shape[d] for d in kept] + [count])
            total = rows.sum(axis=-1)
            mean = total / count if count else np.full_like(total, np.nan)
            return t.new(np.reshape(mean, [1 if d in dims else n for d, n in enumerate(t.shape)]) if keepdim else mean)


def named(a, b):
    return ValueError(f"matmul of {a.shape} and {b.shape}")


def refuse_unequal_inner(a, b):
    """What matmul refuses, with its message."""
    matmul(a, b)


class tensor_matmul:
    def oracle(arrays, torch):
        if "to be refused" in arrays:
            return {"refused with ValueError": True, "message names both shapes": True}
        a, b = (torch.from_numpy(arrays[name]) for name in ("a", "b"))
        if a.dtype == torch.float32:
            a, b = a.double(), b.double()
        return {"product": torch.matmul(a, b)}

    class mistakes:
        def elementwise(a, b):
            """The elements were multiplied place by place. A matrix product sums over the last axis of a and the last
            but one of b."""
            refuse_unequal_inner(a, b)
            return a.new(a.array * b.array)

        def left_transposed(a, b):
            """The left matrix was transposed: its rows meet the columns of b, not its columns."""
            refuse_unequal_inner(a, b)
            return a.new(np.swapaxes(a.array, -1, -2) @ b.array)

        def right_transposed(a, b):
            """The right matrix was transposed: its columns meet the rows of a, not its rows."""
            refuse_unequal_inner(a, b)
            return a.new(a.array @ np.swapaxes(b.array, -1, -2))

        def factors_exchanged(a, b):
            """This is b times a. The order of a matrix product matters."""
            refuse_unequal_inner(a, b)
            return a.new(b.array @ a.array)

        def storage_of_b(a, b):
            """The storage of b was read in its own order, past its strides: b may be a transposed view. Use b.array."""
            refuse_unequal_inner(a, b)
            return a.new(a.array @ b.storage.data.reshape(b.shape))

        def dot(a, b):
            """np.dot pairs every leading axis of a with every one of b. The leading axes have to broadcast: use @."""
            refuse_unequal_inner(a, b)
            return a.new(np.dot(a.array, b.array))

        def flattened(a, b):
            """The rows of all batches are still in one long axis: sort them back into the leading axes of a."""
            product = matmul(a, b)
            return product if b.ndim > 2 or a.ndim == 2 else a.new(product.array.reshape(-1, b.shape[-1]))

        def batch_of_b_flattened(a, b):
            """b was made one large matrix although it has leading axes of its own. One product is enough only where b
            is a single matrix."""
            if b.ndim == 2:
                return matmul(a, b)
            refuse_unequal_inner(a, b)
            rows = a.array.reshape(prod(a.shape[:-1]), a.shape[-1]) @ b.array.reshape(b.shape[-2], -1)
            return a.new(rows.reshape(*a.shape[:-1], -1))

        def rows_left_to_reshape(a, b):
            """reshape cannot work out a -1 where there are no elements: write the sizes out. The number of rows is the
            product of the leading sizes."""
            if b.ndim == 2 < a.ndim:
                refuse_unequal_inner(a, b)
                rows = a.array.reshape(-1, a.shape[-1]) @ b.array
                return a.new(rows.reshape(*a.shape[:-1], -1))
            return matmul(a, b)

        def only_two_axes(a, b):
            """Tensors with more than two axes were refused: multiply along the last two, and let the others
            broadcast."""
            if a.ndim > 2 or b.ndim > 2:
                raise named(a, b)
            return matmul(a, b)

        def one_matrix_only(a, b):
            """A batch on the right was refused. Its leading axes broadcast with those of a."""
            if b.ndim > 2:
                raise named(a, b)
            return matmul(a, b)

        def inner_sizes_not_compared(a, b):
            """The inner sizes were left to NumPy, whose error names other things: compare them first, and name both
            shapes."""
            return a.new(a.array @ b.array)

        def leading_axes_named_alone(a, b):
            """Leading axes that do not fit are refused by somebody else's error, which does not show what a and b
            are: let yours name both whole shapes."""
            if a.shape[-1] != b.shape[-2]:
                raise named(a, b)
            broadcast_shape(a.shape[:-2], b.shape[:-2])
            return matmul(a, b)

        def summed_to_float64(a, b):
            """The product came out as float64: keep the dtype of the inputs."""
            return a.new(matmul(a, b).array.astype(np.float64))

    class alternatives:
        def broadcast_and_sum(a, b):
            refuse_unequal_inner(a, b)
            products = a.array[..., :, :, None] * b.array[..., None, :, :]
            return a.new(products.sum(axis=-2, dtype=a.dtype))

        def einsum(a, b):
            refuse_unequal_inner(a, b)
            return a.new(np.einsum("...ij,...jk->...ik", a.array, b.array))

        def loops(a, b):
            refuse_unequal_inner(a, b)
            lead = broadcast_shape(a.shape[:-2], b.shape[:-2])
            left = np.broadcast_to(a.array, (*lead, *a.shape[-2:]))
            right = np.broadcast_to(b.array, (*lead, *b.shape[-2:]))
            out = np.zeros((*lead, a.shape[-2], b.shape[-1]), a.dtype)
            for i in range(a.shape[-2]):
                for j in range(b.shape[-1]):
                    for p in range(a.shape[-1]):
                        out[..., i, j] += left[..., i, p] * right[..., p, j]
            return a.new(out)

        def plain(a, b):
            if a.shape[-1] != b.shape[-2]:
                raise named(a, b)
            try:
                return a.new(a.array @ b.array)
            except ValueError:
                raise named(a, b) from None


def fits(shape, want):
    return len(shape) == len(want) and all(w in (None, n) for n, w in zip(shape, want, strict=True))


def exchanged(shape, i, j):
    shape = list(shape)
    shape[i], shape[j] = shape[j], shape[i]
    return tuple(shape)


def all_pairs(got, want):
    return [(i, j) for i, j in combinations(range(len(got)), 2) if fits(exchanged(got, i, j), want)]


class tensor_debug_shape:
    def oracle(arrays, torch):
        """By trying every order of the axes that torch can transpose to."""
        got = numbers(arrays["got"])
        want = tuple(None if n < 0 else n for n in numbers(arrays["want, -1 for any"]))
        x = torch.empty(got, device="meta")
        found = [
            pair
            for pair in combinations(range(x.ndim), 2)
            if not fits(tuple(x.shape), want) and fits(tuple(x.transpose(*pair).shape), want)
        ]
        return {"pairs": np.array(found, dtype=np.int64).reshape(-1, 2)}

    class mistakes:
        def fitting_shape_not_noticed(got, want):
            """Exchanges were reported for a shape that fits as it is: return an empty list first of all."""
            return all_pairs(got, want)

        def first_only(got, want):
            """The search stopped at the first exchange that fits. There may be several: collect them all."""
            return [] if fits(got, want) else all_pairs(got, want)[:1]

        def blanks_taken_literally(got, want):
            """None was compared with the sizes like a number. It stands for any size."""
            return (
                []
                if tuple(got) == tuple(want)
                else [(i, j) for i, j in combinations(range(len(got)), 2) if exchanged(got, i, j) == tuple(want)]
            )

        def neighbours_only(got, want):
            """Only neighbouring axes were exchanged. Any two can be the ones."""
            return [] if fits(got, want) else [p for p in all_pairs(got, want) if p[1] == p[0] + 1]

        def both_orders(got, want):
            """Every exchange was reported twice, as (i, j) and (j, i). It is the same exchange: give i < j only."""
            return [] if fits(got, want) else [q for p in all_pairs(got, want) for q in (p, p[::-1])]

        def last_first(got, want):
            """The right exchanges, in descending order: let i and then j rise."""
            return [] if fits(got, want) else all_pairs(got, want)[::-1]

        def counted_from_one(got, want):
            """The axes were counted from 1. The first axis is 0."""
            return [] if fits(got, want) else [(i + 1, j + 1) for i, j in all_pairs(got, want)]

        def counted_from_the_end(got, want):
            """The axes were counted from the end. Give them from the front, so that i < j."""
            return [] if fits(got, want) else [(i - len(got), j - len(got)) for i, j in all_pairs(got, want)]

        def sizes_not_axes(got, want):
            """These are the sizes of the axes, not their places in the shape."""
            return [] if fits(got, want) else [(got[i], got[j]) for i, j in all_pairs(got, want)]

        def places_that_differ(got, want):
            """These are the places where the shapes differ. That two places differ does not mean that exchanging them
            helps: try it, and blanks have to be tried too."""
            if len(got) != len(want):
                return []
            wrong = tuple(i for i, (n, w) in enumerate(zip(got, want, strict=True)) if w not in (None, n))
            return [wrong] if len(wrong) == 2 else []

        def lengths_not_compared(got, want):
            """Shapes of different length were compared up to the shorter one: no exchange can mend the number of
            axes."""
            n = min(len(got), len(want))
            if fits(got[:n], want[:n]):
                return []
            return [p for p in combinations(range(len(got)), 2) if fits(exchanged(got, *p)[:n], want[:n])]

    class alternatives:
        def by_orders(got, want):
            if fits(got, want):
                return []
            moved = [
                [i for i, axis in enumerate(order) if i != axis]
                for order in permutations(range(len(got)))
                if fits([got[axis] for axis in order], want)
            ]
            return sorted(tuple(pair) for pair in moved if len(pair) == 2)

        def nested_loops(got, want):
            found = []
            for i in range(len(got)):
                for j in range(i + 1, len(got)):
                    if not fits(got, want) and fits(exchanged(got, i, j), want):
                        found.append((i, j))
            return found
