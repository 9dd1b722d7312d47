"""Chapter 02: what the checks do with an answer, and where their arrays come from."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from autograder.checks.exercise import raised

# 2.1 numerical_gradient


def smooth(x, weights):
    """A number that depends on every element of x, and on all of them together."""
    return float((weights * np.sin(x)).sum() + 0.5 * x.sum() ** 2)


def probe_numerical(target, arrays, framework):
    def f(x):
        return smooth(x, arrays["weights"])

    if arrays["step"] == 0:
        return {"gradient": target(f, arrays["x"])}
    return {"gradient": target(f, arrays["x"], float(arrays["step"]))}


def inputs_numerical(rng, shape, step):
    """Step 0 stands for one that is left out."""
    x, weights = rng.uniform(-0.6, 0.6, shape), rng.uniform(0.5, 1.5, shape)
    return {"x": x, "weights": weights, "step": np.array(step, dtype=np.float64)}


def draw_numerical(rng):
    return tuple(rng.integers(1, 4, rng.integers(0, 4)).tolist()), float(rng.choice([0, 0.3, 0.1, 0.02]))


# 2.2 Multiply


def tensor_of(framework, array, requires_grad):
    """A tensor of chapter 01 that says whether its gradient is wanted."""
    kind = type("Tensor", (framework.Tensor,), {"requires_grad": bool(requires_grad)})
    return kind(array)


def probe_multiply(target, arrays, framework):
    a, b = (tensor_of(framework, arrays[name], arrays[f"{name} is wanted"]) for name in "ab")
    operation = target()
    product = operation.forward(a, b)
    if product is None:
        raise TypeError("forward returned None: give back the product, by `return`")
    outputs = {"product": product.array}
    outputs["arrays kept"] = np.array(sum(array is not None for array in operation.saved))
    grads = operation.backward(arrays["grad"])
    if not isinstance(grads, tuple) or len(grads) != 2:
        count = f" of {len(grads)}" if isinstance(grads, tuple | list) else ""
        raise TypeError(f"backward gives a tuple of two gradients, and this is a {type(grads).__name__}{count}")
    for name, grad in zip("ab", grads, strict=True):
        if arrays[f"{name} is wanted"]:
            outputs[f"gradient of {name}"] = grad
        else:
            outputs[f"gradient of {name} is None"] = np.array(grad is None)
    return outputs


def inputs_pair(rng, shape_a, shape_b, wanted="ab", dtype="float64"):
    """Two arrays that broadcast, with the gradient of what an operation on them gives."""
    arrays = {name: rng.uniform(0.5, 2, shape) for name, shape in (("a", shape_a), ("b", shape_b))}
    arrays["b"] *= rng.choice([-1.0, 1.0], shape_b)
    arrays["grad"] = rng.standard_normal(np.broadcast_shapes(shape_a, shape_b))
    return {name: array.astype(dtype) for name, array in arrays.items()} | flags(wanted)


def flags(wanted):
    return {f"{name} is wanted": np.array(name in wanted) for name in "ab"}


def draw_pair(rng):
    full = rng.integers(1, 4, rng.integers(0, 4)).tolist()
    short = [1 if rng.random() < 0.3 else n for n in full[rng.integers(0, len(full) + 1) :]]
    shapes = [tuple(full), tuple(short)]
    return *(shapes if rng.random() < 0.5 else shapes[::-1]), str(rng.choice(["ab", "ab", "a", "b"]))


# 2.3 unbroadcast


def probe_unbroadcast(target, arrays, framework):
    return {"gradient of the input": target(arrays["grad"], tuple(arrays["shape"].tolist()))}


def inputs_unbroadcast(rng, full, shape, dtype="float64"):
    return {"grad": rng.uniform(0.5, 1.5, full).astype(dtype), "shape": np.array(shape, dtype=np.int64)}


def draw_unbroadcast(rng):
    full = rng.integers(1, 5, rng.integers(0, 5)).tolist()
    return tuple(full), tuple(1 if rng.random() < 0.4 else n for n in full[rng.integers(0, len(full) + 1) :])


# 2.4 matmul_gradients


def probe_matmul(target, arrays, framework):
    """a is there for b's gradient, and b for a's."""
    a = arrays["a"] if arrays["b is wanted"] else None
    b = arrays["b"] if arrays["a is wanted"] else None
    grads = target(arrays["grad"], a, b)
    outputs = {}
    for name, grad in zip("ab", grads, strict=True):
        if arrays[f"{name} is wanted"]:
            outputs[f"gradient of {name}"] = grad
        else:
            outputs[f"gradient of {name} is None"] = np.array(grad is None)
    return outputs


def inputs_matmul(rng, n, k, m, stack=(), wanted="ab", dtype="float64"):
    arrays = {
        "grad": rng.standard_normal((*stack, n, m)),
        "a": rng.standard_normal((*stack, n, k)),
        "b": rng.standard_normal((*stack, k, m)),
    }
    return {name: array.astype(dtype) for name, array in arrays.items()} | flags(wanted)


def draw_matmul(rng):
    n, k, m = rng.integers(1, 5, 3).tolist()
    return n, k, m, tuple(rng.integers(1, 4, rng.integers(0, 3)).tolist()), str(rng.choice(["ab", "ab", "a", "b"]))


# 2.8 backward_in_parts


class Losses:
    """Makes the mean losses of a model y = x w, and notes what is done with them."""

    def __init__(self, w):
        self.w, self.gradient = w, np.zeros_like(w)
        self.calls = self.waiting = self.most_waiting = 0

    def loss_of(self, part):
        y = part @ self.w
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        return Loss(self, float((y**2).mean()), 2 * (part * y[:, None]).mean(0), 1)


class Loss:
    """A tensor of one element, as far as the exercise needs one."""

    def __init__(self, losses, value, gradient, parts):
        self.losses, self.value, self.gradient, self.parts = losses, value, gradient, parts

    def __mul__(self, factor):
        return Loss(self.losses, self.value * factor, self.gradient * factor, self.parts)

    def __truediv__(self, number):
        return self * (1 / number)

    def __add__(self, other):
        if isinstance(other, Loss):
            parts = self.parts + other.parts
            return Loss(self.losses, self.value + other.value, self.gradient + other.gradient, parts)
        return Loss(self.losses, self.value + other, self.gradient, self.parts)

    __rmul__, __radd__ = __mul__, __add__

    def backward(self):
        self.losses.gradient = self.losses.gradient + self.gradient
        self.losses.calls += 1
        self.losses.waiting -= self.parts

    def item(self):
        return self.value

    def __float__(self):
        return self.value

    def detach(self):
        return Loss(self.losses, self.value, 0 * self.gradient, 0)


def probe_parts(target, arrays, framework):
    losses = Losses(arrays["w"])
    parts = np.split(arrays["examples"], np.cumsum(arrays["lengths"])[:-1])
    mean = target(losses.loss_of, parts)
    return {
        "gradient": losses.gradient,
        "mean loss": mean,
        "calls of backward": np.array(losses.calls),
        "losses alive at once": np.array(losses.most_waiting),
    }


def inputs_parts(rng, *lengths):
    examples = rng.standard_normal((sum(lengths), 3)) * np.linspace(0.5, 1.5, sum(lengths))[:, None]
    return {"examples": examples, "lengths": np.array(lengths), "w": rng.standard_normal(3)}


def draw_parts(rng):
    return tuple(rng.integers(1, 6, rng.integers(2, 5)).tolist())


# 2.9 Switch


def probe_switch(target, arrays, framework):
    state = SimpleNamespace(enabled=bool(arrays["enabled"]))
    log = []
    SCENARIOS[str(arrays["scenario"])](target, state, bool(arrays["value"]), lambda: log.append(state.enabled))
    return {"what enabled was, step by step": np.array(log)}


def only_made(target, state, value, note):
    target(state, value)
    note()


def block(target, state, value, note):
    with target(state, value):
        note()
    note()


def block_that_raises(target, state, value, note):
    passed_on = False
    try:
        with target(state, value):
            note()
            raise KeyError("from inside the block")
    except KeyError:
        passed_on = True
    note()
    state.enabled = passed_on
    note()


def two_objects(target, state, value, note):
    with target(state, value):
        with target(state, not value):
            note()
        note()
    note()


def one_object_twice(target, state, value, note):
    switch = target(state, value)
    with switch:
        state.enabled = not value
        with switch:
            note()
        note()
    note()


def one_object_again(target, state, value, note):
    switch = target(state, value)
    with switch:
        note()
    state.enabled = not state.enabled
    with switch:
        note()
    note()


def decorated(target, state, value, note):
    @target(state, value)
    def countdown(n):
        note()
        if n:
            countdown(n - 1)
            note()

    note()
    countdown(2)
    note()


def changed_before_the_block(target, state, value, note):
    switch = target(state, value)
    state.enabled = not state.enabled
    with switch:
        note()
    note()


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        *(only_made, block, block_that_raises, two_objects, one_object_twice, one_object_again, decorated),
        changed_before_the_block,
    )
}


def inputs_switch(rng, scenario, enabled=True, value=False):
    return {"scenario": np.array(scenario), "enabled": np.array(enabled), "value": np.array(value)}


def draw_switch(rng):
    return str(rng.choice(list(SCENARIOS))), bool(rng.random() < 0.5), bool(rng.random() < 0.5)


# 2.10 unpack


def probe_unpack(target, arrays, framework):
    if arrays["nothing was saved"]:
        return {"None for None": np.array(target(None) is None)}
    storage = SimpleNamespace(version=int(arrays["version now"]), data=arrays["array"].ravel())
    kept = (arrays["array"].copy(), storage, int(arrays["version then"]))
    if storage.version != kept[2]:
        return {"refused with RuntimeError": raised(RuntimeError, target, kept)}
    array = target(kept)
    if isinstance(array, np.ndarray) and array.shape == kept[0].shape:
        kept[0][...] *= 2
    return {"the array, after the memory was doubled": array}


def inputs_unpack(rng, then, now, nothing=False):
    numbers = {"version then": then, "version now": now, "nothing was saved": nothing}
    return {"array": rng.uniform(0.5, 1.5, (2, 3)), **{name: np.array(value) for name, value in numbers.items()}}


def draw_unpack(rng):
    then = int(rng.integers(0, 2000))
    return then, then + int(rng.choice([0, 0, 1, 5]))


# 2.11 run_hooks


def probe_hooks(target, arrays, framework):
    """A factor that is nan belongs to a hook which only watches."""
    seen = []

    def hook_for(factor):
        def hook(grad):
            seen.append(grad.array.copy())
            return None if np.isnan(factor) else grad * float(factor)

        return hook

    after = target([hook_for(factor) for factor in arrays["factors"]], framework.Tensor(arrays["grad"].copy()))
    return {
        "gradient that goes on": None if after is None else after.array,
        "what each hook saw": np.array(seen),
    }


def inputs_hooks(rng, factors, shape=(3,)):
    return {"factors": np.array(factors, dtype=np.float64), "grad": rng.uniform(0.5, 1.5, shape)}


def draw_hooks(rng):
    factors = [float("nan") if rng.random() < 0.4 else float(rng.uniform(-2, 2)) for _ in range(rng.integers(0, 5))]
    return factors, tuple(rng.integers(1, 4, rng.integers(0, 3)).tolist())


# 2.12 project


def probe_projection(target, arrays, framework):
    matrix, claim = arrays["matrix"], float(arrays["claim"])

    def f(x):
        return np.sin(x @ matrix) + 0.1 * (x**2).sum()

    def vjp(x, u):
        return claim * ((u * np.cos(x @ matrix)) @ matrix.T + 0.2 * u.sum() * x)

    step = [float(arrays["step"])] if arrays["step"] else []
    given = [f, vjp, arrays["x"], arrays["u"], arrays["v"], *step]
    if arrays["x"].dtype.kind != "f":
        return {"refused with TypeError": raised(TypeError, target, *given)}
    numerical, analytic = target(*given)
    return {"numerical": numerical, "with vjp": analytic}


def inputs_projection(rng, n, m, step=0.0, claim=1.0, dtype="float64", rows=()):
    """Step 0 stands for one that is left out. `claim` is the factor by which vjp is wrong."""
    x = rng.integers(-3, 4, n) if dtype == "int64" else rng.uniform(-1, 1, (*rows, n))
    return {
        "x": x.astype(dtype),
        "matrix": rng.uniform(-1, 1, (n, m)),
        "u": rng.uniform(0.5, 1.5, (*rows, m)) * rng.choice([-1, 1], (*rows, m)),
        "v": rng.uniform(0.5, 1.5, (*rows, n)) * rng.choice([-1, 1], (*rows, n)),
        "step": np.array(step, dtype=np.float64),
        "claim": np.array(claim, dtype=np.float64),
    }


def draw_projection(rng):
    return *rng.integers(1, 5, 2).tolist(), float(rng.choice([0, 0.2, 0.05])), float(rng.choice([1, 1, 0.5, 2]))
