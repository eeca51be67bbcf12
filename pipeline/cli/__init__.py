"""The command line: one module per command, imported when it is called."""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from pipeline import __version__
from pipeline.errors import ExitCode, SparsegateError

COMMANDS: dict[str, str] = {
    "run": "Run a recipe: train, freeze, export, build, read tactics, measure, gate.",
    "validate": "Is this recipe right, and can this machine run it?",
    "schema": "Print the JSON Schema of a recipe or record.",
    "check": "Is each ONNX weight 2:4 where its operator reads it, and will TensorRT find it eligible?",
    "prune": "Prune an ONNX model 2:4 by magnitude on the deployed axes (the probe).",
    "tactics": "Which layers were eligible, timed, selected for sparse tactics, and why not?",
    "diff": "What changed between two logs, layer-info files, tactic reports or runs?",
    "bench": "Interleaved latency of engines or ONNX files.",
    "gate": "Judge a run again, from its records.",
    "report": "What a run found: the ladder per layer, the verdict, what to do next.",
    "explain": "One layer's whole story in a run.",
    "runs": "List runs, or remove outputs that no run needs.",
    "doctor": "What could each backend do on this machine?",
}
"""Command -> one line of help. The module is `pipeline.cli.<command>`, its click command `command`."""
CLOSED_PIPE = 128 + signal.SIGPIPE
"""What a shell calls a command that wrote into a closed pipe: no verdict was read."""


class ClosedPipeError(Exception):
    """Nobody reads the output any more."""


@contextmanager
def _own_name_for_a_closed_pipe() -> Iterator[None]:
    """Click itself ends with 1 on a closed pipe, which would read as a rule that fails."""
    try:
        yield
    except BrokenPipeError:
        raise ClosedPipeError from None


class LazyGroup(click.Group):
    """Lists its commands without importing them."""

    def make_context(self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any) -> click.Context:
        """As click's; `--help` writes in here."""
        with _own_name_for_a_closed_pipe():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """As click's."""
        with _own_name_for_a_closed_pipe():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"pipeline.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands from `COMMANDS` alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest command for a mistyped one."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, n=1)
            ctx.fail(f"no such command {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="sparsegate")
@click.option("--debug", is_flag=True, help="Show the traceback of an error (anywhere on the line).")
def group(debug: bool) -> None:
    """2:4 sparsity for TensorRT: from masks to a release decision.

    Exit codes: 0 pass, 1 a rule fails, 2 bad input or usage, 3 undecided, 4 a stage failed.
    """


def main(argv: list[str] | None = None) -> Any:
    """Run the command line and exit with the code that DESIGN names for what happened."""
    args = sys.argv[1:] if argv is None else list(argv)
    if sys.stdout is None:  # closed by whoever started this: the next file that is opened would take its place
        click.echo("sparsegate: standard output is closed\n  next: give it a file, such as > report.txt, or > /dev/null", err=True)
        sys.exit(int(ExitCode.USAGE))
    _write_whatever_the_encoding()
    debug = "--debug" in args
    code = _run([word for word in args if word != "--debug"], debug)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = CLOSED_PIPE
    if code == CLOSED_PIPE:  # what is still buffered has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _run(args: list[str], debug: bool) -> int:
    """The exit code of a command; its errors are printed, with `--debug` after their traceback."""
    try:
        code = group.main(args=args, prog_name="sparsegate", standalone_mode=False)
        return code if isinstance(code, int) else int(ExitCode.PASS)
    except ClosedPipeError:
        return CLOSED_PIPE
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(ExitCode.PASS)
    except click.ClickException as error:
        error.show()
        return int(ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("sparsegate: stopped", err=True)
        return 128 + signal.SIGINT
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets a message and a code
        if debug:
            from traceback import format_exc

            click.echo(format_exc(), err=True, nl=False)
        click.echo(f"sparsegate: {_said(error)}", err=True)
        return int(error.exit_code if isinstance(error, SparsegateError) else ExitCode.STAGE)


def _write_whatever_the_encoding() -> None:
    """Names of layers are any Unicode; what an output's encoding lacks is escaped as JSON escapes it."""
    codecs.register_error("sparsegate.escape", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="sparsegate.escape")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """`backslashreplace` in the form of JSON: UTF-16 code units of four digits."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


def _said(error: Exception) -> str:
    if isinstance(error, SparsegateError):
        from pipeline.report.words import safe

        return "\n".join(map(safe, str(error).split("\n")))  # what it quotes of a file must not steer the terminal
    if isinstance(error, OSError) and error.strerror:  # what the system refuses outside the stages, such as a report on a full disk
        from pipeline.paths import refused

        return str(refused(error, "the command stopped"))
    return f"{type(error).__name__}: {error}\n  next: this is a fault of sparsegate; the same command with --debug shows where"
