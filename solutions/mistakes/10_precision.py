"""Chapter 10: the right values, wrong answers, and other right ones. A mistake's docstring is what learners read."""

from __future__ import annotations

import math

import numpy as np

from gradwright.chapters.precision import (
    Scaler,
    clip_grad_norm_,
    gradients_of,
    in_float32,
    input_dtypes,
    master_step,
    next_scale,
    saved_bytes,
    scaled_step,
    to_bfloat16,
    to_float16,
    unscale,
)

F16, F32 = np.float16, np.float32


def rounded_oracle(arrays, wanted):
    signs = np.signbit(wanted) & ~np.isnan(wanted)
    return {"rounded": wanted.astype(np.float64), "dtype": np.array("float32"), "negative, 0 too": signs}


def by_spacing(x, low=-24, digits=11, whole=np.rint, largest=65504.0):
    """to_float16, with a part of it done otherwise."""
    _, exponent = np.frexp(x)
    spacing = np.ldexp(1.0, np.maximum(exponent - digits, low))
    rounded = whole(x / spacing) * spacing
    return np.where(np.abs(rounded) > largest, np.copysign(np.inf, x), rounded).astype(F32)


class precision_float16:
    def oracle(arrays, torch):
        return rounded_oracle(arrays, torch.from_numpy(np.array(arrays["x"])).half().float().numpy())

    class mistakes:
        def cut_off(x):
            """The digits that do not fit were cut off. Round to the nearest number instead."""
            return by_spacing(x, whole=np.trunc)

        def ties_upwards(x):
            """Of two numbers equally near, the larger was taken. The even one is right: np.rint does that."""
            return by_spacing(x, whole=lambda y: np.floor(y + 0.5))

        def spacing_of_the_fraction(x):
            """One digit was lost: frexp's fraction lies between 1/2 and 1, so its exponent is larger by one than that
            of the text."""
            return by_spacing(x, digits=10, low=-23)

        def subnormals_too_fine(x):
            """Tiny numbers kept all their digits. Below 2**-14 the spacing stays 2**-24."""
            return by_spacing(x, low=-200)

        def subnormals_flushed(x):
            """Numbers below 2**-14 became 0. float16 has subnormal numbers there, 2**-24 apart."""
            return np.where(np.abs(x) < 2**-14, np.copysign(F32(0), x), by_spacing(x))

        def held_at_the_largest(x):
            """What is too large became 65504. It becomes infinite."""
            return np.where(np.isinf(x), x, np.clip(by_spacing(x), -65504, 65504)).astype(F32)

        def inf_before_rounding(x):
            """Numbers between 65504 and 65520 became infinite. They are rounded first, and end at 65504."""
            return np.where(np.abs(x) > 65504, np.copysign(np.inf, x), by_spacing(x)).astype(F32)

        def never_inf(x):
            """Numbers beyond 65504 were only rounded: float16 has no such number, so they become infinite."""
            return by_spacing(x, largest=np.inf)

        def always_plus_inf(x):
            """Negative numbers became plus infinity: inf keeps the sign."""
            out = by_spacing(x)
            return np.where(np.isinf(out) & np.isfinite(x), F32(np.inf), out)

        def wide_result(x):
            """The result is float64. The numbers are right: return them as float32."""
            return by_spacing(x).astype(np.float64)

    class alternatives:
        def by_logarithm(x):
            size = np.abs(np.where(np.isfinite(x), x, 1)).astype(np.float64)
            e = np.floor(np.log2(np.where(size == 0, 1, size)))
            e = np.where(2.0**e > size, e - 1, e)
            step = 2.0 ** np.maximum(np.where(size >= 2.0 ** (e + 1), e + 1, e) - 10, -24)
            out = np.round(size / step) * step
            out = np.where(out >= 65520, np.inf, out)
            return np.where(np.isfinite(x), np.copysign(out, x), x).astype(F32)

        def by_adding(x):
            """Adding and taking away a large number rounds to its spacing."""
            wide = x.astype(np.float64)
            _, e = np.frexp(wide)
            large = np.ldexp(1.5, np.maximum(e - 11, -24) + 52)
            out = (wide + large) - large
            out = np.where(np.abs(out) > 65504, np.inf, np.abs(out))
            return np.copysign(np.where(np.isnan(x) | np.isinf(x), np.abs(wide), out), x).astype(F32)


def from_bits(x, add, nan=True):
    """to_bfloat16 with something else added to the bits."""
    bits = x.view(np.uint32)
    out = ((bits + add(bits).astype(np.uint32)) & np.uint32(0xFFFF0000)).view(F32)
    return np.where(np.isnan(x), x, out) if nan else out


def odd(bits):
    return bits >> 16 & 1


