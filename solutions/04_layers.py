# %% [markdown]
# # 04 Layers
#
# ## Why
#
# A team had fine-tuned an image model to 94 %. They saved it, the service loaded it, no error appeared, and the service
# answered at 11 %. The weights on both sides were equal to the last bit. Somebody had written the one batch norm of the
# model by hand and kept its running mean in a plain attribute: neither a parameter nor a buffer, and so not in the
# state dict. In training, batch norm does not need it. In use, it does, and the service had the value that the
# constructor had left there: 0. `load_state_dict` would have said nothing in any case, since `strict=False` had been
# set for another model, months before.
#
# A network is a tree of objects that hold numbers. Nearly everything that goes wrong between the formula on paper and
# the model in service goes wrong in that tree: a part that nobody registered, a state that is not complete, numbers
# that begin too large, a layer that behaves in use as it did in training. This chapter builds the tree, the layers in
# it, and the instruments that look inside. After it you can
#
# - say what becomes a parameter, a buffer or neither, and write down and load a model's whole state;
# - choose how weights begin, and say what the choice does to activations and gradients through 20 layers;
# - write dropout and the normalization layers with their full gradients, and say what differs in eval;
# - count what a model costs, and watch gradients flow through one of yours while it trains.
#
# Allow about four hours; each section is a good place to stop.

# %%
import matplotlib.pyplot as plt

import gradwright
from autograder import check
from gradwright.widgets import activation_statistics, flow_monitor, gradient_flow

gradwright.chapter(4)

# %% given="imports"
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gradwright.chapters import autodiff, operations
from gradwright.chapters import tensor as plain
from gradwright.chapters.autodiff import Operation, RemovableHandle, no_grad, unbroadcast
from gradwright.chapters.operations import Tensor, for_blas, ones, rand, randn, sum_along, tensor, zeros

# %% [markdown]
# ## Parameters and modules
#
# **Idea.** A *parameter* is a tensor that training may change. It is nothing more than a tensor with a class of its
# own, so that a module can recognise it:


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
        self.storage, self.dtype, self.array = data.storage, data.dtype, data.array
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


# %% [markdown]
# A *module* is a function that owns parameters, and perhaps other modules. You write one by assigning its parts to
# attributes, and that is all:
#
#     class Net(Module):
#         def __init__(self):
#             super().__init__()
#             self.hidden = Linear(4, 8)
#             self.scale = Parameter(ones(1))
#
# How does an optimizer then find `hidden.weight`? It asks the module, and the module knows because it was listening:
# Python calls `__setattr__` for every assignment to an attribute, and a module sorts there what comes.
#
# | what is assigned | where it goes |
# |---|---|
# | a `Parameter` | `_parameters` |
# | a module | `_modules` |
# | a tensor, under a name that is registered as a buffer | `_buffers` |
# | anything else | a plain attribute, in `vars(self)` |
#
# A *buffer* is a tensor that no optimizer touches but that belongs to the model all the same, like the running mean of
# our story. A plain tensor does not become one by itself: too many tensors that are assigned somewhere are only
# intermediate results. One has to say so, once, with `register_buffer`.
#
# The hard part is what happens to a name that is *taken*. A parameter that could be overwritten by a plain tensor would
# go on being trained under a name that nobody reads any more. So the sorting also refuses, and it moves: whatever a
# name meant before, afterwards it means one thing. The docstring below has the complete list, to be read from the top:
# the first line that fits decides.
#
# ### Exercise 4.1: `Registry`
# Medium, 25 minutes, 4 points.


# %% exercise="layers-registry"
class Registry:
    """An object that sorts what is assigned to its attributes: parameters, buffers, modules,
    and all the rest.
    """

    def __init__(self) -> None:
        empty = {"_parameters": {}, "_buffers": {}, "_modules": {}, "_not_saved": set()}
        vars(self).update(empty, training=True)

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep `value` under `name`, in exactly one place: that of the first line below that fits.

        a Parameter                     in self._parameters
        the name of a parameter         there it stays; only None may take its value's place
        a Registry                      in self._modules
        the name of a module            there it stays; only None may take its value's place
        the name of a buffer            there it stays; None or a Tensor may take its value's place
        anything else                   a plain attribute, in vars(self)

        A value that moves to another place leaves the old one, and a name that stays keeps its
        place in the order.

        raises   TypeError where the line that fits does not allow the value
                 AttributeError for a Parameter or a Registry before Registry.__init__ has run
        """
        ### BEGIN SOLUTION
        own = vars(self)
        homes = "_parameters", "_buffers", "_modules"
        parameters, buffers, modules = (own.get(home, {}) for home in homes)
        if isinstance(value, Parameter | Registry) and "_parameters" not in own:
            early = f"{name} was assigned before super().__init__() ran"
            raise AttributeError(f"{early}: call that first in __init__")
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


# %% [markdown]
# <details><summary>RecursionError, or an attribute that cannot be found in __init__</summary>
#
# What does `self.something = x` call, and what does `self.something` call if it is not in `vars(self)`? Inside these
# two methods, go through `vars(self)`, which calls neither.
# </details>
# <details><summary>A parameter is registered, and reading it gives an old number</summary>
#
# Where does Python look first, and who looks in `_parameters`? Anything that is left in `vars(self)` under this name
# hides what you have registered.
# </details>
# <details><summary>I do not know where to begin</summary>
#
# First find the one dictionary in which the value belongs, and whether the value is allowed there: one `if` for each
# line of the docstring, in its order. Then three steps that are the same for all: refuse, take the name out of every
# other dictionary, put the value in.
# </details>

# %% check="layers-registry"
check("layers-registry", Registry)

# %% [markdown]
# Now the tree. A module has modules, which have modules; a parameter's name is the path to it, with dots:
# `blocks.1.norm.weight`. Listing all of them is a walk through the tree with one complication. Two places may hold *the
# same* parameter. Language models do this on purpose: the table that turns words into vectors also turns vectors into
# words, and is stored once. An optimizer that was handed it twice would step it twice.

# %% figure="tree"
"""A tree of modules. The root has a parameter scale, a module embed with a parameter weight, and a module head with
parameters weight and bias. The two weights are one object: a line joins them. Beside the tree the list of
named_parameters: scale, embed.weight, head.bias; and the list of the state dict: scale, embed.weight, head.weight,
head.bias."""
figure, axes = plt.subplots(figsize=(7.4, 3.3))
boxes = {"model": (1.5, 3), "embed": (0.6, 2), "head": (2.6, 2)}
leaves = {"scale": (3.1, 3), "weight": (0.6, 0.9), "weight ": (2.1, 0.9), "bias": (3.2, 0.9)}
for start, end in [
    ((1.5, 3), (0.6, 2)),
    ((1.5, 3), (2.6, 2)),
    ((1.5, 3), (3.1, 3)),
    ((0.6, 2), (0.6, 0.9)),
    ((2.6, 2), (2.1, 0.9)),
    ((2.6, 2), (3.2, 0.9)),
]:
    axes.plot(*zip(start, end, strict=True), color="#8a8a8a", linewidth=1.2, zorder=1)
for name, (x, y) in boxes.items():
    axes.text(x, y, name, ha="center", va="center", bbox={"boxstyle": "round", "fc": "#cfe3f1", "ec": "#0072b2"})
for name, (x, y) in leaves.items():
    axes.text(
        x, y, name.strip(), ha="center", va="center", bbox={"boxstyle": "square", "fc": "#f6e3c5", "ec": "#b97700"}
    )
axes.annotate("", (1.72, 0.9), (0.98, 0.9), arrowprops={"arrowstyle": "<->", "color": "#d55e00", "lw": 2})
axes.text(1.35, 0.5, "one object", ha="center", color="#a04600")
for x, title, names in [
    (4.3, "named_parameters", ["scale", "embed.weight", "head.bias"]),
    (6.6, "state_dict", ["scale", "embed.weight", "head.weight", "head.bias"]),
]:
    axes.text(x, 3, title, weight="bold")
    for i, name in enumerate(names):
        axes.text(x, 2.45 - 0.55 * i, name, family="monospace", fontsize=10.5)
axes.set(xlim=(0, 8.2), ylim=(0.2, 3.4))
axes.axis("off")

# %% [markdown]
# So each parameter is given once, under the first name at which the walk meets it. The order matters too: an
# optimizer's own state, saved to disk, is a list in this order. A module's own members come first, then those of the
# modules below, as they were registered.
#
# ### Exercise 4.2: `named_members`
# Medium, 15 minutes, 3 points.


# %% exercise="layers-named"
def named_members(
    module: Any,
    kind: str,
    prefix: str = "",
    seen: set[int] | None = None,
) -> Iterator[tuple[str, Any]]:
    """Every parameter (or every buffer) in a module and in all modules below it, each one once.

    module   has dictionaries: module._modules of modules, and those that `kind` names.
             Any value may be None.
    kind     "_parameters" or "_buffers"
    prefix   what stands in front of each name: "" here; "encoder." for the modules below "encoder"
    seen     the id() of every member that was given already, for the calls below; None at the top
    yields   pairs of a dotted name and the member: first the module's own, then those of each
             module below, in the order in which they were registered. A member that has several
             names is given under the first alone.

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


