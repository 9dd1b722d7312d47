"""Chapter 04: the right values, wrong answers, and other right ones. A mistake's docstring is what learners read."""

from __future__ import annotations

import math

import numpy as np

from gradwright.chapters import layers
from gradwright.chapters import tensor as plain
from gradwright.chapters.layers import (
    Module,
    Parameter,
    Registry,
    batch_statistics,
    dropout,
    embedding_gradient,
    linear,
    mismatches,
    multiply_adds,
    named_members,
    normal_,
    normalized_gradient,
    preserving_std,
    state_of,
    uniform_,
)
from gradwright.chapters.operations import Tensor, rand, zeros

HOMES = ("_parameters", "_buffers", "_modules")


def lines(texts):
    return np.array(list(texts), dtype=np.str_) if len(texts) else np.empty(0, "U1")


def torch_registry(arrays, torch):
    """The script of a case, carried out on a torch module; names of all that was assigned, and what became of it."""
    module = torch.nn.Module.__new__(torch.nn.Module)
    makers = {
        "parameter": lambda: torch.nn.Parameter(torch.zeros(1)),
        "tensor": lambda: torch.zeros(1),
        "module": torch.nn.Module,
        "none": lambda: None,
        "number": lambda: object(),
    }
    given, refused, kept = {}, [], []
    for line in arrays["script"].tolist():
        verb, name, kind = line.split()
        if verb == "run":
            module.__init__()
            continue
        value = makers[kind]()
        kept.append(value)
        if value is not None:
            given[id(value)] = f"{kind} {len(kept)}"
        try:
            if verb == "buffer":
                module.register_buffer(name, value)
            else:
                setattr(module, name, value)
            refused.append("-")
        except (TypeError, AttributeError) as error:
            refused.append(type(error).__name__)
    return module, given, refused, kept


class layers_registry:
    def oracle(arrays, torch):
        module, given, refused, _kept = torch_registry(arrays, torch)
        names = sorted({line.split()[1] for line in arrays["script"].tolist() if not line.startswith("run")})

        def shown(value):
            return "None" if value is None else given[id(value)]

        def shelf(members):
            return lines([f"{name}: {shown(value)}" for name, value in members.items()])

        found = {home.strip("_"): shelf(vars(module).get(home, {})) for home in HOMES}
        back = [f"{n}: {shown(getattr(module, n)) if hasattr(module, n) else 'AttributeError'}" for n in names]
        return {
            "refused with": lines(refused),
            **found,
            "plain attributes": shelf({n: v for n, v in vars(module).items() if n in names}),
            "read back": lines([*back, "unknown: AttributeError"]),
        }

    class mistakes:
        class every_tensor_a_buffer(Registry):
            """Every plain tensor was made a buffer. Only a name that is in _buffers already gets one; any other
            tensor is a plain attribute."""

            def __setattr__(self, name, value):
                if isinstance(value, Tensor) and not isinstance(value, Parameter):
                    self._buffers[name] = value
                else:
                    super().__setattr__(name, value)

        class old_place_kept(Registry):
            """A name that changed its kind is in two places now, in the new one and in the old: take it out of the
            others first."""

            def __setattr__(self, name, value):
                if isinstance(value, Parameter):
                    self._parameters[name] = value
                elif isinstance(value, Registry):
                    self._modules[name] = value
                else:
                    super().__setattr__(name, value)

        class plain_attribute_kept(Registry):
            """A parameter took the name of a plain attribute, and that attribute is still in vars(self). Python finds
            it there first and never asks __getattr__."""

            def __setattr__(self, name, value):
                before = vars(self).get(name)
                super().__setattr__(name, value)
                if before is not None:
                    vars(self)[name] = before if isinstance(value, Parameter | Registry) else value

        class none_removes(Registry):
            """A name that was set to None was taken out. It keeps its place, with None as its value, so that a layer
            without a bias can still say that it might have one."""

            def __setattr__(self, name, value):
                if value is None and name in {**self._parameters, **self._buffers, **self._modules}:
                    for home in HOMES:
                        vars(self)[home].pop(name, None)
                else:
                    super().__setattr__(name, value)

        class none_hides(Registry):
            """None went into a plain attribute, though the name was registered: the old value is still in its
            dictionary, hidden, and would be trained and saved."""

            def __setattr__(self, name, value):
                if value is None:
                    vars(self)[name] = None
                else:
                    super().__setattr__(name, value)

        class nothing_refused(Registry):
            """A number or a plain tensor took the place of a parameter or a module, as a plain attribute that hides
            it. Raise TypeError: this is how a layer silently stops learning."""

            def __setattr__(self, name, value):
                try:
                    super().__setattr__(name, value)
                except TypeError:
                    vars(self)[name] = value

        class buffer_becomes_plain(Registry):
            """A new tensor for a buffer went into a plain attribute. The state dict would go on saving the old one:
            put it into _buffers, under the same name."""

            def __setattr__(self, name, value):
                if isinstance(value, Tensor) and not isinstance(value, Parameter) and name in self._buffers:
                    vars(self)[name] = value
                else:
                    super().__setattr__(name, value)

        class before_init_accepted(Registry):
            """A parameter or module was accepted before __init__ had run, which then empties the dictionaries and
            loses it. Raise AttributeError while the dictionaries are not there."""

            def __setattr__(self, name, value):
                if "_parameters" not in vars(self) and isinstance(value, Parameter | Registry):
                    vars(self)[name] = value
                else:
                    super().__setattr__(name, value)

        class unknown_is_none(Registry):
            """A name that nobody registered reads as None. Raise AttributeError: a typing error should not become a
            value."""

            def __getattr__(self, name):
                own = vars(self)
                return {**own["_parameters"], **own["_buffers"], **own["_modules"]}.get(name)

        class moved_to_the_end(Registry):
            """A name that is assigned again moved to the end. It keeps its place: optimizers know parameters by their
            order."""

            def __setattr__(self, name, value):
                if isinstance(value, Parameter):
                    vars(self).get("_parameters", {}).pop(name, None)
                super().__setattr__(name, value)

        class modules_forgotten(Registry):
            """Modules were kept as plain attributes: what is below them is found by nobody. They belong in
            _modules."""

            def __setattr__(self, name, value):
                if isinstance(value, Registry):
                    vars(self)[name] = value
                else:
                    super().__setattr__(name, value)

        class buffers_not_found(Registry):
            """Buffers cannot be read back: look in _buffers too."""

            def __getattr__(self, name):
                for home in ("_parameters", "_modules"):
                    if name in vars(self).get(home, {}):
                        return vars(self)[home][name]
                raise AttributeError(name)

    class alternatives:
        class one_rule_after_the_other(Registry):
            def __setattr__(self, name, value):
                own = vars(self)
                shelves = [own.get(home, {}) for home in HOMES]
                kind = Parameter if isinstance(value, Parameter) else Registry if isinstance(value, Registry) else None
                if kind and "_modules" not in own:
                    raise AttributeError("call super().__init__() first")
                if kind is Parameter or (kind is Registry and name not in shelves[0]):
                    place = 0 if kind is Parameter else 2
                    for i, shelf in enumerate([*shelves, own]):
                        if i != place:
                            shelf.pop(name, None)
                    shelves[place][name] = value
                    return
                for shelf in (shelves[0], shelves[2], shelves[1]):
                    if name in shelf:
                        if value is not None and not (shelf is shelves[1] and isinstance(value, Tensor)):
                            raise TypeError(f"{name} cannot be a {type(value).__name__}")
                        shelf[name] = value
                        return
                object.__setattr__(self, name, value)

            def __getattr__(self, name):
                for home in HOMES:
                    try:
                        return vars(self)[home][name]
                    except KeyError:
                        pass
                raise AttributeError(name)


