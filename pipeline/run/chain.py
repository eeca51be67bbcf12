"""The chain: which stage follows which, what is taken from the store, and what a run leaves."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from pipeline import alive
from pipeline.commands import filled, recipe_words
from pipeline.errors import InputError, SparsegateError, StageError
from pipeline.progress import Progress, silent
from pipeline.recipe import LoadedRecipe
from pipeline.records import io
from pipeline.records.run import RECORD_FILE, Run, RunProcess, StageStatus
from pipeline.records.verdict import Verdict
from pipeline.run import provenance, workspace
from pipeline.run.causes import failure_of, refusal
from pipeline.run.store import Store, Stored, key_of
from pipeline.stages.base import Stage, Upstream, Work, read_record

ORDER = ("train", "freeze", "export", "build", "tactics", "measure", "gate")
HEAVY = frozenset({".onnx", ".data", ".safetensors", ".plan", ".engine", ".cache", ".resume"})
"""Files that a run's folder does not copy: they stay in `engines/`."""

Notify = Callable[[StageStatus], None]


def stage_module(name: str) -> Stage:
    """The module of a stage; importing it imports nothing heavy."""
    return import_module(f"pipeline.stages.{name}")


@dataclass
class Plan:
    """What one run is asked to do."""

    recipe: LoadedRecipe
    workspace: Path
    first: str | None = None
    """Stages before this one must already be stored."""
    last: str | None = None
    force: frozenset[str] = frozenset()
    command: Sequence[str] = ()
    progress: Progress = silent
    notify: Notify = lambda status: None
    stages: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        enters_at = "export" if self.recipe.sections["model"].get("onnx") else ORDER[0]
        for option, name in (("--from", self.first), ("--until", self.last), *(("--force", name) for name in sorted(self.force))):
            if name is not None and name not in ORDER:
                raise InputError(f"no stage {name!r}", where=option, hint=f"stages: {', '.join(ORDER)}")
        if self.first and self.last and ORDER.index(self.first) > ORDER.index(self.last):
            what = f"the run would stop after {self.last} before it comes to {self.first}"
            raise InputError(what, where="--from, --until", hint=f"--until {self.first} or a later stage: {', '.join(ORDER)}")
        end = ORDER.index(self.last) + 1 if self.last else len(ORDER)
        self.stages = ORDER[ORDER.index(enters_at) : end]

    @property
    def limits(self) -> list[str]:
        """`--from`, `--until` and `--force`, as words of a command line."""
        given = (("--from", self.first), ("--until", self.last), *(("--force", name) for name in sorted(self.force)))
        return [word for option, name in given if name is not None for word in (option, name)]


def execute(plan: Plan) -> Path:
    """Run the chain; returns the run's folder, whatever the verdict.

    Raises:
        SparsegateError: a stage failed; run.json says which, and the stages before it are kept.
    """
    folder = workspace.logs(plan.workspace) / plan.recipe.recipe.name
    try:
        folder = workspace.new_run(plan.workspace, plan.recipe.recipe.name)
        with alive.held(folder) as process:
            return _execute(plan, folder, process)
    except OSError as error:  # stages have errors of their own: what is left is the run's folder
        raise _unwritable(folder, error) from None


def _execute(plan: Plan, folder: Path, process: RunProcess) -> Path:
    recipe = plan.recipe
    run = Run(
        id=folder.name,
        recipe=recipe.recipe.name,
        recipe_path=str(recipe.path),
        recipe_text=recipe.text,
        recipe_digest=recipe.digest,
        sections=dict(recipe.sections),
        overrides=list(recipe.overrides),
        limits=plan.limits,
        started_in=str(Path.cwd()),
        process=process,
        started=_now(),
        provenance=provenance.collect(recipe.base, seed=recipe.recipe.seed, command=plan.command),
    )
    ledger = _Ledger(folder, run)
    store = Store(workspace.store_root(plan.workspace, run.recipe))
    done: dict[str, Stored] = {}
    try:
        for name in plan.stages:
            done[name] = _one(name, plan, store, done, ledger)
    except SparsegateError as error:
        if isinstance(error, InputError) and all(stored.cached for stored in done.values()):
            ledger.discard()  # a wrong command that did nothing leaves no run behind
            raise
        with suppress(StageError):
            ledger.finish("failed", skipped=plan.stages[len(done) + 1 :])
        raise
    except BaseException:  # Ctrl-C, SIGTERM: say so in run.json, then let it go its way
        with suppress(StageError):
            ledger.finish("stopped", skipped=plan.stages[len(done) :])
        raise
    ledger.finish(_outcome(done))
    return ledger.folder


