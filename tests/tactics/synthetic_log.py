"""Writes TensorRT build logs in the forms of a given version, and the truth about them. Synthetic: never evidence about TensorRT."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

TENSOR = "Location: Device, Dimensions: [1,256,28,28], Format/Datatype: Half"
STAMP = "02/03/2026-04:05:06"
WORDS = {"I": "INFO", "V": "VERBOSE", "W": "WARNING", "E": "ERROR"}
LEVELS = {**WORDS, "V": "DEBUG"}
PREFIXES = {
    "trtexec": lambda severity, own: f"[{STAMP}] [{severity}] " + ("" if own else "[TRT] "),
    "python": lambda severity, own: f"[{STAMP}] [TRT] [{severity}] ",
    "python-old": lambda severity, own: f"[TensorRT] {WORDS[severity]}: ",
    "polygraphy": lambda severity, own: {"I": "[V] ", "V": "[X] ", "W": "[W] ", "E": "[E] "}[severity],
    "plain": lambda severity, own: f"[TRT] [{severity}] ",
    "jetson": lambda severity, own: "[TRT]    ",
    "onnxruntime": lambda severity, own: (
        "2026-02-03 04:05:06.123456789 [I:onnxruntime:Default, tensorrt_execution_provider.h:83 log] [2026-02-03 03:05:06 "
        f"{WORDS[severity]:>7}] "
    ),
    "triton": lambda severity, own: f"{severity if severity in 'WE' else 'I'}0203 04:05:06.789012 421 logging.cc:49] ",
    "ros": lambda severity, own: f"[detector_node-1] [{severity}] [TRT] ",
    "torch-tensorrt": lambda severity, own: f"{LEVELS[severity]}: [Torch-TensorRT TorchScript Conversion Context] - ",
    "deepstream": lambda severity, own: f"{LEVELS[severity]}: [TRT]: ",
    "python-logging": lambda severity, own: f"    {LEVELS[severity]}:some.python.module:",
    "bare": lambda severity, own: "",
}
OLD_VERSIONS = ("7.2", "8.0")
"""Tactics' ids are decimal; 8.0 to 8.2 name no kernel."""
VERSIONS = ("8.4", "8.5", "8.6", "9.1", "10.3", "10.14", "11.1")
FUSED = ("", " + {base}.relu", " + PWN(PWN({base}.act/Sigmoid), PWN({base}.act/Mul))", " + {base}.add + {base}.relu")


@dataclass
class Layer:
    name: str
    eligible: bool
    combinations: list[tuple[str, list[tuple[str, str, float]]]]
    final: int = 0
    """The combination that the engine uses: any of them, since reformats decide too."""

    @property
    def tactics(self):
        return self.combinations[self.final][1]

    @property
    def winner(self):
        return min(self.tactics, key=lambda tactic: tactic[2])

    @property
    def selected(self):
        return is_sparse(self.winner[0])

    def best(self, sparse):
        return min((ms for name, _, ms in self.tactics if is_sparse(name) is sparse), default=None)


@dataclass
class SyntheticBuild:
    version: str
    prefix: str
    layers: list[Layer]
    lines: list[str] = field(default_factory=list)
    summary: set[int] = field(default_factory=set)
    """Indices of the lines of the sparsity summary."""

    @property
    def eligible(self):
        return [layer.name for layer in self.layers if layer.eligible]

    @property
    def selected(self):
        return [layer.name for layer in self.layers if layer.selected]

    @property
    def major(self):
        return int(self.version.split(".")[0])


def is_sparse(kernel):
    return "sparse" in kernel


def kernel(rng, sparse):
    tile = rng.choice(["128x64x64", "64x64x64", "256x128x32", "128x128x64"])
    tail = f"_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize{tile}_stage{rng.randint(3, 6)}_warpsize{rng.choice(['2x2x1', '4x1x1'])}_g1_"
    if not sparse:
        return "sm80_xmma_fprop_implicit_gemm" + tail + "tensor16x8x16_t1r3s3"
    family, instruction = rng.choice(
        [("sm80_xmma_fprop_sparse_conv", "sptensor16x8x32"), ("sm90_xmma_sparse_fprop_implicit_gemm", "sptensor_hgmma64x128x32")]
    )
    return f"{family}{tail}{instruction}_t1r3s3"


def random_layers(rng, count):
    layers, ids = [], iter(rng.sample(range(1 << 40), 40 * count + 40))
    for i in range(count):
        base = f"stage{i // 4}/block{i % 4}"
        name = f"{base}/left/Conv || {base}/right/Conv" if rng.random() < 0.2 else f"{base}/Conv" + rng.choice(FUSED).format(base=base)
        eligible = rng.random() < 0.7
        combinations = []
        for k in range(rng.randint(1, 3)):
            tactics = [
                (kernel(rng, False), f"0x{next(ids) << 20:016x}", round(rng.uniform(0.02, 0.2), 6)) for _ in range(rng.randint(1, 4))
            ]
            if eligible:
                tactics += [
                    (kernel(rng, True), f"0x{next(ids) << 20:016x}", round(rng.uniform(0.02, 0.2), 6)) for _ in range(rng.randint(1, 2))
                ]
            rng.shuffle(tactics)
            combinations.append((f"Half({9216 + 16 * k},1:8,{288 + i},9) -> Half(9216,1:8,288,9)", tactics))
        layers.append(Layer(name, eligible, combinations, rng.randrange(len(combinations))))
    return layers


