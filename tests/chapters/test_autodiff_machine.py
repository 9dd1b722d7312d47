"""Chapter 02 by itself: what its short tensor can do before chapter 03 adds the rest."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from gradwright.chapters import autodiff
from gradwright.chapters.autodiff import GradcheckError, Operation, enable_grad, gradcheck, no_grad, plain, tensor


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


@pytest.mark.parametrize("begin", [2.0, [1.0, 1.0], np.ones(2)])
def test_backward_begins_with_a_tensor(begin):
    with pytest.raises(TypeError, match=f"begins with a tensor, and got a {type(begin).__name__}"):
        (leaf(1, 2) * 2).backward(begin)


@pytest.mark.parametrize("answer", [2.0, True, np.ones(2), tensor([1.0]), "no"])
def test_a_hook_returns_a_tensor_like_its_own(answer):
    x = leaf(1, 2)
    x.register_hook(lambda grad: answer)
    with pytest.raises(RuntimeError, match=rf"a hook returned a {type(answer).__name__} of shape .* shape \(2,\)"):
        x.sum().backward()
    assert x.grad is None


def test_requires_grad_may_be_set_on_any_leaf_of_floats():
    for x in (tensor([1.0, 2.0]), (leaf(1, 2) * 1).detach()):
        x.requires_grad = True
        (x * x).sum().backward()
        assert x.grad.tolist() == [2, 4]


def test_switches_decorate_with_brackets_and_without():
    x = leaf(1)

    def recorded():
        return (x * 2).requires_grad

    assert [no_grad(recorded)(), no_grad()(recorded)(), no_grad(recorded).__name__] == [False, False, "recorded"]
    with no_grad():
        assert enable_grad(recorded)()
        assert enable_grad()(recorded)()


def test_a_switch_around_a_generator_is_refused():
    def generator():
        yield 1

    for switch in (no_grad, no_grad(), enable_grad, enable_grad()):
        with pytest.raises(TypeError, match="generator is a generator, which goes on later"):
            switch(generator)


def test_several_gradients_come_in_a_tuple():
    def both(a, b):
        return a.new(a.array + b.array)

    class Both(Operation, of=both):
        def backward(self, grad):
            return [grad, grad]

    with pytest.raises(RuntimeError, match="gave 1 gradients for 2 inputs: return a tuple"):
        leaf(1).apply(both, leaf(1), leaf(2)).backward()


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
    for answer in ((x, x), 2.0, None):
        with pytest.raises(TypeError, match=f"returns a tensor: it returned a {type(answer).__name__}"):
            gradcheck(lambda t, answer=answer: answer, x)


def test_gradcheck_leaves_every_input_alone():
    a, b, c = leaf(1, 2), leaf(3, 4), tensor(np.array([5.0, 6.0]))
    assert gradcheck(lambda a, b, c, n: a * b * c * n, [a, b, c, 2])
    assert gradcheck(lambda a, b: a * 2 + b * 0, [a, b])
    assert (a.grad, b.grad, c.requires_grad) == (None, None, False)


def test_a_retained_gradient_does_not_keep_the_tensor():
    x = leaf(1, 2)
    y = x * 3
    y.retain_grad()
    loss, ref = (y * y).sum(), weakref.ref(y)
    del y
    loss.backward()
    assert ref() is None
    assert x.grad.tolist() == [18, 36]
