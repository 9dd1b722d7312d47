"""Chapter 06: what the checks do with an answer, and where their arrays come from."""

from __future__ import annotations

import numpy as np

STEPS = 4


def gradients(rng, shape, dtype="float64", first=None):
    """Uneven gradients for a few steps: their size differs from element to element, and from step to step."""
    sizes = rng.uniform(0.5, 2, (STEPS, *[1] * len(shape))) * np.exp(rng.uniform(-2, 2, shape))
    g = rng.standard_normal((STEPS, *shape)) * sizes
    if first is not None:
        g[...] = first
    return g.astype(dtype)


def parameter(rng, shape, dtype="float64"):
    return np.asarray(rng.uniform(0.5, 2, shape) * rng.choice([-1.0, 1.0], shape), dtype)


def numbers(**values):
    return {name: np.array(value) for name, value in values.items()}


def run_steps(arrays, move, **memories):
    """Four steps. Parameter and memories are our arrays, so that only a change in place can be seen."""
    p = arrays["p"].copy()
    seen = []
    for i, g in enumerate(arrays["gradients"]):
        move(p, g, i, memories)
        seen.append(p.copy())
    outputs = {"parameter after each step": np.array(seen)}
    return outputs | {f"{name} at the end": memory for name, memory in memories.items() if memory is not None}


# 6.1 sgd_step


def probe_sgd(target, arrays, framework):
    momentum, buffer = float(arrays["momentum"]), np.full_like(arrays["p"], 7) if arrays["momentum"] else None
    options = {}
    if momentum:
        options = {"momentum": momentum}
    if arrays["dampening"]:
        options["dampening"] = float(arrays["dampening"])
    if arrays["nesterov"]:
        options["nesterov"] = True

    def move(p, g, i, memories):
        target(p, g, memories["buffer"], float(arrays["lr"]), first=i == 0, **options)

    return run_steps(arrays, move, buffer=buffer)


def inputs_sgd(rng, shape, momentum=0.0, dampening=0.0, nesterov=False, dtype="float64"):
    return {
        "p": parameter(rng, shape, dtype),
        "gradients": gradients(rng, shape, dtype),
    } | numbers(lr=0.1, momentum=momentum, dampening=dampening, nesterov=nesterov)


def draw_sgd(rng):
    momentum = float(rng.choice([0, 0.5, 0.9]))
    nesterov = bool(momentum) and bool(rng.random() < 0.4)
    return shape_of(rng), momentum, 0.0 if nesterov or not momentum else float(rng.choice([0, 0.3])), nesterov


def shape_of(rng):
    return tuple(rng.integers(1, 4, rng.integers(1, 3)).tolist())


# 6.2 rmsprop_step


def probe_rmsprop(target, arrays, framework):
    p = arrays["p"]
    mean = np.zeros_like(p) if arrays["centered"] else None
    buffer = np.zeros_like(p) if arrays["momentum"] else None
    options = {"momentum": float(arrays["momentum"])} if arrays["momentum"] else {}

    def move(p, g, i, memories):
        target(
            p,
            g,
            memories["v"],
            memories["mean"],
            memories["buffer"],
            float(arrays["lr"]),
            float(arrays["alpha"]),
            float(arrays["eps"]),
            **options,
        )

    return run_steps(arrays, move, v=np.zeros_like(p), mean=mean, buffer=buffer)


def inputs_rmsprop(rng, shape, alpha=0.9, eps=1e-3, momentum=0.0, centered=False, first=None, dtype="float64"):
    return {
        "p": parameter(rng, shape, dtype),
        "gradients": gradients(rng, shape, dtype, first),
    } | numbers(lr=0.1, alpha=alpha, eps=eps, momentum=momentum, centered=centered)


def draw_rmsprop(rng):
    return (
        shape_of(rng),
        float(rng.choice([0.5, 0.9, 0.99])),
        float(rng.choice([1e-2, 0.5])),
        float(rng.choice([0, 0.7])),
        bool(rng.random() < 0.5),
    )


# 6.3 adam_step, 6.4 adamw_step


def probe_adam(target, arrays, framework):
    """With a decay among the arrays it is AdamW's."""
    decay = {"weight_decay": float(arrays["weight_decay"])} if "weight_decay" in arrays else {}
    start = int(arrays["steps before"])

    def move(p, g, i, memories):
        betas = (float(arrays["beta1"]), float(arrays["beta2"]))
        step = start + i + 1
        target(p, g, memories["m"], memories["v"], step, float(arrays["lr"]), betas, float(arrays["eps"]), **decay)

    return run_steps(arrays, move, m=arrays["m"].copy(), v=arrays["v"].copy())


def inputs_adam(rng, shape, beta1=0.9, beta2=0.99, eps=1e-3, before=0, first=None, p=None, dtype="float64", decay=None):
    """`before`: how many steps were taken already; the means are then not 0."""
    seen = min(before, 1)
    arrays = {
        "p": parameter(rng, shape, dtype) if p is None else np.full(shape, float(p)),
        "gradients": gradients(rng, shape, dtype, first),
        "m": (seen * rng.standard_normal(shape)).astype(dtype),
        "v": (seen * rng.uniform(1, 4, shape)).astype(dtype),
    } | numbers(lr=0.1, beta1=beta1, beta2=beta2, eps=eps)
    arrays["steps before"] = np.array(before)
    return arrays | ({} if decay is None else numbers(weight_decay=decay))


def draw_adam(rng):
    betas = float(rng.choice([0.5, 0.9])), float(rng.choice([0.9, 0.999]))
    return shape_of(rng), *betas, float(rng.choice([1e-3, 0.3])), int(rng.choice([0, 0, 5]))


def inputs_adamw(rng, decay, *arguments, **options):
    return inputs_adam(rng, *arguments, **options, decay=decay)


def draw_adamw(rng):
    return float(rng.choice([0.01, 0.1, 1])), *draw_adam(rng)
