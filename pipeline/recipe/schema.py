"""The recipe's words: pydantic models with a description for every key (docs/recipes.md is made from them)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from pipeline.recipe.marks import BesideRecipe, OneOf

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
ENVIRONMENT = r"^[A-Za-z_][A-Za-z0-9_]*$"
CALLABLE = r"^[^:]+:[A-Za-z_][A-Za-z0-9_.]*$"
Name = Annotated[str, Field(pattern=NAME, max_length=64)]
EnvironmentName = Annotated[str, Field(pattern=ENVIRONMENT)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
File = Annotated[str, Field(min_length=1), BesideRecipe()]
"""A path; a relative one starts at the recipe's folder."""
CallableName = Annotated[str, Field(pattern=CALLABLE), BesideRecipe()]
"""`path.py:name` (from the recipe's folder) or `package.module:name`."""


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, values keep the type that YAML gives them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True, allow_inf_nan=False)


class Model(Section):
    """Where the model comes from: exactly one of `python`, `timm`, `torchvision`, `onnx`."""

    model_config = ConfigDict(json_schema_extra=OneOf("python", "timm", "torchvision", "onnx").schema)

    python: CallableName | None = None
    """`path.py:callable` beside the recipe, or `package.module:callable`; called with `args`, it returns a torch.nn.Module."""
    timm: str | None = None
    """Name of a timm model, such as `resnet50.a1_in1k`; its own configuration says how images are prepared."""
    torchvision: str | None = None
    """Name of a torchvision classification model, such as `vit_b_16`."""
    onnx: File | None = None
    """An ONNX file: the chain is entered at `export`, rungs 1 and 2 are not applicable."""
    prune: bool = False
    """onnx: make the sparse arm by magnitude pruning on the deployed axes; the file itself is then the dense arm."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the callable or of the model's constructor."""
    checkpoint: File | None = None
    """Trained weights, which replace the dense training: safetensors, or a torch file that loads with weights_only=True."""
    inputs: list[Name] = Field(default_factory=lambda: ["x"], min_length=1)
    """Names of the model's inputs, in the order of its forward()."""
    heads: list[Name] = Field(default_factory=lambda: ["label"], min_length=1)
    """Names of the model's outputs (its task heads), in the order in which forward() returns them."""
    files: list[File] = Field(default_factory=list)
    """Other files that the callable reads: a change in one trains anew."""

    @model_validator(mode="after")
    def _one_kind(self) -> Model:
        OneOf("python", "timm", "torchvision", "onnx").check(self)
        if self.prune and self.onnx is None:
            raise ValueError("prune is for an onnx model; a torch model gets its 2:4 masks in training")
        return self


Metric = Literal["accuracy", "top5", "binary", "mse", "mae"]


def _one_head() -> dict[str, Metric]:
    return {"label": "accuracy"}


class Slices(Section):
    """What parts of the samples are judged apart: by class always, and by these."""

    csv: File | None = None
    """A CSV file with a row per sample: `split`, `sample` (number, or path of the image in its split), and a column per axis."""
    columns: list[Name] = Field(default_factory=list)
    """csv: the columns to slice by; every column but `split` and `sample` when empty."""
    python: CallableName | None = None
    """`path.py:callable`; called with the split's name and the split, it returns a mapping of axis to one label per sample."""


class Data(Section):
    """Where the samples come from: exactly one of `digits`, `python`, `imagefolder`, `npz`."""

    model_config = ConfigDict(json_schema_extra=OneOf("digits", "python", "imagefolder", "npz").schema)

    digits: bool = False
    """scikit-learn's handwritten digits: 1,797 images of 8x8, inside that package; nothing is downloaded."""
    python: CallableName | None = None
    """`path.py:callable`; called with `args`, it returns train, select and test: splits, or pairs of arrays (inputs, targets)."""
    imagefolder: File | None = None
    """A folder with train/, test/ (or val/) and select/ (else it is taken from train/), each with a subfolder of images per class."""
    npz: File | None = None
    """A .npz file with train_x, train_label, select_x, select_label, test_x, test_label: `x` is the input's name, `label` the head's."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the callable or of the reader (docs/recipes.md lists those of each reader)."""
    heads: dict[Name, Metric] = Field(default_factory=_one_head, min_length=1)
    """Metric of each task head."""
    slices: Slices = Field(default_factory=Slices)
    """What else than the class the samples are sliced by."""
    files: list[File] = Field(default_factory=list)
    """Other files that the callable reads: a change in one trains anew."""

    @model_validator(mode="after")
    def _one_kind(self) -> Data:
        OneOf("digits", "python", "imagefolder", "npz").check(self)
        return self


