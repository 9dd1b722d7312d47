"""The stride explorer: what it says of a view is what NumPy and PyTorch say, and no text makes it fail."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from autograder.errors import BadInput
from gradwright.widgets import stride_explorer
from gradwright.widgets.expression import evaluate
from gradwright.widgets.strides import Scene


def scene(view: str, *shape: int, element: int = 0) -> Scene:
    return Scene(view, shape, evaluate(view, shape), element)


@pytest.mark.parametrize(
    ("view", "shape", "strides", "offset"),
    [
        ("x", (3, 4), (4, 1), 0),
        ("x[1]", (4,), (1,), 4),
        ("x[:, 1]", (3,), (4,), 1),
        ("x[..., 0]", (3,), (4,), 0),
        ("x[2, 3]", (), (), 11),
        ("x.T", (4, 3), (1, 4), 0),
        ("x.permute(1, 0)", (4, 3), (1, 4), 0),
        ("x.permute((-1, 0))", (4, 3), (1, 4), 0),
        ("x.transpose(0, 1)", (4, 3), (1, 4), 0),
        ("x[::-1, 1:]", (3, 3), (-4, 1), 9),
        ("x[::-2, ::-3]", (2, 2), (-8, -3), 11),
        ("x.reshape(2, -1)", (2, 6), (6, 1), 0),
        ("x[:1].expand(3, -1)", (3, 4), (0, 1), 0),
        ("x.expand(2, 3, 4)", (2, 3, 4), (0, 4, 1), 0),
        ("x[1:].T[2]", (2,), (4,), 6),
    ],
)
def test_a_view_has_these_strides_and_shares_the_storage(
    view: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> None:
    seen = evaluate(view, (3, 4))
    assert (seen.array.shape, seen.strides, seen.offset, seen.copied) == (shape, strides, offset, "")


@pytest.mark.parametrize(
    ("view", "call"),
    [
        ("x.T.reshape(12)", "reshape(12)"),
        ("x.T.contiguous()", "contiguous()"),
        ("x[:, 1:].reshape(-1)[::2]", "reshape(-1)"),
    ],
)
def test_a_copy_names_the_call_that_made_it(view: str, call: str) -> None:
    assert evaluate(view, (3, 4)).copied == call
    assert f"because no strides fit {call}" in stride_explorer.static(view=view).alt


@pytest.mark.parametrize(
    ("view", "same"),
    [("x.view(4, 3)", "x.reshape(4, 3)"), ("x[None].broadcast_to(2, 3, 4)", "x[None].expand(2, 3, 4)")],
)
def test_methods_of_two_names_give_one_view(view: str, same: str) -> None:
    a, b = evaluate(view, (3, 4)), evaluate(same, (3, 4))
    assert (a.array.shape, a.strides, a.offset, a.copied) == (b.array.shape, b.strides, b.offset, b.copied)


@pytest.mark.parametrize("view", ["x.contiguous()", "x.reshape(12)", "x[:, ::2].reshape(3, 2)", "x[3:].reshape(0)"])
def test_no_copy_is_claimed_where_strides_fit(view: str) -> None:
    assert evaluate(view, (3, 4)).copied == ""


def random_view(rng: random.Random, shape: tuple[int, ...]) -> str:
    def part(size: int) -> str:
        ends = [rng.choice(["", str(rng.randint(-size, size))]) for _ in range(2)]
        whole = f"{ends[0]}:{ends[1]}:{rng.choice(['', '1', '2', '-1', '-2'])}"
        return rng.choice([whole, whole, ":", str(rng.randrange(size))])

    return f"x[{', '.join(part(size) for size in shape)}]{rng.choice(['', '.T', '.T[::-1]', '.T[None]'])}"


@pytest.mark.parametrize("seed", range(100))
def test_the_arithmetic_finds_what_numpy_finds(seed: int) -> None:
    rng = random.Random(seed)
    shape = rng.choice([(3, 4), (2, 3, 4), (12,), (5, 1, 2)])
    view = random_view(rng, shape)
    array = np.arange(math.prod(shape)).reshape(shape)
    try:
        found = scene(view, *shape)
    except BadInput:
        # Of these expressions only an index on a number and a fourth axis are refused.
        with pytest.raises((IndexError, AssertionError)):
            assert eval(view, {"x": array}).ndim <= 3
        return
    assert found.visits == np.asarray(eval(view, {"x": array})).reshape(-1).tolist()


def test_a_stride_of_zero_reads_one_cell_again_and_again() -> None:
    found = scene("x.expand(3, 4)", 3, 1)
    assert found.visits == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert "×4" in stride_explorer.static(preset="repeat without memory").html()


def test_the_element_is_found_by_the_arithmetic_that_is_shown() -> None:
    found = scene("x[::-1, 1:]", 3, 4, element=5)
    assert found.index == (1, 2)
    assert found.arithmetic == "9 + 1·(−4) + 2·1 = 7"
    assert found.formula == "offset + i·s₀ + j·s₁"
    assert found.visits[5] == 7


def test_the_alternative_text_tells_the_whole_picture() -> None:
    assert stride_explorer.static(preset="transpose", element=5).alt == (
        "x.T, for x of shape (3, 4), has shape (4, 3), strides (1, 4), offset 0. It is not contiguous. "
        "It is a view, sharing the storage of x. "
        "Its elements visit the storage cells in the order 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11. "
        "Element 5, index (1, 2), lies at 0 + 1·1 + 2·4 = 9."
    )


@pytest.mark.parametrize(("base", "view"), [("3, 4", "x[3:]"), ("0", "x"), ("2, 0, 3", "x.T")])
def test_a_view_without_elements_is_a_picture_too(base: str, view: str) -> None:
    picture = stride_explorer.static(base=base, view=view)
    assert picture.steps == 0
    assert picture.alt.endswith("It has no elements.")
    assert picture.png().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("base", "view"), [("24", "x"), ("24", "x.reshape(24, 1)"), ("2, 24", "x"), ("24, 1, 2", "x"), ("3, 4", "x[1, 2]")]
)
def test_the_largest_and_the_smallest_fit_on_the_sheet(base: str, view: str) -> None:
    picture = stride_explorer.static(base=base, view=view)
    boxes = [shape for shape in picture.shapes if hasattr(shape, "middle")]
    assert max(box.x + box.width for box in boxes) <= picture.width
    assert picture.height < 1000


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        ("", "There is no view yet"),
        ("y", "'y' is not a view that the explorer knows"),
        ("x.sum()", "'x.sum()' is not a view that the explorer knows"),
        ("__import__('os')", "is not a view that the explorer knows"),
        ("x.__class__", "'x.__class__' is not a view that the explorer knows"),
        ("x.reshape(2, shape=6)", "is not a view that the explorer knows"),
        ("x[", "'x[' cannot be read as an expression"),
        ("1if x else 2", "cannot be read as an expression"),
        ("x\0", "cannot be read as an expression"),
        ("(" * 80, "cannot be read as an expression"),
        ("x" * 81, "The view has 81 characters: use at most 80"),
        ("x[True]", "'True' is not an integer: the explorer takes integers, slices, ... and None as indices"),
        ("x[[0, 1]]", "'[0, 1]' is not an integer"),
        ("x[1.0]", "'1.0' is not an integer"),
        ("x['a']", "\"'a'\" is not an integer"),
        ("x[10000]", "10000 is too large for this explorer"),
        ("x[3]", "x[3] does not fit the shape (3, 4): index 3 is out of bounds for axis 0 with size 3"),
        ("x[::0]", "slice step cannot be zero"),
        ("x.T[:, :, 0]", "x.T[:, :, 0] does not fit the shape (4, 3)"),
        ("x.reshape(5, 2)", "x.reshape(5, 2) does not fit the shape (3, 4)"),
        ("x.reshape(-2)", "only −1 may stand for the size that is left"),
        ("x.reshape(x)", "'x' is not an integer: x.reshape(x) takes whole numbers"),
        ("x.permute(0)", "permute(0) does not name each of the 2 axes of (3, 4) once"),
        ("x.permute(0, 2)", "permute(0, 2) does not name each of the 2 axes"),
        ("x.permute(1, 2)", "x.permute(1, 2) does not fit the shape (3, 4): axis 2 is out of bounds"),
        ("x.transpose(0)", "transpose got 1 numbers"),
        ("x.expand(4)", "expand(4) has fewer axes than the shape (3, 4)"),
        ("x.expand(6, 4)", "only an axis of 1 is repeated"),
        ("x.expand(-1, 3, 4)", "only an axis of 1 is repeated"),
        ("x.expand(9999, 3, 4)", "119988 elements: the picture has room for 48"),
        ("x.broadcast_to(6, 4)", "broadcast_to(6, 4) does not fit the shape (3, 4): only an axis of 1 is repeated"),
        ("x.view(5, 2)", "x.view(5, 2) does not fit the shape (3, 4)"),
        ("x.view(-2)", "view(-2) has a negative size"),
        ("x.T.view(12)", "No strides fit view(12): use reshape, which copies"),
        ("x.contiguous(1)", "write contiguous()"),
        ("x[None, None]", "4 axes: the picture has room for 3"),
    ],
)
def test_what_is_no_view_is_one_sentence(view: str, sentence: str) -> None:
    panel = stride_explorer().panel
    panel.controls["view"].value = view
    assert sentence in panel.sentence
    with pytest.raises(BadInput) as caught:
        stride_explorer.static(view=view)
    assert str(caught.value) == panel.sentence
    assert panel.sentence.endswith(".")


CALLS = [".T", ".permute(", ".transpose(", ".reshape(", ".expand(", ".contiguous()"]
PIECES = [*"x[](),:02*\\", "...", "None", "-1", "12", "'a'", "==", "lambda ", *CALLS]


def test_no_text_makes_it_fail() -> None:
    rng = random.Random(3)
    drawn = 0
    for _ in range(3000):
        view = "x" + "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 7)))
        try:
            drawn += bool(stride_explorer.static(base=rng.choice(["3, 4", "12", "()"]), view=view).alt)
        except BadInput as error:
            assert "\n" not in str(error)
    assert drawn > 20
