# %% [markdown]
# # 04 Layers

# %%
import matplotlib.pyplot as plt

import gradwright
from autograder import check

gradwright.chapter(4)

# %% given="imports"
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gradwright.chapters import autodiff, operations
from gradwright.chapters import tensor as plain
from gradwright.chapters.autodiff import Operation, RemovableHandle, no_grad, unbroadcast
from gradwright.chapters.operations import Tensor, ones, rand, randn, sum_along, tensor, zeros


# %% given="parameter"
class Parameter(Tensor):
    """A tensor that a module registers as soon as it is assigned to one of its attributes.

    Only leaves are parameters: what is calculated from one, or is a view of one, is a plain Tensor.
    """

    def __init__(self, data: Tensor, requires_grad: bool = True):
        """data  a tensor of floats, whose memory the parameter shares"""
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter takes a Tensor and got {type(data).__name__}: use tensor(...)")
        self.become(data)
        self.requires_grad_(requires_grad)

    def become(self, data: Tensor) -> None:
        """Take over another tensor's memory, shape and dtype. Whoever holds this parameter holds it still."""
        self.storage, self.dtype, self._array = data.storage, data.dtype, None
        self.shape, self.strides, self.offset = data.shape, data.strides, data.offset
        self.grad_like = data.shape, data.dtype

    @property
    def data(self) -> Tensor:
        """The numbers, on the same memory, as a tensor that no gradient passes through."""
        return self.detach()

    def new(self, array: np.ndarray) -> Tensor:
        return Tensor(array)

    def see(self, shape: Any, strides: Any, offset: int) -> Tensor:
        return as_tensor(super().see(shape, strides, offset))

    def detach(self) -> Tensor:
        return as_tensor(super().detach())

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


def as_tensor(view: Parameter) -> Tensor:
    """A view is made with the class of what it is a view of: here, that is one too many."""
    view.__class__ = Tensor
    return view


# %% exercise="layers-registry"
class Registry:
    """An object that sorts what is assigned to its attributes: parameters, buffers, modules, and all the rest."""

    def __init__(self) -> None:
        empty = {"_parameters": {}, "_buffers": {}, "_modules": {}, "_not_saved": set(), "training": True}
        vars(self).update(empty)

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep `value` under `name`, in exactly one place: that of the first line below that fits.

        a Parameter                     in self._parameters
        the name of a parameter         there it stays; only None may take its value's place
        a Registry                      in self._modules
        the name of a module            there it stays; only None may take its value's place
        the name of a buffer            there it stays; None or a Tensor may take its value's place
        anything else                   a plain attribute, in vars(self)

        A value that moves to another place leaves the old one, and a name that stays keeps its place in the order.

        raises   TypeError where the line that fits does not allow the value
                 AttributeError for a Parameter or a Registry before Registry.__init__ has run
        """
        ### BEGIN SOLUTION
        own = vars(self)
        parameters, buffers, modules = (own.get(home, {}) for home in ("_parameters", "_buffers", "_modules"))
        if isinstance(value, Parameter | Registry) and "_parameters" not in own:
            raise AttributeError(f"{name} was assigned before super().__init__() ran: call that first in __init__")
        if isinstance(value, Parameter):
            home, allowed = parameters, True
        elif name in parameters:
            home, allowed = parameters, value is None
        elif isinstance(value, Registry):
            home, allowed = modules, True
        elif name in modules:
            home, allowed = modules, value is None
        elif name in buffers:
            home, allowed = buffers, value is None or isinstance(value, Tensor)
        else:
            home, allowed = own, True
        if not allowed:
            raise TypeError(f"{name} is registered and cannot become a {type(value).__name__}")
        for other in (parameters, buffers, modules, own):
            if other is not home:
                other.pop(name, None)
        home[name] = value
        ### END SOLUTION

    def __getattr__(self, name: str) -> Any:
        """What is registered under `name`. Python asks here only for what is not in vars(self).

        raises   AttributeError where nothing is
        """
        ### BEGIN SOLUTION
        own = vars(self)
        for home in ("_parameters", "_buffers", "_modules"):
            if name in own.get(home, ()):
                return own[home][name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        ### END SOLUTION


# %% exercise="layers-named"
def named_members(module: Any, kind: str, prefix: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Every parameter (or every buffer) in a module and in all modules below it, each one once.

    module   has dictionaries: module._modules of modules, and those that `kind` names. Any value may be None.
    kind     "_parameters" or "_buffers"
    prefix   what stands in front of each name: "" here; "encoder." for the modules below "encoder"
    seen     the id() of every member that was given already, for the calls below; None at the top
    yields   pairs of a dotted name and the member: first the module's own, then those of each module below, in the
             order in which they were registered. A member that has several names is given under the first alone.

    PyTorch: Module.named_parameters, Module.named_buffers
    """
    ### BEGIN SOLUTION
    seen = set() if seen is None else seen
    for name, member in getattr(module, kind).items():
        if member is not None and id(member) not in seen:
            seen.add(id(member))
            yield prefix + name, member
    for name, child in module._modules.items():
        if child is not None:
            yield from named_members(child, kind, f"{prefix}{name}.", seen)
    ### END SOLUTION


# %% exercise="layers-state"
def state_of(module: Any, prefix: str = "") -> dict[str, Any]:
    """All that must be written down to continue with this module elsewhere.

    module   has the dictionaries _parameters, _buffers and _modules, and module._not_saved: the names of those buffers
             of its own that can be worked out anew. Any value may be None, which is left out.
    prefix   what stands in front of each name
    returns  dotted name to parameter or buffer: the module's own parameters, its own buffers, then those of each module
             below, in the order of registration. Unlike named_members, a member with several names is there under each.

    PyTorch: Module.state_dict
    """
    ### BEGIN SOLUTION
    saved = {name: buffer for name, buffer in module._buffers.items() if name not in module._not_saved}
    own = {**module._parameters, **saved}
    state = {prefix + name: member for name, member in own.items() if member is not None}
    for name, child in module._modules.items():
        if child is not None:
            state |= state_of(child, f"{prefix}{name}.")
    return state
    ### END SOLUTION


