"""What the tests of chapters share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def same():
    """same(result, wanted): a tensor and an array, equal in shape, dtype and every element."""

    def compare(result, wanted: np.ndarray) -> None:
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(result.array, wanted)

    return compare
