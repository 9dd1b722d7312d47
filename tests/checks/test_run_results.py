"""Anything at all that an answer returns: as an array, or named for what it is instead."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from autograder.checks.run import NO_RETURN, Raised, ends_without_return, run_probe
from autograder.errors import BadInput
from tests.checks.small_exercise import make_exercise

EXERCISE = make_exercise()
A, B = np.arange(6.0).reshape(2, 3), np.ones((2, 3))


def run(target, exercise=EXERCISE):
    return run_probe(exercise, target, {"a": A, "b": B}, None)


def gives(value):
    """A function that returns this value."""
    return lambda a, b: value


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
