"""Facts in which two builds or two runs differ: they come before any layer, for they may explain all of them."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.records.difference import Fact
from pipeline.records.run import Run
from pipeline.records.tactics import Build


def build_facts(build: Build) -> dict[str, str]:
    """What a build's log says of where and how it was built."""
    found: dict[str, str | None] = {
        "TensorRT": build.tensorrt,
        "result": build.result,
        "sparsity": build.sparsity,
        "typing": build.typing,
        "precision": "+".join(build.precision) or None,
        "log level seen": build.log_level_seen,
    }
    for group, facts in (("machine", build.machine), ("builder", build.builder), ("timing cache", build.timing_cache)):
        found |= {f"{group}: {name}": value for name, value in facts.items()}
    for profile in build.profiles:
        for name, shape in profile.inputs.items():
            found[f"profile {profile.index}: {name}"] = f"min {shape.min} opt {shape.opt} max {shape.max}"
    return {name: value for name, value in found.items() if value is not None}


def run_facts(run: Run) -> dict[str, str]:
    """What a run's record says of the machine, the packages and the recipe."""
    made = run.provenance
    found: dict[str, str | None] = {
        "sparsegate": made.sparsegate,
        "python": made.python,
        "os": made.os,
        "cpu": made.cpu,
        "cores": str(made.cores),
        "cuda": made.cuda,
        "TensorRT": made.tensorrt,
        "git commit": made.git_commit,
        "seed": None if made.seed is None else str(made.seed),
        "recipe digest": run.recipe_digest[:12],
    }
    found |= {f"package {name}": version for name, version in made.packages.items()}
    for number, gpu in enumerate(made.gpus):
        found |= {f"gpu {number} {name}": value for name, value in gpu.items() if name != "uuid"}
    found |= {f"recipe: {name}": value for name, value in _flat(run.sections)}
    return {name: value for name, value in found.items() if value is not None}


def _flat(section: Mapping[str, object], above: str = "") -> list[tuple[str, str]]:
    """A recipe's keys with dots, and their values as text."""
    found = []
    for key, value in section.items():
        name = f"{above}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, Mapping) and value else [(name, str(value))]
    return found


def differing(a: Mapping[str, str], b: Mapping[str, str]) -> list[Fact]:
    """Facts that differ, or that only one side states."""
    return [Fact(name=name, a=a.get(name), b=b.get(name)) for name in dict.fromkeys((*a, *b)) if a.get(name) != b.get(name)]


def differing_facts(a: Build, b: Build) -> list[Fact]:
    """Facts in which two builds differ."""
    return differing(build_facts(a), build_facts(b))
