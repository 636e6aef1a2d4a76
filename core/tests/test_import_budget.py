"""What must not be imported, by list: a start that stays quick, workers that stay small."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MODULES = """
import sys
{setup}
{act}
sys.stdout.flush()
sys.stderr.write("\\n".join(sorted(sys.modules)))
"""


def imported(act: str, cache: object, setup: str = "") -> set[str]:
    """Modules that a fresh interpreter holds after *act*."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", MODULES.format(setup=setup, act=act)],
        env={**os.environ, "AIPERF_CACHE_DIR": str(cache)}, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    return set(done.stderr.splitlines())


def tops(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


HEAVY = {"pydantic", "pydantic_core", "stevedore", "numpy", "zmq", "yaml", "rich", "asyncio", "uvloop", "httptools", "logging"}
COMMANDS = {"pydantic", "pydantic_core", "logging", "stevedore"}
"""What checks the options of a command and loads it."""
TOKENIZERS = {"tiktoken", "tokenizers", "transformers"}


def program(*words: str) -> str:
    return f"sys.argv = ['aiperf', *{list(words)!r}]\nfrom aiperf.__main__ import main\nmain()"


def test_the_version_costs_nothing(tmp_path: Path) -> None:
    got = imported(program("--version"), tmp_path)
    assert not tops(got) & (HEAVY | TOKENIZERS | {"typer", "msgspec", "pluggy", "inspect"})
    assert "importlib.metadata" not in got and "aiperf.cli.main" not in got


@pytest.mark.parametrize("words", [("profile", "--help"), ("--help",), (), ("plugins", "--help"), ("profil",)])
def test_help_and_usage_errors_import_nothing_heavy(tmp_path: Path, words: Any) -> None:
    imported(program("--help"), tmp_path)  # fills the cache
    act = f"try:\n    {program(*words).replace(chr(10), chr(10) + '    ')}\nexcept SystemExit: pass\nsys.stderr.write(chr(10))"
    got = imported(act, tmp_path)
    asked = {"pluggy", "logging"} if words == ("profil",) else set()  # a guide, whether it knows the word
    assert not tops(got) & ((HEAVY | TOKENIZERS | {"typer"}) - asked)
    assert asked or "importlib.metadata" not in got


def test_listing_plugins_imports_none_of_them(tmp_path: Path) -> None:
    imported(program("--help"), tmp_path)
    got = tops(imported(program("plugins", "--all"), tmp_path))
    assert not got & ((HEAVY | TOKENIZERS | {"typer"}) - COMMANDS)
    assert len(packages := {module for module in got if module.startswith("aiperf_")}) <= 1
    assert all(module.startswith("aiperf_command_") for module in packages), "but for the command itself"


def test_discovery_without_a_cache_still_imports_no_plugin(tmp_path: Path) -> None:
    blocked = tmp_path / "a_file"
    blocked.write_text("")
    got = tops(imported(program("plugins"), blocked / "below"))
    assert not got & ((HEAVY | TOKENIZERS | {"typer"}) - COMMANDS - {"yaml"})
    assert len(packages := {module for module in got if module.startswith("aiperf_")}) <= 1
    assert all(module.startswith("aiperf_command_") for module in packages), "but for the command itself"


def test_a_run_with_usual_options_imports_no_validation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_DISABLE_PLUGINS", "exporters:parquet")  # pyarrow has numpy
    imported(program("--help"), tmp_path)  # fills the cache
    line = program("profile", "--model", "m", "--url", "http://127.0.0.1:9", "--request-count", "1",
        "--ui", "none", "--tokenizer", "builtin", "--artifact-dir", str(tmp_path / "run"))  # fmt: skip
    got = tops(imported(f"try:\n    {line.replace(chr(10), chr(10) + '    ')}\nfinally: sys.stderr.write(chr(10))", tmp_path))
    assert "zmq" in got, "the run took place"
    assert not got & {"typer", "click", "pydantic", "stevedore", "numpy", "asyncio", "yaml", *TOKENIZERS}


def test_a_worker_stays_small(tmp_path: Path) -> None:
    got = tops(imported("import aiperf.worker.process", tmp_path))
    assert not got & {"typer", "pydantic", "numpy", "stevedore", "yaml", "rich", "httptools", *TOKENIZERS}
