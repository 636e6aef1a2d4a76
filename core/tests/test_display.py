"""Live displays: what they are told, in which process, and that none of them can harm a run."""

from __future__ import annotations

import io
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiperf.errors import PluginError
from aiperf.run import steps
from aiperf.run.display import Display, Elsewhere, display
from aiperf.sdk.live import Step
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.snapshot import LogLine, Snapshot
from aiperf.sdk.ui import NoUi, Ui
from aiperf_testing.plans import sample_ref

FAKES = '''
import os
import sys
import time
from pathlib import Path

from aiperf import Options, Ui
from aiperf.sdk.ui import work_apart


class Place(Options):
    path: Path


class Files(Ui):
    """Writes what it is told to the file of its options."""

    def show(self, snapshot):
        self.write(f"shown {snapshot.phase} {snapshot.completed} {os.getpid() != snapshot.sent}")

    def step(self, step):
        self.write(f"stepped {step.line()}")

    def log(self, line):
        self.write(f"logged {line.text}")

    def close(self):
        self.write("closed")

    def write(self, line):
        with Path(self.options.path).open("a") as file:
            file.write(line + "\\n")


class Breaks(Files):
    def show(self, snapshot):
        raise ZeroDivisionError("nothing to divide")


class Dies(Files):
    def show(self, snapshot):
        os._exit(3)


class Hangs(Files):
    def show(self, snapshot):
        self.write("hangs")
        time.sleep(600)


class Apart(Files):
    def run(self, feed):
        work_apart()
        self.write("apart")
        while not Path(self.options.path).with_name("core").exists():
            time.sleep(0.01)
        super().run(feed)


class Unmade(Ui):
    def __init__(self, options=None):
        raise RuntimeError("no terminal of my kind")
'''
SNAPSHOT = Snapshot("profiling", "profiling", 1.5, 0, 7, 1, 2, 4.0)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "fake_uis.py").write_text(FAKES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delitem(sys.modules, "fake_uis", raising=False)
    return tmp_path / "told"


def opened(name: str, told: Path, *, in_process: bool = False) -> Display:
    ref = sample_ref("uis", f"fake_uis:{name}")
    return display(ref, EncodedOptions("fake_uis:Place", {"path": str(told)}), in_process=in_process)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("in_process", [False, True])
def test_a_display_gets_snapshots_log_lines_and_the_end(told: Path, in_process: bool) -> None:
    shown = opened("Files", told, in_process=in_process)
    shown.log("hello")
    until(lambda: lines(told) == ["logged hello"])
    shown.show(SNAPSHOT)
    shown.step(Step("Reducing the rest", 61.0, 1200, 40_000, "requests"))
    shown.close()
    stepped = "stepped Reducing the rest: 1,200 of 40,000 requests, 1:01"
    assert lines(told) == ["logged hello", "shown profiling 7 True", stepped, "closed"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Breaks", "ZeroDivisionError: nothing to divide"),
        ("Dies", "its process exited with 3"),
        ("Unmade", "RuntimeError: no terminal of my kind"),
        ("Missing", "can't be imported: AttributeError: module 'fake_uis' has no attribute 'Missing'"),
    ],
)
def test_a_display_that_fails_is_named_once_and_the_log_goes_on(
    told: Path, name: str, why: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING, "aiperf")
    shown = opened(name, told)

    def failed() -> bool:
        shown.show(SNAPSHOT)
        return bool(caplog.messages)

    until(failed)
    shown.show(SNAPSHOT)
    shown.log("a line")
    shown.close()
    assert caplog.messages == [f"the plugin uis:{name.lower()} of acme 1.2 failed, and is left out: {why}"]
    assert "a line" in capsys.readouterr().err


