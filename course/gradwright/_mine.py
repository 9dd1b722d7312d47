"""The learner's own chapters in place of the reference implementation, each only after it has passed its checks."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder import checks
from autograder.checks import Exercise, Verdict, exercises_of, judge
from autograder.checks.stored import read_reference
from autograder.errors import BadInput, GradwrightError, Interrupted, NotebookError
from gradwright import _chapters
from gradwright._cells import untouched
from gradwright._chapters import Chapter, find_chapter, relative
from gradwright._framework import Own, limited, put, state, unload
from gradwright._loader import definition_text, load_module, missing_names, read_cells

__all__ = ["begin_chapter", "find_notebook", "lacking", "opened", "stale", "use", "verify"]

MANY = 4
"""Up to so many exercises are named in one line."""


def begin_chapter(key: int | str) -> Chapter:
    """Set the limit of what is within reach. Another chapter than before starts from the reference again."""
    chapter = find_chapter(key)
    with state.lock:
        back_to_reference(0 if state.limit not in (None, chapter.number) else chapter.number)
        unload(chapter.number)
        state.limit = chapter.number
    return chapter


def use(which: str, upto: int | str | None = None) -> None:
    """Choose what the chapters before this one are made from, and print one line a chapter.

    which: "mine" takes your own notebooks, where they pass their checks; "reference" takes the course's answers.
    upto:  with "mine", the last chapter to take from you (default: the one before this).
    Your notebooks run in this kernel and may take their time: to stop one, interrupt the kernel (Ctrl-C in a shell).
    Raises BadInput for any other value, Interrupted when it is stopped.
    """
    if which not in ("mine", "reference"):
        raise BadInput(f'use takes "mine" or "reference", not {which!r}')
    if which == "reference" and upto is not None:
        raise BadInput(f'upto={upto!r} goes with "mine": use("reference") is for every chapter')
    if which == "reference":
        back_to_reference(0)
        return
    last = _chapters.CHAPTERS[-1].number if upto is None else find_chapter(upto).number
    back_to_reference(last + 1)
    width = max(len(chapter.label) for chapter in _chapters.CHAPTERS)
    for chapter in _chapters.CHAPTERS:
        before = state.limit is None or chapter.number < state.limit
        if before and chapter.number <= last and (line := stand_or_stop(chapter)):
            print(f"{chapter.label:<{width}}  {line}")


def back_to_reference(first: int) -> None:
    """From this chapter on no notebook is used; what stood on one is loaded afresh."""
    own = [number for number in state.notebooks if number >= first]
    if own:
        unload(min(own))
    for number in own:
        del state.notebooks[number]


def stand_or_stop(chapter: Chapter) -> str:
    try:
        return stand(chapter)
    except KeyboardInterrupt:
        raise Interrupted(
            f'use("mine") was stopped in chapter {chapter.label}, which stands on the reference; if your notebook '
            f"never ends, `autograder check {chapter.number:02d}` names the exercise with the loop"
        ) from None


def stand(chapter: Chapter) -> str:
    """Use the learner's notebook of a chapter if it is right, and say what the chapter now stands on; nothing where
    the chapter is still to come."""
    own = state.notebooks.get(chapter.number)
    if own is not None:
        return changed(chapter, own) or f"yours ({relative(own.path)}), as loaded before"
    stands = "reference" if chapter.source.is_file() else "missing"
    try:
        path = find_notebook(chapter)
        if path is None:
            return f"{stands}: no notebook of yours" if chapter.source.is_file() else ""
        count = len(exercises_of(chapter.number))
        lacks = lacking(chapter.number, path)
        if not lacks:
            replaced = ", ".join(loaded.label for loaded in take(chapter, path))
            warning = f"; what was imported from {replaced} before is still the old one: import it again"
            return f"yours ({relative(path)}), {count} of {count} exercises{warning if replaced else ''}"
    except NotebookError as error:
        return f"{stands}: your notebook cannot be loaded: {error}"
    except GradwrightError as error:
        return f"{stands}: yours ({relative(path)}) cannot be judged: {error}"
    named = f"all {count} exercises" if len(lacks) == count > 1 else ", ".join(lacks[:MANY])
    more = f" and {len(lacks) - MANY} more" if MANY < len(lacks) < count else ""
    return "; ".join([f"{stands}: yours ({relative(path)}) lacks {named}{more}", *missing_names(path)])


def take(chapter: Chapter, path: Path) -> list[Chapter]:
    """Make the chapter from the learner's notebook, and return the chapters that had been loaded without it.

    They are loaded afresh on top of it when they are next asked for.
    """
    own = Own(path, path.stat().st_mtime_ns, digest(definition_text(path)))
    with limited(chapter.number):
        module = load_module(chapter.module, path)
    back_to_reference(chapter.number + 1)
    replaced = unload(chapter.number)
    state.notebooks[chapter.number] = own
    put(chapter, module)
    return list(replaced)


def find_notebook(chapter: Chapter) -> Path | None:
    """The learner's notebook of a chapter: beside the running one, then in work/, then in course/.

    Raises NotebookError where work/ has the chapter's folder and no notebook of that name in it: the one in course/
    is then not the learner's.
    """
    here, own = Path.cwd(), _chapters.ROOT / "work" / chapter.place
    for place in (here.parent / chapter.place, here / chapter.notebook, own):
        if place.is_file():
            return place
    if own.parent.is_dir():
        raise NotebookError(f"{relative(own)} is missing{renamed(own)}{untouched(own, 'there')}")
    return chapter.release if chapter.release.is_file() else None


def renamed(missing: Path) -> str:
    """What stands between "is missing" and the last remedy: the notebooks that it may have become."""
    others = sorted(path.name for path in missing.parent.glob("*.ipynb") if path.is_file())
    if len(others) > 1:
        return f"; there are {', '.join(others[:-1])} and {others[-1]}: rename the one that is yours, or "
    return f"; there is {others[0]}: rename it, or " if others else ": "


def stale() -> list[str]:
    """A sentence for each notebook that changed after it was loaded."""
    found = [changed(find_chapter(number), own) for number, own in sorted(state.notebooks.items())]
    return [sentence for sentence in found if sentence]


def changed(chapter: Chapter, own: Own) -> str:
    """The sentence for a notebook that is no longer what was loaded, else nothing."""
    try:
        if own.path.stat().st_mtime_ns == own.modified or digest(definition_text(own.path)) == own.digest:
            return ""
    except (OSError, NotebookError) as error:
        return f"{relative(own.path)} was loaded for chapter {chapter.label} and cannot be read any more: {error}"
    return (
        f"{relative(own.path)} has changed since it was loaded for chapter {chapter.label}: "
        "restart the kernel to use the new version"
    )


# Verdicts


def verify(key: int | str, path: Path | str) -> list[Verdict]:
    """The verdict on every exercise of a chapter in the learner's notebook, on top of what is in use before it.

    Raises NotebookError where the notebook cannot be loaded, BadInput for a chapter without exercises.
    """
    chapter = find_chapter(key)
    with opened(chapter, Path(path), {}) as verdict_of:
        return [verdict_of(exercise) for exercise in exercises_of(chapter.number)]


@contextmanager
def opened(
    chapter: Chapter, path: Path, broken: dict[str, str] | None = None
) -> Iterator[Callable[[Exercise], Verdict]]:
    """Load a learner's notebook; inside, the function that judges one of its exercises.

    broken: takes the exercises whose cell cannot be run; without it, one such cell is a NotebookError.
    """
    with limited(chapter.number):
        module = load_module(chapter.module, path, broken)
        yield lambda exercise: verdict_on(exercise, module, path, broken or {})


def verdict_on(exercise: Exercise, module: ModuleType, path: Path, broken: dict[str, str]) -> Verdict:
    if exercise.id in broken:
        return no_verdict(exercise, broken[exercise.id])
    try:
        target = attrgetter(exercise.name)(module)
    except AttributeError:
        return no_verdict(exercise, not_defined(exercise, module, path))
    try:
        return judge(exercise, target, sys.modules["gradwright"])
    except BadInput as error:
        return no_verdict(exercise, str(error))


def no_verdict(exercise: Exercise, trouble: str) -> Verdict:
    return Verdict(exercise, (), len(read_reference(exercise).cases), trouble=trouble)


def not_defined(exercise: Exercise, module: ModuleType, path: Path) -> str:
    """Why a notebook does not define what an exercise asks for."""
    reason = vars(module)["__skipped__"].get(exercise.name.partition(".")[0])
    if reason:
        return reason
    cell = next((cell for cell in read_cells(path) if cell.marks.get("exercise") == exercise.id), None)
    if cell is None:
        return f"the cell of `{exercise.name}` is missing: {untouched(path, 'beside yours')}"
    return (
        f"{relative(path)}, cell {cell.position} defines no `{exercise.name}`: give it that name again, "
        f"or {untouched(path, 'beside yours')}"
    )


def lacking(key: int | str, path: Path | str) -> list[str]:
    """Titles of the exercises that are not right in a notebook, like "2.3 unbroadcast".

    Remembered in work/ for as long as the notebook's code, the checks and everything below the chapter stay the same.
    """
    chapter, path = find_chapter(key), Path(path)
    mark, place = fingerprint(chapter, path), str(path.resolve())
    known = read_memory().get(place)
    if isinstance(known, dict) and known.get("of") == mark and isinstance(known.get("lacks"), list):
        return known["lacks"]
    with opened(chapter, path) as verdict_of:
        verdicts = [verdict_of(exercise) for exercise in exercises_of(chapter.number)]
    lacks = [verdict.exercise.title for verdict in verdicts if not verdict.right]
    write_memory(place, {"of": mark, "lacks": lacks})
    return lacks


def fingerprint(chapter: Chapter, path: Path) -> str:
    """A hash of everything that a verdict on the notebook depends on."""
    engine = Path(checks.__file__).parent
    files = [
        *sorted(engine.glob("*.py")),
        engine / "exercises" / f"{chapter.folder}.py",
        *(engine / "references" / f"{chapter.folder}{suffix}" for suffix in (".npz", ".json")),
        *(state.path_of(below) for below in _chapters.CHAPTERS if below.number < chapter.number),
    ]
    parts = [hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "" for file in files]
    return digest("\n".join([*parts, definition_text(path)]))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def memory() -> Path:
    return _chapters.ROOT / "work" / ".verdicts.json"


def read_memory() -> dict[str, Any]:
    try:
        content = json.loads(memory().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # not there yet, or spoiled: everything is judged again
    return content if isinstance(content, dict) else {}


def write_memory(place: str, entry: dict[str, Any]) -> None:
    content = json.dumps(read_memory() | {place: entry}, indent=1)
    try:
        memory().parent.mkdir(exist_ok=True)
        handle, name = tempfile.mkstemp(dir=memory().parent, prefix=".verdicts-")
    except OSError:
        return  # a place that cannot be written only costs judging again
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(name, memory())
    except OSError:
        Path(name).unlink(missing_ok=True)
