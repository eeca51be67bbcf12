"""Accuracy by mask criterion and channel permutation, on the digits network and on a small transformer.

    python benchmarks/methods.py                       # prints the tables
    python benchmarks/methods.py --write docs/methods.md
    python benchmarks/methods.py --seeds 10

For every seed a dense network is trained; each method starts from that same network. Differences to dense are therefore
paired, and their intervals are Student's over seeds. Test samples decide nothing here but the figures.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline import sparsity
from pipeline.sparsity.criteria.run import CRITERIA

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- methods: begin -->", "<!-- methods: end -->"
TEST, CALIBRATION, PERMUTE_SECONDS = 797, 256, 2.0
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""97.5 % quantile of Student's t, by number of seeds."""


class RowTransformer(nn.Module):
    """An image's 8 rows as 8 tokens: two pre-norm encoder layers of width 64."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 64)
        self.position = nn.Parameter(torch.randn(8, 64) * 0.1)
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.encoder(self.embed(x.squeeze(1)) + self.position)).mean(1))


def digit_net() -> nn.Module:
    spec = importlib.util.spec_from_file_location("quickstart_model", ROOT / "recipes" / "quickstart" / "model.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build()


@dataclass(frozen=True)
class Subject:
    """A network with its training."""

    name: str
    make: Callable[[], nn.Module]
    epochs: int
    finetune: int
    lr: float
    finetune_lr: float
    adam: bool


SUBJECTS = (
    Subject("digits network", digit_net, epochs=10, finetune=3, lr=0.05, finetune_lr=0.02, adam=False),
    Subject("row transformer", RowTransformer, epochs=30, finetune=6, lr=2e-3, finetune_lr=1e-3, adam=True),
)


def data(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(x)))
    train, test = order[TEST:], order[:TEST]
    return x[train], y[train], x[test], y[test]


def train(model: nn.Module, x: Tensor, y: Tensor, subject: Subject, *, epochs: int, lr: float, seed: int, attach=None) -> None:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    if subject.adam:
        optimizer: torch.optim.Optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9, weight_decay=5e-4)
    if attach is not None:
        attach(optimizer)
    steps = math.ceil(len(x) / 64) * epochs
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(x), generator=generator).split(64):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
            schedule.step()


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    return 100 * float((model(x).argmax(1) == y).double().mean())


@dataclass(frozen=True)
class Result:
    dense: float
    kept: float
    one_shot: float
    tuned: float


def one_seed(subject: Subject, seed: int) -> dict[tuple[str, bool], Result]:
    x, y, test_x, test_y = data(seed)
    torch.manual_seed(seed)
    dense = subject.make()
    train(dense, x, y, subject, epochs=subject.epochs, lr=subject.lr, seed=seed)
    base = accuracy(dense, test_x, test_y)
    found = {}
    for permuted in (False, True):
        start = copy.deepcopy(dense)
        if permuted:
            report = sparsity.permute(start, x[:1], seconds=PERMUTE_SECONDS, seed=seed)
            assert report.difference is None or report.difference < 1e-10
        for criterion in CRITERIA:
            model = copy.deepcopy(start)
            calibration = list(x[:CALIBRATION].split(64))
            proposal = sparsity.propose(model, criterion=criterion, calibration=calibration, seed=seed, proposer="sparsegate")
            proposal.apply(model)
            holder = sparsity.hold(model, proposal.masks)
            one_shot = accuracy(model, test_x, test_y)
            train(model, x, y, subject, epochs=subject.finetune, lr=subject.finetune_lr, seed=seed + 1, attach=holder.attach)
            holder.check()
            kept = statistics.mean(one.kept_magnitude for one in proposal.decisions if one.kept_magnitude is not None)
            found[criterion, permuted] = Result(base, 100 * kept, one_shot, accuracy(model, test_x, test_y))
    return found


def interval(values: list[float]) -> str:
    mean = statistics.mean(values)
    half = STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:+.2f} ± {half:.2f}"


def table(subject: Subject, results: list[dict[tuple[str, bool], Result]]) -> tuple[str, float]:
    """The table, and the best mean difference to dense after fine-tuning."""
    dense = [one["magnitude", False].dense for one in results]
    lines = [
        f"**{subject.name}**: dense accuracy {statistics.mean(dense):.2f} % on {TEST} test samples (mean of {len(results)} seeds, "
        f"{min(dense):.2f} .. {max(dense):.2f}); {subject.epochs} epochs dense, {subject.finetune} epochs of fine-tuning.",
        "",
        "| criterion | permutation | kept magnitude | one shot, points against dense | fine-tuned, points against dense |",
        "|---|---|---|---|---|",
    ]
    best = -math.inf
    for permuted in (False, True):
        for criterion in CRITERIA:
            rows = [one[criterion, permuted] for one in results]
            tuned = [row.tuned - row.dense for row in rows]
            best = max(best, statistics.mean(tuned))
            lines.append(
                f"| {criterion} | {'yes' if permuted else 'no'} | {statistics.mean(row.kept for row in rows):.2f} % "
                f"| {interval([row.one_shot - row.dense for row in rows])} | {interval(tuned)} |"
            )
    return "\n".join(lines), best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5, choices=sorted(STUDENT))
    parser.add_argument("--write", type=Path, help="replace the tables in this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sections, missed = [], []
    for subject in SUBJECTS:
        results = []
        for seed in range(options.seeds):
            started = time.perf_counter()
            results.append(one_seed(subject, seed))
            print(f"{subject.name}: seed {seed} done in {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        text, best = table(subject, results)
        sections.append(text)
        if best < -0.3:
            missed.append(f"{subject.name}: the best method loses {-best:.2f} points")
    body = "\n\n".join(sections)
    print(body)
    if options.write:
        whole = options.write.read_text()
        before, _, rest = whole.partition(BEGIN)
        _, _, after = rest.partition(END)
        options.write.write_text(f"{before}{BEGIN}\n{body}\n{END}{after}")
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main()
