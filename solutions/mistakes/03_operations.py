"""Chapter 03: the right values, wrong answers, and other right ones. A mistake's docstring is what learners read."""

from __future__ import annotations

import warnings
from math import prod

import numpy as np

from gradwright.chapters.operations import (
    LogSoftmax,
    Maximum,
    Product,
    Sigmoid,
    Softmax,
    autodiff,
    cumsum_gradient,
    index_gradient,
    log_softmax,
    products_of_others,
    repeat_interleave_gradient,
    share_evenly,
    sigmoid,
    split_heads_gradient,
    sum_along,
    var_gradient,
)

AGAIN = "gradient, asked for a second time"


def leaf(array, torch):
    return torch.from_numpy(np.array(array, np.float64)).requires_grad_()


def seed(arrays, torch):
    return torch.from_numpy(np.array(arrays["grad"], np.float64))


class operations_sigmoid:
    def oracle(arrays, torch):
        x = leaf(arrays["x"], torch)
        out = torch.sigmoid(x)
        out.backward(seed(arrays, torch))
        return {"output": out, "arrays kept": 1, "gradient": x.grad}

    class mistakes:
        class slope_of_the_input(Sigmoid):
            """x * (1 - x) was computed from the input. In this formula s is the output: save that."""

            def forward(self, t):
                self.save(t)
                return sigmoid(t)

        class gradient_dropped(Sigmoid):
            """This is the slope alone. What arrives has to be multiplied by it."""

            def backward(self, grad):
                (s,) = self.saved
                return (1 - s) * s

        class slope_of_tanh(Sigmoid):
            """1 - s * s is the slope of tanh. That of the sigmoid is s * (1 - s)."""

            def backward(self, grad):
                (s,) = self.saved
                return grad * (1 - s * s)

        class half_of_the_slope(Sigmoid):
            """The factor s is missing from the slope s * (1 - s)."""

            def backward(self, grad):
                (s,) = self.saved
                return grad * (1 - s)

        class input_saved_too(Sigmoid):
            """The output was saved, and the input as well. Every saved tensor costs memory until backward: keep one."""

            def forward(self, t):
                out = sigmoid(t)
                self.save(t, out)
                return out

            def backward(self, grad):
                _, s = self.saved
                return grad * ((1 - s) * s)

        class sign_wrong(Sigmoid):
            """The sign is wrong: the sigmoid grows everywhere, so its slope is positive."""

            def backward(self, grad):
                return -super().backward(grad)

        class widened(Sigmoid):
            """The gradient is float64 whatever came in. A float32 tensor has a float32 gradient: mix in no float64
            array."""

            def backward(self, grad):
                (s,) = self.saved
                return grad * (np.ones(s.shape) - s) * s

    class alternatives:
        class multiplied_out(Sigmoid):
            def backward(self, grad):
                (s,) = self.saved
                return grad * (s - s * s)

        class complement_saved(Sigmoid):
            def forward(self, t):
                out = sigmoid(t)
                self.save(t.new(out.array * (1 - out.array)))
                return out

            def backward(self, grad):
                (slope,) = self.saved
                return grad * slope


