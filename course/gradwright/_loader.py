"""From cells to a module."""

from __future__ import annotations

from gradwright._cells import Cell, definition_cells, read_notebook, read_source

__all__ = ["Cell", "definition_cells", "read_notebook", "read_source"]
