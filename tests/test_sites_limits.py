"""Limits that count over all sites: failed requests, and servers that nobody reaches."""

from __future__ import annotations

import socket
from collections import Counter
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import running
from annex_runs import ROOMS, Annex, ledger
from program import Done

pytestmark = pytest.mark.long


def run(annex: Annex, *more: str | float, name: str = "run") -> Done:
    done = annex.aiperf(
        "profile", "--model", "sim", "--tokenizer", "builtin", "--isl", 30, "--osl", 4, "--random-seed", 7, "--ui", "none",
        "--artifact-dir", name, *more, "--engine", "annex", "--annex-rooms", ",".join(ROOMS),
    )  # fmt: skip
    return Done(done.code, done.out, done.err, annex.folder / name)


def test_failed_requests_count_over_all_sites(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0) as good, socket.create_server(("127.0.0.1", 0)) as dead:
        dead.listen(0)
        annex = Annex(tmp_path, good)
        closed = dead.getsockname()[1]
        dead.close()
        # Sessions take the URLs in turn: of three sites one alone meets the server that is not there.
        urls = ("--url", good.url, f"http://127.0.0.1:{closed}", good.url)
        load = (*urls, "--request-rate", 60, "--request-count", 90, "--failed-request-threshold")
        few, many = (run(annex, *load, share, name=f"t{share}") for share in (0.5, 0.2))
    sent = [[row for row in ledger(done) if row["outcome"] != "never_sent"] for done in (few, many)]
    failed = [Counter(row["worker"] for row in rows if row["outcome"] != "completed") for rows in sent]
    assert few.code == 0 and failed[0] == {"worker-1": 30} and len(sent[0]) == 90, "a third of all, though all of one site"
    assert many.code == 1 and failed[1].keys() == {"worker-1"} and len(sent[1]) < 60
    assert "requests failed, a larger share than --failed-request-threshold 0.2" in many.json()["incomplete_reason"]


def test_sites_that_reach_no_server_end_the_run_together(tmp_path: Path) -> None:
    with running() as simulator, socket.create_server(("127.0.0.1", 0)) as taken:
        annex, closed = Annex(tmp_path, simulator), taken.getsockname()[1]
        taken.close()
        load = ("--request-rate", 30, "--request-count", 3000, "--unreachable-timeout", 2)
        done = run(annex, "--url", f"http://127.0.0.1:{closed}", *load)
    assert done.code == 1 and "results are partial: no connection could be opened for 2 s" in done.err
    outcomes = Counter(row["outcome"] for row in ledger(done))
    assert sum(outcomes.values()) == 3000 and outcomes["never_sent"] > 2000
    assert {row.get("site") for row in ledger(done)} == {*ROOMS}
