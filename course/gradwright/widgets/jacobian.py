"""The Jacobian view: every derivative of an operation as a heat map, and the one product that backward computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from autograder.errors import BadInput

from .controls import Choice, Steps, Text
from .derivatives import OPERATIONS, Operation, analytic, numerical
from .frame import Frame
from .pictures import Drawing, Look
from .shapes import minus, read_shape, written

__all__ = ["JacobianView"]

UNIT, ONES, RANDOM = "one output", "all ones", "random"
FREE, TIED = "random", "ties and zeros"
MOST_INPUTS, MOST_OUTPUTS = 12, 16
APART = 1e-6
HEADING, SMALLEST = 180.0, 8.9
# The two ends of the scale, light enough for black numbers, and told apart by every kind of colour vision.
POSITIVE, ZERO, NEGATIVE = (0xE6, 0x9F, 0x00), (0xFF, 0xFF, 0xFF), (0x56, 0xB4, 0xE9)


class JacobianView(Frame):
    """Pick an operation and the shape of its input: its Jacobian by backward and by differences, and one product."""

    title = "Jacobian view"
    caption = (
        "Choose a preset or type a shape of x for an operation. Each row of the Jacobian J belongs to an output, each "
        "column to an input; the seed u has a number for each output, and its row below J is what one call of backward "
        "gives. Walk through the outputs with the slider or the buttons, or take another seed. Watch the pattern "
        "of J: backward never makes it, and where it is mostly zeros or repeats itself, that saves nearly everything."
    )
    controls = (
        Choice("operation", "Operation", "softmax", tuple(OPERATIONS)),
        Text("shape", "Shape of x", "4", width="160px"),
        Choice("values", "Values of x", FREE, (FREE, TIED)),
        Choice("seed", "Seed", UNIT, (UNIT, ONES, RANDOM)),
        Steps("output", "Output", 1),
    )
    presets: ClassVar = {
        "softmax": {"operation": "softmax", "shape": "4", "values": FREE, "seed": UNIT},
        "softmax of two rows": {"operation": "softmax", "shape": "2, 3", "values": FREE, "seed": RANDOM},
        "max with a tie": {"operation": "amax", "shape": "2, 4", "values": TIED, "seed": UNIT},
        "kink of relu": {"operation": "relu", "shape": "5", "values": TIED, "seed": ONES},
        "cumsum": {"operation": "cumsum", "shape": "5", "values": FREE, "seed": ONES},
        "matmul": {"operation": "matmul", "shape": "2, 3", "values": FREE, "seed": RANDOM},
        "broadcast add": {"operation": "broadcast add", "shape": "3", "values": FREE, "seed": RANDOM},
        "reshape of a permute": {"operation": "permute, reshape", "shape": "2, 3", "values": FREE, "seed": UNIT},
        "repeat_interleave": {"operation": "repeat_interleave", "shape": "3", "values": FREE, "seed": UNIT},
    }

    def picture(self, *, operation: str, shape: str, values: str, seed: str, output: int) -> Drawing:
        """An `output` past the end is the last one; it matters for the seed of one output alone.

        Raises BadInput for what is no shape, does not suit the operation, or is too large to draw.
        """
        sizes = read_shape(shape)
        chosen = OPERATIONS[operation]
        hold_to_operation(chosen, sizes)
        x = inputs(sizes, values)
        outputs = np.size(chosen.forward(x))
        if outputs > MOST_OUTPUTS:
            what = f"{chosen.written} has {outputs} outputs for x of shape {written(sizes)}"
            raise BadInput(f"{what}: the picture has room for {MOST_OUTPUTS}.")
        return draw(Scene(chosen, x, seed, max(min(output, outputs - 1), 0)))


def hold_to_operation(operation: Operation, shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    if not size:
        raise BadInput(f"x has shape {written(shape)} and no elements: give every axis a size of at least 1.")
    if size > MOST_INPUTS:
        raise BadInput(f"x has shape {written(shape)}, {size} elements: the picture has room for {MOST_INPUTS}.")
    if len(shape) > 3:
        raise BadInput(f"x has shape {written(shape)}, {len(shape)} axes: the picture has room for 3.")
    if len(shape) < operation.axes:
        raise BadInput(f"{operation.written} goes along the last axis, and x of shape () has none: type a size.")


def inputs(shape: tuple[int, ...], values: str) -> np.ndarray:
    """The same numbers for the same shape; the tied ones are 1, 0, 1, −1 over and over."""
    if values == TIED:
        return np.resize([1.0, 0.0, 1.0, -1.0], shape)
    return np.random.default_rng(5).normal(size=shape).round(1)


@dataclass(frozen=True)
class Scene:
    """An operation at one input and one seed: all numbers that are shown."""

    operation: Operation
    x: np.ndarray
    seed: str
    output: int

    @cached_property
    def y(self) -> np.ndarray:
        return np.asarray(self.operation.forward(self.x))

    @cached_property
    def analytic(self) -> np.ndarray:
        return analytic(self.operation, self.x)

    @cached_property
    def numerical(self) -> np.ndarray:
        return numerical(self.operation, self.x)

    @cached_property
    def u(self) -> np.ndarray:
        if self.seed == UNIT:
            return np.eye(self.y.size)[self.output]
        return np.ones(self.y.size) if self.seed == ONES else np.random.default_rng(8).normal(size=self.y.size).round(1)

    @cached_property
    def product(self) -> np.ndarray:
        """What one call of backward gives for the seed."""
        return self.operation.backward(self.x, self.u.reshape(self.y.shape)).reshape(-1)

    @property
    def apart(self) -> np.ndarray:
        """Where the two Jacobians differ."""
        return np.abs(self.analytic - self.numerical) > APART

    @property
    def agreement(self) -> str:
        count = int(self.apart.sum())
        if not count:
            return "The two Jacobians agree to 10⁻⁶ everywhere."
        entries = "1 entry" if count == 1 else f"{count} entries"
        return (
            f"The two Jacobians differ in {entries}: x lies on a kink or a tie, where a difference looks to both sides."
        )

    @property
    def zeros(self) -> str:
        share = int((self.analytic == 0).sum())
        return f"{self.analytic.size} numbers, {share} of them zero" if share else f"{self.analytic.size} numbers"

    @property
    def seeded(self) -> str:
        if self.seed == UNIT:
            return (
                f"the unit seed at output {index(self.y.shape, self.output)}, so the product is row {self.output} of J"
            )
        if self.seed == ONES:
            return "a seed of ones, so the product is the sum of the rows of J"
        return "a random seed, so the product is a weighted sum of the rows of J"


def index(shape: tuple[int, ...], number: int) -> str:
    """Where an element stands, as it is written in an index."""
    return f"[{', '.join(str(i) for i in np.unravel_index(number, shape))}]" if shape else "[]"


def decimal(x: float) -> str:
    return minus(f"{round(float(x), 2) + 0.0:g}")  # the zero takes the sign off a -0


def listed(numbers: Sequence[float]) -> str:
    return ", ".join(decimal(x) for x in numbers)


def describe(scene: Scene) -> str:
    outputs, count = scene.analytic.shape
    shapes = f"x of shape {written(scene.x.shape)} to y of shape {written(scene.y.shape)}"
    says = f"The Jacobian of y = {scene.operation.written}, {shapes}: {outputs} rows, {count} columns, {scene.zeros}. "
    says += f"{scene.agreement} Shown with {scene.seeded}: {listed(scene.product[:MOST_INPUTS])}."
    return says


def draw(scene: Scene) -> Drawing:
    drawing = Drawing()
    drawing.alt, drawing.steps = describe(scene), scene.y.size if scene.seed == UNIT else 0
    shapes = f"x {written(scene.x.shape)} to y {written(scene.y.shape)}"
    drawing.words(0, 16, f"y = {scene.operation.written}, {shapes}", bold=True)
    drawing.words(0, 36, f"x = {listed(scene.x.reshape(-1))}", "soft")
    page = Page(drawing, scene)
    page.draw_seed()
    page.draw_map(page.left, "J by backward, row by row", scene.analytic)
    page.draw_map(page.right, "J by central differences", scene.numerical)
    if scene.seed == UNIT:
        page.draw_choice()
    page.draw_product()
    page.draw_facts()
    return drawing


def look(share: float, marked: bool = False) -> Look:
    """White for zero, and more of a colour up to the full one at 1 and -1."""
    end = POSITIVE if share > 0 else NEGATIVE
    mixed = [round(zero + min(abs(share), 1.0) * (full - zero)) for zero, full in zip(ZERO, end, strict=True)]
    fill = "#" + "".join(f"{part:02X}" for part in mixed)
    return Look(fill, "warn" if marked else "seam", "black", 2.5 if marked else 0.6)


@dataclass(frozen=True)
class Page:
    """Where things lie: the seed, the Jacobian by backward with the product below it, and the one by differences."""

    drawing: Drawing
    scene: Scene

    top: ClassVar[float] = 92.0
    left: ClassVar[float] = 112.0

    @property
    def cell(self) -> float:
        return min(42.0, 300 / self.scene.x.size)

    @property
    def high(self) -> float:
        return min(self.cell, 34.0, 420 / self.scene.y.size)

    @property
    def size(self) -> float:
        """Of the numbers, which are left out where nobody could read them."""
        return min(12.0, 0.3 * self.cell)

    @property
    def right(self) -> float:
        return self.left + max(self.scene.x.size * self.cell, HEADING) + 44

    @property
    def bottom(self) -> float:
        return self.top + self.scene.y.size * self.high

    @cached_property
    def scale(self) -> float:
        """The number in J that has the full colour."""
        return float(max(np.abs(self.scene.analytic).max(), np.abs(self.scene.numerical).max())) or 1.0

    def draw_cell(self, x: float, y: float, number: float, scale: float, marked: bool = False) -> None:
        words = decimal(number) if self.size >= SMALLEST else ""
        self.drawing.box(x, y, self.cell, self.high, words, look(number / scale, marked), self.size)

    def draw_row(self, x: float, y: float, numbers: np.ndarray, across: bool) -> None:
        """A vector in colours of its own scale, from left to right or from top to bottom."""
        scale = float(np.abs(numbers).max()) or 1.0
        for n, number in enumerate(numbers):
            place = (x + n * self.cell, y) if across else (x, y + n * self.high)
            self.draw_cell(*place, number, scale)

    def draw_map(self, left: float, name: str, jacobian: np.ndarray) -> None:
        self.drawing.words(left, self.top - 28, name, bold=True)
        self.draw_inputs(left)
        apart = self.scene.apart
        # A marked cell comes after its neighbours, or they would cover a part of its edge.
        for row, column in sorted(np.ndindex(jacobian.shape), key=lambda place: apart[place]):
            x, y = left + column * self.cell, self.top + row * self.high
            self.draw_cell(x, y, jacobian[row, column], self.scale, bool(apart[row, column]))

    def draw_inputs(self, left: float) -> None:
        """Above each column which input it belongs to, where there is room."""
        names = [index(self.scene.x.shape, column)[1:-1] for column in range(self.scene.x.size)]
        if max(map(len, names)) * 6 > self.cell:
            return
        for column, name in enumerate(names):
            self.drawing.words(left + (column + 0.5) * self.cell, self.top - 8, name, "soft", 10, "middle")

    def draw_seed(self) -> None:
        x = self.left - self.cell - 16
        self.drawing.words(0, self.top - 28, "seed u", bold=True)
        self.draw_row(x, self.top, self.scene.u, across=False)
        for row in range(self.scene.y.size):
            name = index(self.scene.y.shape, row)[1:-1]
            self.drawing.words(x - 8, self.top + (row + 0.5) * self.high + 4, name, "soft", 10, "end")

    def draw_choice(self) -> None:
        """A thick edge around the row that a unit seed picks, and around its 1."""
        wide = self.scene.x.size * self.cell
        for x, width in ((self.left - self.cell - 16, self.cell), (self.left, wide), (self.right, wide)):
            y = self.top + self.scene.output * self.high
            self.drawing.box(x - 2, y - 2, width + 4, self.high + 4, "", Look("none", "black", "strong", 2.5))

    def draw_product(self) -> None:
        y = self.bottom + 22
        self.drawing.words(self.left - 12, y + self.high / 2 + 4, "uᵀJ", anchor="end", bold=True)
        self.draw_row(self.left, y, self.scene.product, across=True)
        self.drawing.words(self.right, y + 6, f"backward: one call, {self.scene.x.size} numbers", size=12, bold=True)
        self.drawing.words(self.right, y + 24, f"J: {self.scene.zeros}", "soft", 12)

    def draw_facts(self) -> None:
        y = self.bottom + self.high + 58
        self.drawing.words(0, y, f"Shown with {self.scene.seeded}.", "strong")
        marked = self.scene.apart.any()
        self.drawing.words(0, y + 20, self.scene.agreement, "warn" if marked else "soft")
        for n, share in enumerate((-1.0, -0.5, 0.0, 0.5, 1.0)):
            self.drawing.box(112 + 46 * n, y + 38, 46, 20, decimal(share * self.scale), look(share), 11)
        self.drawing.words(0, y + 53, "colours in J", "soft", 12)
