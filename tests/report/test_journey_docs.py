"""docs/journeys.md shows what the commands print today; `python tests/report/journey_docs.py` (or `make docs`) writes it again."""

from __future__ import annotations

import re

import journey_docs as docs
import pytest

BLOCKS = re.findall(r"```console\n\$ sparsegate (.*?)\n(.*?)```", docs.DOC.read_text(), flags=re.S)


def test_the_page_holds_every_journey():
    assert [command for command, _ in BLOCKS] == [command for _, command, _, _ in docs.JOURNEYS]


@pytest.fixture(scope="module")
def folder():
    with docs.workspace() as here:
        yield here


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_the_command_prints_what_the_page_shows(folder, command, shown):
    printed = [line.rstrip() for line in docs.output(command).splitlines()]
    assert printed
    if command.startswith(("report", "explain", "diff", "check dense.onnx --estimate")):
        assert [line.rstrip() for line in shown.splitlines()] == printed


def test_every_screen_says_what_to_do_next():
    for command, shown in BLOCKS:
        if not command.startswith("prune"):
            assert re.search(r"^\s*next: ", shown, flags=re.M), command
