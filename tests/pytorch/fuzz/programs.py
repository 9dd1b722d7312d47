"""Random programs: made, run on both sides, compared, and cut down to a short script where they differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import gradwright

from ..beside import OURS, THEIRS
from .catalogue import ENTRIES

STEPS = 12
LARGEST, MOST = 1e3, 600
"""Programs stay tame: no element above, no tensor with more elements."""


@dataclass(frozen=True)
class Program:
    """Leaves by name, and expressions of which each makes one more tensor. The last one is where backward begins."""

    leaves: dict[str, np.ndarray]
    steps: tuple[tuple[str, str], ...]
    seed: int

    def script(self) -> str:
        """The program as somebody would type it."""
        lines = ["import gradwright as m  # or torch", "ids = m.tensor"]
        for name, array in self.leaves.items():
            lines.append(f"{name} = m.tensor({array.tolist()}, dtype=m.{array.dtype}, requires_grad=True)")
            lines[-1] += f".reshape{array.shape}" if not array.size else ""
        lines += [f"{name} = {expression}" for name, expression in self.steps]
        last = self.steps[-1][0]
        return "\n".join([*lines, f"{last}.backward(...)  # random numbers, seed {self.seed}"])


def run(program: Program, m: Any, make: Any, dtype: Any) -> dict[str, np.ndarray]:
    """Every tensor and every gradient of a leaf, by name."""
    leaves = {name: make(array.astype(dtype), requires_grad=True) for name, array in program.leaves.items()}
    scope = {"m": m, "ids": m.tensor, **leaves}
    for name, expression in program.steps:
        scope[name] = eval(expression, scope)
    last = scope[program.steps[-1][0]]
    begin = np.asarray(np.random.default_rng(program.seed).standard_normal(tuple(last.shape))).astype(dtype)
    if last.requires_grad:
        last.backward(make(begin))
    names = [*program.leaves, *(name for name, _ in program.steps)]
    found = {name: scope[name].detach().numpy() for name in names}
    return found | {f"gradient of {n}": t.grad.numpy() for n, t in leaves.items() if t.grad is not None}


def random_program(seed: int) -> Program:
    """A program that PyTorch can run, with numbers that stay tame."""
    rng = np.random.default_rng(seed)
    leaves = random_leaves(rng)
    pool = {name: torch.tensor(array, requires_grad=True) for name, array in leaves.items()}
    steps: list[tuple[str, str]] = []
    while len(steps) < STEPS:
        expression = ENTRIES[rng.integers(len(ENTRIES))](rng, pool)
        if expression is None:
            continue
        out = eval(expression, {"m": THEIRS, "ids": torch.tensor, **pool})
        if out.numel() > MOST or out.ndim > 5 or not (out.detach().abs() < LARGEST).all():
            continue
        name = f"v{len(pool)}"
        pool[name] = out
        steps.append((name, expression))
    ends = [name for name in pool if not any(re.search(rf"\b{name}\b", text) for _, text in steps)]
    total = " + ".join([f"{name}.sum()" for name in ends if name != steps[-1][0]])
    if total:
        steps.append((f"v{len(pool)}", f"{steps[-1][0]} * 0.5 + 0.1 * ({total})"))
    return Program(leaves, tuple(steps), seed)


def random_leaves(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Two to four leaves that share some sizes; half of them hold small whole numbers, so that there are ties."""
    sizes = rng.integers(1, 5, 3)
    if rng.random() < 0.05:
        sizes[rng.integers(3)] = 0
    leaves = {}
    for i in range(rng.integers(2, 5)):
        shape = tuple(int(n) if rng.random() < 0.8 else 1 for n in sizes[rng.integers(0, 4) :])
        ties = rng.random() < 0.5
        array = rng.integers(-2, 3, shape) if ties else rng.standard_normal(shape)
        leaves[f"v{i}"] = np.asarray(array, np.float64)
    return leaves


def fault(program: Program) -> str:
    """The first thing in which the two sides differ, or an empty text. float64 and float32."""
    with np.errstate(all="ignore"):
        exact = run(program, THEIRS, torch.tensor, np.float64)
        for dtype in (np.float64, np.float32):
            try:
                ours = run(program, OURS, gradwright.tensor, dtype)
            except Exception as error:  # whatever it is, it is a finding
                return f"{np.dtype(dtype)}: {type(error).__name__}: {error}"
            theirs = run(program, THEIRS, torch.tensor, dtype)
            for name in theirs.keys() | ours.keys():
                if what := difference(ours.get(name), theirs.get(name), exact.get(name)):
                    return f"{np.dtype(dtype)}: {name}: {what}"
    return ""


def difference(ours: Any, theirs: Any, exact: Any) -> str:
    """float32 may be as wrong as PyTorch's own float32 is, several times over: both round, in different order."""
    if ours is None or theirs is None:
        return "only one of the two has it"
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.shape} {ours.dtype}, and PyTorch has {theirs.shape} {theirs.dtype}"
    if not ours.size:
        return ""
    scale = 1 + np.abs(exact).max()
    allowed = 1e-9 * scale if ours.dtype == np.float64 else 1e-4 * scale + 50 * np.abs(theirs - exact).max()
    gap = np.abs(ours.astype(np.float64) - theirs).max()
    return "" if gap <= allowed else f"differs by {gap:.3g}\nours   {ours.tolist()}\ntorch  {theirs.tolist()}"


def shorten(program: Program) -> Program:
    """The same fault with fewer steps: end as early as possible, and leave out what the end does not use."""
    for count in range(1, len(program.steps) + 1):
        shorter = used(Program(program.leaves, program.steps[:count], program.seed))
        if fault(shorter):
            return shorter
    return program


def used(program: Program) -> Program:
    """Without the steps and leaves that the last step does not depend on."""
    needed = {program.steps[-1][0]}
    for name, expression in reversed(program.steps):
        if name in needed:
            needed |= set(re.findall(r"\bv\d+\b", expression))
    leaves = {name: array for name, array in program.leaves.items() if name in needed}
    return Program(leaves, tuple([step for step in program.steps if step[0] in needed]), program.seed)
