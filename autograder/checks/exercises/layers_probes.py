"""What the checks of chapter 04 do with numbers: a probe for each exercise, and how its inputs are made."""

from __future__ import annotations

import numpy as np

from autograder.checks.exercise import raised

REFUSED = "refused with ValueError"


def numbers(array):
    return tuple(int(n) for n in array)


def spread(rng, shape, dtype="float64"):
    """Random numbers of order one."""
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def elements(result):
    """A tensor's elements; None, and what is no tensor, as it is."""
    return np.array(result.array) if hasattr(result, "see") else result


# 4.5


def probe_scale(target, arrays, framework):
    shape, gain, mode = numbers(arrays["shape"]), float(arrays["gain"]), str(arrays["mode"])
    if "to be refused" in arrays:
        return {REFUSED: raised(ValueError, target, shape, gain, mode)}
    return {"std": target(shape, gain, mode)}


def inputs_scale(rng, shape, gain, mode, refuse=False):
    arrays = {"shape": np.array(shape, dtype=np.int64), "gain": np.array(gain), "mode": np.array(mode)}
    return arrays | ({"to be refused": np.array(True)} if refuse else {})


def draw_scale(rng):
    shape = tuple(int(n) for n in rng.integers(1, 8, int(rng.integers(2, 5))))
    return shape, float(rng.uniform(0.5, 3)), str(rng.choice(["fan_in", "fan_out", "fan_average"]))


# 4.6


def probe_linear(target, arrays, framework):
    """Names and shapes of a new layer; how its numbers are spread; then output and gradients with given numbers."""
    x, weight, bias = arrays["x"], arrays["weight"], arrays.get("bias")
    layer = target(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=x.dtype)
    registered = {name: "None" if p is None else str(tuple(p.shape)) for name, p in layer._parameters.items()}
    with framework.no_grad():
        for name, given in (("weight", weight), ("bias", bias)):
            if given is not None:
                getattr(layer, name).copy_(framework.tensor(given))
    t = framework.tensor(x, requires_grad=True)
    out = layer(t)
    out.backward(framework.tensor(arrays["grad"]))
    grads = {f"gradient of {name}": elements(p.grad) for name, p in layer._parameters.items() if p is not None}
    names = [f"{name} {registered[name]}" for name in sorted(registered)]
    return {
        "parameters": np.array(names),
        **beginning(target, framework),
        "output": elements(out),
        "gradient of the input": elements(t.grad),
        **grads,
    }


def beginning(target, framework):
    """Whether new weights and biases are spread as they should: by their largest and their typical size."""
    found = {}
    framework.manual_seed(5)
    layer, other = target(16, 64), target(16, 64)
    for name in ("weight", "bias"):
        a, b = (np.array(getattr(one, name).detach().numpy()) for one in (layer, other))
        found[f"largest new {name} over 1/4, in tenths"] = float(np.ceil(40 * np.abs(a).max()))
        found[f"a new {name} is spread evenly"] = np.array(bool(abs(a.std() - 0.25 / 3**0.5) < 0.04))
        found[f"a second layer begins with another {name}"] = np.array(bool((a != b).any()))
    return found


def inputs_linear(rng, lead, width, out, bias=True, dtype="float64"):
    arrays = {
        "x": spread(rng, (*lead, width), dtype),
        "weight": spread(rng, (out, width), dtype),
        "grad": spread(rng, (*lead, out), dtype),
    }
    return arrays | ({"bias": spread(rng, out, dtype)} if bias else {})


def draw_linear(rng):
    lead = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3))))
    return lead, int(rng.integers(1, 5)), int(rng.integers(1, 5)), bool(rng.integers(0, 2))


# 4.7


def probe_dropout(target, arrays, framework):
    """Where nothing was dropped, the scaled element; where it was, what is made of it here, so that all is known."""
    p, training, generator = float(arrays["p"]), bool(arrays["training"]), framework.Generator()
    t = framework.tensor(arrays["x"], requires_grad=True)
    if "to be refused" in arrays:
        return {REFUSED: raised(ValueError, target, t, p, training)}
    generator.manual_seed(int(arrays["seed"]))
    out = target(t, p, training, generator)
    out.backward(framework.tensor(arrays["grad"]))
    first, gradient = elements(out), elements(t.grad)
    if not training or p in (0, 1):
        return {"output": first, "gradient": gradient}
    second = elements(target(t, p, training, generator))
    generator.manual_seed(int(arrays["seed"]))
    again = elements(target(t, p, training, generator))
    gone = first == 0
    # Chance must not decide: five standard deviations of the share, and some row and some column among all.
    mixed = [bool((gone.any(axis) & ~gone.all(axis)).any()) for axis in (0, 1)]
    return {
        "output, with what was dropped put back": np.where(gone, arrays["x"] / (1 - p), first).astype(first.dtype),
        "gradient, with the same put back": np.where(gone, arrays["grad"] / (1 - p) + gradient, gradient).astype(
            gradient.dtype
        ),
        "about the share p was dropped": np.array(bool(abs(gone.mean() - p) < 0.19)),
        "elements fall one by one": np.array(all(mixed)),
        "the next call drops others": np.array(bool(((second == 0) != gone).any())),
        "the same seed drops the same": np.array(bool(((again == 0) == gone).all())),
    }


