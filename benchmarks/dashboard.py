"""What the dashboard costs: CPU seconds a second and memory, beside a plain Textual screen that shows the same numbers.

    python benchmarks/dashboard.py [--pairs 5] [--seconds 20] [--json]

Each screen has a process and a pseudo-terminal of 200 columns and 60 lines of its own, and gets the same snapshots twice a
second.  The plain one has a DataTable for each list of the snapshot, whose rows are written again each time.  The two
alternate.  The first five seconds of each, with imports and first drawing, don't count.  Bound: 0.7 of the plain one's CPU
time, 90 MB.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pty
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from fcntl import ioctl
from itertools import islice
from pathlib import Path

from aiperf.sdk.snapshot import LiveMetric, LiveSeries, LiveWorker, LogLine, Snapshot
from aiperf_ui_dashboard import testing
from msgspec.structs import asdict

COLUMNS, LINES = 200, 60
STEP_S, WARM_UP_S = 0.5, 5.0
MOST_SHARE, MOST_BYTES = 0.7, 90_000_000
METRICS, WORKERS, SERIES = 24, 8, 60


def snapshot(number: int) -> Snapshot:
    """The snapshot of a run of 40 requests a second, all of whose numbers change."""
    at_s = number * STEP_S
    return testing.snapshot(
        number, in_flight=16 + number % 7, rate=40.0 + math.sin(at_s), recent_rate=39 + math.cos(at_s),
        metrics=tuple(
            LiveMetric(f"metric_{at}", f"Metric Number {at}", "ms", testing.statistics(at_s, at),
                testing.statistics(2 * at_s, at), f"M{at}", "", at)
            for at in range(METRICS)),
        workers=tuple(LiveWorker(at, "healthy", 4000 + at, 2, 5 * number, number, 12.0 + at, 50_000_000, 1000 * number)
            for at in range(WORKERS)),
        series=tuple(LiveSeries("server_metrics", f"series_{at}", at_s * at % 97, "requests", {"gpu": str(at)})
            for at in range(SERIES)),
        log=(LogLine(f"22:00:00.000 INFO  snapshot {number}"),), logged=number,
    )  # fmt: skip


def snapshots() -> Iterator[Snapshot]:
    """They are made as they are needed, for both screens alike."""
    number = 0
    while True:
        number += 1
        yield snapshot(number)


def used(seconds: float) -> None:
    """Write, at the end, the CPU seconds a second behind the warm-up, and the most memory."""

    def measure() -> None:
        time.sleep(WARM_UP_S)
        began = time.process_time()
        time.sleep(seconds)
        cpu = (time.process_time() - began) / seconds
        status = Path("/proc/self/status").read_text()
        peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
        os.write(int(sys.argv[3]), json.dumps({"cpu": cpu, "bytes": peak}).encode())

    threading.Thread(target=measure, daemon=True).start()


def show_dashboard(seconds: float) -> None:
    from aiperf_ui_dashboard import Dashboard

    used(seconds)
    view = Dashboard(None)
    count = int((seconds + WARM_UP_S + 1) / STEP_S)
    view.run(testing.MadeFeed(view, islice(snapshots(), count), STEP_S))
    view.close()


def show_plain(seconds: float) -> None:
    """The same numbers in Textual's own tables."""
    from textual.app import App, ComposeResult
    from textual.containers import Horizontal, Vertical
    from textual.widgets import DataTable, Footer, Header, ProgressBar, RichLog

    class Plain(App[None]):
        CSS = "DataTable { height: 1fr; } RichLog { height: 10; } Horizontal { height: 1fr; }"

        def compose(self) -> ComposeResult:
            yield Header()
            yield ProgressBar(total=600)
            with Horizontal():
                with Vertical():
                    for name in ("progress", "failures", "workers"):
                        yield DataTable(id=name)
                with Vertical():
                    yield DataTable(id="metrics")
                    yield DataTable(id="series")
            yield RichLog()
            yield Footer()

        def on_mount(self) -> None:
            self._made, self._left = snapshots(), int((seconds + WARM_UP_S + 1) / STEP_S)
            self.query_one("#progress", DataTable).add_columns("what", "value")
            self.query_one("#failures", DataTable).add_columns("count", "code", "type", "text")
            of_worker = ("worker", "status", "in flight", "done", "failed", "cpu", "memory", "read")
            self.query_one("#workers", DataTable).add_columns(*of_worker)
            of_metric = ("metric", "avg", "min", "max", "p99", "p90", "p50", "std", "avg 10 s", "p99 10 s", "p50 10 s")
            self.query_one("#metrics", DataTable).add_columns(*of_metric)
            self.query_one("#series", DataTable).add_columns("series", "value", "unit", "labels")
            self.set_interval(STEP_S, self.tick)

        def tick(self) -> None:
            self._left -= 1
            if not self._left:
                self.exit()
            shown = next(self._made)
            self.query_one(ProgressBar).update(progress=shown.elapsed_s)
            rows: dict[str, list[tuple[str, ...]]] = {
                "progress": [(name, str(value)) for name, value in asdict(shown.phases[1]).items()],
                "failures": [(str(each.count), str(each.code), each.type, each.text) for each in shown.failures],
                "workers": [
                    (str(each.index), each.status, *map(str, (each.in_flight, each.completed, each.errors, each.cpu_pct,
                        each.memory_bytes, each.received_bytes)))
                    for each in shown.workers
                ],
                "metrics": [
                    (each.title, *(f"{value:.2f}" for value in (
                        each.so_far.avg, each.so_far.min, each.so_far.max, each.so_far.p99, each.so_far.p90, each.so_far.p50,
                        each.so_far.std, each.so_far.avg, each.so_far.p99, each.so_far.p50) if value is not None))
                    for each in shown.metrics
                ],
                "series": [(each.name, f"{each.value:.2f}", each.unit, str(each.labels)) for each in shown.series],
            }  # fmt: skip
            for name, of_table in rows.items():
                table = self.query_one(f"#{name}", DataTable)
                table.clear()
                table.add_rows(of_table)
            self.query_one(RichLog).write(shown.log[0].text)

    used(seconds)
    Plain().run()


