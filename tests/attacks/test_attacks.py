"""None of them gains a point, reads or changes what is not its own, outlives its run, or costs another anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.build.sample import filled_in, solved
from autograder.checks.exercise import find
from autograder.checks.judge import compared
from autograder.checks.run import Outcome
from autograder.checks.stored import identical
from autograder.course import ROOT, chapter
from autograder.grade import hearing
from autograder.grade.hidden import hidden_reference, points_of, shown_reference
from autograder.grade.job import Job
from autograder.grade.judge import judge, warm_sandbox
from autograder.grade.restore import restore

from .conftest import SECRET, START, Submit, descendants, everything, still_runs
from .hostile import ESCAPES, FORGED, HOSTILE, attack

FULL = {"start-dot-loop-check": 2.0, "start-dot-check": 2.0}
NOTHING = dict.fromkeys(FULL, 0.0)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_submission_earns_nothing_and_costs_nobody(name: str, submit: Submit, answers: dict) -> None:
    judged = submit(FORGED, *HOSTILE[name], seconds=0.3)
    assert judged.points == NOTHING, judged.trouble
    assert "<script" not in "".join(html_of(judged.notebook))
    json.dumps(judged.notebook, ensure_ascii=False).encode()  # can be written to a file
    assert submit(answers, student="two").points == FULL  # the next one in the same sandbox


def html_of(notebook: dict) -> list[str]:
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return [output["data"].get("text/html", "") for output in outputs if "data" in output]


def test_no_process_outlives_its_run(submit: Submit, answers: dict) -> None:
    """Of the sandbox's own processes: other tests have theirs, which come and go."""
    submit(answers)
    wall = warm_sandbox(0, True).process.pid
    before = sorted(descendants(wall))
    assert before
    for name in ("thread that goes on", "threads without end", "blocks the alarm", "kills all", "escapes"):
        submit(FORGED, *HOSTILE[name], seconds=0.5)
    assert sorted(descendants(wall)) == before
    warm_sandbox(0, True).stop()
    assert not [pid for pid in before if still_runs(pid)]


def test_no_way_out_is_open(submit: Submit) -> None:
    assert "DONE []" in everything(submit(FORGED, ESCAPES, attack("pass")))


def test_no_answers_and_no_class_are_in_sight(submit: Submit, tmp_path: Path) -> None:
    (tmp_path / "gradebook.db").write_text("scores")
    judged = submit(FORGED, "FOUND = []", *HOSTILE["reads the disk"][1:])
    assert "found []" in everything(judged)


def test_nothing_is_left_for_the_next_run(submit: Submit, answers: dict) -> None:
    """Files, environment, modules, names in the warm process, text in its memory."""
    leave = """import os, sys, numpy
open('/private/left', 'w').write('left behind')
os.environ['LEFT'] = 'left behind'
numpy.left_behind = sys.left_behind = 'left behind'"""
    look = """import os, sys, numpy, gc
SEEN = [os.listdir('/private'), 'LEFT' in os.environ, hasattr(numpy, 'left_behind'), hasattr(sys, 'left_behind')]
MINE = [t for t in gc.get_objects() if isinstance(t, dict) and any('of-' + 'somebody-else' in str(k) for k in t)]
print('SEEN', SEEN, len(MINE))"""
    submit(answers | {"start-dot": answers["start-dot"] + "\nKEY = {'of-somebody-else': 1}"}, leave)
    assert "SEEN [[], False, False, False] 0" in everything(submit(answers, look, student="two"))


def test_hidden_inputs_are_told_to_nobody(submit: Submit) -> None:
    """Printed, warned of, raised, named, sent back: what a learner reads holds no number of a hidden case."""
    tell = [
        "print(a.tolist(), b.tolist())",
        "import warnings; warnings.warn(str(a.tolist()))",
        "raise ValueError(str(a.tolist()))",
        "raise type(str(a.tolist()), (Exception,), {})",
        "raise NotImplementedError('Exercise 0.1: ' + str(a.tolist()).replace(' ', ''))",
        "SEEN.append(a.tolist()); raise KeyError(str(SEEN))",
    ]
    hidden = hidden_reference("start-dot", SECRET).cases + hidden_reference("start-dot-loop", SECRET).cases
    numbers = {repr(n) for case in hidden for array in case.arrays.values() for n in array.ravel().tolist()}
    numbers = {number for number in numbers if len(number) > 8}
    for line in tell:
        said = everything(submit(FORGED, "SEEN = []", attack(line)))
        assert not [number for number in numbers if number in said], line


