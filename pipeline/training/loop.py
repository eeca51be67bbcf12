"""The training loop: plain, repeatable from a seed, and resumable from its last finished epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError, StageError
from pipeline.progress import Progress, silent
from pipeline.training import resume
from pipeline.training.fetching import fetched
from pipeline.training.history import FILE, EpochRow, History, write_rows
from pipeline.training.objectives import Objective, objectives
from pipeline.training.outputs import Split, by_head, predict
from pipeline.training.repeatable import derived, repeatable, reseed
from pipeline.training.schedule import learning_rate

if TYPE_CHECKING:
    import numpy as np
    from lightning_fabric import Fabric
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

PRECISIONS = {"fp32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}
"""The recipe's word -> Fabric's."""


def fit(
    model: Module,
    split: Split,
    *,
    heads: Mapping[str, str],
    phase: Mapping[str, Any],
    seed: int,
    device: str,
    threads: int,
    attach: Callable[[Optimizer], None] | None = None,
    select: Split | None = None,
    folder: Path,
    progress: Progress = silent,
) -> History:
    """Train a model in place.

    The same model, data, seed, phase and thread count give the same weights, to the bit, interrupted or not: every
    epoch's order and random numbers come from a seed of its own, and after each epoch the state is written to
    `folder/<phase>.resume`, from which a later call with the same arguments goes on.

    Args:
        model: On the CPU; ends there.
        split: Training samples; `augmented(index, rng)` is used in place of `batch(index)` where it has one.
        heads: Metric by head, in the order of the model's outputs; `OBJECTIVES` says what is trained for each. Losses add up.
        phase: `name` (in the CSV, in file names, in progress), `epochs`, `batch_size`, `lr`, and the recipe's other words for a phase.
        seed: Of order, dropout and augmentation.
        device: `cpu` or `cuda`.
        threads: CPU threads within this call.
        attach: Called with the optimizer before the first step: where masks are held. The model's weights are on `device` then.
        select: Split on which each epoch is scored; needed for `keep: best`.
        folder: For the state and `history.csv`.
        progress: Told after every step.

    Raises:
        InputError: outputs and targets do not fit each other.
        StageError: the loss is no longer a finite number.
    """
    goals, name = objectives(heads), str(phase.get("name", "train"))
    with repeatable(threads, cuda=device.startswith("cuda")):
        run = _Phase(model, split, goals, dict(phase), seed, device, name, progress)
        if attach is not None:
            attach(run.raw_optimizer)
        start = resume.fingerprint(
            weights=resume.digest(model.state_dict()),
            phase=dict(phase),
            seed=seed,
            heads=dict(heads),
            device=device,
            threads=threads,
            samples=len(split),
        )
        state = resume.load(resume.file_of(folder, name), start)
        resumed_from = state.epoch if state else 0
        rows, kept = run.all_epochs(state, select, folder, start)
        model.to("cpu")
    write_rows(folder / FILE, name, rows)
    return History(phase=name, path=folder / FILE, rows=rows, kept_epoch=kept, resumed_from=resumed_from)


class _Phase:
    """One phase under way."""

    def __init__(
        self,
        model: Module,
        split: Split,
        goals: Mapping[str, Objective],
        phase: dict[str, Any],
        seed: int,
        device: str,
        name: str,
        progress: Progress,
    ) -> None:
        self.model, self.split, self.goals = model, split, goals
        self.phase, self.seed, self.device, self.name, self.progress = phase, seed, device, name, progress
        self.epochs, self.batch_size = int(phase["epochs"]), int(phase["batch_size"])
        self.steps = max(1, math.ceil(len(split) / self.batch_size))
        self.fabric = _fabric(device, str(phase.get("precision", "fp32")))
        model.to(self.fabric.device)
        self.raw_optimizer = _optimizer(model, phase)
        self.wrapped, self.optimizer = self.fabric.setup(model, self.raw_optimizer)

    def all_epochs(self, state: resume.State | None, select: Split | None, folder: Path, start: str) -> tuple[list[EpochRow], int]:
        state = self._taken_up(state) if state else resume.State(epoch=0, model={}, optimizer={}, scaler={}, rows=[])
        best_of = self.phase.get("keep") == "best" and select is not None
        while state.epoch < self.epochs:
            began = time.perf_counter()
            loss, rate = self._epoch(state.epoch, state.rows)
            score = self._score(select) if select is not None else math.nan
            state.epoch += 1
            state.rows.append(EpochRow(self.name, state.epoch, loss, score, rate, time.perf_counter() - began))
            state.model, state.optimizer = _copy(self.model.state_dict()), self.raw_optimizer.state_dict()
            state.scaler = self.fabric.strategy.precision.state_dict()
            if best_of and (state.best is None or score >= max(row.score for row in state.rows[:-1])):
                state.best, state.best_epoch = state.model, state.epoch
            resume.save(resume.file_of(folder, self.name), state, start)
            write_rows(folder / FILE, self.name, state.rows)
        if state.best is not None:
            self.model.load_state_dict(state.best)
            return state.rows, state.best_epoch
        return state.rows, state.epoch

    def _taken_up(self, state: resume.State) -> resume.State:
        self.model.load_state_dict(state.model)
        self.raw_optimizer.load_state_dict(state.optimizer)
        if state.scaler:
            self.fabric.strategy.precision.load_state_dict(state.scaler)
        return state

    def _epoch(self, epoch: int, rows: list[EpochRow]) -> tuple[float, float]:
        """One pass over the split; mean loss and last learning rate."""
        import numpy as np

        own = derived(self.seed, self.name, epoch)
        reseed(own)
        rng = np.random.default_rng(own)
        self.model.train()
        total, rate = 0.0, 0.0
        parts = np.array_split(rng.permutation(len(self.split)), self.steps)
        for step, (index, (inputs, targets)) in enumerate(fetched(self.split, parts, rng)):
            done = epoch * self.steps + step
            rate = self._rate(done)
            loss = self._step(inputs, targets, rate)
            if not math.isfinite(loss):
                raise StageError(
                    f"the loss is {loss} in epoch {epoch + 1}, step {step + 1}",
                    where=f"train, phase {self.name}",
                    hint="lower lr, or set clip_norm or warmup_epochs",
                )
            total += loss * len(index)
            self.progress(f"train {self.name}", (done + 1) / self.steps, self.epochs, _shown(loss, rows))
        return total / len(self.split), rate

    def _rate(self, done: int) -> float:
        return learning_rate(
            done,
            self.epochs * self.steps,
            peak=float(self.phase["lr"]),
            shape=str(self.phase.get("schedule", "cosine")),
            warmup=float(self.phase.get("warmup_epochs", 0.0)) * self.steps,
        )

    def _step(self, inputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray], rate: float) -> float:
        import torch

        def move(value: np.ndarray) -> Tensor:
            return torch.from_numpy(value).to(self.fabric.device)

        for group in self.raw_optimizer.param_groups:
            group["lr"] = rate
        found = by_head(self.wrapped(*map(move, inputs.values())), self.goals)
        for head, goal in self.goals.items():
            misfit = goal.misfit(tuple(found[head].shape), targets[head])
            if misfit:
                raise InputError(
                    f"head {head!r}: {misfit}", where="model, data.heads", hint="make the model's outputs and the data's targets fit"
                )
        losses: list[Tensor] = [goal.loss(found[head], move(targets[head])) for head, goal in self.goals.items()]
        loss = torch.stack(losses).sum()
        self.optimizer.zero_grad(set_to_none=True)
        self.fabric.backward(loss)
        if self.phase.get("clip_norm"):
            self.fabric.clip_gradients(self.wrapped, self.optimizer, max_norm=float(self.phase["clip_norm"]), error_if_nonfinite=False)
        self.optimizer.step()
        return float(loss.detach())

    def _score(self, select: Split) -> float:
        import numpy as np

        found = predict(self.model, select, heads=self.goals, device=self.device, batch_size=max(self.batch_size, 256))
        _, targets = select.batch(np.arange(len(select)))
        scores = [goal.score(found[head], targets[head]) for head, goal in self.goals.items()]
        return sum(scores) / len(scores)


def _fabric(device: str, precision: str) -> Fabric:
    from lightning_fabric import Fabric

    return Fabric(accelerator="cuda" if device.startswith("cuda") else "cpu", devices=1, precision=PRECISIONS[precision])


def _optimizer(model: Module, phase: Mapping[str, Any]) -> Optimizer:
    """Weight decay acts on weights with two or more axes: not on biases and norms."""
    import torch

    wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in wanted if p.ndim > 1], "weight_decay": float(phase.get("weight_decay", 0.0))},
        {"params": [p for p in wanted if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    rate = float(phase["lr"])
    if phase.get("optimizer", "sgd") == "adamw":
        return torch.optim.AdamW(groups, lr=rate)
    momentum = float(phase.get("momentum", 0.9))
    return torch.optim.SGD(groups, lr=rate, momentum=momentum, nesterov=momentum > 0)


def _copy(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key: value.detach().to("cpu", copy=True) for key, value in state.items()}


def _shown(loss: float, rows: list[EpochRow]) -> str:
    text = f"loss {loss:.3f}"
    return f"{text}, select {rows[-1].score:.4f}" if rows and not math.isnan(rows[-1].score) else text
