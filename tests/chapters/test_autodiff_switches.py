"""Chapter 02: what switches recording off, and threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gradwright.chapters import autodiff
from gradwright.chapters.autodiff import is_grad_enabled
from gradwright.chapters.operations import enable_grad, no_grad, set_grad_enabled, tensor


def leaf(*values):
    return tensor(np.array(values, np.float64), requires_grad=True)


def test_nothing_is_recorded_under_no_grad():
    x = leaf(1)
    with no_grad():
        assert not (x * 2).requires_grad
        with enable_grad():
            assert (x * 2).requires_grad
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_no_grad_decorates():
    x = leaf(1)

    @no_grad()
    def countdown(n):
        assert not is_grad_enabled()
        return x * 2 if n == 0 else countdown(n - 1)

    assert not countdown(3).requires_grad
    assert is_grad_enabled()


@pytest.mark.parametrize(
    ("switch", "inside"), [(no_grad, False), (no_grad(), False), (enable_grad, True), (set_grad_enabled(True), True)]
)
def test_a_generator_is_switched_step_by_step(switch, inside):
    log = []

    @switch
    def count(n):
        try:
            for i in range(n):
                log.append(is_grad_enabled())
                answer = yield i
                if answer:
                    yield answer
        except KeyError:
            log.append(is_grad_enabled())
            yield "caught"
        finally:
            log.append(is_grad_enabled())
        return "end"

    def all_of(n):
        return (yield from count(n))

    for outside in (True, False):
        with set_grad_enabled(outside):
            assert list(count(2)) == [0, 1]
            steps = count(5)
            assert [next(steps), is_grad_enabled()] == [0, outside]
            assert [steps.send("hello"), steps.throw(KeyError), is_grad_enabled()] == ["hello", "caught", outside]
            with pytest.raises(StopIteration, match="end"):
                next(steps)
            stopped = count(5)
            next(stopped)
            stopped.close()
            with pytest.raises(ZeroDivisionError):
                broken = all_of(5)
                next(broken)
                broken.throw(ZeroDivisionError)
            assert is_grad_enabled() == outside
    assert log == [inside] * len(log)
    assert count.__name__ == "count"


def test_set_grad_enabled_acts_at_once_or_for_a_block():
    set_grad_enabled(False)
    assert not is_grad_enabled()
    set_grad_enabled(True)
    with set_grad_enabled(False):
        assert not is_grad_enabled()
    assert is_grad_enabled()

    @set_grad_enabled(False)
    def inside(n):
        assert not is_grad_enabled()
        if n:
            inside(n - 1)

    assert is_grad_enabled()
    inside(1)
    assert is_grad_enabled()


def test_each_thread_has_its_own_switch():
    seen = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append(is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


@pytest.mark.parametrize("switch", [autodiff.no_grad, no_grad, set_grad_enabled])
def test_a_decorated_function_leaves_each_thread_as_it_was(switch):
    """Two threads are inside at once; they came in different modes, and leave in the order in which they came."""
    inside, first_left, modes = threading.Barrier(2), threading.Event(), {}

    def meet(first):
        inside.wait(10)
        if not first:
            first_left.wait(10)
        assert not is_grad_enabled()

    decorated = (switch(False) if switch is set_grad_enabled else switch())(meet)

    def work(first):
        with set_grad_enabled(first):
            decorated(first)
            modes[first] = is_grad_enabled()
            first_left.set()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (True, False)))
    assert modes == {True: True, False: False}


def test_threads_add_to_one_leaf_without_loss():
    x = tensor(np.zeros(1000), requires_grad=True)

    def work():
        for _ in range(50):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (x.grad.array == 400).all()


def test_detach_shares_memory_and_nothing_else():
    x = leaf(1, 2)
    y = x * 2
    z = y.detach()
    assert (z.requires_grad, z.is_leaf) == (False, True)
    assert z.storage is y.storage
    ((y * z).sum()).backward()
    assert x.grad.tolist() == [4, 8]
    y = x * 2
    assert not y.detach_().requires_grad
    with pytest.raises(RuntimeError, match="view"):
        (x * 2)[0].detach_()
