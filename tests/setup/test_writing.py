"""A file is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autograder.writing import write


def test_text_and_bytes_arrive_as_they_are(tmp_path: Path) -> None:
    write(tmp_path / "new" / "a", "line\r\nünïcode\n")
    assert (tmp_path / "new" / "a").read_bytes() == "line\r\nünïcode\n".encode()
    write(tmp_path / "new" / "a", b"\x00\xff")
    assert (tmp_path / "new" / "a").read_bytes() == b"\x00\xff"


@pytest.mark.parametrize("failing", ["fdopen", "replace"])
def test_a_write_that_is_stopped_leaves_the_old_file_and_nothing_else(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a", "old")

    def stopped(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, failing, stopped)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"