def test_a_line_that_finds_the_display_gone_is_printed(told: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Gone(Ui):
        def log(self, line: LogLine) -> None:
            raise PluginError("gone")

    Display(Gone(), "the display").log("not lost")
    assert "not lost" in capsys.readouterr().err


def test_snapshots_that_a_display_is_too_slow_for_are_dropped(
    told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiperf.run.display._END_S", 0.1)
    options = EncodedOptions("fake_uis:Place", {"path": str(told)})
    ui = Elsewhere(sample_ref("uis", "fake_uis:Hangs"), options)
    ui.show(SNAPSHOT)
    until(lambda: lines(told) == ["hangs"])
    for _ in range(5000):
        ui.show(SNAPSHOT)
    assert ui.process.backlogged, "a pipe takes no more, and nobody waited for it"
    with pytest.raises(PluginError, match="its process was killed by SIGKILL"):
        ui.close()


class Drawing(Ui):
    """Draws steps into a stream, as on a terminal, or doesn't draw."""

    def __init__(self, stream: io.StringIO, *, draws: bool = True) -> None:
        super().__init__()
        self.stream, self.draws = stream, draws

    def show(self, snapshot: Snapshot) -> None:
        pass

    def step(self, step: Step) -> None:
        if self.draws:
            self.stream.write(f"drawn {step.line()}\n")

    def close(self) -> None:
        self.stream.write("erased\n")


def test_a_step_is_drawn_on_a_terminal_and_logged_once_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aiperf")
    terminal, pipe = io.StringIO(), io.StringIO()
    for stream in (terminal, pipe):
        shown = Display(Drawing(stream, draws=stream is terminal), "it")
        shown.step(Step("Making the data set", 1.0, 7, None, "entries"))
        shown.step(Step("Making the data set", 1.5, 9, None, "entries"))
        shown.close()
    assert terminal.getvalue().endswith("drawn Making the data set: 9 entries, 0:01\nerased\n")
    assert pipe.getvalue() == "erased\n"
    assert caplog.messages == ["Making the data set: 7 entries, 0:01"]


def test_a_step_of_a_terminal_that_was_left_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aiperf")
    shown = Display(Drawing(io.StringIO()), "it")
    shown.close()
    shown.step(Step("Writing the files", 1.0, None, None, ""))
    assert caplog.messages == []


def test_a_step_is_shown_after_a_second_four_times_a_second(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "aiperf")
    now = iter([0.0, 0.5, 0.99, 1.0, 1.1, 1.24, 1.3, 9.0, 9.5])
    monkeypatch.setattr(steps, "time", SimpleNamespace(monotonic=lambda: next(now)))
    shown: list[Step] = []
    display = SimpleNamespace(step=lambda step, logged: shown.append(step))
    with steps.step(display, "Waiting", lambda: (len(shown), 3, "s")) as tell:  # type: ignore[arg-type]  # a fake
        for _ in range(7):
            tell()
    assert [(step.elapsed_s, step.done) for step in shown] == [(1.0, 0), (1.3, 1), (9.0, 2)]
    assert caplog.messages == ["Waiting took 9.50 s"]


def test_what_is_printed_takes_the_place_of_a_drawn_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "_FIRST_S", 0.0)
    monkeypatch.setattr(steps, "_EVERY_S", 0.001)
    terminal = io.StringIO()
    shown = Display(Drawing(terminal), "it")
    with steps.watched(shown, "Writing the files"):
        until(lambda: "Writing the files, 0:00" in terminal.getvalue())
        print("the report")
        assert not shown.draws
    assert terminal.getvalue().endswith("erased\n")
    assert capsys.readouterr().out == "the report\n"


def test_options_are_attributes(told: Path) -> None:
    given: Any = SimpleNamespace(path="x")
    assert NoUi(given).options.path == "x"


def nice_of(pid: int) -> str:
    """The priority of the session that a process belongs to; "" on a system whose sessions have none."""
    path = Path(f"/proc/{pid}/autogroup")
    *_, nice = ["", *(path.read_text().split() if path.exists() else ())]  # empty in a container without sessions of its own
    return nice


@pytest.mark.skipif(not nice_of(os.getpid()), reason="sessions with priorities, of Linux")
def test_a_display_apart_has_a_share_of_the_cores_until_it_reads(told: Path) -> None:
    shown = Elsewhere(sample_ref("uis", "fake_uis:Apart"), EncodedOptions("fake_uis:Place", {"path": str(told)}))
    until(lambda: lines(told) == ["apart"])
    pid = shown.process.pid
    assert (os.getsid(pid), nice_of(pid)) == (pid, "19")

    def has_shown(nice: str) -> bool:
        shown.show(SNAPSHOT)
        return nice_of(pid) == nice

    until(lambda: has_shown(nice_of(os.getpid())))
    told.with_name("core").touch()
    until(lambda: shown.process.unread == 0 and has_shown("19"))
    shown.close()
    assert lines(told)[-1] == "closed"
