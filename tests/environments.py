"""Environments that hold exactly some packages and what those declare, made without an installer or a network.

First-party packages come from wheels built here; third-party ones are linked from the environment this runs in.  So
an import that nobody declared fails, as it would for somebody who installed one package alone.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
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

SUITE = "aiperf-suite"


def projects() -> dict[str, Path]:
    """Folder of every first-party distribution, by its name; the meta-package last."""
    plugins = sorted(path.parent for path in ROOT.glob("plugins/*/*/pyproject.toml"))
    folders = [ROOT / "core", ROOT / "templates", *plugins, ROOT]
    return {tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"]: folder for folder in folders}


def suite() -> list[str]:
    """What the meta-package requires, which is what a new user has."""
    found: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return found


def normal(name: str) -> str:
    """A distribution's name as names compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Shelf:
    """Every distribution an environment can be made of.

    *folder* takes the unpacked wheels.  *build*: folders to build wheels of, by distribution, None for every first-party one;
    the others are linked as they are installed here, editable or not.
    """

    def __init__(self, folder: Path, build: Mapping[str, Path] | None = None) -> None:
        self._folder = folder
        self._found: dict[str, Distribution] = {normal(found.name): found for found in importlib.metadata.distributions()}
        for name, project in (projects() if build is None else build).items():
            self._found[normal(name)] = self._unpacked(name, project)

    def _unpacked(self, name: str, project: Path) -> Distribution:
        backend = tomllib.loads((project / "pyproject.toml").read_text())["build-system"]["build-backend"]
        wheels = self._folder / "wheels"
        wheels.mkdir(parents=True, exist_ok=True)
        # What the backend prints goes to stderr; uv_build looks for its program in PATH.
        build = (
            "import importlib, sys; sys.stdout = sys.stderr; backend = importlib.import_module(sys.argv[1]);"
            "print(backend.build_wheel(sys.argv[2]), file=sys.__stdout__)"
        )
        path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
        made = subprocess.run(
            [sys.executable, "-c", build, backend, str(wheels)],
            cwd=project, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise SystemExit(f"{name}: no wheel could be built\n{made.stderr}")
        target = self._folder / "unpacked" / name
        with zipfile.ZipFile(wheels / made.stdout.split()[-1]) as wheel:
            wheel.extractall(target)
        (found,) = importlib.metadata.distributions(path=[str(target)])
        return found

    def __getitem__(self, name: str) -> Distribution:
        try:
            return self._found[normal(name)]
        except KeyError:
            raise SystemExit(f"{name} is needed and not installed here; run: make test") from None

    def closure(self, requirements: Iterable[str]) -> list[Distribution]:
        """The distributions that these requirements bring, by name."""
        seen: set[tuple[str, str]] = set()
        waiting = [Requirement(text) for text in requirements]
        while waiting:
            wanted = waiting.pop()
            for extra in ("", *sorted(wanted.extras)):
                key = (normal(wanted.name), extra)
                if key in seen:
                    continue
                seen.add(key)
                found = self[wanted.name]
                if found.version not in wanted.specifier:
                    raise SystemExit(f"{wanted} is declared, {found.version} is here")
                waiting += [need for need in map(Requirement, found.requires or ()) if _applies(need, extra)]
        return [self[name] for name in sorted({name for name, _ in seen})]

    def environment(self, folder: Path, requirements: Iterable[str]) -> Path:
        """Make a virtual environment of the closure; gives its Python."""
        venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
        (site,) = folder.glob("lib/python*/site-packages")
        for found in self.closure(requirements):
            for entry in top_level(found):
                link = site / entry.name
                if not link.exists():
                    link.symlink_to(entry)
            for script in found.entry_points.select(group="console_scripts"):
                _write_script(folder / "bin", script)
        return folder / "bin" / "python"


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


def top_level(found: Distribution) -> Iterator[Path]:
    """What a distribution puts directly into site-packages."""
    names = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__", "/")}
    for name in sorted(names):
        path = Path(str(found.locate_file(name)))
        if path.exists():
            yield path


def installed_bytes(closure: Iterable[Distribution]) -> tuple[int, int]:
    """Size of the files as they are in the wheels, and of the bytecode that an installer or the first use adds.

    Bytecode that isn't here is taken to be a third bigger than its source, which is what is usual.
    """
    files = bytecode = 0
    for found in closure:
        for file in found.files or ():
            path = Path(str(found.locate_file(file)))
            if file.parts[0] == ".." or "__pycache__" in file.parts or not path.is_file():
                continue
            size = path.stat().st_size
            files += size
            if path.suffix == ".py":
                compiled = Path(importlib.util.cache_from_source(str(path)))
                bytecode += compiled.stat().st_size if compiled.exists() else size * 4 // 3
    return files, bytecode
