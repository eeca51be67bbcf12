"""How fast `pipeline.tactics` reads a verbose build log, against a bare byte-line loop and a section parser.

    python benchmarks/bench_tactics.py [--mb 60 600] [--layers 600 5000] [--two-lines] [--folder /tmp]

The log is synthetic: the forms are TensorRT 10's, the mix of lines is that of a convolutional network's build (per format
combination one or two runners with 4 to 14 named tactics each, three or four `Skipping ... No valid tactics` lines, a
choice; between layers the reformats' tables). Each contender reads in a process of its own, in turns, `--repeat` times: CPU
seconds of one core, the import of the reader and of numpy apart, and the file's sha256 apart (it is measured alone and
subtracted). Ratios are the medians of the turns' own ratios, since a machine's speed changes between turns.

Section parser: for each line the headers of the known sections are searched, then `key: value` lines are collected until
the section ends, which is how trtexec's options and performance summary are commonly parsed. It collects no tactic.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STARS = "*" * 15
PREFIX = "[02/03/2026-04:05:06] [V] [TRT] "
SECTIONS = (
    "=== Model Options ===",
    "=== Build Options ===",
    "=== Performance summary ===",
    "=== Inference Options ===",
    "=== Device Information ===",
)


def kernels(rng: random.Random, sparse: bool, count: int) -> list[tuple[str, str]]:
    """Names and ids; an id stands for a kernel, as in real logs."""
    found = []
    for _ in range(count):
        tile, stage, warps = rng.choice(["128x64x64", "64x64x64", "256x128x32"]), rng.randint(3, 6), rng.choice(["2x2x1", "4x1x1", "2x1x1"])
        tail = f"_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize{tile}_stage{stage}_warpsize{warps}_g{rng.randint(1, 8)}_"
        family = "sm80_xmma_fprop_sparse_conv" if sparse else "sm80_xmma_fprop_implicit_gemm"
        found.append((family + tail + ("sptensor16x8x32" if sparse else "tensor16x8x16") + "_t1r3s3", f"0x{rng.getrandbits(64):016x}"))
    return found


def write_log(path: Path, megabytes: int, layers: int, *, two_lines: bool = False, own_ids: bool = False) -> dict[str, int]:
    """One build of about this size, its tactics in the form of 10 or in that of 8.4; returns what it holds."""
    rng = random.Random(7)
    dense, sparse = kernels(rng, False, 120), kernels(rng, True, 40)
    counts = {"tactics": 0, "combinations": 0, "lines": 0}
    per_layer = megabytes * 1_000_000 // layers
    dump = []
    with path.open("w") as out:
        out.write("&&&& RUNNING TensorRT.trtexec [TensorRT v100400] # trtexec --onnx=net.onnx --fp16 --sparsity=enable --verbose\n")
        out.write("[02/03/2026-04:05:06] [I] Sparsity: Enabled\n")
        for i in range(layers):
            base = f"stage{i // 50}/block{i % 50}"
            name = f"{base}/Conv + PWN(PWN({base}.act/Sigmoid), PWN({base}.act/Mul))"
            lines = [f"=============== Computing costs for {name}"]
            size, k = 0, 0
            while size < per_layer:
                lines.append(f"{STARS} Autotuning format combination: Half({9216 + 16 * k},1:8,288,9) -> Half(9216,1:8,288,9) {STARS}")
                for runner in rng.choice(
                    [["CaskConvolution[0x80000009]"], ["CaskConvolution[0x80000009]", "CaskGemmConvolution[0x8000001e]"]]
                ):
                    timed = [(*rng.choice(dense), rng.uniform(0.02, 0.2)) for _ in range(rng.randint(3, 10))]
                    timed += [(*rng.choice(sparse), rng.uniform(0.02, 0.2)) for _ in range(rng.randint(1, 4))]
                    if own_ids:
                        timed = [(kernel, f"0x{rng.getrandbits(64):016x}", ms) for kernel, _, ms in timed]
                    lines.append(f"--------------- Timing Runner: {name} ({runner})")
                    head = f"{name} Set Tactic Name: {{}} Tactic: {{}}\n{PREFIX}Tactic: {{}}" if two_lines else "Tactic Name: {} Tactic: {}"
                    lines += [f"{head.format(kernel, id_, id_)} Time: {ms:.6g}" for kernel, id_, ms in timed]
                    best = min(timed, key=lambda row: row[2])
                    lines.append(
                        f"{name} ({runner}) profiling completed in {rng.uniform(0.01, 2):.6g} seconds. "
                        f"Fastest Tactic: {best[1]} Time: {best[2]:.6g}"
                    )
                    counts["tactics"] += len(timed)
                skipped = ["CaskFlattenConvolution", "CaskGemmConvolution", "CudnnConvolution", "CublasConvolution"]
                lines += [f"Skipping {runner}: No valid tactics for {name}" for runner in skipped[: rng.randint(3, 4)]]
                lines.append(f">>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: {best[1]}")
                counts["combinations"] += 1
                k += 1
                size = sum(map(len, lines)) + len(lines) * 33
            for to in ("Half(9216,96,9,1)", "Float(9216,96,9,1)"):
                lines += [
                    f"*************** Autotuning Reformat: Half(9216,1:8,288,9) -> {to} ***************",
                    "--------------- Timing Runner: Optimizer Reformat(x -> <out>) (Reformat[0x80000006])",
                ]
                lines += [f"Tactic: 0x00000000000003{b} Time: {rng.uniform(0.002, 0.01):.6g}" for b in ("e8", "ea")] + [
                    "Fastest Tactic: 0x00000000000003e8 Time: 0.0021"
                ]
            dump.append((name, best))
            counts["lines"] += len(lines)
            out.write("".join(f"{PREFIX}{line}\n" for line in lines))
        names = ", ".join(name for name, _ in dump)
        out.write(f"[02/03/2026-04:05:06] [I] [TRT] (Sparsity) Found {layers} layer(s) eligible to use sparse tactics: {names}\n")
        chosen = [name for name, best in dump if "sparse" in best[0]]
        out.write(
            f"[02/03/2026-04:05:06] [I] [TRT] (Sparsity) Chose {len(chosen)} layer(s) using sparse tactics:"
            + "".join(f", {name}" for name in chosen)
            + "\n"
        )
        out.write("[02/03/2026-04:05:06] [I] [TRT] Engine generation completed in 31.2 seconds.\n")
        out.write(f"{PREFIX}Layers:\n")
        for name, best in dump:
            out.write(
                f"Name: {name}, LayerType: CaskConvolution, Inputs: [ {{ Name: x, Location: Device, Dimensions: [1,256,28,28], "
                "Format/Datatype: Half }], Outputs: [], HasSparseWeights: 1, "
                f"TacticName: {best[0]}, TacticValue: {best[1]}, StreamId: 0, Metadata: [ONNX Layer: a]\n"
            )
        out.write("&&&& PASSED TensorRT.trtexec [TensorRT v100400] # trtexec\n")
    return counts


def bare_loop(path: str) -> int:
    """The floor: every line as bytes."""
    count = 0
    with Path(path).open("rb") as file:
        for _line in file:
            count += 1
    return count


def section_parser(path: str) -> dict[str, dict[str, str]]:
    """Headers are searched in every line outside a section."""
    headers = {name: re.compile(re.escape(name)) for name in SECTIONS}
    entry = re.compile(r"(\[\d+/\d+/\d+-\d+:\d+:\d+\] \[I\] )")
    found: dict[str, dict[str, str]] = {name: {} for name in SECTIONS}
    section = None
    for line in Path(path).read_text().split("\n"):
        if section is None:
            section = next((name for name, header in headers.items() if header.search(line)), None)
        elif match := entry.search(line):
            key, _, value = line[match.end() :].partition(": ")
            found[section][key] = value
        else:
            section = None
    return found


def seconds(function, *args) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    function(*args)
    return time.process_time() - start


def measure(path: str, what: str) -> dict[str, float]:
    """One contender in this process: the least of three runs."""
    if what == "read":
        import numpy  # noqa: F401 - part of the start-up

        from pipeline import tactics
        from pipeline.records.io import sha256_file
        from pipeline.tactics import reader  # noqa: F401

        once = seconds(tactics.read, [path])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        best = min(once, *(seconds(tactics.read, [path]) for _ in range(2)))
        return {"seconds": best - min(seconds(sha256_file, Path(path)) for _ in range(3)), "peak_mb": peak}
    function = {"bare": bare_loop, "sections": section_parser}[what]
    return {"seconds": min(seconds(function, path) for _ in range(3))}


def child(path: str, what: str) -> dict[str, float]:
    """`measure` in a process of its own, on one core."""
    command = [sys.executable, __file__, "--measure", what, "--path", path]
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent.parent)}
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, nargs="+", default=[60, 600])
    parser.add_argument("--layers", type=int, nargs="+", default=[600, 5000])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--two-lines", action="store_true", help="name and time on two lines, as TensorRT 8.4 and 8.5 print them")
    parser.add_argument("--own-ids", action="store_true", help="an id of its own for each timed tactic: nothing repeats")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.path, args.measure)))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for megabytes, layers in zip(args.mb, args.layers):
            path = Path(folder) / f"{megabytes}.log"
            counts = write_log(path, megabytes, layers, two_lines=args.two_lines, own_ids=args.own_ids)
            size = path.stat().st_size / 1e6
            turns = [{what: child(str(path), what) for what in ("bare", "read", "sections")} for _ in range(args.repeat)]
            base, ours, theirs = (statistics.median(turn[what]["seconds"] for turn in turns) for what in ("bare", "read", "sections"))
            of_bare, of_sections = (
                sorted(turn[what]["seconds"] / turn["read"]["seconds"] for turn in turns) for what in ("bare", "sections")
            )
            peak = max(turn["read"]["peak_mb"] for turn in turns)
            print(f"{size:.0f} MB, {layers} layers, " + ", ".join(f"{count} {what}" for what, count in counts.items()))
            print(f"  bare byte-line loop {base:.3f} s, section parser {theirs:.3f} s, full tables {ours:.3f} s ({size / ours:.0f} MB/s)")
            print(
                f"  {statistics.median(of_bare):.3f} of the bare loop's speed ({of_bare[0]:.3f} to {of_bare[-1]:.3f}), "
                f"{statistics.median(of_sections):.2f} times the section parser's; peak memory {peak:.0f} MB"
            )
            path.unlink()


if __name__ == "__main__":
    main()
