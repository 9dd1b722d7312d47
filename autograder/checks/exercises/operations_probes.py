"""Chapter 03: what the checks do with an answer, and where their arrays come from."""

from __future__ import annotations

import numpy as np

AGAIN = "gradient, asked for a second time"


def node(target, *tensors):
    """One use of an operation, as the machine makes it."""
    operation = target()
    operation.targets = list(tensors)
    return operation


def size(rng, *choices):
    return int(rng.choice(choices))


def random_shape(rng, axes):
    return tuple(rng.integers(1, 5, axes).tolist())


# 3.1 Sigmoid


def probe_sigmoid(target, arrays, framework):
    t = framework.tensor(arrays["x"], requires_grad=True)
    operation = node(target, t)
    output = operation.forward(t)
    if output is None:
        raise TypeError("forward returned None: give back the output, by `return`")
    outputs = {"output": output.array}
    outputs["arrays kept"] = np.array(sum(array is not None for array in operation.saved))
    return outputs | {"gradient": operation.backward(arrays["grad"])}


def inputs_elements(rng, shape, scale=1.0, dtype="float64"):
    x, grad = scale * rng.uniform(-2, 2, shape), rng.standard_normal(shape)
    return {"x": np.asarray(x, dtype), "grad": np.asarray(grad, dtype)}


def draw_elements(rng):
    return random_shape(rng, rng.integers(0, 4)), float(rng.choice([1, 4]))


# 3.2 Maximum


def probe_maximum(target, arrays, framework):
    a, b = (framework.tensor(arrays[name], requires_grad=True) for name in "ab")
    operation = node(target, a, b)
    operation.forward(a, b)
    to_a, to_b = operation.backward(arrays["grad"])
    return {"gradient of a": to_a, "gradient of b": to_b}


def inputs_maximum(rng, shape_a, shape_b, nan=False, dtype="float64"):
    """Small whole numbers, so that many are equal; with nan, one in each of a and b."""
    arrays = {name: rng.integers(-1, 2, shape).astype(dtype) for name, shape in (("a", shape_a), ("b", shape_b))}
    if nan:
        arrays["a"].flat[0], arrays["b"].flat[-1] = np.nan, np.nan
    return arrays | {"grad": np.asarray(rng.uniform(0.5, 2, np.broadcast_shapes(shape_a, shape_b)), dtype)}


def draw_maximum(rng):
    full = random_shape(rng, rng.integers(1, 4))
    short = tuple(1 if rng.random() < 0.3 else n for n in full[rng.integers(0, len(full)) :])
    return (full, short) if rng.random() < 0.5 else (short, full)


# 3.3 var_gradient and 3.4 share_evenly: over axes


def kept(shape, dims):
    return tuple(1 if axis in dims else n for axis, n in enumerate(shape))


def dims_from(arrays):
    return tuple(arrays["dims"].tolist())


def draw_dims(rng):
    shape = tuple(rng.integers(2, 5, rng.integers(1, 4)).tolist())
    count = rng.integers(1, len(shape) + 1)
    return shape, tuple(sorted(rng.choice(len(shape), count, replace=False).tolist()))


def probe_var(target, arrays, framework):
    correction = int(arrays["correction"])
    with np.errstate(all="ignore"):
        return {"gradient": target(arrays["grad"], arrays["x"], dims_from(arrays), correction)}


def inputs_var(rng, shape, dims, correction=1, shift=0.0, dtype="float64"):
    x, grad = rng.standard_normal(shape) + shift, rng.uniform(0.5, 2, kept(shape, dims))
    arrays = {"x": x.astype(dtype), "grad": grad.astype(dtype)}
    return arrays | {"dims": np.array(dims, np.int64), "correction": np.array(correction)}


def draw_var(rng):
    return *draw_dims(rng), size(rng, 0, 1)


def probe_ties(target, arrays, framework):
    with np.errstate(all="ignore"):
        return {"gradient": target(arrays["grad"], arrays["x"], arrays["extreme"], dims_from(arrays))}


def inputs_ties(rng, shape, dims, highest=3, smallest=False, nan=False, dtype="float64"):
    """Whole numbers below `highest`: the lower, the more ties. With nan, the first element is nan."""
    x = rng.integers(0, highest, shape).astype(dtype)
    if nan:
        x.flat[0] = np.nan
    extreme = (np.minimum if smallest else np.maximum).reduce(x, dims, keepdims=True)
    grad = rng.uniform(0.5, 2, extreme.shape).astype(dtype)
    return {"x": x, "extreme": extreme, "grad": grad, "dims": np.array(dims, np.int64)}


def draw_ties(rng):
    return *draw_dims(rng), size(rng, 2, 3, 5), bool(rng.random() < 0.3)


# 3.5 products_of_others


def probe_prod(target, arrays, framework):
    return {"products": target(arrays["x"])}


def inputs_prod(rng, shape, zeros=(), dtype="float64"):
    """`zeros` holds places in reading order that become 0."""
    x = rng.uniform(0.5, 2, shape) * rng.choice([-1.0, 1.0], shape)
    for place in zeros:
        x.flat[place] = 0
    return {"x": x.astype(dtype)}


