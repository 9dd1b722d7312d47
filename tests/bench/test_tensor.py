"""The comparison of chapter 01 is honest: the same memory, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.bench import tensor
from autograder.bench.harness import agree
from gradwright.chapters import operations as third
from gradwright.chapters import tensor as first

OURS = tensor.Side(first.from_numpy, third.from_numpy)
NUMPYS = tensor.Side(np.asarray, np.asarray)


@pytest.mark.parametrize("size", [1, 10, 100, 1000])
def test_both_sides_give_the_same_numbers(size: int) -> None:
    found = list(tensor.comparisons([size]))
    assert len({(one.group, one.name) for one in found}) == len(found) == sum(map(len, tensor.OPERATIONS.values()))
    for comparison in found:
        assert {"Gradwright", "NumPy"} <= set(comparison.sides)
        agree(comparison)


@pytest.mark.parametrize("size", [1, 10, 5000])
def test_both_sides_read_the_same_memory_with_the_same_strides(size: int) -> None:
    arrays = tensor.memory(size)
    ours = vars(tensor.operands(size, arrays, OURS))
    numpys = vars(tensor.operands(size, arrays, NUMPYS))
    for name, array in numpys.items():
        seen = ours[name].numpy()
        assert seen.dtype == array.dtype == (np.int64 if name in ("picks", "places") else np.float32), name
        assert (seen.shape, seen.ctypes.data) == (array.shape, array.ctypes.data), name
        walked = [n > 1 for n in array.shape]
        assert [s for s, w in zip(seen.strides, walked, strict=True) if w] == [
            s for s, w in zip(array.strides, walked, strict=True) if w
        ], name


@pytest.mark.parametrize("size", tensor.SIZES)
def test_the_matrix_has_as_many_elements_as_its_size_says(size: int) -> None:
    rows, columns = tensor.shape_of(size)
    assert rows * columns == size
    assert rows <= columns <= 3 * rows


def test_operands_named_strided_and_transposed_are_that() -> None:
    seen = tensor.operands(100, tensor.memory(100), NUMPYS)
    assert seen.x.shape == seen.s.shape == seen.p.shape == (10, 10)
    assert seen.x.flags.c_contiguous and seen.p.flags.f_contiguous
    assert not (seen.s.flags.c_contiguous or seen.gaps.flags.c_contiguous)
    assert seen.a.shape == (1, 10, 10)
    assert tensor.operands(10_000, tensor.memory(10_000), NUMPYS).a.shape == (2, 64, 64)
