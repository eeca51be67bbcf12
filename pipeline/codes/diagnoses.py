"""What an observation over a run's records establishes, and the next check (5xx); the gravest first.

In `next`, words in braces are those of `pipeline.commands.names`, such as `{run}` and `{recipe}`. docs/troubleshooting.md is made
from this table.
"""

from __future__ import annotations

from pipeline.codes.model import Code, Level

_VERBOSE = "trtexec --verbose --profilingVerbosity=detailed --exportLayerInfo=layers.json"

DIAGNOSES: tuple[Code, ...] = (
    Code(
        id="SG501",
        title="Masked weights are not zero in the frozen checkpoint",
        text="The pattern was lost between training and freezing: an optimizer step, a weight average or a load wrote past the masks.",
        next="train again from the named layers' masks, or let freeze mask again: sparsegate run {recipe} --set freeze.on_regrowth=remask",
    ),
    Code(
        id="SG502",
        title="An artifact gives other outputs than the model it was made from",
        text="What would be deployed is not what was evaluated: accuracy figures of the model before it do not carry over.",
        next="compare the two at the named batch and arm, then export again: sparsegate run {recipe} --force export",
    ),
    Code(
        id="SG503",
        title="The twin, built without the sparsity flag, runs a sparse kernel",
        text="The twin is no control for the flag: sparse against twin compares two sparse engines.",
        next="look at the twin's build options and log: sparsegate tactics {folder}",
    ),
    Code(
        id="SG504",
        title="Sources contradict each other about the same layers",
        text="A list, a count and a kernel name cannot all be right; the layers stand as disputed until a kernel name decides.",
        level=Level.SEEN,
        source="public log of TensorRT 10.3 on Orin: the Chose count stays 0 while its list grows",
        next=f"record the kernels' names, which decide: {_VERBOSE}",
    ),
    Code(
        id="SG505",
        title="The times do not come from engines that ran here",
        text="Replayed or simulated times prove neither that a layer nor that the engine is faster.",
        next="measure on the device: sparsegate run {recipe} --force measure",
    ),
    Code(
        id="SG506",
        title="The control, two copies of the same engine, shows a difference",
        text="The conditions were not equal for all arms: no difference of that size or below can be believed.",
        next="free the device of other work, lock its clocks, and measure again: sparsegate run {recipe} --force measure",
    ),
    Code(
        id="SG507",
        title="The average holds while a slice degrades",
        text="The loss is concentrated: the overall figure hides it, and more samples will not make it go away.",
        next="put a budget on the slice (quality rule with slice: worst), or keep the layers it needs dense: train.masks.exclude",
    ),
    Code(
        id="SG508",
        title="Many zeros, but not 2:4 along the reduction axis",
        text=(
            "Unstructured zeros, or 2:4 along another axis, give no sparse tactic: TensorRT looks at groups of four along the "
            "reduction axis."
        ),
        level=Level.DOCUMENTED,
        source="TensorRT Developer Guide 8.x, Structured Sparsity",
        next=(
            "see axis and violations per layer: sparsegate check {onnx}; prune a probe along the right axis: "
            "sparsegate prune MODEL.onnx -o PROBE.onnx"
        ),
    ),
    Code(
        id="SG509",
        title="The pattern holds, but the device, the type or the shape is not supported",
        text="2:4 weights are necessary, not sufficient: a rule on the operator, its type, its shape or the GPU keeps the layer dense.",
        level=Level.DOCUMENTED,
        source="TensorRT Developer Guide 8.x, Structured Sparsity; support matrix",
        next="see which rule, for which target: sparsegate check {onnx} {target}",
    ),
    Code(
        id="SG510",
        title="The build log's level hides the lines that would tell",
        text=(
            "Absent lines are no evidence of absence: eligible and selected layers are printed at INFO, timed tactics and kernel "
            "names at VERBOSE."
        ),
        level=Level.SEEN,
        next=f"build again with all lines: {_VERBOSE}",
    ),
    Code(
        id="SG511",
        title="Eligible, but a dense tactic was selected",
        text=(
            "TensorRT chooses by measured time, for the engine as a whole: here no sparse tactic was the faster choice, or none was timed."
        ),
        level=Level.MAINTAINER,
        source="NVIDIA/TensorRT 2169",
        next="see both times and the reason for a layer: sparsegate explain {run} LAYER",
    ),
    Code(
        id="SG512",
        title="A quantised layer is eligible, but a dense tactic was selected",
        text="Sparse INT8 GEMMs need an INT8 output: without a quantizer behind the layer, a Q/DQ epilogue keeps it dense.",
        versions=">=8.6",
        level=Level.SAID,
        source="Model-Optimizer PR 1664; NVIDIA/TensorRT 4694",
        next="put a quantizer behind the layer's output, export and build again: sparsegate run {recipe} --from export",
    ),
    Code(
        id="SG513",
        title="Layers with few channels stayed dense",
        text=(
            "Sparse kernels win where input and output channels are about 256 or more (a 3x3 kernel counts nine times): this is no defect."
        ),
        level=Level.MAINTAINER,
        source="NVIDIA/TensorRT 3849, 4065",
        next="give these layers their weights back, sparsity costs accuracy and gains nothing there: train.masks.exclude in {recipe_file}",
    ),
    Code(
        id="SG514",
        title="The timing cache hides which tactics were timed",
        text=(
            "A layer equal to an earlier one, or found in a cache file, is not timed again: no candidate lines does not mean no candidates."
        ),
        level=Level.DOCUMENTED,
        source="NVIDIA/TensorRT 4423",
        next="build once without a cache: trtexec --timingCacheMode=disable --verbose",
    ),
    Code(
        id="SG515",
        title="Sparse and twin differ in more than the flag",
        text=(
            "Fusions or regions changed with the flag: sparse against twin is the effect of the flag on the graph, not of sparse "
            "kernels alone."
        ),
        level=Level.SAID,
        source="PaddlePaddle/Paddle PR 53562: the flag switched Myelin off in 8.x",
        next="see what fused otherwise: sparsegate diff TWIN_LOG SPARSE_LOG",
    ),
    Code(
        id="SG516",
        title="The shapes that were measured are not the ones that were tuned",
        text="Tactics are chosen for the profile's opt shape: at another shape the selection may be wrong, and sparse can lose there.",
        level=Level.SEEN,
        source="public results on Orin, TensorRT 10.3",
        next="build a profile for the shape that counts: sparsegate run {recipe} --set export.batch.opt=N",
    ),
    Code(
        id="SG517",
        title="Layers are faster, the engine or the request is not",
        text="The gain is too small a share of the whole, or is paid back elsewhere: reformats, other layers, transfers, host.",
        next="see the share that can gain at most: sparsegate check {onnx} --estimate",
    ),
    Code(
        id="SG518",
        title="The gain is smaller than the spread between builds",
        text="Two builds of the same input differ by as much: the gain of this engine may be luck of its build.",
        level=Level.SEEN,
        source="NVIDIA/TensorRT 4730, 4798",
        next="judge the recipe, not one engine, with at least 3 builds per arm: sparsegate run {recipe} --set build.repeats=5",
    ),
    Code(
        id="SG519",
        title="Half of the weights are zero, and the file is no smaller",
        text=(
            "A zero takes as much room as any other value: 2:4 saves memory only where a kernel holds packed weights, a file only "
            "when compressed."
        ),
        level=Level.SEEN,
        source="NVIDIA/TensorRT 4030",
        next="see which size answers which question in the size table: sparsegate report {run} --format md",
    ),
    Code(
        id="SG520",
        title="The backend has no sparse kernels",
        text="Rungs 4 to 6 cannot be judged here: times say what pruning costs on this backend, nothing about sparse tactics.",
        next="build where sparse tactics exist: sparsegate run {recipe} --set build.backend=trtexec",
    ),
)
