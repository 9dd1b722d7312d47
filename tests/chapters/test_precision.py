"""Chapter 10: formats to the last bit, autocast at the door, and a scaler whose skipped steps move nothing."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import gradwright
from gradwright import nn, optim
from gradwright.amp import GradScaler, autocast
from gradwright.autograd import detect_anomaly
from gradwright.chapters import precision
from gradwright.nn import functional as F

F16, F32 = np.float16, np.float32
INF, NAN = float("inf"), float("nan")


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


# GradScaler


def with_gradient(value, size=3):
    p = gradwright.ones(size, requires_grad=True)
    p.grad = gradwright.tensor(np.full(size, value, F32))
    return p


def used(**options):
    """A scaler that has scaled a loss."""
    scaler = GradScaler(**options)
    scaler.scale(gradwright.ones(1))
    return scaler


def frozen(optimizer):
    """Everything that an optimizer can move."""
    memory = [
        [value.numpy().copy() if isinstance(value, gradwright.Tensor) else value for value in kept.values()]
        for kept in optimizer.state.values()
    ]
    return [p.detach().numpy().copy() for group in optimizer.param_groups for p in group["params"]], memory


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_a_skipped_step_moves_neither_parameters_nor_moments_nor_counters(kind, bad):
    p = with_gradient(8.0)
    optimizer = getattr(optim, kind)([p], lr=0.1, **({"momentum": 0.9} if kind == "SGD" else {}))
    scaler = used(init_scale=8.0)
    scaler.step(optimizer)
    scaler.update()
    before = frozen(optimizer)
    p.grad[1] = bad
    scaler.step(optimizer)
    scaler.update()
    after = frozen(optimizer)
    np.testing.assert_equal(after, before)
    assert scaler.get_scale() == 4.0
    p.grad = gradwright.full((3,), 4.0)
    scaler.step(optimizer)
    assert optimizer.state[p]["step"] == 2


def test_clipping_sees_the_true_gradient():
    p = with_gradient(0.0, 2)
    p.grad = gradwright.tensor([3.0, 4.0]) * 1024
    optimizer, scaler = optim.SGD([p], lr=1.0), used(init_scale=1024.0)
    scaler.unscale_(optimizer)
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == 5.0
    scaler.step(optimizer)
    np.testing.assert_allclose(p.detach().numpy(), [0.4, 0.2], rtol=1e-6)


@pytest.mark.parametrize(("calls", "sentence"), [
    (["unscale_", "unscale_"], "unscale_() was called twice for this optimizer"),
    (["step", "unscale_"], "unscale_() after step()"),
    (["step", "step"], "step() was called twice"),
    (["update"], "update() before any step()"),
    (["step", "update", "update"], "update() before any step()"),
])  # fmt: skip
def test_calls_at_the_wrong_moment_say_what_to_do(calls, sentence):
    scaler, optimizer = used(), optim.SGD([with_gradient(1.0)], lr=0.1)
    do = {
        "unscale_": lambda: scaler.unscale_(optimizer),
        "step": lambda: scaler.step(optimizer),
        "update": scaler.update,
    }
    for call in calls[:-1]:
        do[call]()
    with pytest.raises(RuntimeError) as met:
        do[calls[-1]]()
    assert sentence in str(met.value)


@pytest.mark.parametrize("call", ["unscale_", "step", "update"])
def test_nothing_works_before_a_loss_was_scaled(call):
    arguments = [] if call == "update" else [optim.SGD([with_gradient(1.0)], lr=0.1)]
    with pytest.raises(RuntimeError, match=rf"{call}\(\) before scale\(\)"):
        getattr(GradScaler(), call)(*arguments)


def test_no_gradient_a_closure_a_half_gradient_and_a_wrong_device():
    p, scaler = gradwright.ones(2, requires_grad=True), used()
    optimizer = optim.SGD([p], lr=0.1)
    with pytest.raises(RuntimeError, match="found no gradient to look at"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="takes no closure"):
        scaler.step(optimizer, closure=lambda: 0)
    half = gradwright.ones(2, dtype=F16, requires_grad=True)
    half.sum().backward()
    with pytest.raises(ValueError, match="keep the weights in float32"):
        scaler.step(optim.SGD([half], lr=0.1))
    with pytest.raises(ValueError, match="device 'cuda'"):
        GradScaler("cuda")
    with pytest.raises(ValueError, match="does not grow"):
        GradScaler(growth_factor=1.0)
    with pytest.raises(ValueError, match="does not back off"):
        GradScaler(backoff_factor=1.0)


def test_lists_and_tuples_keep_their_kind_and_float16_its_range():
    scaler, one = GradScaler(init_scale=4.0), gradwright.ones(2)
    a, (b, c) = scaler.scale([one, (one, one)])
    assert [a.tolist(), b.tolist(), c.tolist()] == [[4.0, 4.0]] * 3
    assert type(scaler.scale((one,))) is tuple
    assert [t.tolist() for t in scaler.scale(t for t in [one])] == [[4.0, 4.0]]
    loss = gradwright.tensor([0.5], dtype=F16)
    assert GradScaler().scale(loss).tolist() == [32768.0]  # the scale itself, 65536, is inf in float16
    with pytest.raises(ValueError, match="takes a tensor or tensors in a list, and got a float"):
        scaler.scale(1.0)


def test_a_disabled_scaler_is_not_there():
    scaler, p = GradScaler(enabled=False), with_gradient(INF)
    optimizer, loss = optim.SGD([p], lr=1.0), gradwright.ones(1)
    assert scaler.scale(loss) is loss
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict({})
    assert p.detach().tolist() == [-INF] * 3
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)


def test_a_resumed_scaler_goes_on_where_the_other_stopped():
    def go(scaler, values):
        found = []
        for value in values:
            optimizer = optim.SGD([with_gradient(value)], lr=0.1)
            scaler.scale(gradwright.ones(1))
            scaler.step(optimizer)
            scaler.update()
            found.append(scaler.get_scale())
        return found

    values = [1, 1, INF, 1, 1, 1, 1, NAN, 1, 1, 1]
    whole = go(GradScaler(growth_interval=3), values)
    for stop in range(len(values)):
        first, second = GradScaler(growth_interval=3), GradScaler(init_scale=2.0)
        before = go(first, values[:stop])
        second.load_state_dict(first.state_dict())
        assert before + go(second, values[stop:]) == whole
    with pytest.raises(RuntimeError, match="the state is empty"):
        second.load_state_dict({})


def test_update_takes_a_scale_that_is_given():
    scaler, optimizer = used(), optim.SGD([with_gradient(1.0)], lr=0.1)
    scaler.unscale_(optimizer)
    scaler.update(gradwright.tensor(128.0))
    assert scaler.get_scale() == 128.0
    scaler.unscale_(optimizer)
    scaler.update(64)
    assert scaler.get_scale() == 64.0


# The three trainings

DATA = np.load(Path(gradwright.__file__).parents[1] / "data" / "digits.npz")
IMAGES, LABELS = (DATA["images"].reshape(-1, 64) / 16).astype(F32), DATA["labels"].astype(np.int64)
TRAINING, TESTING = np.split(np.random.default_rng(0).permutation(1797), [897])


class Schedule:
    taken = 0

    def step(self):
        self.taken += 1


def trained(half, scaled, weight=1e-5, init_scale=2.0**36, steps=210):
    gradwright.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, eps=1e-12)
    scaler, schedule, rng = GradScaler(init_scale=init_scale, growth_interval=25, enabled=scaled), Schedule(), None
    rng, skipped, zeros = np.random.default_rng(1), 0, []

    def loss_of():
        with autocast(dtype=F16, enabled=half):
            return weight * F.cross_entropy(model(gradwright.tensor(IMAGES[rows])), gradwright.tensor(LABELS[rows]))

    for _ in range(steps):
        rows = rng.choice(TRAINING, 64, replace=False)
        with np.errstate(over="ignore", invalid="ignore"):
            loss, taken = precision.scaled_step(loss_of, optimizer, scaler, list(model.parameters()), 1e-4, schedule)
        skipped += not taken
        zeros.append(float((model[0].weight.grad.numpy() == 0).mean()))
    with gradwright.no_grad():
        right = (model(gradwright.tensor(IMAGES[TESTING])).argmax(1).numpy() == LABELS[TESTING]).mean()
    assert schedule.taken == steps - skipped
    assert optimizer.state[model[0].weight]["step"] == steps - skipped
    return Counter(right=right, loss=loss / weight, skipped=skipped, first=zeros[0])


def test_float16_stalls_without_a_scale_and_matches_float32_with_one():
    wide, unscaled, scaled = trained(False, False), trained(True, False), trained(True, True)
    assert wide["right"] > 0.93
    assert abs(scaled["right"] - wide["right"]) <= 0.005
    assert unscaled["right"] < 0.5 and unscaled["loss"] > 1.5
    assert unscaled["first"] == 1.0 > 0.5 > scaled["first"]
    assert (wide["skipped"], unscaled["skipped"]) == (0, 0) and scaled["skipped"] > 3


def test_the_same_training_twice_gives_the_same_bits():
    assert trained(True, True, steps=30) == trained(True, True, steps=30)
