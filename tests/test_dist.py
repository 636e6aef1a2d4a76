"""Wheels and source distributions: the same bytes each time, and a suite that installs from them alone."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import dist
import pytest
from aiperf_command_simulate.testing import Simulator
from environments import SUITE, extras, projects
from requirements import ROOT

KINDS = "aiperf-core", "aiperf-endpoint-ollama", "aiperf-reader", SUITE
"""A package of each way to build: plain, with a manifest, compiled, with requirements read when it is built."""


def digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dist.Wheel]]:
    folder = tmp_path_factory.mktemp("dist")
    return folder, dist.distributions(folder, [projects()[name] for name in KINDS])


def test_the_same_bytes_are_built_each_time(made: tuple[Path, list[dist.Wheel]], tmp_path: Path) -> None:
    dist.distributions(tmp_path, [projects()[name] for name in KINDS])
    assert digests(tmp_path) == digests(made[0])
    assert len(digests(tmp_path)) == 2 * len(KINDS)


def test_the_bill_names_hashes_versions_and_requirements(made: tuple[Path, list[dist.Wheel]]) -> None:
    folder, wheels = made
    bill = dist.bill({wheel.name: wheel for wheel in wheels}, dist.pinned())
    listed = {one["name"]: one for one in [bill["metadata"]["component"], *bill["components"]]}
    assert bill["metadata"]["component"]["name"] == SUITE
    for wheel in wheels:
        assert listed[wheel.name]["hashes"][0]["content"] == digests(folder)[wheel.path.name]
    assert listed["pydantic"]["version"] == distribution("pydantic").version
    requires = {edge["ref"]: edge.get("dependsOn", []) for edge in bill["dependencies"]}
    assert listed["pydantic"]["bom-ref"] in requires[listed["aiperf-core"]["bom-ref"]]
    assert {ref for refs in requires.values() for ref in refs} <= requires.keys()


def test_the_page_of_the_suite_has_a_row_for_each_extra() -> None:
    page = (ROOT / "suite" / "README.md").read_text()
    assert [name for name in extras() if f"| `{name}` | " not in page] == []


# From here on: fresh environments, from wheels alone.


@pytest.fixture(scope="session")
def wheelhouse(ours: dict[str, dist.Wheel], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of all packages, and of what the suite needs with every extra."""
    folder = tmp_path_factory.mktemp("wheelhouse")
    try:
        dist.filled(folder, ours, frozenset(extras()))
    except SystemExit as error:
        pytest.skip(f"wheels of other packages can't be had here: {error}")
    words = ["wheel", "--quiet", "--disable-pip-version-check", "--wheel-dir", str(folder)]  # for a package that somebody makes
    subprocess.run([sys.executable, "-m", "pip", *words, "--constraint", str(ROOT / "constraints.txt"), "uv_build"], check=True)
    return folder


def installed(folder: Path, wheelhouse: Path, *packages: str) -> Path:
    """The scripts of a new environment with these packages, without an index."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links", str(wheelhouse), *packages]
    subprocess.run([folder / "bin" / "python", "-m", "pip", *words], check=True)
    return folder / "bin"


def ran(*words: object, cwd: Path) -> str:
    """Standard output of a command that ends well, in a home of its own and without a way to a hub."""
    variables = {"HOME": str(cwd), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


LOADS = """
from importlib.metadata import distributions
found = [each for one in distributions() for each in one.entry_points if each.group.startswith("aiperf.")]
for each in found: each.load()
print(len(found))
"""


def profiled(scripts: Path, simulator: Simulator, cwd: Path) -> None:
    ran(
        scripts / "aiperf", "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin",
        "--isl", 8, "--osl", 4, "--concurrency", 2, "--request-count", 8, "--ui", "none",
        "--output-artifact-dir", cwd / "run", cwd=cwd,
    )  # fmt: skip
    found = json.loads((cwd / "run" / "profile_export_aiperf.json").read_text())
    assert found["measurement"]["arrivals"]["completed"] == 8


@pytest.mark.long
def test_the_suite_works_from_wheels_alone(wheelhouse: Path, simulator: Simulator, tmp_path: Path) -> None:
    scripts = installed(tmp_path / "venv", wheelhouse, SUITE)
    assert int(ran(scripts / "python", "-c", LOADS, cwd=tmp_path)) > 200
    profiled(scripts, simulator, tmp_path)
    for command in ("validate", "report"):
        ran(scripts / "aiperf", command, tmp_path / "run", cwd=tmp_path)
    ran(scripts / "aiperf", "plot", tmp_path / "run", "--json", cwd=tmp_path)
    ran(scripts / "aiperf", "plugins", "validate", cwd=tmp_path)


@pytest.mark.long
def test_a_new_package_installs_beside_the_suite(wheelhouse: Path, simulator: Simulator, tmp_path: Path) -> None:
    scripts = installed(tmp_path / "venv", wheelhouse, f"{SUITE}[templates]", "uv_build")
    ran(scripts / "aiperf", "plugins", "new", "endpoint", "my-dialect", cwd=tmp_path)
    (package,) = (path.parent for path in tmp_path.glob("*/pyproject.toml"))
    words = ["-m", "pip", "install", "--quiet", "--no-index", "--find-links", wheelhouse, "--no-build-isolation", package]
    ran(scripts / "python", *words, cwd=tmp_path)
    assert "my_dialect" in ran(scripts / "aiperf", "plugins", "endpoints", cwd=tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("extra", extras())
def test_an_extra_installs_by_itself(wheelhouse: Path, tmp_path: Path, extra: str) -> None:
    scripts = installed(tmp_path / "venv", wheelhouse, f"{SUITE}[{extra}]")
    ran(scripts / "python", "-c", LOADS, cwd=tmp_path)
    size = sum(file.lstat().st_size for file in (tmp_path / "venv" / "lib").rglob("*") if "__pycache__" not in file.parts)
    print(f"{extra}: {size / 1e6:.0f} MB with the suite and pip")


@pytest.mark.long
@pytest.mark.parametrize("python", [f"python3.{minor}" for minor in range(11, 15)])
def test_the_suite_runs_with_each_python(
    ours: dict[str, dist.Wheel], simulator: Simulator, tmp_path: Path, python: str
) -> None:  # fmt: skip
    found = shutil.which(python)
    if found is None or subprocess.run([found, "-c", "import ensurepip"], check=False).returncode:
        pytest.skip(f"there is no {python} here")
    subprocess.run([found, "-m", "venv", tmp_path / "venv"], check=True)
    files = [str(wheel.path) for wheel in dist.needed(ours, frozenset())]
    words = ["install", "--quiet", "--disable-pip-version-check", "--constraint", str(ROOT / "constraints.txt"), *files]
    subprocess.run([tmp_path / "venv" / "bin" / "python", "-m", "pip", *words], check=True)
    profiled(tmp_path / "venv" / "bin", simulator, tmp_path)
