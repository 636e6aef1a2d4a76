"""What a person sees of a run on a terminal: progress, log lines and the report."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf_command_simulate.testing import Simulator, running
from screens import on_screen, on_terminal, raw_on_terminal

AT_ONCE = """
import sys
from aiperf.__main__ import main
from aiperf.run import builder, steps

steps._FIRST_S, steps._EVERY_S = 0.0, 0.0
poll = builder.Builder.poll
polls = iter(range(10**9))
# The progress is drawn before the builder's first line.
builder.Builder.poll = lambda self, *wait_s: next(polls) > 5 and poll(self, *wait_s)
sys.argv[0] = "aiperf"
sys.exit(main())
"""
LOG_LINE = re.compile(r"\d\d:\d\d:\d\d\.\d\d\d [A-Z]+ +\S")


def profile(simulator: Simulator, folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-P", "-c", AT_ONCE, "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "chat",
        "--streaming", "--tokenizer", "builtin", "--ui", "simple", "--artifact-dir", str(folder), *words]  # fmt: skip


def rows(shown: Sequence[str], title: str) -> list[list[str]]:
    """The cells of the table of this title, its header first; a label that is wrapped is joined."""
    found: list[list[str]] = []
    titles = [at for at, line in enumerate(shown) if line.strip() == title]
    assert titles, shown
    for line in shown[titles[0] + 1 :]:
        if line[:1] in ("└", ""):
            break
        if line[:1] == "│":
            cells = [cell.strip() for cell in line.strip("│").split("│")]
            if any(cells[1:]):
                found.append(cells)
            else:
                found[-1][0] += f" {cells[0]}"
    return found


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[str]]]:
    """A run whose user chose statistics, and what its terminal of 80 columns shows."""
    folder = tmp_path_factory.mktemp("chosen") / "run"
    words = ("--request-count", "24", "--concurrency", "4", "--isl", "20", "--osl", "4", "--percentiles", "50,95,99.9")
    with running() as simulator:
        yield folder, on_terminal(profile(simulator, folder, *words, "--slice-duration", "0.2"), 80)


def summary_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "profile_export_aiperf.json").read_text())
    return found


def test_a_terminal_begins_with_latency_and_throughput(reported: tuple[Path, list[str]]) -> None:
    folder, shown = reported
    header, *found = rows(shown, "LLM Metrics")
    titles = [cells[0].rpartition(" (")[0] for cells in found]
    behind = ("Output Sequence Length", "Input Sequence Length", "Completed Requests (Success + Error)", "Request Error Rate")
    assert titles[:3] == ["Time to First Token", "Time to Second Token", "Request Latency"]
    assert sorted(titles[-4:]) == sorted(behind) and titles.index("Request Throughput") < len(titles) - 4
    assert len({(cells[0].rpartition("(")[2], *cells[1:]) for cells in found}) == len(found), "a row repeats another"
    latency, measured = found[2], summary_of(folder)["request_latency"]
    assert header == [name for name in ("Metric", "avg", "min", "max", "p50", "p95", "p99.9", "std") if name in header]
    assert "p50" in header and "p99" not in header
    assert latency[1:] == [f"{measured[name]:,.2f}" for name in header[1:]]
    text = " ".join(" ".join(shown).split())
    assert "Same numbers: Time to First Output Token = Time to First Token; Request Count = Completed Requests" in text
    assert "Further tables with -v, and in the console file: Effective, Active and Usage" in text
    spread = ", ".join(f"{name} {measured[name]:,.2f}" for name in ("p50", "p95", "p99.9"))
    assert f"request latency {spread} ms " in text


def test_files_have_the_percentiles_that_were_chosen(reported: tuple[Path, list[str]]) -> None:
    folder, _ = reported
    lines = (folder / "profile_export.jsonl").read_text().splitlines()
    latencies = [json.loads(line)["metrics"]["request_latency"]["value"] for line in lines]
    measured = summary_of(folder)["request_latency"]
    assert [name for name in measured if name[0] == "p"] == [
        "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9",
    ]  # fmt: skip
    assert measured["p99.9"] == pytest.approx(np.percentile(latencies, 99.9))
    assert "p99.9" in summary_of(folder)["effective_concurrency"]
    with (folder / "profile_export_aiperf.csv").open(newline="") as file:
        assert next(csv.reader(file)) == ["Metric", "avg", "min", "max", "sum", "p50", "p95", "p99.9", "std"]
    with (folder / "profile_export_aiperf_timeslices.csv").open(newline="") as file:
        assert {row["Stat"] for row in csv.DictReader(file)} == {"avg", "min", "max", "sum", "p50", "p95", "p99.9", "std"}
    aiperf = (sys.executable, "-m", "aiperf")
    subprocess.run([*aiperf, "validate", str(folder)], check=True, stdout=subprocess.DEVNULL)


def test_a_report_has_other_statistics_of_the_same_run(reported: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(reported[0], folder)
    command = [sys.executable, "-m", "aiperf", "report", str(folder), "--columns", "max,p99,sum,p12.5"]
    shown = on_terminal(command, 200)
    header, *found = rows(shown, "LLM Metrics")
    measured = summary_of(folder)
    assert header == ["Metric", "max", "p99", "sum", "p12.5"]
    latency = next(cells for cells in found if cells[0] == "Request Latency (ms)")
    assert latency[1:] == [f"{measured['request_latency'][name]:,.2f}" for name in header[1:]]
    rate = f"Request Throughput (requests/sec) {measured['request_throughput']['avg']:.2f}"
    assert rate in next(line for line in shown if line.startswith("One number each: "))
    assert "p99.9" not in measured["request_latency"] and summary_of(reported[0])["request_latency"]["p99.9"]
    on_terminal([sys.executable, "-m", "aiperf", "validate", str(folder)], 200)


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


def test_what_ctrl_c_does_is_not_drawn_over(tmp_path: Path) -> None:
    """Requests in flight have a few seconds more, and the progress is drawn meanwhile."""
    with running(first_token_ms=1500, decode_ms=1, decode_batch_us=0) as simulator:
        command = profile(simulator, tmp_path / "run", "--isl", "10", "--osl", "2", "--request-count", "9")
        text = raw_on_terminal(command, 80, stop_behind="in flight", code=130)
    begun = text.index("^C")
    assert "in flight" in text[begun:], "the progress is drawn behind the sentence, too"
    shown = on_screen(text, 80)
    assert shown.count("aiperf: stopping; results so far will be written. Press Ctrl-C again to drop") == 1, shown
    assert [line for line in shown if "in flight" in line] == []


@pytest.mark.parametrize("words", ["--help", "profile --help", "plugins", "plugins --all"])
def test_a_narrow_terminal_without_utf8_gets_whole_words(words: str) -> None:
    """Forty columns, ASCII alone, and a terminal that knows no colour and no way back."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "NO_COLOR": "1", "TERM": "dumb"}
    text = raw_on_terminal([sys.executable, "-m", "aiperf", *words.split()], 40, plain)
    assert text.isascii() and "\x1b" not in text
    assert [line for line in text.split("\r\n") if len(line) > 40 and " " in line.strip()] == []
