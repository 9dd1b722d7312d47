"""Many jobs on many cores. A job that takes its process down is tried once more, alone, and takes nobody with it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
SLOW_IMPORTS = ["autograder.grade.execute", "nbconvert.exporters", "nbgrader.converters"]
"""Modules that take seconds to import: the server does it once and each worker is a copy of the server."""

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")


def run_all(
    work: Callable[[JobT], ResultT], jobs: Iterable[JobT], workers: int, lost: Callable[[JobT], ResultT]
) -> Iterator[tuple[JobT, ResultT]]:
    """Each job with `work(job)`, in the order in which they finish; `lost(job)` for one that kills its process twice.

    `work`, jobs and results cross to other processes, so they are plain functions and plain data. Jobs are taken from
    the iterable as there is room for them.
    """
    queue = iter(jobs)
    suspects: list[JobT] = []
    while (broken := (yield from one_pool(work, queue, workers))) is not None:
        suspects += broken
    for suspect in suspects:
        if (yield from one_pool(work, iter([suspect]), 1)) is not None:
            yield suspect, lost(suspect)


def one_pool(work: Callable[[JobT], ResultT], queue: Iterator[JobT], workers: int) -> Iterator[tuple[JobT, ResultT]]:
    """Work until the queue is empty, and return None, or until a process dies, and return the jobs under way then."""
    flying: dict[Future, JobT] = {}
    context = multiprocessing.get_context(METHOD)
    context.set_forkserver_preload(SLOW_IMPORTS)
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        try:
            while True:
                while len(flying) < workers and (job := next(queue, None)) is not None:
                    flying[pool.submit(work, job)] = job
                if not flying:
                    return None
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    yield flying.pop(future), result
        except BrokenProcessPool:
            return list(flying.values())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
