"""Tokenizers that are files of the run's machine, at sites that have none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator
from annex_runs import Annex
from program import Done
from sent_tokenizers import write_tokenizer
from test_sites import words_in

pytestmark = pytest.mark.long
LOAD = ("--osl", 12, "--request-rate", 60, "--request-count", 24, "--num-dataset-entries", 24)


@pytest.fixture
def annex(tmp_path: Path, simulator: Simulator) -> Annex:
    return Annex(tmp_path, simulator)


def counts(done: Done) -> dict[int, tuple[Any, Any]]:
    """Input and output tokens of each request."""
    assert done.code == 0, done.err
    rows = {row["metadata"]["session_num"]: row["metrics"] for row in done.lines("profile_export.jsonl")}
    return {n: tuple(row[f"{way}_sequence_length"]["value"] for way in ("input", "output")) for n, row in rows.items()}


@pytest.mark.parametrize("given", ["path", "hub id"])
def test_requests_have_the_tokens_of_one_machine(given: str, annex: Annex) -> None:
    name, cache, commit = "own", annex.folder / "cache", "0123456789abcdef0123456789abcdef01234567"
    if given == "path":
        write_tokenizer(annex.folder / "own")
    else:
        name, model = "acme/own", cache / "hub" / "models--acme--own"
        write_tokenizer(model / "snapshots" / commit)
        (model / "refs").mkdir()
        (model / "refs" / "main").write_text(commit)
    annex.aiperf.environment |= {"HF_HOME": str(cache), "HF_HUB_OFFLINE": "1"}
    annex.enter_through('export HF_HOME="$place/cache"; exec "$@"')
    load = ("--tokenizer", name, "--apply-chat-template", *LOAD)
    done = annex(*load, "--export-level", "raw", rooms=("attic", "barn"), name="there")
    there = counts(done)
    alone = annex.aiperf(*annex.words(*load, name="here")[:-4])  # without the engine and its rooms
    here = counts(Done(alone.code, alone.out, alone.err, annex.folder / "here"))
    inputs = [{n: inputs for n, (inputs, _) in each.items()} for each in (there, here)]
    assert inputs[0] == inputs[1] and len(here) == 24
    said = {row["metadata"]["session_num"]: words_in(row) for row in done.lines("profile_export_raw.jsonl")}
    assert all(output == len(said[n].encode()) > 24 for n, (_, output) in there.items()), "a token is a byte"
    assert [list((annex.folder / room).iterdir()) for room in ("attic", "barn")] == [[], []], "the sites left files"
