"""Chapters 02 and 03 beside PyTorch: what an expert's hands expect of hooks, switches, grad and Function."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gradwright
from gradwright.chapters import operations

pytestmark = pytest.mark.torch


class Side:
    """A framework, with its names in one place; leaf(...) makes a float64 leaf that requires a gradient."""

    def __init__(self, m: Any, tensor: Callable, function: type):
        self.m, self.tensor, self.Function = m, tensor, function
        self.grad, self.gradcheck = m.autograd.grad, m.autograd.gradcheck

    def leaf(self, *values: Any) -> Any:
        return self.tensor(np.array(values, np.float64), requires_grad=True)


OURS = Side(gradwright, operations.tensor, operations.Function)
THEIRS = Side(torch, torch.tensor, torch.autograd.Function)


def numbers(*tensors: Any) -> list:
    return [None if t is None else t.detach().tolist() for t in tensors]


def going_on_from_the_middle(s: Side) -> Any:
    x, w = s.leaf(1, 2), s.leaf(3, 4)
    y, other = x * x, w * w
    (to_y,) = s.grad((y * other).sum(), y)
    y.backward(to_y)
    other.sum().backward()
    return numbers(to_y, x.grad, w.grad)


def only_hooks_on_the_way_run(s: Side) -> Any:
    x, w, seen = s.leaf(1, 2), s.leaf(3, 4), []
    y = x * 3
    for name, t in {"x": x, "w": w, "y": y}.items():
        t.register_hook(lambda g, name=name: seen.append((name, g.tolist())))
    found = s.grad((y * w).sum(), [y, y])
    return numbers(*found), seen


def several_outputs(s: Side) -> Any:
    x = s.leaf(1, 2)
    y, z = x * x, x.exp()
    found = s.grad([y.sum(), z, y], [x, y], [None, z.detach(), y.detach()], allow_unused=True)
    return numbers(*found)


def of_itself_and_below(s: Side) -> Any:
    x = s.leaf(1, 2)
    y = x * x
    z = (y * y).sum()
    return numbers(*s.grad(z, [z, y, x], retain_graph=True), *s.grad(z, x))


def inputs_in_any_container(s: Side) -> Any:
    named = {"x": s.leaf(1, 2), "w": s.leaf(3, 4)}

    def loss() -> Any:
        return (named["x"] * named["w"]).sum()

    found = [s.grad(loss(), given) for given in (named.values(), iter(named.values()), tuple(named.values()))]
    found.append(s.grad((t for t in [loss()]), [*named.values()]))
    return [numbers(*pair) for pair in found], s.gradcheck(lambda x, w: x * w, tuple(named.values()))


def unused(s: Side) -> Any:
    x, w = s.leaf(1), s.leaf(2)
    return numbers(*s.grad((x * 2).sum(), [w, x], allow_unused=True))


def retained_on_the_way(s: Side) -> Any:
    x = s.leaf(1, 2)
    y = x * 3
    y.retain_grad()
    s.grad((y * y).sum(), x)
    return numbers(y.grad, x.grad)


def recorded_in_hooks(s: Side) -> Any:
    x, w, seen = s.leaf(1, 2), s.leaf(3, 4), []

    def hook(grad: Any) -> None:
        seen.append((s.m.is_grad_enabled(), (grad * w).requires_grad))
        w.mul_(2)

    x.register_hook(hook)
    (x * 3).sum().backward()
    return seen, numbers(w, x.grad), s.m.is_grad_enabled()


def a_hook_that_takes_itself_away(s: Side) -> Any:
    x, seen = s.leaf(1, 2), []
    handle = x.register_hook(lambda grad: (seen.append(grad.tolist()), handle.remove())[0])
    for _ in range(2):
        (x * 3).sum().backward()
    return seen


def a_hook_that_raises(s: Side) -> Any:
    x, w = s.leaf(1, 2), s.leaf(3, 4)
    y = x * w
    handle = y.register_hook(lambda grad: {}["stop"])
    loss = (y * y).sum()
    with pytest.raises(KeyError):
        loss.backward(retain_graph=True)
    before = numbers(x.grad, w.grad)
    handle.remove()
    loss.backward()
    return before, numbers(x.grad, w.grad)


def functions_write_keep_and_return(s: Side) -> Any:
    constant, kept = s.leaf(7, 7).detach(), []

    class Writes(s.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.mul_(2)

    class Keeps(Writes):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            kept.append(grad)
            return grad

    class Constant(Writes):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return constant

    found = []
    for kind in (Writes, Keeps, Constant):
        x = s.leaf(1, 2)
        for _ in range(2):
            (kind.apply(x) * s.leaf(3, 5).detach()).sum().backward()
        found.append(x.grad.tolist())
        x.grad.zero_()
    single = s.leaf(1)
    Writes.apply(single).sum().backward()
    return found, numbers(single.grad, constant, *kept)


def what_a_function_is_told(s: Side) -> Any:
    seen = []

    class Note(s.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: Any, w: Any) -> Any:
            seen.append((ctx.needs_input_grad, s.m.is_grad_enabled()))
            return x * n + w

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append((ctx.needs_input_grad, s.m.is_grad_enabled()))
            return grad, None, grad, None, None

    x, w = s.leaf(1), s.leaf(2).detach()
    with s.m.no_grad():
        Note.apply(x, 3, w)
    Note.apply(w, 3, w)
    Note.apply(x, 3, w).sum().backward()
    return seen, numbers(x.grad)


def none_beside_another_gradient(s: Side) -> Any:
    class First(s.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            return x * w

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, None

    x, w = s.leaf(1), s.leaf(2)
    (First.apply(x, w) + w * 5).sum().backward()
    return numbers(x.grad, w.grad)


def switches_as_decorators(s: Side) -> Any:
    x = s.leaf(1)

    def recorded() -> bool:
        return (x * 2).requires_grad

    def steps() -> Any:
        answer = yield recorded()
        yield answer, recorded()
        return recorded()

    found = [s.m.no_grad(recorded)(), s.m.no_grad()(recorded)()]
    with s.m.no_grad():
        found += [s.m.enable_grad(recorded)(), s.m.enable_grad()(recorded)(), s.m.set_grad_enabled(True)(recorded)()]
    for switch in (s.m.no_grad, s.m.no_grad()):
        generator = switch(steps)()
        found += [next(generator), s.m.is_grad_enabled(), generator.send("hello")]
        with pytest.raises(StopIteration) as end:
            next(generator)
        found.append(end.value.value)
    return found


def gradients_that_are_set(s: Side) -> Any:
    x, g = s.leaf([1, 2], [3, 4]), s.leaf([1, 2], [3, 4]).detach()
    x.grad = g
    (x * 2).sum().backward()
    before = numbers(x.grad, g)
    del x.grad
    return before, x.grad


def gradcheck_of_a_tuple(s: Side) -> Any:
    x = s.leaf(1, 2)
    assert s.gradcheck(lambda x, w: x @ w, [x, s.leaf(3, 4)])
    return s.gradcheck(lambda x: (x * 2, x.exp().sum()), x), s.gradcheck(lambda x: tuple(x.max(0)), x)


HABITS = [
    *(going_on_from_the_middle, only_hooks_on_the_way_run, several_outputs, of_itself_and_below, unused),
    inputs_in_any_container,
    *(retained_on_the_way, recorded_in_hooks, a_hook_that_takes_itself_away, a_hook_that_raises),
    *(functions_write_keep_and_return, what_a_function_is_told, none_beside_another_gradient),
    *(switches_as_decorators, gradients_that_are_set, gradcheck_of_a_tuple),
]


@pytest.mark.parametrize("program", HABITS, ids=lambda program: program.__name__)
def test_a_habit(program: Callable) -> None:
    assert program(OURS) == program(THEIRS)


REFUSED = {
    "a view made under no_grad": lambda s, x, y: under_no_grad(s, y).mul_(2),
    "a tensor as its own gradient": lambda s, x, y: setattr(x, "grad", x),
    "no inputs": lambda s, x, y: s.grad(y, []),
    "a number among the inputs": lambda s, x, y: s.grad(y.sum(), [x, 2.0]),
    "a path that was freed": lambda s, x, y: (y.sum().backward(), s.grad((y + x).sum(), x, allow_unused=True)),
    "a hook that returns a number": lambda s, x, y: (x.register_hook(lambda g: 2.0), y.sum().backward()),
    "a gradient that is a number": lambda s, x, y: y.sum().backward(2.0),
}


def under_no_grad(s: Side, t: Any) -> Any:
    with s.m.no_grad():
        return t[:1]


@pytest.mark.parametrize("side", [OURS, THEIRS], ids=["ours", "theirs"])
@pytest.mark.parametrize("name", list(REFUSED))
def test_both_refuse(name: str, side: Side) -> None:
    x = side.leaf(1, 2)
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        REFUSED[name](side, x, x * x)


LAYOUTS = {
    "as it is": lambda t: t,
    "transposed": lambda t: t.mT,
    "expanded in front": lambda t: t[:1].expand(*t.shape),
    "expanded rows": lambda t: t[:, :1].expand(*t.shape),
    "expanded columns": lambda t: t[..., :1].expand(*t.shape),
    "permuted": lambda t: t.permute(1, 0, 2),
    "with gaps": lambda t: t.expand(2, *t.shape).permute(1, 2, 3, 0).flatten(2)[..., ::2],
    "flipped": lambda t: t.flip(-1),
    "a matrix": lambda t: t[0],
    "a vector": lambda t: t[0, 0],
    "summed": lambda t: t.sum(0),
    "heads": lambda t: (t * t).expand(2, *t.shape).permute(1, 0, 2, 3),
}
ENDS = [
    lambda out: out.sum(),
    lambda out: out.mean(),
    lambda out: (out * out).sum() + out.sum(-1).sum(),
    lambda out: (out + out).sum(0).exp().sum() if out.ndim else out.exp(),
    lambda out: (out[:1].expand(*out.shape) * out).mean() if out.ndim else out * out,
]


@pytest.mark.parametrize("left", list(LAYOUTS))
def test_products_of_every_layout(left: str) -> None:
    """Views of every kind multiplied, and gradients of every kind that come back: from sums, means and broadcasts."""
    rng = np.random.default_rng(list(LAYOUTS).index(left))
    for right, size, end in itertools.product(LAYOUTS, (1, 2), ENDS):
        arrays = [rng.standard_normal((size, size, size)) for _ in range(2)]
        ours, theirs = ([m(a, requires_grad=True) for a in arrays] for m in (operations.tensor, torch.tensor))
        for a, b in (ours, theirs):
            end(LAYOUTS[left](a) @ LAYOUTS[right](b)).backward()
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-9, atol=1e-9)


def test_a_mean_of_nothing_warns_nobody() -> None:
    ours, theirs = (m(np.zeros((2, 0)), requires_grad=True) for m in (operations.tensor, torch.tensor))
    for x in (ours, theirs):
        x.mean(1).sum().backward()
    assert ours.grad.shape == tuple(theirs.grad.shape) == (2, 0)