def pairs_of(module, kind, prefix=""):
    """Every member, as often as it is met."""
    found = [(prefix + name, m) for name, m in getattr(module, kind).items() if m is not None]
    for name, child in module._modules.items():
        found += pairs_of(child, kind, f"{prefix}{name}.") if child is not None else []
    return found


def tree_of(arrays, torch):
    """The tree that the lines describe, as torch modules, and its members, shared where they are shared."""
    modules, members = {}, {}
    split = [line.split() for line in arrays["tree"].tolist()]
    kept = {(owner, name) for owner, home, name, _ in split if home == "_not_saved"}

    def module(name):
        return modules.setdefault(name, torch.nn.Module())

    def member(number, home):
        if (number, home) not in members:
            value = torch.tensor([arrays["values"][number]])
            is_parameter = home == "_parameters"
            members[number, home] = torch.nn.Parameter(value, requires_grad=False) if is_parameter else value
        return members[number, home]

    for owner, home, name, what in split:
        if home == "_modules":
            module(owner).add_module(name, None if what == "-" else module(what))
        elif home == "_parameters":
            module(owner).register_parameter(name, None if what == "-" else member(int(what), home))
        elif home == "_buffers":
            value = None if what == "-" else member(int(what), home)
            module(owner).register_buffer(name, value, persistent=(owner, name) not in kept)
    return module("m0"), list(members.values())


def listed(pairs):
    pairs = list(pairs)
    return {"names": lines([name for name, _ in pairs]), "members": np.array([float(m[0]) for _, m in pairs])}


class layers_named:
    def oracle(arrays, torch):
        module, _ = tree_of(arrays, torch)
        listing = module.named_parameters if str(arrays["kind"]) == "_parameters" else module.named_buffers
        prefix = str(arrays["prefix"]) if "prefix" in arrays else ""
        return listed((prefix + name, m) for name, m in listing())

    class mistakes:
        def shared_twice(module, kind, prefix=""):
            """A shared parameter came twice. An optimizer would step it twice: remember the id() of what was given,
            for all modules together."""
            return pairs_of(module, kind, prefix)

        def shared_in_one_module_alone(module, kind, prefix=""):
            """Each module remembers only what it has given itself, so that a parameter of two modules comes twice: hand
            the same set on to the calls below."""
            own = {id(m): (name, m) for name, m in reversed(getattr(module, kind).items()) if m is not None}
            found = [(prefix + name, m) for name, m in reversed(own.values())]
            for name, child in module._modules.items():
                if child is not None:
                    found += layers_named.mistakes.shared_in_one_module_alone(child, kind, f"{prefix}{name}.")
            return found

        def equal_taken_for_the_same(module, kind, prefix=""):
            """Two parameters that hold equal numbers were taken for one. Ask whether it is the same object, by id()."""
            found = []
            for name, m in pairs_of(module, kind, prefix):
                if not any(m == other for _, other in found):
                    found.append((name, m))
            return found

        def one_of_each_name(module, kind, prefix=""):
            """Of all parameters called `weight` only the first came. A name belongs to its module; remember the
            parameter itself, by its id()."""
            found = {}
            for name, m in named_members(module, kind, prefix):
                found.setdefault(name.split(".")[-1], (name, m))
            return list(found.values())

        def below_first(module, kind, prefix=""):
            """The modules below came first. A module's own members are in front of theirs."""
            found, seen = [], set()
            for name, child in module._modules.items():
                if child is not None:
                    found += layers_named.mistakes.below_first(child, kind, f"{prefix}{name}.")
            found += [(prefix + name, m) for name, m in getattr(module, kind).items() if m is not None]
            return [(n, m) for n, m in found if not (id(m) in seen or seen.add(id(m)))]

        def names_without_a_path(module, kind, prefix=""):
            """The names of members below do not say in which module they are: each call hands on the prefix, the
            module's name and a dot."""
            return [(prefix + name.split(".")[-1], m) for name, m in named_members(module, kind)]

        def last_module_alone(module, kind, prefix=""):
            """The name says only the module in which a member is, not the modules around that: put the prefix in
            front of the module's name."""
            return [
                (".".join((prefix + name).split(".")[-2:]) if "." in name else prefix + name, m)
                for name, m in named_members(module, kind)
            ]

        def one_level(module, kind, prefix=""):
            """Modules deeper down were not visited. What is done for a module below is the same as for this one, so
            let the function call itself."""
            return [(n, m) for n, m in named_members(module, kind, prefix) if n[len(prefix) :].count(".") < 2]

        def parameters_alone(module, kind, prefix=""):
            """Whatever was asked for, parameters came. `kind` names the dictionary: getattr(module, kind)."""
            return named_members(module, "_parameters", prefix)

        def prefix_below_alone(module, kind, prefix=""):
            """The prefix is missing in front of the module's own names. It is in front of all of them."""
            found = [(n.removeprefix(prefix), m) for n, m in named_members(module, kind, prefix)]
            return [(prefix + n if "." in n else n, m) for n, m in found]

    class alternatives:
        def with_a_stack(module, kind, prefix="", seen=None):
            seen, waiting = set(), [(prefix, module)]
            while waiting:
                front, node = waiting.pop()
                for name, m in getattr(node, kind).items():
                    if m is not None and id(m) not in seen:
                        seen.add(id(m))
                        yield front + name, m
                below = [(f"{front}{name}.", child) for name, child in node._modules.items() if child is not None]
                waiting.extend(reversed(below))

        def first_of_each(module, kind, prefix="", seen=None):
            found = {}
            for name, m in pairs_of(module, kind, prefix):
                found.setdefault(id(m), (name, m))
            return iter(found.values())


