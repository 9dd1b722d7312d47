# %% [markdown]
# # 07 Schedulers
#
# ## Why
#
# One Friday a batch with a broken label went through, and the loss shot up from 0.4 to 6,000. Nobody was alarmed: a few
# hundred steps later it was back at 0.7 and on its way down. But a scheduler was watching the loss, one that somebody
# had written at home: whenever the loss has not got better for three rounds, divide the learning rate by ten. *Better*
# meant better than the best so far, and that was 0.4. Three rounds passed, then another three, and each time the rate
# fell, and the way back to 0.4 grew tenfold longer. There was no floor. On Monday the rate stood at $10^{-12}$ and the
# loss at a perfectly steady 0.7: for sixty hours the machine had added next to nothing to its weights. The dashboard
# showed the loss. It did not show the rate.
#
# The learning rate is the one setting that nearly every training changes on its way: small at first while everything
# is still moving, then large, then small again to settle. After this chapter you can
#
# - write the usual schedules as functions of the step, and say what they do at step 0, at the end and beyond;
# - put a schedule around an optimizer, for groups that each have a rate of their own;
# - step optimizer and scheduler in the right order, and say what the wrong order costs;
# - let a schedule watch the loss without falling into the trap above;
# - resume a training in the middle of its curve;
# - find a good rate before the training begins.
#
# Allow about three and a half hours; each section is a good place to stop.

# %%
from pathlib import Path

import matplotlib.pyplot as plt

import gradwright
from autograder import check
from gradwright import nn, optim
from gradwright.nn import functional as F
from gradwright.widgets import learning_rate_curves

gradwright.chapter(7)

# %% given="imports"
import copy
import math
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from gradwright.chapters.autodiff import no_grad

# %% [markdown]
# ## A rate for every step
#
# **Idea.** A schedule is a function: the number of the step goes in, the rate comes out. Steps count from 0, so that
# step 0 is the first one that the optimizer takes.
#
# The oldest schedule is a staircase. The rate stays for `step_size` steps and is then multiplied by $\gamma$:
#
# $$\eta_t = \eta_0 \cdot \gamma^{\lfloor t / s \rfloor}$$
#
# With $\eta_0 = 1$, $s = 3$ and $\gamma = 0.1$ the steps 0, 1, 2 have 1, the steps 3, 4, 5 have 0.1, and so on. It is
# worth asking of every schedule, at once, *which* step is the first with the new rate. Here it is step $s$ itself.

