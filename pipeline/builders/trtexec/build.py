"""One engine built by trtexec, on whatever machine, and fetched."""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from pipeline.builders import profiles, versions
from pipeline.builders.artifacts import clear, engine_stem
from pipeline.builders.base import ArmRequest
from pipeline.builders.model_io import copy_whole, dynamic_inputs, input_types, inputs_of
from pipeline.builders.options import TensorRTOptions
from pipeline.builders.tensorrt import cache
from pipeline.builders.tensorrt.engines import recorded_options
from pipeline.builders.trtexec import flags, process
from pipeline.builders.trtexec.script import write_script
from pipeline.builders.trtexec.target import IN_BUS_ORDER, Target
from pipeline.errors import StageError
from pipeline.progress import Progress
from pipeline.records.artifact import Artifact
from pipeline.records.engines import Engine
from pipeline.records.io import sha256_file


class Job:
    """One build: where its files are, here and on the target."""

    def __init__(self, target: Target, options: TensorRTOptions, request: ArmRequest, folder: Path, scratch: Path) -> None:
        self.target = target
        self.options = options
        self.request = request
        self.folder = folder.resolve()
        self.stem = engine_stem(request)
        self._scratch = scratch
        self._tag = uuid.uuid4().hex[:8]

    def here(self, suffix: str) -> Path:
        """A file of the engine's folder."""
        return self.folder / f"{self.stem}{suffix}"

    def there(self, suffix: str) -> str:
        """The same file on the target."""
        return str(self.here(suffix)) if self.target.local else self.target.path(f"{self._tag}{suffix}")

    def model(self) -> str:
        """The ONNX file on the target; over a prefix it travels as one file, under a name of ours."""
        if self.target.local:
            return str(self.request.onnx.resolve())
        whole = self._scratch / "model.onnx"
        copy_whole(self.request.onnx, whole)
        return self.target.push(whole, f"{sha256_file(whole)[:16]}.onnx")

    def cache_flags(self, version: versions.Version) -> tuple[list[str], str]:
        """Flags of the timing cache, and the sha256 of what it starts from."""
        if self.options.cache_mode == "off":
            return flags.say("no timing cache", version), ""
        source = cache.source_of(self.options, self.stem)
        said = flags.say("timing cache", version, self.there(".cache"))
        if self.options.cache_mode == "replay" and versions.has("error on cache miss", version):
            said += flags.say("error on cache miss", version)
        if source is None:
            return said, ""
        # trtexec writes the file back at the end: it gets a copy, and a replay's copy is thrown away
        if self.target.local:
            shutil.copyfile(source, self.here(".cache"))
        else:
            self.target.push(source, f"{self._tag}.cache")
        return said, sha256_file(source)

    def fetch(self) -> None:
        """Bring plan, layer information and timing cache here; the plan stays on the target under its digest, to be timed.

        Raises:
            StageError: trtexec said PASSED and there is no plan.
        """
        for suffix in (".plan", ".layers.json", ".cache"):
            self.target.pull(self.there(suffix), self.here(suffix))
        plan = self.here(".plan")
        if not plan.is_file() or plan.stat().st_size == 0:
            raise StageError("trtexec says PASSED, but there is no plan", where=str(self.here(".log")), hint="is the target's disk full?")
        if self.options.cache_mode == "replay":
            self.here(".cache").unlink(missing_ok=True)

    def tidy(self) -> None:
        """Leave nothing of the build on a target reached over a prefix, but the plan under its digest."""
        if self.target.local:
            return
        if self.here(".plan").is_file():
            kept = self.target.path(plan_name(sha256_file(self.here(".plan"))))
            self.target.run(["mv", "-f", "--", self.there(".plan"), kept])
        self.target.remove([self.there(suffix) for suffix in (".plan", ".layers.json", ".cache", ".pid")])


def plan_name(digest: str) -> str:
    """Name of a plan on the target."""
    return f"{digest[:16]}.plan"


