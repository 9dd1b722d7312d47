"""Chapters 02 and 03: changes in place, hooks and the modes at the door."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gradwright.chapters import autodiff
from gradwright.chapters.operations import Mode, arange, no_grad, plain, tensor, zeros


def leaf(*values):
    return tensor(np.array(values, np.float64), requires_grad=True)


# In place


def test_a_leaf_that_requires_a_gradient_is_not_changed_in_place():
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="a leaf that requires a gradient cannot be changed in place"):
        x += 1
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        x[0] = 1
    with no_grad():
        x += 1
        x[0] = 7
    assert x.tolist() == [7, 3]
    assert x.is_leaf


def test_versions_count_writes_through_any_view():
    x = zeros(2, 3)
    x.add_(1)
    x[0].mul_(2)
    x.T[1] = 5
    x.detach().zero_()
    assert x.storage.version == 4


def test_a_write_is_harmless_where_nothing_was_saved():
    x = leaf(1, 2)
    y = x + 1
    z = y + 2
    y.mul_(3)
    (z + y).sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_the_output_of_exp_is_guarded():
    y = leaf(0, 1).exp()
    y.detach().mul_(2)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()


def test_augmented_assignment_through_an_index():
    w = leaf(1, 2, 3)
    y = w * 1
    y[1] += w[0]
    y[1:] *= 2
    assert y.tolist() == [1, 6, 6]
    y.sum().backward()
    assert w.grad.tolist() == [3, 2, 2]


def test_views_taken_before_a_write_follow_it():
    w = leaf(1, 2, 3)
    y = w * 1
    first, turned = y[0], y.reshape(3, 1).T
    y.mul_(w)
    assert first.requires_grad
    (first * 10 + turned.sum()).backward()
    assert w.grad.tolist() == [22, 4, 6]


def test_a_view_of_constants_learns_of_a_recorded_write():
    base, w = zeros(3, dtype=np.float64), leaf(1, 2)
    part = base[1:]
    assert not part.requires_grad
    base[:2] = w
    assert part.requires_grad
    (part * 5).sum().backward()
    assert w.grad.tolist() == [0, 5]


def test_writes_that_cannot_be_are_refused():
    x = zeros(2, 3)
    with pytest.raises(ValueError, match=r"\(4, 2, 3\) does not fit into \(2, 3\)"):
        x += zeros(4, 2, 3)
    with pytest.raises(RuntimeError, match="more than once"):
        zeros(1, 3).expand(2, 3).add_(1)
    with pytest.raises(RuntimeError, match="a tensor of int64 cannot hold float32"):
        arange(3).add_(0.5)
    with pytest.raises(TypeError, match="list"):
        x[0] = [1, 2, 3]
    whole = arange(3)
    whole.copy_(tensor([1.9, 2.9, 3.9]))
    assert whole.tolist() == [1, 2, 3]


def test_in_place_keeps_dtype_and_memory():
    x = tensor([1.0, 2.0])
    memory = x.storage
    x += tensor(np.array([1.0, 1.0]))
    x.sub_(2, alpha=0.5).div_(2).fill_(4.0).copy_(tensor([1, 2]))
    assert x.dtype == plain.float32
    assert x.storage is memory
    assert x.tolist() == [1, 2]


def test_add_takes_alpha():
    x, g = leaf(1, 2), tensor(np.array([10.0, 20.0]))
    with no_grad():
        x.add_(g, alpha=-0.1)
    assert x.tolist() == [0, 0]


def test_a_deep_copy_is_a_leaf_of_its_own():
    x = leaf(1, 2)
    (x * 3).sum().backward()
    twin = copy.deepcopy([x, x])
    assert twin[0] is twin[1]
    assert (twin[0].requires_grad, twin[0].grad.tolist()) == (True, [3, 3])
    with no_grad():
        twin[0].mul_(5)
    assert (x.tolist(), twin[0][1].item()) == ([1, 2], 10)
    with pytest.raises(RuntimeError, match="only a leaf"):
        copy.deepcopy(x * 2)


def test_numpy_is_told_of_gradients():
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match=r"detach\(\)\.numpy\(\)"):
        x.numpy()
    with pytest.raises(RuntimeError, match="requires a gradient"):
        np.asarray(x * 2)
    assert x.detach().numpy().tolist() == [1, 2]


def test_a_view_made_under_no_grad_drops_no_gradient():
    x = leaf(1, 2, 3)
    y = x * 1
    with no_grad():
        part = y[:2]
    with pytest.raises(RuntimeError, match="has no part in the graph"):
        part.mul_(2)
    with no_grad():
        part.mul_(2)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([2, 4, 3], [1, 1, 1])
    late = zeros(3)
    part = late[1:]
    late.requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        part.mul_(2)


def test_a_gradient_that_cannot_be_added_to_is_refused():
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="its own gradient"):
        x.grad = x
    with pytest.raises(RuntimeError, match="more than once"):
        x.grad = tensor(np.array(1.0)).expand(2)
    x.sum().backward()
    del x.grad
    assert x.grad is None


# Hooks


def test_a_hook_sees_the_whole_gradient_and_may_edit_it():
    x = leaf(1, 2)
    y, seen = x * 3, []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(g.tolist()))
    (y * y + y).sum().backward()
    assert seen == [[7, 13], [210, 390]]
    assert x.grad.tolist() == [210, 390]


def test_a_hook_can_be_removed():
    x, seen = leaf(1), []
    handle = x.register_hook(seen.append)
    x.sum().backward()
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert len(seen) == 1


def test_a_hook_that_writes_into_its_gradient_changes_no_other():
    a, b = leaf(1, 2), leaf(3, 4)
    a.register_hook(lambda g: g.zero_())
    (a + b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([0, 0], [1, 1])


def test_a_hook_may_keep_what_it_has_seen():
    x, seen = leaf(1, 2), []
    x.register_hook(seen.append)
    x.sum().backward()
    x.sum().backward()
    assert [g.tolist() for g in seen] == [[1, 1], [1, 1]]


def test_hooks_are_held_to_the_shape():
    x = leaf(1, 2)
    x.register_hook(lambda g: g[:1])
    with pytest.raises(RuntimeError, match=r"a hook returned a Tensor of shape \(1,\) for a gradient of shape \(2,\)"):
        x.sum().backward()
    with pytest.raises(RuntimeError, match="requires no gradient"):
        x.detach().register_hook(print)


def test_nothing_is_recorded_in_a_hook():
    x, w = leaf(1, 2), leaf(3, 4)

    def update(g):
        w.sub_(1)
        seen.append((g * w).requires_grad)

    seen: list[bool] = []
    x.register_hook(update)
    x.sum().backward()
    assert (w.tolist(), seen) == ([2, 3], [False])


def test_a_hook_that_raises_leaves_everything_as_it_was():
    x, w = leaf(1, 2), leaf(3, 4)
    y = x * w

    def stop(g):
        raise KeyError("stop")

    handle = y.register_hook(stop)
    loss = (y * y + x).sum()
    with pytest.raises(KeyError):
        loss.backward(retain_graph=True)
    assert (x.grad, w.grad) == (None, None)
    handle.remove()
    loss.backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([19, 65], [6, 32])
    with pytest.raises(TypeError, match="a hook is a function"):
        x.register_hook(5)


# The door


def test_modes_stand_at_the_door_in_both_directions():
    class Note(Mode):
        def __init__(self, name):
            self.name = name

        def forward(self, function, inputs, options):
            log.append((self.name, function.__name__))
            return super().forward(function, inputs, options)

        def backward(self, operation, grad):
            log.append((self.name, repr(operation)))
            return super().backward(operation, grad)

    log: list[tuple[str, str]] = []
    x = leaf(1, 2)
    with Note("outer"), Note("inner"):
        loss = (x * x).sum()
        loss.backward()
    names = ("multiply", "sum_over", "<Sum>", "<Multiply>")
    assert log == [(who, name) for name in names for who in ("inner", "outer")]
    assert x.grad.tolist() == [2, 4]
    assert autodiff.state.now == (True, ())


def test_a_mode_may_change_what_passes():
    class InHalf(Mode):
        def forward(self, function, inputs, options):
            if function is plain.multiply:
                inputs = tuple(t.to(np.float16) for t in inputs)
            return super().forward(function, inputs, options)

    x = tensor([1.0, 2.0], requires_grad=True)
    with InHalf():
        y = x * x
    assert y.dtype == plain.float16
    y.float().sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (plain.float32, [2, 4])
