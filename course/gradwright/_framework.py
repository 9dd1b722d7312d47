"""The framework as it stands: which chapters are within reach, what each is made from, and the modules over them.

`gradwright.nn.functional` and `gradwright.chapters.tensor` are importable modules without a file of their own: one
finder makes them from the table of chapters. A name is looked up when it is first asked for and then stays in its
module, until `forget` takes it out because the answer may have changed.
"""

from __future__ import annotations

import builtins
import difflib
import importlib
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.errors import NotBuiltYet
from gradwright import _chapters
from gradwright._chapters import Chapter, namespaces, relative
from gradwright._loader import ChapterModule, fill_module

__all__ = [
    "Assembler",
    "Own",
    "forget",
    "limited",
    "put",
    "reachable_names",
    "resolve",
    "state",
    "unload",
    "within_reach",
]

PACKAGE = "gradwright"
SHELF = "gradwright.chapters"


@dataclass(frozen=True)
class Own:
    """A learner's notebook that is in use: its time stamp and the hash of its definitions when it was loaded."""

    path: Path
    modified: int
    digest: str


@dataclass
class State:
    """What `chapter` and `use` have set.

    limit:     the first chapter out of reach, None where all are within
    notebooks: the learner's notebooks in use, by chapter; the other chapters stand on the reference
    cached:    (module, name) of every name that was looked up and kept
    round:     counts how often the cached names were thrown away, so that a slow look-up keeps nothing outdated
    building:  how many chapters are being built right now; meanwhile nothing is kept
    """

    limit: int | None = None
    notebooks: dict[int, Own] = field(default_factory=dict)
    cached: set[tuple[str, str]] = field(default_factory=set)
    round: int = 0
    building: int = 0
    lock: Any = field(default_factory=threading.RLock)

    def path_of(self, chapter: Chapter) -> Path:
        """What the chapter is made from: the learner's notebook where that is in use, else the reference."""
        own = self.notebooks.get(chapter.number)
        return own.path if own else chapter.source


state = State()
_thread = threading.local()


def build_limit() -> int | None:
    """The first chapter out of reach here: while a chapter is being built, that chapter itself."""
    own = getattr(_thread, "limit", None)
    return state.limit if own is None else own


def within_reach(chapter: Chapter) -> bool:
    limit = build_limit()
    return (limit is None or chapter.number < limit) and state.path_of(chapter).is_file()


# Names


def resolve(space: str, name: str) -> Any:
    """The value of `gradwright.<space>.<name>`.

    Raises NotBuiltYet for a name of the table whose chapter is out of reach, AttributeError for any other.
    """
    if name == "__all__":
        return reachable_names(space)
    if name.startswith("__"):
        raise AttributeError(f"module {full_name(space)!r} has no attribute {name!r}")
    inner = f"{space}.{name}" if space else name
    if inner in namespaces() or inner in ("chapters", "widgets"):
        return importlib.import_module(f"{PACKAGE}.{inner}")
    listed = [chapter for chapter in _chapters.CHAPTERS if name in chapter.offers(space)]
    if not listed:
        raise AttributeError(unknown(space, name))
    begun = state.round
    for chapter in reversed(listed):
        if within_reach(chapter):
            value = take(chapter, name, f"{full_name(space)}.{name}")
            remember(space, name, value, begun)
            return value
    raise NotBuiltYet(out_of_reach(f"{full_name(space)}.{name}", listed[0]))


def take(chapter: Chapter, name: str, asked: str) -> Any:
    """The value of a name that the chapter offers. `gradwright.bool` is `bool_` in its module: a chapter's names are
    those of its notebook, and hide nothing of Python's own there."""
    module = vars(importlib.import_module(chapter.module))
    if name in chapter.methods:
        return as_function(name, module["Tensor"])
    if name not in module and hasattr(builtins, name):
        name += "_"
    if name not in module:
        raise NotBuiltYet(
            f"{asked} should come from chapter {chapter.label}, but {relative(Path(module['__file__']))} "
            f"defines no {name} in its exercises and given cells"
        )
    return module[name]


