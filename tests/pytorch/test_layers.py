"""Chapter 04's layers beside PyTorch: outputs, every gradient and every buffer, in float64 to 1e-9."""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gradwright
from gradwright.chapters import layers

pytestmark = pytest.mark.torch

F32, F64 = np.float32, np.float64


def numbers(shape: tuple[int, ...], seed: int = 0, dtype: Any = F64) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def close(ours: Any, theirs: Any, dtype: Any = F64) -> None:
    if ours is None or theirs is None:
        assert ours is theirs is None
        return
    array, wanted = ours.detach().numpy(), theirs.detach().numpy()
    assert (array.shape, array.dtype) == (wanted.shape, wanted.dtype)
    digits = {"rtol": 1e-9, "atol": 1e-9} if dtype is F64 else {"rtol": 5e-5, "atol": 1e-4}
    np.testing.assert_allclose(array, wanted, **digits)


def twins(make: Callable, dtype: Any = F64) -> tuple[Any, Any]:
    """The same model on both sides, with the same random numbers in every parameter."""
    ours, theirs = make(gradwright), make(torch)
    ours, theirs = (m.double() if dtype is F64 else m.float() for m in (ours, theirs))
    names = [name for name, _ in theirs.named_parameters()]
    assert [name for name, _ in ours.named_parameters()] == names
    for i, ((_, mine), (_, other)) in enumerate(zip(ours.named_parameters(), theirs.named_parameters(), strict=True)):
        start = numbers(tuple(other.shape), 100 + i, dtype)
        layers.fill(mine, gradwright.tensor(start))
        with torch.no_grad():
            other.copy_(torch.from_numpy(start))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    return ours, theirs


