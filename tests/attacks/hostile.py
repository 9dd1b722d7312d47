"""The hostile class: what each submission puts in front of its notebook, and in place of its answers.

FORGED would be right if the attack worked and is wrong if it does not. `earns` says what an attack may have where its
answers are partly honest.
"""

from __future__ import annotations

import textwrap

WRONG = """def dot_loop(a, b):
    return attack(a, b)"""
WRONG_TOO = """def dot(a, b):
    return attack(a, b)"""
FORGED = {"start-dot-loop": WRONG, "start-dot": WRONG_TOO}

CHANNEL = """
import os, json, struct
def say(data):
    try:
        os.write(3, data)
    except OSError:
        pass
def frame(message, numbers=b""):
    text = json.dumps(message).encode()
    return struct.pack(">II", len(text) + len(numbers), len(text)) + text + numbers
OUTCOME = {"names": [], "weak": [], "odd": {}, "raised": None, "changed": [], "printed": "", "warned": []}
"""


def attack(body: str, before: str = "") -> str:
    """A cell that defines `attack(a, b)`."""
    return f"{before}\ndef attack(a, b):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n    return 0.0"


SEARCH = """
import gc, sys, inspect
for thing in gc.get_objects():
    if type(thing).__name__ in ("StoredCase", "Reference") and hasattr(thing, "wanted"):
        return list(thing.wanted.values())[0]
frame = inspect.currentframe()
while frame:
    for value in list(frame.f_locals.values()):
        if hasattr(value, "wanted"):
            return list(value.wanted.values())[0]
    frame = frame.f_back
"""
DISK = """
import os, runpy
for root, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if f not in ("usr", "site-packages", "proc", "sys")]
    for name in files:
        if name == "00_start.npz" or name.endswith(".db") or "solutions" in root:
            FOUND.append(os.path.join(root, name))
raise LookupError(f"found {FOUND}")
"""
PATCHES = """
import numpy as np, sys, builtins, json, types
class Yes:
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return True
    def __eq__(self, other): return True
    __hash__ = None
np.testing.assert_allclose = np.allclose = np.array_equal = np.isclose = lambda *a, **k: True
import autograder.checks.compare as compare, autograder.checks.judge as judge_module, autograder.checks.run as run
compare.compare = lambda *a, **k: None
compare.compare_outputs = lambda *a, **k: []
judge_module.assess = judge_module.compared = lambda *a, **k: Yes()
judge_module.check_target = lambda *a: None
sys.modules["autograder.checks.judge"] = Yes()
np.ndarray.__eq__ if False else None
"""
STUBS = """
import sys, types
for name in list(sys.modules):
    if name.startswith("autograder"):
        sys.modules[name] = types.ModuleType(name)
class Hook:
    def find_spec(self, name, path=None, target=None):
        return None
sys.meta_path.insert(0, Hook())
"""
LIAR = """
import numpy as np
class Liar(np.ndarray):
    def __eq__(self, other): return np.ones(self.shape, bool)
    def __sub__(self, other): return np.zeros(self.shape)
    __rsub__ = __sub__
    def __array_ufunc__(self, *a, **k): return np.zeros(())
    def __array_function__(self, *a, **k): return True
    def tobytes(self, *a): return b""
    def __reduce__(self): return (eval, ("1/0",))
class Chameleon:
    shape, dtype = (), np.dtype(float)
    def __array__(self, *a, **k): return np.zeros(()).view(Liar)
    def __float__(self): return 0.0
    def __eq__(self, other): return True
class Number(float):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
"""
ESCAPES = """
import ctypes, glob, os, socket, subprocess, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
DONE = []
def tried(name, function):
    try:
        result = function()
    except BaseException:
        return
    if not (isinstance(result, int) and result < 0):
        DONE.append(name)
tried("fork", os.fork)
tried("program", lambda: subprocess.run(["/usr/bin/true"]))
tried("system", lambda: -1 if os.system("true") else 0)
tried("socket", lambda: socket.create_connection(("127.0.0.1", 80), 0.2))
tried("any socket", lambda: socket.socket(socket.AF_UNIX))
tried("unshare", lambda: libc.unshare(0x10000000))
tried("mount", lambda: libc.mount(b"none", b"/private", b"tmpfs", 0, None))
tried("umount", lambda: libc.umount2(b"/proc", 2))
tried("shared memory", lambda: libc.shmget(4242, 4096, 0o1666))
tried("message queue", lambda: libc.msgget(4242, 0o1666))
tried("memfd", lambda: os.memfd_create("x"))
import fcntl
for device in ("null", "zero", "full", "random", "urandom", "tty", "pts"):
    tried(f"rights of {device}", lambda: os.chmod(f"/dev/{device}", os.stat(f"/dev/{device}").st_mode & 0o7777))
for library in ("/usr/bin/env", os.__file__):
    tried("lease", lambda: fcntl.fcntl(os.open(library, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK))
LIBRARIES = "/usr/lib", "/usr/local/lib", f"{sys.base_prefix}/lib"
PACKAGES = [p for lib in LIBRARIES for p in glob.glob(f"{lib}/python3*/*-packages")]
for place in sys.path + PACKAGES:
    tried(f"write {place}", lambda: open(f"{place}/left", "w"))
tried("other packages", lambda: [p for p in PACKAGES if p not in sys.path and os.listdir(p)][0])
tried("waits longer", lambda: os.nice(1))
tried("waits for others", lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)))
tried("waits for one processor", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
tried("reads the kernel's log", lambda: libc.klogctl(3, ctypes.create_string_buffer(9), 9))
tried("makes disks wait", lambda: libc.syncfs(os.open("/private", os.O_RDONLY)))
tried("trace", lambda: libc.ptrace(16, 1, 0, 0))
tried("listing", lambda: os.listdir("/proc")[0])
tried("root", lambda: os.setuid(0))
tried("more memory", lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_AS, (-1, -1)))
for place in ("/", "/course", "/course/autograder", "/usr", "/dev", "/dev/shm", "/tmp", "/proc", "/etc", "/home"):
    tried(f"write {place}", lambda: open(f"{place}/left", "w"))
print("DONE", DONE)
"""

