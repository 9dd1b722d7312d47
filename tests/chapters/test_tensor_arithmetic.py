"""Chapter 01 calculates as NumPy does, over every pattern of broadcasting, in the dtypes that PyTorch's rules give."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

from gradwright.chapters import tensor as chapter
from gradwright.chapters.tensor import Tensor, arange, float32, float64, int32, int64, ones, tensor, zeros

SIZES = (0, 1, 2, 3)


# Elementwise operations, every pattern


PATTERNS = [shape for ndim in range(3) for shape in itertools.product(SIZES, repeat=ndim)]


@pytest.mark.parametrize("a_shape", [*PATTERNS, (2, 1, 3), (1, 3, 1)], ids=str)
def test_every_pattern_of_broadcasting(a_shape, same):
    rng = np.random.default_rng(len(PATTERNS))
    for b_shape in [*PATTERNS, (2, 1, 3), (3, 1, 1)]:
        a, b = rng.standard_normal(a_shape), rng.standard_normal(b_shape)
        try:
            wanted = a + b
        except ValueError:
            with pytest.raises(ValueError, match=r"do not broadcast: axis -\d") as refused:
                tensor(a) + tensor(b)
            assert str(a_shape) in str(refused.value) and str(b_shape) in str(refused.value)
            continue
        same(tensor(a) + tensor(b), np.asarray(wanted))
        assert chapter.broadcast_shapes(a_shape, b_shape) == np.shape(wanted)


def test_the_error_names_the_axis_that_does_not_fit():
    with pytest.raises(ValueError, match=r"shapes \(5, 1, 2\) and \(3, 4, 2\) do not broadcast: axis -3 is 5 .* 3"):
        zeros(5, 1, 2) * zeros(3, 4, 2)


OPERATORS = ["+", "-", "*", "/", "**", "<", "<=", ">", ">=", "==", "!="]


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_with_tensors_and_numbers_on_either_side(operator, same):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 2, (3, 1)), rng.uniform(0.5, 2, (2, 3, 4))[:, :, ::-2]
    calculate = eval(f"lambda p, q: p {operator} q")
    same(calculate(tensor(a), tensor(b)), calculate(a, b))
    same(calculate(tensor(a), 2), calculate(a, 2))
    same(calculate(2.5, tensor(a)), calculate(2.5, a))
    same(calculate(tensor(a), np.float64(2)), calculate(a, 2))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 1.5, math.inf, math.nan])
def test_powers_of_floats(exponent):
    x = np.array([0.25, 1, 2, 3.5])
    for dtype in (float32, float64):
        powers = tensor(x, dtype=dtype) ** exponent
        assert powers.dtype == dtype
        np.testing.assert_allclose(powers.array, x**exponent, rtol=1e-6)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "neg", "abs"])
def test_functions_of_one_input(name):
    x = np.random.default_rng(1).uniform(0.5, 2, (4, 3)).T[::-1]
    wanted = {"neg": np.negative}.get(name, getattr(np, name, None))(x)
    np.testing.assert_allclose(getattr(tensor(x), name)().array, wanted, rtol=1e-15)
    if name not in ("neg", "abs"):
        assert getattr(tensor([1, 2]), name)().dtype == float32


def test_logic():
    a, b = tensor([True, True, False]), tensor([True, False, False])
    assert (a & b).tolist() == [True, False, False]
    assert (a | b).tolist() == [True, True, False]
    assert (~a).tolist() == [False, False, True]
    assert (True & b).tolist() == b.tolist() and (True | b).all()
    assert (a.all().item(), a.any().item(), zeros(0).bool().all().item()) == (False, True, True)
    assert (tensor([[1, 0], [2, 3]]) > 0).all(1).tolist() == [False, True]


# dtypes: the rules of PyTorch, by category and then by width


NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def category(name: str) -> int:
    return 0 if name == "bool" else 2 if name.startswith("float") else 1


@pytest.mark.parametrize("a", NAMES)
def test_promotion_of_every_pair(a):
    for b in NAMES:
        p, q = category(a), category(b)
        within = np.promote_types(a, b) if p == q else np.dtype(a if p > q else b)
        expected = {(True, True): within, (False, False): within}
        expected[True, False] = np.dtype(a) if p >= q else np.dtype(b)
        expected[False, True] = np.dtype(b) if q >= p else np.dtype(a)
        for (a_axes, b_axes), wanted in expected.items():
            x, y = ones((2,) if a_axes else (), dtype=a), ones((3, 2) if b_axes else (), dtype=b)
            assert chapter.result_type(x, y) == wanted, (a, a_axes, b, b_axes)
            assert (x * y).dtype == wanted


def test_numbers_keep_the_dtype_unless_they_are_of_a_larger_kind():
    for dtype in (chapter.float16, float32, float64):
        x = ones(3, dtype=dtype)
        assert all(y.dtype == dtype for y in (x + 2.5, 2 * x, x / 3, x**2, x - True, 1 / x, x + np.float64(1)))
    assert (arange(3) + 2.5).dtype == float32
    assert (arange(3) + 2).dtype == int64
    assert (ones(3, dtype=int32) * 2).dtype == int32
    assert (ones(3, dtype=chapter.bool_) + 1).dtype == int64
    assert (arange(3) / 2).dtype == (arange(3) / arange(1, 4)).dtype == float32
    assert (arange(3) == 1.0).dtype == chapter.bool_
    assert (ones(3, dtype=int32) / ones((), dtype=float64)).dtype == float64


def test_a_quotient_of_whole_numbers_is_not_taken_in_a_dtype_that_is_too_small():
    x = tensor([0, 3, 250], dtype=chapter.uint8)
    np.testing.assert_array_equal((x / tensor(1000)).array, np.float32([0, 0.003, 0.25]))
    np.testing.assert_array_equal((tensor(-500) / x[1:]).array, np.float32(-500) / np.float32([3, 250]))


def test_conversions_of_dtype():
    x = tensor([0.0, 1.5])
    assert (x.float() is x, x.double().dtype, x.long().tolist(), x.bool().tolist()) == (
        True,
        float64,
        [0, 1],
        [False, True],
    )
    assert x.to(float64).to(float32).dtype == float32


# Reductions


SUMMED = [None, 0, 1, -1, -3, (0, 2), (-1, 0), (0, 1, 2), ()]


@pytest.mark.parametrize("dim", SUMMED, ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(dim, keepdim):
    x = np.random.default_rng(2).standard_normal((4, 3, 4))[::-1, :, ::2]
    t = Tensor(np.random.default_rng(2).standard_normal((4, 3, 4)))[::-1, :, ::2]
    axis = None if dim == () else dim
    for name, function in (("sum", np.sum), ("mean", np.mean), ("amax", np.max), ("amin", np.min), ("all", np.all)):
        wanted = np.asarray(function(x, axis=axis, keepdims=keepdim))
        result = getattr(t, name)(dim, keepdim)
        assert result.shape == wanted.shape and result.dtype == wanted.dtype
        np.testing.assert_allclose(result.array, wanted, rtol=1e-13)


def test_reductions_keep_their_dtype():
    assert ones(3, dtype=chapter.float16).sum().dtype == chapter.float16
    assert ones(3, dtype=chapter.uint8).sum().dtype == ones(3, dtype=chapter.bool_).sum().dtype == int64
    assert ones(3).mean().dtype == float32
    with pytest.raises(TypeError, match=r"mean of int64 .* x\.float\(\)"):
        arange(3).mean()


def test_reductions_over_nothing():
    x = zeros(0, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.sum().item() == 0
        assert math.isnan(x.mean().item())
        assert x.mean(0).shape == (3,) and np.isnan(x.mean(0).array).all()
        assert x.mean(1, keepdim=True).shape == x.amax(1, keepdim=True).shape == (0, 1)
    for reduce in (x.max, x.amin, x.argmax, lambda: x.max(0)):
        with pytest.raises(ValueError, match=r"over axis 0 of shape \(0, 3\) does not exist"):
            reduce()


def test_max_and_min_say_where():
    x = tensor([[2, 7, 7], [5, 1, 0]])
    values, indices = x.max(1)
    assert (values.tolist(), indices.tolist()) == ([7, 5], [1, 0])
    low = x.min(dim=0, keepdim=True)
    assert (low.values.tolist(), low.indices.tolist()) == ([[2, 1, 0]], [[0, 1, 1]])
    assert (x.max().item(), x.min().item(), x.argmax().item(), x.argmin(1).tolist()) == (7, 0, 1, [0, 2])
    assert tensor(3.0).max(0).values.item() == 3.0
    assert math.isnan(tensor([1.0, math.nan]).max().item())


# Matrix products


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        *[((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2))],
        *[((4, 2, 3), (3, 5)), ((2, 3), (4, 3, 5)), ((4, 2, 3), (4, 3, 5)), ((4, 1, 2, 3), (5, 3, 2))],
        *[
            ((0, 3), (3, 2)),
            ((2, 0), (0, 3)),
            ((4, 2, 0), (0, 3)),
            ((0, 2, 3), (3, 2)),
            ((0,), (0,)),
            ((4, 0, 3), (3, 2)),
        ],
    ],
    ids=str,
)
def test_matmul_of_every_pattern(a_shape, b_shape):
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal(a_shape), rng.standard_normal(b_shape)
    result = tensor(a) @ tensor(b)
    assert result.shape == np.shape(a @ b)
    np.testing.assert_allclose(result.array, a @ b, rtol=1e-13)
    turned = tensor(np.ascontiguousarray(b.T)).permute(*range(b.ndim - 1, -1, -1))
    np.testing.assert_allclose((tensor(a) @ turned).array, a @ b, rtol=1e-13)


def test_matmul_says_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(4, 5\): axis -1 of the first is 3, axis -2 of the second 4"):
        zeros(2, 3) @ zeros(4, 5)
    with pytest.raises(ValueError, match=r"\(2, 4, 3\) and \(5, 3, 2\): leading shapes \(2,\) and \(5,\)"):
        zeros(2, 4, 3) @ zeros(5, 3, 2)
    for a, b, text in [
        ((2, 3), (4,), r"\(2, 3\) and \(4,\): axis -1 of the first is 3, axis -1 of the second 4"),
        ((4,), (2, 3, 5), r"\(4,\) and \(2, 3, 5\): axis -1 of the first is 4, axis -2 of the second 3"),
        ((3,), (4,), r"\(3,\) and \(4,\): axis -1 of the first is 3, axis -1 of the second 4"),
    ]:
        with pytest.raises(ValueError, match=text):
            zeros(*a) @ zeros(*b)
    with pytest.raises(ValueError, match="needs an axis to sum over"):
        zeros(2) @ tensor(1.0)
    with pytest.raises(TypeError, match="matmul of float32 and float64"):
        zeros(2, 2) @ zeros(2, 2, dtype=float64)
