"""The graph behind a tensor and the whole walk backward over it, read once and kept as words.

Whatever has the public shape of chapter 02 can be read: a tensor has `requires_grad`, `grad_fn` and `grad`; an
operation has `targets` (where each input's gradient goes: to an operation, to a leaf, or nowhere), `grad_like` (shape
and dtype of its output) and `backward`. Reading calls `backward` of the operations and nothing else, so that it leaves
no gradient behind and frees nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from autograder.errors import BadInput

from .shapes import minus, written

__all__ = ["Graph", "Known", "Node", "Visit", "brief", "graph_of_notebook", "read_graph"]

MOST_NODES = 40


@dataclass(frozen=True)
class Known:
    """What the graph itself does not tell: names and values by the id of a node, and constants by node and input."""

    names: Mapping[int, tuple[str, np.ndarray]] = field(default_factory=dict)
    constants: Mapping[tuple[int, int], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """`kind` is operation, leaf or constant, `content` its value or shape, `had` the .grad of a leaf before."""

    kind: str
    title: str
    content: str
    had: str = ""


@dataclass(frozen=True)
class Visit:
    """One step of the walk: the gradients that a node got, their sum, and what it sends along each of its edges.

    `total` is the .grad that the walk leaves in a leaf.
    """

    node: int
    parts: tuple[str, ...]
    grad: str
    sent: Mapping[int, str]
    total: str = ""


@dataclass(frozen=True)
class Graph:
    """Node 0 is the result. Edges lead from an operation to where a gradient goes; those to constants carry none."""

    nodes: Sequence[Node]
    edges: Sequence[tuple[int, int]]
    visits: Sequence[Visit]
    seed: str
    failure: str
    hooked: bool

    def arrivals(self, node: int) -> int:
        """How many gradients a node gets."""
        return max(sum(target == node for _, target in self.edges), node == 0)


def graph_of_notebook(tensor: Any) -> Graph:
    """The graph behind a tensor, with the names that its parts have in the notebook."""
    for name in ("requires_grad", "grad_fn", "grad"):
        if isinstance(tensor, str) or not hasattr(tensor, name):
            what = repr(tensor)[:60]
            raise BadInput(f"{what} is not a Tensor: give graph_viewer the result of a calculation, or preset='reuse'.")
    if not tensor.requires_grad:
        raise BadInput(
            "There is no graph behind this tensor: it requires no gradient. "
            "Look for a leaf without requires_grad=True, a detach() or a no_grad() on its way."
        )
    names = {id(node_of(tensor)): ("", array_of(tensor))}
    for name, thing in list(vars(sys.modules["__main__"]).items()):
        if not name.startswith("_") and hasattr(type(thing), "grad_fn") and thing.requires_grad:
            names[id(node_of(thing))] = name, array_of(thing)
    return read_graph(node_of(tensor), Known(names))


def node_of(tensor: Any) -> Any:
    """Where the gradient of a tensor is sent."""
    return tensor if tensor.grad_fn is None else tensor.grad_fn


def is_leaf(node: Any) -> bool:
    return hasattr(node, "requires_grad")


def array_of(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().numpy())


def read_graph(root: Any, known: Known) -> Graph:
    """The graph that can be reached from a node. Raises BadInput where it is freed or too large for the picture."""
    found = reachable(root)
    number = {id(node): n for n, node in enumerate(found)}
    nodes, edges, slots = [node_of_picture(node, known) for node in found], [], {}
    for source, node in enumerate(found):
        for slot, target in enumerate(() if is_leaf(node) else node.targets):
            if target is None:
                nodes.append(Node("constant", known.constants.get((id(node), slot), "constant"), "no gradient"))
            else:
                slots[source, slot] = len(edges)
            edges.append((source, len(nodes) - 1 if target is None else number[id(target)]))
    if len(nodes) > MOST_NODES:
        raise BadInput(
            f"The graph behind this tensor has {len(nodes)} nodes: the picture has room for {MOST_NODES}, "
            "so look at the graph of an earlier result or of a smaller case."
        )
    walk = Walk(found, edges, slots)
    walk.run()
    hooked = any(getattr(node, "hooks", None) is not None for node in found)
    return Graph(nodes, edges, walk.visits, brief(walk.seed), walk.failure, hooked)


def reachable(root: Any) -> list[Any]:
    """The node and all that its gradient gets to, each once, the node itself first."""
    found, unseen = {id(root): root}, [root]
    while unseen:
        node = unseen.pop()
        if is_leaf(node):
            continue
        if not len(node.targets):
            raise BadInput(
                "The graph behind this tensor was freed by an earlier backward: "
                "calculate the tensor anew, or give that backward retain_graph=True."
            )
        for target in node.targets:
            if target is not None and id(target) not in found:
                found[id(target)] = target
                unseen.append(target)
    return list(found.values())


def node_of_picture(node: Any, known: Known) -> Node:
    name, value = known.names.get(id(node), ("", None))
    if is_leaf(node):
        had = "" if node.grad is None else brief(array_of(node.grad))
        return Node("leaf", name or "leaf", brief(array_of(node) if value is None else value), had)
    title = type(node).__name__
    content = f"shape {written(tuple(node.grad_like[0]))}" if value is None else brief(value)
    return Node("operation", f"{name} = {title}" if name else title, content)


class Walk:
    """Visits every node once, when all of its gradients are there; ends early at a backward that fails."""

    def __init__(self, found: Sequence[Any], edges: Sequence[tuple[int, int]], slots: Mapping[tuple[int, int], int]):
        self.found, self.edges, self.slots = found, edges, slots
        self.visits: list[Visit] = []
        self.failure = ""
        self.seed = np.ones(*like(found[0]))

    def run(self) -> None:
        waiting = [0] * len(self.found)
        for edge in self.slots.values():
            waiting[self.edges[edge][1]] += 1
        arrived, ready = {0: [self.seed]}, [0]
        while ready and not self.failure:
            node = ready.pop()
            for edge, g in self.visit(node, arrived.pop(node)).items():
                target = self.edges[edge][1]
                arrived.setdefault(target, []).append(g)
                waiting[target] -= 1
                if not waiting[target]:
                    ready.append(target)

    def visit(self, number: int, parts: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
        """Note the visit of a node, and return what it sends along its edges."""
        node, grad = self.found[number], reduce(np.add, parts)
        sent, words, total = {}, {}, ""
        if is_leaf(node):
            total = brief(grad if node.grad is None else array_of(node.grad) + grad)
        else:
            try:
                for slot, g in enumerate(results(node, grad)):
                    if node.targets[slot] is not None:
                        edge = self.slots[number, slot]
                        sent[edge], words[edge] = fitted(node, g, *like(node.targets[slot]))
            except BadInput as error:
                self.failure = str(error)
        self.visits.append(Visit(number, tuple(map(brief, parts)), brief(grad), words, total))
        return sent


def like(node: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and dtype of the gradient that a node gets."""
    shape, dtype = (node.shape, node.dtype) if is_leaf(node) else node.grad_like
    return tuple(shape), dtype


