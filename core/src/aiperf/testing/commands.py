"""What every subcommand must do: explain itself, and refuse what it doesn't know with a sentence."""

from __future__ import annotations

import subprocess
import sys
from typing import ClassVar

from aiperf.command import Command
from aiperf.testing.manifests import check_row

_PATIENCE_S = 30.0


class CommandContract:
    """Subclass with a command's class::

        class TestMineKeepsTheContract(CommandContract):
            command = Mine

    Its package must be installed: the command line is the one a person has.
    """

    command: ClassVar[type[Command]]

    def _said(self, *words: str) -> subprocess.CompletedProcess[str]:
        name = check_row("commands", self.command).name
        return subprocess.run(
            [sys.executable, "-P", "-m", "aiperf", name.replace("_", "-"), *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE_S, check=False,
        )  # fmt: skip

    def test_its_manifest_says_what_it_is(self) -> None:
        row = check_row("commands", self.command)
        assert row.capabilities.get("arguments", "") == self.command.arguments

    def test_its_help_says_what_it_does_and_every_option(self) -> None:
        row, said = check_row("commands", self.command), self._said("--help")
        assert said.returncode == 0, said.stderr
        assert " ".join(row.summary.split()) in " ".join(said.stdout.split())
        assert [spec.flags[0] for spec in row.options if not spec.hidden and spec.flags[0] not in said.stdout] == []

    def test_an_option_that_is_not_there_is_refused_with_a_sentence(self) -> None:
        said = self._said("--no-option-is-called-so")
        assert said.returncode == 2, said.stdout + said.stderr
        assert "--no-option-is-called-so" in said.stderr and "Traceback" not in said.stderr

    def test_a_word_too_many_is_refused_with_a_sentence(self) -> None:
        if self.command.arguments:
            return
        said = self._said("no-word-is-taken")
        assert said.returncode == 2, said.stdout + said.stderr
        assert "no-word-is-taken" in said.stderr and "Traceback" not in said.stderr
