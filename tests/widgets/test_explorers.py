"""What holds for every widget that the course lists."""

from __future__ import annotations

import re
from itertools import product
from xml.etree import ElementTree

import pytest

import gradwright.widgets
from autograder.errors import BadInput
from gradwright.widgets import broadcasting_explorer, stride_explorer
from gradwright.widgets.controls import Steps
from gradwright.widgets.frame import Frame

NAMES = gradwright.widgets.__all__
# The monitor has no controls: it follows a training.
FRAMES = [name for name in NAMES if name != "flow_monitor"]
PRESETS = [(name, preset) for name in FRAMES for preset in getattr(gradwright.widgets, name).presets]


@pytest.fixture(params=FRAMES)
def widget(request: pytest.FixtureRequest) -> type[Frame]:
    return getattr(gradwright.widgets, request.param)


@pytest.fixture(params=[broadcasting_explorer, stride_explorer])
def explorer(request: pytest.FixtureRequest) -> type[Frame]:
    """Those whose first control is a shape."""
    return request.param


def test_the_list_of_widgets_is_sorted_and_whole() -> None:
    assert sorted(NAMES) == NAMES == dir(gradwright.widgets)
    with pytest.raises(AttributeError, match=re.escape(f"it has {', '.join(NAMES)}.")):
        gradwright.widgets.teapot  # noqa: B018


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_a_preset_shows_the_same_live_and_still(name: str, preset: str) -> None:
    widget = getattr(gradwright.widgets, name)
    panel = widget(preset=preset).panel
    still = widget.static(preset=preset)
    assert panel.sentence == ""
    assert panel.choice.value == preset
    assert panel.alt == still.alt
    assert panel.view.value == still.html()
    assert still.png() == widget.static(preset=preset).png()


def test_a_preset_chosen_after_any_other_is_the_preset_itself(widget: type[Frame]) -> None:
    panel = widget().panel
    for before in widget.presets:
        for preset in widget.presets:
            panel.choice.value = before
            panel.choice.value = preset
            assert panel.alt == widget.static(preset=preset).alt


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_a_picture_is_well_formed_and_named(name: str, preset: str) -> None:
    picture = getattr(gradwright.widgets, name).static(preset=preset)
    svg = ElementTree.fromstring(picture.html())
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == picture.alt
    assert 40 < len(picture.alt) < 600
    assert picture.alt.endswith(".")


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_nothing_is_drawn_outside_the_sheet(name: str, preset: str) -> None:
    picture = getattr(gradwright.widgets, name).static(preset=preset)
    svg = ElementTree.fromstring(picture.html())
    for rect in svg.iter("rect"):
        x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0
        assert x + width <= picture.width and y + height <= picture.height


def test_every_step_of_every_preset_is_another_picture(widget: type[Frame]) -> None:
    walks = [control.name for control in widget.controls if isinstance(control, Steps)]
    for walk, preset in product(walks, widget.presets):
        steps = widget.static(preset=preset).steps
        assert len({widget.static(preset=preset, **{walk: n}).html() for n in range(steps)}) == steps


def test_every_control_has_a_label_and_every_text_follows_the_theme(widget: type[Frame]) -> None:
    panel = widget().panel
    assert all(control.description for control in [panel.choice, *panel.controls.values()])
    inks = set(re.findall(r"<text [^>]*fill:([^;]*);", panel.view.value))
    assert inks <= {"#111111"} | {ink for ink in inks if ink.startswith("var(--jp-")}
    assert len(inks) > 1


def test_the_caption_says_what_to_do_and_what_to_see(widget: type[Frame]) -> None:
    assert re.match("Choose a preset or (type|set) ", widget.caption)
    assert "Watch" in widget.caption
    assert widget.caption in widget().panel.box.children[0].value


@pytest.mark.parametrize("shape", ["", "a", "3;4", "-1", "3,,4", "(3, 4", "1.5", "1e3", "２"])
def test_a_shape_that_cannot_be_read_is_named(explorer: type[Frame], shape: str) -> None:
    control = explorer.controls[0].name
    with pytest.raises(BadInput, match=re.escape(f"{shape!r} is not a shape: type whole numbers")):
        explorer.static(**{control: shape})


@pytest.mark.parametrize(
    ("shape", "limit"),
    [("7, 7", "49 elements: the picture has room for 48"), ("2, 2, 2, 2", "4 axes"), ("25", "25,.*24 elements along")],
)
def test_a_shape_that_is_too_large_is_refused(explorer: type[Frame], shape: str, limit: str) -> None:
    panel = explorer().panel
    panel.controls[explorer.controls[0].name].value = shape
    assert re.search(limit, panel.sentence)
