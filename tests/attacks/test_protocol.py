"""Frames: what is sent comes back; anything else is a ProtocolError, never a crash, a pickle or a large allocation."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.checks.stored import StoredCase
from autograder.grade.findings import Ruling
from autograder.grade.hearing import Hearing, Limits, Question
from autograder.grade.protocol import LARGEST, LENGTHS, Frames, ProtocolError, carries, pack, text_of
from autograder.grade.sandbox import Ending
from gradwright._cells import Cell

ARRAYS = [
    np.arange(6.0).reshape(2, 3).T,
    np.array(3, np.int32),
    np.zeros((0, 4), np.float16),
    np.array([True, False]),
    np.array(["", "text", "\N{GREEK SMALL LETTER ALPHA}"]),
    np.array([1 + 2j, np.nan]),
    np.arange(3, dtype=">i8"),
]


def frame(message: object, numbers: bytes = b"") -> bytes:
    text = json.dumps(message).encode() if not isinstance(message, bytes) else message
    return LENGTHS.pack(len(text) + len(numbers), len(text)) + text + numbers


def test_what_is_sent_comes_back() -> None:
    ((message, arrays),) = Frames().take(pack({"kind": "x"}, ARRAYS))
    assert message == {"kind": "x"}
    for sent, got in zip(ARRAYS, arrays, strict=True):
        assert (got.shape, got.dtype, got.tolist()) == (sent.shape, sent.dtype.newbyteorder("="), sent.tolist()) or (
            np.array_equal(sent, got, equal_nan=True)
        )


def test_frames_come_in_any_pieces() -> None:
    data = pack({"n": 1}, ARRAYS) + pack({"n": 2})
    frames = Frames()
    found = [message for i in range(len(data)) for message, _ in frames.take(data[i : i + 1])]
    assert found == [{"n": 1}, {"n": 2}]


def test_objects_cannot_be_sent() -> None:
    for array in (np.array([None]), np.zeros(1, "f8,i4"), np.zeros(1, "M8[s]"), np.zeros(1, np.longdouble)):
        assert not carries(array)
        with pytest.raises(ProtocolError):
            pack({}, [array])


BAD = {
    "no JSON": frame(b"\xff\xff"),
    "no dict": frame([1]),
    "no arrays": frame({}),
    "arrays of another kind": frame({"arrays": {"a": 1}}),
    "an entry of another kind": frame({"arrays": [1]}),
    "objects": frame({"arrays": [["|O", [1]]]}, b"x" * 8),
    "a structure": frame({"arrays": [["<f8,<i4", [1]]]}, b"x" * 12),
    "a void": frame({"arrays": [["|V8", [1]]]}, b"x" * 8),
    "a date": frame({"arrays": [["<M8[s]", [1]]]}, b"x" * 8),
    "a shape of text": frame({"arrays": [["<f8", ["1"]]]}, b"x" * 8),
    "a shape of booleans": frame({"arrays": [["<f8", [True]]]}, b"x" * 8),
    "a negative shape": frame({"arrays": [["<f8", [-1]]]}, b"x" * 8),
    "a huge shape": frame({"arrays": [["<f8", [2**62, 2**62]]]}),
    "a huge product": frame({"arrays": [["<f8", [2**22] * 32]]}),
    "a huge shape with a zero": frame({"arrays": [["<f8", [0, 2**40]]]}),
    "too many axes": frame({"arrays": [["<f8", [1] * 64]]}, b"x" * 8),
    "too few numbers": frame({"arrays": [["<f8", [2]]]}, b"x" * 8),
    "too many numbers": frame({"arrays": [["<f8", [1]]]}, b"x" * 9),
    "no such character": frame({"arrays": [["<U1", [1]]]}, b"\xff\xff\xff\xff"),
    "a long text": frame({"arrays": [["<U99999", [0]]]}),
    "texts of nothing": frame({"arrays": [["<U0", [2**10]]]}),
    "texts of nothing, larger than the machine": frame({"arrays": [["<U0", [2**23, 2**23]]]}),
    "a text of signs": frame({"arrays": [["<U-1", [0]]]}),
    "too many arrays": frame({"arrays": [["<f8", [0]]] * 5000}),
    "a long frame": LENGTHS.pack(LARGEST + 1, 2),
    "more JSON than frame": LENGTHS.pack(2, 3) + b"{}",
    "deep": frame(b"[" * 100_000),
    "a long number": frame(b'{"arrays": ' + b"9" * 10_000 + b"}"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_frame(name: str) -> None:
    with pytest.raises(ProtocolError):
        list(Frames().take(BAD[name]))


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for text in (data, LENGTHS.pack(len(data), len(data) // 2) + data):
        with contextlib.suppress(ProtocolError):
            list(Frames().take(text))


def test_a_boolean_is_one_and_a_text_can_be_written() -> None:
    ((_, (array,)),) = Frames().take(frame({"arrays": [["|b1", [2]]]}, b"\x02\x00"))
    assert array.view(np.uint8).tolist() == [1, 0]
    assert text_of("a\ud800b" * 10, 4).encode() == b"a?ba"


def hearing() -> Hearing:
    cases = [StoredCase("one", {"a": np.ones(1)}, {"x": np.ones(1)})]
    cells = [Cell("code", "x = 1", id="first"), Cell("code", "y = 1", id="second")]
    return Hearing(0, cells, [Question("start-dot", cases, 1), Question("start-dot-loop", cases, 1)], Limits(1))


OUTCOME = {"names": ["x"], "weak": [], "odd": {}, "raised": None, "changed": [], "printed": "", "warned": []}
ANSWER = {"kind": "outcomes", "id": "start-dot", "cases": [OUTCOME], "in_time": True}
ONE = [np.ones(1)]
READY = {"kind": "ready"}
FAILED = {"kind": "NameError", "message": "", "where": ""}
AGAIN = [{"kind": "cell", "id": "first"}, {"kind": "cell done", "id": "first", "printed": "", "raised": FAILED}]


def test_a_conversation() -> None:
    talk = hearing()
    assert talk.hear({"kind": "cell", "id": "first"}, []) == b""
    assert talk.hear({"kind": "cell done", "id": "first", "printed": "hi", "raised": None}, []) == b""
    assert b"start-dot" in talk.hear(READY, [])
    assert b"start-dot-loop" in talk.hear(ANSWER, ONE)
    assert talk.hear(ANSWER | {"id": "start-dot-loop"}, ONE) is None
    assert talk.answers["start-dot"].outcomes[0].outputs["x"].tolist() == [1]


@pytest.mark.parametrize(
    ("before", "message", "arrays"),
    [
        ([], ANSWER, ONE),  # before anything was asked
        ([], READY, ONE),
        ([], {"kind": "cell", "id": "third"}, []),
        ([], {"kind": "cell", "id": ["first"]}, []),
        ([], {"kind": "cell done", "id": "first", "printed": "", "raised": None}, []),
        ([*AGAIN, *AGAIN], AGAIN[0], []),
        ([READY], READY, []),
        ([READY], {"kind": "cell", "id": "first"}, []),
        ([READY], ANSWER | {"id": "start-dot-loop"}, ONE),
        ([READY], ANSWER | {"cases": [OUTCOME] * 2}, ONE * 2),
        ([READY], ANSWER, ONE * 2),
        ([READY], ANSWER, []),
        ([READY], ANSWER | {"in_time": "yes"}, ONE),
        ([READY], ANSWER | {"cases": [OUTCOME | {"printed": 1}]}, ONE),
        ([READY], ANSWER | {"cases": [OUTCOME | {"raised": {"kind": 1}}]}, ONE),
        ([READY], ANSWER | {"cases": [OUTCOME | {"odd": {"x": {}}}]}, ONE),
        ([READY], ANSWER | {"cases": [OUTCOME | {"weak": ["x"] * 999}]}, ONE),
        ([READY], {"kind": "refused", "id": "start-dot"}, []),
        ([READY], {}, []),
    ],
)
def test_a_frame_out_of_place(before: list, message: dict, arrays: list) -> None:
    talk = hearing()
    for frame_before in before:
        talk.hear(dict(frame_before), [])
    with pytest.raises(ProtocolError):
        talk.hear(dict(message), list(arrays))


@pytest.mark.parametrize(
    ("array", "number"), [(np.array(1.0), True), (np.array(1), True), (np.ones(1), False), (np.float32(1), False)]
)
def test_only_what_can_be_a_python_number_is_taken_for_one(array: np.ndarray, number: bool) -> None:
    talk = hearing()
    talk.hear(dict(READY), [])
    talk.hear(ANSWER | {"cases": [OUTCOME | {"weak": ["x", "y"]}]}, [np.asarray(array)])
    assert talk.answers["start-dot"].outcomes[0].weak == (frozenset("x") if number else frozenset())


@pytest.mark.parametrize(
    ("ending", "ruling"),
    [
        (Ending("died", signal=9), Ruling.KILLED),
        (Ending("died"), Ruling.KILLED),
        (Ending("overran"), Ruling.TIMED_OUT),
        (Ending("garbled"), Ruling.NO_ANSWER),
    ],
)
def test_how_a_run_ends_is_laid_to_the_question_or_the_cell(ending: Ending, ruling: Ruling) -> None:
    asked = hearing()
    asked.hear(dict(READY), [])
    asked.end(ending)
    assert asked.answers["start-dot"].ruling == ruling
    defining = hearing()
    defining.hear({"kind": "cell", "id": "second"}, [])
    defining.end(ending)
    assert (defining.fatal_cell, defining.ruling) == ("second", ruling)
