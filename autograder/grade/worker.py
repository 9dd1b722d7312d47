"""The inside: runs a learner's definition cells and answers with arrays. Everything it says is believed by nobody.

    python worker.py NUMBER warm USER    a process that waits, with everything imported; each run is a copy of it, and
                                         all of them are this user's
    python worker.py NUMBER once         one run, without isolation, on stdin and stdout

A run reads the cells and executes them; then, question by question, inputs come in and outcomes go out, so that code
which runs early has seen nothing of what is asked later. The warm process sees none of it: it hands the connection to
the copy it makes of itself, and no run finds another's remains.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import json
import os
import platform
import select
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import gradwright
from autograder.checks.exercise import Arrays, Exercise, exercises_of, find
from autograder.checks.judge import check_target, stub_of
from autograder.checks.run import Outcome, Printed, Raised, describe, run_probe
from autograder.errors import BadInput
from autograder.grade import isolate
from autograder.grade.cells import FUTURE, cells_to_run, compiled, definitions_below, file_of
from autograder.grade.protocol import LARGEST, Frames, Message, carries, pack
from gradwright._cells import Cell, read_notebook
from gradwright._chapters import CHAPTERS, find_chapter
from gradwright._loader import ChapterModule

if TYPE_CHECKING:
    import asyncio

Send = Callable[..., None]
LARGEST_FRAME = 64 * 2**20
"""Bytes of a frame from the judge, who is trusted."""
REHEARSAL_SECONDS = 5.0
LATE_SECONDS = 1.0
"""For a cell that was stopped in an earlier run."""
MOST_NAMED = 8
"""Files and folders in one sentence."""


class TimeIsUp(BaseException):
    """Raised in a learner's code that runs for too long. Whoever catches it is ended from outside."""


# The warm process


def warm(number: int, user: int) -> None:
    """Wait for connections on stdin, a socket, and answer each from a copy of this process."""
    gradwright.chapter(number)
    for chapter in CHAPTERS:
        if chapter.number < number and chapter.source.is_file():
            importlib.import_module(chapter.module)
    rehearse(number)
    if reason := settled(user):
        sys.exit(reason)
    isolate.hide_memory()
    isolate.filter_program(platform.machine())
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # a run is over before it has much to collect
    control = socket.socket(fileno=os.dup(0))
    control.send(b"ready")
    while True:
        data, handles, _, _ = socket.recv_fds(control, 16, 1)
        if not data:
            return
        if handles:
            attend(control, handles[0])


def settled(user: int) -> str:
    """Go on as the user who has all runs. Returns why there should be none; empty where all is well."""
    changed = user != os.getuid()
    isolate.become(user)
    if not isolate.is_limited():
        return "the kernel does not limit the threads of this user: grade as a normal user, not as root"
    places = isolate.closed_places(sys.path[0]) if changed else []
    if places:  # a run that cannot import something would cost a learner points
        more = f" (and {len(places) - MOST_NAMED} more)" if len(places) > MOST_NAMED else ""
        return (
            f"no submission runs as root, and only root can read what they need: in the project's folder, run "
            f"chmod -R go+rX {shlex.join(places[:MOST_NAMED])}{more}"
        )
    return ""


def attend(control: socket.socket, handle: int) -> None:
    """One run: a copy of this process answers, and this one waits for its end or for the order to end it."""
    outer = os.getuid(), os.getgid()
    pid = isolate.fork_apart()
    if pid == 0:
        try:
            connection = take_only(handle)
            isolate.isolate(outer)
            serve(connection.recv, connection.sendall)
        finally:
            isolate.end(1)
    os.close(handle)
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([ended, control], [], [])
    if control in ready and ended not in ready:
        control.recv(16)
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    os.close(ended)
    code = os.waitstatus_to_exitcode(status)
    told = {"signal": max(0, -code), "code": max(0, code), "seconds": usage.ru_utime + usage.ru_stime}
    control.send(json.dumps(told).encode())


def take_only(handle: int) -> socket.socket:
    """The connection, as file 3, in a session of its own: no other file is open, and no signal reaches the parent."""
    os.setsid()
    os.dup2(handle, 3)
    os.closerange(4, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 65536 else 65536)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.close(nowhere)
    return socket.socket(fileno=3)


