"""What it costs a run that somebody watches: the dashboard on a terminal, and 20 clients of the API.

usage: watched.py [--pairs 10] [--only ROW ...] [--by dashboard api | lines] [--clients 20] [--hz 10] [--json FILE]

Alternating pairs against truthd: `--ui none --stats-interval 0`, and the same load watched: the dashboard in a pseudo-terminal
of 200 columns and 60 lines all of whose output is read, and clients at idle priority that poll the API.  `--by lines` compares
lines of progress every second alone.  Each row takes at most five minutes with ten pairs.

streams10, streams300: error of TTFT, what the client says less what the server saw.  requests: requests/s that the server
saw, of the whole load and from its fifth second on, when the views have started; and CPU time of the reducers.  paced: slip
at half of that rate (`--rate` sets it); at most 1,000 requests are in flight, else a machine that stands still for a second
opens more connections than it may, and to wait for that is no slip.  start: from the program's start to the first request
that the server read.  Of each figure: medians, the median of the ratios of pairs with its bounds, and what is allowed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import pty
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from aiperf.cores import ask_for_short_slices, work_apart
from bench import machine
from pairs import interval
from truth import Truth, truthd

PATHS = ("/api/progress", "/api/metrics", "/api/workers", "/metrics")
PROGRAM = Path(sys.executable).with_name("aiperf")
COLUMNS, LINES = 200, 60
TICKS = os.sysconf("SC_CLK_TCK")


class WatchedLoad(NamedTuple):
    """A closed loop, or *paced* with that ceiling.

    ttft_ms, itl_ms: of the server.  tokens: of an answer; streams: whether it is streamed.
    """

    ttft_ms: float
    itl_ms: float
    connections: int
    requests: int
    tokens: int
    streams: bool = True
    paced: bool = False


LOADS = {
    "streams10": WatchedLoad(20, 5, 10, 500, 32), "streams300": WatchedLoad(50, 10, 300, 1500, 128),
    "requests": WatchedLoad(0, 0, 64, 450_000, 32, streams=False),
    "paced": WatchedLoad(0, 0, 1000, 0, 32, streams=False, paced=True), "start": WatchedLoad(0, 0, 2, 10, 8),
}  # fmt: skip
_PACED_S = 8
_STARTED_S = 5
"""Until the views have started, beside a load that leaves them the least share of the cores."""
_FEW = 10
"""Requests of a run that is over before the dashboard would begin to draw."""
ALLOWED = {
    "ttft_error_p50_us": "1.1 × or 20 µs", "ttft_error_p99_us": "1.1 × or 20 µs", "rps": "at least 0.97 ×",
    "later_rps": "at least 0.97 ×", "reducer_us": "1.1 ×", "slip_p99_us": "1.1 × or 100 µs",
    "start_ms": "1.1 ×", "api_mb": "80", "dashboard_mb": "90",
}  # fmt: skip


async def _client(session: Any, base: str, period_s: float, number: int, count: list[int]) -> None:
    await asyncio.sleep(period_s * number / 20)
    turn = number
    while True:
        began_s = time.monotonic()
        try:
            async with session.get(base + PATHS[turn % len(PATHS)]) as answer:
                await answer.read()
                count[0] += answer.status == 200
        except OSError:
            pass
        turn += 1
        await asyncio.sleep(max(0.0, began_s + period_s - time.monotonic()))


def take_what_is_left() -> None:
    """Idle priority, for the process and for its session, and short slices, as what watches the run."""
    ask_for_short_slices()
    work_apart()
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


async def poll(base: str, clients: int, hz: float) -> None:
    """Say when it is ready, and poll until standard input is closed; print how many answers came."""
    take_what_is_left()
    from aiohttp import ClientSession

    print("ready", flush=True)
    count = [0]
    async with ClientSession() as session:
        tasks = [asyncio.create_task(_client(session, base, 1 / hz, number, count)) for number in range(clients)]
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
    print(count[0])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class Children:
    """CPU time of a run's reducers, and the peak memory of its views, as they stood when last looked at."""

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self._known: dict[Path, str] = {}
        self.cpu_s: dict[Path, float] = {}
        self.peak_mb: dict[str, float] = {}

    def find(self) -> None:
        for task in Path(f"/proc/{self._parent}/task").glob("*/children"):
            for number in task.read_text().split():
                folder = Path("/proc", number)
                with contextlib.suppress(OSError):
                    command = (folder / "cmdline").read_bytes() if folder not in self._known else b""
                    if b"aiperf.run.reducer_process" in command:
                        self._known[folder] = "reducer"
                    elif b"aiperf.run.viewing" in command:
                        on_terminal = str((folder / "fd" / "2").readlink()).startswith("/dev/pts/")
                        self._known[folder] = "dashboard" if on_terminal else "api"

    def look(self) -> None:
        for folder, role in self._known.items():
            with contextlib.suppress(OSError, IndexError):
                if role == "reducer":
                    user, system = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
                    self.cpu_s[folder] = (int(user) + int(system)) / TICKS
                else:
                    peak_mb = int(re.findall(r"VmHWM:\s+(\d+)", (folder / "status").read_text())[0]) * 1024 / 1e6
                    self.peak_mb[role] = max(peak_mb, self.peak_mb.get(role, 0.0))


