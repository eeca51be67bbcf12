"""The shell completes commands, options and runs, as docs/reports.md says how to switch on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def complete(cwd, *words):
    env = {
        **os.environ,
        "_SPARSEGATE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("sparsegate", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run([sys.executable, "-m", "pipeline"], capture_output=True, text=True, env=env, cwd=cwd)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "wanted"), [(("re",), "report"), (("report", "--fo"), "--format"), (("report", "demo/"), "demo/1"), (("explain", ""), "demo")]
)
def test_words_are_completed(tmp_path, words, wanted):
    (tmp_path / "logs" / "demo" / "1").mkdir(parents=True)
    (tmp_path / "logs" / "demo" / "1" / "run.json").write_text("{}")
    assert wanted in complete(tmp_path, *words)
