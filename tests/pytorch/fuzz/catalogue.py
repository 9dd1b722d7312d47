"""What a random program may do next: each entry writes one expression that gradwright and PyTorch both understand.

In an expression `m` is the framework, v0, v1, ... are tensors so far and `ids(...)` makes a tensor of whole numbers or
truth values. An entry gets a random generator and the tensors as PyTorch has them, to choose from what fits, and gives
None where nothing does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

Pool = dict[str, torch.Tensor]
Entry = Callable[[np.random.Generator, Pool], str | None]

SMOOTH = (
    *("-{}", "({}).exp()", "({}).sin()", "({}).cos()", "({}).tanh()", "({}).sigmoid()", "m.gelu({})", "m.silu({})"),
    *("({}).square()", "m.softplus({})", "m.softplus({}, 2.0, 5.0)", "({}).expm1()", 'm.gelu({}, approximate="tanh")'),
    *("({0} * {0} + 0.5).log()", "({0} * {0}).log1p()", "({0} * {0} + 0.3).sqrt()", "({0} * {0} + 0.3).rsqrt()"),
    *("({0} * {0} + 0.5).reciprocal()", "({}) ** 3", "2 - {} * 0.5", "1 / ({0} * {0} + 1)", "({}).clone()", "{} / 2"),
)
KINKED = (
    *("({}).relu()", "({}).abs()", "({}).clamp(-0.5, 1)", "({}).clamp(min=0.0)", "m.where({0} > 0, {0}, 0.25)"),
    *("({0}).masked_fill({0} > 0.5, 2.0)", "m.maximum({0}, -{0})", "({0})[{0} > 0]", "({0}).masked_select({0} <= 1)"),
)
PAIRED = (
    *("{} + {}", "{} - {}", "{} * {}", "{0} / ({1} * {1} + 0.5)", "({0} * {0} + 0.2) ** {1}"),
    *("m.where({0} * 0 < 1, {0}, {1})", "m.where({1} * 0 > 1, {0}, {1})"),
)
TIED = ("m.maximum({}, {})", "m.minimum({}, {})", "m.where({0} > {1}, {0}, {1})")
REDUCED = (
    *("({}).sum({}, keepdim={})", "({}).mean({}, keepdim={})", "({}).var({}, correction=0, keepdim={})"),
    *("({}).logsumexp({}, keepdim={})", "({}).norm(2, {}, keepdim={})"),
)
EXTREME = ("({}).amax({}, keepdim={})", "({}).amin({}, keepdim={})", "({}).norm(float('inf'), {}, keepdim={})")
LOOKED = (
    "({}).softmax({})",
    "({}).log_softmax({})",
    "({}).cumsum({})",
    "({}).prod({})",
    "({}).unsqueeze({})",
    "({}).flip({})",
)
SORTED = ("({}).max({}).values", "({}).min({}).values", "({}).sort({}).values", "({}).sort({}, descending=True).values")
WHOLE = ("({}).sum()", "({}).mean()", "({}).prod()", "({}).norm()", "({}).flatten()", "({}).contiguous()")


def choose(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[rng.integers(len(options))]


def pick(rng: np.random.Generator, pool: Pool, fits: Callable[[torch.Tensor], bool] = lambda t: True) -> str | None:
    """The name of a tensor that fits, one of the latest more often than not."""
    names = [name for name, t in pool.items() if fits(t)]
    if not names:
        return None
    return names[-1 - min(rng.geometric(0.35) - 1, len(names) - 1)]


def separated(t: torch.Tensor) -> bool:
    """Whether rounding cannot decide which of two elements is larger, or on which side of a kink one lies."""
    marks = torch.cat([t.detach().flatten(), torch.tensor([0.0, 0.5, -0.5, 1.0, -1.0], dtype=t.dtype)])
    gaps = marks.unique().diff()
    return bool((gaps > 1e-3).all()) or bool((t.detach() == t.detach().round()).all())


def whole_or_apart(t: torch.Tensor) -> bool:
    values = t.detach()
    if (values == values.round()).all():
        return True
    return values.unique().numel() == values.numel() and separated(t)


def axis(rng: np.random.Generator, t: torch.Tensor) -> int:
    return int(rng.integers(-t.ndim, t.ndim))


def smooth(rng: np.random.Generator, pool: Pool) -> str | None:
    return choose(rng, SMOOTH).format(pick(rng, pool))


def kinked(rng: np.random.Generator, pool: Pool) -> str | None:
    name = pick(rng, pool, whole_or_apart)
    return name and choose(rng, KINKED).format(name)


def fitting(rng: np.random.Generator, pool: Pool, fits: Callable = lambda t: True) -> tuple[str, str] | None:
    """Two tensors that broadcast."""
    first = pick(rng, pool, fits)
    if first is None:
        return None

    def broadcasts(t: torch.Tensor) -> bool:
        pairs = zip(reversed(t.shape), reversed(pool[first].shape), strict=False)
        return fits(t) and all(n == k or 1 in (n, k) for n, k in pairs)

    second = pick(rng, pool, broadcasts)
    return second and ((first, second) if rng.random() < 0.5 else (second, first))


def paired(rng: np.random.Generator, pool: Pool) -> str | None:
    two = fitting(rng, pool)
    return two and choose(rng, PAIRED).format(*two)


def tied(rng: np.random.Generator, pool: Pool) -> str | None:
    two = fitting(rng, pool, lambda t: bool((t.detach() == t.detach().round()).all()))
    return two and choose(rng, TIED).format(*two)


def dims_of(rng: np.random.Generator, t: torch.Tensor) -> int | tuple[int, ...]:
    if rng.random() < 0.6:
        return axis(rng, t)
    count = int(rng.integers(1, t.ndim + 1))
    chosen = rng.choice(t.ndim, count, replace=False)
    return tuple(int(d) - t.ndim * int(rng.integers(2)) for d in chosen)


def reduced(rng: np.random.Generator, pool: Pool) -> str | None:
    name = pick(rng, pool, lambda t: t.ndim > 0 and t.numel() > 0)
    return name and choose(rng, REDUCED).format(name, dims_of(rng, pool[name]), rng.random() < 0.5)


def extreme(rng: np.random.Generator, pool: Pool) -> str | None:
    name = pick(rng, pool, lambda t: t.ndim > 0 and t.numel() > 0 and whole_or_apart(t))
    return name and choose(rng, EXTREME).format(name, dims_of(rng, pool[name]), rng.random() < 0.5)


def looked_along(rng: np.random.Generator, pool: Pool) -> str | None:
    name = pick(rng, pool, lambda t: t.ndim > 0)
    return name and choose(rng, LOOKED).format(name, axis(rng, pool[name]))


def sorted_along(rng: np.random.Generator, pool: Pool) -> str | None:
    """Equal elements may be sorted either way, so there must be none."""
    name = pick(rng, pool, lambda t: t.ndim > 0 and t.numel() > 0 and t.unique().numel() == t.numel() and separated(t))
    return name and choose(rng, SORTED).format(name, axis(rng, pool[name]))


def whole(rng: np.random.Generator, pool: Pool) -> str | None:
    return choose(rng, WHOLE).format(pick(rng, pool))


def multiplied(rng: np.random.Generator, pool: Pool) -> str | None:
    first = pick(rng, pool, lambda t: t.ndim > 0)
    if first is None:
        return None
    a = pool[first].shape

    def multiplies(t: torch.Tensor) -> bool:
        if not t.ndim or t.shape[-2 if t.ndim > 1 else 0] != a[-1]:
            return False
        lead = zip(reversed(t.shape[:-2]), reversed(a[:-2]), strict=False)
        return all(n == k or 1 in (n, k) for n, k in lead)

    second = pick(rng, pool, multiplies)
    if second is None:
        return f"{first} @ {first}.mT" if len(a) > 1 else f"m.outer({first}, {first})"
    if rng.random() < 0.3 and len(a) == pool[second].ndim == 2:
        return added_to_a_product(rng, pool, first, second)
    return f"{first} @ {second}"


def added_to_a_product(rng: np.random.Generator, pool: Pool, first: str, second: str) -> str:
    out = pool[first].shape[0], pool[second].shape[1]

    def fits(t: torch.Tensor) -> bool:
        return t.ndim <= 2 and all(n in (1, k) for n, k in zip(reversed(t.shape), reversed(out), strict=False))

    added = pick(rng, pool, fits)
    if added is None:
        return f"{first} @ {second}"
    return f"m.addmm({added}, {first}, {second}, beta={choose(rng, (1, 1, 0.5, 0))}, alpha={choose(rng, (1, 1, -2))})"


def einsummed(rng: np.random.Generator, pool: Pool) -> str | None:
    two = fitting(rng, pool, lambda t: t.ndim > 0)
    if two is None or pool[two[0]].shape != pool[two[1]].shape:
        return None
    letters = "abcdef"[: pool[two[0]].ndim]
    out = "".join(rng.permutation([c for c in letters if rng.random() < 0.5]))
    return f'm.einsum("{letters},{letters}->{out}", {two[0]}, {two[1]})'


def turned(rng: np.random.Generator, pool: Pool) -> str | None:
    name = pick(rng, pool, lambda t: t.ndim > 1)
    if name is None:
        return None
    order = tuple(int(d) for d in rng.permutation(pool[name].ndim))
    return f"({name}).permute{order}"


def reshaped(rng: np.random.Generator, pool: Pool) -> str | None:
    name = pick(rng, pool, lambda t: t.numel() > 1)
    if name is None:
        return None
    n = pool[name].numel()
    divisors = [k for k in range(1, n + 1) if n % k == 0]
    first = divisors[rng.integers(len(divisors))]
    return f"({name}).reshape({first}, -1)" if rng.random() < 0.7 else f"({name}).reshape(-1)"


def repeated(rng: np.random.Generator, pool: Pool) -> str | None:
    name = pick(rng, pool, lambda t: 0 < t.ndim < 4 and t.numel() > 0)
    if name is None:
        return None
    t = pool[name]
    d = axis(rng, t)
    counts = [int(n) for n in rng.integers(0, 3, t.shape[d])]
    ways = (
        f"({name}).repeat_interleave({rng.integers(1, 4)}, {d})",
        f"({name}).repeat_interleave(ids({counts}), {d})",
        f"({name}).repeat{tuple(int(n) for n in rng.integers(1, 3, t.ndim + rng.integers(2)))}".replace(",)", ")"),
        f"({name}).expand({rng.integers(1, 3)}, {', '.join(['-1'] * t.ndim)})",
        f"({name}).roll({rng.integers(-3, 4)}, {d})",
    )
    return choose(rng, ways)


def joined(rng: np.random.Generator, pool: Pool) -> str | None:
    name = pick(rng, pool, lambda t: t.ndim > 0)
    if name is None:
        return None
    shape = pool[name].shape
    d = axis(rng, pool[name])
    rest = [n for i, n in enumerate(shape) if i != d % len(shape)]
    other = pick(
        rng, pool, lambda t: t.ndim == len(shape) and [n for i, n in enumerate(t.shape) if i != d % len(shape)] == rest
    )
    same = pick(rng, pool, lambda t: t.shape == shape)
    return choose(rng, (f"m.cat([{name}, {other}], {d})", f"m.stack([{name}, {same}], {d})"))


def cut(rng: np.random.Generator, pool: Pool) -> str | None:
    name = pick(rng, pool, lambda t: t.ndim > 0 and t.shape[0] > 1)
    if name is None:
        return None
    t, i = pool[name], int(rng.integers(2))
    square = f"({name}).tril({rng.integers(-1, 2)})" if t.ndim > 1 else f"({name})[1:]"
    turned = f"({name}).triu({rng.integers(-1, 2)})" if t.ndim > 1 else f"({name})[:-1]"
    ways = (
        *(f"({name}).split({max(1, t.shape[0] // 2)})[{i}]", f"({name}).chunk(2)[{i}]", f"({name}).unbind()[{i}]"),
        *(f"({name})[{i}]", f"({name})[{i}:]", f"({name})[..., None]", f"({name})[-1, ...]", f"({name})[::2]"),
        *(square, turned, f"m.pad({name}, (1, 2), value=0.5)", f"m.pad({name}, (-1, 1))" if t.shape[-1] else square),
    )
    return choose(rng, ways)


def indexed(rng: np.random.Generator, pool: Pool) -> str | None:
    """By arrays in which places repeat, and by masks."""
    name = pick(rng, pool, lambda t: t.ndim > 0 and t.numel() > 0)
    if name is None:
        return None
    t = pool[name]
    rows, columns = ([int(i) for i in rng.integers(-n, n, 4)] for n in (t.shape[0], t.shape[-1]))
    places = [i % t.shape[0] for i in rows]
    mask = [bool(n) for n in rng.integers(0, 2, t.shape[0])]
    grid = rng.integers(0, t.shape[-1], (*t.shape[:-1], 3)).tolist()
    ways = (
        *(f"({name})[ids({rows})]", f"({name})[..., ids({columns})]", f"({name})[ids({mask})]"),
        *(f"({name}).index_select(0, ids({places}))", f"({name}).gather(-1, ids({grid}))"),
        f"({name})[ids({rows}), ..., ids({columns})]" if t.ndim > 1 else f"({name})[ids([{rows[:2]}, {rows[2:]}])]",
    )
    return choose(rng, ways)


ENTRIES: tuple[Entry, ...] = (
    *(
        smooth,
        smooth,
        kinked,
        kinked,
        paired,
        paired,
        tied,
        tied,
        reduced,
        reduced,
        extreme,
        looked_along,
        sorted_along,
    ),
    *(whole, multiplied, multiplied, einsummed, turned, reshaped, repeated, joined, cut, cut, indexed, indexed),
)