class layers_state:
    def oracle(arrays, torch):
        module, members = tree_of(arrays, torch)
        state = module.state_dict(prefix=str(arrays["prefix"]) if "prefix" in arrays else "")
        first = listed(state.items())
        for m in members:
            m *= -2
        return {**first, "members after the module has changed": listed(state.items())["members"]}

    class mistakes:
        def buffers_forgotten(module, prefix=""):
            """The buffers are missing: a running mean is no parameter, and without it the loaded model is another
            model."""
            return dict(pairs_of(module, "_parameters", prefix))

        def own_buffers_alone(module, prefix=""):
            """Buffers of the modules below are missing: they are part of those modules' states."""
            state = state_of(module, prefix)
            own = {prefix + name for name in module._buffers}
            below = {name for name, _ in pairs_of(module, "_buffers", prefix)} - own
            return {name: m for name, m in state.items() if name not in below}

        def everything_saved(module, prefix=""):
            """A buffer that is named in _not_saved was saved. It can be worked out anew, and would be missing in
            older states: leave it out."""
            state = {prefix + n: m for n, m in {**module._parameters, **module._buffers}.items() if m is not None}
            for name, child in module._modules.items():
                state |= layers_state.mistakes.everything_saved(child, f"{prefix}{name}.") if child else {}
            return state

        def not_saved_from_the_top(module, prefix=""):
            """The _not_saved of the first module was used for the modules below too. Each has its own."""

            def walk(node, front):
                kept = {n: m for n, m in node._buffers.items() if n not in module._not_saved}
                state = {front + n: m for n, m in {**node._parameters, **kept}.items() if m is not None}
                for name, child in node._modules.items():
                    state |= walk(child, f"{front}{name}.") if child is not None else {}
                return state

            return walk(module, prefix)

        def shared_once(module, prefix=""):
            """A shared member is there under its first name alone. Whoever loads this state looks for it under every
            name that the module has for it."""
            first = {}
            for name, m in state_of(module, prefix).items():
                first.setdefault(id(m), (name, m))
            return dict(first.values())

        def copies(module, prefix=""):
            """The state holds copies. It names the module's own members, and who wants a snapshot copies it: for a
            large model, that is the whole memory once more."""
            return {name: m.copy() for name, m in state_of(module, prefix).items()}

        def buffers_first(module, prefix=""):
            """The module's buffers stand in front of its parameters: the parameters come first."""
            saved = {n: m for n, m in module._buffers.items() if n not in module._not_saved}
            state = {prefix + n: m for n, m in {**saved, **module._parameters}.items() if m is not None}
            for name, child in module._modules.items():
                state |= layers_state.mistakes.buffers_first(child, f"{prefix}{name}.") if child else {}
            return state

        def prefix_lost(module, prefix=""):
            """The prefix was not used: it is in front of every name, also in the calls for the modules below."""
            return {".".join(name.split(".")[-2:]): m for name, m in state_of(module).items()}

        def this_module_alone(module, prefix=""):
            """The modules below are missing: add what the same function returns for each of them."""
            below = {f"{prefix}{name}." for name in module._modules}
            return {n: m for n, m in state_of(module, prefix).items() if not any(n.startswith(b) for b in below)}

    class alternatives:
        def one_dictionary_filled(module, prefix="", state=None):
            state = {} if state is None else state
            for name, m in module._parameters.items():
                if m is not None:
                    state[prefix + name] = m
            for name, m in module._buffers.items():
                if m is not None and name not in module._not_saved:
                    state[prefix + name] = m
            for name, child in module._modules.items():
                if child is not None:
                    layers_state.alternatives.one_dictionary_filled(child, f"{prefix}{name}.", state)
            return state


def read_shapes(array):
    pairs = [line.split(" ") for line in array.tolist()]
    return {name: tuple(int(n) for n in sizes.split("x") if n) for name, sizes in pairs}


class layers_loading:
    def oracle(arrays, torch):
        own, given = (read_shapes(arrays[name]) for name in ("own", "given"))

        class Holder(torch.nn.Module):
            pass

        holder = Holder()
        state = {name: torch.zeros(shape) for name, shape in given.items()}
        for name, shape in own.items():
            holder._parameters[name] = torch.nn.Parameter(torch.zeros(shape))
        fits = {n: t for n, t in state.items() if n not in own or own[n] == given[n]}
        found = holder.load_state_dict(fits, strict=False)
        unlike = [n for n in found.missing_keys if n in given]
        missing = [n for n in found.missing_keys if n not in given]
        return {
            "missing": lines(missing),
            "unexpected": lines(found.unexpected_keys),
            "of another shape": lines(unlike),
        }

    class mistakes:
        def exchanged(own, given):
            """Missing and unexpected are exchanged. Missing is what the module has and the state dict does not."""
            missing, unexpected, unlike = mismatches(own, given)
            return unexpected, missing, unlike

        def number_of_elements(own, given):
            """Shapes were compared by the number of elements. A weight of shape (3, 2) has as many as one of (2, 3),
            and is another weight."""
            missing, unexpected, _ = mismatches(own, given)
            return missing, unexpected, [n for n in own if n in given and math.prod(own[n]) != math.prod(given[n])]

        def broadcast_accepted(own, given):
            """A shape that broadcasts to the wanted one was accepted: loading would fill a whole weight with one row.
            Shapes must be equal."""
            missing, unexpected, unlike = mismatches(own, given)

            def stretches(name):
                a, b = given[name], own[name]
                return len(a) <= len(b) and all(n in (1, m) for n, m in zip(a[::-1], b[::-1], strict=False))

            return missing, unexpected, [n for n in unlike if not stretches(n)]

        def unlike_counts_as_missing(own, given):
            """A name that is there in another shape was also listed as missing. Each name is in one list at most."""
            missing, unexpected, unlike = mismatches(own, given)
            return [n for n in own if n in missing or n in unlike], unexpected, unlike

        def missing_counts_as_unlike(own, given):
            """A name that the state dict does not have was also listed as one of another shape: only what both have can
            be compared."""
            missing, unexpected, unlike = mismatches(own, given)
            return missing, unexpected, [n for n in own if n in missing or n in unlike]

        def sorted_by_name(own, given):
            """The names are sorted by the alphabet. Keep the order of the module and of the state dict, in which people
            read them."""
            return tuple(sorted(names) for names in mismatches(own, given))

        def first_alone(own, given):
            """Only the first of each kind was reported. Whoever mends it would have to start once for every name."""
            return tuple(names[:1] for names in mismatches(own, given))

        def order_of_the_given(own, given):
            """Names with another shape are in the order of the state dict: take the module's."""
            missing, unexpected, unlike = mismatches(own, given)
            return missing, unexpected, [n for n in given if n in unlike]

        def beginnings_compared(own, given):
            """A name was found because another one begins with it. Compare whole names."""
            missing, unexpected, unlike = mismatches(own, given)
            return [n for n in missing if not any(g.startswith(n) for g in given)], unexpected, unlike

        def shapes_not_compared(own, given):
            """Shapes were not compared at all: the third list is always empty."""
            missing, unexpected, _ = mismatches(own, given)
            return missing, unexpected, []

    class alternatives:
        def key_sets(own, given):
            shared = own.keys() & given.keys()
            return (
                [n for n in own if n not in shared],
                [n for n in given if n not in shared],
                [n for n in own if n in shared and own[n] != given[n]],
            )

        def one_loop(own, given):
            left, missing, unlike = dict(given), [], []
            for name, shape in own.items():
                if name not in left:
                    missing.append(name)
                elif left.pop(name) != shape:
                    unlike.append(name)
            return missing, list(left), unlike