class Phase(Section):
    """One training phase."""

    epochs: int = Field(10, ge=0)
    """Passes over the training split; 0 skips the phase."""
    batch_size: PositiveInt = 64
    """Samples per step; the batches of an epoch differ by at most one sample in size."""
    lr: Positive = 0.01
    """Peak learning rate."""
    optimizer: Literal["sgd", "adamw"] = "sgd"
    """Optimizer."""
    momentum: Share = 0.9
    """sgd: momentum (Nesterov's)."""
    weight_decay: float = Field(1e-4, ge=0)
    """Weight decay of weights with two or more axes; masked weights stay zero whatever it is."""
    schedule: Literal["constant", "cosine"] = "cosine"
    """Learning rate over the phase."""
    warmup_epochs: float = Field(0.0, ge=0)
    """Epochs in which the learning rate rises linearly to its peak."""
    clip_norm: Positive | None = None
    """Gradients are scaled down to this norm when theirs is larger."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Arithmetic of the training step: bf16 and fp16 are mixed precision, weights stay fp32."""
    keep: Literal["last", "best"] = "last"
    """Which epoch's weights go on: the last, or the best on the select split."""


class Masks(Section):
    """Which weights become 2:4, and by which criterion."""

    criterion: Literal["magnitude", "wanda", "sparsegpt", "sparsegpt-joint", "first-order"] = "magnitude"
    """How the two weights to keep in a group of four are chosen (docs/methods.md compares them); all but magnitude look at
    training samples, and the two sparsegpt update the weights that are kept."""
    include: list[str] = Field(default_factory=lambda: ["*"])
    """Patterns over module names: candidates."""
    exclude: list[str] = Field(default_factory=list)
    """Patterns over module names: stay dense."""
    proposer: Literal["modelopt", "sparsegate"] = "modelopt"
    """magnitude: nvidia-modelopt where it applies, or sparsegate for all layers (as much magnitude kept, faster)."""
    calibration_samples: PositiveInt = 512
    """Training samples, spread over the split, that criteria look at."""
    siblings: Literal["together", "apart"] = "together"
    """Layers that share an input and that TensorRT fuses side by side: masked all or none, or each for itself."""
    permute_seconds: float = Field(0.0, ge=0)
    """Time to search channel orders before masking, the model's function unchanged; 0 leaves them as they are."""
    only_where_selected: str | None = None
    """An earlier run's folder (relative to the recipe or the current folder, or `recipe/run-id`): layers in which none of its
    builds selected a sparse tactic stay dense."""
    stable_builds: PositiveInt = 3
    """only_where_selected: least number of builds of the sparse arm in that run."""


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

    @model_validator(mode="after")
    def _ordered(self) -> BatchRange:
        if not self.min <= self.opt <= self.max:
            raise ValueError(f"min <= opt <= max is needed, not {self.min}, {self.opt}, {self.max}")
        return self


class Export(Section):
    """torch -> ONNX."""

    precision: Literal["fp32", "fp16", "bf16"] = "fp32"
    """Type of weights and activations in the file."""
    opset: int = Field(20, ge=17, le=26)
    """ONNX opset."""
    batch: BatchRange = Field(default_factory=BatchRange)
    """The dynamic batch axis."""


class InputShapes(Section):
    """Shapes of one input in one optimization profile."""

    min: list[PositiveInt]
    """Smallest shape."""
    opt: list[PositiveInt]
    """The shape that TensorRT tunes for."""
    max: list[PositiveInt]
    """Largest shape."""


RELEASE_BUILDS = 3
TUNED = ("tensorrt", "trtexec")
"""Backends that time tactics when they build."""


