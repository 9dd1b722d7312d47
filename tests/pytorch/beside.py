"""One program, run by gradwright and by PyTorch: both must give the same values and the same gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import gradwright
from gradwright.chapters import operations

F32, F64 = np.float32, np.float64


class Both:
    """What a program finds in one place: all that gradwright has, or torch, with nn.functional."""

    def __init__(self, *modules: Any):
        self.modules = modules

    def __getattr__(self, name: str) -> Any:
        return next(getattr(module, name) for module in self.modules if hasattr(module, name))


class Ours(Both):
    def given(self, values: Any) -> Any:
        return operations.tensor(np.array(values))


class Theirs(Both):
    def given(self, values: Any) -> Any:
        return torch.tensor(np.array(values))


OURS, THEIRS = Ours(gradwright, gradwright.nn.functional), Theirs(torch, torch.nn.functional)


def outputs(result: Any) -> list:
    return list(result) if isinstance(result, tuple | list) else [result]


def same(ours: Any, theirs: torch.Tensor, dtype: Any) -> None:
    array, wanted = ours.detach().numpy(), theirs.detach().numpy()
    assert array.shape == wanted.shape
    assert array.dtype == wanted.dtype
    digits = {"rtol": 1e-9, "atol": 1e-9} if dtype is F64 else {"rtol": 2e-5, "atol": 2e-5}
    np.testing.assert_allclose(array, wanted, **digits)


def compare(program: Callable, *arrays: np.ndarray) -> None:
    """Run a program on both sides, and go backward from all its float outputs with random seeds."""
    dtype = arrays[0].dtype.type
    ours = [operations.tensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]
    rng = np.random.default_rng(7)
    with np.errstate(all="ignore"):
        got, wanted = outputs(program(OURS, *ours)), outputs(program(THEIRS, *theirs))
        assert len(got) == len(wanted)
        for mine, other in zip(got, wanted, strict=True):
            same(mine, other, dtype)
            assert mine.requires_grad == other.requires_grad
            if other.requires_grad:
                begin = np.asarray(rng.standard_normal(tuple(other.shape)).astype(other.detach().numpy().dtype))
                mine.backward(operations.tensor(begin), retain_graph=True)
                other.backward(torch.from_numpy(begin), retain_graph=True)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            same(a.grad, b.grad, dtype)


def numbers(shape: tuple[int, ...], seed: int = 0, dtype: Any = F64) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def with_ties(shape: tuple[int, ...], seed: int = 0, dtype: Any = F64) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).integers(-2, 3, shape)).astype(dtype)
