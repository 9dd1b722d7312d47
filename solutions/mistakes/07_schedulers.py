"""Chapter 07: the right values, wrong answers, and other right ones. A mistake's docstring is what learners read."""

from __future__ import annotations

import copy
import itertools
import math
import warnings

import numpy as np

from gradwright.chapters.autodiff import no_grad
from gradwright.chapters.schedulers import (
    LRScheduler,
    anneal,
    bisect_right,
    cosine,
    lr_range_test,
    plateau_step,
    resume,
    sequence_position,
    step_decay,
    steps_taken,
    too_early,
    warmup_cosine,
)


def torch_rates(torch, make, lr, count):
    """The rates of the first steps of a PyTorch scheduler."""
    p = torch.ones(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=lr)
    scheduler, found = make(torch.optim.lr_scheduler, optimizer), []
    for _ in range(count):
        found.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return found


class schedulers_step_decay:
    def oracle(arrays, torch):
        size, gamma = int(arrays["step_size"]), float(arrays.get("gamma", 0.1))

        def make(kinds, optimizer):
            return kinds.StepLR(optimizer, size, gamma)

        return {"rates": torch_rates(torch, make, float(arrays["lr"]), len(arrays["steps"]))}

    class mistakes:
        def smooth(step, lr, step_size, gamma=0.1):
            """The rate falls at every step. Between two stairs it stays: divide without a remainder."""
            return lr * gamma ** (step / step_size)

        def one_step_late(step, lr, step_size, gamma=0.1):
            """Every stair comes one step late: step number step_size is the first with the new rate."""
            return step_decay(max(step - 1, 0), lr, step_size, gamma)

        def one_step_early(step, lr, step_size, gamma=0.1):
            """Every stair comes one step early: steps 0 to step_size - 1 have the first rate."""
            return step_decay(step + 1, lr, step_size, gamma)

        def one_stair(step, lr, step_size, gamma=0.1):
            """The rate falls once and never again: it falls after every step_size steps."""
            return lr * gamma if step >= step_size else lr

        def at_every_step(step, lr, step_size, gamma=0.1):
            """gamma was taken to the power of the step, and step_size was not used."""
            return lr * gamma**step

        def times_the_number(step, lr, step_size, gamma=0.1):
            """The rate was multiplied by gamma times the number of stairs: it is gamma to the power of that number."""
            return lr * gamma * (step // step_size)

        def lr_left_out(step, lr, step_size, gamma=0.1):
            """lr was not used, so every curve begins at 1: gamma's power is a share of it."""
            return step_decay(step, 1.0, step_size, gamma)

        def gamma_taken_off(step, lr, step_size, gamma=0.1):
            """The rate was multiplied by 1 - gamma: gamma is what is left of it, not what goes."""
            return step_decay(step, lr, step_size, 1 - gamma)

    class alternatives:
        def loop(step, lr, step_size, gamma=0.1):
            for t in range(1, step + 1):
                if t % step_size == 0:
                    lr = lr * gamma
            return lr

        def by_logarithm(step, lr, step_size, gamma=0.1):
            return lr * math.exp(math.log(gamma) * math.floor(step / step_size))


class schedulers_cosine:
    def oracle(arrays, torch):
        if arrays.get("to be refused", False):
            return {"refused with ValueError": True}
        lr, low, total = float(arrays["lr"]), float(arrays.get("lr_min", 0)), int(arrays["total"])
        steps = arrays["steps"]
        if (steps % 1).any():
            return {"rates": low + (lr - low) * (1 + np.cos(np.pi * steps / total)) / 2}

        def make(kinds, optimizer):
            return kinds.CosineAnnealingLR(optimizer, total, low)

        wave = torch_rates(torch, make, lr, total + 1)
        return {"rates": [wave[step] if step < total else low for step in steps.tolist()]}

    class mistakes:
        def rises_again(step, lr, total, lr_min=0.0):
            """Beyond the end the rate rises again: from step `total` on it stays at lr_min."""
            refuse(total)
            return wave(step / total, lr, lr_min)

        def one_step_ahead(step, lr, total, lr_min=0.0):
            """The curve is one step ahead: step 0 has the full rate."""
            return cosine(step + 1, lr, total, lr_min)

        def ends_a_step_early(step, lr, total, lr_min=0.0):
            """lr_min is reached at step total - 1: it belongs to step `total`."""
            refuse(total)
            return cosine(step, lr, total - 1, lr_min) if total > 1 else lr_min

        def lr_min_ignored(step, lr, total, lr_min=0.0):
            """lr_min was not used: the wave ends there and not at 0."""
            return cosine(step, lr, total)

        def lr_min_added(step, lr, total, lr_min=0.0):
            """lr_min was added to a wave of height lr, so the curve begins too high: its height is lr - lr_min."""
            return lr_min + cosine(step, lr, total)

        def lr_min_as_a_floor(step, lr, total, lr_min=0.0):
            """The wave goes down to 0 and was cut off at lr_min: it is to reach lr_min only at the end."""
            return max(cosine(step, lr, total), lr_min)

        def zero_beyond_the_end(step, lr, total, lr_min=0.0):
            """Beyond the end the rate is 0: it stays at lr_min."""
            return 0.0 if step > total else cosine(step, lr, total, lr_min)

        def whole_wave(step, lr, total, lr_min=0.0):
            """A whole wave was used, which is back at the top at the end: half of one, from 0 to pi, leads down."""
            refuse(total)
            return wave(2 * min(step / total, 1.0), lr, lr_min)

        def quarter_wave(step, lr, total, lr_min=0.0):
            """A quarter of a wave was used, which is steepest at its end: add 1 to the cosine and halve, from 0 to
            pi."""
            refuse(total)
            return lr_min + (lr - lr_min) * math.cos(math.pi / 2 * min(step / total, 1.0))

        def not_halved(step, lr, total, lr_min=0.0):
            """1 + cos runs from 2 to 0, and was not halved: the curve begins at twice its height."""
            return 2 * cosine(step, lr, total, lr_min) - lr_min

        def upside_down(step, lr, total, lr_min=0.0):
            """The curve leads up: it is 1 + cos and not 1 - cos that begins at the top."""
            refuse(total)
            return wave(1 - min(step / total, 1.0), lr, lr_min)

        def whole_division(step, lr, total, lr_min=0.0):
            """The share of the way is always 0 or 1: divide by total with `/`, not with `//`."""
            refuse(total)
            return wave(min(step // total, 1), lr, lr_min)

        def no_total_is_too_small(step, lr, total, lr_min=0.0):
            """A total below 1 was not refused: raise ValueError."""
            return cosine(step, lr, total, lr_min) if total > 0 else lr_min

    class alternatives:
        def by_sine(step, lr, total, lr_min=0.0):
            if total <= 0:
                raise ValueError("total")
            left = max(1 - step / total, 0)
            return lr_min + (lr - lr_min) * math.sin(math.pi / 2 * left) ** 2

        def branches(step, lr, total, lr_min=0.0):
            if not total >= 1:
                raise ValueError(f"no such total: {total}")
            if step >= total:
                return lr_min
            half = (lr - lr_min) / 2
            return lr_min + half + half * np.cos(np.pi * step / total)


def refuse(total):
    if total < 1:
        raise ValueError(f"total={total}")


def wave(share, lr, lr_min):
    return lr_min + (lr - lr_min) * (1 + math.cos(math.pi * share)) / 2


class schedulers_warmup:
    def oracle(arrays, torch):
        if arrays.get("to be refused", False):
            return {"refused with ValueError": True}
        lr, low = float(arrays["lr"]), float(arrays.get("lr_min", 0))
        warmup, total = int(arrays["warmup"]), int(arrays["total"])
        found = []
        if warmup:

            def rise(kinds, optimizer):
                return kinds.LinearLR(optimizer, 1 / warmup, total_iters=warmup - 1)

            found += torch_rates(torch, rise, lr, warmup)
        if total > warmup:

            def fall(kinds, optimizer):
                return kinds.CosineAnnealingLR(optimizer, total - warmup, low)

            found += torch_rates(torch, fall, lr, total - warmup)
        return {"rates": found + [low] * (len(arrays["steps"]) - total)}

    class mistakes:
        def begins_at_zero(step, lr, warmup, total, lr_min=0.0):
            """The warm-up begins at a rate of 0, and step 0 is wasted: it has lr / warmup."""
            rate = warmup_cosine(step, lr, warmup, total, lr_min)
            return lr * step / warmup if step < warmup else rate

        def full_rate_a_step_late(step, lr, warmup, total, lr_min=0.0):
            """The rise was divided by warmup + 1, so it ends below the full rate: step warmup - 1 has lr."""
            rate = warmup_cosine(step, lr, warmup, total, lr_min)
            return lr * (step + 1) / (warmup + 1) if step < warmup else rate

        def begins_at_lr_min(step, lr, warmup, total, lr_min=0.0):
            """The warm-up rises from lr_min: it rises as if it came from 0, whatever lr_min is."""
            rate = warmup_cosine(step, lr, warmup, total, lr_min)
            return lr_min + (lr - lr_min) * (step + 1) / warmup if step < warmup else rate

        def cosine_not_moved(step, lr, warmup, total, lr_min=0.0):
            """The cosine counts from the first step of the training, so there is a jump after the warm-up: its step 0
            is step `warmup`, and it has total - warmup steps."""
            rate = warmup_cosine(step, lr, warmup, total, lr_min)
            return rate if step < warmup else cosine(step, lr, total, lr_min)

        def cosine_too_long(step, lr, warmup, total, lr_min=0.0):
            """The cosine has total steps of its own, and the training ends before it does: it has total - warmup."""
            rate = warmup_cosine(step, lr, warmup, total, lr_min)
            return rate if step < warmup else cosine(step - warmup, lr, total, lr_min)

        def cosine_begins_late(step, lr, warmup, total, lr_min=0.0):
            """The rate stays at lr for one step too many: step `warmup` is the cosine's step 0."""
            rate = warmup_cosine(step, lr, warmup, total, lr_min)
            if step < warmup or step >= total:
                return rate
            return cosine(max(step - warmup - 1, 0), lr, total - warmup, lr_min)

        def rises_one_step_more(step, lr, warmup, total, lr_min=0.0):
            """The rise has one step too many and goes above lr: step `warmup` is the cosine's step 0."""
            rate = warmup_cosine(step, lr, warmup, total, lr_min)
            return lr * (step + 1) / warmup if step <= warmup and warmup else rate

        def no_warm_up(step, lr, warmup, total, lr_min=0.0):
            """There is no warm-up: the rate begins at lr."""
            warmup_cosine(step, lr, warmup, total, lr_min)
            return cosine(step, lr, total, lr_min)

        def divides_by_zero_steps(step, lr, warmup, total, lr_min=0.0):
            """With a warm-up of 0 steps it divides by zero: compute the rise only where there is one."""
            rate = warmup_cosine(step, lr, warmup, total, lr_min)
            rise = lr * (step + 1) / warmup
            return min(rise, rate) if step < warmup else rate

        def no_cosine_left(step, lr, warmup, total, lr_min=0.0):
            """With a warm-up of all steps the rate stays at lr for ever: from step `total` on it is lr_min."""
            rate = warmup_cosine(step, lr, warmup, total, lr_min)
            return lr if warmup == total <= step else rate

        def rises_again(step, lr, warmup, total, lr_min=0.0):
            """Beyond the end the rate rises again: from step `total` on it is lr_min."""
            rate = warmup_cosine(step, lr, warmup, total, lr_min)
            return wave((step - warmup) / (total - warmup), lr, lr_min) if step > total > warmup else rate

        def too_much_warm_up_accepted(step, lr, warmup, total, lr_min=0.0):
            """A warmup above total, or one below 0, was accepted: raise ValueError."""
            refuse(total)
            return warmup_cosine(step, lr, min(max(warmup, 0), total), total, lr_min)

    class alternatives:
        def by_interpolation(step, lr, warmup, total, lr_min=0.0):
            if not (0 <= warmup <= total and total >= 1):
                raise ValueError("0 <= warmup <= total")
            if step < warmup:
                return float(np.interp(step, [-1, warmup - 1], [0, lr]))
            left = max(total - step, 0) / max(total - warmup, 1)
            return lr_min + (lr - lr_min) * math.sin(math.pi / 2 * left) ** 2

        def end_first(step, lr, warmup, total, lr_min=0.0):
            if total < 1 or warmup > total or warmup < 0:
                raise ValueError("no such training")
            if step >= total:
                return lr_min
            return (step + 1) / warmup * lr if step < warmup else wave((step - warmup) / (total - warmup), lr, lr_min)


class schedulers_anneal:
    def oracle(arrays, torch):
        ends, values, linear = arrays["ends"].tolist(), arrays["values"].tolist(), bool(arrays["linear"])
        start, high, low = values[0], values[1], values[-1]
        if ends[0] == 0 or ends[-1] == ends[-2]:  # PyTorch divides by zero there
            return {"values": [without_length(step, ends, values, linear) for step in arrays["steps"].tolist()]}
        options = {
            "max_lr": high,
            "total_steps": int(arrays["total"]),
            "pct_start": float(arrays["pct_start"]),
            "div_factor": high / start,
            "final_div_factor": start / low,
            "three_phase": len(ends) == 3,
            "anneal_strategy": "linear" if linear else "cos",
            "cycle_momentum": False,
        }
        p = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([p], lr=1.0)
        scheduler, found = torch.optim.lr_scheduler.OneCycleLR(optimizer, **options), []
        for _ in arrays["steps"][:-1]:
            found.append(scheduler.get_last_lr()[0])
            optimizer.step()
            scheduler.step()
        return {"values": [*found, scheduler.get_last_lr()[0]]}

    class mistakes:
        def share_of_the_whole(step, ends, values, linear=False):
            """Every phase counts from step 0: it begins where the one before it has ended."""
            phase = phase_of(step, ends)
            return between(values[phase], values[phase + 1], step / ends[phase] if ends[phase] else 1.0, linear)

        def length_is_the_end(step, ends, values, linear=False):
            """The steps of a phase were divided by its end: it is as long as from the end before to its own."""
            phase = phase_of(step, ends)
            begin = ends[phase - 1] if phase else 0.0
            share = (step - begin) / ends[phase] if ends[phase] else 1.0
            return between(values[phase], values[phase + 1], share, linear)

        def end_in_the_next_phase(step, ends, values, linear=False):
            """A step that is exactly at an end was counted to the next phase, which here has no length: it still
            belongs to the phase that ends there."""
            phase = next((i for i, end in enumerate(ends) if step < end), len(ends) - 1)
            return phased(step, ends, values, linear, phase)

        def phases_turned_round(step, ends, values, linear=False):
            """Every phase runs backwards, from its last value to its first."""
            phase = phase_of(step, ends)
            return between(values[phase + 1], values[phase], share_in(step, ends, phase), linear)

        def always_linear(step, ends, values, linear=False):
            """Straight lines were drawn, though half waves were asked for."""
            return anneal(step, ends, values, linear=True)

        def never_linear(step, ends, values, linear=False):
            """`linear` was not looked at: it asks for straight lines."""
            return anneal(step, ends, values)

        def stays_at_the_end(step, ends, values, linear=False):
            """Past the last end the value stays: here the formula of the last phase just goes on."""
            return anneal(min(step, max(ends[-1], 0)), ends, values, linear)

        def whole_ends(step, ends, values, linear=False):
            """The ends were rounded to whole steps: use them as they are."""
            rounded = [round(end) for end in ends]
            return anneal(step, rounded, values, linear)

        def first_value_without_length(step, ends, values, linear=False):
            """A phase without length has its first value here: it has its last one."""
            phase = phase_of(step, ends)
            return values[phase] if share_in(step, ends, phase) is None else anneal(step, ends, values, linear)

        def divides_by_a_length_of_zero(step, ends, values, linear=False):
            """A phase without length is divided by its length, which is 0: it has its last value."""
            phase = phase_of(step, ends)
            begin = ends[phase - 1] if phase else 0.0
            share = (step - begin) / (ends[phase] - begin)
            return between(values[phase], values[phase + 1], share, linear)

    class alternatives:
        def walk(step, ends, values, linear=False):
            begin = 0.0
            for i, end in enumerate(ends):
                if step <= end or i == len(ends) - 1:
                    share = 1.0 if end == begin else (step - begin) / (end - begin)
                    if linear:
                        return (1 - share) * values[i] + share * values[i + 1]
                    mean, half = (values[i] + values[i + 1]) / 2, (values[i] - values[i + 1]) / 2
                    return mean + half * math.cos(math.pi * share)
                begin = end
            raise AssertionError("there is always a last phase")

        def by_search(step, ends, values, linear=False):
            phase = min(int(np.searchsorted(ends, step)), len(ends) - 1)
            begins = [0.0, *ends]
            length = ends[phase] - begins[phase]
            share = (step - begins[phase]) / length if length else 1.0
            if not linear:
                share = math.sin(math.pi / 2 * share) ** 2
            return values[phase] + share * (values[phase + 1] - values[phase])


def phase_of(step, ends):
    return next((i for i, end in enumerate(ends) if step <= end), len(ends) - 1)


def share_in(step, ends, phase):
    begin = ends[phase - 1] if phase else 0.0
    return (step - begin) / (ends[phase] - begin) if ends[phase] != begin else None


def between(start, end, share, linear):
    share = 1.0 if share is None else share
    left = 1 - share if linear else (1 + math.cos(math.pi * share)) / 2
    return end + (start - end) * left


def phased(step, ends, values, linear, phase):
    return between(values[phase], values[phase + 1], share_in(step, ends, phase), linear)


def without_length(step, ends, values, linear):
    """The curve where a phase has no length, by hand: that phase is at its end."""
    phase = min(sum(end < step for end in ends), len(ends) - 1)
    begin = (0.0, *ends)[phase]
    share = 1.0 if ends[phase] == begin else (step - begin) / (ends[phase] - begin)
    rise = share if linear else 0.5 - 0.5 * np.cos(np.pi * share)
    return values[phase] + (values[phase + 1] - values[phase]) * rise


def torch_kind(name, torch):
    """The two schedules of the probe, upon PyTorch's class."""

    class Curve(torch.optim.lr_scheduler.LRScheduler):
        def __init__(self, optimizer, table, last_epoch=-1):
            self.table = table
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            found = [group["lr"] for group in self.optimizer.param_groups] if name == "change" else self.base_lrs
            return [lr * self.table[self.last_epoch] for lr in found]

    return Curve


class schedulers_scheduler:
    def oracle(arrays, torch):
        kind = torch_kind(str(arrays["kind"]), torch)
        optimizer, table = torch_sgd(arrays["lr"], arrays["initial_lr"], torch), arrays["table"].tolist()
        last = int(arrays["last_epoch"])
        if arrays["to be refused"]:
            return {"refused with KeyError": True}
        for _ in range(int(arrays["steps before"])):
            optimizer.step()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scheduler = kind(optimizer, table, last)
            found = torch_events(scheduler, optimizer, arrays["events"].tolist(), caught)
        other = torch_sgd(2 * arrays["lr"], arrays["initial_lr"], torch)
        return found | torch_loaded(scheduler, kind, other, table)

    class mistakes:
        class initial_overwritten(LRScheduler):
            """initial_lr was overwritten by the present rate. Where a group has one already, it stays."""

            def __init__(self, optimizer, last_epoch=-1):
                for group in optimizer.param_groups:
                    if last_epoch == -1:
                        group["initial_lr"] = group["lr"]
                super().__init__(optimizer, last_epoch)

        class base_from_the_present_rate(LRScheduler):
            """base_lrs was filled with the present rates: it is the list of the groups' initial_lr."""

            def __init__(self, optimizer, last_epoch=-1):
                present = [group["lr"] for group in optimizer.param_groups]
                start(self, optimizer, last_epoch, present)

        class begins_at_one(LRScheduler):
            """last_epoch begins at 0, so the first rate is never set: begin at what was handed over, and let the
            constructor's own step make 0 of it."""

            def __init__(self, optimizer, last_epoch=-1):
                start(self, optimizer, last_epoch, shift=1)

        class counts_too_late(LRScheduler):
            """The rates were computed before last_epoch was counted on: get_lr() asks for the rates of the step that
            begins now."""

            def step(self):
                early(self)
                self._step_count += 1
                rates = self.get_lr()
                self.last_epoch += 1
                self.set_rates(rates)

        class only_the_first_group(LRScheduler):
            """Only the first group got its rate: every group has one of its own."""

            def set_rates(self, rates):
                self.optimizer.param_groups[0]["lr"] = rates[0]
                self._last_lr = list(rates)

        class first_rate_for_all(LRScheduler):
            """All groups got the rate of the first one: every group has one of its own."""

            def set_rates(self, rates):
                super().set_rates([rates[0]] * len(rates))

        class never_warns(LRScheduler):
            """Stepping the scheduler before the optimizer goes without a warning."""

            def step(self):
                self._step_count += 1
                self.last_epoch += 1
                self.set_rates(self.get_lr())

        class warns_every_time(LRScheduler):
            """It warns at every step of the scheduler for as long as the optimizer stands still: once, at the first
            step after the constructor's, is enough."""

            def step(self):
                if self._step_count >= 1 and steps_taken(self.optimizer) == self._steps_before:
                    warnings.warn(too_early(self.get_last_lr()), stacklevel=2)
                go_on(self)

        class asks_whether_it_ever_moved(LRScheduler):
            """It does not warn when the optimizer has moved before the scheduler was made: ask whether it has moved
            since."""

            def step(self):
                if self._step_count == 1 and not steps_taken(self.optimizer):
                    warnings.warn(too_early(self.get_last_lr()), stacklevel=2)
                go_on(self)

        class last_rates_not_kept(LRScheduler):
            """get_last_lr() still gives the first rates: keep them anew whenever they are set."""

            def set_rates(self, rates):
                kept = getattr(self, "_last_lr", list(rates))
                super().set_rates(rates)
                self._last_lr = kept

        class optimizer_saved(LRScheduler):
            """The optimizer is part of what is saved, with the whole model in it: leave it out, it saves itself."""

            def state_dict(self):
                return dict(vars(self))

            def load_state_dict(self, state_dict):
                vars(self).update({name: value for name, value in state_dict.items() if name != "optimizer"})

        class itself_handed_out(LRScheduler):
            """state_dict() handed out the dictionary of the attributes itself, optimizer and all: make a new one
            without the optimizer."""

            def state_dict(self):
                return vars(self)

        class itself_without_the_optimizer(LRScheduler):
            """state_dict() took the optimizer out of the scheduler's own attributes and handed those out: make a new
            dictionary."""

            def state_dict(self):
                vars(self).pop("optimizer", None)
                return vars(self)

        class optimizer_lost(LRScheduler):
            """Loading threw away what was not in the saved state, and the optimizer with it: put the saved attributes
            over those that are there."""

            def load_state_dict(self, state_dict):
                vars(self).clear()
                vars(self).update(state_dict)

        class writes_while_loading(LRScheduler):
            """Loading wrote rates into the groups. It leaves them as they are: the optimizer loads them itself."""

            def load_state_dict(self, state_dict):
                super().load_state_dict(state_dict)
                self.set_rates(self.get_last_lr())

        class loads_only_the_step(LRScheduler):
            """Only last_epoch was loaded: base_lrs and what a subclass keeps belong to the state as well."""

            def load_state_dict(self, state_dict):
                self.last_epoch = state_dict["last_epoch"]

        class resumes_from_anything(LRScheduler):
            """Resuming on a group without an initial_lr was accepted, and its present rate taken for it: raise
            KeyError."""

            def __init__(self, optimizer, last_epoch=-1):
                for group in optimizer.param_groups:
                    group.setdefault("initial_lr", group["lr"])
                super().__init__(optimizer, last_epoch)

    class alternatives:
        class written_out(LRScheduler):
            def __init__(self, optimizer, last_epoch=-1):
                self.optimizer, self.base_lrs, self.last_epoch = optimizer, [], last_epoch
                for group in optimizer.param_groups:
                    if "initial_lr" not in group:
                        if last_epoch != -1:
                            raise KeyError("initial_lr")
                        group["initial_lr"] = group["lr"]
                    self.base_lrs.append(group["initial_lr"])
                self._initial_step()

            def step(self):
                first = self._step_count == 1
                self._step_count, self.last_epoch = self._step_count + 1, self.last_epoch + 1
                if first and not steps_taken(self.optimizer) > self._steps_before:
                    warnings.warn(too_early(self._last_lr), UserWarning, stacklevel=2)
                self.set_rates(self.get_lr())

            def set_rates(self, rates):
                for i in range(len(self.optimizer.param_groups)):
                    self.optimizer.param_groups[i].update(lr=rates[i])
                self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

            def state_dict(self):
                state = vars(self).copy()
                del state["optimizer"]
                return state

            def load_state_dict(self, state_dict):
                for name, value in state_dict.items():
                    setattr(self, name, value)


def start(scheduler, optimizer, last_epoch, base=None, shift=0):
    """The constructor, with a part of it done otherwise."""
    for group in optimizer.param_groups:
        if last_epoch == -1:
            group.setdefault("initial_lr", group["lr"])
        elif "initial_lr" not in group:
            raise KeyError("initial_lr")
    scheduler.optimizer, scheduler.last_epoch = optimizer, last_epoch + shift
    scheduler.base_lrs = base or [group["initial_lr"] for group in optimizer.param_groups]
    scheduler._initial_step()


def early(scheduler):
    if scheduler._step_count == 1 and steps_taken(scheduler.optimizer) == scheduler._steps_before:
        warnings.warn(too_early(scheduler.get_last_lr()), stacklevel=2)


def go_on(scheduler):
    scheduler._step_count += 1
    scheduler.last_epoch += 1
    scheduler.set_rates(scheduler.get_lr())


def torch_sgd(lrs, initial_lrs, torch):
    groups = [{"params": [torch.ones(1, requires_grad=True)], "lr": lr} for lr in lrs.tolist()]
    optimizer = torch.optim.SGD(groups)
    for group, initial in zip(optimizer.param_groups, initial_lrs.tolist(), strict=True):
        group["params"][0].grad = torch.full((1,), 0.5)
        if initial:
            group["initial_lr"] = initial
    return optimizer


def torch_events(scheduler, optimizer, events, caught):
    move = {"optimizer": optimizer.step, "scheduler": scheduler.step, None: lambda: None}
    rows, last, epochs, warned = [], [], [], []
    for event in (None, *events):
        move[event]()
        rows.append([group["lr"] for group in optimizer.param_groups])
        last.append(list(scheduler.get_last_lr()))
        epochs.append(scheduler.last_epoch)
        warned.append(len(caught))
    initial = [group["initial_lr"] for group in optimizer.param_groups]
    found = {"rates in the groups": rows, "get_last_lr()": last, "last_epoch": epochs, "warnings by then": warned}
    return found | {"initial_lr": initial, "base_lrs": list(scheduler.base_lrs)}


def torch_loaded(scheduler, kind, other, table):
    saved, stood = scheduler.state_dict(), scheduler.last_epoch
    second = kind(other, [1.0, *table])

    def rates():
        return [group["lr"] for group in other.param_groups]

    before = rates()
    second.load_state_dict(saved)
    after = rates()
    other.step()
    second.step()
    return {
        "the optimizer is saved": "optimizer" in saved,
        "saved": np.array(sorted({"base_lrs", "last_epoch", "table"} & saved.keys())),
        "rates before loading": before,
        "rates after loading": after,
        "the optimizer is still the own one": second.optimizer is other,
        "last_epoch one step later": second.last_epoch,
        "rates one step later": rates(),
        "last_epoch of the first, after that of the saved state was changed": stood,
    }


class schedulers_epoch:
    def oracle(arrays, torch):
        w = torch.from_numpy(arrays["w"]).requires_grad_()
        optimizer = torch.optim.SGD([w], lr=1.0, momentum=0.5)
        losses, used = [], []
        for rows, lr in zip(torch.from_numpy(arrays["batches"]), arrays["rates"].tolist(), strict=False):
            optimizer.param_groups[0]["lr"] = lr
            optimizer.zero_grad()
            loss = ((rows[:, :-1] @ w - rows[:, -1]) ** 2).mean() + 0.1
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            used.append(lr)
        return {
            "losses": np.array(losses, dtype=np.float64),
            "rates": np.array(used, dtype=np.float64),
            "w at the end": w.detach(),
            "steps of the scheduler": len(losses),
        }

    class mistakes:
        def scheduler_first(optimizer, scheduler, loss_of, batches):
            """The scheduler went before the optimizer, so the first rate was never used and the curve came a step
            early: optimizer first."""
            return epoch(optimizer, scheduler, loss_of, batches, "szlburo")

        def rate_read_too_late(optimizer, scheduler, loss_of, batches):
            """The rate was read after the scheduler had gone on: it is that of the next step. Read it before."""
            return epoch(optimizer, scheduler, loss_of, batches, "zlbosur")

        def once_an_epoch(optimizer, scheduler, loss_of, batches):
            """The scheduler went on once, behind the loop, so that all steps had the same rate: it goes on after every
            step of the optimizer."""
            found = epoch(optimizer, scheduler, loss_of, batches, "zlburo")
            scheduler.step()
            return found

        def scheduler_never_steps(optimizer, scheduler, loss_of, batches):
            """The scheduler was never stepped: all steps had the first rate."""
            return epoch(optimizer, scheduler, loss_of, batches, "zlburo")

        def scheduler_twice(optimizer, scheduler, loss_of, batches):
            """The scheduler went on twice for every step of the optimizer, so every second rate was left out."""
            return epoch(optimizer, scheduler, loss_of, batches, "zlbuross")

        def gradients_pile_up(optimizer, scheduler, loss_of, batches):
            """Gradients of steps before were not forgotten: call zero_grad() before each backward."""
            return epoch(optimizer, scheduler, loss_of, batches, "lburos")

        def zeroed_behind_the_step(optimizer, scheduler, loss_of, batches):
            """What was in the gradients before the first batch was added to its own: zero_grad() stands in front of
            backward, not behind the step."""
            return epoch(optimizer, scheduler, loss_of, batches, "lbourzs")

        def returned_the_other_way_round(optimizer, scheduler, loss_of, batches):
            """Losses and rates were returned the other way round: the losses come first."""
            return epoch(optimizer, scheduler, loss_of, batches, "zlburos")[::-1]

        def optimizer_never_steps(optimizer, scheduler, loss_of, batches):
            """w is where it was: the optimizer took no step, or zero_grad() came between backward and its step."""
            return epoch(optimizer, scheduler, loss_of, batches, "zlburs")

        def loss_after_the_step(optimizer, scheduler, loss_of, batches):
            """The losses were computed once more, after the step: return those that gave the gradients."""
            losses, used = [], []
            for batch in batches:
                used += epoch(optimizer, scheduler, loss_of, [batch], "zlburos")[1]
                losses.append(loss_of(batch).item())
            return losses, used

    class alternatives:
        def comprehended(optimizer, scheduler, loss_of, batches):
            found = [epoch(optimizer, scheduler, loss_of, [batch], "rzlubos") for batch in batches]
            return [loss for losses, _ in found for loss in losses], [lr for _, used in found for lr in used]

        def zero_at_the_end(optimizer, scheduler, loss_of, batches):
            losses, used = [], []
            for p in (p for group in optimizer.param_groups for p in group["params"]):
                p.grad = None
            for batch in batches:
                used.append(float(optimizer.param_groups[0]["lr"]))
                loss = loss_of(batch)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
                losses.append(float(loss))
            return losses, used


def epoch(optimizer, scheduler, loss_of, batches, order):
    """An epoch, with its calls in the order of the letters: zero_grad, loss, backward, optimizer, scheduler, and
    writing down the loss (u) and the rate (r)."""
    losses, used = [], []
    for batch in batches:
        loss = None
        for letter in order:
            if letter == "z":
                optimizer.zero_grad()
            elif letter == "l":
                loss = loss_of(batch)
            elif letter == "b":
                loss.backward()
            elif letter == "u":
                losses.append(loss.item())
            elif letter == "r":
                used.append(optimizer.param_groups[0]["lr"])
            elif letter == "o":
                optimizer.step()
            else:
                scheduler.step()
    return losses, used


class schedulers_plateau:
    def oracle(arrays, torch):
        settings = {n: arrays[n].item() for n in arrays if n not in ("metrics", "best")}
        optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, eps=0.0, **settings)
        falls, best, bad, rest, before = [], [], [], [], 1.0
        for metric in arrays["metrics"].tolist():
            scheduler.step(metric)
            falls.append(scheduler.get_last_lr()[0] < before)
            before = scheduler.get_last_lr()[0]
            best.append(scheduler.best)
            bad.append(float(scheduler.num_bad_epochs))
            rest.append(float(scheduler.cooldown_counter))
        names = np.array(["best", "cooldown_counter", "lr", "num_bad_epochs"])
        found = {"the rate falls": falls, "best": best, "num_bad_epochs": bad, "cooldown_counter": rest}
        return found | {"entries afterwards": names}

    class mistakes:
        def one_round_early(kept, metric, patience=10, *rest, **settings):
            """The rate falls one round too early: `patience` bad rounds are forgiven, and it falls at the next."""
            return plateau_step(kept, metric, patience - 1, *rest, **settings)

        def one_round_late(kept, metric, patience=10, *rest, **settings):
            """The rate falls one round too late: at the first bad round beyond `patience`."""
            return plateau_step(kept, metric, patience + 1, *rest, **settings)

        def compared_with_the_round_before(kept, metric, *rest, **settings):
            """The metric was compared with that of the round before: best is the best so far."""
            falls = plateau_step(kept, metric, *rest, **settings)
            kept["best"] = metric
            return falls

        def best_by_any_margin(kept, metric, *rest, **settings):
            """best moved with an improvement that is too small to count: it moves only together with num_bad_epochs."""
            falls = plateau_step(kept, metric, *rest, **settings)
            better = max if mode_of(rest, settings) == "max" else min
            kept["best"] = better(kept["best"], metric)
            return falls

        def no_margin(kept, metric, patience=10, cooldown=0, threshold=1e-4, *rest, **settings):
            """threshold was not used: an improvement counts only if it is larger than the margin."""
            return plateau_step(kept, metric, patience, cooldown, 0.0, *rest, **settings)

        def always_relative(kept, metric, patience=10, cooldown=0, threshold=1e-4, mode="min", threshold_mode="rel"):
            """The margin was always taken as a share of best: with threshold_mode="abs" it is threshold itself."""
            return plateau_step(kept, metric, patience, cooldown, threshold, mode)

        def always_absolute(kept, metric, patience=10, cooldown=0, threshold=1e-4, mode="min", threshold_mode="rel"):
            """The margin was always threshold itself: with threshold_mode="rel" it is that share of best."""
            return plateau_step(kept, metric, patience, cooldown, threshold, mode, "abs")

        def always_min(kept, metric, patience=10, cooldown=0, threshold=1e-4, mode="min", threshold_mode="rel"):
            """mode was not looked at: with "max" large is good."""
            return plateau_step(kept, metric, patience, cooldown, threshold, "min", threshold_mode)

        def no_cooldown(kept, metric, patience=10, cooldown=0, *rest, **settings):
            """No cooldown begins when the rate falls."""
            return plateau_step(kept, metric, patience, 0, *rest, **settings)

        def bad_rounds_count_in_the_cooldown(kept, metric, *rest, **settings):
            """Bad rounds were counted during the cooldown: they are forgotten there."""
            left, kept["cooldown_counter"] = kept["cooldown_counter"], 0
            falls = plateau_step(kept, metric, *rest, **settings)
            if not falls:
                kept["cooldown_counter"] = max(left - 1, 0)
            return falls

        def cooldown_without_an_end(kept, metric, *rest, **settings):
            """The cooldown has no end: its counter goes down by one in every round."""
            left = kept["cooldown_counter"]
            falls = plateau_step(kept, metric, *rest, **settings)
            if left:
                kept["cooldown_counter"] = left
            return falls

        def second_point_left_out(kept, metric, patience=10, cooldown=0, *rest, **settings):
            """The cooldown was begun, and nothing was done in it: the counter goes down by one in every round, and the
            bad rounds are forgotten meanwhile."""
            left, kept["cooldown_counter"] = kept["cooldown_counter"], 0
            falls = plateau_step(kept, metric, patience, cooldown, *rest, **settings)
            kept["cooldown_counter"] = cooldown if falls else left
            return falls

        def kept_in_a_copy(kept, metric, *rest, **settings):
            """kept is as it was, and the next round begins anew: write best and both counters into it."""
            return plateau_step(dict(kept), metric, *rest, **settings)

        def falls_again_at_once(kept, metric, *rest, **settings):
            """The bad rounds were not forgotten when the rate fell, so it falls again in the next round."""
            bad = kept["num_bad_epochs"]
            falls = plateau_step(kept, metric, *rest, **settings)
            if falls:
                kept["num_bad_epochs"] = bad + 1
            return falls

        def better_forgets_nothing(kept, metric, *rest, **settings):
            """The bad rounds were not forgotten when the metric got better: they are counted in a row."""
            bad, best = kept["num_bad_epochs"], kept["best"]
            falls = plateau_step(kept, metric, *rest, **settings)
            if kept["best"] != best and not kept["cooldown_counter"]:
                kept["num_bad_epochs"] = bad
            return falls

        def nan_is_good(kept, metric, *rest, **settings):
            """A nan was taken for an improvement. It is not better than anything: ask whether the metric is better, and
            not whether it is no worse."""
            if math.isnan(metric) or math.isnan(kept["best"]):
                kept["best"], kept["num_bad_epochs"] = metric, 0
                return False
            return plateau_step(kept, metric, *rest, **settings)

    class alternatives:
        def branches(kept, metric, patience=10, cooldown=0, threshold=1e-4, mode="min", threshold_mode="rel"):
            best = kept["best"]
            if mode == "min":
                better = metric < (best * (1 - threshold) if threshold_mode == "rel" else best - threshold)
            else:
                better = metric > (best * (1 + threshold) if threshold_mode == "rel" else best + threshold)
            if better:
                kept["best"] = metric
            resting = kept["cooldown_counter"] > 0
            bad = 0 if better or resting else kept["num_bad_epochs"] + 1
            rest = kept["cooldown_counter"] - 1 if resting else 0
            falls = bad > patience
            kept.update(num_bad_epochs=0 if falls else bad, cooldown_counter=cooldown if falls else rest)
            return falls


def mode_of(rest, settings):
    return settings.get("mode", rest[3] if len(rest) > 3 else "min")


class schedulers_sequence:
    def oracle(arrays, torch):
        """Schedulers whose rates say who they are and which step they are at."""
        milestones, p = arrays["milestones"].tolist(), torch.ones(1, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([p], lr=1.0)
        kinds = torch.optim.lr_scheduler
        marked = [kinds.LambdaLR(optimizer, lambda t, i=i: 1000.0 * i + t) for i in range(len(milestones) + 1)]
        scheduler, found = kinds.SequentialLR(optimizer, marked, milestones), []
        for _ in arrays["steps"]:
            found.append(round(scheduler.get_last_lr()[0]))
            optimizer.step()
            scheduler.step()
        which, own = np.divmod(np.array(found, dtype=np.int64), 1000)
        return {"which scheduler": which, "its own step": own}

    class mistakes:
        def a_step_late(step, milestones):
            """The step at a milestone was left to the scheduler before: the next one begins there."""
            which = sum(milestone < step for milestone in milestones)
            return which, step - (milestones[which - 1] if which else 0)

        def own_step_not_counted(step, milestones):
            """The step of the training was handed on: each scheduler begins at its own step 0."""
            return bisect_right(milestones, step), step

        def counted_from_the_first(step, milestones):
            """Every step was counted from the first milestone: count from the one at which this scheduler began."""
            which = bisect_right(milestones, step)
            return which, step - milestones[0] if which else step

        def own_steps_from_one(step, milestones):
            """A scheduler's own steps were counted from 1: at its milestone it is at step 0."""
            which, own = sequence_position(step, milestones)
            return which, own + 1

        def only_two(step, milestones):
            """All milestones but the first were passed over: each one is a hand-over."""
            return sequence_position(step, milestones[:1])

        def lengths_added_up(step, milestones):
            """Milestones were taken for lengths, and added up: they are steps of the training."""
            return sequence_position(step, list(itertools.accumulate(milestones)))

        def milestones_used_up(step, milestones):
            """The list of milestones was changed, and the next call finds others: read it, and take nothing out."""
            which, own = sequence_position(step, milestones)
            while milestones and step >= milestones[0]:
                milestones.pop(0)
            return which, step if which else own

        def schedulers_counted_from_one(step, milestones):
            """The schedulers were counted from 1: the first one is number 0."""
            which, own = sequence_position(step, milestones)
            return which + 1, own

    class alternatives:
        def loop(step, milestones):
            which, begin = 0, 0
            for milestone in milestones:
                if milestone <= step:
                    which, begin = which + 1, milestone
            return which, step - begin

        def search(step, milestones):
            which = int(np.searchsorted(np.array(milestones, dtype=int), step, side="right"))
            return which, step - [0, *milestones][which]


class schedulers_resume:
    def oracle(arrays, torch):
        """The steps of a training that was never stopped."""
        p = torch.from_numpy(arrays["p"]).requires_grad_()
        optimizer = torch.optim.SGD([p], lr=float(arrays["lr"]), momentum=0.9)
        rates, rows = float(arrays["lr"]) * np.cumprod(arrays["factors"]), []
        for lr, g in zip(rates.tolist(), torch.from_numpy(arrays["gradients"]), strict=False):
            optimizer.param_groups[0]["lr"] = lr
            p.grad = g
            optimizer.step()
            rows.append([lr, *p.tolist()])
        table = np.array(rows)[int(arrays["done"]) :]
        twice = ("resumed", "resumed once more")
        rates, values = table[:, 0], table[:, 1:]
        return {f"rates, {t}": rates for t in twice} | {f"parameter, {t}": values for t in twice}

    class mistakes:
        def scheduler_built_last(saved, make_optimizer, make_scheduler):
            """The scheduler was built when the optimizer had been loaded, and its constructor wrote the rate of step 0
            over the saved one: build both first, then load both."""
            optimizer = make_optimizer()
            optimizer.load_state_dict(saved["optimizer"])
            scheduler = make_scheduler(optimizer)
            scheduler.load_state_dict(saved["scheduler"])
            return optimizer, scheduler

        def scheduler_not_loaded(saved, make_optimizer, make_scheduler):
            """The scheduler's state was not loaded: it goes on from step 0."""
            optimizer = make_optimizer()
            scheduler = make_scheduler(optimizer)
            optimizer.load_state_dict(saved["optimizer"])
            return optimizer, scheduler

        def optimizer_not_loaded(saved, make_optimizer, make_scheduler):
            """The optimizer's state was not loaded: its memory and the rates in its groups are those of the
            beginning."""
            optimizer = make_optimizer()
            scheduler = make_scheduler(optimizer)
            scheduler.load_state_dict(saved["scheduler"])
            return optimizer, scheduler

        def only_the_rates(saved, make_optimizer, make_scheduler):
            """The rates were taken over and the optimizer's memory was not: load its whole state."""
            optimizer = make_optimizer()
            scheduler = make_scheduler(optimizer)
            optimizer.load_state_dict(saved["optimizer"] | {"state": {}})
            scheduler.load_state_dict(saved["scheduler"])
            return optimizer, scheduler

        def one_step_further(saved, make_optimizer, make_scheduler):
            """The scheduler took a step after it was loaded: its state says where it stands already."""
            optimizer, scheduler = resume(saved, make_optimizer, make_scheduler)
            scheduler.step()
            return optimizer, scheduler

        def steps_repeated(saved, make_optimizer, make_scheduler):
            """The scheduler was stepped to where it had been, on rates that were there already: load its state
            instead."""
            optimizer = make_optimizer()
            scheduler = make_scheduler(optimizer)
            optimizer.load_state_dict(saved["optimizer"])
            for _ in range(saved["scheduler"]["last_epoch"]):
                scheduler.step()
            return optimizer, scheduler

        def around_another(saved, make_optimizer, make_scheduler):
            """The scheduler stands around another optimizer than the one returned, so the rate never changes: hand it
            this one."""
            optimizer = make_optimizer()
            scheduler = make_scheduler(make_optimizer())
            optimizer.load_state_dict(saved["optimizer"])
            scheduler.load_state_dict(saved["scheduler"])
            return optimizer, scheduler

        def nothing_loaded(saved, make_optimizer, make_scheduler):
            """Nothing was loaded: both begin anew."""
            optimizer = make_optimizer()
            return optimizer, make_scheduler(optimizer)

    class alternatives:
        def scheduler_first(saved, make_optimizer, make_scheduler):
            optimizer = make_optimizer()
            scheduler = make_scheduler(optimizer)
            scheduler.load_state_dict(copy.deepcopy(saved["scheduler"]))
            optimizer.load_state_dict(saved["optimizer"])
            return optimizer, scheduler

        def in_a_row(saved, make_optimizer, make_scheduler):
            built = [make_optimizer()]
            built.append(make_scheduler(built[0]))
            for one, name in zip(built, ("optimizer", "scheduler"), strict=True):
                one.load_state_dict(saved[name])
            return tuple(built)


class schedulers_range_test:
    def oracle(arrays, torch):
        w, b = (torch.from_numpy(arrays[name]).clone().requires_grad_() for name in ("w", "b"))
        optimizer = torch.optim.SGD([{"params": [w]}, {"params": [b], "lr": 0.25}], lr=0.5, momentum=0.5)

        def along(g):
            w.grad, b.grad = g[:3], g[3:]
            optimizer.step()
            optimizer.zero_grad()

        for g in torch.from_numpy(arrays["gradients before"]):
            along(g)
        state, values = copy.deepcopy(optimizer.state_dict()), [w.detach().clone(), b.detach().clone()]
        batches = torch.from_numpy(arrays["batches"])
        low, high, stop = (float(arrays.get(name, 4.0)) for name in ("lr_min", "lr_max", "stop"))
        every = np.geomspace(low, high, len(batches)) if len(batches) > 1 else np.array([low])
        losses = []
        for lr, rows in zip(every, batches, strict=True):
            loss = ((rows[:, :-1] @ w - rows[:, -1]) ** 2).mean() + 0.1 + (b**2).sum()
            losses.append(loss.item())
            if math.isnan(losses[-1]) or losses[-1] > stop * min(losses):
                break
            for group in optimizer.param_groups:
                group["lr"] = float(lr)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        found = {"rates": every[: len(losses)], "losses": losses}
        with torch.no_grad():
            for p, before in zip((w, b), values, strict=True):
                p.copy_(before)
        optimizer.load_state_dict(state)
        found["parameters afterwards"] = torch.cat(values)
        found["rates of the groups afterwards"] = [group["lr"] for group in optimizer.param_groups]
        found |= {"gradients that are left": 0, "memories afterwards": len(state["state"])}
        along(torch.from_numpy(arrays["gradient after"]))
        return found | {"parameters after one more step": torch.cat([w.detach(), b.detach()])}

    class mistakes:
        def straight_line(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """The rates rise in a straight line: each is the one before, times the same factor."""
            rates = np.linspace(lr_min, lr_max, len(batches))
            return tested(optimizer, loss_of, batches, rates, stop)

        def never_at_lr_max(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """The last rate is not lr_max: n rates have n - 1 steps between them."""
            n = len(batches)
            return tested(optimizer, loss_of, batches, [lr_min * (lr_max / lr_min) ** (i / n) for i in range(n)], stop)

        def one_batch_too_few(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """With one single batch it divides by zero: a test of one step has lr_min."""
            rates = [lr_min * (lr_max / lr_min) ** (i / (len(batches) - 1)) for i in range(len(batches))]
            return tested(optimizer, loss_of, batches, rates, stop)

        def only_the_first_group(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """Only the first group got the rates of the test: all groups have the same one."""
            return tested(optimizer, loss_of, batches, rising(batches, lr_min, lr_max), stop, groups=slice(1))

        def never_stops(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """It went on when the loss was above `stop` times the smallest so far, or nan: that loss is the last."""
            return tested(optimizer, loss_of, batches, rising(batches, lr_min, lr_max), math.nan)

        def nan_does_not_stop(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """A nan did not stop it: every comparison with nan is False, so ask whether the loss is small enough."""

            def enough(losses):
                return losses[-1] > stop * min(losses)

            return tested(optimizer, loss_of, batches, rising(batches, lr_min, lr_max), stop, enough=enough)

        def against_the_first_loss(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """The loss was compared with the first one: `stop` times the smallest so far is the limit."""

            def enough(losses):
                return not losses[-1] <= stop * losses[0]

            return tested(optimizer, loss_of, batches, rising(batches, lr_min, lr_max), stop, enough=enough)

        def last_loss_left_out(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """The loss that stopped the test is missing from its end: it belongs to what is returned."""
            rates, losses = lr_range_test(optimizer, loss_of, batches, lr_min, lr_max, stop)
            stopped = not losses[-1] <= stop * min(losses)
            return (rates[:-1], losses[:-1]) if stopped else (rates, losses)

        def weights_not_restored(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """The parameters are where the test has left them: copy them before it, and put the copies back."""
            rates = rising(batches, lr_min, lr_max)
            return tested(optimizer, loss_of, batches, rates, stop, back=("memory", "rates", "gradients"))

        def memory_not_copied(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """The optimizer's memory is that of the test: state_dict() hands out its own tensors, which the next step
            changes, so copy them before."""
            rates = rising(batches, lr_min, lr_max)
            return tested(optimizer, loss_of, batches, rates, stop, back=("weights", "rates", "gradients"))

        def rates_not_restored(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """The groups still have the rate of the test: put their own rates back."""
            rates = rising(batches, lr_min, lr_max)
            return tested(optimizer, loss_of, batches, rates, stop, back=("weights", "memory", "gradients"))

        def gradient_left(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """The gradients of the test are left in the parameters, for the training's first backward to add to: call
            zero_grad() at the end."""
            rates = rising(batches, lr_min, lr_max)
            return tested(optimizer, loss_of, batches, rates, stop, back=("weights", "memory", "rates"))

        def gradients_pile_up(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """Gradients of the steps before were not forgotten: call zero_grad() before each backward."""
            return tested(optimizer, loss_of, batches, rising(batches, lr_min, lr_max), stop, zero=False)

        def copy_trained(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """A copy was trained, and its parameters are not those that loss_of computes with: train this optimizer,
            and put back what it changed."""
            return tested(copy.deepcopy(optimizer), loss_of, batches, rising(batches, lr_min, lr_max), stop)

        def loss_after_the_step(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            """The losses were measured after the step: each belongs before its step."""
            return tested(optimizer, loss_of, batches, rising(batches, lr_min, lr_max), stop, after=True)

    class alternatives:
        def factor_by_factor(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            return tested(optimizer, loss_of, batches, rising(batches, lr_min, lr_max), stop)

        def put_back_by_hand(optimizer, loss_of, batches, lr_min=1e-6, lr_max=1.0, stop=4.0):
            groups = optimizer.param_groups
            values = [(p, p.detach().array.copy()) for group in groups for p in group["params"]]
            state, rates, losses = copy.deepcopy(optimizer.state_dict()), [], []
            grid = np.geomspace(lr_min, lr_max, len(batches)).tolist() if len(batches) > 1 else [lr_min]
            for lr, batch in zip(grid, batches, strict=True):
                loss = loss_of(batch)
                rates, losses = [*rates, lr], [*losses, float(loss)]
                if math.isnan(losses[-1]) or losses[-1] > stop * min(losses):
                    break
                optimizer.zero_grad()
                loss.backward()
                for group in groups:
                    group.update(lr=lr)
                optimizer.step()
            for p, array in values:
                p.detach().array[...] = array
                p.grad = None
            optimizer.load_state_dict(state)
            return np.asarray(rates), np.asarray(losses)


def rising(batches, lr_min, lr_max):
    factor = (lr_max / lr_min) ** (1 / max(len(batches) - 1, 1))
    return [lr_min * factor**i for i in range(len(batches))]


EVERYTHING = ("weights", "memory", "rates", "gradients")


def tested(
    optimizer, loss_of, batches, rates, stop, groups=slice(None), enough=None, back=EVERYTHING, zero=True, after=False
):
    """lr_range_test at given rates, with a part of it done otherwise; a stop of nan is none."""
    enough = enough or (lambda losses: not losses[-1] <= stop * min(losses) and not math.isnan(stop))
    params = [p for group in optimizer.param_groups for p in group["params"]]
    weights = [p.detach().clone() for p in params]
    state = copy.deepcopy(optimizer.state_dict())
    used, losses = [], []
    for lr, batch in zip(rates, batches, strict=True):
        for group in optimizer.param_groups[groups]:
            group["lr"] = float(lr)
        if zero or not losses:
            optimizer.zero_grad()
        loss = loss_of(batch)
        used.append(lr)
        losses.append(loss.item())
        if enough(losses):
            break
        loss.backward()
        optimizer.step()
        if after:
            losses[-1] = loss_of(batch).item()
    put_back(optimizer, params, weights, state, back)
    return np.array(used), np.array(losses)


def put_back(optimizer, params, weights, state, back):
    if "weights" in back:
        with no_grad():
            for p, before in zip(params, weights, strict=True):
                p.copy_(before)
    if "gradients" in back:
        optimizer.zero_grad()
    now = optimizer.state_dict()
    kept = state if "memory" in back else now
    groups = state if "rates" in back else now
    optimizer.load_state_dict({"state": kept["state"], "param_groups": groups["param_groups"]})