HOSTILE: dict[str, tuple[str, ...]] = {
    "patched checks": (PATCHES, attack("return Yes()")),
    "stubs in sys.modules": (STUBS, attack("pass")),
    "searches memory and frames": (attack(SEARCH),),
    "reads the disk": ("FOUND = []", attack(DISK)),
    "lying array": (LIAR, attack("return np.zeros(()).view(Liar)")),
    "chameleon": (LIAR, attack("return Chameleon()")),
    "lying number": (LIAR, attack("return Number(0)")),
    "object array": (attack("return np.array([print, {}, None], dtype=object)"),),
    "text": (attack("return 'right'"),),
    "nan": (attack("return float('nan')"),),
    "refusals without a check": (
        "import sys\nimport numpy as np\nfor module in list(sys.modules.values()):\n"
        "    if hasattr(module, 'raised'):\n        module.raised = lambda *a: np.array(True)",
        attack("pass"),
    ),
    "hides that inputs were changed": (
        "import autograder.checks.run as run\nrun.unchanged = lambda *a: True",
        attack("a[...] = 0\nb[...] = 0\nreturn a @ b"),
    ),
    "says that it is a plain number": (
        "import autograder.checks.run as run\nkept = run.sort_out\n"
        "run.sort_out = lambda *a: run.Outcome(kept(*a).outputs, frozenset(kept(*a).outputs))",
        attack("import numpy as np\nreturn np.zeros((), '<c16')"),
    ),
    "everything refused": (attack("raise ValueError('no')"),),
    "patched numpy": ("import numpy as np\nnp.array = np.asarray = lambda *a, **k: np.float64(0)", attack("pass")),
    "escapes": (ESCAPES, attack("pass")),
    "ends python": (attack("import os\nos._exit(0)"),),
    "ends python while defining": ("import os\nos._exit(0)", attack("pass")),
    "closes every file": (attack("import os\nos.closerange(0, 1000)"),),
    "segmentation fault": (attack("import ctypes\nctypes.string_at(0)"),),
    "stack overflow": (
        attack("import sys\nsys.setrecursionlimit(10**9)\ndef f():\n    return [*map(lambda _: f(), [1])]\nf()"),
    ),
    "memory": (attack("return bytearray(2**40)"),),
    "memory in steps": (attack("keep = []\nwhile True:\n    keep.append(bytearray(2**26))"),),
    "threads without end": (
        attack("import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(99,)).start()"),
    ),
    "files without end": (attack("keep = []\nwhile True:\n    keep.append(open('/private/f', 'w'))"),),
    "full disk": (attack("with open('/private/f', 'wb') as f:\n    while True:\n        f.write(b'x' * 2**20)"),),
    "prints without end": (attack("while True:\n    print('<script>alert(1)</script>' * 100)"),),
    "writes to every file": (
        attack("import os\nfor i in range(100):\n    try: os.write(i, b'x' * 100)\n    except OSError: pass"),
    ),
    "large array": (attack("return np.zeros(2**25)"),),
    "many axes": (attack("return np.zeros((1,) * 60)"),),
    "exit": (attack("raise SystemExit(0)"),),
    "keyboard": (attack("raise KeyboardInterrupt"),),
    "generator exit": (attack("raise GeneratorExit"),),
    "hostile exception": (
        "class Bad(BaseException):\n    def __str__(self): raise self\n    __repr__ = __str__",
        attack("raise Bad"),
    ),
    "name of an exception": (attack("raise type('<script>' * 10**6, (Exception,), {})"),),
    "halves of characters": (attack("print('\\ud800\\x00\\x1b[2J')\nraise ValueError('\\udfff')"),),
    "blocks the alarm": (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))",
        attack("while True: pass"),
    ),
    "own handlers": (
        "import signal\nfor n in (1, 2, 10, 14, 15): signal.signal(n, signal.SIG_IGN)\n"
        "signal.setitimer = signal.signal = lambda *a: None",
        attack("while True: pass"),
    ),
    "catches everything": (attack("while True:\n    try:\n        while True: pass\n    except BaseException: pass"),),
    "one long step": (attack("return 10 ** (10 ** 9) % 7"),),
    "stops itself": (attack("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nos.kill(0, signal.SIGSTOP)"),),
    "kills all": (
        attack("import os\nfor p in (-1, 0, 1, os.getppid() or 1):\n    try: os.kill(p, 9)\n    except OSError: pass"),
    ),
    "thread that goes on": (
        "import threading, os\ndef on():\n    while True:\n        try: os.write(3, b'x' * 1000)\n"
        "        except OSError: pass",
        attack("threading.Thread(target=on, daemon=True).start()"),
    ),
    "at exit": (CHANNEL, attack("import atexit\natexit.register(say, frame({'kind': 'ready'}))\nraise SystemExit")),
    "garbage": (CHANNEL, attack("say(b'garbage' * 1000)")),
    "an endless frame": (CHANNEL, attack("say(struct.pack('>II', 2**32 - 1, 10))\nwhile True: say(b'x' * 65536)")),
    "endless frames": (CHANNEL, attack("while True: say(frame({'kind': 'cell', 'id': 'x', 'arrays': []}))")),
    "a lying shape": (
        CHANNEL,
        attack("say(frame({'kind': 'outcomes', 'id': 'start-dot', 'cases': [OUTCOME], 'in_time': True,\n"
               "    'arrays': [['<f8', [2**62, 2**62]]]}))"),
    ),
    "texts larger than the machine": (
        CHANNEL,
        attack("for id in ('start-dot-loop', 'start-dot'):\n    say(frame({'kind': 'outcomes', 'id': id, 'cases': [],\n"
               "        'in_time': True, 'arrays': [['<U0', [2**23, 2**23]]]}))"),
    ),
    "objects in a frame": (CHANNEL, attack("say(frame({'kind': 'outcomes', 'arrays': [['|O', [1]]]}, b'x' * 8))")),
    "deep json": (CHANNEL, attack("d = b'[' * 10**5\nsay(struct.pack('>II', len(d), len(d)) + d)")),
    "cells without end": (
        CHANNEL,
        "import time\nFAILED = {'kind': 'NameError', 'message': '', 'where': ''}\nwhile True:\n"
        "    say(frame({'kind': 'cell done', 'id': 'start-dot-loop', 'printed': '', 'raised': FAILED, 'arrays': []}))\n"
        "    say(frame({'kind': 'cell', 'id': 'start-dot-loop', 'arrays': []}))\n    time.sleep(0.1)",
        attack("pass"),
    ),
    "an answer to another exercise": (
        CHANNEL,
        attack("for id in ('start-dot', 'start-dot-loop', 'tensor-strides'):\n"
               "    say(frame({'kind': 'outcomes', 'id': id, 'cases': [], 'in_time': True, 'arrays': []}))"),
    ),
    "right, it says": (
        CHANNEL,
        attack("for what in ({'right': True}, {'points': 99}, {'kind': 'done'}, {'kind': 'ready'}):\n"
               "    say(frame({**what, 'arrays': []}))"),
    ),
    "too many outcomes": (
        CHANNEL,
        attack("for id in ('start-dot', 'start-dot-loop'):\n    say(frame({'kind': 'outcomes', 'id': id,"
               " 'cases': [OUTCOME] * 9999, 'in_time': True, 'arrays': []}))"),
    ),
    "not Python": ("def f(:", attack("pass")),
    "deep source": ("x = " + "(" * 5000, attack("pass")),
    "deep signs": ("x = " + "-" * 50_000 + "1", attack("pass")),
    "deep names": ("x = a" + ".a" * 50_000, attack("pass")),
    "long sum": ("x = 1" + " + 1" * 20_000, attack("pass")),
    "a zero in the source": ("x = 1\x00", attack("pass")),
}  # fmt: skip
"""Name to the cells that define `attack`, on which both answers lean."""
