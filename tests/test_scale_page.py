"""docs/scale.md: its costs are those that a run reckons with, and its table is what a run would choose."""

from __future__ import annotations

import re
from pathlib import Path

from aiperf.planning import expected_load as load
from aiperf.sdk.plan import PhasePlan

PAGE = (Path(__file__).parent.parent / "docs" / "scale.md").read_text()
REQUEST_BYTES, CHUNK_BYTES, MANY = 611, 195, 10**9


def test_the_table_of_rates_is_what_a_run_chooses() -> None:
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+|–) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,.]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 9
    for row in rows:
        rate, tokens = float(row[0].replace(",", "")), None if row[1] == "–" else float(row[1].replace(",", ""))
        phase = PhasePlan("profiling", "profiling", 0, "request_rate", rate=rate)
        found = load.expected_load(phase, streaming=tokens is not None, answer_tokens=tokens)
        workers, journal = found.workers, found.requests_s * REQUEST_BYTES + found.chunks_s * CHUNK_BYTES
        reducers = load.reducers_for(found, workers, MANY)
        assert row[2:] == (f"{found.chunks_s:,.0f}", f"{workers:,}", f"{reducers:,}", f"{journal / 1e6:,.1f}"), row


def test_the_costs_of_the_page_are_those_of_a_run() -> None:
    for cost in (load.REQUEST_US, load.CHUNK_US, load.REDUCED_REQUEST_US, load.REDUCED_CHUNK_US):
        assert f"| {cost:g} µs |" in PAGE
    share, sessions = f"{load.WORKER_SHARE:g} of a core", f"{load.SESSIONS_PER_WORKER:,} sessions"
    tokens, chunks = f"{load.ANSWER_TOKENS:g} tokens", f"× {load.STREAM_CHUNKS_PER_S:g} chunks/s"
    assert [number for number in (share, sessions, tokens, chunks) if number not in PAGE] == []
