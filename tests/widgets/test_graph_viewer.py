"""The graph viewer: formulas, graphs of chapter 02 and of its like, and a walk without a trace."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from autograder.errors import BadInput
from gradwright.widgets import graph_viewer
from gradwright.widgets.formulas import LEAVES, formula
from gradwright.widgets.graphs import MOST_NODES, brief, graph_of_notebook, read_graph
from gradwright.widgets.pictures import Drawing, Line, Words


@pytest.fixture
def autodiff() -> ModuleType:
    from gradwright.chapters import autodiff

    return autodiff


@pytest.fixture
def leaf(autodiff: ModuleType) -> Callable[..., Any]:
    return lambda *numbers: autodiff.Tensor(np.array(numbers[0] if len(numbers) == 1 else numbers)).requires_grad_()


def gradients(text: str) -> dict[str, str]:
    """What each leaf of a formula gets."""
    graph = read_graph(*formula(text))
    return {graph.nodes[visit.node].title: visit.total for visit in graph.visits if visit.total}


X, Y, Z = 2.0, 0.5, -1.0


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x * x + x", {"x": 2 * X + 1}),
        ("h = x * y; tanh(h) * exp(h)", {"x": Y * math.e * (1 - math.tanh(1) ** 2 + math.tanh(1))}),
        ("h = x * y; (h - z) ** 2 + relu(h)", {"x": Y * (2 * 2 + 1), "y": X * (2 * 2 + 1), "z": -4}),
        ("h = x * y; h * detach(exp(h))", {"x": Y * math.e, "y": X * math.e}),
        ("x / y - log(x)", {"x": 1 / Y - 1 / X, "y": -X / Y**2}),
        ("-relu(z) + 3 * x", {"x": 3, "z": 0}),
        ("h = x; h * h", {"x": 2 * X}),
    ],
)
def test_the_leaves_of_a_formula_get_their_derivatives(text: str, wanted: dict[str, float]) -> None:
    found = gradients(text)
    assert {name: found[name] for name in wanted} == {name: brief(np.array(g)) for name, g in wanted.items()}


def test_every_rule_agrees_with_a_difference() -> None:
    rng = random.Random(4)
    for _ in range(60):
        sign = rng.choice(["exp({})", "log({} ** 2 + 1)", "tanh({})", "{} / 3", "({} - y) * x", "{} * x + {}", "-{}"])
        text = sign.replace("{}", rng.choice(["x", "x * y", "(x + z)", "mean(A * x)", "sum(x * b + 1)"]))
        assert gradients(text)["x"] == brief(np.array(difference(text)))


def difference(text: str, step: float = 1e-5) -> float:
    outs = []
    for side in (step, -step):
        names = LEAVES | {"x": LEAVES["x"] + side, "log": np.log, "exp": np.exp, "tanh": np.tanh, "sum": np.sum}
        outs.append(eval(text, {"__builtins__": {}}, names | {"mean": np.mean}))
    return round(float(outs[0] - outs[1]) / (2 * step), 6) + 0.0  # the zero takes the sign off a -0


def test_a_broadcast_bias_gets_the_sum() -> None:
    graph = read_graph(*formula("sum(A @ W + b)"))
    assert gradients("sum(A @ W + b)")["b"] == "[2, 2]"
    assert "(2, 2) summed to [2, 2]" in [words for visit in graph.visits for words in visit.sent.values()]


def test_a_node_is_visited_once_and_after_all_of_its_gradients() -> None:
    graph = read_graph(*formula("h = x * y; (h - z) ** 2 + relu(h) * h"))
    order = [visit.node for visit in graph.visits]
    operations = [n for n, node in enumerate(graph.nodes) if node.kind != "constant"]
    assert sorted(order) == operations
    ends = [edge for edge in graph.edges if graph.nodes[edge[1]].kind != "constant"]
    assert all(order.index(source) < order.index(target) for source, target in ends)
    assert all(len(visit.parts) == graph.arrivals(visit.node) for visit in graph.visits)


def test_a_node_waits_until_all_has_arrived() -> None:
    looks = [graph_viewer.static(preset="diamond", step=step).alt for step in range(7)]
    assert "Waiting for more: h = Multiply (1 of 2 here)." in looks[2]
    assert "Waiting" not in looks[3]
    assert "h = Multiply is visited with 3.21 = 2.07 + 1.14" in looks[4]
    assert looks[6].endswith("The walk is over: y.grad = 6.42 and x.grad = 1.61.")


def test_a_detached_branch_ends_at_a_constant() -> None:
    graph = read_graph(*formula("h = x * y; h * detach(exp(h))"))
    assert [(node.title, node.content) for node in graph.nodes if node.kind == "constant"] == [
        ("detached", "no gradient")
    ]
    assert "Exp" not in {node.title for node in graph.nodes}


def test_the_graph_of_chapter_02_and_the_gradients_of_its_backward(autodiff: ModuleType, leaf: Any) -> None:
    x, w, b = leaf([[1.0, 2.0]]), leaf([[3.0], [-1.0]]), leaf([0.5])
    out = x @ w + b
    loss = (out * out).sum() + (w * 2.0).sum()
    graph = graph_of_notebook(loss)
    assert (x.grad, w.grad, b.grad) == (None, None, None)
    loss.backward()
    totals = {visit.total for visit in graph.visits if visit.total}
    assert totals == {brief(t.grad.numpy()) for t in (x, w, b)}
    assert [node.title for node in graph.nodes if node.kind == "operation"].count("Sum") == 2


def test_a_picture_leaves_the_graph_and_its_gradients_as_they_were(leaf: Any) -> None:
    x = leaf(2.0)
    (x * x).backward()
    y = x * x * x
    for _ in range(2):
        alt = graph_viewer.static(y, step=9).alt
    assert x.grad.item() == 4
    assert "It had 4, so its .grad becomes 16." in alt
    y.backward()
    assert x.grad.item() == 16


def test_the_widget_lives_on_after_the_graph_was_freed(leaf: Any) -> None:
    x = leaf(2.0)
    y = x * x
    widget = graph_viewer(y)
    panel = widget.panel
    y.backward()
    panel.controls["step"].value = 2
    assert "x.grad" in panel.alt or "leaf.grad = 4" in panel.alt
    assert panel.choice.value == "your own"
    panel.choice.value = "reuse"
    assert panel.alt == graph_viewer.static(preset="reuse").alt
    panel.controls["expression"].value = "your tensor"
    assert panel.alt.startswith("The graph of your tensor, 2 nodes.")


def test_names_come_from_the_notebook(leaf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    weight, loss = leaf(2.0), None
    loss = weight * weight
    for name, tensor in {"weight": weight, "loss": loss, "_3": loss}.items():
        monkeypatch.setattr(sys.modules["__main__"], name, tensor, raising=False)
    graph = graph_of_notebook(loss)
    assert [(node.title, node.content) for node in graph.nodes] == [("loss = Multiply", "4"), ("weight", "2")]


class Square:
    """An operation that is nobody's subclass."""

    def __init__(self, x: Any, gives: Any) -> None:
        self.targets, self.grad_like, self.gives = [x], (x.shape, x.dtype), gives

    def backward(self, grad: np.ndarray) -> Any:
        return self.gives(grad)


