"""Draws what was measured: ratios by number of elements with overheads beside them, or ratios of single steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import gradwright
from autograder.bench.harness import BASE, OURS, Timing

__all__ = ["draw"]

STYLE = Path(gradwright.__file__).parent / "widgets" / "style.mplstyle"
MARKS = "os^vDPX<"
TICKS = [0.5, 1, 2, 5, 10, 20, 50]
RATIO = f"time / {BASE}'s"

Group = dict[str, list[Timing]]


def draw(title: str, groups: dict[str, Group], path: Path) -> None:
    """Write a PNG: a row of panels for each group of `groups`, which holds the timings by name."""
    swept = any(len(rows) > 1 for group in groups.values() for rows in group.values())
    heights = [4 + len(group) for group in groups.values()]
    with matplotlib.style.context(["default", STYLE]):
        figure = Figure(figsize=(11, 0.3 * sum(heights) + 0.4 * len(groups)))
        figure.suptitle(title, x=0.02, ha="left")
        panels = figure.subplots(len(groups), 1 + swept, squeeze=False, sharex="col", height_ratios=heights)
        for row, (name, group) in zip(panels, groups.items(), strict=True):
            row[0].set_title(name)
            if swept:
                draw_ratios(row[0], group)
                draw_overheads(row[1], group)
            else:
                draw_steps(row[0], group, sides_of(groups))
        label(panels[-1], swept)
        explain(figure)
        figure.savefig(path)


def sides_of(groups: dict[str, Group]) -> list[str]:
    """Every side but NumPy, in order of appearance."""
    return list(dict.fromkeys(s for group in groups.values() for rows in group.values() for s in others(rows[0])))


def label(last: Sequence[Axes], swept: bool) -> None:
    """What is shown along the bottom, under the lowest row of panels."""
    last[0].set_xlabel("number of elements" if swept else f"{RATIO}, with quartiles")
    if swept:
        last[1].set_xlabel(f"microseconds a call beyond {BASE}'s")
    last[-1].set_xlim(min(0, last[-1].get_xlim()[0]))


def draw_ratios(axes: Axes, group: Group) -> None:
    """Our ratio by number of elements, a line for each name and a band from quartile to quartile."""
    axes.axhline(1, color="#222222", linewidth=1)
    for mark, rows in zip(cycle(MARKS), group.values(), strict=False):
        sizes = [row.comparison.size for row in rows]
        median, low, high = zip(*(row.ratio() for row in rows), strict=True)
        [line] = axes.loglog(sizes, median, f"{mark}-", markersize=5, linewidth=1.4)
        axes.fill_between(sizes, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set_ylabel(RATIO)
    axes.set_ylim(0.5)
    axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.minorticks_off()


def draw_overheads(axes: Axes, group: Group) -> None:
    """Overhead of a call, a line for each name in the colour and with the mark of its ratios; rivals hollow."""
    for place, (mark, rows) in enumerate(zip(cycle(MARKS), group.values(), strict=False)):
        smallest = min(rows, key=lambda row: row.comparison.size)
        for side in others(smallest):
            look = {"color": f"C{place}", "markerfacecolor": f"C{place}" if side == OURS else "white"}
            axes.plot(smallest.overhead(side), place, mark, **look, label=side)
    name_lines(axes, group)


def draw_steps(axes: Axes, group: Group, sides: list[str]) -> None:
    """The ratios of all sides, a line for each name and a colour and mark for each of `sides`."""
    axes.axvline(1, color="#222222", linewidth=1)
    for place, [row] in enumerate(group.values()):
        for side in others(row):
            ratio, number = row.ratio(side), sides.index(side)
            error = [[ratio.median - ratio.low], [ratio.high - ratio.median]]
            axes.errorbar(ratio.median, place, xerr=error, fmt=MARKS[number], color=f"C{number}", label=side)
    name_lines(axes, group)


def others(timing: Timing) -> list[str]:
    return [side for side in timing.seconds if side != BASE]


def explain(figure: Figure) -> None:
    """One legend for all panels, with an entry for each side."""
    handles = {}
    for axes in figure.axes:
        for handle, side in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(side, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside upper right", ncols=len(handles))


def name_lines(axes: Axes, group: Group) -> None:
    axes.set_yticks(range(len(group)), list(group))
    axes.set_ylim(len(group) - 0.5, -0.5)
    axes.tick_params(labelbottom=True)