def _one(name: str, plan: Plan, store: Store, done: dict[str, Stored], ledger: _Ledger) -> Stored:
    """Take one stage from the store, or execute it."""
    stage = stage_module(name)
    started = _now()
    key: str | None = None
    try:
        needed = {need: done[need] for need in stage.NEEDS if need in done}
        parts = key_parts(stage, plan.recipe, needed)
        key = key_of(parts)
        force = name in plan.force
        if plan.first and ORDER.index(name) < ORDER.index(plan.first) and store.find(name, key) is None:
            raise InputError(f"--from {plan.first}: the output of stage {name} is not in the store", hint="run without --from once")
        plan.progress(name, 0)
        stored = store.make(name, parts, lambda folder: _work(stage, plan, needed, folder), force=force)
        status = ledger.keep(name, stored, key, started)
    except Exception as error:
        failure = failure_of(name, error)
        if failure.hint:
            recipe = recipe_words(plan.recipe.path, plan.recipe.overrides, plan.workspace)
            failure.hint = filled(failure.hint, recipe=recipe, workspace=plan.workspace)
        status = StageStatus(stage=name, status="failed", key=key, started=started, ended=_now(), error=str(failure))
        with suppress(StageError):  # what stopped the stage may also keep run.json from being written: the first cause is the one to tell
            ledger.add(status)
        plan.notify(status)
        if failure is error:
            raise
        raise failure from error
    plan.notify(status)
    return stored


def key_parts(stage: Stage, recipe: LoadedRecipe, needed: dict[str, Stored]) -> dict[str, Any]:
    """Everything that decides a stage's output."""
    return {
        "stage": stage.__name__.rpartition(".")[2],
        "revision": stage.REVISION,
        "inputs": {name: stored.output.digest for name, stored in needed.items()},
        **stage.key(recipe.sections, recipe.base),
    }


def _work(stage: Stage, plan: Plan, needed: dict[str, Stored], folder: Path) -> io.Record:
    upstream = {name: Upstream(read_record(name, stored.record_bytes()), stored.folder) for name, stored in needed.items()}
    return stage.execute(Work(plan.recipe.sections, plan.recipe.base, folder, upstream, plan.progress))


def _outcome(done: dict[str, Stored]) -> str:
    if "gate" not in done:
        return "stopped"
    return str(io.decode(done["gate"].record_bytes(), Verdict).outcome)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _unwritable(folder: Path, error: OSError) -> StageError:
    return refusal(error, "cannot write the run's folder", where=folder)


class _Ledger:
    """The run's folder: run.json is written again after every stage."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.folder = folder
        self._save(run)

    def _save(self, run: Run) -> None:
        self.run = run
        try:
            try:
                io.write(self.folder / "run.json", run)
            except OSError:
                alive.make_room(self.folder)
                io.write(self.folder / "run.json", run)
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def add(self, status: StageStatus) -> StageStatus:
        """Note how a stage ended."""
        before = [one for one in self.run.stages if one.stage != status.stage]
        self._save(msgspec.structs.replace(self.run, stages=[*before, status]))
        return status

    def keep(self, name: str, stored: Stored, key: str, started: str) -> StageStatus:
        """Copy a stage's record and its light files into the run's folder."""
        record = self.folder / "records" / f"{name}.json"
        io.write_bytes(record, stored.record_bytes())
        for file in stored.output.files:
            if file.path != RECORD_FILE and Path(file.path).suffix not in HEAVY:
                target = self.folder / name / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(stored.folder / file.path, target)
        status = StageStatus(
            stage=name,
            status="cached" if stored.cached else "ok",
            key=key,
            folder=stored.folder.name,
            started=started,
            ended=_now(),
            record=f"records/{name}.json",
            artifacts={file.path: file.sha256 for file in stored.output.files},
        )
        return self.add(status)

    def discard(self) -> None:
        """Remove the run's folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self, result: str, skipped: Iterable[str] = ()) -> None:
        """Close run.json."""
        rest = [StageStatus(stage=name, status="skipped") for name in skipped]
        self._save(msgspec.structs.replace(self.run, stages=[*self.run.stages, *rest], ended=_now(), result=result))
