"""The parent of a run with sites: how much memory it takes to receive the columns of all, and to make the report of them.

usage: gathered.py [--sites N] [--requests N] [--chunks N] [--keep FOLDER]

The run is a real one, ``aiperf profile`` at the summary level with the sites of tests/strangers/annex, whose program is this
file: it speaks to the run as a site does, by the site's own code, but starts no workers and sends nothing.  Its columns, of
*requests* at each site, are made up before the run.  They cross the channel in pieces, and the run's own reducers go on from
them.  Told are the largest resident sizes of the run's process and of the largest of those that it starts, and of each the
largest proportional size (PSS, ten looks a second) and the part of it that is no file's.  Must reach: 300 MB at most in each of
them with 8 sites of 1,000,000 requests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from aiperf.processes import control, local
from aiperf.run.site_home import SiteHome
from aiperf.run.site_process import SiteProcess
from aiperf.rundir import journal, temporary
from aiperf.sdk.columns import NUMBERS, Ints
from aiperf.sites import messages
from aiperf.sites.channel import SiteLine
from aiperf_reducer_columns.reduce.batches import StoredBatch
from reduce import batch

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from rogues import install_from

MOST_MB = 300
_BATCH, _FILE_BYTES = 2048, 64 << 20
_MADE = "made.json"
"""In a site's room: what is made up for it."""
_ANNEX = Path(__file__).resolve().parent.parent / "tests" / "strangers" / "annex"


class Made(msgspec.Struct):
    """Columns that were made up.  files: of all requests but the first and the last, in order.  sites: how many there are.
    last_ns: the last instant, since the run's start."""

    files: list[str]
    site: int
    sites: int
    requests: int
    chunks: int
    last_ns: int = 0

    def batch(self, first: int, end: int, draw: np.random.Generator) -> tuple[StoredBatch, int]:
        """The site's own requests from *first* to before *end*, and their last instant."""
        own: Ints = np.arange(first, end)
        stored, last_ns = batch(own * self.sites + self.site, self.chunks, draw, rated=True)
        table = np.frombuffer(stored.numbers).reshape(len(NUMBERS), len(own)).copy()
        table[NUMBERS.index("shard")], table[NUMBERS.index("request")] = self.site, own
        return msgspec.structs.replace(stored, numbers=table.tobytes()), last_ns


def _packed(stored: StoredBatch) -> bytes:
    return journal.pack(journal.COLUMNS, msgspec.msgpack.encode(stored), 0, 0, stored.count)


def made_up(room: Path, made: Made) -> None:
    """Files with the columns of a site's requests."""
    draw, file = np.random.default_rng(made.site), None
    for first in range(1, made.requests - 1, _BATCH):
        if file is None or file.tell() > _FILE_BYTES:
            made.files.append(str(room / f"made-{len(made.files)}"))
            file = Path(made.files[-1]).open("ab")  # noqa: SIM115  # one after the other
        stored, last_ns = made.batch(first, min(first + _BATCH, made.requests - 1), draw)
        made.last_ns = max(made.last_ns, last_ns)
        file.write(_packed(stored))
    if file is not None:
        file.close()
    made.last_ns += 10**9
    (room / _MADE).write_bytes(msgspec.json.encode(made))


class MadeUpSite(SiteProcess):
    """A site whose workers and reducers are made up: it says what they would say, and its columns are there when they end."""

    def __init__(self, line: SiteLine, board: control.Switchboard, directory: Path, made: Made) -> None:
        super().__init__(line, board, SiteHome(line, board, directory))
        self._made, self._sent = made, 0

    def _start(self, role: str, index: int) -> None:
        self._pass_on(control.Hello(role, index))

    def _requests(self) -> dict[int, int]:
        return {} if self._order is None else dict.fromkeys(self._order.workers, self._sent)

    def _deliver(self, role: str, index: int, message: control.Message) -> None:
        match message:
            case control.Load():
                self._pass_on(control.Ready(role, index))
            case control.Begin(phase, start_ns):
                self._sent = self._made.requests
                self._write(index, start_ns)
                self._pass_on(control.Counters(index, phase, self._sent, self._sent, 0, 0, reached=self._sent))
                self._pass_on(control.PhaseEnded(index, phase, start_ns + self._made.last_ns, start_ns + self._made.last_ns))
            case control.Finish():
                self._pass_on(control.Reduced(index))

    def _write(self, index: int, start_ns: int) -> None:
        """The columns, with the events of the phase in the first and in the last ones."""
        clock, made = self._clock, self._made
        for number, name in enumerate(made.files):
            os.link(name, journal.columns_path(self._directory, index, number + 1))
        ends = (
            (0, 0, "begin", start_ns - clock.ahead_ns),
            (len(made.files) + 1, made.requests - 1, "end", clock.started_mono_ns + made.last_ns),
        )
        for number, own, event, at_ns in ends:
            stored, _ = made.batch(own, own + 1, np.random.default_rng(0))
            stored.events.append((index, journal.PHASE, {"phase": 0, "event": event, "at_ns": at_ns}))
            journal.columns_path(self._directory, index, number).write_bytes(_packed(stored))


