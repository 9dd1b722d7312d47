"""Chapters 02 and 03: functions of one's own, grad and gradcheck."""

from __future__ import annotations

import numpy as np
import pytest

from gradwright.chapters.operations import Function, GradcheckError, arange, grad, gradcheck, no_grad, tensor


def leaf(*values):
    return tensor(np.array(values, np.float64), requires_grad=True)


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


def test_gradcheck_looks_at_every_output():
    class Tripled(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = leaf(1, 2)
    assert gradcheck(lambda x: (x * 2, x.exp().sum()), x)
    with pytest.raises(GradcheckError, match=r"at \[0\], backward gives"):
        gradcheck(lambda x: (x * 2, Tripled.apply(x)), x)
    assert not gradcheck(lambda x: (Tripled.apply(x), x), x, raise_exception=False)
    with pytest.raises(TypeError, match="it returned a float"):
        gradcheck(lambda x: 2.0, x)


def function(backward):
    """A Function that doubles its first input, with this backward."""
    written = {"forward": staticmethod(lambda ctx, x, *others: x * 2), "backward": staticmethod(backward)}
    return type("Written", (Function,), written)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2)])
def test_a_functions_arrays_are_its_own(shape):
    """It may write into the gradient, keep it, and return what others hold."""
    kept, constant = [], tensor(np.full(shape, 7.0))

    def keep(ctx, grad):
        kept.append(grad)
        return grad

    for backward, wanted in [(lambda ctx, g: g.mul_(2), 2), (keep, 1), (lambda ctx, g: constant, 7)]:
        x = tensor(np.ones(shape), requires_grad=True)
        for times in (1, 2):
            function(backward).apply(x).sum().backward()
            assert (x.grad.array == times * wanted).all()
        x.grad.zero_()
    assert (kept[0].array == 1).all()
    assert (constant.array == 7).all()


def test_a_function_knows_what_is_wanted_even_where_nothing_is_recorded():
    seen = []

    class Note(Function):
        @staticmethod
        def forward(ctx, *inputs):
            seen.append(ctx.needs_input_grad)
            return inputs[0] * 2

    with no_grad():
        Note.apply(leaf(1), 3)
    Note.apply(leaf(1).detach(), leaf(1).detach())
    Note.apply(3.0 * leaf(1).detach(), leaf(1))
    assert seen == [(True, False), (False, False), (False, True)]


def test_none_is_no_gradient_and_may_be_one_too_many():
    x, w = leaf(1), leaf(2)
    some = function(lambda ctx, grad: (grad, None, None, None))
    (some.apply(x, w) + w * 5).sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([1], [5])


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (2.0, "backward returned a float"),
        (np.ones(1), "backward returned a ndarray"),
        ([1, 2], "backward returned a list"),
        ((None, None, 5), "backward returned a int"),
    ],
)
def test_what_backward_returns_is_named(answer, sentence):
    with pytest.raises(TypeError, match=f"<Written>: {sentence}, and tensors are wanted"):
        function(lambda ctx, grad: answer).apply(leaf(1)).sum().backward()


def test_what_a_function_does_not_offer_is_named():
    with pytest.raises(NotImplementedError, match="setup_context is not offered"):
        type("Modern", (Function,), {"setup_context": staticmethod(lambda ctx, inputs, output: None)})
    for name, arguments in (("mark_dirty", [leaf(1)]), ("set_materialize_grads", [False])):
        forward = staticmethod(lambda ctx, x, name=name, given=arguments: getattr(ctx, name)(*given))
        with pytest.raises(NotImplementedError, match=rf"ctx\.{name} is not offered"):
            type("Dirty", (Function,), {"forward": forward}).apply(leaf(1))


def test_grad_walks_and_frees_only_what_lies_between():
    x, w = leaf(1, 2), leaf(3, 4)
    y, other, visited = x * x, w * w, []
    for t in (x, w, other):
        t.register_hook(visited.append)
    (to_y,) = grad((y * other).sum(), y)
    assert (to_y.tolist(), visited) == ([9, 16], [])
    y.backward(to_y)
    other.sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([18, 64], [6, 8])


def test_grad_never_forgets_a_path_that_was_freed():
    x = leaf(1, 2)
    freed = x * x
    freed.sum().backward()
    with pytest.raises(RuntimeError, match="has freed this graph"):
        grad((freed + x).sum(), x, allow_unused=True)
    (to_freed,) = grad((freed * 3).sum(), freed)
    assert to_freed.tolist() == [3, 3]


def test_grad_is_held_to_tensors():
    x = leaf(1)
    for outputs, inputs, name in ((x, 3.0, "inputs"), (x, [x, None], "inputs"), (2.0, x, "outputs")):
        with pytest.raises(TypeError, match=f"grad takes tensors as {name}, and got a"):
            grad(outputs, inputs)
    for outputs, inputs, name in ((x, [], "inputs"), ([], x, "outputs")):
        with pytest.raises(ValueError, match=f"grad got no {name}"):
            grad(outputs, inputs)
    with pytest.raises(ValueError, match="2 grad_outputs for 1 outputs"):
        grad(x, x, [x, x])
    with pytest.raises(NotImplementedError, match="create_graph"):
        grad(x, x, create_graph=True)
    assert [g.item() for g in grad(x * 3, [x, x])] == [3, 3]
    assert grad(x, x)[0].item() == 1
