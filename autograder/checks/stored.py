"""Reference values on disk: references/NN_name.json says what there is, references/NN_name.npz holds the numbers.

The manifest describes every array as `float64 (2, 3)`. The numbers lie flat in the .npz, one member for each exercise
and dtype, in the order in which the manifest names them. (One member an array would take twenty times the space.)
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np

from autograder.checks.exercise import Arrays, Exercise, record_files
from autograder.checks.run import Outcome, Raised, unchanged
from autograder.errors import ReferenceMissing

REFERENCES = Path(__file__).parent / "references"


@dataclass(frozen=True)
class StoredCase:
    """Inputs, right outputs, and what each known mistake gives."""

    name: str
    arrays: Arrays
    wanted: Arrays
    mistakes: dict[str, Outcome] = field(default_factory=dict)

    @cached_property
    def inputs(self) -> Print:
        return print_of(self.arrays)

    @cached_property
    def outputs(self) -> Print:
        return print_of(self.wanted)


Print = tuple[tuple[str, str, tuple[int, ...], bytes], ...]


def print_of(arrays: Arrays) -> Print:
    """Arrays as something to compare to the bit, and to look up."""
    return tuple((name, array.dtype.str, array.shape, array.tobytes()) for name, array in sorted(arrays.items()))


@dataclass(frozen=True)
class Reference:
    """The stored values of one exercise."""

    cases: tuple[StoredCase, ...]
    sentences: dict[str, str]
    """Name of each known mistake, and the sentence that is shown for it."""


class Writer:
    """Takes arrays and gives back their descriptions."""

    def __init__(self) -> None:
        self.flat: dict[str, list[np.ndarray]] = defaultdict(list)

    def put(self, array: np.ndarray) -> str:
        self.flat[array.dtype.name].append(array.ravel())
        return f"{array.dtype.name} {array.shape}"

    def put_all(self, arrays: Arrays) -> dict[str, str]:
        return {name: self.put(array) for name, array in arrays.items()}

    def members(self) -> Arrays:
        return {dtype: np.concatenate(parts) for dtype, parts in self.flat.items()}


class Reader:
    """Takes descriptions, in the order of writing, and gives back the arrays."""

    def __init__(self, members: Arrays) -> None:
        self.members = members
        self.taken: dict[str, int] = defaultdict(int)

    def take(self, description: str) -> np.ndarray:
        dtype, _, text = description.partition(" ")
        shape = tuple(int(n) for n in text.strip("()").split(",") if n.strip())
        start = self.taken[dtype]
        self.taken[dtype] = stop = start + math.prod(shape)
        return self.members[dtype][start:stop].reshape(shape)

    def take_all(self, descriptions: dict[str, str]) -> Arrays:
        return {name: self.take(description) for name, description in descriptions.items()}


RIGHT = "right"
"""Stands for a mistake's outcome where the mistake makes no difference."""


def write_outcome(outcome: Outcome, wanted: Arrays, writer: Writer) -> dict[str, Any] | str:
    """An outcome for the manifest; of an exception only the kind is kept."""
    if outcome == Outcome(outcome.outputs) and identical(outcome.outputs, wanted):
        return RIGHT
    entry: dict[str, Any] = {}
    if outcome.outputs:
        entry["outputs"] = writer.put_all(outcome.outputs)
    if outcome.raised:
        entry["raised"] = outcome.raised.kind
    if outcome.weak:
        entry["weak"] = sorted(outcome.weak)
    if outcome.odd:
        entry["odd"] = outcome.odd
    if outcome.changed:
        entry["changed"] = list(outcome.changed)
    return entry


def identical(a: Arrays, b: Arrays) -> bool:
    """The same arrays to the bit."""
    return a.keys() == b.keys() and all(unchanged(a[name], b[name]) for name in a)


def read_outcome(entry: dict[str, Any] | str, wanted: Arrays, reader: Reader) -> Outcome:
    if entry == RIGHT:
        return Outcome(wanted)
    return Outcome(
        outputs=reader.take_all(entry.get("outputs", {})),
        weak=frozenset(entry.get("weak", ())),
        odd=entry.get("odd", {}),
        raised=Raised(entry["raised"], "") if "raised" in entry else None,
        changed=tuple(entry.get("changed", ())),
    )


def write_exercise(reference: Reference) -> tuple[dict[str, Any], Arrays]:
    """The manifest entry of an exercise and its members."""
    writer = Writer()
    cases = [
        {
            "name": case.name,
            "inputs": writer.put_all(case.arrays),
            "wanted": writer.put_all(case.wanted),
            "mistakes": {n: write_outcome(outcome, case.wanted, writer) for n, outcome in case.mistakes.items()},
        }
        for case in reference.cases
    ]
    return {"sentences": reference.sentences, "cases": cases}, writer.members()


