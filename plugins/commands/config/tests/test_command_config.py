"""``aiperf config`` alone: its contracts, and what it says of itself; files of whole installations are tests of the program."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from aiperf.cli.main import main
from aiperf.testing import CommandContract
from aiperf_command_config import Config
from aiperf_command_config.expand import Expand
from aiperf_command_config.init import CreateTemplate, Init
from aiperf_command_config.library import CATEGORIES, templates
from aiperf_command_config.schema import Schema
from aiperf_command_config.validate import Validate


class TestConfigKeepsTheContract(CommandContract):
    command = Config


class TestInitKeepsTheContract(CommandContract):
    command = Init


class TestExpandKeepsTheContract(CommandContract):
    command = Expand


class TestValidateKeepsTheContract(CommandContract):
    command = Validate


class TestSchemaKeepsTheContract(CommandContract):
    command = Schema


class TestCreateTemplateKeepsTheContract(CommandContract):
    command = CreateTemplate


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a cache of its own below."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a line in this process; gives exit code, standard output and error."""

    def go(*words: str, piped: str | None = None) -> tuple[int, str, str]:
        if piped is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


def test_the_schema_is_printed_and_named_in_a_new_file(run: Any, place: Path) -> None:
    assert json.loads(run("config", "schema")[1])["required"] == ["benchmark"]
    assert run("config", "schema", "-o", "s.json")[0] == 0 == run("config", "schema", "-o", "s.json")[0]
    first = run("config", "init")[1].splitlines()[0]
    path = first.removeprefix("# yaml-language-server: $schema=")
    assert path.startswith(str(place / "cache")) and Path(path).read_text() == Path("s.json").read_text()


def test_templates_are_listed_by_category_and_word(run: Any) -> None:
    out = run("config", "init", "--list")[1]
    assert all(f"{category}:" in out for category in CATEGORIES) and len(templates()) == 27
    assert [word for word in run("config", "init", "--search", "prefix pool")[1].split() if word in out][1] == "kv_cache_test"
    assert "fixed_schedule" not in run("config", "init", "-c", "multimodal")[1]
    assert "(audio)" in run("config", "init", "-c", "multimodal", "-v")[1]
    assert "there is no category 'x'\n  categories: Getting Started" in run("config", "init", "-c", "x")[2]
    assert "no template has 'zebra'" in run("config", "init", "-s", "zebra")[2]
    assert "exclude each other" in run("config", "init", "-l", "-t", "minimal")[2]


def test_a_wrong_file_is_all_its_faults_and_exit_code_one(run: Any) -> None:
    phase = "  profiling: {type: concurrency, requests: 0}\n"
    Path("run.yaml").write_text(f"benchmark:\n  model: m\n  endpoint: {{streming: true}}\n{phase}")
    code, out, err = run("config", "validate", "run.yaml")
    assert (code, out) == (1, "")
    assert "benchmark.endpoint.streming (run.yaml:3): there is no such key\n  did you mean streaming?" in err
    assert "benchmark.profiling.requests (run.yaml:4)" in err
    assert run("config", "validate", "none.yaml")[0] == 1 and run("config", "validate", "-", piped="a: [")[0] == 1
    assert "standard-input.yaml:1 is not YAML" in run("config", "validate", "-", piped="a: [")[2]


def test_the_command_alone_names_its_words(run: Any) -> None:
    assert run("config")[0] == 2 and "aiperf config needs a word: init, validate, expand, schema" in run("config")[2]
    assert "aiperf profile --config old.yaml does" in run("config", "-f", "old.yaml")[2]
    code, _, err = run("config", "valdate", "x")
    assert code == 2 and "there is no command 'config valdate'" in err and "did you mean validate?" in err
    assert os.environ["XDG_CACHE_HOME"], "nothing is written into the user's own cache"
