"""The widgets under a person's hands: by keyboard alone, in both themes."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest
from browser.lab import Lab
from playwright.sync_api import Locator, expect

pytestmark = pytest.mark.browser

CALL = 'gradwright.widgets.stride_explorer(preset="transpose")'


def show(lab: Lab) -> Locator:
    """A notebook with one widget in it, run; returns the output."""
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "id": "widget"}
    cell["source"] = f"import gradwright.widgets\n{CALL}"
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    body = json.dumps({"type": "notebook", "content": notebook}).encode()
    request = urllib.request.Request(f"{lab.address}/api/contents/widget.ipynb", body, method="PUT")
    urllib.request.urlopen(request, timeout=30).close()
    lab.open("widget.ipynb")
    lab.run_all()
    output = lab.cell(CALL).locator(".jp-OutputArea-output")
    expect(output.get_by_role("img")).to_be_visible()
    return output


def test_a_view_is_typed_and_walked_by_keyboard_alone(lab: Lab) -> None:
    output = show(lab)
    keys = lab.page.keyboard
    output.get_by_label("View", exact=True).focus()
    keys.press("Control+a")
    keys.insert_text("x[9]")
    keys.press("Enter")
    expect(output.get_by_role("status")).to_contain_text("index 9 is out of bounds for axis 0 with size 3")
    keys.press("Control+a")
    keys.insert_text("x[::-1]")
    keys.press("Enter")
    picture = output.get_by_role("img")
    expect(picture).to_have_accessible_name(
        re.compile(re.escape("Element 2, index (0, 2), lies at 8 + 0·(−4) + 2·1 = 10."))
    )
    expect(output.get_by_role("status")).to_have_count(0)
    keys.press("Tab")
    keys.press("Tab")
    keys.press("Space")
    expect(picture).to_have_accessible_name(re.compile(re.escape("Element 3")))
    keys.press("Tab")
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    expect(picture).to_have_accessible_name(re.compile(re.escape("Element 5")))


@pytest.mark.parametrize(("theme", "light"), [("JupyterLab Light", False), ("JupyterLab Dark", True)])
def test_words_stand_out_in_both_themes(lab: Lab, theme: str, light: bool) -> None:
    output = show(lab)
    lab.menu("Settings", "Theme", theme)
    ink = "getComputedStyle(document.querySelector('svg[role=img] text')).fill.match(/[0-9.]+/g).map(Number)"
    lab.page.wait_for_function(f"(({ink})[0] > 127) === {str(light).lower()}")
    expect(output.get_by_role("img")).to_be_visible()
