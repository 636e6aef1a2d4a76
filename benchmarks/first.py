"""A busy machine merges the first content of answers: does each request's own interval hold what truthd knows of it?

usage: first.py [--streams N …] [--requests N] [--json]

Two processes beside the client and truthd keep both cores busy.  truthd stamps the first chunk of each answer before and behind
its write.  Of each request, the first content came between the ``lower`` and ``upper`` of its time to first token in
profile_export.jsonl, or at its value where it has no interval.  That must meet the time of the write, give or take CLOCK_MS, in
999 of 1,000 requests; and the mean of the truth must lie within those of the summary.  Exits with 1 where one of them fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import machine
from tools import Load, LoadError, Ours, profile_words
from truth import Seen, truthd

TTFT_MS, ITL_MS, TOKENS = 60, 5, 30
CLOCK_MS, SHARE, BUSY = 0.5, 0.999, 2


class Row(NamedTuple):
    """One run: requests, those whose first content was merged, those within their own interval; means of the TTFT in ms."""

    streams: int
    requests: int
    merged: int
    within: int
    worst_ms: float
    truth_ms: float
    lower_ms: float
    main_ms: float
    upper_ms: float
    scope: str | None

    @property
    def holds(self) -> bool:
        inside = self.lower_ms - CLOCK_MS <= self.truth_ms <= self.upper_ms + CLOCK_MS
        return inside and self.within >= SHARE * self.requests


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many processes that only compute."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def run(streams: int, requests: int) -> Row:
    """One load with *streams* requests in flight."""
    with truthd(TTFT_MS, ITL_MS) as server, tempfile.TemporaryDirectory(prefix="bench-") as folder, busy_processes(BUSY):
        words = profile_words(Ours().program, server.port, Load(streams, requests, TOKENS), folder, "builtin")
        done = subprocess.run(
            [*words, "--export-level", "raw"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
        )  # fmt: skip
        if done.returncode:
            raise LoadError(done.stderr)
        return row(streams, Path(folder), server.requests())


def row(streams: int, folder: Path, seen: Seen) -> Row:
    """What the files of a run say, held against the truth."""
    summary = json.loads((folder / "profile_export_aiperf.json").read_text())
    places = {name: place for place, name in enumerate(seen.ids)}
    merged = within = count = 0
    worst_ms = total_ms = 0.0
    raw = (folder / "profile_export_raw.jsonl").read_text().splitlines()
    for line, answer in zip(map(json.loads, (folder / "profile_export.jsonl").read_text().splitlines()), raw, strict=True):
        metric: dict[str, Any] = line["metrics"]["time_to_first_token"]
        began_ns = line["metadata"]["request_start_ns"]
        data = next(packet["value"] for packet in json.loads(answer)["responses"][0]["packets"] if packet["name"] == "data")
        place = places[json.loads(data)["id"]]
        low = high = metric["value"]
        if intervals := metric.get("intervals"):
            merged += 1
            low, high = intervals.get("lower", [0.0])[0], intervals["upper"][0]
        before, behind = ((int(of[place]) - began_ns) / 1e6 for of in (seen.first, seen.written))
        off_ms = max(low - behind, before - high, 0.0)
        within += off_ms <= CLOCK_MS
        worst_ms, total_ms, count = max(worst_ms, off_ms), total_ms + before, count + 1
    ttft = summary["time_to_first_token"]
    lower, upper = (ttft.get(side, ttft)["avg"] for side in ("lower", "upper"))
    scope = summary["measurement"].get("scope")
    return Row(streams, count, merged, within, worst_ms, total_ms / count, lower, ttft["avg"], upper, scope)


def main() -> int:
    parser = argparse.ArgumentParser(description="bounds of the first content against a server that knows the truth")
    parser.add_argument("--streams", type=int, nargs="+", default=[64, 300])
    parser.add_argument("--requests", type=int, default=1200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = [run(streams, given.requests) for streams in given.streams]
    if given.json:
        print(json.dumps({"machine": machine(), "rows": [each._asdict() for each in rows]}, indent=2))
    else:
        names = "first content merged", "within its interval", "farthest off", "mean TTFT", "lower", "main", "upper", "scope"
        print("| streams |", " | ".join(names), "|")
        print("|---" * (1 + len(names)) + "|")
        for each in rows:
            numbers = " | ".join(f"{ms:.2f} ms" for ms in each[4:9])
            shares = f"{each.merged:,} of {each.requests:,} | {each.within:,} of {each.requests:,}"
            print(f"| {each.streams} | {shares} | {numbers} | {each.scope or 'all'} |")
    return 0 if all(each.holds for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
