"""The README's commands exist, its links lead somewhere, and its first words are what `make` does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from pipeline.cli import COMMANDS, group

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(page: Path) -> list[str]:
    """Lines that start with `$ ` in console blocks of a page."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.S)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def sparsegate_words(page: Path) -> list[list[str]]:
    lines = [shlex.split(line, comments=True) for line in commands(page)]
    return [words[1:] for words in lines if words and Path(words[0]).name == "sparsegate"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_shown_command_has_the_options_that_it_is_shown_with(page):
    for words in sparsegate_words(page):
        command: click.Command | None = group.get_command(click.Context(group), words[0])
        assert command is not None, words
        options = {name for parameter in _parameters(command, words) for name in (*parameter.opts, *parameter.secondary_opts)}
        for word in words[1:]:
            if word.startswith("-") and word != "-":
                assert word.partition("=")[0] in options | {"--help", "-h"}, words


def _parameters(command: click.Command, words: list[str]) -> list[click.Parameter]:
    if isinstance(command, click.Group):
        inner = command.get_command(click.Context(command), words[1])
        assert inner is not None, words
        return inner.params
    return command.params


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file(page):
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_that_is_shown_exists(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    shown = {words[1] for words in map(str.split, commands(page)) if words[0] == "make"}
    assert shown <= targets


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_says_what_it_does(name):
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.help
    assert all(parameter.help for parameter in command.params if isinstance(parameter, click.Option)), name


def test_ci_runs_the_readmes_test_command():
    assert "make test" in commands(ROOT / "README.md")
    assert re.search(r"^make test$", (ROOT / ".ci" / "run").read_text(), flags=re.M)


def test_the_selection_report_that_is_shown_is_what_the_command_prints(monkeypatch):
    from click.testing import CliRunner

    text = (ROOT / "README.md").read_text()
    shown = text[text.index("<!-- tactics:begin -->") : text.index("<!-- tactics:end -->")]
    first, *lines = shown.split("```")[1].splitlines()[1:]
    monkeypatch.chdir(ROOT)
    printed = CliRunner().invoke(group, shlex.split(first)[2:])
    assert printed.output.splitlines() == lines
