"""Chapter 01: the strided Tensor beside NumPy, which has the same views and arithmetic; dtypes by PyTorch's rules."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradwright.chapters import tensor as chapter
from gradwright.chapters.tensor import Tensor, arange, float32, float64, int64, ones, tensor, zeros

# Views


def random_key(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple:
    """Numbers and slices for some of the axes, with None and `...` among them."""
    items: list = []
    for size in shape[: rng.integers(0, len(shape) + 1)]:
        if size and rng.random() < 0.25:
            items.append(int(rng.integers(-size, size)))
        else:
            bounds = [int(n) if rng.random() < 0.6 else None for n in rng.integers(-size - 2, size + 3, 2)]
            items.append(slice(*bounds, int(rng.choice([-3, -2, -1, 1, 2]))))
    for extra in (None, Ellipsis, None):
        if rng.random() < 0.4:
            items.insert(int(rng.integers(0, len(items) + 1)), extra)
    return tuple(items)


def random_view(rng: np.random.Generator, x, ndim: int):
    """One step of a view expression, the same for a Tensor and an array: a function of either."""
    kind = rng.choice(["index", "permute", "expand", "unsqueeze"])
    if kind == "index" or not ndim:
        key = random_key(rng, x.shape)
        return lambda y: y[key]
    if kind == "permute":
        dims = tuple(int(i) for i in rng.permutation(ndim))
        return lambda y: y.permute(*dims) if isinstance(y, Tensor) else y.transpose(dims)
    if kind == "unsqueeze":
        dim = int(rng.integers(0, ndim + 1))
        return lambda y: y.unsqueeze(dim) if isinstance(y, Tensor) else np.expand_dims(y, dim)
    shape = (2, *(3 if n == 1 else n for n in x.shape))
    return lambda y: y.expand(*shape) if isinstance(y, Tensor) else np.broadcast_to(y, shape)


@pytest.mark.parametrize("seed", range(100))
def test_a_random_view_expression_is_numpys_in_values_strides_and_storage(seed, same):
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4, 5], size=rng.integers(0, 4)))
    base = rng.standard_normal(shape)
    x = y = base
    t = u = tensor(base)
    for _ in range(rng.integers(1, 5)):
        if y.ndim > 5:
            break
        step = random_view(rng, y, y.ndim)
        y, u = np.asarray(step(y)), step(u)
    same(u, y)
    assert u.storage is t.storage
    walked = [(n, s) for n, s in zip(u.shape, u.strides, strict=True) if n > 1]
    if y.size and np.shares_memory(x, y):  # NumPy copies where a result has no axes
        assert walked == [(n, s // 8) for n, s in zip(y.shape, y.strides, strict=True) if n > 1]
    t.storage.data[...] += 1
    np.testing.assert_array_equal(u.array, y + 1)


@pytest.mark.parametrize("seed", range(100))
def test_reshape_is_a_view_exactly_where_numpys_is(seed, same):
    rng = np.random.default_rng(seed)
    base = np.arange(math.prod(shape := tuple(int(n) for n in rng.choice([1, 2, 3, 4, 6], size=rng.integers(1, 4)))))
    base = base.reshape(shape).astype(float)
    dims = tuple(int(i) for i in rng.permutation(len(shape)))
    key = tuple(slice(None, None, int(rng.choice([1, 1, 2, -1]))) for _ in shape)
    y, u = base.transpose(dims)[key], tensor(base).permute(*dims)[key]
    factors = [int(n) for n in np.array([d for d in range(1, y.size + 1) if y.size % d == 0])]
    first = int(rng.choice(factors))
    new = (first, y.size // first) if rng.random() < 0.7 else (-1,)
    try:
        y.reshape(new, copy=False)
        free = True
    except ValueError:
        free = False
    reshaped = u.reshape(*new)
    same(reshaped, y.reshape(new))
    assert (reshaped.storage is u.storage) == free
    if not free:
        with pytest.raises(ValueError, match="without a copy: use reshape"):
            u.view(*new)


def test_views_of_nothing(same):
    x = zeros(3, 0, 2)
    assert x.stride() == (2, 2, 1)
    for view in (
        x[2],
        x[:, ::-1],
        x.T,
        x.mT[..., None],
        x.expand(4, 3, 0, 2),
        x[1:1],
        x.reshape(0, 7),
        zeros(0, 5)[::-2],
    ):
        assert view.numel() == 0
        assert view.storage.data.size == 0
    same(x.sum(1), np.zeros((3, 2), np.float32))


def test_shape_methods(same):
    x = arange(24).reshape(2, 3, 4)
    y = np.arange(24).reshape(2, 3, 4)
    same(x.T, y.T)
    same(x.mT, y.swapaxes(-1, -2))
    same(x.transpose(0, -1), y.swapaxes(0, 2))
    same(x[0].t(), y[0].T)
    same(x.flatten(), y.reshape(-1))
    same(x.flatten(1), y.reshape(2, 12))
    same(x.flatten(0, 1), y.reshape(6, 4))
    same(x.reshape((4, -1)), y.reshape(4, 6))
    same(x.view(3, 8), y.reshape(3, 8))
    same(x[:1].squeeze(), y[0])
    same(x[:1, :1].squeeze(1), y[:1, 0])
    same(x[:1].squeeze(-1), y[:1])
    same(x[:, :1].expand(-1, 5, -1), np.broadcast_to(y[:, :1], (2, 5, 4)))
    same(tensor(7).flatten(), np.array([7]))
    same(tensor(7).reshape(1, 1), np.array([[7]]))
    same(tensor(7).transpose(0, -1), np.array(7))
    assert all(type(size) is int for size in x.reshape(np.int64(4), -1).shape)
    assert (x.dim(), x.numel(), x.size(), x.size(-1), x.stride(0), x[1].storage_offset()) == (
        3,
        24,
        (2, 3, 4),
        4,
        12,
        12,
    )


def test_contiguous_copies_only_what_is_not(same):
    x = arange(12).reshape(3, 4)
    assert x.contiguous() is x
    assert x[:1].T.is_contiguous()  # an axis of size 1 has no gaps
    assert not x.T.is_contiguous()
    dense = x.T.contiguous()
    assert dense.is_contiguous() and dense.storage is not x.storage
    same(dense, np.arange(12).reshape(3, 4).T)


def test_storage_is_shared_by_views_and_by_nothing_else():
    x = arange(12).reshape(3, 4)
    shared = [x[1], x.T, x[::-1], x.expand(2, 3, 4), x.reshape(4, 3), x[None], x.unsqueeze(1), x.view(12)]
    own = [x + 0, x.clone(), x.T.reshape(12), tensor(x), x.to(float32), x.T.contiguous(), x.sum()]
    assert all(y.storage is x.storage for y in shared)
    assert not any(y.storage is x.storage for y in own)


def test_a_kernels_array_becomes_the_storage_without_a_copy(same):
    array = np.arange(6.0).reshape(2, 3)
    assert np.shares_memory(Tensor(array).storage.data, array)
    assert np.shares_memory(chapter.from_numpy(array).array, array)
    for uneven in (array[:, ::2], array[::-1], np.broadcast_to(array, (2, 2, 3))):
        t = Tensor(uneven)
        assert t.is_contiguous() and not np.shares_memory(t.storage.data, array)
        same(t, uneven)


@pytest.mark.parametrize("dims", [(1, 0, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)], ids=str)
def test_a_kernel_leaves_the_order_in_memory_as_it_was(dims, same):
    base = np.random.default_rng(0).standard_normal((2, 3, 4))
    x, y = tensor(base).permute(*dims), base.transpose(dims)
    t = x + 1
    assert t.strides == x.strides and not t.is_contiguous()
    np.testing.assert_array_equal(t.storage.data, (base + 1).ravel())
    same(t, y + 1)
    same(t[::-1, 1:], (y + 1)[::-1, 1:])
    same(t.reshape(24), (y + 1).reshape(24))
    assert t.contiguous().is_contiguous() and t.contiguous().strides == chapter.row_major_strides(t.shape)


# Python's side


def test_numbers_lists_and_iteration():
    x = tensor([[1.5, 2.0], [3.0, 4.0]])
    assert (x[0, 0].item(), float(x[0, 0]), int(x[1, 0]), f"{x[0, 0]:.2f}") == (1.5, 1.5, 3, "1.50")
    assert (len(x), [row.tolist() for row in x], 2.0 in x[0].tolist()) == (2, [[1.5, 2.0], [3.0, 4.0]], True)
    assert (bool(tensor([0])), [10, 20, 30][tensor(2)]) == (False, 30)
    assert x[tensor(1)].tolist() == [3.0, 4.0]
    np.testing.assert_array_equal(np.asarray(x.T), [[1.5, 3.0], [2.0, 4.0]])
    assert np.shares_memory(x.numpy(), x.storage.data)
    assert len({x, x.T, x}) == 2
    assert 3 in x and 5 not in x and x[0, 1] in x


def test_printed_form():
    assert repr(tensor([[1, 2], [3, 4]])) == "tensor([[1, 2],\n        [3, 4]])"
    assert repr(tensor(2.5)) == "tensor(2.5)"
    assert repr(ones(2, dtype=float64)) == "tensor([1., 1.], dtype=float64)"
    assert repr(zeros(0, 3)) == "tensor([], size=(0, 3))"


ERRORS = {
    "an element past the end": (IndexError, r"index 3 is out of range for axis 0 of size 3", lambda x: x[3]),
    "too many indices": (IndexError, r"3 indices are too many for 2 axes", lambda x: x[0, 0, 0]),
    "two ellipses": (IndexError, r"only one `\.\.\.`", lambda x: x[..., ...]),
    "a list as index": (TypeError, r"a list: \[0, 1\]", lambda x: x[[0, 1]]),
    "a float as index": (TypeError, r"a float: 1\.0", lambda x: x[1.0]),
    "a truth value as index": (TypeError, r"a bool: True", lambda x: x[True]),
    "a step of zero": (ValueError, r"zero", lambda x: x[::0]),
    "an axis that is not there": (IndexError, r"dim 2 is out of range for 2 axes: use -2 to 1", lambda x: x.sum(2)),
    "an axis named twice": (ValueError, r"dim \(0, -2\) names an axis twice", lambda x: x.sum((0, -2))),
    "a truth value as axis": (TypeError, r"a whole number, and this one is a bool: True", lambda x: x.sum(True)),
    "a float as axis": (TypeError, r"a float: 0\.0", lambda x: x.transpose(0.0, 1)),
    "two axes for argmax": (TypeError, r"a tuple: \(0, 1\)", lambda x: x.argmax((0, 1))),
    "two axes for max": (TypeError, r"a tuple: \(0, 1\)", lambda x: x.max((0, 1))),
    "an axis of a number": (IndexError, r"dim 1 is out of range for 0 axes", lambda x: x.sum().sum(1)),
    "axes to flatten in the wrong order": (ValueError, r"from axis 1 to axis 0", lambda x: x.flatten(1, 0)),
    "an axis to permute that is not there": (ValueError, r"dims \(-1, -3\)", lambda x: x.permute(-1, -3)),
    "a permutation with a gap": (ValueError, r"do not name each of the 2 axes", lambda x: x.permute(0, 0)),
    "a reshape that does not fit": (
        ValueError,
        r"\(3, 4\) has 12 elements and \(5, 2\) has 10",
        lambda x: x.reshape(5, 2),
    ),
    "a reshape with two blanks": (ValueError, r"does not settle the -1", lambda x: x.reshape(-1, -1)),
    "negative sizes": (ValueError, r"0 or more, or -1 once .* \(-3, -4\)", lambda x: x.reshape(-3, -4)),
    "a size that is no whole number": (TypeError, r"'float' object", lambda x: x.reshape(3.0, 4)),
    "a blank that does not divide": (ValueError, r"does not settle the -1", lambda x: x.reshape(5, -1)),
    "a broadcast that shrinks": (ValueError, r"\(3, 4\) cannot fill \(1, 4\)", lambda x: x.broadcast_to((1, 4))),
    "an expand of a new axis to -1": (ValueError, r"an axis that is new has none", lambda x: x.expand(-1, 3, 4)),
    "the item of many": (ValueError, r"shape \(3, 4\) has 12: use tolist", lambda x: x.item()),
    "the truth of many": (ValueError, r"use any\(\) or all\(\)", bool),
    "the length of a number": (TypeError, r"no length", lambda x: len(x[0, 0])),
    "iterating over a number": (TypeError, r"no length", lambda x: list(x[0, 0])),
    "a float tensor as index": (TypeError, r"holds float32", lambda x: [1, 2][x[0, 0]]),
    "an operation that is not offered": (AttributeError, r"no attribute 'softmax'", lambda x: x.softmax(-1)),
    "an argument that is not offered": (TypeError, r"axis", lambda x: x.sum(axis=1)),
    "an array beside a tensor": (TypeError, r"do not mix: make it a tensor first", lambda x: np.ones(4) + x),
    "an array compared with a tensor": (TypeError, r"do not mix", lambda x: x == np.ones(4)),
    "a complex number": (TypeError, r"does not support", lambda x: x * np.complex64(1j)),
    "a number that does not fit": (
        OverflowError,
        r"uint8 has no room for 300: .*x\.long\(\)",
        lambda x: x.to("uint8") < 300,
    ),
    "a dtype that is not held": (TypeError, r"cannot hold complex128", lambda x: x.to(complex)),
    "a list beside a tensor": (TypeError, r"unsupported operand", lambda x: x - [1, 2, 3, 4]),
    "t() of three axes": (ValueError, r"use transpose or mT", lambda x: x[None].t()),
}


@pytest.mark.parametrize("what", ERRORS)
def test_errors_name_the_value_and_the_remedy(what):
    error, text, call = ERRORS[what]
    with pytest.raises(error, match=text):
        call(zeros(3, 4))


# Makers


def test_makers(same):
    assert (tensor([1.0, 2]).dtype, tensor([1, 2]).dtype, tensor(True).dtype) == (float32, int64, chapter.bool_)
    assert (tensor(np.ones(2)).dtype, tensor(np.float64(1)).dtype, tensor([1.0], dtype=float64).dtype) == (float64,) * 3
    same(arange(5), np.arange(5))
    same(arange(1, 2, 0.25), np.arange(1, 2, 0.25, dtype=np.float32))
    same(chapter.full((2, 2), 7), np.full((2, 2), 7))
    same(chapter.full((2,), 0.5), np.full(2, 0.5, np.float32))
    same(chapter.eye(2, 3), np.eye(2, 3, dtype=np.float32))
    same(chapter.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32))
    same(chapter.zeros_like(arange(3)), np.zeros(3, int))
    same(chapter.ones_like(arange(3), dtype=float64), np.ones(3))
    assert chapter.empty((2, 3)).shape == zeros(2, 3).shape == zeros((2, 3)).shape == (2, 3)


def test_tensor_copies_and_from_numpy_does_not():
    array = np.zeros(3)
    copied, shared = tensor(array), chapter.from_numpy(array)
    array[0] = 1
    assert (copied[0].item(), shared[0].item()) == (0.0, 1.0)
    with pytest.raises(ValueError, match=r"strides \(-8,\) is not in row-major order"):
        chapter.from_numpy(array[::-1])
    with pytest.raises(TypeError, match="cannot hold complex128"):
        tensor([1j])
    with pytest.raises(TypeError, match="cannot hold uint16"):
        chapter.from_numpy(np.zeros(3, np.uint16))
    with pytest.raises(TypeError, match="requires_grad"):
        tensor([1.0], requires_grad=True)


def test_a_seed_repeats_the_stream():
    chapter.manual_seed(3)
    first = [chapter.rand(2, 2), chapter.randn(3), chapter.randint(0, 10, (4,)), chapter.randperm(5)]
    chapter.manual_seed(3)
    again = [chapter.rand(2, 2), chapter.randn(3), chapter.randint(0, 10, (4,)), chapter.randperm(5)]
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert sorted(first[3].tolist()) == [0, 1, 2, 3, 4]
    own = chapter.Generator(3)
    assert chapter.rand(2, 2, generator=own).tolist() == first[0].tolist()
    assert first[0].dtype == float32 and first[0].amin().item() >= 0 and first[0].amax().item() < 1


# The door


def test_every_method_passes_the_door_and_keeps_the_class():
    seen = []

    class Watched(Tensor):
        @staticmethod
        def apply(function, *inputs, **options):
            seen.append(function.__name__)
            return function(*inputs, **options)

    x = Watched(np.arange(6.0).reshape(2, 3))
    calls = {
        "add": lambda: 1 + x,
        "subtract": lambda: 1 - x,
        "divide": lambda: x / 2,
        "power": lambda: x**2,
        "negative": lambda: -x,
        "exp": x.exp,
        "greater": lambda: x > 1,
        "index": lambda: x[0],
        "permute": lambda: x.T,
        "view": lambda: x.reshape(3, 2),
        "broadcast_to": lambda: x.expand(2, 2, 3),
        "copy": x.clone,
        "cast": x.float,
        "sum_over": x.sum,
        "mean_over": x.mean,
        "max_over": x.max,
        "matmul": lambda: x @ x.T,
    }
    for name, call in calls.items():
        seen.clear()
        assert type(call()) is Watched
        assert seen[-1] == name
    seen.clear()
    x @ x[0]
    assert seen == ["index", "view", "matmul", "view"]
    seen.clear()
    x.T.reshape(6)
    assert seen == ["permute", "copy"]


def test_a_rewritten_exercise_is_not_answered_from_memory():
    def wrong(shape):
        return (0,) * len(shape)

    assert chapter.remember(chapter.row_major_strides, (2, 3)) == (3, 1)
    assert chapter.remember(wrong, (2, 3)) == (0, 0)
    assert chapter.remember(list, (2, 3)) == (2, 3)


def test_functions_of_the_package_are_the_methods():
    import gradwright

    x = gradwright.tensor([[3.0, 1.0], [2.0, 5.0]])
    assert gradwright.sum(x, dim=0).tolist() == [5.0, 6.0]
    assert gradwright.matmul(x, x).tolist() == (x @ x).tolist()
    assert gradwright.bool == np.dtype("bool")
    with pytest.raises(TypeError, match=r"gradwright\.exp takes a Tensor first and got float"):
        gradwright.exp(1.0)
