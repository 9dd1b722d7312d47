"""Two arrays to a difference. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from autograder.checks.run import Outcome

TOLERANCES = {"float64": (1e-7, 1e-10), "float32": (2e-5, 1e-6), "float16": (2e-3, 1e-3)}
"""dtype to (relative, absolute): |got - wanted| <= relative * |wanted| + absolute. Other dtypes must be equal."""


@dataclass(frozen=True)
class Difference:
    """How an output differs from the wanted one."""

    name: str
    kind: str
    """`missing`, `odd` (no array), `shape`, `dtype` or `values`."""
    wanted: np.ndarray
    got: np.ndarray | None = None
    odd: str = ""
    first: tuple[int, ...] = ()
    """Index of the first element that is wrong."""
    wrong: int = 0
    """How many elements are wrong."""
    largest: float = 0.0
    """The largest |got - wanted|; nan or inf where one side is."""


def allowed(wanted: np.ndarray) -> np.ndarray | float:
    """How far each element may be off, or all of them."""
    relative, absolute = tolerances(wanted.dtype)
    if wanted.dtype.kind not in "fc":
        return absolute
    return relative * np.abs(np.where(np.isfinite(wanted), wanted, 0)) + absolute


@cache
def tolerances(dtype: np.dtype) -> tuple[float, float]:
    """The relative and the absolute one. complex128 has those of float64."""
    real = {"complex128": "float64", "complex64": "float32"}.get(dtype.name, dtype.name)
    return TOLERANCES.get(real, (0.0, 0.0))


def distance(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """|got - wanted| element by element: 0 where both are the same inf or both nan, inf where only one is."""
    kinds = {got.dtype.kind, wanted.dtype.kind}
    if not kinds <= set("fciub"):
        return np.where(got == wanted, 0.0, np.inf) if kinds == {"U"} else np.full(wanted.shape, np.inf)
    if kinds <= set("iub"):  # exactly: large integers that differ by one are the same float64
        return np.where(got == wanted, 0.0, np.maximum(np.abs(got.astype(np.float64) - wanted), 1.0))
    wide = np.complex128 if "c" in (got.dtype.kind, wanted.dtype.kind) else np.float64
    a, b = got.astype(wide), wanted.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(off), np.inf, off))


def same_dtype(got: np.ndarray, wanted: np.ndarray, weak: bool) -> bool:
    """Integers of any width are one kind (their width depends on the machine); floats are told apart."""
    if weak and wanted.dtype.kind in "fc":
        return got.dtype.kind != "c" or wanted.dtype.kind == "c"
    if got.dtype.kind in "iu" and wanted.dtype.kind in "iu":
        return True
    if got.dtype.kind == wanted.dtype.kind == "U":
        return True
    return got.dtype == wanted.dtype


def compare(name: str, got: np.ndarray, wanted: np.ndarray, weak: bool = False) -> Difference | None:
    """The difference, or None where there is none. `weak`: got was a Python number."""
    if got.shape != wanted.shape:
        return Difference(name, "shape", wanted, got)
    if got.dtype == wanted.dtype and got.tobytes() == wanted.tobytes():
        return None  # what follows would say the same, in ten times as long
    off = distance(got, wanted)
    bad = off > allowed(wanted)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        return Difference(name, "values", wanted, got, first=first, wrong=int(bad.sum()), largest=float(off.max()))
    if not same_dtype(got, wanted, weak):
        return Difference(name, "dtype", wanted, got)
    return None


def compare_outputs(outcome: Outcome, wanted: dict[str, np.ndarray]) -> list[Difference]:
    """All differences of an outcome that raised nothing, in the order of the wanted outputs."""
    found = []
    for name, array in wanted.items():
        if name in outcome.odd:
            found.append(Difference(name, "odd", array, odd=outcome.odd[name]))
        elif name not in outcome.outputs:
            found.append(Difference(name, "missing", array))
        elif difference := compare(name, outcome.outputs[name], array, name in outcome.weak):
            found.append(difference)
    return found


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """How many tolerances two outputs are apart at their worst element; inf for another shape or dtype."""
    if a.shape != b.shape or not same_dtype(a, b, False):
        return np.inf
    if a.size == 0:
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        off = distance(a, b)
        return float(np.max(np.where(off == 0, 0.0, off / allowed(b))))


def same_outcome(a: Outcome, b: Outcome) -> bool:
    """Whether two outcomes are the same answer: equal arrays, or the same kind of exception."""
    if a.raised or b.raised:
        return bool(a.raised and b.raised and a.raised.kind == b.raised.kind)
    if a.odd != b.odd or set(a.outputs) != set(b.outputs) or a.changed != b.changed:
        return False
    return all(fits(name, a, b) or (name in b.weak and fits(name, b, a)) for name in a.outputs)


def fits(name: str, a: Outcome, b: Outcome) -> bool:
    got, wanted = a.outputs[name], b.outputs[name]
    return not plainly_apart(got, wanted) and compare(name, got, wanted, name in a.weak) is None


def plainly_apart(got: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether the first elements alone tell two arrays of numbers apart, by more than any tolerance."""
    if got.shape != wanted.shape:
        return True
    if not got.size or got.dtype.kind not in "fiub" or wanted.dtype.kind not in "fiub":
        return False
    a, b = float(got.flat[0]), float(wanted.flat[0])
    return abs(a - b) > 0.01 * (1 + abs(b))  # never where either is nan
