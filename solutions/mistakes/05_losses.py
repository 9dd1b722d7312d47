"""Chapter 05: the right values, wrong answers, and other right ones. A mistake's docstring is what learners read."""

from __future__ import annotations

import math

import numpy as np

from gradwright.chapters import losses
from gradwright.chapters.losses import (
    CrossEntropy,
    bce_with_logits,
    clip_grad_norm_,
    distillation_loss,
    kl_div,
    log_softmax,
    logsumexp,
    made_here,
    p_norm,
    plain,
    soft_targets,
)

quiet = {"divide": "ignore", "invalid": "ignore", "over": "ignore"}


class losses_logsumexp:
    def oracle(arrays, torch):
        return {"result": torch.logsumexp(torch.from_numpy(arrays["x"]).double(), int(arrays["axis"]))}

    class mistakes:
        def as_it_stands(x, axis):
            """exp was taken of the logits themselves: it is inf from 710 on, and 0 below -745. Take out the largest
            element first."""
            with np.errstate(**quiet):
                return np.log(np.exp(x).sum(axis))

        def not_put_back(x, axis):
            """What was taken out of the sum was not added again behind the logarithm."""
            top = x.max(axis, keepdims=True)
            with np.errstate(**quiet):
                return np.log(np.exp(x - np.where(np.isfinite(top), top, 0)).sum(axis))

        def infinite_top(x, axis):
            """The largest element was taken out where it is not finite too: -inf - -inf is nan. Take out 0 there."""
            top = x.max(axis, keepdims=True)
            with np.errstate(**quiet):
                return np.log(np.exp(x - top).sum(axis)) + top.squeeze(axis)

        def largest_of_all(x, axis):
            """One largest element of the whole array was taken out. A row far below it underflows to 0: each row has a
            largest element of its own."""
            top = x.max()
            top = top if np.isfinite(top) else x.dtype.type(0)
            with np.errstate(**quiet):
                return np.log(np.exp(x - top).sum(axis)) + top

        def guarded_by_a_small_number(x, axis):
            """A small number was added so that the logarithm never meets 0. A row of -inf alone has the sum 0, and its
            logarithm is -inf: leave it."""
            top = x.max(axis, keepdims=True)
            top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
            with np.errstate(**quiet):
                return np.log(np.exp(x - top).sum(axis) + x.dtype.type(1e-4)) + top.squeeze(axis)

        def only_the_largest(x, axis):
            """This is the largest element alone. The others add the logarithm of their sum."""
            return x.max(axis)

        def axis_kept(x, axis):
            """The axis is still there, of size 1: keep it for the subtraction alone."""
            return np.expand_dims(logsumexp(x, axis), axis)

        def other_axis(x, axis):
            """The last axis was summed, whichever was asked for."""
            return logsumexp(x, -1)

    class alternatives:
        def pairwise(x, axis):
            with np.errstate(**quiet):
                return np.logaddexp.reduce(x, axis)

        def guarded_afterwards(x, axis):
            top = x.max(axis)
            with np.errstate(**quiet):
                out = np.log(np.exp(x - np.expand_dims(top, axis)).sum(axis)) + top
            return np.where(np.isinf(top), top, out)


class losses_log_softmax:
    def oracle(arrays, torch):
        return {"result": torch.log_softmax(torch.from_numpy(arrays["x"]).double(), int(arrays["axis"]))}

    class mistakes:
        def in_two_steps(x, axis):
            """The logarithm was taken of a softmax that had become 0. Subtract the logarithm of the sum instead, and
            compute no probabilities."""
            with np.errstate(**quiet):
                e = np.exp(x - x.max(axis, keepdims=True))
                return np.log(e / e.sum(axis, keepdims=True))

        def sum_first(x, axis):
            """A large number met a small one before two large ones cancelled, and float32 has lost the small one:
            subtract the largest logit from x first."""
            return x - np.expand_dims(logsumexp(x, axis), axis)

        def as_it_stands(x, axis):
            """exp was taken of the logits themselves and overflows: subtract the largest element of each row first."""
            with np.errstate(**quiet):
                return x - np.log(np.exp(x).sum(axis, keepdims=True))

        def softmax_itself(x, axis):
            """This is the softmax. Its logarithm is wanted."""
            return np.exp(log_softmax(x, axis))

        def other_axis(x, axis):
            """The last axis was normalised, whichever was asked for."""
            return log_softmax(x, -1)

        def whole_array(x, axis):
            """The sum went over the whole array. Each row sums to 1 by itself: sum along the axis and keep it."""
            with np.errstate(**quiet):
                shifted = x - x.max(axis, keepdims=True)
                return shifted - np.log(np.exp(shifted).sum())

        def masked_away(x, axis):
            """A row of -inf alone was given zeros. No probabilities are right there, so the result is nan."""
            out = log_softmax(x, axis)
            return np.where(np.isnan(out), 0, out).astype(x.dtype)

        def shifted_only(x, axis):
            """The largest element was subtracted, and the logarithm of the sum was not."""
            with np.errstate(**quiet):
                return x - x.max(axis, keepdims=True)

    class alternatives:
        def with_einsum_sums(x, axis):
            with np.errstate(**quiet):
                z = np.moveaxis(x, axis, -1)
                z = z - z.max(-1, keepdims=True)
                z = z - np.log(np.einsum("...i->...", np.exp(z)))[..., None]
            return np.moveaxis(z, -1, axis)

        def through_logsumexp(x, axis):
            with np.errstate(**quiet):
                shifted = x - np.max(x, axis=axis, keepdims=True)
                return shifted - np.expand_dims(logsumexp(shifted, axis), axis)


