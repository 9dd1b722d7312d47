"""The one table: every chapter, and under which PyTorch-shaped name its public names appear.

`public` maps a namespace ("" is `gradwright` itself, "nn.functional" is `gradwright.nn.functional`) to names that the
chapter's module defines. A later chapter may list a name again, as chapter 02 does with `Tensor`: the latest chapter
within reach gives it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.errors import BadInput

__all__ = ["CHAPTERS", "ROOT", "Chapter", "find_chapter", "namespaces", "relative"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Chapter:
    """A chapter and where its files lie. `name` is one word: folder, file, module and prefix of its exercises' ids."""

    number: int
    name: str
    title: str
    public: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    methods: tuple[str, ...] = field(default=(), compare=False)
    """Methods of the chapter's Tensor that are functions of `gradwright` too: gradwright.exp(x) is x.exp()."""

    @property
    def label(self) -> str:
        return f"{self.number:02d} {self.name}"

    @property
    def folder(self) -> str:
        """Its folder's name, the same in course/, in work/ and in a submission: `02_autodiff`."""
        return f"{self.number:02d}_{self.name}"

    @property
    def notebook(self) -> str:
        """Its notebook's name: `autodiff.ipynb`."""
        return f"{self.name}.ipynb"

    @property
    def place(self) -> Path:
        """The notebook's place inside course/, work/ and a submission: `02_autodiff/autodiff.ipynb`."""
        return Path(self.folder, self.notebook)

    @property
    def module(self) -> str:
        return f"gradwright.chapters.{self.name}"

    @property
    def source(self) -> Path:
        """The text notebook with the answers: the reference implementation."""
        return ROOT / "solutions" / f"{self.folder}.py"

    @property
    def release(self) -> Path:
        """The notebook without answers."""
        return ROOT / "course" / self.place

    def is_called(self, text: str) -> bool:
        """Whether somebody who types this means the chapter: `2`, `02`, `autodiff` or `02_autodiff`."""
        return text in (str(self.number), f"{self.number:02d}", self.name, self.folder)

    def offers(self, space: str) -> tuple[str, ...]:
        """The names that this chapter puts into a namespace."""
        return (*self.public.get(space, ()), *(self.methods if not space else ()))


def names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


MAKERS = names(  # of every chapter with a Tensor of its own
    "tensor from_numpy empty zeros ones full zeros_like ones_like arange eye linspace rand randn randint randperm"
)

