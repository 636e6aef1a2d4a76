"""The contract of live displays."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from aiperf.sdk.live import Step
from aiperf.sdk.snapshot import LogLine
from aiperf.sdk.ui import Ui

from aiperf_testing.live import SNAPSHOTS
from aiperf_testing.manifests import check_row


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
        made.log(LogLine("before anything is shown"))
        made.show(SNAPSHOTS[2])
        made.log(LogLine("in the middle: [bold]\\[/] {} % äöü 🦜", 30))
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
