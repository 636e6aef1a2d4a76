"""Each name of the suite says what it is, and a failing check what was expected, what came and what to do."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import aiperf.testing
import aiperf_testing
import pytest

MODULES = sorted(Path(aiperf_testing.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_assertion_of_a_contract_is_without_words(path: Path) -> None:
    asserts = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)]
    assert [node.lineno for node in asserts if node.msg is None] == []
    names = [node.lineno for node in asserts if isinstance(node.msg, ast.Name | ast.Attribute | ast.Subscript)]
    assert names == [], "a value alone says neither what was expected nor what to do"


def test_every_public_class_and_function_says_what_it_is() -> None:
    public = {name: getattr(aiperf.testing, name) for name in aiperf.testing.__all__}
    assert len(public) > 40
    assert [name for name, found in public.items() if callable(found) and not inspect.getdoc(found)] == []