class Plain:
    """A tensor that is nobody's subclass."""

    def __init__(self, array: Any, grad_fn: Any = None) -> None:
        self.data, self.grad_fn, self.grad, self.requires_grad = np.asarray(array, float), grad_fn, None, True
        self.shape, self.dtype = self.data.shape, self.data.dtype

    def detach(self) -> Plain:
        return self

    def numpy(self) -> np.ndarray:
        return self.data


def square(gives: Any, x: Any = 3.0) -> Plain:
    leaf = Plain(x)
    return Plain(leaf.data**2, Square(leaf, gives))


def test_any_classes_of_the_public_shape_can_be_read() -> None:
    assert "leaf.grad = 6" in graph_viewer.static(square(lambda grad: 6 * grad), step=2).alt


@pytest.mark.parametrize(
    ("gives", "sentence"),
    [
        (lambda grad: 1 / 0, "Square.backward raised ZeroDivisionError: division by zero. The walk ends here."),
        (lambda grad: (grad, grad), "Square.backward gave 2 gradients for 1 inputs"),
        (lambda grad: np.ones(3), "Square.backward gave a gradient of shape (3,) to an input of shape (2,)"),
        (lambda grad: np.float64(1), "Square.backward gave a gradient of shape () to an input of shape (2,)"),
    ],
)
def test_a_backward_that_fails_ends_the_walk_with_a_sentence(gives: Any, sentence: str) -> None:
    picture = graph_viewer.static(square(gives, [3.0, 4.0]), step=9)
    assert sentence in picture.alt
    assert picture.steps == 2
    assert "The walk is over" not in picture.alt


def test_none_stands_for_zeros_and_a_gradient_may_not_be_changed_in_place() -> None:
    assert "leaf.grad = 0" in graph_viewer.static(square(lambda grad: None), step=2).alt
    picture = graph_viewer.static(square(lambda grad: np.multiply(grad, 9, out=grad)), step=2)
    assert "grad 1<" in picture.html()


def test_hooks_are_not_called_and_that_is_said(leaf: Any) -> None:
    x, seen = leaf(2.0), []
    x.register_hook(seen.append)
    assert graph_viewer.static(x * x, step=2).alt.endswith("Hooks are not called in this picture.")
    assert seen == []


def test_a_result_of_many_elements_begins_with_ones(leaf: Any) -> None:
    x = leaf(1.0, 2.0)
    assert "begins at Multiply with the gradient [1, 1]" in graph_viewer.static(x * 3.0).alt


def test_what_has_no_graph_is_one_sentence(autodiff: ModuleType, leaf: Any) -> None:
    freed = leaf(2.0) * 3.0
    freed.backward()
    cases = {
        "'reuse' is not a Tensor: give graph_viewer the result of a calculation": "reuse",
        "array([1., 1.]) is not a Tensor": np.ones(2),
        "it requires no gradient": autodiff.Tensor(np.array(1.0)),
        "was freed by an earlier backward": freed,
    }
    for sentence, tensor in cases.items():
        with pytest.raises(BadInput) as caught:
            graph_viewer(tensor)
        assert sentence in str(caught.value)


