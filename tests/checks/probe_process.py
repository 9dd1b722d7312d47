"""Runs every answer to a chapter's exercises in a process of its own, as a grader does.

    python probe_process.py CHAPTER FOLDER

In FOLDER it finds the inputs and leaves the outcomes: the arrays of each in one file, .npy after .npy, and their names
in a JSON file. Nothing else passes between the processes, and neither reads a pickle.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gradwright
from autograder.build.answers import answers_to
from autograder.checks.exercise import Arrays, Exercise, exercises_of
from autograder.checks.run import Outcome, Raised, run_probe
from gradwright._chapters import find_chapter
from gradwright._framework import limited

SEED = 20


def reference_of(exercise: Exercise) -> Any:
    """The reference implementation's answer to an exercise."""
    with limited(exercise.chapter + 1):
        found: Any = importlib.import_module(find_chapter(exercise.chapter).module)
        for step in exercise.name.split("."):
            found = getattr(found, step)
        return found


def every_answer(exercise: Exercise) -> dict[str, Any]:
    """The reference implementation, the mistakes and the alternatives."""
    answers = answers_to(exercise)
    others = {f"mistake {name}": wrong for name, wrong in answers.mistakes.items()}
    others |= {f"alternative {name}": right for name, right in answers.alternatives.items()}
    return {"the reference implementation": reference_of(exercise), **others}


def inputs_of(chapter: int) -> list[Arrays]:
    return [case.arrays for exercise in exercises_of(chapter) for case in exercise.make_cases(SEED)]


def run_every_answer(chapter: int, inputs: list[Arrays]) -> Iterator[tuple[str, Outcome]]:
    """What was run and its outcome, for each answer to each exercise on each of its cases."""
    waiting = iter(inputs)
    for exercise in exercises_of(chapter):
        answers = every_answer(exercise)
        for case in exercise.case_names:
            arrays = next(waiting)
            for name, answer in answers.items():
                with limited(chapter):
                    yield f"{exercise.id}, {case}, {name}", run_probe(exercise, answer, arrays, gradwright)


def write_arrays(path: Path, groups: list[Arrays]) -> None:
    path.with_suffix(".json").write_text(json.dumps([list(group) for group in groups]), encoding="utf-8")
    with open(path.with_suffix(".npy"), "wb") as file:
        for array in (array for group in groups for array in group.values()):
            np.save(file, array, allow_pickle=False)


def read_arrays(path: Path) -> list[Arrays]:
    names = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    with open(path.with_suffix(".npy"), "rb") as file:
        groups = [{name: np.load(file, allow_pickle=False) for name in group} for group in names]
        assert file.read() == b""
    return groups


def write_outcomes(folder: Path, outcomes: list[Outcome]) -> None:
    write_arrays(folder / "outputs", [outcome.outputs for outcome in outcomes])
    told = [
        {
            "weak": sorted(outcome.weak),
            "odd": outcome.odd,
            "raised": outcome.raised and vars(outcome.raised),
            "changed": outcome.changed,
            "printed": outcome.printed,
            "warned": outcome.warned,
        }
        for outcome in outcomes
    ]
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")


def read_outcomes(folder: Path) -> list[Outcome]:
    told = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    return [
        Outcome(
            outputs,
            frozenset(one["weak"]),
            one["odd"],
            Raised(**one["raised"]) if one["raised"] else None,
            tuple(one["changed"]),
            one["printed"],
            tuple(one["warned"]),
        )
        for outputs, one in zip(read_arrays(folder / "outputs"), told, strict=True)
    ]


def main(chapter: str, folder: str) -> None:
    inputs = read_arrays(Path(folder) / "inputs")
    write_outcomes(Path(folder), [outcome for _, outcome in run_every_answer(int(chapter), inputs)])


if __name__ == "__main__":
    main(*sys.argv[1:])
