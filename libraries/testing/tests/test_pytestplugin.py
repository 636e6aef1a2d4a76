"""``pytest --aiperf-plugins``: an installed package's contracts among somebody's own tests, and no trace of it otherwise."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

MANIFEST = """schema_version: 1
api: "{api}"
plugins:
  - {{category: ramps, name: {name}, summary: A ramp.}}
"""
GOOD = "def ramp(x):\n    return x\n"
BAD = "def ramp(x):\n    return -x\n"


def install(folder: Path, name: str, code: str, *, api: str = ">=1,<2") -> None:
    """A package ``acme-NAME`` with a ramp of that name."""
    package, about = folder / f"acme_{name}", folder / f"acme_{name}-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text(code)
    (package / "aiperf.yaml").write_text(MANIFEST.format(name=name, api=api))
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[aiperf.ramps]\n{name} = acme_{name}:ramp\n")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Somebody's tests, and what is installed beside the kernel."""
    install(tmp_path / "site", "good", GOOD)
    install(tmp_path / "site", "bad", BAD)
    install(tmp_path / "site", "old", GOOD, api="<1")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "test_own.py").write_text("def test_own():\n    pass\n")
    return tmp_path / "project"


def outcomes(project: Path, *words: str) -> tuple[int, dict[str, str], str]:
    """The exit code, how each test ended, by its class or name, and all that was said."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-rA", *words], cwd=project, check=False,
        env={**os.environ, "PYTHONPATH": str(project.parent / "site"), "AIPERF_CACHE_DIR": str(project.parent / "cache")},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
    )  # fmt: skip
    ended: dict[str, str] = {}
    for outcome, name in re.findall(r"^(PASSED|FAILED) \S*?::(\w+)", done.stdout, re.MULTILINE):
        ended[name] = "FAILED" if "FAILED" in (outcome, ended.get(name)) else outcome
    return done.returncode, ended, done.stdout


EVERYTHING = ["--aiperf-plugins", "acme-good", "--aiperf-plugins=acme_bad", "--aiperf-plugins", "ACME-old"]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["test_own.py"],
        ["--aiperf-plugins", "acme_good"],
        pytest.param(
            ["-n", "2"],
            marks=pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed"),
        ),
    ],
    ids=["all", "a file", "twice", "in two processes"],
)
def test_the_contracts_of_a_package_are_among_the_tests(project: Path, words: list[str]) -> None:
    code, ended, said = outcomes(project, *EVERYTHING, *words)
    assert code == 1, said
    assert ended == {
        "test_own": "PASSED", "Test_ramps_good": "PASSED", "Test_ramps_bad": "FAILED", "Test_ramps_old": "FAILED",
    }, said  # fmt: skip
    assert "asks for plugin API <1; this kernel has 1" in said


def test_unasked_there_are_no_tests_but_the_projects_own(project: Path) -> None:
    code, ended, said = outcomes(project)
    assert (code, ended) == (0, {"test_own": "PASSED"}), said


def test_a_missing_package_is_a_usage_error_with_near_names(project: Path) -> None:
    code, ended, said = outcomes(project, "--aiperf-plugins", "acme-goods")
    assert (code, ended) == (4, {})
    assert "no installed package 'acme-goods' has plugins; did you mean acme-good?" in said


def test_pytest_imports_nothing_for_it_until_it_is_asked() -> None:
    act = (
        "import sys, pytest; before = set(sys.modules); import aiperf_testing.pytest_plugin;"
        " print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", act], capture_output=True, text=True, check=True, timeout=600)
    modules = ["aiperf_testing", "aiperf_testing.pytest_plugin"]
    assert done.stdout.split() == modules
