"""Chapter 06: the right values, wrong answers, and other right ones. A mistake's docstring is what learners read."""

from __future__ import annotations

import math

import numpy as np

from gradwright.chapters.optimizers import (
    adam_step,
    adamw_step,
    clip_grad_norm_,
    complete_group,
    copied,
    pack_state,
    plain,
    rmsprop_step,
    sgd_step,
    step_all,
    training_step,
    unpack_state,
)

AFTER = "parameter after each step"


def torch_steps(arrays, torch, make):
    """The parameter after each step of a PyTorch optimizer in float64, and the optimizer's memory at the end."""
    p = torch.from_numpy(arrays["p"]).double().requires_grad_()
    optimizer, seen = make(p), []
    for g in arrays["gradients"]:
        p.grad = torch.from_numpy(np.asarray(g)).double()
        optimizer.step()
        seen.append(p.detach().clone())
    memory = {name: given(value, arrays) for name, value in optimizer.state[p].items() if name != "step"}
    return given(torch.stack(seen), arrays), memory


def given(tensor, arrays):
    """A result in the dtype of the parameter: lr and the other numbers of a case are float64."""
    return None if tensor is None else tensor.numpy().astype(arrays["p"].dtype)


class optimizers_sgd:
    def oracle(arrays, torch):
        options = {name: float(arrays[name]) for name in ("lr", "momentum", "dampening")}
        options["nesterov"] = bool(arrays["nesterov"])
        seen, state = torch_steps(arrays, torch, lambda p: torch.optim.SGD([p], **options))
        buffer = {"buffer at the end": state["momentum_buffer"]} if options["momentum"] else {}
        return {AFTER: seen} | buffer

    class mistakes:
        def uphill(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            """The step went along the gradient, uphill. Descent goes against it."""
            sgd_step(p, g, buffer, -lr, momentum, dampening, nesterov, first)

        def name_bound_anew(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            """The parameter has not moved: `p = p - ...` makes a new array, and the model holds the old one. Change it
            in place."""
            p = p.copy()
            sgd_step(p, g, buffer, lr, momentum, dampening, nesterov, first)

        def buffer_bound_anew(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            """The buffer that was handed over has not changed, so every step forgets the one before: change it in
            place."""
            sgd_step(p, g, None if buffer is None else buffer.copy(), lr, momentum, dampening, nesterov, first)

        def first_dampened(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            """The first gradient was dampened. At the first step the buffer becomes the gradient itself."""
            if first and buffer is not None:
                buffer[...] = 0
            sgd_step(p, g, buffer, lr, momentum, dampening, nesterov)

        def first_not_told_apart(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            """What was in the buffer before the first step was used: there is nothing in it yet that counts."""
            sgd_step(p, g, buffer, lr, momentum, dampening, nesterov)

        def never_dampened(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            """dampening was not used: later gradients enter the buffer multiplied by 1 - dampening."""
            sgd_step(p, g, buffer, lr, momentum, 0.0, nesterov, first)

        def fading_mean(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            """The gradient entered with 1 - momentum, which makes a mean of the buffer. It is a sum: only dampening
            takes something away."""
            sgd_step(p, g, buffer, lr, momentum, momentum if momentum else dampening, nesterov, first)

        def nesterov_ignored(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            """nesterov was not looked at: its step goes along g + momentum * buffer."""
            sgd_step(p, g, buffer, lr, momentum, dampening, False, first)

        def nesterov_with_the_old_buffer(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            """Nesterov's step used the buffer as it was before this step: update it first."""
            if not nesterov:
                sgd_step(p, g, buffer, lr, momentum, dampening, nesterov, first)
                return
            old = g.copy() if first else buffer.copy()
            sgd_step(p.copy(), g, buffer, lr, momentum, dampening, nesterov, first)
            p -= lr * (g + momentum * old)

        def rate_in_the_buffer(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            """The learning rate went into the buffer. PyTorch keeps gradients in it, and multiplies at the end: a
            changed rate then acts at once."""
            sgd_step(p, lr * g, buffer, 1.0, momentum, dampening, nesterov, first)

    class alternatives:
        def with_out(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            direction = g
            if momentum:
                np.copyto(buffer, g if first else momentum * buffer + (1 - dampening) * g)
                direction = g + momentum * buffer if nesterov else buffer
            np.subtract(p, lr * direction, out=p)

        def branches(p, g, buffer, lr, momentum=0.0, dampening=0.0, nesterov=False, first=False):
            if buffer is None:
                p += -lr * g
                return
            factor, share = (0, 1) if first else (momentum, 1 - dampening)
            buffer[...] = factor * buffer + share * g
            p += -lr * buffer if not nesterov else -lr * g - lr * momentum * buffer


class optimizers_rmsprop:
    def oracle(arrays, torch):
        options = {name: float(arrays[name]) for name in ("lr", "alpha", "eps", "momentum")}
        options["centered"] = bool(arrays["centered"])
        seen, state = torch_steps(arrays, torch, lambda p: torch.optim.RMSprop([p], **options))
        found = {AFTER: seen, "v at the end": state["square_avg"]}
        if options["centered"]:
            found["mean at the end"] = state["grad_avg"]
        if options["momentum"]:
            found["buffer at the end"] = state["momentum_buffer"]
        return found

    class mistakes:
        def eps_under_the_root(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """eps stands under the root. It is added after it."""
            step_with(p, g, v, mean, buffer, lr, alpha, lambda s: np.sqrt(s + eps), momentum)

        def no_root(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """The gradient was divided by the mean of squares itself: the root is missing."""
            step_with(p, g, v, mean, buffer, lr, alpha, lambda s: s + eps, momentum)

        def no_eps(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """eps was left out, so a gradient that is always 0 is divided by 0."""
            with np.errstate(all="ignore"):
                step_with(p, g, v, mean, buffer, lr, alpha, np.sqrt, momentum)

        def shares_exchanged(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """alpha and 1 - alpha are exchanged: most of the old mean stays."""
            rmsprop_step(p, g, v, mean, buffer, lr, 1 - alpha, eps, momentum)

        def summed_squares(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """The new square entered whole. It gets the share 1 - alpha, so that a mean comes out."""
            v *= alpha
            v += alpha * (g * g)
            v /= alpha
            rest(p, g, v, mean, buffer, lr, alpha, eps, momentum)

        def after_the_step(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """The mean of squares was updated after it was used: take this gradient in first."""
            old_v, old_mean = v.copy(), None if mean is None else mean.copy()
            rmsprop_step(p.copy(), g, v, mean, None if buffer is None else buffer.copy(), lr, alpha, eps, momentum)
            with np.errstate(invalid="ignore"):
                rest(p, g, old_v, old_mean, buffer, lr, alpha, eps, momentum, update=False)

        def mean_not_squared(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """The mean itself was subtracted under the root: it is the square of the mean."""
            v *= alpha
            v += (1 - alpha) * (g * g)
            spread = v
            if mean is not None:
                mean *= alpha
                mean += (1 - alpha) * g
                spread = v - mean
            with np.errstate(invalid="ignore"):
                finish(p, g, buffer, lr, np.sqrt(spread) + eps, momentum)

        def centered_in_place(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """The square of the mean was taken out of v for good. It is subtracted for this step alone: v stays the
            mean of squares."""
            rmsprop_step(p, g, v, mean, buffer, lr, alpha, eps, momentum)
            if mean is not None:
                v -= mean * mean

        def momentum_of_the_gradient(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """Momentum summed up the gradients and divided afterwards. It sums up the quotients."""
            if buffer is None:
                rmsprop_step(p, g, v, mean, buffer, lr, alpha, eps, momentum)
                return
            buffer *= momentum
            buffer += g
            before = p.copy()
            rmsprop_step(before, g, v, mean, None, lr, alpha, eps)
            spread = v if mean is None else v - mean * mean
            p -= lr * buffer / (np.sqrt(spread) + eps)

        def momentum_ignored(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """The buffer was not used: with momentum the quotients are summed up in it."""
            rmsprop_step(p, g, v, mean, None, lr, alpha, eps)

        def not_in_place(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            """The mean of squares that was handed over has not changed, so every step begins from 0: change it in
            place."""
            rmsprop_step(p, g, v.copy(), mean, buffer, lr, alpha, eps, momentum)

    class alternatives:
        def by_differences(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            v += (1 - alpha) * (g**2 - v)
            root = v
            if mean is not None:
                mean += (1 - alpha) * (g - mean)
                root = v - mean**2
            quotient = g / (root**0.5 + eps)
            if buffer is None:
                p -= lr * quotient
            else:
                buffer[...] = momentum * buffer + quotient
                p -= lr * buffer

        def with_out(p, g, v, mean, buffer, lr, alpha=0.99, eps=1e-8, momentum=0.0):
            np.copyto(v, alpha * v + (1 - alpha) * np.square(g))
            spread = v.copy()
            if mean is not None:
                np.copyto(mean, alpha * mean + (1 - alpha) * g)
                spread -= np.square(mean)
            finish(p, g, buffer, lr, np.sqrt(spread) + eps, momentum)


def finish(p, g, buffer, lr, denominator, momentum):
    step = g / denominator
    if buffer is not None:
        buffer *= momentum
        buffer += step
        step = buffer
    p -= lr * step


def rest(p, g, v, mean, buffer, lr, alpha, eps, momentum, update=True):
    """A step with v as it is."""
    spread = v
    if mean is not None:
        if update:
            mean *= alpha
            mean += (1 - alpha) * g
        spread = v - mean * mean
    finish(p, g, buffer, lr, np.sqrt(spread) + eps, momentum)


def step_with(p, g, v, mean, buffer, lr, alpha, denominator, momentum):
    v *= alpha
    v += (1 - alpha) * (g * g)
    spread = v
    if mean is not None:
        mean *= alpha
        mean += (1 - alpha) * g
        spread = v - mean * mean
    finish(p, g, buffer, lr, denominator(spread), momentum)


def adam_oracle(arrays, torch, kind):
    """PyTorch's own steps, begun with the means and the step count of the case."""
    options = {"lr": float(arrays["lr"]), "eps": float(arrays["eps"])}
    options["betas"] = (float(arrays["beta1"]), float(arrays["beta2"]))
    options["weight_decay"] = float(arrays.get("weight_decay", 0))

    def make(p):
        optimizer = kind([p], **options)
        optimizer.state[p] = {
            "step": torch.tensor(float(arrays["steps before"])),
            "exp_avg": torch.from_numpy(arrays["m"].copy()).double(),
            "exp_avg_sq": torch.from_numpy(arrays["v"].copy()).double(),
        }
        return optimizer

    seen, state = torch_steps(arrays, torch, make)
    return {AFTER: seen, "m at the end": state["exp_avg"], "v at the end": state["exp_avg_sq"]}


def means(g, m, v, betas):
    m *= betas[0]
    m += (1 - betas[0]) * g
    v *= betas[1]
    v += (1 - betas[1]) * (g * g)


class optimizers_adam:
    def oracle(arrays, torch):
        return adam_oracle(arrays, torch, torch.optim.Adam)

    class mistakes:
        def not_corrected(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """The means were used as they are. They began at 0 and are too small at first: divide each by the share
            that it has seen."""
            means(g, m, v, betas)
            p -= lr * m / (np.sqrt(v) + eps)

        def only_the_first_mean_corrected(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """Only the mean of the gradient was corrected: that of its square needs it even more."""
            means(g, m, v, betas)
            p -= lr * m / (1 - betas[0] ** step) / (np.sqrt(v) + eps)

        def only_the_second_mean_corrected(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """Only the mean of squares was corrected: that of the gradient needs it too."""
            means(g, m, v, betas)
            p -= lr * m / (np.sqrt(v / (1 - betas[1] ** step)) + eps)

        def correction_not_under_the_root(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """The root was taken of v, and then corrected as if no root had been taken: correct v first."""
            means(g, m, v, betas)
            p -= lr * m / (1 - betas[0] ** step) / (np.sqrt(v) / (1 - betas[1] ** step) + eps)

        def corrected_for_good(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """The corrected means were kept. The correction is for this step alone: m and v stay as they are."""
            adam_step(p, g, m, v, step, lr, betas, eps)
            m /= 1 - betas[0] ** step
            v /= 1 - betas[1] ** step

        def counted_from_zero(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """The step was counted from one more than it is: the first step is number 1, and is handed over as 1."""
            adam_step(p, g, m, v, step + 1, lr, betas, eps)

        def always_the_first_step(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """The correction did not use the step: it is 1 minus beta to the power of the step."""
            adam_step(p, g, m, v, 1, lr, betas, eps)

        def eps_under_the_root(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """eps stands under the root. It is added after it."""
            means(g, m, v, betas)
            p -= lr * m / (1 - betas[0] ** step) / np.sqrt(v / (1 - betas[1] ** step) + eps)

        def eps_before_the_correction(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """eps was added to the root before that was corrected, and so was enlarged with it: correct first, then
            add."""
            means(g, m, v, betas)
            p -= lr * m / (1 - betas[0] ** step) / ((np.sqrt(v) + eps) / math.sqrt(1 - betas[1] ** step))

        def gradient_instead_of_its_mean(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """The gradient itself was divided by the root. The corrected mean of the gradients is what moves."""
            means(g, m, v, betas)
            p -= lr * g / (np.sqrt(v / (1 - betas[1] ** step)) + eps)

        def betas_exchanged(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """The two betas are exchanged: the first belongs to the gradient, the second to its square."""
            adam_step(p, g, m, v, step, lr, betas[::-1], eps)

        def no_root(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """The root is missing: divide by the root of the mean of squares."""
            means(g, m, v, betas)
            p -= lr * m / (1 - betas[0] ** step) / (v / (1 - betas[1] ** step) + eps)

        def means_not_in_place(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            """The means that were handed over have not changed, so nothing is remembered: change them in place."""
            adam_step(p, g, m.copy(), v.copy(), step, lr, betas, eps)

    class alternatives:
        def as_in_the_paper(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            m[...] = betas[0] * m + (1 - betas[0]) * g
            v[...] = betas[1] * v + (1 - betas[1]) * g**2
            m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
            p -= lr * m_hat / (np.sqrt(v_hat) + eps)

        def by_differences(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
            m += (1 - betas[0]) * (g - m)
            v += (1 - betas[1]) * (np.square(g) - v)
            c1, c2 = 1 - betas[0] ** step, math.sqrt(1 - betas[1] ** step)
            np.subtract(p, lr * c2 / c1 * m / (np.sqrt(v) + eps * c2), out=p)


class optimizers_adamw:
    def oracle(arrays, torch):
        return adam_oracle(arrays, torch, torch.optim.AdamW)

    class mistakes:
        def decayed_afterwards(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
            """The weight was shrunk after the step, which shrinks the step too: shrink it first."""
            adam_step(p, g, m, v, step, lr, betas, eps)
            p *= 1 - lr * weight_decay

        def added_to_the_gradient(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
            """The decay was added to the gradient, where Adam divides it by the gradient's usual size: that is L2.
            Shrink the weight itself."""
            adam_step(p, g + weight_decay * p, m, v, step, lr, betas, eps)

        def not_decayed(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
            """There is no decay in it: the weight is also shrunk by lr * weight_decay."""
            adam_step(p, g, m, v, step, lr, betas, eps)

        def without_the_rate(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
            """The weight was shrunk by the decay alone. It is multiplied by the learning rate, so that a schedule moves
            both."""
            p *= 1 - weight_decay
            adam_step(p, g, m, v, step, lr, betas, eps)

        def grown(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
            """The weight grew: the decay is subtracted."""
            adamw_step(p, g, m, v, step, lr, betas, eps, -weight_decay)

        def squared(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
            """The weight was shrunk twice: once before the step and once after it."""
            adamw_step(p, g, m, v, step, lr, betas, eps, weight_decay)
            p *= 1 - lr * weight_decay

        def towards_zero_by_a_constant(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
            """Every weight moved towards 0 by the same amount: that is the L1 kind. Here the decay is proportional to
            the weight."""
            p -= lr * weight_decay * np.sign(p)
            adam_step(p, g, m, v, step, lr, betas, eps)

        def decay_alone(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
            """The weight was shrunk and no step was taken."""
            p *= 1 - lr * weight_decay

    class alternatives:
        def subtracted(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
            p -= lr * weight_decay * p
            adam_step(p, g, m, v, step, lr, betas, eps)

        def old_weight_kept(p, g, m, v, step, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
            before = p.copy()
            adam_step(p, g, m, v, step, lr, betas, eps)
            p -= lr * weight_decay * before


def params_of(group):
    params = group["params"]
    return [params] if isinstance(params, plain.Strided) else params


class optimizers_group:
    def oracle(arrays, torch):
        """By hand: PyTorch's optimizers keep their groups to themselves."""
        if str(arrays["refused with"]):
            return {f"refused with {arrays['refused with']!s}": True}
        settings = {"lr": 0.1, "weight_decay": 0.5, "maximize": 0.0}
        settings |= dict(zip(arrays["settings"].tolist(), arrays["values"].tolist(), strict=True))
        return {
            "params is a list": True,
            "parameters": arrays["params"],
            "settings": np.array(list(settings.values())),
            "how many entries": 4,
            "the group handed over still has its own params": True,
        }

    class mistakes:
        def defaults_win(group, defaults, others):
            """The defaults were laid over the group, whose own settings are lost: lay the group over the defaults."""
            return {**complete_group(group, defaults, others), **defaults}

        def defaults_left_out(group, defaults, others):
            """What the group does not say is missing: take it from the defaults."""
            made = complete_group(group, defaults, others)
            return {name: made.get(name, 0.0) if name in group else 0.0 for name in made} | {"params": made["params"]}

        def only_lists_of_tensors(group, defaults, others):
            """One tensor alone was walked over as if it were a list: put it in one."""
            if isinstance(group["params"], plain.Strided):
                raise TypeError("iteration over a tensor")
            return complete_group(group, defaults, others)

        def generator_used_up(group, defaults, others):
            """The parameters were walked over for the checks, and a generator has nothing left afterwards: make a list
            first."""
            params = params_of(group)
            made = complete_group({**group, "params": params}, defaults, others)
            return made if isinstance(params, list | tuple) else made | {"params": list(params)}

        def given_group_changed(group, defaults, others):
            """The group that was handed over was changed: make a new dictionary."""
            group.update(complete_group(group, defaults, others))
            return group

        def others_not_looked_at(group, defaults, others):
            """A parameter of another group was accepted, and would be moved twice a step."""
            return complete_group(group, defaults, [])

        def twice_in_one_group(group, defaults, others):
            """A parameter that is twice in this group was accepted, and would be moved twice a step."""
            params = list({id(p): p for p in params_of(group)}.values())
            return complete_group({**group, "params": params}, defaults, others)

        def compared_by_value(group, defaults, others):
            """Parameters were compared by their numbers, so two different ones with equal numbers count as the same:
            compare who they are."""
            params = list(params_of(group))
            made = complete_group({**group, "params": params}, defaults, others)
            for p in params:
                if any(p.equal(q) for other in others for q in other["params"]):
                    raise ValueError("a parameter is there twice")
            return made

        def results_accepted(group, defaults, others):
            """A tensor that was calculated was accepted. It is no leaf and gets no gradient of its own."""
            params = [p if not isinstance(p, plain.Strided) or p.is_leaf else p.detach() for p in params_of(group)]
            return complete_group({**group, "params": params}, defaults, others)

        def anything_accepted(group, defaults, others):
            """Something that is no tensor was accepted: raise TypeError."""
            params = [p for p in params_of(group) if isinstance(p, plain.Strided)]
            return complete_group({**group, "params": params}, defaults, others)

        def unknown_settings_accepted(group, defaults, others):
            """A setting that does not exist was accepted, so that a misspelt one does nothing, silently."""
            known = {name: value for name, value in group.items() if name in defaults or name == "params"}
            return complete_group(known, defaults, others)

    class alternatives:
        def step_by_step(group, defaults, others):
            made = dict(defaults)
            for name in group:
                if name != "params" and name not in defaults:
                    raise ValueError(f"unknown setting {name}")
                made[name] = group[name]
            made["params"] = []
            for p in params_of(group):
                if not isinstance(p, plain.Strided):
                    raise TypeError(f"{p!r} is no tensor")
                everywhere = [q for g in [*others, made] for q in g["params"]]
                if not p.is_leaf or any(p is q for q in everywhere):
                    raise ValueError("no leaf, or there twice")
                made["params"].append(p)
            return made


class optimizers_step:
    def oracle(arrays, torch):
        """By hand, on plain numbers, in the order of the groups."""
        group_of, there, calls = arrays["group of"].tolist(), arrays["there"], []
        sums = np.zeros((len(group_of), 2))
        for step, gradients in enumerate(arrays["gradients"]):
            for group, climb in enumerate(arrays["maximize"].tolist()):
                for i, at in enumerate(group_of):
                    if at == group and there[step, i]:
                        sums[i] += -gradients[i] if climb else gradients[i]
                        calls.append([i, *sums[i], group])
        last = np.where(there[-1][:, None], arrays["gradients"][-1], 0.0)
        return {
            "calls: parameter, sum of its gradients, group": np.array(calls, dtype=np.float64).reshape(-1, 4),
            "memories kept": there.any(0).astype(np.float64),
            "gradients afterwards": last,
        }

    class mistakes:
        def missing_as_zero(param_groups, state, update):
            """A parameter without a gradient was moved, with a gradient of 0, so its memory ages and it decays: pass
            over it."""
            for group in param_groups:
                for p in group["params"]:
                    g = np.zeros(p.shape) if p.grad is None else p.grad.array
                    update(p, -g if group["maximize"] else g, state.setdefault(p, {}), group)

        def stopped_at_the_first_missing(param_groups, state, update):
            """The walk ended at the first parameter without a gradient, and those behind it stood still: go on to the
            next."""
            for group in param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        break
                    g = p.grad.array
                    update(p, -g if group["maximize"] else g, state.setdefault(p, {}), group)

        def missing_not_asked_for(param_groups, state, update):
            """A parameter without a gradient stops it: its .grad is None."""
            for group in param_groups:
                for p in group["params"]:
                    g = p.grad.array
                    update(p, -g if group["maximize"] else g, state.setdefault(p, {}), group)

        def memory_forgotten(param_groups, state, update):
            """Every step began with an empty memory: what update gets must be what is kept in state."""
            for group in param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        g = p.grad.array
                        update(p, -g if group["maximize"] else g, dict(state.get(p, {})), group)

        def one_memory_for_all(param_groups, state, update):
            """All parameters share one memory: each has its own."""
            shared = next(iter(state.values()), {})
            for group in param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        g = p.grad.array
                        update(p, -g if group["maximize"] else g, state.setdefault(p, shared), group)

        def memory_for_everybody(param_groups, state, update):
            """A parameter that has not moved yet got a memory: give it one when it first moves."""
            step_all(param_groups, state, update)
            for group in param_groups:
                for p in group["params"]:
                    state.setdefault(p, {"sum": np.zeros(2)})

        def maximize_ignored(param_groups, state, update):
            """maximize was not looked at: there the gradient enters with its sign turned."""
            turned = [{**group, "maximize": False} for group in param_groups]
            owner = {id(p): group for group in param_groups for p in group["params"]}
            step_all(turned, state, lambda p, g, memory, _: update(p, g, memory, owner[id(p)]))

        def maximize_of_the_first_group(param_groups, state, update):
            """maximize was asked of the first group alone: each group has its own."""
            first = param_groups[0]["maximize"]
            same = [{**group, "maximize": first} for group in param_groups]
            owner = {id(p): group for group in param_groups for p in group["params"]}
            step_all(same, state, lambda p, g, memory, _: update(p, g, memory, owner[id(p)]))

        def gradient_turned_in_place(param_groups, state, update):
            """The gradient itself was turned round, and whoever reads it afterwards gets the wrong sign: make a new
            array."""
            step_all(param_groups, state, update)
            for group in param_groups:
                for p in group["params"] if group["maximize"] else []:
                    if p.grad is not None:
                        p.grad.mul_(-1.0)

        def first_group_alone(param_groups, state, update):
            """Only the first group moved: walk over all of them."""
            step_all(param_groups[:1], state, update)

    class alternatives:
        def gathered_first(param_groups, state, update):
            work = [(p, group) for group in param_groups for p in group["params"] if p.grad is not None]
            for p, group in work:
                if p not in state:
                    state[p] = {}
                sign = -1.0 if group["maximize"] else 1.0
                update(p, sign * p.grad.array, state[p], group)


class optimizers_pack:
    def oracle(arrays, torch):
        """By hand: numbers and settings."""
        moved, sizes = sorted(arrays["moved"].tolist()), arrays["sizes"].tolist()
        return {
            "numbers with a memory": np.array(moved, dtype=np.int64),
            "steps": np.array([i + 1 for i in moved], dtype=np.int64),
            "memories, after they were doubled": np.array([2 * arrays["memory"][i] for i in moved]),
            "numbers in the groups": np.arange(sum(sizes)),
            "sizes of the groups": arrays["sizes"],
            "settings": arrays["lr"],
            "the groups still hold their parameters": True,
        }

    class mistakes:
        def counted_in_each_group(param_groups, state):
            """The numbers begin at 0 in every group, so that parameters share them: one count runs through all."""
            packed = pack_state(param_groups, state)
            groups = [{**g, "params": list(range(len(g["params"])))} for g in packed["param_groups"]]
            return {**packed, "param_groups": groups}

        def counted_in_the_order_of_movement(param_groups, state):
            """The numbers follow the order of the memories. They follow that of the parameters in the groups."""
            packed = pack_state(param_groups, state)
            return {**packed, "state": dict(enumerate(state.values()))}

        def groups_changed(param_groups, state):
            """The optimizer's own groups now hold numbers, and its next step fails: make new dictionaries."""
            packed = pack_state(param_groups, state)
            for group, made in zip(param_groups, packed["param_groups"], strict=True):
                group["params"] = [plain.Tensor(np.array([float(i)])) for i in made["params"]]
            return packed

        def empty_memories(param_groups, state):
            """A parameter that has not moved yet got a memory: leave it out."""
            packed = pack_state(param_groups, state)
            count = sum(len(group["params"]) for group in param_groups)
            nothing = {"step": 0, "m": plain.Tensor(np.zeros(2))}
            return {**packed, "state": {i: packed["state"].get(i, nothing) for i in range(count)}}

        def copies(param_groups, state):
            """The memories were copied. They are handed over as they are, and only loading copies: a model's memory is
            large."""
            packed = pack_state(param_groups, state)
            return {**packed, "state": {i: copied(memory) for i, memory in packed["state"].items()}}

        def settings_lost(param_groups, state):
            """The settings of later groups are those of the first: each group keeps its own."""
            packed = pack_state(param_groups, state)
            lr = param_groups[0]["lr"]
            return {**packed, "param_groups": [{**group, "lr": lr} for group in packed["param_groups"]]}

        def first_group_alone(param_groups, state):
            """Only the first group was packed."""
            packed = pack_state(param_groups, state)
            last = len(param_groups[0]["params"])
            return {
                "state": {i: memory for i, memory in packed["state"].items() if i < last},
                "param_groups": packed["param_groups"][:1],
            }

        def counted_from_one(param_groups, state):
            """The numbers begin at 1: count from 0."""
            packed = pack_state(param_groups, state)
            return {
                "state": {i + 1: memory for i, memory in packed["state"].items()},
                "param_groups": [{**g, "params": [i + 1 for i in g["params"]]} for g in packed["param_groups"]],
            }

    class alternatives:
        def one_walk(param_groups, state):
            memories, groups, count = {}, [], 0
            for group in param_groups:
                made = dict(group)
                made["params"] = list(range(count, count + len(group["params"])))
                for number, p in zip(made["params"], group["params"], strict=True):
                    if p in state:
                        memories[number] = state[p]
                groups.append(made)
                count += len(group["params"])
            return {"state": memories, "param_groups": groups}


def with_memories(saved, param_groups, memory_of):
    """unpack_state with memories made otherwise, from the saved ones."""
    made, state = unpack_state(saved, param_groups)
    params = [p for group in param_groups for p in group["params"]]
    numbers = {id(p): i for i, p in enumerate(params)}
    return made, {p: memory_of(saved["state"][numbers[id(p)]]) for p in state}


class optimizers_unpack:
    def oracle(arrays, torch):
        """By hand: who is here, with what was saved."""
        if arrays["to be refused"]:
            return {"refused with ValueError": True}
        moved, count = sorted(arrays["moved"].tolist()), int(arrays["sizes"].sum())
        return {
            "parameters with a memory": np.array(moved, dtype=np.int64),
            "their steps": np.array([i + 1 for i in moved], dtype=np.int64),
            "their memories, after they were doubled": np.array([2 * arrays["memory"][i] for i in moved]),
            "what was saved, after that": np.array([arrays["memory"][i] for i in moved]),
            "the saved steps, after 10 more": np.array([i + 1 for i in moved], dtype=np.int64),
            "parameters in the groups": np.arange(count),
            "they are those that are here": True,
            "sizes of the groups": arrays["sizes"],
            "settings": arrays["lr"],
            "numbers in what was saved": np.arange(count),
        }

    class mistakes:
        def shared(saved, param_groups):
            """The memories are still those of what was saved, so the next step changes both: make new dictionaries, and
            copy each tensor."""
            return with_memories(saved, param_groups, lambda memory: memory)

        def shallow_copies(saved, param_groups):
            """The dictionaries were copied and the tensors in them were not, so the next step changes both: clone each
            tensor."""
            return with_memories(saved, param_groups, dict)

        def settings_from_here(saved, param_groups):
            """The settings are those that were here: those that were saved take their place."""
            made, state = unpack_state(saved, param_groups)
            return [{**group, "lr": here["lr"]} for group, here in zip(made, param_groups, strict=True)], state

        def numbers_left_in(saved, param_groups):
            """The groups hold the saved numbers. Put the parameters that are here in their place."""
            made, state = unpack_state(saved, param_groups)
            return [
                {**g, "params": [plain.Tensor(np.array([float(i)])) for i in old["params"]]}
                for g, old in zip(made, saved["param_groups"], strict=True)
            ], state

        def counted_in_each_group(saved, param_groups):
            """The numbers were looked up in each group by itself, so the second group got the memories of the first:
            they run through all groups."""
            made, _ = unpack_state(saved, param_groups)
            state = {}
            for group in param_groups:
                for i, p in enumerate(group["params"]):
                    if i in saved["state"]:
                        state[p] = copied(saved["state"][i])
            return made, state

        def in_the_order_of_the_memories(saved, param_groups):
            """The memories were dealt out in their own order. Each has a number, which says to whom it belongs."""
            made, _ = unpack_state(saved, param_groups)
            params = [p for group in param_groups for p in group["params"]]
            return made, {p: copied(memory) for p, memory in zip(params, saved["state"].values(), strict=False)}

        def saved_changed(saved, param_groups):
            """What was saved now holds parameters instead of numbers, and cannot be loaded once more: leave it as it
            is."""
            made, state = unpack_state(saved, param_groups)
            for old in saved["param_groups"]:
                old["params"] = [0 for _ in old["params"]]
            return made, state

        def only_the_number_of_groups(saved, param_groups):
            """Only the number of groups was compared: each must have as many parameters as the saved one."""
            if len(saved["param_groups"]) != len(param_groups):
                raise ValueError("another number of groups")
            return forced(saved, param_groups)

        def only_the_number_of_parameters(saved, param_groups):
            """Only the parameters in all were counted. Group by group the numbers must agree."""
            total = sum(len(group["params"]) for group in saved["param_groups"])
            if total != sum(len(group["params"]) for group in param_groups):
                raise ValueError("another number of parameters")
            return forced(saved, param_groups)

        def never_refused(saved, param_groups):
            """Groups that do not fit were accepted, cut to the shorter side: raise ValueError, and load nothing."""
            return forced(saved, param_groups)

        def memory_for_everybody(saved, param_groups):
            """A parameter without a saved memory got an empty one, with step 0: leave it out."""
            made, state = unpack_state(saved, param_groups)
            for group in param_groups:
                for p in group["params"]:
                    state.setdefault(p, {"step": 0, "m": plain.Tensor(np.zeros(2))})
            return made, state

    class alternatives:
        def with_a_flat_list(saved, param_groups):
            if [len(g["params"]) for g in param_groups] != [len(g["params"]) for g in saved["param_groups"]]:
                raise ValueError("another model")
            here = [p for group in param_groups for p in group["params"]]
            state = {here[i]: copied(memory) for i, memory in saved["state"].items()}
            groups = []
            for old, group in zip(saved["param_groups"], param_groups, strict=True):
                made = {name: value for name, value in old.items() if name != "params"}
                made["params"] = group["params"]
                groups.append(made)
            return groups, state


def forced(saved, param_groups):
    """Loaded without a look at the sizes."""
    here = [p for group in param_groups for p in group["params"]]
    pairs = zip(saved["param_groups"], param_groups, strict=False)
    state = {here[i]: copied(memory) for i, memory in saved["state"].items() if i < len(here)}
    return [{**old, "params": list(group["params"])} for old, group in pairs], state


class optimizers_training_step:
    def oracle(arrays, torch):
        w = torch.from_numpy(arrays["w"].copy()).requires_grad_()
        x, y = torch.from_numpy(arrays["examples"][:, :-1]), torch.from_numpy(arrays["examples"][:, -1])
        before, losses, norms, places = 0.0, [], [], []
        for _ in range(3):
            w.grad = None
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_([w], float(arrays["max_norm"])))
            with torch.no_grad():
                w -= w.grad * 0.1 + 0.02 * before
            before = float(w.grad.sum())
            losses.append(loss.detach())
            places.append(w.detach().clone())
        return {"losses": torch.stack(losses), "norms": torch.stack(norms), "w after each step": torch.stack(places)}

    class mistakes:
        def never_zeroed(optimizer, parameters, loss_of, parts, max_norm):
            """The gradients were never forgotten, so those of all steps add up, and what was left over too: zero_grad
            comes first."""
            return one_step(optimizer, parameters, loss_of, parts, max_norm, zero=False)

        def zeroed_at_the_end(optimizer, parameters, loss_of, parts, max_norm):
            """The gradients were forgotten after the step, and what was left over before the first one counted:
            zero_grad comes first."""
            result = one_step(optimizer, parameters, loss_of, parts, max_norm, zero=False)
            optimizer.zero_grad()
            return result

        def zeroed_for_each_part(optimizer, parameters, loss_of, parts, max_norm):
            """The gradients were forgotten before every part, so only the last part counts: once a step is enough."""
            return one_step(optimizer, parameters, loss_of, parts, max_norm, each=optimizer.zero_grad)

        def mean_of_means(optimizer, parameters, loss_of, parts, max_norm):
            """Each part weighs the same, however short it is. Weigh it by its share of the examples."""
            return one_step(optimizer, parameters, loss_of, parts, max_norm, weigh=lambda part, n: 1 / len(parts))

        def parts_added_up(optimizer, parameters, loss_of, parts, max_norm):
            """The mean losses of the parts were added up: weigh each by its share of the examples."""
            return one_step(optimizer, parameters, loss_of, parts, max_norm, weigh=lambda part, n: 1.0)

        def clipped_after_the_step(optimizer, parameters, loss_of, parts, max_norm):
            """Clipping came after the step, when the gradient had been used: clip first."""
            mean, _ = one_step(optimizer, parameters, loss_of, parts, math.inf)
            return mean, clip_grad_norm_(parameters, max_norm).item()

        def never_clipped(optimizer, parameters, loss_of, parts, max_norm):
            """The gradient was not clipped to max_norm before the step."""
            return one_step(optimizer, parameters, loss_of, parts, 3 * max_norm)

        def each_part_clipped(optimizer, parameters, loss_of, parts, max_norm):
            """The gradient was clipped after every part, when it was not complete: clip once, before the step."""
            norms = []
            result = one_step(
                optimizer,
                parameters,
                loss_of,
                parts,
                math.inf,
                after=lambda: norms.append(clip_grad_norm_(parameters, max_norm).item()),
            )
            return result[0], norms[-1]

        def a_step_for_each_part(optimizer, parameters, loss_of, parts, max_norm):
            """A step was taken after every part: all parts together are one step."""
            found = [training_step(optimizer, parameters, loss_of, [part], max_norm) for part in parts]
            total = sum(len(part) for part in parts)
            mean = sum(loss * len(part) / total for (loss, _), part in zip(found, parts, strict=True))
            return mean, found[-1][1]

        def loss_of_the_last_part(optimizer, parameters, loss_of, parts, max_norm):
            """The loss that was returned is that of the last part: the mean over all examples is wanted."""
            last = loss_of(parts[-1]).item()
            return last, training_step(optimizer, parameters, loss_of, parts, max_norm)[1]

        def norm_after_clipping(optimizer, parameters, loss_of, parts, max_norm):
            """The norm that was returned is the one after clipping: clip_grad_norm_ returns the one before."""
            mean, norm = training_step(optimizer, parameters, loss_of, parts, max_norm)
            return mean, min(norm, max_norm)

        def loss_after_the_step(optimizer, parameters, loss_of, parts, max_norm):
            """The loss was computed once more, after the step: return that which gave the gradient."""
            _, norm = training_step(optimizer, parameters, loss_of, parts, max_norm)
            total = sum(len(part) for part in parts)
            return sum(loss_of(part).item() * len(part) / total for part in parts), norm

    class alternatives:
        def weighed_at_the_end(optimizer, parameters, loss_of, parts, max_norm):
            for p in parameters:
                p.grad = None
            losses = [loss_of(part) for part in parts]
            total = sum(map(len, parts))
            whole = losses[0] * len(parts[0])
            for loss, part in zip(losses[1:], parts[1:], strict=True):
                whole = whole + loss * len(part)
            whole = whole / total
            whole.backward()
            norm = float(clip_grad_norm_(parameters, max_norm))
            optimizer.step()
            return whole.item(), norm

        def scaled_gradients(optimizer, parameters, loss_of, parts, max_norm):
            optimizer.zero_grad()
            count, mean = 0, 0.0
            for part in parts:
                loss = loss_of(part)
                (loss * float(len(part))).backward()
                mean += loss.item() * len(part)
                count += len(part)
            for p in parameters:
                p.grad.div_(float(count))
            norm = clip_grad_norm_(parameters, max_norm).item()
            optimizer.step()
            return mean / count, norm


def one_step(optimizer, parameters, loss_of, parts, max_norm, zero=True, weigh=None, each=None, after=None):
    """training_step, with a part of it done otherwise."""
    if zero:
        optimizer.zero_grad()
    total, mean = sum(len(part) for part in parts), 0.0
    for part in parts:
        if each:
            each()
        loss = loss_of(part) * (weigh(part, total) if weigh else len(part) / total)
        loss.backward()
        mean += loss.item()
        if after:
            after()
    norm = clip_grad_norm_(parameters, max_norm)
    optimizer.step()
    return mean, norm.item()
