"""Honest work never loses, however a notebook is written: what works in Jupyter earns its points."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable

import pytest

from autograder.build.answers import answers_to
from autograder.build.sample import helpers, inside
from autograder.checks.exercise import exercises_of
from autograder.course import ROOT
from autograder.grade.judge import judge

from .conftest import Notebook, code, with_answer, with_cells
from .test_judge import CLEAN, FULL, job_of, no_sandbox_stays, verdict  # noqa: F401 - a fixture of this module too

INNER = CLEAN.replace("def dot", "def inner")

Honest = Callable[[Notebook], Notebook]
HONEST: dict[str, Honest] = {
    "as it is": lambda solution: solution,
    "cells reordered": lambda s: {**s, "cells": [*reversed(s["cells"])]},
    "warns": lambda s: with_answer(s, "start-dot", "import warnings\ndef dot(a, b):\n    warnings.warn('slow')\n"
                                   "    if len(a) != len(b): raise ValueError('lengths')\n    return (a * b).sum()"),
    "divides by zero on the way": lambda s: with_cells(s, code("import numpy as np\nZERO = np.ones(2) / np.zeros(2)")),
    "prints": lambda s: with_answer(s, "start-dot", "def dot(a, b):\n    print(a, b)\n    if len(a) != len(b):\n"
                                    "        raise ValueError('lengths')\n    return a @ b"),
    "helper in a cell of its own": lambda s: with_cells(
        with_answer(s, "start-dot", "def dot(a, b):\n    return inner(a, b)"),
        code("def inner(a, b):\n    if len(a) != len(b):\n        raise ValueError('lengths')\n    return a @ b")),
    "helper beside a demo": lambda s: with_cells(
        with_answer(s, "start-dot", "def dot(a, b):\n    return inner(a, b)"),
        code("made = {}\nmade.update(x=1)\ndef inner(a, b):\n    if len(a) != len(b):\n"
             "        raise ValueError('lengths')\n    return a @ b\nprint(inner(np.ones(2), np.ones(2)))")),
    "other import names": lambda s: with_cells(
        with_answer(s, "start-dot", "from numpy import asarray as array_of, matmul as product\ndef dot(x: 'vector', y)"
                    " -> float:\n    if len(x) != len(y):\n        raise ValueError\n"
                    "    return product(array_of(x), array_of(y))")),
    "uses what the first cell imports": lambda s: with_answer(
        s, "start-dot", "def dot(a, b):\n    assert gradwright and plt and check\n    if len(a) != len(b):\n"
        "        raise ValueError\n    return a @ b"),
    "plots": lambda s: with_cells(s, code("import matplotlib.pyplot as plt\ndef draw():\n    plt.plot([1, 2])")),
    "errors below and above": lambda s: with_cells(
        {**s, "cells": [*s["cells"], code("1 / 0") | {"id": "last"}]}, code("import no_such_module")),
    "magics and a shell": lambda s: with_cells(s, code("%matplotlib inline\n!pip list\nimport math")),
    "threads": lambda s: with_answer(
        s, "start-dot", "import threading\ndef dot(a, b):\n    if len(a) != len(b):\n        raise ValueError\n"
        "    found = []\n    t = threading.Thread(target=lambda: found.append(a @ b))\n    t.start()\n    t.join()\n"
        "    return found[0]"),
    "slow but allowed": lambda s: with_answer(
        s, "start-dot", "import time\ndef dot(a, b):\n    time.sleep(0.15)\n    if len(a) != len(b):\n"
        "        raise ValueError\n    return a @ b"),
    "awaits at the top": lambda s: with_answer(
        s, "start-dot", "import asyncio\nawait asyncio.sleep(0)\nasync def size(x):\n    return len(x)\n"
        "NONE = await size([])\ndef dot(a, b):\n    if len(a) != len(b):\n        raise ValueError\n"
        "    return a @ b + NONE"),
    "a helper that is awaited": lambda s: with_cells(
        with_answer(s, "start-dot", "def dot(a, b):\n    return inner(a, b) + NONE"),
        code("import asyncio\nNONE = await asyncio.sleep(0, 0)\n%time NONE\n" + INNER)),
    "an answer for the notebook alone": lambda s: with_answer(
        s, "start-dot", "if __name__ == '__main__':\n" + textwrap.indent(CLEAN, "    ")),
    "helpers in blocks": lambda s: with_cells(
        with_answer(s, "start-dot", "def dot(a, b):\n    with quiet():\n        return fast(inner(a, b))"),
        code("try:\n    from none import quiet\nexcept ImportError:\n    from contextlib import suppress as quiet"),
        code("for _ in range(1):\n    fast = float"),
        code("if __name__ == '__main__':\n" + textwrap.indent(INNER, "    "))),
    "definitions in a block below what fails here": lambda s: with_answer(
        s, "start-dot", "if True:\n    display(1)\n    import numpy as np\n" + textwrap.indent(CLEAN, "    ")),
    "a branch below what fails here, and another": lambda s: with_answer(
        s, "start-dot", "if True:\n    display(1)\n" + textwrap.indent(CLEAN, "    ") + "\nelse:\n    dot = None"),
    "a handler below what fails here": lambda s: with_answer(
        s, "start-dot", "try:\n    import no_such_module\nexcept ImportError:\n    display(1)\n"
        + textwrap.indent(CLEAN, "    ") + "\nelse:\n    dot = None"),
    "a block below what fails here": lambda s: with_answer(
        s, "start-dot", "get_ipython()\ntry:\n    import no_such_module\nexcept ImportError:\n    import numpy as np\n"
        + CLEAN.removeprefix("import numpy as np\n")),
    "a method added in another cell": lambda s: with_cells(
        with_answer(s, "start-dot", "def dot(a, b):\n    return Product().of(a, b)"),
        code("class Product:\n    pass"), code(INNER.replace("inner(a", "inner(self, a") + "\nProduct.of = inner")),
    "temporary files": lambda s: with_cells(s, code("import tempfile\nclass Kept:\n    file = tempfile.mkdtemp()")),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_honest_work_never_loses(name: str, solution: Notebook, released: Notebook) -> None:
    judged = judge(job_of(HONEST[name](solution), released))
    assert judged.points == FULL, [verdict(judged, check) for check in FULL]
    assert judged.rulings == {"start-dot-loop": "right", "start-dot": "right"}


@pytest.mark.parametrize("exercise", exercises_of(0), ids=lambda exercise: exercise.id)
def test_every_alternative_is_right(exercise, solution: Notebook, released: Notebook) -> None:
    tree = ast.parse((ROOT / "solutions" / "mistakes" / "00_start.py").read_text(encoding="utf-8"))
    for name in answers_to(exercise).alternatives:
        other = inside(inside(inside(tree, exercise.id.replace("-", "_")), "alternatives"), name)
        needed = helpers(tree, other)
        other.name = exercise.name
        text = "\n".join(ast.unparse(part) for part in (*needed, other))
        assert judge(job_of(with_answer(solution, exercise.id, text), released)).points == FULL, name


LOOP = "while True: pass\n"


def test_a_demonstration_that_never_ends_costs_nothing_but_itself(solution: Notebook, released: Notebook) -> None:
    """What its cell defines below it is there, in the runs that follow too."""
    assert judge(job_of(with_answer(solution, "start-dot", LOOP + CLEAN), released, 1)).points == FULL
    ends = "import os\ndef dot_loop(a, b):\n    os._exit(1)"
    helped = with_answer(
        with_answer(solution, "start-dot-loop", ends), "start-dot", "def dot(a, b):\n    return inner(a, b)"
    )
    judged = judge(job_of(with_cells(helped, code(LOOP + INNER)), released, 1))
    assert judged.points == {"start-dot-loop-check": 0.0, "start-dot-check": 2.0}
