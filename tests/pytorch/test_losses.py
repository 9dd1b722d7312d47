"""Chapter 05's losses beside PyTorch: values and every gradient, in float64 to 1e-9."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import gradwright
from gradwright import nn
from gradwright.nn import functional as F
from gradwright.nn import utils

pytestmark = pytest.mark.torch

TF = torch.nn.functional
nan, inf = math.nan, math.inf
REDUCTIONS = ("mean", "sum", "none")


def ours(array, requires_grad=False):
    return gradwright.tensor(np.array(array), requires_grad=requires_grad)


def both(array):
    """A leaf on either side."""
    return ours(array, True), torch.from_numpy(np.array(array)).requires_grad_()


def agree(mine, theirs, tolerance=1e-9):
    a, b = mine.detach().numpy(), theirs.detach().numpy()
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def agree_backward(mine, theirs, leaves):
    """Value and gradients, from a random beginning."""
    agree(mine, theirs)
    begin = np.asarray(np.random.default_rng(3).standard_normal(mine.shape), mine.dtype)
    mine.backward(ours(begin))
    theirs.backward(torch.from_numpy(begin))
    for a, b in leaves:
        agree(a.grad, b.grad)


SHAPES = [((5,), ()), ((4, 5), (4,)), ((3, 5, 2), (3, 2)), ((2, 5, 3, 2), (2, 3, 2))]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("shape", "places"), SHAPES)
def test_cross_entropy_of_ids_with_every_argument(shape, places, reduction):
    rng = np.random.default_rng(1)
    weights, smoothings, ignored = (None, rng.uniform(0.5, 2, 5)), (0.0, 0.2), (-100, 2)
    for w, smoothing, ignore in itertools.product(weights, smoothings, ignored):
        x = both(3 * rng.standard_normal(shape))
        ids = rng.choice([0, 1, 3, 4, ignore] if ignore == 2 else [0, 1, 2, 3], places)
        options = {"ignore_index": ignore, "reduction": reduction, "label_smoothing": smoothing}
        w_ours, w_theirs = (None, None) if w is None else (ours(w), torch.from_numpy(w))
        mine = F.cross_entropy(x[0], ours(ids), w_ours, **options)
        agree_backward(mine, TF.cross_entropy(x[1], torch.tensor(ids), w_theirs, **options), [x])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [shape for shape, _ in SHAPES])
def test_cross_entropy_of_probabilities_with_every_argument(shape, reduction):
    rng = np.random.default_rng(2)
    for w, smoothing in itertools.product((None, rng.uniform(0.5, 2, 5)), (0.0, 0.2)):
        x, q = both(3 * rng.standard_normal(shape)), both(rng.uniform(0.1, 1, shape))
        options = {"reduction": reduction, "label_smoothing": smoothing}
        w_ours, w_theirs = (None, None) if w is None else (ours(w), torch.from_numpy(w))
        mine = F.cross_entropy(x[0], q[0], w_ours, **options)
        agree_backward(mine, TF.cross_entropy(x[1], q[1], w_theirs, **options), [x, q])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("shape", "places"), SHAPES)
def test_nll_loss_with_every_argument(shape, places, reduction):
    rng = np.random.default_rng(3)
    for w, ignore in itertools.product((None, rng.uniform(0.5, 2, 5)), (-100, 2)):
        x = both(-rng.uniform(0.1, 3, shape))
        ids = rng.choice([0, 1, 3, ignore] if ignore == 2 else [0, 1, 2], places)
        options = {"ignore_index": ignore, "reduction": reduction}
        w_ours, w_theirs = (None, None) if w is None else (ours(w), torch.from_numpy(w))
        mine = F.nll_loss(x[0], ours(ids), w_ours, **options)
        agree_backward(mine, TF.nll_loss(x[1], torch.tensor(ids), w_theirs, **options), [x])


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"ignore_index": 1}])
def test_no_valid_target_at_all_gives_nan_and_gradients_of_zero(options):
    x = both(np.random.default_rng(4).standard_normal((3, 4)))
    ids = np.full(3, options.get("ignore_index", -100))
    mine, theirs = F.cross_entropy(x[0], ours(ids), **options), TF.cross_entropy(x[1], torch.tensor(ids), **options)
    agree(mine, theirs)
    assert math.isnan(mine.item())
    mine.backward()
    theirs.backward()
    agree(x[0].grad, x[1].grad)
    assert not x[0].grad.numpy().any()


def test_an_empty_batch_has_the_mean_nan():
    x = both(np.zeros((0, 4)))
    agree(F.cross_entropy(x[0], ours(np.zeros(0, int))), TF.cross_entropy(x[1], torch.zeros(0, dtype=torch.long)))


@pytest.mark.parametrize("logits", [[[1e4, 0.0], [0.0, -1e4]], [[0.0, -inf], [-inf, 3.0]], [[1000.0, 0.0], [5.0, 5.0]]])
@pytest.mark.parametrize("ids", [[0, 1], [1, 1]])
def test_cross_entropy_of_extreme_logits(logits, ids):
    x = both(np.array(logits))
    agree_backward(F.cross_entropy(x[0], ours(ids)), TF.cross_entropy(x[1], torch.tensor(ids)), [x])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_binary_cross_entropy_with_every_argument(reduction, scale):
    rng = np.random.default_rng(5)
    for w, pos in itertools.product((None, rng.uniform(0.5, 2, (4, 1))), (None, rng.uniform(0.2, 9, 3))):
        x, y = both(scale * rng.standard_normal((4, 3))), both(rng.choice([0.0, 1.0, 0.3], (4, 3)))
        give = [(None if a is None else ours(a), None if a is None else torch.from_numpy(a)) for a in (w, pos)]
        mine = F.binary_cross_entropy_with_logits(x[0], y[0], give[0][0], reduction=reduction, pos_weight=give[1][0])
        theirs = TF.binary_cross_entropy_with_logits(x[1], y[1], give[0][1], reduction=reduction, pos_weight=give[1][1])
        agree_backward(mine, theirs, [x, y])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("name", "options"), [("mse_loss", {}), ("l1_loss", {}), ("huber_loss", {"delta": 0.7})])
def test_losses_of_pairs(name, options, reduction):
    rng = np.random.default_rng(6)
    x, y = both(rng.standard_normal((4, 3))), both(np.round(rng.standard_normal((4, 3)), 1))
    mine = getattr(F, name)(x[0], y[0], reduction=reduction, **options)
    agree_backward(mine, getattr(TF, name)(x[1], y[1], reduction=reduction, **options), [x, y])


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_unequal_shapes_broadcast_with_a_warning(name):
    rng = np.random.default_rng(7)
    x, y = both(rng.standard_normal((4, 1))), both(rng.standard_normal(4))
    with pytest.warns(UserWarning, match=r"\(4, 1\) and \(4,\)"):
        mine = getattr(F, name)(x[0], y[0])
    with pytest.warns(UserWarning):
        theirs = getattr(TF, name)(x[1], y[1])
    agree_backward(mine, theirs, [x, y])


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(reduction, log_target):
    rng = np.random.default_rng(8)
    x, y = both(-rng.uniform(0.1, 3, (4, 3))), both(rng.uniform(0.1, 1, (4, 3)))
    mine = F.kl_div(x[0], y[0], reduction=reduction, log_target=log_target)
    agree_backward(mine, TF.kl_div(x[1], y[1], reduction=reduction, log_target=log_target), [x, y])


def test_kl_div_from_a_probability_of_zero():
    x, q = both(np.log([[0.3, 0.7]])), np.array([[0.0, 1.0]])
    agree_backward(F.kl_div(x[0], ours(q), reduction="sum"), TF.kl_div(x[1], torch.from_numpy(q), reduction="sum"), [x])


MODULES = [
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, "ids"),
    ("CrossEntropyLoss", {"weight": [1.0, 2.0, 0.5], "ignore_index": 1, "reduction": "sum"}, "ids"),
    ("NLLLoss", {"weight": [1.0, 2.0, 0.5]}, "ids"),
    ("BCEWithLogitsLoss", {"pos_weight": [1.0, 2.0, 0.5]}, "truth"),
    ("MSELoss", {"reduction": "sum"}, "truth"),
    ("L1Loss", {}, "truth"),
    ("HuberLoss", {"delta": 0.5}, "truth"),
    ("KLDivLoss", {"reduction": "batchmean", "log_target": True}, "truth"),
]


@pytest.mark.parametrize(("name", "options", "kind"), MODULES)
def test_modules(name, options, kind):
    rng = np.random.default_rng(9)
    x = both(rng.standard_normal((4, 3)))
    target = rng.integers(0, 3, 4) if kind == "ids" else rng.uniform(0, 1, (4, 3))
    made = []
    for module, tensor in ((nn, ours), (torch.nn, lambda a: torch.from_numpy(np.array(a)))):
        given = {key: tensor(value) if isinstance(value, list) else value for key, value in options.items()}
        made.append(getattr(module, name)(**given))
    assert list(made[0].state_dict()) == list(made[1].state_dict())
    agree_backward(made[0](x[0], ours(target)), made[1](x[1], torch.from_numpy(target)), [x])


# Clipping


def with_gradients(arrays):
    """Parameters on both sides; None for one without a gradient."""
    pairs = []
    for array in arrays:
        a, b = both(np.zeros(3 if array is None else np.shape(array)))
        if array is not None:
            a.grad, b.grad = ours(array), torch.from_numpy(np.array(array))
        pairs.append((a, b))
    return [a for a, _ in pairs], [b for _, b in pairs]


GRADIENTS = [
    [np.array([3.0, 4.0])],
    [np.array([[3.0, -4.0], [0.5, 1.0]]), None, np.array(2.0)],
    [np.array([1e-3, 2e-3])],
    [np.array([inf, 1.0]), np.array([2.0])],
    [np.array([nan, 1.0]), np.array([2.0])],
    [np.zeros(2)],
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("p", [2.0, 1.0, inf, 3.0])
@pytest.mark.parametrize("gradients", GRADIENTS, ids=str)
def test_clipping_by_norm(gradients, p):
    a, b = with_gradients(gradients)
    norm = utils.clip_grad_norm_((t for t in a), 1.5, norm_type=p)
    agree(norm, torch.nn.utils.clip_grad_norm_(b, 1.5, norm_type=p))
    for mine, theirs in zip(a, b, strict=True):
        if theirs.grad is not None:
            agree(mine.grad, theirs.grad)


def test_clipping_without_gradients():
    assert utils.clip_grad_norm_([ours([1.0], True)], 1.0).item() == torch.nn.utils.clip_grad_norm_([], 1.0).item() == 0


@pytest.mark.parametrize("gradients", GRADIENTS[:3] + GRADIENTS[5:], ids=str)
def test_clipping_by_value(gradients):
    a, b = with_gradients(gradients)
    utils.clip_grad_value_(a, 0.8)
    torch.nn.utils.clip_grad_value_(b, 0.8)
    for mine, theirs in zip(a, b, strict=True):
        if theirs.grad is not None:
            agree(mine.grad, theirs.grad)