def step(ours: Any, theirs: Any, x: np.ndarray, seed: int = 0, dtype: Any = F64) -> None:
    """Forward and backward on both sides, and everything that came of it is compared."""
    ours.zero_grad()
    theirs.zero_grad()
    real = x.dtype.kind == "f"
    mine, other = gradwright.tensor(x, requires_grad=real), torch.from_numpy(x.copy()).requires_grad_(real)
    got, wanted = ours(mine), theirs(other)
    close(got, wanted, dtype)
    assert got.requires_grad == wanted.requires_grad
    if wanted.requires_grad:
        begin = numbers(tuple(wanted.shape), seed + 1, dtype)
        got.backward(gradwright.tensor(begin))
        wanted.backward(torch.from_numpy(begin))
    close(mine.grad, other.grad, dtype)
    for (name, p), (also, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert name == also
        close(p.grad, q.grad, dtype)
    for key, value in theirs.state_dict().items():
        close(ours.state_dict()[key], value, dtype)


IDS = np.array([[0, 2, 2, 5], [1, 2, 0, 5]])
LAYERS: dict[str, tuple[Callable, np.ndarray]] = {
    "Linear": (lambda m: m.nn.Linear(4, 3), numbers((5, 4))),
    "Linear of one example": (lambda m: m.nn.Linear(4, 3), numbers((4,))),
    "Linear with positions": (lambda m: m.nn.Linear(4, 3), numbers((2, 5, 4))),
    "Linear without bias": (lambda m: m.nn.Linear(4, 3, bias=False), numbers((2, 1, 3, 4))),
    "Linear on an empty batch": (lambda m: m.nn.Linear(4, 3), numbers((0, 4))),
    "ReLU": (lambda m: m.nn.ReLU(), numbers((5, 4))),
    "GELU": (lambda m: m.nn.GELU(), numbers((5, 4))),
    "GELU tanh": (lambda m: m.nn.GELU(approximate="tanh"), numbers((5, 4))),
    "SiLU": (lambda m: m.nn.SiLU(), numbers((5, 4))),
    "Sigmoid": (lambda m: m.nn.Sigmoid(), numbers((5, 4))),
    "Tanh": (lambda m: m.nn.Tanh(), numbers((5, 4))),
    "Softmax": (lambda m: m.nn.Softmax(dim=1), numbers((5, 4, 2))),
    "Softmax last": (lambda m: m.nn.Softmax(-1), numbers((5, 4, 2))),
    "LayerNorm": (lambda m: m.nn.LayerNorm(4), numbers((5, 4))),
    "LayerNorm of one example": (lambda m: m.nn.LayerNorm(4), numbers((4,))),
    "LayerNorm with positions": (lambda m: m.nn.LayerNorm(4), numbers((2, 5, 4))),
    "LayerNorm over two axes": (lambda m: m.nn.LayerNorm((5, 4)), numbers((2, 3, 5, 4))),
    "LayerNorm over a list": (lambda m: m.nn.LayerNorm([4]), numbers((3, 4))),
    "LayerNorm eps": (lambda m: m.nn.LayerNorm(4, eps=0.5), numbers((5, 4)) * 0.1),
    "LayerNorm plain": (lambda m: m.nn.LayerNorm(4, elementwise_affine=False), numbers((5, 4))),
    "LayerNorm without bias": (lambda m: m.nn.LayerNorm(4, bias=False), numbers((5, 4))),
    "LayerNorm of equal numbers": (lambda m: m.nn.LayerNorm(4), np.ones((3, 4))),
    "LayerNorm of one number": (lambda m: m.nn.LayerNorm(1), numbers((3, 1))),
    "RMSNorm": (lambda m: m.nn.RMSNorm(4), numbers((5, 4))),
    "RMSNorm over two axes": (lambda m: m.nn.RMSNorm((5, 4)), numbers((2, 5, 4))),
    "RMSNorm eps": (lambda m: m.nn.RMSNorm(4, eps=0.3), numbers((5, 4)) * 0.1),
    "RMSNorm plain": (lambda m: m.nn.RMSNorm(4, elementwise_affine=False), numbers((2, 5, 4))),
    "RMSNorm of zeros": (lambda m: m.nn.RMSNorm(4), np.zeros((3, 4))),
    "BatchNorm1d": (lambda m: m.nn.BatchNorm1d(3), numbers((5, 3)) * 3 + 1),
    "BatchNorm1d with a length": (lambda m: m.nn.BatchNorm1d(3), numbers((2, 3, 4)) * 3 + 1),
    "BatchNorm1d of one long example": (lambda m: m.nn.BatchNorm1d(3), numbers((1, 3, 4))),
    "BatchNorm2d": (lambda m: m.nn.BatchNorm2d(3), numbers((2, 3, 4, 5)) * 3 + 1),
    "BatchNorm eps, momentum": (lambda m: m.nn.BatchNorm1d(3, eps=0.2, momentum=0.4), numbers((5, 3))),
    "BatchNorm average": (lambda m: m.nn.BatchNorm1d(3, momentum=None), numbers((5, 3))),
    "BatchNorm momentum 0": (lambda m: m.nn.BatchNorm1d(3, momentum=0.0), numbers((5, 3))),
    "BatchNorm plain": (lambda m: m.nn.BatchNorm2d(3, affine=False), numbers((2, 3, 4, 5))),
    "BatchNorm without bias": (lambda m: m.nn.BatchNorm1d(3, bias=False), numbers((5, 3))),
    "BatchNorm untracked": (lambda m: m.nn.BatchNorm1d(3, track_running_stats=False), numbers((5, 3))),
    "Embedding": (lambda m: m.nn.Embedding(6, 3), IDS),
    "Embedding, one id": (lambda m: m.nn.Embedding(6, 3), np.array(4)),
    "Embedding with padding": (lambda m: m.nn.Embedding(6, 3, padding_idx=2), IDS),
    "Embedding with padding from the end": (lambda m: m.nn.Embedding(6, 3, padding_idx=-1), IDS),
    "Flatten": (lambda m: m.nn.Flatten(), numbers((2, 3, 4))),
    "Flatten some": (lambda m: m.nn.Flatten(0, 1), numbers((2, 3, 4))),
    "Identity": (lambda m: m.nn.Identity(54, unused=1), numbers((2, 3))),
    "Dropout of nothing": (lambda m: m.nn.Dropout(0.0), numbers((2, 3))),
    "Dropout of all": (lambda m: m.nn.Dropout(1.0), numbers((2, 3))),
    "Sequential": (
        lambda m: m.nn.Sequential(m.nn.Linear(4, 5), m.nn.BatchNorm1d(5), m.nn.ReLU(), m.nn.Linear(5, 2)),
        numbers((6, 4)),
    ),
    "Sequential with names": (
        lambda m: (
            m.nn.Sequential({"first": m.nn.Linear(4, 5), "then": m.nn.Tanh()})
            if m is gradwright
            else m.nn.Sequential(OrderedDict(first=m.nn.Linear(4, 5), then=m.nn.Tanh()))
        ),
        numbers((6, 4)),
    ),
}


@pytest.mark.parametrize("dtype", [F64, F32], ids=["float64", "float32"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_over_three_steps_and_in_eval(name, dtype):
    make, x = LAYERS[name]
    ours, theirs = twins(make, dtype)
    x = x.astype(dtype) if x.dtype.kind == "f" else x
    for seed in range(3):
        step(ours, theirs, x * (1 + seed) if x.dtype.kind == "f" else x, seed, dtype)
    ours.eval()
    theirs.eval()
    step(ours, theirs, x, 7, dtype)
    assert ours.training is theirs.training is False


def test_the_state_of_one_side_loads_on_the_other():
    def make(m):
        return m.nn.Sequential(m.nn.Linear(4, 5), m.nn.BatchNorm1d(5), m.nn.Linear(5, 2)).double()

    ours, theirs = make(gradwright), make(torch)
    theirs(torch.from_numpy(numbers((6, 4))))
    ours.load_state_dict({name: gradwright.tensor(t.numpy()) for name, t in theirs.state_dict().items()})
    for name, t in theirs.state_dict().items():
        close(ours.state_dict()[name], t)
    step(ours, theirs, numbers((6, 4), 3))
    back = {name: torch.from_numpy(np.asarray(t.numpy())) for name, t in ours.state_dict().items()}
    theirs.load_state_dict(back, strict=True)


class Tied:
    """Made on both sides: parts below parts, a shared layer, a parameter of its own, None in between."""

    def __init__(self, m: Any):
        class Block(m.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = m.nn.Linear(3, 3, bias=False)
                self.scale = m.nn.Parameter(m.tensor([1.5]))
                self.nothing = None
                self.again = self.first
                self.register_buffer("mask", m.tensor([1.0, 0.0, 1.0]))
                self.register_buffer("scratch", m.tensor([1.0]), persistent=False)
                self.register_parameter("absent", None)

            def forward(self, x):
                return self.again(self.first(x) * self.mask) * self.scale

        class Model(m.nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = m.nn.ModuleList([Block(), Block()])
                self.heads = m.nn.ModuleDict({"a": m.nn.Linear(3, 2), "b": m.nn.Linear(3, 2)})
                self.heads["b"].weight = self.heads["a"].weight
                self.blocks[1].scale.requires_grad_(False)

            def forward(self, x):
                for block in self.blocks:
                    x = block(x)
                return self.heads["a"](x) - self.heads["b"](x)

        self.model = Model()


def test_names_of_everything_in_a_tree():
    ours, theirs = Tied(gradwright).model, Tied(torch).model
    for listing in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        assert [n for n, _ in getattr(ours, listing)()] == [n for n, _ in getattr(theirs, listing)()], listing
    assert [n for n, _ in ours.named_parameters("x")] == [n for n, _ in theirs.named_parameters("x")]
    assert [n for n, _ in ours.named_parameters(recurse=False)] == []
    own = [n for n, _ in ours.blocks[0].named_parameters(recurse=False)]
    assert own == [n for n, _ in theirs.blocks[0].named_parameters(recurse=False)]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert list(ours.state_dict(prefix="p.")) == list(theirs.state_dict(prefix="p."))
    order = [[], []]
    ours.apply(lambda module: order[0].append(type(module).__name__))
    theirs.apply(lambda module: order[1].append(type(module).__name__))
    assert order[0] == order[1]
    assert repr(ours.heads) == repr(theirs.heads)


def test_a_tree_with_shared_parts_learns_the_same():
    ours, theirs = twins(lambda m: Tied(m).model)
    step(ours, theirs, numbers((4, 3)))


REPRS = [
    *[lambda m: m.nn.Linear(3, 4, bias=False), lambda m: m.nn.GELU("tanh"), lambda m: m.nn.Softmax(-1)],
    *[lambda m: m.nn.LayerNorm((3, 4)), lambda m: m.nn.RMSNorm(4), lambda m: m.nn.Embedding(5, 3, padding_idx=0)],
    *[lambda m: m.nn.Flatten(), lambda m: m.nn.Identity(), lambda m: m.nn.ModuleDict({"a": m.nn.ReLU()})],
    lambda m: m.nn.BatchNorm1d(3),
    lambda m: m.nn.Sequential(m.nn.Linear(2, 3), m.nn.Sequential(m.nn.Tanh(), m.nn.Sigmoid())),
]


@pytest.mark.parametrize("place", range(len(REPRS)))
def test_modules_are_printed_alike(place):
    assert repr(REPRS[place](gradwright)) == repr(REPRS[place](torch))


# Initialisation: the same distributions


def spread(m: Any, name: str, shape: tuple[int, ...], **options: Any) -> tuple[float, float, float]:
    t = m.zeros(shape, dtype=m.float64)
    assert getattr(m.nn.init, name)(t, **options) is t
    array = t.numpy()
    return float(array.mean()), float(array.std()), float(np.abs(array).max())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *[("uniform_", {"a": -2.0, "b": 3.0}), ("normal_", {"mean": 1.0, "std": 2.0}), ("constant_", {"val": 0.3})],
        *[("zeros_", {}), ("ones_", {}), ("xavier_uniform_", {}), ("xavier_uniform_", {"gain": 2.0})],
        *[("xavier_normal_", {}), ("kaiming_uniform_", {}), ("kaiming_uniform_", {"a": math.sqrt(5)})],
        *[("kaiming_normal_", {"nonlinearity": "relu"}), ("kaiming_normal_", {"mode": "fan_out", "a": 0.2})],
        ("kaiming_normal_", {"nonlinearity": "tanh"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(60, 200), (300, 20, 3)], ids=str)
def test_the_distributions_of_init(name, options, shape):
    gradwright.manual_seed(0)
    torch.manual_seed(0)
    ours, theirs = spread(gradwright, name, shape, **options), spread(torch, name, shape, **options)
    np.testing.assert_allclose(ours, theirs, rtol=0.03 if "uniform" in name else 0.2, atol=0.05)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=0.03)


@pytest.mark.parametrize("name", ["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu", "conv2d"])
def test_gains(name):
    assert layers.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name), rel=1e-15)
    assert layers.calculate_gain("leaky_relu", 0.3) == pytest.approx(torch.nn.init.calculate_gain("leaky_relu", 0.3))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda m: m.nn.Linear(200, 300), "weight"),
        (lambda m: m.nn.Linear(200, 3000), "bias"),
        (lambda m: m.nn.Embedding(300, 40), "weight"),
        (lambda m: m.nn.BatchNorm2d(8), "running_var"),
        (lambda m: m.nn.LayerNorm(8), "weight"),
    ],
)
def test_layers_begin_with_pytorchs_distributions(make, name):
    gradwright.manual_seed(1)
    torch.manual_seed(1)
    ours, theirs = getattr(make(gradwright), name).detach().numpy(), getattr(make(torch), name).detach().numpy()
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose([ours.std(), ours.mean()], [theirs.std(), theirs.mean()], rtol=0.05, atol=0.02)
    if name == "bias" or theirs.shape == (300, 200):
        assert np.abs(ours).max() == pytest.approx(np.abs(theirs).max(), rel=1e-2)


