"""A small chapter that keeps every rule, and its records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autograder.checks import Exercise

TEXT = '''\
# %% [markdown]
# # 1 Tiny
#
# What this chapter is about, with a formula $a_i$.

# %%
import gradwright
from autograder import check

gradwright.chapter(1)

# %% given="imports"
import numpy as np

# %% figure="ramp"
"""A line that rises
from 0 to 2."""
plt.plot([0, 1, 2], np.random.default_rng(0).normal(size=3).cumsum())

# %% [markdown]
# ## 1.1 Doubling
#
# ### Exercise 1.1: `double`
# Easy, 5 minutes, 2 points.

# %% exercise="tiny-double"
def double(x):
    """Twice x, by addition."""
    ### BEGIN SOLUTION
    secret_total = x + x
    return secret_total
    ### END SOLUTION

# %% [markdown]
# Some help.

# %% check="tiny-double"
check("tiny-double", double)

# %% [markdown]
# ## 1.2 A box
#
# ### Exercise 1.2: `Box`
# Hard, 1 minute, 1 point.

# %% exercise="tiny-box"
class Box:
    """Holds a number."""

    def __init__(self, x):
        ### BEGIN SOLUTION
        self.hidden_number = x
        ### END SOLUTION

    def get(self):
        """What is in it."""
        ### BEGIN SOLUTION
        return self.hidden_number
        ### END SOLUTION

# %% check="tiny-box"
check("tiny-box", Box)

# %% [markdown]
# Look.

# %%
four = double(2)

# %%
print(np.arange(3))
'''


def record(id: str, name: str, difficulty: str, minutes: int, points: int, kind: str = "function") -> Exercise:
    return Exercise(
        id=id,
        name=name,
        kind=kind,
        difficulty=difficulty,
        minutes=minutes,
        points=points,
        probe=lambda target, arrays, framework: {"out": target(arrays["x"])},
        cases={"one": (1,)},
        inputs=lambda rng, n: {"x": np.full(3, float(n))},
        draw=lambda rng: (2,),
    )


@pytest.fixture(scope="session")
def records() -> list[Exercise]:
    return [
        record("tiny-double", "double", "Easy", 5, 2),
        record("tiny-box", "Box", "Hard", 1, 1, "class"),
    ]


@pytest.fixture(scope="session")
def text() -> str:
    return TEXT


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a chapter's source and return its path."""

    def write_source(text: str, name: str = "01_tiny.py") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_source