# %% exercise="layers-loading"
def mismatches(
    own: Mapping[str, tuple[int, ...]], given: Mapping[str, tuple[int, ...]]
) -> tuple[list[str], list[str], list[str]]:
    """What keeps a state dict from being loaded.

    own      name to shape of all that a module has
    given    name to shape of all that the state dict has
    returns  three lists of names: missing (the module's own, not given), in own's order; unexpected (given, not the
             module's), in given's order; and those that both have in different shapes, in own's order

    >>> mismatches({"weight": (2, 3), "bias": (2,)}, {"weight": (3, 2), "scale": (2,)})
    (['bias'], ['scale'], ['weight'])

    PyTorch: what Module.load_state_dict reports
    """
    ### BEGIN SOLUTION
    missing = [name for name in own if name not in given]
    unexpected = [name for name in given if name not in own]
    unlike = [name for name in own if name in given and tuple(own[name]) != tuple(given[name])]
    return missing, unexpected, unlike
    ### END SOLUTION


# %% given="module-members"
class Members(Registry):
    """What a module holds, by name."""

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        self.refuse_name(name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"{name} is a {type(param).__name__}: register_parameter takes a Parameter or None")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep a tensor that no optimizer changes but that belongs to the module's state, like a running mean.

        persistent  whether it is in the state dict
        """
        self.refuse_name(name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}: register_buffer takes a Tensor or None")
        self._buffers[name] = tensor
        (self._not_saved.discard if persistent else self._not_saved.add)(name)

    def add_module(self, name: str, module: Registry | None) -> None:
        self.refuse_name(name, "_modules")
        if module is not None and not isinstance(module, Registry):
            raise TypeError(f"{name} is a {type(module).__name__}: add_module takes a Module or None")
        self._modules[name] = module

    register_module = add_module

    def refuse_name(self, name: str, home: str) -> None:
        if not name or "." in name:
            raise KeyError(f"{name!r} cannot name a part of a module: use a name that is not empty and has no dot")
        if hasattr(self, name) and name not in vars(self)[home]:
            raise KeyError(f"{type(self).__name__} has an attribute {name!r} already: choose another name")

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                self._not_saved.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
        return self.named("_parameters", prefix, recurse)

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        return self.named("_buffers", prefix, recurse)

    def named(self, kind: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Tensor]]:
        found = named_members(self, kind, prefix + "." * bool(prefix))
        if recurse:
            return found
        own = {id(member) for member in vars(self)[kind].values()}
        return ((name, member) for name, member in found if id(member) in own)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Each parameter once, also one that is shared: this is what an optimizer takes."""
        return (member for _, member in self.named_parameters(recurse=recurse))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (member for _, member in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, Registry]]:
        """The modules directly below, each once."""
        seen = set()
        for name, child in self._modules.items():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def children(self) -> Iterator[Registry]:
        return (child for _, child in self.named_children())

    def named_modules(self, memo: set[int] | None = None, prefix: str = "") -> Iterator[tuple[str, Registry]]:
        """This module, named "", and all below it, each once."""
        memo = set() if memo is None else memo
        if id(self) not in memo:
            memo.add(id(self))
            yield prefix, self
            for name, child in self._modules.items():
                if child is not None:
                    yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Registry]:
        return (module for _, module in self.named_modules())


# %% given="module-state"
class Loaded(NamedTuple):
    """What load_state_dict returns: names that were missing and names that were not expected."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Stateful(Members):
    """Writing a module's state down, and taking it up again."""

    def state_dict(self, *, prefix: str = "") -> dict[str, Tensor]:
        """Every parameter and persistent buffer by name, on the module's own memory."""
        return {name: member.detach() for name, member in state_of(self, prefix).items()}

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True) -> Loaded:
        """Copy a state into the parameters and buffers that are there. They stay the same objects.

        strict  raise RuntimeError also for names that are missing or not expected, not only for wrong shapes
        raises  RuntimeError that says all that is wrong; nothing is copied then
        """
        own = state_of(self)
        given = {name: t.shape for name, t in state_dict.items()}
        missing, unexpected, unlike = mismatches({name: t.shape for name, t in own.items()}, given)
        wrong = [f"{name} has shape {given[name]} in the state dict and {own[name].shape} here" for name in unlike]
        if strict and missing:
            wrong.append(f"missing: {', '.join(missing)}")
        if strict and unexpected:
            wrong.append(f"unexpected: {', '.join(unexpected)}")
        if wrong:
            raise RuntimeError(f"this state does not fit {type(self).__name__}: " + "; ".join(wrong))
        with no_grad():
            for name, member in own.items():
                if name in state_dict:
                    member.copy_(state_dict[name])
        return Loaded(missing, unexpected)

    def to(self, dtype: Any) -> Self:
        """All floats in another dtype. Parameters stay the same objects, so an optimizer keeps hold of them."""
        dtype = np.dtype(dtype)
        if dtype.kind != "f":
            raise TypeError(f"a module's numbers are floats: it cannot be converted to {dtype}")
        for module in self.modules():
            for param in module._parameters.values():
                if param is not None:
                    grad, param._grad = param._grad, None
                    param.become(param.detach().to(dtype))
                    param._grad = None if grad is None else grad.to(dtype)
            for name, buffer in module._buffers.items():
                if buffer is not None and buffer.dtype.kind == "f":
                    module._buffers[name] = buffer.to(dtype)
        return self

    def float(self) -> Self:
        return self.to(plain.float32)

    def double(self) -> Self:
        return self.to(plain.float64)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Let gradients arrive at all parameters, or at none: the module is frozen then."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of the step before; set_to_none=False leaves zeros instead of None."""
        for param in self.parameters():
            if set_to_none:
                param.grad = None
            elif param.grad is not None:
                param.grad = Tensor(np.zeros(param.shape, param.dtype))


