"""Chapter 00 as a learner meets it."""

from __future__ import annotations

import pytest
from browser.lab import Lab
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_a_check_fails_the_answer_is_typed_and_the_check_passes(lab: Lab) -> None:
    lab.open("work/00_start/start.ipynb")
    lab.run_all()
    check = lab.cell('check("start-dot-loop", dot_loop)')
    verdict = check.locator(".jp-OutputArea-output [role=status]")
    expect(verdict).to_contain_text("0.1 dot_loop")
    expect(verdict).to_contain_text("not implemented yet")
    expect(check).to_contain_text("CheckFailed")
    expect(check).not_to_contain_text("Traceback")

    exercise = lab.cell("def dot_loop(")
    lab.replace(exercise, "raise NotImplementedError", "return sum(x + y for x, y in zip(a, b))")
    lab.run(exercise)
    lab.run(check)
    expect(verdict).to_contain_text("not yet")
    expect(verdict).to_contain_text("added in pairs")

    lab.replace(exercise, "return sum(x + y", "return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)")
    lab.run(exercise)
    lab.run(check)
    expect(verdict).to_contain_text("right: ")
    expect(check).not_to_contain_text("CheckFailed")


def test_run_all_goes_to_the_end_of_an_untouched_notebook(lab: Lab) -> None:
    lab.open("course/00_start/start.ipynb")
    lab.run_all()
    expect(lab.cell("products_summed")).to_contain_text("NotImplementedError")
