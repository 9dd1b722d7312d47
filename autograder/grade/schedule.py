"""Many jobs on many cores. A job that takes its process down is tried once more, and takes nobody with it."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
SLOW_IMPORTS = ["autograder.grade.judge", "autograder.grade.feedback"]
"""Modules that take seconds to import: the server does it once and each worker is a copy of the server."""

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")


def run_all(
    work: Callable[[JobT], ResultT], jobs: Iterable[JobT], workers: int, lost: Callable[[JobT], ResultT]
) -> Iterator[tuple[JobT, ResultT]]:
    """Each job with `work(job)`, in the order in which they finish; `lost(job)` for one that kills its process twice.

    `work`, jobs and results cross to other processes, so they are plain functions and plain data. Jobs are taken from
    the iterable as there is room for them. What `work` raises is raised here.
    """
    queue = iter(jobs)
    once_more: deque[JobT] = deque()
    free: list[Worker] = []
    busy: dict[Connection, tuple[Worker, JobT, bool]] = {}

    def start(job: JobT, again: bool) -> None:
        worker = free.pop() if free else Worker(work)
        worker.pipe.send(job)
        busy[worker.pipe] = worker, job, again

    try:
        while True:
            while len(busy) < workers and once_more:
                start(once_more.popleft(), again=True)
            for job in queue if len(busy) < workers else ():
                start(job, again=False)
                if len(busy) == workers:
                    break
            if not busy:
                return
            for pipe in wait(list(busy)):
                worker, job, again = busy.pop(pipe)
                reply = worker.reply()
                if reply is not None:
                    free.append(worker)
                    yield job, reply[0]
                elif again:
                    yield job, lost(job)
                else:
                    once_more.append(job)
    finally:
        for worker in (*free, *(worker for worker, _, _ in busy.values())):
            worker.stop()


class Worker:
    """A process that does one job after the other. ProcessPoolExecutor does not tell whose job killed one."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context(METHOD)
        context.set_forkserver_preload(SLOW_IMPORTS)
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(work, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def reply(self) -> tuple[Any] | None:
        """What the job gave, or None where the process has died of it."""
        try:
            fine, result = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.stop()
            return None
        if not fine:
            self.stop()
            raise result
        return (result,)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()


def serve(work: Callable[[Any], Any], pipe: Connection) -> None:
    """The life of a worker: jobs in, results out, until nobody sends any more.

    Ctrl-C reaches every process of a terminal. The first one ends the workers; a handler of their own, and not that
    the signal is ignored, since what they start would inherit that.
    """
    signal.signal(signal.SIGINT, lambda *_: None)
    while True:
        try:
            job = pipe.recv()
        except (EOFError, ConnectionError):  # whoever asked has ended, or was ended
            return
        try:
            reply = True, work(job)
        except Exception as error:
            reply = False, error
        try:
            pipe.send(reply)
        except ConnectionError:
            return