def draw_prod(rng):
    shape = random_shape(rng, rng.integers(1, 4))
    total = int(np.prod(shape))
    return shape, tuple(rng.choice(total, rng.integers(0, min(3, total + 1)), replace=False).tolist())


# 3.6 cumsum_gradient


def probe_cumsum(target, arrays, framework):
    return {"gradient": target(arrays["grad"], int(arrays["dim"]))}


def inputs_cumsum(rng, shape, dim, dtype="float64"):
    return {"grad": rng.standard_normal(shape).astype(dtype), "dim": np.array(dim)}


def draw_axis(rng):
    shape = tuple(rng.integers(2, 5, rng.integers(1, 4)).tolist())
    return shape, size(rng, *range(len(shape)))


# 3.7 Product


def probe_matmul(target, arrays, framework):
    """Through the machine, which sums what was broadcast and refuses a gradient of another shape."""

    def product(a, b):
        return target().forward(a, b)

    product.operation = target
    a, b = (framework.tensor(arrays[name], requires_grad=bool(arrays[f"{name} is wanted"])) for name in "ab")
    out = framework.Tensor.apply(product, a, b)
    out.backward(framework.tensor(arrays["grad"]))
    return {f"gradient of {name}": t.grad.array for name, t in (("a", a), ("b", b)) if t.requires_grad}


def inputs_matmul(rng, shape_a, shape_b, wanted="ab", dtype="float64"):
    a, b = rng.standard_normal(shape_a), rng.standard_normal(shape_b)
    grad = np.asarray(rng.uniform(0.5, 2, (a @ b).shape))
    arrays = {"a": a.astype(dtype), "b": b.astype(dtype), "grad": grad.astype(dtype)}
    return arrays | {f"{name} is wanted": np.array(name in wanted) for name in "ab"}


def draw_matmul(rng):
    n, k, m = rng.integers(1, 5, 3).tolist()
    stack = random_shape(rng, rng.integers(0, 3))
    left = (k,) if rng.random() < 0.25 else (*stack, n, k)
    right = (k,) if rng.random() < 0.25 else (*(stack if rng.random() < 0.5 else ()), k, m)
    return left, right


# 3.8 split_heads_gradient


def probe_heads(target, arrays, framework):
    return {"gradient": target(arrays["grad"])}


def inputs_heads(rng, shape, dtype="float64"):
    return {"grad": rng.standard_normal(shape).astype(dtype)}


def draw_heads(rng):
    return (random_shape(rng, 4),)


# 3.9 repeat_interleave_gradient


def probe_repeat(target, arrays, framework):
    return {"gradient": target(arrays["grad"], int(arrays["repeats"]), int(arrays["dim"]))}


def inputs_repeat(rng, shape, repeats, dim, dtype="float64"):
    """`shape` is that of x, before it is repeated."""
    shape = [n * repeats if axis == dim else n for axis, n in enumerate(shape)]
    return {
        "grad": rng.standard_normal(shape).astype(dtype),
        "repeats": np.array(repeats),
        "dim": np.array(dim),
    }


def draw_repeat(rng):
    shape, dim = draw_axis(rng)
    return shape, size(rng, 2, 3), dim


# 3.10 index_gradient


def key_from(arrays):
    """Axes without an array of their own are taken whole; a mask covers as many axes as it has."""
    key, axis = [], 0
    while axis < len(arrays["shape"]):
        places = arrays.get(f"key for axis {axis}")
        key.append(slice(None) if places is None else places)
        axis += places.ndim if places is not None and places.dtype == bool else 1
    return tuple(key)


def probe_index(target, arrays, framework):
    return {"gradient": target(arrays["grad"], tuple(arrays["shape"].tolist()), key_from(arrays))}


def inputs_index(rng, shape, keys, dtype="float64"):
    """`keys` holds nested lists by axis."""
    arrays = {"shape": np.array(shape, np.int64)}
    for axis, places in keys.items():
        places = np.array(places)
        arrays[f"key for axis {axis}"] = places if places.dtype == bool else places.astype(np.int64)
    taken = np.empty(shape)[key_from(arrays)]
    return arrays | {"grad": rng.uniform(0.5, 2, taken.shape).astype(dtype)}


def draw_index(rng):
    shape = tuple(rng.integers(2, 5, rng.integers(1, 4)).tolist())
    axis, count = size(rng, *range(len(shape))), int(rng.integers(2, 7))
    return shape, {axis: rng.integers(-shape[axis], shape[axis], count).tolist()}


# 3.11 Softmax and 3.12 LogSoftmax


def probe_along(target, arrays, framework):
    t = framework.tensor(arrays["x"], requires_grad=True)
    operation = node(target, t)
    operation.forward(t, dim=int(arrays["dim"]))
    first = np.array(operation.backward(arrays["grad"]))
    return {"gradient": first, AGAIN: operation.backward(arrays["grad"])}


def inputs_along(rng, shape, dim, scale=1.0, dtype="float64"):
    return {
        "x": np.asarray(scale * rng.standard_normal(shape), dtype),
        "grad": np.asarray(rng.uniform(0.5, 2, shape), dtype),
        "dim": np.array(dim),
    }


def draw_along(rng):
    shape, dim = draw_axis(rng)
    return shape, dim - len(shape) * size(rng, 0, 1)
