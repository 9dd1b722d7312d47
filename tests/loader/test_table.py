"""The table of chapters against the chapters that exist."""

from __future__ import annotations

import builtins
import importlib
import keyword
import tomllib

import pytest

import gradwright
from gradwright._chapters import CHAPTERS, ROOT, find_chapter, namespaces, relative

EXISTING = [chapter for chapter in CHAPTERS if chapter.source.is_file()]


@pytest.mark.parametrize("chapter", EXISTING, ids=lambda chapter: chapter.folder)
def test_every_chapter_that_exists_defines_what_the_table_promises(chapter):
    module = importlib.import_module(chapter.module)
    promised = {name for names in chapter.public.values() for name in names}
    hidden = {name for name in promised if hasattr(builtins, name) and name + "_" in vars(module)}
    assert promised - set(vars(module)) - hidden - set(chapter.methods) == set()
    assert [name for name in chapter.methods if not callable(getattr(module.Tensor, name))] == []


def test_every_source_is_in_the_table():
    assert {path.name for path in (ROOT / "solutions").glob("[0-9]*.py")} == {c.source.name for c in EXISTING}


def test_the_table_is_in_order_and_well_formed():
    assert [chapter.number for chapter in CHAPTERS] == list(range(17))
    assert all(chapter.name.isidentifier() and chapter.name.islower() and chapter.title for chapter in CHAPTERS)
    for chapter in CHAPTERS:
        for space in chapter.public:
            names = chapter.offers(space)
            assert len(set(names)) == len(names), (chapter.label, space)
            assert all(name.isidentifier() and not keyword.iskeyword(name) for name in names)


def test_no_name_hides_a_namespace_or_a_function_of_the_package():
    taken = {"": {"chapter", "chapters", "stale", "use", "widgets"}}
    for space in namespaces():
        outer, _, inner = space.rpartition(".")
        taken.setdefault(outer, set()).add(inner)
    for chapter in CHAPTERS:
        for space in chapter.public:
            assert not taken.get(space, set()) & set(chapter.offers(space)), (chapter.label, space)


def test_namespaces_bring_those_around_them():
    assert {"nn", "nn.functional", "utils", "utils.data", "optim", "optim.lr_scheduler"} <= namespaces()
    assert "" not in namespaces()


@pytest.mark.parametrize("key", [2, "2", "02", "autodiff", "02_autodiff"])
def test_a_chapter_is_found_by_number_and_by_name(key):
    assert find_chapter(key).label == "02 autodiff"


def test_where_a_chapter_lies():
    assert [relative(path) for path in (find_chapter(0).source, find_chapter(0).release)] == [
        "solutions/00_start.py",
        "course/00_start/start.ipynb",
    ]


def test_the_version_is_that_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert gradwright.__version__ == declared
