"""The names that the SDK promises, and who needs each: docs/architecture.md has their number.

A name is needed if a package, a template or a stranger imports it, or if a promised signature, class or field has it.
Specifications of hooks are promises by themselves: pluggy finds their implementations by name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from requirements import ROOT

SDK = ROOT / "core" / "src" / "aiperf" / "sdk"
USERS = ("plugins", "libraries", "templates", "suite", "tests/strangers")


def promised() -> dict[str, set[str]]:
    """The names in ``__all__`` of each module of the SDK but the specifications of hooks."""
    found = {}
    for path in sorted(SDK.glob("[!_]*.py")):
        tree = ast.parse(path.read_text())
        found[path.stem] = {name for node in tree.body for name in _listed(node)} - set(_hooks(tree))
    return found


def _listed(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        yield from ast.literal_eval(node.value)


def _hooks(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any("hookspec" in ast.unparse(each) for each in node.decorator_list):
            yield node.name


def needed() -> set[str]:
    """Names that users import, and names in the signatures, bases and fields of the SDK."""
    return {name for folder in USERS for path in _sources(ROOT / folder) for name in _imported(path)} | {
        name for path in SDK.glob("*.py") for name in _in_signatures(ast.parse(path.read_text()))
    }


def _sources(folder: Path) -> Iterator[Path]:
    yield from (path for path in folder.rglob("*.py") if not {".venv", "build"} & set(path.parts))


def _imported(path: Path) -> Iterator[str]:
    text = path.read_text()
    if "{{" in path.as_posix() or "{%" in text:  # a template: its words stand for its imports
        yield from (word.strip(",()") for line in text.splitlines() if "import" in line for word in line.split())
        return
    modules = set()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "aiperf":
            yield from (each.name for each in node.names)
            modules |= {each.asname or each.name for each in node.names if node.module == "aiperf.sdk"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield node.attr


def _in_signatures(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            parts = [*(each.annotation for each in every), node.returns]
        elif isinstance(node, ast.ClassDef):
            parts = [*node.bases]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.Assign):  # an alias of a type, or a default
            parts = [node.value]
        for part in parts:
            if part is not None:
                yield from _names(part)


def _names(part: ast.expr) -> Iterator[str]:
    for node in ast.walk(part):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def unneeded() -> list[str]:
    """Promised names that nobody needs, with their modules."""
    wanted = needed()
    return [f"{module}.{name}" for module, names in promised().items() for name in sorted(names - wanted)]
