"""A failing check says what was expected, what came and what to do."""

from __future__ import annotations

import ast
from pathlib import Path

import aiperf_testing
import pytest

MODULES = sorted(Path(aiperf_testing.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_assertion_of_a_contract_is_without_words(path: Path) -> None:
    asserts = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)]
    assert [node.lineno for node in asserts if node.msg is None] == []
    names = [node.lineno for node in asserts if isinstance(node.msg, ast.Name | ast.Attribute | ast.Subscript)]
    assert names == [], "a value alone says neither what was expected nor what to do"
