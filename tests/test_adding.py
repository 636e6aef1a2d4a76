"""New packages and a new option of a package that is there change no page of docs/ and no other file outside their folders."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import contents
import pytest
from environments import Shelf, suite
from requirements import ROOT

pytest.importorskip("aiperf_templates", reason="aiperf-templates is not installed: run make test")
pytest.importorskip("cookiecutter", reason="cookiecutter is not installed: run make test")

from aiperf.registry.registry import Registry
from aiperf_command_plugins import scaffold

NEW = ("endpoint", "exporter", "dataset")
OPTIONS = '''\
"""Options of the endpoint."""

from aiperf import Options, option


class AddedOptions(Options):
    user: str | None = option("--added-user", metavar="NAME", help="Sent with every request as its user.")
'''
CHANGED = ROOT / "plugins" / "exporters" / "outputs"


class Added:
    """*folders* of the changed packages by distribution, and a *python* with them and the suite."""

    def __init__(self, work: Path) -> None:
        registry = Registry.discover()
        self.folders = {}
        for category in NEW:
            package = scaffold.new(registry, category, f"added-{category}", work / "plugins" / f"{category}s")
            declare(package.path, package.distribution)
            self.folders[package.distribution] = package.path
        (endpoint,) = self.folders["aiperf-endpoint-added-endpoint"].glob("src/*")
        (endpoint / "options.py").write_text(OPTIONS)
        with (endpoint / "aiperf.yaml").open("a") as manifest:
            manifest.write(f'    options_model: "{endpoint.name}.options:AddedOptions"\n')
        outputs = work / "plugins" / "exporters" / "outputs"
        shutil.copytree(CHANGED, outputs, ignore=shutil.ignore_patterns("__pycache__"))
        with (outputs / "src" / "aiperf_exporter_outputs" / "options.py").open("a") as options:
            options.write('    added_depth: int = option("--added-depth", default=3, help="How deep the texts are read.")\n')
        self.folders["aiperf-exporter-outputs"] = outputs
        self._cache = work / "cache"
        self.python = Shelf(work / "shelf", self.folders).environment(work / "environment", [*suite(), *self.folders])
        for folder in (self.folders["aiperf-endpoint-added-endpoint"], outputs):
            self.aiperf("manifest", str(folder))

    def aiperf(self, *words: str) -> str:
        """What ``aiperf plugins`` prints, which must succeed."""
        environment = {**os.environ, "AIPERF_CACHE_DIR": str(self._cache), "PYTHONDONTWRITEBYTECODE": "1"}
        run = [str(self.python), "-m", "aiperf", "plugins", *words]
        done = subprocess.run(run, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout


def declare(folder: Path, distribution: str) -> None:
    """Make the package of a template one of this repository, which the suite requires."""
    (manifest,) = folder.glob("src/*/aiperf.yaml")
    manifest.write_text(manifest.read_text().replace("plugins:", f"first_party: {distribution}\nplugins:", 1))
    with (folder / "pyproject.toml").open("a") as project:
        project.write("\n[tool.aiperf]\nsuite = true\n")


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Added:
    return Added(tmp_path_factory.mktemp("adding"))


def test_the_packages_are_installed(added: Added) -> None:
    listed = added.aiperf()
    assert all(name in listed for name in added.folders)


@pytest.mark.parametrize("word", ["options", "variables"])
def test_new_packages_change_no_page_of_the_kernel(added: Added, word: str) -> None:
    assert added.aiperf(word, "kernel", "--markdown") == (ROOT / "docs" / f"{word}.md").read_text()


def test_new_options_stand_in_the_readmes_of_their_packages(added: Added) -> None:
    for name, flag in (("aiperf-endpoint-added-endpoint", "--added-user"), ("aiperf-exporter-outputs", "--added-depth")):
        folder = added.folders[name]
        (manifest,) = folder.glob("src/*/aiperf.yaml")
        assert flag in manifest.read_text()
        added.aiperf("readme", str(folder))
        assert f"| `{flag}` |" in (folder / "README.md").read_text()
    assert "## Endpoint type `added_endpoint`" in (added.folders["aiperf-endpoint-added-endpoint"] / "README.md").read_text()


def test_the_suite_takes_new_packages_from_their_project_files(added: Added) -> None:
    made = contents.gathered([*(path for path in contents.folders() if path != CHANGED), *added.folders.values()])
    assert {f"{name}>=0.1,<0.2" for name in added.folders} <= set(made["requires"])
    assert made["plugins"]["endpoints:added_endpoint"] == "aiperf-endpoint-added-endpoint"
    assert made["flags"]["--added-user"] == "aiperf-endpoint-added-endpoint"
    assert made["flags"]["--added-depth"] == "aiperf-exporter-outputs"
