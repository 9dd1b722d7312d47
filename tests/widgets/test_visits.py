"""The visit counter: its walks are those of a real recursion and a real topological order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from autograder.errors import BadInput
from gradwright.widgets import visit_counter
from gradwright.widgets.visits import DEEPEST, Race, nodes, paths, recursion, targets


def visited(node: int, diamonds: int) -> list[int]:
    """The nodes in the order of plain recursion."""
    return [node, *(n for target in targets(node, diamonds) for n in visited(target, diamonds))]


@pytest.mark.parametrize("diamonds", range(1, DEEPEST + 1))
def test_the_walk_along_every_path_is_that_of_a_recursion(diamonds: int) -> None:
    walked = recursion(diamonds)
    assert [path[-1] for path in walked] == visited(0, diamonds)
    assert len(walked) == paths(diamonds) == 2 ** (diamonds + 2) - 3
    assert all(b in targets(a, diamonds) for path in walked for a, b in pairwise(path))


@pytest.mark.parametrize("diamonds", range(1, DEEPEST + 1))
def test_the_other_walk_visits_each_node_once_and_after_all_that_send_to_it(diamonds: int) -> None:
    last = Race(diamonds, paths(diamonds) - 1)
    assert last.ordered == Counter(range(nodes(diamonds)))
    assert all(target > node for node in range(nodes(diamonds)) for target in targets(node, diamonds))
    assert last.recursive[3 * diamonds] == 2**diamonds


def test_both_walks_go_forward_together() -> None:
    race = Race(2, 6)
    assert race.path == (0, 1, 3, 5, 6)
    assert sum(race.recursive.values()) == sum(race.ordered.values()) == 7
    assert race.told == (
        "visit 7 of 13. This node has been visited twice, and 5 calls are open.",
        "visit 7 of 7.",
    )
    assert Race(2, 9).told[1] == "done after 7 visits, each node once."


def test_the_slider_of_visits_follows_the_diamonds() -> None:
    panel = visit_counter(diamonds=3, visit=28).panel
    assert panel.controls["visit"].max == 28
    panel.controls["diamonds"].value = 1
    assert (panel.controls["visit"].max, panel.controls["visit"].value) == (4, 4)
    assert "visit 5 of 5" in panel.alt


@pytest.mark.parametrize("diamonds", [0, DEEPEST + 1, 2.0, True, "2"])
def test_a_number_of_diamonds_that_cannot_be_is_one_sentence(diamonds: object) -> None:
    with pytest.raises(BadInput, match=f"give a whole number from 1 to {DEEPEST}"):
        visit_counter.static(diamonds=diamonds)
