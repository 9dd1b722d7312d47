"""Measures the framework against NumPy: `autograder bench [NAME ...]`.

A benchmark is a line in BENCHMARKS and a module of that name in this package. The module has a function
`comparisons()`, which yields `Comparison`s (harness.py), and RIVALS, the libraries that take part where they are
installed (rivals.py). Table and picture follow by themselves: of curves where names come at several sizes, of single
steps where each comes once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from autograder.errors import BadInput

__all__ = ["BENCHMARKS", "bench"]

BENCHMARKS = {
    "tensor": "Chapter 01's Tensor against NumPy, float32",
    "autodiff": "a step on chapter 02's engine against the same step written by hand in NumPy, float32",
    "training": "a training step of chapters 04 to 06 against the same step written by hand in NumPy, float32",
}
"""Module of this package to the title of its table and picture, in the order of the course."""
CLASSES = ("grading",)
"""Modules that grade a class in place of comparing calculations: each has a function `report(folder)`."""

BLAS = ("OMP", "OPENBLAS", "MKL")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in BLAS} | {"VECLIB_MAXIMUM_THREADS": "1"}


def bench(names: Sequence[str]) -> int:
    """Run the benchmarks of these names, all of them where there is none, on one BLAS thread.

    Raises BadInput for a name that is no benchmark. Returns an exit code.
    """
    for name in names:
        if name not in (*BENCHMARKS, *CLASSES):
            raise BadInput(f"there is no benchmark {name!r}: choose from {', '.join((*BENCHMARKS, *CLASSES))}.")
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        # BLAS counts its threads when NumPy is imported, and here it has been: start over.
        command = [sys.executable, "-m", "autograder", "bench", *names]
        return subprocess.run(command, env={**os.environ, **ONE_THREAD}).returncode
    from autograder.bench.grading import report
    from autograder.bench.report import FOLDER, run

    for name in names or (*BENCHMARKS, *CLASSES):
        if name in CLASSES:
            report(FOLDER)
        else:
            run(name, BENCHMARKS[name])
    return 0
