"""Chapter 05: what the checks do with an answer, and where their arrays come from."""

from __future__ import annotations

import math

import numpy as np

from autograder.checks.exercise import raised

# 5.1 logsumexp, 5.2 log_softmax


def probe_along(target, arrays, framework):
    """For both: an array and an axis. The name of what comes back is that of the exercise's own words."""
    return {"result": target(arrays["x"], int(arrays["axis"]))}


def inputs_logits(rng, shape, axis, scale=1.0, offset=0.0, dtype="float64", special=None):
    """Random logits. `special` is put into the first places of row 0, or with "row" in front into all of it."""
    x = (scale * rng.standard_normal(shape) + offset).astype(dtype)
    if special is not None:
        everywhere, value = special
        if everywhere:
            x[0] = value
        else:
            x.reshape(-1)[0] = value
    return {"x": x, "axis": np.array(axis)}


def draw_logits(rng):
    shape = tuple(rng.integers(1, 5, rng.integers(1, 4)).tolist())
    return shape, int(rng.integers(0, len(shape))), float(rng.choice([1, 5, 1000])), float(rng.choice([0, 50]))


# 5.3 CrossEntropy


def probe_cross_entropy(target, arrays, framework):
    """Loss and gradient, and the gradient once more: what was saved must not have been used up."""
    operation = target()
    loss = operation.forward(framework.Tensor(arrays["logits"]), arrays["ids"])
    first = np.array(operation.backward(arrays["grad"]))
    return {
        "loss": loss.array,
        "gradient of the logits": first,
        "the same, in a second backward": operation.backward(arrays["grad"]),
    }


def inputs_cross_entropy(rng, n, classes, scale=1.0, dtype="float64", logits=None, ids=None):
    made = scale * rng.standard_normal((n, classes)) if logits is None else np.array(logits, dtype=np.float64)
    return {
        "logits": made.astype(dtype),
        "ids": rng.integers(0, classes, n) if ids is None else np.array(ids),
        "grad": np.asarray(rng.uniform(0.5, 2), dtype),
    }


def draw_cross_entropy(rng):
    return int(rng.integers(1, 6)), int(rng.integers(2, 6)), float(rng.choice([1, 3]))


# 5.4 soft_targets


def probe_targets(target, arrays, framework):
    """Only the arguments that a case has are given, so that the defaults are met too."""
    options = {}
    if arrays["weight"].size:
        options["weight"] = arrays["weight"]
    if arrays["ignore_index"] != -100:
        options["ignore_index"] = int(arrays["ignore_index"])
    if arrays["label_smoothing"]:
        options["label_smoothing"] = float(arrays["label_smoothing"])
    targets, count = target(arrays["ids"], int(arrays["classes"]), **options)
    return {"targets": targets, "count": np.asarray(count, np.float64)}


def inputs_targets(rng, ids, classes, weighted=False, ignore_index=-100, label_smoothing=0.0):
    return {
        "ids": np.array(ids, dtype=np.int64),
        "classes": np.array(classes),
        "weight": rng.uniform(0.5, 3, classes) if weighted else np.zeros(0),
        "ignore_index": np.array(ignore_index),
        "label_smoothing": np.array(label_smoothing),
    }


def draw_targets(rng):
    classes = int(rng.integers(2, 6))
    ignore = int(rng.choice([-100, -1, 0]))
    ids = rng.integers(0, classes, rng.integers(2, 6))
    ids[rng.random(len(ids)) < 0.3] = ignore
    return ids.tolist(), classes, bool(rng.random() < 0.5), ignore, float(rng.choice([0, 0.1, 0.3]))


# 5.5 bce_with_logits


def probe_bce(target, arrays, framework):
    given = [arrays["pos_weight"]] if arrays["pos_weight"].size else []
    losses, slopes = target(arrays["x"], arrays["y"], *given)
    return {"losses": losses, "slopes": slopes}


def inputs_bce(rng, shape, scale=1.0, weighted=False, soft=False, x=None, y=None, dtype="float64"):
    logits = scale * rng.standard_normal(shape) if x is None else np.array(x)
    truth = rng.uniform(0.1, 0.9, shape) if soft else rng.integers(0, 2, shape).astype(float)
    return {
        "x": logits.astype(dtype),
        "y": (truth if y is None else np.array(y)).astype(dtype),
        "pos_weight": (rng.uniform(0.2, 5, shape[-1:]) if weighted else np.zeros(0)).astype(dtype),
    }


def draw_bce(rng):
    shape = tuple(rng.integers(1, 5, 2).tolist())
    return shape, float(rng.choice([1, 10])), bool(rng.random() < 0.5), bool(rng.random() < 0.5)


# 5.6 distillation_loss


def probe_distillation(target, arrays, framework):
    student = framework.tensor(arrays["student"], requires_grad=True)
    teacher = framework.tensor(arrays["teacher"], requires_grad=True)
    loss = target(student, teacher, float(arrays["temperature"]))
    loss.backward(framework.tensor(arrays["grad"]))
    return {
        "loss": loss.detach().array,
        "gradient of the student": student.grad.array,
        "the teacher got a gradient": np.array(teacher.grad is not None and bool(teacher.grad.array.any())),
    }