# %% given="module"
class Module(Stateful):
    """A function with parameters. A subclass calls super().__init__(), assigns its parts, and writes forward."""

    def __init__(self) -> None:
        super().__init__()
        hooks = {"_forward_pre_hooks": {}, "_forward_hooks": {}, "_backward_hooks": {}}
        vars(self).update(hooks)

    def forward(self, *args: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward: write one that takes the inputs")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = vars(self)
        before, after, backward = own["_forward_pre_hooks"], own["_forward_hooks"], own["_backward_hooks"]
        if not (before or after or backward):
            return self.forward(*args, **kwargs)
        before, after = list(before.values()), list(after.values())
        if backward and autodiff.is_grad_enabled():
            watch = BackwardHooks(self)
            before.append(watch.enter)
            after.append(watch.leave)
        return call_with_hooks(self, args, kwargs, before, after)

    def register_forward_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(module, args) in front of forward. What it returns, if anything, takes the place of args."""
        return RemovableHandle(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(module, args, output) behind forward. What it returns, if anything, takes the output's place."""
        return RemovableHandle(self._forward_hooks, hook)

    def register_full_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) when the gradients of the inputs are known: two tuples, with None
        where none has come. What it returns, if anything, takes the place of grad_input."""
        return RemovableHandle(self._backward_hooks, hook)

    def train(self, mode: bool = True) -> Self:
        """Behave as in training: here and in all modules below."""
        for module in self.modules():
            module.training = bool(mode)
        return self

    def eval(self) -> Self:
        """Behave as in use: no dropout, running statistics."""
        return self.train(False)

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call fn on every module below, then on this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def extra_repr(self) -> str:
        """What stands between the brackets when the module is printed."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {child!r}".replace("\n", "\n  ") for name, child in self._modules.items()]
        extra, name = self.extra_repr(), type(self).__name__
        if not lines:
            return f"{name}({extra})"
        return "\n  ".join([f"{name}({extra}", *lines]) + "\n)"


# %% given="containers"
class ModuleList(Module):
    """Modules in a list. It only holds them: what is done with them is written in forward of whoever owns it."""

    def __init__(self, modules: Iterable[Module] = ()):
        super().__init__()
        self.extend(modules)

    def put(self, modules: Iterable[Module]) -> None:
        """Hold these modules and no others, named by their places."""
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def append(self, module: Module) -> Self:
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        for module in modules:
            self.append(module)
        return self

    __iadd__ = extend

    def insert(self, index: int, module: Module) -> None:
        held = list(self)
        held.insert(index, module)
        self.put(held)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: int | slice) -> Any:
        found = list(self)[index]
        return type(self).of(found) if isinstance(index, slice) else found

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(str(range(len(self))[index]), module)

    def __delitem__(self, index: int | slice) -> None:
        held = list(self)
        del held[index]
        self.put(held)

    @classmethod
    def of(cls, modules: Iterable[Module]) -> Self:
        return cls(modules)


class Sequential(ModuleList):
    """Modules in a row: each is given what the one before it returns."""

    def __init__(self, *modules: Module | Mapping[str, Module]):
        """modules  in order; or one dictionary, which gives them names"""
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            self.extend(modules)

    @classmethod
    def of(cls, modules: Iterable[Module]) -> Self:
        return cls(*modules)

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(list(self._modules)[index], module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None):
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module]) -> None:
        for name, module in modules.items():
            self[name] = module

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> Iterable[str]:
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        return self._modules.items()

    def pop(self, name: str) -> Module:
        return self._modules.pop(name)


class Residual(Module):
    """x + module(x): whatever the module does, the gradient has a way around it."""

    def __init__(self, module: Module):
        super().__init__()
        self.module = module

    def forward(self, input: Tensor) -> Tensor:
        return input + self.module(input)


class Identity(Module):
    """Returns what it is given. It takes any arguments, so that it can stand in for any layer."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Flatten(Module):
    """Makes one axis of those from start_dim to end_dim."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


# %% exercise="layers-scale"
def preserving_std(shape: tuple[int, ...], gain: float, mode: str) -> float:
    """The standard deviation of random weights that neither blows a signal up nor lets it die away.

    shape    of the weight: (out, in), or (out, in, ...) where each output reads several places of each input
    gain     what the activation that follows takes away, as a factor
    mode     "fan_in" keeps the size of activations, "fan_out" that of gradients, "fan_average" is between the two: it
             takes the mean of both fans
    returns  a float
    raises   ValueError for a shape of fewer than two axes, and for another mode

    >>> preserving_std((4, 25), 1.0, "fan_in")
    0.2

    PyTorch: what torch.nn.init computes on its way to xavier_normal_ and kaiming_normal_
    """
    ### BEGIN SOLUTION
    if len(shape) < 2:
        raise ValueError(f"a weight of shape {tuple(shape)} has no fan-in and fan-out: it needs two axes at least")
    places = math.prod(shape[2:])
    fan_in, fan_out = shape[1] * places, shape[0] * places
    fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_average": (fan_in + fan_out) / 2}
    if mode not in fans:
        raise ValueError(f"mode={mode!r} is none of {', '.join(fans)}")
    return gain / math.sqrt(fans[mode])
    ### END SOLUTION


