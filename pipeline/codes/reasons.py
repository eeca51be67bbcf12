"""Why a layer is or is not selected, and how sources can contradict each other."""

from __future__ import annotations

from pipeline.codes.model import Code, Level

_TRT_LOG = "TensorRT's verbose build log"

REASONS: tuple[Code, ...] = (
    Code(
        id="dense-faster",
        title="dense was faster",
        text="Sparse and dense tactics were timed in the same format combination, and the fastest dense one won.",
        level=Level.DOCUMENTED,
        source="TensorRT Developer Guide, Structured Sparsity: the builder uses a sparse tactic only where it is faster",
        next="larger channel counts or batch favour the sparse kernel; compare best.sparse and best.dense over shapes",
    ),
    Code(
        id="other-precision-won",
        title="another precision won",
        text="The fastest sparse tactic belongs to another precision than the final tactic.",
        level=Level.INFERRED,
        source=_TRT_LOG,
        next="build with that one precision, or strongly typed, and compare",
    ),
    Code(
        id="format-or-reformat-cost",
        title="another format won",
        text="The sparse tactic was the faster one in its own format combination, but the engine uses another combination: "
        "TensorRT minimises the time of the whole engine with its reformats.",
        level=Level.DOCUMENTED,
        source="TensorRT Developer Guide, I/O formats and reformatting",
        next="look at the reformat layers around it; neighbours in the same format remove them",
    ),
    Code(
        id="no-sparse-candidate",
        title="no sparse tactic was timed",
        text="The layer was eligible and timed, but none of its timed tactics is sparse.",
        level=Level.INFERRED,
        source=_TRT_LOG,
        next="check shapes, groups and precision against the eligibility rules: sparsegate check MODEL.onnx",
    ),
    Code(
        id="repeat-of",
        title="same as an earlier layer",
        text="The layer equals one that was timed earlier in the build: its result comes from the local timing cache.",
        level=Level.SEEN,
        source=_TRT_LOG,
        next="read the earlier layer's times, or build once without timing cache (--noBuilderCache)",
    ),
    Code(
        id="timed-from-cache",
        title="times come from a cache",
        text="A timing cache was loaded: the layer was not timed in this build, so the log holds no candidates.",
        level=Level.SEEN,
        source=_TRT_LOG,
        next="build once with an empty timing cache and --verbose",
    ),
    Code(
        id="tactics-skipped",
        title="tactics were skipped",
        text="Tactics of the layer were skipped for lack of memory or after an exception, and TensorRT still reports success.",
        level=Level.SEEN,
        source=_TRT_LOG,
        next="build with more memory free or a larger workspace (--memPoolSize=workspace:...)",
    ),
    Code(
        id="names-unknown",
        title="kernel names are not known",
        text="The log or engine information names no kernel for the tactic, so that its class cannot be told.",
        level=Level.SEEN,
        source="TensorRT 8.0 to 8.2 print tactics without names; Myelin prints none of its inner kernels",
        next="export layer info with --profilingVerbosity=detailed --exportLayerInfo=FILE and read it together with the log",
    ),
    Code(
        id="sources-disagree",
        title="sources disagree",
        text="Two sources say different things of the layer.",
        next="see the conflicts; layer info with --profilingVerbosity=detailed decides",
    ),
    Code(
        id="fp32-only-build",
        title="FP32-only build",
        text="Without a lower precision TensorRT finds no layer eligible: sparse Tensor Cores have no FP32 kernels.",
        versions="8.x to 10.x",
        level=Level.SEEN,
        source="TensorRT 8.4.2 build logs: both lists empty",
        next="build with --fp16, or export the model in half precision for a strongly typed build",
    ),
    Code(
        id="myelin-region",
        title="inside a Myelin region",
        text="The layer lies in a region that Myelin compiles as a whole: its inner kernels are not timed in the log.",
        level=Level.SEEN,
        source=_TRT_LOG,
        next="layer info of TensorRT 10 names the region's kernels; a profile shows its time",
    ),
    Code(
        id="dla",
        title="runs on DLA",
        text="The layer runs on the deep learning accelerator, whose own compiler chooses; GPU tactics do not apply.",
        level=Level.SEEN,
        source=_TRT_LOG,
        next="DLA has its own structured sparsity: see its documentation",
    ),
    Code(
        id="plugin",
        title="a plugin",
        text="The layer is a plugin: TensorRT has no tactic of its own for it.",
        level=Level.DOCUMENTED,
        source="TensorRT Developer Guide, plugins",
        next="replace the plugin by TensorRT's own operator where there is one",
    ),
)

CONFLICTS: tuple[Code, ...] = (
    Code(
        id="count-and-list-disagree",
        title="number and list differ",
        text="The summary's number contradicts its list: it is not known which is right.",
        versions=">=10.0",
        level=Level.SEEN,
        source="TensorRT 10.3.0 build logs",
        next="export layer info with --profilingVerbosity=detailed: the kernel's name decides",
    ),
    Code(
        id="list-and-tactic-disagree",
        title="list and kernel differ",
        text="The summary's list contradicts the kernel that the engine runs: the kernel's name decides.",
        level=Level.OWN,
    ),
    Code(
        id="passes-disagree",
        title="passes differ",
        text="Two passes of the same build list overlapping but different layers.",
        versions=">=10.0",
        level=Level.SAID,
        source="reports by users of 10.14 and 11.1",
        next="export layer info with --profilingVerbosity=detailed: the kernel's name decides",
    ),
    Code(
        id="chosen-but-not-eligible",
        title="chosen, not eligible",
        text="A layer is listed as chosen that the complete list of eligible layers omits.",
        level=Level.INFERRED,
        next="look whether lines of the log are missing",
    ),
)
