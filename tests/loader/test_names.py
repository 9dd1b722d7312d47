"""The framework's names: from the latest chapter within reach, or a sentence that says why not."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import threading

import pytest

import gradwright
import gradwright.nn
import gradwright.nn.functional
from autograder.errors import BadInput, NotBuiltYet
from gradwright import _framework


def test_the_latest_chapter_that_has_a_name_gives_it(project):
    from gradwright.chapters import autodiff, tensor

    assert gradwright.Tensor is autodiff.Tensor
    assert gradwright.double is tensor.double
    assert gradwright.tensor(3).value == 3
    assert gradwright.nn.Flatten is tensor.Flatten
    assert gradwright.autograd.Function is autodiff.Function


def test_every_form_of_import(project):
    import gradwright as torch
    import gradwright.nn.functional as F
    from gradwright import nn, tensor
    from gradwright.chapters.tensor import Tensor
    from gradwright.nn import Linear, functional

    assert torch.nn is nn
    assert functional is F is nn.functional
    assert Linear is nn.Linear
    assert F.linear(3).value == 3
    assert issubclass(type(tensor(3)), Tensor)
    assert importlib.import_module("gradwright.autograd").Function


def test_star_import_brings_what_is_within_reach(project):
    names = {}
    exec("from gradwright.nn import *", names)
    assert {"Flatten", "Linear", "functional"} <= set(names)
    assert "MSELoss" not in names


def test_a_name_is_looked_up_once(project):
    assert "double" not in vars(gradwright)
    first = gradwright.double
    assert vars(gradwright)["double"] is first


def test_a_chapter_is_built_from_those_before_it_whatever_was_asked_first(project):
    _ = gradwright.Tensor  # chapter 02's, remembered
    project.source(3, '# %% given="a"\nfrom gradwright import Tensor\n\nclass Linear:\n    made_of = Tensor\n')
    assert gradwright.nn.Linear.made_of is gradwright.chapters.autodiff.Tensor
    from gradwright.chapters import tensor

    assert gradwright.chapters.autodiff.Tensor.__mro__[1] is tensor.Tensor


def test_while_a_chapter_is_built_it_sees_the_chapters_before_it_alone(project):
    project.source(2, '# %% given="a"\nimport gradwright\n\nseen = gradwright.Tensor\n\nclass Tensor(seen): ...\n')
    from gradwright.chapters import autodiff, tensor

    assert autodiff.seen is tensor.Tensor
    assert gradwright.Tensor is autodiff.Tensor


def test_the_chapter_you_are_in_and_later_ones_are_out_of_reach(project, sentence):
    gradwright.chapter(2)
    assert gradwright.Tensor is gradwright.chapters.tensor.Tensor
    assert sentence(NotBuiltYet, lambda: gradwright.no_grad) == (
        "gradwright.no_grad is not there yet: it is what you are about to build in chapter 02 autodiff"
    )
    assert sentence(NotBuiltYet, lambda: gradwright.nn.Linear) == (
        "gradwright.nn.Linear comes later: it is built in chapter 03 layers, and this is chapter 02 autodiff"
    )
    assert "about to build" in sentence(NotBuiltYet, importlib.import_module, "gradwright.chapters.autodiff")
    assert "comes later" in sentence(NotBuiltYet, getattr, gradwright.chapters, "layers")


def test_from_import_says_the_same_sentence(project, sentence):
    gradwright.chapter(1)
    assert "about to build in chapter 01" in sentence(NotBuiltYet, exec, "from gradwright import tensor")
    assert "comes later" in sentence(NotBuiltYet, exec, "from gradwright.nn.functional import linear")
    assert "about to build" in sentence(NotBuiltYet, exec, "from gradwright.chapters.tensor import Tensor")
    assert "comes later" in sentence(NotBuiltYet, exec, "from gradwright.chapters import layers")


def test_a_chapter_still_to_come_and_one_missing_from_this_copy(project, sentence):
    assert sentence(NotBuiltYet, lambda: gradwright.nn.MSELoss) == (
        "gradwright.nn.MSELoss belongs to chapter 04 losses, which is still to come in this edition"
    )
    project.notebook("course/03_layers/layers.ipynb")
    (project.root / "solutions/03_layers.py").unlink()
    assert sentence(NotBuiltYet, lambda: gradwright.nn.Linear) == (
        "gradwright.nn.Linear is not in this copy: chapter 03 layers is made from solutions/03_layers.py, not found"
    )
    assert gradwright.Tensor


def test_a_name_that_the_table_promises_and_the_chapter_lacks(project, sentence):
    project.source(3, '# %% given="a"\nLINEAR = 1\n')
    said = sentence(NotBuiltYet, lambda: gradwright.nn.Linear)
    assert said.startswith(
        "gradwright.nn.Linear should come from chapter 03 layers, but solutions/03_layers.py defines no"
    )


@pytest.mark.parametrize(
    ("space", "name", "says"),
    [
        ("gradwright", "tensr", "module 'gradwright' has no attribute 'tensr': did you mean 'tensor'?"),
        ("gradwright.nn", "Linar", "module 'gradwright.nn' has no attribute 'Linar': did you mean 'Linear'?"),
        ("gradwright", "Linear", "module 'gradwright' has no attribute 'Linear': did you mean 'gradwright.nn.Linear'?"),
        ("gradwright.nn", "qqq", "module 'gradwright.nn' has no attribute 'qqq'"),
        ("gradwright.chapters", "tensors", "'tensors': did you mean 'tensor'?"),
        ("gradwright", "__wrapped__", "module 'gradwright' has no attribute '__wrapped__'"),
    ],
)
def test_a_name_that_nobody_promises(project, sentence, space, name, says):
    module = importlib.import_module(space)
    assert sentence(AttributeError, getattr, module, name).endswith(says)


def test_dir_lists_what_is_within_reach(project):
    assert {"tensor", "no_grad", "nn", "autograd", "chapter", "use"} <= set(dir(gradwright))
    assert {"Linear", "Flatten", "functional"} <= set(dir(gradwright.nn))
    assert "MSELoss" not in dir(gradwright.nn)
    assert dir(gradwright.chapters) == ["autodiff", "layers", "start", "tensor"]
    gradwright.chapter(2)
    assert {"no_grad", "autograd"}.isdisjoint(dir(gradwright))
    assert "functional" not in _framework.reachable_names("nn")
    gradwright.chapter(0)
    assert dir(gradwright.chapters) == []


def test_chapter_again_keeps_what_is_loaded_and_another_one_resets(project):
    gradwright.chapter(3)
    autodiff = gradwright.chapters.autodiff
    gradwright.chapter("03")
    assert gradwright.chapters.autodiff is autodiff
    gradwright.chapter("autodiff")
    assert gradwright.Tensor is gradwright.chapters.tensor.Tensor
    assert "gradwright.chapters.autodiff" not in sys.modules
    gradwright.chapter(3)
    assert gradwright.Tensor is gradwright.chapters.autodiff.Tensor


@pytest.mark.parametrize("key", [9, -1, True, "nine", None, 1.5, "1.5", (), "tenso"])
def test_an_unknown_chapter_is_bad_input(project, sentence, key):
    said = sentence(BadInput, gradwright.chapter, key)
    assert said.startswith(f"there is no chapter {key!r}: ")
    assert said.endswith("did you mean 'tensor'?") or "00 start, 01 tensor, 02 autodiff" in said


def test_chapter_hands_the_framework_to_the_checks(project, monkeypatch):
    handed = {}
    monkeypatch.setattr("autograder.checks.begin", lambda **given: handed.update(given))
    gradwright.chapter("02_autodiff")
    assert handed == {"framework": gradwright, "chapter": 2, "stale": gradwright.stale}


def test_limited_puts_everything_back(project):
    layers, tensor = gradwright.chapters.layers, gradwright.chapters.tensor
    with _framework.limited(2):
        assert gradwright.Tensor is tensor.Tensor
        with pytest.raises(NotBuiltYet):
            _ = gradwright.chapters.layers
    assert gradwright.chapters.layers is layers
    assert gradwright.Tensor is gradwright.chapters.autodiff.Tensor


def test_objects_of_a_chapter_can_be_pickled(project):
    assert pickle.loads(pickle.dumps(gradwright.tensor(3))).value == 3


def test_threads_that_import_at_once_get_one_framework(project):
    project.source(1, (project.root / "solutions/01_tensor.py").read_text() + "\nimport time\n\ntime.sleep(0.05)\n")
    start, seen, errors = threading.Barrier(8), [], []

    def ask(number):
        start.wait()
        try:
            seen.append((gradwright.nn.Linear, gradwright.Tensor, gradwright.chapters.tensor.Tensor)[number % 3])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert set(seen) == {gradwright.nn.Linear, gradwright.Tensor, gradwright.chapters.tensor.Tensor}


FRESH = """
import sys
import numpy
import gradwright
heavy = {"jupytext", "nbformat", "IPython", "matplotlib", "nbgrader", "torch"} & set(sys.modules)
assert not heavy, heavy
assert not [name for name in sys.modules if name.startswith("gradwright.chapters.")]
import gradwright.nn.functional as F
from gradwright.optim import lr_scheduler
import gradwright as torch
from gradwright.chapters.start import dot
assert dot(numpy.array([1, 2]), numpy.array([3, 4])) == 11
assert not {"jupytext", "nbformat", "IPython", "nbgrader"} & set(sys.modules)
gradwright.chapter(1)
try:
    torch.tensor
except ImportError as error:
    assert "chapter 01 tensor" in str(error)
else:
    raise SystemExit("tensor should be out of reach")
print(gradwright.__version__)
"""


def test_a_fresh_process_imports_little_and_finds_the_real_chapters(tmp_path):
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == gradwright.__version__