class Build(Section):
    """ONNX -> engines. What a backend or a TensorRT version cannot follow is refused with the reason."""

    backend: Literal["onnxruntime", "tensorrt", "trtexec", "tensorrt-rtx"] = "onnxruntime"
    """What builds and runs the engines."""
    repeats: PositiveInt = 1
    """Builds per arm. A claim about the recipe needs 3, which is the default of `preset: release` on tensorrt and trtexec."""
    threads: PositiveInt = 1
    """CPU threads of the onnxruntime backend."""
    profiles: list[dict[str, InputShapes]] = Field(default_factory=list)
    """Optimization profiles: input name -> min, opt, max; one profile from `export.batch` when empty."""
    preset: Literal["release", "diagnose"] = "release"
    """diagnose: no timing cache, more timings per tactic, verbose: the log then says why dense won."""
    precision: Literal["file", "fp16", "bf16"] = "file"
    """file: the exported type; fp16, bf16: let TensorRT before 11 run an FP32 file in that type too (weak typing)."""
    typing: Literal["auto", "weak", "strong"] = "auto"
    """auto: weak before TensorRT 11 (a flag allows the file's type), strong from 11; strong is optional in 10."""
    tf32: bool = True
    """TF32 for FP32 layers; set in every backend, since their own defaults differ."""
    strict_nans: bool = False
    """Sparse tactics only where NaN propagation stays as it is (TensorRT 10.6 and later; not in trtexec)."""
    optimization_level: int = Field(3, ge=0, le=5)
    """Builder optimization level; higher tries more tactics."""
    avg_timing: PositiveInt = 8
    """Timings of which a tactic's time is the mean."""
    workspace_mib: PositiveInt | None = None
    """Limit of the workspace pool in MiB; TensorRT's own when absent. Too little leaves tactics out."""
    max_tactics: PositiveInt | None = None
    """Most tactics to time per layer (TensorRT 10.4 and later)."""
    tactic_sources: list[str] | None = None
    """The only tactic sources to use, by TensorRT's names, such as JIT_CONVOLUTIONS."""
    preview_features: list[str] | None = None
    """The only preview features to turn on, by TensorRT's names."""
    verbose: bool = True
    """Log every timed tactic: without it the timed rung stays unknown."""
    timing_cache: Literal["off", "record", "replay"] = "record"
    """record: keep the tactics' times beside the engine; replay: take them from an earlier build, and only read."""
    timing_cache_from: File | None = None
    """Folder of an earlier build's engines: where its caches are read."""
    timeout_s: PositiveInt = 3600
    """Longest time for one build, or for one trtexec process."""
    device: int = Field(0, ge=0)
    """Number of the GPU."""
    transfers: bool = False
    """Whether latency includes copies between host and GPU."""
    cuda_graph: bool = True
    """Whether inferences are launched as a CUDA graph."""
    spin_wait: bool = True
    """Whether the host spins while it waits for the GPU."""
    compute_capabilities: list[Annotated[str, Field(pattern=r"^\d+\.\d$")]] = Field(default_factory=list)
    """tensorrt-rtx: what to build for, such as '8.6'; all when empty."""
    command: list[str] = Field(default_factory=list)
    """trtexec: what reaches the target, as a list: [ssh, orin], [docker, exec, -i, trt]; empty for this machine."""
    trtexec: str = "trtexec"
    """trtexec: the executable on the target."""
    remote_folder: str = Field("/tmp/sparsegate", pattern=r"^/[^\n]*$")
    """trtexec: a folder on the target to work in; ignored when `command` is empty."""
    target_python: str | None = None
    """trtexec: a Python on the target with tensorrt and numpy, for quality; absent: one trtexec process per batch."""

    @model_validator(mode="before")
    @classmethod
    def _release(cls, given: Any) -> Any:
        """Two builds of one network differ where tactics are timed: a release says by how much."""
        if not isinstance(given, dict) or "repeats" in given or given.get("preset", "release") != "release":
            return given
        return {**given, "repeats": RELEASE_BUILDS} if given.get("backend") in TUNED else given


class Measure(Section):
    """Latency, layer times, engine quality, sizes."""

    batches: list[PositiveInt] = Field(default_factory=list)
    """Batch sizes to time; the opt batch when empty."""
    seconds: Positive = 10.0
    """Planned sampling time per batch size, after the warm-up."""
    rounds: int = Field(20, ge=3)
    """Least number of rounds; in each round every arm runs one block, in random order."""
    block_ms: Positive = 20.0
    """Length of a block, before a round's quantile of it is taken."""
    warmup_seconds: float = Field(10.0, ge=0)
    """Longest warm-up; an arm that has not settled by then makes its latency rules inconclusive."""
    stop_early: bool = True
    """Stop when every latency rule is decided; intervals stay valid."""
    energy_seconds: float | None = Field(None, ge=0)
    """Planned time per batch size for energy per inference, where the device counts it; at least 6 windows per arm; 0: none;
    absent: 20 where the gate has an energy rule, else none."""
    layer_passes: int = Field(7, ge=0)
    """Profiling passes for layer times."""
    parity: bool = True
    """Compare every engine's outputs with ONNX Runtime's and its twin's, at min, opt and max of each optimization profile."""


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
    """quality: least value; rungs: number of layers (1 or more; of the engine for eligible, timed and selected), or `all` of the model's
    (every masked layer; for an ONNX model every layer that could be 2:4)."""
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

    extends: File | None = None
    """Another recipe whose keys hold where this one says nothing; lists and kinds of model or data are replaced whole."""
    environment: dict[EnvironmentName, str | None] = Field(default_factory=dict)
    """The environment variables that values may name as `${NAME}`, each with its default (null: it must be set)."""
    name: Name
    """Names the folders of its outputs."""
    description: str = ""
    """What it is for."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of initialisation, data order, masks and sampling."""
    model: Model
    """The model."""
    data: Data
    """The samples."""
    train: Train = Field(default_factory=Train)
    """Stage 1, train."""
    freeze: Freeze = Field(default_factory=Freeze)
    """Stage 2, freeze."""
    export: Export = Field(default_factory=Export)
    """Stage 3, export."""
    build: Build = Field(default_factory=Build)
    """Stage 4, build."""
    measure: Measure = Field(default_factory=Measure)
    """Stage 6, measure."""
    gate: Gate = Field(default_factory=Gate)
    """Stage 7, gate."""
    sweep: dict[Annotated[str, Field(pattern=r"^[a-z_]+(\.[a-z0-9_]+)+$")], Annotated[list[Any], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """Settings to run at every combination of, such as `export.batch.opt: [1, 8, 32]`; ends in a table of selected layers and gain."""
