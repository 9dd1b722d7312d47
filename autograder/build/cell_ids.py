"""An id for every cell, from the author's own words: it stays while the words stay, whatever moves around it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from autograder.build.rules import reserved_ids
from autograder.build.source import Chapter

HEADING = re.compile(r"^#{1,6} +(?:\d+(?:\.\d+)*\.? +)?(.+?) *$", re.MULTILINE)
"""A Markdown heading; its number, which moves when a section is put in front, is left out."""
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LONGEST_SLUG = 48


def cell_ids(chapter: Chapter) -> list[str]:
    """One id a cell of the source.

    A named cell has its name, a check `id-check`, the Markdown cell above an exercise `id-task`, other prose its
    heading. What has none of these has the last heading and a number.
    """
    taken = {name for cell in chapter.cells for name in reserved_ids(cell)}
    ids: list[str] = []
    below: Counter[str] = Counter()
    section = chapter.name
    for cell, following in zip(chapter.cells, (*chapter.cells[1:], None), strict=True):
        heading = heading_slug(cell.text) if cell.role == "prose" else ""
        section = heading or section
        if cell.role == "check":
            ids.append(f"{cell.name}-check")
        elif cell.role not in ("prose", "demo"):
            ids.append(cell.name)
        elif following is not None and following.role == "exercise":
            ids.append(f"{following.name}-task")
            section = following.name
        elif heading:
            ids.append(unused(heading, taken))
        else:
            below[section] += 1
            ids.append(unused(f"{section}-{below[section]}", taken))
        taken.add(ids[-1])
    return ids


def heading_slug(markdown: str) -> str:
    """The first heading as an id: `### 2.3 Undoing a broadcast` is `undoing-a-broadcast`. Empty without one."""
    found = HEADING.search(FENCED.sub("", markdown))
    return slug(found[1]) if found else ""


def slug(words: str) -> str:
    """Lower-case ASCII letters, digits and hyphens, cut at a word."""
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().lower()
    whole = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return whole if len(whole) <= LONGEST_SLUG else whole[: LONGEST_SLUG + 1].rpartition("-")[0] or whole[:LONGEST_SLUG]


def unused(wanted: str, taken: set[str]) -> str:
    """The id itself, or with the first number that makes it unique."""
    number, name = 1, wanted
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name
