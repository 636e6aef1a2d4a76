"""What the page of a large run costs: ``aiperf report --html`` over made-up columns, its size, and when its figures are drawn.

usage: report_page.py [--requests N] [--chunks N] [--loads N] [--no-browser]

100,000 requests of 16 chunks from the journal's stored columns.  The page is opened at its figures by Chromium: the time from
the start of the navigation until the last figure of the first screen is drawn, beside the same of a page with one figure of
one point, in alternating pairs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from aiperf import Axis, Figure, Plot, PlotRun, PlotSeries
from aiperf.registry.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.descriptor import Descriptor
from aiperf_report_page import PageRequest, write_page
from pictures import made
from reduce import Cost

MOST_BYTES, MOST_TIMES = 4_000_000, 4.0
"""Promised for 100,000 requests: the size of the page, and the time of the first screen over that of an empty figure."""
_DRAWN = """() => {
  const boxes = [...document.querySelectorAll(".figure")].filter((each) => {
    const place = each.getBoundingClientRect();
    return place.top < innerHeight && place.bottom > 0;
  });
  if (!boxes.length || !boxes.every((each) => each.querySelector(".plot svg"))) return null;
  const names = boxes.map((each) => each.id);
  const marks = performance.getEntriesByType("mark").filter((mark) => names.includes(mark.name));
  return [boxes.length, Math.max(...marks.map((mark) => mark.startTime))];
}"""


class Empty(Plot):
    """A figure of one point."""

    title = "Empty"

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        return Figure("Empty", Axis("x"), Axis("y"), (PlotSeries("one", np.array([1.0]), np.array([1.0]), "points"),))


def empty_page(directory: Path, path: Path) -> None:
    registry = Registry([Descriptor("plots", "empty", f"{__name__}:Empty", "bench", "1")], kernel_options=())
    registry.load = lambda category, name: Empty  # type: ignore[method-assign]
    write_page(PageRequest((directory,), PluginOptions(registry, {}, {}), lambda place: {}, "0", None, path))


def written(directory: Path, path: Path) -> Cost:
    """What writing the page costs, as a program."""
    words = [sys.executable, "-m", "aiperf", "report", str(directory), "--html", "--output", str(path)]
    began = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


def first_screen(browser: Any, path: Path) -> tuple[int, float]:
    """Figures of the first screen, and the ms until the last of them was drawn."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    try:
        page.goto(f"file://{path}#figures-of-runs")
        deadline = time.monotonic() + 60
        while (found := page.evaluate(_DRAWN)) is None:
            if time.monotonic() > deadline:
                raise SystemExit("report_page.py: the figures of the first screen are not drawn")
            time.sleep(0.02)
        return int(found[0]), float(found[1])
    finally:
        page.close()


def drawn(path: Path, empty: Path, loads: int) -> float | None:
    """Print the times of both pages; their ratio, None without a browser."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        print("no chromium is installed: no first screen")
        return None
    from playwright.sync_api import sync_playwright

    times: dict[str, list[float]] = {"page": [], "empty figure": []}
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for at in range(loads + 1):
            for name, each in (("page", path), ("empty figure", empty)):
                count, drawn_ms = first_screen(browser, each)
                if at:  # the first of each warms the browser up
                    times[name].append(drawn_ms)
                if at == loads:
                    print(f"{name}: {count} figures of the first screen after {statistics.median(times[name]):.0f} ms")
        browser.close()
    ratio: float = statistics.median(mine / other for mine, other in zip(*times.values(), strict=True))
    print(f"first screen: {ratio:.2f} × an empty figure, at most {MOST_TIMES:g}")
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--chunks", type=int, default=16, help="of each request (16)")
    parser.add_argument("--loads", type=int, default=7, help="how often Chromium opens each page (7)")
    parser.add_argument("--no-browser", action="store_true", help="write the page alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aiperf-page-", dir=os.environ.get("BENCH_DIR")) as name:
        directory = made(Path(name), options.requests, options.chunks)
        path, empty = Path(name) / "page.html", Path(name) / "empty.html"
        cost = written(directory, path)
        empty_page(directory, empty)
        size = path.stat().st_size
        print(f"page of {options.requests:,} requests: {size / 1e6:.2f} MB, at most {MOST_BYTES / 1e6:g}; "
              f"{cost.wall_s:.1f} s wall, {cost.cpu_s:.1f} s CPU, {cost.peak_mb:.0f} MB")  # fmt: skip
        ratio = None if options.no_browser else drawn(path, empty, options.loads)
    if size > MOST_BYTES or (ratio is not None and ratio > MOST_TIMES):
        raise SystemExit("report_page.py: more than promised")


if __name__ == "__main__":
    main()
