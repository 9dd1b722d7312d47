"""A probe run on anything at all: an outcome comes back, and nothing else happens."""

from __future__ import annotations

import functools
import io
import sys
import warnings

import numpy as np
import pytest

from autograder.checks.exercise import exercises_of, raised
from autograder.checks.run import MOST_PRINTED, MOST_TEXT, Raised, run_probe
from tests.checks.small_exercise import make_exercise

EXERCISE = make_exercise()
A, B = np.arange(6.0).reshape(2, 3), np.ones((2, 3))


def run(target, exercise=EXERCISE):
    return run_probe(exercise, target, {"a": A, "b": B}, None)


def gives(value):
    """A function that returns this value."""
    return lambda a, b: value


def defined(name, text, file, **known):
    """What a cell of a notebook, run by a kernel as the file of that name, defines under `name`."""
    exec(compile(text, file, "exec"), known)
    return known[name]


# What is printed, warned and raised


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ("def look(a):\n    return a[99]", "the cell of look, line 2"),
        ("look = lambda a: a[99]", "another cell, line 1"),
        ("def look(a):\n    return a", "your cell, line 2"),
    ],
)
def test_an_error_below_another_cell_s_function_names_that_cell(given, where):
    look = defined("look", given, "ipykernel_7/111.py")
    answer = defined("answer", "def answer(a, b):\n    return look(a)[99]", "ipykernel_7/222.py", look=look)
    assert run(answer).raised.where == where


def test_all_that_is_written_is_kept_in_order_and_nothing_gets_out(capfd):
    def answer(a, b):
        print("one")
        print("two", file=sys.stderr)
        sys.stdout.write("three\n")
        return a

    outcome = run(answer)
    assert outcome.printed == "one\ntwo\nthree\n"
    assert not outcome.raised
    assert capfd.readouterr() == ("", "")


def test_the_streams_are_put_back_even_when_an_answer_exchanges_or_closes_them():
    before = sys.stdout, sys.stderr

    def answer(a, b):
        print("kept")
        sys.stdout.close()
        sys.stdout = io.StringIO()
        raise ValueError

    assert run(answer).printed == "kept\n"
    assert (sys.stdout, sys.stderr) == before


def test_output_without_end_is_cut():
    def answer(a, b):
        for _ in range(50_000):
            print("a line")
        print("x" * 10**6)
        return a

    outcome = run(answer)
    assert MOST_PRINTED <= len(outcome.printed) <= 2 * MOST_PRINTED
    assert np.array_equal(outcome.outputs["y"], A)


def test_warnings_are_kept_once_each_and_the_filters_are_as_before():
    before = list(warnings.filters)

    def answer(a, b):
        warnings.simplefilter("ignore")
        warnings.resetwarnings()
        for _ in range(3):
            warnings.warn("careful", UserWarning, stacklevel=1)
        np.array([1.0]) / np.array([0.0])
        return a

    outcome = run(answer)
    assert outcome.warned == ("UserWarning: careful", "RuntimeWarning: divide by zero encountered in divide")
    assert warnings.filters == before


def test_a_warning_whose_text_raises_is_still_told():
    class Broken(UserWarning):
        read = 0

        def __str__(self):
            self.read += 1
            if self.read > 1:
                raise RuntimeError
            return "warn() reads it once"

    def answer(a, b):
        warnings.warn(Broken(), stacklevel=1)
        return a

    assert run(answer).warned == ("Broken: a Broken whose message cannot be read (RuntimeError)",)


class Nasty(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError, SystemExit, GeneratorExit, MemoryError, StopIteration, Nasty])
def test_whatever_is_raised_comes_back_in_words(error):
    def answer(a, b):
        raise error("so it is")

    outcome = run(answer)
    assert outcome.raised.kind == error.__name__
    assert outcome.raised.message == "so it is"
    assert outcome.raised.where.endswith('raise error("so it is")')
    assert outcome.outputs == {}


def test_keyboard_interrupt_passes_through():
    def answer(a, b):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(answer)


def test_an_exception_whose_text_raises_is_still_told():
    class Broken(Exception):
        def __str__(self):
            raise ZeroDivisionError

    def answer(a, b):
        raise Broken

    outcome = run(answer)
    assert outcome.raised.kind == "Broken"
    assert "ZeroDivisionError" in outcome.raised.message


def test_a_message_without_end_is_cut():
    def answer(a, b):
        raise ValueError("x" * 10**7)

    assert len(run(answer).raised.message) == MOST_TEXT


def test_deep_recursion_is_an_exception_like_any_other():
    def answer(a, b):
        return answer(a, b)

    outcome = run(answer)
    assert outcome.raised.kind == "RecursionError"
    assert outcome.raised.where.startswith("test_run.py, line ")


def test_the_line_shown_is_the_learners_and_not_a_librarys():
    def answer(a, b):
        return functools.reduce(np.matmul, [a, b])

    def through_the_library(a, b):
        return np.lib.stride_tricks.broadcast_to(a, (1,))

    for target, line in ((answer, "functools.reduce"), (through_the_library, "np.lib")):
        assert line in run(target).raised.where


def test_an_exception_of_the_probe_itself_names_no_line():
    outcome = run_probe(exercises_of(0)[0], gives(A), {"a": A}, None)
    assert outcome.raised == Raised("KeyError", "'b'", "")


def test_a_call_with_too_few_arguments_is_told():
    outcome = run(lambda a: a)
    assert outcome.raised.kind == "TypeError"
    assert "takes 1 positional argument" in outcome.raised.message


# Inputs that are changed


def set_element(a, b):
    a[0, 0] = 9


def set_to_nan(a, b):
    b[...] = np.nan


def flip_sign_of_zero(a, b):
    a[0, 0] = -0.0


def set_shape(a, b):
    a.shape = (3, 2)


def then_raise(a, b):
    b += 1
    raise ValueError


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
@pytest.mark.parametrize(
    "answer, changed",
    [(set_element, "a"), (set_to_nan, "b"), (flip_sign_of_zero, "a"), (set_shape, "a"), (then_raise, "b")],
)
def test_an_input_that_is_changed_is_told(answer, changed):
    assert run(answer).changed == (changed,)
    assert A[0, 0] == 0 and B.all()


def test_an_input_that_holds_nan_is_not_changed_by_being_read():
    outcome = run_probe(EXERCISE, lambda a: a + 1, {"a": np.array([np.nan, np.inf])}, None)
    assert outcome.changed == ()


# `raised`, for probes


def raising(error):
    def answer():
        raise error

    return answer


def test_raised_tells_whether_the_call_raised_that():
    assert raised(ValueError, raising(ValueError("x")))
    assert raised(LookupError, raising(KeyError("x")))
    assert not raised(ValueError, lambda: 3)
    with pytest.raises(TypeError):
        raised(ValueError, raising(TypeError("x")))


def test_an_unwritten_stub_never_counts_as_the_error_that_is_asked_for():
    stub = raising(NotImplementedError("Exercise 0.1: dot_loop"))
    for error in (NotImplementedError, RuntimeError, Exception):
        with pytest.raises(NotImplementedError):
            raised(error, stub)
    with pytest.raises(NotImplementedError):
        raised(RuntimeError, raising(NotImplementedError("later")))
    assert raised(NotImplementedError, raising(NotImplementedError("gradients of gradients are not offered")))
