"""The suite names the package of what is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import contents
import pytest
from aiperf.registry import guides
from aiperf.registry.registry import Registry

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover(cache=False)


def test_the_installed_suite_names_packages_of_plugins_and_options(registry: Registry) -> None:
    package = "aiperf-endpoint-ollama"
    where = guides.where_is("endpoints", "ollama", registry)
    assert where == [f"ollama is in the package {package}, which is not installed", f"pip install {package}"]
    answer = guides.unknown_option("--osl", registry)
    assert answer is not None and "aiperf-dataset-synthetic" in answer
    assert guides.where_is("endpoints", "nobody", registry) == []


def test_guides_take_no_part_in_runs(registry: Registry) -> None:
    assert not {"hooks:suite", "hooks:other_tools"} & registry.hooks().implemented.keys()


def built(backend_call: str, folder: Path, target: Path) -> Path:
    code = f"import hatchling.build as build, sys; print(build.{backend_call}(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(target)], cwd=folder, capture_output=True, text=True, check=True)
    return target / done.stdout.split()[-1]


def test_a_source_distribution_carries_what_it_requires(tmp_path: Path) -> None:
    with tarfile.open(built("build_sdist", ROOT / "suite", tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    (carried,) = tmp_path.glob("aiperf_suite-*/src/aiperf_suite/contents.json")
    here = contents.gathered(contents.folders())
    assert json.loads(carried.read_text()) == here
    for number, folder in enumerate((ROOT / "suite", carried.parents[2])):
        built("build_wheel", folder, tmp_path / str(number))
    wheels = [path.read_bytes() for path in sorted(tmp_path.glob("?/*.whl"))]
    assert len(wheels) == 2 and wheels[0] == wheels[1]