def inputs_dropout(rng, p, training=True, dtype="float64", refuse=False):
    shape = (12, 15) if training and 0 < p < 1 else (3, 4)
    arrays = {
        "x": rng.uniform(0.5, 2, shape).astype(dtype),
        "grad": spread(rng, shape, dtype),
        "p": np.array(p),
        "training": np.array(training),
        "seed": rng.integers(0, 1000),
    }
    return arrays | ({"to be refused": np.array(True)} if refuse else {})


def draw_dropout(rng):
    return float(rng.uniform(0.2, 0.7)), bool(rng.random() < 0.7)


# 4.8


def probe_normalized(target, arrays, framework):
    x, dims, eps, centred = arrays["x"], numbers(arrays["dims"]), float(arrays["eps"]), bool(arrays["centred"])
    around = x - x.mean(dims, keepdims=True) if centred else x
    rstd = (1 / np.sqrt((around * around).mean(dims, keepdims=True) + eps)).astype(x.dtype)
    return {"gradient of x": target(arrays["grad"], around * rstd, rstd, dims, centred)}


def inputs_normalized(rng, shape, dims, centred=True, eps=1e-5, dtype="float64", stretch=1.5):
    return {
        "x": (spread(rng, shape) * stretch + 0.7).astype(dtype),
        "grad": spread(rng, shape, dtype),
        "dims": np.array(dims, dtype=np.int64),
        "centred": np.array(centred),
        "eps": np.array(eps),
    }


def draw_normalized(rng):
    shape = tuple(int(n) for n in rng.integers(2, 5, int(rng.integers(2, 5))))
    dims = sorted(rng.permutation(len(shape))[: int(rng.integers(1, len(shape)))].tolist())
    return shape, tuple(dims), bool(rng.integers(0, 2)), float(rng.choice([1e-5, 0.5]))


# 4.9


def probe_statistics(target, arrays, framework):
    given = arrays["x"], arrays["running_mean"], arrays["running_var"], float(arrays["momentum"])
    if "to be refused" in arrays:
        return {REFUSED: raised(ValueError, target, *given)}
    mean, var, next_mean, next_var = target(*given)
    return {"mean": mean, "variance": var, "running mean": next_mean, "running variance": next_var}


def inputs_statistics(rng, shape, momentum=0.1, dtype="float64", refuse=False, x=None):
    channels = shape[1]
    arrays = {
        "x": (spread(rng, shape) * 2 + 1).astype(dtype) if x is None else np.array(x, dtype),
        "running_mean": np.zeros(channels, dtype) if x is not None else spread(rng, channels, dtype),
        "running_var": np.ones(channels, dtype) if x is not None else rng.uniform(0.5, 2, channels).astype(dtype),
        "momentum": np.array(momentum),
    }
    return arrays | ({"to be refused": np.array(True)} if refuse else {})


def draw_statistics(rng):
    shape = tuple(int(n) for n in rng.integers(2, 5, int(rng.integers(2, 5))))
    return shape, float(rng.uniform(0.05, 0.6))


# 4.10


def probe_embedding(target, arrays, framework):
    padding = int(arrays["padding"]) if "padding" in arrays else None
    return {"gradient of the table": target(arrays["grad"], arrays["ids"], int(arrays["count"]), padding)}


def inputs_embedding(rng, ids, count, padding=None, dtype="float64"):
    ids = np.array(ids, dtype=np.int64)
    arrays = {"grad": spread(rng, (*ids.shape, 3), dtype), "ids": ids, "count": np.array(count)}
    return arrays | ({} if padding is None else {"padding": np.array(padding)})


def draw_embedding(rng):
    count = int(rng.integers(3, 8))
    ids = rng.integers(0, count, tuple(rng.integers(1, 4, int(rng.integers(1, 3))).tolist()))
    return ids, count, int(rng.integers(0, count)) if rng.random() < 0.5 else None


# 4.12


def probe_count(target, arrays, framework):
    return {"multiply-adds": target(numbers(arrays["weight_shape"]), numbers(arrays["output_shape"]))}


def inputs_count(rng, weight_shape, output_shape):
    return {"weight_shape": np.array(weight_shape), "output_shape": np.array(output_shape)}


def draw_count(rng):
    weight = tuple(int(n) for n in rng.integers(1, 9, int(rng.integers(2, 5))))
    places = tuple(int(n) for n in rng.integers(1, 6, max(len(weight) - 2, 0)))
    return weight, (int(rng.integers(1, 9)), weight[0], *places)
