"""The gradient-flow widget: a network in training, the gradient of every layer over steps, and where it is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from .controls import Choice, Count, Run
from .descent import ACTIVATIONS, EDGES, INITIALISATIONS, STEPS, WIDTH, Record, Setting, run_of
from .flowing import Flow, draw_flow
from .frame import Frame
from .pictures import Drawing
from .powers import figures

__all__ = ["GradientFlow"]

LAYER_NORM, NONE, ON, OFF = "layer norm", "none", "on", "off"
RATES = ("0.01", "0.1", "0.5", "2.5")
# A norm between these two is in order.
LIMITS = (1e-3, 1e1)


class GradientFlow(Frame):
    """Choose a network and train it on the digits: the norm of every layer's gradient, and its histogram."""

    title = "Gradient flow"
    caption = (
        "Choose a preset or set the network yourself, then let it train with Play, pause it, or go step by "
        "step. Each line on the left is the gradient norm of one layer, each row on the right the magnitudes of its "
        "gradient at this step. Watch how the norm changes from the output back to layer 1, and what one other choice "
        "(activation, initialisation, layer norm, residual) makes of it."
    )
    controls = (
        Count("depth", "Hidden layers", 8, 1, 12),
        Choice("activation", "Activation", "sigmoid", tuple(ACTIVATIONS)),
        Choice("initialisation", "Initialisation", "Xavier", tuple(INITIALISATIONS)),
        Choice("normalisation", "Normalisation", NONE, (NONE, LAYER_NORM)),
        Choice("residual", "Residual", OFF, (OFF, ON)),
        Choice("rate", "Learning rate", "0.5", RATES),
        Run("step", "Step", STEPS // 2),
    )
    presets: ClassVar = {
        "vanishing sigmoid": {
            "depth": 8,
            "activation": "sigmoid",
            "initialisation": "Xavier",
            "normalisation": NONE,
            "residual": OFF,
            "rate": "0.5",
        },
        "exploding init": {
            "depth": 10,
            "activation": "tanh",
            "initialisation": "std 1",
            "normalisation": NONE,
            "residual": OFF,
            "rate": "0.01",
        },
        "dead ReLU": {
            "depth": 5,
            "activation": "relu",
            "initialisation": "Kaiming",
            "normalisation": NONE,
            "residual": OFF,
            "rate": "2.5",
        },
        "residual rescue": {
            "depth": 8,
            "activation": "sigmoid",
            "initialisation": "Xavier",
            "normalisation": NONE,
            "residual": ON,
            "rate": "0.5",
        },
    }

    def picture(
        self,
        *,
        depth: int,
        activation: str,
        initialisation: str,
        normalisation: str,
        residual: str,
        rate: str,
        step: int,
    ) -> Drawing:
        """A `step` past the end is the last one."""
        norm = normalisation == LAYER_NORM
        setting = Setting(depth, activation, initialisation, norm, residual == ON, float(rate))
        return draw(Scene(setting, run_of(setting).upto(max(min(step, STEPS - 1), 0))))


@dataclass(frozen=True)
class Scene:
    """A network and its steps so far."""

    setting: Setting
    records: Sequence[Record]

    @property
    def now(self) -> Record:
        return self.records[-1]

    @cached_property
    def flow(self) -> Flow:
        names = [*(f"layer {n + 1}" for n in range(self.setting.depth)), "output"]
        norms = [record.norms for record in self.records]
        done = range(len(norms))
        return Flow(names, done, STEPS, norms, self.now.histograms, (EDGES[0], EDGES[-1]), LIMITS)

    @property
    def network(self) -> str:
        setting = self.setting
        hidden = f"{setting.depth} hidden layer{'' if setting.depth == 1 else 's'} of {WIDTH}, {setting.activation}"
        extras = [f"initialised with {setting.initialisation}"]
        extras += ["layer norm"] * setting.normalised + ["residual"] * setting.residual
        return f"{hidden}, {', '.join(extras)}, learning rate {setting.rate:g}"

    @property
    def progress(self) -> str:
        if not math.isfinite(self.now.loss):
            return f"Step {len(self.records) - 1}: the loss is no longer a finite number."
        return f"Step {len(self.records) - 1}: loss {self.now.loss:.2f}, {self.now.right:.0%} of the batch right."

    @property
    def silence(self) -> str:
        silent, units = sum(self.now.silent), self.setting.depth * WIDTH
        return f"{silent} of {units} hidden units are 0 for every digit of the batch." if silent else ""


def draw(scene: Scene) -> Drawing:
    drawing = Drawing()
    drawing.steps = STEPS
    first, last = scene.now.norms[0], scene.now.norms[-1]
    drawing.alt = f"A network with {scene.network}. {scene.progress} Gradient norm {figures(first)} in layer 1 and "
    drawing.alt += f"{figures(last)} in the output layer. {scene.flow.verdict}"
    draw_flow(drawing, scene.flow, scene.progress, scene.silence)
    return drawing
