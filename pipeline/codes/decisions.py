"""Why a layer is masked or stays dense in training (3xx)."""

from __future__ import annotations

from pipeline.codes.model import Code, Level

_GUIDE = "TensorRT Developer Guide 8.x, Structured Sparsity"

DECISIONS: tuple[Code, ...] = (
    Code(
        id="SG301",
        title="masked 2:4",
        text="Two of every four weights along the input channels (for a convolution at each kernel position) are masked.",
        level=Level.DOCUMENTED,
        source=_GUIDE,
    ),
    Code(
        id="SG302",
        title="excluded by pattern",
        text="The recipe's train.masks.exclude names this layer: it stays dense.",
        next="remove the pattern from train.masks.exclude to mask the layer",
    ),
    Code(
        id="SG303",
        title="not included",
        text="No pattern of the recipe's train.masks.include matches this layer: it stays dense.",
        next="add a pattern to train.masks.include to mask the layer",
    ),
    Code(
        id="SG304",
        title="kind not supported",
        text="The parameter belongs to a kind of layer for which nothing is known of sparse tactics, or which is no multiplication.",
        level=Level.INFERRED,
        next="write it as Linear or Conv, if it is one",
    ),
    Code(
        id="SG305",
        title="weight is computed",
        text="A parametrization computes the weight from other parameters, so zeros in them prove nothing about the weight.",
        next="torch.nn.utils.parametrize.remove_parametrizations before masking",
    ),
    Code(
        id="SG306",
        title="reduction dimension no multiple of 4",
        text="The number of input channels (per group) is no multiple of 4, so it cannot be cut into groups of four.",
        level=Level.DOCUMENTED,
        source=_GUIDE,
    ),
    Code(
        id="SG307",
        title="depthwise convolution",
        text="A depthwise convolution reduces over its kernel alone: there are no input channels to drop.",
        level=Level.MAINTAINER,
        versions="8.x",
        source="NVIDIA/TensorRT 4054",
    ),
    Code(
        id="SG308",
        title="grouped convolution",
        text="TensorRT does not consider grouped convolutions for sparse tactics: masking would cost accuracy for nothing.",
        level=Level.MAINTAINER,
        versions="8.x",
        source="NVIDIA/TensorRT 4054",
    ),
    Code(
        id="SG309",
        title="few channels",
        text="The layer has fewer than two groups of input channels: no time to win, and early layers cost the most accuracy.",
        level=Level.SEEN,
        source="NVIDIA/TensorRT 3849, 4065: gains seen from about 256 channels",
    ),
    Code(
        id="SG310",
        title="shared with another kind of layer",
        text="The weight is also read by a layer of another kind (such as a tied embedding), which a mask would change too.",
        next="untie the weight to mask this layer alone",
    ),
    Code(
        id="SG311",
        title="no sparse tactic was selected",
        text="In every build of the named run TensorRT chose a dense tactic for this layer: it gets its dense weights back.",
        next="rebuild: the next run proves the rest",
    ),
    Code(
        id="SG312",
        title="a sibling stays dense",
        text="TensorRT fuses layers that share an input; a fused layer is likely eligible only when all its parts are 2:4.",
        level=Level.INFERRED,
        versions="10.3",
        source="public build log on Orin",
        next="mask all the layers of the set, or none",
    ),
    Code(
        id="SG313",
        title="calibration does not reach the layer",
        text="No calibration batch is multiplied by this weight, so the criterion has no data: the layer is masked by magnitude.",
        next="give calibration batches that run every branch of the model",
    ),
    Code(
        id="SG321",
        title="channels permuted",
        text="The layer's input channels were reordered, with the output channels upstream: 2:4 now keeps more of its weight.",
        source="Pool and Yu, Channel Permutations for N:M Sparsity, NeurIPS 2021",
    ),
    Code(
        id="SG322",
        title="no better order found",
        text="The channels could be reordered, but the search found no order that keeps more within its time.",
        next="give the search more seconds",
    ),
    Code(
        id="SG323",
        title="input order fixed",
        text="The layer's input channels come in an order that cannot be changed without changing the model's function.",
    ),
    Code(
        id="SG324",
        title="not reached by the example",
        text="The example input does not run this layer, so nothing is known of its channels.",
    ),
    Code(
        id="SG325",
        title="groups of four straddle channel sets",
        text="Groups of four input channels mix channels that may not trade places, or lie differently in layers that share them.",
    ),
    Code(
        id="SG326",
        title="fewer than two groups to exchange",
        text="Channels that may trade places fill fewer than two groups of four.",
    ),
    Code(
        id="SG327",
        title="the graph cannot be captured",
        text="torch.export cannot capture the model, so its channels cannot be followed; all layers keep their order.",
        next="make the forward pass exportable",
    ),
    Code(
        id="SG328",
        title="the check of the function failed",
        text="With channels moved, the model's outputs differed from before; the order was put back.",
        next="report the model's operators: a rule of ours is wrong",
    ),
)
