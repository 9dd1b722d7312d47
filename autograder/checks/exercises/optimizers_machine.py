"""Chapter 06: what the checks do with an answer that keeps groups and memories, and where their arrays come from."""

from __future__ import annotations

import numpy as np

from autograder.checks.exercise import raised

# 6.5 complete_group


def probe_group(target, arrays, framework):
    """Six parameters, named by their place; -1 stands for a number among them and -2 for a tensor that is no leaf."""
    leaves = [framework.tensor(np.ones(2), requires_grad=True) for _ in range(6)]
    strange = {-1: 3.0, -2: leaves[0] * 2}
    chosen = [strange.get(i) if i < 0 else leaves[i] for i in arrays["params"].tolist()]
    handed = str(arrays["handed over"])
    given = chosen[0] if handed == "one tensor" else (p for p in chosen) if handed == "a generator" else tuple(chosen)
    settings = {str(name): float(value) for name, value in zip(arrays["settings"], arrays["values"], strict=True)}
    group, defaults = {"params": given, **settings}, {"lr": 0.1, "weight_decay": 0.5, "maximize": False}
    others = [{"params": [leaves[i] for i in arrays["elsewhere"].tolist()], "lr": 9.0}]
    if str(arrays["refused with"]):
        error = {"TypeError": TypeError, "ValueError": ValueError}[str(arrays["refused with"])]
        return {f"refused with {error.__name__}": raised(error, target, group, defaults, others)}
    result = target(group, defaults, others)
    places = [next(i for i, leaf in enumerate(leaves) if leaf is p) for p in result["params"]]
    defaults["lr"] = group["weight_decay"] = -1.0
    return {
        "params is a list": np.array(type(result["params"]) is list),
        "parameters": np.array(places),
        "settings": np.array([float(result[name]) for name in ("lr", "weight_decay", "maximize")]),
        "how many entries": np.array(len(result)),
        "the group handed over still has its own params": np.array(group["params"] is given),
    }


def inputs_group(rng, params, handed_over="a tuple", settings=(), elsewhere=(), refused=""):
    return {
        "params": np.array(params, dtype=np.int64),
        "handed over": np.array(handed_over),
        "settings": np.array(settings, dtype="U20"),
        "values": rng.uniform(0.5, 2, len(settings)),
        "elsewhere": np.array(elsewhere, dtype=np.int64),
        "refused with": np.array(refused),
    }


def draw_group(rng):
    order = rng.permutation(6)
    count = int(rng.integers(1, 4))
    names = [name for name in ("lr", "weight_decay", "maximize") if rng.random() < 0.5]
    return order[:count].tolist(), str(rng.choice(["a tuple", "a generator"])), names, order[count:].tolist()


# 6.6 step_all


def probe_step_all(target, arrays, framework):
    """Several steps with an update that counts and sums in its memory, and writes everything down."""
    leaves = [framework.tensor(np.full(2, float(i)), requires_grad=True) for i in range(len(arrays["group of"]))]
    groups = [
        {"params": [p for p, at in zip(leaves, arrays["group of"], strict=True) if at == i], "maximize": bool(flag)}
        for i, flag in enumerate(arrays["maximize"])
    ]
    state, log = {}, []

    def update(p, g, memory, group):
        memory["sum"] = memory.get("sum", 0) + np.asarray(g)
        log.append(
            [float(p.detach().array[0]), *memory["sum"], next(i for i, own in enumerate(groups) if own is group)]
        )

    for step, gradients_now in enumerate(arrays["gradients"]):
        for p, g, there in zip(leaves, gradients_now, arrays["there"][step], strict=True):
            p.grad = framework.tensor(g) if there else None
        target(groups, state, update)
    kept = [p.grad.array if p.grad is not None else np.zeros(2) for p in leaves]
    return {
        "calls: parameter, sum of its gradients, group": np.array(log).reshape(-1, 4),
        "memories kept": np.array([float("sum" in state.get(p, {})) for p in leaves]),
        "gradients afterwards": np.array(kept),
    }


def inputs_step_all(rng, group_of, maximize, there):
    return {
        "group of": np.array(group_of),
        "maximize": np.array(maximize),
        "there": np.array(there),
        "gradients": rng.standard_normal((len(there), len(group_of), 2)),
    }


def draw_step_all(rng):
    groups, count = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    there = rng.random((3, count)) < 0.7
    return rng.integers(0, groups, count).tolist(), (rng.random(groups) < 0.4).tolist(), there.tolist()


# 6.7 pack_state, 6.8 unpack_state


def made_groups(arrays, framework):
    """Groups of parameters of one element, which says their number, with the settings of their group."""
    groups, count = [], 0
    for size, lr in zip(arrays["sizes"].tolist(), arrays["lr"].tolist(), strict=True):
        params = [framework.tensor([float(count + i)], requires_grad=True) for i in range(size)]
        groups.append({"params": params, "lr": lr})
        count += size
    return groups


def probe_pack(target, arrays, framework):
    groups = made_groups(arrays, framework)
    params = [p for group in groups for p in group["params"]]
    state = {}
    for i in arrays["moved"].tolist():
        state[params[i]] = {"step": i + 1, "m": framework.tensor(arrays["memory"][i])}
    packed = target(groups, state)
    for memory in state.values():
        memory["m"].mul_(2.0)
    order = sorted(packed["state"])
    lists = [group["params"] for group in packed["param_groups"]]
    return {
        "numbers with a memory": np.array(order, dtype=np.int64),
        "steps": np.array([packed["state"][i]["step"] for i in order], dtype=np.int64),
        "memories, after they were doubled": np.array([packed["state"][i]["m"].array for i in order]),
        "numbers in the groups": np.array([int(i) for numbers in lists for i in numbers], dtype=np.int64),
        "sizes of the groups": np.array([len(numbers) for numbers in lists]),
        "settings": np.array([group["lr"] for group in packed["param_groups"]]),
        "the groups still hold their parameters": np.array(
            all(any(p is own for own in params) for group in groups for p in group["params"])
        ),
    }