# %% given="init"
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By which factor weights must be larger, to make up for what an activation takes away.

    param   the slope of a leaky_relu for negative inputs, 0.01 if left out
    raises  ValueError for an activation without a known gain
    """
    gains = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    gains |= dict.fromkeys(("conv1d", "conv2d", "conv3d"), 1.0)
    gains["leaky_relu"] = math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in gains:
        raise ValueError(f"no gain is known for {nonlinearity!r}: there are {', '.join(gains)}")
    return gains[nonlinearity]


def fill(t: Tensor, array: Any) -> Tensor:
    """Put numbers into a tensor, unseen by the graph."""
    with no_grad():
        return t.copy_(array)


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Random numbers, spread evenly between a and b."""
    return fill(tensor, rand(tensor.shape, dtype=tensor.dtype, generator=stream(generator)) * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Random numbers of a normal distribution."""
    return fill(tensor, randn(tensor.shape, dtype=tensor.dtype, generator=stream(generator)) * std + mean)


def stream(generator: Any) -> Any:
    """Where random numbers come from: the generator that was asked for, else the one that manual_seed seeds."""
    return plain.default_generator if generator is None else generator


def constant_(tensor: Tensor, val: float) -> Tensor:
    return fill(tensor, val)


def zeros_(tensor: Tensor) -> Tensor:
    return fill(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    return fill(tensor, 1)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """For layers in front of a tanh or sigmoid: activations and gradients both keep about their size."""
    bound = math.sqrt(3) * preserving_std(tensor.shape, gain, "fan_average")
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    return normal_(tensor, 0, preserving_std(tensor.shape, gain, "fan_average"), generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """For layers in front of a relu, or of a leaky_relu of slope a: it halves the signal, which the gain makes up for.

    mode  "fan_in" keeps the size of activations, "fan_out" that of gradients
    """
    bound = math.sqrt(3) * kaiming_std(tensor.shape, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    return normal_(tensor, 0, kaiming_std(tensor.shape, a, mode, nonlinearity), generator)


def kaiming_std(shape: tuple[int, ...], a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'mode={mode!r} is not offered: use "fan_in" or "fan_out"')
    return preserving_std(shape, calculate_gain(nonlinearity, a), mode)


# %% given="linear-operation"
def affine(t: plain.Tensor, weight: plain.Tensor, bias: plain.Tensor | None) -> plain.Tensor:
    """t @ weight.T + bias. All leading axes of t are rows of one large product."""
    x, w = t.array, weight.array
    out = x.reshape(-1, x.shape[-1]) @ w.T
    if bias is not None:
        out += bias.array
    return t.new(out.reshape(*x.shape[:-1], len(w)))


class Affine(Operation, of=affine):
    def forward(self, t: plain.Tensor, weight: plain.Tensor, bias: plain.Tensor | None) -> plain.Tensor:
        to_t, to_weight, _ = self.needs_input_grad
        self.save(t if to_weight else None, weight if to_t else None)
        self.shape = t.shape
        return affine(t, weight, bias)

    def backward(self, grad: np.ndarray) -> tuple:
        (x, w), to_bias = self.saved, self.needs_input_grad[2]
        rows = grad.reshape(-1, grad.shape[-1])
        if 0 in rows.strides:
            rows = rows.copy()  # comes from a sum, and BLAS reads no stride of 0
        return (
            None if w is None else (rows @ w).reshape(self.shape),
            None if x is None else rows.T @ x.reshape(-1, self.shape[-1]),
            np.add.reduce(rows, 0) if to_bias else None,
        )


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, for an input of shape (..., in) and a weight of shape (out, in)."""
    if weight.ndim != 2 or not input.ndim or input.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"linear: the last axis of the input, {input.shape}, is not as long as that of the weight, {weight.shape}"
        )
    refuse_dtypes("linear", input, weight, bias)
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"linear: a bias of shape {bias.shape} does not go with a weight of shape {weight.shape}")
    return input.apply(affine, input, weight, bias)


def refuse_dtypes(name: str, input: Tensor, *others: Tensor | None) -> None:
    """A layer mixes no dtypes: a float64 input would make all that follows float64, at twice the memory."""
    for other in others:
        if other is not None and other.dtype is not input.dtype:
            raise TypeError(f"{name}: the input holds {input.dtype} and a parameter {other.dtype}: convert one of them")