class precision_bfloat16:
    def oracle(arrays, torch):
        return rounded_oracle(arrays, torch.from_numpy(np.array(arrays["x"])).bfloat16().float().numpy())

    class mistakes:
        def cut_off(x):
            """The lower bits were cut off. Add just under half a step first, so that it becomes rounding."""
            return from_bits(x, lambda bits: bits * 0)

        def ties_upwards(x):
            """Of two numbers equally near, the larger was taken: half a step was added. The even one is right."""
            return from_bits(x, lambda bits: bits * 0 + 0x8000)

        def ties_downwards(x):
            """Of two numbers equally near, the smaller was taken: the bit that makes it nearest even was not added."""
            return from_bits(x, lambda bits: bits * 0 + 0x7FFF)

        def ties_to_odd(x):
            """Of two numbers equally near, the odd one was taken: one more is added where the last bit that stays is
            1, not where it is 0."""
            return from_bits(x, lambda bits: 0x8000 - odd(bits))

        def nan_rounded(x):
            """A nan became something else: its bits ran over in the addition. Leave nans as they are."""
            return from_bits(x, lambda bits: 0x7FFF + odd(bits), nan=False)

        def lower_bits_left(x):
            """The lower 16 bits are still there: set them to 0 after the addition."""
            bits = x.view(np.uint32)
            return np.where(np.isnan(x), x, (bits + 0x7FFF + odd(bits)).view(F32))

        def float16_instead(x):
            """That is float16: bfloat16 has 8 bits for the exponent, and 7 for the fraction."""
            return to_float16(x)

        def one_bit_more(x):
            """One bit of the fraction too many was kept: 7 stay, and 16 go."""
            bits = x.view(np.uint32)
            out = ((bits + 0x3FFF + (bits >> 15 & 1)) & np.uint32(0xFFFF8000)).view(F32)
            return np.where(np.isnan(x), x, out)

        def held_at_the_largest(x):
            """What is too large became the largest finite number. It becomes infinite."""
            out = to_bfloat16(x)
            most = np.array(0x7F7F0000, np.uint32).view(F32)
            return np.where(np.isinf(out) & np.isfinite(x), np.copysign(most, x), out)

    class alternatives:
        def upper_halves(x):
            bits = np.ascontiguousarray(x).reshape(x.shape).view(np.uint32).astype(np.uint64)
            upper, rest = bits >> 16, bits & 0xFFFF
            up = (rest > 0x8000) | ((rest == 0x8000) & (upper % 2 == 1))
            out = ((upper + up) << 16).astype(np.uint32).view(F32)
            out = np.array(out)
            out[np.isnan(x)] = np.nan
            return out

        def by_spacing(x):
            wide = x.astype(np.float64)
            _, e = np.frexp(wide)
            step = np.ldexp(1.0, np.maximum(e - 8, -133))
            out = np.where(np.isfinite(x), np.rint(wide / step) * step, wide)
            with np.errstate(over="ignore"):
                return np.where(np.abs(out) >= 2.0**128, np.copysign(np.inf, x), out).astype(F32)


class precision_wide:
    def oracle(arrays, torch):
        a, b = (torch.from_numpy(np.array(arrays[name])) for name in ("a", "b"))
        wide, other = a.float(), b.float() if b.dtype == torch.float16 else b
        name = str(arrays["function"])
        if name == "a running sum":
            parts = [wide.double().sum(1, keepdim=True).float()]
        elif name == "a product of matrices":
            parts = [wide @ other]
        elif name == "two results and None":
            parts = [wide * other, None, wide + other]
        elif name == "rows by their ids":
            parts = [wide[b]]
        elif name == "an input that is None":
            parts = [wide * 3]
        elif name == "a mean of squares":
            parts = [(wide * wide).mean(1)]
        else:
            parts = [wide + other * 1e300 / 1e300]
        if str(arrays["narrow"]) == "float16":
            parts = [None if p is None else p.half() for p in parts]
        else:
            parts = [None if p is None else torch.round(p * 8) / 8 for p in parts]
        kinds = ["None" if p is None else str(p.dtype).removeprefix("torch.") for p in parts]
        numbers = [np.zeros(0) if p is None else p.double().numpy().reshape(-1) for p in parts]
        return {"parts of the result": np.array(kinds), "numbers": np.concatenate(numbers)}

    class mistakes:
        def in_16_bits(function, arrays, narrow):
            """The function was called on the float16 arrays themselves, and added up in 16 bits: widen them first."""
            with np.errstate(over="ignore", invalid="ignore"):
                return each(function(*arrays), narrow)

        def not_narrowed(function, arrays, narrow):
            """The result is still wide: narrow it."""
            return in_float32(function, arrays, lambda x: x)

        def always_float16(function, arrays, narrow):
            """The result was narrowed to float16 whatever was asked for: call narrow, which was handed over."""
            return in_float32(function, arrays, lambda x: x.astype(F16))

        def tuple_left_wide(function, arrays, narrow):
            """A tuple was returned as it came: narrow each array in it."""
            found = in_float32(function, arrays, lambda x: x)
            return found if isinstance(found, tuple) else narrow(found)

        def to_float64(function, arrays, narrow):
            """float16 was widened to float64: float32 is wide enough, and narrow is handed what comes out."""
            wide = [a.astype(np.float64) if is_16(a) else a for a in arrays]
            return each(function(*wide), narrow)

        def as_if_all_were_arrays(function, arrays, narrow):
            """Every input was widened and the result narrowed, as if each were a float16 array: an input may be None,
            or of another dtype, and a result may be a tuple."""
            return narrow(function(*[a.astype(F32) for a in arrays]))

        def only_the_first(function, arrays, narrow):
            """Of several results only the first was narrowed: do it for each."""
            found = in_float32(function, arrays, lambda x: x)
            return (narrow(found[0]), *found[1:]) if isinstance(found, tuple) else narrow(found)

        def narrowed_inputs(function, arrays, narrow):
            """The inputs were narrowed instead of the result: they have their 16 bits already."""
            return function(*[narrow(a).astype(F32) if is_16(a) else a for a in arrays])

        def everything_widened(function, arrays, narrow):
            """All inputs were turned into float32: ids are none any more, and float64 loses digits. Widen float16."""
            return in_float32(function, [None if a is None else a.astype(F32) for a in arrays], narrow)

    class alternatives:
        def by_double(function, arrays, narrow):
            wide = [np.asarray(a, np.float32) if a is not None and a.dtype.name == "float16" else a for a in arrays]
            with np.errstate(all="ignore"):
                out = function(*wide)
                if type(out) is not tuple:
                    return narrow(out)
                return tuple(x if x is None else narrow(x) for x in out)


