"""Runs a benchmark and reports it: a table on the screen; a picture and all numbers in .bench/."""

from __future__ import annotations

import importlib
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autograder.bench.harness import BASE, ROUNDS, Timing, measure
from autograder.bench.picture import draw
from autograder.bench.rivals import describe
from autograder.course import ROOT

__all__ = ["FOLDER", "run", "save", "table"]

FOLDER = ROOT / ".bench"


def run(name: str, title: str, folder: Path = FOLDER) -> None:
    """Measure one benchmark, print its table, and write `folder`/name.json and name.png."""
    module = importlib.import_module(f"autograder.bench.{name}")
    comparisons = list(module.comparisons())
    print(f"{name}: {title}. One BLAS thread, {ROUNDS} rounds in shuffled order.", flush=True)
    print(f"Beside it: {describe(module.RIVALS)}.\n", flush=True)
    timings = measure(comparisons)
    print(table(timings))
    save(name, title, timings, folder)
    shown = folder.relative_to(ROOT).as_posix() if folder.is_relative_to(ROOT) else folder
    print(f"\nPicture and numbers: {shown}/{name}.png, {shown}/{name}.json")


def save(name: str, title: str, timings: Sequence[Timing], folder: Path) -> None:
    """Write the numbers and the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {"benchmark": name, "title": title, **machine(), "results": [record(t) for t in timings]}
    (folder / f"{name}.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    draw(title, dict(grouped(timings)), folder / f"{name}.png")


def machine() -> dict[str, Any]:
    """Where the numbers come from: times of two machines are not to be compared, ratios with care."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "processor": platform.processor() or platform.machine(),
        "processors": os.cpu_count(),
        "system": platform.system(),
    }


def record(timing: Timing) -> dict[str, Any]:
    one = timing.comparison
    sides = {
        side: {
            "minimum": float(seconds.min()),
            "median": float(np.median(seconds)),
            "ratio": timing.ratio(side)._asdict(),
            "overhead": timing.overhead(side),
        }
        for side, seconds in timing.seconds.items()
    }
    return {"name": one.name, "group": one.group, "size": one.size, "sides": sides}


# The table -----------------------------------------------------------------------------------------------------------


def table(timings: Sequence[Timing]) -> str:
    """All ratios as text: sizes side by side where a name comes at several, otherwise libraries side by side."""
    names = {timing.comparison.name for timing in timings}
    return table_of_steps(timings) if len(names) == len(timings) else table_of_sizes(timings)


def table_of_sizes(timings: Sequence[Timing]) -> str:
    """A block for each side: overhead at the smallest size, the ratio at every size, and how far ratios spread."""
    sizes = sorted({timing.comparison.size for timing in timings})
    sides = list(dict.fromkeys(side for timing in timings for side in timing.seconds if side != BASE))
    width = max(20, *(len(timing.comparison.name) + 4 for timing in timings))
    blocks = []
    for side in sides:
        head = f"{side} / {BASE}"
        lines = [f"{head:<{width}}{'us a call':>9}" + "".join(f"{short(size):>7}" for size in sizes) + "  spread"]
        for group, members in grouped([t for t in timings if side in t.seconds]):
            lines.append(group)
            lines += [f"  {name:<{width - 2}}{cells_of_sizes(side, rows, sizes)}" for name, rows in members.items()]
        blocks.append("\n".join(lines))
    note = (
        f"Ratio: time divided by {BASE}'s on the same data, by number of elements. us a call: microseconds more than\n"
        f"{BASE} at the smallest size. Spread: half the distance between the quartiles of a ratio, typically."
    )
    return "\n\n".join([*blocks, note])


def cells_of_sizes(side: str, rows: Sequence[Timing], sizes: Sequence[int]) -> str:
    ratios = {row.comparison.size: row.ratio(side) for row in rows}
    cells = "".join(f"{ratios[size].median:7.2f}" if size in ratios else " " * 7 for size in sizes)
    spread = np.median([(ratio.high - ratio.low) / 2 / ratio.median for ratio in ratios.values()])
    smallest = min(rows, key=lambda row: row.comparison.size)
    return f"{smallest.overhead(side):9.2f}{cells}{f'±{spread:.0%}':>8}"


def table_of_steps(timings: Sequence[Timing]) -> str:
    """A line for each comparison: NumPy's time, and the ratio and its quartiles for each other side."""
    sides = list(dict.fromkeys(side for timing in timings for side in timing.seconds if side != BASE))
    width = max(len(timing.comparison.name) for timing in timings) + 4
    lines = [f"{'':<{width}}{f'{BASE}, ms':>10}" + "".join(f"{side:>20}" for side in sides)]
    for group, members in grouped(timings):
        lines.append(group)
        for name, [timing] in members.items():
            cells = "".join(f"{quartiles(timing, side):>20}" for side in sides)
            lines.append(f"  {name:<{width - 2}}{np.median(timing.seconds[BASE]) * 1e3:10.3f}{cells}".rstrip())
    return "\n".join([*lines, "", f"Ratio: time divided by {BASE}'s on the same data, with its quartiles."])


def quartiles(timing: Timing, side: str) -> str:
    if side not in timing.seconds:
        return ""
    ratio = timing.ratio(side)
    return f"{ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def grouped(timings: Sequence[Timing]) -> list[tuple[str, dict[str, list[Timing]]]]:
    """The timings of each group, in order, by name."""
    groups: dict[str, dict[str, list[Timing]]] = {}
    for timing in timings:
        one = timing.comparison
        groups.setdefault(one.group, {}).setdefault(one.name, []).append(timing)
    return list(groups.items())


def short(size: int) -> str:
    """1, 10, 100 as they are; from 1000 on as a power of ten where it is one."""
    power = len(str(size)) - 1
    return f"10^{power}" if size >= 1000 and size == 10**power else str(size)