# %% [markdown]
# <details><summary>A shared parameter comes twice</summary>
#
# How long does your set of what was seen live: for one module, or for the whole walk? There is an argument for it.
# </details>
# <details><summary>Two parameters with equal numbers come once</summary>
#
# What does `==` ask of two tensors, and what does `id` ask?
# </details>
# <details><summary>Deep names have lost their beginning</summary>
#
# What does the call for the module below know about where it is? Everything in front of its names has to be in the
# prefix that you hand on.
# </details>

# %% check="layers-named"
check("layers-named", named_members)

# %% [markdown]
# ## A state that can be loaded
#
# **Idea.** A *state dict* is all that must be written down so that somebody else can go on with the model: name to
# tensor. It is not the list that you have just made, in two ways. Buffers are in it, except those that can be worked
# out anew (a mask that follows from the sequence length: old states would lack it, and new ones would carry it around).
# And a shared parameter is in it under *every* name, because the model that loads the state may not share.
#
# ### Exercise 4.3: `state_of`
# Easy, 10 minutes, 3 points.


# %% exercise="layers-state"
def state_of(module: Any, prefix: str = "") -> dict[str, Any]:
    """All that must be written down to continue with this module elsewhere.

    module   has the dictionaries _parameters, _buffers and _modules, and module._not_saved: the
             names of those buffers of its own that can be worked out anew. Any value may be
             None, which is left out.
    prefix   what stands in front of each name
    returns  dotted name to parameter or buffer: the module's own parameters, its own buffers,
             then those of each module below, in the order of registration. Unlike named_members,
             a member with several names is there under each.

    PyTorch: Module.state_dict
    """
    ### BEGIN SOLUTION
    saved = {name: b for name, b in module._buffers.items() if name not in module._not_saved}
    own = {**module._parameters, **saved}
    state = {prefix + name: member for name, member in own.items() if member is not None}
    for name, child in module._modules.items():
        if child is not None:
            state |= state_of(child, f"{prefix}{name}.")
    return state
    ### END SOLUTION


# %% [markdown]
# <details><summary>The running mean is missing</summary>
#
# Which dictionary is it in? You are in good company: see the top of the chapter.
# </details>
# <details><summary>A buffer is missing that should be there, or there that should not</summary>
#
# Every module has its own `_not_saved`, with names of its own buffers. Which one do you ask?
# </details>

# %% check="layers-state"
check("layers-state", state_of)

# %% [markdown]
# Loading is the same walk in the other direction, and the question is what to do where the two sides do not agree.
# Silence is the worst answer. The second worst is the first error alone: whoever renamed a block has to start the job
# once for every layer in it. So collect everything first.
#
# ### Exercise 4.4: `mismatches`
# Easy, 10 minutes, 2 points.


# %% exercise="layers-loading"
def mismatches(
    own: Mapping[str, tuple[int, ...]], given: Mapping[str, tuple[int, ...]]
) -> tuple[list[str], list[str], list[str]]:
    """What keeps a state dict from being loaded.

    own      name to shape of all that a module has
    given    name to shape of all that the state dict has
    returns  three lists of names: missing (the module's own, not given), in own's order;
             unexpected (given, not the module's), in given's order; and those that both have
             in different shapes, in own's order

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


# %% [markdown]
# <details><summary>A name is in two of my lists</summary>
#
# There are three questions, and for any one name only one of them can be answered with yes. In which order do you ask?
# </details>
# <details><summary>(1, 3) and (2, 3) pass for equal</summary>
#
# Shapes that broadcast are not the same shape. What would be copied into the second row?
# </details>

# %% check="layers-loading"
check("layers-loading", mismatches)

# %% [markdown]
# The class around your functions is given in three parts, folded below: what a module holds, how its state is written
# down and taken up, and `Module` itself. Three things to look for when you read them.
#
# `load_state_dict` copies *into* the tensors that are there. An optimizer may hold them already, and a view may look at
# them. For the same reason `to(dtype)` lets every `Parameter` object live and gives it another storage.


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
            what = f"the class {module.__name__}" if isinstance(module, type) else f"of type {type(module).__name__}"
            how = f"write {module.__name__}()" if isinstance(module, type) else "add_module takes a Module or None"
            raise TypeError(f"part {name} is {what}: {how}")
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


# %% [markdown]
# All or nothing: if anything is wrong, `load_state_dict` changes nothing and says all of it in one sentence.


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
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"a state dict is a dictionary of tensors by name, and this is a {type(state_dict).__name__}"
            )
        for name, t in state_dict.items():
            if not isinstance(t, Tensor):
                raise TypeError(f"{name} is of type {type(t).__name__} in the state dict: make it a tensor first")
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
        if isinstance(dtype, str):
            raise TypeError(f"Module.to takes a dtype, such as float64, and got {dtype!r}: there are no devices here")
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

    def half(self) -> Self:
        return self.to(plain.float16)

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


# %% [markdown]
# And `train()` and `eval()` do no more than set a flag, `training`, here and in all modules below. Two kinds of layers
# will look at it.


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
        if not isinstance(mode, bool):
            raise ValueError(f"train takes True or False, and got {mode!r}")
        for module in self.modules():
            module.training = mode
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


# %% [markdown]
# Now the story of the chapter's first paragraph, in a few lines. Here is the layer as it was written, with the mean in
# a plain attribute.


# %%
class HandMade(Module):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(ones(3))
        self.running_mean = zeros(3)

    def forward(self, x):
        if self.training:
            self.running_mean = self.running_mean * 0.9 + x.detach().mean(0) * 0.1
            return (x - x.mean(0)) * self.weight
        return (x - self.running_mean) * self.weight


trained, loaded, x = HandMade(), HandMade(), randn(64, 3) + 5
for _ in range(50):
    trained(x)
loaded.load_state_dict(trained.state_dict())
print("state dict:", list(trained.state_dict()))
print("trained:", trained.eval()(x).mean().item())
print("loaded: ", loaded.eval()(x).mean().item())

# %% [markdown]
# The mean of the output should be about 0, and the loaded copy is five off. One line mends it: put
# `self.register_buffer("running_mean", zeros(3))` in place of the assignment in `__init__`. Then your `__setattr__`
# keeps every later assignment in `_buffers`. Try it, and run the cell again.
#
# Containers are modules without a formula. `Sequential` calls its parts in a row, `ModuleList` and `ModuleDict` only
# hold them. A plain Python list would do as well for calling them, and nobody would find the parameters in it, which is
# the same story once more. `Residual` adds the input to what its module makes of it:
#
# $$y = x + f(x), \qquad \frac{\partial L}{\partial x} = g + J_f^\top g.$$
#
# Whatever $f$ does to the gradient $g$, there is a way around it, the first term. We will see what that is worth.


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


# %% [markdown]
# ## How weights begin
#
# **Idea.** An output of a layer is a sum of many products, $y_i = \sum_{j} w_{ij} x_j$. If weights and inputs are
# independent and the weights have mean 0, variances add up:
#
# $$\operatorname{Var}(y_i) = n_\text{in} \cdot \operatorname{Var}(w) \cdot \operatorname{E}[x^2]
# \qquad\text{and, on the way back,}\qquad
# \operatorname{Var}\!\left(\tfrac{\partial L}{\partial x_j}\right) = n_\text{out} \cdot \operatorname{Var}(w) \cdot
# \operatorname{Var}\!\left(\tfrac{\partial L}{\partial y}\right),$$
#
# since $x_j$ takes part in $n_\text{out}$ outputs. A layer that doubles the size of its signal does no harm. Twenty of
# them make it a million times as large; twenty that halve it make it a millionth, and float32 has seven digits.
#
# So the number to choose is the weights' standard deviation, and $1/\sqrt{n_\text{in}}$ keeps activations as large as
# they are, $1/\sqrt{n_\text{out}}$ gradients. These numbers of terms are called *fan-in* and *fan-out*. Both cannot be
# had unless the layer is square. Xavier Glorot proposed the average of the two fans. Kaiming He pointed out that a relu
# throws half of the signal away, so that $\operatorname{E}[x^2]$ is half of the variance in front of it, and a factor
# $\sqrt 2$ makes up for that: the *gain* of the relu.

# %% figure="depth"
"""Two panels on a logarithmic scale: size of the activations in each of 20 layers, and of the gradient that arrives
there. With Kaiming's standard deviation both stay level near 1. With half of it, activations fall to a millionth from
left to right, and gradients fall to a millionth from right to left. With twice of it both grow to a million."""
width, depth, batch = 128, 20, 64
figure, (forward, backward) = plt.subplots(1, 2, figsize=(7.6, 3.4), sharex=True)
for factor, label, style in [
    (2.0, "twice Kaiming's", "^-"),
    (1.0, "Kaiming: gain √2", "o-"),
    (0.5, "half of it", "v-"),
]:
    rng = np.random.default_rng(4)
    weights = rng.standard_normal((depth, width, width)) * factor * np.sqrt(2 / width)
    x, inputs = rng.standard_normal((batch, width)), []
    sizes = []
    for w in weights:
        x = np.maximum(x @ w.T, 0)
        inputs.append(x)
        sizes.append(np.sqrt((x**2).mean()))
    g, back = rng.standard_normal((batch, width)), []
    for w, out in zip(weights[::-1], inputs[::-1], strict=True):
        back.append(np.sqrt((g**2).mean()))
        g = (g * (out > 0)) @ w
    layers = np.arange(1, depth + 1)
    forward.semilogy(layers, sizes, style, markersize=4, label=label)
    backward.semilogy(layers, back[::-1], style, markersize=4, label=label)
forward.set(xlabel="layer", title="activations", ylabel="root mean square")
backward.set(xlabel="layer", title="gradients, from right to left")
forward.set_xticks([1, 5, 10, 15, 20])
forward.legend(loc="lower left", fontsize=9)

# %% [markdown]
# For a weight of shape `(out, in)` the fans are its two axes. A layer whose outputs read several *places* of each
# input, as a convolution's do, has a weight of shape `(out, in, ...)`, and every term of the sums above occurs once for
# each place: both fans are multiplied by the number of places.
#
# ### Exercise 4.5: `preserving_std`
# Easy, 10 minutes, 2 points.


# %% exercise="layers-scale"
def preserving_std(shape: tuple[int, ...], gain: float, mode: str) -> float:
    """The standard deviation of random weights that neither blows a signal up nor lets it die away.

    shape    of the weight: (out, in), or (out, in, ...) where each output reads several places
             of each input
    gain     what the activation that follows takes away, as a factor
    mode     "fan_in" keeps the size of activations, "fan_out" that of gradients, "fan_average"
             is between the two: it takes the mean of both fans
    returns  a float
    raises   ValueError for a shape of fewer than two axes, and for another mode

    >>> preserving_std((4, 25), 1.0, "fan_in")
    0.2

    PyTorch: what torch.nn.init computes on its way to xavier_normal_ and kaiming_normal_
    """
    ### BEGIN SOLUTION
    if len(shape) < 2:
        weight = f"a weight of shape {tuple(shape)}"
        raise ValueError(f"{weight} has no fan-in and fan-out: it needs two axes at least")
    places = math.prod(shape[2:])
    fan_in, fan_out = shape[1] * places, shape[0] * places
    fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_average": (fan_in + fan_out) / 2}
    if mode not in fans:
        raise ValueError(f"mode={mode!r} is none of {', '.join(fans)}")
    return gain / math.sqrt(fans[mode])
    ### END SOLUTION


# %% [markdown]
# <details><summary>fan_in and fan_out seem exchanged</summary>
#
# Which axis of the weight is summed over in `x @ weight.T`? That is where an output's terms come from.
# </details>
# <details><summary>It is right for two axes and wrong for four</summary>
#
# How many products are added up in one output of a 3 by 3 window over two channels? Multiply, do not leave out.
# </details>

# %% check="layers-scale"
check("layers-scale", preserving_std)

# %% [markdown]
# `torch.nn.init` is made of this number: a normal distribution with that standard deviation, or an even one between
# $\pm\sqrt 3$ times it, which has the same.


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
    refuse_whole_numbers("uniform_", tensor)
    if not a <= b:
        raise ValueError(f"uniform_ from {a} to {b}: the first must not be above the second")
    return fill(tensor, rand(tensor.shape, dtype=tensor.dtype, generator=stream(generator)) * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Random numbers of a normal distribution."""
    refuse_whole_numbers("normal_", tensor)
    if not std >= 0:
        raise ValueError(f"normal_ with std={std}: a standard deviation is not below 0")
    return fill(tensor, randn(tensor.shape, dtype=tensor.dtype, generator=stream(generator)) * std + mean)


