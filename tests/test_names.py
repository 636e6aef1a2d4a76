"""One word, one thing: names of classes, the glossary of docs/architecture.md, and how docstrings begin."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from requirements import ROOT

SHARED = sorted([*ROOT.glob("core/src/**/*.py"), *ROOT.glob("libraries/*/src/**/*.py")])
"""The kernel and the libraries."""
PLUGINS = sorted(ROOT.glob("plugins/*/*/src/**/*.py"))
TEXT = (ROOT / "docs" / "architecture.md").read_text()
GLOSSARY = dict(re.findall(r"^\| ([a-z ]+) \| `([\w.]+:\w+)` \| ", TEXT.partition("\n## The words\n")[2], re.MULTILINE))
BEGINNINGS = ("Of", "Those", "As", "So", "Likewise", "That")
"""A sentence that begins so has its subject elsewhere."""


KINDS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
Named = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def named(path: Path) -> list[Named]:
    """What has a docstring in a file.  Read once: a walk through all files takes seconds."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, KINDS)]


def nodes(files: list[Path]) -> Iterator[tuple[str, Named]]:
    """What has a docstring in the files, with its module."""
    for path in files:
        module = ".".join(path.relative_to(ROOT).with_suffix("").as_posix().rpartition("src/")[2].split("/"))
        yield from ((module.removesuffix(".__init__"), node) for node in named(path))


def classes(files: list[Path]) -> dict[str, list[str]]:
    """The modules of each public class."""
    found = defaultdict(list)
    for module, node in nodes(files):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found[node.name].append(module)
    return found


def test_public_classes_of_kernel_and_libraries_have_names_of_their_own() -> None:
    found = classes(SHARED)
    assert len(found) > 300
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}


def test_the_glossary_is_there() -> None:
    assert len(GLOSSARY) > 40
    assert len(set(GLOSSARY.values())) == len(GLOSSARY)


@pytest.mark.parametrize("word", GLOSSARY)
def test_a_word_of_the_glossary_is_one_class(word: str) -> None:
    module, _, name = GLOSSARY[word].partition(":")
    assert classes([*SHARED, *PLUGINS])[name] == [module]


def test_no_docstring_begins_without_its_subject() -> None:
    texts = [(module, ast.get_docstring(node) or "") for module, node in nodes([*SHARED, *PLUGINS])]
    assert len(texts) > 3000
    assert [f"{module}: {text}" for module, text in texts if re.match(rf"({'|'.join(BEGINNINGS)})\b", text)] == []