def refuse_scale(shape, mode):
    if len(shape) < 2 or mode not in ("fan_in", "fan_out", "fan_average"):
        raise ValueError(f"no fans: {shape}, {mode}")


class layers_scale:
    def oracle(arrays, torch):
        if "to be refused" in arrays:
            return {"refused with ValueError": True}
        weight = torch.empty(tuple(int(n) for n in arrays["shape"]), dtype=torch.float64)
        fan_in, fan_out = torch.nn.init._calculate_fan_in_and_fan_out(weight)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_average": (fan_in + fan_out) / 2}
        return {"std": float(arrays["gain"]) / math.sqrt(fans[str(arrays["mode"])])}

    class mistakes:
        def fans_exchanged(shape, gain, mode):
            """The fans are exchanged. A weight has shape (out, in, ...), so fan-in counts the second axis."""
            return preserving_std(shape, gain, {"fan_in": "fan_out", "fan_out": "fan_in"}.get(mode, mode))

        def places_forgotten(shape, gain, mode):
            """The axes behind the first two were left out. Each output reads several places of each input: multiply by
            the number of places."""
            return preserving_std(shape[:2], gain, mode)

        def places_for_inputs_alone(shape, gain, mode):
            """The places count for fan-in alone. Each input is read by several places of each output too."""
            refuse_scale(shape, mode)
            fan_in, fan_out = math.prod(shape[1:]), shape[0]
            return gain / math.sqrt({"fan_in": fan_in, "fan_out": fan_out}.get(mode, (fan_in + fan_out) / 2))

        def variance(shape, gain, mode):
            """This is the variance. The standard deviation is its square root."""
            return preserving_std(shape, gain, mode) ** 2

        def root_forgotten(shape, gain, mode):
            """The gain was divided by the fan itself: what is divided by the fan is the variance, so take the fan's
            square root."""
            return preserving_std(shape, 1.0, mode) ** 2 * gain

        def gain_forgotten(shape, gain, mode):
            """The gain was not used: multiply by it."""
            return preserving_std(shape, 1.0, mode)

        def gain_inside_the_root(shape, gain, mode):
            """The gain went under the square root: it multiplies the standard deviation."""
            return preserving_std(shape, math.sqrt(gain), mode)

        def sum_of_fans(shape, gain, mode):
            """For the average the fans were added up, and not divided by two."""
            return preserving_std(shape, gain, mode) / (math.sqrt(2) if mode == "fan_average" else 1)

        def geometric_mean(shape, gain, mode):
            """The average of the fans is their geometric mean here: take the arithmetic one, half of their sum."""
            if mode != "fan_average":
                return preserving_std(shape, gain, mode)
            return gain / math.sqrt(math.sqrt(math.prod(shape[:2])) * math.prod(shape[2:]))

        def nothing_refused(shape, gain, mode):
            """A shape with one axis, or a mode that does not exist, was accepted: raise ValueError, since nobody can
            tell what was meant."""
            fits = len(shape) > 1 and mode.startswith("fan_")
            return preserving_std(shape, gain, mode) if fits else gain

    class alternatives:
        def by_variance(shape, gain, mode):
            refuse_scale(shape, mode)
            places = int(np.prod(shape[2:]))
            ins, outs = shape[1] * places, shape[0] * places
            fan = ins if mode == "fan_in" else outs if mode == "fan_out" else (ins + outs) / 2
            return math.sqrt(gain**2 / fan)

        def by_number_of_elements(shape, gain, mode):
            refuse_scale(shape, mode)
            count = math.prod(shape)
            ways = {"fan_in": count / shape[0], "fan_out": count / shape[1]}
            ways["fan_average"] = sum(ways.values()) / 2
            return gain * ways[mode] ** -0.5


class LinearBase(Module):
    """What the wrong layers share; each changes one thing."""

    def __init__(self, in_features, out_features, bias=True, *, dtype=plain.float32):
        super().__init__()
        self.in_features, self.out_features, self.dtype = in_features, out_features, dtype
        self.weight = Parameter(self.spread(out_features, in_features))
        self.register_parameter("bias", Parameter(self.spread(out_features)) if bias else None)

    def bound(self):
        return 1 / math.sqrt(self.in_features)

    def spread(self, *shape):
        return uniform_(zeros(*shape, dtype=self.dtype), -self.bound(), self.bound())

    def forward(self, input):
        return linear(input, self.weight, self.bias)


class layers_linear:
    def oracle(arrays, torch):
        weight = torch.from_numpy(arrays["weight"])
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias="bias" in arrays, dtype=weight.dtype)
        with torch.no_grad():
            layer.weight.copy_(weight)
            if "bias" in arrays:
                layer.bias.copy_(torch.from_numpy(arrays["bias"]))
        x = torch.from_numpy(arrays["x"]).requires_grad_()
        out = layer(x)
        out.backward(torch.from_numpy(arrays["grad"]))
        shapes = {n: "None" if p is None else str(tuple(p.shape)) for n, p in layer._parameters.items()}
        yes = {}
        for name in ("weight", "bias"):
            yes[f"largest new {name} over 1/4, in tenths"] = 10.0
            yes[f"a new {name} is spread evenly"] = True
            yes[f"a second layer begins with another {name}"] = True
        return {
            "parameters": np.array([f"{n} {shapes[n]}" for n in sorted(shapes)]),
            **yes,
            "output": out.detach().numpy(),
            "gradient of the input": x.grad.numpy(),
            **{f"gradient of {n}": p.grad.numpy() for n, p in layer._parameters.items() if p is not None},
        }

    class mistakes:
        class weight_turned_round(LinearBase):
            """The weight has shape (in, out). PyTorch's has (out, in), and its state dicts could not be loaded."""

            def __init__(self, in_features, out_features, bias=True, *, dtype=plain.float32):
                super().__init__(in_features, out_features, bias, dtype=dtype)
                self.weight = Parameter(self.spread(in_features, out_features))

            def forward(self, input):
                return linear(input, self.weight.T, self.bias)

        class bias_not_registered(LinearBase):
            """Without a bias, the name is not registered at all. Register it as None, so that self.bias can be read and
            be given a parameter later."""

            def __init__(self, in_features, out_features, bias=True, *, dtype=plain.float32):
                super().__init__(in_features, out_features, bias, dtype=dtype)
                if not bias:
                    del self._parameters["bias"]
                    vars(self)["bias"] = None

        class bias_is_a_tensor(LinearBase):
            """The bias is a plain tensor, so nobody will find it among the parameters and train it: make it a
            Parameter."""

            def __init__(self, in_features, out_features, bias=True, *, dtype=plain.float32):
                super().__init__(in_features, out_features, bias, dtype=dtype)
                if bias:
                    values = self.bias.detach().requires_grad_()
                    del self._parameters["bias"]
                    self.bias = values

        class bias_always(LinearBase):
            """There is a bias, whatever was asked for."""

            def __init__(self, in_features, out_features, bias=True, *, dtype=plain.float32):
                super().__init__(in_features, out_features, True, dtype=dtype)

        class bias_not_added(LinearBase):
            """The bias is there, and forward does not add it."""

            def forward(self, input):
                return linear(input, self.weight)

        class begins_normal(LinearBase):
            """The numbers begin normally distributed. Spread them evenly between the two bounds."""

            def spread(self, *shape):
                return normal_(zeros(*shape, dtype=self.dtype), 0, self.bound() / math.sqrt(3))

        class begins_positive(LinearBase):
            """All numbers begin positive: the lower bound is minus the upper one."""

            def spread(self, *shape):
                return uniform_(zeros(*shape, dtype=self.dtype), 0, self.bound())

        class begins_as_large_as_1(LinearBase):
            """The numbers begin between -1 and 1, however many inputs there are: the bound is one over the root of
            in_features."""

            def bound(self):
                return 1

        class begins_as_drawn(LinearBase):
            """The numbers begin between 0 and 1, as rand draws them: uniform_ spreads them between two bounds."""

            def spread(self, *shape):
                return uniform_(zeros(*shape, dtype=self.dtype))

        class bound_by_outputs(LinearBase):
            """The bound was calculated from out_features. What keeps an output's size is the number of inputs that are
            added up in it: in_features."""

            def bound(self):
                return 1 / math.sqrt(self.out_features)

        class bound_without_root(LinearBase):
            """The bound is 1 / in_features: it is one over the square root."""

            def bound(self):
                return 1 / self.in_features

        class begins_at_zero(LinearBase):
            """The bias begins at 0. In PyTorch it begins at random too, within the same bounds as the weight."""

            def __init__(self, in_features, out_features, bias=True, *, dtype=plain.float32):
                super().__init__(in_features, out_features, bias, dtype=dtype)
                if bias:
                    layers.zeros_(self.bias)

        class dtype_ignored(LinearBase):
            """The parameters are float32, whatever dtype was asked for: hand it on to zeros."""

            def __init__(self, in_features, out_features, bias=True, *, dtype=plain.float32):
                super().__init__(in_features, out_features, bias)

    class alternatives:
        class by_matmul(LinearBase):
            def forward(self, input):
                out = input @ self.weight.T
                return out if self.bias is None else out + self.bias

        class by_kaiming(LinearBase):
            def __init__(self, in_features, out_features, bias=True, *, dtype=plain.float32):
                super().__init__(in_features, out_features, bias, dtype=dtype)
                layers.kaiming_uniform_(self.weight, a=math.sqrt(5))


