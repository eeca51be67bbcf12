"""Walk a model once, in order, and see every operand of an operator that multiplies by a weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.errors import InputError
from pipeline.graph import origins
from pipeline.graph.constants import follow
from pipeline.graph.model import Model
from pipeline.graph.operators import OPERATORS, Operand, Operator
from pipeline.graph.order import in_order, reads, subgraphs
from pipeline.graph.scopes import Call, Const, Scope, node_name
from pipeline.graph.tensors import NoValuesError
from pipeline.graph.values import NotFoldedError, TooLargeError, Value

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

MOST_VISITS = 400_000
"""Nodes visited, each function body once per call: past that a file is taken for a malicious one."""
STANDARD = ("", "ai.onnx")


@dataclass(frozen=True)
class Sighting:
    """One operand of one operator, where the walk met it."""

    call: Call
    operator: Operator
    operand: Operand
    const: Const | None
    """None where the operand is not constant."""
    quantized_output: bool = False
    """Whether a QuantizeLinear reads the operator's output, a bias or activation between them allowed."""
    batch: int | None = None
    """The model's first dimension where it is fixed."""

    @property
    def data(self) -> str:
        """What identifies the data that the weight is multiplied with."""
        position = self.operand.data
        inputs = self.call.node.input
        return self.call.scope.identity(inputs[position]) if position < len(inputs) else ""


@dataclass
class Trace:
    """What a walk saw."""

    sightings: list[Sighting]
    unread: list[tuple[str, int]]
    """Initializers that no node reads, with their bytes."""
    notes: list[str]


def trace(model: Model) -> Trace:
    """Walk the main graph, its subgraphs and the functions it calls.

    Raises:
        InputError: the model has a cycle, a function that calls itself, or is malicious.
    """
    walker = _Walker(model)
    graph = model.proto.graph
    scope = Scope(opsets={_domain(entry.domain): entry.version for entry in model.proto.opset_import})
    walker.enter(graph, scope)
    walker.nodes(graph.node, scope)
    notes = [*walker.notes, *_weightless(walker.weightless)]
    return Trace(walker.sightings, walker.unread, notes)


def names(model: Model) -> list[str]:
    """Names of all nodes in order, those of subgraphs and of the bodies of called functions included; reads no weight."""
    walker = _Walker(model, look=False)
    walker.nodes(model.proto.graph.node, Scope())
    return walker.names


def _weightless(names: list[str]) -> list[str]:
    """One note for products of two computed tensors: they have no weight (attention)."""
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:3]) + (" ..." if len(names) > 3 else "")
    return [f"{len(names)} matrix products of two computed tensors have no weight and are not judged: {shown}"]


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


