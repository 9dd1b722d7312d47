"""What a run sees of the machine. (What it can do there is tried in tests/attacks.)"""

from __future__ import annotations

import sys

import pytest

from autograder.grade import isolate


@pytest.mark.parametrize("name", ["prefix", "base_prefix"])
@pytest.mark.parametrize(("home", "seen"), [("/tmp/project/.venv", "/tmp"), ("/dev/shm/python", "/dev/shm")])
def test_python_is_not_hidden_from_its_own_runs(
    name: str, home: str, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project in /tmp: a library that nothing had imported yet was not to be found there."""
    monkeypatch.setattr(sys, "prefix", "/opt/project/.venv")
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert isolate.hidden() == list(isolate.HIDDEN)
    monkeypatch.setattr(sys, name, home)
    assert {*isolate.HIDDEN} - {*isolate.hidden()} == {seen}
