"""Stored reference values: what is written comes back, and what cannot be read is said with path and remedy."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autograder.checks.exercise import exercises_of, record_files
from autograder.checks.run import Outcome, Raised
from autograder.checks.stored import (
    REFERENCES,
    RIGHT,
    Reference,
    StoredCase,
    identical,
    read_exercise,
    read_reference,
    write_chapter,
    write_exercise,
)
from autograder.errors import ReferenceMissing
from tests.checks.small_exercise import make_exercise, make_reference

TEXT = st.text("aZ9é漢-_ `<.", max_size=8)
NAMES = TEXT.filter(bool)
DTYPES = [np.dtype(name) for name in ("?", "i1", "u2", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "U1", "U7")]
ARRAYS = st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0)))
GROUPS = st.dictionaries(NAMES, ARRAYS, max_size=3)
OUTCOMES = st.builds(
    Outcome,
    outputs=GROUPS,
    weak=st.frozensets(NAMES, max_size=2),
    odd=st.dictionaries(NAMES, TEXT, max_size=2),
    raised=st.none() | st.builds(Raised, NAMES, st.just("")),
    changed=st.lists(NAMES, max_size=2).map(tuple),
)


@st.composite
def references(draw):
    sentences = draw(st.dictionaries(NAMES, TEXT, max_size=3))
    case = st.builds(StoredCase, NAMES, GROUPS, GROUPS, st.fixed_dictionaries(dict.fromkeys(sentences, OUTCOMES)))
    return Reference(tuple(draw(st.lists(case, max_size=3))), sentences)


def same_outcomes(a, b):
    fields = ("weak", "odd", "raised", "changed")
    return identical(a.outputs, b.outputs) and all(getattr(a, field) == getattr(b, field) for field in fields)


def assert_same(a, b):
    assert a.sentences == b.sentences
    assert [case.name for case in a.cases] == [case.name for case in b.cases]
    for one, other in zip(a.cases, b.cases, strict=True):
        assert identical(one.arrays, other.arrays)
        assert identical(one.wanted, other.wanted)
        assert one.mistakes.keys() == other.mistakes.keys()
        assert all(same_outcomes(one.mistakes[name], other.mistakes[name]) for name in one.mistakes)


@given(references())
def test_what_is_written_comes_back_to_the_bit(reference):
    entry, members = write_exercise(reference)
    assert_same(read_exercise(json.loads(json.dumps(entry)), through_a_file(members)), reference)


def through_a_file(members):
    file = io.BytesIO()
    np.savez_compressed(file, **members)
    with np.load(io.BytesIO(file.getvalue()), allow_pickle=False) as read:
        return dict(read)


def test_strided_and_read_only_arrays_are_stored_by_their_numbers():
    wide = np.arange(24.0).reshape(4, 6)
    arrays = {
        "columns": wide[:, ::2],
        "turned": wide.T,
        "fortran": np.asfortranarray(wide),
        "one": wide[:1, 0].repeat(2),
    }
    wide.flags.writeable = False
    reference = Reference((StoredCase("a case", arrays, {}),), {})
    assert_same(read_exercise(*write_exercise(reference)), reference)


def test_a_mistake_that_makes_no_difference_takes_no_room():
    wanted = {"y": np.array([1.0, np.nan])}
    for outcome, stored in ((Outcome({"y": wanted["y"].copy()}), RIGHT), (Outcome({"y": np.array([1.0, 0])}), None)):
        entry, _ = write_exercise(Reference((StoredCase("a case", {}, wanted, {"m": outcome}),), {"m": "It is."}))
        assert (entry["cases"][0]["mistakes"]["m"] == RIGHT) == (stored == RIGHT)


# Files

ABOUT = {"torch": "2.13.0", "seed": 0}


def written(folder, references):
    folder.mkdir()
    write_chapter("00_start", ABOUT, references, folder)
    return [(folder / f"00_start.{kind}").read_bytes() for kind in ("json", "npz")]


def halved(a, b):
    """It is half of what it should be."""
    return (a + b) / 2


def sum_of_both(a, b):
    return a + b


@pytest.fixture
def exercise():
    return make_exercise()


@pytest.fixture
def folder(tmp_path, exercise):
    """A folder with the stored values of a small exercise."""
    folder = tmp_path / "references"
    written(folder, {exercise.id: make_reference(exercise, sum_of_both, {"halved": halved})})
    return folder


def test_the_same_values_give_the_same_bytes(tmp_path, exercise):
    reference = make_reference(exercise, sum_of_both, {"halved": halved})
    assert written(tmp_path / "a", {exercise.id: reference}) == written(tmp_path / "b", {exercise.id: reference})


def test_files_give_back_the_reference(folder, exercise):
    assert_same(read_reference(exercise, folder), make_reference(exercise, sum_of_both, {"halved": halved}))


def test_every_chapter_has_stored_values_that_fit_its_records():
    for chapter in record_files():
        for exercise in exercises_of(chapter):
            reference = read_reference(exercise)
            assert all(case.wanted for case in reference.cases)


def test_the_stored_files_are_small_and_read_without_pickle():
    for stem in (path.stem for path in record_files().values()):
        assert (REFERENCES / f"{stem}.npz").stat().st_size + (REFERENCES / f"{stem}.json").stat().st_size < 2**20
        with np.load(REFERENCES / f"{stem}.npz", allow_pickle=False) as members:
            assert all(array.dtype.kind in "biufcU" for array in dict(members).values())


def missing_npz(folder):
    (folder / "00_start.npz").unlink()


def missing_json(folder):
    (folder / "00_start.json").unlink()


def truncated(kind, keep):
    def damage(folder):
        path = folder / f"00_start.{kind}"
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * keep)])

    damage.__name__ = f"{kind} cut to {keep:.0%}"
    return damage


def flipped(place):
    def damage(folder):
        path = folder / "00_start.npz"
        content = bytearray(path.read_bytes())
        content[int(len(content) * place)] ^= 0xFF
        path.write_bytes(content)

    damage.__name__ = f"bit flipped at {place:.0%}"
    return damage


def foreign_npz(folder):
    np.savez(folder / "00_start.npz", something=np.arange(3))


def single_array(folder):
    with open(folder / "00_start.npz", "wb") as file:
        np.save(file, np.arange(3))


def pickled(folder):
    np.savez(folder / "00_start.npz", **{"start-small.float64": np.array([{"a": 1}], dtype=object)})


def text_file(folder):
    (folder / "00_start.npz").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")


def a_folder(folder):
    (folder / "00_start.npz").unlink()
    (folder / "00_start.npz").mkdir()


def json_is(content):
    def damage(folder):
        (folder / "00_start.json").write_text(content)

    damage.__name__ = f"json is {content}"
    return damage


def not_utf8(folder):
    (folder / "00_start.json").write_bytes(b'{"about": "\xff"}')


def edit(change):
    """Change the manifest's entry of the exercise."""

    def damage(folder):
        path = folder / "00_start.json"
        manifest = json.loads(path.read_text())
        change(manifest["exercises"])
        path.write_text(json.dumps(manifest))

    damage.__name__ = change.__name__
    return damage