def site() -> None:
    """The program of a site, in its room."""
    local.ignore_endings()
    keys = msgspec.json.decode(sys.stdin.buffer.readline(), type=messages.SiteKeys)
    made = msgspec.json.decode(Path(_MADE).read_bytes(), type=Made)
    with temporary.private_directory(Path.cwd(), "site") as directory, tempfile.TemporaryDirectory() as sockets:
        line, board = SiteLine(keys), control.Switchboard(f"ipc://{sockets}/control")
        try:
            MadeUpSite(line, board, directory, made).run()
        finally:
            line.close()
            board.close()


DOOR = """#!/bin/sh
cd "$2"; export TMPDIR="$2"
exec {python} {program} --site
"""


class Sizes(NamedTuple):
    """The largest sizes of a process, in MB: resident, proportional, and of the latter what is no page of a file."""

    resident: float = 0.0
    proportional: float = 0.0
    anonymous: float = 0.0

    def __str__(self) -> str:
        return f"{self.resident:.0f} MB (PSS {self.proportional:.0f}, of it {self.anonymous:.0f} of no file)"


class Peak:
    """The sizes of a run's process and of those that it started, but for those of sites."""

    def __init__(self, pid: int) -> None:
        self._pid, self.parent, self.children = pid, Sizes(), dict[int, Sizes]()

    def look(self) -> None:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                fields = _fields(process / "status")
                command, own = (process / "cmdline").read_bytes(), int(process.name) == self._pid
                if not own and (int(fields["PPid"]) != self._pid or b"--site" in command):
                    continue
                maps = _fields(process / "smaps_rollup")
                texts = fields["VmHWM"], maps["Pss"], maps["Pss_Anon"]
            except (OSError, KeyError):  # it has ended
                continue
            now = Sizes(*(int(text.split()[0]) * 1024 / 1e6 for text in texts))
            before = self.parent if own else self.children.get(int(process.name), Sizes())
            largest = Sizes(*map(max, now, before))
            if own:
                self.parent = largest
            else:
                self.children[int(process.name)] = largest


def _fields(path: Path) -> dict[str, str]:
    return dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)


def gathered(folder: Path, sites: int, requests: int, chunks: int) -> tuple[Peak, float]:
    """A run with so many sites: its peaks, and how long it took in s."""
    rooms = [folder / f"room{number}" for number in range(sites)]
    for number, room in enumerate(rooms):
        room.mkdir()
        made_up(room, Made([], number, sites, requests, chunks))
    install_from(folder / "packages", _ANNEX)
    door = folder / "bin" / "env"
    door.parent.mkdir()
    door.write_text(DOOR.format(python=sys.executable, program=Path(__file__).resolve()))
    door.chmod(0o755)
    words = [
        sys.executable, "-m", "aiperf", "profile", "--model", "m", "--url", "http://127.0.0.1:9", "--streaming",
        "--tokenizer", "builtin", "--isl", "64", "--osl", str(chunks), "--concurrency", str(64 * sites),
        "--request-count", str(sites * requests), "--num-dataset-entries", "5", "--export-level", "summary", "--ui", "none",
        "--no-gpu-telemetry", "--no-server-metrics", "--artifact-dir", str(folder / "run"),
        "--engine", "annex", "--annex-rooms", ",".join(map(str, rooms)),
    ]  # fmt: skip
    environment = {**os.environ, "PATH": f"{door.parent}:{os.environ['PATH']}", "PYTHONPATH": str(folder / "packages")}
    began_s = time.monotonic()
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        peak = Peak(process.pid)
        while process.poll() is None:
            peak.look()
            time.sleep(0.1)
        took_s = time.monotonic() - began_s
        assert process.stderr is not None
        said = process.stderr.read()
    if process.returncode:
        raise SystemExit(f"the run ended with {process.returncode}: {said}")
    results = json.loads((folder / "run" / "profile_export_aiperf.json").read_text())
    found = results["request_count"]["avg"] + results["error_request_count"]["avg"]
    if found != sites * requests:
        raise SystemExit(f"the report has {found:,} of {sites * requests:,} requests")
    return peak, took_s


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sites", type=int, default=8)
    parser.add_argument("--requests", type=int, default=1_000_000, help="of each site (1,000,000)")
    parser.add_argument("--chunks", type=int, default=8, help="of each request (8)")
    parser.add_argument("--keep", type=Path, help="move the run's folder there")
    parser.add_argument("--site", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.site:
        site()
        return 0
    with tempfile.TemporaryDirectory(prefix="gathered-", dir=os.environ.get("BENCH_DIR")) as folder:
        peak, took_s = gathered(Path(folder), options.sites, options.requests, options.chunks)
        if options.keep is not None:
            (Path(folder) / "run").rename(options.keep)
    largest = max(peak.children.values(), default=Sizes())
    print(f"{options.sites} sites of {options.requests:,} requests of {options.chunks} chunks: {took_s:.0f} s;", end=" ")
    print(f"the run's process took {peak.parent} at most, the largest of its others {largest}")
    return 0 if max(peak.parent.resident, largest.resident) <= MOST_MB else 1


if __name__ == "__main__":
    sys.exit(main())
