"""`diff` of two builds of 5,000 layers with fusions, splits and tactic changes: under 2 s, and linear in the number of layers."""

from __future__ import annotations

import random

from harness import expect, seconds

from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, Tactic, TacticLayer
from pipeline.report.differences import diff_text
from pipeline.verdict.diff import diff_builds

LAYERS = 5_000


def network(layers: int, seed: int) -> Build:
    """A chain of nodes cut into engine layers of one to five nodes, at places that depend on the seed."""
    rng = random.Random(seed)
    made, node = [], 0
    for _ in range(layers):
        many = rng.randint(1, 5)
        held = [f"/block.{number}/Conv_{number % 7}" for number in range(node, node + many)]
        node += many
        sparse = rng.random() < 0.5
        name = " + ".join(held)
        kernel = f"sm80_xmma_fprop_{'sparse_conv' if sparse else 'implicit_gemm'}_{rng.randint(0, 40)}"
        tactic = Tactic(name=kernel, kind="sparse" if sparse else "dense", id=None, runner=None, how="engine-dump")
        rung = Rung.YES if sparse else Rung.NO
        made.append(TacticLayer(id=name, name=name, parts=held, selected=rung, eligible=Rung.YES, tactic=tactic, profile_ms=rng.random()))
    return Build(id=0, layers=made)


def main() -> None:
    for layers in (LAYERS // 5, LAYERS):
        a, b = network(layers, 1), network(layers, 2)
        report = diff_builds(a, b)
        took = sorted(seconds(lambda a=a, b=b: diff_text(diff_builds(a, b))) for _ in range(5))[2]
        expect(f"diff of {layers} layers ({len(report.changes)} changes), text included", took < 2.0, f"{took:.3f} s", "< 2 s")


if __name__ == "__main__":
    main()
