"""Chapter 04's modules: what is registered, what a state holds, and layers by hand."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gradwright
from gradwright.chapters import layers
from gradwright.chapters.layers import (
    BatchNorm1d,
    Dropout,
    Embedding,
    Identity,
    LayerNorm,
    Linear,
    Module,
    ModuleDict,
    ModuleList,
    Parameter,
    ReLU,
    Sequential,
    Tanh,
    costs,
    no_grad,
    ones,
    randn,
    tensor,
    zeros,
)

from .layered import small

# Parameters


def test_what_is_made_of_a_parameter_is_a_tensor():
    p = Parameter(tensor([[1.0, 2.0], [3.0, 4.0]]))
    for made in (p.T, p[0], p + 1, p.detach(), p.data, p.reshape(4), p.clone()):
        assert type(made) is layers.Tensor
    (p * p).sum().backward()
    assert type(p.grad) is layers.Tensor
    assert p.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert repr(p).startswith("Parameter containing:\ntensor(")


def test_a_view_of_a_parameter_follows_it():
    p = Parameter(ones(2, 3))
    row = p[1]
    with no_grad():
        p.mul_(5)
    assert row.tolist() == [5.0, 5.0, 5.0]
    row.sum().backward()
    assert p.grad.tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]


def test_a_parameter_wants_a_tensor_of_floats():
    with pytest.raises(TypeError, match="takes a Tensor and got ndarray"):
        Parameter(np.ones(3))
    with pytest.raises(RuntimeError, match="only floats can require a gradient"):
        Parameter(tensor([1, 2]))


def test_another_dtype_leaves_the_parameter_the_same_object():
    model = small()
    before = list(model.parameters())
    model(randn(5, 3)).sum().backward()
    model.double()
    assert all(p is q for p, q in zip(model.parameters(), before, strict=True))
    assert {p.dtype for p in before} == {p.grad.dtype for p in before} == {np.dtype(np.float64)}
    assert model[1].running_mean.dtype == np.float64
    assert model[1].num_batches_tracked.dtype == np.int64
    model(randn(5, 3, dtype=np.float64)).sum().backward()
    with pytest.raises(TypeError, match="cannot be converted to int64"):
        model.to(np.int64)


# Names and state


def test_the_story_of_the_chapter():
    class HandMade(Module):
        def __init__(self, registered: bool):
            super().__init__()
            if registered:
                self.register_buffer("running_mean", zeros(2))
            else:
                self.running_mean = zeros(2)

        def forward(self, x):
            if self.training:
                self.running_mean = self.running_mean * 0.5 + x.mean(0) * 0.5
            return x - self.running_mean

    for registered, off in ((False, 8.0), (True, 0.0)):
        trained, loaded = HandMade(registered), HandMade(registered)
        trained(ones(4, 2) * 16)
        loaded.load_state_dict(trained.state_dict())
        assert (loaded.eval()(zeros(1, 2)) - trained.eval()(zeros(1, 2)))[0, 0].item() == off


def test_a_state_goes_there_and_back():
    model, other = small(), small()
    model(randn(6, 3))
    layers.ones_(other[0].weight)
    held, x = list(other.parameters()), randn(4, 3)
    assert other.load_state_dict(model.state_dict()) == ([], [])
    assert all(p is q for p, q in zip(other.parameters(), held, strict=True))
    assert other.eval()(x).tolist() == model.eval()(x).tolist()
    assert list(model.state_dict()) == [
        *("0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked"),
        *("3.module.weight", "3.module.bias", "4.weight", "4.bias"),
    ]


def test_strict_loading_says_all_that_is_wrong_and_changes_nothing():
    model = small()
    state = {name: t.clone() * 0 for name, t in model.state_dict().items()}
    state["0.weight"] = zeros(3, 4)
    state["extra"] = state.pop("1.running_mean")
    before = {name: t.clone().tolist() for name, t in model.state_dict().items()}
    with pytest.raises(RuntimeError) as refused:
        model.load_state_dict(state)
    for part in (
        "0.weight has shape (3, 4) in the state dict and (4, 3) here",
        "missing: 1.running_mean",
        "unexpected: extra",
    ):
        assert part in str(refused.value)
    with pytest.raises(RuntimeError, match=r"0\.weight has shape"):
        model.load_state_dict(state, strict=False)
    assert {name: t.tolist() for name, t in model.state_dict().items()} == before
    del state["0.weight"]
    found = model.load_state_dict(state, strict=False)
    assert (found.missing_keys, found.unexpected_keys) == (["0.weight", "1.running_mean"], ["extra"])


def test_names_that_cannot_be_registered():
    module = Module()
    module.register_buffer("mean", None)
    for register, wanted in ((module.register_parameter, "Parameter"), (module.add_module, "Module")):
        with pytest.raises(TypeError, match=f"takes a {wanted} or None"):
            register("x", tensor([1.0]))
    for name in ("", "a.b", "forward", "mean"):
        with pytest.raises(KeyError):
            module.register_parameter(name, None)
    del module.mean
    assert not hasattr(module, "mean")
    with pytest.raises(AttributeError):
        del module.mean


def test_a_scratch_buffer_is_not_saved_and_follows_the_dtype():
    module = Module()
    module.register_buffer("mask", ones(2), persistent=False)
    assert list(module.state_dict()) == []
    assert [name for name, _ in module.named_buffers()] == ["mask"]
    assert module.double().mask.dtype == np.float64
    assert "mask" in dir(module)


def test_containers():
    rows = ModuleList([Linear(1, 1), Tanh()])
    rows.append(ReLU()).insert(0, Identity())
    assert [type(m).__name__ for m in rows] == ["Identity", "Linear", "Tanh", "ReLU"]
    assert type(rows[1:3]) is ModuleList
    assert rows[-1] is rows[3]
    del rows[0]
    assert list(rows._modules) == ["0", "1", "2"]
    rows[0] = Tanh()
    assert [name for name, _ in rows.named_parameters()] == []
    named = ModuleDict({"a": Linear(1, 2)})
    named["b"] = named["a"]
    assert ("b" in named, len(named), list(named.keys())) == (True, 2, ["a", "b"])
    assert len(list(named.parameters())) == 2
    row = Sequential({"first": Linear(2, 3), "then": Tanh()})
    assert row.first is row[0]
    assert row[:1](ones(1, 2)).shape == (1, 3)


def test_frozen_parts_get_no_gradient():
    model = small()
    model[0].requires_grad_(False)
    model(randn(5, 3)).sum().backward()
    assert model[0].weight.grad is None
    assert model[4].weight.grad is not None
    model.zero_grad(set_to_none=False)
    assert model[4].weight.grad.abs().sum().item() == 0
    model.zero_grad()
    assert model[4].weight.grad is None


def test_a_deep_copy_stands_alone():
    model = small()
    twin = copy.deepcopy(model)
    layers.zeros_(model[0].weight)
    assert twin[0].weight.abs().sum().item() > 0
    assert [n for n, _ in twin.named_parameters()] == [n for n, _ in model.named_parameters()]


# Layers, by hand


def test_batch_norm_remembers_the_unbiased_variance():
    norm = BatchNorm1d(1).double()
    out = norm(tensor([[0.0], [2.0], [4.0], [6.0]], dtype=np.float64))
    assert norm.running_var.item() == pytest.approx(1.566667, abs=1e-6)
    assert norm.running_mean.item() == pytest.approx(0.3)
    assert out[:, 0].tolist() == pytest.approx([(x - 3) / (5 + 1e-5) ** 0.5 for x in (0, 2, 4, 6)])
    assert norm.num_batches_tracked.item() == 1
    with pytest.raises(ValueError, match=r"shape \(1, 1\) has fewer than two values for a channel"):
        norm(ones(1, 1).double())
    assert norm.eval()(ones(1, 1).double()).shape == (1, 1)
    norm.reset_running_stats()
    assert (norm.running_mean.item(), norm.running_var.item(), norm.num_batches_tracked.item()) == (0, 1, 0)


def test_dropout_keeps_the_mean_and_rests_in_eval():
    layer, x = Dropout(0.5, generator=gradwright.Generator(1)), ones(10000, requires_grad=True)
    out = layer(x)
    out.sum().backward()
    assert abs(out.mean().item() - 1) < 0.05
    assert set(out.tolist()) == {0.0, 2.0}
    assert x.grad.tolist() == out.tolist()
    assert layer(x).tolist() != out.tolist()
    assert layer.eval()(x) is x
    gradwright.manual_seed(5)
    first = Dropout(0.3)(x).tolist()
    gradwright.manual_seed(5)
    assert Dropout(0.3)(x).tolist() == first
    with pytest.raises(ValueError, match=r"p=1\.5 is no probability"):
        Dropout(1.5)


def test_an_embedding_sums_what_was_read_twice():
    layer = Embedding(4, 2, padding_idx=0)
    assert layer.weight[0].tolist() == [0, 0]
    layer(tensor([[1, 1, 0]])).sum().backward()
    assert layer.weight.grad.tolist() == [[0, 0], [2, 2], [0, 0], [0, 0]]
    for ids, error in ((tensor([4]), IndexError), (tensor([-1]), IndexError), (tensor([1.0]), TypeError)):
        with pytest.raises(error, match="embedding"):
            layer(ids)
    with pytest.raises(ValueError, match="padding_idx=9 names no row"):
        Embedding(4, 2, padding_idx=9)
    assert not Embedding.from_pretrained(ones(3, 2)).weight.requires_grad


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Linear(3, 2)(ones(5, 4)), r"\(5, 4\), is not as long as that of the weight, \(2, 3\)"),
        (lambda: Linear(3, 2)(ones(5, 3).double()), "the input holds float64 and a parameter float32"),
        (lambda: LayerNorm(4)(ones(5, 3)), r"last axes \(4,\) does not fit an input of shape \(5, 3\)"),
        (lambda: BatchNorm1d(3)(ones(5, 4)), r"shape \(5, 4\) does not have 3 channels"),
        (lambda: BatchNorm1d(3)(ones(5)), r"BatchNorm1d takes 2 or 3 axes and got an input of shape \(5,\)"),
        (lambda: ReLU(inplace=True), r"ReLU\(inplace=True\) is not offered"),
        (lambda: Linear(3, 2, device="cuda"), "device"),
        (lambda: Module()(1), "Module has no forward"),
        (lambda: layers.calculate_gain("swish"), "no gain is known for 'swish'"),
        (lambda: layers.kaiming_normal_(zeros(3)), r"shape \(3,\) has no fan-in"),
        (lambda: layers.kaiming_normal_(zeros(3, 3), mode="fan"), "mode='fan' is not offered"),
        (lambda: Linear(3, 2)([1.0, 2.0, 3.0]), r"linear takes tensors and got list: use tensor"),
        (lambda: Linear(3, 2)(np.ones((1, 3))), "linear takes tensors and got ndarray"),
        (lambda: LayerNorm(3)(np.ones((1, 3))), "layer_norm takes tensors and got ndarray"),
        (lambda: BatchNorm1d(3)([1.0]), "BatchNorm1d takes tensors and got list"),
        (lambda: Embedding(3, 2)([1]), "embedding takes tensors and got list"),
        (lambda: Linear(-1, 2), "in_features=-1 is no size"),
        (lambda: Linear(3, 2.0), "out_features=2.0 is no size"),
        (lambda: LayerNorm(3.5), "normalized_shape=3.5 is no size"),
        (lambda: BatchNorm1d("3"), "num_features='3' is no size"),
        (lambda: Embedding(4, -2), "embedding_dim=-2 is no size"),
        (lambda: Embedding.from_pretrained(ones(3)), r"a table of shape \(ids, width\) and got \(3,\)"),
        (lambda: Dropout(0.5)(tensor([1, 2])), "dropout takes floats, and got a tensor of int64"),
        (lambda: layers.normal_(tensor([1, 2])), "normal_ takes floats, and got a tensor of int64"),
        (lambda: layers.normal_(zeros(2), std=-1.0), "std=-1.0"),
        (lambda: layers.uniform_(zeros(2), 1.0, 0.0), "from 1.0 to 0.0"),
        (lambda: Sequential(ReLU), r"part 0 is the class ReLU: write ReLU\(\)"),
        (lambda: Sequential([ReLU()]), "part 0 is of type list"),
        (lambda: Linear(2, 2).to("cuda"), "got 'cuda': there are no devices here"),
        (lambda: Linear(2, 2).train("yes"), "train takes True or False, and got 'yes'"),
        (lambda: Linear(2, 2).load_state_dict([1]), "a dictionary of tensors by name, and this is a list"),
        (lambda: Linear(2, 2).load_state_dict({"weight": 1.0}), "weight is of type float in the state dict"),
    ],
)
def test_errors_name_what_is_wrong(call, words):
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=words):
        call()


# Costs


def test_what_a_model_costs():
    table = Linear(4, 4)
    model = Sequential(Linear(3, 4), layers.Flatten(), table, table, Embedding(2, 2))
    found = costs(model[:4], randn(5, 3))
    assert [c.name for c in found] == ["0", "1", "2", "2"]
    assert [c.parameters for c in found] == [16, 0, 20, 0]
    assert [c.multiply_adds for c in found] == [60, 0, 80, 80]
    assert [c.activation_bytes for c in found] == [80, 0, 80, 80]
    assert costs(model[4:], tensor([1, 0]))[0].multiply_adds == 0


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (Linear(3, 2), (0, 3)),
        (Linear(0, 2), (2, 4, 0)),
        (Linear(3, 0), (4, 3)),
        (Linear(3, 2), (2, 0, 5, 3)),
        (LayerNorm(3), (0, 3)),
        (LayerNorm(0), (2, 0)),
        (BatchNorm1d(3).eval(), (0, 3)),
        (Dropout(0.5), (0, 3)),
    ],
)
def test_an_axis_of_size_0_goes_forward_and_back(module, shape):
    x = zeros(shape, requires_grad=True)
    module(x).sum().backward()
    assert x.grad.shape == shape
    assert all(p.grad.shape == p.shape for p in module.parameters())


def test_a_weight_without_elements_is_filled_with_nothing():
    for fill in (layers.kaiming_normal_, layers.kaiming_uniform_, layers.xavier_normal_, layers.xavier_uniform_):
        assert fill(zeros(3, 0)).shape == (3, 0)
