"""The stand-in's logs: in the forms of TensorRT 8.6, 10.3 and 11.1 (11's after 10's: no more is known); the figures are made up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LABEL = "sparsegate stand-in for trtexec: synthetic log, made-up tactics and times, no TensorRT and no GPU"
HEAD = "[11/30/2026-10:00:00]"


def build_log(engine: Any, version: tuple[int, ...], options: dict[str, str], *, skips: bool) -> Iterator[str]:
    new = version >= (10,)
    yield f"{HEAD} [I] Sparsity: {'Enabled' if engine.sparse else 'Disabled'}"
    yield f"{HEAD} [I] Precision: {'FP32+FP16' if 'fp16' in options else 'FP32'}"
    yield f"{HEAD} [I] avgTiming: {options.get('avgTiming', '8')}"
    yield f"{HEAD} [I] Builder optimization level: {options.get('builderOptimizationLevel', '3')}"
    for index, profile in enumerate(engine.profiles):
        for name, ranges in profile.items():
            text = " ".join(f"{kind.upper()}={'x'.join(map(str, ranges[kind]))}" for kind in ("min", "opt", "max"))
            yield f"{HEAD} [I] Set shape of input tensor {name} for optimization profile {index} to: {text}"
    cached = "timingCacheFile" in options
    scope, stored = ("Global", "be") if cached else ("Local", "not be")
    yield f"{HEAD} [I] [TRT] {scope} timing cache in use. Profiling results in this builder pass will {stored} stored."
    if skips:
        yield f"{HEAD} [W] [TRT] Tactic Device request: 414MB Available: 216MB. Device memory is insufficient to use tactic."
        yield (
            f"{HEAD} [W] [TRT] (UNSUPPORTED_STATE: )Skipping tactic 0 due to insufficient memory on requested size of 434110464 "
            "detected for tactic 0x0000000000000018."
        )
    if "verbose" in options:
        for layer in engine.layers:
            yield from tuning(layer, new)
    if engine.sparse:
        yield from summary(engine, new)
    if "verbose" in options:
        yield from dump(engine, new)
    yield f"{HEAD} [I] Engine built in 1.5 sec."


def tuning(layer: Any, new: bool) -> Iterator[str]:
    line = f"{HEAD} [V] [TRT] "
    yield line + f"=============== Computing costs for {layer.name}"
    yield line + "*************** Autotuning format combination: Half(8192,1:8,256) -> Half(8192,1:8,256) ***************"
    yield line + f"--------------- Timing Runner: {layer.name} (CaskConvolution[0x80000009])"
    for kernel, ms in layer.times.items():
        yield line + f"Tactic Name: {kernel} Tactic: {tactic_id(kernel)} Time: {ms:.6g}"
    best = min(layer.times, key=layer.times.__getitem__)
    done = f"{layer.name} (CaskConvolution[0x80000009]) profiling completed in 0.1 seconds."
    yield f"{line}{done} Fastest Tactic: {tactic_id(best)} Time: {layer.times[best]:.6g}"
    if new:
        yield line + f"Skipping CaskFlattenConvolution: No valid tactics for {layer.name}"
    else:
        yield line + f"--------------- Timing Runner: {layer.name} (CaskFlattenConvolution[0x80000036])"
        yield line + "CaskFlattenConvolution has no valid tactics for this config, skipping"
    yield line + f">>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: {tactic_id(best)}"


def summary(engine: Any, new: bool) -> Iterator[str]:
    eligible = [layer.name for layer in engine.layers if layer.two_four]
    chosen = [layer.name for layer in engine.layers if layer.sparse]
    if new:
        yield f"{HEAD} [I] [TRT] (Sparsity) Found {len(eligible)} layer(s) eligible to use sparse tactics: {', '.join(eligible)}"
        yield f"{HEAD} [I] [TRT] (Sparsity) Chose {len(chosen)} layer(s) using sparse tactics:{''.join(f', {name}' for name in chosen)}"
    else:
        yield f"{HEAD} [I] [TRT] (Sparsity) Layers eligible for sparse math: {', '.join(eligible)}"
        yield f"{HEAD} [I] [TRT] (Sparsity) TRT inference plan picked sparse implementation for layers: {', '.join(chosen)}"


def dump(engine: Any, new: bool) -> Iterator[str]:
    yield f"{HEAD} [V] [TRT] {'Layers:' if new else 'Engine Layer Information:'}"
    for layer in engine.layers:
        if new:
            tensor = "Location: Device, Dimensions: [1,32], Format/Datatype: Half"
            yield (
                f"Name: {layer.name}, LayerType: CaskConvolution, Inputs: [ {{ Name: x, {tensor} }}], Outputs: [ {{ Name: y, {tensor} }}], "
                f"ParameterType: Convolution, OutMaps: 32, Groups: 1, HasSparseWeights: {int(layer.two_four and engine.sparse)}, "
                f"TacticName: {layer.tactic}, TacticValue: {tactic_id(layer.tactic)}, StreamId: 0, "
                f"Metadata: {''.join(f'[ONNX Layer: {node}]' for node in layer.nodes)}"
            )
        else:
            yield f"Layer(CaskConvolution): {layer.name}, Tactic: {tactic_id(layer.tactic)}, x[Half(1,32)] -> y[Half(1,32)]"


def run_log(version: tuple[int, ...], rows: list[dict[str, float]], *, unstable: bool) -> Iterator[str]:
    times = sorted(row["computeMs"] for row in rows)
    yield f"{HEAD} [I] Engine loaded in 0.01 sec."
    if unstable:
        yield f"{HEAD} [W] * GPU compute time is unstable, with coefficient of variance = 9.2%."
        yield f"{HEAD} [W]   If not already in use, locking GPU clock frequency or adding --useSpinWait may improve the stability."
    yield f"{HEAD} [I] === Performance summary ==="
    yield f"{HEAD} [I] GPU Compute Time: min = {times[0]:g} ms, max = {times[-1]:g} ms, median = {times[len(times) // 2]:g} ms"


def tactic_id(kernel: str) -> str:
    from engine import hash_of

    return f"0x{abs(hash_of(kernel)):016x}"
