"""The table of grades: what a spreadsheet makes of it."""

from __future__ import annotations

import pytest

from autograder.grade.export import no_formula


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\t=1", "\r=1"])
def test_a_formula_is_text(text: str) -> None:
    assert no_formula(text) == f"'{text}"


def test_other_names_stay() -> None:
    assert [no_formula(text) for text in ("sample-1", "Lee, Anna", "1=2")] == ["sample-1", "Lee, Anna", "1=2"]
