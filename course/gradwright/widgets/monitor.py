"""The flow monitor: what a recorder of chapter 04 has seen of a learner's own model, drawn while the model trains."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from autograder.errors import BadInput

from .flowing import LONGEST, Flow, draw_flow
from .pictures import Drawing
from .powers import figures

__all__ = ["FlowMonitor"]

# Seconds between two pictures of a training: more often nobody can read them, and drawing takes time from training.
PAUSE = 0.25
# Steps that are drawn, at the most, and layers.
MOST_STEPS, MOST_LAYERS = 120, 60
# How many times smaller or larger than the last layer's norm another may be.
APART = 1e3


class FlowMonitor:
    """`flow_monitor(flow)`, for a `flow = GradientFlow(model)`: a picture that follows the training of that model.

    As the last line of a cell it shows itself; `display(flow_monitor(flow))` shows it in the midst of one. It draws at
    most four times a second, and once more when the recorder is closed. It hangs on the recorder alone, never on the
    model. Raises BadInput for anything but a recorder.
    """

    def __init__(self, flow: Any) -> None:
        for needed in ("names", "gradient_norms", "histograms", "edges", "watchers"):
            if not hasattr(flow, needed):
                kind = type(flow).__name__
                raise BadInput(f"flow_monitor takes the recorder of a model, GradientFlow(model), and got a {kind}.")
        if len(flow.names) > MOST_LAYERS:
            raise BadInput(f"This model has {len(flow.names)} layers: the picture has room for {MOST_LAYERS}.")
        from ipywidgets import HTML

        self.flow, self.view, self.drawn, self.last = flow, HTML(layout={"width": "100%"}), 0, -math.inf
        self.redraw()
        flow.watchers.append(self.follow)

    def follow(self, ended: bool) -> None:
        """Called by the recorder when a step is complete, and, with `ended`, when it has been closed."""
        if ended or time.monotonic() - self.last >= PAUSE:
            self.redraw()

    def redraw(self) -> None:
        picture = picture_of(self.flow)
        self.alt, self.view.value = picture.alt, picture.html()
        self.drawn, self.last = self.drawn + 1, time.monotonic()

    def _repr_mimebundle_(self, **options: object) -> dict[str, object]:
        return self.view._repr_mimebundle_(**options) | {"text/plain": self.alt}


def picture_of(flow: Any) -> Drawing:
    """The gradient norms over all steps so far, and the last step layer by layer."""
    drawing = Drawing()
    at = complete_steps(flow)
    if not at:
        drawing.alt = "No step yet: the picture begins with the first backward of the model."
        drawing.words(0, 16, drawing.alt, bold=True)
        return drawing
    norms = [[flow.gradient_norms[name][step] for name in flow.names] for step in at]
    middle = norms[-1][-1] if 0 < norms[-1][-1] < math.inf else 1.0
    limits = middle / APART, middle * APART
    histograms = [flow.histograms[name][at[-1]] for name in flow.names]
    edges = math.log10(flow.edges[0]), math.log10(flow.edges[-1])
    shown = Flow(list(map(called, flow.names)), at, at[-1] + 1, norms, histograms, edges, limits)
    progress = f"Step {at[-1]}: gradient norm {figures(norms[-1][0])} in the first layer and {figures(norms[-1][-1])} "
    drawing.alt = f"{progress}in the last. {shown.verdict}"
    zeros = [flow.activations[name][at[-1]].zeros for name in flow.names]
    draw_flow(drawing, shown, f"{progress}in the last.", silence(shown.names, zeros))
    return drawing


def called(name: str) -> str:
    """A layer's name as there is room for it: of a long one the end, which tells it from its neighbours."""
    if name[:1].isdigit() and len(name) <= LONGEST - 6:
        return f"layer {name}"
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"


def complete_steps(flow: Any) -> Sequence[int]:
    """The steps that had a backward, thinned evenly to what can be seen; the last one is always there."""
    steps = [n for n in range(flow.steps) if counts(flow, n)]
    stride = max(math.ceil(len(steps) / MOST_STEPS), 1)
    return steps[::-stride][::-1]


def counts(flow: Any, step: int) -> bool:
    """Whether a gradient has come, or nothing but nan could: a step without backward still has sound activations."""
    if not all(math.isnan(norms[step]) for norms in flow.gradient_norms.values()):
        return True
    return all(math.isnan(activations[step].mean) for activations in flow.activations.values())


def silence(names: Sequence[str], zeros: Sequence[float]) -> str:
    """The layers that put out nothing but zeros."""
    found = [name for name, share in zip(names, zeros, strict=True) if share == 1]
    return f"Nothing but zeros comes out of {', '.join(found)}." if found else ""
