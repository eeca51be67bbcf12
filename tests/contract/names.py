"""Every name of TensorRT's API in our source, found by walking its syntax tree."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "pipeline" / "builders"
MODULES = {"trt", "_trt"}
"""What the library is called in our code, also as `self._trt`."""
OBJECTS = {
    "engine": "ICudaEngine",
    "_engine": "ICudaEngine",
    "context": "IExecutionContext",
    "_context": "IExecutionContext",
    "builder": "Builder",
    "config": "IBuilderConfig",
    "made": "IBuilderConfig",
    "network": "INetworkDefinition",
    "net": "INetworkDefinition",
    "parser": "OnnxParser",
    "runtime": "Runtime",
    "inspector": "EngineInspector",
    "profile": "IOptimizationProfile",
}
"""What our code calls an object of the library -> its class. Only in the files of TensorRT's path."""
FILES = (*sorted((SOURCE / "tensorrt").glob("*.py")), SOURCE / "trtexec" / "runner.py")


def api_names() -> dict[str, set[str]]:
    """Dotted name -> the files that use it."""
    found: dict[str, set[str]] = {}
    for file in FILES:
        tree = ast.parse(file.read_text())
        ours = _imported(tree) | _own_records(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and (name := _name(node, ours)) is not None:
                found.setdefault(name, set()).add(file.name)
    longest = {name for name in found if not any(other.startswith(f"{name}.") for other in found)}
    return {name: found[name] for name in sorted(longest)}


def _imported(tree: ast.AST) -> set[str]:
    return {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}


def _own_records(tree: ast.AST) -> set[str]:
    """Parameters that are annotated with a type of ours."""
    ours = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.arg)
            and isinstance(node.annotation, ast.Name | ast.Constant | ast.Subscript)
            and not _is_any(node.annotation)
        ):
            ours.add(node.arg)
    return ours


def _is_any(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "Any"


def _name(node: ast.Attribute, ours: set[str]) -> str | None:
    parts: list[str] = []
    current: ast.expr = node
    while isinstance(current, ast.Attribute):
        parts.append(current.attr)
        current = current.value
    if not isinstance(current, ast.Name):
        return None
    words = [current.id, *reversed(parts)]
    if words[0] == "self":
        words = words[1:]
    if words[0] in MODULES and len(words) > 1:
        rest = words[1:]
        dunder = next((index for index, word in enumerate(rest) if word.startswith("__")), len(rest))
        return ".".join(rest[:dunder]) or None  # what follows `__members__` is a dictionary's
    if words[0] in OBJECTS and words[0] not in ours and len(words) > 1:
        return f"{OBJECTS[words[0]]}.{words[1]}"
    return None


if __name__ == "__main__":
    for name, files in api_names().items():
        print(name, *sorted(files))
