"""``--dry-run`` of a study: its runs with their values and seeds, how long they take, and the page of the first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from aiperf.planning.phases import NS_PER_S
from aiperf.redaction import harmless
from aiperf.run.dry_run import page_of
from aiperf.run.start import Interruption, Signals
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.planner import PlannedTrial
from aiperf.sdk.study import StudyRun
from aiperf.study import trials
from aiperf.study.lines import cell_line, name_of
from aiperf.study.preparation import Preparation
from aiperf.study.request import StudyRequest


class _Planned(NamedTuple):
    """A run that would be made.  time_s: of its load; None where the server decides."""

    run: StudyRun
    time_s: float | None


def dry_run(request: StudyRequest) -> int:
    """Print what the study would be; returns the exit code.

    Raises:
        AiperfError: It could not be started.
    """
    prepared = Preparation(request)
    planned = list(_planned(prepared))
    first = planned[0].run
    settings = trials.settings_of(prepared.settings[first.cell.index], first.directory, first.seed, warms_up=True)
    with Signals().caught() as signals:
        try:
            page = page_of(settings, request.registry, signals)
        except Interruption:
            return signals.code
    print(harmless(_document(prepared, planned, page) if settings.kernel.as_json else _page(prepared, planned, page)), end="")
    return 0


def _planned(prepared: Preparation) -> Iterator[_Planned]:
    kernel, request = prepared.kernel, prepared.request
    base = trials.base_seed(kernel)
    for trial in prepared.planned:
        directory = trials.directory_of(prepared.base, request.space, trial, sweeps=request.sweeps)
        run = StudyRun(trial.cell, trial.trial, directory, trials.seed_of(kernel, trial, base))
        phases = [
            phase for phase in prepared.phases[trial.cell.index]
            if phase.kind != "warmup" or trials.warms_up(kernel, trial)
        ]  # fmt: skip
        times = list(map(_time_s, phases))
        yield _Planned(run, None if None in times else sum(time for time in times if time is not None))


def _time_s(phase: PhasePlan) -> float | None:
    """How long the phase sends; None where the server decides."""
    if phase.duration_ns is not None:
        return phase.duration_ns / NS_PER_S
    if phase.rate and phase.request_count is not None:
        return phase.request_count / phase.rate
    return None


def _pauses_s(prepared: Preparation) -> float:
    """All cooldowns together."""
    planned: Sequence[PlannedTrial] = prepared.planned
    return sum(trials.pause_s(prepared.kernel, one, other) for one, other in pairwise(planned))


def _time(prepared: Preparation, planned: Sequence[_Planned]) -> tuple[float, bool]:
    """Seconds of all loads and pauses as far as they are known, and whether they are all known."""
    known = [each.time_s for each in planned if each.time_s is not None]
    return sum(known) + _pauses_s(prepared), len(known) == len(planned)


def _page(prepared: Preparation, planned: Sequence[_Planned], page: str) -> str:
    seconds, whole = _time(prepared, planned)
    count = len(planned) if prepared.most is None else prepared.most
    more = "" if prepared.most is not None else f", and then what {prepared.request.planner.name} adds"
    lines = [f"{count:,} runs{more}, below {prepared.base}", ""]
    for each in planned:
        run = each.run
        values = cell_line(run.cell)
        name = name_of(run, prepared.request.space.trials)
        lines.append(f"  {name}{f'  {values}' if values else ''}  seed {run.seed}")
    first = name_of(planned[0].run, prepared.request.space.trials)
    takes = f"{_clock(seconds)} of loads and pauses" if whole else "depends on the server"
    known = f"; {_clock(seconds)} are known of loads and pauses" if not whole and seconds else ""
    lines += ["", f"Time: {takes}{known}", "", f"The first run, {first}:", "", page]
    return "\n".join(lines)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _document(prepared: Preparation, planned: Sequence[_Planned], page: str) -> str:
    seconds, whole = _time(prepared, planned)
    content = {
        "study": {
            "directory": str(prepared.base), "planner": prepared.request.planner.name, "most_runs": prepared.most,
            "known_time_s": seconds, "time_is_known": whole,
            "runs": [
                {
                    "label": each.run.label, "parameters": each.run.cell.parameters, "trial": each.run.trial,
                    "seed": each.run.seed, "directory": str(each.run.directory), "time_s": each.time_s,
                }
                for each in planned
            ],
        },
        "first_run": json.loads(page),
    }  # fmt: skip
    return json.dumps(content, indent=2) + "\n"
