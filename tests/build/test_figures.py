"""Pictures: drawn once, the same every time, small, with words; errors point at the line that drew."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from autograder.build.figures import picture, small
from autograder.build.notebook import escaped, source_notebook
from autograder.build.source import Chapter, SourceCell, read_chapter
from autograder.errors import SourceError

DRAW = '"""A curve."""\nx = np.linspace(0, 6, 50)\nplt.plot(x, np.sin(x))'


@pytest.fixture
def draw(tmp_path):
    def draw_cell(text: str, role: str = "figure", line: int = 1):
        cell = SourceCell(role, "slug", text, line)
        return picture(Chapter(tmp_path / "01_tiny.py", 1, "tiny", (cell,), ()), cell)

    return draw_cell


def test_same_code_same_bytes(draw):
    assert draw(DRAW).png == draw(DRAW).png


def test_unseeded_randomness_is_seeded(draw):
    noisy = '"""Noise."""\nimport random\nplt.plot(np.random.normal(size=9) + random.random())'
    assert draw(noisy).png == draw(noisy).png


def test_png_holds_no_date_and_no_software(draw):
    with Image.open(io.BytesIO(draw(DRAW).png)) as image:
        assert image.format == "PNG"
        assert not {"Software", "Creation Time", "date"} & set(image.info)
        assert image.size == (1036, 518)


def test_colours_survive_the_palette(draw):
    still = draw('"""Four squares."""\nplt.imshow(np.arange(4.0).reshape(2, 2), cmap="cividis")')
    with Image.open(io.BytesIO(still.png)) as image:
        colours = [np.array(colour) for _, colour in image.convert("RGB").getcolors(1 << 20)]
    for wanted in [(0, 34, 78), (254, 232, 56)]:
        assert min(np.abs(colour - wanted).max() for colour in colours) <= 2


def test_a_picture_gets_smaller_and_never_larger(draw):
    assert len(draw(DRAW).png) < 30_000
    stream = io.BytesIO()
    Image.new("RGB", (3, 3), "white").save(stream, format="PNG", optimize=True)
    assert len(small(stream.getvalue())) <= len(stream.getvalue())


def test_words_become_one_line(draw):
    assert draw('"""A curve\n    over\n\n    time."""\nplt.plot([1])').alt == "A curve over time."


def test_words_are_escaped():
    assert escaped("a[0] costs $3_000$") == r"a\[0\] costs \$3\_000\$"


def test_no_figure_stays_open_and_settings_come_back(draw):
    import matplotlib
    from matplotlib import pyplot as plt

    before = dict(matplotlib.rcParams)
    draw('"""Loud."""\nplt.rcParams["lines.linewidth"] = 9\nplt.plot([1, 2])')
    assert plt.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('"""Words."""\nx = 1\nplt.plot(y)', 12, "NameError: name 'y' is not defined"),
        ('"""Words."""\ndef f():\n    return 1 / 0\nf()', 12, "ZeroDivisionError"),
        ('"""Words."""\nx = 1', 10, "leaves 0 figures open: draw exactly one"),
        ('"""Words."""\nplt.figure()\nplt.figure()', 10, "leaves 2 figures open"),
        ('"""Words."""\nplt.plot([1])\nplt.title("\\u4f60")', 10, "missing from font"),
        ('"""Words."""\nplt.plot([1])\nimport warnings\nwarnings.warn("odd")', 13, "UserWarning: odd"),
    ],
)
def test_what_cannot_be_drawn(text, line, words, draw):
    with pytest.raises(SourceError, match="the figure 'slug'") as caught:
        draw(text, line=10)
    assert words in caught.value.message
    assert caught.value.line == line


def test_a_widget_has_its_still_picture_in_front(write, text, records):
    path = write(text.replace("# %%\nprint(np.arange(3))", '# %% widget="look"\nstride_explorer()'))
    cells = source_notebook(read_chapter(path, records)).cells
    still, widget = cells[-2:]
    assert (still.id, widget.id) == ("look-figure", "look")
    assert still.source.startswith("![") and still.source.endswith("](attachment:look.png)")
    assert len(still.source) > 60, "the picture says in words what it shows"
    assert widget.source == "stride_explorer()" and widget.metadata.gradwright == {"role": "widget", "name": "look"}


def test_a_widget_that_is_not_there(draw):
    with pytest.raises(SourceError, match=r"no widget 'spinner' in gradwright\.widgets: there are .*stride_explorer"):
        draw("spinner()", "widget")


def test_an_argument_that_a_widget_refuses(draw):
    with pytest.raises(SourceError, match="the widget 'slug' cannot be drawn") as caught:
        draw('stride_explorer(preset="no such preset")', "widget", 7)
    assert caught.value.line == 7