# %% exercise="layers-linear"
class Linear(Module):
    """x @ weight.T + bias.

    weight   (out_features, in_features)
    bias     (out_features,), or None
    Both begin as random numbers, spread evenly between -1 / sqrt(in_features) and 1 / sqrt(in_features).
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = plain.float32):
        """bias  whether there is one; self.bias is None where there is not, and then it is registered as None"""
        ### BEGIN SOLUTION
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(in_features) if in_features else 0
        self.weight = Parameter(uniform_(zeros(out_features, in_features, dtype=dtype), -bound, bound))
        self.register_parameter("bias", None)
        if bias:
            self.bias = Parameter(uniform_(zeros(out_features, dtype=dtype), -bound, bound))
        ### END SOLUTION

    def forward(self, input: Tensor) -> Tensor:
        """input of shape (..., in_features) to (..., out_features)."""
        ### BEGIN SOLUTION
        return linear(input, self.weight, self.bias)
        ### END SOLUTION

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


# %% given="activations"
class Activation(Module):
    """An elementwise function as a layer."""

    function: ClassVar[Callable[[Tensor], Tensor]]

    def __init__(self, inplace: bool = False):
        super().__init__()
        if inplace:
            raise NotImplementedError(f"{type(self).__name__}(inplace=True) is not offered: backward needs the input")

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input)


class ReLU(Activation):
    function = staticmethod(Tensor.relu)


class SiLU(Activation):
    function = staticmethod(operations.silu)


class Sigmoid(Module):
    def forward(self, input: Tensor) -> Tensor:
        return input.sigmoid()


class Tanh(Module):
    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class GELU(Module):
    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return operations.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softmax(Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return input.softmax(self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


# %% exercise="layers-dropout"
def dropout(input: Tensor, p: float = 0.5, training: bool = True, generator: Any = None) -> Tensor:
    """Each element is 0 with probability p; the others are scaled so that the mean stays what it was.

    input      a tensor of floats
    p          a probability, from 0 to 1
    training   where this is False, nothing is dropped and nothing scaled
    generator  where the random numbers come from; stream(generator) is that, or the default where it is None
    returns    a tensor of the same shape and dtype. Its gradient is dropped and scaled in the same places.
    raises     ValueError for a p that is no probability

    PyTorch: torch.nn.functional.dropout
    """
    ### BEGIN SOLUTION
    if not 0 <= p <= 1:
        raise ValueError(f"p={p} is no probability: give a number from 0 to 1")
    if not training or p == 0:
        return input
    scale = 1 / (1 - p) if p < 1 else 0
    drawn = rand(input.shape, dtype=input.dtype, generator=stream(generator))
    return input * ((drawn >= p).to(input.dtype) * scale)
    ### END SOLUTION


# %% given="dropout"
class Dropout(Module):
    """Drops elements in training; the identity in eval.

    generator  where the random numbers come from: the one that manual_seed seeds, if left out
    """

    def __init__(self, p: float = 0.5, inplace: bool = False, generator: Any = None):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p={p} is no probability: give a number from 0 to 1")
        if inplace:
            raise NotImplementedError("Dropout(inplace=True) is not offered: backward needs the input")
        self.p, self.generator = p, generator

    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p, self.training, self.generator)

    def extra_repr(self) -> str:
        return f"p={self.p}"


# %% exercise="layers-normalized"
def normalized_gradient(
    grad: np.ndarray, normal: np.ndarray, rstd: np.ndarray, dims: tuple[int, ...], centred: bool
) -> np.ndarray:
    """The gradient of x, from that of normal = (x - mean) * rstd, where mean and rstd were calculated from x itself.

    grad     the gradient of `normal`, in its shape
    normal   what came out
    rstd     1 / sqrt(variance + eps), with the axes `dims` kept, of size 1
    dims     the axes along which mean and variance were taken, counted from the front
    centred  False where no mean was taken away, as in RMSNorm: normal = x * rstd, rstd = 1 / sqrt(mean of x**2 + eps)
    returns  an array in the shape and dtype of grad

    PyTorch: what layer_norm, rms_norm and batch_norm compute on their way back
    """
    ### BEGIN SOLUTION
    out = grad - normal * mean_along(grad * normal, dims)
    if centred:
        out -= mean_along(grad, dims)
    out *= rstd
    return out
    ### END SOLUTION


# %% given="normalizing"
def mean_along(x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """The mean along axes, which are kept."""
    return sum_along(x, dims) / plain.prod([x.shape[d] for d in dims])


def standardized(x: np.ndarray, dims: tuple[int, ...], eps: float, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """x with mean 0 (if centred) and mean square 1 along axes, and the factor that made it so."""
    if centred:
        x = x - mean_along(x, dims)
    rstd = 1 / np.sqrt(mean_along(x * x, dims) + x.dtype.type(eps))
    return x * rstd, rstd


def scaled(normal: np.ndarray, weight: Any, bias: Any, shape: tuple[int, ...]) -> np.ndarray:
    """normal * weight + bias, for parameters that are laid out in `shape` to meet their axes; either may be None."""
    out = normal if weight is None else normal * weight.array.reshape(shape)
    return out if bias is None else out + bias.array.reshape(shape)


def normalize(
    t: plain.Tensor, weight: Any, bias: Any, dims: tuple[int, ...], eps: float, centred: bool, shape: tuple[int, ...]
) -> plain.Tensor:
    """Normalized along `dims` by its own mean and variance, then scaled."""
    return t.new(scaled(standardized(t.array, dims, eps, centred)[0], weight, bias, shape))


def normalize_by(
    t: plain.Tensor, weight: Any, bias: Any, mean: np.ndarray, rstd: np.ndarray, dims: Any, shape: tuple[int, ...]
) -> plain.Tensor:
    """Normalized by a mean and a deviation: its own along `dims`, or, where that is None, constants."""
    return t.new(scaled((t.array - mean) * rstd, weight, bias, shape))


class Normalizing(Operation):
    """Both operations have one backward: they differ in where the numbers come from."""

    def finish(self, t: plain.Tensor, weight: Any, bias: Any, normal: np.ndarray, rstd: np.ndarray) -> plain.Tensor:
        kept = t.new(normal)
        self.save(kept, t.new(rstd), weight)
        return kept if weight is None and bias is None else t.new(scaled(normal, weight, bias, self.shape))

    def backward(self, grad: np.ndarray) -> tuple:
        normal, rstd, weight = self.saved
        to_t, to_weight, to_bias = self.needs_input_grad
        inner = grad if weight is None else grad * weight.reshape(self.shape)
        if to_t and self.dims is None:
            inner = inner * rstd
        elif to_t:
            inner = normalized_gradient(inner, normal, rstd, self.dims, self.centred)
        return (
            inner if to_t else None,
            self.summed(grad * normal, 1) if to_weight else None,
            self.summed(grad, 2) if to_bias else None,
        )

    def summed(self, grad: np.ndarray, place: int) -> np.ndarray:
        return unbroadcast(grad, self.shape).reshape(self.targets[place].grad_like[0])


class Normalize(Normalizing, of=normalize):
    def forward(
        self, t: plain.Tensor, weight: Any, bias: Any, dims: tuple, eps: float, centred: bool, shape: tuple
    ) -> plain.Tensor:
        self.dims, self.centred, self.shape = dims, centred, shape
        return self.finish(t, weight, bias, *standardized(t.array, dims, eps, centred))


class NormalizeBy(Normalizing, of=normalize_by):
    centred = True

    def forward(
        self, t: plain.Tensor, weight: Any, bias: Any, mean: np.ndarray, rstd: np.ndarray, dims: Any, shape: tuple
    ) -> plain.Tensor:
        self.dims, self.shape = dims, shape
        return self.finish(t, weight, bias, (t.array - mean) * rstd, rstd)


# %% given="layer-norm"
def layer_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Each example by itself: mean 0 and variance 1 over the last axes, which have the sizes normalized_shape."""
    return normalize_last("layer_norm", input, normalized_shape, weight, bias, eps, centred=True)


