"""Chapter 10: what the checks do with an answer that scales and steps, and where their arrays come from."""

from __future__ import annotations

import numpy as np

F16, F32 = np.float16, np.float32

# 10.6 master_step


def probe_master(target, arrays, framework):
    weight, master = arrays["weight"].copy(), arrays["master"].copy()
    weights, masters = [], []
    for gradient in arrays["gradients"]:
        target(weight, master, gradient, float(arrays["lr"]), float(arrays["scale"]))
        weights.append(weight.astype(np.float64))
        masters.append(master.astype(np.float64))
    return {
        "weight after each step": np.array(weights),
        "master after each step, less where it began, in units of lr": (np.array(masters) - arrays["master"])
        / float(arrays["lr"]),
    }


def inputs_master(rng, shape=(3,), steps=3, lr=0.5, scale=1024.0, size=1.0, same=False):
    """Gradients of about this size, scaled."""
    master = rng.uniform(0.5, 1, shape).astype(F32)
    gradients = rng.uniform(0.5, 1.5, (1 if same else steps, *shape)) * rng.choice([-1, 1], shape)
    return {
        "weight": master.astype(F16),
        "master": master,
        "gradients": np.broadcast_to(size * scale * gradients, (steps, *shape)).astype(F16),
        "lr": np.array(lr),
        "scale": np.array(scale),
    }


def draw_master(rng):
    shape = tuple(rng.integers(1, 4, rng.integers(0, 3)).tolist())
    return shape, int(rng.integers(1, 4)), float(rng.uniform(0.2, 1)), float(2.0 ** rng.integers(4, 12)), 0.3


# 10.7 unscale


def probe_unscale(target, arrays, framework):
    sizes = arrays["sizes"].tolist()
    parts = [part.copy() for part in np.split(arrays["flat"], np.cumsum(sizes)[:-1])]
    given = iter(parts) if arrays["from a generator"] else parts
    found = target(given, float(arrays["scale"]))
    if not isinstance(found, bool | np.bool_):
        return {"found": found}
    return {"found": np.array(found), "gradients afterwards": np.concatenate(parts).astype(np.float64)}


def inputs_unscale(rng, sizes, special=(), scale=1024.0, size=1.0, generator=False):
    """Random gradients; `special` has (place, value) for those that are not."""
    flat = size * scale * rng.standard_normal(sum(sizes))
    for place, value in special:
        flat[place] = value
    return {
        "flat": flat.astype(F32),
        "sizes": np.array(sizes),
        "scale": np.array(scale),
        "from a generator": np.array(generator),
    }


def draw_unscale(rng):
    sizes = rng.integers(1, 5, rng.integers(1, 4)).tolist()
    special = (
        [(int(rng.integers(0, sum(sizes))), float(rng.choice([np.inf, -np.inf, np.nan])))] if rng.random() < 0.5 else []
    )
    return sizes, special, float(2.0 ** rng.integers(-3, 10)), 1.0, bool(rng.random() < 0.5)


# 10.8 next_scale


def probe_scale(target, arrays, framework):
    scale, good = float(arrays["scale"]), int(arrays["good_steps"])
    options = {name: float(arrays[name]) for name in ("growth_factor", "backoff_factor")}
    scales, counts = [], []
    for found in arrays["found"].tolist():
        scale, good = target(scale, good, bool(found), **options, growth_interval=int(arrays["growth_interval"]))
        scales.append(float(scale) / float(arrays["scale"]))
        counts.append(int(good))
    return {"scale after each step, in units of the first": np.array(scales), "good steps in a row": np.array(counts)}


def inputs_scale(rng, found, interval=3, scale=1024.0, growth=2.0, backoff=0.5, good=0):
    return {
        "found": np.array(found, dtype=bool),
        "growth_interval": np.array(interval),
        "scale": np.array(scale),
        "growth_factor": np.array(growth),
        "backoff_factor": np.array(backoff),
        "good_steps": np.array(good),
    }


def draw_scale(rng):
    found = (rng.random(12) < 0.2).tolist()
    return found, int(rng.integers(1, 5)), 2.0 ** int(rng.integers(2, 16)), float(rng.choice([2, 4])), 0.5


# 10.9 Scaler, 10.10 scaled_step


class Descent:
    """An optimizer for the check: descent that adds up what it was given, and counts."""

    def __init__(self, p):
        self.param_groups = [{"params": [p]}]
        self.p, self.steps, self.sum = p, 0, np.zeros(p.shape)

    def zero_grad(self, set_to_none=True):
        self.p.grad = None

    def step(self, closure=None):
        self.steps += 1
        self.sum = self.sum + self.p.grad.array
        self.p.detach().sub_(self.p.grad * 0.25)
        return "stepped"


def arrive(p, slope, scale, framework):
    """Leave a gradient as backward would from a scaled loss."""
    gradient = np.asarray(slope * np.asarray(scale), p.dtype)
    p.grad = framework.tensor(gradient)