class losses_cross_entropy:
    def oracle(arrays, torch):
        x = torch.from_numpy(arrays["logits"]).double().requires_grad_()
        loss = torch.nn.functional.cross_entropy(x, torch.from_numpy(arrays["ids"]))
        loss.backward(torch.from_numpy(arrays["grad"]).double())
        return {"loss": loss, "gradient of the logits": x.grad, "the same, in a second backward": x.grad}

    class mistakes:
        class grad_ignored(CrossEntropy):
            """What arrives from further up is missing from the gradient: multiply by grad."""

            def backward(self, grad):
                return super().backward(np.ones_like(grad))

        class sum_in_backward(CrossEntropy):
            """The loss is a mean and the gradient that of a sum: each of the N rows weighs 1/N."""

            def backward(self, grad):
                return super().backward(grad) * len(self.ids)

        class sum_in_both(CrossEntropy):
            """Loss and gradient are those of a sum: take the mean over the rows."""

            def forward(self, logits, ids):
                return logits.new(super().forward(logits, ids).array * len(ids))

            def backward(self, grad):
                return super().backward(grad) * len(self.ids)

        class divided_by_elements(CrossEntropy):
            """The mean was taken over all N times C numbers. There is one loss a row: divide by N."""

            def forward(self, logits, ids):
                self.classes = logits.dtype.type(logits.shape[1])
                return logits.new(super().forward(logits, ids).array / self.classes)

            def backward(self, grad):
                return super().backward(grad) / self.classes

        class nothing_subtracted(CrossEntropy):
            """The gradient is the softmax alone: subtract 1 at the right class of each row."""

            def backward(self, grad):
                (p,) = self.saved
                return p * (grad / len(p))

        class subtracted_from_whole_columns(CrossEntropy):
            """`slope[:, ids]` takes whole columns. One element of every row is wanted: name the rows as well."""

            def backward(self, grad):
                (p,) = self.saved
                slope = p.copy()
                slope[:, self.ids] -= 1
                return slope * (grad / len(slope))

        class whole_columns_throughout(CrossEntropy):
            """`log_p[:, ids]` takes whole columns, in the loss and in its gradient. One element of every row is wanted:
            name the rows as well."""

            def forward(self, logits, ids):
                super().forward(logits, ids)
                return logits.new(-log_softmax(logits.array, 1)[:, ids].mean())

            def backward(self, grad):
                (p,) = self.saved
                slope = p.copy()
                slope[:, self.ids] -= 1
                return slope * (grad / len(slope))

        class sign_turned(CrossEntropy):
            """The gradient has the wrong sign: it is what the network says minus what is true."""

            def backward(self, grad):
                return -super().backward(grad)

        class of_probabilities(CrossEntropy):
            """The gradient is that of the log-probabilities, -1/N at the right class. The softmax in between brings all
            logits in: p minus 1 there, p elsewhere."""

            def backward(self, grad):
                (p,) = self.saved
                slope = np.zeros_like(p)
                slope[np.arange(len(slope)), self.ids] = -grad / len(slope)
                return slope

        class softmax_twice(CrossEntropy):
            """A softmax was applied before the log-softmax, so the loss never comes near 0: the logits go in as they
            are."""

            def forward(self, logits, ids):
                return super().forward(logits.new(np.exp(log_softmax(logits.array, 1))), ids)

        class saved_was_changed(CrossEntropy):
            """The saved array was changed in place, so a second backward begins with what the first has left. Change a
            copy."""

            def forward(self, logits, ids):
                log_p = log_softmax(logits.array, 1)
                self.p, self.ids = np.exp(log_p), ids
                return logits.new(-log_p[np.arange(len(ids)), ids].mean())

            def backward(self, grad):
                self.p[np.arange(len(self.p)), self.ids] -= 1
                self.p *= grad / len(self.p)
                return self.p

    class alternatives:
        class by_the_log_softmax(losses.Operation):
            def forward(self, logits, ids):
                log_p = log_softmax(logits.array, 1)
                self.save(logits.new(log_p))
                self.ids = ids
                return logits.new(-log_p[np.arange(len(ids)), ids].mean())

            def backward(self, grad):
                (log_p,) = self.saved
                slope = np.exp(log_p)
                slope[np.arange(len(slope)), self.ids] -= 1
                return slope * (grad / len(slope))

        class one_hot_rows(losses.Operation):
            def forward(self, logits, ids):
                self.truth = np.eye(logits.shape[1], dtype=logits.dtype)[ids]
                log_p = log_softmax(logits.array, 1)
                self.save(logits.new(np.exp(log_p)))
                return logits.new(-np.where(self.truth == 1, log_p, 0).sum() / logits.dtype.type(len(ids)))

            def backward(self, grad):
                (p,) = self.saved
                return (p - self.truth) * grad / p.dtype.type(len(p))

        class recomputed(losses.Operation):
            def forward(self, logits, ids):
                self.save(logits)
                self.ids = ids
                x = logits.array
                return logits.new(np.mean(logsumexp(x - x.max(1, keepdims=True), 1) + x.max(1) - x[range(len(x)), ids]))

            def backward(self, grad):
                (x,) = self.saved
                e = np.exp(x - x.max(1, keepdims=True))
                p = e / e.sum(1, keepdims=True)
                np.subtract.at(p, (np.arange(len(p)), self.ids), 1)
                return p * (grad / len(p))


