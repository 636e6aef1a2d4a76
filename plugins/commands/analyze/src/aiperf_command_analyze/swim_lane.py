"""``aiperf analyze swim-lane DIR...``: requests of finished runs on lanes of time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from aiperf import AiperfError, Command
from aiperf_results import FinishedRun

from aiperf_command_analyze.drawing import LEFT_PX, PLOT_PX, RIGHT_PX, clean, svg
from aiperf_command_analyze.figures import curves_figure, lanes_figure
from aiperf_command_analyze.lanes import lanes_of
from aiperf_command_analyze.options import SwimLaneOptions
from aiperf_command_analyze.runs import each_run, written
from aiperf_command_analyze.sessions import sessions_of


class SwimLane(Command[SwimLaneOptions]):
    """Draws each directory's run: a lane for each session at a time, children below their root, and sessions over time."""

    arguments = "DIR..."

    def run(self, options: SwimLaneOptions, words: Sequence[str]) -> int:
        """0; 1 where a directory was skipped."""

        def make(run: FinishedRun, path: Path) -> None:
            sessions, title = sessions_of(run), f"Sessions of {run.label}"
            curves = curves_figure(title, sessions, options.concurrency, _instants(run, options))
            picture = svg(lanes_figure(title, sessions, lanes_of(sessions.trees)), curves)
            if path.suffix.lower() == ".html":
                written(path, _page(run.label, picture))
                return
            written(path, picture)
            if options.html:
                written(path.with_suffix(".html"), _page(run.label, picture))

        return each_run(words, options.out, "swim_lane.svg", (".svg", ".html"), make)


def _page(label: str, picture: str) -> str:
    page = files("aiperf_command_analyze").joinpath("swim_lane.html").read_text()
    filled = {
        "left": str(LEFT_PX), "plot": str(PLOT_PX), "right": str(RIGHT_PX), "title": clean(f"Sessions of {label}"),
        "svg": picture.strip(),
    }  # fmt: skip
    return re.sub("@(left|plot|right|title|svg)@", lambda found: filled[found[1]], page)  # at once: a title may have any text


def _instants(run: FinishedRun, options: SwimLaneOptions) -> list[tuple[float, str]]:
    """The ends of the ramp and of the configured duration in s, by the option or the summary, with their words."""
    phase = _phase(run)
    ramp = options.ramp if options.ramp is not None else _seconds(phase.get("concurrency_ramp"))
    instants = [(ramp, "ramp done"), (_seconds(phase.get("duration")), "duration")]
    return [(at, word) for at, word in instants if at]


def _phase(run: FinishedRun) -> dict[str, Any]:
    """The settings of the profiling phase; none without a summary."""
    try:
        phases = run.configuration.get("phases")
    except AiperfError:
        return {}
    found = [each for each in phases if isinstance(each, dict)] if isinstance(phases, list) else []
    measured = [each for each in found if not each.get("exclude_from_results") and each.get("kind") != "warmup"]
    return measured[0] if measured else {}


def _seconds(setting: Any) -> float | None:
    if isinstance(setting, dict):
        setting = setting.get("duration")
    return float(setting) if isinstance(setting, int | float) and not isinstance(setting, bool) and setting > 0 else None
