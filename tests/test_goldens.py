"""Every installed metric has a value worked out by hand, in the tests of its own package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml
from aiperf.sdk.metric import Metric, RunMetric

ROOT = Path(__file__).parent.parent
PACKAGES = sorted(path.parent for path in ROOT.glob("plugins/*/*/pyproject.toml") if "aiperf.metrics" in path.read_text())
OURS = ("aiperf_metric_", "aiperf_endpoint_", "aiperf_exporter_")
TABLE = "WORKED"
"""What a test module calls its values worked out by hand: a dict with a key for each tag."""


def worked(module: ast.Module) -> set[str]:
    """The tags of the module's table; none where no test looks at it."""
    tests = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    if not any(isinstance(node, ast.Name) and node.id == TABLE for test in tests for node in ast.walk(test)):
        return set()
    return {key for table in tables(module) for key in table}


def tables(module: ast.Module) -> Iterator[list[str]]:
    for node in module.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [TABLE]:
            assert isinstance(node.value, ast.Dict)
            yield [ast.literal_eval(key) for key in node.value.keys if key is not None]


def golden(package: Path) -> set[str]:
    modules = [ast.parse(path.read_text()) for path in sorted((package / "tests").glob("test_*.py"))]
    return set().union(*(worked(module) for module in modules))


def names(package: Path) -> list[str]:
    (path,) = package.glob("src/*/aiperf.yaml")
    return [row["name"] for row in yaml.safe_load(path.read_text())["plugins"] if row["category"] == "metrics"]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_metric_has_a_value_computed_by_hand(package: Path) -> None:
    kinds = {each.name: each.load() for each in entry_points(group="aiperf.metrics")}
    single = {name for name in names(package) if issubclass(kinds[name], Metric | RunMetric)}
    found = golden(package)
    assert found, f"{package.name}: no test looks at a table {TABLE}"
    # A family or an analysis gives several results; its own test compares the table with all of them.
    assert not single - found, f"without a value worked out by hand: {sorted(single - found)}"


def test_every_metric_that_is_installed_is_looked_at() -> None:
    installed = {each.name for each in entry_points(group="aiperf.metrics") if each.value.startswith(OURS)}
    assert {name for package in PACKAGES for name in names(package)} == installed


def test_a_table_that_no_test_looks_at_does_not_count() -> None:
    table = f"{TABLE} = {{'a': 1}}\n"
    assert worked(ast.parse(table)) == set()
    assert worked(ast.parse(table + f"def test_a():\n    assert {TABLE}\n")) == {"a"}
