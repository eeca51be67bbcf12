"""The recipe's words: pydantic models with a description for every key (docs/recipes.md is made from them)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Section(BaseModel):
    """Base of all sections: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Model(Section):
    """Where the model comes from: exactly one of the kinds."""

    python: str | None = None
    """`path.py:callable` beside the recipe, or `package.module:callable`; returns a torch.nn.Module."""
    timm: str | None = None
    """Name of a timm model."""
    torchvision: str | None = None
    """Name of a torchvision classification model."""
    onnx: str | None = None
    """An ONNX file: the chain is entered at `export`, rungs 1 and 2 are not applicable."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the callable or of the model's constructor."""
    checkpoint: str | None = None
    """Trained weights: safetensors, or a torch file that loads with weights_only=True."""


class Data(Section):
    """Where the samples come from: exactly one of the kinds."""

    digits: bool = False
    """scikit-learn's handwritten digits: 1,797 images of 8x8, inside that package."""
    python: str | None = None
    """`path.py:callable`; returns train, select and test splits."""
    imagefolder: str | None = None
    """A folder of train/ val/ (and test/) with a subfolder of images per class."""
    npz: str | None = None
    """A .npz file with train_x, train_y, select_x, ... arrays."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the callable or reader."""


class Phase(Section):
    """One training phase."""

    epochs: int = Field(10, ge=0)
    """Passes over the training split; 0 skips the phase."""
    batch_size: PositiveInt = 64
    """Samples per step."""
    lr: float = Field(0.01, gt=0)
    """Peak learning rate."""
    optimizer: Literal["sgd", "adamw"] = "sgd"
    """Optimizer."""
    momentum: Share = 0.9
    """SGD momentum."""
    weight_decay: float = Field(1e-4, ge=0)
    """Weight decay; masked weights stay zero whatever it is."""
    schedule: Literal["constant", "cosine"] = "cosine"
    """Learning rate over the phase."""


class Masks(Section):
    """Which weights become 2:4, and by which criterion."""

    criterion: Literal["magnitude"] = "magnitude"
    """How the two weights to keep in a group of four are chosen."""
    include: list[str] = Field(default_factory=lambda: ["*"])
    """Patterns over module names: candidates."""
    exclude: list[str] = Field(default_factory=list)
    """Patterns over module names: stay dense."""


class Train(Section):
    """Dense baseline, masks, fine-tuning with masks held."""

    dense: Phase = Field(default_factory=Phase)
    """Training of the dense baseline (skipped with `model.checkpoint`)."""
    finetune: Phase = Field(default_factory=Phase)
    """Recovery training with masks held."""
    masks: Masks = Field(default_factory=Masks)
    """Mask choice."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; auto takes a GPU when there is one."""
    threads: PositiveInt = 2
    """CPU threads; part of the key, since sums depend on it."""


class Freeze(Section):
    """Masks become plain zeros, with proof."""

    on_regrowth: Literal["fail", "remask"] = "fail"
    """What to do when a masked weight is not zero in the checkpoint."""


class BatchRange(Section):
    """The dynamic batch axis."""

    min: PositiveInt = 1
    """Smallest batch of the profile."""
    opt: PositiveInt = 32
    """The batch that TensorRT tunes for."""
    max: PositiveInt = 64
    """Largest batch of the profile."""


class Export(Section):
    """torch -> ONNX."""

    precision: Literal["fp32", "fp16", "bf16"] = "fp32"
    """Type of weights and activations in the file."""
    opset: int = Field(20, ge=17, le=26)
    """ONNX opset."""
    batch: BatchRange = Field(default_factory=BatchRange)
    """The dynamic batch axis."""


class Build(Section):
    """ONNX -> engines."""

    backend: Literal["onnxruntime", "tensorrt", "trtexec", "tensorrt-rtx"] = "onnxruntime"
    """What builds and runs the engines."""
    repeats: PositiveInt = 1
    """Builds per arm; a claim about the recipe needs 3."""
    threads: PositiveInt = 1
    """CPU threads of the onnxruntime backend."""


