"""What a run sees of the machine. (What it can do there is tried in tests/attacks.)"""

from __future__ import annotations

import errno
import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.course import ROOT
from autograder.grade import isolate, sandbox

# Linux's own numbers (asm/unistd_64.h for x86_64, asm-generic/unistd.h for aarch64): name, x86_64, aarch64.
REFUSED = """
shmget 29 194, shmat 30 196, socket 41 198, fork 57 -, vfork 58 -, execve 59 221, semget 64 190, msgget 68 186,
ptrace 101 117, personality 135 92, pivot_root 155 41, chroot 161 51, mount 165 40, umount2 166 39, mq_open 240 180,
add_key 248 217, request_key 249 218, keyctl 250 219, unshare 272 97, perf_event_open 298 241,
name_to_handle_at 303 264, open_by_handle_at 304 265, setns 308 268, process_vm_readv 310 270,
process_vm_writev 311 271, memfd_create 319 279, bpf 321 280, execveat 322 281, userfaultfd 323 282,
io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427, open_tree 428 428, move_mount 429 429,
fsopen 430 430, fsconfig 431 431, fsmount 432 432, pidfd_open 434 434, pidfd_getfd 438 438, mount_setattr 442 442,
memfd_secret 447 447, syslog 103 116, setpriority 141 140, sched_setparam 142 118, sched_setscheduler 144 119,
sync 162 81, sched_setaffinity 203 122, ioprio_set 251 30, syncfs 306 267, sched_setattr 314 274"""
ALLOWED = """
read 0 63, write 1 64, close 3 57, mmap 9 222, munmap 11 215, mprotect 10 226, brk 12 214, futex 202 98, openat 257 56,
rt_sigaction 13 134, exit_group 231 94, getrandom 318 278, clock_gettime 228 113, setitimer 38 103, prlimit64 302 261,
kill 62 129, fcntl 72 25"""
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL, REFUSE, ABSENT = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
THREAD = 0x00010000


def numbers(table: str, machine: str) -> dict[str, int]:
    rows = [entry.split() for entry in table.split(",")]
    column = 1 + list(MACHINES).index(machine)
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def decided(machine: str, call: int, *arguments: int, audit: int | None = None) -> int:
    """What the filter for a machine says to a call, by what the kernel does with such a program."""
    audit = MACHINES[machine] if audit is None else audit
    data = struct.pack("<iIQ6Q", call, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    steps, at, held = list(struct.iter_unpack("<HBBI", isolate.filter_program(machine))), 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            held = struct.unpack_from("<I", data, value)[0]
        else:
            true = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
            at += yes if true else no


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_of_each_machine_knows_its_numbers(machine: str) -> None:
    for name, number in numbers(REFUSED, machine).items():
        assert decided(machine, number) == REFUSE, name
    for name, number in numbers(ALLOWED, machine).items():
        assert decided(machine, number) == ALLOW, name
    clone, lease = {"x86_64": 56, "aarch64": 220}[machine], 1024
    assert (decided(machine, clone, 17), decided(machine, clone, THREAD)) == (REFUSE, ALLOW)
    assert decided(machine, 435) == ABSENT  # clone3: the C library then takes clone
    assert decided(machine, numbers(ALLOWED, machine)["fcntl"], 3, lease) == REFUSE
    for other, audit in MACHINES.items():
        assert other == machine or decided(machine, 0, audit=audit) == KILL


def test_a_machine_without_a_list_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(sys, "platform", "linux")
    assert sandbox.weakness.__wrapped__() == "there is no list of system calls for riscv64"


@pytest.mark.parametrize(("folder", "seen"), [("/tmp/project/.venv/lib", "/tmp"), ("/dev/shm/python", "/dev/shm")])
def test_libraries_are_not_hidden_from_a_run(folder: str, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project in /tmp: what nothing had imported yet was not to be found there."""
    monkeypatch.setattr(sys, "path", ["", "/usr/lib/python3.11"])
    assert isolate.hidden() == list(isolate.HIDDEN)
    monkeypatch.setattr(sys, "path", ["/usr/lib/python3.11", folder])
    assert {*isolate.HIDDEN} - {*isolate.hidden()} == {seen}


@pytest.mark.skipif(bool(sandbox.weakness()), reason="no isolation on this machine")
def test_a_python_named_by_a_roundabout_path_starts_the_sandbox() -> None:
    place = Path(sys.executable)
    roundabout = place.parent / ".." / place.parent.name / place.name
    program = "from autograder.grade.sandbox import weakness; print(weakness())"
    said = subprocess.run([roundabout, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (said.stdout, said.stderr) == ("\n", "")
