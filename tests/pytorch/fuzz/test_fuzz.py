"""Thousands of random programs: every value and every gradient beside PyTorch, in float64 and float32."""

from __future__ import annotations

import numpy as np
import pytest

from .programs import Program, fault, random_program, shorten

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:(var|std)... degrees of freedom:UserWarning")]

SLICES, EACH = 20, 200


@pytest.mark.parametrize("part", range(SLICES))
def test_random_programs(part: int) -> None:
    for seed in range(part * EACH, (part + 1) * EACH):
        program = random_program(seed)
        if fault(program):
            short = shorten(program)
            pytest.fail(f"program {seed}: {fault(short)}\n\n{short.script()}", pytrace=False)


def test_a_planted_fault_is_found_and_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer itself: cos with the wrong sign behind it."""
    from gradwright.chapters import operations

    monkeypatch.setattr(operations.Cos, "slope", lambda self, x: np.sin(x))
    leaves = {"v0": np.array([1.0, 2.0]), "v1": np.array([3.0])}
    steps = (("v2", "v0 * 2"), ("v3", "v1.exp()"), ("v4", "v2.cos()"), ("v5", "v4.sum() + v3"))
    short = shorten(Program(leaves, steps, 1))
    assert [expression for _, expression in short.steps] == ["v0 * 2", "v2.cos()"]
    assert list(short.leaves) == ["v0"]
    assert "gradient of v0" in fault(short)
    assert "v4 = v2.cos()" in short.script()
