"""Chapter 07: what the checks do with a function of the step, and where their arrays come from."""

from __future__ import annotations

import numpy as np

from autograder.checks.exercise import raised


def odd_ones(results):
    """Those of some results that are no numbers. The verdict says of the first what it is."""
    return [x for x in results if not isinstance(x, int | float | np.number | np.ndarray)]


def numbers(**values):
    return {name: np.array(value) for name, value in values.items()}


def settings_of(arrays, *names):
    """What the case says; what it leaves out is left to the default."""
    return {name: arrays[name].item() for name in names if name in arrays}


def curve(target, arrays, *names):
    """The rate at every step of a case; or, where the case is to be refused, whether it is."""
    settings = settings_of(arrays, *names)
    lr = float(arrays["lr"])
    if arrays.get("to be refused", False):
        return {"refused with ValueError": raised(ValueError, lambda: target(int(arrays["steps"][0]), lr, **settings))}
    found = [target(step, lr, **settings) for step in arrays["steps"].tolist()]
    if odd := odd_ones(found):
        return {"rates": odd[0]}
    return {"rates": np.array([float(rate) for rate in found])}


def base_rate(rng, lr=None):
    return float(rng.uniform(0.5, 2)) if lr is None else float(lr)


# 7.1 step_decay


def probe_step_decay(target, arrays, framework):
    return curve(target, arrays, "step_size", "gamma")


def inputs_step_decay(rng, step_size, gamma=None, steps=12, lr=None):
    given = {} if gamma is None else {"gamma": gamma}
    return numbers(steps=np.arange(steps), lr=base_rate(rng, lr), step_size=step_size, **given)


def draw_step_decay(rng):
    return int(rng.integers(1, 8)), float(rng.uniform(0.3, 0.95)), 20


# 7.2 cosine


def probe_cosine(target, arrays, framework):
    return curve(target, arrays, "total", "lr_min")


def inputs_cosine(rng, total, lr_min=None, steps=None, lr=None, refused=False):
    given = {} if lr_min is None else {"lr_min": lr_min}
    given |= {"to be refused": True} if refused else {}
    steps = np.arange(total + 4) if steps is None else np.array(steps)
    return numbers(steps=steps, lr=base_rate(rng, lr), total=total, **given)


def draw_cosine(rng):
    return int(rng.integers(1, 15)), float(rng.choice([0.0, rng.uniform(0.05, 0.4)]))


# 7.3 warmup_cosine


def probe_warmup(target, arrays, framework):
    return curve(target, arrays, "warmup", "total", "lr_min")


def inputs_warmup(rng, warmup, total, lr_min=None, lr=None, refused=False):
    given = {} if lr_min is None else {"lr_min": lr_min}
    given |= {"to be refused": True} if refused else {}
    return numbers(steps=np.arange(max(total, 1) + 4), lr=base_rate(rng, lr), warmup=warmup, total=total, **given)


def draw_warmup(rng):
    total = int(rng.integers(1, 15))
    return int(rng.integers(0, total + 1)), total, float(rng.choice([0.0, rng.uniform(0.05, 0.4)]))


# 7.4 anneal


def probe_anneal(target, arrays, framework):
    ends, values = arrays["ends"].tolist(), arrays["values"].tolist()
    options = {"linear": True} if arrays["linear"] else {}
    found = [target(step, ends, values, **options) for step in arrays["steps"].tolist()]
    if odd := odd_ones(found):
        return {"values": odd[0]}
    return {"values": np.array([float(value) for value in found])}


def inputs_anneal(rng, total, pct_start=0.3, three_phase=False, linear=False):
    """The ends of PyTorch's OneCycleLR, which takes one step more than it has."""
    ends = [pct_start * total - 1, total - 1.0]
    if three_phase:
        ends.insert(1, 2 * pct_start * total - 2)
    start, high, low = rng.uniform(0.3, 0.6), rng.uniform(1, 2), rng.uniform(0.05, 0.2)
    values = [start, high, start, low] if three_phase else [start, high, low]
    steps = np.arange(total + 1 if ends[-1] != ends[-2] else total)
    return numbers(steps=steps, ends=ends, values=values, linear=linear, pct_start=pct_start, total=total)


def draw_anneal(rng):
    return int(rng.integers(5, 20)), float(rng.uniform(0.22, 0.45)), bool(rng.random() < 0.5), bool(rng.random() < 0.4)


# 7.7 plateau_step


def probe_plateau(target, arrays, framework):
    kept = {"best": float(arrays["best"]), "num_bad_epochs": 0, "cooldown_counter": 0, "lr": 0.5}
    settings = settings_of(arrays, "patience", "cooldown", "threshold", "mode", "threshold_mode")
    rows, falls = [], []
    for metric in arrays["metrics"].tolist():
        falls.append(target(kept, metric, **settings))
        if falls[-1] is None:
            return {"the rate falls": None}
        rows.append([kept["best"], kept["num_bad_epochs"], kept["cooldown_counter"]])
    best, bad, rest = np.array(rows, dtype=np.float64).T
    return {
        "the rate falls": np.array([bool(fall) for fall in falls]),
        "best": best,
        "num_bad_epochs": bad,
        "cooldown_counter": rest,
        "entries afterwards": np.array(sorted(kept)),
    }


def inputs_plateau(rng, metrics, **settings):
    worst = -np.inf if settings.get("mode") == "max" else np.inf
    return numbers(metrics=np.array(metrics, dtype=np.float64), best=worst, **settings)


def inputs_plateau_of(rng, metrics, settings=()):
    return inputs_plateau(rng, metrics, **dict(settings))


def draw_plateau(rng):
    metrics = (2 * np.exp(-0.3 * np.arange(14)) + 1 + rng.uniform(-0.15, 0.15, 14)).round(3)
    mode = str(rng.choice(["min", "max"]))
    settings = {
        "patience": int(rng.integers(0, 3)),
        "cooldown": int(rng.integers(0, 3)),
        "threshold": float(rng.choice([0.0, 0.02, 0.1])),
        "mode": mode,
        "threshold_mode": str(rng.choice(["rel", "abs"])),
    }
    return (metrics if mode == "min" else 4 - metrics).tolist(), tuple(settings.items())


# 7.8 sequence_position


def probe_sequence(target, arrays, framework):
    milestones = arrays["milestones"].tolist()
    found = [target(step, milestones) for step in arrays["steps"].tolist()]
    if None in found:
        return {"which scheduler": None}
    return {
        "which scheduler": np.array([int(which) for which, _ in found], dtype=np.int64),
        "its own step": np.array([int(own) for _, own in found], dtype=np.int64),
    }


def inputs_sequence(rng, milestones, steps=12):
    return {"steps": np.arange(steps), "milestones": np.array(milestones, dtype=np.int64)}


def draw_sequence(rng):
    return sorted(rng.integers(1, 11, rng.integers(1, 4)).tolist()), 14
