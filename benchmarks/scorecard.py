"""The gate's own error rates, on simulated and replayed engines whose true ratio is known: `make scorecard`.

Prints the tables; --write puts them, with their explanation, into docs/scorecard.md.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import NamedTuple

import gates
import msgspec
import numpy as np
from gates import Design
from noise import PROCESSES

from pipeline import machine
from pipeline.quality.paired import beta_bound

ALPHA = 0.05
BUDGET = 1.05
BETTER = 0.98
"""The judged arm's ratio where the gate should pass: so much of the budget."""
CVS = (0.01, 0.03, 0.10)
ENGINE_MS = 4.0
SECONDS = 60.0
CHUNK = 250
LIMIT = 0.06
RIGHT = 0.90


def block_design() -> Design:
    """What latency.Plan makes of a 4 ms engine, three arms and 60 s."""
    block, rewarm = 9, 2
    round_s = gates.ARMS * ((block + rewarm) * ENGINE_MS + 1.0) / 1e3
    return Design(int(SECONDS / round_s), block, rewarm)


LAUNCHES = 20
LAUNCH_CV = 0.003


def live_design() -> Design:
    """20 rounds; in each, three processes are started and alternate short blocks. A start has an effect of its own."""
    block, rewarm = 9, 2
    group = int(SECONDS / LAUNCHES / gates.ARMS / (block + rewarm) / ENGINE_MS * 1e3)
    return Design(LAUNCHES * group, block, rewarm, LAUNCH_CV, group, early=False)


def one_shot_design() -> Design:
    """20 rounds of three processes, each timing its second in one go."""
    return Design(LAUNCHES, int(SECONDS / LAUNCHES / gates.ARMS / ENGINE_MS * 1e3), 0, LAUNCH_CV, early=False)


class Level(NamedTuple):
    design: Design
    peers: bool
    """Are the usual gates run beside it?"""
    promised: bool


LEVELS = {
    "blocks": Level(block_design(), True, True),
    "live": Level(live_design(), False, True),
    "one-shot": Level(one_shot_design(), False, False),
}
PEER_EXPERIMENTS = 500
"""The usual gates are run on the first so many experiments: their rates are not close to any limit."""
BEYOND = ("ar1-own",)
"""Harder than what is promised: shown, not required."""


class Cell(msgspec.Struct, kw_only=True):
    """Counts of one process at one CV; kept in the file of `--resume`, so that a run that is stopped goes on where it was."""

    counts: dict[str, list[int]] = {}
    """`gate|where` -> passes, failures, experiments."""
    rounds: float = 0.0
    """Median number of observations until the decision, 2 % better."""
    needed: float | None = None
    """Median of how many times as long the undecided ones ask for."""
    cpu_seconds: float = 0.0

    def add(self, gate: str, where: str, outcome: np.ndarray) -> None:
        passes, failures, n = self.counts.get(f"{gate}|{where}", [0, 0, 0])
        self.counts[f"{gate}|{where}"] = [passes + int((outcome == 1).sum()), failures + int((outcome == -1).sum()), n + len(outcome)]

    def share(self, gate: str, where: str, wanted: int) -> tuple[int, int]:
        passes, failures, n = self.counts[f"{gate}|{where}"]
        return (passes if wanted == 1 else failures), n


GATES = ("sparsegate", "interval alone", "two medians", "Welch, 3 runs", "Mann-Whitney", "peeking")


def run_cell(name: str, cv: float, design: Design, experiments: int, seed: int, peers: bool = True) -> Cell:
    """All gates on the same experiments, at the budget and better than it."""
    began = time.process_time()
    cell = Cell()
    rng = np.random.default_rng(seed)
    rounds, needed = [], []
    for start in range(0, experiments, CHUNK):
        found = gates.draw(PROCESSES[name], rng, min(CHUNK, experiments - start), cv, design)
        for where, ratio in (("at", BUDGET), ("better", BUDGET * BETTER)):
            own = gates.ours(found, ratio, BUDGET, ALPHA, design)
            cell.add("sparsegate", where, own.outcome)
            if where == "better":
                rounds.append(own.rounds)
                needed.append(own.needed[own.outcome == 0])
            cell.add("interval alone", where, gates.alone(found, ratio, BUDGET, ALPHA, design))
            if not peers or start >= PEER_EXPERIMENTS:
                continue
            cell.add("two medians", where, gates.two_medians(found, ratio, BUDGET))
            cell.add("Welch, 3 runs", where, gates.welch(found, ratio, BUDGET, ALPHA))
            cell.add("Mann-Whitney", where, gates.mann_whitney(found, ratio, BUDGET, ALPHA))
            cell.add("peeking", where, gates.peeking(found, ratio, BUDGET, ALPHA, design))
    cell.rounds = float(np.median(np.concatenate(rounds)))
    undecided = np.concatenate(needed)
    cell.needed = float(np.median(undecided)) if len(undecided) else None
    cell.cpu_seconds = time.process_time() - began
    return cell


def own_row(name: str, cv: float, cell: Cell, design: Design) -> tuple[list[str], bool]:
    """One line of the gate's own table, and whether it meets its promise."""
    wrong, n = cell.share("sparsegate", "at", 1)
    wrong_fail, _ = cell.share("sparsegate", "better", -1)
    right, _ = cell.share("sparsegate", "better", 1)
    bound = beta_bound(wrong, n, 0.05, upper=True)
    seconds = cell.rounds / gates.looks(design)[-1] * SECONDS
    needs = f"about {SECONDS * cell.needed:.0f} s" if right < RIGHT * n and cell.needed is not None else ""
    holds = bound <= LIMIT and (right >= RIGHT * n or cv >= 0.1)
    row = [
        name,
        f"{cv:.0%}",
        percent(wrong, n),
        f"{bound:.2%}",
        percent(*cell.share("interval alone", "at", 1)),
        percent(right, n),
        percent(wrong_fail, n),
        f"{seconds:.0f} s",
        needs,
        "yes" if holds else "NO",
    ]
    return row, holds