def sit() -> None:
    """Read the terminal of standard input until it is closed; print how often the dashboard has taken the screen."""
    take_what_is_left()
    drawn = 0
    with contextlib.suppress(OSError):  # the other end is closed
        while piece := os.read(0, 1 << 16):
            drawn += piece.count(b"\x1b[?1049h")
    print(drawn)


@contextlib.contextmanager
def beside(*words: str, stdin: int = subprocess.PIPE, script: str = __file__) -> Iterator[subprocess.Popen[str]]:
    """This script, or another one, with other *words*, in a session of its own."""
    command = [sys.executable, script, *words]
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def terminal(*, drawn: bool) -> Iterator[int]:
    """A pseudo-terminal whose output is read by a process at idle priority.  *drawn*: the dashboard must have drawn on it.

    Raises:
        SystemExit: It has not.
    """
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    with beside("--sit", stdin=ours) as sitting:
        os.close(ours)
        try:
            yield theirs
        finally:
            os.close(theirs)
        if not int(sitting.communicate()[0]) and drawn:
            raise SystemExit("watched.py: the dashboard has drawn nothing")


def measured(server: Truth, load: WatchedLoad, by: tuple[str, ...], clients: int, hz: float) -> dict[str, float]:
    """One run, watched by these: ``dashboard``, ``api``, ``lines``; by none it is the bare run."""
    server.reset()
    port = _free_port()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        drawn = load.requests > _FEW
        output = stack.enter_context(terminal(drawn=drawn)) if "dashboard" in by else subprocess.DEVNULL
        rate = ["--request-rate", f"{load.requests / _PACED_S:g}", "--arrival-pattern", "constant"]
        words = [
            str(PROGRAM), "profile", "--model", "truth", "--url", f"http://127.0.0.1:{server.port}", "--endpoint-type", "chat",
            "--tokenizer", "builtin", "--isl", "32", "--osl", str(load.tokens), "--request-count", str(load.requests),
            *(rate if load.paced else []), "--concurrency", str(load.connections),
            "--ui", "dashboard" if "dashboard" in by else "none", "--stats-interval", "1" if "lines" in by else "0",
            "--artifact-dir", folder, "--no-server-metrics", *(["--streaming"] if load.streams else []),
            *(["--api-port", str(port)] if "api" in by else []),
        ]  # fmt: skip
        polling = None
        if "api" in by and clients:
            asked = ("--poll", f"http://127.0.0.1:{port}", "--clients", str(clients), "--hz", str(hz))
            polling = stack.enter_context(beside(*asked))
            assert polling.stdout is not None
            polling.stdout.readline()  # its own start is not the run's
        variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        variables |= {"AIPERF_API_SERVER_POST_COMPLETE_GRACE": "0", "TERM": "xterm-256color"}
        began_ns = time.time_ns()
        run = subprocess.Popen(
            words, stdin=output, stdout=output, stderr=output, env=variables, start_new_session=True,
            preexec_fn=(lambda: ioctl(0, termios.TIOCSCTTY, 0)) if "dashboard" in by else None,  # noqa: PLW1509
        )  # fmt: skip
        children, looked = Children(run.pid), 0
        while run.poll() is None:
            time.sleep(0.1)
            if looked % 10 == 5:
                children.find()
            children.look()
            looked += 1
        answers = float(polling.communicate("")[0]) if polling is not None else 0.0
        if run.returncode:
            logged = (Path(folder) / "logs" / "aiperf.log").read_text().splitlines()[-20:]
            raise SystemExit("\n".join([*logged, f"watched.py: the run ended with {run.returncode}"]))
        summary = json.loads((Path(folder) / "profile_export_aiperf.json").read_text())
    return _figures(server, load, summary, children, began_ns) | {"answers": answers}


