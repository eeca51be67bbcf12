"""A command behind a prefix such as `[ssh, orin, docker, exec, -i, trt]`: quoted once for every shell that reads it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath

import msgspec

SSH_OPTIONS_WITH_VALUE = frozenset("BbcDEeFIiJLlmOoPpQRSWw")
"""ssh's one-letter options that take the next word as their value."""


class Hop(msgspec.Struct, frozen=True):
    """One program that runs the rest of the line."""

    words: list[str]
    shell: bool
    """It hands the rest to a shell as one string (ssh does), instead of as words (docker, podman, kubectl, sudo, env do)."""


def hops(prefix: Sequence[str]) -> list[Hop]:
    """Split a prefix into its programs, outermost first.

    Only ssh reads its command with a shell; everything before and after it passes words on as they are.
    """
    found: list[Hop] = []
    words = list(prefix)
    while words:
        start = next((index for index, word in enumerate(words) if _is_ssh(words, index)), None)
        if start is None:
            found.append(Hop(words, shell=False))
            break
        if start:
            found.append(Hop(words[:start], shell=False))
        end = _end_of_ssh(words, start)
        found.append(Hop(words[start:end], shell=True))
        words = words[end:]
    return found


def _is_ssh(words: Sequence[str], index: int) -> bool:
    """Whether a word starts an ssh command: its name is ssh, and it is not the value of an option before it."""
    return PurePath(words[index]).name == "ssh" and (index == 0 or not words[index - 1].startswith("-"))


def _end_of_ssh(words: Sequence[str], start: int) -> int:
    """Index after the host: ssh's own options come before it."""
    index = start + 1
    while index < len(words) and words[index].startswith("-") and len(words[index]) > 1:
        alone = len(words[index]) == 2 and words[index][1] in SSH_OPTIONS_WITH_VALUE
        index += 2 if alone else 1
    return min(index + 1, len(words))


def argv(prefix: Sequence[str], command: Sequence[str]) -> list[str]:
    """The words to start, such that `command` arrives at the target word by word, whatever its words hold."""
    line = list(command)
    for hop in reversed(hops(prefix)):
        line = [*hop.words, shlex.join(line)] if hop.shell else [*hop.words, *line]
    return line
