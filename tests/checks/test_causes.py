"""Every general cause is named for the answer that has it, and none for an answer that has not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autograder.checks.causes import likely_causes
from autograder.checks.compare import compare
from tests.checks.small_exercise import make_exercise, one_matrix, verdict_on


def causes(answer, right, inputs=one_matrix, **record):
    """The texts that a check shows as causes."""
    return [cause.text for cause in verdict_on(answer, right, make_exercise(inputs, **record)).causes]


def positive(rng, *shape):
    return {"a": rng.uniform(0.5, 2.0, shape)}


def vector(rng, *shape):
    return {"a": rng.standard_normal(shape[0] + 1)}


def block(rng, *shape):
    return {"a": rng.standard_normal((*shape, 2))}


def whole_numbers(rng, *shape):
    return {"a": rng.integers(-9, 10, shape)}


def masks(rng, *shape):
    return {"a": rng.standard_normal(shape)}


ROWS = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])


def weighted(a):
    """Something that is like no input, by rows of different weight."""
    return np.tanh(a) * ROWS[: len(a)] + 0.25


RULES = [
    ("The right answer, transposed.", lambda a: weighted(a).T, weighted, one_matrix),
    (
        "The right answer, with its axes in the order (1, 2, 0).",
        lambda a: weighted_block(a).transpose(1, 2, 0),
        lambda a: weighted_block(a),
        block,
    ),
    ("The sign is wrong everywhere.", lambda a: -weighted(a), weighted, one_matrix),
    ("The numbers are right, but a minus sign is lost.", lambda a: abs(weighted(a)), weighted, one_matrix),
    ("The right answer times 2.", lambda a: 2 * weighted(a), weighted, one_matrix),
    ("The right answer times 0.5.", lambda a: weighted(a).sum() / 2, lambda a: weighted(a).sum(), one_matrix),
    ("The right answer plus 1.", lambda a: weighted(a) + 1, weighted, one_matrix),
    (
        "The right answer times the number of elements of `a`: a mean is missing.",
        lambda a: weighted(a).sum(),
        lambda a: weighted(a).mean(),
        one_matrix,
    ),
    (
        "The right answer divided by the size of axis 1 of `a`: a mean where a sum is asked for.",
        lambda a: weighted(a).mean(1),
        lambda a: weighted(a).sum(1),
        one_matrix,
    ),
    ("A sum over axis 0 is missing.", weighted, lambda a: weighted(a).sum(0), one_matrix),
    ("A sum over axis 1 is missing.", weighted, lambda a: weighted(a).sum(1, keepdims=True), one_matrix),
    ("A mean over axis 0 is missing.", weighted, lambda a: weighted(a).mean(0), one_matrix),
    ("A sum over axis 0, 1 is missing.", weighted, lambda a: weighted(a).sum(), one_matrix),
    ("Summed over axis 1, which should have been kept.", lambda a: weighted(a).sum(1), weighted, one_matrix),
    (
        "The numbers are right, the shape is not: an axis of size 1 is missing or too many.",
        lambda a: weighted(a).sum(0),
        lambda a: weighted(a).sum(0, keepdims=True),
        one_matrix,
    ),
    ("The numbers are right, the shape is not: reshaped.", lambda a: weighted(a).ravel(), weighted, one_matrix),
    (
        "The right answer, repeated along an axis.",
        lambda a: np.broadcast_to(weighted(a).sum(0), a.shape),
        lambda a: weighted(a).sum(0),
        one_matrix,
    ),
    (
        "The numbers are right, the dtype is not: float32 instead of float64.",
        lambda a: np.float32(np.round(a)),
        np.round,
        one_matrix,
    ),
    ("The numbers are right, the dtype is not: int64 instead of bool.", lambda a: (a > 0) * 1, lambda a: a > 0, masks),
    ("True and False are exchanged.", lambda a: a <= 0, lambda a: a > 0, masks),
    ("Everything is 0.", np.zeros_like, weighted, one_matrix),
    ("This is the input `a`, unchanged.", lambda a: a, np.tanh, one_matrix),
    ("The right answer, reversed along axis 0.", lambda a: a[::-1], lambda a: a * 1.0, vector),
    ("The right numbers, in another order.", np.sort, lambda a: np.sort(a)[np.argsort(np.sin(7 * a))], vector),
    ("The right answer, squared.", lambda a: np.exp(a) ** 2, np.exp, one_matrix),
    ("The right answer, inverted (1 / x).", lambda a: np.exp(-a), np.exp, one_matrix),
    ("The right answer, under a root.", lambda a: np.exp(a / 2), np.exp, one_matrix),
    ("Wrong only at the last place of axis 0.", lambda a: spoilt(a, -1), weighted, one_matrix),
    ("Wrong only at the first place of axis 0.", lambda a: spoilt(a, 0), weighted, one_matrix),
    (
        "nan where the right answer is a number: look for 0/0, inf - inf, a log or root of a negative number.",
        lambda a: weighted(a) + np.where(a > 1, np.nan, 0),
        weighted,
        one_matrix,
    ),
    (
        "inf where the right answer is a number: look for a division by 0 or an overflow in exp.",
        lambda a: weighted(a) + np.where(a > 1, np.inf, 0),
        weighted,
        one_matrix,
    ),
]


def weighted_block(a):
    return np.tanh(a) * ROWS[: len(a), :, None] + 0.25


def spoilt(a, row):
    out = weighted(a)
    if len(out) > 2:
        out[row] += np.sin(out[row])
    return out


@pytest.mark.parametrize("text, answer, right, inputs", RULES, ids=[rule[0] for rule in RULES])
def test_a_rule_names_its_cause(text, answer, right, inputs):
    assert causes(answer, right, inputs) == [text]


# What is seen without comparing numbers


def test_swapped_operands():
    def probe(target, arrays, framework):
        return {"y": target(arrays["a"], arrays["b"])}

    def right(a, b):
        return np.tanh(a) - 2 * b

    verdict = verdict_on(lambda a, b: right(b, a), right, make_exercise(probe=probe))
    assert [c.text for c in verdict.causes] == ["It is right when `a` and `b` are exchanged: their roles are swapped."]
    assert verdict.causes[0].seen == len(verdict.failing) == verdict.total


def test_operands_are_swapped_where_a_case_has_them():
    """Cases need not have the same inputs: one may hold what its refusal must name."""

    def inputs(rng, *shape):
        found = {"a": rng.standard_normal(shape), "b": rng.standard_normal(shape)}
        return found | {"more": rng.standard_normal(shape)} if shape == (3, 4) else found

    def probe(target, arrays, framework):
        return {"y": target(arrays["a"], arrays["b"])}

    def right(a, b):
        return np.tanh(a) - 2 * b

    exercise = make_exercise(inputs, probe=probe, draw=lambda rng: (2, 5))
    verdict = verdict_on(lambda a, b: right(b, a), right, exercise)
    assert [c.text for c in verdict.causes] == ["It is right when `a` and `b` are exchanged: their roles are swapped."]
    neither = verdict_on(lambda a, b: right(b, a) if a.shape != (4, 2) else np.exp(a * b), right, exercise)
    assert neither.causes == ()


@pytest.mark.parametrize("answer", [lambda a: str(a.sum()), lambda a: f"{a.sum():.3f}", lambda a: [["1", "2"]]])
def test_text_where_numbers_are_asked_for(answer):
    assert causes(answer, lambda a: a.sum()) == [
        "This is text and not a number: return the value itself, without quotes, `str` or an f-string."
    ]


def test_an_input_changed_in_place_comes_before_what_it_returns():
    def answer(a):
        a *= 2
        return a

    assert causes(answer, lambda a: 2 * a) == [
        "The input `a` was changed in place: work on a copy, the caller still needs it."
    ]


def test_a_function_without_return():
    def answer(a):
        weighted(a)

    text = "The function returns None: it has no `return` with a value."
    assert causes(answer, weighted) == [text]

    def printing(a):
        print(weighted(a))

    assert causes(printing, weighted) == [text + " Printing a result does not return it."]


def test_a_path_without_return():
    def answer(a):
        if a[0, 0] > 0:
            return weighted(a)

    assert causes(answer, weighted) == ["The function returns None: some path through it ends without a `return`."]


def test_an_exception_is_told_with_its_line():
    def answer(a):
        return a[len(a)]

    text = verdict_on(answer, weighted, make_exercise(one_matrix)).text()
    assert "raised   IndexError: index 3 is out of bounds for axis 0 with size 3" in text
    assert "where    test_causes.py, line " in text
    assert "return a[len(a)]" in text


def test_not_implemented_yet():
    def answer(a):
        raise NotImplementedError("Exercise 0.3: small")

    verdict = verdict_on(answer, weighted, make_exercise(one_matrix))
    assert verdict.state == "not implemented yet"
    assert verdict.causes == ()


# Nothing is claimed without evidence


def test_one_number_is_no_evidence():
    """Any number is any other one times something: what is seen in a single case of one element is not said."""
    once = {"only": (1, 1)}

    def answer(a):
        return 2 * weighted(a).sum() if a.shape == (1, 1) else weighted(a).sum()

    def right(a):
        return weighted(a).sum()

    verdict = verdict_on(answer, right, make_exercise(one_matrix, cases=once, draw=lambda rng: (2, 2)))
    assert len(verdict.failing) == 1
    assert verdict.causes == ()


def numbers(rng, kind, shape):
    drawn = {
        "floats": lambda: rng.standard_normal(shape),
        "float32": lambda: rng.standard_normal(shape, np.float32),
        "complex": lambda: rng.standard_normal(shape) + 1j * rng.standard_normal(shape),
        "integers": lambda: rng.integers(-9, 10, shape),
        "booleans": lambda: rng.random(shape) < 0.5,
    }
    return np.array(drawn[kind]())


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (2, 3), (1, 4, 2)], ids=str)
@pytest.mark.parametrize("kind", ["floats", "float32", "complex", "integers", "booleans"])
def test_no_cause_is_claimed_for_noise(kind, shape):
    noise = np.random.default_rng(0)
    truth = np.random.default_rng(1)
    exercise = make_exercise(one_matrix, probe=lambda target, arrays, framework: {"y": target()})
    claimed = [verdict_on(lambda: numbers(noise, kind, shape), lambda: numbers(truth, kind, shape), exercise).causes]
    assert claimed == [()]


@given(
    st.data(),
    st.sampled_from([np.dtype(name) for name in ("?", "i1", "u1", "i8", "f2", "f4", "f8", "c16")]),
    st.sampled_from([np.dtype(name) for name in ("?", "i1", "u1", "i8", "f2", "f4", "f8", "c16", "U3")]),
)
def test_whatever_is_compared_no_rule_raises_or_warns(data, wanted_dtype, got_dtype):
    shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
    wanted = data.draw(hnp.arrays(wanted_dtype, shapes))
    got = data.draw(hnp.arrays(got_dtype, st.just(wanted.shape) | shapes))
    difference = compare("y", got, wanted)
    if difference:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = likely_causes(difference, {"a": wanted, "b": got, "c": np.array("text")})
        assert all(text.endswith(".") for text in found)


def test_truth_values_and_numbers_are_not_negated():
    assert likely_causes(compare("y", np.array([True, True]), np.array([0.0, 2.0])), {}) == []
    assert likely_causes(compare("y", np.array([0.0, 2.0]), np.array([True, True])), {}) == []


def test_an_array_of_many_axes_is_left_alone():
    wanted = np.arange(64.0).reshape((2,) * 6)
    assert likely_causes(compare("y", -wanted, wanted), {}) == []