class operations_maximum:
    def oracle(arrays, torch):
        shape = arrays["grad"].shape
        a, b = (leaf(np.broadcast_to(arrays[name], shape), torch) for name in "ab")
        torch.maximum(a, b).backward(seed(arrays, torch))
        return {"gradient of a": a.grad, "gradient of b": b.grad}

    class mistakes:
        class both_get_all(Maximum):
            """Where a and b are equal, both got the whole gradient. The two shares must add up to it: half each."""

            def backward(self, grad):
                a, b = self.saved
                return np.where(a < b, 0, grad), np.where(b < a, 0, grad)

        class first_gets_all(Maximum):
            """Where a and b are equal, a got everything and b nothing. Share it: half each."""

            def backward(self, grad):
                a, b = self.saved
                return np.where(a < b, 0, grad), np.where(b <= a, 0, grad)

        class nobody_gets_it(Maximum):
            """Where a and b are equal, neither got anything: the gradient was lost. Give each half."""

            def backward(self, grad):
                a, b = self.saved
                return np.where((a < b) | (a == b), 0, grad), np.where((b < a) | (a == b), 0, grad)

        class exchanged(Maximum):
            """The smaller one got the gradient. It does not take part in the result; the larger one does."""

            def backward(self, grad):
                return super().backward(grad)[::-1]

        class nan_lost(Maximum):
            """Where a or b is nan, nothing came back. A comparison with nan is always False: ask who is *smaller*."""

            def backward(self, grad):
                a, b = self.saved
                half = grad / 2
                return (
                    np.where(a == b, half, np.where(a > b, grad, 0)),
                    np.where(a == b, half, np.where(b > a, grad, 0)),
                )

        class rest_for_the_second(Maximum):
            """b got what a had left over. Where one of them is nan both get all of grad: ask for each input by itself
            whether it is smaller."""

            def backward(self, grad):
                a, b = self.saved
                to_a = np.where(a == b, grad / 2, np.where(a > b, grad, 0))
                return to_a, grad - to_a

        class half_everywhere(Maximum):
            """Both got half of the gradient everywhere. Half is for equal ones alone; else the larger gets all."""

            def backward(self, grad):
                return grad / 2, grad / 2

        class widened(Maximum):
            """The gradient is float64 whatever came in. A mask times 0.5 is a float64 array: choose with np.where."""

            def backward(self, grad):
                a, b = self.saved
                tie = 0.5 * (a == b)
                return grad * (1.0 - (a < b) - tie), grad * (1.0 - (b < a) - tie)

    class alternatives:
        class shares(Maximum):
            def backward(self, grad):
                a, b = self.saved
                share_of_a = np.where(a == b, 0.5, np.where(a < b, 0, 1)).astype(grad.dtype)
                share_of_b = np.where(a == b, 0.5, np.where(b < a, 0, 1)).astype(grad.dtype)
                return grad * share_of_a, grad * share_of_b

        class written_in_place(Maximum):
            def backward(self, grad):
                a, b = np.broadcast_arrays(*self.saved)
                to_a, to_b = grad.copy(), grad.copy()
                to_a[a < b] = 0
                to_b[b < a] = 0
                to_a[a == b] /= 2
                to_b[a == b] /= 2
                return to_a, to_b


def count_of(x, dims):
    return prod([x.shape[d] for d in dims])


