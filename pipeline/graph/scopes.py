"""What is known of the names of one graph, subgraph or function body while it is walked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pipeline.graph.values import NotFoldedError, Value

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto


MOST_STEPS = 32
"""Operators on a constant's way that are named."""


@dataclass(frozen=True)
class Quantized:
    """The quantization that a constant went through on its way."""

    dtype: str
    zero_point: bool
    """Whether some zero point is not zero."""
    layout: str
    """`tensor`, `channel` or `block`."""
    custom: bool = False
    """By TensorRT's own nodes (TRT_FP8*) instead of the standard's."""


@dataclass(frozen=True, eq=False)
class Const:
    """A constant: where its values come from, through which operators, and the values themselves."""

    load: Callable[[], Value]
    name: str | None
    """The initializer or Constant output that holds the weight itself; None where it is computed from several."""
    path: tuple[str, ...] = ()
    """Operators that it went through."""
    quantized: Quantized | None = None
    before: Value | None = None
    """The values before QuantizeLinear, moved like the rest."""
    sparse: bool = False
    """Stored as a sparse tensor."""
    computed: bool = False
    """Computed from stored tensors as a whole: its elements no longer lie in one of them."""
    trouble: str = ""
    """Why the values cannot be had, though they are constant."""

    def through(self, op: str, value: Value, **changes: object) -> Const:
        """This constant behind one more operator."""
        path = (*self.path, op) if len(self.path) < MOST_STEPS else (*self.path[:MOST_STEPS], "...")
        return replace(self, load=lambda: value, path=path, **changes)  # type: ignore[arg-type]


@dataclass
class Scope:
    """Names of one graph, with those of the graphs around it."""

    path: str = ""
    parent: Scope | None = None
    consts: dict[str, Const] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    """Name -> name that identifies the same data in the whole model."""
    attributes: dict[str, AttributeProto] = field(default_factory=dict)
    """Attributes of the function call that this scope is the body of."""
    opsets: dict[str, int] = field(default_factory=dict)
    computed: set[str] = field(default_factory=set)
    """Names that nodes of this graph make."""
    readers: dict[str, list[NodeProto]] = field(default_factory=dict)
    """Nodes of this graph by the names that they read."""

    def const(self, name: str) -> Const | None:
        """The constant of a name, in this graph or one around it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.consts:
                return scope.consts[name]
            if name in scope.aliases:  # produced here by something that is no constant
                return None
            scope = scope.parent
        return None

    def identity(self, name: str) -> str:
        """What identifies the data behind a name, over scopes, Identity nodes and function calls."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.aliases:
                return scope.aliases[name]
            scope = scope.parent
        return f"{self.path}:{name}"

    def computes(self, name: str) -> bool:
        """Whether a node makes the name, in this graph or one around it, and not a caller or loop."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.aliases:
                return name in scope.computed
            scope = scope.parent
        return False

    def define(self, name: str, const: Const | None = None, alias: str | None = None) -> None:
        """Record what a node or graph produces."""
        if not name:
            return
        self.aliases[name] = alias or f"{self.path}:{name}"
        if const is not None:
            self.consts[name] = const
        else:
            self.consts.pop(name, None)


@dataclass(frozen=True)
class Call:
    """One node with the constants among its inputs."""

    node: NodeProto
    scope: Scope
    inputs: tuple[Const | None, ...]

    def attribute(self, name: str) -> AttributeProto | None:
        """An attribute, also one that the function's caller gives."""
        for found in self.node.attribute:
            if found.name == name:
                return self.scope.attributes.get(found.ref_attr_name) if found.ref_attr_name else found
        return None

    def number(self, name: str, default: int) -> int:
        """An integer attribute."""
        found = self.attribute(name)
        return default if found is None else int(found.i)

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, None where the attribute is not there."""
        found = self.attribute(name)
        return None if found is None else tuple(found.ints)

    def given(self, position: int) -> bool:
        """Whether the node has this input at all."""
        return position < len(self.node.input) and bool(self.node.input[position])

    def first(self) -> Const:
        """The first input, which must be constant.

        Raises:
            NotFoldedError: it is not.
        """
        if not self.inputs or self.inputs[0] is None:
            raise NotFoldedError("its first input is not constant")
        return self.inputs[0]

    def value(self, position: int) -> Value | None:
        """The values of a constant input; None where it is not given or not constant."""
        const = self.inputs[position] if position < len(self.inputs) else None
        return None if const is None else const.load()

    @property
    def opset(self) -> int:
        """Version of the node's operator set."""
        return self.scope.opsets.get(self.node.domain, 1)


def node_name(node: NodeProto) -> str:
    """The node's name; where the file leaves it empty, its first output's."""
    return node.name or next((name for name in node.output if name), node.op_type)