def test_the_course_s_answer_does_not_come_out_of_a_run_on_top_of_it(walled: None) -> None:
    """In chapter 01 matmul builds on the strides, which are wrong here: it is tried on top of the course's own."""
    first = chapter("01")
    answers = solved(first)
    thief = """def matmul(a, b):
    import inspect
    names = row_major_strides.__code__.co_varnames + row_major_strides.__code__.co_names
    print('STOLEN', names, inspect.getsource(row_major_strides))
    open('/private/stolen', 'w').write(str(names))
    raise ValueError('STOLEN' + str(names))"""
    wrong = "def row_major_strides(mine):\n    return 0"
    released = json.loads((ROOT / "course" / first.place).read_text(encoding="utf-8"))
    for cell in released["cells"]:
        cell["source"] = "".join(cell["source"])
    notebook = filled_in(released, answers | {"tensor-strides": wrong, "tensor-matmul": thief})
    try:
        job = Job("one", first.number, first.folder, restore(notebook["cells"], released), SECRET, True)
        judged = judge(job)
    finally:
        warm_sandbox(first.number, True).stop()
    said = everything(judged)
    assert "STOLEN" in said  # from the runs on its own code, with the inputs that come with the notebook
    assert judged.points["tensor-matmul-check"] == 0
    own = [line.strip() for line in answers["tensor-strides"].splitlines() if "step" in line]
    assert own
    assert not any(line in said for line in own)


def test_a_table_of_the_values_in_the_notebook_is_no_answer(submit: Submit) -> None:
    """The reference values of a chapter are on every learner's disk."""
    table = {}
    for exercise in ("start-dot-loop", "start-dot"):
        for case in shown_reference(exercise).cases:
            a, b = (case.arrays[name].tolist() for name in ("a", "b"))
            table[str((a, b))] = float(next(iter(case.wanted.values())).ravel()[0]) if case.wanted else 0.0
    judged = submit(FORGED, f"TABLE = {table!r}", attack("return TABLE.get(str((a.tolist(), b.tolist())), 0.0)"))
    assert judged.points == NOTHING


def test_one_value_for_all_that_no_table_holds_is_no_answer() -> None:
    """Right on the cases that come with the notebook, by a table, and on drawn ones as often as one value is."""
    for number in range(8):
        reference = hidden_reference("losses-made-here", bytes([number]) * 32)
        known = [case.arrays for case in shown_reference("losses-made-here").cases]
        guess = reference.cases[-1].wanted
        outcomes = [
            Outcome(case.wanted if any(identical(case.arrays, arrays) for arrays in known) else guess)
            for case in reference.cases
        ]
        verdict = compared(find("losses-made-here"), reference, outcomes)
        assert verdict.right or points_of(verdict, 2.0) == 0.0


@pytest.mark.parametrize("first", ["", "def dot_loop(a, b):\n    return 0.0"])
def test_the_course_s_answer_to_another_exercise_is_no_answer(first: str, submit: Submit) -> None:
    """Each alone would be tried on top of it: `dot_loop` would answer both."""
    borrowed = "def dot(a, b):\n    return dot_loop(a, b)"
    given = {"start-dot": borrowed} | ({"start-dot-loop": first} if first else {})
    assert submit(given).points == NOTHING


@pytest.mark.parametrize("line", ["display(1)", "get_ipython()", "input('?')", "import a_library_of_mine"])
def test_a_line_that_works_in_jupyter_alone_costs_nothing(line: str, submit: Submit, answers: dict) -> None:
    assert submit({name: f"{line}\n{text}" for name, text in answers.items()}).points == FULL


def test_an_attack_in_one_exercise_costs_that_one(submit: Submit, answers: dict) -> None:
    for name in ("ends python", "memory in steps", "garbage", "catches everything", "closes every file"):
        cells = HOSTILE[name]
        judged = submit(answers | {"start-dot-loop": FORGED["start-dot-loop"]}, *cells, seconds=1.0)
        assert judged.points == {"start-dot-loop-check": 0.0, "start-dot-check": 2.0}, name


STUCK = "import signal\nsignal.pthread_sigmask(0, range(1, 64))\nwhile True: pass"


@pytest.mark.parametrize("body", ["import os\nos._exit(0)", "import ctypes\nctypes.string_at(0)", STUCK])
@pytest.mark.usefixtures("submit")
def test_any_number_of_cells_that_end_a_run_is_no_way_to_a_human(body: str, released: dict, answers: dict) -> None:
    """Each costs what it would have defined: a right answer has its points, and a forged one nothing."""
    sources = [f"{body}\nvalue{i} = 1" for i in range(6)]
    sources.append("def total():\n    return " + " + ".join(f"value{i}" for i in range(6)))
    own = [{"cell_type": "code", "id": f"own-{i}", "source": text, "metadata": {}} for i, text in enumerate(sources)]
    for given, points in ((answers, FULL), (FORGED, NOTHING)):
        cells = restore([*own, *filled_in(released, given)["cells"]], released)
        judged = judge(Job("one", START.number, START.folder, cells, SECRET, True, 0.3))
        assert (judged.points, judged.trouble) == (points, "")


def test_cells_that_python_cannot_read_in_time_are_for_a_human(
    submit: Submit, answers: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "START_SECONDS", 3.0)
    judged = submit(answers, "f'" + "{a}" * 160_000 + "'")
    assert judged.points == dict.fromkeys(FULL)
    assert "to read its cells: look at them by hand." in judged.trouble
    assert submit(answers, "%a\n" * 20_000).points == FULL
