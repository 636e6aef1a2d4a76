"""Packages that behave badly (tests/strangers/rogues), installed in a directory of the path as pip leaves them."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

from requirements import ROOT

ROGUES = ROOT / "tests" / "strangers" / "rogues"


def install(site: Path, *names: str) -> None:
    """The packages of these folders, without their dependencies."""
    for name in names:
        install_from(site, ROGUES / name)


def install_from(site: Path, *folders: Path) -> None:
    """The packages of these folders, without their dependencies."""
    for folder in folders:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        shutil.copytree(folder / "src", site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir()
        requires = "".join(f"Requires-Dist: {line}\n" for line in project["dependencies"])
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n{requires}"
        )
        lines = []
        for group, points in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines))
