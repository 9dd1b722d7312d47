"""The graph viewer: the graph behind a result, and its gradient on the way back, one node at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import Any, ClassVar

from autograder.errors import BadInput

from .controls import Steps, Text
from .formulas import formula
from .frame import Frame
from .graphs import Graph, Visit, graph_of_notebook, read_graph
from .layered import Layout, lay_out
from .pictures import Drawing

__all__ = ["GraphViewer"]

OWN_TENSOR = "your tensor"
HEIGHT, BETWEEN = 56.0, 46.0
LARGEST, SMALLEST = 178.0, 70.0


class GraphViewer(Frame):
    """Draws the graph behind a tensor of yours, `graph_viewer(loss)`, or of a formula, and walks back through it."""

    title = "Graph viewer"
    caption = (
        "Choose a preset or type a formula of x = 2, y = 0.5, z = −1, the matrices A and W and the vector b, then walk "
        "back with the slider or the buttons; graph_viewer(loss) shows a graph of your own. The result is at the top, "
        "and its gradient flows down. Watch where two arrows meet: that node waits until both gradients are there."
    )
    controls = (Text("expression", "Formula", "x * x + x", width="330px"), Steps("step", "Step", 0))
    presets: ClassVar = {
        "reuse": {"expression": "x * x + x"},
        "diamond": {"expression": "h = x * y; tanh(h) * exp(h)"},
        "two branches": {"expression": "h = x * y; (h - z) ** 2 + relu(h)"},
        "broadcast bias": {"expression": "sum(A @ W + b)"},
        "detached branch": {"expression": "h = x * y; h * detach(exp(h))"},
    }

    def __init__(self, tensor: Any = None, preset: str | None = None, **values: object) -> None:
        self.own = None if tensor is None else graph_of_notebook(tensor)
        if self.own and preset is None:
            values = {"expression": OWN_TENSOR} | values
        super().__init__(preset, **values)

    def picture(self, *, expression: str, step: int) -> Drawing:
        """A `step` past the end of the walk is the last one; step 0 is before the first visit.

        Raises BadInput for text that is no formula, and for a graph that is too large to draw.
        """
        own = self.own if expression.strip() == OWN_TENSOR else None
        graph = own or read_graph(*formula(expression))
        what = "The graph of your tensor" if own else f"The graph of {expression.strip()}"
        return draw(Moment(graph, max(min(step, len(graph.visits)), 0)), what)


@dataclass(frozen=True)
class Moment:
    """A walk after so many visits."""

    graph: Graph
    step: int

    @cached_property
    def past(self) -> Sequence[Visit]:
        return self.graph.visits[: self.step]

    @property
    def visit(self) -> Visit | None:
        """The visit of this step; none before the first."""
        return self.past[-1] if self.past else None

    @cached_property
    def visited(self) -> dict[int, Visit]:
        return {visit.node: visit for visit in self.past}

    @cached_property
    def sent(self) -> dict[int, str]:
        """What has gone along each edge so far."""
        return {edge: words for visit in self.past for edge, words in visit.sent.items()}

    @property
    def failed(self) -> bool:
        return bool(self.graph.failure) and self.step == len(self.graph.visits)

    @cached_property
    def arrived(self) -> dict[int, int]:
        """How many gradients each node has got, where it has got any."""
        counts = {0: 1}
        for edge in self.sent:
            target = self.graph.edges[edge][1]
            counts[target] = counts.get(target, 0) + 1
        return counts

    @property
    def waiting(self) -> list[int]:
        """The nodes that have some of their gradients and not yet all."""
        return [node for node, count in self.arrived.items() if count < self.graph.arrivals(node)]

    def look(self, node: int) -> str:
        if self.visit and node == self.visit.node:
            return "wrong" if self.failed else "current"
        return "done" if node in self.visited else "touched" if node in self.arrived else "empty"

    def state(self, node: int) -> str:
        """The third line on a node: what it has got."""
        seen = self.graph.nodes[node]
        if seen.kind == "constant":
            return ""
        if node in self.visited:
            visit = self.visited[node]
            return f".grad {visit.total}" if seen.kind == "leaf" else f"grad {visit.grad}"
        if node not in self.arrived:
            return f".grad {seen.had}" if seen.had else ""
        return f"{self.arrived[node]} of {self.graph.arrivals(node)} arrived"


def told(moment: Moment) -> str:
    """What happens in this step, in a sentence or two."""
    graph, visit = moment.graph, moment.visit
    where = f"Step {moment.step} of {len(graph.visits)}"
    if visit is None:
        return f"{where}: the walk begins at {graph.nodes[0].title} with the gradient {graph.seed}."
    node = graph.nodes[visit.node]
    got = f"{visit.grad} = {' + '.join(visit.parts)}" if len(visit.parts) > 1 else visit.grad
    if node.kind == "leaf":
        had = f" It had {node.had}, so its .grad becomes {visit.total}." if node.had else ""
        return f"{where}: the leaf {node.title} keeps {got}.{had}"
    gives = [f"{words} to {graph.nodes[graph.edges[edge][1]].title}" for edge, words in visit.sent.items()]
    return f"{where}: {node.title} is visited with {got}" + (f" and sends {listed(gives)}." if gives else ".")


def remarks(moment: Moment) -> list[str]:
    """What else there is to say: who waits, how it ended, what is not shown."""
    graph, says = moment.graph, []
    if moment.waiting:
        names = [f"{graph.nodes[n].title} ({moment.arrived[n]} of {graph.arrivals(n)} here)" for n in moment.waiting]
        says.append(f"Waiting for more: {listed(names)}.")
    if moment.failed:
        says.append(f"{graph.failure.rstrip('.')}. The walk ends here.")
    elif moment.step == len(graph.visits):
        grads = [f"{graph.nodes[v.node].title}.grad = {v.total}" for v in moment.past if v.total]
        says.append(f"The walk is over: {listed(grads)}.")
    if graph.hooked:
        says.append("Hooks are not called in this picture.")
    return says


def listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def draw(moment: Moment, what: str) -> Drawing:
    graph, drawing = moment.graph, Drawing()
    layout = lay_out(len(graph.nodes), graph.edges, drawing.width, LARGEST)
    if layout.size < SMALLEST:
        raise BadInput(f"{what} is too wide for the picture: look at the graph of an earlier result.")
    drawing.steps = len(graph.visits) + 1
    drawing.alt = " ".join([f"{what}, {len(graph.nodes)} nodes.", told(moment), *remarks(moment)])
    top = 16.0
    for line in wrap(told(moment), 98):
        drawing.words(0, top, line, bold=True)
        top += 19
    for line in [line for says in remarks(moment) for line in wrap(says, 104)]:
        drawing.words(0, top, line, "warn" if moment.failed else "soft")
        top += 19
    # Two lines are kept free whether or not they are needed, so that the graph stays where it is from step to step.
    sheet = Sheet(drawing, moment, layout, max(top, 54.0) + 8)
    sheet.draw_edges()
    sheet.draw_nodes()
    draw_legend(drawing, drawing.height + 20)
    return drawing


@dataclass(frozen=True)
class Sheet:
    """Where the graph lies on the drawing, below `top`."""

    drawing: Drawing
    moment: Moment
    layout: Layout
    top: float

    @property
    def width(self) -> float:
        return 0.8 * self.layout.size

    def level(self, layer: int) -> float:
        return self.top + layer * (HEIGHT + BETWEEN)

    def draw_nodes(self) -> None:
        # The one with the thick edge comes last, or what lies beside it would cover a part of it.
        numbers = range(len(self.layout.places))
        for number in sorted(numbers, key=lambda n: self.moment.look(n) in ("current", "wrong")):
            self.draw_node(number)

    def draw_node(self, number: int) -> None:
        layer, x = self.layout.places[number]
        y, node, look = self.level(layer), self.moment.graph.nodes[number], self.moment.look(number)
        if node.kind != "constant":
            self.drawing.box(x - self.width / 2, y, self.width, HEIGHT, "", look)
        ink, soft = ("strong", "soft") if look == "empty" else ("black", "black")
        lines = [(node.title, ink, 12.5), (node.content, soft, 11.0), (self.moment.state(number), soft, 11.0)]
        for n, (words, colour, size) in enumerate(lines):
            fits = shortened(words, (self.width - 8) / (0.6 * size))
            self.drawing.words(x, y + 18 + 15.5 * n, fits, colour, size, "middle", bold=n == 0)

    def draw_edges(self) -> None:
        moment, edges = self.moment, self.moment.graph.edges
        leaving = self.ports([(source, self.layout.routes[n][1][1]) for n, (source, _) in enumerate(edges)])
        coming = self.ports([(target, self.layout.routes[n][-2][1]) for n, (_, target) in enumerate(edges)])
        now = moment.visit.sent if moment.visit else {}
        # What is sent in this step lies on top.
        for edge in sorted(range(len(edges)), key=lambda n: (n in now, n in moment.sent)):
            points = self.points(edge, leaving[edge], coming[edge])
            if moment.graph.nodes[edges[edge][1]].kind == "constant":
                self.drawing.line(points, "line", 1, dashed=True, smooth=True)
                continue
            ink, width = ("strong", 3.0) if edge in now else ("soft", 1.8) if edge in moment.sent else ("line", 1.0)
            self.drawing.line(points, ink, width, smooth=True, head=True)
            if edge in moment.sent:
                # Away from the other tips on the same node, or else from where the edge comes.
                side = coming[edge] or points[-1][0] - points[-2][0]
                self.label(points[-2:], moment.sent[edge], -1 if side < 0 else 1, edge in now)

    def label(self, ends: Sequence[tuple[float, float]], words: str, side: int, now: bool) -> None:
        """What went along an edge, beside its tip; if the edge comes from this side too, beyond its last bend."""
        (start, _), (tip, y) = ends
        bend = 0.26 * max(0.0, side * (start - tip))
        x = tip + side * (8 + bend)
        self.drawing.words(x, y - 7, words, "strong", 12, "end" if side < 0 else "start", bold=now, halo=True)

    def ports(self, ends: Sequence[tuple[int, float]]) -> list[float]:
        """How far from the middle of its node each edge is tied: in the order of where the edges come from or go."""
        shifts = [0.0] * len(ends)
        for node in {node for node, _ in ends}:
            tied = sorted((n for n, end in enumerate(ends) if end[0] == node), key=lambda n: ends[n][1])
            step = min(44.0, (self.width - 16) / len(tied))
            for place, n in enumerate(tied):
                shifts[n] = (place - (len(tied) - 1) / 2) * step
        return shifts

    def points(self, edge: int, leaving: float, coming: float) -> list[tuple[float, float]]:
        (first, x0), *passing, (last, x1) = self.layout.routes[edge]
        route = [(x0 + leaving, self.level(first) + HEIGHT)]
        for layer, x in passing:
            # Straight down past the nodes of the layer.
            route += [(x, self.level(layer)), (x, self.level(layer) + HEIGHT)]
        return [*route, (x1 + coming, self.level(last) - 1)]


def shortened(text: str, most: float) -> str:
    return text if len(text) <= most else text[: int(most) - 1] + "…"


def draw_legend(drawing: Drawing, top: float) -> None:
    entries = [("current", "visited now"), ("done", "visited before"), ("touched", "has got some gradient")]
    for n, (look, words) in enumerate([*entries, ("empty", "nothing arrived yet")]):
        drawing.box(180 * n + 2, top - 11, 14, 14, "", look)
        drawing.words(180 * n + 24, top, words, "soft", 12)