def is_16(a):
    return a is not None and a.dtype == F16


def each(result, narrow):
    if isinstance(result, tuple):
        return tuple([None if x is None else narrow(x) for x in result])
    return narrow(result)


class precision_policy:
    def oracle(arrays, torch):
        """By hand, from PyTorch's rule: only the two narrow floats are eligible."""
        policy, low = str(arrays["policy"]), str(arrays["low"])
        target = {"lower": "float16" if low == "float16" else "the 16-bit format", "float32": "float32"}.get(policy)
        found = []
        for name in arrays["dtypes"].tolist():
            eligible = target and name and getattr(torch, name).is_floating_point and name != "float64"
            found.append(target if eligible else name or "None")
        return {"dtypes": np.array(found, dtype="U40")}

    class mistakes:
        def float64_too(policy, dtypes, low):
            """float64 was converted as well. Who asks for double precision means it: leave it alone."""
            narrow = [np.dtype(F32) if d == np.float64 else d for d in without_none(dtypes)]
            return [None if d is None else n for d, n in zip(dtypes, input_dtypes(policy, narrow, low), strict=True)]

        def whole_numbers_too(policy, dtypes, low):
            """Whole numbers were converted as well: ids and masks stay what they are."""
            target = {"lower": low, "float32": np.dtype(F32)}.get(policy)
            return [target if target is not None and d is not None and d != np.float64 else d for d in dtypes]

        def always_down(policy, dtypes, low):
            """Operations of neither list were converted too: they take what comes."""
            return input_dtypes(policy or "lower", dtypes, low)

        def always_up(policy, dtypes, low):
            """Where two widths met, the narrower was widened, for operations of neither list too. They are settled by
            the rules of chapter 01, behind the door."""
            return input_dtypes(policy or "float32", dtypes, low)

        def lists_exchanged(policy, dtypes, low):
            """The two lists are exchanged: products go down, the fragile operations go up."""
            return input_dtypes({"lower": "float32", "float32": "lower"}.get(policy, ""), dtypes, low)

        def only_float32_goes_down(policy, dtypes, low):
            """A float16 input stayed float16 where another 16-bit format was asked for: it has to be converted, too."""
            found = input_dtypes(policy, dtypes, low)
            return [d if d == F16 and policy == "lower" else n for d, n in zip(dtypes, found, strict=True)]

        def never_up(policy, dtypes, low):
            """float16 stayed float16 where the operation is on the list for float32."""
            return input_dtypes(policy if policy == "lower" else "", dtypes, low)

        def always_float16(policy, dtypes, low):
            """float16 was used whatever the 16-bit format is: it is handed over, as low."""
            return input_dtypes(policy, dtypes, np.dtype(F16))

        def widest_decides(policy, dtypes, low):
            """One float64 among the inputs made the others stay: each is decided by itself."""
            return list(dtypes) if np.dtype(np.float64) in dtypes else input_dtypes(policy, dtypes, low)

    class alternatives:
        def by_cases(policy, dtypes, low):
            found = []
            for dtype in dtypes:
                if dtype is None or dtype.kind != "f" or dtype.itemsize == 8 or policy == "":
                    found.append(dtype)
                elif policy == "lower":
                    found.append(low)
                else:
                    found.append(np.dtype("float32"))
            return found


def without_none(dtypes):
    return [np.dtype(bool) if d is None else d for d in dtypes]