def inputs_pack(rng, sizes, moved):
    count = sum(sizes)
    return {
        "sizes": np.array(sizes, dtype=np.int64),
        "lr": rng.uniform(0.5, 2, len(sizes)),
        "moved": np.array(moved, dtype=np.int64),
        "memory": rng.uniform(0.5, 2, (count, 2)),
    }


def draw_pack(rng):
    sizes = rng.integers(1, 4, rng.integers(1, 4)).tolist()
    count = sum(sizes)
    return sizes, rng.permutation(count)[: rng.integers(1, count + 1)].tolist()


def probe_unpack(target, arrays, framework):
    groups = made_groups(arrays | {"lr": -np.ones(len(arrays["sizes"]))}, framework)
    params = [p for group in groups for p in group["params"]]
    saved = saved_state(arrays, framework)
    if arrays["to be refused"]:
        return {"refused with ValueError": raised(ValueError, target, saved, groups)}
    new_groups, state = target(saved, groups)
    found = [(i, state[p]) for i, p in enumerate(params) if p in state]
    steps = [memory["step"] for _, memory in found]
    for _, memory in found:
        memory["m"].mul_(2.0)
        memory["step"] += 10
    lists = [group["params"] for group in new_groups]
    return {
        "parameters with a memory": np.array([i for i, _ in found], dtype=np.int64),
        "their steps": np.array(steps, dtype=np.int64),
        "their memories, after they were doubled": np.array([memory["m"].array for _, memory in found]),
        "what was saved, after that": np.array([saved["state"][i]["m"].array for i in sorted(saved["state"])]),
        "the saved steps, after 10 more": np.array(
            [saved["state"][i]["step"] for i in sorted(saved["state"])], np.int64
        ),
        "parameters in the groups": np.array([int(p.detach().array[0]) for group in lists for p in group]),
        "they are those that are here": np.array(all(any(p is own for own in params) for g in lists for p in g)),
        "sizes of the groups": np.array([len(group) for group in lists]),
        "settings": np.array([group["lr"] for group in new_groups]),
        "numbers in what was saved": np.array(
            [int(i) for group in saved["param_groups"] for i in group["params"]], dtype=np.int64
        ),
    }


def saved_state(arrays, framework):
    """What pack_state has made in another process."""
    sizes, start, groups = arrays["saved sizes"].tolist(), 0, []
    for size, lr in zip(sizes, arrays["lr"].tolist(), strict=False):
        groups.append({"lr": lr, "params": list(range(start, start + size))})
        start += size
    memories = {i: {"step": i + 1, "m": framework.tensor(arrays["memory"][i])} for i in arrays["moved"].tolist()}
    return {"state": memories, "param_groups": groups}


def inputs_unpack(rng, sizes, moved, saved_sizes=None):
    saved_sizes = sizes if saved_sizes is None else saved_sizes
    arrays = inputs_pack(rng, sizes if sum(sizes) >= sum(saved_sizes) else saved_sizes, moved)
    arrays["sizes"], arrays["saved sizes"] = np.array(sizes), np.array(saved_sizes)
    arrays["lr"] = rng.uniform(0.5, 2, max(len(sizes), len(saved_sizes)))
    return arrays | {"to be refused": np.array(list(sizes) != list(saved_sizes))}


# 6.9 training_step


class Descent:
    """An optimizer for the check: plain descent with a weight on the gradient of the step before."""

    def __init__(self, p):
        self.p, self.before = p, 0.0

    def zero_grad(self, set_to_none=True):
        self.p.grad = None

    def step(self, closure=None):
        if self.p.grad is not None:
            g = self.p.grad.array
            self.p.detach().sub_(self.p.grad * 0.1 + 0.02 * self.before)
            self.before = float(g.sum())


def probe_training_step(target, arrays, framework):
    w = framework.tensor(arrays["w"], requires_grad=True)
    w.grad = framework.tensor(arrays["left over"])
    optimizer, seen = Descent(w), []
    parts = np.split(arrays["examples"], np.cumsum(arrays["lengths"])[:-1])

    def loss_of(part):
        x, y = framework.tensor(part[:, :-1]), framework.tensor(part[:, -1])
        return ((x @ w - y) ** 2).mean()

    for _ in range(3):
        loss, norm = target(optimizer, [w], loss_of, parts, float(arrays["max_norm"]))
        seen.append([float(loss), float(norm), *w.detach().array.tolist()])
    found = np.array(seen)
    return {"losses": found[:, 0], "norms": found[:, 1], "w after each step": found[:, 2:]}


def inputs_training_step(rng, lengths, max_norm=100.0, left_over=0.0):
    examples = rng.standard_normal((sum(lengths), 4))
    examples[:, -1] += np.linspace(0, 2, len(examples))
    return {
        "w": rng.standard_normal(3),
        "left over": left_over * rng.uniform(0.5, 1, 3),
        "examples": examples,
        "lengths": np.array(lengths),
        "max_norm": np.array(float(max_norm)),
    }


def draw_training_step(rng):
    return rng.integers(1, 6, rng.integers(1, 4)).tolist(), float(rng.choice([0.5, 1, 100])), float(rng.choice([0, 1]))
