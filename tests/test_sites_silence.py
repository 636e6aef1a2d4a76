"""A site that hears nothing of its run for 30 s sends nothing more, and ends; so no arrival is sent twice."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import running
from annex_runs import Annex, ledger
from program import wait_for

pytestmark = pytest.mark.long
SILENCE_S = 30.0


def test_sites_end_where_their_run_is_silent(tmp_path: Path) -> None:
    with running(first_token_ms=20, decode_ms=2, decode_batch_us=0) as simulator:
        annex = Annex(tmp_path, simulator)
        load = ("--tokenizer", "builtin", "--osl", 4, "--request-rate", 20, "--request-count", 2400)
        run = annex.start(*load, rooms=("attic", "barn"))
        columns = [annex.folder / "run" / "journal" / f"columns-{site}.0" for site in range(2)]
        wait_for(lambda: all(path.exists() and path.stat().st_size > 0 for path in columns))
        sites = [pid for room in ("attic", "barn") for pid in annex.processes_in(room)]
        os.kill(run.process.pid, signal.SIGSTOP)
        stopped_s = time.monotonic()
        try:
            wait_for(lambda: not any(map(alive, sites)))
            silent_s, sent = time.monotonic() - stopped_s, simulator.summary()["requests"]
        finally:
            os.kill(run.process.pid, signal.SIGCONT)
        done = annex.end(run)
        seen = simulator.truth()["requests"]
    assert silent_s > SILENCE_S - 5 and len(seen) == sent, "a site went on for as long as it may, and no longer"
    assert max(Counter(row["request_id"] for row in seen).values()) == 1
    assert done.code == 1 and "was lost" in done.json()["incomplete_reason"]
    rows = ledger(done)
    assert [row["n"] for row in rows] == [*range(2400)]
    completed = {row["x_request_id"] for row in rows if row["outcome"] == "completed"}
    assert completed and completed <= {row["request_id"] for row in seen}
    assert Counter(row["outcome"] for row in rows)["unknown"] >= sent - len(completed)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