class precision_memory:
    def oracle(arrays, torch):
        """By hand: every storage that something was saved of and that no leaf has, once."""
        reached, grown = {0}, True
        edges = [edge for edge in arrays["edges"].tolist() if edge[1] >= 0]
        while grown:
            more = {to for node, to in edges if node in reached} - reached
            reached, grown = reached | more, bool(more)
        owned = {storage for node, storage in arrays["leaves"].tolist() if node in reached}
        saved = {s for node, s, count in arrays["saves"].tolist() if node in reached and count >= 0} - owned
        names = ("float16", "float32", "float64")
        found = dict.fromkeys(names, 0)
        for storage in saved:
            found[arrays["dtypes"][storage]] += arrays["sizes"][storage] * np.dtype(arrays["dtypes"][storage]).itemsize
        return {
            "bytes of " + ", ".join(names): np.array([int(found[name]) for name in names]),
            "dtypes in the answer": np.array(sum(n > 0 for n in found.values())),
        }

    class mistakes:
        def of_the_views(root):
            """The size of what was saved was counted. A view holds its whole storage: count storage.data."""
            found = {}
            for array, storage in kept_once(root):
                add(found, storage, array.nbytes)
            return found

        def as_often_as_saved(root):
            """A storage that was saved twice was counted twice: it is there once."""
            found = {}
            for node in nodes_of(root):
                for saved in node.kept:
                    if saved is not None and id(saved[1]) not in owned_by_leaves(root):
                        add(found, saved[1], saved[1].data.nbytes)
            return found

        def weights_too(root):
            """The storage of a leaf was counted: that memory is the weight's own, with or without a graph."""
            found = {}
            for _, storage in kept_once(root, leaves=True):
                add(found, storage, storage.data.nbytes)
            return found

        def elements(root):
            """Elements were counted. Bytes are wanted: 2 for each of float16, 4 for each of float32."""
            found = {}
            for _, storage in kept_once(root):
                add(found, storage, storage.data.size)
            return found

        def only_the_first_node(root):
            """Only what the first node keeps was counted: go on to its targets."""
            found, seen = {}, set()
            for saved in root.kept:
                if saved is not None and id(saved[1]) not in seen | owned_by_leaves(root):
                    seen.add(id(saved[1]))
                    add(found, saved[1], saved[1].data.nbytes)
            return found

        def by_recursion(root):
            """The walk went too deep for Python: go through the graph with a list of what is still to be seen."""
            found, seen = {}, set()

            def walk(node):
                for saved in node.kept:
                    if saved is not None and id(saved[1]) not in seen:
                        seen.add(id(saved[1]))
                        add(found, saved[1], saved[1].data.nbytes)
                for target in node.targets:
                    if target is not None and hasattr(target, "kept"):
                        walk(target)

            walk(root)
            return found

        def dtypes_as_keys(root):
            """The keys are dtypes: take their names."""
            return {np.dtype(name): count for name, count in saved_bytes(root).items()}

        def one_total(root):
            """All was counted under float32: count by the storage's dtype."""
            total = sum(saved_bytes(root).values())
            return {"float32": total} if total else {}

    class alternatives:
        def in_two_walks(root):
            found, owned = {}, owned_by_leaves(root)
            for _, storage in kept_once(root, leaves=True):
                if id(storage) not in owned:
                    add(found, storage, storage.data.size * storage.data.itemsize)
            return found


def nodes_of(root):
    seen, unseen = {id(root): root}, [root]
    while unseen:
        for target in unseen.pop().targets:
            if target is not None and hasattr(target, "kept") and id(target) not in seen:
                seen[id(target)] = target
                unseen.append(target)
    return list(seen.values())


def owned_by_leaves(root):
    targets = [target for node in nodes_of(root) for target in node.targets]
    return {id(target.storage) for target in targets if target is not None and not hasattr(target, "kept")}


def kept_once(root, leaves=False):
    owned = set() if leaves else owned_by_leaves(root)
    found = {}
    for node in nodes_of(root):
        for saved in node.kept:
            if saved is not None and id(saved[1]) not in owned:
                found[id(saved[1])] = saved[0], saved[1]
    return list(found.values())


def add(found, storage, count):
    found[storage.data.dtype.name] = found.get(storage.data.dtype.name, 0) + count


class precision_master:
    def oracle(arrays, torch):
        master = torch.from_numpy(arrays["master"].copy())
        weights, masters = [], []
        for gradient in arrays["gradients"]:
            g = torch.from_numpy(np.array(gradient)).float() / float(arrays["scale"])
            master = master - float(arrays["lr"]) * g
            weights.append(master.half().double())
            masters.append(master.double())
        moved = torch.stack(masters) - torch.from_numpy(np.array(arrays["master"])).double()
        return {
            "weight after each step": torch.stack(weights),
            "master after each step, less where it began, in units of lr": moved / float(arrays["lr"]),
        }

    class mistakes:
        def unscaled_in_16_bits(weight, master, gradient, lr, scale):
            """The gradient was divided while it was float16, so it lost digits, and is 0 where it is small: widen it
            first."""
            with np.errstate(over="ignore"):
                master -= lr * (gradient / scale)
            weight[...] = master

        def one_factor_in_16_bits(weight, master, gradient, lr, scale):
            """lr / scale was multiplied with a float16 gradient, and both were rounded to 16 bits: widen it first."""
            with np.errstate(over="ignore"):
                master -= lr / scale * gradient
            weight[...] = master

        def nothing_in_place(weight, master, gradient, lr, scale):
            """Neither weight nor master has changed: `=` gives a new array a name. Change both in place."""

        def not_unscaled(weight, master, gradient, lr, scale):
            """The gradient is still scaled: divide it by the scale."""
            master -= lr * gradient.astype(F32)
            with np.errstate(over="ignore"):
                weight[...] = master

        def scaled_again(weight, master, gradient, lr, scale):
            """The gradient was multiplied by the scale once more. It has to be divided."""
            with np.errstate(over="ignore"):
                master -= lr * gradient.astype(F32) * F32(scale)
                weight[...] = master

        def step_on_the_weight(weight, master, gradient, lr, scale):
            """The step was taken on the float16 weight, where small steps are lost, and the master follows it. It is
            the other way round."""
            weight[...] = weight - lr * (gradient.astype(F32) / scale)
            master[...] = weight

        def weight_not_renewed(weight, master, gradient, lr, scale):
            """The weight has not changed: after the step it becomes the master, rounded, in place."""
            master_step(weight.copy(), master, gradient, lr, scale)

        def both_stepped(weight, master, gradient, lr, scale):
            """The weight took a step of its own, and drifts away from the master: round the master anew each time."""
            step = lr * (gradient.astype(F32) / scale)
            master -= step
            weight[...] = weight - step

        def master_bound_anew(weight, master, gradient, lr, scale):
            """The master has not changed: `master = master - ...` makes a new array. Change it in place."""
            master_step(weight, master.copy(), gradient, lr, scale)

        def uphill(weight, master, gradient, lr, scale):
            """The step went along the gradient, uphill."""
            master_step(weight, master, -gradient, lr, scale)

    class alternatives:
        def rate_first(weight, master, gradient, lr, scale):
            np.subtract(master, np.float32(lr / scale) * gradient.astype(np.float32), out=master)
            np.copyto(weight, master, casting="same_kind")


