"""Chapter 10 beside PyTorch: formats, result dtypes under autocast, and the scaler's state machine."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradwright
from gradwright import amp, nn, optim
from gradwright.chapters import precision
from gradwright.nn import functional as F

pytestmark = pytest.mark.torch

F16, F32 = np.float16, np.float32


def bits(array):
    return np.where(np.isnan(array), 0, np.asarray(array, F32).view(np.uint32))


@pytest.mark.parametrize("convert", ["half", "bfloat16"])
@pytest.mark.parametrize("seed", range(3))
def test_a_million_numbers_are_rounded_as_pytorch_does(convert, seed):
    rng, n = np.random.default_rng(seed), 1_000_000
    x = rng.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32)
    x |= 0x00400000 * (x & 0x7F800000 == 0x7F800000).astype(np.uint32)  # quiet nans only
    x[: n // 2] &= 0xFFFF0000 if convert == "bfloat16" else 0xFFFFF000  # half of them on a number, or halfway
    x[: n // 4] |= 0x00008000
    x = x.view(F32)
    ours = {"half": precision.to_float16, "bfloat16": precision.to_bfloat16}[convert]
    wanted = getattr(torch.from_numpy(x), convert)().float().numpy()
    np.testing.assert_array_equal(bits(ours(x)), bits(wanted))


# float16 in the engine


@pytest.mark.parametrize("program", [
    lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x - y, lambda x, y: x @ y.T,
    lambda x, y: x.sum(), lambda x, y: x.sum(0), lambda x, y: x.mean(1), lambda x, y: x.exp(), lambda x, y: x.tanh(),
    lambda x, y: x.relu(), lambda x, y: x.softmax(1), lambda x, y: x.reshape(-1)[3:9] * 2, lambda x, y: x.amax(1),
])  # fmt: skip
def test_float16_tensors_have_pytorchs_values_and_gradients(program):
    rng = np.random.default_rng(5)
    arrays = [rng.uniform(0.5, 2, (3, 8)).astype(F16) for _ in range(2)]
    ours = [gradwright.tensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]
    got, wanted = program(*ours), program(*theirs)
    seed = rng.uniform(0.5, 1, tuple(wanted.shape)).astype(F16)
    got.backward(gradwright.tensor(np.asarray(seed)))
    wanted.backward(torch.from_numpy(np.asarray(seed)))
    pairs = [(got, wanted), *[(a.grad, b.grad) for a, b in zip(ours, theirs, strict=True) if b.grad is not None]]
    for a, b in pairs:
        assert a.dtype == b.detach().numpy().dtype == F16
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("program", [
    lambda x: x * 1e5, lambda x: 1e5 * x, lambda x: x * 1e-8, lambda x: x + 1e5, lambda x: x - 0.1, lambda x: x / 1e-6,
    lambda x: x / 1e5, lambda x: 1e5 / x, lambda x: (x / 300) ** 2, lambda x: x > 70_000, lambda x: x == 0.1,
])  # fmt: skip
def test_numbers_beside_float16(program):
    array = np.array([0.5, 30_000, 0.1, -2, 6e4], F16)
    x, y = gradwright.tensor(array, requires_grad=True), torch.from_numpy(array.copy()).requires_grad_()
    ours, theirs = program(x), program(y)
    with np.errstate(over="ignore", invalid="ignore"):
        assert ours.numpy().dtype == theirs.numpy().dtype if not theirs.requires_grad else ours.dtype == F16
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=2e-3)
        if theirs.requires_grad:
            ours.sum().backward()
            theirs.sum().backward()
            finite = np.isfinite(y.grad.numpy())  # of 1 / x PyTorch has nan where its square is inf
            np.testing.assert_allclose(x.grad.numpy()[finite], y.grad.numpy()[finite], rtol=3e-3)


# autocast

# What PyTorch's list for the CPU has in common with ours: products and losses. Norms are on its list for GPUs alone.
CALLS = {
    "matmul": lambda t, f, x, y: x @ y.T,
    "matmul of float16 and float32": lambda t, f, x, y: x.half() @ y.T,
    "a vector": lambda t, f, x, y: x @ y[0],
    "a stack": lambda t, f, x, y: x.reshape(1, 3, 4) @ y.T,
    "mm": lambda t, f, x, y: x.mm(y.T),
    "addmm": lambda t, f, x, y: t.addmm(y[:, 0], x, y.T),
    "linear": lambda t, f, x, y: f.linear(x, y),
    "linear with a bias": lambda t, f, x, y: f.linear(x, y, y[:, 0]),
    "two layers": lambda t, f, x, y: f.linear(f.linear(x, y).relu(), y[:, :3]),
    "einsum": lambda t, f, x, y: t.einsum("ij,kj->ik", x, y),
    "a product, then a loss": lambda t, f, x, y: f.mse_loss(x @ y.T, x @ x.T),
    "l1_loss": lambda t, f, x, y: f.l1_loss(x @ y.T, y @ x.T),
    "huber_loss": lambda t, f, x, y: f.huber_loss(x @ y.T, y @ x.T),
    "binary cross entropy": lambda t, f, x, y: f.binary_cross_entropy_with_logits(x @ y.T, (y @ x.T).sigmoid()),
    "cross entropy": lambda t, f, x, y: f.cross_entropy(x @ y.T, t.tensor([0, 1, 2])),
    "prod": lambda t, f, x, y: (x @ y.T).prod(1),
    "relu": lambda t, f, x, y: (x @ y.T).relu(),
    "a sum of two": lambda t, f, x, y: (x @ y.T) + x[:, :3],
    "a product of two": lambda t, f, x, y: (x @ y.T) * 2,
    "cat": lambda t, f, x, y: t.cat([x @ y.T, x], 1),
    "float64": lambda t, f, x, y: x.double() @ y.double().T,
    "addition alone": lambda t, f, x, y: x + y,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_results_under_autocast(name, low):
    """dtype and values; where PyTorch has bfloat16 we have float32 that holds numbers of bfloat16."""
    rng = np.random.default_rng(6)
    a, b = (rng.uniform(0.5, 1.5, (3, 4)).astype(F32) for _ in range(2))
    x, y = gradwright.tensor(a, requires_grad=True), gradwright.tensor(b, requires_grad=True)
    u, v = torch.from_numpy(a.copy()).requires_grad_(), torch.from_numpy(b.copy()).requires_grad_()
    with gradwright.autocast("cpu", dtype=getattr(gradwright, low)):
        ours = CALLS[name](gradwright, F, x, y)
    with torch.autocast("cpu", dtype=getattr(torch, low)):
        theirs = CALLS[name](torch, torch.nn.functional, u, v)
    expected = {torch.float16: F16, torch.bfloat16: F32, torch.float32: F32, torch.float64: np.float64}
    assert ours.dtype == expected[theirs.dtype]
    digits = 2e-3 if low == "float16" else 2e-2
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().double().numpy(), rtol=digits, atol=digits)
    if low == "bfloat16" and theirs.dtype == torch.bfloat16 and name not in ("a product of two",):
        assert (precision.to_bfloat16(ours.detach().numpy()) == ours.detach().numpy()).all()
    ours.sum().backward()
    theirs.sum().backward()
    for p, q in ((x, u), (y, v)):
        assert (p.grad is None) == (q.grad is None)
        if q.grad is not None:
            assert (p.grad.dtype, q.grad.dtype) == (F32, torch.float32)
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=4 * digits, atol=4 * digits)


def test_our_lists_are_pytorchs_lists_for_gpus():
    """By its documentation, `Autocast Op Reference`, for what both have; mean, var and std are ours alone."""
    lower = {"matmul", "product", "add_product", "einsum_of", "affine"}
    wide = {"exp", "expm1", "log", "log1p", "power", "rsqrt", "reciprocal", "sum_over", "norm", "prod", "cumsum"}
    wide |= {"softmax", "log_softmax", "softplus_of", "normalize", "normalize_by", "mean_cross_entropy"}
    wide |= {"soft_cross_entropy", "squared_errors", "absolute_errors", "huber_errors", "bce_errors", "kl_errors"}
    assert {f.__name__ for f in precision.LOWER} == lower
    assert {f.__name__ for f in precision.IN_FLOAT32} - wide == {
        "mean_over",
        "var",
        "std",
        "logsumexp",
        "kl_log_errors",
    }


# GradScaler


class Sides:
    """Two optimizers on each side, and a scaler."""

    def __init__(self, library, scaler, make, arrays):
        self.library, self.scaler = library, scaler
        self.leaves = [library.tensor(a.copy(), requires_grad=True) for a in arrays]
        self.optimizers = [make([p]) for p in self.leaves]

    def do(self, call, slopes):
        """What a call returns, or that it raises."""
        name, which = call
        try:
            if name == "grad":
                scaled = self.scaler.scale(self.library.tensor(slopes[which]))
                self.leaves[which].grad = self.library.tensor(np.array(scaled.numpy()))
            elif name == "update":
                self.scaler.update()
            elif name == "save":
                self.scaler.load_state_dict(self.scaler.state_dict())
            else:
                getattr(self.scaler, name)(self.optimizers[which])
        except (RuntimeError, AssertionError):
            return "raised"
        return "done"

    def seen(self):
        values = [np.array(p.detach().numpy()) for p in self.leaves]
        grads = [np.zeros(3, F32) if p.grad is None else np.array(p.grad.numpy()) for p in self.leaves]
        return np.array([*values, *grads])


def both(arrays, **options):
    ours = Sides(gradwright, amp.GradScaler("cpu", **options), lambda p: optim.SGD(p, 0.1, momentum=0.5), arrays)
    theirs = Sides(
        torch, torch.amp.GradScaler(device="cpu", **options), lambda p: torch.optim.SGD(p, 0.1, momentum=0.5), arrays
    )
    return ours, theirs


@pytest.mark.parametrize("seed", range(60))
def test_random_calls_in_any_order(seed):
    """Good and bad gradients, calls at right and wrong moments: the same results, refusals, scales and gradients."""
    rng = np.random.default_rng(seed)
    options = {
        "init_scale": float(2.0 ** rng.integers(0, 20)),
        "growth_interval": int(rng.integers(1, 4)),
        "growth_factor": float(rng.choice([2.0, 1.3])),
        "backoff_factor": float(rng.choice([0.5, 0.7])),
    }
    ours, theirs = both([rng.standard_normal(3).astype(F32) for _ in range(2)], **options)
    orderly = seed % 2
    for _ in range(60):
        slopes = rng.standard_normal((2, 3)).astype(F32)
        if rng.random() < 0.25:
            slopes[rng.integers(2), rng.integers(3)] = rng.choice([np.inf, -np.inf, np.nan])
        if orderly:
            which = [0, 1] if rng.random() < 0.5 else [int(rng.integers(2))]
            calls = [("grad", i) for i in which]
            calls += [("unscale_", i) for i in which if rng.random() < 0.5] + [("step", i) for i in which]
            calls += [("update", 0)] + [("save", 0)] * int(rng.random() < 0.2)
        else:
            calls = [(str(rng.choice(["grad", "grad", "unscale_", "step", "update"])), int(rng.integers(2)))]
        for call in calls:
            assert ours.do(call, slopes) == theirs.do(call, slopes), call
            assert ours.scaler.get_scale() == theirs.scaler.get_scale()
            np.testing.assert_allclose(ours.seen(), theirs.seen(), rtol=1e-6, atol=1e-6)
        a, b = ours.scaler.state_dict(), theirs.scaler.state_dict()
        assert a == b


def test_the_largest_scale_stays():
    ours, theirs = both([np.ones(3, F32)] * 2, init_scale=2.0**126, growth_interval=1)
    for _ in range(4):
        for call in (("grad", 0), ("step", 0), ("update", 0)):
            assert ours.do(call, np.full((2, 3), 1e-30, F32)) == theirs.do(call, np.full((2, 3), 1e-30, F32))
        assert ours.scaler.get_scale() == theirs.scaler.get_scale()
    assert ours.scaler.get_scale() == 2.0**127


def test_interface_and_defaults():
    ours, theirs = amp.GradScaler(), torch.amp.GradScaler(device="cpu")
    for name in (
        "get_scale",
        "get_growth_factor",
        "get_backoff_factor",
        "get_growth_interval",
        "is_enabled",
        "state_dict",
    ):
        assert getattr(ours, name)() == getattr(theirs, name)()
    for scaler in (ours, theirs):
        scaler.set_growth_factor(3.0)
        scaler.set_backoff_factor(0.25)
        scaler.set_growth_interval(7)
    assert ours.state_dict() == theirs.state_dict()
    public = {name for name in dir(theirs) if not name.startswith("_")}
    assert public <= set(dir(ours))


def script(torch, low):
    """A short training script, as it stands in any PyTorch tutorial."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    rng = np.random.default_rng(8)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(rng.uniform(-0.5, 0.5, tuple(p.shape)).astype(F32)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**30, growth_interval=10)
    losses, scales = [], []
    for _ in range(60):
        x, y = torch.tensor(rng.standard_normal((16, 8)).astype(F32)), torch.tensor(rng.integers(0, 4, 16))
        optimizer.zero_grad()
        with torch.autocast(device_type="cpu", dtype=low):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        scales.append(scaler.get_scale())
    return losses, scales


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_a_whole_training(low):
    with np.errstate(over="ignore", invalid="ignore"):
        ours, our_scales = script(gradwright, getattr(gradwright, low))
    theirs, their_scales = script(torch, getattr(torch, low))
    assert our_scales == their_scales
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-2)


def test_a_norm_under_autocast_has_pytorchs_values():
    array = np.random.default_rng(9).standard_normal((4, 6)).astype(F32)
    ours, theirs = nn.LayerNorm(6), torch.nn.LayerNorm(6)
    with gradwright.autocast(dtype=F16), torch.autocast("cpu", dtype=torch.float16):
        got, wanted = ours(gradwright.tensor(array).half()), theirs(torch.from_numpy(array).half())
    assert got.dtype == F32
    np.testing.assert_allclose(got.detach().numpy(), wanted.detach().float().numpy(), rtol=2e-3, atol=2e-3)