def inputs_distillation(rng, n, classes, temperature, scale=1.0):
    return {
        "student": scale * rng.standard_normal((n, classes)),
        "teacher": scale * rng.standard_normal((n, classes)),
        "temperature": np.array(float(temperature)),
        "grad": np.asarray(rng.uniform(0.5, 2)),
    }


def draw_distillation(rng):
    return int(rng.integers(2, 5)), int(rng.integers(2, 5)), float(rng.choice([0.5, 2, 4])), 2.0


# 5.7 clip_grad_norm_


def probe_clip(target, arrays, framework):
    """Three parameters; `missing` says which has no gradient. The gradients are looked at where they were before."""
    parameters, grads = [], {}
    for i, name in enumerate(("first", "second", "third")):
        p = framework.tensor(np.zeros_like(arrays[name]), requires_grad=True)
        if i != arrays["missing"]:
            p.grad = grads[name] = framework.tensor(arrays[name])
        parameters.append(p)
    if arrays["handed over"] == "one tensor":
        given = parameters[0]
    else:
        given = (p for p in parameters) if arrays["handed over"] == "a generator" else parameters
    options = {} if arrays["norm_type"] == 2 else {"norm_type": float(arrays["norm_type"])}
    if arrays["error_if_nonfinite"]:
        outputs = {
            "refused with RuntimeError": raised(
                RuntimeError, lambda: target(given, float(arrays["max_norm"]), error_if_nonfinite=True)
            )
        }
    else:
        with np.errstate(invalid="ignore"):
            outputs = {"norm": target(given, float(arrays["max_norm"]), **options).array}
    return outputs | {f"gradient of the {name}": grad.array for name, grad in grads.items()}


def inputs_clip(rng, max_norm, norm_type=2.0, handed_over="a list", missing=-1, special=None, strict=False):
    arrays = {name: rng.standard_normal(shape) for name, shape in (("first", (2, 3)), ("second", (4,)), ("third", ()))}
    if special is not None:
        arrays["second"][1] = special
    return {name: np.asarray(array) for name, array in arrays.items()} | {
        "max_norm": np.array(float(max_norm)),
        "norm_type": np.array(float(norm_type)),
        "handed over": np.array(handed_over),
        "missing": np.array(missing),
        "error_if_nonfinite": np.array(strict),
    }


def draw_clip(rng):
    return (
        float(rng.choice([0.3, 1, 2, 20])),
        float(rng.choice([1, 2, 3, math.inf])),
        str(rng.choice(["a list", "a generator"])),
    )


# 5.8 geometric_mean, 5.9 normalize


def probe_differentiable(target, arrays, framework):
    """A function of one tensor, which may have eps: its output and its gradient, from a random beginning."""
    x = framework.tensor(arrays["x"], requires_grad=True)
    with np.errstate(all="ignore"):
        out = target(x, float(arrays["eps"])) if arrays["eps"] else target(x)
        out.backward(framework.tensor(arrays["grad"]))
    return {"output": out.detach().array, "gradient": x.grad.array}


def inputs_geometric(rng, shape, low=0.5, high=2.0):
    x = np.exp(rng.uniform(np.log(low), np.log(high), shape))
    return {"x": x, "eps": np.array(0.0), "grad": np.asarray(shape[-1] * rng.uniform(0.5, 2, shape[:-1]))}


def draw_geometric(rng):
    return ((int(rng.integers(1, 4)), int(rng.integers(1, 30))),)


def inputs_normalize(rng, shape, eps=0.0, scale=1.0, zero_rows=0):
    x = scale * rng.standard_normal(shape)
    x[:zero_rows] = 0
    return {"x": x, "eps": np.array(eps), "grad": rng.standard_normal(shape)}


def draw_normalize(rng):
    shape = tuple(rng.integers(1, 5, 2).tolist())
    return shape, float(rng.choice([0.05, 0.5])), 1.0, int(rng.random() < 0.5)


# 5.10 made_here


def probe_made_here(target, arrays, framework):
    inputs = [arrays[name] for name in ("first", "second") if name in arrays]
    return {"what was made": target(inputs, arrays["output"])}


def inputs_made_here(rng, output, first=(), second=None):
    """Random numbers, with these values in front."""
    names = {"first": first, "second": second, "output": output}
    return {name: laced(rng, values) for name, values in names.items() if values is not None}


def laced(rng, values):
    if values == "whole numbers":
        return rng.integers(0, 5, 4)
    array = rng.uniform(-1, 1, 4)
    array[: len(values)] = values
    return array.reshape(2, 2)


def draw_made_here(rng):
    kinds = [(), (math.nan,), (math.inf,), (-math.inf,), (math.inf, math.nan)]
    return tuple(kinds[i] for i in rng.choice(5, 3, p=[0.3, 0.15, 0.2, 0.2, 0.15]))