def as_function(name: str, tensor: type) -> Any:
    """A method as a function: exp(x) is x.exp(), whichever chapter's Tensor x is."""

    @wraps(getattr(tensor, name))
    def function(x: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(x, tensor):
            raise TypeError(f"gradwright.{name} takes a Tensor first and got {type(x).__name__}: use tensor(...)")
        return getattr(x, name)(*arguments, **options)

    return function


def remember(space: str, name: str, value: Any, begun: int) -> None:
    """Keep a name in its module, so that the next access costs nothing."""
    with state.lock:
        if not state.building and state.round == begun:
            setattr(sys.modules[full_name(space)], name, value)
            state.cached.add((full_name(space), name))


def forget() -> None:
    """Take every kept name out again, because what is within reach has changed."""
    with state.lock:
        state.round += 1
        clear_cached()


def clear_cached() -> None:
    for module, name in state.cached:
        vars(sys.modules[module]).pop(name, None)
    state.cached.clear()


def full_name(space: str) -> str:
    return f"{PACKAGE}.{space}" if space else PACKAGE


def reachable_names(space: str) -> list[str]:
    """The public names of a namespace that are within reach, and the namespaces inside it that hold any."""
    found = set()
    for chapter in _chapters.CHAPTERS:
        if not within_reach(chapter):
            continue
        found.update(chapter.offers(space))
        inside = [other for other in chapter.public if not space or other.startswith(space + ".")]
        found.update(other[len(space) :].lstrip(".").partition(".")[0] for other in inside if other != space)
    return sorted(found - {""})


def out_of_reach(asked: str, chapter: Chapter) -> str:
    """Why a name or a chapter cannot be had here."""
    limit = build_limit()
    if limit is not None and chapter.number == limit:
        return f"{asked} is not there yet: it is what you are about to build in chapter {chapter.label}"
    if limit is not None and chapter.number > limit:
        here = next((c.label for c in _chapters.CHAPTERS if c.number == limit), str(limit))
        return f"{asked} comes later: it is built in chapter {chapter.label}, and this is chapter {here}"
    if chapter.release.is_file():
        return (
            f"{asked} is not in this copy: chapter {chapter.label} is made from {relative(chapter.source)}, not found"
        )
    return f"{asked} belongs to chapter {chapter.label}, which is still to come in this edition"


def unknown(space: str, name: str) -> str:
    """The sentence for a name that no chapter lists, with the nearest one that some chapter does."""
    here = {known for chapter in _chapters.CHAPTERS for known in chapter.offers(space)}
    elsewhere = [
        full_name(other) for chapter in _chapters.CHAPTERS for other in chapter.public if name in chapter.public[other]
    ]
    near = [f"{elsewhere[0]}.{name}"] if elsewhere else difflib.get_close_matches(name, sorted(here), n=1)
    hint = f": did you mean {near[0]!r}?" if near else ""
    return f"module {full_name(space)!r} has no attribute {name!r}{hint}"


# Modules


class Namespace(ModuleType):
    """`gradwright.nn` and its like: a module whose names come from the table."""

    def __getattr__(self, name: str) -> Any:
        return resolve(self.__name__.removeprefix(PACKAGE + "."), name)

    def __dir__(self) -> Sequence[str]:
        return sorted({*super().__dir__(), *reachable_names(self.__name__.removeprefix(PACKAGE + "."))})


class Shelf(ModuleType):
    """`gradwright.chapters`: the chapters' own modules, by name."""

    def __getattr__(self, name: str) -> Any:
        known = [chapter.name for chapter in _chapters.CHAPTERS]
        if name in known:
            return importlib.import_module(f"{SHELF}.{name}")
        near = difflib.get_close_matches(name, known, n=1)
        hint = f": did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"module {SHELF!r} has no attribute {name!r}{hint}")

    def __dir__(self) -> Sequence[str]:
        return sorted(chapter.name for chapter in _chapters.CHAPTERS if within_reach(chapter))


class Assembler(MetaPathFinder, Loader):
    """Finds and makes the modules that have no file of their own."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not fullname.startswith(PACKAGE + "."):
            return None
        if fullname == SHELF or fullname.removeprefix(PACKAGE + ".") in namespaces():
            return ModuleSpec(fullname, self, is_package=True)
        chapter = chapter_of(fullname)
        if chapter is None:
            return None
        if not within_reach(chapter):
            raise NotBuiltYet(out_of_reach(fullname, chapter), name=fullname)
        return ModuleSpec(fullname, self, origin=str(state.path_of(chapter)))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name == SHELF:
            return Shelf(spec.name)
        return Namespace(spec.name) if spec.submodule_search_locations is not None else ChapterModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        chapter = chapter_of(module.__name__)
        if chapter is not None:
            with built(chapter):
                fill_module(module, state.path_of(chapter))


def chapter_of(module: str) -> Chapter | None:
    return next((chapter for chapter in _chapters.CHAPTERS if chapter.module == module), None)


@contextmanager
def built(chapter: Chapter) -> Iterator[None]:
    """While a chapter is being built, its thread sees only the chapters before it, and nobody remembers names."""
    outer = getattr(_thread, "limit", None)
    _thread.limit = chapter.number
    with state.lock:
        state.building += 1
        clear_cached()
    try:
        yield
    finally:
        _thread.limit = outer
        with state.lock:
            state.building -= 1


# Changes of what is within reach


def unload(first: int) -> dict[Chapter, ModuleType]:
    """Take the modules of this chapter and of all later ones out of sys.modules, and return them."""
    forget()
    later = [chapter for chapter in _chapters.CHAPTERS if chapter.number >= first and chapter.module in sys.modules]
    for chapter in later:
        vars(importlib.import_module(SHELF)).pop(chapter.name, None)
    return {chapter: sys.modules.pop(chapter.module) for chapter in later}


def put(chapter: Chapter, module: ModuleType) -> None:
    """Enter a module as the one of its chapter, as importing it would."""
    sys.modules[chapter.module] = module
    setattr(importlib.import_module(SHELF), chapter.name, module)


@contextmanager
def limited(number: int) -> Iterator[None]:
    """Inside, only the chapters before this number are within reach; afterwards everything is as it was.

    The lock is not held inside: a learner's code may start threads that look names up, and be waiting for them.
    """
    with state.lock:
        later = unload(number)
        state.limit, outer = number, state.limit
    try:
        yield
    finally:
        with state.lock:
            unload(number)
            for chapter, module in later.items():
                put(chapter, module)
            state.limit = outer
