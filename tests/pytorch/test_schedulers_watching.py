"""Chapter 07's schedulers that are told something, beside PyTorch: a metric, or a point of time."""

from __future__ import annotations

import numpy as np
import pytest

import gradwright
from gradwright.optim import lr_scheduler

from .scheduled import CLOSE, sides

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("seed", range(30))
def test_plateau_on_random_metrics(seed):
    rng = np.random.default_rng(seed)
    settings = {
        "mode": str(rng.choice(["min", "max"])),
        "factor": float(rng.uniform(0.1, 0.9)),
        "patience": int(rng.integers(0, 5)),
        "threshold": float(rng.choice([0, 1e-4, 0.1])),
        "threshold_mode": str(rng.choice(["rel", "abs"])),
        "cooldown": int(rng.integers(0, 4)),
        "min_lr": [0.0, 0.02] if seed % 2 else 0.001,
        "eps": float(rng.choice([1e-8, 1e-3])),
    }
    metrics = rng.standard_normal(120).cumsum() * 0.2
    metrics[rng.random(120) < 0.05] = np.nan
    found = []
    for side in sides(rates=(0.3, 0.05)):
        scheduler, rows = side.schedulers.ReduceLROnPlateau(side.optimizer, **settings), []
        for metric in metrics:
            scheduler.step(metric)
            rows.append([*side.seen(), scheduler.best, scheduler.num_bad_epochs, scheduler.cooldown_counter])
            assert scheduler.get_last_lr() == side.seen()[:2]
        found.append(rows)
    np.testing.assert_allclose(*found, **CLOSE)


def test_plateau_takes_a_tensor_and_resumes_at_every_call():
    metrics = 1 + np.random.default_rng(0).standard_normal(40)
    for stop in range(40):
        rows = []
        for broken in (False, True):
            side, _ = sides()
            scheduler = lr_scheduler.ReduceLROnPlateau(side.optimizer, patience=1, factor=0.5, cooldown=1)
            for i, metric in enumerate(metrics):
                if broken and i == stop:
                    state, lr = scheduler.state_dict(), side.optimizer.param_groups[0]["lr"]
                    side, _ = sides()
                    side.optimizer.param_groups[0]["lr"] = lr
                    scheduler = lr_scheduler.ReduceLROnPlateau(side.optimizer, patience=1, factor=0.5, cooldown=1)
                    scheduler.load_state_dict(state)
                scheduler.step(gradwright.tensor(metric))
            rows.append((side.seen(), scheduler.best))
        assert len(set(map(str, rows))) == 1


@pytest.mark.parametrize(("first", "mult"), [(4, 1), (3, 2), (5, 3)])
def test_warm_restarts_at_fractions_of_an_epoch(first, mult):
    found = []
    for side in sides():
        scheduler, rows = side.schedulers.CosineAnnealingWarmRestarts(side.optimizer, first, mult, 0.01), []
        side.step(0)
        for i in range(160):
            scheduler.step(i / 8 + 1 / 16)  # off the borders, where PyTorch's logarithm may fall on either side
            rows.append([*side.seen(), scheduler.last_epoch, scheduler.T_cur, scheduler.T_i])
        for _ in range(5):
            scheduler.step()
            rows.append([*side.seen(), scheduler.last_epoch, scheduler.T_cur, scheduler.T_i])
        found.append(rows)
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)