def of_another_exercise(entries):
    entries["start-other"] = entries.pop("start-small")


def without_a_case(entries):
    entries["start-small"]["cases"].pop()


def with_a_case_twice(entries):
    entries["start-small"]["cases"].append(entries["start-small"]["cases"][0])


def with_cases_renamed(entries):
    entries["start-small"]["cases"][0]["name"] = "of a record as it was"


def with_a_larger_shape(entries):
    entries["start-small"]["cases"][0]["wanted"]["y"] = "float64 (300, 400)"


def with_a_smaller_shape(entries):
    entries["start-small"]["cases"][0]["wanted"]["y"] = "float64 (1,)"


def with_a_negative_shape(entries):
    entries["start-small"]["cases"][-1]["wanted"]["y"] = "float64 (-1,)"


def with_another_dtype(entries):
    entries["start-small"]["cases"][0]["wanted"]["y"] = "float32 (3, 4)"


def with_nonsense_for_a_shape(entries):
    entries["start-small"]["cases"][0]["wanted"]["y"] = "float64 three by four"


def with_a_list_for_a_table(entries):
    entries["start-small"]["cases"][0]["wanted"] = ["y"]


def with_no_sentence(entries):
    entries["start-small"]["sentences"] = {}


def with_no_cases(entries):
    del entries["start-small"]["cases"]


EDITS = [
    *(of_another_exercise, without_a_case, with_a_case_twice, with_cases_renamed, with_a_larger_shape),
    *(with_a_smaller_shape, with_a_negative_shape, with_another_dtype, with_nonsense_for_a_shape),
    *(with_a_list_for_a_table, with_no_sentence, with_no_cases),
]
DAMAGES = [
    *(missing_npz, missing_json, foreign_npz, single_array, pickled, text_file, a_folder, not_utf8),
    *(truncated("npz", 0.0), truncated("npz", 0.5), truncated("npz", 0.99), truncated("json", 0.0)),
    *(truncated("json", 0.5), flipped(0.3), flipped(0.5), flipped(0.95)),
    *map(json_is, ["[]", "{}", "null", "3", '{"exercises": []}', '{"exercises": {"start-small": 3}}']),
    *map(edit, EDITS),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_values_that_cannot_be_read_are_named_with_path_and_remedy(damage, folder, exercise):
    damage(folder)
    with pytest.raises(ReferenceMissing) as caught:
        read_reference(exercise, folder)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    assert re.search(r"00_start\.(json|npz)", message)
    assert message.endswith("or rebuild it with `make references`")


def test_what_was_unreadable_is_read_again_once_it_is_back(folder, exercise):
    content = (folder / "00_start.npz").read_bytes()
    missing_npz(folder)
    with pytest.raises(ReferenceMissing):
        read_reference(exercise, folder)
    (folder / "00_start.npz").write_bytes(content)
    assert read_reference(exercise, folder).cases