def peer_rows(cells: dict[tuple[str, float], Cell]) -> list[list[str]]:
    """False passes at the budget and right decisions better than it, of every gate."""
    rows = []
    for (name, cv), cell in cells.items():
        shown = [f"{percent(*cell.share(gate, 'at', 1))} / {percent(*cell.share(gate, 'better', 1))}" for gate in GATES]
        rows.append([name, f"{cv:.0%}", *shown])
    return rows


def tail_rows(experiments: int, design: Design) -> list[list[str]]:
    """p99 through the real code: how often it may be judged at all, and how long it takes."""
    from pipeline.latency import tails
    from pipeline.latency.confidence import multiplier

    rows = []
    for name, process in PROCESSES.items():
        for cv in (0.03,):
            found = gates.draw(process, np.random.default_rng(99), experiments, cv, design)
            rounds = np.repeat(np.arange(design.rounds), design.block)
            count = tails.batches_of(design.rounds)
            weights = tails.draws(count)
            batch = rounds * count // design.rounds
            effective, halves, wrong, judged = [], [], 0, 0
            for pair in found.samples:
                arms = [tails.pooled(batch, ms, 0.99, weights) for ms in pair]
                effective.append(min(arm.effective for arm in arms))
                error = float(np.std(np.log(arms[0].replicates) - np.log(arms[1].replicates), ddof=1))
                half = multiplier(design.rounds, design.rounds, count, ALPHA) * error
                halves.append(half)
                if effective[-1] >= tails.LEAST_EFFECTIVE["p99"]:
                    judged += 1
                    wrong += math.log(arms[0].value / arms[1].value) + half < 0  # at the budget: the true ratio is 1 here
            per_second = np.median(effective) / SECONDS
            needed = tails.LEAST_EFFECTIVE["p99"] / per_second
            rows.append(
                [
                    name,
                    f"{cv:.0%}",
                    f"{np.median(effective):.0f}",
                    f"{needed:.0f} s",
                    percent(judged, experiments),
                    percent(wrong, experiments),
                    f"{np.median(halves):.1%}",
                ]
            )
    return rows


def load(path: Path | None) -> dict[str, Cell]:
    """Cells of an earlier run of the same code that was stopped."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Cell]) if path is not None and path.exists() else {}


def save(path: Path | None, cells: dict[str, Cell]) -> None:
    if path is not None:
        path.write_bytes(msgspec.json.encode(cells))


def percent(count: int, n: int) -> str:
    return f"{count / n:.1%}"


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---", "---:", *["---:"] * (len(columns) - 2)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


OWN = [
    "process",
    "CV",
    "passes at the budget",
    "upper 95 % bound",
    "interval alone",
    "passes 2 % better",
    "fails 2 % better",
    "median time",
    "undecided ones need",
    "holds",
]
PEERS = ["process", "CV", *GATES]
TAILS = ["process", "CV", "effective samples in 60 s", "time to 1,000", "judged", "false passes at the budget", "half-width"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=2000)
    parser.add_argument("--tail-experiments", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=list(PROCESSES))
    parser.add_argument("--resume", type=Path, help="Keep finished cells in this file, and take them from it.")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    stored = load(args.resume)
    before = sum(cell.cpu_seconds for cell in stored.values())
    holds = True
    sections = {}
    for level, (design, peers, promised) in LEVELS.items():
        cells, rows = {}, []
        for at, (name, cv) in enumerate((name, cv) for name in args.only for cv in CVS):
            experiments = args.experiments if promised and name not in BEYOND else max(1, args.experiments // 4)
            key = f"{level}|{name}|{cv}|{experiments}"
            if key not in stored:
                stored[key] = run_cell(name, cv, design, experiments, 1000 + at, peers)
                save(args.resume, stored)
            cells[name, cv] = stored[key]
            row, good = own_row(name, cv, cells[name, cv], design)
            holds &= good or name in BEYOND or not promised
            rows.append(row)
            print(f"{cells[name, cv].cpu_seconds:5.1f} s  {level}: {'  '.join(row)}", flush=True)
        sections[level] = table(OWN, rows)
        if peers:
            sections["peers"] = table(PEERS, peer_rows(cells))
    sections["tails"] = table(TAILS, tail_rows(args.tail_experiments, block_design()))
    minutes = (before + time.process_time()) / 60
    print("\n\n".join(sections.values()))
    print(f"\n{'holds' if holds else 'DOES NOT HOLD'}: {args.experiments} experiments a cell, {minutes:.1f} minutes of CPU")
    if args.write:
        facts = {
            "minutes": f"{minutes:.1f}",
            "cpu": machine.cpu_name(),
            "experiments": f"{args.experiments:,}",
            "fewer": f"{args.experiments // 4:,}",
            "peer_experiments": str(PEER_EXPERIMENTS),
            "tail_experiments": str(args.tail_experiments),
        }
        template = (Path(__file__).parent / "scorecard.md.in").read_text()
        described = "\n".join(f"- `{name}`: {PROCESSES[name].text}" for name in args.only)
        for key, text in {**facts, **{k.replace("-", "_"): v for k, v in sections.items()}, "processes_list": described}.items():
            template = template.replace("{{" + key + "}}", text)
        args.write.write_text(template)
    raise SystemExit(0 if holds else 1)


if __name__ == "__main__":
    main()
