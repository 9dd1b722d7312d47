"""Chapter 02 by itself: what its short tensor can do before chapter 03 adds the rest."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from gradwright.chapters import autodiff
from gradwright.chapters.autodiff import GradcheckError, Operation, grad, gradcheck, no_grad, plain, tensor


def leaf(*values):
    return tensor(np.array(values, np.float64), requires_grad=True)


def test_values_and_gradients_by_hand():
    x = tensor(np.array([[1.0, 2.0]]))
    w, b = leaf([1, -1, 0], [2, 0, 3]), leaf(0.5, 0.5, 0.5)
    y = (x @ w + b) * (x @ w - b)
    y.sum().backward()
    assert y.tolist() == [[24.75, 0.75, 35.75]]
    assert w.grad.tolist() == [[10, -2, 12], [20, -4, 24]]
    assert b.grad.tolist() == [-1, -1, -1]


def test_a_matrix_that_a_stack_meets_gets_the_sum():
    stack, w = leaf([[1, 2]], [[3, 4]]), leaf([1], [1])
    (stack @ w).sum().backward()
    assert w.grad.tolist() == [[4], [6]]
    assert stack.grad.tolist() == [[[1, 1]], [[1, 1]]]


def test_changes_in_place_are_counted_and_not_recorded():
    x, w = tensor([1.0, 2.0]), leaf(1, 2)
    x += 1
    x[0] = 7.0
    x.mul_(2).sub_(1)
    assert (x.tolist(), x.storage.version) == ([13, 5], 4)
    for refused in (lambda: w.add_(1), lambda: (w * 2).mul_(3), lambda: x.copy_(w), lambda: w.__setitem__(0, 5)):
        with pytest.raises(RuntimeError, match="not recorded here: write x = x"):
            refused()
    with no_grad():
        w -= 1
    assert (w.tolist(), w.requires_grad) == ([0, 1], True)


def test_data_keeps_no_gradient():
    with pytest.raises(RuntimeError, match="requires no gradient, so none will pass here"):
        tensor([1.0]).retain_grad()


def test_the_short_tensor_is_the_base_of_the_long_one():
    from gradwright.chapters import operations

    x = operations.tensor([1.0], requires_grad=True)
    assert isinstance(x, autodiff.Tensor)
    assert isinstance((x * 2).grad_fn, autodiff.Multiply)
    with pytest.raises(TypeError, match="tensors of two chapters do not mix"):
        plain.tensor([1.0]) * x


def test_grad_notes_what_it_was_asked_for():
    x, w = leaf(1, 2), leaf(3, 4)
    y = x * w
    to_y, to_x = grad((y * y).sum(), [y, x])
    assert (to_y.tolist(), to_x.tolist(), x.grad) == ([6, 16], [18, 64], None)


class Doubled(Operation):
    def backward(self, grad):
        return grad * 2.0003


def doubled(t):
    return t.new(t.array * 2)


def test_gradcheck_catches_a_planted_error():
    doubled.operation = type("Doubled", (Doubled,), {"forward": staticmethod(doubled)})
    x = leaf(0.3, 0.5, -0.7)
    with pytest.raises(GradcheckError, match="input 0: along a random direction"):
        gradcheck(lambda t: t.apply(doubled, t), x)
    assert gradcheck(lambda t: t * t, x)
    with pytest.raises(TypeError, match="float64 and input 0 holds float32"):
        gradcheck(lambda t: t * t, tensor([1.0], requires_grad=True))


def test_a_retained_gradient_does_not_keep_the_tensor():
    x = leaf(1, 2)
    y = x * 3
    y.retain_grad()
    loss, ref = (y * y).sum(), weakref.ref(y)
    del y
    loss.backward()
    assert ref() is None
    assert x.grad.tolist() == [18, 36]
