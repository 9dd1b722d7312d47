"""Two arrays to a difference: nothing that is wrong gets through, nothing that is right is held up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autograder.checks.compare import allowed, apart, compare, compare_outputs, distance, same_outcome
from autograder.checks.run import Outcome, Raised

DTYPES = [*(np.dtype(name) for name in ("?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "U5"))]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def any_array(dtypes=tuple(DTYPES), shapes=SHAPES):
    return st.sampled_from(dtypes).flatmap(lambda dtype: hnp.arrays(dtype, shapes))


FLOATS = tuple(np.dtype(name) for name in ("f2", "f4", "f8"))


@st.composite
def float_array_with_a_place(draw):
    """A non-empty array of numbers of order one, and one of its places."""
    dtype = draw(st.sampled_from(FLOATS))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=4))
    numbers = st.floats(-4, 4, width=16, allow_nan=False, allow_subnormal=False)
    array = draw(hnp.arrays(dtype, shape, elements=numbers))
    return array, tuple(draw(st.integers(0, n - 1)) for n in shape)


@given(any_array())
def test_an_array_does_not_differ_from_itself(array):
    assert compare("y", array.copy(), array) is None
    assert compare("y", array.copy(order="F"), array) is None


@given(any_array())
def test_read_only_and_strided_arrays_are_compared_like_any_other(array):
    wide = np.repeat(array[..., None], 2, axis=-1)
    view = wide[..., 0]
    array.flags.writeable = False
    assert compare("y", view, array) is None
    assert compare("y", array, view) is None


@given(float_array_with_a_place(), st.sampled_from([-1, 1]), st.floats(1.5, 1e3))
def test_one_element_beyond_tolerance_is_found_where_it_is(case, sign, times):
    wanted, place = case
    got = wanted.copy()
    got[place] += np.float64(sign * times) * allowed(wanted)[place]
    difference = compare("y", got, wanted)
    assert difference is not None
    assert (difference.kind, difference.first, difference.wrong) == ("values", place, 1)
    assert difference.largest == abs(np.float64(got[place]) - np.float64(wanted[place]))


@given(float_array_with_a_place(), st.sampled_from([-1, 1]))
def test_one_element_within_tolerance_is_let_through(case, sign):
    wanted, place = case
    got = wanted.copy()
    got[place] += np.float64(sign * 0.4) * allowed(wanted)[place]
    assert compare("y", got, wanted) is None


@given(float_array_with_a_place(), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_what_is_not_finite_differs_from_every_number(case, odd):
    wanted, place = case
    got = wanted.copy()
    got[place] = odd
    for a, b in ((got, wanted), (wanted, got)):
        difference = compare("y", a, b)
        assert difference is not None
        assert (difference.first, difference.wrong, difference.largest) == (place, 1, np.inf)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_nan_equals_nan_and_inf_equals_inf_of_the_same_sign_only(dtype):
    array = np.array([np.nan, np.inf, -np.inf, 1.0], dtype)
    assert compare("y", array.copy(), array) is None
    assert compare("y", -array, array).wrong == 3


def test_minus_zero_is_zero():
    assert compare("y", np.array([-0.0, 0.0]), np.array([0.0, -0.0])) is None


@given(st.sampled_from([np.int64, np.uint64]), st.integers(2**53, 2**63 - 2))
def test_large_integers_that_differ_by_one_differ(dtype, number):
    difference = compare("y", np.array([number + 1], dtype), np.array([number], dtype))
    assert difference is not None
    assert (difference.kind, difference.wrong) == ("values", 1)
    assert difference.largest >= 1


def test_integers_of_both_signs_do_not_wrap():
    assert compare("y", np.array([2**64 - 1], np.uint64), np.array([-1])) is not None
    assert compare("y", np.array([255], np.uint8), np.array([-1], np.int8)).largest == 256


def test_huge_numbers_of_opposite_sign_differ_without_a_warning():
    assert compare("y", np.array([1e308]), np.array([-1e308])).largest == np.inf


@pytest.mark.parametrize(
    "got, wanted",
    [("f4", "f8"), ("f8", "f4"), ("f2", "f4"), ("i8", "f8"), ("f8", "i8"), ("?", "i8"), ("i8", "?"), ("c16", "f8")],
)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_equal_numbers_of_another_dtype_are_a_difference_of_dtype(got, wanted, shape):
    assert compare("y", np.ones(shape, got), np.ones(shape, wanted)).kind == "dtype"


@pytest.mark.parametrize("width", ["i1", "i2", "i4", "u1", "u4", "u8"])
def test_the_width_of_an_integer_is_free(width):
    assert compare("y", np.arange(5).astype(width), np.arange(5)) is None


@pytest.mark.parametrize(
    "got, wanted", [((), (1,)), ((3,), (3, 1)), ((0,), (0, 3)), ((2, 3), (3, 2)), ((1, 1), (1,)), ((0,), ())]
)
def test_equal_numbers_in_another_shape_are_a_difference_of_shape(got, wanted):
    assert compare("y", np.zeros(got), np.zeros(wanted)).kind == "shape"


def test_text_is_equal_or_not():
    assert compare("y", np.array(["ab", "c"]), np.array(["ab", "c"], "U9")) is None
    assert compare("y", np.array(["ab", "C"]), np.array(["ab", "c"])).first == (1,)


@pytest.mark.parametrize("got", [np.array("31.0"), np.array(b"31"), np.array("2020", "M8[Y]"), np.zeros((), "i4,f8")])
def test_what_is_no_number_differs_from_every_number(got):
    assert compare("y", got, np.array(31.0)).kind == "values"


@pytest.mark.parametrize("number", [2, 2.0])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_a_python_number_takes_the_floating_dtype_that_is_wanted(number, dtype):
    wanted = np.array(2, dtype)
    outcome = Outcome({"y": np.array(number)}, weak=frozenset({"y"}))
    assert compare_outputs(outcome, {"y": wanted}) == []
    assert [d.kind for d in compare_outputs(Outcome({"y": np.array(3)}, frozenset({"y"})), {"y": wanted})] == ["values"]


@pytest.mark.parametrize("number, wanted", [(2.0, np.array(2)), (2 + 0j, np.array(2.0))])
def test_a_python_number_of_another_kind_does_not(number, wanted):
    assert compare("y", np.array(number), wanted, weak=True).kind == "dtype"


def test_outputs_are_compared_one_by_one_in_the_order_that_is_wanted():
    outcome = Outcome({"a": np.zeros(2), "c": np.ones(2)}, odd={"b": "None"})
    wanted = {name: np.zeros(2) for name in "dcba"}
    found = [(d.name, d.kind, d.odd) for d in compare_outputs(outcome, wanted)]
    assert found == [("d", "missing", ""), ("c", "values", ""), ("b", "odd", "None")]


@given(any_array(FLOATS), st.data())
def test_distance_is_zero_to_itself_and_the_same_both_ways(a, data):
    b = data.draw(hnp.arrays(a.dtype, a.shape))
    assert not distance(a, a).any()
    assert np.array_equal(distance(a, b), distance(b, a))


def test_apart_counts_tolerances():
    one = np.array([1.0, 2.0])
    assert apart(one + np.array([0, 50 * allowed(one)[1]]), one) == pytest.approx(50)
    assert apart(one, one) == 0
    assert apart(np.zeros(0), np.zeros(0)) == 0
    assert apart(one[:1], one) == apart(one.astype("f4"), one) == np.inf
    assert apart(np.array([1, 2]), np.array([1, 3])) == np.inf


def outcomes():
    """Outcomes that all differ from one another."""
    y = np.array([1.0, 2.0])
    return [
        Outcome({"y": y}),
        Outcome({"y": y + 1e-3}),
        Outcome({"y": y[:1]}),
        Outcome({"y": y.astype("f4")}),
        Outcome({"z": y}),
        Outcome({"y": y, "z": y}),
        Outcome({"y": y}, changed=("a",)),
        Outcome(odd={"y": "None"}),
        Outcome(raised=Raised("ValueError", "")),
        Outcome(raised=Raised("IndexError", "")),
    ]


def test_outcomes_are_the_same_as_themselves_and_as_no_other():
    for i, a in enumerate(outcomes()):
        for j, b in enumerate(outcomes()):
            assert same_outcome(a, b) == (i == j), f"{a} and {b}"


def test_the_same_outcome_by_other_words_is_the_same():
    assert same_outcome(Outcome(raised=Raised("ValueError", "a")), Outcome(raised=Raised("ValueError", "b", "line 3")))
    weak = Outcome({"y": np.array(2)}, frozenset({"y"}))
    assert same_outcome(weak, Outcome({"y": np.array(2.0)}))
    assert same_outcome(Outcome({"y": np.array(2.0)}), weak)
