# %% [markdown]
# # 02 Autodiff

# %%
import matplotlib.pyplot as plt

import gradwright
from autograder import check

gradwright.chapter(2)

# %% given="imports"
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any, ClassVar, Self

import numpy as np

from gradwright.chapters import tensor as plain


# %% exercise="autodiff-numerical"
def numerical_gradient(f: Callable[[np.ndarray], float], x: np.ndarray, step: float = 6e-6) -> np.ndarray:
    """The gradient of f at x by central differences, one element at a time.

    f        takes an array of x's shape and returns a number
    x        a float64 array of any shape; it is left as it was
    step     how far each element moves, to either side
    returns  an array of x's shape: how fast f grows with each element

    >>> numerical_gradient(lambda x: (x**2).sum(), np.array([1.0, 3.0])).round(6)
    array([2., 6.])

    PyTorch: what torch.autograd.gradcheck does inside
    """
    ### BEGIN SOLUTION
    gradient = np.empty_like(x)
    for place in np.ndindex(x.shape):
        above, below = x.copy(), x.copy()
        above[place] += step
        below[place] -= step
        gradient[place] = (f(above) - f(below)) / (2 * step)
    return gradient
    ### END SOLUTION


# %% check="autodiff-numerical"
check("autodiff-numerical", numerical_gradient)