def _figures(
    server: Truth, load: WatchedLoad, summary: dict[str, Any], children: Children, began_ns: int
) -> dict[str, float]:  # fmt: skip
    seen, found = server.stats(), dict[str, float]()
    if load.requests <= _FEW:
        found["start_ms"] = (int(server.requests().received.min()) - began_ns) / 1e6
    elif load.paced:
        found["slip_p99_us"] = 1000 * summary["measurement"]["schedule_slip_ms"]["p99"]
    elif load.streams:
        said = summary["time_to_first_token"]
        found |= {f"ttft_error_{name}_us": 1000 * (said[name] - seen["ttft_ms"][name]) for name in ("p50", "p99")}
    else:
        came_s = np.sort(server.requests().received) / 1e9
        later_s = came_s[came_s >= came_s[0] + _STARTED_S]
        found |= {"rps": float(seen["rps"]), "later_rps": (len(later_s) - 1) / float(later_s[-1] - later_s[0])}
    if children.cpu_s and load.requests > 10_000:
        found["reducer_us"] = 1e6 * sum(children.cpu_s.values()) / load.requests
    return found | {f"{role}_mb": peak for role, peak in children.peak_mb.items()}


def line(row: str, figure: str, bare: list[float], watched: list[float], allowed: str) -> str:
    if len(bare) < len(watched):  # only what watches has it
        return f"{row:>11} {figure:>18}  watched {max(watched):10.1f} at most  allowed {allowed}"
    ratios = sorted(after / before for before, after in zip(bare, watched, strict=True) if before)
    low, high = interval(ratios) if ratios else (0.0, 0.0)
    ratio = f"{statistics.median(ratios):.3f} ({low:.3f}–{high:.3f})" if ratios else "—"
    middle = f"bare {statistics.median(bare):10.1f}  watched {statistics.median(watched):10.1f}"
    return f"{row:>11} {figure:>18}  {middle}  ratio {ratio}  allowed {allowed}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--hz", type=float, default=10.0)
    parser.add_argument("--only", nargs="+", choices=LOADS, default=[*LOADS])
    parser.add_argument("--by", nargs="+", choices=("dashboard", "api", "lines"), default=["dashboard", "api"])
    parser.add_argument("--rate", type=float, help="requests/s of the row paced  [default: half of what a bare run reaches]")
    parser.add_argument("--json", type=Path, help="write the figures of every run")
    parser.add_argument("--poll", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--sit", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.sit:
        sit()
        return 0
    if given.poll:
        asyncio.run(poll(given.poll, given.clients, given.hz))
        return 0
    print(machine())
    by, every = tuple(given.by), dict[str, list[tuple[dict[str, float], dict[str, float]]]]()
    for name in given.only:
        load = LOADS[name]
        with truthd(load.ttft_ms, load.itl_ms) as server:
            if load.paced:
                rate = given.rate or measured(server, LOADS["requests"], (), 0, 0)["rps"] / 2
                load = load._replace(requests=round(rate * _PACED_S))
                print(f"{name:>11} {rate:,.0f} requests/s")
            pairs = []
            for at in range(given.pairs):
                turns = (by, ()) if at % 2 else ((), by)
                sides = {side: measured(server, load, side, given.clients, given.hz) for side in turns}
                pairs.append((sides[()], sides[by]))
        every[name] = pairs
        for figure in pairs[0][1]:
            bare, watched = ([pair[side][figure] for pair in pairs if figure in pair[side]] for side in (0, 1))
            print(line(name, figure, bare, watched, ALLOWED.get(figure, "")), flush=True)
    if given.json:
        given.json.write_text(json.dumps(every, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
