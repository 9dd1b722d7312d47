"""What the checks of chapter 04 do with modules: a probe for each exercise on names, and how its inputs are made.

Scripts and trees are written as lines of text. `m0 _parameters weight 2` says that object m0 has, in its dictionary
_parameters, the name weight for value number 2; a dash stands for None.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.errors import BadInput

HOMES = ("_parameters", "_buffers", "_modules")


def lines(texts):
    """Lines of text as an array, also if there are none."""
    return np.array(list(texts), dtype=np.str_) if len(texts) else np.empty(0, "U1")


def beside(target, name):
    """What stands under a name in the notebook that the class comes from."""
    for kind in target.__mro__:
        for member in vars(kind).values():
            if name in getattr(member, "__globals__", ()):
                return member.__globals__[name]
    raise BadInput(f"there is no {name} yet: run the folded cells above this one, then this check")


# 4.1


def probe_registry(target, arrays, framework):
    """Assign one thing after the other; then say where each is, and what is read back."""
    parameter = beside(target, "Parameter")
    registry = target.__new__(target)
    makers = {
        "parameter": lambda x: parameter(framework.tensor([x])),
        "tensor": lambda x: framework.tensor([x]),
        "module": lambda x: target(),
        "none": lambda x: None,
        "number": float,
    }
    given: dict[int, str] = {}
    refused, kept = [], []
    for line, x in zip(arrays["script"].tolist(), arrays["values"].tolist(), strict=True):
        verb, name, kind = line.split()
        if verb == "run":
            registry.__init__()
            continue
        value = makers[kind](x)
        kept.append(value)  # an id is one object's only while the object is there
        if value is not None:
            given[id(value)] = f"{kind} {len(kept)}"
        refused.append(attempt(registry, verb, name, value))
    found = {home.strip("_"): shelf(vars(registry).get(home, {}), given) for home in HOMES}
    names = sorted({line.split()[1] for line in arrays["script"].tolist() if not line.startswith("run")})
    plain = {name: value for name, value in vars(registry).items() if name in names}
    return {
        "refused with": lines(refused),
        **found,
        "plain attributes": shelf(plain, given),
        "read back": lines([f"{name}: {read(registry, name, given)}" for name in [*names, "unknown"]]),
    }


def attempt(registry: Any, verb: str, name: str, value: Any) -> str:
    try:
        if verb == "buffer":
            registry._buffers[name] = value
        else:
            setattr(registry, name, value)
    except (TypeError, AttributeError) as error:
        return type(error).__name__
    return "-"


def shelf(members: dict, given: dict[int, str]):
    return lines(
        [f"{name}: {given.get(id(value), 'None' if value is None else 'else')}" for name, value in members.items()]
    )


def read(registry: Any, name: str, given: dict[int, str]) -> str:
    try:
        value = getattr(registry, name)
    except AttributeError:
        return "AttributeError"
    return "None" if value is None else given.get(id(value), "else")


def inputs_registry(rng, *script):
    return {"script": lines(script), "values": rng.uniform(0.5, 2, len(script))}


def draw_registry(rng):
    script = ["run __init__ now", "buffer a tensor", "buffer c none"]
    for _ in range(int(rng.integers(5, 10))):
        kind = rng.choice(["parameter", "tensor", "module", "none", "number"])
        script.append(f"set {rng.choice(list('abcd'))} {kind}")
    return tuple(script)


# 4.2 and 4.3


class Node:
    """What these exercises see of a module."""

    def __init__(self):
        self._parameters, self._buffers, self._modules, self._not_saved = {}, {}, {}, set()


def grow(arrays):
    """The root of the tree that the lines describe, and its members. `m1` in a line is a module; a number a value."""
    nodes, members = {"m0": Node()}, [np.array([x]) for x in arrays["values"]]
    for line in arrays["tree"].tolist():
        owner, home, name, what = line.split()
        node = nodes.setdefault(owner, Node())
        if home == "_not_saved":
            node._not_saved.add(name)
        elif what == "-":
            getattr(node, home)[name] = None
        elif home == "_modules":
            node._modules[name] = nodes.setdefault(what, Node())
        else:
            getattr(node, home)[name] = members[int(what)]
    return nodes["m0"], members


def listed(pairs):
    """Names and members as two arrays."""
    pairs = list(pairs)
    return {"names": lines([name for name, _ in pairs]), "members": np.array([float(m[0]) for _, m in pairs])}


def probe_named(target, arrays, framework):
    root, _ = grow(arrays)
    kind = str(arrays["kind"])
    prefix = (str(arrays["prefix"]),) if "prefix" in arrays else ()
    return listed(target(root, kind, *prefix))


def probe_state(target, arrays, framework):
    """The state; and once more after every member has changed in place, since a state is no copy."""
    root, members = grow(arrays)
    state = target(root, str(arrays["prefix"])) if "prefix" in arrays else target(root)
    first = listed(state.items())
    for member in members:
        member *= -2
    return {**first, "members after the module has changed": listed(state.items())["members"]}


def inputs_tree(rng, tree, kind="_parameters", prefix=None, equal=False):
    most = max([int(line.split()[3]) for line in tree if line.split()[3].isdigit()], default=-1)
    values = rng.uniform(0.5, 2, most + 1)
    arrays = {"tree": lines(tree), "values": np.full_like(values, 1.5) if equal else values, "kind": np.array(kind)}
    return arrays | ({} if prefix is None else {"prefix": np.array(prefix)})


def draw_tree(rng):
    """Up to six modules; parameters, buffers and modules that may be shared, or None."""
    count, tree = int(rng.integers(3, 7)), []
    for i in range(count):
        for home, names in (("_parameters", "wbs"), ("_buffers", "mv")):
            for name in names:
                if rng.random() < 0.6:
                    tree.append(f"m{i} {home} {name} {rng.integers(0, 9) if rng.random() < 0.9 else '-'}")
                    if home == "_buffers" and rng.random() < 0.3:
                        tree.append(f"m{i} _not_saved {name} -")
        for j in range(i + 1, count):
            if rng.random() < 0.5:
                tree.append(f"m{i} _modules {'cdefgh'[j]} m{j}")
    return tuple(tree), str(rng.choice(["_parameters", "_buffers"])), str(rng.choice(["", "net."]))


# 4.4


def probe_mismatches(target, arrays, framework):
    own, given = (read_shapes(arrays[name]) for name in ("own", "given"))
    missing, unexpected, unlike = target(own, given)
    return {"missing": lines(missing), "unexpected": lines(unexpected), "of another shape": lines(unlike)}


def read_shapes(array):
    pairs = [line.split(" ") for line in array.tolist()]
    return {name: tuple(int(n) for n in sizes.split("x") if n) for name, sizes in pairs}


def inputs_mismatches(rng, own, given):
    return {"own": lines(own), "given": lines(given)}


def draw_mismatches(rng):
    sides = []
    for _ in range(2):
        names = rng.permutation(["a_weight", "a_bias", "b_weight", "b_bias", "c_mean", "d"])[: int(rng.integers(2, 7))]
        sides.append(tuple(f"{name} {rng.choice(['2x3', '3x2', '3'])}" for name in names))
    return tuple(sides)


# 4.11


class Called:
    """A module whose forward is a product, and which notes what it was given."""

    def __init__(self):
        self.notes = []

    def forward(self, *args, scale=1.0):
        self.notes.append(("forward", [np.array(a) for a in args]))
        out = args[0] * scale
        for a in args[1:]:
            out = out * a
        return out


def hook_of(kind, place):
    """A hook that notes what it sees and returns what its kind says."""

    def see(module, *values):
        flat = [x for value in values for x in (value if isinstance(value, tuple) else (value,))]
        module.notes.append((f"hook {place}: {kind}", [np.array(x) for x in flat]))
        latest = values[-1]
        if kind == "watches":
            return None
        if kind == "adds one":
            return tuple(x + 1 for x in latest) if isinstance(latest, tuple) else latest + 1
        if kind == "gives zero":
            return np.zeros(()) if not isinstance(latest, tuple) else (np.zeros(()),) * len(latest)
        return latest[0] * 3  # "one value": for the only argument

    return see


def probe_hooks(target, arrays, framework):
    module = Called()
    args = tuple(arrays[name] for name in ("first", "second") if name in arrays)
    kwargs = {"scale": float(arrays["scale"])} if "scale" in arrays else {}
    before, after = ([hook_of(k, i) for i, k in enumerate(arrays[side].tolist())] for side in ("before", "after"))
    output = target(module, args, kwargs, before, after)
    seen = [float((x * (1 + np.arange(x.size)).reshape(x.shape)).sum()) for _, values in module.notes for x in values]
    return {
        "output": output,
        "who was called": lines([name for name, _ in module.notes]),
        "what they were given, each array as one number": np.array(seen),
    }


def inputs_hooks(rng, before, after, second=True, scale=None):
    arrays = {"first": rng.uniform(0.5, 2, (2, 3)), "before": lines(before), "after": lines(after)}
    if second:
        arrays["second"] = rng.uniform(0.5, 2, (2, 3))
    return arrays | ({} if scale is None else {"scale": np.array(scale)})


def draw_hooks(rng):
    kinds = ["watches", "adds one", "gives zero"]
    before, after = (tuple(rng.choice(kinds, int(rng.integers(0, 4))).tolist()) for _ in range(2))
    return before, after, bool(rng.integers(0, 2)), float(rng.uniform(0.5, 2))