def probe_scaler(target, arrays, framework):
    """Calls in the order of the case, on two optimizers, and what each left."""
    scaler = target(
        init_scale=float(arrays["init_scale"]), growth_interval=int(arrays["growth_interval"]), growth_factor=4.0
    )
    points = [framework.tensor(p.copy(), requires_grad=True) for p in arrays["points"]]
    optimizers = [Descent(p) for p in points]
    one, slopes = framework.tensor(np.ones(1)), iter(arrays["slopes"])
    said, places, scales, grads = [], [], [], []
    for call in arrays["calls"].tolist():
        name, _, number = call.partition(" ")
        which = int(number or 0)
        try:
            if name == "grad":
                scale = float(scaler.scale(one).array[0])
                arrive(points[which], next(slopes), scale, framework)
                result = None
            elif name == "update":
                result = scaler.update()
            else:
                result = getattr(scaler, name)(optimizers[which])
            said.append("-" if result is None else str(result))
        except RuntimeError as error:
            if isinstance(error, NotImplementedError):
                raise
            said.append("RuntimeError")
        places.append([*np.concatenate([p.detach().array for p in points]), *[o.steps for o in optimizers]])
        scales.append(float(scaler.scale(one).array[0]))
        grads.append([float(p.grad.array[0]) if p.grad is not None else 0.0 for p in points])
    return {
        "what each call returned or raised": np.array(said),
        "parameters and numbers of steps after each call": np.array(places, dtype=np.float64),
        "scale after each call": np.array(scales),
        "first gradient of each optimizer after each call": np.array(grads),
    }


def inputs_scaler(rng, calls, bad=(), init_scale=8.0, growth_interval=100):
    """`bad` has the places of gradients that are inf or nan, with the value."""
    calls = calls.split(", ")
    slopes = rng.standard_normal((sum(call.startswith("grad") for call in calls), 2))
    for place, value in bad:
        slopes[place, -1] = value
    return {
        "calls": np.array(calls, dtype="U12"),
        "slopes": slopes,
        "points": rng.standard_normal((2, 2)),
        "init_scale": np.array(init_scale),
        "growth_interval": np.array(growth_interval),
    }


def draw_scaler(rng):
    calls, bad = [], []
    for n in range(4):
        calls.append("grad 0")
        if rng.random() < 0.3:
            bad.append((n, float(rng.choice([np.inf, np.nan]))))
        calls += ["unscale_ 0"] * int(rng.random() < 0.5) + ["step 0", "update"]
    return ", ".join(calls), bad, 2.0 ** int(rng.integers(0, 5)), int(rng.integers(1, 4))


class Watched:
    """A scaler for the check, which writes down what it is asked."""

    def __init__(self, scale, interval):
        self.current, self.interval, self.good, self.calls = scale, interval, 0, []
        self.found = None

    def get_scale(self):
        return self.current

    def scale(self, loss):
        self.calls.append("scale")
        return loss * self.current

    def unscale_(self, optimizer):
        if self.found is not None:
            raise RuntimeError("unscale_() was called twice")
        self.calls.append("unscale_")
        g = optimizer.p.grad
        self.found = not np.isfinite(g.array).all()
        g.mul_(1 / self.current)

    def step(self, optimizer):
        if self.found is None:
            self.unscale_(optimizer)
        self.calls.append("step")
        return None if self.found else optimizer.step()

    def update(self):
        self.calls.append("update")
        if self.found is None:
            raise RuntimeError("update() before step()")
        self.good = 0 if self.found else self.good + 1
        if self.found:
            self.current /= 2
        elif self.good == self.interval:
            self.current, self.good = self.current * 2, 0
        self.found = None


class Schedule:
    def __init__(self):
        self.taken = 0

    def step(self):
        self.taken += 1


def probe_step(target, arrays, framework):
    w = framework.tensor(arrays["w"].copy(), requires_grad=True)
    w.grad = framework.tensor(arrays["left over"])
    optimizer, schedule = Descent(w), Schedule()
    scaler = Watched(float(arrays["scale"]), int(arrays["growth_interval"]))
    seen, taken = [], []
    for factor in arrays["factors"]:

        def loss_of(factor=factor):
            x, y = framework.tensor(arrays["x"] * factor), framework.tensor(arrays["y"])
            return ((x @ w - y) ** 2).mean()

        with np.errstate(all="ignore"):  # an overflow is part of the case
            returned = target(loss_of, optimizer, scaler, [w], float(arrays["max_norm"]), schedule)
        if returned is None:
            return {"losses": None}
        loss, moved = returned
        taken.append(moved)
        seen.append([float(loss), *w.detach().array.tolist(), optimizer.steps, schedule.taken, scaler.current])
    if not all(isinstance(moved, bool | np.bool_) for moved in taken):
        return {"whether the step was taken": taken[0]}
    found = np.array(seen)
    return {
        "losses": found[:, 0],
        "whether the step was taken": np.array(taken),
        "w after each step": found[:, 1:-3],
        "steps of the optimizer and of the schedule": found[:, -3:-1].astype(np.int64),
        "scale after each step": found[:, -1],
    }


def inputs_step(rng, factors=(1, 1, 1), max_norm=100.0, scale=16.0, interval=100, left_over=0.0):
    """A factor of 1e200 in the inputs makes an overflow of that step's gradient."""
    return {
        "w": rng.standard_normal(3),
        "left over": left_over * rng.uniform(0.5, 1, 3),
        "x": rng.standard_normal((4, 3)),
        "y": rng.standard_normal(4),
        "factors": np.array(factors, dtype=float),
        "max_norm": np.array(float(max_norm)),
        "scale": np.array(float(scale)),
        "growth_interval": np.array(interval),
    }


def draw_step(rng):
    factors = np.where(rng.random(5) < 0.3, 1e200, 1).tolist()
    return factors, float(rng.choice([0.5, 100])), 2.0 ** int(rng.integers(2, 8)), int(rng.integers(1, 4))
