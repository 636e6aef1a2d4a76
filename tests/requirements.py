"""Print what the tests of every package need besides the packages themselves: their ``test`` dependency groups."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_group(project: Path) -> list[str]:
    """The requirements in the ``test`` dependency group of a project's folder; plain requirements only."""
    groups = tomllib.loads((project / "pyproject.toml").read_text()).get("dependency-groups", {})
    return [requirement for requirement in groups.get("test", []) if isinstance(requirement, str)]


if __name__ == "__main__":
    patterns = ("libraries/*/pyproject.toml", "plugins/*/*/pyproject.toml")
    projects = [ROOT, ROOT / "core", *sorted(path.parent for pattern in patterns for path in ROOT.glob(pattern))]
    print("\n".join(sorted({requirement for project in projects for requirement in test_group(project)})))
