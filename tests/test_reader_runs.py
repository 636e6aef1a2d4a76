"""Runs with either reader of sockets, and where the compiled one can't be had."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import aiperf_reader
import pytest
from aiperf_command_simulate.testing import Simulator, running
from aiperf_reader import ReaderError, SocketReader
from program import Done, Program

WORDS = ["--model", "m", "--tokenizer", "builtin", "--isl", "8", "--osl", "2", "--request-count", "4", "--streaming"]
SAYS = "the workers' loops read the sockets, so that more chunks merge on a busy machine: aiperf-reader has no compiled file"


@pytest.fixture
def uncompiled(aiperf: Program, tmp_path: Path) -> Program:
    """The program with an aiperf-reader that was installed without a compiler."""
    package = tmp_path / "site" / "aiperf_reader"
    package.mkdir(parents=True)
    shutil.copy(Path(aiperf_reader.__file__), package)
    aiperf.environment |= {"PYTHONPATH": str(package.parent)}
    return aiperf


def test_without_a_compiler_the_loops_read_and_one_line_says_so(uncompiled: Program, simulator: Simulator) -> None:
    done = uncompiled("profile", "--url", simulator.url, *WORDS, "--workers", 2)
    assert done.code == 0, done.err
    assert done.json()["measurement"]["reader"] == "python"
    assert done.err.count(SAYS) == 1
    assert (done.artifacts / "logs" / "aiperf.log").read_text().count(SAYS) == 1


def test_a_compiled_reader_that_is_demanded_and_missing_ends_the_run(uncompiled: Program, simulator: Simulator) -> None:
    uncompiled.environment |= {"AIPERF_READER": "compiled"}
    done = uncompiled("profile", "--url", simulator.url, *WORDS)
    assert done.code == 1
    assert "error: AIPERF_READER is compiled, and aiperf-reader has no compiled file for this machine: " in done.err
    assert done.err.rstrip().endswith("AIPERF_READER=python reads without it")


LOAD = ["--model", "m", "--tokenizer", "builtin", "--isl", "16", "--osl", "5", "--request-count", "8", "--concurrency", "1"]
STAMPS = {"reader", "reader_pauses", "coalesced_chunks", "merged_first", "first_stamp_share", "chunk_stamp_share", "scope"}
"""What the measurement may say otherwise."""


def said(done: Done) -> Any:
    """All that a run's files say, times and what follows from them apart."""
    summary = done.json()
    records = done.lines("profile_export.jsonl")
    counts = {  # what is timed is absent where all came at one instant
        each["metadata"]["session_num"]: {
            tag: metric["value"]
            for tag, metric in each["metrics"].items() if metric["unit"] in ("tokens", "requests")
        }
        for each in records
    }  # fmt: skip
    answers = {
        line["metadata"]["session_num"]: (
            line["payload"],
            [packet["value"] for answer in line["responses"] for packet in answer["packets"] if packet["name"] == "data"],
        )
        for line in done.lines("profile_export_raw.jsonl")
    }
    measured = {name for name in summary["measurement"] if name not in STAMPS}
    totals = {tag: summary[tag]["avg"] for tag in ("request_count", "output_sequence_length", "input_sequence_length")}
    names = sorted(path.name for path in done.artifacts.iterdir())
    return names, measured, totals, summary["outcomes"], counts, texts(answers)


def texts(answers: dict[int, tuple[Any, list[str]]]) -> dict[int, tuple[Any, list[Any]]]:
    """The answers without the server's own ids and clocks."""
    return {
        number: (payload, [json.loads(event)["choices"] if event != "[DONE]" else event for event in events])
        for number, (payload, events) in answers.items()
    }


def test_the_readers_differ_in_nothing_but_stamps(aiperf: Program) -> None:
    try:
        SocketReader.opened().close()
    except ReaderError as error:
        pytest.skip(str(error))
    found = []
    for reader in ("python", "compiled"):
        aiperf.environment |= {"AIPERF_READER": reader}
        with running() as server:  # a new one each time: its answers follow from its seed and what it was asked before
            done = aiperf(
                "profile", "--url", server.url, *LOAD, "--streaming", "--random-seed", 7, "--export-level", "raw",
                "--artifact-dir", aiperf.folder / reader,
            )  # fmt: skip
        assert done.code == 0, done.err
        assert done.json()["measurement"]["reader"] == reader
        found.append(said(done))
    assert found[0] == found[1]