def mask_of(input, p, generator, keep=None):
    drawn = rand(input.shape, dtype=input.dtype, generator=layers.stream(generator))
    return (drawn >= p if keep is None else drawn < keep).to(input.dtype)


def refuse_p(p):
    if not 0 <= p <= 1:
        raise ValueError(f"p={p}")


class layers_dropout:
    def oracle(arrays, torch):
        if "to be refused" in arrays:
            return {"refused with ValueError": True}
        p, training = float(arrays["p"]), bool(arrays["training"])
        x, grad = torch.from_numpy(arrays["x"]).requires_grad_(), torch.from_numpy(arrays["grad"])
        out = torch.nn.functional.dropout(x, p, training)
        out.backward(grad)
        if not training or p in (0, 1):
            return {"output": out.detach().numpy(), "gradient": x.grad.numpy()}
        kept, shape = (out.detach() != 0), x.shape
        scale = (out.detach() / x.detach())[kept].mean()  # what torch scales by
        assert torch.allclose(x.grad, torch.where(kept, grad * scale, 0))
        return {
            "output, with what was dropped put back": (x.detach() / (1 - p)).numpy().astype(arrays["x"].dtype),
            "gradient, with the same put back": (grad / (1 - p)).numpy().astype(arrays["x"].dtype).reshape(shape),
            "about the share p was dropped": True,
            "elements fall one by one": True,
            "the next call drops others": True,
            "the same seed drops the same": True,
        }

    class mistakes:
        def unscaled(input, p=0.5, training=True, generator=None):
            """What is kept was not scaled, so the mean shrinks by p in training and jumps back in eval: divide by
            1 - p."""
            refuse_p(p)
            return input * mask_of(input, p, generator) if training else input

        def scaled_in_eval(input, p=0.5, training=True, generator=None):
            """The scaling was left to eval, as in the first paper. Scale in training, so that eval can be the
            identity."""
            refuse_p(p)
            return input * mask_of(input, p, generator) if training else input * (1 - p)

        def active_in_eval(input, p=0.5, training=True, generator=None):
            """Elements were dropped in eval too: where training is False, return the input as it is."""
            return dropout(input, p, True, generator)

        def keeps_with_p(input, p=0.5, training=True, generator=None):
            """p was taken for the probability to keep an element. It is the one to drop it."""
            return dropout(input, 1 - p, training, generator)

        def scaled_by_p(input, p=0.5, training=True, generator=None):
            """What is kept was divided by p. It is the share 1 - p that is kept: divide by that."""
            refuse_p(p)
            if not training or p == 0:
                return input
            return input * (mask_of(input, p, generator) * (1 / p))

        def scaled_twice(input, p=0.5, training=True, generator=None):
            """The gradient was scaled by 1 / (1 - p) squared, or the output was: scale once."""
            refuse_p(p)
            return dropout(input, p, training, generator) * (1 / (1 - p) if training and p < 1 else 1)

        def whole_rows(input, p=0.5, training=True, generator=None):
            """One random number was drawn for each row. Draw one for each element: the shape of the input."""
            refuse_p(p)
            if not training or p in (0, 1):
                return dropout(input, p, training, generator)
            drawn = rand(input.shape[0], 1, dtype=input.dtype, generator=layers.stream(generator))
            return input * ((drawn >= p).to(input.dtype) * (1 / (1 - p)))

        def gradient_not_dropped(input, p=0.5, training=True, generator=None):
            """The gradient went through undropped. It meets the same mask and the same scale: multiply the tensor
            itself, and the graph does the rest."""
            return input + (dropout(input, p, training, generator) - input).detach()

        def generator_ignored(input, p=0.5, training=True, generator=None):
            """The generator was not used, so the same seed does not drop the same elements: hand stream(generator)
            to rand."""
            return dropout(input, p, training)

        def same_mask_again(input, p=0.5, training=True, generator=None):
            """Every call drops the same elements: do not seed anew inside, the stream must go on."""
            return dropout(input, p, training, plain.Generator(3))

        def divides_by_zero(input, p=0.5, training=True, generator=None):
            """p = 1 ended in a division by 0. Everything is dropped then: the output is zeros."""
            refuse_p(p)
            if not training:
                return input
            return input * (mask_of(input, p, generator) * (1 / (1 - p)))

        def nothing_refused(input, p=0.5, training=True, generator=None):
            """A p outside 0 to 1 was accepted: raise ValueError."""
            return dropout(input, min(max(p, 0), 1), training, generator)

    class alternatives:
        def below_what_is_kept(input, p=0.5, training=True, generator=None):
            refuse_p(p)
            if not training or p == 0:
                return input
            if p == 1:
                return input * 0
            return input * mask_of(input, p, generator, keep=1 - p) / (1 - p)

        def filled_with_zeros(input, p=0.5, training=True, generator=None):
            refuse_p(p)
            if not training:
                return input
            gone = rand(input.shape, generator=layers.stream(generator)) < p
            return (input * (1 / (1 - p) if p < 1 else 1)).masked_fill(gone, 0)


