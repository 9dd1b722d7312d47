"""Probes need nothing from the process that judges: arrays go there as .npy files, arrays come back."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from autograder.checks.exercise import exercises_of, record_files
from autograder.checks.judge import assess, judge
from autograder.checks.stored import Reference, StoredCase, identical, read_reference
from tests.checks import probe_process
from tests.checks.probe_process import inputs_of, read_outcomes, reference_of, run_every_answer, write_arrays


def run_elsewhere(chapter, inputs, folder):
    write_arrays(folder / "inputs", inputs)
    command = [sys.executable, "-W", "error", probe_process.__file__, str(chapter), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return read_outcomes(folder)


def words_dropped(outcome):
    """An outcome without its arrays, and without messages, which may name a place in memory."""
    raised = replace(outcome.raised, message="", where="") if outcome.raised else None
    return replace(outcome, outputs={}, raised=raised, printed="", warned=())


@pytest.mark.parametrize("chapter", record_files())
def test_every_answer_gives_the_same_in_another_process(chapter, tmp_path):
    inputs = inputs_of(chapter)
    here = list(run_every_answer(chapter, inputs))
    there = run_elsewhere(chapter, inputs, tmp_path)
    assert len(here) == len(there) > 0
    for (what, one), other in zip(here, there, strict=True):
        assert identical(one.outputs, other.outputs), what
        assert words_dropped(one) == words_dropped(other), what
        assert "reference" not in what or not (one.raised or one.odd or one.changed or one.printed or one.warned), what


@pytest.mark.parametrize("chapter", record_files())
def test_the_verdict_on_outcomes_from_another_process_is_the_verdict_here(chapter, tmp_path):
    """Judged by the stored values, as `assess` does for a grader who never sees the object."""
    for exercise in exercises_of(chapter):
        reference = read_reference(exercise)
        verdict = judge(exercise, reference_of(exercise), probe_process.gradwright, reference)
        assert verdict.right, verdict.text()
        (tmp_path / exercise.id).mkdir()
        probe_process.write_outcomes(tmp_path / exercise.id, [result.outcome for result in verdict.results])
        assert assess(exercise, reference, read_outcomes(tmp_path / exercise.id)).text() == verdict.text()


@pytest.mark.parametrize("chapter", record_files())
def test_every_mistake_is_caught_on_cases_that_it_has_not_seen(chapter):
    """Hidden cases come from the same records with another seed; the reference implementation gives what is right."""
    inputs = inputs_of(chapter)
    outcomes = dict(run_every_answer(chapter, inputs))
    waiting = iter(inputs)
    for exercise in exercises_of(chapter):
        arrays = {case: next(waiting) for case in exercise.case_names}

        def of(answer, exercise=exercise):
            return [outcomes[f"{exercise.id}, {case}, {answer}"] for case in exercise.case_names]

        right = of("the reference implementation")
        cases = tuple(
            StoredCase(case, arrays[case], outcome.outputs) for case, outcome in zip(arrays, right, strict=True)
        )
        for answer in probe_process.every_answer(exercise):
            verdict = assess(exercise, Reference(cases, {}), of(answer))
            assert verdict.right == (not answer.startswith("mistake")), f"{answer}\n{verdict.text()}"