class _Walker:
    """Holds what the recursion over graphs and functions shares."""

    def __init__(self, model: Model, *, look: bool = True) -> None:
        self.model = model
        self.look = look
        self.where = str(model.path)
        self.functions = {(_domain(f.domain), f.name, f.overload): f for f in model.proto.functions}
        self.sightings: list[Sighting] = []
        self.unread: list[tuple[str, int]] = []
        self.names: list[str] = []
        self.notes: list[str] = []
        self.weightless: list[str] = []
        self.visits = 0
        self.calling: list[tuple[str, str, str]] = []
        self.batch = _batch(model.proto.graph)

    def enter(self, graph: GraphProto, scope: Scope) -> None:
        """Define a graph's inputs and initializers, and note those that nothing reads."""
        for entry in graph.input:
            scope.define(entry.name)
        read = {name for node in graph.node for name in reads(node)} | {entry.name for entry in graph.output}
        overridable = {entry.name for entry in graph.input}
        defaults = 0
        for tensor in graph.initializer:
            scope.define(tensor.name, origins.initializer(self.model, tensor))
            defaults += tensor.name in overridable
            if tensor.name not in read:
                self.unread.append((tensor.name, origins.size_bytes(tensor)))
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            scope.define(name, origins.sparse(self.model, sparse, name))
            if name not in read:
                self.unread.append((name, origins.size_bytes(sparse.values) + origins.size_bytes(sparse.indices)))
        if defaults and self.model.proto.ir_version >= 4:
            self.notes.append(f"{defaults} initializers are also inputs of the graph, so a caller could replace them: judged as constants")

    def nodes(self, nodes: Sequence[NodeProto], scope: Scope) -> None:
        """Visit the nodes of one graph or function body."""
        for node in nodes:
            for name in node.input:
                scope.readers.setdefault(name, []).append(node)
        for node in in_order(nodes, self.where):
            self.visits += 1
            if self.visits > MOST_VISITS:
                raise InputError(
                    f"the graph expands to more than {MOST_VISITS} nodes", where=self.where, hint="its functions call each other too often"
                )
            self.names.append(node_name(node))
            function = self.functions.get((_domain(node.domain), node.op_type, node.overload))
            if function is not None:
                self._function(node, function, scope)
                continue
            for name, graph in subgraphs(node):
                inner = Scope(
                    path=_join(scope.path, f"{node_name(node)}.{name}"), parent=scope, attributes=scope.attributes, opsets=scope.opsets
                )
                if self.look:
                    self.enter(graph, inner)
                self.nodes(graph.node, inner)
            if self.look:
                self._node(node, scope)

    def _node(self, node: NodeProto, scope: Scope) -> None:
        call = Call(node, scope, tuple(scope.const(name) if name else None for name in node.input))
        operator = OPERATORS.get(node.op_type) if node.domain in STANDARD else None
        if operator is not None:
            self._sight(call, operator)
        made = self._made(call)
        alias = scope.identity(node.input[0]) if node.op_type == "Identity" and node.input else None
        for at, name in enumerate(node.output):
            scope.define(name, made[at] if at < len(made) else None, alias)
            scope.computed.add(name)

    def _sight(self, call: Call, operator: Operator) -> None:
        found = [(operand, call.inputs[operand.position]) for operand in operator.operands if operand.position < len(call.inputs)]
        quantized = _quantized_output(call)
        constant = [Sighting(call, operator, operand, const, quantized, self.batch) for operand, const in found if const is not None]
        if not constant and len(found) > 1 and all(call.scope.computes(call.node.input[operand.position]) for operand, _ in found):
            self.weightless.append(node_name(call.node))
            return
        self.sightings += constant or [Sighting(call, operator, operand, None, quantized, self.batch) for operand, _ in found[:1]]

    def _made(self, call: Call) -> list[Const]:
        """Constants that a node makes, empty where its outputs depend on an input of the model."""
        node = call.node
        if node.op_type == "Constant" and node.domain in STANDARD:
            const = origins.constant(self.model, call)
            return [const] if const else []
        given = [const for name, const in zip(node.input, call.inputs, strict=True) if name]
        constant = [const for const in given if const is not None]
        if not given or len(constant) < len(given) or node.op_type in RANDOM or any(True for _ in subgraphs(node)):
            return []
        trouble = next((const.trouble for const in constant if const.trouble), "")
        if not trouble:
            try:
                return _follow(call)
            except (NotFoldedError, NoValuesError, TooLargeError) as error:
                trouble = str(error)
            except ValueError as error:
                trouble = f"{node.op_type} {node_name(node)!r} does not fit its inputs: {error}"
        return [replace(constant[0], load=_nothing, path=(*constant[0].path, node.op_type), trouble=trouble)] * len(node.output)

    def _function(self, node: NodeProto, function: FunctionProto, scope: Scope) -> None:
        key = (_domain(function.domain), function.name, function.overload)
        if key in self.calling:
            raise InputError(f"the function {function.name!r} calls itself", where=self.where, hint="ONNX forbids recursive functions")
        inner = Scope(
            path=_join(scope.path, f"{node_name(node)}:{function.name}"),
            attributes=_attributes(node, function, scope),
            opsets={_domain(entry.domain): entry.version for entry in function.opset_import} or scope.opsets,
        )
        for at, name in enumerate(function.input):
            outer = node.input[at] if at < len(node.input) else ""
            inner.define(name, scope.const(outer) if outer else None, scope.identity(outer) if outer else None)
        self.calling.append(key)
        self.nodes(function.node, inner)
        self.calling.pop()
        for at, name in enumerate(function.output):
            if at < len(node.output):
                scope.define(node.output[at], inner.const(name), inner.identity(name))


RANDOM = frozenset({"RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"})
"""Operators whose output is not constant though their inputs are."""


def _follow(call: Call) -> list[Const]:
    try:
        return follow(call)
    except NotFoldedError:
        from pipeline.graph.folding import SIZES, fold

        if call.node.op_type not in SIZES:
            raise
        return fold(call)


BETWEEN = frozenset({"Add", "Relu", "Clip", "Gelu", "Identity", "Reshape", "Transpose"})
"""Operators that may stand between a matrix product and its output's quantizer."""


def _quantized_output(call: Call, most: int = 4) -> bool:
    names = list(call.node.output)
    for _ in range(most):
        readers = [node for name in names for node in call.scope.readers.get(name, [])]
        if any("QuantizeLinear" in node.op_type and "Dequantize" not in node.op_type for node in readers):
            return True
        names = [name for node in readers if node.op_type in BETWEEN for name in node.output]
    return False


def _batch(graph: GraphProto) -> int | None:
    """First dimension of the first input that is no initializer; None where it is symbolic or not there."""
    held = {tensor.name for tensor in graph.initializer}
    for entry in graph.input:
        if entry.name not in held:
            dims = entry.type.tensor_type.shape.dim
            return int(dims[0].dim_value) if dims and dims[0].HasField("dim_value") else None
    return None


def _nothing() -> Value:
    raise NotFoldedError("the constant cannot be computed")


def _attributes(node: NodeProto, function: FunctionProto, scope: Scope) -> dict[str, AttributeProto]:
    """What a function body's attribute references stand for: the call's attributes over the function's defaults."""
    found = {attribute.name: attribute for attribute in function.attribute_proto}
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            found[attribute.name] = attribute
        elif attribute.ref_attr_name in scope.attributes:
            found[attribute.name] = scope.attributes[attribute.ref_attr_name]
    return found


def _join(path: str, part: str) -> str:
    return f"{path}/{part}" if path else part
