"""Chapter 05: losses whose values are known by hand, what they refuse, clipping, and anomaly detection."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gradwright
from gradwright import autograd, nn
from gradwright.chapters import autodiff, losses
from gradwright.nn import functional as F
from gradwright.nn import utils

inf, nan = math.inf, math.nan


def tensor(values, requires_grad=False):
    return gradwright.tensor(np.array(values), requires_grad=requires_grad)


def gradient_of(x, loss):
    x.grad = None
    loss.backward()
    return x.grad.tolist()


# Fault 16: softmax overflow


@pytest.mark.parametrize(
    "loss", [lambda x: F.cross_entropy(x, tensor([1])), lambda x: F.cross_entropy(x, tensor([[0.0, 1.0]]))]
)
def test_logits_of_a_thousand_lose_a_thousand_and_keep_their_gradient(loss):
    x = tensor([[1000.0, 0.0]], True)
    assert loss(x).item() == 1000
    assert gradient_of(x, loss(x)) == [[1, -1]]


def test_the_binary_loss_of_a_thousand():
    x = tensor([1000.0, -1000.0, 1000.0, -1000.0], True)
    loss = F.binary_cross_entropy_with_logits(x, tensor([0.0, 1.0, 1.0, 0.0]), reduction="sum")
    assert loss.item() == 2000
    assert gradient_of(x, loss) == [1, -1, 0, 0]


def test_a_softmax_applied_twice_cannot_get_below_its_floor():
    sure = tensor([[50.0] + [0.0] * 9])
    assert F.cross_entropy(sure, tensor([0])).item() < 1e-12
    assert F.cross_entropy(sure.softmax(1), tensor([0])).item() == pytest.approx(math.log(1 + 9 / math.e))


# The mean over what counts


def test_ignored_rows_count_neither_above_nor_below():
    x = np.random.default_rng(0).standard_normal((4, 3))
    some = F.cross_entropy(tensor(x), tensor([0, -100, 2, -100]))
    assert some.item() == pytest.approx(F.cross_entropy(tensor(x[[0, 2]]), tensor([0, 2])).item(), rel=1e-12)


def test_weights_weigh_above_and_below():
    x = np.random.default_rng(1).standard_normal((2, 3))
    single = [F.cross_entropy(tensor(x[i : i + 1]), tensor([i])).item() for i in range(2)]
    weighed = F.cross_entropy(tensor(x), tensor([0, 1]), tensor([3.0, 1.0, 9.0]))
    assert weighed.item() == pytest.approx((3 * single[0] + single[1]) / 4, rel=1e-12)


def test_no_valid_target_is_nan_and_moves_nothing():
    x = tensor(np.ones((2, 3)), True)
    loss = F.cross_entropy(x, tensor([-100, -100]))
    assert math.isnan(loss.item())
    assert gradient_of(x, loss) == [[0, 0, 0], [0, 0, 0]]


def test_float32_stays_float32():
    x = gradwright.randn(3, 4)
    for loss in (
        F.cross_entropy(x, tensor([0, 1, 2])),
        F.cross_entropy(x, tensor([0, 1, 2]), label_smoothing=0.1),
        F.mse_loss(x, x * 0),
        F.huber_loss(x, x * 0),
        F.binary_cross_entropy_with_logits(x, (x > 0).float()),
        F.kl_div(x.log_softmax(1), x.softmax(1), reduction="batchmean"),
    ):
        assert loss.dtype == gradwright.float32


# Refusals


def leaf_with_grad():
    p = tensor([3.0, 4.0], requires_grad=True)
    p.grad = tensor([3.0, 4.0])
    return p


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: F.cross_entropy(x, tensor([0, 3])), IndexError, "target 3 is none of the 3 classes"),
        (lambda x: F.cross_entropy(x, tensor([0, -1])), IndexError, "target -1"),
        (lambda x: F.cross_entropy(x, tensor([0, 1, 2])), ValueError, r"\(3,\).*\(2,\)"),
        (lambda x: F.cross_entropy(x, tensor([[0.5, 0.5]])), ValueError, r"\(1, 2\).*\(2, 3\)"),
        (lambda x: F.cross_entropy(x, tensor([0, 1]), reduction="average"), ValueError, "'average'"),
        (lambda x: F.cross_entropy(x, tensor([0, 1]), label_smoothing=1.5), ValueError, "label_smoothing=1.5"),
        (lambda x: F.cross_entropy(x, tensor([0, 1]), tensor([1.0])), ValueError, r"\(3,\).*\(1,\)"),
        (lambda x: F.cross_entropy(x, x.softmax(1), ignore_index=1), ValueError, "ignore_index=1"),
        (lambda x: F.cross_entropy(x, tensor([True, False])), TypeError, "bool"),
        (lambda x: F.cross_entropy(tensor([[1, 2]]), tensor([0])), TypeError, "int64"),
        (lambda x: F.binary_cross_entropy_with_logits(x, tensor([0.0])), ValueError, r"\(2, 3\).*\(1,\)"),
        (lambda x: F.huber_loss(x, x, delta=0.0), ValueError, "delta=0.0"),
        (lambda x: F.mse_loss(x, x, reduction="batchmean"), ValueError, "'batchmean'"),
        (lambda x: nn.MSELoss("meen"), ValueError, "'meen'"),
        (lambda x: F.cross_entropy(x, tensor([0, 1]), size_average=True), TypeError, "size_average"),
        (lambda x: F.cross_entropy(x, [0, 1]), TypeError, "cross_entropy takes tensors and got list"),
        (lambda x: F.cross_entropy(x.numpy(), tensor([0, 1])), TypeError, "got ndarray"),
        (lambda x: F.cross_entropy(x, tensor([0.0, 1.0])), ValueError, "class ids are whole numbers"),
        (lambda x: F.cross_entropy(x, tensor([0, 1]), tensor([1, 1, 1]).float()), TypeError, "float64.*float32"),
        (lambda x: F.cross_entropy(x.sum(), tensor(1)), ValueError, "no axes"),
        (lambda x: F.nll_loss(x, x), TypeError, "target holds float64"),
        (lambda x: F.binary_cross_entropy_with_logits(x, x, pos_weight=2.0), TypeError, "got float"),
        (lambda x: F.binary_cross_entropy_with_logits(x, x, tensor([1.0, 1.0])), ValueError, r"\(2, 3\) and \(2,\)"),
        (lambda x: F.binary_cross_entropy_with_logits(x[:, :1], x[:, :1], x), ValueError, r"\(2, 3\) is larger"),
        (lambda x: F.binary_cross_entropy_with_logits(tensor([1]), tensor([1.0])), TypeError, "int64"),
        (lambda x: F.mse_loss(x, 1.0), TypeError, "mse_loss takes tensors and got float"),
        (lambda x: F.mse_loss(tensor([1]), tensor([2])), TypeError, "mse_loss compares floats"),
        (lambda x: F.huber_loss(x, x, delta=math.nan), ValueError, "delta=nan"),
        (lambda x: F.kl_div(x, x[:, :2]), ValueError, r"\(2, 3\) and \(2, 2\)"),
        (lambda x: nn.utils.clip_grad_norm_(leaf_with_grad(), 1.0, 0), ValueError, "p=0"),
        (lambda x: autograd.set_detect_anomaly("on"), TypeError, "'on'"),
    ],
)
def test_what_is_refused_is_named(call, error, said):
    with pytest.raises(error, match=said):
        call(tensor(np.ones((2, 3))))


# Clipping


def parameter(gradient):
    p = tensor(np.zeros(np.shape(gradient)), True)
    p.grad = tensor(gradient)
    return p


def test_clipping_returns_the_norm_before_and_leaves_the_direction():
    p, q = parameter([3.0, 0.0]), parameter([[4.0]])
    assert utils.clip_grad_norm_([p, q], 1.0).item() == 5
    assert p.grad.tolist() == pytest.approx([0.6, 0.0], abs=1e-6)
    assert q.grad.item() == pytest.approx(0.8, abs=1e-6)


def test_a_short_gradient_is_not_touched():
    p = parameter([0.3, 0.4])
    before = p.grad.storage.version
    assert utils.clip_grad_norm_(p, 1.0).item() == pytest.approx(0.5)
    assert (p.grad.tolist(), p.grad.storage.version) == ([0.3, 0.4], before)


@pytest.mark.parametrize("bad", [inf, nan])
def test_a_norm_that_is_not_finite_is_refused_before_anything_changes(bad):
    p, q = parameter([bad, 1.0]), parameter([2.0])
    with pytest.raises(RuntimeError, match=f"is {bad}"):
        utils.clip_grad_norm_([p, q], 1.0, error_if_nonfinite=True)
    assert q.grad.tolist() == [2.0]


def test_clipping_by_value_turns_the_direction():
    p = parameter([4.0, 1.0, -3.0])
    utils.clip_grad_value_(iter([p]), 1.5)
    assert p.grad.tolist() == [1.5, 1.0, -1.5]


# Anomaly detection


def test_the_first_operation_of_the_forward_is_named_with_its_line():
    x = tensor([0.0, 1.0], True)
    with pytest.raises(RuntimeError) as caught, autograd.detect_anomaly():
        shown = x.log() * 2  # the line of the culprit
        shown.sum()
    text = str(caught.value)
    assert text.startswith("log made inf in its output, of shape (2,), at (0,)")
    assert "test_losses.py, line " in text
    assert text.endswith("shown = x.log() * 2  # the line of the culprit")


def test_an_operation_of_the_backward_is_named_with_the_line_of_its_forward():
    x = tensor([0.0, 4.0], True)
    with pytest.raises(RuntimeError) as caught, autograd.detect_anomaly():
        root = x.sqrt()  # harmless on the way there
        root.sum().backward()
    text = str(caught.value)
    assert text.startswith("the backward of sqrt made inf in the gradient of input 0")
    assert text.endswith("root = x.sqrt()  # harmless on the way there")


def test_a_mask_of_minus_infinity_is_no_anomaly():
    x = tensor(np.random.default_rng(2).standard_normal((3, 3)), True)
    mask = gradwright.ones(3, 3).triu(1) > 0
    with autograd.detect_anomaly():
        x.masked_fill(mask, -inf).softmax(1).log_softmax(1).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_nan_from_an_inf_that_was_handed_on_is_found():
    x = tensor([inf, 1.0], True)
    with pytest.raises(RuntimeError, match="subtract made nan"), autograd.detect_anomaly():
        x - x.detach()


def test_detection_is_on_inside_the_block_alone():
    before = autodiff.state.now
    with pytest.raises(KeyError), autograd.detect_anomaly():
        raise KeyError
    assert autodiff.state.now == before


def test_detection_can_be_switched_on_and_off():
    x = tensor([0.0], True)
    autograd.set_detect_anomaly(True)
    with pytest.raises(RuntimeError, match="log made inf"):
        x.log()
    with autograd.set_detect_anomaly(False), np.errstate(divide="ignore"):
        assert x.log().item() == -inf
    with pytest.raises(RuntimeError, match="log made inf"):
        x.log()
    autograd.set_detect_anomaly(False)
    assert autodiff.state.now == (True, ())


def test_losses_know_their_operations_by_name():
    x = tensor([[1.0, 2.0]], True)
    names = [
        repr(F.cross_entropy(x, tensor([0])).grad_fn),
        repr(F.mse_loss(x, x * 0, reduction="none").grad_fn),
        repr(F.huber_loss(x, x * 0, reduction="none").grad_fn),
    ]
    assert names == ["<CrossEntropy>", "<Squared>", "<Huber>"]
    assert losses.squared_errors.__name__ == "squared_errors"


def test_a_batch_without_examples():
    x = tensor(np.ones((0, 3)), requires_grad=True)
    ids = tensor(np.zeros(0, np.int64))
    assert F.cross_entropy(x, ids, reduction="none").shape == (0,)
    assert math.isnan(F.cross_entropy(x, ids).item())
    F.cross_entropy(x, ids, reduction="sum").backward()
    assert x.grad.shape == (0, 3)


def test_kl_of_a_target_that_is_no_probability_is_nan_and_of_a_single_number_is_itself():
    assert math.isnan(F.kl_div(tensor([0.0]), tensor([-1.0])).item())
    assert F.kl_div(tensor(0.0), tensor(1.0), reduction="batchmean").item() == 0.0


def test_probabilities_in_another_dtype_are_promoted():
    assert F.cross_entropy(tensor([[1.0, 2.0]]).float(), tensor([[0.5, 0.5]]).double()).dtype == np.float64


def test_the_largest_size_may_be_asked_for_by_its_name():
    assert nn.utils.clip_grad_norm_(leaf_with_grad(), 100.0, "inf").item() == 4.0


def test_clipping_is_seen_by_a_graph_that_has_saved_the_gradient():
    p = leaf_with_grad()
    x = tensor([1.0, 1.0], requires_grad=True)
    product = x * p.grad
    nn.utils.clip_grad_norm_(p, 1.0)
    with pytest.raises(RuntimeError, match="changed in place"):
        product.sum().backward()
