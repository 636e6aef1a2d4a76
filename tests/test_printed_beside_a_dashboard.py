"""What a program prints while the dashboard has the screen is shown there, and printed once more behind it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from aiperf.run.diverted import Screen, diverted
from aiperf_command_simulate.testing import Simulator
from test_dashboard_runs import LEAVES, Session, simulator, stty  # noqa: F401  # a fixture

PROGRAM = """
import logging, os, sys, warnings
import aiperf
with aiperf.Run() as run:
    for number in (1, 2):
        summary = run.profile(model="m", url=sys.argv[1], tokenizer="builtin", isl=20, osl=4, concurrency=2, ui="dashboard",
                              benchmark_duration=3, no_server_metrics=True, artifact_dir=f"{sys.argv[2]}/{number}")
        print(f"plan {number} has an end")
        logging.getLogger("acme").warning(f"a stranger's warning {number}")
        warnings.warn(f"of the library {number}")
print("all is over")
"""


class Terminal:
    """A stream that says that it is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_printed_text_waits_for_the_end_of_the_display(monkeypatch: pytest.MonkeyPatch) -> None:
    out, errors, screen = Terminal(), Terminal(), Screen()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", errors)
    with diverted(screen):
        print("a word")
        print("half", end="")
        print("of a library", file=sys.stderr)
        assert [line.text for line in screen.lines()] == ["a word", "of a library"]
        assert (out.text, errors.text) == ("", "")
        screen.give_back()
        assert (out.text, errors.text) == ("a word\nhalf", "of a library\n")
        print(" another")
    print("and more")
    assert out.text == "a word\nhalf another\nand more\n" and sys.stdout is out


def test_more_than_can_be_kept_is_printed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    out, screen = Terminal(), Screen()
    monkeypatch.setattr(sys, "stdout", out)
    with diverted(screen):
        print("x" * (1 << 20))
        assert out.text == "\n"
    screen.give_back()
    assert len(out.text) == (1 << 20) + 1


@pytest.mark.long
def test_a_calling_program_prints_between_its_plans(simulator: Simulator, tmp_path: Path) -> None:  # noqa: F811
    run = Session([sys.executable, "-c", PROGRAM, simulator.url, str(tmp_path)], 100, 40)
    try:
        run.shows("─ 3 Metrics")
        assert run.end() == 0
        assert stty(run.theirs) == run.before
    finally:
        run.process.kill()
        run.process.wait()
    screen, _, after = run.raw.rpartition(LEAVES)
    for words in (b"plan 1 has an end", b"a stranger's warning 1", b"of the library 2", b"all is over"):
        assert words in after
    assert b"plan 1 has an end" in screen, "the log of the dashboard has it, too"
    assert run.raw.count(LEAVES) == 1
