"""Code that fits in a head: bounds of modules, classes and functions, and numbers that say what they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path for tree in ("core/src", "libraries/*/src", "plugins/*/*/src", "templates", "suite") for folder in ROOT.glob(tree)
    for path in folder.rglob("*.py") if "tests" not in path.relative_to(folder).parts
)  # fmt: skip
MODULE_LINES, CLASS_LINES, FUNCTION_LINES = 450, 250, 60
REASON = re.compile(r"\s*# Larger than (\d+) lines: \S+ \S+ \S+")
"""What a module, class or function says at its top, before its first statement, where it is larger."""
MOST_ATTRIBUTES = 20
MANY = re.compile(r"\s*# More than (\d+) attributes: \S+ \S+ \S+")
"""What a class says at its top where its objects keep more.  Structs are not counted: they are rows and options."""
UNITS = {"NS", "US", "MS", "S", "BYTES", "BITS", "HZ", "PERCENT", "LINES", "TOKENS", "REQUESTS", "ROWS", "COLUMNS", "DIGITS"}
"""Last words of a constant's name that say what it counts.  ``NS_PER_S`` says it, too."""
COUNT = re.compile(r"_?(MOST|FEWEST)_[A-Z_]*[A-Z]S$")
"""Names of counts say it as well: ``MOST_FILES``."""


def parsed(path: Path) -> tuple[ast.Module, list[str]]:
    """A module, and its lines; a template's variables are names."""
    text = re.sub(r"\{\{ ?cookiecutter.*?\}\}", "name", path.read_text())
    return ast.parse(re.sub(r"\{%.*?%\}", "", text)), text.splitlines()


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def sized(path: Path) -> Iterator[tuple[str, int, int, bool]]:
    """Of the module and its classes and functions: name, lines, the bound, and whether a reason stands at the top."""
    tree, lines = parsed(path)
    statements = [node for node in tree.body if not isinstance(node, ast.Expr)]
    top = lines[: statements[0].lineno - 1] if statements else lines
    yield "", len(lines), MODULE_LINES, any(map(REASON.match, top))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            most = CLASS_LINES if isinstance(node, ast.ClassDef) else FUNCTION_LINES
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            top = lines[node.lineno - 1 : body[0].lineno - 1 if body else node.end_lineno]
            yield f":{node.name}", (node.end_lineno or 0) - node.lineno + 1, most, any(map(REASON.match, top))


def oversized(path: Path) -> list[str]:
    return [f"{named(path)}{name}" for name, lines, most, reason in sized(path) if lines > most and not reason]


def attributes(node: ast.ClassDef) -> set[str]:
    """The names that the methods of a class give to its objects."""
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.args.args]
    return {
        each.attr for method in methods for each in ast.walk(method)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name) and each.value.id == method.args.args[0].arg
    }  # fmt: skip


def wide(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Of each class: name, number of attributes, and whether a reason stands at its top."""
    tree, lines = parsed(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            top = lines[node.lineno - 1 : node.body[1].lineno - 1] if len(node.body) > 1 else []
            yield f"{named(path)}:{node.name}", len(attributes(node)), any(map(MANY.match, top))


def numeric(node: ast.expr) -> bool:
    """Whether it is a number, or arithmetic of numbers and other constants."""
    match node:
        case ast.Constant():
            return type(node.value) in (int, float)
        case ast.UnaryOp():
            return numeric(node.operand)
        case ast.BinOp():
            return all((isinstance(side, ast.Name) and side.id.isupper()) or numeric(side) for side in (node.left, node.right))
        case _:
            return False


def constants(statement: ast.stmt) -> Iterator[str]:
    """The names to which a statement gives numbers."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    match statement:
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            pairs = [(target, value)]
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            pairs = list(zip(targets, values, strict=False))
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, value) for target in targets]
    yield from (each.id for each, value in pairs if isinstance(each, ast.Name) and numeric(value))


def unexplained(path: Path) -> list[str]:
    """The numbers of a module that say neither in their names nor beside them what they count."""
    tree, lines = parsed(path)
    found = []
    for statement, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
        beside = lines[(statement.end_lineno or 0) - 1].partition("#")[2].strip().removeprefix("fmt: skip").strip()
        above = lines[statement.lineno - 2].startswith("#") if statement.lineno > 1 else False
        if not (told or beside or above):
            found += [name for name in constants(statement) if name.split("_")[-1] not in UNITS and not COUNT.match(name)]
    return found


def test_sources_are_found() -> None:
    assert {"core", "libraries", "plugins", "templates"} <= {named(path).partition("/")[0] for path in SOURCES}


def test_modules_classes_and_functions_are_small_or_say_why() -> None:
    found = [name for path in SOURCES for name in oversized(path)]
    assert found == [], "divide it by idea, or write at its top: # Larger than N lines: the reason"


def test_a_class_keeps_few_attributes_or_says_why() -> None:
    found = [name for path in SOURCES for name, count, reason in wide(path) if (count > MOST_ATTRIBUTES) != reason]
    assert found == [], "divide it by what it is about, or write below its docstring: # More than N attributes: the reason"


def test_a_reason_stands_only_where_it_is_needed() -> None:
    needless = [
        f"{named(path)}{name}" for path in SOURCES for name, lines, most, reason in sized(path) if reason and lines <= most
    ]
    assert needless == []


def test_a_constant_says_what_it_counts() -> None:
    found = [f"{named(path)}:{name}" for path in SOURCES for name in unexplained(path)]
    assert found == [], "end its name in its unit, or say below it what it counts"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("_WAIT_S = 0.5", []),
        ("_WAIT = 0.5", ["_WAIT"]),
        ("_WAIT = 0.5  # seconds", []),
        ('_WAIT = 0.5\n"""Seconds."""', []),
        ("_A, B_BYTES = 1 << 20, -2 * NS", ["_A"]),
        ("_MOST_FILES = 7", []),
        ("X: int = 3", ["X"]),
        ("X = f(3)\nY = True\nZ = 'text'", []),
    ],
)
def test_constants_are_recognised(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "module.py").write_text(f"import this\n{text}\n")
    assert unexplained(tmp_path / "module.py") == names