def along(x, dims):
    return x.mean(dims, keepdims=True)


class layers_normalized:
    def oracle(arrays, torch):
        x = torch.from_numpy(arrays["x"].astype(np.float64)).requires_grad_()
        dims, centred = [int(d) for d in arrays["dims"]], bool(arrays["centred"])
        around = x - x.mean(dims, keepdim=True) if centred else x
        normal = around / torch.sqrt((around * around).mean(dims, keepdim=True) + float(arrays["eps"]))
        normal.backward(torch.from_numpy(arrays["grad"].astype(np.float64)))
        return {"gradient of x": x.grad.numpy().astype(arrays["x"].dtype)}

    class mistakes:
        def constants(grad, normal, rstd, dims, centred):
            """Mean and variance were taken for constants. They were calculated from x, and move with it: two terms are
            missing."""
            return grad * rstd

        def variance_constant(grad, normal, rstd, dims, centred):
            """The variance was taken for a constant: the term with `normal` is missing."""
            return (grad - along(grad, dims) * centred) * rstd

        def mean_constant(grad, normal, rstd, dims, centred):
            """The mean was taken for a constant: the mean of grad is to be taken away, where `centred` says so."""
            return (grad - normal * along(grad * normal, dims)) * rstd

        def always_centred(grad, normal, rstd, dims, centred):
            """The mean of grad was taken away without a mean in the forward. Where centred is False, that term is not
            there."""
            return normalized_gradient(grad, normal, rstd, dims, True)

        def sums_for_means(grad, normal, rstd, dims, centred):
            """Sums stand where means belong: divide by the number of elements along dims."""
            inner = grad - normal * (grad * normal).sum(dims, keepdims=True)
            return (inner - grad.sum(dims, keepdims=True) * centred) * rstd

        def unbiased(grad, normal, rstd, dims, centred):
            """The term of the variance was divided by count - 1. The variance in the forward is divided by the count,
            so its gradient is too."""
            count = math.prod(normal.shape[d] for d in dims)
            inner = grad - normal * along(grad * normal, dims) * (count / (count - 1))
            return (inner - along(grad, dims) * centred) * rstd

        def over_everything(grad, normal, rstd, dims, centred):
            """The means were taken over all axes: take them along dims, and keep these."""
            every = tuple(range(grad.ndim))
            return (grad - normal * along(grad * normal, every) - along(grad, every) * centred) * rstd

        def along_the_last_axis(grad, normal, rstd, dims, centred):
            """The means were taken along the last axis. It is `dims` that says along which axes, and for batch norm
            these are others."""
            return (grad - normal * along(grad * normal, -1) - along(grad, -1) * centred) * rstd

        def not_scaled(grad, normal, rstd, dims, centred):
            """The factor rstd is missing: a small step of x is a large one of normal where the variance is small."""
            return normalized_gradient(grad, normal, np.ones_like(rstd), dims, centred)

        def scaled_the_wrong_way(grad, normal, rstd, dims, centred):
            """rstd was divided by. It is one over the deviation already, and multiplies here as in the forward."""
            return normalized_gradient(grad, normal, 1 / rstd, dims, centred)

        def sign_of_the_variance(grad, normal, rstd, dims, centred):
            """The term of the variance has the wrong sign. A larger x makes the variance larger and the result smaller:
            take it away."""
            return (grad + normal * along(grad * normal, dims) - along(grad, dims) * centred) * rstd

        def projected_by_grad(grad, normal, rstd, dims, centred):
            """The last factor of the middle term is grad, and should be `normal`: grad was averaged away in
            mean(grad * normal), and what is left goes along normal."""
            return (grad - grad * along(normal * normal, dims) - along(grad, dims) * centred) * rstd

    class alternatives:
        def with_sums(grad, normal, rstd, dims, centred):
            count = math.prod(normal.shape[d] for d in dims)
            inner = count * grad - normal * (grad * normal).sum(dims, keepdims=True)
            if centred:
                inner = inner - grad.sum(dims, keepdims=True)
            return (rstd / count * inner).astype(grad.dtype)

        def three_paths(grad, normal, rstd, dims, centred):
            direct = grad * rstd
            through_variance = -normal * rstd * along(grad * normal, dims)
            through_mean = -along(direct, dims) if centred else 0
            return direct + through_variance + through_mean


def channels_of(x):
    """Each channel's values in a row of their own."""
    return np.moveaxis(x, 1, 0).reshape(x.shape[1], -1)


def refuse_one(x):
    if x.size // x.shape[1] < 2:
        raise ValueError(f"one value a channel: {x.shape}")


