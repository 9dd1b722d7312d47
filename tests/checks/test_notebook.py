"""`check`, the line under every exercise: in plain Python and in a real IPython shell."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import gradwright
from autograder.checks import notebook
from autograder.checks.exercise import find
from autograder.checks.judge import judge
from autograder.checks.notebook import begin, check
from autograder.checks.verdict import Verdict
from autograder.errors import BadInput, CheckFailed, Interrupted

NO_FRAMEWORK = object()


def dot(a, b):
    if len(a) != len(b):
        raise ValueError
    return a @ b


def wrong_dot(a, b):
    return 0.0


def unwritten(a, b):
    raise NotImplementedError("Exercise 0.2: dot")


@pytest.fixture(autouse=True)
def no_session(monkeypatch):
    monkeypatch.setattr(notebook, "_session", None)


@pytest.fixture
def begun(no_session):
    begin(NO_FRAMEWORK, 0)


def test_before_the_first_cell_has_run_check_says_so():
    with pytest.raises(BadInput) as caught:
        check("start-dot", dot)
    assert str(caught.value) == (
        "no chapter has been started: run the notebook's first cell, gradwright.chapter(0), and then this check again"
    )


def test_in_another_chapter_check_says_so():
    begin(NO_FRAMEWORK, 4)
    with pytest.raises(BadInput) as caught:
        check("start-dot", dot)
    assert str(caught.value) == (
        "'start-dot' belongs to chapter 00 and this is chapter 04: "
        "run the notebook's first cell, gradwright.chapter(0), and then this check again"
    )


def test_a_right_answer_shows_its_verdict_and_returns_nothing(begun, capsys):
    assert check("start-dot", dot) is None
    out, err = capsys.readouterr()
    assert out.startswith("0.2 dot")
    assert out.rstrip().endswith("right: 17 of 17 cases")
    assert err == ""


@pytest.mark.parametrize("answer, state", [(wrong_dot, "not yet: "), (unwritten, "not implemented yet")])
def test_any_other_answer_shows_its_verdict_and_fails(begun, capsys, answer, state):
    with pytest.raises(CheckFailed) as caught:
        check("start-dot", answer)
    assert str(caught.value).startswith(f"0.2 dot is {state}")
    assert "\n" not in str(caught.value)
    out, err = capsys.readouterr()
    assert state in out
    assert err == ""


def test_the_framework_of_the_session_reaches_the_probe(begun, monkeypatch):
    seen = []

    def judge(exercise, target, framework):
        seen.append(framework)
        return Verdict(exercise, (), 1, missing=exercise.title)

    monkeypatch.setattr(notebook, "judge", judge)
    with pytest.raises(CheckFailed):
        check("start-dot", dot)
    assert seen == [NO_FRAMEWORK]


def test_a_notebook_that_changed_since_it_was_loaded_is_told(capsys):
    begin(NO_FRAMEWORK, 0, stale=lambda: ["work/01_tensor/tensor.ipynb has changed: restart the kernel"])
    check("start-dot", dot)
    assert capsys.readouterr().out.endswith("work/01_tensor/tensor.ipynb has changed: restart the kernel\n")


def test_what_an_exercise_builds_on_is_named_until_its_check_has_passed(begun, monkeypatch, capsys):
    needing = replace(find("start-dot"), needs=("start-dot-loop",))
    monkeypatch.setattr(notebook, "find", lambda wanted: needing if wanted == "start-dot" else find(wanted))
    sentence = "It builds on 0.1 dot_loop, whose check has not passed in this session."

    def shown(answer):
        with pytest.raises(CheckFailed):
            check("start-dot", answer)
        return capsys.readouterr().out

    def as_loop(answer):
        def dot_loop(a, b):
            return answer(a, b)

        return dot_loop

    assert sentence in shown(wrong_dot)
    check("start-dot-loop", as_loop(dot))
    assert sentence not in shown(wrong_dot)
    with pytest.raises(CheckFailed):
        check("start-dot-loop", as_loop(wrong_dot))
    assert sentence in shown(wrong_dot)


# In a notebook


@pytest.fixture
def shell(begun, monkeypatch):
    """A shell as a kernel has it, with both answers defined, and nothing else of this test in it."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(colors="nocolor")
    shell.user_ns.update(check=check, np=np, wrong_dot=wrong_dot)
    shell.run_cell("def dot(a, b):\n    if len(a) != len(b):\n        raise ValueError\n    return a @ b")
    yield shell
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def run(shell, cell):
    """What a cell shows: its outputs, stdout and stderr, and the result of running it."""
    with capture_output() as captured:
        result = shell.run_cell(cell)
    return captured, result


