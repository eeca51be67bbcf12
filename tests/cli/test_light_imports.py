"""Light commands import nothing heavy: seen from sys.modules of a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"torch", "onnx", "sklearn", "modelopt", "pycuda", "scipy", "onnxruntime"}
ROOT = Path(__file__).resolve().parents[2]

PROBE = """
import json, sys
{code}
print(json.dumps(sorted(set(sys.modules))))
"""
COMMAND = """
from click.testing import CliRunner
import importlib
from pipeline.cli import group
result = CliRunner().invoke(group, {words!r})
assert result.exit_code in (0, 1, 3), (result.output, result.exception)
"""


def modules_after(code: str, cwd: Path = ROOT) -> set[str]:
    done = subprocess.run([sys.executable, "-c", PROBE.format(code=code)], capture_output=True, text=True, cwd=cwd, env=None, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def heavy(code: str) -> set[str]:
    return modules_after(code) & HEAVY


@pytest.mark.parametrize(
    "code",
    [
        "import pipeline",
        COMMAND.format(words=["--help"]),
        *(f"import pipeline.stages.{name}" for name in ("train", "freeze", "export", "build", "tactics", "measure", "gate")),
        "import pipeline.api, pipeline.run, pipeline.run.chain, pipeline.report, pipeline.verdict, pipeline.builders",
        "import pipeline.sources, pipeline.sparsity, pipeline.graph, pipeline.training, pipeline.quality, pipeline.latency",
    ],
)
def test_importing_the_house_is_light(code):
    assert heavy(code) == set()


def test_help_imports_no_numpy_pydantic_or_rich():
    assert not modules_after(COMMAND.format(words=["--help"])) & {"numpy", "pydantic", "rich", "ruamel", "jinja2"}


KEYS = """
from pathlib import Path
from pipeline.recipe import load_recipe
from pipeline.run.chain import ORDER, stage_module
recipe = load_recipe("recipes/quickstart.yaml")
for name in ORDER:
    assert stage_module(name).key(recipe.sections, recipe.base) is not None
"""


def test_every_stages_key_is_light():
    assert heavy(KEYS) == set()


@pytest.mark.parametrize("words", [["report"], ["gate"], ["explain"], ["runs", "list"]], ids=" ".join)
def test_asking_a_run_is_light(words, quickstart_run):
    folder = str(quickstart_run.folder)
    asked = {"explain": ["explain", folder, "widen.0"], "runs list": ["runs", "list", "--workspace", str(quickstart_run.workspace)]}
    assert heavy(COMMAND.format(words=asked.get(" ".join(words), [*words, folder]))) == set()


def test_reading_a_log_imports_no_numpy(tmp_path):
    log = ROOT / "tests" / "data" / "tactics" / "trt86_verbose_dense_won.log"
    assert not modules_after(COMMAND.format(words=["tactics", str(log)])) & (HEAVY | {"numpy", "pydantic", "rich"})


CACHED = """
from pipeline.run import run
evidence = run({recipe!r}, overrides={overrides!r}, workspace={workspace!r})
assert {{stage.status for stage in evidence.run.stages}} == {{"cached"}}
"""


def test_a_cached_run_imports_neither_torch_nor_sklearn_nor_modelopt(quickstart_run, tmp_path):
    workspace = quickstart_run.copy(tmp_path / "workspace")
    code = CACHED.format(recipe=str(quickstart_run.recipe), overrides=quickstart_run.overrides, workspace=str(workspace))
    assert heavy(code) == set()