def test_a_graph_that_is_too_large_is_refused_however_deep_it_is(leaf: Any) -> None:
    x = leaf(1.0)
    for _ in range(5000):
        x = x * x
    with pytest.raises(BadInput, match=f"has 5001 nodes: the picture has room for {MOST_NODES}"):
        graph_viewer(x)


def test_a_graph_that_is_too_wide_is_refused(leaf: Any) -> None:
    total = Plain(0.0, type("Total", (), {"targets": [Plain(n) for n in range(20)], "grad_like": ((), np.float64)})())
    total.grad_fn.backward = lambda grad: (grad,) * 20
    with pytest.raises(BadInput, match="too wide for the picture"):
        graph_viewer.static(total)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" ", "There is no formula yet: write + - * /"),
        ("q * x", "'q' is not a part of a formula that the viewer knows"),
        ("x.T", "'x.T' is not a part of a formula"),
        ("__import__('os')", "is not a part of a formula"),
        ("sin(x)", "'sin(x)' is not a part of a formula"),
        ("exp(x, y)", "'exp(x, y)' is not a part of a formula"),
        ("x if x else y", "is not a part of a formula"),
        ("x +", "'x +' cannot be read as a formula"),
        ("your tensor", "'your tensor' cannot be read as a formula"),
        ("x * " * 40 + "x", "The formula has 161 characters: use at most 120"),
        ("2 * 3", "'2 * 3' depends on no leaf"),
        ("detach(x)", "'detach(x)' depends on no leaf"),
        ("2 ** x", "The exponent of '2 ** x' is not a number"),
        ("x @ W", "'x @ W' multiplies something that is no matrix"),
        ("W @ W", "'W @ W' does not fit together: its inputs have shapes (3, 2) and (3, 2)"),
        ("A + W", "'A + W' does not fit together: its inputs have shapes (2, 3) and (3, 2)"),
        ("log(z)", "'log(z)' is not finite"),
        ("exp(x) ** 999999", "is not finite"),
        ("x * 10000000", "1e+07 is too large for this viewer"),
        ("x; y = 2", "'x' names no intermediate result"),
        ("x = y; x", "'x = y' names no intermediate result"),
        ("h = x * y", "'h = x * y' is no result"),
        ("+".join(["x"] * 41), f"has 41 nodes: the picture has room for {MOST_NODES}"),
    ],
)
def test_what_is_no_formula_is_one_sentence(text: str, sentence: str) -> None:
    panel = graph_viewer().panel
    panel.controls["expression"].value = text
    assert sentence in panel.sentence
    assert panel.sentence.endswith(".")


PIECES = [*"xyzAWbh+-*/@()=;,.2", "**", "exp(", "log(", "sum(", "detach(", "h=", " if ", "'a'"]


def test_no_text_makes_it_fail() -> None:
    rng = random.Random(5)
    drawn = 0
    for _ in range(2000):
        text = "x" + "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 8)))
        try:
            drawn += bool(graph_viewer.static(expression=text).alt)
        except BadInput as error:
            assert "\n" not in str(error)
    assert drawn > 20


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array(-0.5), "−0.5"),
        (np.array([[3.0]]), "3"),
        (np.array([1.0, -2.25]), "[1, −2.25]"),
        (np.ones((2, 3)), "(2, 3), all 1"),
        (np.arange(6.0).reshape(2, 3), "(2, 3)"),
        (np.zeros((0, 3)), "(0, 3)"),
        (np.array(np.nan), "nan"),
    ],
)
def test_a_gradient_is_written_briefly(array: np.ndarray, words: str) -> None:
    assert brief(array) == words


def crossed(drawing: Drawing) -> list[str]:
    """The words on edges that the line of an arrow runs through; a line in front of a number looks like a minus."""
    found = []
    for words in [shape for shape in drawing.shapes if isinstance(shape, Words) and shape.halo]:
        left = words.x - (0.62 * words.size * len(words.words) if words.anchor == "end" else 0)
        right = left + 0.62 * words.size * len(words.words)
        for line in [shape for shape in drawing.shapes if isinstance(shape, Line) and shape.head]:
            ((x0, y0), *_, (x1, y1)) = line.points
            for t in np.linspace(0, 1, 200):  # along the curve, whose control points lie half-way down
                x = x0 + (x1 - x0) * (3 * t**2 - 2 * t**3)
                y = y0 + (y1 - y0) * (1.5 * t * (1 - t) + t**3)
                if left < x < right and words.y - 0.7 * words.size < y < words.y and len(line.points) == 2:
                    found.append(words.words)
    return found


@pytest.mark.parametrize("preset", list(graph_viewer.presets))
def test_no_arrow_runs_through_a_number(preset: str) -> None:
    viewer = graph_viewer()
    expression = viewer.presets[preset]["expression"]
    for step in range(12):
        assert crossed(viewer.picture(expression=expression, step=step)) == []