class precision_unscale:
    def oracle(arrays, torch):
        flat = torch.from_numpy(np.array(arrays["flat"]))
        found = torch.zeros(1)
        torch._amp_foreach_non_finite_check_and_unscale_([flat], found, torch.tensor(1 / float(arrays["scale"])))
        return {"found": np.array(bool(found.item())), "gradients afterwards": flat.double()}

    class mistakes:
        def stops_at_the_first(gradients, scale):
            """Gradients behind the one that was found are still scaled: go on to the end."""
            for g in gradients:
                bad = not np.isfinite(g).all()
                g *= F32(1 / scale)
                if bad:
                    return True
            return False

        def nan_missed(gradients, scale):
            """Only inf was looked for: nan counts as well."""
            return any(bool(np.isinf(g).any()) for g in divided(gradients, scale))

        def inf_missed(gradients, scale):
            """Only nan was looked for: inf counts as well."""
            return any(bool(np.isnan(g).any()) for g in divided(gradients, scale))

        def minus_inf_missed(gradients, scale):
            """Minus infinity was not found: it counts as well."""
            return any(bool((np.isnan(g) | (g == np.inf)).any()) for g in divided(gradients, scale))

        def by_the_sum(gradients, scale):
            """The sum was asked, and the sum of finite numbers can overflow: ask each element."""
            found = False
            with np.errstate(all="ignore"):
                for g in gradients:
                    found = found or not np.isfinite(np.add.reduce(g))
                    g *= F32(1 / scale)
            return bool(found)

        def only_the_last(gradients, scale):
            """What was found was forgotten at the next gradient: one is enough."""
            return [not np.isfinite(g).all() for g in divided(gradients, scale)][-1]

        def walked_twice(gradients, scale):
            """The gradients were walked through twice, and from a generator nothing comes the second time: divide and
            look in one walk."""
            given = gradients
            gradients = list(given)
            found = unscale(gradients, scale)
            return found if isinstance(given, list) else False

        def opposite(gradients, scale):
            """The answer is whether all are finite: it is to be True where one is not."""
            return not unscale(gradients, scale)

        def multiplied(gradients, scale):
            """The gradients were multiplied by the scale: divide."""
            return unscale(gradients, 1 / scale)

        def not_in_place(gradients, scale):
            """The gradients are still scaled: `g = g / scale` makes a new array. Change it in place."""
            return unscale([g.copy() for g in gradients], scale)

        def set_to_zero(gradients, scale):
            """The gradients that are not finite were replaced. They stay, and the step is skipped."""
            found = False
            for g in gradients:
                bad = ~np.isfinite(g)
                found = found or bool(bad.any())
                g[bad] = 0
                g *= F32(1 / scale)
            return found

    class alternatives:
        def in_a_list(gradients, scale):
            gradients = list(gradients)
            found = [bool(np.isfinite(g).all()) for g in gradients]
            for g in gradients:
                np.divide(g, np.float32(scale), out=g)
            return not all(found)


def divided(gradients, scale):
    gradients = list(gradients)
    unscale(gradients, scale)
    return gradients