class operations_var:
    def oracle(arrays, torch):
        x, dims = leaf(arrays["x"], torch), tuple(arrays["dims"].tolist())
        if not dims:  # torch would take all axes: each element is its own mean
            return {"gradient": torch.zeros_like(x)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # too few elements, in the cases that are about it
            out = x.var(dims, correction=float(arrays["correction"]), keepdim=True)
        out.backward(seed(arrays, torch))
        return {"gradient": x.grad}

    class mistakes:
        def correction_ignored(grad, x, dims, correction):
            """It was divided by the number of elements, whatever the correction. Divide by count - correction."""
            return var_gradient(grad, x, dims, 0)

        def correction_always_one(grad, x, dims, correction):
            """It was divided by count - 1 always. The correction is an argument, and 0 is a common one."""
            return var_gradient(grad, x, dims, 1)

        def all_elements_counted(grad, x, dims, correction):
            """The count is that of all elements. Only those along `dims` went into one variance."""
            count = count_of(x, dims)
            return var_gradient(grad, x, dims, correction) * ((count - correction) / (x.size - correction or 1))

        def axes_not_kept(grad, x, dims, correction):
            """The means have lost the axes `dims`, so they stand beside wrong elements, or beside none: `keepdims`."""
            count = count_of(x, dims)
            if count <= correction:
                return var_gradient(grad, x, dims, correction)
            return (grad * (2 / (count - correction)) * (x - x.mean(dims))).astype(x.dtype)

        def one_mean_for_all(grad, x, dims, correction):
            """One mean was taken over all elements. Each row has a mean of its own: along `dims`, with the axes
            kept."""
            count = count_of(x, dims)
            if count <= correction:
                return var_gradient(grad, x, dims, correction)
            mean = x.mean() if x.size else 0
            return (grad * (2 / (count - correction)) * (x - mean)).astype(x.dtype)

        def two_forgotten(grad, x, dims, correction):
            """The 2 that comes down from the square is missing."""
            return var_gradient(grad, x, dims, correction) / 2

        def not_centred(grad, x, dims, correction):
            """The gradient is 2 * x / (count - correction), as if the mean were 0. Take the distance from the mean."""
            count = count_of(x, dims)
            if count <= correction:
                return var_gradient(grad, x, dims, correction)
            return grad * (2 / (count - correction)) * x

        def mean_path_added(grad, x, dims, correction):
            """The way through the mean was counted with 1 / count per element. Along it the distances from the mean add
            up to 0, so it brings nothing."""
            return var_gradient(grad, x, dims, correction) * (1 - 1 / max(count_of(x, dims), 1))

        def no_special_case(grad, x, dims, correction):
            """Where count equals the correction there is no variance, and this gave 0. Let the factor be infinite: an
            answer that looks like one would hide it."""
            if count_of(x, dims) <= correction:
                return np.zeros_like(x)
            return var_gradient(grad, x, dims, correction)

    class alternatives:
        def both_paths(grad, x, dims, correction):
            """Through x - mean to x, and through it to the mean and from there to x."""
            count = count_of(x, dims)
            if count <= correction:
                return var_gradient(grad, x, dims, correction)
            centred = x - x.sum(dims, keepdims=True) / count
            to_centred = grad * 2 * centred / (count - correction)
            return to_centred - to_centred.sum(dims, keepdims=True) / count


class operations_ties:
    def oracle(arrays, torch):
        x, dims = leaf(arrays["x"], torch), tuple(arrays["dims"].tolist())
        largest = np.maximum.reduce(arrays["x"], dims, keepdims=True)
        is_largest = np.array_equal(largest, arrays["extreme"], equal_nan=True)
        (x.amax if is_largest else x.amin)(dims, keepdim=True).backward(seed(arrays, torch))
        return {"gradient": x.grad}

    class mistakes:
        def everybody_gets_all(grad, x, extreme, dims):
            """Each of the equal elements got the whole gradient, so together they got it several times. Divide it by
            how many there are."""
            return np.where(np.isnan(extreme), np.nan, (x == extreme) * grad).astype(grad.dtype)

        def first_gets_all(grad, x, extreme, dims):
            """The first of the equal elements got everything. That is right for max(dim), which says where it is; here
            all of them share."""
            found, out = np.zeros(1, int), np.zeros_like(x)
            for place in np.ndindex(x.shape):
                group = tuple(0 if axis in dims else i for axis, i in enumerate(place))
                ahead = [p for p in np.ndindex(x.shape) if p < place and x[p] == extreme[group]]
                same = [p for p in ahead if all(p[d] == place[d] for d in range(x.ndim) if d not in dims)]
                if x[place] == extreme[group] and not same:
                    out[place] = grad[group]
                found += 1
            return np.where(np.isnan(extreme), np.nan, out).astype(grad.dtype)

        def counted_everywhere(grad, x, extreme, dims):
            """The equal elements were counted over the whole array. Count them along `dims`, for each extreme by
            itself."""
            ties = x == extreme
            return (np.where(np.isnan(extreme), np.nan, ties * grad) / ties.sum()).astype(grad.dtype)

        def divided_by_all(grad, x, extreme, dims):
            """The gradient was divided by the number of all elements, as for a mean. Divide by the number of equal
            ones."""
            share = (x == extreme) * grad / count_of(x, dims)
            return np.where(np.isnan(extreme), np.nan, share).astype(grad.dtype)

        def spread_over_all(grad, x, extreme, dims):
            """Every element got a share. Those that are not the extreme did not take part: they get 0."""
            return np.broadcast_to(grad / count_of(x, dims), x.shape).astype(grad.dtype)

        def widened(grad, x, extreme, dims):
            """The gradient is float64 whatever came in: float32 divided by an array of whole numbers is float64 in
            NumPy. Count in grad's dtype."""
            ties = x == extreme
            return ties * (grad / ties.sum(dims, keepdims=True))

        def nan_is_nothing(grad, x, extreme, dims):
            """Where the extreme is nan, the gradient is 0 here. 0 divided by 0 elements is nan, and it is best to see
            it."""
            return np.where(np.isnan(extreme), 0, share_evenly(grad, x, extreme, dims)).astype(grad.dtype)

    class alternatives:
        def group_by_group(grad, x, extreme, dims):
            out = np.zeros(x.shape, grad.dtype)
            for group in np.ndindex(grad.shape):
                part = tuple(slice(None) if axis in dims else i for axis, i in enumerate(group))
                ties = x[part] == extreme[group]
                out[part] = np.where(ties, grad[group] / ties.sum(), 0) if ties.any() else np.nan
            return out

        def divided_mask(grad, x, extreme, dims):
            mask = (x == extreme).astype(grad.dtype)
            return mask / mask.sum(dims, keepdims=True) * grad


def divided(x):
    with np.errstate(all="ignore"):
        return x.prod(-1, keepdims=True) / x


class operations_prod:
    def oracle(arrays, torch):
        x = leaf(arrays["x"], torch)
        if x.numel():
            x.prod(-1).sum().backward()
        return {"products": torch.zeros_like(x) if x.grad is None else x.grad}

    class mistakes:
        def divided_by_itself(x):
            """The whole product was divided by each element, which is nan where one is 0. Multiply the others
            instead."""
            return divided(x)

        def zero_where_zero(x):
            """The product of the others was divided out, with 0 in place of a division by 0. A single zero's others
            have a product too, and it need not be 0."""
            return np.where(x == 0, 0, np.nan_to_num(divided(x)))

        def zeros_left_out(x):
            """Zeros were passed over as if they were 1. For every element but itself, a zero makes the product 0."""
            with np.errstate(all="ignore"):
                filled = np.where(x == 0, 1, x)
                return filled.prod(-1, keepdims=True) / filled

        def from_the_left_only(x):
            """Only the elements in front were multiplied. Those behind belong to the others too."""
            return np.concatenate([np.ones_like(x[..., :1]), np.cumprod(x[..., :-1], -1)], -1)

        def from_the_right_only(x):
            """Only the elements behind were multiplied. Those in front belong to the others too."""
            return operations_prod.mistakes.from_the_left_only(x[..., ::-1])[..., ::-1]

        def itself_included(x):
            """Each element's own value is in its product. Shift the running products by one place."""
            return np.broadcast_to(x.prod(-1, keepdims=True), x.shape).copy()

        def over_everything(x):
            """The products went over all axes. Each row along the last axis is by itself."""
            return products_of_others(x.reshape(-1)).reshape(x.shape)

    class alternatives:
        def one_left_out(x):
            out = np.ones_like(x)
            for i in range(x.shape[-1]):
                out[..., i] = np.delete(x, i, -1).prod(-1)
            return out

        def running_products(x):
            out, running = np.ones_like(x), np.ones_like(x[..., 0]) if x.shape[-1] else 1
            for i in range(x.shape[-1]):
                out[..., i] *= running
                running = running * x[..., i]
            running = np.ones_like(running)
            for i in range(x.shape[-1] - 1, -1, -1):
                out[..., i] *= running
                running = running * x[..., i]
            return out


class operations_cumsum:
    def oracle(arrays, torch):
        x = torch.zeros(arrays["grad"].shape, dtype=torch.float64, requires_grad=True)
        x.cumsum(int(arrays["dim"])).backward(seed(arrays, torch))
        return {"gradient": x.grad}

    class mistakes:
        def same_direction(grad, dim):
            """The gradients were summed from the front. Element i is in the sums i and *later*: sum from the end."""
            return np.cumsum(grad, dim)

        def not_turned_back(grad, dim):
            """The sums were taken from the end, and left in that order: turn the result round again."""
            return np.cumsum(np.flip(grad, dim), dim)

        def turned_along_the_first_axis(grad, dim):
            """The gradient was turned round along the first axis (`[::-1]`), and should be turned along `dim`."""
            return np.cumsum(grad[::-1], dim)[::-1]

        def own_sum_left_out(grad, dim):
            """An element is in its own running sum as well: its own gradient is missing."""
            return cumsum_gradient(grad, dim) - grad

        def last_axis_always(grad, dim):
            """The sums went along the last axis, and should go along `dim`."""
            return cumsum_gradient(grad, grad.ndim - 1)

        def all_axes(grad, dim):
            """The sums went through all elements in reading order. Only those along `dim` are in one running sum."""
            return cumsum_gradient(grad.reshape(-1), 0).reshape(grad.shape)

        def the_sum_of_all(grad, dim):
            """Every element got the sum of all gradients. The running sums before an element do not contain it."""
            return np.broadcast_to(grad.sum(dim, keepdims=True), grad.shape).copy()

        def passed_through(grad, dim):
            """The gradient was passed on as it came. An element is in several sums, and gets the gradient of each."""
            return grad.copy()

    class alternatives:
        def rest_of_the_total(grad, dim):
            return grad.sum(dim, keepdims=True) - np.cumsum(grad, dim) + grad

        def matrix(grad, dim):
            upper = np.triu(np.ones((grad.shape[dim],) * 2, grad.dtype))
            return np.moveaxis(np.moveaxis(grad, dim, -1) @ upper.T, -1, dim)

        def by_loop(grad, dim):
            out = np.moveaxis(grad.copy(), dim, 0)
            for i in range(len(out) - 2, -1, -1):
                out[i] += out[i + 1]
            return np.moveaxis(out, 0, dim)


def lent(operation, grad):
    """grad, a and b with an axis of size 1 for each vector; the axes that are to be taken away again."""
    (a, b), (left, right) = operation.saved, operation.shapes
    if len(right) == 1:
        grad, b = grad[..., None], None if b is None else b[:, None]
    if len(left) == 1:
        grad, a = grad[..., None, :], None if a is None else a[None, :]
    return grad, a, b


def returned(operation, to_a, to_b):
    left, right = operation.shapes
    if to_a is not None and len(left) == 1:
        to_a = to_a[..., 0, :]
    return to_a, to_b[..., 0] if to_b is not None and len(right) == 1 else to_b


class operations_matmul:
    def oracle(arrays, torch):
        leaves = {name: leaf(arrays[name], torch) for name in "ab" if arrays[f"{name} is wanted"]}
        a, b = (leaves.get(name, torch.from_numpy(np.array(arrays[name], np.float64))) for name in "ab")
        (a @ b).backward(seed(arrays, torch))
        return {f"gradient of {name}": x.grad for name, x in leaves.items()}

    class mistakes:
        class not_transposed(Product):
            """b was not transposed for the gradient of a, nor a for that of b. Rows of grad meet *columns* of b."""

            def backward(self, grad):
                grad, a, b = lent(self, grad)
                return returned(self, None if b is None else grad @ b, None if a is None else a @ grad)

        class factors_exchanged(Product):
            """The factors stand in the wrong order: the gradient of b is the transposed a, times grad."""

            def backward(self, grad):
                grad, a, b = lent(self, grad)
                to_a = None if b is None else b.mT @ grad
                return returned(self, to_a, None if a is None else grad @ a.mT)

        class all_axes_reversed(Product):
            """`.T` reverses all axes of a stack. Exchange the last two alone, with `.mT`."""

            def backward(self, grad):
                grad, a, b = lent(self, grad)
                return returned(self, None if b is None else grad @ b.T, None if a is None else a.T @ grad)

        class vectors_forgotten(Product):
            """Vectors were treated like matrices. Lend them an axis of size 1, on the side that product() uses, and
            take it away at the end."""

            def backward(self, grad):
                a, b = self.saved
                return None if b is None else grad @ b.mT, None if a is None else a.mT @ grad

        class not_wanted_computed(Product):
            """A gradient that nobody wants was computed, from an array that was not saved. Look whether it is None."""

            def backward(self, grad):
                grad, a, b = lent(self, grad)
                return returned(self, grad @ b.mT, a.mT @ grad)

        class stack_averaged(Product):
            """The gradient of one matrix, or vector, that met a whole stack was averaged. Each meeting adds its part:
            sum."""

            def backward(self, grad):
                found = super().backward(grad)
                (left, right), lead = self.shapes, grad.ndim - 2
                parts = [prod(grad.shape[:lead]) if len(s) <= 2 < grad.ndim else 1 for s in (left, right)]
                return tuple(None if g is None else g / n for g, n in zip(found, parts, strict=True))

        class first_of_the_stack(Product):
            """The gradient of one matrix that met a stack came from the first of the stack alone. Sum over all of
            them."""

            def backward(self, grad):
                (a, b), (left, right) = self.saved, self.shapes
                to_a, to_b = super().backward(grad)
                if len(right) == 2 < len(left) and a is not None:
                    first = (0,) * (len(left) - 2)
                    to_b = a[first].mT @ grad[first]
                if len(left) == 2 < len(right) and b is not None:
                    first = (0,) * (len(right) - 2)
                    to_a = grad[first] @ b[first].mT
                return to_a, to_b

    class alternatives:
        class stack_by_stack(Product):
            def backward(self, grad):
                return returned(self, *autodiff.matmul_gradients(*lent(self, grad)))

        class summed_at_once(Product):
            def backward(self, grad):
                grad, a, b = lent(self, grad)
                to_a = None if b is None else np.einsum("...nm,...km->...nk", grad, b)
                to_b = None if a is None else np.einsum("...nk,...nm->...km", a, grad)
                return returned(self, to_a, to_b)


class operations_heads:
    def oracle(arrays, torch):
        batch, heads, length, width = arrays["grad"].shape
        x = torch.zeros(batch, length, heads * width, dtype=torch.float64, requires_grad=True)
        x.reshape(batch, length, heads, width).permute(0, 2, 1, 3).backward(seed(arrays, torch))
        return {"gradient": x.grad}

    class mistakes:
        def storage_read(grad):
            """The gradient was reshaped as it lies in memory, which is (B, H, T, D). Exchange H and T first: a reshape
            never moves an axis."""
            batch, heads, length, width = grad.shape
            return grad.reshape(batch, length, heads * width)

        def heads_innermost(grad):
            """H and D are merged in the wrong order: the numbers of one head lie side by side, so D runs fastest."""
            batch, heads, length, width = grad.shape
            return grad.transpose(0, 2, 3, 1).reshape(batch, length, heads * width)

        def batch_moved(grad):
            """The batch axis was moved too. Only H and T were exchanged on the way forward."""
            batch, heads, length, width = grad.shape
            return grad.transpose(2, 0, 1, 3).reshape(batch, length, heads * width)

        def reversed_axes(grad):
            """All axes were reversed. To undo an exchange of two axes, exchange them again."""
            batch, heads, length, width = grad.shape
            return grad.T.reshape(batch, length, heads * width)

        def heads_backwards(grad):
            """The heads come back in reverse order: nothing on the way forward turned them round."""
            return split_heads_gradient(grad[:, ::-1])

    class alternatives:
        def side_by_side(grad):
            return np.concatenate(list(np.moveaxis(grad, 1, 0)), -1) if grad.size else split_heads_gradient(grad)

        def head_by_head(grad):
            batch, heads, length, width = grad.shape
            out = np.empty((batch, length, heads * width), grad.dtype)
            for h in range(heads):
                out[..., h * width : (h + 1) * width] = grad[:, h]
            return out

        def einsum(grad):
            batch, heads, length, width = grad.shape
            return np.einsum("bhtd->bthd", grad).reshape(batch, length, heads * width)


class operations_repeat_interleave:
    def oracle(arrays, torch):
        repeats, dim = int(arrays["repeats"]), int(arrays["dim"])
        shape = [n // repeats if axis == dim else n for axis, n in enumerate(arrays["grad"].shape)]
        x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        x.repeat_interleave(repeats, dim).backward(seed(arrays, torch))
        return {"gradient": x.grad}

    class mistakes:
        def as_repeat(grad, repeats, dim):
            """Gradients that lie a whole tensor apart were added: that undoes `repeat`. Here the copies are
            neighbours."""
            shape = (*grad.shape[:dim], repeats, grad.shape[dim] // repeats, *grad.shape[dim + 1 :])
            return grad.reshape(shape).sum(dim)

        def averaged(grad, repeats, dim):
            """The gradients of the copies were averaged. An element that was read several times gets their sum."""
            return repeat_interleave_gradient(grad, repeats, dim) / repeats

        def first_copy_only(grad, repeats, dim):
            """Only the first copy's gradient was taken; the others are missing."""
            return np.take(grad, range(0, grad.shape[dim], repeats), dim)

        def last_axis_always(grad, repeats, dim):
            """The copies were looked for along the last axis, and they lie along `dim`."""
            shape = [n // repeats if axis == dim else n for axis, n in enumerate(grad.shape)]
            flat = grad.reshape(-1, repeats).sum(-1) if grad.size else grad
            return flat.reshape(shape)

        def first_elements(grad, repeats, dim):
            """The gradient was cut to the right length. All of it belongs to somebody: add up what belongs together."""
            return np.take(grad, range(grad.shape[dim] // repeats), dim)

        def largest_copy(grad, repeats, dim):
            """The largest gradient among the copies was taken. Add them up."""
            shape = (*grad.shape[:dim], grad.shape[dim] // repeats, repeats, *grad.shape[dim + 1 :])
            return grad.reshape(shape).max(dim + 1)

    class alternatives:
        def copy_by_copy(grad, repeats, dim):
            return sum(np.take(grad, range(i, grad.shape[dim], repeats), dim) for i in range(repeats))

        def added_at(grad, repeats, dim):
            shape = [n // repeats if axis == dim else n for axis, n in enumerate(grad.shape)]
            whole = np.zeros(shape, grad.dtype)
            owners = np.repeat(np.arange(shape[dim]), repeats)
            np.add.at(np.moveaxis(whole, dim, 0), owners, np.moveaxis(grad, dim, 0))
            return whole


def times_taken(shape, key):
    """How often each element was taken, at least 1."""
    count = np.zeros(shape)
    np.add.at(count, key, 1)
    return np.maximum(count, 1)


def torch_key(arrays, torch):
    """The key of a case: axes without an array of their own are taken whole, a mask covers as many as it has."""
    key, axis = [], 0
    while axis < len(arrays["shape"]):
        places = arrays.get(f"key for axis {axis}")
        key.append(slice(None) if places is None else torch.from_numpy(places))
        axis += places.ndim if places is not None and places.dtype == bool else 1
    return tuple(key)


class operations_index:
    def oracle(arrays, torch):
        x = torch.zeros(tuple(arrays["shape"].tolist()), dtype=torch.float64, requires_grad=True)
        x[torch_key(arrays, torch)].backward(seed(arrays, torch))
        return {"gradient": x.grad}

    class mistakes:
        def overwritten(grad, shape, key):
            """Where a place was named twice, the last gradient took the place of the others: whole[key] = grad writes
            each place once, and so does +=. Add them up."""
            whole = np.zeros(shape, grad.dtype)
            whole[key] = grad
            return whole

        def first_only(grad, shape, key):
            """Where a place was named twice, only the first gradient was kept. Add them up."""
            places = np.arange(prod(shape)).reshape(shape)[key].ravel()
            whole = np.zeros(prod(shape), grad.dtype)
            whole[places[::-1]] = grad.ravel()[::-1]
            return whole.reshape(shape)

        def averaged(grad, shape, key):
            """The gradients of a place that was named several times were averaged. Each copy counts in full: sum."""
            return (index_gradient(grad, shape, key) / times_taken(shape, key)).astype(grad.dtype)

        def counted(grad, shape, key):
            """This says how often each place was named. What arrives has to be added there: give the counting its
            weights."""
            whole = np.zeros(shape, grad.dtype)
            np.add.at(whole, key, 1)
            return whole

        def multiplied_by_count(grad, shape, key):
            """The last gradient was taken as often as its place was named. The copies' gradients differ: sum them."""
            return (operations_index.mistakes.overwritten(grad, shape, key) * times_taken(shape, key)).astype(
                grad.dtype
            )

        def in_order_of_arrival(grad, shape, key):
            """The gradients were laid down one after the other from the front. Each belongs to the place its index
            names."""
            whole = np.zeros(prod(shape), grad.dtype)
            taken = grad.ravel()[: whole.size]
            whole[: taken.size] = taken
            return whole.reshape(shape)

        def widened(grad, shape, key):
            """The gradient is float64 whatever came in: say which dtype zeros or a count should have."""
            return index_gradient(grad.astype(np.float64), shape, key)

    class alternatives:
        def added_at(grad, shape, key):
            whole = np.zeros(shape, grad.dtype)
            np.add.at(whole, key, grad)
            return whole

        def one_by_one(grad, shape, key):
            places = np.arange(prod(shape)).reshape(shape)[key]
            whole = np.zeros(prod(shape), grad.dtype)
            for place, g in zip(places.ravel(), grad.ravel(), strict=True):
                whole[place] += g
            return whole.reshape(shape)


def oracle_along(name):
    def oracle(arrays, torch):
        x = leaf(arrays["x"], torch)
        getattr(x, name)(int(arrays["dim"])).backward(seed(arrays, torch))
        return {"gradient": x.grad, AGAIN: x.grad}

    return oracle


class operations_softmax:
    oracle = oracle_along("softmax")

    class mistakes:
        class diagonal_alone(Softmax):
            """Only the diagonal p * (1 - p) was used, as if each output depended on its own input. Through the sum
            below the fraction it depends on all."""

            def backward(self, grad):
                (p,) = self.saved
                return grad * p * (1 - p)

        class no_coupling(Softmax):
            """The coupling term is missing: subtract the weighted sum of grad before you multiply by p."""

            def backward(self, grad):
                (p,) = self.saved
                return grad * p

        class sum_not_weighted(Softmax):
            """The sum of grad was subtracted. Each term of it is weighted with its p."""

            def backward(self, grad):
                (p,) = self.saved
                return (grad - grad.sum(self.dims, keepdims=True)) * p

        class mean_subtracted(Softmax):
            """The mean of grad was subtracted. It is the sum of grad * p, whose weights p already add up to 1."""

            def backward(self, grad):
                (p,) = self.saved
                count = max(count_of(p, self.dims), 1)
                return (grad - grad.sum(self.dims, keepdims=True) / grad.dtype.type(count)) * p

        class of_log_softmax(Softmax):
            """This is the gradient of log_softmax, grad - p * sum(grad)."""

            def backward(self, grad):
                (p,) = self.saved
                return grad - p * grad.sum(self.dims, keepdims=True)

        class over_everything(Softmax):
            """The weighted sum went over all elements. Each row along the axis has a softmax of its own."""

            def backward(self, grad):
                (p,) = self.saved
                return (grad - (grad * p).sum()) * p

        class last_axis_always(Softmax):
            """The weighted sum went along the last axis. Take the axis in self.dims."""

            def backward(self, grad):
                (p,) = self.saved
                return (grad - (grad * p).sum(-1, keepdims=True)) * p if p.ndim else grad * 0

        class list_not_unpacked(Softmax):
            """`self.saved` is a list, even where a single array was saved, and NumPy makes one more axis of it: take
            the array out of the list."""

            def backward(self, grad):
                p = self.saved
                return p * (grad - (p * grad).sum(self.dims, keepdims=True))

        class saved_array_changed(Softmax):
            """The saved output was overwritten, so it is wrong when it is needed again. Leave saved arrays and grad as
            they are."""

            def backward(self, grad):
                (p,) = self.saved
                out = super().backward(grad)
                p *= grad
                return out

    class alternatives:
        class written_out(Softmax):
            def backward(self, grad):
                (p,) = self.saved
                weighted = grad * p
                return weighted - p * weighted.sum(self.dims, keepdims=True)

        class whole_jacobian(Softmax):
            """diag(p) - p p^T for each row, and a product with it."""

            def backward(self, grad):
                (p,) = self.saved
                if not p.ndim:
                    return np.zeros_like(grad)
                p, g = (np.moveaxis(x, self.dims[0], -1) for x in (p, grad))
                jacobian = np.eye(p.shape[-1], dtype=p.dtype) * p[..., None] - p[..., None] * p[..., None, :]
                return np.moveaxis((jacobian @ g[..., None])[..., 0], -1, self.dims[0])


class operations_log_softmax:
    oracle = oracle_along("log_softmax")

    class mistakes:
        class sum_of_grad_forgotten(LogSoftmax):
            """grad - p is right for one special case, a grad that adds up to 1. In general p is multiplied by its
            sum."""

            def backward(self, grad):
                (log_p,) = self.saved
                return grad - np.exp(log_p)

        class own_gradient_alone(LogSoftmax):
            """p was multiplied by each element's own gradient. Every output depends on the sum: take grad's sum along
            the axis."""

            def backward(self, grad):
                (log_p,) = self.saved
                return grad - np.exp(log_p) * grad

        class exp_forgotten(LogSoftmax):
            """The logarithm was used in place of p. What was saved is log p: take its exp."""

            def backward(self, grad):
                (log_p,) = self.saved
                return grad - log_p * sum_along(grad, self.dims)

        class for_one_target(LogSoftmax):
            """That is the gradient for a loss that reads one output of each row, p minus one-hot. Any gradient may
            arrive: the sum of its row stands where you have 1."""

            def backward(self, grad):
                (log_p,) = self.saved
                return np.exp(log_p) - (grad != 0)

        class list_not_unpacked(LogSoftmax):
            """`self.saved` is a list, even where a single array was saved, and NumPy makes one more axis of it: take
            the array out of the list."""

            def backward(self, grad):
                return grad - np.exp(self.saved) * grad.sum(self.dims, keepdims=True)

        class of_softmax(LogSoftmax):
            """This is the gradient of softmax. The logarithm takes the factor p away from the front, and the weights
            from the sum."""

            def backward(self, grad):
                p = np.exp(self.saved[0])
                return (grad - (grad * p).sum(self.dims, keepdims=True)) * p

        class passed_through(LogSoftmax):
            """The gradient was passed on as it came. The sum that is subtracted depends on every input."""

            def backward(self, grad):
                return grad.copy()

        class over_everything(LogSoftmax):
            """grad was summed over all elements. Each row along the axis is by itself."""

            def backward(self, grad):
                (log_p,) = self.saved
                return grad - np.exp(log_p) * grad.sum()

        class last_axis_always(LogSoftmax):
            """grad was summed along the last axis. Take the axis in self.dims."""

            def backward(self, grad):
                (log_p,) = self.saved
                return grad - np.exp(log_p) * (grad.sum(-1, keepdims=True) if grad.ndim else grad)

        class mean_in_place_of_sum(LogSoftmax):
            """The mean of grad was used, and it is the sum."""

            def backward(self, grad):
                (log_p,) = self.saved
                count = grad.dtype.type(max(count_of(grad, self.dims), 1))
                return grad - np.exp(log_p) * (sum_along(grad, self.dims) / count)

    class alternatives:
        class keepdims(LogSoftmax):
            def backward(self, grad):
                (log_p,) = self.saved
                return grad - np.exp(log_p) * grad.sum(self.dims, keepdims=True)

        class softmax_saved(LogSoftmax):
            """It keeps p itself."""

            def forward(self, t, dim):
                out = log_softmax(t, dim)
                super().forward(t, dim)
                self.save(t.new(np.exp(out.array)))
                return out

            def backward(self, grad):
                (p,) = self.saved
                return grad - p * grad.sum(self.dims, keepdims=True)
