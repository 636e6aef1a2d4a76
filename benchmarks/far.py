"""A site that is far away: its server beside it, and between it and the run 20 ms each way, of whose packets 1 % are lost.

usage: far.py [--rows ttft|cut|clock ...] [--pairs N] [--offsets N]

Run and site are in two network namespaces, with a relay between two TUN devices; the site is reached with ssh.

ttft: errors of the time to first token, by truthd's own log, of runs at the site and of local runs beside the server, in
alternating pairs; and bytes a chunk on the way up, as the relay counts IP packets, ssh and the start of the site included.
cut: nothing passes for 10 s of the load; which requests the server has seen, and which the records have.
clock: runs whose site has a monotonic clock that is ahead by a planted offset, and whether the run's statement holds.

Must reach: an error (p50) of 1.1 × the local one or 20 µs apart, 20 bytes a chunk, no arrival lost, every offset within what is
stated.  Needs root, a server of ssh, and time namespaces.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from far_site import FarSite, far_site
from ssh_server import NoSshError
from truth import Truth, truthd
from two_networks import NoNetworksError

RATE, REQUESTS, TOKENS = 40, 400, 256
_CUT_S, _BEFORE_CUT_S = 10.0, 3.0
TTFT, APART_US, BYTES = 1.1, 20.0, 20.0
_DAY_S = 86_400


class Far:
    """The site, and the server beside it."""

    def __init__(self, far: FarSite, truth: Truth, folder: Path) -> None:
        self.far, self.truth, self._folder, self._runs = far, truth, folder, 0

    def profile(self, engine: Sequence[str], requests: int, *more: object) -> Path:
        """Results of a run at the site, or of one beside the server where *engine* has no words."""
        return self.end(self.start(engine, requests, *more))

    def start(self, engine: Sequence[str], requests: int, *more: object) -> tuple[subprocess.Popen[str], Path]:
        self.far.there.inside(self.truth.reset)
        self._runs += 1
        place = self._folder / f"run-{self._runs}"
        words = [
            sys.executable, "-m", "aiperf", "profile", "--model", "m", "--url", f"http://127.0.0.1:{self.truth.port}",
            "--streaming", "--tokenizer", "builtin", "--isl", 50, "--osl", TOKENS, "--request-rate", RATE,
            "--arrival-pattern", "constant", "--request-count", requests, "--random-seed", 1, "--ui", "none", "--workers", 1,
            "--no-gpu-telemetry", "--no-server-metrics", "--artifact-dir", place, *engine, *more,
        ]  # fmt: skip
        where = self.far.here if engine else self.far.there
        return subprocess.Popen(where.command(words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True), place

    def end(self, run: tuple[subprocess.Popen[str], Path]) -> Path:
        process, place = run
        _, said = process.communicate()
        if process.returncode:
            raise SystemExit(f"the run ended with {process.returncode}: {said}")
        return place

    def errors_us(self, place: Path) -> npt.NDArray[np.float64]:
        """How much longer the client saw the first token take than the server, request by request.

        The n-th record is the n-th request that came: they are 25 ms apart.
        """
        seen = self.far.there.inside(self.truth.requests)
        truth_ns = (seen.first - seen.arrived)[np.argsort(seen.received)]
        records = sorted(_records(place), key=lambda record: record["metadata"]["request_start_ns"])
        found_ms = [record["metrics"]["time_to_first_token"]["value"] for record in records]
        if len(found_ms) != len(truth_ns):
            raise SystemExit(f"the server has seen {len(truth_ns)} requests, and there are {len(found_ms)} records")
        return np.array(found_ms) * 1e3 - truth_ns / 1e3


class Errors(NamedTuple):
    p50_us: float
    p99_us: float


def _records(place: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, (place / "profile_export.jsonl").read_text().splitlines())


def _site(place: Path) -> dict[str, Any]:
    (site,) = json.loads((place / "profile_export_aiperf.json").read_text())["measurement"]["sites"]
    found: dict[str, Any] = site
    return found


def ttft(far: Far, pairs: int) -> bool:
    errors: dict[str, list[Errors]] = {"local": [], "site": []}
    a_chunk = []
    with far.far.engine() as engine:
        for pair in range(pairs):
            for side in ("local", "site") if pair % 2 == 0 else ("site", "local"):
                before = far.far.wire.carried_bytes(1)
                place = far.profile(engine if side == "site" else (), REQUESTS)
                found = far.errors_us(place)
                errors[side].append(Errors(float(np.median(np.abs(found))), float(np.percentile(np.abs(found), 99))))
                if side == "site":
                    a_chunk.append((far.far.wire.carried_bytes(1) - before) / (REQUESTS * TOKENS))
    local, site = ([statistics.median(column) for column in zip(*errors[side], strict=True)] for side in ("local", "site"))
    print(f"{pairs} pairs of {REQUESTS} requests, {RATE}/s, of {TOKENS} chunks, medians (least–most)")
    for at, what in enumerate(("p50", "p99")):
        sides = [f"{_spread([row[at] for row in errors[side]])} µs" for side in ("local", "site")]
        apart = f"{site[at] / local[at]:.2f} ×, {site[at] - local[at]:.1f} µs apart"
        print(f"TTFT error {what}: local {sides[0]}, at the site {sides[1]}; {apart}")
    print(f"bytes a chunk, from the site to the run: {_spread(a_chunk)}")
    return bool(site[0] <= TTFT * local[0] or site[0] - local[0] <= APART_US) and max(a_chunk) <= BYTES


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f}–{max(values):.1f})"


def cut(far: Far) -> bool:
    wire, requests = far.far.wire, round(RATE * (_BEFORE_CUT_S + 2 * _CUT_S))
    with far.far.engine() as engine:
        run = far.start(engine, requests)
        while far.far.there.inside(far.truth.stats)["requests"] < RATE * _BEFORE_CUT_S:
            time.sleep(0.05)
        wire.cut()
        threading.Timer(_CUT_S, wire.mend).start()
        began_s = time.monotonic()
        place = far.end(run)
        took_s = time.monotonic() - began_s
    seen = len(far.far.there.inside(far.truth.requests).ids)
    arrivals = [json.loads(line) for line in (place / "profile_export_arrivals.jsonl").read_text().splitlines()]
    completed = sum(row["outcome"] == "completed" for row in arrivals)
    print(f"cut off for {_CUT_S:g} s: {requests} arrivals, the server has seen {seen}, the records have {completed};", end=" ")
    print(f"the run ended {took_s:.1f} s behind the cut, {requests / RATE - _BEFORE_CUT_S:.1f} s of load included")
    return bool(seen == completed == requests == len(arrivals))


def clock(far: Far, offsets: int) -> bool:
    draw, held, widest_ms, worst_ms = random.Random(3), 0, 0.0, 0.0
    for number in range(offsets):
        ahead_s = round(draw.uniform(0, 10 * _DAY_S) if number else 0.0, 6)
        with far.far.engine(ahead_s) as engine:
            site = _site(far.profile(engine, 5))
        off_ms = abs(site["ahead_ms"] - ahead_s * 1e3)
        held += off_ms <= site["within_ms"]
        widest_ms, worst_ms = max(widest_ms, site["within_ms"]), max(worst_ms, off_ms)
    print(f"{held} of {offsets} planted offsets, up to ten days, are within what is stated,", end=" ")
    print(f"{widest_ms:.2f} ms at most; the farthest is {worst_ms:.2f} ms from what was planted")
    return held == offsets


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", nargs="+", choices=("ttft", "cut", "clock"), default=["ttft", "cut", "clock"])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--offsets", type=int, default=20)
    options = parser.parse_args()
    try:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="far-", dir=os.environ.get("BENCH_DIR"))))
            site = stack.enter_context(far_site(folder))
            truth = site.there.inside(lambda: stack.enter_context(truthd(50, 10, tokens=TOKENS, page=0)))
            far = Far(site, truth, folder)
            held = True
            for row in options.rows:
                match row:
                    case "ttft":
                        held &= ttft(far, options.pairs)
                    case "cut":
                        held &= cut(far)
                    case _:
                        held &= clock(far, options.offsets)
            return 0 if held else 1
    except (NoNetworksError, NoSshError) as error:
        raise SystemExit(f"not measured: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
