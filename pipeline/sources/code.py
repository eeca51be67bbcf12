"""The user's own Python: `path.py:callable` beside the recipe, or `package.module:callable`."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pipeline.errors import InputError, SparsegateError


def load_callable(name: str, base: Path) -> Callable[..., Any]:
    """Import the module and take the callable.

    Args:
        name: `path.py:callable` (path from `base`) or `package.module:callable`.
        base: Folder of the recipe. Modules beside a `path.py` can be imported by it under their bare names.

    Raises:
        InputError: no such file, module or callable, or the module's own code raises.
    """
    target, _, attribute = name.partition(":")
    module = _from_file(base / target, name) if target.endswith(".py") else _from_package(target, base, name)
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        known = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        raise InputError(f"{target} has no callable {attribute!r}", where=name, hint=f"it has {', '.join(known) or 'none'}")
    function: Callable[..., Any] = found
    return function


def call(name: str, base: Path, *args: Any, **kwargs: Any) -> Any:
    """Load the callable and call it; an exception in it becomes an InputError that names its file and line."""
    function = load_callable(name, base)
    try:
        return function(*args, **kwargs)
    except SparsegateError:
        raise
    except Exception as error:
        raise _failed(name, error) from error


def _from_file(path: Path, name: str) -> Any:
    if not path.is_file():
        raise InputError(f"there is no file {path}", where=name, hint="paths in a recipe start at the recipe's folder")
    path = path.resolve()
    label = f"sparsegate_user_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(label, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is no Python file", where=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[label] = module  # dataclasses and pickles in user code look their module up there
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[label]
        raise _failed(name, error) from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def _from_package(target: str, base: Path, name: str) -> Any:
    sys.path.insert(0, str(base))
    try:
        return importlib.import_module(target)
    except Exception as error:
        raise _failed(name, error) from error
    finally:
        sys.path.remove(str(base))


def _failed(name: str, error: BaseException) -> InputError:
    """Names the last line of the user's own code on the way to the exception."""
    frame, place = error.__traceback__, None
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if not file.startswith("<") and file != __file__:
            place = place if place and "site-packages" in file else f"{file}:{frame.tb_lineno}"
        frame = frame.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}:{error.lineno}"
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return InputError(f"{name} raised {text}", where=place, hint="run with --debug for the traceback")


def source_files(name: str, base: Path) -> list[Path]:
    """The file of a callable's module and every module beside it that it imports, found without importing anything."""
    target = name.partition(":")[0]
    if target.endswith(".py"):
        first = (base / target).resolve()
    else:
        found = _module_file(target, base)
        if found is None:
            return []
        first = found
    seen: dict[Path, None] = {}
    todo = [first]
    while todo:
        path = todo.pop()
        if path not in seen:
            seen[path] = None
            todo.extend(_imported_beside(path))
    return list(seen)


def lacking(name: str, base: Path) -> str | None:
    """Why a callable cannot be had, found without running its module; None where its file defines the name (or imports all names)."""
    target, _, attribute = name.partition(":")
    path = (base / target) if target.endswith(".py") else _module_file(target, base)
    if path is None:
        return None if importlib.util.find_spec(target.partition(".")[0]) else f"there is no module {target}"
    try:
        tree = ast.parse(path.read_bytes())
    except OSError as error:
        return f"cannot read {path}: {error.strerror}"
    except (SyntaxError, ValueError) as error:
        return f"{path}:{getattr(error, 'lineno', 0)}: {error}"
    names = {name for node in ast.walk(tree) for name in _bound(node)}
    return None if attribute.partition(".")[0] in names or "*" in names else f"{path} defines no {attribute!r}"


def _bound(node: ast.AST) -> list[str]:
    """Names that a statement may give to its module."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def _module_file(target: str, base: Path) -> Path | None:
    parts = target.split(".")
    roots = [base, *(Path(entry or ".") for entry in sys.path)]
    for root in roots:
        for candidate in (root.joinpath(*parts).with_suffix(".py"), root.joinpath(*parts, "__init__.py")):
            if candidate.is_file():
                return candidate.resolve()
    return None


def _imported_beside(path: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # the callable's own import reports it
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
        for name in names:
            top = path.parent.joinpath(*name.split("."))
            for candidate in (top.with_suffix(".py"), top / "__init__.py"):
                if candidate.is_file():
                    yield candidate.resolve()