def read_exercise(entry: dict[str, Any], members: Arrays) -> Reference:
    """Raises KeyError, TypeError or ValueError where manifest and members do not fit each other."""
    reader = Reader(members)
    cases = []
    for case in entry["cases"]:
        arrays = reader.take_all(case["inputs"])
        wanted = reader.take_all(case["wanted"])
        mistakes = {name: read_outcome(outcome, wanted, reader) for name, outcome in case["mistakes"].items()}
        if mistakes.keys() != entry["sentences"].keys():
            raise ValueError(f"mistakes and their sentences differ in the case {case['name']!r}")
        cases.append(StoredCase(case["name"], arrays, wanted, mistakes))
    if any(reader.taken[dtype] != array.size or array.dtype.name != dtype for dtype, array in members.items()):
        raise ValueError("the numbers are not those that the manifest names")
    return Reference(tuple(cases), entry["sentences"])


def write_chapter(stem: str, about: dict[str, Any], references: dict[str, Reference], folder: Path) -> None:
    """Write both files of a chapter. `about` says how the values were made; the same values give the same bytes."""
    entries, members = {}, {}
    for exercise_id, reference in references.items():
        entries[exercise_id], own = write_exercise(reference)
        members |= {f"{exercise_id}.{dtype}": array for dtype, array in own.items()}
    (folder / f"{stem}.json").write_text(manifest_text(about, entries), encoding="utf-8")
    np.savez_compressed(folder / f"{stem}.npz", **members)


def manifest_text(about: dict[str, Any], entries: dict[str, Any]) -> str:
    """The manifest as JSON with a line for each sentence and each case."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    parts = []
    for exercise_id, entry in entries.items():
        sentences = ",\n".join(f"   {line(name)}: {line(text)}" for name, text in entry["sentences"].items())
        cases = ",\n".join(f"   {line(case)}" for case in entry["cases"])
        own = f' {line(exercise_id)}: {{\n  "sentences": {{\n{sentences}\n  }},\n  "cases": [\n{cases}\n  ]}}'
        parts.append(own)
    return f'{{"about": {line(about)},\n"exercises": {{\n' + ",\n".join(parts) + "\n}}\n"


def read_reference(exercise: Exercise, folder: Path = REFERENCES) -> Reference:
    """The stored values of an exercise. Raises ReferenceMissing where they are not there or do not fit its record."""
    stem = record_files()[exercise.chapter].stem
    manifest, members = read_chapter(stem, folder)
    prefix = exercise.id + "."
    own = {name.removeprefix(prefix): members[name] for name in members if name.startswith(prefix)}
    try:
        entry = manifest["exercises"].get(exercise.id)
        reference = read_exercise(entry, own) if entry else None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise unreadable(stem, folder, error) from error
    if reference is None:
        raise ReferenceMissing(f"{folder / stem}.json has no values for {exercise.id!r}: {remedy()}")
    if [case.name for case in reference.cases] != exercise.case_names:
        raise ReferenceMissing(
            f"the cases of {exercise.id!r} stored in {folder / stem}.json are not those of its record: {remedy()}"
        )
    return reference


@cache
def read_chapter(stem: str, folder: Path) -> tuple[dict[str, Any], Arrays]:
    """The manifest and the members of a chapter."""
    for path in (folder / f"{stem}.json", folder / f"{stem}.npz"):
        if not path.exists():
            raise ReferenceMissing(f"the reference values {path.name} are missing from {path.parent}: {remedy()}")
    try:
        manifest = json.loads((folder / f"{stem}.json").read_text(encoding="utf-8"))
        with open(folder / f"{stem}.npz", "rb") as file, np.load(file, allow_pickle=False) as members:
            return manifest, dict(members)
    except (ValueError, KeyError, TypeError, OSError, EOFError, BadZipFile, ZlibError, NotImplementedError) as error:
        raise unreadable(stem, folder, error) from error


def unreadable(stem: str, folder: Path, error: Exception) -> ReferenceMissing:
    reason = " ".join(str(error).split())[:120] or type(error).__name__
    return ReferenceMissing(f"the reference values {folder / stem}.npz and .json cannot be read ({reason}): {remedy()}")


def remedy() -> str:
    return (
        "get the file again with `git checkout -- autograder/checks/references`, or rebuild it with `make references`"
    )
