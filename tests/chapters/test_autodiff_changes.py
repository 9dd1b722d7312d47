"""Chapters 02 and 03: changes in place, hooks, custom functions, gradcheck and the modes at the door."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gradwright.chapters import autodiff
from gradwright.chapters.operations import (
    Function,
    GradcheckError,
    Mode,
    arange,
    grad,
    gradcheck,
    no_grad,
    plain,
    tensor,
    zeros,
)


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
    with pytest.raises(RuntimeError, match=r"a hook returned shape \(1,\) for a gradient of shape \(2,\)"):
        x.sum().backward()
    with pytest.raises(RuntimeError, match="requires no gradient"):
        x.detach().register_hook(print)


# Custom functions, grad and gradcheck


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor, bias):
        ctx.targets, ctx.factor = "any name is free", factor
        ctx.save_for_backward(x, None)
        assert ctx.needs_input_grad == (True, False, False)
        return x * x * factor + bias

    @staticmethod
    def backward(ctx, grad):
        x, nothing = ctx.saved_tensors
        assert nothing is None
        return grad * 2 * x * ctx.factor, None, None


def test_a_custom_function():
    x = leaf(1, 2)
    y = Scale.apply(x, 3.0, tensor(np.array(1.0)))
    assert y.tolist() == [4, 13]
    y.sum().backward()
    assert x.grad.tolist() == [6, 12]


def test_a_custom_function_that_returns_its_input():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    x = leaf(1, 2)
    Same.apply(x).sum().backward()
    assert (x.is_leaf, x.grad.tolist()) == (True, [5, 5])


def test_a_custom_function_without_gradient():
    class Round(Function):
        @staticmethod
        def forward(ctx, x):
            out = tensor(np.round(x.array))
            ctx.mark_non_differentiable(out)
            return out

    assert not Round.apply(leaf(1.4)).requires_grad


def test_what_a_custom_function_saves_is_guarded():
    x = leaf(1, 2)
    y = Scale.apply(x, 1.0, tensor(np.array(0.0)))
    with no_grad():
        x.zero_()
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()


def test_grad_leaves_no_trace():
    x, w = leaf(1, 2), leaf(3, 4)
    y = x * w
    (to_y, to_x) = grad((y * y).sum(), [y, x], retain_graph=True)
    assert to_y.tolist() == [6, 16]
    assert to_x.tolist() == [18, 64]
    assert (x.grad, w.grad) == (None, None)
    (to_w,) = grad([y.sum(), (y * 2).sum()], w, grad_outputs=[tensor(np.array(1.0)), tensor(np.array(10.0))])
    assert to_w.tolist() == [21, 42]


def test_grad_of_what_was_not_used():
    x, w = leaf(1), leaf(2)
    with pytest.raises(RuntimeError, match="allow_unused"):
        grad(x.sum(), [x, w])
    used, unused = grad(x.sum(), [x, w], allow_unused=True)
    assert (used.item(), unused) == (1, None)
    with pytest.raises(RuntimeError, match="requires no gradient"):
        grad(x.sum(), tensor(1.0))


def test_gradcheck_passes_what_is_right():
    rng = np.random.default_rng(0)
    a, b = (tensor(rng.uniform(0.5, 2, shape), requires_grad=True) for shape in ((3, 4), (4, 2)))
    large = tensor(rng.standard_normal((30, 10)), requires_grad=True)
    assert gradcheck(lambda a, b: (a @ b).exp().mean(0) / (b * b).sum(), [a, b])
    assert gradcheck(lambda x: (x * x).log().sum(1), large)
    assert a.grad is None


@pytest.mark.parametrize("shape", [(4,), (20, 20)])
def test_gradcheck_catches_a_planted_error(shape):
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x * x * 3.0003

    x = tensor(np.random.default_rng(0).uniform(0.5, 1, shape), requires_grad=True)
    with pytest.raises(GradcheckError, match=r"input 0: (at|along)"):
        gradcheck(Cube.apply, x)
    assert gradcheck(Cube.apply, x, raise_exception=False) is False


def test_gradcheck_names_the_element_that_is_wrong():
    class Lost(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            grad = grad * 2
            grad[2] = 0.0
            return grad

    with pytest.raises(GradcheckError, match=r"at \[2\], backward gives 0 and"):
        gradcheck(Lost.apply, leaf(1, 2, 3))


def test_gradcheck_refuses_what_it_cannot_judge():
    with pytest.raises(ValueError, match=r"none of the inputs \(int64\)"):
        gradcheck(lambda x: x * 2, arange(3))
    with pytest.raises(TypeError, match="float64 and input 0 holds float32"):
        gradcheck(lambda x: x * 2, tensor([1.0], requires_grad=True))


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
