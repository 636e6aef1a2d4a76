"""Completion as a shell asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from aiperf.registry.registry import Registry
from aiperf.testing import CommandContract
from aiperf_command_completion import Completion
from aiperf_command_completion.words import Words


class TestItKeepsTheContract(CommandContract):
    command = Completion


@pytest.fixture
def cache(tmp_path: Path) -> dict[str, str]:
    return {"AIPERF_CACHE_DIR": str(tmp_path)}


def whole(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aiperf", *words],
        env={**os.environ, "NO_COLOR": "1", **environment}, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


def test_the_script_of_a_shell_is_printed(cache: dict[str, str]) -> None:
    assert "complete" in whole("--show-completion", "bash", **cache).stdout
    for shell, word in (("bash", "complete -o"), ("zsh", "#compdef aiperf"), ("fish", "complete --command aiperf")):
        script = whole("completion", shell, **cache).stdout
        assert "_AIPERF_COMPLETE" in script and word in script


def test_an_unknown_shell_is_refused_with_a_sentence(cache: dict[str, str]) -> None:
    done = whole("completion", "cobol", **cache)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: there is no completion for 'cobol'\n  shells: bash, zsh, fish")


def test_completion_is_installed_for_the_shell_that_is_named(cache: dict[str, str], tmp_path: Path) -> None:
    cache["HOME"] = str(tmp_path)
    for words in (["--install-completion", "cobol"], ["--show-completion=cobol"]):
        assert "there is no completion for 'cobol'" in whole(*words, **cache).stderr
    assert not [*tmp_path.rglob("*aiperf*")]
    assert whole("--install-completion", "fish", **cache).stdout.startswith("fish completion is installed in ")
    (script,) = tmp_path.rglob("aiperf.fish")
    assert "_AIPERF_COMPLETE" in script.read_text()
    assert "#compdef aiperf" in whole("--show-completion=zsh", **cache).stdout


def test_completion_is_installed_as_the_reference_spells_it(cache: dict[str, str], tmp_path: Path) -> None:
    cache["HOME"] = str(tmp_path)
    script = tmp_path / "zsh script"
    done = whole("--install-completion", "--shell", "zsh", "-o", str(script), **cache)
    assert (done.returncode, done.stderr) == (0, "") and str(script) in done.stdout
    assert "#compdef aiperf" in script.read_text() and not [*tmp_path.rglob("*aiperf*")]
    assert "fish completion is installed in " in whole("--install-completion", "--shell=fish", **cache).stdout
    for words, said in (
        (("--shell",), "--shell needs a value"), (("--shell", "fish", "bash"), "left over: 'bash'"), (("--loud",), "left over"),
        (("fish", "--output", "/nowhere/at/all"), "can't be written: No such file"),
    ):  # fmt: skip
        wrong = whole("--install-completion", *words, **cache)
        assert wrong.returncode == 2 and said in wrong.stderr


def test_completion_knows_options_and_names(cache: dict[str, str]) -> None:
    cache |= {"_AIPERF_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    assert "--request-rate" in whole(**cache, COMP_WORDS="aiperf profile --request-ra").stdout.split()
    cache["COMP_CWORD"] = "3"
    assert whole(**cache, COMP_WORDS="aiperf profile --arrival-pattern po").stdout.split() == ["poisson"]


@pytest.mark.parametrize(
    ("typed", "first", "never"),
    [
        ("plugins endp", ["endpoints"], []),
        ("plugins va", ["validate"], []),
        ("plugins endpoints cha", ["chat"], ["validate"]),
        ("plugins validate aiperf-command-comp", ["aiperf-command-completion"], ["chat"]),
        ("plugins new endp", ["endpoints"], []),
        ("plugins options x", [], ["options"]),
        ("completion f", ["fish"], ["bash"]),
    ],
)
def test_words_of_a_command_are_completed(typed: str, first: list[str], never: list[str]) -> None:
    command, *words, incomplete = typed.split()
    if command == "plugins":
        pytest.importorskip("aiperf_command_plugins")
    if "chat" in first:
        pytest.importorskip("aiperf_endpoint_chat")
    got = Words(Registry.discover(), command).after(words, incomplete)
    assert got[:1] == first and not set(never) & set(got)


def test_a_shell_gets_the_words_of_plugins(cache: dict[str, str]) -> None:
    pytest.importorskip("aiperf_command_plugins")
    pytest.importorskip("aiperf_endpoint_completions")
    cache |= {"_AIPERF_COMPLETE": "complete_bash", "COMP_CWORD": "3", "COMP_WORDS": "aiperf plugins endpoints completi"}
    assert whole(**cache).stdout.split() == ["completions"]
