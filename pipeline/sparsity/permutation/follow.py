"""Reading channel identity from a model's graph: `torch.export` gives a torch.fx graph of ATen operators with shapes, and
each operator has a rule in `ops`. An operator without a rule keeps all its inputs' channels in place, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn

from pipeline.errors import StageError
from pipeline.sparsity.calibration import evaluating
from pipeline.sparsity.permutation.channels import Channels, Group, Value


@dataclass(frozen=True)
class Use:
    """One multiplication by a weight."""

    weight: str
    """Name of the parameter."""
    node: str
    reduction: Group | None
    """The weight's atoms along its reduction axis; None where the operator's layout has no such axis for 2:4."""


@dataclass
class Call:
    """One operator call as a rule sees it."""

    follower: Follower
    node: fx.Node
    args: dict[str, Any]
    """By the schema's names, defaults filled in; tensors as fx nodes."""
    shape: tuple[int, ...]
    """Of the (first) result."""

    @property
    def channels(self) -> Channels:
        """Where statements are collected."""
        return self.follower.channels

    @property
    def name(self) -> str:
        """For reasons: the operator and its node."""
        return f"{_op(self.node)} ({self.node.name})"

    def value(self, name: str) -> Value:
        """The value of a tensor argument."""
        return self.follower.value(self.args[name])

    def tensors(self) -> list[Value]:
        """The values of all tensor arguments, lists flattened."""
        return [self.follower.value(node) for node in self.node.all_input_nodes if self.follower.is_tensor(node)]

    def parameter(self, name: str, view: tuple[int, ...] | None = None, dims: tuple[int, ...] = (0,)) -> Group | None:
        """The atoms of an argument that is a parameter or buffer itself; None where it is absent.

        Raises:
            NotFollowedError: the argument is computed, so that there is no tensor whose entries could be moved.
        """
        node = self.args.get(name)
        if node is None:
            return None
        target = self.follower.stored.get(node.name)
        if target is None:
            raise NotFollowedError(f"the {name} of {self.name} is computed")
        return self.channels.parameter(target, view or tuple(self.follower.shape(node)), dims)


class NotFollowedError(Exception):
    """A rule meets a case that it does not know: the caller keeps all channels in place."""


Rule = Callable[[Call], Value | list[Value]]


@dataclass
class Follower:
    """Walks the graph once."""

    rules: Mapping[str, Rule]
    channels: Channels = field(default_factory=Channels)
    values: dict[str, Value | list[Value]] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    """Graph placeholder -> name of the parameter or buffer."""
    uses: list[Use] = field(default_factory=list)

    def shape(self, node: fx.Node) -> tuple[int, ...]:
        return tuple(int(size) for size in node.meta["val"].shape)

    def is_tensor(self, node: Any) -> bool:
        return isinstance(node, fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)

    def value(self, node: fx.Node) -> Value:
        """What is known of a tensor; a parameter that is read as plain data has atoms along each of its dimensions."""
        if node.name in self.stored:
            shape = self.shape(node)
            groups = tuple(self.channels.parameter(self.stored[node.name], shape, (dim,)) for dim, size in enumerate(shape) if size > 1)
            return Value(shape, groups)
        known = self.values[node.name]
        if isinstance(known, list):
            raise NotFollowedError(f"{node.name} is a list of tensors")
        return known

    def walk(self, graph: fx.Graph) -> None:
        """Apply the rules to every node in order."""
        for node in graph.nodes:
            if node.op == "placeholder" and node.name not in self.stored and self.is_tensor(node):
                self.values[node.name] = Value(self.shape(node), why="the model's input")
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                for source in node.all_input_nodes:
                    if self.is_tensor(source):
                        self._fix(self.value(source), "the model's output")
            elif node.op == "get_attr" and self.is_tensor(node):
                self.values[node.name] = Value(self.shape(node), why="a constant")

    def _call(self, node: fx.Node) -> None:
        name = _op(node)
        if name == "getitem":
            of, index = node.args[:2]
            source = self.values.get(of.name) if isinstance(of, fx.Node) else None
            if isinstance(source, list) and isinstance(index, int):
                self.values[node.name] = source[index]
            elif self.is_tensor(node):
                self.values[node.name] = Value(self.shape(node), why="an operator that is not followed")
            return
        rule = self.rules.get(name)
        results = node.meta.get("val")
        first = results[0] if isinstance(results, (list, tuple)) and results else results
        if not isinstance(first, torch.Tensor):
            self._fix_inputs(node, f"{name} ({node.name})")
            return
        call = Call(self, node, _arguments(node), tuple(int(size) for size in first.shape))
        try:
            if rule is None:
                raise NotFollowedError(f"{call.name} is not followed")
            self.values[node.name] = rule(call)
        except NotFollowedError as error:
            self._fix_inputs(node, str(error))
            if isinstance(results, torch.Tensor):
                self.values[node.name] = Value(call.shape, why=str(error))

    def _fix_inputs(self, node: fx.Node, why: str) -> None:
        for source in node.all_input_nodes:
            if self.is_tensor(source):
                self._fix(self.value(source), why)
            else:
                known = self.values.get(source.name)
                for value in known if isinstance(known, list) else ():
                    self._fix(value, why)

    def _fix(self, value: Value, why: str) -> None:
        for group in value.groups:
            self.channels.fix(group, why)


def _op(node: fx.Node) -> str:
    """The operator's name without overload; an in-place one like its functional form, since channels keep their identity."""
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.name.partition("::")[2].rstrip("_")
    return getattr(node.target, "__name__", str(node.target))


def _arguments(node: fx.Node) -> dict[str, Any]:
    if not isinstance(node.target, torch._ops.OpOverload):
        return {str(index): value for index, value in enumerate(node.args)}
    found = {}
    for index, argument in enumerate(node.target._schema.arguments):
        if index < len(node.args):
            found[argument.name] = node.args[index]
        else:
            found[argument.name] = node.kwargs.get(argument.name, argument.default_value)
    return found


def capture(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.export.ExportedProgram:
    """The model's graph in eval mode for the given example.

    Raises:
        StageError: torch.export cannot capture it; the first line of its reason is given.
    """
    with evaluating(model), torch.no_grad():
        try:
            return torch.export.export(model, tuple(args), dict(kwargs), strict=False)
        except Exception as error:  # noqa: BLE001 (torch.export raises what the model's code raises)
            reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise StageError(
                f"the model's graph cannot be captured: {reason}",
                where="permute",
                hint="make the forward pass exportable (torch.export), or set train.masks.permute_seconds: 0",
            ) from None


def follow(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], rules: Mapping[str, Rule]) -> Follower:
    """Capture the model and collect every statement on its channels."""
    program = capture(model, args, kwargs)
    signature = program.graph_signature
    first: dict[int, str] = {}
    names = {}  # a tied parameter under its first name
    for name, tensor in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)):
        names[name] = first.setdefault(id(tensor), name)
    stored = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    follower = Follower(rules, stored={node: names[name] for node, name in stored.items()})
    follower.walk(program.graph)
    return follower
