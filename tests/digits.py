"""One training script for both: 100 steps of a small network on the digits, in float64, from given weights.

    python tests/digits.py

records PyTorch's losses in course/data/digits_curve.json.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parents[1] / "course" / "data"
CURVE = DATA / "digits_curve.json"
SEED, STEPS = 6, 100


def curve(torch: Any) -> list[float]:
    """The losses of all steps. `torch` is PyTorch, or gradwright in its place."""
    data = np.load(DATA / "digits.npz")
    images, labels = data["images"].reshape(-1, 64) / 16, data["labels"].astype(np.int64)
    rng = np.random.default_rng(SEED)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(rng.uniform(-0.2, 0.2, tuple(p.shape))))
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=3e-3), []
    for _ in range(STEPS):
        rows = rng.integers(0, len(images), 32)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(torch.tensor(images[rows])), torch.tensor(labels[rows]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    pytorch = importlib.import_module("torch")
    about = {"torch": pytorch.__version__.split("+")[0], "dtype": "float64", "seed": SEED, "losses": curve(pytorch)}
    CURVE.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
