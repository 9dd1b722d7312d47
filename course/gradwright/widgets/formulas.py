"""Formulas of a few given leaves, such as `h = x * y; exp(h) + h`, read from their syntax tree into a small graph.

Nothing that is typed is ever run. The nodes have the public shape of chapter 02 (see `graphs`) and no
part of its code.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from autograder.errors import BadInput

from .graphs import Known

__all__ = ["LEAVES", "formula"]

LEAVES = {
    "x": np.array(2.0),
    "y": np.array(0.5),
    "z": np.array(-1.0),
    "A": np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]),
    "W": np.array([[1.0, -1.0], [0.5, 2.0], [-2.0, 1.0]]),
    "b": np.array([0.5, -0.5]),
}
LONGEST_TEXT, LARGEST = 120, 1e6
HOW = "write + - * / ** @, exp, log, tanh, relu, sum, mean and detach on the leaves x, y, z, A, W and b"


@dataclass(eq=False)
class Leaf:
    """A tensor that was given."""

    value: np.ndarray
    requires_grad: bool = True
    grad_fn: None = None
    grad: None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype


@dataclass(eq=False)
class Operation:
    """One use of an operation on arrays. A target is None where an input is a constant."""

    inputs: Sequence[np.ndarray]
    out: np.ndarray
    targets: Sequence[Any]
    forward: ClassVar[Callable[..., np.ndarray]]
    gradients: ClassVar[Callable[..., tuple]]

    @property
    def grad_like(self) -> tuple[tuple[int, ...], np.dtype]:
        return self.out.shape, self.out.dtype

    def backward(self, grad: np.ndarray) -> tuple:
        return self.gradients(grad, self.out, *self.inputs)


def rule(title: str, forward: Callable[..., np.ndarray], gradients: Callable[..., tuple]) -> type[Operation]:
    """An operation: the result, and from grad, the result and the inputs the gradient of each input."""
    return type(title, (Operation,), {"forward": staticmethod(forward), "gradients": staticmethod(gradients)})


RULES = {
    "+": rule("Add", lambda a, b: a + b, lambda g, out, a, b: (g, g)),
    "-": rule("Subtract", lambda a, b: a - b, lambda g, out, a, b: (g, -g)),
    "*": rule("Multiply", lambda a, b: a * b, lambda g, out, a, b: (g * b, g * a)),
    "/": rule("Divide", lambda a, b: a / b, lambda g, out, a, b: (g / b, -g * out / b)),
    "**": rule("Power", lambda a, b: a**b, lambda g, out, a, b: (g * b * a ** (b - 1), None)),
    "@": rule("MatMul", lambda a, b: a @ b, lambda g, out, a, b: (g @ b.T, a.T @ g)),
    "negative": rule("Negative", lambda a: -a, lambda g, out, a: (-g,)),
    "exp": rule("Exp", np.exp, lambda g, out, a: (g * out,)),
    "log": rule("Log", np.log, lambda g, out, a: (g / a,)),
    "tanh": rule("Tanh", np.tanh, lambda g, out, a: (g * (1 - out * out),)),
    "relu": rule("ReLU", lambda a: np.maximum(a, 0), lambda g, out, a: (g * (a > 0),)),
    "sum": rule("Sum", lambda a: np.asarray(a.sum()), lambda g, out, a: (np.broadcast_to(g, a.shape),)),
    "mean": rule("Mean", lambda a: np.asarray(a.mean()), lambda g, out, a: (np.broadcast_to(g / a.size, a.shape),)),
}
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@"}


@dataclass(frozen=True)
class Value:
    """What a part of a formula comes to: its array, the node that made it, and how a constant is written."""

    array: np.ndarray
    node: Any = None
    written: str = ""


@dataclass
class Formula:
    """A formula on its way into a graph."""

    values: dict[str, Value] = field(default_factory=dict)
    names: dict[int, tuple[str, np.ndarray]] = field(default_factory=dict)
    constants: dict[tuple[int, int], str] = field(default_factory=dict)

    def read(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name) if name in self.values:
                return self.values[name]
            case ast.Name(id=name) if name in LEAVES:
                self.values[name] = self.named(name, Value(LEAVES[name], Leaf(LEAVES[name])))
                return self.values[name]
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return constant(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.apply("negative", node, self.read(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
                return self.apply(SIGNS[type(op)], node, self.read(left), self.read(right))
            case ast.Call(func=ast.Name(id="detach"), args=[inside], keywords=[]):
                return Value(self.read(inside).array, None, "detached")
            case ast.Call(func=ast.Name(id=name), args=[inside], keywords=[]) if name in RULES:
                return self.apply(name, node, self.read(inside))
        raise BadInput(f"{ast.unparse(node)!r} is not a part of a formula that the viewer knows: {HOW}.")

    def apply(self, sign: str, node: ast.expr, *inputs: Value) -> Value:
        kind, arrays = RULES[sign], [value.array for value in inputs]
        if sign == "**" and inputs[1].node is not None:
            raise BadInput(f"The exponent of {ast.unparse(node)!r} is not a number: write a power such as x ** 2.")
        if sign == "@" and any(array.ndim != 2 for array in arrays):
            raise BadInput(f"{ast.unparse(node)!r} multiplies something that is no matrix: write A @ W.")
        try:
            with np.errstate(all="ignore"):
                out = np.asarray(kind.forward(*arrays))
        except ValueError:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise BadInput(f"{ast.unparse(node)!r} does not fit together: its inputs have shapes {shapes}.") from None
        if not np.isfinite(out).all():
            raise BadInput(f"{ast.unparse(node)!r} is not finite for the values of the leaves: change that part.")
        if all(value.node is None for value in inputs):
            return Value(out, None, ast.unparse(node))
        made = kind(arrays, out, [value.node for value in inputs])
        self.constants |= {(id(made), slot): value.written for slot, value in enumerate(inputs) if value.node is None}
        return self.named("", Value(out, made))

    def named(self, name: str, value: Value) -> Value:
        """Note the name of a value, unless it has one."""
        if value.node is not None and not self.names.get(id(value.node), ("",))[0]:
            self.names[id(value.node)] = name, value.array
        return value


def constant(number: float) -> Value:
    if abs(number) > LARGEST:
        raise BadInput(f"{number:.6g} is too large for this viewer: use numbers up to {LARGEST:g}.")
    return Value(np.array(float(number)), None, f"{number:g}")


def formula(text: str) -> tuple[Any, Known]:
    """The last node of a formula, and what is known of all of them. Raises BadInput for text that is no formula."""
    *steps, last = parse(text)
    reading = Formula()
    for step in steps:
        match step:
            case ast.Assign(targets=[ast.Name(id=name)], value=inside) if name not in LEAVES:
                reading.values[name] = reading.named(name, reading.read(inside))
            case _:
                raise BadInput(f"{ast.unparse(step)!r} names no intermediate result: write a step as h = x * y.")
    if not isinstance(last, ast.Expr):
        raise BadInput(
            f"{ast.unparse(last)!r} is no result: end the formula with an expression, as in h = x * y; h + x."
        )
    result = reading.read(last.value)
    if result.node is None:
        raise BadInput(f"{text.strip()!r} depends on no leaf: nothing is recorded where no gradient is wanted.")
    return result.node, Known(reading.names, reading.constants)


def parse(text: str) -> Sequence[ast.stmt]:
    if not text.strip():
        raise BadInput(f"There is no formula yet: {HOW}.")
    if len(text) > LONGEST_TEXT:
        raise BadInput(f"The formula has {len(text)} characters: use at most {LONGEST_TEXT}.")
    try:
        with warnings.catch_warnings():
            # What Python merely warns of is no formula either.
            warnings.simplefilter("error")
            return ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        raise BadInput(f"{text.strip()!r} cannot be read as a formula: {HOW}.") from None
