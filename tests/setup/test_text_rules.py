"""What no tracked file may hold: pictures for words, traces of somebody's machine, modules without a subject."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from autograder.course import ROOT

# Written, like the samples below, so that this file passes its own rules.
FORBIDDEN = {
    "an emoji": r"[\U0001F000-\U0001FAFF\u2600-\u260F\u2614-\u26FF\u2705\u2728\u274C-\u2757\u2B50\uFE0F]",
    "a path of somebody's machine": r"(?<![\w.~})])/(?:work|root|home/\w+|Users/\w+|tmp/\w+)/\w",
    "the host of a registry": r"pypi\.org|python[h]osted|registry\.npm|crates\.io",
    "a conflict mark": r"^(?:<{7}|>{7}) ",
    "a blank at the end of a line": r"[ \t]+$",
}
SHAPELESS = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}


@cache
def tracked() -> tuple[str, ...]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(name for name in listed.split("\0") if name and (ROOT / name).is_file())


@cache
def text_of(name: str) -> str:
    """A tracked file as text; empty where it is data."""
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_no_tracked_file_holds(rule: str) -> None:
    pattern = re.compile(FORBIDDEN[rule], re.MULTILINE)
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}"
        for name, text in ((name, text_of(name)) for name in tracked())
        for match in pattern.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("an emoji", "done \U0001f389"),
        ("a path of somebody's machine", f"see /home{'/'}anna/gradwright"),
        ("the host of a registry", f"https://pypi{'.'}org/simple"),
        ("a conflict mark", "<" * 7 + " HEAD"),
        ("a blank at the end of a line", "x = 1 \n"),
    ],
)
def test_a_rule_finds_what_it_is_for(rule: str, text: str) -> None:
    assert re.search(FORBIDDEN[rule], text, re.MULTILINE)


def test_every_module_is_named_after_its_subject() -> None:
    assert [name for name in tracked() if Path(name).name in SHAPELESS] == []


def test_nothing_of_a_learner_or_a_class_is_tracked() -> None:
    assert [name for name in tracked() if name.startswith(("work/", "autograder/class/"))] == []


def test_no_file_is_too_long_to_read() -> None:
    sizes = {name: text_of(name).count("\n") for name in tracked() if name.endswith(".py") and "solutions" not in name}
    assert {name: size for name, size in sizes.items() if size >= 400} == {}
