"""Bursts of two sites behind a wire of 20 ms each way that loses 1 % of the packets; their journals come behind the load."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from program import Done
from test_far_sites import networks, profile, program_in, simulator_in


@pytest.mark.long
def test_two_far_sites_send_each_arrival_of_a_burst_once_and_fetch_their_journals(tmp_path: Path) -> None:
    with networks(tmp_path, 0.02, 0.01) as far, simulator_in(far.there) as truth, far.engine(ahead_s=5000) as engine:
        host = engine[engine.index("--ssh-hosts") + 1]
        engine[engine.index("--ssh-hosts") + 1] = f"{host},root@{host}"
        load = ("--isl", 30, "--concurrency", 8, "--request-count", 400, "--export-level", "raw")
        ended = program_in(far.here, tmp_path)(*profile(*load, *engine))
        seen = Counter(row["request_id"] for row in truth()["requests"])
    assert ended.code == 0, ended.err
    done = Done(ended.code, ended.out, ended.err, tmp_path / "run")
    rows = done.lines("profile_export_arrivals.jsonl")
    assert sorted(row["n"] for row in rows) == [*range(400)] and max(seen.values()) == 1 and len(seen) == 400
    raw = done.lines("profile_export_raw.jsonl")
    assert {row["metadata"]["x_request_id"] for row in raw} == set(seen) and all(row["responses"] for row in raw)
    starts = [row["start_perf_ns"] for row in raw]
    assert max(starts) - min(starts) < 1e12, "a site's clock, 5,000 s ahead, is not the run's"
    for site in done.json()["measurement"]["sites"]:
        assert abs(site["ahead_ms"] - 5e6) <= site["within_ms"] < 100, site
    sent = Counter(row["worker"] for row in rows)
    assert min(sent.values()) > 100, f"the sites have as many slots each, and sent {sent}"
