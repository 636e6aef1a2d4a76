"""Wheels and source distributions of all packages, and what they are made of: ``make dist``, ``make wheelhouse``.

usage: dist.py [--output dist] [--wheelhouse FOLDER] [--extras NAME,…]

Each wheel is built from its unpacked source distribution, so that whoever has only that gets the same bytes.  Times in archives
are those of the last commit.  ``aiperf.cdx.json`` is the bill of materials (CycloneDX 1.6): every package with its hash and
what it requires, and the third-party packages with the versions of constraints.txt.

--wheelhouse adds the wheels of others that the suite needs (and with --extras those of its extras), by pip, which may ask its
index: ``pip install --no-index --find-links FOLDER aiperf-suite`` then needs no network.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from email.parser import HeaderParser
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from environments import SUITE, normal, projects
from packaging.requirements import Requirement
from requirements import ROOT

BILL = "aiperf.cdx.json"
_EARLIEST = 315_532_800
"""1980-01-01: the first second that a ZIP archive can tell."""
_SPACE = uuid.UUID("8f0a4c36-6f0e-5b0c-9d3f-2a3f4a1d7c55")


class Wheel(NamedTuple):
    """A wheel of ours: its file, and what its metadata says."""

    path: Path
    name: str
    version: str
    licence: str
    summary: str
    requires: tuple[Requirement, ...]

    @classmethod
    def of(cls, path: Path) -> Wheel:
        with zipfile.ZipFile(path) as archive:
            (place,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            said = HeaderParser().parsestr(archive.read(place).decode())
        requires = tuple(map(Requirement, said.get_all("Requires-Dist", ())))
        return cls(
            path, normal(said["Name"]), said["Version"], said["License-Expression"] or "", said["Summary"] or "", requires
        )


def made_at() -> int:
    """Seconds since 1970 of the last commit, or ``SOURCE_DATE_EPOCH``; of an export without a history the earliest there is."""
    if told := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(told)
    words = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else _EARLIEST


def built(folder: Path, output: Path) -> tuple[Path, Path]:
    """The source distribution of a package, and the wheel that is made from it."""
    with tempfile.TemporaryDirectory() as scratch:
        source = _called(folder, "build_sdist", output)
        with tarfile.open(source) as archive:
            archive.extractall(scratch, filter="data")
        (unpacked,) = Path(scratch).iterdir()
        return source, _called(unpacked, "build_wheel", output)


def _called(folder: Path, hook: str, output: Path) -> Path:
    """What a build backend makes of a folder (PEP 517)."""
    backend = tomllib.loads((folder / "pyproject.toml").read_text())["build-system"]["build-backend"]
    before = Path.cwd()
    os.chdir(folder)
    try:
        name: str = getattr(importlib.import_module(backend), hook)(str(output))
        return output / name
    finally:
        os.chdir(before)


def _prepare(epoch_s: int) -> None:
    """In a process that builds: the time in archives, and where uv_build finds its own program."""
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch_s)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def distributions(output: Path, folders: Iterable[Path]) -> list[Wheel]:
    """Both archives of each package, in *output*; the wheels by name."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), initializer=_prepare, initargs=(made_at(),)) as pool:
        pairs = list(pool.map(partial(built, output=output), folders))
    return sorted((Wheel.of(wheel) for _, wheel in pairs), key=lambda wheel: wheel.name)


def pinned() -> dict[str, str]:
    """Versions of third-party packages by name."""
    lines = (line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines())
    pairs = (line.partition(";")[0].partition("==") for line in lines if "==" in line)
    return {normal(name.strip()): version.strip() for name, _, version in pairs}


