"""What a category costs outside its own packages: its contract, row, conformance and template, and one stranger."""

from __future__ import annotations

import re

import pytest
import yaml
from aiperf.sdk.categories import CATEGORIES
from requirements import ROOT
from test_repository import committed

WORDS = {"definitions": "definition", "plots": "plot"}
"""Categories that the kernel itself never asks for, as a new one, with the singular."""
MOST = 6
ROOMS = ("core/src", "libraries/testing/src", "suite", "templates", "tests/strangers", "Makefile", "pyproject.toml")
DOOR = "core/src/aiperf/__init__.py"
"""It repeats names of contracts, for short imports; a category needs none there."""


def edited(category: str, singular: str) -> set[str]:
    """Files that name the category, its module in the SDK or its contract for tests; a template and a stranger are one each."""
    contract = f"{singular.title()}Contract"
    named = re.compile(
        rf"Category\(\"{category}\"|^\s+\"{category}\": |category: {category}$|aiperf\.{category}\"|\b{contract}\b"
        rf"|aiperf_testing\.{category}\b|== \"{category}\"|all\(\"{category}\"|load\(\"{category}\"",
        re.MULTILINE,
    )
    found = {f"core/src/aiperf/sdk/{singular}.py"}
    for path in committed():
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(ROOMS) and place != DOOR and named.search(path.read_bytes().decode("utf-8", "ignore")):
            parts = place.split("/")
            found.add("/".join(parts[:2]) if parts[0] == "templates" else "/".join(parts[:3]) if parts[0] == "tests" else place)
    return found


@pytest.mark.parametrize(("category", "singular"), WORDS.items())
def test_a_category_is_few_files_outside_its_packages(category: str, singular: str) -> None:
    found = edited(category, singular)
    testing = "libraries/testing/src/aiperf_testing"
    assert {
        f"core/src/aiperf/sdk/{singular}.py", "core/src/aiperf/sdk/categories.py", f"{testing}/{category}.py",
        f"{testing}/__init__.py", f"templates/{singular}",
    } <= found  # fmt: skip
    assert any(place.startswith("tests/strangers/") for place in found)
    assert len(found) <= MOST, sorted(found)


def test_every_category_has_a_stranger() -> None:
    manifests = [yaml.safe_load(path.read_text()) for path in (ROOT / "tests" / "strangers").glob("*/src/*/aiperf.yaml")]
    assert set(CATEGORIES) - {row["category"] for manifest in manifests for row in manifest["plugins"]} == set()