def test_a_right_check_shows_html_and_text_and_leaves_no_result(shell):
    captured, result = run(shell, 'check("start-dot", dot)')
    assert result.success
    assert result.result is None
    assert (captured.stdout, captured.stderr) == ("", "")
    (output,) = captured.outputs
    assert set(output.data) == {"text/plain", "text/html"}
    assert output.data["text/plain"].endswith("right: 17 of 17 cases")
    assert "right: 17 of 17 cases" in output.data["text/html"]


def test_a_failed_check_shows_its_verdict_and_one_line_of_traceback(shell):
    captured, result = run(shell, 'check("start-dot", wrong_dot)')
    assert isinstance(result.error_in_exec, CheckFailed)
    assert captured.stderr == ""
    (output,) = captured.outputs
    assert "not yet" in output.data["text/plain"]
    assert captured.stdout.strip() == (f"CheckFailed: {result.error_in_exec}")
    assert str(result.error_in_exec).endswith("; the verdict above says more")


def test_bad_input_is_one_line_too(shell):
    captured, result = run(shell, 'check("start-dots", dot)')
    assert isinstance(result.error_in_exec, BadInput)
    assert captured.stdout.strip() == "BadInput: there is no exercise 'start-dots': did you mean 'start-dot'?"
    assert captured.stderr == ""


NOISY = """
import sys, warnings
def dot(a, b):
    print("to stdout")
    print("to stderr", file=sys.stderr)
    warnings.warn("watch out")
    np.log(np.zeros(1))
    if len(a) != len(b):
        raise ValueError
    return a @ b
check("start-dot", dot)
"""


def test_whatever_a_right_answer_prints_and_warns_stays_inside_the_verdict(shell):
    captured, result = run(shell, NOISY)
    assert result.success
    assert (captured.stdout, captured.stderr) == ("", "")
    text = captured.outputs[0].data["text/plain"]
    for said in ("to stdout", "to stderr", "UserWarning: watch out", "RuntimeWarning: divide by zero"):
        assert said in text


def test_the_line_that_raised_is_shown_as_the_cells_own(shell):
    cell = 'def broken(a, b):\n    return a[99]\ncheck("start-dot", broken)'
    captured, _ = run(shell, cell)
    text = captured.outputs[0].data["text/plain"]
    assert "where    your cell, line 2: return a[99]" in text


def test_checks_import_neither_ipython_nor_torch_nor_the_framework():
    code = (
        "import sys, autograder.checks; "
        "print(sorted({'IPython', 'torch', 'gradwright', 'matplotlib', 'nbformat'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


def test_an_endless_loop_that_is_interrupted_is_one_sentence(monkeypatch):
    def endless(a, b):
        raise KeyboardInterrupt  # what the kernel does when the square is pressed

    gradwright.chapter(0)
    with pytest.raises(
        Interrupted, match=r"^0\.1 dot_loop was stopped at test_notebook\.py, line \d+: raise Keyboard"
    ) as met:
        check("start-dot-loop", endless)
    assert len(met.value._render_traceback_()) == 1
    assert isinstance(met.value, KeyboardInterrupt)


def test_none_in_few_cases_does_not_hide_what_is_wrong_in_the_others():
    def early(a, b):
        if len(a) != len(b):
            raise ValueError(len(a), len(b))
        for x, y in zip(a, b, strict=True):
            return x * y

    verdict = judge(find("start-dot-loop"), early, gradwright)
    assert "None" not in verdict.causes[0].text
