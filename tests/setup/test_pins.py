"""One set of versions, written in four places: pyproject.toml, requirements.txt, environment.yml and bootstrap.py."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from autograder.course import ROOT

LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))

# What Binder builds: an image of Linux on a 64-bit PC, with the Python that environment.yml names.
BINDER = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.12.1",
    "python_version": "3.12",
    "sys_platform": "linux",
}


def locked(text: str) -> dict[Requirement, set[str]]:
    """Each pin of the lock with the packages that asked for it, from uv's comments below the pin."""
    pins: dict[Requirement, set[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            asked_by = pins.setdefault(Requirement(line), set())
        elif match := re.fullmatch(r"    #(?:   via| via|  ) +(\S+)(?: \(pyproject\.toml\))?", line):
            asked_by.add(match[1])
    return pins


def names(requirements: list[str]) -> set[str]:
    return {Requirement(one).name for one in requirements}


def pins_for(roots: set[str]) -> set[str]:
    """The pins that `roots` need on Binder, by following the lock from what asks to what is asked for."""
    pins = {one: by for one, by in locked(LOCK).items() if one.marker is None or one.marker.evaluate(BINDER)}
    needed: set[str] = set()
    more = roots
    while more:
        needed |= more
        more = {one.name for one, asked_by in pins.items() if asked_by & needed} - needed
    return {f"{one.name}{one.specifier}" for one in pins if one.name in needed}


def pip_list() -> list[str]:
    return next(one["pip"] for one in ENVIRONMENT["dependencies"] if isinstance(one, dict))


def test_every_line_of_the_lock_is_an_exact_pin() -> None:
    loose = [str(one) for one in locked(LOCK) if [clause.operator for clause in one.specifier] != ["=="]]
    assert loose == []


@pytest.mark.parametrize("forbidden", ["://", "--index-url", "--find-links", "file:"])
def test_the_lock_names_no_place(forbidden: str) -> None:
    assert forbidden not in LOCK


def test_the_lock_holds_what_the_project_asks_for() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = names(PROJECT["project"]["dependencies"]) | names(extras["dev"])
    in_lock = {one.name for one, asked_by in locked(LOCK).items() if "gradwright" in asked_by}
    assert in_lock == wanted
    assert not names(extras["references"]) & {one.name for one in locked(LOCK)}


def test_the_lock_satisfies_the_bounds_of_the_project() -> None:
    declared = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["dev"]
    versions = [(one.name, str(one.specifier).removeprefix("==")) for one in locked(LOCK)]
    for bound in map(Requirement, declared):
        found = [version for name, version in versions if name == bound.name]
        assert found and all(bound.specifier.contains(version) for version in found), bound


def test_the_lock_serves_the_oldest_python_that_set_up_accepts() -> None:
    from autograder.bootstrap import OLDEST

    oldest = ".".join(map(str, OLDEST))
    assert f"--python-version {oldest} " in LOCK
    assert PROJECT["project"]["requires-python"] == f">={oldest}"


def test_the_build_backend_is_the_locked_one() -> None:
    backend = PROJECT["build-system"]["requires"]
    assert backend == [str(one) for one in locked(LOCK) if one.name == "hatchling"]


def test_binder_pins_python() -> None:
    plain = [one for one in ENVIRONMENT["dependencies"] if isinstance(one, str)]
    assert plain == ["python=3.12", "pip"]
    assert ENVIRONMENT["channels"] == ["conda-forge"]


def test_binder_installs_the_project_itself_and_nothing_loose() -> None:
    *pins, project = pip_list()
    assert project == "-e ."
    assert [one for one in pins if not re.fullmatch(r"[a-z0-9-]+==[\w.]+", one)] == []


def test_binder_has_the_locked_versions() -> None:
    expected = sorted(pins_for(names(PROJECT["project"]["dependencies"])))
    assert pip_list()[:-1] == expected, "the list in environment.yml should be:\n" + "\n".join(
        f"      - {pin}" for pin in expected
    )


def test_binder_has_no_folder_that_would_hide_its_file() -> None:
    hiding = ["binder", ".binder", "Dockerfile", "runtime.txt", "Pipfile", "setup.py", "postBuild", "apt.txt"]
    assert [name for name in hiding if Path(ROOT / name).exists()] == []