def rms_norm(
    input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """As layer_norm, but no mean is taken away: only the mean square becomes 1. eps is the dtype's own, if left out."""
    eps = float(np.finfo(input.dtype).eps) if eps is None else eps
    return normalize_last("rms_norm", input, normalized_shape, weight, None, eps, centred=False)


def normalize_last(name: str, input: Tensor, shape: Any, weight: Any, bias: Any, eps: float, centred: bool) -> Tensor:
    shape = tuple(shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ValueError(f"{name} over the last axes {shape} does not fit an input of shape {input.shape}")
    for member in (weight, bias):
        if member is not None and member.shape != shape:
            raise ValueError(f"{name} over {shape}: weight and bias need this shape too, and one has {member.shape}")
    refuse_dtypes(name, input, weight, bias)
    dims = tuple(range(input.ndim - len(shape), input.ndim))
    return input.apply(normalize, input, weight, bias, dims=dims, eps=eps, centred=centred, shape=shape)


class LayerNorm(Module):
    """Each example by itself: mean 0 and variance 1 over the last axes, then weight and bias.

    normalized_shape    the sizes of these axes, or one size
    elementwise_affine  whether there are a weight and, if bias is True, a bias
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Any = plain.float32,
    ):
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        with_weight, with_bias = elementwise_affine, elementwise_affine and bias
        self.register_parameter("weight", Parameter(ones(self.normalized_shape, dtype=dtype)) if with_weight else None)
        self.register_parameter("bias", Parameter(zeros(self.normalized_shape, dtype=dtype)) if with_bias else None)

    def forward(self, input: Tensor) -> Tensor:
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine, bias = self.elementwise_affine, self.bias is not None
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}, bias={bias}"


def as_shape(size: int | Iterable[int]) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(size)


class RMSNorm(Module):
    """As LayerNorm, but no mean is taken away and there is no bias. eps is the dtype's own, if left out."""

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: Any = plain.float32,
    ):
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = Parameter(ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)

    def forward(self, input: Tensor) -> Tensor:
        return rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


# %% exercise="layers-batch-statistics"
def batch_statistics(
    x: np.ndarray, running_mean: np.ndarray, running_var: np.ndarray, momentum: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What batch norm normalizes a batch with, and what it will remember of it.

    x             shape (examples, channels, ...): every axis but axis 1 is counted as examples
    running_mean  shape (channels,), from all batches before; it is left as it was
    running_var   the same
    momentum      the share of the new batch in the running values
    returns       mean and variance of each channel of the batch, to normalize with (the sum of squares divided by the
                  count), then the running mean and the running variance after this batch (into which the variance goes
                  with the sum of squares divided by count - 1). Four arrays of shape (channels,)
    raises        ValueError where there is only one value for a channel, or none

    >>> x, ones = np.array([[0.0], [2.0], [4.0], [6.0]]), np.ones(1)
    >>> [float(a.round(6)[0]) for a in batch_statistics(x, ones, ones, 0.1)]
    [3.0, 5.0, 1.2, 1.566667]

    PyTorch: what batch_norm computes on its way
    """
    ### BEGIN SOLUTION
    dims = (0, *range(2, x.ndim))
    count = x.size // x.shape[1]
    if count < 2:
        raise ValueError(
            f"a batch of shape {x.shape} has {count} value for a channel, which has no variance: use eval()"
        )
    mean = np.add.reduce(x, dims) / count
    centred = x - mean.reshape(-1, *[1] * (x.ndim - 2))
    squares = np.add.reduce(centred * centred, dims)
    next_mean = running_mean + momentum * (mean - running_mean)
    next_var = running_var + momentum * (squares / (count - 1) - running_var)
    return mean, squares / count, next_mean, next_var
    ### END SOLUTION


# %% given="batch-norm"
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel, axis 1, by itself: mean 0 and variance 1 over all examples and places, then weight and bias.

    training  normalize with the batch's own statistics, and let the running ones, where there are some, follow them in
              place; else with the running ones
    raises    ValueError for a batch with one value for a channel, in training
    """
    if input.ndim < 2:
        raise ValueError(f"batch_norm takes an input of shape (examples, channels, ...) and got {input.shape}")
    refuse_dtypes("batch_norm", input, running_mean, running_var, weight, bias)
    refuse_channels(input, running_mean, running_var, weight, bias)
    if not training and (running_mean is None or running_var is None):
        raise ValueError("batch_norm without running statistics is for training only: give training=True")
    shape = (input.shape[1], *[1] * (input.ndim - 2))
    if training:
        mean, var = follow_batch(input.array, running_mean, running_var, momentum)
    else:
        mean, var = running_mean.array, running_var.array
    mean, rstd = mean.reshape(shape), 1 / np.sqrt(var.reshape(shape) + input.dtype.type(eps))
    dims = (0, *range(2, input.ndim)) if training else None
    return input.apply(normalize_by, input, weight, bias, mean=mean, rstd=rstd, dims=dims, shape=shape)


def follow_batch(x: np.ndarray, running_mean: Any, running_var: Any, momentum: float) -> tuple[np.ndarray, np.ndarray]:
    """The batch's mean and variance, which the running ones follow."""
    before = [np.zeros(x.shape[1], x.dtype) if t is None else t.array for t in (running_mean, running_var)]
    mean, var, *after = batch_statistics(x, *before, momentum)
    for t, array in zip((running_mean, running_var), after, strict=True):
        if t is not None:
            fill(t, t.new(array))
    return mean, var


def refuse_channels(input: Tensor, *members: Tensor | None) -> None:
    for member in members:
        if member is not None and member.shape != input.shape[1:2]:
            wanted = f"{member.shape[0]} channels on axis 1"
            raise ValueError(f"batch_norm: an input of shape {input.shape} does not have {wanted}, as this layer has")


class BatchNorm(Module):
    """Each channel by itself: mean 0 and variance 1 over the batch, then weight and bias. In eval, and for what follows
    the last training step, with a running mean and variance.

    momentum             the share of the newest batch in the running values; None: the mean of all batches so far
    affine               whether there are a weight and, if bias is True, a bias
    track_running_stats  False: no running values, and the batch's own ones in eval too
    """

    axes: ClassVar[tuple[int, ...]]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        dtype: Any = plain.float32,
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        tracked = track_running_stats
        self.register_parameter("weight", Parameter(ones(num_features, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_features, dtype=dtype)) if affine and bias else None)
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0) if tracked else None)

    def reset_running_stats(self) -> None:
        """Begin anew, as if no batch had been seen."""
        if self.track_running_stats:
            zeros_(self.running_mean)
            ones_(self.running_var)
            zeros_(self.num_batches_tracked)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in self.axes:
            wanted = " or ".join(map(str, self.axes))
            raise ValueError(f"{type(self).__name__} takes {wanted} axes and got an input of shape {input.shape}")
        momentum = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            momentum = 1 / self.num_batches_tracked.item() if momentum is None else momentum
        training = self.training or self.running_mean is None
        follows = not training or self.track_running_stats
        running = (self.running_mean, self.running_var) if follows else (None, None)
        return batch_norm(input, *running, self.weight, self.bias, training, momentum or 0.0, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm):
    """Batch norm for inputs of shape (examples, channels) or (examples, channels, length)."""

    axes = (2, 3)


class BatchNorm2d(BatchNorm):
    """Batch norm for inputs of shape (examples, channels, height, width)."""

    axes = (4,)


