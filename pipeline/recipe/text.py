"""From a YAML text to plain values, with the line and column of every key and value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pipeline.errors import InputError
from pipeline.paths import unreadable
from pipeline.recipe.problems import Problem, RecipeError

MAX_BYTES = 1 << 20
MAX_NODES = 20_000
"""Aliases count each time they are used, so that a few lines cannot stand for millions of values."""
MAX_DEPTH = 40
MAX_INT = 2**63
PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null"))
TIMESTAMP = "tag:yaml.org,2002:timestamp"
UNREADABLE = re.compile("[\0\ud800-\udfff]")
"""What no file name and no JSON text may hold; YAML's escapes can write it."""
STR = "tag:yaml.org,2002:str"

Path_ = tuple["str | int", ...]
"""Keys and list positions from the top of a document to a value."""


@dataclass
class Document:
    """Plain values (dict, list, str, int, float, bool, None) and where each stands."""

    values: Any
    keys: dict[Path_, str] = field(default_factory=dict)
    """Place of the key that leads to a value."""
    spots: dict[Path_, str] = field(default_factory=dict)
    """Place of the value itself."""

    def where(self, path: Path_, *, key: bool = False) -> str:
        """Place of a value (or of its key), or of the nearest thing around it that has one."""
        for end in range(len(path), -1, -1):
            prefix = path[:end]
            place = (self.keys.get(prefix) or self.spots.get(prefix)) if key or end < len(path) else self.spots.get(prefix)
            if place:
                return place
        return "recipe"


def read_text(path: Path) -> str:
    """The text of a recipe file.

    Raises:
        InputError: missing, a folder, unreadable, empty, binary, or larger than a recipe can be.
    """
    where, hint = str(path), "give the path of a recipe in YAML, such as recipes/quickstart.yaml"
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error, "the recipe") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES >> 10} KiB, so not a recipe", where=where, hint=hint)
    if not data.strip():
        raise InputError("the recipe is empty", where=where, hint="`sparsegate schema recipe` lists its keys")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not a text file in UTF-8 (byte {error.start})", where=where, hint=hint) from None
    if "\0" in text:
        raise InputError("a binary file, not a recipe", where=where, hint=hint)
    return text


def parse(text: str, label: str, *, marked: bool = True) -> Document:
    """Parse one YAML document.

    Args:
        text: The document.
        label: What places are called: the file's name, or the `--set` text.
        marked: Append `:line:column` to the label.

    Raises:
        RecipeError: a syntax error, or every duplicate key and every value that a recipe cannot hold.
    """
    try:
        root = _yaml().compose(StringIO(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{label}:{mark.line + 1}:{mark.column + 1}" if mark and marked else label
        context = f" {error.context}" if error.context else ""
        raise RecipeError([Problem(place, f"not valid YAML: {error.problem}{context}")]) from None
    except RecursionError:
        raise RecipeError([Problem(label, f"nested deeper than {MAX_DEPTH} levels")]) from None
    except (YAMLError, ValueError) as error:
        raise RecipeError([Problem(label, f"not valid YAML: {str(error).splitlines()[0]}")]) from None
    if root is None:
        return Document(None, spots={(): f"{label}:1:1" if marked else label})
    walk = _Walk(label, marked)
    values = walk.value(root, (), ())
    if walk.problems:
        raise RecipeError(walk.problems)
    return Document(values, walk.keys, walk.spots)


@cache
def _yaml() -> YAML:
    return YAML(typ="safe", pure=True)


class _Walk:
    """Turns nodes into plain values and remembers where they stood."""

    def __init__(self, label: str, marked: bool) -> None:
        self.label, self.marked = label, marked
        self.problems: list[Problem] = []
        self.overflown = False
        self.keys: dict[Path_, str] = {}
        self.spots: dict[Path_, str] = {}

    def place(self, node: Node) -> str:
        mark = node.start_mark
        return f"{self.label}:{mark.line + 1}:{mark.column + 1}" if self.marked else self.label

    def problem(self, node: Node, what: str, hint: str | None = None) -> None:
        self.problems.append(Problem(self.place(node), what, hint))

    def value(self, node: Node, path: Path_, parents: tuple[int, ...]) -> Any:
        self.spots[path] = self.place(node)
        if len(self.spots) > MAX_NODES:
            if not self.overflown:
                self.problem(node, f"a recipe of more than {MAX_NODES} values")
            self.overflown = True
            return None
        if id(node) in parents:
            self.problem(node, "a value that holds itself")
            return None
        if len(parents) >= MAX_DEPTH:
            self.problem(node, f"nested deeper than {MAX_DEPTH} levels")
            return None
        if isinstance(node, MappingNode):
            return dict(self.items(node, path, (*parents, id(node))))
        if isinstance(node, SequenceNode):
            return [self.value(item, (*path, index), (*parents, id(node))) for index, item in enumerate(node.value)]
        return self.scalar(node)

    def items(self, node: MappingNode, path: Path_, parents: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
        seen: dict[str, Node] = {}
        for key, item in node.value:
            if not isinstance(key, ScalarNode) or key.tag != STR or UNREADABLE.search(key.value):
                hint = "`extends:` shares keys between recipes" if key.value == "<<" else "put it in quotes"
                self.problem(key, "this key is not plain text", hint)
            elif key.value in seen:
                first = seen[key.value].start_mark
                self.problem(key, f"the key {key.value!r} stands twice", f"first in line {first.line + 1}")
            else:
                seen[key.value] = key
                self.keys[(*path, key.value)] = self.place(key)
                yield key.value, self.value(item, (*path, key.value), parents)

    def scalar(self, node: Node) -> Any:
        if node.tag == TIMESTAMP:  # a date is text here: no key takes a date
            return node.value
        if node.tag not in PLAIN_TAGS:
            self.problem(node, f"the tag {node.tag} is not for recipes", "text, numbers, true, false and null are")
            return None
        try:
            value = _yaml().constructor.construct_object(node)
        except (YAMLError, ValueError):
            self.problem(node, f"{node.value!r} is not of the type that its tag says")
            return None
        if isinstance(value, str) and UNREADABLE.search(value):
            self.problem(node, "holds half a character (a surrogate) or a NUL")
        if isinstance(value, float) and not math.isfinite(value):
            self.problem(node, f"{node.value} is not a finite number")
        if isinstance(value, int) and not -MAX_INT <= value < MAX_INT:
            self.problem(node, f"{node.value[:20]}... is too large a number")
        return value
