"""The lines of the timing tables: each function takes one form of message into the tables of the build at hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.tactics.builds import Message, kernel_name
from pipeline.tactics.combinations import IGNORED, NONE
from pipeline.tactics.names import CUT, is_damaged
from pipeline.tactics.tables import REFORMAT

if TYPE_CHECKING:
    from pipeline.tactics.streams import Stream


def costs(stream: Stream, match: re.Match[str], message: Message) -> None:
    tables = stream.tuning()
    tables.costs(stream.layer_number(match["layer"].strip(), message))


def combination(stream: Stream, match: re.Match[str], message: Message) -> None:
    tables = stream.tuning()
    tables.combination(tables.formats.number(match["format"]), message.line)


def combination_cut(stream: Stream, match: re.Match[str], message: Message) -> None:
    """Its formats are not known, but those of the last one end here."""
    stream.tuning().combination(NONE, message.line)


def gap(stream: Stream, match: re.Match[str], message: Message) -> None:
    """Somebody left lines out."""
    stream.build.tables.gap(message.line)


def reformat(stream: Stream, match: re.Match[str], message: Message) -> None:
    stream.tuning().reformat()


def runner(stream: Stream, match: re.Match[str], message: Message) -> None:
    tables = stream.tuning()
    layer, runner = match["layer"], match["runner"]
    ignored = REFORMAT.match(layer) or REFORMAT.match(runner)
    if ignored:
        tables.timing_runner(IGNORED, 0, message.line)
    else:
        tables.timing_runner(stream.layer_number(layer, message), tables.runners.number(runner), message.line)


def runner_cut(stream: Stream, match: re.Match[str], message: Message) -> None:
    """What follows is of some other layer than what stands before."""
    tables = stream.tuning()
    tables.timing_runner(stream.layer_number(message.text[match.end() :] + CUT[0], message), tables.runners.number(""), message.line)
    tables.doubt()


def tactic_named(stream: Stream, match: re.Match[str], message: Message) -> None:
    _timed(stream, kernel_name(match["name"]), match, message)


def tactic(stream: Stream, match: re.Match[str], message: Message) -> None:
    _timed(stream, None, match, message)


def _timed(stream: Stream, name: str | None, match: re.Match[str], message: Message) -> None:
    tables = stream.tuning()
    if not message.whole:  # digits of the time may be missing
        tables.doubt()
    else:
        tables.timed(name, match["id"].lower(), float(match["ms"]), message.line)


def tactic_skipped(stream: Stream, match: re.Match[str], message: Message) -> None:
    stream.tuning().skip()


def set_name(stream: Stream, match: re.Match[str], message: Message) -> None:
    tables, layer = stream.tuning(), match["layer"]
    if not tables.nameless and tables.layers.numbers.get(layer) != tables.at[0]:
        tables.named(tables.layers.numbers.get(layer, IGNORED))
    if is_damaged(layer):
        tables.doubt()
    elif message.whole and (name := kernel_name(match["name"])):
        tables.set_name(name, match["id"].lower() if match["id"] else None)


def fastest(stream: Stream, match: re.Match[str], message: Message) -> None:
    """It begins with a name: without a prefix before it, nothing tells whether the name is whole."""
    tables, layer = stream.build.tables, match["layer"]
    if not layer or stream.build.closed:
        return
    if layer in tables.layers.numbers or (message.severity and tables.nameless and not REFORMAT.match(layer)):
        tables.named(stream.layer_number(layer, message))
    elif not tables.nameless or REFORMAT.match(layer):
        tables.named(IGNORED)


def chose(stream: Stream, match: re.Match[str], message: Message) -> None:
    if not stream.build.closed and message.whole:
        stream.build.tables.chose(match["id"].lower(), message.line)
        stream.keep()


def skip_tactic(stream: Stream, match: re.Match[str], message: Message) -> None:
    if not stream.build.tables.skip_told:
        stream.build.tables.skip()


def device_request(stream: Stream, match: re.Match[str], message: Message) -> None:
    stream.build.tables.skip()
    stream.build.tables.skip_told = True


HANDLERS: dict[str, Callable[[Stream, re.Match[str], Message], None]] = {
    "costs": costs,
    "combination": combination,
    "combination-cut": combination_cut,
    "gap": gap,
    "reformat": reformat,
    "runner": runner,
    "runner-cut": runner_cut,
    "tactic-named": tactic_named,
    "tactic": tactic,
    "tactic-skipped": tactic_skipped,
    "set-name": set_name,
    "fastest": fastest,
    "chose": chose,
    "skip-tactic": skip_tactic,
    "device-request": device_request,
}
