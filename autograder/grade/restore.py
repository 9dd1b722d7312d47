"""A submission's answers in the official notebook's cells.

What is graded, and for how many points, comes from the official notebook alone. The submission gives text: of answers,
of the learner's own cells, of prose. Which official cell a submitted one is may have been lost on the way, so it is
looked for in nbgrader's metadata, in ours, in the cell's id, in its text, and in the name that it defines.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from typing import Any

from autograder.grade.classroom import is_check

Cell = dict[str, Any]
PICTURES = ("image/png", "image/jpeg", "image/gif")


def restore(submitted: Iterable[Cell], official: dict[str, Any]) -> dict[str, Any]:
    """A notebook with every official cell that matters exactly once, and the learner's text everywhere else.

    Locked cells have their official text. One that was deleted is put back, one that is there twice is there once.
    Outputs, tags and all other metadata of the submission are gone.
    """
    known = Known(official["cells"])
    pairs = [(cell, known.identify(cell)) for cell in submitted]
    keep = positions_that_count([match for _, match in pairs])
    cells: list[Cell] = []
    for position, (cell, match) in enumerate(pairs):
        if match is None or keep[match["id"]] == position:
            cells.append(rebuilt(cell, match))
        elif not is_locked(match):
            cells.append(rebuilt(cell, None))
    put_back(cells, official["cells"])
    name_cells(cells)
    return {
        "cells": cells,
        "metadata": copy.deepcopy(official["metadata"]),
        "nbformat": official["nbformat"],
        "nbformat_minor": official["nbformat_minor"],
    }


class Known:
    """The official cells, under everything that can identify one."""

    def __init__(self, cells: list[Cell]) -> None:
        self.by_grade = {marks(cell, "nbgrader")["grade_id"]: cell for cell in cells if marks(cell, "nbgrader")}
        self.by_mark = {own_mark(cell): cell for cell in cells if own_mark(cell)}
        self.by_id = {cell["id"]: cell for cell in cells}
        self.by_text = {(cell["cell_type"], plain(cell)): cell for cell in cells}
        self.by_name = {
            name: cell for cell in cells if marks(cell, "nbgrader").get("solution") for name in names_defined(cell)
        }

    def identify(self, cell: Cell) -> Cell | None:
        """The official cell that this one is, or None for a cell that the learner added."""
        grade_id = marks(cell, "nbgrader").get("grade_id")
        cell_id = cell.get("id")
        found = self.by_grade.get(grade_id) if isinstance(grade_id, str) else None
        found = found or self.by_mark.get(own_mark(cell))
        found = found or (self.by_id.get(cell_id) if isinstance(cell_id, str) else None)
        found = found or self.by_text.get((cell["cell_type"], plain(cell)))
        if found is None and cell["cell_type"] == "code":
            found = next((self.by_name[name] for name in names_defined(cell) if name in self.by_name), None)
        return found


def marks(cell: Cell, namespace: str) -> dict[str, Any]:
    """One namespace of a cell's metadata; empty where it is missing or not what it should be."""
    metadata = cell.get("metadata")
    own = metadata.get(namespace) if isinstance(metadata, dict) else None
    return own if isinstance(own, dict) else {}


def own_mark(cell: Cell) -> tuple[str, str] | None:
    own = marks(cell, "gradwright")
    role, name = own.get("role"), own.get("name")
    return (role, name) if isinstance(role, str) and isinstance(name, str) else None


def plain(cell: Cell) -> str:
    return "\n".join(line.rstrip() for line in cell["source"].strip().splitlines())


DEFINED = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)


def names_defined(cell: Cell) -> list[str]:
    """Functions and classes at the left of a cell, which need not be Python: to parse what anybody has written can take
    minutes."""
    return DEFINED.findall(cell["source"])


def is_locked(cell: Cell) -> bool:
    """Whether a learner was not meant to change this official cell."""
    own = marks(cell, "nbgrader")
    return bool(own) and not own.get("solution")


def positions_that_count(matches: list[Cell | None]) -> dict[str, int]:
    """Of each official cell that is there more than once, the place that counts.

    The last one, as nbgrader has it; of given code the first, since what follows needs it.
    """
    places: dict[str, int] = {}
    for position, match in enumerate(matches):
        if match is not None:
            given = is_locked(match) and not is_graded(match)
            places[match["id"]] = places.get(match["id"], position) if given else position
    return places


def is_graded(cell: Cell) -> bool:
    own = marks(cell, "nbgrader")
    return bool(own.get("grade") or own.get("task"))


def rebuilt(cell: Cell, match: Cell | None) -> Cell:
    """A fresh cell: type, metadata and locked text from the official one, other text from the learner."""
    if match is not None and is_locked(match):
        return fresh(match)
    kind = match["cell_type"] if match is not None and marks(match, "nbgrader") else cell["cell_type"]
    made: Cell = {"cell_type": kind, "source": cell["source"], "metadata": {}}
    if match is not None and match["cell_type"] == kind:
        made["id"], made["metadata"] = match["id"], copy.deepcopy(match["metadata"])
    if kind == "code":
        made |= {"execution_count": None, "outputs": []}
    elif pictures := pictures_in(match if match is not None and plain(match) == plain(cell) else cell):
        made["attachments"] = pictures
    return made


def fresh(official: Cell) -> Cell:
    made = copy.deepcopy(official)
    return made | {"execution_count": None, "outputs": []} if made["cell_type"] == "code" else made


def pictures_in(cell: Cell) -> dict[str, dict[str, str]]:
    """The attachments of a cell that are pictures and nothing else."""
    attached = cell.get("attachments")
    found = {}
    for name, data in attached.items() if isinstance(attached, dict) else ():
        parts = data.items() if isinstance(data, dict) else ()
        kept = {kind: text for kind, text in parts if kind in PICTURES and isinstance(text, str) and text.isascii()}
        if kept and name.isprintable():
            found[name] = kept
    return found


def put_back(cells: list[Cell], official: list[Cell]) -> None:
    """Insert the locked and the graded cells that are missing, each after the official cell that stood before it."""
    present = {cell["id"] for cell in cells if "id" in cell}
    before: list[str] = []
    for cell in official:
        if cell["id"] not in present and (is_locked(cell) or is_graded(cell)):
            cells.insert(place_after(cells, before, cell), fresh(cell))
        before.append(cell["id"])


def place_after(cells: list[Cell], before: list[str], missing: Cell) -> int:
    """Behind the nearest official cell that stood before it; a check also behind the answer that it checks."""
    places = {cell["id"]: position for position, cell in enumerate(cells) if "id" in cell}
    nearest = next((places[cell_id] + 1 for cell_id in reversed(before) if cell_id in places), 0)
    if is_check(missing):
        answer = marks(missing, "gradwright")["name"]
        return max(nearest, places.get(answer, -1) + 1)
    return nearest


def name_cells(cells: list[Cell]) -> None:
    """An id for each cell of the learner's own; official cells keep theirs."""
    taken = {cell["id"] for cell in cells if "id" in cell}
    number = 0
    for cell in cells:
        if "id" not in cell:
            number += 1
            while f"own-{number}" in taken:
                number += 1
            cell["id"] = f"own-{number}"
