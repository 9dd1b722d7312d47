"""Libraries that run beside the framework where they happen to be installed."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

__all__ = ["describe", "rival"]

RIVALS = {"PyTorch": "torch", "HIPS autograd": "autograd"}


def rival(name: str) -> ModuleType | None:
    """The module of this library, on one thread; None where it is not installed."""
    try:
        module = importlib.import_module(RIVALS[name])
    except ModuleNotFoundError as error:
        if error.name != RIVALS[name]:
            raise
        return None
    if name == "PyTorch":
        module.set_num_threads(1)
    return module


def describe(names: tuple[str, ...]) -> str:
    """One line on which of these libraries take part."""
    return "; ".join(f"{name} {edition(name)}" for name in names)


def edition(name: str) -> str:
    try:
        return version(RIVALS[name])
    except PackageNotFoundError:
        return "is not installed and left out"