# %% figure="shapes"
"""Three rates over 100 steps. The staircase, in orange, begins at 1 and halves at steps 25, 50, 75 and 100. The cosine,
in blue, begins at 1, falls slowly, fast in the middle, slowly again, and reaches 0 at step 100. The third, dashed and
green, rises in a straight line from 0.1 to 1 over the first 10 steps and then follows a cosine to 0."""
figure, axes = plt.subplots(figsize=(7, 2.6))
t = np.arange(101)
axes.step(t, 0.5 ** (t // 25), where="post", color="#d55e00", label="staircase")
axes.plot(t, 0.5 + 0.5 * np.cos(np.pi * t / 100), color="#0072b2", label="cosine")
late = 0.5 + 0.5 * np.cos(np.pi * (t - 10) / 90)
axes.plot(t, np.where(t < 10, (t + 1) / 10, late), "--", color="#009e73", label="warm-up, then cosine")
axes.set(xlabel="step", ylabel="rate")
axes.legend(fontsize=9)

# %% [markdown]
# ### Exercise 7.1: `step_decay`
# Easy, 10 minutes, 2 points.


# %% exercise="schedulers-step-decay"
def step_decay(step: int, lr: float, step_size: int, gamma: float = 0.1) -> float:
    """The rate of a step: lr at first, and times gamma after every step_size steps.

    >>> [step_decay(step, 1.0, 3, 0.5) for step in range(7)]
    [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]

    PyTorch: torch.optim.lr_scheduler.StepLR
    """
    ### BEGIN SOLUTION
    return lr * gamma ** (step // step_size)
    ### END SOLUTION


# %% [markdown]
# <details><summary>The rate falls from the first step on, and smoothly</summary>
#
# How many stairs has a step behind it? That is a whole number: which division gives one?
# </details>
# <details><summary>Everything comes one step too early or too late</summary>
#
# Write down the stairs that steps 2, 3 and 4 stand on, with a step_size of 3, and compare with the example.
# </details>

# %% check="schedulers-step-decay"
check("schedulers-step-decay", step_decay)

# %% [markdown]
# A staircase has to be told when to fall. The *cosine* needs to know only how long the training is. It is the upper
# half of a wave, from $\eta_0$ at step 0 down to $\eta_{\min}$ at step $T$:
#
# $$\eta_t = \eta_{\min} + (\eta_0 - \eta_{\min}) \cdot \frac{1 + \cos(\pi\, t / T)}{2}$$
#
# At the top it is flat, so the training has time at a high rate; at the bottom it is flat as well, and the weights can
# settle. From 1 to 0 in ten steps: 1, 0.976, 0.905, 0.794, 0.655, 0.5, and the same way down to 0.
#
# And **beyond the end**? The formula goes on, and at $2T$ it is back at $\eta_0$: a training that was prolonged by a
# few steps gets its rate back when it was just settling. PyTorch's `CosineAnnealingLR` does that. Our function does
# not: from step $T$ on it stays at $\eta_{\min}$.
#
# ### Exercise 7.2: `cosine`
# Easy, 15 minutes, 3 points.


# %% exercise="schedulers-cosine"
def cosine(step: float, lr: float, total: int, lr_min: float = 0.0) -> float:
    """The rate of a step, on half a wave from lr at step 0 to lr_min at step `total`; lr_min
    from there on.

    raises  ValueError where total is below 1

    >>> [round(cosine(step, 1.0, 4), 3) for step in range(7)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0, 0.0]

    PyTorch: torch.optim.lr_scheduler.CosineAnnealingLR, as far as `total`
    """
    ### BEGIN SOLUTION
    if total < 1:
        raise ValueError(f"total={total} steps have no room for a curve: give 1 or more")
    share = min(step / total, 1.0)
    return lr_min + (lr - lr_min) * (1 + math.cos(math.pi * share)) / 2
    ### END SOLUTION


# %% [markdown]
# <details><summary>The rate rises again after the end</summary>
#
# What is the largest share of the way, $t / T$, that the curve should ever see?
# </details>
# <details><summary>Only the cases with an lr_min are wrong</summary>
#
# How high is the wave, from its lowest to its highest point? It begins at lr and not at lr + lr_min.
# </details>

# %% check="schedulers-cosine"
check("schedulers-cosine", cosine)

# %% [markdown]
# ## Warming up
#
# **Idea.** At the first steps everything is at its worst: the weights are random, the gradients large and all in
# agreement, and Adam's mean of squares has seen two or three of them. A full rate on such evidence can throw the
# weights to a place from which they need thousands of steps to come back. So the rate begins small and rises in a
# straight line to its full value over the first $W$ steps, and from there the cosine takes it down.
#
# **How long?** Five to ten per cent of all steps is the usual choice, and with Adam rarely fewer than a few hundred:
# the mean of squares with $\beta_2 = 0.999$ looks back over about $1 / (1 - \beta_2) = 1000$ steps, and until some of
# those have passed it is a guess. Longer costs steps at a rate that teaches little.
#
# Half of all warm-ups are off by one somewhere. These are the choices of this course:
#
# | step | rate | why |
# |---|---|---|
# | 0 | $\eta_0 / W$ | not 0: a step at rate 0 computes a gradient for nothing |
# | $t < W$ | $\eta_0 \cdot (t + 1) / W$ | so that step $W - 1$ has the full rate |
# | $W$ | $\eta_0$ | here the cosine begins, over the $T - W$ steps that are left |
# | $T$ and later | $\eta_{\min}$ | beyond the end nothing rises again |
#
# Two borders need a thought. With $W = 0$ there is no warm-up, and step 0 is the beginning of the cosine. With $W = T$
# the whole training is warm-up, and there is no cosine: from step $T$ on it is $\eta_{\min}$. In neither case is
# anything divided by zero, and a training of one single step has the full rate, be $W$ 0 or 1.
#
# ### Exercise 7.3: `warmup_cosine`
# Medium, 15 minutes, 4 points.


# %% exercise="schedulers-warmup"
def warmup_cosine(step: int, lr: float, warmup: int, total: int, lr_min: float = 0.0) -> float:
    """The rate of a step: up to lr in the steps 0 to warmup - 1, and down to lr_min at step
    `total`, as in the table.

    raises  ValueError where total is below 1, or warmup is below 0 or above total

    >>> [round(warmup_cosine(step, 1.0, 4, 8), 3) for step in range(10)]
    [0.25, 0.5, 0.75, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]

    PyTorch: LinearLR and CosineAnnealingLR in a SequentialLR, whose warm-up begins at a
    start_factor
    """
    ### BEGIN SOLUTION
    if total < 1 or not 0 <= warmup <= total:
        given = f"warmup={warmup} of total={total} steps"
        raise ValueError(f"{given}: it is 0 to total, and total at least 1")
    if step < warmup:
        return lr * (step + 1) / warmup
    if step >= total:
        return lr_min
    return cosine(step - warmup, lr, total - warmup, lr_min)
    ### END SOLUTION


# %% [markdown]
# <details><summary>A division by zero, when warmup is 0 or equal to total</summary>
#
# In which of the rows of the table is something divided by $W$, and in which by $T - W$? Does any step reach that row
# when the number is 0?
# </details>
# <details><summary>The cosine is not at lr where it begins, or not at lr_min at the end</summary>
#
# Which step does the cosine call its step 0, and how long is it?
# </details>

# %% check="schedulers-warmup"
check("schedulers-warmup", warmup_cosine)

# %% [markdown]
# **Look.** Choose *warm-up, then cosine*, and move its warm-up to 0, to all 100 steps, and back. Below the rate is the
# loss of a small network that was trained with just this rate, on the digits: what does the warm-up buy, and at which
# rate does it stop being enough? *Keep* leaves a curve there for comparison.

# %% widget="learning-rate-curves"
learning_rate_curves(preset="warm-up, then cosine")

# %% [markdown]
# A function of your own drops in as it is, once it can be called:

# %%
learning_rate_curves(lambda step: warmup_cosine(step, 0.05, 10, 80, 0.005))

# %% [markdown]
# ## One cycle
#
# **Idea.** Leslie Smith found that networks train well, and sometimes much faster, under a rate that rises over a third
# of the training to a height at which it could not stay, and then falls to far below where it began: *one cycle*. The
# high rate works like noise and keeps the weights out of narrow valleys. Momentum goes the other way, down while the
# rate is up.

# %% figure="cycle"
"""Rate and momentum over the 100 steps of one cycle. The rate, on the left, rises from 0.04 along half a wave to 1 at
step 29, and falls along a longer half wave to almost 0 at step 99. The momentum, on the right, falls from 0.95 to 0.85
over the same steps and rises back to 0.95."""
place = np.interp(np.arange(100), [0, 29, 99], [0, 1, 2])
smooth = np.floor(place) + np.sin(np.pi / 2 * (place % 1)) ** 2
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.2))
left.plot(np.interp(smooth, [0, 1, 2], [0.04, 1, 0]), color="#0072b2")
right.plot(np.interp(smooth, [0, 1, 2], [0.95, 0.85, 0.95]), color="#d55e00")
left.set(xlabel="step", ylabel="rate")
right.set(xlabel="step", ylabel="momentum", ylim=(0.8, 1))

# %% [markdown]
# Both are curves through *phases*. Phase $i$ leads from value $v_i$ to value $v_{i+1}$, along half a cosine wave or
# a straight line. It begins where the phase before it has ended (the first begins at step 0) and ends at step $e_i$:
#
# $$s = \frac{t - e_{i-1}}{e_i - e_{i-1}} \qquad\qquad v = v_{i+1} + (v_i - v_{i+1}) \cdot \frac{1 + \cos(\pi s)}{2}$$
#
# for the share $s$ of the phase that lies behind, or $v = v_i + (v_{i+1} - v_i) \cdot s$ in a straight line. PyTorch
# computes the ends as a share of the total, $e_0 = 0.3 \cdot T - 1$ and $e_1 = T - 1$, so an end need not be a whole
# number, and in a very short training $e_0$ may be negative. Three borders:
#
# - a step that is exactly at an end still belongs to the phase that ends there;
# - a phase **without length** has its last value. (PyTorch 2.13 divides by zero here, for example with 10 steps and
#   a rise of 10 per cent.)
# - a step past the last end is on the last phase, whose formula just goes on. PyTorch lets one such step happen, the
#   `scheduler.step()` after the last batch: in a cycle of 5 steps the rate is then back at a fifth of the highest one.
#   Do not train with it.
#
# ### Exercise 7.4: `anneal`
# Medium, 20 minutes, 4 points.


# %% exercise="schedulers-anneal"
def anneal(
    step: float,
    ends: Sequence[float],
    values: Sequence[float],
    linear: bool = False,
) -> float:
    """The value at a step, on a curve through phases.

    ends    the step at which each phase ends, in rising order; they need not be whole numbers
    values  where each phase begins, and one more: where the last one ends. One longer than `ends`
    linear  straight lines instead of half waves

    >>> [anneal(step, [2, 4], [0.0, 1.0, 0.5], linear=True) for step in range(5)]
    [0.0, 0.5, 1.0, 0.75, 0.5]

    PyTorch: the inside of torch.optim.lr_scheduler.OneCycleLR
    """
    ### BEGIN SOLUTION
    phase = next((i for i, end in enumerate(ends) if step <= end), len(ends) - 1)
    begin, end = ends[phase - 1] if phase else 0.0, ends[phase]
    share = (step - begin) / (end - begin) if end != begin else 1.0
    left = 1 - share if linear else (1 + math.cos(math.pi * share)) / 2
    return values[phase + 1] + (values[phase] - values[phase + 1]) * left
    ### END SOLUTION


# %% [markdown]
# <details><summary>The first phase is right, the second is far off</summary>
#
# Where does the second phase begin? Its share counts from there, and it is as long as it is from there to its end.
# </details>
# <details><summary>A step past the end finds no phase</summary>
#
# Which phase should it be in? `next` takes a second argument, for when nothing was found.
# </details>

# %% check="schedulers-anneal"
check("schedulers-anneal", anneal)

# %% [markdown]
# ## Around an optimizer
#
# **Idea.** A function of the step knows nothing of groups, and a training loop should not have to know its schedule.
# A *scheduler* stands between: an object that holds the optimizer, counts steps, and writes a rate into every group.
#
# - **Where the rates start.** Each group's rate is put aside as `group["initial_lr"]`, unless there is one already:
#   a second scheduler on the same optimizer must start from the same rate, and not from one that the first has changed.
#   The list of all of them is `base_lrs`.
# - **Where it stands.** `last_epoch` is the step whose rate is in the groups now. PyTorch's name is older than the
#   habit of changing the rate at every step; it counts calls of `step()`, whatever you take for a step. It begins at
#   $-1$, and the constructor takes it to 0: right after it, the groups hold the rate of step 0.
# - **What a subclass adds** is `get_lr()`: the rates of step `last_epoch`, one for each group.
# - **Resuming** with `last_epoch=k` continues with step $k + 1$, on groups that must hold an `initial_lr`.
#
# What a scheduler is made of is all in its attributes. To save it, hand out all of them except the optimizer, which
# saves itself; to load, put them back.
#
# One helper is given. It counts what the optimizer has done so far, so that a scheduler can tell whether its optimizer
# has moved since.


# %% given="steps-taken"
def steps_taken(optimizer: Any) -> int:
    """How many parameters were moved so far, each counted once a step."""
    return sum(memory.get("step", 0) for memory in optimizer.state.values())


def too_early(rates: Sequence[float]) -> str:
    first = ", ".join(f"{lr:g}" for lr in rates)
    return (
        f"scheduler.step() came before the optimizer's first step: the first rate of the schedule, {first}, is never "
        f"used, and every later one comes a step early. Call optimizer.step() first, then scheduler.step()"
    )


# %% [markdown]
# The order matters because the constructor has put the rate of step 0 into the groups already. Whoever then calls
# `scheduler.step()` before `optimizer.step()` throws it away: the optimizer never sees it, and the whole curve is one
# step early. With a warm-up that is a jump where the curve was made to be gentle; with a training of five epochs that
# steps its schedule once an epoch, it is a fifth of the training. It is worth a warning, once.
#
# ### Exercise 7.5: `LRScheduler`
# Hard, 30 minutes, 5 points.


# %% exercise="schedulers-scheduler"
class LRScheduler:
    """Writes a rate into every group of an optimizer, step by step. A subclass says which, by
    get_lr().

    Attributes: optimizer; base_lrs, the list of initial rates; last_epoch, the step whose rates
    are in the groups.

    PyTorch: torch.optim.lr_scheduler.LRScheduler
    """

    def __init__(self, optimizer: Any, last_epoch: int = -1):
        """last_epoch: -1 for a new schedule, which keeps each group's "lr" as its "initial_lr"
        unless it has one; otherwise the last step that was taken.

        raises  KeyError where last_epoch is not -1 and a group has no "initial_lr"
        """
        if not hasattr(optimizer, "param_groups"):
            kind = type(optimizer).__name__
            raise TypeError(f"a scheduler stands around an optimizer, and got a {kind}")
        ### BEGIN SOLUTION
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                needed = "every group needs its 'initial_lr': load the state"
                raise KeyError(f"to resume after step {last_epoch}, {needed}")
        self.optimizer = optimizer
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        ### END SOLUTION
        self._initial_step()

    def _initial_step(self) -> None:
        """Put the first rates in place."""
        self._steps_before = steps_taken(self.optimizer)
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[float]:
        kind = type(self).__name__
        raise NotImplementedError(f"{kind} has no get_lr(): return the rates of step last_epoch")

    def step(self) -> None:
        """Go on to the next step, and hand the rates of get_lr() to set_rates().

        _step_count counts the calls of this method, and the first one is the constructor's. At
        the second, warn with the sentence of too_early(self.get_last_lr()), and stacklevel=2, if
        the optimizer has not moved: if steps_taken(...) of it is still self._steps_before.
        """
        ### BEGIN SOLUTION
        if self._step_count == 1 and steps_taken(self.optimizer) == self._steps_before:
            warnings.warn(too_early(self.get_last_lr()), stacklevel=2)
        self._step_count += 1
        self.last_epoch += 1
        self.set_rates(self.get_lr())
        ### END SOLUTION

    def set_rates(self, rates: Sequence[float]) -> None:
        """Write one rate into each group, in order, and keep them for get_last_lr()."""
        ### BEGIN SOLUTION
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = lr
        self._last_lr = list(rates)
        ### END SOLUTION

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, one for each group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Every attribute but the optimizer, by name, in a new dictionary."""
        ### BEGIN SOLUTION
        return {name: value for name, value in vars(self).items() if name != "optimizer"}
        ### END SOLUTION

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the attributes that another scheduler of this kind has given. The groups are
        left as they are.
        """
        ### BEGIN SOLUTION
        vars(self).update(state_dict)
        ### END SOLUTION


# %% [markdown]
# <details><summary>AttributeError: no attribute base_lrs, or last_epoch</summary>
#
# The last line of the constructor takes a step, and get_lr() of a subclass will use all three attributes in it. Are
# they there by then?
# </details>
# <details><summary>The rates are one step off</summary>
#
# `last_epoch` begins at what the constructor was given, and is $-1$ for a new schedule. Which step's rate is asked for
# at the first call of step(), and what must last_epoch be at that moment?
# </details>
# <details><summary>The second scheduler on one optimizer starts too low</summary>
#
# Which of the two is the place that the first scheduler keeps writing to, "lr" or "initial_lr"? `setdefault` puts
# something in only where nothing is.
# </details>

# %% check="schedulers-scheduler"
check("schedulers-scheduler", LRScheduler)

# %% [markdown]
# ## The usual kinds
#
# With the machine in place each kind is a few lines. For the initial rate $\eta_0$ of a group, step $t$ has
#
# | scheduler | rate at step $t$ | and in the end |
# |---|---|---|
# | `StepLR` | $\eta_0\, \gamma^{\lfloor t / s \rfloor}$ | it goes on falling |
# | `MultiStepLR` | $\eta_0\, \gamma^{m}$, with $m$ milestones up to $t$ | it stays after the last milestone |
# | `ExponentialLR` | $\eta_0\, \gamma^{t}$ | it goes on falling |
# | `LinearLR` | $\eta_0\, (a + (b - a) \min(t, T) / T)$ | it stays at $b\, \eta_0$ |
# | `CosineAnnealingLR` | half a wave from $\eta_0$ to $\eta_{\min}$ | it rises again |
# | `CosineAnnealingWarmRestarts` | half a wave, again and again | it begins anew |
# | `OneCycleLR` | up, and far down | one step beyond, then an error |
# | `LambdaLR` | $\eta_0 \cdot f(t)$ for any function $f$, ours for instance | what the function says |
#
# They come in two sorts. Some compute the rate from the initial one. But most of PyTorch's *change* the rate that they
# find: a staircase multiplies it by $\gamma$ where a stair is and leaves it alone elsewhere. On its own that gives the
# same curve. It makes two things possible: schedules can be **chained**, two around one optimizer that both multiply,
# and a rate that you have changed by hand stays changed. For each of this sort there are two methods: `change()`, what
# the present rate is multiplied by at this step, and `share()`, what is left of the initial one. A sequence of
# schedules, later on, needs the second: whoever takes over must not begin where the one before has stopped.


# %% given="kinds"
class LambdaLR(LRScheduler):
    """The initial rate of each group, times a function of the step; one function for all groups, or a list."""

    def __init__(self, optimizer: Any, lr_lambda: Callable | Sequence[Callable], last_epoch: int = -1):
        self.lr_lambdas = of_each_group("lr_lambda", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [lr * share(self.last_epoch) for lr, share in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """A function is not saved; of an object that can be called, its attributes are."""
        held = [None if isinstance(f, FunctionType) else dict(vars(f)) for f in self.lr_lambdas]
        return super().state_dict() | {"lr_lambdas": held}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for share, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if saved is not None:
                vars(share).update(saved)
        super().load_state_dict({**state_dict, "lr_lambdas": self.lr_lambdas})


def of_each_group(name: str, value: Any, optimizer: Any) -> list:
    """A setting that is one for all groups, or a list with one for each."""
    if not isinstance(value, list | tuple):
        return [value] * len(optimizer.param_groups)
    if len(value) != len(optimizer.param_groups):
        raise ValueError(f"{name} has {len(value)} entries, and the optimizer {len(optimizer.param_groups)} groups")
    return list(value)


def refuse_below(least: float, **settings: float) -> None:
    for name, value in settings.items():
        if not value >= least:
            raise ValueError(f"{name}={value} is not possible: give {least} or more")


class Multiplying(LRScheduler):
    """A schedule that multiplies the rate it finds, so that several can be chained."""

    def change(self) -> float:
        """What the present rate is multiplied by, to become that of step last_epoch."""
        raise NotImplementedError

    def share(self) -> float:
        """What is left of the initial rate at step last_epoch."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        change = self.change()
        return [group["lr"] * change for group in self.optimizer.param_groups]

    def rates_from_start(self) -> list[float]:
        share = self.share()
        return [lr * share for lr in self.base_lrs]


class StepLR(Multiplying):
    """Times gamma after every step_size steps."""

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        refuse_below(1, step_size=step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def change(self) -> float:
        return self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1.0

    def share(self) -> float:
        return step_decay(self.last_epoch, 1.0, self.step_size, self.gamma)


class MultiStepLR(Multiplying):
    """Times gamma at every milestone; at one that is listed twice, twice."""

    def __init__(self, optimizer: Any, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def change(self) -> float:
        return self.gamma ** self.milestones[self.last_epoch]

    def share(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ExponentialLR(Multiplying):
    """Times gamma at every step."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def change(self) -> float:
        return 1.0 if self._is_initial else self.gamma

    def share(self) -> float:
        return self.gamma**self.last_epoch


class LinearLR(Multiplying):
    """From start_factor times the initial rate to end_factor times it, in a straight line over total_iters steps."""

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1:
            raise ValueError(f"start_factor={start_factor} is not possible: it is above 0 and at most 1")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"end_factor={end_factor} is not possible: it is 0 to 1")
        refuse_below(0, total_iters=total_iters)
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def share(self) -> float:
        return self.share_at(self.last_epoch)

    def share_at(self, step: int) -> float:
        way = min(step, self.total_iters) / self.total_iters if self.total_iters else 1.0
        return self.start_factor + (self.end_factor - self.start_factor) * way

    def change(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self.last_epoch == 1 and self.total_iters == 0:
            warnings.warn(NO_STEPS_TO_RISE.format(self.start_factor), stacklevel=5)
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        return self.share_at(self.last_epoch) / self.share_at(self.last_epoch - 1)


NO_STEPS_TO_RISE = (
    "LinearLR with total_iters=0 has no step on which to rise, so the rate stays at start_factor={:g} times "
    "the initial one for good: leave the scheduler out where there is no warm-up"
)


# %% [markdown]
# The cosine can be chained too: what is above $\eta_{\min}$ shrinks in the ratio of two neighbouring heights of the
# wave. Only at the lowest point, where there is nothing to multiply, the first bit of the next rise has to be added.
# `CosineAnnealingWarmRestarts` does not wait for the rise: at the end of a cycle it jumps back to the top and begins
# a new one, `T_mult` times as long.


# %% given="waves"
class CosineAnnealingLR(LRScheduler):
    """Half a cosine wave from the initial rate to eta_min in T_max steps; then up again, and so on."""

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        refuse_below(1, T_max=T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        rates, low, T = [group["lr"] for group in self.optimizer.param_groups], self.eta_min, self.T_max
        if self._is_initial:
            return rates
        before = self.last_epoch - 1
        if before % (2 * T) == T:
            rise = (1 - math.cos(math.pi / T)) / 2
            return [lr + (base - low) * rise for base, lr in zip(self.base_lrs, rates, strict=True)]
        ratio = (1 + math.cos(math.pi * self.last_epoch / T)) / (1 + math.cos(math.pi * before / T))
        return [ratio * (lr - low) + low for lr in rates]

    def rates_from_start(self) -> list[float]:
        T = self.T_max
        way = T - abs(self.last_epoch % (2 * T) - T)  # the second half of a wave is the first, backwards
        return [cosine(way, base, T, self.eta_min) for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine waves that each begin at the initial rate again: the first has T_0 steps, each other one T_mult times as
    many as the one before. T_cur is the place in the present one, T_i its length."""

    def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name}={value} is not possible: give a whole number from 1 on")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.place(last_epoch)
        super().__init__(optimizer, last_epoch)

    def place(self, epoch: float) -> None:
        """Where a point of time lies; -1 is just in front of the first cycle."""
        self.T_cur, self.T_i = epoch, self.T_0
        self.wrap()

    def wrap(self) -> None:
        """Go over to the cycle in which T_cur lies."""
        while self.T_cur >= self.T_i:
            self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult

    def step(self, epoch: float | None = None) -> None:
        """Go on by one; or to any point of time, such as 2.75 for three quarters of the third epoch."""
        if epoch is not None:
            refuse_below(0, epoch=epoch)
            self.place(epoch)
            self.last_epoch = math.floor(epoch)
            self.set_rates(self.get_lr())
            return
        if self.last_epoch < 0:
            self.place(0)
        else:
            self.T_cur += 1
            self.wrap()
        super().step()

    def get_lr(self) -> list[float]:
        return [cosine(self.T_cur, base, self.T_i, self.eta_min) for base in self.base_lrs]

    def rates_from_start(self) -> list[float]:
        self.place(self.last_epoch)
        return self.get_lr()


# %% [markdown]
# `OneCycleLR` puts three rates into each group and leads from one to the next by your `anneal`; and so the momentum, or
# Adam's $\beta_1$, in the other direction.


# %% given="one-cycle"
class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr over the share pct_start of all steps, then down to the first rate divided
    by final_div_factor; with three_phase down to the first rate as fast as it rose, and then on.

    The number of steps is total_steps, or epochs * steps_per_epoch. With cycle_momentum, momentum or the first of the
    betas goes from max_momentum to base_momentum and back.
    """

    def __init__(
        self,
        optimizer: Any,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        self.total_steps = counted(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start={pct_start} is not possible: it is a share of the steps, 0 to 1")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy={anneal_strategy!r} is not possible: there are 'cos' and 'linear'")
        self.linear, self.three_phase, self.cycle_momentum = anneal_strategy == "linear", three_phase, cycle_momentum
        rise, end = pct_start * self.total_steps - 1, self.total_steps - 1
        self.ends = [rise, 2 * pct_start * self.total_steps - 2, end] if three_phase else [rise, end]
        self.use_beta1 = "betas" in optimizer.defaults
        if cycle_momentum and not self.use_beta1 and "momentum" not in optimizer.defaults:
            raise ValueError("this optimizer has neither momentum nor betas to cycle: say cycle_momentum=False")
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, of_each_group("max_lr", max_lr, optimizer), strict=True):
                group["initial_lr"], group["max_lr"] = high / div_factor, high
                group["min_lr"] = group["initial_lr"] / final_div_factor
            if cycle_momentum:
                self.keep_momenta(optimizer, base_momentum, max_momentum)
        super().__init__(optimizer, last_epoch)

    def keep_momenta(self, optimizer: Any, base: Any, high: Any) -> None:
        lows, highs = of_each_group("base_momentum", base, optimizer), of_each_group("max_momentum", high, optimizer)
        for group, low, top in zip(optimizer.param_groups, lows, highs, strict=True):
            group["base_momentum"], group["max_momentum"] = low, top

    def along(self, group: dict[str, Any], names: Sequence[str]) -> float:
        return anneal(self.last_epoch, self.ends, [group[name] for name in names], self.linear)

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(f"step {self.last_epoch} is beyond the {self.total_steps} that the cycle was made for")
        back = ("initial_lr",) if self.three_phase else ()
        names = ("initial_lr", "max_lr", *back, "min_lr")
        return [self.along(group, names) for group in self.optimizer.param_groups]

    def set_rates(self, rates: Sequence[float]) -> None:
        super().set_rates(rates)
        if not self.cycle_momentum:
            return
        names = ("max_momentum", "base_momentum", "max_momentum", "max_momentum")[: len(self.ends) + 1]
        for group in self.optimizer.param_groups:
            momentum = self.along(group, names)
            group.update({"betas": (momentum, *group["betas"][1:])} if self.use_beta1 else {"momentum": momentum})


def counted(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    """The number of all steps, which OneCycleLR takes in two ways."""
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("how long is the cycle? Give total_steps, or both epochs and steps_per_epoch")
    given = (
        {"epochs": epochs, "steps_per_epoch": steps_per_epoch} if total_steps is None else {"total_steps": total_steps}
    )
    for name, value in given.items():
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name}={value} is not possible: give a whole number from 1 on")
    return math.prod(given.values())


# %% [markdown]
# In the widget, choose *beyond the end*, *warm restarts* and *one cycle* to see three of them whole. (Its network keeps
# its $\beta_1$ throughout, so the code there says `cycle_momentum=False`.) Here are five in a row, in numbers. `rates`
# takes a dummy optimizer through the steps; use it on a scheduler before you trust it.


# %%
def rates(make, steps, lr=1.0):
    """The rates of the first steps of a scheduler, which make(optimizer) builds."""
    optimizer = optim.SGD([gradwright.ones(1, requires_grad=True)], lr=lr)
    optimizer.param_groups[0]["params"][0].grad = gradwright.zeros(1)
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        found.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return found


print(np.round(rates(lambda o: StepLR(o, 3, 0.5), 8), 3))
print(np.round(rates(lambda o: LinearLR(o, 0.25, total_iters=3), 8), 3))
print(np.round(rates(lambda o: CosineAnnealingLR(o, 4), 8), 3))
print(np.round(rates(lambda o: CosineAnnealingWarmRestarts(o, 2, 2), 8), 3))
print(np.round(rates(lambda o: LambdaLR(o, lambda t: warmup_cosine(t, 1.0, 2, 6)), 8), 3))

# %% [markdown]
# ## In the loop
#
# **Idea.** Optimizer first, then scheduler, after every batch: the groups hold the rate of step 0 before the loop has
# begun. So the rate that a step was taken with must be read *before* `scheduler.step()`. A log that is written at the
# end of the loop's body shows the whole curve one step early, and nobody notices until two such logs are compared.
#
# Here is what happens the wrong way round, on a schedule that halves the rate at every step:

# %%
weight = gradwright.ones(1, requires_grad=True)
weight.grad = gradwright.ones(1)
optimizer = optim.SGD([weight], lr=1.0)
scheduler = ExponentialLR(optimizer, 0.5)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    scheduler.step()
    optimizer.step()
print("the optimizer went", 1 - weight.item(), "and should have gone 1")
print(caught[0].message)

# %% [markdown]
# ### Exercise 7.6: `scheduled_epoch`
# Easy, 15 minutes, 3 points.


# %% exercise="schedulers-epoch"
def scheduled_epoch(
    optimizer: Any, scheduler: Any, loss_of: Callable[[Any], Any], batches: Iterable[Any]
) -> tuple[list[float], list[float]]:
    """Train on each batch once, with a schedule that changes at every step.

    optimizer  has zero_grad(), step() and param_groups
    scheduler  has step()
    loss_of    loss_of(batch) is the loss of a batch, a tensor of one element
    batches    anything to walk over; old gradients may be left from before
    returns    the loss of each step, and the rate of the first group that the step was taken
               with; lists of floats

    PyTorch: no such function; these lines are in every training loop
    """
    ### BEGIN SOLUTION
    losses, used = [], []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(batch)
        loss.backward()
        losses.append(loss.item())
        used.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return losses, used
    ### END SOLUTION


# %% [markdown]
# <details><summary>The first rate is missing from the list, and there is one too many at its end</summary>
#
# Whose rate is in the group at the moment when you read it: that of the step just taken, or of the next?
# </details>
# <details><summary>All rates are the same</summary>
#
# Where does scheduler.step() stand: in the loop, or behind it?
# </details>

# %% check="schedulers-epoch"
check("schedulers-epoch", scheduled_epoch)

# %% [markdown]
# ## Watching the loss
#
# **Idea.** All schedules so far are blind: they fall on the day they were told to. A *plateau* scheduler looks. It is
# handed a number after each round, usually the loss on data that is not trained on, and when that has not got better
# for more than `patience` rounds, the rate is multiplied by a factor.
#
# *Better* is better than the best so far by a margin, so that noise does not count as progress. With the mode `"min"`,
# where small is good, and threshold $\theta$:
#
# | threshold_mode | better, for `"min"` | better, for `"max"` |
# |---|---|---|
# | `"rel"` | $x < b\,(1 - \theta)$ | $x > b\,(1 + \theta)$ |
# | `"abs"` | $x < b - \theta$ | $x > b + \theta$ |
#
# Three numbers are kept from round to round: `best`, `num_bad_epochs` and `cooldown_counter`. One round goes like this:
#
# 1. If the metric is better, it is the new best, and the bad rounds are forgotten. If not, this is one more bad round.
# 2. During a cooldown, bad rounds do not count: the counter goes down by one, and the bad rounds are forgotten. (After
#    the rate has fallen, the loss needs a while to show it.)
# 3. If there are now more bad rounds than `patience`, the rate falls, the cooldown begins, and the bad rounds are
#    forgotten.
#
# A metric that is nan is not better than anything, and so a bad round. And now read the story at the top once more: the
# best was 0.4, the loss came back from 6,000 by way of 50, 5 and 0.7, every round far better than the one before, and
# each was a bad round.
#
# ### Exercise 7.7: `plateau_step`
# Medium, 20 minutes, 4 points.


# %% exercise="schedulers-plateau"
def plateau_step(
    kept: dict[str, Any],
    metric: float,
    patience: int = 10,
    cooldown: int = 0,
    threshold: float = 1e-4,
    mode: str = "min",
    threshold_mode: str = "rel",
) -> bool:
    """One round of a plateau scheduler: whether the rate has to fall now.

    kept  "best", "num_bad_epochs" and "cooldown_counter", changed in place; other entries are
          left alone

    >>> kept = {"best": 2.0, "num_bad_epochs": 0, "cooldown_counter": 0}
    >>> [plateau_step(kept, metric, patience=1) for metric in (1.0, 1.0, 1.0, 1.0)]
    [False, False, True, False]

    PyTorch: torch.optim.lr_scheduler.ReduceLROnPlateau
    """
    ### BEGIN SOLUTION
    sign, best = 1 if mode == "min" else -1, kept["best"]
    goal = best * (1 - sign * threshold) if threshold_mode == "rel" else best - sign * threshold
    if sign * metric < sign * goal:
        kept["best"], kept["num_bad_epochs"] = metric, 0
    else:
        kept["num_bad_epochs"] += 1
    if kept["cooldown_counter"] > 0:
        kept["cooldown_counter"] -= 1
        kept["num_bad_epochs"] = 0
    if kept["num_bad_epochs"] <= patience:
        return False
    kept["num_bad_epochs"], kept["cooldown_counter"] = 0, cooldown
    return True
    ### END SOLUTION


# %% [markdown]
# <details><summary>The rate falls one round too early or too late</summary>
#
# With a patience of 2, how many bad rounds are forgiven, and at which one does the rate fall? More than, or as many as?
# </details>
# <details><summary>The best never changes, or changes with every round</summary>
#
# It moves only in step 1, and only if the metric is better *by the margin*. What does it have to be at the very first
# round, when PyTorch begins with inf (or -inf for "max")?
# </details>

# %% check="schedulers-plateau"
check("schedulers-plateau", plateau_step)


# %% given="plateau"
class ReduceLROnPlateau(LRScheduler):
    """Times `factor` where step(metrics) has not got better for more than `patience` calls, down to min_lr. A change of
    the rate by no more than eps is not made."""

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ):
        if not hasattr(optimizer, "param_groups"):
            raise TypeError(f"a scheduler stands around an optimizer, and got a {type(optimizer).__name__}")
        if not factor < 1:
            raise ValueError(f"factor={factor} is not possible: the rate would not fall, so it is below 1")
        for name, value, known in (("mode", mode, ("min", "max")), ("threshold_mode", threshold_mode, ("rel", "abs"))):
            if value not in known:
                raise ValueError(f"{name}={value!r} is not possible: there are {known[0]!r} and {known[1]!r}")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = of_each_group("min_lr", min_lr, optimizer)
        self.best, self.num_bad_epochs = math.inf if mode == "min" else -math.inf, 0
        self.cooldown_counter, self.last_epoch = 0, 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def step(self, metrics: Any) -> None:
        self.last_epoch += 1
        rates = [group["lr"] for group in self.optimizer.param_groups]
        settings = (self.patience, self.cooldown, self.threshold, self.mode, self.threshold_mode)
        if plateau_step(vars(self), float(metrics), *settings):
            lower = [max(lr * self.factor, least) for lr, least in zip(rates, self.min_lrs, strict=True)]
            rates = [new if lr - new > self.eps else lr for lr, new in zip(rates, lower, strict=True)]
        self.set_rates(rates)


# %% [markdown]
# Now the story, replayed: a loss of about 0.4, one explosion, and a recovery that ends at 0.7. Against it stand three
# settings: a floor, `min_lr`; a cooldown; and a patience that is longer than a recovery. They would have saved the
# weekend, and so would a dashboard that shows the rate.

# %% figure="story"
"""Two panels over 56 rounds. Above, on a logarithmic scale, a loss of 0.4 that jumps to 6000 at round 12, is back below
1 within ten rounds, and stays at 0.7. Below, three rates that begin at 0.1. One falls by a factor of ten every four
rounds, to 1e-12 at the end. One stops at its floor of 0.001. One, with a longer patience and a cooldown, falls
twice."""
rounds = np.arange(56)
loss = 0.4 + 0.2 * np.exp(-rounds / 3) + np.where(rounds < 12, 0, 6000 * np.exp(-1.2 * (rounds - 12.0)) + 0.3)


def watched(patience, floor, cooldown):
    rate, best, bad, rest = 0.1, np.inf, 0, 0
    for value in loss:
        bad = 0 if value < best * 0.9999 else bad + 1
        best = min(best, value) if bad == 0 else best
        rest, bad = (rest - 1, 0) if rest else (rest, bad)
        if bad > patience:
            rate, bad, rest = max(rate / 10, floor), 0, cooldown
        yield rate


figure, (above, below) = plt.subplots(2, 1, figsize=(7, 3.6), sharex=True)
above.semilogy(rounds, loss, color="#555555")
above.set(ylabel="loss")
below.semilogy(rounds, list(watched(3, 0.0, 0)), color="#d55e00", label="patience 3")
below.semilogy(rounds, list(watched(3, 1e-3, 0)), "--", color="#0072b2", label="with a floor of 0.001")
below.semilogy(rounds, list(watched(8, 0.0, 10)), ":", color="#009e73", label="patience 8, cooldown 10")
below.set(xlabel="round", ylabel="rate")
below.legend(fontsize=8)

# %%
for settings in ({"eps": 0.0}, {"min_lr": 1e-3}, {"cooldown": 10, "patience": 8}):
    optimizer = optim.SGD([gradwright.ones(1, requires_grad=True)], lr=0.1)
    scheduler = ReduceLROnPlateau(optimizer, **({"patience": 3} | settings))
    for n in range(56):
        jump = (n >= 12) * (6000 * math.exp(-1.2 * (n - 12)) + 0.3)
        scheduler.step(0.4 + 0.2 * math.exp(-n / 3) + jump)
    print(settings, "rate at the end:", scheduler.get_last_lr())

# %% [markdown]
# In the widget, *plateau* lets such a scheduler watch a real training. PyTorch's `eps`, 1e-8, is a floor of a kind as
# well: a smaller change is not made. In the first line it is 0, as in the story.

# %% [markdown]
# ## One after the other
#
# **Idea.** A warm-up, then a cosine, then a constant rate: `SequentialLR` hands over from one scheduler to the next at
# given *milestones*. The new one begins at its own step 0, whatever the number of the training's step.
#
# With milestones 3 and 5, the steps 0, 1, 2 are steps 0, 1, 2 of scheduler 0; steps 3 and 4 are 0 and 1 of scheduler 1;
# step 5 is step 0 of scheduler 2. A milestone of 0 passes the first scheduler over, which is how a warm-up of zero
# steps is written; two equal milestones pass over the one between them.
#
# ### Exercise 7.8: `sequence_position`
# Easy, 10 minutes, 2 points.


# %% exercise="schedulers-sequence"
def sequence_position(step: int, milestones: Sequence[int]) -> tuple[int, int]:
    """Which scheduler has this step, counted from 0, and which of its own steps it is.

    milestones  in rising order; scheduler i + 1 begins at milestones[i]

    >>> [sequence_position(step, [3, 5]) for step in (0, 2, 3, 4, 5, 9)]
    [(0, 0), (0, 2), (1, 0), (1, 1), (2, 0), (2, 4)]

    PyTorch: the inside of torch.optim.lr_scheduler.SequentialLR
    """
    ### BEGIN SOLUTION
    which = bisect_right(milestones, step)
    return which, step - (milestones[which - 1] if which else 0)
    ### END SOLUTION


# %% [markdown]
# <details><summary>The hand-over comes one step late</summary>
#
# Who has the step that is equal to a milestone? `bisect_right(milestones, step)`, already imported, counts the
# milestones that are at most `step`.
# </details>

# %% check="schedulers-sequence"
check("schedulers-sequence", sequence_position)


# %% given="sequential"
class SequentialLR(LRScheduler):
    """One scheduler after the other: number i + 1 begins, at its own step 0, at step milestones[i]."""

    def __init__(
        self, optimizer: Any, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ):
        if not schedulers:
            raise ValueError("a sequence needs at least one scheduler")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"{len(schedulers)} schedulers hand over once less, and got {len(milestones)} milestones")
        for i, scheduler in enumerate(schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"schedulers[{i}] is a ReduceLROnPlateau, which needs a metric: step it on its own")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"schedulers[{i}] stands around another optimizer")
        self.optimizer, self._schedulers, self._milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        # The constructors of all of them have written into the groups, one upon the other.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        first = self._schedulers[sequence_position(0, milestones)[0]]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:
        self.last_epoch += 1
        which, own_step = sequence_position(self.last_epoch, self._milestones)
        scheduler = self._schedulers[which]
        if which and own_step == 0:
            begin_anew(scheduler)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def rates_from_start(self) -> list[float]:
        first = self._schedulers[sequence_position(0, self._milestones)[0]]
        begin_anew(first)
        return first.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(saved)
        super().load_state_dict({**state_dict, "_schedulers": self._schedulers})


def begin_anew(scheduler: LRScheduler) -> None:
    """Send a scheduler to its step 0, wherever the rates stand."""
    scheduler.last_epoch = 0
    scheduler.set_rates(getattr(scheduler, "rates_from_start", scheduler.get_lr)())


# %% [markdown]
# PyTorch's way of writing a warm-up with a cosine, beside ours. They are not the same: `LinearLR` begins at its
# `start_factor` and rises over `total_iters` steps, so that the full rate comes at step $W$ and not at $W - 1$.

# %%
W, T = 4, 12


def both(o):
    parts = [LinearLR(o, 1 / W, total_iters=W), CosineAnnealingLR(o, T - W)]
    return SequentialLR(o, parts, milestones=[W])


print(np.round(rates(both, T + 1), 3))
print(np.round([warmup_cosine(step, 1.0, W, T) for step in range(T + 1)], 3))

# %% [markdown]
# ## Going on where it stopped
#
# **Idea.** A training that is resumed in the middle of its curve should not notice. What has to come back is the
# optimizer's state, with the rates in its groups, and the scheduler's, with the number of its step. What trips people
# is that **a constructor writes**: a new scheduler puts the rate of step 0 into the groups. Loaded first and built
# afterwards, the rate is wrong, and for a schedule that multiplies what it finds, it stays wrong to the end.
#
# So: build both, as at the beginning; then load both.
#
# There is an older way, `last_epoch=k`: build the scheduler around an optimizer that was loaded, whose groups hold
# their `initial_lr`, and it goes on with step $k + 1$. It needs no saved scheduler, and it knows no more than a
# number: the best loss of a plateau, or how far a sequence has come, it has lost.
#
# ### Exercise 7.9: `resume`
# Easy, 10 minutes, 3 points.


# %% exercise="schedulers-resume"
def resume(
    saved: dict[str, Any], make_optimizer: Callable[[], Any], make_scheduler: Callable[[Any], Any]
) -> tuple[Any, Any]:
    """Optimizer and scheduler as they were when their states were saved.

    saved           "optimizer" and "scheduler": what their state_dict() has given; it stays as
                    it is
    make_optimizer  make_optimizer() builds a new optimizer around the model's parameters
    make_scheduler  make_scheduler(optimizer) builds a new scheduler around that optimizer
    returns         both, so that no later step can tell

    PyTorch: no such function; these lines are where every training begins
    """
    ### BEGIN SOLUTION
    optimizer = make_optimizer()
    scheduler = make_scheduler(optimizer)
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    return optimizer, scheduler
    ### END SOLUTION


# %% [markdown]
# <details><summary>The first rate after resuming is that of step 0</summary>
#
# Who was the last to write into the groups: the constructor of the scheduler, or the state that you loaded?
# </details>
# <details><summary>The curve begins anew, or is a step off</summary>
#
# Two states were saved. Are both loaded? After loading, nobody needs to take a step.
# </details>

# %% check="schedulers-resume"
check("schedulers-resume", resume)

# %% [markdown]
# ## Which rate at all?
#
# **Idea.** A schedule bends a rate; it does not find one. Smith's *range test* does, in a minute: begin at a rate that
# is far too small, multiply it at every step by the same factor up to one that is far too large, and write down the
# losses. At first nothing moves. Then the loss falls, faster and faster. Then it turns, and explodes. A good highest
# rate lies in the steep part, some way below the turn: a third to a tenth of it. With $n$ steps, step $i$ has
#
# $$\eta_i = \eta_{\min} \cdot \left(\frac{\eta_{\max}}{\eta_{\min}}\right)^{i / (n - 1)}$$
#
# and a test of one single step has $\eta_{\min}$. PyTorch has no such tool; it comes from Leslie N. Smith, *Cyclical
# Learning Rates for Training Neural Networks* (WACV 2017), section 3.3, there with a rate that rises in a straight
# line.
#
# The test ruins the weights on purpose, and the optimizer's memory with them. So it puts everything back: **weights,
# memories and rates are afterwards what they were, to the bit.** It stops where the loss has grown to more than `stop`
# times the smallest one so far, or is nan.
#
# One thing it cannot put back, for an optimizer holds parameters and nothing else: **buffers**, such as the running
# statistics of a batch normalization, which every forward in training mode moves on. For a model that has any, keep
# `copy.deepcopy(model.state_dict())` before the test and load it afterwards.
#
# ### Exercise 7.10: `lr_range_test`
# Hard, 25 minutes, 4 points.


# %% exercise="schedulers-range-test"
def lr_range_test(
    optimizer: Any,
    loss_of: Callable[[Any], Any],
    batches: Sequence[Any],
    lr_min: float = 1e-6,
    lr_max: float = 1.0,
    stop: float = 4.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Train at rates that rise from lr_min to lr_max, one step for each batch, and put
    everything back.

    optimizer  holds the parameters; during the test all its groups have the same rate.
               Afterwards parameters, settings and memories are as before, and no gradient is
               left. Buffers, which no optimizer holds, stay as they are.
    loss_of    loss_of(batch) is a tensor of one element, above 0
    returns    the rates and the losses, each measured before its step. A loss that is above
               `stop` times the smallest so far, or nan, is the last one, and no step follows it.

    Smith 2017; PyTorch has none
    """
    ### BEGIN SOLUTION
    params = [p for group in optimizer.param_groups for p in group["params"]]
    weights = [p.detach().clone() for p in params]
    state = copy.deepcopy(optimizer.state_dict())
    rates, losses = [], []
    for i, batch in enumerate(batches):
        rates.append(lr_min * (lr_max / lr_min) ** (i / max(len(batches) - 1, 1)))
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        optimizer.zero_grad()
        loss = loss_of(batch)
        losses.append(loss.item())
        if not losses[-1] <= stop * min(losses):
            break
        loss.backward()
        optimizer.step()
    with no_grad():
        for p, before in zip(params, weights, strict=True):
            p.copy_(before)
    optimizer.zero_grad()
    optimizer.load_state_dict(state)
    return np.array(rates), np.array(losses)
    ### END SOLUTION


# %% [markdown]
# <details><summary>The weights are not what they were</summary>
#
# Is what you put aside a copy, or the same tensor under another name? And how do you write into a parameter that
# requires a gradient? (`no_grad`, and a method that copies in place.)
# </details>
# <details><summary>The momentum afterwards is that of the test</summary>
#
# `state_dict()` hands out the optimizer's own tensors. What does the next step do to them?
# </details>
# <details><summary>A nan does not stop it</summary>
#
# Every comparison with nan is False. Ask whether the loss is small enough, and not whether it is too large.
# </details>

# %% check="schedulers-range-test"
check("schedulers-range-test", lr_range_test)


# %% given="range-test-plot"
def plot_range_test(rates: np.ndarray, losses: np.ndarray, axes: Any = None) -> float:
    """Draw what lr_range_test has returned, mark the rate at which the loss falls fastest, and return that rate."""
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(figsize=(7, 2.8))[1]
    best = steepest(rates, losses)
    axes.semilogx(rates, losses, color="#b0b0b0", linewidth=1, label="loss")
    axes.semilogx(rates, smoothed(losses), color="#0072b2", label="smoothed")
    axes.axvline(best, color="#d55e00", linestyle="--", label=f"falls fastest at {best:.2g}")
    axes.set(xlabel="rate", ylabel="loss", title="Learning-rate range test")
    axes.legend(fontsize=8)
    return best


def smoothed(losses: np.ndarray, keep: float = 0.8) -> np.ndarray:
    """A fading mean, corrected for its beginning as Adam's is."""
    mean, found = 0.0, []
    for i, loss in enumerate(losses):
        mean = keep * mean + (1 - keep) * loss
        found.append(mean / (1 - keep ** (i + 1)))
    return np.array(found)


def steepest(rates: np.ndarray, losses: np.ndarray) -> float:
    """The rate at which the smoothed loss falls fastest, on a logarithmic axis of rates."""
    if len(rates) < 3:
        raise ValueError(f"a slope needs three points at least, and the test has {len(rates)}: give it more batches")
    return float(rates[np.argmin(np.gradient(smoothed(losses), np.log(rates)))])


# %% [markdown]
# ## All together
#
# The digits once more: the network of chapter 06, a test for its rate, and then four trainings from the same weights,
# on the same batches, at the same highest rate. Only the schedule differs.

# %%
data = np.load(Path(gradwright.__file__).parents[1] / "data" / "digits.npz")
images, labels = data["images"].reshape(-1, 64) / 16, data["labels"].astype(np.int64)
training, testing = np.split(np.random.default_rng(0).permutation(len(images)), [1437])
order = np.random.default_rng(1)
batches = [order.choice(training, 64) for _ in range(300)]


def network():
    gradwright.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def loss_with(model):
    def loss_of(rows):
        x, ids = gradwright.tensor(images[rows]).float(), gradwright.tensor(labels[rows])
        return F.cross_entropy(model(x), ids)

    return loss_of


model = network()
optimizer = optim.AdamW(model.parameters())
tested = lr_range_test(optimizer, loss_with(model), batches[:120], lr_min=1e-5, lr_max=10.0)
fastest = plot_range_test(*tested)
plt.show()

# %% [markdown]
# Without a kernel, this is its picture. The loss turns at a rate of about 0.2; a quarter of that is a good highest
# rate.

# %% figure="range-test"
"""Loss against rate, on a logarithmic axis from 1e-5 to 1. Up to 1e-3 the loss stays at 2.3. It falls, most steeply
near 0.015, to 0.4 at a rate of 0.1, and jumps to 2.8 at 0.24, where the test stops. The rate 0.05 is marked."""
tens = [-5, -4, -3, -2.88, -2.68, -2.48, -2.28, -2.08, -1.97, -1.87, -1.77, -1.67, -1.47, -1.27, -1.17, -1.07]
tens += [-0.97, -0.87, -0.76, -0.66, -0.61]
losses = [2.32, 2.31, 2.23, 2.2, 2.18, 2.07, 1.89, 1.6, 1.34, 1.18, 0.84, 0.62, 0.5, 0.46, 0.6, 0.5, 0.38, 0.36, 0.17]
figure, axes = plt.subplots(figsize=(7, 2.6))
axes.semilogx(10 ** np.array(tens), [*losses, 0.44, 2.84], color="#0072b2")
axes.axvline(0.05, color="#d55e00", linestyle="--")
axes.text(0.046, 2.1, "0.05", color="#d55e00", ha="right")
axes.set(xlabel="rate", ylabel="loss", xlim=(1e-5, 1), ylim=(0, 3))

# %% [markdown]
# And the four trainings:

# %%
highest, total = 0.05, len(batches)
schedules = {
    "constant": lambda t: 1.0,
    "staircase": lambda t: step_decay(t, 1.0, 100, 0.3),
    "cosine": lambda t: cosine(t, 1.0, total),
    "warm-up, then cosine": lambda t: warmup_cosine(t, 1.0, 30, total),
}
for name, share in schedules.items():
    model = network()
    optimizer = optim.AdamW(model.parameters(), lr=highest)
    losses, used = scheduled_epoch(optimizer, LambdaLR(optimizer, share), loss_with(model), batches)
    with gradwright.no_grad():
        said = model(gradwright.tensor(images[testing]).float()).argmax(1).numpy()
    right = (said == labels[testing]).mean()
    loss = np.mean(losses[-20:])
    print(f"{name:22} last rate {used[-1]:.5f}   loss at the end {loss:.4f}   {right:.1%} right")

# %% [markdown]
# At a rate that suits the steep part the constant rate learns as fast as the others and then cannot settle: its loss at
# the end is more than three times theirs. *That* the rate falls matters far more than how, and a network of one hidden
# layer hardly needs a warm-up. The deeper one in the widget does: choose *no warm-up*, and compare its curve A, which
# begins at the full rate of 0.1, with B, which takes twenty steps to get there.

# %% [markdown]
# ## In PyTorch
#
# `torch.optim.lr_scheduler` has all of the kinds above, with the same arguments and, to rounding, the same numbers, and
# a few more: `PolynomialLR`, `CyclicLR`, `ConstantLR`, `MultiplicativeLR`, and `ChainedScheduler`, which steps several
# at once. Its `step(epoch)`, which goes to a step of your choice, is deprecated and not offered here, except where it
# is useful: `CosineAnnealingWarmRestarts` takes fractions of an epoch in both.
#
# Where this chapter goes its own way: zero-length phases of `OneCycleLR` have a value instead of an error, resuming
# `CosineAnnealingWarmRestarts` by `last_epoch` finds the right cycle also after several of unequal length, and
# `LinearLR(total_iters=0)`, which in PyTorch stays at its start_factor without a word, says so. The functions `cosine`
# and `warmup_cosine`, which stay where they are beyond the end, and the range test are ours alone.
#
# With automatic mixed precision, chapter 10, some optimizer steps are skipped. The schedule must then stand still too,
# and nothing in the scheduler can know: it is the loop that has to look.

# %% [markdown]
# ## Check yourself
#
# Two questions, a sentence or two each, in a cell of your own.
#
# 1. A training of 1,000 steps is to be prolonged to 1,500 at step 900, under `cosine`. What happens to the rate if you
#    change `total` and go on? What if you do the same under PyTorch's `CosineAnnealingLR` with `T_max=1000`, and change
#    nothing?
# 2. A colleague reports that their warm-up "does nothing": the logged rate of the first step is already twice what they
#    expected. Name two mistakes that give exactly this.
#
# You can now
#
# - [x] write the usual schedules as functions of the step, and say what they do at step 0, at the end and beyond;
# - [x] put a schedule around an optimizer, for groups that each have a rate of their own;
# - [x] step optimizer and scheduler in the right order, and say what the wrong order costs;
# - [x] let a schedule watch the loss without falling into the trap above;
# - [x] resume a training in the middle of its curve;
# - [x] find a good rate before the training begins.
#
# When all checks are right, compare with [the solution of this chapter](../../solutions/07_schedulers.py). In a week,
# try `autograder fresh 07`. Next come the data: how they reach the training, in which order, and how fast.