def rehearse(number: int) -> None:
    """Answer with the notebook as it is handed out: what is compiled and looked up here, no run does again."""
    chapter = find_chapter(number)
    if chapter.release.is_file():
        cells = [vars(cell) for cell in read_notebook(chapter.release)]
        begin = {"chapter": number, "cells": cells, "chosen": False, "late": [], "seconds": REHEARSAL_SECONDS}
        module = run_cells(begin, nobody)
        for exercise in exercises_of(number):
            answer(exercise, module, [case.arrays for case in exercise.make_cases(0)], REHEARSAL_SECONDS, nobody)
        del sys.modules[chapter.module]


# One run


def once() -> None:
    """One run in this process, which nothing keeps apart: the weak level."""
    source, sink = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)

    def send(data: bytes) -> None:
        while data:
            data = data[sink.write(data) :]

    serve(lambda size: source.read(size), send)


def serve(receive: Callable[[int], bytes], send_bytes: Callable[[bytes], Any]) -> None:
    """Answer until nothing is asked any more, and end the process."""

    held = bytearray()

    def send(kind: str, arrays: Sequence[np.ndarray] = (), hold: bool = False, **what: Any) -> None:
        """`hold`: with the next frame, which comes before anything of the learner's runs."""
        held.extend(pack({"kind": kind, **what}, arrays))
        if not hold:
            send_bytes(bytes(held))
            held.clear()

    questions = asked(receive)
    for begin, _ in questions:
        isolate.limit(begin["total_seconds"])
        module = ModuleType("nothing yet") if begin["waits"] else run_cells(begin, send)
        send("ready")
        for question, arrays in questions:
            cases = inputs_of(question["cases"], arrays)
            if question["texts"] is not None:
                begin = with_texts(begin, question["texts"])
                module = run_cells(begin, nobody)
            answer(find(question["id"]), module, cases, question["seconds"], send)
    isolate.end()


def asked(receive: Callable[[int], bytes]) -> Iterator[tuple[Message, list[np.ndarray]]]:
    """The frames that come in, until there are no more."""
    frames = Frames(LARGEST_FRAME)
    while data := receive(1 << 16):
        yield from frames.take(data)


def inputs_of(cases: list[list[str]], arrays: list[np.ndarray]) -> list[Arrays]:
    """The inputs of each case, from their names and all arrays in a row."""
    waiting = iter(arrays)
    return [{name: next(waiting) for name in names} for names in cases]


def with_texts(begin: Message, texts: dict[str, str]) -> Message:
    """The same cells, with other texts in some exercises."""
    cells = [cell | {"text": texts.get(cell["marks"].get("exercise"), cell["text"])} for cell in begin["cells"]]
    return begin | {"cells": cells, "chosen": True}


def nobody(*frame: Any, **what: Any) -> None:
    """A way to send for what nobody needs to hear."""


def run_cells(begin: Message, send: Send) -> ModuleType:
    """The learner's module, made cell by cell. A cell that fails costs what it would have defined."""
    chapter = find_chapter(begin["chapter"])
    module = sys.modules[chapter.module] = ChapterModule(chapter.module)
    names = vars(module)
    names["__file__"] = f"{chapter.name}.ipynb"
    cells = [Cell(**cell) for cell in begin["cells"]]
    future = any(FUTURE in cell.text for cell in cells)  # a notebook says it once, for all its cells
    cells = cells if begin["chosen"] else cells_to_run(cells, future)
    seconds = {cell.id: begin["seconds"] for cell in cells}
    seconds |= dict.fromkeys(begin["late"], min(LATE_SECONDS, begin["seconds"]))
    again = [cell for cell in cells if run_cell(cell, seconds[cell.id], names, future, send)]
    for cell in again:
        run_cell(cell, seconds[cell.id], names, future, send)
    return module


def run_cell(cell: Cell, seconds: float, names: dict[str, Any], future: bool, send: Send) -> bool:
    """Run a cell and send what it printed and raised. Returns whether it lacked a name that a later cell may give it:
    learners run cells in any order."""
    send("cell", hold="given" in cell.marks, id=cell.id)  # what was released does nothing that must be laid to it
    printed, failure = Printed(), None
    with printed.instead():
        try:
            with time_limit(seconds), as_main(cell, names):
                try:
                    execute(compiled(cell.text, file_of(cell), future), names)
                except (Exception, TimeIsUp) as error:  # a demonstration, perhaps, with the answer below it
                    failure = described(error)
                    for code in definitions_below(error, cell, future):
                        with contextlib.suppress(Exception):
                            exec(code, names)
        except BaseException as error:  # SystemExit and all: the next cells are still to come
            failure = described(error)
    send("cell done", hold=True, id=cell.id, printed=printed.getvalue(), raised=failure and vars(failure))
    return failure is not None and failure.kind == "NameError"