class precision_scale:
    def oracle(arrays, torch):
        scale = torch.tensor(float(arrays["scale"]))
        tracker = torch.tensor(int(arrays["good_steps"]), dtype=torch.int32)
        scales, counts = [], []
        for found in arrays["found"].tolist():
            options = (float(arrays["growth_factor"]), float(arrays["backoff_factor"]), int(arrays["growth_interval"]))
            torch._amp_update_scale_(scale, tracker, torch.tensor(float(found)), *options)
            scales.append(scale.item() / float(arrays["scale"]))
            counts.append(tracker.item())
        return {
            "scale after each step, in units of the first": np.array(scales),
            "good steps in a row": np.array(counts),
        }

    class mistakes:
        def one_step_late(scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
            """It grew one step too late: this step counts as well."""
            return next_scale(scale, good_steps, found_inf, growth_factor, backoff_factor, growth_interval + 1)

        def good_steps_kept(scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
            """An overflow did not begin the count anew: the good steps have to be in a row."""
            new, count = next_scale(scale, good_steps, found_inf, growth_factor, backoff_factor, growth_interval)
            return new, good_steps if found_inf else count

        def not_begun_anew(scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
            """Growth did not begin the count anew, so it grows at every step from then on."""
            new, count = next_scale(scale, good_steps, found_inf, growth_factor, backoff_factor, growth_interval)
            return new, count if found_inf or count else good_steps + 1

        def exchanged(scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
            """The two factors are exchanged: an overflow makes the scale smaller."""
            return next_scale(scale, good_steps, found_inf, backoff_factor, growth_factor, growth_interval)

        def divided_by_growth(
            scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000
        ):
            """An overflow divided by growth_factor: multiply by backoff_factor."""
            return next_scale(scale, good_steps, found_inf, growth_factor, 1 / growth_factor, growth_interval)

        def counted_too(scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
            """The skipped step was counted as the first good one: after an overflow the count is 0."""
            new, count = next_scale(scale, good_steps, found_inf, growth_factor, backoff_factor, growth_interval)
            return new, 1 if found_inf else count

        def to_infinity(scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
            """The scale grew to infinity, from which nothing brings it back: where it would, it stays."""
            new, count = next_scale(scale, good_steps, found_inf, growth_factor, backoff_factor, growth_interval)
            return (math.inf if not found_inf and count == 0 and scale * growth_factor > 3.4e38 else new), count

        def beyond_float32(scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
            """The scale grew to a number that float32 does not have: there it stays as it is."""
            new, count = next_scale(scale, good_steps, found_inf, growth_factor, backoff_factor, growth_interval)
            return (scale * growth_factor if not found_inf and count == 0 else new), count

        def held_at_the_largest(
            scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000
        ):
            """Where the scale would grow to inf it became the largest number: there it stays as it is."""
            new, count = next_scale(scale, good_steps, found_inf, growth_factor, backoff_factor, growth_interval)
            grown = min(scale * growth_factor, float(np.finfo(F32).max))
            return (grown if not found_inf and count == 0 else new), count

        def never_grows(scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
            """The scale never grew: after growth_interval good steps it is multiplied by growth_factor."""
            return next_scale(scale, good_steps, found_inf, 1.0, backoff_factor, growth_interval)

    class alternatives:
        def by_cases(scale, good_steps, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
            good_steps = 0 if found_inf else good_steps + 1
            factor = backoff_factor if found_inf else growth_factor if good_steps == growth_interval else 1.0
            grown = scale * factor
            if grown > np.finfo(np.float32).max:
                grown = scale
            return float(np.float32(grown)), good_steps % growth_interval


class precision_scaler:
    def oracle(arrays, torch):
        scaler = torch.amp.GradScaler(
            "cpu",
            init_scale=float(arrays["init_scale"]),
            growth_interval=int(arrays["growth_interval"]),
            growth_factor=4.0,
        )
        points = [torch.from_numpy(p.copy()).requires_grad_() for p in arrays["points"]]
        optimizers = [Counted(torch, p) for p in points]
        scaler.scale(torch.ones(1))
        slopes, said, places, scales, grads = iter(arrays["slopes"]), [], [], [], []
        for call in arrays["calls"].tolist():
            name, _, number = call.partition(" ")
            which, result = int(number or 0), None
            try:
                if name == "grad":
                    points[which].grad = torch.from_numpy(next(slopes) * scaler.get_scale())
                elif name == "update":
                    scaler.update()
                else:
                    result = getattr(scaler, name)(optimizers[which])
                said.append("-" if result is None else result)
            except (RuntimeError, AssertionError):
                said.append("RuntimeError")
            places.append([*torch.cat(points).tolist(), *[o.steps for o in optimizers]])
            scales.append(scaler.get_scale())
            grads.append([0.0 if p.grad is None else p.grad[0].item() for p in points])
        return {
            "what each call returned or raised": np.array(said),
            "parameters and numbers of steps after each call": np.array(places, dtype=np.float64),
            "scale after each call": np.array(scales),
            "first gradient of each optimizer after each call": np.array(grads),
        }

    class mistakes:
        class NeverSkips(Scaler):
            """An overflowed step was taken, and moved parameters and counters: skip it."""

            def step(self, optimizer):
                super().step(optimizer)
                return optimizer.step() if self.found_inf[id(optimizer)] else "stepped"

        class StepDoesNotUnscale(Scaler):
            """step took the scaled gradients where unscale_ had not been called: it has to call it."""

            def step(self, optimizer):
                if id(optimizer) not in self.found_inf and id(optimizer) not in self.stepped:
                    bad = any(not np.isfinite(g).all() for g in gradients_of(optimizer))
                    self.found_inf[id(optimizer)] = bad
                return super().step(optimizer)

        class UnscaledAgain(Scaler):
            """step unscaled once more, though unscale_ had been called: ask found_inf."""

            def step(self, optimizer):
                if id(optimizer) in self.found_inf and id(optimizer) not in self.stepped:
                    unscale(gradients_of(optimizer), self.current)
                return super().step(optimizer)

        class UnscaleTwiceAllowed(Scaler):
            """unscale_ could be called twice, and divided twice: raise RuntimeError."""

            def unscale_(self, optimizer):
                if id(optimizer) not in self.stepped:
                    before = self.found_inf.pop(id(optimizer), False)
                    super().unscale_(optimizer)
                    self.found_inf[id(optimizer)] |= before
                else:
                    super().unscale_(optimizer)

        class UnscaleAfterStepAllowed(Scaler):
            """unscale_ after step did nothing and said nothing: raise RuntimeError."""

            def unscale_(self, optimizer):
                if id(optimizer) not in self.stepped:
                    super().unscale_(optimizer)

        class StepTwiceAllowed(Scaler):
            """step could be called twice before update: raise RuntimeError."""

            def step(self, optimizer):
                self.stepped.discard(id(optimizer))
                return super().step(optimizer)

        class UpdateWithoutStep(Scaler):
            """update without a step counted as a good one: raise RuntimeError where nothing was looked at."""

            def update(self):
                if not self.found_inf:
                    self.found_inf[0] = False
                super().update()

        class OneForAll(Scaler):
            """An overflow of one optimizer made another one skip: remember what was found for each by itself."""

            def step(self, optimizer):
                if id(optimizer) not in self.stepped and id(optimizer) not in self.found_inf:
                    self.unscale_(optimizer)
                if id(optimizer) not in self.stepped and any(self.found_inf.values()):
                    self.stepped.add(id(optimizer))
                    return None
                return super().step(optimizer)

        class LastOneDecides(Scaler):
            """The scale followed the last optimizer alone: one overflow among all is enough to back off."""

            def update(self):
                last = list(self.found_inf.values())[-1:]
                if last:
                    self.found_inf = {0: last[0]}
                super().update()

        class NothingForgotten(Scaler):
            """The second round began with what the first had found: update forgets it."""

            def update(self):
                found, stepped = dict(self.found_inf), set(self.stepped)
                super().update()
                self.found_inf.update(found)
                self.stepped.update(stepped)

        class StepsNotForgotten(Scaler):
            """update forgot what was found, and not who has stepped: it forgets both."""

            def update(self):
                stepped = set(self.stepped)
                super().update()
                self.stepped.update(stepped)

        class NeverRefusesUnscale(Scaler):
            """unscale_ is done however often it is called, and after step too: raise RuntimeError."""

            def unscale_(self, optimizer):
                self.found_inf[id(optimizer)] = unscale(gradients_of(optimizer), self.current)

        class FactorsLeftOut(Scaler):
            """next_scale was called without growth_factor, backoff_factor and growth_interval, and took its own: hand
            over the scaler's."""

            def update(self):
                self.growth_factor, self.backoff_factor, self.growth_interval = 2.0, 0.5, 2000
                super().update()

        class ScaleNeverMoves(Scaler):
            """The scale stayed as it was: update takes it from next_scale."""

            def update(self):
                before = self.current
                super().update()
                self.current = before

        class StepReturnsNothing(Scaler):
            """step returned None though the step was taken: return what optimizer.step() returns."""

            def step(self, optimizer):
                super().step(optimizer)

        class LossNotScaled(Scaler):
            """The loss was not multiplied by the scale."""

            def scale(self, loss):
                return loss * 1.0

    class alternatives:
        class WithStages(Scaler):
            """The same with one dictionary of stages."""

            def unscale_(self, optimizer):
                if id(optimizer) in self.found_inf:
                    raise RuntimeError("unscale_() was called before, or it comes after step()")
                bad = [not np.isfinite(g).all() for g in gradients_of(optimizer)]
                for g in gradients_of(optimizer):
                    g /= self.current
                self.found_inf[id(optimizer)] = any(bad)

            def step(self, optimizer):
                if id(optimizer) in self.stepped:
                    raise RuntimeError("step() was called before")
                if id(optimizer) not in self.found_inf:
                    self.unscale_(optimizer)
                self.stepped |= {id(optimizer)}
                if not self.found_inf[id(optimizer)]:
                    return optimizer.step()
                return None

            def update(self):
                if len(self.found_inf) == 0:
                    raise RuntimeError("nothing to update from")
                bad = True in self.found_inf.values()
                rest = self.growth_factor, self.backoff_factor, self.growth_interval
                self.current, self.good_steps = next_scale(self.current, self.good_steps, bad, *rest)
                self.found_inf, self.stepped = {}, set()


class Counted:
    """PyTorch's side of the check's descent."""

    def __init__(self, torch, p):
        self.param_groups, self.torch = [{"params": [p]}], torch
        self.p, self.steps = p, 0

    def step(self):
        self.steps += 1
        with self.torch.no_grad():
            self.p -= self.p.grad * 0.25
        return "stepped"


class precision_step:
    def oracle(arrays, torch):
        w = torch.from_numpy(arrays["w"].copy()).requires_grad_()
        optimizer = Counted(torch, w)
        scaler = torch.amp.GradScaler(
            "cpu", init_scale=float(arrays["scale"]), growth_interval=int(arrays["growth_interval"])
        )
        losses, taken, places, counts, scales, moved = [], [], [], [], [], 0
        for factor in arrays["factors"]:
            w.grad = None
            x, y = torch.from_numpy(arrays["x"] * factor), torch.from_numpy(np.array(arrays["y"]))
            loss = ((x @ w - y) ** 2).mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([w], float(arrays["max_norm"]))
            before = optimizer.steps
            scaler.step(optimizer)
            scaler.update()
            taken.append(optimizer.steps > before)
            moved += taken[-1]
            losses.append(loss.item())
            places.append(w.detach().clone())
            counts.append([optimizer.steps, moved])
            scales.append(scaler.get_scale())
        return {
            "losses": np.array(losses),
            "whether the step was taken": np.array(taken),
            "w after each step": torch.stack(places),
            "steps of the optimizer and of the schedule": np.array(counts),
            "scale after each step": np.array(scales),
        }

    class mistakes:
        def clipped_before_unscaling(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """The scaled gradients were clipped, so the step is too short by as much as the scale: unscale first."""
            return one_step(loss_of, optimizer, scaler, parameters, max_norm, scheduler, clip="before")

        def never_clipped(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """The gradients were not clipped to max_norm."""
            return one_step(loss_of, optimizer, scaler, parameters, max_norm, scheduler, clip="never")

        def schedule_always(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """The schedule moved on though the step was skipped: it stands still with everything else."""
            loss, taken = scaled_step(loss_of, optimizer, scaler, parameters, max_norm, scheduler)
            if not taken:
                scheduler.step()
            return loss, taken

        def schedule_stands_at_growth(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """The schedule stood still where the scale grew: only a smaller scale tells of a skipped step."""
            return one_step(
                loss_of, optimizer, scaler, parameters, max_norm, scheduler, taken=lambda before, after: before == after
            )

        def compared_before_update(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """Every step counted as taken: the scale changes in update, so compare after it."""
            return one_step(
                loss_of, optimizer, scaler, parameters, max_norm, scheduler, taken=lambda before, after: True
            )

        def never_zeroed(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """Old gradients were added to the new ones: zero_grad comes first."""
            return one_step(loss_of, optimizer, scaler, parameters, max_norm, scheduler, zero=False)

        def zeroed_at_the_end(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """Gradients that were left over went into the first step: zero_grad comes first, not last."""
            found = one_step(loss_of, optimizer, scaler, parameters, max_norm, scheduler, zero=False)
            optimizer.zero_grad()
            return found

        def optimizer_stepped(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """The optimizer's own step was called, which moves at an overflow too: call the scaler's."""
            return one_step(loss_of, optimizer, scaler, parameters, max_norm, scheduler, step=lambda: optimizer.step())

        def loss_not_scaled(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """backward was called on the loss itself: scale it first."""
            return one_step(loss_of, optimizer, scaler, parameters, max_norm, scheduler, scale=lambda loss: loss)

        def scaled_loss_returned(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """The loss that was returned is the scaled one."""
            factor = scaler.get_scale()
            loss, taken = scaled_step(loss_of, optimizer, scaler, parameters, max_norm, scheduler)
            return loss * factor, taken

        def never_updated(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            """update was not called: the scaler is not ready for the next step, and its scale stands still."""
            optimizer.zero_grad()
            loss = loss_of()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            clip_grad_norm_(parameters, max_norm)
            scaler.step(optimizer)
            scheduler.step()
            return loss.item(), True

    class alternatives:
        def with_a_name_for_it(loss_of, optimizer, scaler, parameters, max_norm, scheduler):
            for p in parameters:
                p.grad = None
            old = scaler.get_scale()
            loss = loss_of()
            scaled = scaler.scale(loss)
            scaled.backward()
            scaler.unscale_(optimizer)
            clip_grad_norm_(parameters, max_norm)
            scaler.step(optimizer)
            scaler.update()
            skipped = scaler.get_scale() < old
            if not skipped:
                scheduler.step()
            return float(loss.item()), not skipped


def one_step(
    loss_of,
    optimizer,
    scaler,
    parameters,
    max_norm,
    scheduler,
    zero=True,
    clip="after",
    scale=None,
    step=None,
    taken=lambda before, after: after >= before,
):
    """scaled_step, with a part of it done otherwise."""
    if zero:
        optimizer.zero_grad()
    loss = loss_of()
    (scale(loss) if scale else scaler.scale(loss)).backward()
    if clip == "before":
        clip_grad_norm_(parameters, max_norm)
    scaler.unscale_(optimizer)
    if clip == "after":
        clip_grad_norm_(parameters, max_norm)
    before = scaler.get_scale()
    if step:
        step()
    else:
        scaler.step(optimizer)
    scaler.update()
    moved = taken(before, scaler.get_scale())
    if moved:
        scheduler.step()
    return loss.item(), moved
