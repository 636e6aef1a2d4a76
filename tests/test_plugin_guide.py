"""docs/plugins.md: its commands run as they stand there, and its reference has every hook."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from aiperf.registry import manifest
from aiperf.sdk import hooks
from aiperf.sdk.descriptor import API_VERSION
from aiperf_command_simulate.testing import Simulator
from environments import Shelf, suite
from program import Program
from requirements import ROOT

GUIDE = ROOT / "docs" / "plugins.md"
NEEDED = ("aiperf_templates", "cookiecutter", "pip", "uv_build")
"""What the commands need besides the suite; installed here, so that nothing is fetched."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_reference_has_every_hook_with_its_arguments() -> None:
    (reference,) = re.findall(r"<!-- generated: (.+?) -->\n```text\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    how, text = reference
    for name, member in vars(hooks).items():
        if name.startswith("aiperf_"):
            arguments = ", ".join(inspect.signature(member).parameters)
            assert f"{name}({arguments})" in text, f"it lacks {name}({arguments}); generate it again: {how}"
    done = subprocess.run(
        [sys.executable, "-m", "aiperf", "plugins", "hooks"],
        env={**os.environ, "COLUMNS": "100"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert text == done.stdout, f"it is out of date; generate it again: {how}"


def test_the_example_that_reads_results_runs(simulator: Simulator, tmp_path: Path) -> None:
    (example,) = (block for block in blocks("python") if "open_run(" in block)
    done = Program(tmp_path)(
        "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 10, "--osl", 2,
        "--request-count", 3, "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    code = example.replace('"artifacts/my-run"', repr(str(done.artifacts)))
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert re.fullmatch(r"[0-9.]+ ms", shown[0])
    assert shown[1:3] == ["0 failed: set()", "0 never sent"] and shown[3].endswith(" series, chat")


def test_the_guide_tells_the_version_of_the_plugin_api() -> None:
    text = " ".join(GUIDE.read_text().split())
    assert f"The plugin API has a version of its own, which is {API_VERSION} now" in text
    assert manifest.in_range(API_VERSION, re.findall(r"the kernel's plugin API, `\"(.*?)\"`", text)[0])


def test_the_guide_names_every_template() -> None:
    named = set(re.findall(r"^\| `(\w+)` \| `aiperf\.", GUIDE.read_text(), re.MULTILINE))
    assert named == {path.parent.name for path in ROOT.glob("templates/*/cookiecutter.json")}


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED), reason=f"needs {', '.join(NEEDED)}: run make test"
)
def test_an_endpoint_in_fifteen_minutes(tmp_path: Path) -> None:
    python = Shelf(tmp_path / "shelf", {}).environment(
        tmp_path / "environment", [*suite(), "aiperf-templates", "pip", "uv_build", "aiperf-core[testing]"]
    )
    work = tmp_path / "work"
    work.mkdir()
    script = "set -eu\ntrap 'kill $(jobs -p) 2> kill.txt || true' EXIT\n" + "".join(blocks("sh"))
    path = [str(python.parent), sysconfig.get_path("scripts"), os.environ["PATH"]]
    foreign = ("PYTHON", "PIP_", "AIPERF_", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=work, env={**kept, **offline, "PATH": os.pathsep.join(path)},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("1 plugin checked, no fault") == 2
    assert "--my-user NAME" in done.stdout
    assert [file.name for file in (work / "wheels").iterdir()] == ["aiperf_endpoint_my_dialect-0.1.0-py3-none-any.whl"]
    for name in ("first", "second"):
        assert (work / name / "profile_export_aiperf.json").is_file()
    users = [re.findall(r'"user": *"(\w+)"', (work / name / "inputs.json").read_text()) for name in ("first", "second")]
    assert users == [[], ["ada"] * 10]
