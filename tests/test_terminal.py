"""What a person sees of a run on a terminal: progress, log lines and the report."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from screens import on_screen, raw_on_terminal

AT_ONCE = """
import sys
from aiperf.__main__ import main
from aiperf.run import start, steps

steps._FIRST_S, steps._EVERY_S = 0.0, 0.0
poll = start.Builder.poll
polls = iter(range(10**9))
# The progress is drawn before the builder's first line.
start.Builder.poll = lambda self, *wait_s: next(polls) > 5 and poll(self, *wait_s)
sys.argv[0] = "aiperf"
sys.exit(main())
"""
LOG_LINE = re.compile(r"\d\d:\d\d:\d\d\.\d\d\d [A-Z]+ +\S")


def profile(simulator: Simulator, folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-P", "-c", AT_ONCE, "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "chat",
        "--streaming", "--tokenizer", "builtin", "--artifact-dir", str(folder), *words]  # fmt: skip


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_log_lines_keep_apart_from_progress_and_to_the_width(simulator: Simulator, tmp_path: Path, columns: int) -> None:
    words = ("--benchmark-duration", "1", "--num-dataset-entries", "4000", "--isl", "2000", "--osl", "4", "--concurrency", "2")
    command = profile(simulator, tmp_path / "run", *words)
    text = raw_on_terminal(command, columns)
    shown = on_screen(text, columns)
    assert not [line for line in shown if "Making the data set:" in line]
    counts = [int(count.replace(",", "")) for count in re.findall(r"Making the data set: ([\d,]+) of 4,000 entries", text)]
    assert counts == sorted(counts) and max(counts, default=0) <= 4000
    glued = [line for line in shown if re.search(r" (INFO|WARNING) ", line) and not LOG_LINE.match(line)]
    assert not glued
    logged = (tmp_path / "run" / "logs" / "aiperf.log").read_text()
    joined = re.sub(r"\s+", " ", " ".join(shown))
    for sentence in re.findall(r"- (?:INFO|WARNING) - (.*)", logged):
        assert re.sub(r"\s+", " ", sentence) in joined, "a word is cut, or a line is lost"
