"""Environments with exactly some packages and their declared dependencies, made without an installer or a network.

First-party packages come from wheels that are built here; third-party packages are linked from the current environment.
An undeclared import fails, as it does for users who install a single package.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path

from packaging.requirements import Requirement
from requirements import ROOT

sys.path.append(str(ROOT / "suite"))
import contents

SUITE = "aiperf-suite"


def projects() -> dict[str, Path]:
    """Folders of all first-party distributions by name; the meta-package comes last."""
    patterns = ("libraries/*/pyproject.toml", "plugins/*/*/pyproject.toml")
    packages = sorted(path.parent for pattern in patterns for path in ROOT.glob(pattern))
    folders = [ROOT / "core", ROOT / "templates", *packages, ROOT / "suite"]
    return {tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"]: folder for folder in folders}


def suite() -> list[str]:
    """The requirements of the meta-package: the packages of a new user."""
    requirements: list[str] = contents.contents()["requires"]
    return requirements


def extras() -> list[str]:
    """The extras of the meta-package, without ``all``."""
    return [name for name in contents.contents()["extras"] if name != "all"]


def normal(name: str) -> str:
    """The normalized name of a distribution."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Shelf:
    """All distributions for environments.

    *folder*: place of the unpacked wheels.  *build*: by distribution, the folders from which wheels are built; None is all
    first-party distributions.  The others are linked from the current environment, editable or not.
    """

    def __init__(self, folder: Path, build: Mapping[str, Path] | None = None) -> None:
        installed = importlib.metadata.distributions()
        self._distributions: dict[str, Distribution] = {normal(package.name): package for package in installed}
        wanted = projects() if build is None else build
        for name, wheel in _wheels(wanted, folder / "wheels").items():
            target = folder / "unpacked" / name
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(target)
            (self._distributions[normal(name)],) = importlib.metadata.distributions(path=[str(target)])

    def __getitem__(self, name: str) -> Distribution:
        try:
            return self._distributions[normal(name)]
        except KeyError:
            raise SystemExit(f"{name} is needed and not installed here; run: make test") from None

    def closure(self, requirements: Iterable[str]) -> list[Distribution]:
        """The distributions of these requirements and their dependencies, by name."""
        seen: set[tuple[str, str]] = set()
        waiting = [Requirement(text) for text in requirements]
        while waiting:
            wanted = waiting.pop()
            for extra in ("", *sorted(wanted.extras)):
                key = (normal(wanted.name), extra)
                if key in seen:
                    continue
                seen.add(key)
                distribution = self[wanted.name]
                if distribution.version not in wanted.specifier:
                    raise SystemExit(f"{wanted} is declared, {distribution.version} is installed")
                waiting += [need for need in map(Requirement, distribution.requires or ()) if _applies(need, extra)]
        return [self[name] for name in sorted({name for name, _ in seen})]

    def environment(self, folder: Path, requirements: Iterable[str]) -> Path:
        """Make a virtual environment of the closure; the path of its Python."""
        venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
        (site,) = folder.glob("lib/python*/site-packages")
        for distribution in self.closure(requirements):
            for entry in top_level(distribution):
                link = site / entry.name
                if not link.exists():
                    link.symlink_to(entry)
            for script in distribution.entry_points.select(group="console_scripts"):
                _write_script(folder / "bin", script)
        return folder / "bin" / "python"


_BUILD = """
import importlib, json, os, sys
wheels, projects, answer = sys.argv[1], json.load(sys.stdin), sys.stdout
sys.stdout = sys.stderr  # for what the backends print
for name, (folder, backend) in projects.items():
    print(f"{name} in {folder}", flush=True)
    os.chdir(folder)
    print(json.dumps([name, importlib.import_module(backend).build_wheel(wheels)]), file=answer)
"""


def _wheels(projects: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Build the projects' wheels into *folder*, all in one process; their paths by distribution."""
    folder.mkdir(parents=True, exist_ok=True)
    backends = {
        name: (str(project), tomllib.loads((project / "pyproject.toml").read_text())["build-system"]["build-backend"])
        for name, project in projects.items()
    }
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])  # uv_build looks for its program there
    made = subprocess.run(
        [sys.executable, "-c", _BUILD, str(folder)],
        input=json.dumps(backends), env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise SystemExit(f"no wheel could be built of the last of these\n{made.stderr}")
    return {name: folder / wheel for name, wheel in map(json.loads, made.stdout.splitlines())}


def _write_script(directory: Path, script: EntryPoint) -> None:
    path = directory / script.name
    call = f"import sys\nfrom {script.module} import {script.attr}\nsys.exit({script.attr}())\n"
    path.write_text(f"#!{directory / 'python'}\n{call}")
    path.chmod(0o755)


def _applies(need: Requirement, extra: str) -> bool:
    if need.marker is None:
        return not extra
    plain = need.marker.evaluate({"extra": ""})
    return need.marker.evaluate({"extra": extra}) and not (extra and plain)


def top_level(distribution: Distribution) -> Iterator[Path]:
    """The entries of a distribution directly in site-packages."""
    names = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__", "/")}
    for name in sorted(names):
        path = Path(str(distribution.locate_file(name)))
        if path.exists():
            yield path


def installed_bytes(closure: Iterable[Distribution]) -> tuple[int, int]:
    """Size of the files in the wheels, and of the bytecode that an installer or the first use adds.

    Missing bytecode is estimated as a third larger than its source.
    """
    files = bytecode = 0
    for distribution in closure:
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if file.parts[0] == ".." or "__pycache__" in file.parts or not path.is_file():
                continue
            size = path.stat().st_size
            files += size
            if path.suffix == ".py":
                compiled = Path(importlib.util.cache_from_source(str(path)))
                bytecode += compiled.stat().st_size if compiled.exists() else size * 4 // 3
    return files, bytecode