# %% exercise="layers-embedding"
def embedding_gradient(grad: np.ndarray, ids: np.ndarray, count: int, padding_idx: int | None) -> np.ndarray:
    """The gradient of a table of `count` vectors, from that of table[ids].

    grad         shape (*ids.shape, width)
    ids          whole numbers of any shape, from 0 to count - 1; an id may occur many times, or never
    padding_idx  the id whose vector stands for "nothing here" and is never to change; None where there is no such id
    returns      shape (count, width), in grad's dtype

    >>> embedding_gradient(np.array([[1.0], [10.0], [5.0]]), np.array([0, 0, 2]), 3, None).T
    array([[11.,  0.,  5.]])

    PyTorch: torch.embedding_dense_backward
    """
    ### BEGIN SOLUTION
    table = np.zeros((count, grad.shape[-1]), grad.dtype)
    np.add.at(table, ids.reshape(-1), grad.reshape(-1, grad.shape[-1]))
    if padding_idx is not None:
        table[padding_idx] = 0
    return table
    ### END SOLUTION


# %% given="embedding"
def look_up(table: plain.Tensor, ids: np.ndarray, padding_idx: int | None) -> plain.Tensor:
    return table.new(table.array[ids])


class LookUp(Operation, of=look_up):
    def forward(self, table: plain.Tensor, ids: np.ndarray, padding_idx: int | None) -> plain.Tensor:
        self.ids, self.padding_idx = ids, padding_idx
        return look_up(table, ids, padding_idx)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return embedding_gradient(grad, self.ids, self.input_shape[0], self.padding_idx)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of `weight` that the ids of `input` name; the gradient leaves row padding_idx alone.

    raises  TypeError for ids that are no whole numbers, IndexError for an id without a row
    """
    if weight.ndim != 2:
        raise ValueError(f"embedding takes a table of shape (ids, width) and got {weight.shape}")
    ids = operations.refuse_outside("embedding", input, len(weight))
    return weight.apply(look_up, weight, ids=ids, padding_idx=row_of(padding_idx, len(weight)))


def row_of(padding_idx: int | None, rows: int) -> int | None:
    """padding_idx counted from the front."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise ValueError(f"padding_idx={padding_idx} names no row of a table with {rows}")
    return padding_idx % rows