class Measure(Section):
    """Latency, layer times, engine quality, sizes."""

    batches: list[PositiveInt] = Field(default_factory=list)
    """Batch sizes to time; the opt batch when empty."""
    seconds: float = Field(10.0, gt=0)
    """Planned sampling time per batch size, after the warm-up."""
    rounds: int = Field(20, ge=3)
    """Least number of rounds; in each round every arm runs one block, in random order."""
    block_ms: float = Field(20.0, gt=0)
    """Length of a block, before a round's quantile of it is taken."""
    warmup_seconds: float = Field(10.0, ge=0)
    """Longest warm-up; an arm that has not settled by then makes its latency rules inconclusive."""
    stop_early: bool = True
    """Stop when every latency rule is decided; intervals stay valid."""
    layer_passes: int = Field(3, ge=0)
    """Profiling passes for layer times."""


class Rule(Section):
    """One budget of the gate."""

    kind: Literal["latency", "quality", "rungs", "stability", "size", "energy"]
    """What is judged."""
    arm: str = "sparse"
    """The arm that is to be released."""
    over: str | None = None
    """Relative to this arm, or to `baseline` (named by `gate --baseline`); absolute when absent."""
    metric: Literal["gpu_compute", "host_latency", "enqueue", "request"] | None = None
    """latency: which time; the backend's main one when absent."""
    batch: PositiveInt | None = None
    """latency, energy: at this batch size; every measured one when absent."""
    profile: int | None = Field(None, ge=0)
    """latency: of this optimization profile; every measured one when absent."""
    quantile: Literal["p50", "p90", "p99", "p99.9", "mean"] = "p50"
    """latency: which quantile."""
    claim: Literal["engine", "recipe"] | None = None
    """latency: about this engine, or about what the recipe builds (the spread between builds then counts, and 3 builds per arm are needed);
    `recipe` when absent and both arms were built at least 3 times."""
    at_most: float | None = Field(None, gt=0)
    """latency, size, energy: a ratio with `over`, else ms, bytes, millijoules."""
    head: str | None = None
    """quality: this head; every head when absent."""
    slice: str | None = None
    """quality: a slice `axis=name`, or `worst`; overall when absent."""
    drop_at_most: float | None = Field(None, ge=0.0)
    """quality: largest loss against `over` (default: the dense arm): a share (0.01 is one point), or in the unit of an error."""
    at_least: float | Literal["all"] | None = None
    """quality: least value; rungs: number of layers, or `all` masked layers."""
    rung: Literal["masked", "frozen", "exported", "eligible", "timed", "selected"] | None = None
    """rungs: which rung."""
    layers: list[str] = Field(default_factory=list)
    """rungs, stability: patterns of layers that must be on it."""
    builds: PositiveInt | None = None
    """stability: selected in at least so many of the arm's builds; all when absent."""
    size: str | None = None
    """size: which figure: `file`, `archive`, `packed`."""


class Gate(Section):
    """Budgets."""

    alpha: float = Field(0.05, gt=0, lt=0.5)
    """Error rate of each rule."""
    rules: list[Rule] = Field(default_factory=list)
    """Budgets; pass needs all of them."""


class Recipe(Section):
    """A recipe: one model, from training to a release decision."""

    name: Name
    """Names the folders of its outputs."""
    description: str = ""
    """What it is for."""
    seed: int = Field(0, ge=0)
    """Seed of initialisation, data order, masks and sampling."""
    model: Model
    """The model."""
    data: Data
    """The samples."""
    train: Train = Field(default_factory=Train)
    """Stage 1."""
    freeze: Freeze = Field(default_factory=Freeze)
    """Stage 2."""
    export: Export = Field(default_factory=Export)
    """Stage 3."""
    build: Build = Field(default_factory=Build)
    """Stage 4."""
    measure: Measure = Field(default_factory=Measure)
    """Stage 6."""
    gate: Gate = Field(default_factory=Gate)
    """Stage 7."""