def refuse_others(name: str, *tensors: Any) -> None:
    """TypeError for anything but a tensor, or None."""
    for t in tensors:
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(f"{name} takes tensors and got {type(t).__name__}: use tensor(...)")


def refuse_whole_numbers(name: str, t: Tensor) -> None:
    if t.dtype.kind != "f":
        raise TypeError(f"{name} takes floats, and got a tensor of {t.dtype}: convert it with float()")


def refuse_sizes(**sizes: Any) -> None:
    for name, size in sizes.items():
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 0:
            raise ValueError(f"{name}={size!r} is no size: give a whole number from 0 on")


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
    bound = math.sqrt(3) * xavier_std(tensor.shape, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    return normal_(tensor, 0, xavier_std(tensor.shape, gain), generator)


def xavier_std(shape: tuple[int, ...], gain: float) -> float:
    return 0.0 if 0 in shape else preserving_std(shape, gain, "fan_average")  # nothing to fill, and no fan


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
    return 0.0 if 0 in shape else preserving_std(shape, calculate_gain(nonlinearity, a), mode)


# %% [markdown]
# ## Linear, and activations
#
# **Idea.** `Linear` is $y = x W^\top + b$, one row for each example. It is one operation here, not three, for speed and
# for a reason of memory: of all that is calculated on the way, backward needs $x$ and $W$ alone.


# %% given="linear-operation"
def affine(t: plain.Tensor, weight: plain.Tensor, bias: plain.Tensor | None) -> plain.Tensor:
    """t @ weight.T + bias. All leading axes of t are rows of one large product."""
    refuse_dtypes("linear", t, weight, bias)  # behind the door, where chapter 10 converts
    x, w = t.array, weight.array
    out = as_rows(x) @ w.T
    if bias is not None:
        out += bias.array
    return t.new(out if x.ndim == 2 else out.reshape(*x.shape[:-1], len(w)))


def as_rows(x: np.ndarray) -> np.ndarray:
    """All axes but the last made one. Their product is spelled out: -1 would be any number beside an axis of size 0."""
    return x if x.ndim == 2 else x.reshape(plain.prod(x.shape[:-1]), x.shape[-1])


class Affine(Operation, of=affine):
    def forward(self, t: plain.Tensor, weight: plain.Tensor, bias: plain.Tensor | None) -> plain.Tensor:
        to_t, to_weight, _ = self.targets
        self.save(None if to_weight is None else t, None if to_t is None else weight)
        self.shape = t.shape
        return affine(t, weight, bias)

    def backward(self, grad: np.ndarray) -> tuple:
        (x, w), to_bias = self.saved, self.targets[2]
        rows = for_blas(as_rows(grad))
        return (
            None if w is None else (rows @ w).reshape(self.shape),
            None if x is None else rows.T @ as_rows(x),
            None if to_bias is None else np.add.reduce(rows, 0),
        )


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, for an input of shape (..., in) and a weight of shape (out, in)."""
    refuse_others("linear", input, weight, bias)
    if weight.ndim != 2 or not input.ndim or input.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"linear: the last axis of the input, {input.shape}, is not as long as that of the weight, {weight.shape}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"linear: a bias of shape {bias.shape} does not go with a weight of shape {weight.shape}")
    return input.apply(affine, input, weight, bias)


def refuse_dtypes(name: str, input: Tensor, *others: Tensor | None) -> None:
    """A layer mixes no dtypes: a float64 input would make all that follows float64, at twice the memory."""
    refuse_others(name, input, *others)
    for other in others:
        if other is not None and other.dtype is not input.dtype:
            raise TypeError(f"{name}: the input holds {input.dtype} and a parameter {other.dtype}: convert one of them")


def at_width(name: str, input: Tensor, *others: Tensor | None) -> Tensor:
    """The input of a norm, which works in float32: beside parameters of float32 an input of float16 is widened."""
    refuse_others(name, input, *others)
    given = [t for t in others if t is not None]
    if given and input.dtype == plain.float16 and all(t.dtype == plain.float32 for t in given):
        input = input.float()
    refuse_dtypes(name, input, *given)
    return input


# %% [markdown]
# What is left is the module: two parameters, and how they begin. PyTorch spreads both evenly between
# $-1/\sqrt{n_\text{in}}$ and $1/\sqrt{n_\text{in}}$. (An even distribution up to $a$ has the standard deviation
# $a/\sqrt3$. So this is a gain of $1/\sqrt 3$, less than what keeps a signal level: an old default, which too many
# results depend on to be changed. Deep networks do better with `kaiming_normal_`.) A layer without a bias registers the
# name all the same, with `None`.
#
# ### Exercise 4.6: `Linear`
# Easy, 15 minutes, 3 points.


# %% exercise="layers-linear"
class Linear(Module):
    """x @ weight.T + bias.

    weight   (out_features, in_features)
    bias     (out_features,), or None
    Both begin as random numbers, spread evenly between -1 / sqrt(in_features) and
    1 / sqrt(in_features).
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        dtype: Any = plain.float32,
    ):
        """bias  whether there is one; where not, self.bias is None, and registered as None"""
        ### BEGIN SOLUTION
        super().__init__()
        refuse_sizes(in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(in_features) if in_features else 0
        weight = zeros(out_features, in_features, dtype=dtype)
        self.weight = Parameter(uniform_(weight, -bound, bound))
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
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


# %% [markdown]
# <details><summary>AttributeError: assigned before super().__init__() ran</summary>
#
# That is your own exercise 4.1 speaking. What has to be the first line of every module's `__init__`?
# </details>
# <details><summary>The bias does not learn</summary>
#
# What is it: a tensor, or a parameter? `uniform_` fills a tensor and gives it back; wrap that.
# </details>
# <details><summary>Without a bias, self.bias cannot be read</summary>
#
# `register_parameter` takes a name and a `Parameter` or `None`.
# </details>

# %% check="layers-linear"
check("layers-linear", Linear)

# %% [markdown]
# The activations of chapter 03 become layers by one line each.


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


# %% [markdown]
# Now you can measure what the picture above shows, on a network of your own. Three stacks of twenty layers, with the
# default beginning, with Kaiming's, and with Kaiming's times 1.5:


# %%
def stack_of_layers(factor):
    model = Sequential(*[Sequential(Linear(64, 64), ReLU()) for _ in range(20)])
    for name, p in model.named_parameters():
        if factor and name.endswith("weight"):
            kaiming_normal_(p, nonlinearity="relu")
            with no_grad():
                p.mul_(factor)
    return model


for label, factor in {"default": None, "Kaiming": 1.0, "1.5 times Kaiming": 1.5}.items():
    x = randn(256, 64, requires_grad=True)
    y = stack_of_layers(factor)(x)
    y.backward(randn(y.shape))
    sizes = [t.square().mean().sqrt().item() for t in (y, x.grad)]
    print(f"{label:18} output {sizes[0]:9.2g}   gradient of the input {sizes[1]:9.2g}")

# %% [markdown]
# Read the first line twice. The default is off by a factor of $\sqrt{1/3}$ from what is right in front of nothing, and
# by $\sqrt{1/6}$ from what is right in front of a relu; twenty times in a row, that is a gradient of nearly nothing. In
# a network of three layers you would never notice.
#
# **Look.** The same stack again, layer by layer, with digits going in. Begin with *relu, PyTorch's default* and move
# *times* until both curves are level: at which factor is that, and is it the one that the gains promise? Then let
# *sigmoid, Xavier* show you how sound activations can look while no gradient arrives, and *tanh, saturated* how a
# histogram looks when every unit has made up its mind. The last preset is what the section after next is about.

# %% widget="activation-statistics"
activation_statistics(preset="relu, PyTorch's default")

# %% [markdown]
# ## Dropout
#
# **Idea.** In training, set each element to 0 with probability $p$, so that no unit can rely on any other. In use, drop
# nothing. The two must agree on average, or everything that follows meets a signal of another size. So what is kept is
# made larger in training:
#
# $$y = \frac{m}{1-p}\, x, \qquad m = \begin{cases} 0 & \text{with probability } p\\ 1 & \text{else}\end{cases}
# \qquad\Longrightarrow\qquad \operatorname{E}[y] = \frac{1-p}{1-p}\,x = x.$$
#
# In eval it is the identity: $y = x$. (The first paper scaled in eval instead. *Inverted* dropout, the one above, won
# because a model in use should not have to know how it was trained.)
#
# On the way back the same $m$ stands there, not a new one: an element that was dropped has moved nothing, and gets no
# gradient. For $p = \tfrac12$ and an input of ten thousand ones, the mean in training is near 1, and in eval exactly 1.
# Where the random numbers come from is an argument, since whoever wants to repeat a run has to be able to repeat the
# mask.
#
# ### Exercise 4.7: `dropout`
# Medium, 15 minutes, 3 points.


# %% exercise="layers-dropout"
def dropout(input: Tensor, p: float = 0.5, training: bool = True, generator: Any = None) -> Tensor:
    """Each element is 0 with probability p; the others are scaled so that the mean stays what
    it was.

    input      a tensor of floats
    p          a probability, from 0 to 1
    training   where this is False, nothing is dropped and nothing scaled
    generator  where the random numbers come from; stream(generator) is that, or the default
               where it is None
    returns    a tensor of the same shape and dtype. Its gradient is dropped and scaled in the
               same places.
    raises     ValueError for a p that is no probability

    PyTorch: torch.nn.functional.dropout
    """
    ### BEGIN SOLUTION
    if not 0 <= p <= 1:
        raise ValueError(f"p={p} is no probability: give a number from 0 to 1")
    if not training or p == 0:
        return input
    refuse_whole_numbers("dropout", input)
    scale = 1 / (1 - p) if p < 1 else 0
    drawn = rand(input.shape, dtype=input.dtype, generator=stream(generator))
    return input * ((drawn >= p).to(input.dtype) * scale)
    ### END SOLUTION


# %% [markdown]
# <details><summary>The gradient is not what it should be</summary>
#
# You do not need to write any gradient: multiply the input tensor by a tensor that holds the mask and the scale, and
# the graph of chapter 02 does the rest. Did you draw the mask twice, or cut the tensor off?
# </details>
# <details><summary>p = 1 gives nan or a ZeroDivisionError</summary>
#
# What is kept when everything is dropped? Then it does not matter what it is scaled by, as long as it is a number.
# </details>
# <details><summary>The dtype changes</summary>
#
# `rand` gives float32 unless it is told otherwise, and a comparison gives truth values. Both take a dtype.
# </details>

# %% check="layers-dropout"
check("layers-dropout", dropout)

# %% [markdown]
# The module only remembers `p`, and hands its `training` flag on.


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


# %% [markdown]
# ## Normalization
#
# **Idea.** If signals that are too large or too small are the trouble, why not set their size to 1 by force, in every
# layer? Take a group of numbers, take away their mean, divide by their deviation, and let two parameters choose a scale
# and a place anew:
#
# $$\hat x = (x - \mu)\, r, \qquad r = \frac{1}{\sqrt{\sigma^2 + \varepsilon}}, \qquad y = w\,\hat x + b.$$
#
# What differs is the group. *Layer norm* normalizes each example by itself, over its features. *Batch norm* normalizes
# each feature by itself, over the batch (and, for images, over all places). *RMS norm* groups as layer norm does and
# leaves the mean alone: $r = 1/\sqrt{\operatorname{mean}(x^2) + \varepsilon}$.

# %% figure="groups"
"""Three grids of four examples, one in each row, and six features, one in each column. Layer norm: one row is marked,
as the group that shares a mean and a deviation. Batch norm: one column is marked. RMS norm: one row is marked, with the
note that only the mean square is set to one."""
figure, panels = plt.subplots(1, 3, figsize=(7.6, 2.6))
for axes, title, note, marked in [
    (panels[0], "layer norm", "mean and variance of a row", (slice(1, 2), slice(None))),
    (panels[1], "batch norm", "mean and variance of a column", (slice(None), slice(2, 3))),
    (panels[2], "RMS norm", "mean square of a row", (slice(1, 2), slice(None))),
]:
    cells = np.zeros((4, 6))
    cells[marked] = 1
    for (i, j), on in np.ndenumerate(cells):
        axes.add_patch(plt.Rectangle((j, 3 - i), 1, 1, facecolor="#f6c48f" if on else "#eef3f6", edgecolor="#8a8a8a"))
    axes.set(xlim=(-0.1, 6.1), ylim=(-0.1, 4.1), title=title, aspect="equal")
    axes.set_xlabel(note, fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)
panels[0].set_ylabel("examples")

# %% [markdown]
# One tool for what follows: the mean of a group, with its axes kept so that it broadcasts again.


# %% given="mean"
def mean_along(x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """The mean along axes, which are kept. An axis of size 0 has the sum 0, and no mean worth a warning."""
    return sum_along(x, dims) / (plain.prod([x.shape[d] for d in dims]) or 1)


# %% [markdown]
# The gradient is where hand-written norms go wrong, because $\mu$ and $r$ are not constants: move one $x$ and both
# move, and with them every $\hat x$ of the group. Let us move all of them by a little, $dx$, and write
# $\langle\cdot\rangle$ for the mean over the group.
#
# - The mean moves by $d\mu = \langle dx\rangle$.
# - The variance moves by $d\sigma^2 = 2\langle (x-\mu)\,dx\rangle$, so
#   $dr = -\tfrac12 r^3\, d\sigma^2 = -r^2 \langle \hat x\, dx\rangle$. The $\varepsilon$ is in $r$ already.
# - Together: $d\hat x = r\,(dx - d\mu) + (x-\mu)\,dr$, which is
#   $r\,\bigl(dx - \langle dx\rangle - \hat x\,\langle \hat x\,dx\rangle\bigr)$.
#
# Now turn it round. Each of the three terms treats $dx$ by a symmetric rule (do nothing; spread the mean; measure along
# $\hat x$ and go along $\hat x$), so the gradient $g$ of $\hat x$ is treated by the very same rule:
#
# $$\frac{\partial L}{\partial x} = r\,\bigl(g - \langle g\rangle - \hat x\,\langle g\,\hat x\rangle\bigr).$$
#
# It says what a norm forgets. The gradient's mean is taken away, since shifting a whole group changes nothing; and what
# points along $\hat x$ is taken away, since stretching a group changes nothing either. Without a mean in the forward,
# as in RMS norm, the second term is not there.
#
# ### Exercise 4.8: `normalized_gradient`
# Hard, 30 minutes, 5 points.


# %% exercise="layers-normalized"
def normalized_gradient(
    grad: np.ndarray, normal: np.ndarray, rstd: np.ndarray, dims: tuple[int, ...], centred: bool
) -> np.ndarray:
    """The gradient of x, from that of normal = (x - mean) * rstd, where mean and rstd were
    calculated from x itself.

    grad     the gradient of `normal`, in its shape
    normal   what came out
    rstd     1 / sqrt(variance + eps), with the axes `dims` kept, of size 1
    dims     the axes along which mean and variance were taken, counted from the front
    centred  False where no mean was taken away, as in RMSNorm: normal = x * rstd,
             rstd = 1 / sqrt(mean of x**2 + eps)
    returns  an array in the shape and dtype of grad

    PyTorch: what layer_norm, rms_norm and batch_norm compute on their way back
    """
    ### BEGIN SOLUTION
    out = grad * normal
    out = np.multiply(normal, mean_along(out, dims), out=out)
    out = np.subtract(grad, out, out=out)
    if centred:
        out -= mean_along(grad, dims)
    out *= rstd
    return out
    ### END SOLUTION


# %% [markdown]
# <details><summary>My gradient is right in the first case and wrong for two axes</summary>
#
# Over which axes is the mean taken, and do you keep them, so that the result broadcasts again?
# </details>
# <details><summary>It is wrong only where eps is large</summary>
#
# Is any square root or variance calculated anew in your function? `rstd` has the eps in it, and `normal` was made with
# it: nothing else is needed.
# </details>
# <details><summary>I do not know where to begin</summary>
#
# Three terms, in brackets, times `rstd`. The first is `grad` itself. For the other two you need two means, of `grad`
# and of `grad * normal`; `mean_along` takes them. One of the terms depends on `centred`.
# </details>

# %% check="layers-normalized"
check("layers-normalized", normalized_gradient)

# %% [markdown]
# All three norms stand on your function, each as one operation: the same formula written with eight tensor operations
# would keep eight arrays for backward, where two are enough.


# %% given="normalizing"
def standardized(x: np.ndarray, dims: tuple[int, ...], eps: float, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """x with mean 0 (if centred) and mean square 1 along axes, and the factor that made it so."""
    around = x - mean_along(x, dims) if centred else x
    normal = around * around
    rstd = 1 / np.sqrt(mean_along(normal, dims) + x.dtype.type(eps))
    return np.multiply(around, rstd, out=normal), rstd  # into an array that is there: fresh memory is slow


def scaled(normal: np.ndarray, weight: Any, bias: Any, shape: tuple[int, ...]) -> np.ndarray:
    """normal * weight + bias, for parameters that are laid out in `shape` to meet their axes; either may be None."""
    if weight is None:
        return normal if bias is None else normal + bias.array.reshape(shape)
    out = normal * weight.array.reshape(shape)
    if bias is not None:
        out += bias.array.reshape(shape)
    return out


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


# %% [markdown]
# Layer norm and RMS norm need nothing else; they do the same in training and in use.


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
    input = at_width("rms_norm", input, weight)
    eps = float(np.finfo(input.dtype).eps) if eps is None else eps
    return normalize_last("rms_norm", input, normalized_shape, weight, None, eps, centred=False)


def normalize_last(name: str, input: Tensor, shape: Any, weight: Any, bias: Any, eps: float, centred: bool) -> Tensor:
    shape = as_shape(shape)
    input = at_width(name, input, weight, bias)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ValueError(f"{name} over the last axes {shape} does not fit an input of shape {input.shape}")
    for member in (weight, bias):
        if member is not None and member.shape != shape:
            raise ValueError(f"{name} over {shape}: weight and bias need this shape too, and one has {member.shape}")
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
    sizes = tuple(size) if isinstance(size, Iterable) else (size,)
    for one in sizes:
        refuse_sizes(normalized_shape=one)
    return sizes


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


# %% [markdown]
# ### Batch norm remembers
#
# In use there may be only one example, and a group of one has no variance. So batch norm keeps a *running* mean and
# variance of what it saw in training, and normalizes with these in eval. They are buffers: they belong to the state,
# and no gradient changes them.
#
# $$\mu_\text{run} \leftarrow (1 - m)\,\mu_\text{run} + m\,\mu, \qquad
# \sigma^2_\text{run} \leftarrow (1-m)\,\sigma^2_\text{run} + m\,\frac{n}{n-1}\,\sigma^2$$
#
# Two conventions in there have cost people days. The momentum $m$ is the share of the *new* batch (0.1 by default), the
# opposite of what it means in an optimizer. And two variances are in play: the batch is normalized with the sum of
# squares divided by $n$, since that is its variance; what is remembered is divided by $n - 1$, since it is an estimate
# for data to come. By hand, for a channel with the values 0, 2, 4, 6: the mean is 3, the squares sum to 20, so the
# output uses $20/4 = 5$. A running variance that was 1 becomes $0.9 \cdot 1 + 0.1 \cdot 20/3 = 1.566667$. With the
# other one it would be 1.4, and nobody would see it: at a batch of 256 the two differ by half a percent.
#
# A batch with one value for each channel has $n - 1 = 0$. PyTorch refuses it, and so do we. (It comes up as the last,
# short batch of an epoch.)
#
# ### Exercise 4.9: `batch_statistics`
# Medium, 20 minutes, 4 points.


# %% exercise="layers-batch-statistics"
def batch_statistics(
    x: np.ndarray, running_mean: np.ndarray, running_var: np.ndarray, momentum: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What batch norm normalizes a batch with, and what it will remember of it.

    x             shape (examples, channels, ...): every axis but axis 1 is counted as examples
    running_mean  shape (channels,), from all batches before; it is left as it was
    running_var   the same
    momentum      the share of the new batch in the running values
    returns       mean and variance of each channel of the batch, to normalize with (the sum of
                  squares divided by the count), then the running mean and the running variance
                  after this batch (into which the variance goes with the sum of squares divided
                  by count - 1). Four arrays of shape (channels,)
    raises        ValueError where there is only one value for a channel, or none

    >>> x, ones = np.array([[0.0], [2.0], [4.0], [6.0]]), np.ones(1)
    >>> [float(a.round(6)[0]) for a in batch_statistics(x, ones, ones, 0.1)]
    [3.0, 5.0, 1.2, 1.566667]

    PyTorch: what batch_norm computes on its way
    """
    ### BEGIN SOLUTION
    dims = (0, *range(2, x.ndim))
    count = math.prod(x.shape[d] for d in dims)
    if count < 2:
        raise ValueError(
            f"a batch of shape {x.shape} has fewer than two values for a channel, and so no "
            f"variance: give more examples, or use eval() where there are running statistics"
        )
    mean = np.add.reduce(x, dims) / count
    centred = x - mean.reshape(-1, *[1] * (x.ndim - 2))
    squares = np.add.reduce(centred * centred, dims)
    next_mean = running_mean + momentum * (mean - running_mean)
    next_var = running_var + momentum * (squares / (count - 1) - running_var)
    return mean, squares / count, next_mean, next_var
    ### END SOLUTION


# %% [markdown]
# <details><summary>It is right for two axes and wrong for images</summary>
#
# What counts as an example of channel 2? Every number whose second index is 2, wherever its other indices are.
# </details>
# <details><summary>The check says that an input was changed</summary>
#
# `running_mean += ...` writes into the caller's array. Make a new one; the layer decides what to do with it.
# </details>
# <details><summary>Only the running variance is off</summary>
#
# By what is the sum of squares divided, in what you return second, and in what you return fourth?
# </details>

# %% check="layers-batch-statistics"
check("layers-batch-statistics", batch_statistics)


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
    input = at_width("batch_norm", input, running_mean, running_var, weight, bias)
    if input.ndim < 2:
        raise ValueError(f"batch_norm takes an input of shape (examples, channels, ...) and got {input.shape}")
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
        refuse_sizes(num_features=num_features)
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
        refuse_others(type(self).__name__, input)
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


# %% [markdown]
# Watch the running values come in, and what `eval` does with them. The data has mean 5 and deviation 2:

# %%
norm = BatchNorm1d(1)
for step in range(1, 51):
    norm(randn(32, 1) * 2 + 5)
    if step in (1, 5, 20, 50):
        mean, variance = norm.running_mean.item(), norm.running_var.item()
        print(f"after {step:2} batches: mean {mean:.3f}, variance {variance:.3f}")
print("in training:", norm(tensor([[5.0], [9.0]])).tolist())
print("in eval:    ", norm.eval()(tensor([[5.0], [9.0]])).tolist())

# %% [markdown]
# The same two numbers come out as $\pm 1$ in training, where they are the whole world, and as about 0 and 2 in eval,
# where they are compared with all that was seen. (The batch of two has moved the running values, too: an evaluation
# that forgets `eval()` trains on the test set.)
#
# ## Embedding
#
# **Idea.** A word, a user, a product is a number without size: id 7 is not larger than id 3. An embedding is a table
# with a vector for each id, and looking up is indexing, `table[ids]`. It is the same as multiplying a row of zeros with
# a single 1 by the table, without the zeros.

# %% figure="lookup"
"""Left, a table of four rows with ids 0 to 3. In the middle, the ids 2, 0, 2 and the three rows that were read. On the
way back, the gradients of the two rows that were read from id 2, (1, 4) and (3, 1), arrive at row 2 of the table's
gradient as their sum (4, 5). Rows 1 and 3, which were not read, have the gradient 0."""
figure, axes = plt.subplots(figsize=(7.4, 2.9))
tints = ["#cfe3f1", "#f2f2f2", "#f6e3c5", "#f2f2f2"]
grads = {2: [(1, 4), (3, 1)], 0: [(2, 2)]}
summed = [(2, 2), (0, 0), (4, 5), (0, 0)]
for row in range(4):
    axes.text(-0.25, 3.5 - row, f"id {row}", ha="right", va="center", fontsize=10)
    for column in range(2):
        axes.add_patch(plt.Rectangle((column * 0.7, 3.1 - row), 0.7, 0.8, facecolor=tints[row], edgecolor="#8a8a8a"))
        axes.add_patch(
            plt.Rectangle((6.4 + column * 0.7, 3.1 - row), 0.7, 0.8, facecolor=tints[row], edgecolor="#8a8a8a")
        )
        axes.text(6.75 + column * 0.7, 3.5 - row, summed[row][column], ha="center", va="center")
for place, (name, pair) in enumerate([(2, (1, 4)), (0, (2, 2)), (2, (3, 1))]):
    y = 3.2 - place
    axes.text(2.95, y, f"id {name}", ha="right", va="center", fontsize=10)
    axes.annotate("", (2.3, y), (1.5, 3.5 - name), arrowprops={"arrowstyle": "->", "color": "#8a8a8a"})
    axes.annotate("", (6.3, 3.5 - name), (4.7, y), arrowprops={"arrowstyle": "->", "color": "#d55e00", "lw": 1.8})
    for column in range(2):
        axes.add_patch(
            plt.Rectangle((3.1 + column * 0.7, y - 0.4), 0.7, 0.8, facecolor=tints[name], edgecolor="#8a8a8a")
        )
        axes.text(3.45 + column * 0.7, y, pair[column], ha="center", va="center")
for x, title in [(0, "table"), (3.1, "gradient of what was read"), (6.4, "gradient of the table")]:
    axes.text(x, 4.25, title, fontsize=10.5)
axes.set(xlim=(-0.9, 8.6), ylim=(-0.1, 4.6))
axes.axis("off")

# %% [markdown]
# Read many times on the way forward, summed on the way back: the rule of chapter 02 for broadcasting and of chapter 03
# for repeated indices. `table[ids] += grad` does not obey it: NumPy reads all rows, adds, and writes all rows, and of
# two gradients for one row the second wins.
#
# One id may be reserved for *padding*, to fill short sentences up. Its vector should stay what it is, so its gradient
# is 0.
#
# ### Exercise 4.10: `embedding_gradient`
# Easy, 10 minutes, 2 points.


# %% exercise="layers-embedding"
def embedding_gradient(
    grad: np.ndarray,
    ids: np.ndarray,
    count: int,
    padding_idx: int | None,
) -> np.ndarray:
    """The gradient of a table of `count` vectors, from that of table[ids].

    grad         shape (*ids.shape, width)
    ids          whole numbers of any shape, from 0 to count - 1; an id may occur many times,
                 or never
    padding_idx  the id whose vector stands for "nothing here" and is never to change; None
                 where there is no such id
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


# %% [markdown]
# <details><summary>An id that occurs twice gets half of what it should</summary>
#
# NumPy has a function that adds at places and does not forget: `np.add.at`.
# </details>
# <details><summary>A batch of sentences does not fit</summary>
#
# How many vectors are there in all? Give `ids` one axis, and `grad` two.
# </details>
# <details><summary>Padding works, except for one id</summary>
#
# What does `if padding_idx:` say about id 0?
# </details>

# %% check="layers-embedding"
check("layers-embedding", embedding_gradient)


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
    refuse_others("embedding", input, weight)
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
        refuse_sizes(num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = row_of(padding_idx, num_embeddings)
        self.weight = Parameter(normal_(zeros(num_embeddings, embedding_dim, dtype=dtype)))
        if self.padding_idx is not None:
            zeros_(self.weight.data[self.padding_idx])

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Self:
        """A layer around a table that is there already. freeze: no gradient arrives at it."""
        refuse_others("from_pretrained", embeddings)
        if embeddings.ndim != 2:
            raise ValueError(f"from_pretrained takes a table of shape (ids, width) and got {embeddings.shape}")
        layer = cls(*embeddings.shape, padding_idx=padding_idx, dtype=embeddings.dtype)
        layer.weight = Parameter(embeddings, requires_grad=not freeze)
        return layer

    def forward(self, input: Tensor) -> Tensor:
        return embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


# %% [markdown]
# ## Looking inside
#
# **Idea.** To see what happens in a layer of somebody's model, you do not want to edit the model. A *hook* is a
# function that the module calls at a certain moment:
#
# | registered with | called | with | what it returns replaces |
# |---|---|---|---|
# | `register_forward_pre_hook` | before `forward` | `(module, args)` | `args` |
# | `register_forward_hook` | after `forward` | `(module, args, output)` | `output` |
# | `register_full_backward_hook` | once these gradients are known | `(module, grad_input, grad_output)` | the first |
#
# Registering gives a handle, and `handle.remove()` takes the hook away. This is also why one calls `model(x)` and not
# `model.forward(x)`: the call goes through `__call__`, where the hooks are.
#
# The first two are yours.

# %% figure="call"
"""A call as a row of boxes. The arguments go into the hooks in front, one after the other, then into forward, then its
output goes through the hooks behind, one after the other. Each hook either lets the value pass or puts another one in
its place. The hooks behind are also shown the arguments that forward was given."""
figure, axes = plt.subplots(figsize=(7.4, 2.2))
for x, width, name, tint in [
    (1.1, 1.2, "hook", "#f6e3c5"),
    (2.6, 1.2, "hook", "#f6e3c5"),
    (4.2, 1.5, "forward", "#cfe3f1"),
    (6.1, 1.2, "hook", "#f6e3c5"),
    (7.6, 1.2, "hook", "#f6e3c5"),
]:
    axes.add_patch(plt.Rectangle((x, 1), width, 0.9, facecolor=tint, edgecolor="#8a8a8a"))
    axes.text(x + width / 2, 1.45, name, ha="center", va="center")
for start, end in [(0.75, 1.1), (2.3, 2.6), (3.8, 4.2), (5.7, 6.1), (7.3, 7.6), (8.8, 9.2)]:
    axes.annotate("", (end, 1.45), (start, 1.45), arrowprops={"arrowstyle": "->", "color": "#0072b2", "lw": 2})
axes.text(0.7, 1.45, "args", ha="right", va="center")
axes.text(9.25, 1.45, "output", ha="left", va="center")
axes.plot([4.0, 4.0, 8.2], [1.45, 0.55, 0.55], color="#009e73", linewidth=1.5, linestyle="--")
for x in (6.7, 8.2):
    axes.annotate("", (x, 1.0), (x, 0.55), arrowprops={"arrowstyle": "->", "color": "#009e73", "linestyle": "--"})
axes.text(5.6, 0.2, "the args that forward was given", ha="center", fontsize=10, color="#007a5a")
axes.text(2.45, 2.15, "before", ha="center")
axes.text(7.45, 2.15, "after", ha="center")
axes.set(xlim=(0, 10.3), ylim=(0, 2.5))
axes.axis("off")

# %% [markdown]
# ### Exercise 4.11: `call_with_hooks`
# Medium, 15 minutes, 3 points.


# %% exercise="layers-hooks"
def call_with_hooks(
    module: Any, args: tuple, kwargs: dict, before: Iterable[Callable], after: Iterable[Callable]
) -> Any:
    """module.forward(*args, **kwargs), between those who want to see or change what goes in and
    what comes out.

    before   functions hook(module, args), called in order, each with what the one before it
             left. One that returns None has only watched. What another returns takes the place
             of args: a tuple, or one value for the only argument
    after    functions hook(module, args, output), called in order with the args that forward was
             given. One that returns None has only watched; what another returns takes the place
             of output
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


# %% [markdown]
# <details><summary>Hooks that only watch break the call</summary>
#
# What does a function return that has no `return`? What should happen to the value then?
# </details>
# <details><summary>The arguments fall apart into rows</summary>
#
# `tuple(x)` of an array is a tuple of its rows. A hook may return the only argument itself: ask whether it is a tuple
# already, and put it into one if it is not.
# </details>

# %% check="layers-hooks"
check("layers-hooks", call_with_hooks)

# %% [markdown]
# The third kind of hook has to catch gradients at the module's border. It is given: a *gate* is a node of the graph
# through which all inputs pass, and another through which all outputs do, so each sees its gradients together, on their
# way back. In chapter 02 you hung hooks on single tensors; a gate is what that becomes for a module with several
# inputs.


# %% given="backward-hooks"
class Gate(Operation):
    """A node that several tensors pass at once, on their way into a module or out of it."""

    grad_like = (), np.dtype(np.float64)

    def __init__(self, tensors: tuple, visit: Callable[[tuple], tuple]):
        """visit  takes the gradients of all tensors, None where none has come, and returns those that go on"""
        self.wants = [isinstance(t, Tensor) and t.requires_grad for t in tensors]
        self.targets = [t.node if isinstance(t, Tensor) else None for t in tensors]
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
        beyond.follow(Port(self, place, t))
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


# %% [markdown]
# ### What a model costs
#
# The first use: before a model is trained, know what it costs. Three numbers say most. The *parameters* are what is
# stored, and with Adam's two moments and the gradient, four times that in training. The *multiply-adds* say how long a
# step takes: about as many again for each of the two products of backward. The *activations* are what backward needs to
# have kept; for large batches they are far more than the parameters.
#
# A `Linear(784, 10)` on a batch of 64 puts out 640 numbers, and each is a sum of 784 products: 501,760 multiply-adds,
# with 7,850 parameters, 10 of them in the bias, and 2,560 bytes of activations in float32.
#
# ### Exercise 4.12: `multiply_adds`
# Easy, 5 minutes, 2 points.


# %% exercise="layers-count"
def multiply_adds(weight_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> int:
    """How many products a layer calculates and adds up, for its weight; a bias has none.

    weight_shape  (out, in), or (out, in, ...) for a layer whose outputs read several places of
                  each input
    output_shape  the shape of all that comes out, with the batch and all other axes; the `out`
                  axis is among them
    returns       a whole number

    >>> multiply_adds((10, 784), (64, 10))
    501760

    PyTorch: half of what torch.utils.flop_counter counts
    """
    ### BEGIN SOLUTION
    return math.prod(output_shape) * math.prod(weight_shape[1:])
    ### END SOLUTION


# %% [markdown]
# <details><summary>It does not depend on the batch</summary>
#
# For how many outputs is the sum calculated? All axes of `output_shape` count.
# </details>
# <details><summary>It is too large, by a factor that is one of the sizes</summary>
#
# The number of outputs per example stands in both shapes. Count it once.
# </details>

# %% check="layers-count"
check("layers-count", multiply_adds)

# %% [markdown]
# `costs` hangs a forward hook on every layer, runs the model once, and takes the hooks away.


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


# %%
model = Sequential(Linear(784, 256), LayerNorm(256), GELU(), Dropout(0.1), Linear(256, 10))
print(f"{'layer':9}{'':10}{'parameters':>11}{'multiply-adds':>15}{'activation bytes':>18}")
rows = costs(model, randn(64, 784))
for c in rows:
    print(f"{c.name:3}{c.kind:16}{c.parameters:11,}{c.multiply_adds:15,}{c.activation_bytes:18,}")
print(f"{'in all':19}{sum(c.parameters for c in rows):11,}{sum(c.multiply_adds for c in rows):15,}")

# %% [markdown]
# ### How gradients flow
#
# The second use stays with you for the rest of the course. `GradientFlow` watches a model while it trains, through
# hooks alone: what comes out of each layer, and how large the gradient is that arrives there.


# %% given="gradient-flow"
class Activations(NamedTuple):
    """What came out of a layer in one step: mean, standard deviation, and the share of elements that are exactly 0."""

    mean: float
    std: float
    zeros: float


def described(x: np.ndarray) -> Activations:
    wide, count = x.astype(np.float64).ravel(), max(x.size, 1)
    mean = float(np.add.reduce(wide)) / count
    wide -= mean
    return Activations(mean, math.sqrt(np.vdot(wide, wide) / count), 1 - np.count_nonzero(x) / count)


class GradientFlow:
    """Watches a model while it trains: what comes out of each layer, and the gradient that arrives at its output.

    A step is one call of the model with gradients on. Everything is by layer name, one entry a step:
    activations      Activations
    gradient_norms   the norm of the gradient at the layer's output; nan for a step that had no backward
    histograms       how many of its elements are as large as `edges` says, from one power of two up to the next; what
                     is smaller or larger than all of them is in the first or the last place, and 0, inf and nan in none
    watchers         functions that are called with False when a step is complete, and with True at the end

    with GradientFlow(model) as flow: train. It changes no number, and no hook is left after the block or close().
    """

    edges = 2.0 ** np.arange(-40, 15)

    def __init__(self, model: Module):
        self.names = tuple(name for name, _ in leaves(model))
        self.handles = [model.register_forward_pre_hook(self.begin)]
        for name, module in leaves(model):
            self.handles.append(module.register_forward_hook(self.watch_output(name)))
            self.handles.append(module.register_full_backward_hook(self.watch_gradient(name)))
        self.watchers: list[Callable[[bool], None]] = []
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self.steps = 0
        self.activations: dict[str, list[Activations]] = {name: [] for name in self.names}
        self.gradient_norms: dict[str, list[float]] = {name: [] for name in self.names}
        self.histograms: dict[str, list[np.ndarray]] = {name: [] for name in self.names}

    def begin(self, module: Module, args: tuple) -> None:
        if autodiff.is_grad_enabled():
            self.tell(ended=False)
            self.steps += 1
            for name in self.names:
                self.activations[name].append(Activations(math.nan, math.nan, math.nan))
                self.gradient_norms[name].append(math.nan)
                self.histograms[name].append(np.zeros(len(self.edges) - 1, np.int64))

    def watch_output(self, name: str) -> Callable:
        def hook(module: Module, args: tuple, output: Any) -> None:
            if self.steps and autodiff.is_grad_enabled() and isinstance(output, Tensor):
                self.activations[name][-1] = described(output.array)

        return hook

    def watch_gradient(self, name: str) -> Callable:
        def hook(module: Module, grad_input: tuple, grad_output: tuple) -> None:
            if self.steps and grad_output[0] is not None:
                wide = grad_output[0].array.astype(np.float64).ravel()
                norms, norm = self.gradient_norms[name], math.sqrt(np.vdot(wide, wide))
                norms[-1] = norm if math.isnan(norms[-1]) else math.hypot(norms[-1], norm)  # called twice in a step
                self.histograms[name][-1] += self.counted(wide)

        return hook

    def counted(self, gradient: np.ndarray) -> np.ndarray:
        """How many elements begin with each power of two: their exponents, which are cheap to ask for."""
        exponents = np.frexp(gradient[np.isfinite(gradient) & (gradient != 0)])[1] + 39  # 2**-40 is 0.5 * 2**-39
        return np.bincount(exponents.clip(0, len(self.edges) - 2), minlength=len(self.edges) - 1)

    def close(self) -> None:
        """Take all hooks away. What was recorded stays."""
        for handle in self.handles:
            handle.remove()
        self.handles = []
        self.tell(ended=True)
        self.watchers.clear()

    def tell(self, ended: bool) -> None:
        for watcher in self.watchers:
            watcher(ended)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


# %% [markdown]
# Train four small networks on the same task, by plain descent, and watch. The task: two spirals, which a straight line
# cannot part. The networks: eight hidden layers of 32, with sigmoids; with relus and Kaiming's beginning; the same,
# begun three times too large; and with relus, each layer in a `Residual` behind a `LayerNorm`.


# %%
def spirals(count=200):
    turn = rand(count, 1) * 3 + 0.5
    side = (rand(count, 1) < 0.5).float() * 2 - 1
    points = gradwright.cat([(turn * 2).cos() * turn, (turn * 2).sin() * turn], 1) * side
    return points + randn(count, 2) * 0.05, side


def network(kind):
    block = {
        "sigmoid": lambda: Sequential(Linear(32, 32), Sigmoid()),
        "residual": lambda: Residual(Sequential(LayerNorm(32), Linear(32, 32), ReLU())),
    }.get(kind, lambda: Sequential(Linear(32, 32), ReLU()))
    model = Sequential(Linear(2, 32), *[block() for _ in range(8)], Linear(32, 1))
    if kind.startswith("relu"):
        for p in model.parameters():
            if p.ndim == 2:
                kaiming_normal_(p)
                with no_grad():
                    p.mul_(3.0 if "large" in kind else 1.0)
    return model


points, side = spirals()
points.shape, side.shape

# %% [markdown]
# The training itself is plain descent in a few lines; chapter 06 is about better ones.


# %%
def train(model, steps=60, rate=0.02):
    x, y = spirals()
    for _ in range(steps):
        loss = (model(x).tanh() - y).square().mean()
        model.zero_grad()
        loss.backward()
        with no_grad():
            for p in model.parameters():
                p.sub_(p.grad, alpha=rate)
    return loss.item()


flows = {}
for kind in ("sigmoid", "relu", "relu, large", "residual"):
    gradwright.manual_seed(0)
    model = network(kind)
    with GradientFlow(model) as flows[kind]:
        print(f"{kind:12} loss after 60 steps: {train(model):.3f}")

# %% [markdown]
# Each flow holds one number a layer and step. Draw those of the first step, over depth:

# %%
figure, axes = plt.subplots()
for (kind, flow), mark in zip(flows.items(), "osv^", strict=True):
    first = [norms[0] for norms in flow.gradient_norms.values()]
    axes.semilogy(np.linspace(0, 1, len(first)), first, mark + "-", label=kind, markersize=4)
axes.set(xlabel="depth, from the input (0) to the output (1)", ylabel="norm of the gradient")
axes.legend()
# %% figure="flow"
"""Norm of the gradient at each of eight hidden layers, on a logarithmic scale, for four networks as they begin. With
sigmoids it falls about sevenfold a layer from the output back to the input, to a millionth. With relus and Kaiming's
beginning it stays level. Begun three times too large, it grows threefold a layer towards the input. The residual
network with layer norm stays level."""
rng = np.random.default_rng(2)
width, depth, batch = 32, 8, 200


def passes(kind):
    x, done = rng.standard_normal((batch, width)), []
    for _ in range(depth):
        scale = {"sigmoid": 1 / 3, "relu": 2.0, "relu, large": 18.0, "residual": 1 / 3}[kind]
        w = rng.standard_normal((width, width)) * np.sqrt(scale / width)
        normal = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True) if kind == "residual" else x
        z = normal @ w.T
        y = 1 / (1 + np.exp(-z)) if kind == "sigmoid" else np.maximum(z, 0)
        slope = y * (1 - y) if kind == "sigmoid" else (z > 0) * 1.0
        done.append((w, slope, normal, x.std(1, keepdims=True)))
        x = x + y if kind == "residual" else y
    g, norms = rng.standard_normal((batch, width)) / batch, []
    for w, slope, normal, deviation in done[::-1]:
        norms.append(np.linalg.norm(g))
        inner = (g * slope) @ w
        if kind == "residual":
            inner = inner - inner.mean(1, keepdims=True) - normal * (inner * normal).mean(1, keepdims=True)
            inner = g + inner / deviation
        g = inner
    return norms[::-1]


figure, axes = plt.subplots(figsize=(6.6, 3.4))
for kind, mark in zip(("sigmoid", "relu", "relu, large", "residual"), "osv^", strict=True):
    axes.semilogy(range(1, depth + 1), passes(kind), mark + "-", label=kind, markersize=5)
axes.set(xlabel="hidden layer, from the input to the output", ylabel="norm of the gradient", title="at the first step")
axes.legend(fontsize=9)

# %% [markdown]
# The sigmoid's slope is at most a quarter, so eight of them leave the first layer with almost nothing: it *vanishes*.
# Three times too much, eight times in a row, *explodes*: the loss is stuck where tanh is flat, or is nan. Relu with the
# right beginning and the residual network are level; only these two learn. A third fault shows in the activations
# rather than in the gradients: a relu whose input is negative for every example puts out zeros and gets no gradient,
# and so stays *dead*. The share of zeros in each layer's output tells:

# %%
for kind, flow in flows.items():
    shares = [steps[-1].zeros for steps in flow.activations.values() if steps[-1].zeros > 0]
    listed = " ".join(f"{share:.0%}" for share in shares)
    print(f"{kind:12} zeros behind each relu:", listed or "none")

# %% [markdown]
# Around a half is healthy. A layer at 100 % is dead, and everything in front of it with it.
#
# You need not wait for the end. `flow_monitor(flow)` draws what a recorder has seen so far, and draws it anew while the
# training goes on. It hangs on the recorder and not on the model, so it works for every model of yours, from here to
# the last chapter. Run the first cell, then the second, and watch the picture of the first move. After a while the
# norms of all layers fall, and yet none is vanishing: what falls with them, and how would the lines look if one were?

# %%
gradwright.manual_seed(0)
model = network("residual")
flow = GradientFlow(model)
flow_monitor(flow)

# %%
print(f"loss after 300 steps: {train(model, steps=300, rate=0.05):.3f}")
flow.close()

# %% [markdown]
# **Look.** Press *Play* under *vanishing sigmoid*, then change one choice at a time until every layer is flowing, and
# see in *dead ReLU* at which step the last layer dies.

# %% widget="gradient-flow-explorer"
gradient_flow(preset="vanishing sigmoid")

# %% [markdown]
# ## In PyTorch
#
# The same tree, under the same names: state dicts of the two load into one another, parameters come in the same order,
# and `print(model)` reads the same. When the chapter is done, this runs with either first line:
#
#     import gradwright as torch        # or: import torch
#     nn = torch.nn
#
#     model = nn.Sequential(
#         nn.Linear(2, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1)
#     )
#     model.eval().load_state_dict(state)
#
# | | here | PyTorch |
# |---|---|---|
# | `Module.to` | a dtype | a dtype, a device, both |
# | `load_state_dict` where something is wrong | nothing is copied | what fits is copied, then it raises |
# | `strict=False` and a wrong shape | an error | an error |
# | random numbers of dropout | from `generator`, else the default one | from the device's own generator |
# | `inplace=True` | refused by name | overwrites the input, to save memory |
# | batch norm over several machines | each by itself | `SyncBatchNorm` averages over all of them |
# | a table of a million rows | a gradient of a million rows | `sparse=True`: only the rows that were read |
# | `GradientFlow` | yes | write it with the same three hooks |
#
# On a GPU the norms and dropout are single kernels too, for the reason that they are single operations here: reading
# and writing the numbers takes longer than calculating with them.
#
# ## Check yourself
#
# Write two or three sentences each; there is nothing to run.
#
# 1. A colleague keeps the layers of a network in a Python list, `self.layers = [Linear(8, 8) for _ in range(4)]`. The
#    forward works. What does the optimizer see, what does the state dict hold, and how would you notice on the first
#    day?
# 2. A model with batch norm is trained on batches of 2 and evaluated after every epoch. In training its accuracy is 80
#    %, in evaluation it jumps between 20 % and 75 %. Name two causes that fit, and the experiment that tells them
#    apart.
#
# You can now
#
# - ✓ say what becomes a parameter, a buffer or neither, and write down and load a model's whole state;
# - ✓ choose how weights begin, and say what the choice does to activations and gradients through 20 layers;
# - ✓ write dropout and the normalization layers with their full gradients, and say what differs in eval;
# - ✓ count what a model costs, and watch gradients flow through one of yours while it trains.
#
# A model is half of a training step. In chapter 05 comes the number that it is trained for, and with it the question of
# why that number is sometimes not a number at all.
