"""The simple display, on a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest
from aiperf.sdk.live import Step
from aiperf.sdk.snapshot import LogLine, Snapshot
from aiperf.testing import UiContract
from aiperf_ui_simple import Simple

SNAPSHOT = Snapshot("profiling", "profiling", 1.5, 0, 7, 1, 2, 4.0)


class TestItKeepsTheContract(UiContract):
    ui = Simple


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_simple_display_redraws_two_lines_and_gives_way_to_the_log() -> None:
    stream = Terminal()
    shown = Simple(None, stream)
    shown.show(SNAPSHOT)
    shown.show(SNAPSHOT)
    shown.log(LogLine("a line"))
    shown.close()
    drawn = stream.getvalue()
    assert drawn.count("profiling  0:01  0 sent  8 done  2 in flight  1 failed") == 2
    assert drawn.endswith("\r\x1b[K\x1b[1A\r\x1b[Ka line\n")


def test_a_step_is_drawn_on_a_terminal_and_nowhere_else() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        shown = Simple(None, stream)
        assert shown.draws is (stream is terminal)
        shown.step(Step("Making the data set", 1.0, 7, None, "entries"))
        shown.step(Step("Making the data set", 1.5, 9, None, "entries"))
        shown.close()
    erased = "\r\x1b[K"
    assert terminal.getvalue().endswith(f"{erased}Making the data set: 9 entries, 0:01{erased}")
    assert pipe.getvalue() == ""


def test_without_a_terminal_the_simple_display_writes_occasional_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_UI_REALTIME_METRICS_INTERVAL", "1000")
    stream = io.StringIO()
    shown = Simple(None, stream)
    shown.show(SNAPSHOT)
    assert stream.getvalue() == ""
    shown._last_s -= 1001
    shown.show(SNAPSHOT)
    shown.show(SNAPSHOT)
    assert len(stream.getvalue().splitlines()) == 1


def test_log_lines_are_folded_between_words_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a/path/that/is/longer/than/the/terminal/is/wide"
    line = f"00:58:31.783 WARNING the data set is made beside the load: see {path} 漢字漢字漢字漢字漢字漢字漢字 then"
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        Simple(None, stream).log(LogLine(line))
    assert pipe.getvalue() == f"{line}\n"
    assert terminal.getvalue().splitlines() == [
        "00:58:31.783 WARNING the data set is", "  made beside the load: see", f"  {path}",
        "  漢字漢字漢字漢字漢字漢字漢字 then",
    ]  # fmt: skip


def test_a_terminal_that_can_not_go_back_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    shown = Simple(None, stream)
    shown.show(SNAPSHOT)
    shown.step(Step("Making the data set", 1.0))
    shown.log(LogLine("a line"))
    shown.close()
    assert not shown.draws and stream.getvalue() == "a line\n"
