"""`make references`: the right values from PyTorch, in float64, and what each known mistake gives.

The only file of the package that imports torch.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import gradwright
from autograder.build.answers import Answers, answers_to
from autograder.checks.compare import distance
from autograder.checks.exercise import Arrays, Exercise, exercises_of, record_files
from autograder.checks.run import run_probe
from autograder.checks.stored import REFERENCES, Reference, StoredCase, read_chapter, write_chapter
from autograder.errors import BadInput, SetupError

SEED = 0
AGREE = 1e-12
"""Two rebuilds may differ by this much, relative to the largest number: torch's own sums depend on the machine."""


def rebuild() -> int:
    """Rebuild the stored values of every chapter; write what is new or differs. Says which. Returns 0."""
    torch = oracle_library()
    for number, path in record_files().items():
        gradwright.chapter(number)
        references = {e.id: make_reference(e, answers_to(e), torch) for e in exercises_of(number)}
        about = {"torch": torch.__version__.split("+")[0], "dtype": "float64", "seed": SEED}
        with tempfile.TemporaryDirectory() as folder:
            write_chapter(path.stem, about, references, Path(folder))
            state = settle(path.stem, Path(folder))
        print(f"{path.stem}: {len(references)} exercises, {state}")
    return 0


def settle(stem: str, rebuilt: Path) -> str:
    """Keep the committed files where the rebuilt ones agree with them: no change without content."""
    names = [f"{stem}.json", f"{stem}.npz"]
    if all((REFERENCES / name).exists() for name in names):
        old, new = read_chapter(stem, REFERENCES), read_chapter(stem, rebuilt)
        if same_values(old, new):
            return "unchanged"
    for name in names:
        (REFERENCES / name).write_bytes((rebuilt / name).read_bytes())
    return "written"


def same_values(old: tuple[Any, Arrays], new: tuple[Any, Arrays]) -> bool:
    """The same manifest, and numbers that agree to 1e-12."""
    if old[0] != new[0] or old[1].keys() != new[1].keys():
        return False
    return all(agree(old[1][name], array) for name, array in new[1].items())


def agree(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    scale = np.abs(b[np.isfinite(b)]).max(initial=1.0) if b.dtype.kind in "fc" else 1.0
    return bool((distance(a, b) <= AGREE * scale).all())


def oracle_library() -> ModuleType:
    try:
        import torch
    except ImportError as error:
        raise SetupError(
            "the reference values come from PyTorch, which is not installed: pip install 'torch==2.13.0', "
            "then run make references again (checks and grading do not need it)"
        ) from error
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    return torch


def make_reference(exercise: Exercise, answers: Answers, torch: ModuleType) -> Reference:
    """All cases of an exercise with their right outputs and the outcome of every mistake."""
    cases = []
    for case in exercise.make_cases(SEED):
        copies = {name: array.copy() for name, array in case.arrays.items()}
        wanted = {name: plain(value, case.arrays) for name, value in answers.oracle(copies, torch).items()}
        for name, array in wanted.items():
            if array.dtype.kind not in "biufcU":
                raise BadInput(f"the oracle of {exercise.id!r} gives {name!r} as {array!r:.60}: let it give an array")
        mistakes = {
            name: run_probe(exercise, wrong, case.arrays, gradwright) for name, wrong in answers.mistakes.items()
        }
        cases.append(StoredCase(case.name, case.arrays, wanted, mistakes))
    return Reference(tuple(cases), answers.sentences)


def plain(value: Any, inputs: Arrays) -> np.ndarray:
    """An oracle's value as an array. A float64 of torch takes the inputs' float dtype; NumPy's keeps its own."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    array = value.detach().resolve_conj().numpy()
    floats = [a.dtype for a in inputs.values() if a.dtype.kind == "f"]
    if array.dtype == np.float64 and floats:
        return array.astype(np.result_type(*floats))
    return array