CHAPTERS: tuple[Chapter, ...] = (
    Chapter(0, "start", "How the course works"),
    Chapter(
        1,
        "tensor",
        "Tensors: storage, shape and strides",
        {
            "": (
                *names("Tensor float16 float32 float64 uint8 int8 int16 int32 int64 bool"),
                *MAKERS,
                *names("Generator default_generator manual_seed broadcast_shapes result_type"),
            ),
        },
        methods=(
            *names("add sub mul div pow neg abs exp log sqrt tanh eq ne lt le gt ge matmul sum mean max min amax amin"),
            *names("argmax argmin all any permute transpose t reshape flatten squeeze unsqueeze broadcast_to clone"),
        ),
    ),
    Chapter(
        2,
        "autodiff",
        "Automatic differentiation",
        {
            "": ("Tensor", *MAKERS, *names("no_grad enable_grad is_grad_enabled")),
            "autograd": names("gradcheck"),
        },
    ),
    Chapter(
        3,
        "operations",
        "Operations and their gradients",
        {
            "": (
                *("Tensor", *MAKERS),
                *names("full_like rand_like randn_like where cat stack einsum"),
                *names("no_grad enable_grad set_grad_enabled"),
            ),
            "nn.functional": names("relu gelu silu softplus sigmoid tanh softmax log_softmax one_hot pad"),
            "autograd": names("Function grad gradcheck"),
        },
        methods=(
            *names("neg add sub mul div pow exp log log1p expm1 sqrt rsqrt abs sin cos tanh sigmoid relu maximum"),
            *names("minimum clamp reciprocal square sum mean var std prod cumsum max min amax amin logsumexp softmax"),
            *names("log_softmax norm matmul mm bmm mv dot outer addmm reshape permute transpose t broadcast_to"),
            *names("squeeze unsqueeze flatten clone narrow split chunk unbind gather index_select masked_fill"),
            *names("masked_select tril triu roll flip repeat_interleave argmax argmin all any argsort sort topk"),
            *names("eq ne lt le gt ge isnan isinf isfinite allclose equal"),
        ),
    ),
    Chapter(
        4,
        "layers",
        "Layers and modules",
        {
            "": names("GradientFlow"),
            "nn": (
                *names("Parameter Module ModuleList ModuleDict Sequential Residual Linear ReLU GELU SiLU Sigmoid Tanh"),
                *names("Softmax Dropout LayerNorm RMSNorm BatchNorm1d BatchNorm2d Embedding Flatten Identity"),
            ),
            "nn.functional": names("linear dropout layer_norm rms_norm batch_norm embedding"),
            "nn.init": (
                *names("calculate_gain zeros_ ones_ constant_ uniform_ normal_"),
                *names("xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_"),
            ),
        },
    ),
    Chapter(
        5,
        "losses",
        "Losses and numerical stability",
        {
            "nn": names("CrossEntropyLoss NLLLoss BCEWithLogitsLoss MSELoss L1Loss HuberLoss KLDivLoss"),
            "nn.functional": (
                *names("cross_entropy nll_loss binary_cross_entropy_with_logits mse_loss l1_loss huber_loss kl_div"),
            ),
            "nn.utils": names("clip_grad_norm_ clip_grad_value_"),
            "autograd": names("detect_anomaly set_detect_anomaly"),
        },
    ),
    Chapter(6, "optimizers", "Optimizers", {"optim": names("Optimizer SGD Adam AdamW RMSprop")}),
    Chapter(
        7,
        "schedulers",
        "Learning-rate schedules",
        {
            "optim.lr_scheduler": (
                *names("LRScheduler StepLR MultiStepLR ExponentialLR CosineAnnealingLR CosineAnnealingWarmRestarts"),
                *names("LinearLR OneCycleLR ReduceLROnPlateau SequentialLR LambdaLR"),
                *names("step_decay cosine warmup_cosine lr_range_test plot_range_test"),
            ),
        },
    ),
    Chapter(
        8,
        "data",
        "Datasets and loaders",
        {
            "": names("set_seed"),
            "utils.data": (
                *names("Dataset TensorDataset Subset random_split Sampler SequentialSampler RandomSampler"),
                *names("BatchSampler DataLoader default_collate"),
            ),
        },
    ),
    Chapter(9, "training", "The training loop", {"profiler": names("profile record_function")}),
    Chapter(10, "precision", "Mixed precision", {"": names("autocast bfloat16"), "amp": names("autocast GradScaler")}),
    Chapter(11, "memory", "Memory", {"utils.checkpoint": names("checkpoint checkpoint_sequential")}),
    Chapter(12, "recovery", "Checkpoints and recovery", {"": names("save load")}),
    Chapter(
        13,
        "convolution",
        "Convolution",
        {
            "nn": names("Conv2d MaxPool2d AvgPool2d AdaptiveAvgPool2d"),
            "nn.functional": names("conv2d max_pool2d avg_pool2d adaptive_avg_pool2d unfold"),
        },
    ),
    Chapter(
        14,
        "attention",
        "Attention",
        {
            "nn": names("MultiheadAttention TransformerEncoderLayer"),
            "nn.functional": names("scaled_dot_product_attention"),
        },
    ),
    Chapter(15, "clinic", "The clinic: ten broken training scripts"),
    Chapter(16, "capstone", "Capstone: a small GPT and a small CNN"),
)


def find_chapter(key: Any) -> Chapter:
    """The chapter with this number or name: 2, "2", "02", "autodiff" or "02_autodiff". Raises BadInput for another."""
    for chapter in CHAPTERS:
        if not isinstance(key, bool) and key == chapter.number:
            return chapter
        if isinstance(key, str) and chapter.is_called(key):
            return chapter
    spelled = [form for chapter in CHAPTERS for form in (chapter.name, chapter.folder)]
    near = difflib.get_close_matches(str(key), spelled, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(c.label for c in CHAPTERS)}"
    raise BadInput(f"there is no chapter {key!r}: {hint}")


def namespaces() -> set[str]:
    """Every namespace of the table and those around it: "nn.functional" brings "nn"."""
    spaces = {space for chapter in CHAPTERS for space in chapter.public if space}
    return spaces | {space.rpartition(".")[0] for space in spaces if "." in space}


def relative(path: Path) -> str:
    """A path as a reader wants it: from the project's folder where it lies inside, with forward slashes."""
    path = path.absolute()
    return (path.relative_to(ROOT) if path.is_relative_to(ROOT) else path).as_posix()