def needed(wheels: Mapping[str, Wheel], extras: frozenset[str]) -> list[Wheel]:
    """The wheels of ours that the suite brings, with these extras."""
    found: set[tuple[str, frozenset[str]]] = set()
    waiting = [(SUITE, extras)]
    while waiting:
        name, asked = waiting.pop()
        if (name, asked) in found or name not in wheels:
            continue
        found.add((name, asked))
        waiting += [
            (normal(need.name), frozenset(need.extras))
            for need in wheels[name].requires
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in (asked or {""}))
        ]
    return [wheels[name] for name in sorted({name for name, _ in found})]


def bill(wheels: Mapping[str, Wheel], versions: Mapping[str, str]) -> dict[str, Any]:
    """CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/): ours with hashes, others as pinned, and who requires whom."""
    others = sorted({normal(need.name) for wheel in wheels.values() for need in wheel.requires} - {*wheels})
    components = [*map(_ours, wheels.values()), *(_other(name, versions.get(name)) for name in others)]
    refs = {component["name"]: component["bom-ref"] for component in components}
    edges = [
        {"ref": refs[name], "dependsOn": sorted({refs[normal(need.name)] for need in wheel.requires if _always(need)})}
        for name, wheel in wheels.items()
    ]
    edges += [{"ref": refs[name]} for name in others]
    subject = next((one for one in components if one["name"] == SUITE), components[0])
    made = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"timestamp": datetime.fromtimestamp(made_at(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "component": subject},
        "components": [one for one in components if one is not subject], "dependencies": edges,
    }  # fmt: skip
    return {**made, "serialNumber": uuid.uuid5(_SPACE, json.dumps(made, sort_keys=True)).urn}


def _always(need: Requirement) -> bool:
    return need.marker is None or need.marker.evaluate({"extra": ""})


def _ours(wheel: Wheel) -> dict[str, Any]:
    digest = hashlib.sha256(wheel.path.read_bytes()).hexdigest()
    return {
        **_other(wheel.name, wheel.version), "description": wheel.summary, "hashes": [{"alg": "SHA-256", "content": digest}],
        "licenses": [{"expression": wheel.licence}] if wheel.licence else [],
    }  # fmt: skip


def _other(name: str, version: str | None) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}" + (f"@{version}" if version else "")
    return {"type": "library", "bom-ref": purl, "name": name, "purl": purl, **({"version": version} if version else {})}


def filled(folder: Path, wheels: Mapping[str, Wheel], extras: frozenset[str]) -> None:
    """A folder with all wheels of ours and those of others that the suite needs.

    Ours are named by their files, so that an index can't bring others of their names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in wheels.values():
        shutil.copy2(wheel.path, folder)
    asked = f"[{','.join(sorted(extras))}]" if extras else ""
    files = [f"{wheel.path}{asked if wheel.name == SUITE else ''}" for wheel in needed(wheels, extras)]
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-input"]
    words += ["--wheel-dir", str(folder), "--constraint", str(ROOT / "constraints.txt"), *files]
    if subprocess.run(words, check=False).returncode:
        raise SystemExit("make: wheels of other packages can't be had: the lines above say why; `make dist` needs none of them")


def _told(folder: Path, wheels: Iterable[Path]) -> Iterator[str]:
    files = [*wheels]
    yield f"{folder}: {len(files)} wheels, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where wheels and source distributions go (dist)")
    parser.add_argument("--wheelhouse", type=Path, help="also fill this folder with the wheels of others")
    parser.add_argument("--extras", default="", help="extras of the suite whose wheels the wheelhouse has, joined by commas")
    options = parser.parse_args()
    output = options.output.resolve()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    wheels = {wheel.name: wheel for wheel in distributions(output, projects().values())}
    (output / BILL).write_text(json.dumps(bill(wheels, pinned()), indent=1) + "\n")
    print(*_told(options.output, (wheel.path for wheel in wheels.values())), sep="\n")
    if options.wheelhouse:
        filled(options.wheelhouse, wheels, frozenset(filter(None, options.extras.split(","))))
        print(*_told(options.wheelhouse, options.wheelhouse.glob("*.whl")), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