def measured(kind: str, seconds: float) -> dict[str, float]:
    """The figures of a screen in a terminal of its own, all of whose output is read."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    told, tells = os.pipe()
    command = [sys.executable, __file__, f"--show={kind}", str(seconds), str(tells)]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, pass_fds=[tells], start_new_session=True,
        env=environment | {"TERM": "xterm-256color"},
    ) as process:  # fmt: skip
        os.close(theirs)
        os.close(tells)
        shown = 0
        tail = b""
        try:
            while piece := os.read(ours, 1 << 16):
                shown += len(piece)
                tail = (tail + piece)[-4000:]
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    line = os.read(told, 1 << 12)
    os.close(told)
    if not line:
        raise SystemExit(f"benchmarks/dashboard.py: the {kind} screen has failed: {tail.decode(errors='replace')}")
    return {**json.loads(line), "output_bytes_per_s": shown / seconds, "code": process.returncode}


def main() -> int:
    if sys.argv[1].startswith("--show=") if len(sys.argv) > 1 else False:
        {"dashboard": show_dashboard, "plain": show_plain}[sys.argv[1].removeprefix("--show=")](float(sys.argv[2]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", action="store_true", help="print the figures of every screen")
    words = parser.parse_args()
    figures: dict[str, list[dict[str, float]]] = {"dashboard": [], "plain": []}
    for at in range(words.pairs):
        for kind in ("dashboard", "plain") if at % 2 else ("plain", "dashboard"):
            figures[kind].append(measured(kind, words.seconds))
    if words.json:
        print(json.dumps(figures, indent=2))
    medians = {kind: {name: statistics.median(one[name] for one in rows) for name in rows[0]} for kind, rows in figures.items()}
    for kind, row in medians.items():
        output = row["output_bytes_per_s"] / 1e3
        print(f"{kind:<10} {row['cpu']:.3f} CPU s/s  {row['bytes'] / 1e6:.0f} MB  {output:.1f} kB/s to the terminal")
    shares = [ours["cpu"] / plain["cpu"] for ours, plain in zip(figures["dashboard"], figures["plain"], strict=True)]
    share, most = statistics.median(shares), medians["dashboard"]["bytes"]
    print(f"share of the plain screen's CPU time: {share:.2f} (median of {words.pairs} pairs; bound {MOST_SHARE})")
    return int(share > MOST_SHARE or most > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
