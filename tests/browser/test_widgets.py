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
CURVES = 'gradwright.widgets.learning_rate_curves(preset="staircase")'


RECORDED = """
import time
import gradwright
from gradwright import nn
from gradwright.chapters.layers import GradientFlow
from gradwright.widgets import flow_monitor

gradwright.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
flow = GradientFlow(model)
flow_monitor(flow)
"""
TRAINED = """
for _ in range(60):
    model(gradwright.ones(4, 2)).sum().backward()
    time.sleep(0.05)
flow.close()
kinds = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks")
print(sum(len(vars(module)[kind]) for module in model.modules() for kind in kinds), "hooks left")
"""


def write(lab: Lab, *sources: str) -> None:
    """Open a notebook of these cells."""
    common = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**common, "id": f"cell-{n}", "source": source.strip()} for n, source in enumerate(sources)]
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    body = json.dumps({"type": "notebook", "content": notebook}).encode()
    request = urllib.request.Request(f"{lab.address}/api/contents/widget.ipynb", body, method="PUT")
    urllib.request.urlopen(request, timeout=30).close()
    lab.open("widget.ipynb")


def show(lab: Lab, call: str = CALL) -> Locator:
    """A notebook with one widget in it, run; returns the output."""
    write(lab, f"import gradwright.widgets\n{call}")
    lab.run_all()
    output = lab.cell(call).locator(".jp-OutputArea-output")
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


def test_the_monitor_moves_while_the_model_trains_and_leaves_no_hook(lab: Lab) -> None:
    write(lab, RECORDED, TRAINED)
    lab.run(lab.cell("flow_monitor(flow)"))
    picture = lab.cell("flow_monitor(flow)").get_by_role("img")
    expect(picture).to_have_accessible_name(re.compile("No step yet"))
    training = lab.cell("hooks left")
    training.locator(".cm-content").click()
    lab.page.keyboard.press("Shift+Enter")
    seen = set()
    while "Step 59:" not in (name := picture.get_attribute("aria-label") or ""):
        seen.add(name)
        if len(seen) == 3:
            expect(training.locator(".jp-InputArea-prompt").first).to_have_text("[*]:")
        lab.page.wait_for_timeout(50)
    assert len(seen) > 3
    expect(training).to_contain_text("0 hooks left")


def test_a_curve_is_changed_kept_and_its_code_read_by_keyboard_alone(lab: Lab) -> None:
    output = show(lab, CURVES)
    keys = lab.page.keyboard
    expect(output.get_by_label("Preset")).to_have_value("staircase")  # the page has moved no slider off its value
    expect(output.get_by_text("T_max", exact=True)).to_be_hidden()
    output.get_by_role("button", name="Keep").focus()
    keys.press("Space")
    kept = output.get_by_label("Kept", exact=True)
    expect(kept).to_have_value("StepLR(lr=0.05, step_size=30, gamma=0.3)")
    output.get_by_role("slider").first.focus()
    for _ in range(4):
        keys.press("ArrowRight")
    code = output.get_by_label("Code", exact=True)
    expect(code).to_have_value(re.compile(r"Adam\(model\.parameters\(\), lr=0\.2\)"))
    expect(output.get_by_role("img")).to_have_accessible_name(
        re.compile(r"A, StepLR: rate 0\.06, .* B, StepLR: rate 0\.015")
    )
    expect(output.get_by_label("Preset")).to_have_value("your own")