def execute(code: CodeType, names: dict[str, Any]) -> None:
    """Run a cell's code, which may `await` something at its top as it may in Jupyter."""
    if code.co_flags & inspect.CO_COROUTINE:
        event_loop().run_until_complete(eval(code, names))
    else:
        exec(code, names)


@cache
def event_loop() -> asyncio.AbstractEventLoop:
    """The one of all cells. Most need none, and importing it takes as long as half a run."""
    import asyncio

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop


@contextlib.contextmanager
def as_main(cell: Cell, names: dict[str, Any]) -> Iterator[None]:
    """In a notebook `__name__` is `__main__`: a cell that asks for it finds it so."""
    own = names.get("__name__")
    names["__name__"] = "__main__" if "__main__" in cell.text else own
    try:
        yield
    finally:
        names["__name__"] = own


def answer(exercise: Exercise, module: ModuleType, cases: list[Arrays], seconds: float, send: Send) -> None:
    """Run an exercise's cases and send what came of them, as far as they got in the time there is."""
    outcomes: list[Outcome] = []
    in_time = True
    try:
        with time_limit(seconds):
            target: Any = module
            for step in exercise.name.split("."):
                target = getattr(target, step)
            check_target(exercise, target)
            for arrays in cases:
                outcomes.append(run_probe(exercise, target, arrays, gradwright))
                if outcomes[-1].raised and outcomes[-1].raised.kind == TimeIsUp.__name__:
                    raise TimeIsUp
                if stub_of(outcomes[-1]):
                    break
    except TimeIsUp:
        in_time = False
    except (AttributeError, BadInput) as error:
        send("refused", id=exercise.id, reason=f"{type(error).__name__}: {error}")
        return
    send_outcomes(exercise, outcomes, in_time, send)


def send_outcomes(exercise: Exercise, outcomes: list[Outcome], in_time: bool, send: Send) -> None:
    outcomes = [sendable(outcome) for outcome in outcomes]
    arrays = [array for outcome in outcomes for array in outcome.outputs.values()]
    if sum(array.nbytes for array in arrays) > LARGEST - 2**20:
        send("refused", id=exercise.id, reason="BadInput: its results are larger than any right ones could be")
        return
    send("outcomes", arrays, id=exercise.id, cases=[told(outcome) for outcome in outcomes], in_time=in_time)


def told(outcome: Outcome) -> Message:
    """An outcome without its arrays, and without what most outcomes have nothing of."""
    message: Message = {"names": list(outcome.outputs)}
    if outcome.weak:
        message["weak"] = sorted(outcome.weak)
    if outcome.odd:
        message["odd"] = outcome.odd
    if outcome.raised:
        message["raised"] = vars(outcome.raised)
    if outcome.changed:
        message["changed"] = list(outcome.changed)
    if outcome.printed:
        message["printed"] = outcome.printed[:2000]
    if outcome.warned:
        message["warned"] = list(outcome.warned[:5])
    return message


def sendable(outcome: Outcome) -> Outcome:
    """The outcome, with a word in place of arrays of which the protocol knows nothing."""
    if all(map(carries, outcome.outputs.values())):
        return outcome
    strange = {name: array for name, array in outcome.outputs.items() if not carries(array)}
    kept = {name: array for name, array in outcome.outputs.items() if name not in strange}
    words = {name: f"an array of {array.dtype.name}" for name, array in strange.items()}
    return replace(outcome, outputs=kept, odd=outcome.odd | words)


def described(error: BaseException) -> Raised:
    if isinstance(error, SyntaxError) and error.lineno:
        return Raised(type(error).__name__, str(error.msg), f"{error.filename}, line {error.lineno}")
    return describe(error)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeIsUp inside after so many seconds of CPU time, where the system has an alarm. What sleeps is ended from
    outside."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise TimeIsUp("it took too long and was stopped")

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    chapter_number, way = int(sys.argv[1]), sys.argv[2]
    if way == "warm":
        warm(chapter_number, int(sys.argv[3]))
    else:
        gradwright.chapter(chapter_number)
        once()