# %% given="operation"
class Operation:
    """What is done to tensors, with its gradient. An instance is one use of it, a node of the graph.

    A subclass `class Exp(Operation, of=plain.exp)` says which function of chapter 01 it stands for. It writes
        forward(*tensors, **options)   the function itself, where backward needs something saved; else leave it out
        backward(grad)                 the gradient of each input, as new arrays or views; a tuple if there are several
    Both call functions of chapter 01 and NumPy, never methods of tensors, which would be recorded once more.
    """

    targets: Sequence[Any] = ()  # where each input's gradient goes: the operation that made it, a leaf, or None
    grad_like: tuple | None = None  # shape and dtype of the output, and so of the gradient that arrives
    kept: list[tuple | None] | tuple[()] = ()
    hooks: Any = None
    is_operation = True
    function: ClassVar[Callable]

    def __init_subclass__(cls, of: Callable | None = None):
        if of is not None:
            cls.function = staticmethod(of)
            OPERATIONS[of] = cls

    def forward(self, *inputs: Any, **options: Any) -> Any:
        return self.function(*inputs, **options)

    def save(self, *tensors: Any) -> None:
        """Keep what backward needs and no more: this is the memory that training costs. None is kept as None."""
        self.kept = kept = []
        for t in tensors:
            kept.append(None if t is None else (t.array, t.storage, t.storage.version))

    def copy_saved(self, storage: plain.Storage) -> None:
        """Copy what was saved from a storage that is about to be changed by this same operation."""
        for i, kept in enumerate(self.kept):
            if kept is not None and kept[1] is storage:
                array = kept[0].copy()
                self.kept[i] = array, plain.Storage(array), 0

    @property
    def saved(self) -> list[np.ndarray | None]:
        """The arrays of what was saved, in the same order."""
        arrays = []
        for kept in self.kept:
            arrays.append(unpack(kept))
        return arrays

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each input, whether its gradient is wanted."""
        return tuple([target is not None for target in self.targets])

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the input, where there is only one."""
        return self.targets[0].grad_like[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


OPERATIONS: dict[Callable, type[Operation]] = {}


def unpack(kept: tuple | None) -> np.ndarray | None:
    """The array of a saved value. Exercise 2.10 will put something more careful in the place of this function."""
    return None if kept is None else kept[0]


# %% given="add"
class Add(Operation, of=plain.add):
    """a + b. Each input moves the output as far as it moves itself: the gradient passes through."""

    def backward(self, grad: np.ndarray) -> tuple:
        return grad, grad


# %% exercise="autodiff-multiply"
class Multiply(Operation, of=plain.multiply):
    """a * b, element by element."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        """The product; saves what backward will need.

        a, b     tensors that broadcast; `requires_grad` says whether anybody wants the gradient of one
        returns  plain.multiply(a, b)
        """
        ### BEGIN SOLUTION
        self.save(a if b.requires_grad else None, b if a.requires_grad else None)
        return plain.multiply(a, b)
        ### END SOLUTION

    def backward(self, grad: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The gradients of a and b, in the shape of grad, from that of the output; None where it is not wanted."""
        ### BEGIN SOLUTION
        a, b = self.saved
        return None if b is None else grad * b, None if a is None else grad * a
        ### END SOLUTION


# %% check="autodiff-multiply"
check("autodiff-multiply", Multiply)


# %% exercise="autodiff-unbroadcast"
def unbroadcast(grad: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The gradient of an input that was broadcast, from the gradient of what it was broadcast to.

    grad     an array, in the shape of the output, say (2, 3, 4)
    shape    of the input, which broadcasts to grad.shape, say (3, 1)
    returns  an array of exactly this shape, of grad's dtype

    >>> unbroadcast(np.ones((2, 3, 4)), (3, 1)).tolist()
    [[8.0], [8.0], [8.0]]

    PyTorch: Tensor.sum_to_size
    """
    ### BEGIN SOLUTION
    added = grad.ndim - len(shape)
    if added:
        grad = np.add.reduce(grad, axis=tuple(range(added)))
    if grad.shape == shape:
        return grad
    return np.add.reduce(grad, axis=tuple([axis for axis, size in enumerate(shape) if size == 1]), keepdims=True)
    ### END SOLUTION


# %% check="autodiff-unbroadcast"
check("autodiff-unbroadcast", unbroadcast)


# %% exercise="autodiff-matmul"
def matmul_gradients(
    grad: np.ndarray, a: np.ndarray | None, b: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The gradients of a and b, from that of a @ b.

    grad     shape (n, m)
    a        shape (n, k); None where the gradient of b is not wanted
    b        shape (k, m); None where the gradient of a is not wanted
    returns  two arrays in the shapes of a and b, or None in place of one that is not wanted

    All three may be stacks of matrices, of shape (..., n, m) and so on: the transpose of a stack is `.mT`.

    >>> matmul_gradients(np.array([[1.0, 10.0]]), np.array([[2.0]]), np.array([[3.0, 4.0]]))
    (array([[43.]]), array([[ 2., 20.]]))

    PyTorch: what torch.matmul computes on its way back
    """
    ### BEGIN SOLUTION
    return None if b is None else grad @ b.mT, None if a is None else a.mT @ grad
    ### END SOLUTION


# %% check="autodiff-matmul"
check("autodiff-matmul", matmul_gradients)


# %% given="matmul"
class MatMul(Operation, of=plain.matmul):
    """a @ b. Where b is one matrix, all the rows of all the matrices in a make one large product, as in chapter 01."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        self.save(a if b.requires_grad else None, b if a.requires_grad else None)
        self.stacked = a.shape if b.ndim == 2 < a.ndim else None
        return plain.matmul(a, b)

    def backward(self, grad: np.ndarray) -> tuple:
        a, b = self.saved
        if 0 in grad.strides:
            grad = grad.copy()  # comes from a sum, and BLAS reads no stride of 0
        if self.stacked is None:
            return matmul_gradients(grad, a, b)
        rows = grad.reshape(-1, grad.shape[-1])
        grad_a, grad_b = matmul_gradients(rows, None if a is None else a.reshape(len(rows), a.shape[-1]), b)
        return None if grad_a is None else grad_a.reshape(self.stacked), grad_b


class Sum(Operation, of=plain.sum_over):
    """Sums along axes. One sum read many elements: its gradient is read into all of their places."""

    def forward(self, t: plain.Tensor, dim: Any = None, keepdim: bool = False) -> plain.Tensor:
        self.dims = plain.dims_of(dim, t.ndim)
        return plain.sum_over(t, dim, keepdim)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return spread(grad, self.input_shape, self.dims)


def spread(grad: np.ndarray, shape: tuple[int, ...], dims: tuple[int, ...]) -> np.ndarray:
    """The gradient of a reduction over `dims`, read into every place of `shape`: stride 0, nothing is copied."""
    grad = grad.reshape([1 if axis in dims else size for axis, size in enumerate(shape)])
    return plain.broadcast_to(plain.Tensor(grad), shape).array


# %% given="state"
class State(threading.local):
    """What holds at the door, for each thread by itself.

    now  whether operations are recorded, and the modes at the door, outermost first: one tuple, since every operation
         asks, and a look into a thread's own memory takes as long as the addition of two numbers
    """

    def __init__(self) -> None:
        self.now: tuple[bool, tuple[Mode, ...]] = True, ()

    @property
    def enabled(self) -> bool:
        return self.now[0]

    @enabled.setter
    def enabled(self, flag: bool) -> None:
        self.now = flag, self.now[1]


state = State()


class Mode:
    """Stands at the door for the length of a with block. Later chapters watch, time and convert from here.

    A subclass overrides forward or backward, or both, and hands on what it is given, or something else in its place.
    """

    def __enter__(self) -> Self:
        enabled, modes = state.now
        state.now = enabled, (*modes, self)
        return self

    def __exit__(self, *exception: object) -> None:
        enabled, modes = state.now
        state.now = enabled, modes[:-1]

    def forward(self, function: Callable, inputs: tuple, options: dict) -> Any:
        return Tensor.apply(function, *inputs, **options)

    def backward(self, operation: Operation, grad: np.ndarray) -> Any:
        return run(operation, grad)


def ask_mode(step: str, *arguments: Any) -> Any:
    """Let the innermost mode do a step. While it does, those outside it stand at the door."""
    enabled, modes = state.now
    state.now = enabled, modes[:-1]
    try:
        return getattr(modes[-1], step)(*arguments)
    finally:
        state.now = enabled, modes


# %% given="record"
NOT_DIFFERENTIABLE = {
    *(plain.equal, plain.not_equal, plain.less, plain.less_equal, plain.greater, plain.greater_equal),
    *(plain.bitwise_and, plain.bitwise_or, plain.bitwise_not, plain.all_over, plain.any_over),
    *(plain.argmax, plain.argmin),
}
"""Functions whose output does not move when the input does, or is no real number. Every other has an Operation."""


def record(function: Callable, inputs: tuple, options: dict, targets: list) -> Any:
    """function(*inputs, **options), with its Operation as the node behind the result."""
    kind = OPERATIONS.get(function) or getattr(function, "operation", None)
    if kind is None:
        if function in NOT_DIFFERENTIABLE:
            return function(*inputs, **options)
        name = function.__name__
        raise NotImplementedError(
            f"{name} has no gradient yet: write class {name.title().replace('_', '')}(Operation, of={name}), "
            f"or call it under no_grad()"
        )
    operation = kind()
    operation.targets = targets
    out = operation.forward(*inputs, **options)
    dtype = out.dtype
    if dtype.kind == "f":
        operation.grad_like = out.shape, dtype
        out._requires_grad, out._grad_fn = True, operation
    return out


# %% given="gradients"
class Gradients:
    """What chapter 02 adds to a tensor: whether it wants a gradient, where it came from, and the way back."""

    _requires_grad = False
    _grad: Any = None
    _grad_fn: Operation | None = None
    hooks: Any = None
    targets = ()
    grad_like: tuple | None = None
    is_operation = False

    @staticmethod
    def apply(function: Callable, *inputs: Any, **options: Any) -> Any:
        """The door of chapter 01: the function is carried out as before, and now also recorded."""
        enabled, modes = state.now
        if modes:
            return ask_mode("forward", function, inputs, options)
        if enabled:
            targets, needed = [], False
            for x in inputs:
                target = None
                if isinstance(x, Tensor):
                    if x._base is not None:
                        x.refresh()
                    if x._requires_grad:
                        target, needed = x._grad_fn or x, True
                targets.append(target)
            if needed:
                return record(function, inputs, options, targets)
        return function(*inputs, **options)

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded. Set it on leaves of floats alone."""
        if self._base is not None:
            self.refresh()
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if not self.is_leaf:
            if not flag:
                raise RuntimeError("requires_grad can be switched off on leaves only: detach() cuts a tensor off")
            return
        if flag and self.dtype.kind != "f":
            raise RuntimeError(f"only floats can require a gradient, and this tensor holds {self.dtype}")
        self._requires_grad, self.grad_like = bool(flag), (self.shape, self.dtype)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        self.requires_grad = requires_grad
        return self

    @property
    def grad_fn(self) -> Operation | None:
        """The operation that made this tensor; None for a leaf."""
        if self._base is not None:
            self.refresh()
        return self._grad_fn

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor."""
        return self.grad_fn is None

    @property
    def node(self) -> Any:
        """Where this tensor's gradient is sent: to its operation, or to itself if it is a leaf."""
        return self.grad_fn or self

    @property
    def grad(self) -> Self | None:
        """The gradient that backward has left here, or None. Leaves have one, and tensors after retain_grad()."""
        return self._grad

    @grad.setter
    def grad(self, grad: Self | None) -> None:
        if grad is not None and (grad.shape, grad.dtype) != (self.shape, self.dtype):
            raise RuntimeError(
                f"the gradient of a tensor of shape {self.shape} and dtype {self.dtype} cannot be one of shape "
                f"{grad.shape} and dtype {grad.dtype}"
            )
        self._grad = grad

    def backward(self, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Add the gradient of this tensor to .grad of every leaf that it depends on.

        gradient      where to begin, in this tensor's shape; a tensor of one element begins at 1 by itself
        retain_graph  keep what was saved, so that the same graph can be walked once more
        raises        RuntimeError where nothing requires a gradient, `gradient` is missing or does not fit, a saved
                      tensor was changed in place, or the graph was freed by an earlier backward
        """
        run_backward([self], [gradient], retain_graph, create_graph)

    def accumulate(self, grad: np.ndarray) -> None:
        """Add an array to .grad. It must be ours alone, for the first one is kept without a copy."""
        if self._grad is None:
            self._grad = self.new(grad)
        else:
            self._grad.storage.version += 1
            np.add(self._grad.array, grad, out=self._grad.array)

    def detach(self) -> Self:
        """A tensor on the same storage that no gradient passes through."""
        return plain.Tensor.see(self, self.shape, self.strides, self.offset)

    def detach_(self) -> Self:
        """Cut this tensor off from what it was made of."""
        if self._base is not None:
            raise RuntimeError("a view cannot be cut off from what it is a view of: use detach()")
        self._grad_fn, self._requires_grad = None, False
        return self

    def register_hook(self, hook: Callable[[Any], Any]) -> "RemovableHandle":
        """Call hook(grad) with this tensor's whole gradient in each backward. What it returns, if anything, goes on."""
        return RemovableHandle(self.watch().functions, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this tensor in .grad, though it is not a leaf."""
        if not self.is_leaf:
            self._retains = self.watch()
            self._retains.keeper = weakref.ref(self)  # a strong reference would close a circle

    _retains: Any = None

    def watch(self) -> "Hooks":
        if not self.requires_grad:
            raise RuntimeError("this tensor requires no gradient, so none will pass here: set requires_grad first")
        node = self.node
        if node.hooks is None:
            node.hooks = Hooks(self.new(np.empty(0, self.dtype)))
        return node.hooks

    def numpy(self) -> np.ndarray:
        """A NumPy array on the same memory. NumPy's writes would go unseen, so first cut the tensor off."""
        if self.requires_grad:
            raise RuntimeError("this tensor requires a gradient, which NumPy does not know of: use detach().numpy()")
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype, copy=copy)

    def __deepcopy__(self, memo: dict) -> Self:
        if not self.is_leaf:
            raise RuntimeError("only a leaf can be copied deeply, since a graph cannot: use detach().clone()")
        twin = memo[id(self)] = object.__new__(type(self))
        vars(twin).update(vars(self.detach().clone()), grad_like=self.grad_like, _requires_grad=self._requires_grad)
        if self._grad is not None:
            twin._grad = self._grad.detach().clone()
        return twin

    def __repr__(self) -> str:
        note = f", grad_fn={self.grad_fn}" if self.grad_fn else ", requires_grad=True" if self.requires_grad else ""
        return f"{super().__repr__()[:-1]}{note})"


# %% given="in-place"
class Writes:
    """In-place changes. Each is recorded if a gradient may pass, and counted in the storage's version."""

    _base: Any = None  # what this tensor is a view of; None if it is no view
    _writes = 0  # how many recorded changes this storage has seen, counted at the base
    _seen = 0  # and how many there were when a view's own grad_fn was made

    def see(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> Self:
        view = plain.Tensor.see(self, shape, strides, offset)
        view._base = base = self if self._base is None else self._base
        view._seen = base._writes
        return view

    def refresh(self) -> None:
        """Bring a view's history up to date, after its base was changed through another tensor."""
        base = self._base
        if self._seen != base._writes:
            self._seen = base._writes
            self.follow(Window.between(base, self))

    def follow(self, operation: Operation) -> None:
        """From now on, this tensor is what `operation` made."""
        retained = self._retains
        self._requires_grad, self._grad_fn = True, operation
        if retained is not None:
            retained.keeper = None
            self.retain_grad()

    def write(self, function: Callable, ufunc: Callable, other: Any) -> Self:
        """self becomes function(self, other); where nothing is recorded, `ufunc` does it without a second array."""
        if not isinstance(other, plain.Strided):
            other = self.new(np.asarray(other, plain.number_dtype(self.dtype, other)))
        self.refuse_write(other)
        if state.enabled and (self.requires_grad or other.requires_grad):
            base = self if self._base is None else self._base
            if base.requires_grad and base.is_leaf:
                what = "a leaf that requires" if base is self else "a view of a leaf that requires"
                raise RuntimeError(f"{what} a gradient cannot be changed in place: write x = x + y, or use no_grad()")
            result = self.apply(function, self, other)
            result._grad_fn.copy_saved(self.storage)
            np.copyto(self.array, result.array, casting="same_kind")
            self.follow(result._grad_fn)
            if base is not self:
                base.follow(Patch.between(base, self))
            base._writes += 1
        else:
            ufunc(self.array, other.array, out=self.array, casting="same_kind")
        self.storage.version += 1
        return self

    def refuse_write(self, other: plain.Tensor) -> None:
        if plain.remember(plain.broadcast_shape, self.shape, other.shape) != self.shape:
            raise ValueError(f"shape {other.shape} does not fit into {self.shape}, which cannot grow in place")
        if any(stride == 0 and size > 1 for size, stride in zip(self.shape, self.strides, strict=True)):
            strides = f"shape {self.shape} and strides {self.strides}"
            raise RuntimeError(f"{strides} name one place in memory more than once: clone() before you write")
        if plain.CATEGORY[other.dtype.kind] > plain.CATEGORY[self.dtype.kind]:
            raise RuntimeError(f"a {self.dtype} tensor cannot hold {other.dtype} numbers: convert one of them first")

    def add_(self, other: Any, *, alpha: float = 1) -> Self:
        return self.write(plain.add, np.add, other if alpha == 1 else other * alpha)

    def sub_(self, other: Any, *, alpha: float = 1) -> Self:
        return self.write(plain.subtract, np.subtract, other if alpha == 1 else other * alpha)

    def mul_(self, other: Any) -> Self:
        return self.write(plain.multiply, np.multiply, other)

    def div_(self, other: Any) -> Self:
        return self.write(plain.divide, np.divide, other)

    def copy_(self, source: Any) -> Self:
        """Every element becomes that of `source`, which may broadcast and may have another dtype."""
        return self.write(overwrite, put, source.to(self.dtype) if isinstance(source, plain.Strided) else source)

    def fill_(self, value: Any) -> Self:
        return self.copy_(value)

    def zero_(self) -> Self:
        return self.copy_(0)

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self[key]
        geometry = part.storage, part.shape, part.strides, part.offset
        if isinstance(value, Tensor) and (value.storage, value.shape, value.strides, value.offset) == geometry:
            return  # the second half of x[key] += y, which has changed x already
        part.copy_(value)

    __iadd__, __isub__, __imul__, __itruediv__ = add_, sub_, mul_, div_
    requires_grad: bool


def overwrite(t: plain.Tensor, source: plain.Tensor) -> plain.Tensor:
    """What copy_ leaves in t: source, in t's shape and dtype."""
    return t.new(plain.broadcast_to(source, t.shape).array)


def put(old: np.ndarray, new: np.ndarray, out: np.ndarray, casting: str) -> None:
    np.copyto(out, new, casting)


# %% given="tensor"
class Tensor(Gradients, Writes, plain.Tensor):
    """The tensor of chapter 01 with a memory of where it came from."""

    @classmethod
    def leaf(cls, array: np.ndarray, requires_grad: bool = False) -> Self:
        """A tensor on the memory of `array`, for the makers."""
        return cls(array).requires_grad_(requires_grad)


# %% exercise="autodiff-recursion"
def backward_by_recursion(node: Any, grad: np.ndarray, visit: Callable) -> None:
    """Send a gradient from a node to everything that it depends on, along every path.

    node     where to begin
    grad     the gradient of its output
    visit    visit(node, grad) does the work at one node, and returns a list of pairs (target, gradient): where to go
             next, and with what. The list is empty at a leaf.

    PyTorch: no such function, for the reasons below
    """
    ### BEGIN SOLUTION
    for target, g in visit(node, grad):
        backward_by_recursion(target, g, visit)
    ### END SOLUTION


# %% check="autodiff-recursion"
check("autodiff-recursion", backward_by_recursion)


# %% exercise="autodiff-arrivals"
def count_arrivals(root: Any) -> dict[Any, int]:
    """How many gradients each node will get in a walk from root, before it may pass on their sum.

    root     a node; node.targets says where its gradients go: to other nodes, or None, which is nowhere
    returns  a number for every node that can be reached, root included, which gets none from others

    PyTorch: the `dependencies` of its engine
    """
    ### BEGIN SOLUTION
    arrivals, unseen = {root: 0}, [root]
    while unseen:
        for target in unseen.pop().targets:
            if target is None:
                continue
            if target in arrivals:
                arrivals[target] += 1
            else:
                arrivals[target] = 1
                unseen.append(target)
    return arrivals
    ### END SOLUTION


# %% check="autodiff-arrivals"
check("autodiff-arrivals", count_arrivals)


# %% exercise="autodiff-walk"
def walk(root: Any, grad: np.ndarray, visit: Callable) -> None:
    """Send a gradient from root to everything that it depends on, visiting each node once.

    root     where to begin
    grad     the gradient of its output
    visit    visit(node, grad) does the work at one node, and returns a list of pairs (target, gradient). It is called
             once for each node, with the sum of all gradients that the node gets.

    PyTorch: Engine::evaluate_function
    """
    ### BEGIN SOLUTION
    waiting = count_arrivals(root)
    arrived, ready = {root: grad}, [root]
    while ready:
        node = ready.pop()
        for target, g in visit(node, arrived.pop(node)):
            arrived[target] = arrived[target] + g if target in arrived else g
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    ### END SOLUTION


# %% check="autodiff-walk"
check("autodiff-walk", walk)


# %% given="visit"
def run(operation: Operation, grad: np.ndarray) -> Any:
    """operation.backward(grad), past whoever stands at the door."""
    return ask_mode("backward", operation, grad) if state.now[1] else operation.backward(grad)


def send(operation: Operation, grad: np.ndarray, results: Any) -> list[tuple]:
    """The gradients of an operation's inputs, each with the node that it goes to, fitted to what that node takes."""
    if type(results) is not tuple:
        results = (results,)
    if len(results) != len(operation.targets):
        raise RuntimeError(f"{operation}: backward gave {len(results)} gradients for {len(operation.targets)} inputs")
    pairs = []
    for target, g in zip(operation.targets, results):  # noqa: B905, the lengths are equal
        if target is None:
            continue
        shape, dtype = target.grad_like
        if type(g) is not np.ndarray or g.shape != shape or g.dtype is not dtype:
            g = fit(operation, g, shape, dtype)
        if not target.is_operation and not is_new(g, grad, operation, results):
            g = g.copy()  # a leaf keeps its gradient and will add to it
        pairs.append((target, g))
    return pairs


def fit(operation: Operation, g: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A gradient as its node takes it: summed where the input was broadcast, in the input's dtype, zeros for None."""
    if g is None:
        return np.zeros(shape, dtype)
    g = np.asarray(g)
    fitted = g if g.shape == shape else unbroadcast(g, shape) if g.ndim >= len(shape) else g
    if fitted.shape != shape:
        raise RuntimeError(f"{operation}: backward gave a gradient of shape {g.shape} to an input of shape {shape}")
    return fitted if fitted.dtype is dtype else fitted.astype(dtype)


def is_new(g: np.ndarray, grad: np.ndarray, operation: Operation, results: tuple) -> bool:
    """Whether this backward made g for one input alone: it was not handed through, is no view, not saved, not twice."""
    if g is grad or g.base is not None:
        return False
    for kept in operation.kept:
        if kept is not None and kept[0] is g:
            return False
    uses = 0
    for result in results:
        uses += result is g
    return uses < 2


# %% given="backward"
accumulating = threading.Lock()


class Root(Operation):
    """Where a walk begins: its inputs are the tensors that backward was called on."""

    def __init__(self, outputs: Sequence[Any], gradients: Sequence[Any]):
        self.targets = [t.node for t in outputs]
        self.gradients = tuple([seed(t, gradient) for t, gradient in zip(outputs, gradients, strict=True)])

    def backward(self, grad: None) -> tuple:
        return self.gradients


def seed(t: Any, gradient: Any) -> np.ndarray:
    """Where backward begins at t."""
    if not t.requires_grad:
        raise RuntimeError("no gradient can begin here: the tensor requires none and was not made of any that does")
    if gradient is None:
        if t.numel() != 1:
            raise RuntimeError(f"backward from shape {t.shape} needs a gradient of that shape: or take sum() first")
        return np.ones(t.shape, t.dtype)
    if gradient.shape != t.shape:
        raise RuntimeError(f"the gradient has shape {gradient.shape}, and the tensor that it is for {t.shape}")
    return gradient.array.astype(t.dtype)


def run_backward(
    outputs: Sequence[Any], gradients: Sequence[Any], retain_graph: bool, create_graph: bool, wanted: dict | None = None
) -> None:
    """Walk back from the outputs. Leaves accumulate; with `wanted`, its nodes get their gradients noted instead.

    Leaves are changed at the end, all together: an error on the way leaves every .grad as it was.
    """
    if create_graph:
        raise NotImplementedError("create_graph=True: gradients of gradients are not offered here")

    leaves: list[tuple[Any, np.ndarray]] = []
    watched = bool(state.now[1])

    def visit(node: Any, grad: np.ndarray) -> list[tuple]:
        if node.hooks is not None:
            grad = node.hooks.run(grad)
        if wanted is not None and node in wanted:
            wanted[node] = grad
        if node.is_operation:
            pairs = send(node, grad, run(node, grad) if watched else node.backward(grad))
            if not retain_graph:
                node.targets, node.kept, node.backward = (), (), freed
            return pairs
        leaves.append((node, grad))
        return []

    walk(Root(outputs, gradients), None, visit)
    if wanted is None:
        with accumulating:
            for leaf, grad in leaves:
                leaf.accumulate(grad)


def freed(grad: np.ndarray) -> None:
    raise RuntimeError("an earlier backward has freed this graph: give it retain_graph=True to walk twice")


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool = False,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple:
    """The gradients of the outputs' sum with respect to the inputs, which are not left in anybody's .grad.

    outputs, inputs  a tensor or a sequence of tensors; an input may be a leaf or anything in between
    grad_outputs     where to begin, one for each output; may be left out for outputs of one element
    allow_unused     give None for an input that no output depends on, where otherwise RuntimeError is raised
    """
    outputs, inputs = as_list(outputs), as_list(inputs)
    begins = [None] * len(outputs) if grad_outputs is None else as_list(grad_outputs)
    if not all(t.requires_grad for t in inputs):
        raise RuntimeError("one of the inputs requires no gradient: set requires_grad before it is used")
    wanted = dict.fromkeys([t.node for t in inputs])
    run_backward(outputs, begins, retain_graph, create_graph, wanted)
    found = [wanted[t.node] for t in inputs]
    if not allow_unused and any(array is None for array in found):
        raise RuntimeError("no output depends on one of the inputs: allow_unused=True gives None for it")
    return tuple([None if array is None else t.new(array.copy()) for t, array in zip(inputs, found, strict=True)])


def as_list(tensors: Any) -> list:
    return [tensors] if isinstance(tensors, plain.Strided) else list(tensors)


# %% exercise="autodiff-parts"
def backward_in_parts(loss_of: Callable, parts: Sequence[np.ndarray]) -> float:
    """Leave the gradient of the mean loss over all examples, though only one part of them is in memory at a time.

    loss_of  loss_of(part) is the mean loss of one part's examples: a tensor of one element
    parts    arrays of examples, one example a row; they need not be equally long
    returns  the mean loss over all examples, as a Python float

    backward is called once for each part, before the next part's loss is computed.

    PyTorch: no such function; "gradient accumulation" is written out in the training loop
    """
    ### BEGIN SOLUTION
    total = sum(len(part) for part in parts)
    mean = 0.0
    for part in parts:
        loss = loss_of(part) * (len(part) / total)
        loss.backward()
        mean += loss.item()
    return mean
    ### END SOLUTION


# %% check="autodiff-parts"
check("autodiff-parts", backward_in_parts)


# %% exercise="autodiff-switch"
class Switch(ContextDecorator):
    """Sets state.enabled to a value for the length of a with block, or of each call to a decorated function."""

    def __init__(self, state: Any, value: bool):
        """state   an object with an attribute `enabled`, which stays as it is until the block begins
        value   what to set it to
        """
        ### BEGIN SOLUTION
        self.state, self.value = state, value
        self.before: list[bool] = []
        ### END SOLUTION

    def __enter__(self) -> None:
        """Remember what state.enabled is, and set it. The same object may be entered again before it is left."""
        ### BEGIN SOLUTION
        self.before.append(self.state.enabled)
        self.state.enabled = self.value
        ### END SOLUTION

    def __exit__(self, *exception: object) -> None:
        """Make state.enabled what it was at the matching __enter__. An exception goes on."""
        ### BEGIN SOLUTION
        self.state.enabled = self.before.pop()
        ### END SOLUTION


# %% check="autodiff-switch"
check("autodiff-switch", Switch)


# %% given="switches"
class no_grad(Switch):
    """Nothing is recorded in a `with no_grad():` block, or in a function below `@no_grad()`."""

    def __init__(self) -> None:
        super().__init__(state, False)


class enable_grad(Switch):
    """Operations are recorded again, inside a no_grad."""

    def __init__(self) -> None:
        super().__init__(state, True)


class set_grad_enabled(Switch):
    """Records or not, as `mode` says: from the call on, or for a with block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(state, bool(mode))
        self.undo, state.enabled = state.enabled, self.value

    def __enter__(self) -> None:
        self.begin_later()
        super().__enter__()

    def __call__(self, function: Callable) -> Callable:
        self.begin_later()
        return super().__call__(function)

    def begin_later(self) -> None:
        """Take back what the call itself has set: a block or a function follows that it is meant for."""
        if self.undo is not None:
            state.enabled, self.undo = self.undo, None


def is_grad_enabled() -> bool:
    """Whether operations are recorded, in this thread."""
    return state.enabled


# %% exercise="autodiff-unpack"
def unpack(kept: tuple[np.ndarray, Any, int] | None) -> np.ndarray | None:
    """The array of a saved value, provided that nothing was written to its storage since.

    kept     what Operation.save has kept: the array, its storage, and storage.version at that time; or None
    returns  the array; None for None
    raises   RuntimeError where the storage's version is another now; let it name both

    PyTorch: SavedVariable::unpack
    """
    ### BEGIN SOLUTION
    if kept is None:
        return None
    array, storage, version = kept
    if storage.version != version:
        raise RuntimeError(
            f"a tensor that backward needs was changed in place: it was saved at version {version}, "
            f"and its storage is at version {storage.version}; clone() it before the change"
        )
    return array
    ### END SOLUTION


# %% check="autodiff-unpack"
check("autodiff-unpack", unpack)


# %% given="windows"
class Overwrite(Operation, of=overwrite):
    """copy_: the old elements no longer matter, the new ones are those of the source."""

    def backward(self, grad: np.ndarray) -> tuple:
        return None, grad


class Placed(Operation):
    """An operation between a tensor and a view of it, which knows where the view lies."""

    def __init__(self, base: Tensor, view: Tensor, inputs: tuple[Tensor, ...], output: Tensor):
        if not base.is_contiguous():
            raise NotImplementedError("a view of a detached part was changed in place: clone() the part first")
        self.place = view.shape, view.strides, view.offset - base.offset
        self.targets = [t.node if t.requires_grad else None for t in inputs]
        self.shape, self.grad_like = base.shape, (output.shape, output.dtype)


class Window(Placed):
    """A view, seen from its base: the view's gradient goes where the view lies, and 0 everywhere else."""

    @classmethod
    def between(cls, base: Tensor, view: Tensor) -> Self:
        return cls(base, view, (base,), view)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (shape, strides, offset), whole = self.place, np.zeros(self.shape, grad.dtype)
        once = tuple([1 if stride == 0 else size for size, stride in zip(shape, strides, strict=True)])
        part(whole, once, strides, offset)[...] = unbroadcast(grad, once)
        return whole


class Patch(Placed):
    """A base after a write through a view: where the view lies its gradient is the view's, elsewhere the old base's."""

    @classmethod
    def between(cls, base: Tensor, view: Tensor) -> Self:
        return cls(base, view, (base, view), base)

    def backward(self, grad: np.ndarray) -> tuple:
        rest = grad.copy("C")
        hole = part(rest, *self.place)
        inner = hole.copy()
        hole[...] = 0
        return rest, inner


def part(array: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> np.ndarray:
    """Part of a row-major array, named as chapter 01 names a view."""
    if 0 in shape:
        return np.empty(shape, array.dtype)
    size = array.itemsize
    return np.ndarray(shape, array.dtype, array.ravel(), offset * size, [stride * size for stride in strides])


# %% exercise="autodiff-hooks"
def run_hooks(hooks: Sequence[Callable], grad: Any) -> Any:
    """The gradient after all hooks have seen it, in the order in which they were registered.

    hooks    functions of one gradient. One that returns None has only watched; what another returns takes the
             gradient's place, for the next hook and for everything after.
    grad     a tensor
    returns  the gradient that goes on

    PyTorch: what Tensor.register_hook asks for
    """
    ### BEGIN SOLUTION
    for hook in hooks:
        edited = hook(grad)
        if edited is not None:
            grad = edited
    return grad
    ### END SOLUTION


# %% check="autodiff-hooks"
check("autodiff-hooks", run_hooks)


# %% given="hooks"
class Hooks:
    """Who waits at one node for its gradient."""

    def __init__(self, like: Tensor):
        self.like = like  # an empty tensor of the class that hooks should be given
        self.functions: dict[object, Callable] = {}
        self.keeper: Callable[[], Tensor | None] | None = None

    def run(self, grad: np.ndarray) -> np.ndarray:
        """The gradient that goes on. Hooks get a copy, since others may hold the same array."""
        after = run_hooks(tuple(self.functions.values()), self.like.new(grad.copy())).array
        if after.shape != grad.shape:
            raise RuntimeError(f"a hook returned shape {after.shape} for a gradient of shape {grad.shape}")
        after = after.astype(grad.dtype)
        keeper = self.keeper and self.keeper()
        if keeper is not None:
            keeper.accumulate(after.copy())
        return after


class RemovableHandle:
    """What register_hook returns: remove() takes the hook away again."""

    def __init__(self, hooks: dict[object, Callable], hook: Callable):
        self.hooks, self.key = hooks, object()
        hooks[self.key] = hook

    def remove(self) -> None:
        self.hooks.pop(self.key, None)


# %% given="function"
class Context:
    """What forward leaves for backward in a custom Function: attributes of any name, and saved tensors."""

    needs_input_grad: tuple[bool, ...] = ()
    saved_tensors: tuple = ()
    to_save: tuple = ()
    constant = False

    def save_for_backward(self, *tensors: Any) -> None:
        self.to_save = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.constant = True


class Function:
    """A custom operation: subclass it with two static methods and call Name.apply(*inputs).

    forward(ctx, *inputs)   makes a tensor of tensors and other things; nothing in it is recorded
    backward(ctx, grad)     the gradient of each input, None where there is none; a tuple if there are several inputs
    """

    recipe: ClassVar[Callable]

    def __init_subclass__(cls) -> None:
        kind = type(cls.__name__, (Custom,), {"written": cls})

        def recipe(*inputs: Any) -> Any:
            return kind().forward(*inputs)

        recipe.__name__, recipe.operation = cls.__name__, kind
        cls.recipe = staticmethod(recipe)

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        return Tensor.apply(cls.recipe, *inputs)


class Custom(Operation):
    """The node of a custom Function."""

    written: ClassVar[type[Function]]

    def forward(self, *inputs: Any) -> Any:
        ctx = self.ctx = Context()
        ctx.needs_input_grad = self.needs_input_grad
        with no_grad():
            out = self.written.forward(ctx, *inputs)
        if not isinstance(out, Tensor):
            raise TypeError(f"{self}: forward returned {type(out).__name__}, and one tensor is wanted")
        if any(out is x for x in inputs) or out.requires_grad:
            out = out.detach()
        self.save(*ctx.to_save)
        self.like, ctx.to_save = out.new(np.empty(0)), ()
        return out

    def backward(self, grad: np.ndarray) -> tuple:
        self.ctx.saved_tensors = tuple([None if array is None else self.like.new(array) for array in self.saved])
        with no_grad():
            grads = self.written.backward(self.ctx, self.like.new(grad))
        self.ctx.saved_tensors = ()
        grads = grads if isinstance(grads, tuple) else (grads,)
        return tuple([g.array if isinstance(g, plain.Strided) else g for g in grads])


# %% exercise="autodiff-projection"
def project(
    f: Callable, vjp: Callable, x: np.ndarray, u: np.ndarray, v: np.ndarray, step: float = 6e-6
) -> tuple[float, float]:
    """One number that depends on the whole Jacobian J of f at x, u^T J v, found in two ways.

    f        takes an array of x's shape and returns an array
    vjp      vjp(x, u) is what backward claims: u^T J, an array of x's shape
    x        a float array; it is left as it was
    u        a direction in the space of outputs, in the shape of f(x)
    v        a direction in the space of inputs, in the shape of x
    returns  the numerical one, by moving x a step along v to either side, and the one that uses vjp; two floats
    raises   TypeError where x does not hold floats: whole numbers cannot move by a small step

    PyTorch: torch.autograd.gradcheck(..., fast_mode=True)
    """
    ### BEGIN SOLUTION
    if x.dtype.kind != "f":
        raise TypeError(f"x holds {x.dtype} numbers, which cannot move by {step}: give it floats")
    difference = (f(x + step * v) - f(x - step * v)) / (2 * step)
    return float((u * difference).sum()), float((vjp(x, u) * v).sum())
    ### END SOLUTION


# %% check="autodiff-projection"
check("autodiff-projection", project)


# %% given="gradcheck"
class GradcheckError(RuntimeError):
    """A gradient that is not what small steps say."""


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 6e-6,
    atol: float = 1e-6,
    rtol: float = 1e-5,
    raise_exception: bool = True,
) -> bool:
    """Whether backward agrees with central differences, for each input of func that requires a gradient.

    func    takes the inputs and returns a tensor
    inputs  a tensor or a sequence of tensors, of float64: float32 has too few digits for a small step
    raises  TypeError for inputs that do not hold float64, ValueError where none requires a gradient, and
            GradcheckError, which says where they differ; raise_exception=False returns False instead
    """
    inputs = as_list(inputs)
    places = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    if not places:
        raise ValueError("gradcheck has nothing to check: no input requires a gradient")
    for i in places:
        if inputs[i].dtype != plain.float64:
            raise TypeError(f"gradcheck needs float64 and input {i} holds {inputs[i].dtype}: use double()")
        found = difference(func, inputs, i, eps, atol, rtol)
        if found and raise_exception:
            raise GradcheckError(f"input {i}: {found}")
        if found:
            return False
    return True


def difference(func: Callable, inputs: list, i: int, eps: float, atol: float, rtol: float) -> str:
    """What is wrong with the gradient of input i, if anything."""

    def f(x: np.ndarray) -> np.ndarray:
        with no_grad():
            return func(*inputs[:i], tensor(x), *inputs[i + 1 :]).array

    def vjp(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        leaf = tensor(x, requires_grad=True)
        (gradient,) = grad(func(*inputs[:i], leaf, *inputs[i + 1 :]), leaf, tensor(u), allow_unused=True)
        return np.zeros_like(x) if gradient is None else gradient.array

    x, rng = inputs[i].array, np.random.default_rng(i)
    u, v = rng.standard_normal(f(x).shape), rng.standard_normal(x.shape)
    numerical, analytic = project(f, vjp, x, u, v, eps)
    if np.isclose(analytic, numerical, rtol, atol):
        return ""
    return f"backward gives {analytic:.9g} along a random direction, small steps give {numerical:.9g}"


# %% given="subtract"
class Subtract(Operation, of=plain.subtract):
    def backward(self, grad: np.ndarray) -> tuple:
        return grad, -grad if self.needs_input_grad[1] else None


class Negative(Operation, of=plain.negative):
    def backward(self, grad: np.ndarray) -> np.ndarray:
        return -grad


class Divide(Operation, of=plain.divide):
    """a / b. The gradient of b is -a / b**2 times what arrives."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        self.save(a if b.requires_grad else None, b)
        return plain.divide(a, b)

    def backward(self, grad: np.ndarray) -> tuple:
        a, b = self.saved
        quotient = grad / b
        return quotient, None if a is None else -quotient * (a / b)


class Power(Operation, of=plain.power):
    """a ** b. An exponent of 0 gives 1 everywhere, and so the gradient 0, at a = 0 too."""

    def forward(self, a: plain.Tensor, b: plain.Tensor) -> plain.Tensor:
        out = plain.power(a, b)
        self.save(a, b, out if b.requires_grad else None)
        return out

    def backward(self, grad: np.ndarray) -> tuple:
        a, b, out = self.saved
        to_a = to_b = None
        if self.needs_input_grad[0]:
            n = b if b.ndim else b.item()
            to_a = grad * (n * a ** (n - (n != 0)))
        if out is not None:
            with np.errstate(invalid="ignore"):
                to_b = grad * out * np.log(np.where((a == 0) & (b >= 0), 1, a))
        return to_a, to_b


class Exp(Operation, of=plain.exp):
    """Its own derivative: the output is all that backward needs."""

    def forward(self, t: plain.Tensor) -> plain.Tensor:
        out = plain.exp(t)
        self.save(out)
        return out

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (out,) = self.saved
        return grad * out


class Log(Operation, of=plain.log):
    def forward(self, t: plain.Tensor) -> plain.Tensor:
        self.save(t)
        return plain.log(t)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        (t,) = self.saved
        return grad / t


class Mean(Operation, of=plain.mean_over):
    def forward(self, t: plain.Tensor, dim: Any = None, keepdim: bool = False) -> plain.Tensor:
        self.dims = plain.dims_of(dim, t.ndim)
        return plain.mean_over(t, dim, keepdim)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        count = plain.prod([self.input_shape[dim] for dim in self.dims])
        return spread(grad / count, self.input_shape, self.dims)


# %% given="views"
class Permute(Operation, of=plain.permute):
    """The gradient of a view is laid out by the opposite view: here, every axis goes back to where it was."""

    def forward(self, t: plain.Tensor, dims: tuple[int, ...]) -> plain.Tensor:
        self.dims = dims
        return plain.permute(t, dims)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        back = [0] * grad.ndim
        for axis, dim in enumerate(self.dims):
            back[dim] = axis
        return grad.transpose(back)


class View(Operation, of=plain.view):
    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad.reshape(self.input_shape)


class Broadcast(Operation, of=plain.broadcast_to):
    """Read many times: `send` sums what comes back, as for every operation that broadcasts."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad


class Copy(Operation, of=plain.copy):
    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad


class Cast(Operation, of=plain.cast):
    """`send` turns the gradient back into the input's dtype."""

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad


class Index(Operation, of=plain.index):
    """Elements that were not taken get 0."""

    def forward(self, t: plain.Tensor, key: Any) -> plain.Tensor:
        self.key = key
        return plain.index(t, key)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        whole = np.zeros(self.input_shape, grad.dtype)
        whole[tuple(plain.expand_key(self.key, whole.ndim))] = grad
        return whole


# %% given="makers"
make = plain.Makers(Tensor.leaf)
tensor, from_numpy, empty, full = make.tensor, make.from_numpy, make.empty, make.full
zeros, ones, zeros_like, ones_like = make.zeros, make.ones, make.zeros_like, make.ones_like
eye, arange, linspace = make.eye, make.arange, make.linspace
rand, randn, randint, randperm = make.rand, make.randn, make.randint, make.randperm
