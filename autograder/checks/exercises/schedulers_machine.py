"""Chapter 07: what the checks do with a scheduler and with a training loop around one."""

from __future__ import annotations

import warnings

import numpy as np

from autograder.checks.exercise import raised

EVENTS = {"o": "optimizer", "s": "scheduler"}
"""Who takes a step, in a case of 7.5."""


# 7.5 LRScheduler


def kinds(base):
    """Two schedules upon the class of an answer: one is a function of the step, one changes the rate that it finds."""

    class Table(base):
        def __init__(self, optimizer, table, last_epoch=-1):
            self.table = table
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            return [lr * self.table[self.last_epoch] for lr in self.base_lrs]

    class Change(Table):
        def get_lr(self):
            return [group["lr"] * self.table[self.last_epoch] for group in self.optimizer.param_groups]

    return {"table": Table, "change": Change}


def probe_scheduler(target, arrays, framework):
    kind = kinds(target)[str(arrays["kind"])]
    optimizer, table = optimizer_of(arrays["lr"], arrays["initial_lr"], framework), arrays["table"].tolist()
    last = {"last_epoch": int(arrays["last_epoch"])} if arrays["last_epoch"] >= 0 else {}
    if arrays["to be refused"]:
        return {"refused with KeyError": raised(KeyError, lambda: kind(optimizer, table, **last))}
    for _ in range(int(arrays["steps before"])):
        optimizer.step()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scheduler = kind(optimizer, table, **last)
        found = watch(scheduler, optimizer, arrays["events"].tolist(), caught)
    return found | loaded(scheduler, kind, optimizer_of(2 * arrays["lr"], arrays["initial_lr"], framework), table)


def optimizer_of(lrs, initial_lrs, framework):
    """SGD whose groups have one parameter each; an initial_lr of 0 stands for a group without one."""
    groups = [{"params": [framework.tensor([1.0], requires_grad=True)], "lr": lr} for lr in lrs.tolist()]
    optimizer = framework.optim.SGD(groups)
    for group, initial in zip(optimizer.param_groups, initial_lrs.tolist(), strict=True):
        group["params"][0].grad = framework.tensor([0.5])
        if initial:
            group["initial_lr"] = initial
    return optimizer


def watch(scheduler, optimizer, events, caught):
    """The rates after the constructor and after every event, and how often there was a warning by then."""
    rows, last, epochs, warned = [], [], [], []
    for event in [None, *events]:
        if event == "optimizer":
            optimizer.step()
        elif event == "scheduler":
            scheduler.step()
        rows.append([float(group["lr"]) for group in optimizer.param_groups])
        last.append([float(lr) for lr in scheduler.get_last_lr()])
        epochs.append(int(scheduler.last_epoch))
        warned.append(len(caught))
    return {
        "rates in the groups": np.array(rows),
        "get_last_lr()": np.array(last),
        "last_epoch": np.array(epochs),
        "warnings by then": np.array(warned),
        "initial_lr": np.array([float(group["initial_lr"]) for group in optimizer.param_groups]),
        "base_lrs": np.array([float(lr) for lr in scheduler.base_lrs]),
    }


def loaded(scheduler, kind, other, table):
    """What is saved, and how a scheduler around another optimizer goes on with it."""
    saved = scheduler.state_dict()
    with_optimizer = "optimizer" in saved
    second = kind(other, [1.0, *table])
    before = [float(group["lr"]) for group in other.param_groups]
    second.load_state_dict(saved)
    after = [float(group["lr"]) for group in other.param_groups]
    still_there = getattr(second, "optimizer", None) is other
    second.optimizer = other
    other.step()
    second.step()
    saved["last_epoch"] = 1000
    return {
        "the optimizer is saved": np.array(with_optimizer),
        "saved": np.array(sorted({"base_lrs", "last_epoch", "table"} & saved.keys())),
        "rates before loading": np.array(before),
        "rates after loading": np.array(after),
        "the optimizer is still the own one": np.array(still_there),
        "last_epoch one step later": np.array(second.last_epoch),
        "rates one step later": np.array([float(group["lr"]) for group in other.param_groups]),
        "last_epoch of the first, after that of the saved state was changed": np.array(scheduler.last_epoch),
    }


