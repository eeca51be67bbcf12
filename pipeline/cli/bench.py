"""`sparsegate bench A [B...]`."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import click

from pipeline.cli import options


class Finite(click.FloatRange):
    """A number in a range: `nan` is in none, whatever comparisons say."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """As click's, without nan and inf."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


POSITIVE = Finite(min=0, min_open=True)
SHARE = Finite(0, 0.5, min_open=True, max_open=True)


@click.command()
@click.argument("models", nargs=-1, required=True, type=options.INPUT, metavar="A [B...]")
@click.option("--backend", default="onnxruntime", show_default=True, help="What runs them.")
@click.option("--batch", "batches", type=click.IntRange(min=1), multiple=True, default=(1,), show_default=True, help="Batch size.")
@click.option("--inputs", type=options.INPUT, help="Input arrays by name (.npz); random values without it.")
@click.option("--seconds", type=POSITIVE, default=10.0, show_default=True, help="Sampling time per batch size.")
@click.option("--warmup", type=Finite(min=0), default=10.0, show_default=True, help="Longest warm-up, seconds.")
@click.option("--rounds", type=click.IntRange(min=8), default=20, show_default=True, help="Least number of rounds.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="CPU threads of the onnxruntime backend.")
@click.option("--processes", is_flag=True, help="Processes started anew in every round: how starts differ enters the interval.")
@click.option("--arm", "arms", metavar="NAME=COMMAND", multiple=True, help="With --processes: one more arm, timed by a command.")
@click.option("--alpha", type=SHARE, default=0.05, show_default=True, help="Error of each bound.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the order of arms.")
@click.option("--out", type=options.FOLDER, help="Keep measurement.json and samples.npz here.")
@options.formats("text", "md", "json")
def command(
    models: tuple[Path, ...],
    backend: str,
    batches: tuple[int, ...],
    inputs: Path | None,
    seconds: float,
    warmup: float,
    rounds: int,
    threads: int,
    processes: bool,
    arms: tuple[str, ...],
    alpha: float,
    seed: int,
    out: Path | None,
    style: str,
) -> None:
    """Interleaved latency of ONNX files (or plans): every B over A, with intervals.

    A is loaded twice, so that the last ratio shows what the measurement itself can tell apart. The COMMAND of --arm, which may
    run in another container, reads a number of inferences per line (or gets it as {count}) and answers each with a line of
    JSON such as {"host_latency": [1.2, 1.3]} in ms. Times are judged by `gate`, not here: the exit code is 0 whatever is faster.
    """
    from pipeline import api
    from pipeline.benching import Job, named
    from pipeline.latency import Plan
    from pipeline.records import io

    job = Job(
        models=named(models),
        backend=backend,
        options={"threads": threads},
        batches=batches,
        inputs=inputs,
        processes=processes,
        commands=_commands(arms, processes),
        seed=seed,
    )
    measured = api.bench(job, Plan(seconds=seconds, rounds=rounds, warmup_seconds=warmup), alpha=alpha, folder=out)
    if out is not None:
        io.write(out / "measurement.json", measured)
    click.echo(_rendered(measured, style), nl=False)


def _commands(arms: tuple[str, ...], processes: bool) -> dict[str, list[str]]:
    import shlex

    if arms and not processes:
        raise click.UsageError("--arm needs --processes")
    found = {}
    for text in arms:
        name, equals, words = text.partition("=")
        if not name or not equals or not words.strip():
            raise click.UsageError(f"--arm takes NAME=COMMAND, not {text!r}")
        found[name] = shlex.split(words)
    return found


def _rendered(measured: object, style: str) -> str:
    from pipeline.cli.width import terminal_width
    from pipeline.records import io
    from pipeline.records.measurement import Measurement
    from pipeline.report import bench_text

    assert isinstance(measured, Measurement)
    if style == "json":
        return io.encode(measured).decode()
    return bench_text.render_md(measured) if style == "md" else bench_text.render(measured, terminal_width())