class losses_targets:
    def oracle(arrays, torch):
        """The targets are the gradients of the summed loss with respect to -log p, and so is each row's count."""
        ids, classes = torch.from_numpy(arrays["ids"]), int(arrays["classes"])
        weight = torch.from_numpy(arrays["weight"]) if arrays["weight"].size else torch.ones(classes).double()
        ignore, smoothing = int(arrays["ignore_index"]), float(arrays["label_smoothing"])
        logits = torch.zeros((len(ids), classes), dtype=torch.float64, requires_grad=True)
        log_p = torch.log_softmax(logits, 1).detach()
        columns = []
        for j in range(classes):  # a loss is linear in log p: see what each column adds
            moved = log_p.clone()
            moved[:, j] -= 1

            def loss_of(x):
                own = torch.nn.functional.nll_loss(x, ids, weight, ignore_index=ignore, reduction="none")
                smooth = (-x * weight).sum(1) * (ids != ignore)
                return (1 - smoothing) * own + smoothing / classes * smooth

            columns.append(loss_of(moved) - loss_of(log_p))
        valid = ids[ids != ignore]
        return {"targets": torch.stack(columns, 1), "count": weight[valid].sum()}

    class mistakes:
        def ignored_rows_count(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """Ignored rows were counted, so padding makes the mean smaller: they add nothing to the count."""
            q, count = soft_targets(ids, classes, weight, ignore_index, label_smoothing)
            return q, count + float((ids == ignore_index).sum())

        def rows_counted_without_weights(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """The count is the number of rows. With class weights each row counts the weight of its class."""
            q, _ = soft_targets(ids, classes, weight, ignore_index, label_smoothing)
            return q, float((ids != ignore_index).sum())

        def ignored_rows_smoothed(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """An ignored row still has its share of the smoothing: all of it is 0."""
            q, count = soft_targets(ids, classes, weight, ignore_index, label_smoothing)
            share = label_smoothing / classes * (1 if weight is None else weight)
            return np.where((ids == ignore_index)[:, None], share, q), count

        def ignored_rows_in(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """An ignored row has the targets of a class, because a negative id counts from the end or was set to 0."""
            return soft_targets(np.where(ids == ignore_index, 0, ids), classes, weight, -200, label_smoothing)

        def shared_among_others(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """The smoothing was shared among the other classes only. It goes to all C of them, the right one
            included."""
            q, _count = soft_targets(ids, classes, None, ignore_index, 0.0)
            counts = (ids != ignore_index)[:, None]
            q = np.where(q == 1, 1 - label_smoothing, label_smoothing / (classes - 1)) * counts
            return q * (1 if weight is None else weight), soft_targets(ids, classes, weight, ignore_index)[1]

        def smoothing_added(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """The right class kept its 1 and the smoothing came on top, so a row sums to more than 1: take it away from
            the 1 first."""
            q, count = soft_targets(ids, classes, weight, ignore_index, label_smoothing)
            return q + label_smoothing * soft_targets(ids, classes, weight, ignore_index)[0], count

        def smoothing_of_one_class_weight(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """Each row was multiplied by the weight of its own class. Multiply each column by the weight of its
            class."""
            q, _count = soft_targets(ids, classes, None, ignore_index, label_smoothing)
            own = np.where(ids == ignore_index, 0, ids)
            return q * (1 if weight is None else weight[own][:, None]), soft_targets(
                ids, classes, weight, ignore_index
            )[1]

        def smoothing_unweighted(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """The weights were applied before the smoothing, whose share then has none: smooth first, then multiply the
            columns."""
            q, count = soft_targets(ids, classes, weight, ignore_index)
            share = label_smoothing / classes * (ids != ignore_index)[:, None]
            return (1 - label_smoothing) * q + share, count

        def only_minus_100(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """ignore_index was not looked at: rows with this id do not count, whichever number it is."""
            inside = np.where((ids < 0) & (ids != -100), ids % classes, ids)
            return soft_targets(inside, classes, weight, -100, label_smoothing)

        def count_of_targets(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """The count is the sum of all targets. Smoothing does not change what a row counts: the weight of its
            class."""
            q, _ = soft_targets(ids, classes, weight, ignore_index, label_smoothing)
            return q, float(q.sum())

        def never_nothing(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            """Where no row counts, the count was made 1. It is 0: a mean over nothing is to show itself."""
            q, count = soft_targets(ids, classes, weight, ignore_index, label_smoothing)
            return q, count or 1.0

    class alternatives:
        def row_by_row(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            weight = [1.0] * classes if weight is None else weight
            targets, count = np.zeros((len(ids), classes)), 0.0
            for n, y in enumerate(ids):
                if y == ignore_index:
                    continue
                count += weight[y]
                for j in range(classes):
                    targets[n, j] = weight[j] * ((1 - label_smoothing) * (j == y) + label_smoothing / classes)
            return targets, count

        def one_hot_by_comparison(ids, classes, weight=None, ignore_index=-100, label_smoothing=0.0):
            hot = (ids[:, None] == np.arange(classes)) & (ids != ignore_index)[:, None]
            counts = hot.any(1, keepdims=True)
            scale = np.ones(classes) if weight is None else weight
            return (hot * (1 - label_smoothing) + counts * label_smoothing / classes) * scale, (hot * scale).sum()


class losses_bce:
    def oracle(arrays, torch):
        x, y = torch.from_numpy(arrays["x"]).double().requires_grad_(), torch.from_numpy(arrays["y"]).double()
        pos = torch.from_numpy(arrays["pos_weight"]).double() if arrays["pos_weight"].size else None
        found = torch.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none", pos_weight=pos)
        found.sum().backward()
        return {"losses": found, "slopes": x.grad}

    class mistakes:
        def through_probabilities(x, y, pos_weight=1.0):
            """The logarithm was taken of a sigmoid that had rounded to 0 or 1. Use the form with a softplus, which
            needs no probability."""
            with np.errstate(**quiet):
                p = 1 / (1 + np.exp(-x))
                losses = -(pos_weight * y * np.log(p) + (1 - y) * np.log(1 - p))
            return losses, p * (1 - y) - pos_weight * y * (1 - p)

        def probabilities_cut_off(x, y, pos_weight=1.0):
            """The probabilities were cut off at a small number, so a large error costs no more than a middling one. Use
            the form with a softplus, which is exact."""
            _, slopes = bce_with_logits(x, y, pos_weight)
            p = np.clip(1 / (1 + np.exp(-np.clip(x, -500, 500))), 1e-7, 1 - 1e-7)
            losses = -(pos_weight * y * np.log(p) + (1 - y) * np.log(1 - p))
            return losses.astype(x.dtype), slopes

        def overflowing_softplus(x, y, pos_weight=1.0):
            """exp was taken of -x as it is, and overflows for x below -710: in the stable softplus exp sees -|x|."""
            with np.errstate(**quiet):
                e = np.exp(-x)
                yes = 1 + (pos_weight - 1) * y
                return (1 - y) * x + yes * np.log1p(e), (1 - y) - yes * np.where(np.isinf(e), 1, e / (1 + e))

        def pos_weight_ignored(x, y, pos_weight=1.0):
            """pos_weight was not used: it multiplies the term of yes."""
            return bce_with_logits(x, y)

        def pos_weight_on_everything(x, y, pos_weight=1.0):
            """pos_weight multiplied the whole loss. It belongs to the term of yes alone."""
            losses, slopes = bce_with_logits(x, y)
            return losses * pos_weight, slopes * pos_weight

        def pos_weight_on_the_softplus(x, y, pos_weight=1.0):
            """pos_weight multiplied the softplus of yes and of no alike. Of what stands before the softplus only the
            part that comes from the term of yes gets it."""
            softplus = np.logaddexp(0, -x)
            return (1 - y) * x + pos_weight * softplus, (1 - y) - pos_weight * np.exp(-np.logaddexp(0, x))

        def pos_weight_on_no(x, y, pos_weight=1.0):
            """pos_weight multiplied the term of no. It belongs to that of yes, y log(sigmoid(x))."""
            losses, slopes = bce_with_logits(-x, 1 - y, pos_weight)
            return losses, -slopes

        def pos_weight_forgotten_in_the_slope(x, y, pos_weight=1.0):
            """The losses are right, and pos_weight is missing from the slopes."""
            return bce_with_logits(x, y, pos_weight)[0], bce_with_logits(x, y)[1]

        def answers_exchanged(x, y, pos_weight=1.0):
            """Yes and no are exchanged: a large logit means yes."""
            losses, slopes = bce_with_logits(x, 1 - y, pos_weight)
            return losses, slopes

        def slope_turned(x, y, pos_weight=1.0):
            """The slopes have the wrong sign: mind the inner derivative of -x in softplus(-x)."""
            losses, slopes = bce_with_logits(x, y, pos_weight)
            return losses, -slopes

        def mean_taken(x, y, pos_weight=1.0):
            """The slopes were divided by the number of elements. Nothing is reduced here: one loss and one slope an
            element."""
            losses, slopes = bce_with_logits(x, y, pos_weight)
            return losses, slopes / x.dtype.type(2 * x.size)

    class alternatives:
        def logaddexp(x, y, pos_weight=1.0):
            no, yes = np.logaddexp(0, x), np.logaddexp(0, -x)
            return (
                pos_weight * y * yes + (1 - y) * no,
                (1 - y) * np.exp(-np.logaddexp(0, -x)) - pos_weight * y * np.exp(-np.logaddexp(0, x)),
            )

        def with_tanh(x, y, pos_weight=1.0):
            p = (1 + np.tanh(x / 2)) / 2
            p_not = (1 - np.tanh(x / 2)) / 2
            yes = np.maximum(-x, 0) + np.log1p(np.exp(-abs(x)))
            return pos_weight * y * yes + (1 - y) * (yes + x), (1 - y) * p - pos_weight * y * p_not


class losses_distillation:
    def oracle(arrays, torch):
        student = torch.from_numpy(arrays["student"]).requires_grad_()
        teacher, T = torch.from_numpy(arrays["teacher"]), float(arrays["temperature"])
        log_p, log_q = torch.log_softmax(student / T, 1), torch.log_softmax(teacher / T, 1)
        loss = T**2 * torch.nn.functional.kl_div(log_p, log_q, reduction="batchmean", log_target=True)
        loss.backward(torch.from_numpy(arrays["grad"]))
        return {"loss": loss, "gradient of the student": student.grad, "the teacher got a gradient": False}

    class mistakes:
        def not_scaled_back(student, teacher, temperature):
            """The factor of the squared temperature is missing, so the gradient fades as the temperature grows."""
            return distillation_loss(student, teacher, temperature) / temperature**2

        def scaled_once(student, teacher, temperature):
            """The factor is the temperature. It is its square: the gradient shrinks by one for each of the two
            distributions."""
            return distillation_loss(student, teacher, temperature) / temperature

        def mean_over_elements(student, teacher, temperature):
            """The sum was divided by N times C. The mean is over the N rows: kl_div calls that batchmean."""
            return distillation_loss(student, teacher, temperature) / student.shape[1]

        def summed(student, teacher, temperature):
            """This is the sum over the rows: take their mean."""
            return distillation_loss(student, teacher, temperature) * student.shape[0]

        def other_way_round(student, teacher, temperature):
            """The divergence was weighed by the student. The teacher is the truth: it is the target."""
            log_p, log_q = (
                (student / temperature).log_softmax(1),
                (teacher.detach() / temperature).log_softmax(1),
            )
            return temperature**2 * kl_div(log_q, log_p, reduction="batchmean", log_target=True)

        def multiplied_by_the_temperature(student, teacher, temperature):
            """The logits were multiplied by the temperature: a higher one is to soften, so divide."""
            return distillation_loss(student, teacher, 1 / temperature) * temperature**4

        def divided_after_the_logarithm(student, teacher, temperature):
            """The logarithms of the softmax were divided by the temperature, and are those of no distribution then:
            divide the logits."""
            log_p, log_q = student.log_softmax(1) / temperature, teacher.detach().log_softmax(1) / temperature
            return temperature**2 * kl_div(log_p, log_q, reduction="batchmean", log_target=True)

        def teacher_as_it_is(student, teacher, temperature):
            """Only the student was softened: divide both by the temperature."""
            return distillation_loss(student, teacher * temperature, temperature)

        def along_the_batch(student, teacher, temperature):
            """The softmax went along the batch. Each row is a distribution: its axis is 1."""
            log_p, log_q = (
                (student / temperature).log_softmax(0),
                (teacher.detach() / temperature).log_softmax(0),
            )
            return temperature**2 * kl_div(log_p, log_q, reduction="batchmean", log_target=True)

        def teacher_learns_too(student, teacher, temperature):
            """The teacher got a gradient and would be changed: detach its logits."""
            log_p, log_q = (student / temperature).log_softmax(1), (teacher / temperature).log_softmax(1)
            return temperature**2 * kl_div(log_p, log_q, reduction="batchmean", log_target=True)

        def log_of_a_softmax(student, teacher, temperature):
            """The logarithm was taken of a softmax, which is 0 for logits in the thousands: log_softmax is one step."""
            with np.errstate(**quiet):
                log_p = (student / temperature).softmax(1).log()
            q = (teacher.detach() / temperature).softmax(1)
            return temperature**2 * kl_div(log_p, q, reduction="batchmean")

    class alternatives:
        def written_out(student, teacher, temperature):
            log_p = (student / temperature).log_softmax(1)
            log_q = (teacher.detach() / temperature).log_softmax(1)
            return (log_q.exp() * (log_q - log_p)).sum() * (temperature**2 / student.shape[0])

        def probabilities_as_target(student, teacher, temperature):
            log_p, q = (student / temperature).log_softmax(1), (teacher.detach() / temperature).softmax(1)
            return kl_div(log_p, q, reduction="sum") * temperature**2 / len(q.tolist())


def gradients(parameters):
    parameters = [parameters] if isinstance(parameters, plain.Strided) else parameters
    return [p.grad for p in parameters if p.grad is not None]


def number(grads, value):
    return grads[0].new(np.asarray(value, grads[0].dtype))


def refuse(norm, error_if_nonfinite):
    if error_if_nonfinite and not math.isfinite(norm):
        raise RuntimeError(f"norm {norm}")


class losses_clip_norm:
    def oracle(arrays, torch):
        names = [n for i, n in enumerate(("first", "second", "third")) if i != arrays["missing"]]
        given = {name: torch.zeros(arrays[name].shape, dtype=torch.float64, requires_grad=True) for name in names}
        for name, p in given.items():
            p.grad = torch.from_numpy(arrays[name].copy())
        parameters = [given["first"]] if arrays["handed over"] == "one tensor" else list(given.values())
        strict = bool(arrays["error_if_nonfinite"])
        try:
            norm = torch.nn.utils.clip_grad_norm_(
                parameters, float(arrays["max_norm"]), float(arrays["norm_type"]), strict
            )
            found = {"refused with RuntimeError": False} if strict else {"norm": norm}
        except RuntimeError:
            found = {"refused with RuntimeError": True}
        return found | {f"gradient of the {name}": p.grad for name, p in given.items()}

    class mistakes:
        def each_by_itself(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """Every gradient was scaled by its own norm. They are one vector: one norm over all, one factor."""
            parameters = [parameters] if isinstance(parameters, plain.Strided) else list(parameters)
            grads = gradients(parameters)
            norm = p_norm([p_norm(g.array, norm_type) for g in grads], norm_type)
            refuse(norm, error_if_nonfinite)
            for p in parameters:
                clip_grad_norm_(p, max_norm, norm_type)
            return number(grads, norm)

        def always_scaled(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """Short gradients were made longer. The factor is never above 1."""
            grads = gradients(parameters)
            norm = clip_grad_norm_(FakeParameters(grads), math.inf, norm_type, error_if_nonfinite)
            for g in grads:
                g.mul_(max_norm / (norm.item() + 1e-6))
            return norm

        def generator_used_up(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """The parameters were walked over twice, and a generator has nothing left for the second walk: make a list
            first."""
            grads = gradients(parameters)
            norm = p_norm([p_norm(g.array, norm_type) for g in grads], norm_type)
            refuse(norm, error_if_nonfinite)
            if not max_norm / (norm + 1e-6) >= 1:
                for g in gradients(parameters):
                    g.mul_(max_norm / (norm + 1e-6))
            return number(grads, norm)

        def norm_afterwards(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """What was returned is the norm after clipping, which is never above max_norm and tells nothing: return the
            one before."""
            grads = gradients(parameters)
            clip_grad_norm_(FakeParameters(grads), max_norm, norm_type, error_if_nonfinite)
            return number(grads, p_norm([p_norm(g.array, norm_type) for g in grads], norm_type))

        def copies_scaled(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """The gradients are as they were: `g * factor` makes a new tensor, `g.mul_(factor)` changes g."""
            grads = gradients(parameters)
            norm = p_norm([p_norm(g.array, norm_type) for g in grads], norm_type)
            refuse(norm, error_if_nonfinite)
            return number(grads, norm)

        def new_gradients_put_in_place(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """.grad was replaced by a new tensor, and whoever holds the old one sees nothing of it: change it in
            place."""
            parameters = [parameters] if isinstance(parameters, plain.Strided) else list(parameters)
            grads = gradients(parameters)
            norm = p_norm([p_norm(g.array, norm_type) for g in grads], norm_type)
            if error_if_nonfinite and not math.isfinite(norm):
                raise ValueError(f"norm {norm}")
            for p in parameters:
                if p.grad is not None and norm > max_norm:
                    p.grad = p.grad * (max_norm / (norm + 1e-6))
            return number(grads, norm)

        def missing_is_an_error(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """A parameter without a gradient stops it: pass over those whose .grad is None."""
            parameters = [parameters] if isinstance(parameters, plain.Strided) else list(parameters)
            for p in parameters:
                p.grad.array  # noqa: B018 (an AttributeError for None)
            return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)

        def always_squares(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """norm_type was not used: this is the root of the sum of squares, whichever norm was asked for."""
            return clip_grad_norm_(parameters, max_norm, 2.0, error_if_nonfinite)

        def never_refused(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """error_if_nonfinite was not looked at: raise RuntimeError before anything is changed."""
            return clip_grad_norm_(parameters, max_norm, norm_type)

        def refused_too_late(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """The gradients were scaled before the error was raised: look at the norm first."""
            norm = clip_grad_norm_(parameters, max_norm, norm_type)
            refuse(norm.item(), error_if_nonfinite)
            return norm

        def sum_of_norms(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """The norms of the single gradients were added up. Take the norm of these norms, of the same type."""
            grads = gradients(parameters)
            norm = sum(p_norm(g.array, norm_type) for g in grads)
            refuse(norm, error_if_nonfinite)
            if not max_norm / (norm + 1e-6) >= 1:
                for g in grads:
                    g.mul_(max_norm / (norm + 1e-6))
            return number(grads, norm)

        def nonfinite_left_alone(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            """Where the norm is not finite nothing was scaled. PyTorch scales there too: inf gives the factor 0, nan
            spoils everything."""
            grads = gradients(parameters)
            norm = p_norm([p_norm(g.array, norm_type) for g in grads], norm_type)
            refuse(norm, error_if_nonfinite)
            if math.isfinite(norm):
                clip_grad_norm_(FakeParameters(grads), max_norm, norm_type)
            return number(grads, norm)

    class alternatives:
        def one_long_vector(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            grads = gradients(parameters)
            norm = np.linalg.norm(np.concatenate([g.array.ravel() for g in grads]), norm_type)
            refuse(norm, error_if_nonfinite)
            factor = max_norm / (norm + 1e-6)
            for g in grads:
                g.mul_(float(min(factor, 1.0) if factor == factor else factor))
            return number(grads, norm)

        def with_tensors(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
            grads = gradients(parameters)
            if norm_type == math.inf:
                norm = max((float(np.abs(g.array).max()) for g in grads), key=lambda n: math.inf if n != n else n)
            else:
                norm = sum(float((np.abs(g.array) ** norm_type).sum()) for g in grads) ** (1 / norm_type)
            refuse(norm, error_if_nonfinite)
            for g in grads:
                g.copy_(g * (1.0 if norm + 1e-6 <= max_norm else max_norm / (norm + 1e-6)))
            return number(grads, norm)


def FakeParameters(grads):
    """Gradients, as something to clip."""
    return [Holder(g) for g in grads]


class Holder:
    def __init__(self, grad):
        self.grad = grad


class losses_geometric_mean:
    def oracle(arrays, torch):
        x = torch.from_numpy(arrays["x"]).requires_grad_()
        out = torch.exp(torch.mean(torch.log(x), -1))
        out.backward(torch.from_numpy(arrays["grad"]))
        return {"output": out, "gradient": x.grad}

    class mistakes:
        def as_it_stands(x):
            """The product itself was computed, which overflows or becomes 0 long before its root does: add up
            logarithms."""
            with np.errstate(**quiet):
                return x.prod(dim=-1) ** (1 / x.shape[-1])

        def not_brought_back(x):
            """This is the logarithm of the geometric mean: exp is missing."""
            return x.log().mean(dim=-1)

        def summed_logarithms(x):
            """The logarithms were added up and not divided: this is the product, without its root."""
            with np.errstate(**quiet):
                return x.log().sum(dim=-1).exp()

        def arithmetic(x):
            """This is the mean of the numbers themselves: take that of their logarithms."""
            return x.mean(dim=-1)

        def over_everything(x):
            """The mean went over all axes: only the last one disappears."""
            return x.log().mean().exp()

        def exp_before_the_mean(x):
            """exp came before the mean and undid the logarithm: mean first, then exp."""
            return (x.log().exp()).mean(dim=0)

        def logarithm_to_another_base(x):
            """A logarithm to base 2 was undone by exp: use one base on both ways."""
            return (x.log() / math.log(2)).mean(dim=-1).exp()

        def axis_kept(x):
            """The last axis is still there, of size 1."""
            return x.log().mean(dim=-1, keepdim=True).exp()

    class alternatives:
        def root_of_each(x):
            return (x.log() / x.shape[-1]).sum(dim=-1).exp()

        def scaled_by_the_largest(x):
            top = x.detach().amax(dim=-1, keepdim=True)
            return (x / top).log().mean(dim=-1).exp() * top.squeeze(-1)


class losses_normalize:
    def oracle(arrays, torch):
        x = torch.from_numpy(arrays["x"]).requires_grad_()
        out = torch.nn.functional.normalize(x, dim=1, eps=float(arrays["eps"]) or 1e-12)
        out.backward(torch.from_numpy(arrays["grad"]))
        return {"output": out, "gradient": x.grad}

    class mistakes:
        def chosen_afterwards(x, eps=1e-12):
            """The bad number was made and then put aside by where. On the way back it returns as 0 times inf: enlarge
            the squares before the root."""
            length = (x * x).sum(dim=1, keepdim=True).sqrt()
            with np.errstate(**quiet):
                return (x / length).where(length > 0, 0.0)

        def clamped_after_the_root(x, eps=1e-12):
            """The length was enlarged after the root, whose slope at 0 is infinite: enlarge what is under the root."""
            return x / (x * x).sum(dim=1, keepdim=True).sqrt().clamp(min=eps)

        def nothing_done(x, eps=1e-12):
            """A row of zeros is divided by 0."""
            with np.errstate(**quiet):
                return x / (x * x).sum(dim=1, keepdim=True).sqrt()

        def added_to_the_length(x, eps=1e-12):
            """eps was added to the length, which makes every row a little too short: take the larger of the two."""
            return x / ((x * x).sum(dim=1, keepdim=True).clamp(min=1e-60).sqrt() + eps)

        def added_under_the_root(x, eps=1e-12):
            """The square of eps was added under the root, which makes every row a little too short: take the larger of
            the two."""
            return x / ((x * x).sum(dim=1, keepdim=True) + eps**2).sqrt()

        def eps_not_squared(x, eps=1e-12):
            """Under the root stand squares, and there the bound was eps: it is the square of eps."""
            return x / (x * x).sum(dim=1, keepdim=True).clamp(min=eps).sqrt()

        def length_as_a_constant(x, eps=1e-12):
            """The length was detached, so the gradient does not know that it changes with x."""
            squares = (x * x).sum(dim=1, keepdim=True)
            return x / squares.clamp(min=eps**2).sqrt().detach()

        def whole_array(x, eps=1e-12):
            """Everything was divided by the length of the whole array. Each row has its own."""
            return x / (x * x).sum().clamp(min=eps**2).sqrt()

        def columns(x, eps=1e-12):
            """The columns were normalised. The rows are wanted: sum along axis 1."""
            return x / (x * x).sum(dim=0, keepdim=True).clamp(min=eps**2).sqrt()

        def by_the_sum(x, eps=1e-12):
            """Each row was divided by the sum of its sizes. The length is the root of the sum of squares."""
            return x / x.abs().sum(dim=1, keepdim=True).clamp(min=eps)

    class alternatives:
        def by_the_norm(x, eps=1e-12):
            return x / x.norm(dim=1, keepdim=True).clamp(min=eps)

        def inverse_root(x, eps=1e-12):
            return x * (x * x).sum(dim=1, keepdim=True).clamp(min=eps**2).rsqrt()


class losses_made_here:
    def oracle(arrays, torch):
        output = torch.from_numpy(arrays["output"])
        inputs = [torch.from_numpy(arrays[name]) for name in ("first", "second") if name in arrays]
        if output.isnan().any() and not any(bool(x.isnan().any()) for x in inputs):
            return {"what was made": "nan"}
        if output.isinf().any() and all(bool(x.isfinite().all()) for x in inputs):
            return {"what was made": "inf"}
        return {"what was made": ""}

    class mistakes:
        def inputs_not_looked_at(inputs, output):
            """The inputs were not looked at, so every operation that only hands a bad number on is blamed."""
            return "nan" if np.isnan(output).any() else "inf" if np.isinf(output).any() else ""

        def only_nan(inputs, output):
            """inf was not looked for, and it is where most of them begin."""
            return "nan" if made_here(inputs, output) == "nan" else ""

        def only_positive(inputs, output):
            """-inf was overlooked, which is what log(0) gives."""
            found = made_here(inputs, output)
            return "" if found == "inf" and not np.isposinf(output).any() else found

        def finite_inputs_for_nan(inputs, output):
            """A nan made of an inf, as inf - inf makes it, was excused. Only a nan among the inputs excuses a nan."""
            if not all(np.isfinite(x).all() for x in inputs):
                return ""
            return made_here(inputs, output)

        def first_input_alone(inputs, output):
            """Only the first input was looked at, and an operation may have two."""
            return made_here(inputs[:1], output)

        def inf_before_nan(inputs, output):
            """Where both were made, inf was reported: nan is the one to report."""
            if np.isinf(output).any() and all(np.isfinite(x).all() for x in inputs):
                return "inf"
            return made_here(inputs, output)

        def nan_excuses_nothing_for_inf(inputs, output):
            """An inf was blamed on this operation though a nan had come in: only where all inputs are finite is it made
            here."""
            if np.isinf(output).any() and not any(np.isinf(x).any() for x in inputs):
                return made_here(inputs, output) or "inf"
            return made_here(inputs, output)

        def all_of_it(inputs, output):
            """It is only noticed where every number is bad: one is enough."""
            if np.isnan(output).all() or np.isinf(output).all():
                return made_here(inputs, output)
            return ""

    class alternatives:
        def by_counting(inputs, output):
            nans = sum(int(np.isnan(x).sum()) for x in inputs)
            infs = sum(int(np.isinf(x).sum()) for x in inputs)
            if np.count_nonzero(output != output) and not nans:
                return "nan"
            return "inf" if np.abs(output).max() == np.inf and nans + infs == 0 else ""

        def by_sets(inputs, output):
            def kinds(x):
                return {kind for kind, test in (("nan", np.isnan), ("inf", np.isinf)) if test(x).any()}

            before = set().union(*map(kinds, inputs)) if inputs else set()
            after = kinds(output)
            return "nan" if "nan" in after - before else "inf" if "inf" in after and not before else ""