# Functional forms


def test_functional_forms():
    x, w, b = numbers((2, 5, 4)), numbers((4,), 1), numbers((4,), 2)
    for name, arguments in {
        "layer_norm": lambda m: ((4,), m.tensor(w), m.tensor(b), 1e-3),
        "rms_norm": lambda m: ((4,), m.tensor(w)),
        "linear": lambda m: (m.tensor(numbers((3, 4), 5)), m.tensor(numbers((3,), 6))),
    }.items():
        ours = getattr(gradwright.nn.functional, name)(gradwright.tensor(x), *arguments(gradwright))
        close(ours, getattr(torch.nn.functional, name)(torch.tensor(x), *arguments(torch)))
    running = numbers((5,), 8), np.abs(numbers((5,), 9))
    for training in (True, False):
        mine, other = ([m.tensor(r) for r in running] for m in (gradwright, torch))
        ours = gradwright.nn.functional.batch_norm(gradwright.tensor(x), *mine, training=training, momentum=0.3)
        close(ours, torch.nn.functional.batch_norm(torch.tensor(x), *other, training=training, momentum=0.3))
        for t, u in zip(mine, other, strict=True):
            close(t, u)


def test_deep_copies_and_frozen_parts_as_in_pytorch():
    def run(m):
        model = m.nn.Sequential(m.nn.Linear(3, 2), m.nn.BatchNorm1d(2)).double()
        twin = copy.deepcopy(model)
        with m.no_grad():
            model[0].weight.fill_(0.5)
        model[0].bias.requires_grad_(False)
        model(m.tensor(numbers((4, 3)))).sum().backward()
        return [
            twin[0].weight is model[0].weight,
            bool((twin[0].weight == model[0].weight).all()),
            twin[0].weight.grad is None,
            model[0].bias.grad is None,
            twin[1].num_batches_tracked.item(),
            model[1].num_batches_tracked.item(),
        ]

    assert run(gradwright) == run(torch)