class layers_batch_statistics:
    def oracle(arrays, torch):
        if "to be refused" in arrays:
            return {"refused with ValueError": True}
        dtype = arrays["x"].dtype
        x = torch.from_numpy(arrays["x"].astype(np.float64))
        mean, var = (torch.from_numpy(arrays[n].astype(np.float64)) for n in ("running_mean", "running_var"))
        torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=float(arrays["momentum"]))
        dims = [d for d in range(x.ndim) if d != 1]
        found = {
            "mean": x.mean(dims),
            "variance": x.var(dims, correction=0),
            "running mean": mean,
            "running variance": var,
        }
        return {name: t.numpy().astype(dtype) for name, t in found.items()}

    class mistakes:
        def biased_running_variance(x, running_mean, running_var, momentum):
            """The running variance got the variance that was divided by the count. What is remembered is an estimate
            for data to come: divide by count - 1."""
            mean, var, after, _ = batch_statistics(x, running_mean, running_var, momentum)
            return mean, var, after, running_var + momentum * (var - running_var)

        def unbiased_output(x, running_mean, running_var, momentum):
            """The batch was to be normalized with the variance divided by count - 1. Only what is remembered is divided
            so; this batch's own variance is divided by the count."""
            mean, var, after, next_var = batch_statistics(x, running_mean, running_var, momentum)
            count = x.size // x.shape[1]
            return mean, (var * (count / (count - 1))).astype(x.dtype), after, next_var

        def exchanged(x, running_mean, running_var, momentum):
            """The two variances are exchanged: the one divided by the count normalizes, the one divided by count - 1
            is remembered."""
            mean, var, after, _ = batch_statistics(x, running_mean, running_var, momentum)
            count = x.size // x.shape[1]
            next_var = running_var + momentum * (var - running_var)
            return mean, (var * (count / (count - 1))).astype(x.dtype), after, next_var

        def momentum_turned_round(x, running_mean, running_var, momentum):
            """momentum was taken for the share of what was. Here, as in PyTorch, it is the share of the new batch."""
            return batch_statistics(x, running_mean, running_var, 1 - momentum)

        def examples_alone(x, running_mean, running_var, momentum):
            """Only axis 0 was averaged over. Places are examples too: average over every axis but axis 1."""
            if x.ndim > 2:
                mean = x.mean(0)
                return mean, x.var(0), mean, mean
            return batch_statistics(x, running_mean, running_var, momentum)

        def places_as_channels(x, running_mean, running_var, momentum):
            """The last axis was taken for the channels. They are axis 1."""
            return batch_statistics(np.moveaxis(x, -1, 1), running_mean, running_var, momentum)

        def running_returned(x, running_mean, running_var, momentum):
            """The running values were returned to normalize with. In training a batch is normalized by its own."""
            _, _, after, next_var = batch_statistics(x, running_mean, running_var, momentum)
            return after, next_var, after, next_var

        def not_remembered(x, running_mean, running_var, momentum):
            """The running values are what they were: move them towards the batch's, by the share momentum."""
            mean, var, _, _ = batch_statistics(x, running_mean, running_var, momentum)
            return mean, var, running_mean.copy(), running_var.copy()

        def momentum_added(x, running_mean, running_var, momentum):
            """The new values were added, and the old ones not made smaller: they lose the share that the new ones
            get."""
            mean, var, after, next_var = batch_statistics(x, running_mean, running_var, momentum)
            return mean, var, after + momentum * running_mean, next_var + momentum * running_var

        def deviation_remembered(x, running_mean, running_var, momentum):
            """The running variance got a standard deviation: leave the root out."""
            mean, var, after, _ = batch_statistics(x, running_mean, running_var, momentum)
            unbiased = channels_of(x).std(1, ddof=1)
            return mean, var, after, running_var + momentum * (unbiased - running_var)

        def one_value_accepted(x, running_mean, running_var, momentum):
            """A batch with one value for each channel was accepted, and the variance is 0 or nan from there on: raise
            ValueError."""
            if x.size // x.shape[1] < 2:
                return running_mean, running_var, running_mean, running_var
            return batch_statistics(x, running_mean, running_var, momentum)

        def one_example_refused(x, running_mean, running_var, momentum):
            """A batch of one example was refused though it has several places. Count the values of a channel, not the
            examples."""
            if len(x) < 2:
                raise ValueError("one example")
            return batch_statistics(x, running_mean, running_var, momentum)

    class alternatives:
        def by_rows(x, running_mean, running_var, momentum):
            refuse_one(x)
            rows = channels_of(x)
            mean, var, unbiased = rows.mean(1), rows.var(1), rows.var(1, ddof=1)
            return (
                mean,
                var,
                (1 - momentum) * running_mean + momentum * mean,
                (1 - momentum) * running_var + momentum * unbiased,
            )

        def by_numpy(x, running_mean, running_var, momentum):
            refuse_one(x)
            dims = tuple(d for d in range(x.ndim) if d != 1)
            mean, var, count = np.mean(x, dims), np.var(x, dims), x.size // x.shape[1]
            unbiased = var * count / (count - 1)
            return (
                mean,
                var,
                running_mean * (1 - momentum) + mean * momentum,
                running_var + momentum * (unbiased - running_var),
            )


def padded(table, padding_idx):
    if padding_idx is not None:
        table[padding_idx] = 0
    return table


class layers_embedding:
    def oracle(arrays, torch):
        grad, ids = torch.from_numpy(arrays["grad"]), torch.from_numpy(np.asarray(arrays["ids"]))
        padding = int(arrays["padding"]) if "padding" in arrays else None
        table = torch.zeros(int(arrays["count"]), grad.shape[-1], dtype=grad.dtype, requires_grad=True)
        torch.nn.functional.embedding(ids, table, padding_idx=padding).backward(grad)
        return {"gradient of the table": table.grad.numpy()}

    class mistakes:
        def overwritten(grad, ids, count, padding_idx):
            """An id that occurs many times kept only its last gradient. table[ids] += grad reads, adds and writes each
            row once: np.add.at adds every time."""
            table = np.zeros((count, grad.shape[-1]), grad.dtype)
            table[ids] += grad
            return padded(table, padding_idx)

        def averaged(grad, ids, count, padding_idx):
            """The gradients of an id were averaged: it was read many times, so they add up."""
            times = np.maximum(np.bincount(ids.ravel(), minlength=count), 1)[:, None]
            return (embedding_gradient(grad, ids, count, padding_idx) / times).astype(grad.dtype)

        def padding_learns(grad, ids, count, padding_idx):
            """The vector of padding_idx got a gradient: its row is 0, so that padding stays what it was."""
            return embedding_gradient(grad, ids, count, None)

        def padding_zero_overlooked(grad, ids, count, padding_idx):
            """padding_idx = 0 was overlooked, since Python takes 0 for False: ask whether it `is not None`."""
            return embedding_gradient(grad, ids, count, padding_idx or None)

        def neighbour_of_padding(grad, ids, count, padding_idx):
            """The wrong row was set to 0: ids are counted from 0, and so is padding_idx."""
            return embedding_gradient(grad, ids, count, None if padding_idx is None else (padding_idx - 1) % count)

        def table_too_small(grad, ids, count, padding_idx):
            """The table has no rows for ids that did not occur. It has `count` rows, also where all are 0."""
            table = embedding_gradient(grad, ids, count, padding_idx)
            return table[: int(ids.max(initial=-1)) + 1]

        def unused_rows_of_ones(grad, ids, count, padding_idx):
            """The table began as something else than zeros: what no id has named has the gradient 0."""
            return embedding_gradient(grad, ids, count, padding_idx) + grad.dtype.type(1)

        def wide(grad, ids, count, padding_idx):
            """The gradient is float64, whatever grad is: give np.zeros grad's dtype."""
            return embedding_gradient(grad, ids, count, padding_idx).astype(np.float64)

        def first_axis_of_ids(grad, ids, count, padding_idx):
            """Only the first sentence of the batch was added up: ids may have any number of axes."""
            if ids.ndim > 1:
                grad, ids = grad[0], ids[0]
            return embedding_gradient(grad, ids, count, padding_idx)

    class alternatives:
        def one_hot_product(grad, ids, count, padding_idx):
            hot = np.arange(count) == ids.reshape(-1, 1)
            table = hot.T.astype(grad.dtype) @ grad.reshape(-1, grad.shape[-1])
            return padded(table, padding_idx)

        def loop(grad, ids, count, padding_idx):
            table = np.zeros((count, grad.shape[-1]), grad.dtype)
            for place in np.ndindex(ids.shape):
                if ids[place] != padding_idx:
                    table[ids[place]] += grad[place]
            return table


def inputs_after(module, args, before):
    """What the hooks in front leave for forward."""
    for hook in before:
        changed = hook(module, args)
        args = args if changed is None else changed if isinstance(changed, tuple) else (changed,)
    return args


