"""Graphs for the probes of chapter 02: what visits them, and how often, is counted.

A graph is a stack of copies of one small piece. Node 0 is the top of a piece and its last node the bottom, which is the
top of the next copy. An edge (i, j) with weight w says that node i sends w times its gradient to node j, or nowhere if
j is -1. So 20,000 copies of one edge are a deep chain, and two edges from 0 to 1 make a diamond. Gradients have one
axis; a node that is listed under `numbers`, as a scalar that was broadcast, takes sums, without axes.
"""

from __future__ import annotations

import numpy as np

MOST_VISITS = 5_000, 20
"""So many in all, or so many for each node. A walk along every path would take for ever."""
SHOWN = 12
"""How many nodes' visits are compared, from the root on."""


class Node:
    """A node as the exercises meet it: `targets` says where its gradients go."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.is_number = False
        self.routes: list[tuple[Node | None, float]] = []

    @property
    def targets(self) -> list[Node | None]:
        self.graph.spend()
        return [target for target, _ in self.routes]


class Graph:
    """The graph of a case, and what was seen while it was walked."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        edges, weights, copies = arrays["edges"], arrays["weights"], int(arrays["copies"])
        size = int(edges.max())
        self.nodes = [Node(self) for _ in range(copies * size + 1)]
        for copy in range(copies):
            for (i, j), weight in zip(edges.tolist(), weights.tolist(), strict=True):
                target = None if j < 0 else self.nodes[copy * size + j]
                self.nodes[copy * size + i].routes.append((target, weight))
        for number in arrays.get("numbers", ()):
            self.nodes[number].is_number = True
        self.allowed = max(MOST_VISITS[0], MOST_VISITS[1] * len(self.nodes))
        self.visits = dict.fromkeys(self.nodes, 0)
        nothing = {False: 0 * arrays["grad"], True: np.zeros(())}
        self.received = {node: nothing[node.is_number] for node in self.nodes if not node.routes}

    def spend(self) -> None:
        self.allowed -= 1
        if self.allowed < 0:
            raise RuntimeError(f"stopped: a graph of {len(self.nodes)} nodes takes far fewer steps than this")

    def visit(self, node: Node, grad: np.ndarray) -> list[tuple[Node, np.ndarray]]:
        """The work at one node: a leaf adds up what arrives, another passes it on. Weight 1 hands on the same array."""
        self.spend()
        self.visits[node] += 1
        if not node.routes:
            self.received[node] = self.received[node] + grad
            return []
        return [(target, self.sent(node, grad, target, w)) for target, w in node.routes if target is not None]

    def sent(self, node: Node, grad: np.ndarray, target: Node, weight: float) -> np.ndarray:
        grad = grad if weight == 1 else weight * grad
        if node.is_number == target.is_number:
            return grad
        return np.array(grad.sum()) if target.is_number else grad * np.ones(2)

    def seen(self) -> dict[str, np.ndarray]:
        """What a walk has left: the gradients of the leaves, and how often the first nodes were visited."""
        received, mixed = list(self.received.values()), any(node.is_number for node in self.received)
        return {
            "gradients of the leaves": np.concatenate([g.ravel() for g in received]) if mixed else np.array(received),
            "visits": np.array(list(self.visits.values())[:SHOWN]),
        }


# Probes and inputs of exercises 2.5 to 2.7


def probe_walk(target, arrays, framework):
    graph = Graph(arrays)
    target(graph.nodes[0], arrays["grad"], graph.visit)
    return graph.seen()


def probe_arrivals(target, arrays, framework):
    graph = Graph(arrays)
    counted = target(graph.nodes[0])
    shown = [counted.get(node, -1) for node in graph.nodes]
    return {
        "arrivals (-1 where a node is missing)": np.array(shown[:SHOWN]),
        "arrivals at the last node": np.array(shown[-1]),
        "nodes counted": np.array(len(counted)),
    }


EDGE = ((0, 1),)
TWO_LEAVES = ((0, 1), (0, 2))
DIAMOND = ((0, 1), (0, 1))
SQUARE = ((0, 1), (0, 2), (1, 3), (2, 3))
SHORT_AND_LONG = ((0, 3), (0, 1), (1, 2), (2, 3))
LONG_AND_SHORT = ((0, 1), (0, 3), (1, 2), (2, 3))
SCALAR = ((0, 1), (0, 2), (1, 2), (2, 3), (0, 3), (2, 4), (1, 4))
CONSTANT = ((0, -1), (0, 1), (1, 2), (1, -1))
MIXED = ((0, 3), (0, 1), (0, 2), (0, 4), (0, 3), (0, 1), (1, 3), (1, 4), (2, 3), (2, 3))
"""f = x(xa) + (xx)a + x(xa) at x = a = 1: node 0 is f, 1 is xa, 2 is xx, and the leaves are x and a."""


def inputs_graph(rng, edges, copies=1, weights="random", numbers=()):
    number = len(edges)
    return {
        **({"numbers": np.array(numbers, dtype=np.int64)} if numbers else {}),
        "edges": np.array(edges, dtype=np.int64),
        "weights": rng.uniform(0.5, 1.5, number) if weights == "random" else np.full(number, float(weights)),
        "copies": np.array(copies),
        "grad": rng.standard_normal(2),
    }


def draw_graph(rng):
    """Up to seven nodes; every node but the last sends to one or more of those behind it."""
    n = int(rng.integers(3, 8))
    edges = [(i, int(rng.integers(i + 1, n))) for i in range(n - 1) for _ in range(rng.integers(1, 4))]
    return (*edges, (n - 2, n - 1)), 1
