"""The contract of subcommands: they explain themselves and refuse unknown words with a message."""

from __future__ import annotations

import subprocess
import sys
from typing import ClassVar

from aiperf.sdk.command import Command

from aiperf_testing.findings import shown, unlike
from aiperf_testing.manifests import check_row

_PATIENCE_S = 60.0


class CommandContract:
    """Subclass with a command's class::

        class TestMineKeepsTheContract(CommandContract):
            command = Mine

    The package of the command must be installed, because the contract runs the real command line.
    """

    command: ClassVar[type[Command]]

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        row = check_row("commands", self.command)
        name = row.capabilities.get("word") or row.name.replace("_", "-")
        return subprocess.run(
            [sys.executable, "-P", "-m", "aiperf", *name.split(), *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE_S, check=False,
        )  # fmt: skip

    def test_its_manifest_says_what_it_is(self) -> None:
        row = check_row("commands", self.command)
        assert row.capabilities.get("arguments", "") == self.command.arguments, (
            unlike(
                self.command.arguments, row.capabilities.get("arguments"),
                "write the class's arguments into its manifest row",
            )
        )

    def test_its_help_says_what_it_does_and_every_option(self) -> None:
        row, done = check_row("commands", self.command), self._run("--help")
        assert done.returncode == 0, (
            f"--help ended with {done.returncode}: {shown(done.stderr)}; it must end with 0, without running anything"
        )
        assert " ".join(row.summary.split()) in " ".join(done.stdout.split()), (
            f"--help shows {shown(done.stdout + done.stderr)} without the summary of the manifest row: it must come"
            f" without an error"
        )
        assert [spec.flags[0] for spec in row.options if not spec.hidden and spec.flags[0] not in done.stdout] == [], (
            f"--help shows {shown(done.stdout + done.stderr)} and lacks an option of the manifest: run aiperf plugins manifest"
        )

    def test_an_option_that_is_not_there_is_refused_with_a_sentence(self) -> None:
        done = self._run("--no-option-is-called-so")
        assert done.returncode == 2, (
            f"the exit code is {done.returncode}, where 2 was expected: {shown(done.stdout + done.stderr)}"
        )
        assert "--no-option-is-called-so" in done.stderr and "Traceback" not in done.stderr, (
            f"an unknown option gave {shown(done.stderr)}, not a sentence that names it: let the kernel read the"
            f" command's options"
        )

    def test_a_word_too_many_is_refused_with_a_sentence(self) -> None:
        if self.command.arguments:
            return
        done = self._run("no-word-is-taken")
        assert done.returncode == 2, (
            f"the exit code is {done.returncode}, where 2 was expected: {shown(done.stdout + done.stderr)}"
        )
        assert "no-word-is-taken" in done.stderr and "Traceback" not in done.stderr, (
            f"a word too many gave {shown(done.stderr)}, not a sentence that names it: say in arguments which words it takes"
        )
