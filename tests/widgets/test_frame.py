"""The frame: arguments, presets, the live panel and its static picture, with two small widgets made for the test."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest

from autograder.errors import BadInput
from gradwright.widgets.controls import Choice, Slider, Steps, Text
from gradwright.widgets.frame import Frame
from gradwright.widgets.pictures import Drawing, Plot, new_figure, styled


class Word(Frame):
    """Spells a word; knows no digits."""

    title = "Word"
    caption = "Type a word & read it."
    controls = (Text("word", "Word", "none"), Steps("letter", "Letter", 0))
    presets: ClassVar = {"short": {"word": "ab"}, "long": {"word": "abcdef"}}

    def picture(self, *, word: str, letter: int) -> Drawing:
        if word.isdigit():
            raise BadInput(f"{word!r} has no letters: type a word.")
        drawing = Drawing()
        drawing.alt, drawing.steps = f"{word}, letter {min(letter, len(word) - 1)}", len(word)
        drawing.box(0, 0, 20, 20, word, "current")
        drawing.jump((0, 0), (20, 0), 10)
        return drawing


class Wave(Frame):
    """Keeps its figure and changes the line in it."""

    title = "Wave"
    caption = "Move the slider; the wave grows."
    controls = (Choice("shape", "Shape", "sine", ("sine", "cosine")), Slider("height", "Height", 1.0, 0.0, 2.0, 0.1))
    presets: ClassVar = {"flat": {"height": 0.0}, "high": {"height": 2.0}}

    def __init__(self, preset: str | None = None, **values: object) -> None:
        super().__init__(preset, **values)
        self.figure, self.x = new_figure(), np.linspace(0, 6, 50)
        with styled():
            axes = self.figure.add_subplot(ylim=(-2, 2))
            (self.line,) = axes.plot(self.x, self.x)

    def picture(self, *, shape: str, height: float) -> Plot:
        wave: Callable[[np.ndarray], np.ndarray] = np.sin if shape == "sine" else np.cos
        self.line.set_ydata(height * wave(self.x))
        return Plot(self.figure, f"A {shape} of height {height:g}.")


def test_what_a_call_leaves_out_comes_from_the_first_preset() -> None:
    assert Word().values == {"word": "ab", "letter": 0}
    assert Word(letter=1).values == {"word": "ab", "letter": 1}
    assert Word("long", letter=3).values == {"word": "abcdef", "letter": 3}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"preset": "tall"}, "Word has no preset 'tall': choose one of short, long."),
        ({"size": 3}, "Word has no control 'size': it has word, letter."),
        ({"word": 3}, "word=3 is not a value of this widget: give it as text, in quotes."),
        ({"letter": -1}, "letter=-1 is not a value of this widget: count steps from 0."),
        ({"letter": True}, "letter=True is not a value of this widget: count steps from 0."),
    ],
)
def test_an_argument_that_cannot_be_is_one_sentence(arguments: dict[str, object], sentence: str) -> None:
    for call in (Word, Word.static):
        with pytest.raises(BadInput) as caught:
            call(**arguments)
        assert str(caught.value) == sentence


@pytest.mark.parametrize("value", [2.1, "1", True, None])
def test_a_slider_takes_numbers_within_its_range(value: object) -> None:
    with pytest.raises(BadInput, match="give a number from 0 to 2"):
        Wave(height=value)


def test_a_choice_takes_one_of_its_options() -> None:
    with pytest.raises(BadInput, match="choose one of sine, cosine"):
        Wave(shape="square")


@pytest.mark.parametrize("widget", [Word, Wave])
def test_the_static_picture_has_the_same_bytes_every_time(widget: type[Frame]) -> None:
    first, second = (widget.static(preset=list(widget.presets)[1]).png() for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert not any(word in first for word in (b"Software", b"Creation", b"tIME", b"Matplotlib"))
    assert first != widget.static(preset=next(iter(widget.presets))).png()


def test_settings_of_the_reader_do_not_reach_a_picture() -> None:
    import matplotlib

    before = Wave.static().png(), Word.static().png()
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "figure.facecolor": "black"}):
        assert (Wave.static().png(), Word.static().png()) == before
        assert matplotlib.rcParams["font.size"] == 30


def test_choosing_a_preset_sets_every_control_and_draws_once() -> None:
    panel = Word().panel
    drawn = panel.drawn
    panel.choice.value = "long"
    assert panel.values == {"word": "abcdef", "letter": 0}
    assert (panel.drawn, panel.alt) == (drawn + 1, "abcdef, letter 0")


def test_the_list_of_presets_follows_the_controls() -> None:
    panel = Word().panel
    panel.controls["word"].value = "abc"
    assert panel.choice.value == "your own"
    panel.controls["word"].value = "abcdef"
    assert panel.choice.value == "long"
    panel.controls["letter"].value = 2
    assert panel.choice.value == "long"


def test_a_slider_that_the_page_rounds_stays_at_its_preset() -> None:
    panel = Wave(height=0.7).panel
    panel.controls["height"].value = 1.9999999999999998
    assert panel.choice.value == "high"
    panel.controls["height"].value = 0.30000000000000004
    assert panel.values["height"] == 0.3


def test_an_input_that_cannot_be_drawn_is_said_and_the_picture_stays() -> None:
    panel = Word().panel
    picture = panel.view.value
    panel.controls["word"].value = "7"
    assert panel.sentence == "'7' has no letters: type a word."
    assert "The picture is still the one before." in panel.note.value
    assert 'role="status"' in panel.note.value
    assert panel.view.value == picture
    panel.controls["word"].value = "seven"
    assert (panel.sentence, panel.note.value) == ("", "")


def test_a_first_input_that_cannot_be_drawn_is_said_and_promises_no_picture() -> None:
    panel = Word(word="7").panel
    assert panel.sentence == "'7' has no letters: type a word."
    assert "picture" not in panel.note.value
    assert panel.view.value == ""


def buttons(panel: object) -> dict[str, object]:
    row = next(child for child in panel.box.children if panel.controls["letter"] in getattr(child, "children", ()))
    return {button.description: button for button in row.children if hasattr(button, "click")}


def test_the_buttons_walk_and_stop_at_both_ends() -> None:
    panel = Word(preset="short").panel
    press = buttons(panel)
    seen = []
    for name in ("Next letter", "Next letter", "Back", "Back", "Back"):
        press[name].click()
        seen.append(panel.controls["letter"].value)
    assert seen == [1, 1, 0, 0, 0]
    assert {button.tooltip for button in press.values()} == {"Previous letter", "Next letter"}
    assert all(not button.disabled for button in press.values())


def test_the_walk_is_as_long_as_the_picture_has_steps() -> None:
    panel = Word(preset="long", letter=5).panel
    slider = panel.controls["letter"]
    assert slider.max == 5
    panel.controls["word"].value = "abc"
    assert (slider.max, slider.value) == (2, 2)
    panel.controls["word"].value = "a"
    assert slider.disabled
    panel.controls["word"].value = "ab"
    assert not slider.disabled


def test_a_held_key_is_drawn_once_and_last() -> None:
    panel = Word(preset="long").panel
    drawn = panel.drawn

    async def hold() -> None:
        for letter in (1, 2, 3, 4, 5):
            panel.controls["letter"].value = letter
        assert panel.drawn == drawn
        while panel.drawn == drawn:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)

    asyncio.run(hold())
    assert (panel.drawn, panel.alt) == (drawn + 1, "abcdef, letter 5")


def test_the_picture_changes_with_every_change_of_a_figure() -> None:
    panel = Wave().panel
    pictures = {panel.view.value}
    panel.controls["height"].value = 1.5
    pictures.add(panel.view.value)
    panel.controls["shape"].value = "cosine"
    pictures.add(panel.view.value)
    assert len(pictures) == 3
    assert 'alt="A cosine of height 1.5."' in panel.view.value
    assert panel.view.value.startswith("<img ")


def test_what_is_typed_is_text_in_the_page_and_never_markup() -> None:
    panel = Word(word='"><script>').panel
    assert "<script>" not in panel.view.value
    assert 'aria-label="&quot;&gt;&lt;script&gt;, letter 0"' in panel.view.value
    assert "Type a word &amp; read it." in panel.box.children[0].value


def test_a_notebook_shows_the_panel_and_plain_text_the_alternative() -> None:
    bundle = Word()._repr_mimebundle_()
    assert bundle["text/plain"] == "ab, letter 0"
    assert "application/vnd.jupyter.widget-view+json" in bundle


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


def test_gradwright_does_not_load_its_widgets() -> None:
    assert run("import sys, gradwright; print([m for m in sys.modules if 'widgets' in m])") == "[]"


def test_a_static_picture_needs_neither_pyplot_nor_ipywidgets() -> None:
    code = (
        "import sys; from gradwright.widgets import stride_explorer as s; size = len(s.static().png()); "
        "print(size > 0, [m for m in ('matplotlib.pyplot', 'ipywidgets') if m in sys.modules])"
    )
    assert run(code) == "True []"


def test_pyplot_knows_of_no_figure_after_a_picture() -> None:
    from matplotlib import pyplot as plt

    before = plt.get_fignums()
    Wave.static().png()
    Word.static().png()
    assert plt.get_fignums() == before