class layers_hooks:
    def oracle(arrays, torch):
        """The same call on a torch module, with hooks that note and return the same."""
        notes = []

        def note(name, values):
            notes.append((name, [v.clone() for v in values]))

        class Product(torch.nn.Module):
            def forward(self, *args, scale=1.0):
                note("forward", args)
                return math.prod(args[1:], start=args[0] * scale)

        def hook_of(kind, place):
            def hook(module, args, *output):
                note(f"hook {place}: {kind}", (*args, *output))
                latest = output[0] if output else args
                each = latest if isinstance(latest, tuple) else (latest,)
                if kind == "watches":
                    return None
                if kind == "one value":
                    return latest[0] * 3
                changed = tuple(x + 1 if kind == "adds one" else torch.zeros((), dtype=x.dtype) for x in each)
                return changed if isinstance(latest, tuple) else changed[0]

            return hook

        module = Product()
        for side, register in (
            ("before", module.register_forward_pre_hook),
            ("after", module.register_forward_hook),
        ):
            for place, kind in enumerate(arrays[side].tolist()):
                register(hook_of(kind, place))
        args = tuple(torch.from_numpy(arrays[name]) for name in ("first", "second") if name in arrays)
        output = module(*args, **({"scale": float(arrays["scale"])} if "scale" in arrays else {}))
        weighed = [(x * torch.arange(1, x.numel() + 1).reshape(x.shape)).sum() for _, xs in notes for x in xs]
        return {
            "output": output,
            "who was called": lines([name for name, _ in notes]),
            "what they were given, each array as one number": np.array([float(x) for x in weighed]),
        }

    class mistakes:
        def changed_inputs_lost(module, args, kwargs, before, after):
            """What the hooks in front returned was not used: it takes the place of args."""
            for hook in before:
                hook(module, args)
            return layers.call_with_hooks(module, args, kwargs, (), after)

        def changed_output_lost(module, args, kwargs, before, after):
            """What the hooks behind returned was not used: it takes the place of the output."""
            args = inputs_after(module, args, before)
            output = module.forward(*args, **kwargs)
            for hook in after:
                hook(module, args, output)
            return output

        def old_inputs_behind(module, args, kwargs, before, after):
            """The hooks behind were given the inputs of the call, not those that forward was given."""
            given, output = args, layers.call_with_hooks(module, args, kwargs, before, ())
            for hook in after:
                changed = hook(module, given, output)
                output = output if changed is None else changed
            return output

        def each_from_the_first(module, args, kwargs, before, after):
            """Each hook was given what was there at first, and the last one won: each goes on from the one before
            it."""
            first = args
            for hook in before:
                changed = hook(module, first)
                args = args if changed is None else changed if isinstance(changed, tuple) else (changed,)
            last = output = module.forward(*args, **kwargs)
            for hook in after:
                changed = hook(module, args, output)
                last = last if changed is None else changed
            return last

        def none_taken_for_a_value(module, args, kwargs, before, after):
            """A hook that returned None, because it only watched, has replaced the output by None."""
            args = inputs_after(module, args, before)
            output = module.forward(*args, **kwargs)
            for hook in after:
                output = hook(module, args, output)
            return output

        def zero_overlooked(module, args, kwargs, before, after):
            """A hook that returned 0 was overlooked. Ask whether the result `is not None`, not whether it is true."""

            def cautious(hook):
                def asked(*given):
                    changed = hook(*given)
                    parts = changed if isinstance(changed, tuple) else (changed,)
                    return changed if changed is not None and any(np.any(p) for p in parts) else None

                return asked

            return layers.call_with_hooks(
                module, args, kwargs, [cautious(h) for h in before], [cautious(h) for h in after]
            )

        def one_value_not_wrapped(module, args, kwargs, before, after):
            """A hook in front may return one value for the only argument. It was taken for the tuple of arguments,
            and fell apart into its rows: put it into a tuple."""
            for hook in before:
                changed = hook(module, args)
                args = args if changed is None else tuple(changed)
            return layers.call_with_hooks(module, args, kwargs, (), after)

        def last_hook_first(module, args, kwargs, before, after):
            """The hooks ran in reverse. They run in the order in which they are given."""
            return layers.call_with_hooks(module, args, kwargs, list(before)[::-1], list(after)[::-1])

        def names_dropped(module, args, kwargs, before, after):
            """Named arguments did not reach forward: hand on **kwargs."""
            return layers.call_with_hooks(module, args, {}, before, after)

        def forward_twice(module, args, kwargs, before, after):
            """forward ran twice. Keep its output: with dropout or batch norm a second run is another one."""
            module.forward(*args, **kwargs)
            return layers.call_with_hooks(module, args, kwargs, before, after)

    class alternatives:
        def inputs_first(module, args, kwargs, before, after):
            args = inputs_after(module, args, before)
            output = module.forward(*args, **kwargs)
            for hook in tuple(after):
                new = hook(module, args, output)
                output = output if new is None else new
            return output


class layers_count:
    def oracle(arrays, torch):
        """A matrix product of ones, added up: every product counts one. A row is an example, or a place of one."""
        weight, output = (tuple(int(n) for n in arrays[name]) for name in ("weight_shape", "output_shape"))
        inputs = torch.ones(math.prod(output) // weight[0], math.prod(weight[1:]), dtype=torch.float64)
        return {"multiply-adds": int((inputs @ torch.ones(inputs.shape[1], weight[0], dtype=torch.float64)).sum())}

    class mistakes:
        def batch_forgotten(weight_shape, output_shape):
            """This is the number of weights. Every example of the batch, and every place, multiplies by all of them."""
            return math.prod(weight_shape)

        def first_axis_alone(weight_shape, output_shape):
            """Only the first axis of the output was counted beside the weights: every other one but the `out` axis
            counts too."""
            return math.prod(weight_shape) * output_shape[0]

        def outputs_twice(weight_shape, output_shape):
            """The `out` axis was counted twice: it is in the weight's shape and in the output's."""
            return math.prod(weight_shape) * math.prod(output_shape)

        def operations_counted(weight_shape, output_shape):
            """A product and its addition were counted as two. A multiply-add is both."""
            return 2 * multiply_adds(weight_shape, output_shape)

        def bias_counted(weight_shape, output_shape):
            """The additions of the bias were counted. They multiply nothing."""
            return multiply_adds(weight_shape, output_shape) + math.prod(output_shape)

        def window_forgotten(weight_shape, output_shape):
            """The axes behind the first two of the weight were left out: each output reads several places of each
            input."""
            return math.prod(output_shape) * weight_shape[1]

        def additions_alone(weight_shape, output_shape):
            """One less than there are inputs: those are the additions. Every input is multiplied once."""
            return math.prod(output_shape) * (math.prod(weight_shape[1:]) - 1)

    class alternatives:
        def weights_times_rows(weight_shape, output_shape):
            rows = math.prod(output_shape) // weight_shape[0]
            return math.prod(weight_shape) * rows

        def loop(weight_shape, output_shape):
            count = 1
            for n in (*output_shape, *weight_shape[1:]):
                count *= n
            return count
