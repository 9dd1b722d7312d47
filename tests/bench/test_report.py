"""The table, the picture, the file of numbers, and what starts them."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path

import matplotlib.image
import pytest

from autograder import bench
from autograder.bench import grading, harness, report, rivals
from autograder.errors import BadInput


@pytest.fixture
def sweep(workshop) -> list[harness.Timing]:
    """Two calculations at two sizes, the framework a microsecond slower a call; a rival takes part in one of them."""
    us = 1e-6
    sizes = (1, 1000)
    comparisons = [workshop.comparison("x + y", "sums", n, Gradwright=(n + 1) * us, NumPy=n * us) for n in sizes]
    comparisons += [
        workshop.comparison("x @ y", "products", n, Gradwright=3 * us, NumPy=2 * us, PyTorch=us) for n in sizes
    ]
    return harness.measure(comparisons, rounds=3, clock=workshop.clock)


@pytest.fixture
def steps(workshop) -> list[harness.Timing]:
    comparisons = [
        workshop.comparison("a small network", "forward", Gradwright=0.0011, NumPy=0.001, PyTorch=0.0015),
        workshop.comparison("attention", "forward and backward", Gradwright=0.0024, NumPy=0.002),
    ]
    return harness.measure(comparisons, rounds=3, clock=workshop.clock)


def test_the_table_of_a_sweep_has_a_column_for_each_size(sweep) -> None:
    rows = report.table(sweep).splitlines()
    assert rows[:9] == [
        "Gradwright / NumPy  us a call      1   10^3  spread",
        "sums",
        "  x + y                  1.00   2.00   1.00     ±0%",
        "products",
        "  x @ y                  1.00   1.50   1.50     ±0%",
        "",
        "PyTorch / NumPy     us a call      1   10^3  spread",
        "products",
        "  x @ y                 -1.00   0.50   0.50     ±0%",
    ]


def test_the_table_of_steps_has_a_column_for_each_library(steps) -> None:
    assert report.table(steps).splitlines()[:5] == [
        "                    NumPy, ms          Gradwright             PyTorch",
        "forward",
        "  a small network       1.000 1.10 (1.10 to 1.10) 1.50 (1.50 to 1.50)",
        "forward and backward",
        "  attention             2.000 1.20 (1.20 to 1.20)",
    ]


@pytest.mark.parametrize("timings", ["sweep", "steps"])
def test_picture_and_numbers_are_saved(timings: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    measured = request.getfixturevalue(timings)
    report.save("fake", "Two calculations", measured, tmp_path / "new")
    picture = matplotlib.image.imread(tmp_path / "new" / "fake.png")
    assert picture.shape[1] > 1000
    assert picture[..., :3].std() > 0.05, "the picture is empty"
    saved = json.loads((tmp_path / "new" / "fake.json").read_text(encoding="utf-8"))
    assert (saved["benchmark"], saved["title"]) == ("fake", "Two calculations")
    assert [one["name"] for one in saved["results"]] == [timing.comparison.name for timing in measured]
    one = saved["results"][0]["sides"]["Gradwright"]
    assert one["ratio"] == {
        "median": measured[0].ratio().median,
        "low": measured[0].ratio().low,
        "high": one["ratio"]["high"],
    }
    assert one["median"] == pytest.approx(measured[0].seconds["Gradwright"][0])


def test_a_run_prints_its_table_and_says_where_the_rest_is(
    workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = types.ModuleType("fake")
    module.comparisons = lambda: iter([workshop.comparison(Gradwright=0.0, NumPy=0.0)])
    module.RIVALS = ("HIPS autograd",)
    monkeypatch.setitem(rivals.RIVALS, "HIPS autograd", "not_a_module_of_anybody")
    monkeypatch.setitem(sys.modules, "autograder.bench.fake", module)
    report.run("fake", "One calculation", tmp_path)
    out = capsys.readouterr().out
    assert out.startswith("fake: One calculation. One BLAS thread, 25 rounds in shuffled order.\n")
    assert "Beside it: HIPS autograd is not installed and left out.\n" in out
    assert "\n  x + y" in out
    assert f"Picture and numbers: {tmp_path}/fake.png" in out


def test_a_library_that_is_not_installed_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rivals.RIVALS, "PyTorch", "not_a_module_of_anybody")
    assert rivals.rival("PyTorch") is None


# The command ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list:
    """What `bench` starts: ("here", name) or ("anew", arguments, threads)."""
    calls: list = []

    def fake_run(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess:
        calls.append(("anew", command[1:], env["OPENBLAS_NUM_THREADS"]))
        return subprocess.CompletedProcess(command, 5)

    monkeypatch.setattr(subprocess, "run", fake_run)
    monkeypatch.setattr(report, "run", lambda name, title: calls.append(("here", name)))
    monkeypatch.setattr(grading, "report", lambda folder: calls.append(("here", "grading")))
    return calls


def test_an_unknown_name_is_told_what_there_is(started: list) -> None:
    with pytest.raises(BadInput) as caught:
        bench.bench(["tensor", "tenser"])
    there = ", ".join((*bench.BENCHMARKS, *bench.CLASSES))
    assert str(caught.value) == f"there is no benchmark 'tenser': choose from {there}."
    assert started == []


def test_more_than_one_thread_starts_anew_with_one(started: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    assert bench.bench(["tensor"]) == 5
    assert started == [("anew", ["-m", "autograder", "bench", "tensor"], "1")]


def test_on_one_thread_the_named_ones_run_or_all(started: list, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in bench.ONE_THREAD.items():
        monkeypatch.setenv(name, value)
    assert bench.bench(["tensor"]) == bench.bench([]) == 0
    assert started == [("here", "tensor"), *(("here", name) for name in (*bench.BENCHMARKS, *bench.CLASSES))]
