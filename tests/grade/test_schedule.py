"""Many jobs at once: each comes back once, and one that kills its process takes no other with it."""

from __future__ import annotations

import operator
import signal
import sys

import pytest

from autograder.grade.schedule import run_all


def test_every_job_comes_back_once() -> None:
    found = dict(run_all(operator.neg, iter(range(20)), 2, lost=operator.pos))
    assert found == {job: -job for job in range(20)}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal that kills a process from inside")
def test_a_job_that_kills_its_process_is_the_only_one_lost() -> None:
    harmless, deadly = int(signal.SIGURG), int(signal.SIGKILL)
    jobs = [harmless, deadly, harmless, harmless, deadly, harmless]
    found = list(run_all(signal.raise_signal, jobs, 2, lost=lambda job: "lost"))
    assert sorted(found, key=str) == sorted([(harmless, None)] * 4 + [(deadly, "lost")] * 2, key=str)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signal to one process of several")
def test_ctrl_c_is_for_the_first_process_alone() -> None:
    assert list(run_all(signal.raise_signal, [int(signal.SIGINT)], 1, lost=lambda job: "lost")) == [(2, None)]


def test_an_error_of_ours_is_not_hidden() -> None:
    with pytest.raises(TypeError, match="bad operand type"):
        list(run_all(operator.neg, ["text"], 1, lost=operator.pos))
