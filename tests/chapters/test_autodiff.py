"""Chapter 02: the machine, as all later chapters have it.

Right values are PyTorch's, worked out once and written down, or by hand.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from gradwright.chapters import tensor as plain
from gradwright.chapters.operations import Operation, arange, grad, no_grad, ones, tensor, zeros


def leaf(*values):
    return tensor(np.array(values, np.float64), requires_grad=True)


def one(value=1.0):
    return tensor(np.array(value), requires_grad=True)


# Known faults of other engines


def test_a_reused_node_passes_its_gradient_on_once():
    a = one()
    b = a + a
    (b + b).backward()
    assert a.grad.item() == 4


def test_a_reused_node_among_others():
    """f = x(xa) + (xx)a + x(xa), that is 3 x^2 a: 6 and 3 at x = a = 1."""
    x, a = one(), one()
    xa, x2 = x * a, x * x
    (x * xa + x2 * a + x * xa).backward()
    assert (x.grad.item(), a.grad.item()) == (6, 3)


@pytest.mark.parametrize("n", [1_500, 100_000])
def test_a_deep_chain(n):
    y = x = one()
    for _ in range(n):
        y = y * 1
    y.backward()
    assert x.grad.item() == 1


@pytest.mark.parametrize("n", [20, 1_000])
def test_a_deep_diamond_takes_one_visit_a_node(n):
    y = x = one()
    visits = []
    for _ in range(n):
        y = y + y
        y.register_hook(visits.append)
    y.backward()
    assert x.grad.item() == 2.0**n
    assert len(visits) == n


def test_a_broadcast_is_summed():
    b = tensor(np.ones((1, 3)), requires_grad=True)
    (ones(2, 3, dtype=np.float64) * b).sum().backward()
    assert b.grad.tolist() == [[2, 2, 2]]


def test_a_saved_tensor_that_was_changed_is_an_error():
    x = leaf(1, 2)
    y = x * x
    with no_grad():
        x[0] = 10
    with pytest.raises(RuntimeError, match="changed in place: it was saved at version 0"):
        y.sum().backward()
    assert x.grad is None


def test_an_error_on_the_way_leaves_every_gradient_as_it_was():
    a, b = leaf(1, 2), leaf(3, 4)
    a.sum().backward()
    late = a * b
    loss = (a * 2 + (late.exp() * b)).sum()
    with no_grad():
        b.mul_(2)
    with pytest.raises(RuntimeError):
        loss.backward()
    assert a.grad.tolist() == [1, 1]
    assert b.grad is None


# The graph


def test_what_is_recorded():
    x, w = tensor([1.0]), tensor([2.0], requires_grad=True)
    y = x * w
    assert (x.requires_grad, w.requires_grad, y.requires_grad) == (False, True, True)
    assert (x.is_leaf, w.is_leaf, y.is_leaf) == (True, True, False)
    assert (x + x).grad_fn is None
    assert type(y.grad_fn).__name__ == "Multiply"
    assert y.grad_fn.targets[0] is None
    assert y.grad_fn.targets[1] is w
    assert repr(y) == "tensor([2.], grad_fn=<Multiply>)"
    assert repr(w) == "tensor([2.], requires_grad=True)"


def test_only_floats_can_require_a_gradient():
    whole = arange(3)
    with pytest.raises(RuntimeError, match="only floats can require a gradient, and this tensor holds int64"):
        whole.requires_grad = True
    with pytest.raises(RuntimeError, match="bool"):
        tensor([True], requires_grad=True)
    assert not (leaf(1, 2).long() + 1).requires_grad
    assert not (leaf(1, 2) > 1).requires_grad


def test_requires_grad_is_switched_off_on_leaves_only():
    x = leaf(1)
    y = x * 2
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        y.requires_grad = False
    assert not x.requires_grad_(False).requires_grad
    assert not (x * 2).requires_grad


def test_a_function_without_an_operation_is_named():
    def halved(t):
        return t.new(t.array / 2)

    sentence = r"halved has no gradient yet: write class Halved\(Operation, of=\.\.\.\)"
    with pytest.raises(NotImplementedError, match=sentence):
        leaf(1).apply(halved, leaf(1))
    with no_grad():
        assert leaf(1).apply(halved, leaf(4)).item() == 2
    assert leaf(1, 3, 2).argmax().item() == 1


def test_an_operation_keeps_only_what_will_be_read():
    x, w = tensor([1.0]), tensor([2.0], requires_grad=True)
    assert [kept is not None for kept in (x * w).grad_fn.saved] == [True, False]
    assert (x + w).grad_fn.saved == []


def test_where_backward_can_begin():
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match=r"shape \(2,\) needs a gradient of that shape"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="requires none"):
        x.detach().sum().backward()
    with pytest.raises(RuntimeError, match=r"the gradient has shape \(3,\)"):
        (x * 2).backward(ones(3))
    with pytest.raises(NotImplementedError, match="create_graph"):
        x.sum().backward(create_graph=True)
    (x * 2).reshape(2, 1)[:1].backward()
    assert x.grad.tolist() == [2, 0]


def test_a_leaf_as_the_root_takes_a_copy():
    x, begin = leaf(1, 2), tensor(np.array([3.0, 4.0]))
    x.backward(begin)
    begin.zero_()
    assert x.grad.tolist() == [3, 4]


def test_leaves_never_share_a_gradient():
    a, b = leaf(1, 2), leaf(3, 4)
    begin = tensor(np.array([5.0, 6.0]))
    (a + b).backward(begin)
    a.grad.zero_()
    assert b.grad.tolist() == begin.tolist() == [5, 6]


def test_a_gradient_that_is_given_twice_is_copied():
    def both(a, b):
        return a.new(a.array + b.array)

    class Both(Operation, of=both):
        def backward(self, grad):
            twice = grad * 2
            return twice, twice

    a, b = leaf(1), leaf(2)
    a.apply(both, a, b).backward()
    a.grad.zero_()
    assert b.grad.item() == 2


def test_backward_of_an_operation_is_held_to_shape_and_number():
    def wrong(t):
        return t.new(t.array.copy())

    class Wrong(Operation, of=wrong):
        answers = np.ones(3)

        def backward(self, grad):
            return self.answers

    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match=r"<Wrong>: backward gave a gradient of shape \(3,\) to an input of"):
        x.apply(wrong, x).sum().backward()
    Wrong.answers = np.ones(2), np.ones(2)
    with pytest.raises(RuntimeError, match="gave 2 gradients for 1 inputs"):
        x.apply(wrong, x).sum().backward()
    Wrong.answers = None
    x.apply(wrong, x).sum().backward()
    assert x.grad.tolist() == [0, 0]


# Accumulation and freeing


def test_gradients_add_up_until_they_are_cleared():
    x = leaf(1, 2)
    for wanted in ([2, 4], [4, 8]):
        (x * x).sum().backward()
        assert x.grad.tolist() == wanted
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]
    x.grad.zero_()
    assert x.grad.tolist() == [0, 0]


def test_a_gradient_that_is_set_must_fit():
    x = leaf(1, 2)
    x.grad = tensor(np.array([5.0, 5.0]))
    x.sum().backward()
    assert x.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match=r"cannot be one of shape \(3,\)"):
        x.grad = zeros(3, dtype=np.float64)
    with pytest.raises(RuntimeError, match="float32"):
        x.grad = zeros(2)


def test_the_gradient_of_a_tensor_in_between_is_asked_for():
    x = leaf(1, 2)
    y = x * 3
    with pytest.warns(UserWarning, match="kept only after retain_grad"):
        assert y.grad is None
    y.retain_grad()
    assert y.grad is None
    (y * y).sum().backward()
    assert y.grad.tolist() == [6, 12]


def test_a_graph_is_walked_once_unless_it_is_retained():
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 8]
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_a_shared_part_that_was_freed():
    x = leaf(1, 2)
    shared = x * x
    shared.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        (shared * 2).sum().backward()
    assert x.grad.tolist() == [2, 4]


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def use_everything(step):
    x = tensor(np.full((4, 4), 0.5), requires_grad=True)
    h = (x @ x).exp() + x.T
    h.retain_grad()
    h.register_hook(lambda g: None)
    h[0] = h[1]
    row = h[2]
    row.mul_(2)
    loss = (h * h.detach()).mean()
    watched = [weakref.ref(t) for t in (x, h, row, loss)] + [weakref.ref(t.grad_fn) for t in (h, row, loss)]
    if step == "backward":
        loss.backward()
    elif step == "grad":
        grad(loss, [x, h])
    return watched


@pytest.mark.parametrize("step", ["forward only", "backward", "grad"])
def test_graphs_free_themselves_without_the_collector(no_collector, step):
    assert [ref() for ref in use_everything(step)] == [None] * 7


def test_a_deep_graph_is_freed_without_recursion(no_collector):
    y = x = one()
    for i in range(100_000):
        y = y * 1 if i % 2 else y.view(1) if i % 4 else y.view(())
    ref = weakref.ref(y.grad_fn)
    del y
    assert ref() is None
    assert x.grad is None


def test_a_loss_keeps_no_activations_after_backward():
    x = tensor(np.ones(1000), requires_grad=True)
    h = x * x
    saved = weakref.ref(h.array)
    loss = (h * h).sum()
    loss.backward()
    del h
    assert saved() is None
    assert loss.grad_fn.kept == ()


def test_a_stack_without_matrices_has_a_gradient_of_nothing():
    for shape in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        a = tensor(np.zeros(shape), requires_grad=True)
        w = tensor(np.ones((shape[-1], 4)), requires_grad=True)
        (a @ w).sum().backward()
        assert (a.grad.shape, w.grad.tolist()) == (shape, [[0] * 4] * shape[-1])


@pytest.mark.parametrize("mix", [lambda a, b: a * b, lambda a, b: a - b, lambda a, b: a @ b, lambda a, b: a.add(b)])
def test_a_tensor_of_chapter_01_never_drops_a_gradient_silently(mix):
    before, now = plain.tensor([[1.0]]), tensor([[2.0]], requires_grad=True)
    for pair in ((before, now), (now, before)):
        with pytest.raises(TypeError, match="tensors of two chapters do not mix"):
            mix(*pair)