def build_engine(
    target: Target, options: TensorRTOptions, request: ArmRequest, folder: Path, described: dict[str, str], progress: Progress
) -> Engine:
    """Build one engine with trtexec.

    Raises:
        InputError: profiles or options that this version cannot follow.
        StageError: trtexec failed, or left no plan.
    """
    version = versions.parse_version(described["tensorrt"])
    versions.check(options, request.precision, version)
    profiles.check_profiles(request.profiles, inputs_of(request.onnx))
    folder.mkdir(parents=True, exist_ok=True)
    clear(folder, engine_stem(request))
    with tempfile.TemporaryDirectory(prefix="sparsegate-") as scratch:
        job = Job(target, options, request, folder, Path(scratch))
        said, before = job.cache_flags(version)
        command = [
            *IN_BUS_ORDER,
            options.trtexec,
            *flags.say("model", version, job.model()),
            *flags.say("save plan", version, job.there(".plan")),
            *flags.say("layer information", version, job.there(".layers.json")),
            *flags.build_flags(
                options,
                version,
                sparse=request.sparse_weights,
                precision=options.allowed(request.precision),
                profiles=_dynamic(request),
            ),
            *said,
        ]
        write_script(job.here(".reproduce.sh"), engine=job.stem, version=described["tensorrt"], prefix=target.prefix, command=command)
        started = time.perf_counter()
        try:
            finished = process.run(
                target,
                command,
                job.here(".log"),
                timeout_s=options.timeout_s,
                pid_name=Path(job.there(".pid")).name,
                heard=lambda elapsed, line: progress(f"build {job.stem}", elapsed, None, f"{elapsed:.0f} s: {line}"),
            )
            job.fetch()
        finally:
            job.tidy()
    return _record(job, finished, before, described, time.perf_counter() - started)


def _dynamic(request: ArmRequest) -> list[profiles.ProfileShapes]:
    """The profiles of the dynamic inputs alone: trtexec refuses shapes for an input whose shape is fixed."""
    names = dynamic_inputs(request.onnx)
    kept = [{name: shapes for name, shapes in profile.items() if name in names} for profile in request.profiles]
    return [profile for profile in kept if profile]


def _record(job: Job, finished: process.Finished, before: str, described: dict[str, str], seconds: float) -> Engine:
    request, kept = job.request, job.here(".cache")
    notes = finished.notes()
    if job.options.cache_mode == "replay" and not versions.has("error on cache miss", versions.parse_version(finished.version)):
        notes.append(cache.NO_MISS_ERROR)
    if job.options.cache_mode == "replay" and (source := cache.source_of(job.options, job.stem)):
        notes.append(cache.compare_tactics(source.with_name(f"{job.stem}.layers.json"), job.here(".layers.json")))
    return Engine(
        arm=request.arm,
        repeat=request.repeat,
        onnx_arm=request.onnx_arm,
        plan=Artifact.of(job.here(".plan"), relative_to=job.folder),
        log=Artifact.of(job.here(".log"), relative_to=job.folder),
        layer_info=_artifact(job, ".layers.json"),
        timing_cache=_artifact(job, ".cache"),
        options={
            **recorded_options(job.options, request),
            "timing_cache": job.options.cache_mode,
            "command": _without_files(finished.command),
            **({"timing_cache_sha256_before": before} if before else {}),
            **({"timing_cache_sha256_after": sha256_file(kept)} if kept.is_file() else {}),
        },
        built_with={**described, "tensorrt": finished.version},
        profiles=request.profiles,
        inputs=input_types(request.onnx),
        dynamic_inputs=dynamic_inputs(request.onnx),
        notes=notes,
        simulated=finished.simulated,
        seconds=seconds,
    )


FILE_FLAGS = ("--onnx=", "--saveEngine=", "--exportLayerInfo=", "--timingCacheFile=")


def _without_files(command: Sequence[str]) -> list[str]:
    """The flags that shaped the plan: paths differ from run to run and are in reproduce.sh."""
    return [word for word in command if word.startswith("-") and not word.startswith(FILE_FLAGS)]


def _artifact(job: Job, suffix: str) -> Artifact | None:
    file = job.here(suffix)
    return Artifact.of(file, relative_to=job.folder) if file.is_file() else None
