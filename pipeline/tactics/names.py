"""Layer names as TensorRT lists them: split at bracket depth 0, fused parts, profile suffix."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator

import msgspec

_OPEN = "([{"
_CLOSE = ")]}"
_MARKS = re.compile(r"[()\[\]{}]|, ?|\.\.\.")
_PREFIX = re.compile(
    r"\d\d:\d\d:\d\d|\[TensorRT\] |\[TRT\]|\[[VXIWEF]\] |\.cc:\d+\]|\[Torch-TensorRT|:onnxruntime:|\b(?:DEBUG|INFO|WARNING|ERROR): \["
)
_BETWEEN = re.compile(r"Tactic: (?:0x|-?\d)|Layer\(\w+\): |^Name: |, LayerType: ")
_WITHIN = re.compile(r"\(Cask\w+|\w: ")
_SENTENCE = re.compile(r"\(Sparsity\)|(?<![^ ])[a-z]+ [a-z]+ [a-z]+| in [\d.]+ sec|\] -> ")
"""Of a message that was torn into the line."""
_OPEN_END = (" +", " |", " ||", "/", ".", "(", "[", ",")
"""No name ends so: more was to follow."""
_RULES = tuple(character * 9 for character in "*-=>")
CUT = ("...", "…")
_LETTER = re.compile(r"\w")
_PROFILE = re.compile(r" \[profile (\d+)\]$")


class Split(msgspec.Struct, frozen=True):
    """Names of one list in order, and what stands at its end without being a whole name."""

    names: list[str]
    rest: str | None = None
    """The tail from the first bracket that never closes, or from a `...` cut: text, not names."""
    touches_end: bool = False
    """Whether the last name runs up to the end of the text: if the text was cut there, so was the name."""
    unopened: list[str] = []
    """Pieces with a bracket that closes none: the remains of a name whose beginning is damaged."""


def split_list(text: str) -> Split:
    """Split the text behind a summary's colon into names.

    `, ` separates only where no bracket is open: `PWN(PWN(x), PWN(y))` is one name. New wording's `Chose` puts a
    separator before its first name too; empty pieces are dropped.
    """
    names: list[str] = []
    unopened: list[str] = []
    depth = start = 0
    into = names
    for mark in _MARKS.finditer(text):
        token = mark.group()
        if token in _OPEN:
            depth += 1
        elif token in _CLOSE:
            into = into if depth else unopened
            depth = max(0, depth - 1)
        elif token == "...":
            if depth == 0:
                return Split([name for name in names if name], text[start:].strip(), unopened=unopened)
        elif depth == 0 and (len(token) == 2 or mark.end() == len(text)):
            into.append(text[start : mark.start()].strip())
            into, start = names, mark.end()
    tail = text[start:].strip()
    whole = bool(tail) and not depth
    if whole:
        into.append(tail)
    touches_end = whole and into is names
    return Split([name for name in names if name], tail if depth else None, touches_end=touches_end, unopened=unopened)


def open_brackets(text: str) -> int:
    """How many brackets of a text are never closed."""
    depth = 0
    for mark in _MARKS.finditer(text):
        token = mark.group()
        depth = depth + 1 if token in _OPEN else max(0, depth - 1) if token in _CLOSE else depth
    return depth


def unique(names: list[str]) -> list[str]:
    """The names in order of first appearance."""
    return list(dict.fromkeys(names))


def parts(name: str) -> list[str]:
    """The horizontally fused parts of a layer: `A || B` counts as two in TensorRT's numbers."""
    return split_depth0(name, " || ")


def split_depth0(text: str, separator: str) -> list[str]:
    """Split at a separator where no bracket is open."""
    if separator not in text:
        return [text]
    pieces, depth, start, i = [], 0, 0, 0
    while i < len(text):
        char = text[i]
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth = max(0, depth - 1)
        elif depth == 0 and text.startswith(separator, i):
            pieces.append(text[start:i])
            i += len(separator)
            start = i
            continue
        i += 1
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if piece.strip()]


def leaves(name: str) -> list[str]:
    """Every operator that a fused name speaks of: `a || b + PWN(PWN(c), d)` gives a, b, c, d."""
    found: list[str] = []
    stack = [profile_of(name)[0]]
    while stack:
        text = stack.pop(0)
        pieces = [piece for part in split_depth0(text, " || ") for piece in split_depth0(part, " + ")]
        if len(pieces) == 1 and (inner := re.fullmatch(r"PWN\((.*)\)|\{?ForeignNode\[(.*)\]\}?", pieces[0])):
            body = inner.group(1) if inner.group(1) is not None else inner.group(2)
            pieces = split_depth0(body, ", ") if inner.group(1) is not None else body.split("...")
            stack = pieces + stack
        elif len(pieces) == 1:
            found.append(pieces[0])
        else:
            stack = pieces + stack
    return found


def profile_of(name: str) -> tuple[str, int | None]:
    """The name without TensorRT's ` [profile N]` suffix, and N."""
    match = _PROFILE.search(name) if name.endswith("]") else None
    return (name[: match.start()], int(match.group(1))) if match else (name, None)


def is_damaged(name: str) -> bool:
    """Whether a name holds what no layer's or kernel's name has.

    That is U+FFFD (invalid UTF-8), NUL, the prefix of a log message, what stands between the names of two layers whose lines
    were torn into one, words of a message, no letter, a ruled line of the timing tables, an operator without its right side, or dots
    that stand for what was left out (only a region's name has its own).
    """
    if is_torn(name) or name.endswith(_OPEN_END) or not _LETTER.search(name):
        return True
    if ("..." in name or "…" in name) and name.count("...") + 2 * name.count("…") > name.count("ForeignNode["):
        return True
    return (" " in name and _SENTENCE.search(name) is not None) or ((":" in name or "(Cask" in name) and _WITHIN.search(name) is not None)


def is_torn(text: str) -> bool:
    """Whether a text holds what is in no message: invalid characters, or what only stands where two lines were torn into one."""
    if "\ufffd" in text or "\0" in text or text.endswith(CUT) or any(rule in text for rule in _RULES):
        return True
    return bool((":" in text and _BETWEEN.search(text)) or ((text.count(":") > 1 or "[" in text) and _PREFIX.search(text)))


class Known:
    """Names of layers, in which beginnings are found."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = frozenset(names)
        self._sorted = sorted(self.names)

    def longer(self, name: str) -> Iterator[str]:
        """The names that begin with this one and go on."""
        for at in range(bisect_right(self._sorted, name), len(self._sorted)):
            if not self._sorted[at].startswith(name):
                return
            yield self._sorted[at]

    def is_beginning(self, name: str) -> bool:
        """Whether one of the names begins with this one and goes on."""
        return next(self.longer(name), None) is not None