class Embedding(Module):
    """A table of num_embeddings vectors, one for each id. They begin as random numbers of the standard normal
    distribution; the vector of padding_idx is 0 and gets no gradient."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *, dtype: Any = plain.float32
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = row_of(padding_idx, num_embeddings)
        self.weight = Parameter(normal_(zeros(num_embeddings, embedding_dim, dtype=dtype)))
        if self.padding_idx is not None:
            zeros_(self.weight.data[self.padding_idx])

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Self:
        """A layer around a table that is there already. freeze: no gradient arrives at it."""
        layer = cls(*embeddings.shape, padding_idx=padding_idx, dtype=embeddings.dtype)
        layer.weight = Parameter(embeddings, requires_grad=not freeze)
        return layer

    def forward(self, input: Tensor) -> Tensor:
        return embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


# %% exercise="layers-hooks"
def call_with_hooks(
    module: Any, args: tuple, kwargs: dict, before: Iterable[Callable], after: Iterable[Callable]
) -> Any:
    """module.forward(*args, **kwargs), between those who want to see or change what goes in and what comes out.

    before   functions hook(module, args), called in order, each with what the one before it left. One that returns
             None has only watched. What another returns takes the place of args: a tuple, or one value for the only
             argument
    after    functions hook(module, args, output), called in order with the args that forward was given. One that
             returns None has only watched; what another returns takes the place of output
    returns  the output that is left

    PyTorch: Module._call_impl
    """
    ### BEGIN SOLUTION
    for hook in before:
        changed = hook(module, args)
        if changed is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
    output = module.forward(*args, **kwargs)
    for hook in after:
        changed = hook(module, args, output)
        if changed is not None:
            output = changed
    return output
    ### END SOLUTION


# %% given="backward-hooks"
class Gate(Operation):
    """A node that several tensors pass at once, on their way into a module or out of it."""

    grad_like = (), np.dtype(np.float64)

    def __init__(self, tensors: tuple, visit: Callable[[tuple], tuple]):
        """visit  takes the gradients of all tensors, None where none has come, and returns those that go on"""
        self.wants = [isinstance(t, Tensor) and t.requires_grad for t in tensors]
        self.targets = [t.node if wanted else None for t, wanted in zip(tensors, self.wants, strict=True)]
        self.constants = [isinstance(t, Tensor) and not t.requires_grad and (t.shape, t.dtype) for t in tensors]
        self.waiting: list[np.ndarray | None] = [None] * len(tensors)
        self.visit = visit

    def backward(self, grad: np.ndarray) -> tuple:
        arrived, self.waiting = tuple(self.waiting), [None] * len(self.waiting)
        left = self.visit(tuple([self.gradient(i, g) for i, g in enumerate(arrived)]))
        return tuple([None if g is None else g.array.view() for g in left])

    def gradient(self, place: int, grad: np.ndarray | None) -> Tensor | None:
        """The gradient as a tensor of its own, since others may hold the array; as in PyTorch, zeros for a constant."""
        constant = self.constants[place]
        return Tensor(np.zeros(*constant)) if constant else None if grad is None else Tensor(grad.copy())

    def passed(self, tensors: tuple) -> tuple:
        """The tensors on the far side of the gate, on the same memory."""
        return tuple([self.port(i, t) if self.wants[i] else t for i, t in enumerate(tensors)])

    def port(self, place: int, t: Tensor) -> Tensor:
        beyond = t.detach()
        beyond._requires_grad, beyond._grad_fn = True, Port(self, place, t)
        return beyond


class Port(Operation):
    """Where one tensor passes a gate. Its gradient waits there until those of all others have come."""

    def __init__(self, gate: Gate, place: int, t: Tensor):
        self.targets, self.gate, self.place, self.grad_like = (gate,), gate, place, (t.shape, t.dtype)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        self.gate.waiting[self.place] = grad
        return np.zeros(())  # the gate is told that one more has come


class BackwardHooks:
    """A pair of gates around one call of a module. The gradients at both are what its full backward hooks are given."""

    def __init__(self, module: Any):
        self.module, self.hooks = module, tuple(module._backward_hooks.values())
        self.grad_output: tuple = ()
        self.inputs = 0
        self.waits = False

    def enter(self, module: Any, args: tuple) -> tuple:
        self.inputs = len(args)
        gate = Gate(args, self.at_inputs)
        self.waits = any(gate.wants)
        return gate.passed(args)

    def leave(self, module: Any, args: tuple, output: Any) -> Any:
        outputs = output if isinstance(output, tuple) else (output,)
        if not all(isinstance(t, Tensor) for t in outputs):
            kind = type(output).__name__
            raise TypeError(f"a backward hook needs a module whose output is a tensor or a tuple of them, not a {kind}")
        passed = Gate(outputs, self.at_outputs).passed(outputs)
        return passed if isinstance(output, tuple) else passed[0]

    def at_outputs(self, grads: tuple) -> tuple:
        self.grad_output = grads
        if not self.waits:
            self.run((None,) * self.inputs)
        return grads

    def at_inputs(self, grads: tuple) -> tuple:
        return self.run(grads)

    def run(self, grad_input: tuple) -> tuple:
        for hook in self.hooks:
            changed = hook(self.module, grad_input, self.grad_output)
            if changed is not None:
                grad_input = changed if isinstance(changed, tuple) else (changed,)
        return grad_input


# %% exercise="layers-count"
def multiply_adds(weight_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> int:
    """How many products a layer calculates and adds up, for its weight; a bias has none.

    weight_shape  (out, in), or (out, in, ...) for a layer whose outputs read several places of each input
    output_shape  the shape of all that comes out, with the batch and all other axes; the `out` axis is among them
    returns       a whole number

    >>> multiply_adds((10, 784), (64, 10))
    501760

    PyTorch: half of what torch.utils.flop_counter counts
    """
    ### BEGIN SOLUTION
    return math.prod(output_shape) * math.prod(weight_shape[1:])
    ### END SOLUTION


# %% given="cost"
class Cost(NamedTuple):
    """What one layer costs: elements of its own parameters, multiply-adds, and bytes that it adds to memory."""

    name: str
    kind: str
    output_shape: tuple[int, ...]
    parameters: int
    multiply_adds: int
    activation_bytes: int


def leaves(model: Module) -> list[tuple[str, Module]]:
    """The modules that have no modules in them, by name: the layers that do the work."""
    return [(name, module) for name, module in model.named_modules() if not module._modules]


def costs(model: Module, *inputs: Any) -> list[Cost]:
    """What each layer of a model costs for these inputs. A parameter is counted where it is met first."""
    found, counted, handles = [], set(), []

    def note(name: str) -> Callable:
        def hook(module: Module, args: tuple, output: Tensor) -> None:
            own = {id(p): p for p in module._parameters.values() if p is not None and id(p) not in counted}
            counted.update(own)
            weight = module._parameters.get("weight")
            products = weight is not None and weight.ndim > 1 and not isinstance(module, Embedding)
            made = output.storage not in [t.storage for t in args if isinstance(t, Tensor)]  # a view adds no memory
            found.append(
                Cost(
                    name,
                    type(module).__name__,
                    output.shape,
                    sum(p.numel() for p in own.values()),
                    multiply_adds(weight.shape, output.shape) if products else 0,
                    output.numel() * output.dtype.itemsize * made,
                )
            )

        return hook

    try:
        handles.extend(module.register_forward_hook(note(name)) for name, module in leaves(model))
        with no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


# %% given="gradient-flow"
class Activations(NamedTuple):
    """What came out of a layer in one step: mean, standard deviation, and the share of elements that are exactly 0."""

    mean: float
    std: float
    zeros: float


class GradientFlow:
    """Watches a model while it trains: what comes out of each layer, and the gradient that arrives at its output.

    A step is one call of the model with gradients on. Everything is by layer name, one entry a step:
    activations      Activations
    gradient_norms   the norm of the gradient at the layer's output; nan for a step that had no backward
    histograms       how many of its elements lie in each magnitude between the powers of ten of `edges`

    with GradientFlow(model) as flow: train. It changes no number, and no hook is left after the block or close().
    """

    edges = np.linspace(-12, 4, 65)

    def __init__(self, model: Module):
        self.names = tuple(name for name, _ in leaves(model))
        self.handles = [model.register_forward_pre_hook(self.begin)]
        for name, module in leaves(model):
            self.handles.append(module.register_forward_hook(self.watch_output(name)))
            self.handles.append(module.register_full_backward_hook(self.watch_gradient(name)))
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self.steps = 0
        self.activations: dict[str, list[Activations]] = {name: [] for name in self.names}
        self.gradient_norms: dict[str, list[float]] = {name: [] for name in self.names}
        self.histograms: dict[str, list[np.ndarray]] = {name: [] for name in self.names}

    def begin(self, module: Module, args: tuple) -> None:
        if autodiff.is_grad_enabled():
            self.steps += 1
            for name in self.names:
                self.activations[name].append(Activations(math.nan, math.nan, math.nan))
                self.gradient_norms[name].append(math.nan)
                self.histograms[name].append(np.zeros(len(self.edges) - 1, np.int64))

    def watch_output(self, name: str) -> Callable:
        def hook(module: Module, args: tuple, output: Any) -> None:
            if self.steps and autodiff.is_grad_enabled() and isinstance(output, Tensor):
                x = output.array
                self.activations[name][-1] = Activations(float(x.mean()), float(x.std()), float((x == 0).mean()))

        return hook

    def watch_gradient(self, name: str) -> Callable:
        def hook(module: Module, grad_input: tuple, grad_output: tuple) -> None:
            if self.steps and grad_output[0] is not None:
                size = np.abs(grad_output[0].array.astype(np.float64))
                norms = self.gradient_norms[name]
                norms[-1] = math.hypot(
                    0.0 if math.isnan(norms[-1]) else norms[-1], math.sqrt(float((size * size).sum()))
                )
                magnitudes = np.log10(size[np.isfinite(size) & (size > 0)])
                self.histograms[name][-1] += np.histogram(magnitudes, self.edges)[0]

        return hook

    def close(self) -> None:
        """Take all hooks away. What was recorded stays."""
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
