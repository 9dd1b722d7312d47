"""Chapter 10: formats to the last bit, and autocast at the door."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gradwright
from gradwright import nn
from gradwright.amp import autocast
from gradwright.autograd import detect_anomaly
from gradwright.chapters import precision
from gradwright.nn import functional as F

F16, F32 = np.float16, np.float32
INF = float("inf")


def bits(array):
    """To be compared exactly, -0 and 0 apart; what is nan is only nan."""
    return np.where(np.isnan(array), 0, np.asarray(array, F32).view(np.uint32))


# Formats


def test_every_number_of_float16_stays_itself():
    every = np.arange(2**16, dtype=np.uint16).view(F16)
    every = every[~np.isnan(every)].astype(F32)
    assert len(every) == 2 * 0x7C01
    np.testing.assert_array_equal(bits(precision.to_float16(every)), bits(every))


@pytest.mark.parametrize("kind", ["any bits", "around the range of float16", "halfway between neighbours"])
def test_a_million_numbers_are_rounded_as_numpy_does(kind):
    rng, n = np.random.default_rng(3), 1_000_000
    if kind == "any bits":
        x = rng.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32)
        x = (x | 0x00400000 * (x & 0x7F800000 == 0x7F800000)).view(F32)  # no nan that NumPy would warn of
    elif kind == "around the range of float16":
        x = (rng.standard_normal(n) * np.exp2(rng.integers(-30, 18, n))).astype(F32)
    else:
        half = rng.integers(0, 0x7BFF, n).astype(np.uint16)
        x = ((half.view(F16).astype(np.float64) + (half + np.uint16(1)).view(F16)) / 2).astype(F32)
    with np.errstate(over="ignore"):
        wanted = x.astype(F16).astype(F32)
    np.testing.assert_array_equal(bits(precision.to_float16(x)), bits(wanted))


def test_bfloat16_is_the_nearest_and_even_where_two_are():
    rng = np.random.default_rng(4)
    x = rng.integers(0, 0x7F7F0000, 200_000).astype(np.uint32).view(F32)
    below = (x.view(np.uint32) & 0xFFFF0000).view(F32)
    above = (below.view(np.uint32) + 0x10000).view(F32)
    got = precision.to_bfloat16(x)
    down, up = x.astype(np.float64) - below, above.astype(np.float64) - x
    even = np.where(below.view(np.uint32) >> 16 & 1, above, below)
    np.testing.assert_array_equal(got, np.where(down == up, even, np.where(down < up, below, above)))


# float16 in the engine


def test_float16_adds_up_in_float32_and_overflows_without_a_warning():
    tenths = gradwright.full((40_000,), 0.1, dtype=F16)
    assert tenths.sum().item() == F16(40_000 * float(F16(0.1)))
    assert (gradwright.tensor([60_000.0]) * 2).half().item() == INF
    leaf = gradwright.tensor([1.0], dtype=F16, requires_grad=True)
    (leaf.float() * 1e6).sum().backward()
    assert (leaf.grad.dtype, leaf.grad.item()) == (F16, INF)


def test_module_half_and_a_name_that_is_no_dtype():
    model = nn.Linear(2, 2).half()
    assert {p.dtype for p in model.parameters()} == {np.dtype(F16)}
    assert model(gradwright.ones(1, 2).half()).dtype == F16
    with pytest.raises(TypeError, match=r"cannot hold gradwright\.bfloat16: it holds float16"):
        gradwright.ones(2).to(gradwright.bfloat16)


def test_dtypes_that_do_not_fit_are_still_refused_outside_of_autocast():
    x = gradwright.ones(2, 2)
    with pytest.raises(TypeError, match="matmul of float16 and float32"):
        x.half() @ x
    with pytest.raises(TypeError, match="linear: the input holds float16 and a parameter float32"):
        nn.Linear(2, 2)(x.half())
    with pytest.raises(TypeError, match="layer_norm: the input holds float64"):
        nn.LayerNorm(2)(x.double())


@pytest.mark.parametrize("layer", [nn.LayerNorm(4), nn.RMSNorm(4), nn.BatchNorm1d(4)])
def test_a_norm_widens_float16_beside_its_parameters(layer):
    x = gradwright.randn(6, 4).half()
    wide = copy.deepcopy(layer)(x.float())
    narrow = layer(x)
    assert narrow.dtype == F32
    np.testing.assert_array_equal(narrow.detach().numpy(), wide.detach().numpy())


# autocast

LOW = [(F16, lambda x: x.astype(F16)), (gradwright.bfloat16, precision.to_bfloat16)]


@pytest.mark.parametrize(("dtype", "narrow"), LOW)
def test_a_product_is_rounded_where_it_comes_in_and_where_it_goes_out(dtype, narrow):
    rng = np.random.default_rng(0)
    a, b, u = (rng.standard_normal(shape).astype(F32) for shape in [(5, 300), (300, 4), (5, 4)])
    x, y = gradwright.tensor(a, requires_grad=True), gradwright.tensor(b, requires_grad=True)
    with autocast(dtype=dtype):
        out = x @ y
    low_a, low_b, low_u = (narrow(array).astype(F32) for array in (a, b, u))
    np.testing.assert_array_equal(out.detach().numpy(), narrow(low_a @ low_b))
    out.backward(gradwright.tensor(low_u).to(out.dtype))
    assert x.grad.dtype == y.grad.dtype == F32
    np.testing.assert_array_equal(x.grad.numpy(), narrow(low_u @ low_b.T).astype(F32))
    np.testing.assert_array_equal(y.grad.numpy(), narrow(low_a.T @ low_u).astype(F32))


def test_what_a_product_keeps_for_backward_has_16_bits():
    x, layer = gradwright.randn(32, 64), nn.Linear(64, 64)
    x.requires_grad_()
    with autocast(dtype=F16):
        out = layer(x)
    assert precision.saved_bytes(out.grad_fn) == {"float16": 2 * (32 * 64 + 64 * 64)}
    assert precision.saved_bytes(layer(x).grad_fn) == {}  # a leaf's own memory: input and weight


@pytest.mark.parametrize("call", [
    lambda x: x.softmax(1), lambda x: x.log_softmax(1), lambda x: x.logsumexp(1), lambda x: x.exp(), lambda x: x.log(),
    lambda x: x.sum(), lambda x: x.mean(1), lambda x: x.var(1), lambda x: x.std(), lambda x: x.norm(),
    lambda x: x.prod(1), lambda x: x.cumsum(1), lambda x: x**2, lambda x: F.softplus(x), lambda x: x.rsqrt(),
    lambda x: F.layer_norm(x, (4,)), lambda x: F.rms_norm(x, (4,)), lambda x: F.mse_loss(x, x * 0),
    lambda x: F.l1_loss(x, x * 0), lambda x: F.huber_loss(x, x * 0), lambda x: F.kl_div(x, x * 0),
    lambda x: F.cross_entropy(x, gradwright.tensor([0, 1, 2])),
    lambda x: F.cross_entropy(x, gradwright.tensor([0, 1, 2]), label_smoothing=0.1),
    lambda x: F.nll_loss(x, gradwright.tensor([0, 1, 2])),
    lambda x: F.binary_cross_entropy_with_logits(x, x * 0),
])  # fmt: skip
def test_fragile_operations_stay_in_float32(call):
    x = gradwright.rand(3, 4).half() + 1
    with autocast(dtype=F16):
        out = call(x)
        assert call(x.double()).dtype == np.float64
    assert out.dtype == F32


def test_all_others_take_what_comes():
    x = gradwright.rand(3, 4)
    with autocast(dtype=F16):
        assert [(x.half() + x).dtype, (x.half() * 2).dtype, x.half().relu().dtype, x.relu().dtype] == [
            F32,
            F16,
            F16,
            F32,
        ]
        assert gradwright.cat([x, x.half()]).dtype == F32
        assert x.half().reshape(12).amax().dtype == F16


def test_blocks_nest_and_the_innermost_decides():
    x = gradwright.rand(2, 2)
    with autocast(dtype=F16):
        with autocast(enabled=False):
            assert (x @ x).dtype == F32
            with pytest.raises(TypeError, match="matmul of float16 and float32"):
                x.half() @ x
        with autocast(dtype=gradwright.bfloat16):
            assert (x @ x).dtype == F32
        assert (x @ x).dtype == F16
        with pytest.raises(ZeroDivisionError), autocast(enabled=False):
            raise ZeroDivisionError
        assert (x @ x).dtype == F16
    assert (x @ x).dtype == F32
    decorated = autocast(dtype=F16)(lambda: (x @ x).dtype)
    assert [decorated(), decorated()] == [F16, F16]


def test_float64_and_no_grad_and_einsum_and_vectors():
    x = gradwright.rand(3, 3)
    with autocast(dtype=F16):
        assert (x.double() @ x.double()).dtype == np.float64
        with pytest.raises(TypeError, match="matmul of float64 and float16"):
            x.double() @ x
        with gradwright.no_grad():
            assert ((x @ x).dtype, (x @ x[0]).dtype, (x[0] @ x[0]).shape) == (F16, F16, ())
        assert gradwright.einsum("ij,jk->ik", x, x).dtype == F16


def test_an_anomaly_is_found_where_the_rounding_made_it():
    x = gradwright.full((2, 2), 300.0)
    with detect_anomaly(), autocast(dtype=F16), pytest.raises(RuntimeError, match="made inf"):
        x @ x
    with autocast(dtype=F16), detect_anomaly(), pytest.raises(RuntimeError, match="product made inf in its output"):
        x @ x


def test_a_changed_input_is_noticed_in_backward():
    x = gradwright.rand(2, 2, requires_grad=True)
    low = x.half() * 1
    with autocast(dtype=F16):
        out = low @ low
    low.mul_(2)
    with pytest.raises(RuntimeError, match="changed in place"):
        out.sum().backward()


@pytest.mark.parametrize(("given", "sentence"), [
    ({"device_type": "cuda"}, "autocast for the device 'cuda'"),
    ({"dtype": F32}, "autocast to <class 'numpy.float32'> is not offered: use float16 or bfloat16"),
])  # fmt: skip
def test_what_autocast_does_not_offer(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        autocast(**given)


def test_a_decorated_function_leaves_each_thread_as_it_was():
    """Two threads are inside at once; the one that came from a block of its own leaves first."""
    inside, first_left, dtypes = threading.Barrier(2), threading.Event(), {}
    x = gradwright.ones(2, 2)

    @autocast(enabled=False)
    def exact(first):
        inside.wait(10)
        if not first:
            first_left.wait(10)
        return (x @ x).dtype

    def work(first):
        with autocast(dtype=F16, enabled=first):
            dtypes[first] = exact(first), (x @ x).dtype
            first_left.set()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (True, False)))
    assert dtypes == {True: (F32, F16), False: (F32, F32)}