def results(node: Any, grad: np.ndarray) -> Sequence[Any]:
    """What backward gives for each input. It is the reader's own code and may raise whatever it likes."""
    try:
        given = node.backward(grad.copy())
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"{type(node).__name__}.backward raised {type(error).__name__}: {reason}") from error
    given = tuple(given) if isinstance(given, tuple | list) else (given,)
    if len(given) != len(node.targets):
        counts = f"{len(given)} gradients for {len(node.targets)} inputs"
        raise BadInput(f"{type(node).__name__}.backward gave {counts}: return one for each, None where none is wanted.")
    return given


def fitted(node: Any, g: Any, shape: tuple[int, ...], dtype: Any) -> tuple[np.ndarray, str]:
    """A gradient in the shape of its target, and how it is written: summed along the axes that were broadcast."""
    if g is None:
        return np.zeros(shape, dtype), "0 (None)"
    g = np.asarray(g)
    more = g.ndim - len(shape)
    if more < 0 or any(size not in (1, there) for size, there in zip(shape, g.shape[more:], strict=True)):
        raise BadInput(
            f"{type(node).__name__}.backward gave a gradient of shape {written(g.shape)} to an input of shape "
            f"{written(shape)}: a gradient has the shape of its input."
        )
    stretched = [more + axis for axis, size in enumerate(shape) if size == 1]
    whole = g.sum((*range(more), *stretched)).reshape(shape).astype(dtype)
    return whole, brief(whole) if g.shape == shape else f"{written(g.shape)} summed to {brief(whole)}"


def brief(array: np.ndarray) -> str:
    """A number as it is, a few of them in brackets, of more the shape."""
    if array.size == 1:
        return decimal(array.reshape(-1)[0])
    if array.ndim == 1 and 0 < array.size <= 3:
        return f"[{', '.join(decimal(x) for x in array)}]"
    same = array.size and (array == array.reshape(-1)[0]).all()
    return written(array.shape) + (f", all {decimal(array.reshape(-1)[0])}" if same else "")


def decimal(x: Any) -> str:
    return minus(f"{float(x):.3g}")
