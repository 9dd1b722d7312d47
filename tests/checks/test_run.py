"""A probe run on anything at all: an outcome comes back, and nothing else happens."""

from __future__ import annotations

import functools
import io
import sys
import warnings

import numpy as np
import pytest

from autograder.checks.exercise import exercises_of, raised
from autograder.checks.run import MOST_PRINTED, MOST_TEXT, NO_RETURN, Raised, ends_without_return, run_probe
from autograder.errors import BadInput
from tests.checks.small_exercise import make_exercise

EXERCISE = make_exercise()
A, B = np.arange(6.0).reshape(2, 3), np.ones((2, 3))


def run(target, exercise=EXERCISE):
    return run_probe(exercise, target, {"a": A, "b": B}, None)


def gives(value):
    """A function that returns this value."""
    return lambda a, b: value


# What is printed, warned and raised


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


# What comes back


@pytest.mark.parametrize(
    "value",
    [1, 2.5, 1j, True, np.float32(1), [1, 2], (1.0, 2.0), [[1], [2]], range(3), "text", A, A.T, A[::2], A[:0], A[0, 0]],
    ids=repr,
)
def test_numbers_arrays_lists_and_text_become_arrays(value):
    outcome = run(gives(value))
    assert outcome.odd == {}
    assert np.array_equal(outcome.outputs["y"], np.array(value))
    assert type(outcome.outputs["y"]) is np.ndarray


@pytest.mark.parametrize("value, weak", [(1, True), (1.0, True), (1j, True), (True, False), (np.float64(1), False)])
def test_python_numbers_have_no_dtype_of_their_own(value, weak):
    assert ("y" in run(gives(value)).weak) == weak


def recursive_list():
    inner = [1.0]
    inner.append(inner)
    return inner


ODD = {
    "None": None,
    "a list of parts with unequal shapes": [[1.0], [1.0, 2.0]],
    "a tuple of parts with unequal shapes": (A, B[:1]),
    "a generator, which is no array of numbers": (x for x in [1.0, 2.0]),
    "a zip, which is no array of numbers": zip([1.0], [2.0], strict=True),
    "a set, which is no array of numbers": {1.0, 2.0},
    "a dict, which is no array of numbers": {"y": 1.0},
    "a object, which is no array of numbers": object(),
    "a list, which is no array of numbers": [1.0, None],
    "a bytes, which is no array of numbers": b"1.0",
    "a datetime64, which is no array of numbers": np.datetime64("2020"),
    "a ndarray, which is no array of numbers": np.zeros(2, "i4,f8"),
    "sum, which is not a value": sum,
    "float, which is not a value": float,
    "a int, which is no array of numbers": 10**400,
}


@pytest.mark.parametrize("problem", ODD)
def test_what_is_no_array_is_named(problem):
    outcome = run(gives(ODD[problem]))
    assert outcome.odd == {"y": problem}
    assert outcome.outputs == {}
    assert not outcome.raised


def test_a_list_that_holds_itself_is_no_array():
    assert run(gives(recursive_list())).odd["y"].startswith("a list")


@pytest.mark.filterwarnings("error")
def test_a_coroutine_is_no_array_and_leaves_no_warning_behind():
    async def answer(a, b):
        return a

    outcome = run(answer)
    assert outcome.odd == {"y": "a coroutine, which is no array of numbers"}


class LyingArray(np.ndarray):
    """Claims to equal everything and to have any shape."""

    shape = property(lambda self: (2, 3))
    dtype = property(lambda self: np.dtype("f4"))

    def __eq__(self, other):
        return True

    __hash__ = None

    def __len__(self):
        return 10**9

    def __array_ufunc__(self, *args, **kwargs):
        return np.array(0.0)

    def __array_function__(self, *args, **kwargs):
        return True


class LyingList(list):
    def __eq__(self, other):
        return True

    __hash__ = None

    def __len__(self):
        return 1


def test_a_lying_subclass_of_ndarray_is_taken_at_its_numbers():
    liar = np.zeros(4).view(LyingArray)
    array = run(gives(liar)).outputs["y"]
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == ((4,), np.dtype("f8"))
    assert not np.array_equal(array, np.ones(4))


def test_a_lying_list_is_taken_at_its_numbers():
    assert run(gives(LyingList([1.0, 2.0]))).outputs["y"].tolist() == [1.0, 2.0]


def raises_in(method):
    def fails(self, *args, **kwargs):
        raise ZeroDivisionError(method)

    body = property(fails) if method in ("__class__", "__name__", "__array_interface__") else fails
    return type("Hostile", (), {method: body})()


@pytest.mark.parametrize("method", ["__array__", "__class__", "__array_interface__", "__getattr__"])
def test_an_object_that_raises_when_it_is_looked_at_is_an_exception_of_the_answer(method):
    outcome = run(gives(raises_in(method)))
    assert outcome.raised == Raised("ZeroDivisionError", method, outcome.raised.where) or outcome.odd
    assert outcome.outputs == {}


@pytest.mark.parametrize("method", ["__repr__", "__str__", "__eq__", "__bool__", "__hash__", "__len__"])
def test_an_object_that_cannot_be_shown_is_no_array(method):
    outcome = run(gives(raises_in(method)))
    assert outcome.odd == {"y": "a Hostile, which is no array of numbers"}


def test_an_object_that_prints_and_exits_while_it_is_read_is_caught(capfd):
    class Hostile:
        def __array__(self, dtype=None, copy=None):
            print("aha")
            raise SystemExit(0)

    outcome = run(gives(Hostile()))
    assert (outcome.raised.kind, outcome.printed) == ("SystemExit", "aha\n")
    assert capfd.readouterr() == ("", "")


def test_a_result_that_is_an_input_is_a_copy_of_it():
    outcome = run(lambda a, b: a)
    outcome.outputs["y"][0, 0] = 7
    assert A[0, 0] == 0
    assert outcome.changed == ()


@pytest.mark.parametrize("returned", [None, 3.0, [("y", A)], {"y"}])
def test_a_probe_that_gives_no_dict_is_told_to_its_author(returned):
    exercise = make_exercise(probe=lambda target, arrays, framework: returned)
    with pytest.raises(BadInput, match=r"the probe of 'start-small' gave a .*: let it return a dict"):
        run(gives(A), exercise)


def test_what_the_probe_does_with_its_dict_of_inputs_does_no_harm():
    def probe(target, arrays, framework):
        del arrays["a"]
        arrays["b"] = None
        return {}

    assert run(gives(A), make_exercise(probe=probe)).changed == ()


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


# A function without `return`


def nothing_returned(a, b):
    a @ b.T


def bare_return(a, b):
    if a.any():
        return
    print(a)


def some_path_returns(a, b):
    if not a.any():
        return a


def only_raises(a, b):
    raise ValueError


@pytest.mark.parametrize(
    "function, missing",
    [(nothing_returned, True), (bare_return, True), (some_path_returns, False)],
)
def test_a_function_without_return_is_told_from_one_with(function, missing):
    assert ends_without_return(function) is missing


@pytest.mark.parametrize("function", [only_raises, sum, functools.partial(nothing_returned), type, 3])
def test_nothing_is_said_of_what_never_returns_or_has_no_code_to_look_at(function):
    assert not ends_without_return(function)


def test_none_is_told_with_its_reason():
    assert run(nothing_returned).odd == {"y": NO_RETURN}
    assert run(some_path_returns).odd == {"y": "None"}
    assert run(lambda a, b: None if a.any() else a).odd == {"y": "None"}


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
