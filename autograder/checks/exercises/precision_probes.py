"""Chapter 10: what the checks do with an answer about formats and memory, and where their arrays come from."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

F16, F32 = np.float16, np.float32

# 10.1 to_float16, 10.2 to_bfloat16


def probe_round(target, arrays, framework):
    """A rounded float32 number is looked at as float64, where one unit of its last digit is far outside tolerance."""
    result = target(arrays["x"])
    if result is None:
        return {"rounded": None}
    kind = result.dtype.name if isinstance(result, np.ndarray | np.generic) else type(result).__name__
    numbers = np.asarray(result, np.float64)
    signs = np.signbit(numbers) & ~np.isnan(numbers)
    return {"rounded": numbers, "dtype": np.array(kind), "negative, 0 too": signs}


def inputs_round(rng, values=None, shape=(8,), low=-10, high=10, bits=None):
    """Given numbers, given bits, or random ones whose size is from 2**low to 2**high."""
    if bits is not None:
        return {"x": np.array(bits, dtype=np.uint32).view(F32)}
    if values is not None:
        return {"x": np.array(values, dtype=F32)}
    size = np.exp2(rng.uniform(low, high, shape))
    return {"x": np.asarray(size * rng.choice([-1, 1], shape), dtype=F32)}


def draw_float16(rng):
    return (
        None,
        tuple(rng.integers(1, 5, rng.integers(0, 3)).tolist()),
        *[(-26, -12), (-14, 15), (12, 18)][rng.integers(3)],
    )


def draw_bfloat16(rng):
    return (
        None,
        tuple(rng.integers(1, 5, rng.integers(0, 3)).tolist()),
        *[(-5, 5), (-30, 30), (10, 20)][rng.integers(3)],
    )


# 10.3 in_float32


def running(x):
    """A sum in the order of the axis, number by number."""
    return np.cumsum(x, 1)[:, -1:]


FUNCTIONS = {
    "a running sum": running,
    "a product of matrices": lambda a, b: a @ b,
    "two results and None": lambda a, b: (a * b, None, a + b),
    "rows by their ids": lambda x, ids: x[ids],
    "an input that is None": lambda x, nothing: x * 3 if nothing is None else x,
    "a mean of squares": lambda x: np.square(x).mean(1),
    "float64 stays float64": lambda x, y: x + y * 1e300 / 1e300,
}


def narrow_16(x):
    return x.astype(F16)


def narrow_steps(x):
    """Another 16-bit format, in name: steps of 1/8."""
    return np.rint(x * 8) / np.asarray(8, x.dtype)


def probe_wide(target, arrays, framework):
    a, b = arrays["a"], arrays["b"]
    function = FUNCTIONS[str(arrays["function"])]
    given = {1: [a], 2: [a, None if b.size == 0 else b]}[int(arrays["inputs"])]
    narrow = narrow_16 if str(arrays["narrow"]) == "float16" else narrow_steps
    result = target(function, given, narrow)
    parts = result if isinstance(result, tuple) else (result,)
    if not all(part is None or isinstance(part, np.ndarray) for part in parts):
        return {"parts of the result": np.array([type(result).__name__])}
    found = [np.zeros(0) if part is None else part for part in parts]
    return {
        "parts of the result": np.array(["None" if part is None else part.dtype.name for part in parts]),
        "numbers": np.concatenate([part.astype(np.float64).reshape(-1) for part in found]),
    }


def inputs_wide(rng, function, shape=(2, 6), other=None, narrow="float16", value=None, kind="float16"):
    a = rng.uniform(0.5, 2, shape) if value is None else np.full(shape, value)
    if kind == "ids":
        b = rng.integers(0, shape[0], 3)
    else:
        b = np.zeros(0) if other is None else rng.uniform(0.5, 2, other)
        b = b.astype(kind)
    alone = function in ("a running sum", "a mean of squares")
    return {
        "function": np.array(function),
        "a": a.astype(F16),
        "b": b,
        "inputs": np.array(1 if alone else 2),
        "narrow": np.array(narrow),
    }


def draw_wide(rng):
    n, k, m = rng.integers(1, 5, 3).tolist()
    narrow = str(rng.choice(["float16", "steps of 1/8"]))
    return [
        ("a running sum", (n, 500 * k), None, narrow),
        ("a product of matrices", (n, k), (k, m), narrow),
        ("two results and None", (n, k), (n, k), narrow),
    ][rng.integers(3)]


# 10.4 input_dtypes


def probe_policy(target, arrays, framework):
    dtypes = [np.dtype(name) if name else None for name in arrays["dtypes"].tolist()]
    low = np.dtype("float16") if str(arrays["low"]) == "float16" else LOW
    result = target(str(arrays["policy"]), dtypes, low)
    if not isinstance(result, list):
        return {"dtypes": result}
    return {"dtypes": np.array([called(dtype) for dtype in result], dtype="U40")}


class Low:
    """A format that NumPy does not know."""

    def __repr__(self):
        return "the 16-bit format"


LOW = Low()


def called(dtype):
    return "None" if dtype is None else repr(dtype) if isinstance(dtype, Low) else np.dtype(dtype).name


def inputs_policy(rng, policy, dtypes, low="float16"):
    return {"policy": np.array(policy), "dtypes": np.array(dtypes, dtype="U10"), "low": np.array(low)}


DTYPES = ["float16", "float32", "float64", "int64", "uint8", "bool", ""]


def draw_policy(rng):
    names = rng.choice(DTYPES, rng.integers(1, 5)).tolist()
    return str(rng.choice(["lower", "float32", ""])), names, str(rng.choice(["float16", "another"]))


# 10.5 saved_bytes


class Data:
    """A storage, as chapter 01 has it: flat memory."""

    def __init__(self, data):
        self.data, self.version = data, 0


class Node:
    """A node of a graph, as chapter 02 has it."""

    is_operation = True

    def __init__(self):
        self.targets, self.kept = [], []


class Leaf:
    is_operation = False
    targets = ()

    def __init__(self, storage):
        self.storage = storage


def probe_memory(target, arrays, framework):
    storages = [
        Data(np.zeros(size, name))
        for size, name in zip(arrays["sizes"].tolist(), arrays["dtypes"].tolist(), strict=True)
    ]
    nodes = [Node() for _ in range(int(arrays["nodes"]))]
    for node, storage, count in arrays["saves"].tolist():
        memory = storages[storage]
        nodes[node].kept.append(None if count < 0 else (memory.data[:count], memory, 0))
    for node, to in arrays["edges"].tolist():
        nodes[node].targets.append(None if to < 0 else nodes[to])
    for node, storage in arrays["leaves"].tolist():
        nodes[node].targets.append(Leaf(storages[storage]))
    names = ("float16", "float32", "float64")
    title = "bytes of " + ", ".join(names)
    counted = target(nodes[0])
    if not isinstance(counted, dict):
        return {title: counted}
    return {
        title: np.array([int(counted.get(name, 0)) for name in names]),
        "dtypes in the answer": np.array(len(counted)),
    }


def inputs_memory(rng, sizes, dtypes, saves, edges, leaves=(), chain=0):
    """`saves` has (node, storage, elements), -1 elements for None; `edges` (node, target), -1 for None; `leaves` (node,
    storage). A chain of so many nodes hangs on node 0, the last of which saves storage 0."""
    count = 1 + max([node for node, *_ in saves] + [n for edge in edges for n in edge] + [node for node, _ in leaves])
    edges, saves = list(edges), list(saves)
    if chain:
        ends = [0, *range(count, count + chain)]
        edges += list(pairwise(ends))
        saves.append((ends[-1], 0, sizes[0]))
        count += chain
    return {
        "sizes": np.array(sizes, dtype=np.int64),
        "dtypes": np.array(dtypes, dtype="U10"),
        "nodes": np.array(count),
        "saves": np.array(saves, dtype=np.int64).reshape(-1, 3),
        "edges": np.array(edges, dtype=np.int64).reshape(-1, 2),
        "leaves": np.array(leaves, dtype=np.int64).reshape(-1, 2),
    }


def draw_memory(rng):
    count, storages = int(rng.integers(2, 6)), int(rng.integers(3, 7))
    sizes = rng.integers(2, 50, storages).tolist()
    dtypes = rng.choice(["float16", "float32"], storages).tolist()
    places = [int(rng.integers(0, storages)) for _ in range(2 * count)]
    saves = [(i // 2, place, int(rng.integers(1, sizes[place] + 1))) for i, place in enumerate(places)]
    edges = [(i, i + 1) for i in range(count - 1)] + [(0, count - 1), (0, -1)]
    return sizes, dtypes, saves, edges, [(count - 1, int(rng.integers(0, storages)))]