def inputs_scheduler(rng, groups, events="oso", kind="table", last_epoch=-1, initial=False, before=0, refused=False):
    """`events`: a letter each, o for a step of the optimizer, s for one of the scheduler."""
    lr = rng.uniform(0.5, 2, groups)
    return {
        "lr": lr,
        "initial_lr": rng.uniform(0.5, 2, groups) if initial else np.zeros(groups),
        "table": rng.uniform(0.6, 1.4, len(events) + max(last_epoch, 0) + 4),
        "events": np.array([EVENTS[letter] for letter in events]),
        "kind": np.array(kind),
        "last_epoch": np.array(last_epoch),
        "steps before": np.array(before),
        "to be refused": np.array(refused),
    }


def draw_scheduler(rng):
    events = "".join(rng.choice(["os", "s", "oos"], 3))
    return int(rng.integers(1, 4)), events, str(rng.choice(["table", "change"])), -1, bool(rng.random() < 0.4)


# 7.6 scheduled_epoch


class Listed:
    """A scheduler for the check: the rates of a list, one after the other."""

    def __init__(self, optimizer, rates):
        self.optimizer, self.rates, self.at = optimizer, rates, 0
        self.optimizer.param_groups[0]["lr"] = rates[0]

    def step(self):
        self.at += 1
        self.optimizer.param_groups[0]["lr"] = self.rates[min(self.at, len(self.rates) - 1)]

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state_dict):
        self.at = state_dict["at"]


def squares_of(w, framework):
    """loss_of(rows): the mean square of rows @ w minus their last entry."""

    def loss_of(rows):
        x, y = framework.tensor(rows[:, :-1]), framework.tensor(rows[:, -1])
        return ((x @ w - y) ** 2).mean() + 0.1

    return loss_of


def probe_epoch(target, arrays, framework):
    w = framework.tensor(arrays["w"], requires_grad=True)
    w.grad = framework.tensor(arrays["left over"])
    optimizer = framework.optim.SGD([w], lr=1.0, momentum=0.5)
    scheduler = Listed(optimizer, arrays["rates"].tolist())
    batches = list(arrays["batches"])
    handed = (batch for batch in batches) if arrays["as a generator"] else batches
    returned = target(optimizer, scheduler, squares_of(w, framework), handed)
    if returned is None:
        return {"losses": None}
    losses, used = returned
    return {
        "losses": np.array([float(loss) for loss in losses], dtype=np.float64),
        "rates": np.array([float(lr) for lr in used], dtype=np.float64),
        "w at the end": w.detach().array.copy(),
        "steps of the scheduler": np.array(scheduler.at),
    }


def inputs_epoch(rng, count, left_over=0.0, generator=False):
    return {
        "w": rng.uniform(0.5, 2, 3),
        "left over": left_over * rng.uniform(0.5, 1, 3),
        "batches": rng.standard_normal((count, 4, 4)),
        "rates": rng.uniform(0.02, 0.2, 2 * count + 2),
        "as a generator": np.array(generator),
    }


def draw_epoch(rng):
    return int(rng.integers(1, 6)), float(rng.choice([0, 1])), bool(rng.random() < 0.5)


# 7.9 resume


class Fading:
    """A scheduler for the check, which changes the rate that it finds; its constructor writes, as all do."""

    def __init__(self, optimizer, factors):
        self.optimizer, self.factors, self.last_epoch = optimizer, factors, 0
        for group in optimizer.param_groups:
            group["lr"] = group.setdefault("initial_lr", group["lr"]) * factors[0]

    def step(self):
        self.last_epoch += 1
        for group in self.optimizer.param_groups:
            group["lr"] *= self.factors[self.last_epoch]

    def state_dict(self):
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict):
        self.last_epoch = state_dict["last_epoch"]


