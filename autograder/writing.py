"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["write"]


def write(path: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8: a run that is stopped leaves the old one, and no reader meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    except OSError as error:
        error.filename = str(path)  # nobody has asked for the other name
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        Path(name).chmod(0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
