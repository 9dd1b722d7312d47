"""Shapes as a reader types them, as the pictures write them, and how large one may be to be drawn."""

from __future__ import annotations

import math
import re

from autograder.errors import BadInput

__all__ = ["hold_to_limits", "minus", "read_shape", "written"]

MOST_AXES, MOST_ELEMENTS, LONGEST = 3, 48, 24
SIZES = r"\s*\d{1,9}\s*(,\s*\d{1,9}\s*)*,?\s*"


def read_shape(text: str) -> tuple[int, ...]:
    """`3, 4`, `(3, 4)`, `3` or `()` as a tuple; BadInput where the text is none of these."""
    if not re.fullmatch(rf"\(\)|{SIZES}|\({SIZES}\)", text.strip(), re.ASCII):
        how = "type whole numbers with commas between them, such as 3, 4, or () for a single number"
        raise BadInput(f"{text.strip()!r} is not a shape: {how}.")
    return tuple(int(size) for size in re.findall(r"\d+", text))


def written(items: tuple[int | str, ...]) -> str:
    """A tuple with true minus signs."""
    inside = ", ".join(minus(item) for item in items)
    return f"({inside},)" if len(items) == 1 else f"({inside})"


def minus(number: int | str) -> str:
    return str(number).replace("-", "−")


def hold_to_limits(what: str, shape: tuple[int, ...]) -> None:
    """Raise BadInput for a shape that no picture has room for."""
    if len(shape) > MOST_AXES:
        raise BadInput(f"{what} has shape {shape}, {len(shape)} axes: the picture has room for {MOST_AXES}.")
    if math.prod(shape) > MOST_ELEMENTS:
        size = math.prod(shape)
        raise BadInput(f"{what} has shape {shape}, {size} elements: the picture has room for {MOST_ELEMENTS}.")
    if max(shape, default=0) > LONGEST:
        raise BadInput(f"{what} has shape {shape}: the picture has room for {LONGEST} elements along an axis.")