def probe_resume(target, arrays, framework):
    """Some steps, then states and weights saved; resumed twice from the same states, three steps each."""
    factors, gradients = arrays["factors"].tolist(), arrays["gradients"]

    def new(values):
        leaf = framework.tensor(values.copy(), requires_grad=True)
        groups = [{"params": [leaf], "lr": float(arrays["lr"])}]
        return leaf, lambda: framework.optim.SGD(groups, momentum=0.9)

    p, make_optimizer = new(arrays["p"])
    optimizer = make_optimizer()
    scheduler = Fading(optimizer, factors)
    for g in gradients[: int(arrays["done"])]:
        one_step(p, g, optimizer, scheduler, framework)
    saved = {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    values, outputs = p.detach().array.copy(), {}
    for attempt in ("resumed", "resumed once more"):
        q, make_optimizer = new(values)
        optimizer, scheduler = target(saved, make_optimizer, lambda o: Fading(o, factors))
        rows = []
        for g in gradients[int(arrays["done"]) :]:
            lr = float(optimizer.param_groups[0]["lr"])
            one_step(q, g, optimizer, scheduler, framework)
            rows.append([lr, *q.detach().array.tolist()])
        table = np.array(rows)
        outputs |= {f"rates, {attempt}": table[:, 0], f"parameter, {attempt}": table[:, 1:]}
    return outputs


def one_step(p, g, optimizer, scheduler, framework):
    p.grad = framework.tensor(g)
    optimizer.step()
    scheduler.step()


def inputs_resume(rng, done):
    return {
        "p": rng.uniform(0.5, 2, 2),
        "lr": np.array(rng.uniform(0.5, 1)),
        "factors": np.array([0.25, *rng.uniform(0.6, 1.4, done + 4)]),
        "gradients": rng.standard_normal((done + 3, 2)),
        "done": np.array(done),
    }


def draw_resume(rng):
    return (int(rng.integers(1, 5)),)


# 7.10 lr_range_test


def probe_range_test(target, arrays, framework):
    leaves = [framework.tensor(values.copy(), requires_grad=True) for values in (arrays["w"], arrays["b"])]
    w, b = leaves
    groups = [{"params": [w]}, {"params": [b], "lr": 0.25}]
    optimizer = framework.optim.SGD(groups, lr=0.5, momentum=0.5)
    for g in arrays["gradients before"]:
        step_along(leaves, g, optimizer, framework)
    squares = squares_of(w, framework)
    options = {"stop": float(arrays["stop"])} if "stop" in arrays else {}
    rates, losses = target(
        optimizer,
        lambda rows: squares(rows) + (b**2).sum(),
        list(arrays["batches"]),
        float(arrays["lr_min"]),
        float(arrays["lr_max"]),
        **options,
    )
    outputs = {"rates": np.array(rates, dtype=np.float64), "losses": np.array(losses, dtype=np.float64)}
    outputs["parameters afterwards"] = np.concatenate([p.detach().array for p in leaves])
    outputs["rates of the groups afterwards"] = np.array([float(group["lr"]) for group in optimizer.param_groups])
    outputs["gradients that are left"] = np.array(sum(p.grad is not None for p in leaves))
    outputs["memories afterwards"] = np.array(sum(bool(memory) for memory in optimizer.state.values()))
    step_along(leaves, arrays["gradient after"], optimizer, framework)
    return outputs | {"parameters after one more step": np.concatenate([p.detach().array for p in leaves])}


def step_along(leaves, g, optimizer, framework):
    for leaf, part in zip(leaves, (g[:3], g[3:]), strict=True):
        leaf.grad = framework.tensor(part)
    optimizer.step()
    optimizer.zero_grad()


def inputs_range_test(rng, count, lr_min, lr_max, before=2, stop=None, nan_at=None, sizes=1):
    batches = rng.standard_normal((count, 5, 4)) * np.reshape(sizes, (-1, 1, 1))
    if nan_at is not None:
        batches[nan_at] = np.nan
    arrays = {
        "w": rng.uniform(0.5, 2, 3),
        "b": rng.uniform(0.5, 1, 1),
        "batches": batches,
        "gradients before": 0.3 * rng.standard_normal((before, 4)),
        "gradient after": rng.standard_normal(4),
        "lr_min": np.array(float(lr_min)),
        "lr_max": np.array(float(lr_max)),
    }
    return arrays if stop is None else arrays | {"stop": np.array(float(stop))}


def draw_range_test(rng):
    return int(rng.integers(2, 9)), float(rng.uniform(0.001, 0.01)), float(rng.uniform(0.1, 3))
