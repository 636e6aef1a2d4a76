"""The contract of live displays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from aiperf.sdk.ui import Snapshot, Step, Ui

from aiperf_testing.manifests import check_row

SNAPSHOTS: Sequence[Snapshot] = (
    Snapshot("warmup", "warmup", 0.0, 0, 0, 0, 0, 0.0),
    Snapshot("warmup", "warmup", 0.25, 12, 0, 0, 12, 0.0, 0.0, None),
    Snapshot("profiling", "profiling", 61.5, 900, 880, 3, 17, 14.3, 0.44, 78.0, 35.25, 11.5),
    Snapshot("profiling", "profiling", 360_000.0, 10**9, 10**9, 10**8, 10**6, 123_456.789, 1.0, 0.0, 9e6, 1e-4),
    Snapshot("profiling", "profiling", 75.0, 900, 880, 20, 0, 12.0, 0.44, 78.0, 35.25, 11.5, unreached_s=13.5),
    Snapshot("a phase of a very long name " * 10, "profiling", 3.0, 1, 0, 1, 0, 0.3, 7.5, None),
)
"""States of a run: at its start, ordinary, and extreme."""


class UiContract:
    """Subclass with a display's class::

        class TestMineKeepsTheContract(UiContract):
            ui = Mine
    """

    ui: ClassVar[type[Ui]]
    options: ClassVar[Any] = None

    def _made(self) -> Ui:
        return type(self).ui(type(self).options)

    def test_its_manifest_says_what_it_is(self) -> None:
        row = check_row("uis", self.ui)
        for name in ("terminal", "in_process"):
            assert isinstance(row.capabilities.get(name, False), bool), f"the capability {name} is true or false"

    def test_it_shows_every_moment_of_a_run(self) -> None:
        made = self._made()
        made.step(Step("Making the data set", 1.0, 12, None, "entries"))
        for snapshot in SNAPSHOTS:
            made.show(snapshot)
        made.step(Step("Reducing the rest", 3600.5, 10**6, 10**9, "requests"))
        made.step(Step("Writing the files", 4000.0))
        made.close()

    @pytest.mark.parametrize("columns", ["1", "20", "400"])
    def test_it_shows_them_on_any_terminal(self, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setenv("LINES", columns)
        self.test_it_shows_every_moment_of_a_run()

    def test_no_line_of_the_log_is_lost(self, capfd: pytest.CaptureFixture[str]) -> None:
        made = self._made()
        made.log("before anything is shown")
        made.show(SNAPSHOTS[2])
        made.log("in the middle: [bold]\\[/] {} % äöü 🦜")
        made.show(SNAPSHOTS[2])
        made.close()
        out, err = capfd.readouterr()
        assert "before anything is shown" in out + err, (
            "a line that was logged before the first snapshot is lost: show it when the display is there"
        )
        assert "in the middle: [bold]\\[/] {} % äöü 🦜" in out + err, (
            "a line of the log is lost or changed: show it as it is, its markup, too"
        )

    def test_a_run_may_end_before_there_was_anything_to_show(self) -> None:
        self._made().close()
