"""What a run sees of the machine. (What it can do there is tried in tests/attacks.)"""

from __future__ import annotations

import sys

import pytest

from autograder.grade import isolate


@pytest.mark.parametrize(("folder", "seen"), [("/tmp/project/.venv/lib", "/tmp"), ("/dev/shm/python", "/dev/shm")])
def test_libraries_are_not_hidden_from_a_run(folder: str, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project in /tmp: what nothing had imported yet was not to be found there."""
    monkeypatch.setattr(sys, "path", ["", "/usr/lib/python3.11"])
    assert isolate.hidden() == list(isolate.HIDDEN)
    monkeypatch.setattr(sys, "path", ["/usr/lib/python3.11", folder])
    assert {*isolate.HIDDEN} - {*isolate.hidden()} == {seen}