def write(rng, version, prefix, count, *, verbose=True, banner=None):
    """One build as physical lines without line feeds."""
    build = SyntheticBuild(version, prefix, random_layers(rng, count))
    major, minor = (int(part) for part in version.split("."))
    banner = prefix == "trtexec" if banner is None else banner
    digits = f"{major}{minor:02d}02" if major >= 10 else f"{major}{minor}02"

    def say(severity, text, own=False):
        build.lines.append(PREFIXES[prefix](severity, own) + text)

    if banner:
        build.lines.append(
            f"&&&& RUNNING TensorRT.trtexec [TensorRT v{digits}] # trtexec --onnx=net.onnx --fp16 --sparsity=enable --verbose"
        )
        say("I", "Sparsity: Enabled", own=True)
    if verbose:
        say("I", "Local timing cache in use. Profiling results in this builder pass will not be stored.")
        for layer in build.layers:
            _tables(say, layer, major, minor)
    _summary(build, say)
    if verbose:
        say("I" if major >= 10 else "V", "Engine generation completed in 31.2 seconds.")
        _dump(build, say)
    if version in OLD_VERSIONS:
        build.lines = [_HEXADECIMAL.sub(_signed, line) for line in build.lines]
    if banner:
        say("I", "Engine built in 31.4 sec.", own=True)
        build.lines.append(
            f"&&&& PASSED TensorRT.trtexec [TensorRT v{digits}] # trtexec --onnx=net.onnx --fp16 --sparsity=enable --verbose"
        )
    else:
        say("I", "Finished engine building in 12.100 seconds")
    return build


_HEXADECIMAL = re.compile("0x[0-9a-f]{16}")


def _signed(match):
    value = int(match.group(), 16)
    return str(value - (1 << 64) if value >> 63 else value)


def _tables(say, layer, major, minor):
    named = (major, minor) >= (8, 6)
    runner = "CaskConvolution" + ("[0x80000009]" if named else "")
    say("V", f"=============== Computing costs for {layer.name if major >= 10 else ''}")
    for format_, tactics in layer.combinations:
        fastest = min(tactics, key=lambda tactic: tactic[2])
        say("V", f"*************** Autotuning format combination: {format_} ***************")
        say("V", f"--------------- Timing Runner: {layer.name} ({runner})")
        for name, id_, ms in tactics:
            if named:
                say("V", f"Tactic Name: {name} Tactic: {id_} Time: {ms}")
            elif (major, minor) < (8, 4):
                if major == 7:
                    say("V", f"{layer.name} (scudnn) Set Tactic Name: {name}")
                say("V", f"Tactic: {id_} {'time' if major == 7 else 'Time:'} {ms}")
            else:
                say("V", f"{layer.name} Set Tactic Name: {name} Tactic: {id_}")
                say("V", f"Tactic: {id_} Time: {ms}")
        done = f"{layer.name} ({runner}) profiling completed in 0.41 seconds. " if named else ""
        say("V", f"{done}Fastest Tactic: {fastest[1]} Time: {fastest[2]}")
        if major >= 10:
            say("V", f"Skipping CaskFlattenConvolution: No valid tactics for {layer.name}")
        else:
            say("V", f"--------------- Timing Runner: {layer.name} (CaskFlattenConvolution)")
            say("V", "CaskFlattenConvolution has no valid tactics for this config, skipping")
        say("V", f">>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: {fastest[1]}")
    say("V", "*************** Autotuning Reformat: Half(9216,1:8,288,9) -> Half(9216,96,9,1) ***************")
    say("V", "--------------- Timing Runner: Optimizer Reformat(x -> <out>) (Reformat)")
    say("V", "Tactic: 0x00000000000003e8 Time: 0.0021")
    say("V", "Fastest Tactic: 0x00000000000003e8 Time: 0.0021")


def _summary(build, say):
    start = len(build.lines)
    if build.major >= 10:
        parts = lambda names: sum(name.count(" || ") + 1 for name in names)  # noqa: E731
        say("I", f"(Sparsity) Found {parts(build.eligible)} layer(s) eligible to use sparse tactics: " + ", ".join(build.eligible))
        say(
            "I",
            f"(Sparsity) Chose {parts(build.selected)} layer(s) using sparse tactics:" + "".join(f", {name}" for name in build.selected),
        )
    else:
        say("I", "(Sparsity) Layers eligible for sparse math: " + ", ".join(build.eligible))
        say("I", "(Sparsity) TRT inference plan picked sparse implementation for layers: " + ", ".join(build.selected))
    build.summary = set(range(start, len(build.lines)))


def _dump(build, say):
    if build.major >= 10:
        say("V", "Layers:")
        for layer in build.layers:
            build.lines.append(
                f"Name: {layer.name}, LayerType: CaskConvolution, Inputs: [ {{ Name: x, {TENSOR} }}], "
                f"Outputs: [ {{ Name: y, {TENSOR} }}], ParameterType: Convolution, Groups: 1, "
                f"HasSparseWeights: {int(layer.eligible)}, TacticName: {layer.winner[0]}, TacticValue: {layer.winner[1]}, StreamId: 0, "
                f"Metadata: [ONNX Layer: {layer.name.split(' ')[0]}]"
            )
    else:
        say("V", "Engine Layer Information:")
        for layer in build.layers:
            build.lines.append(
                f"Layer(CaskConvolution): {layer.name}, Tactic: {layer.winner[1]}, x[Half(1,256,28,28)] -> y[Half(1,256,28,28)]"
            )


def text(*builds):
    return "".join(line + "\n" for build in builds for line in build.lines)


def new(seed):
    return random.Random(seed)
