"""The {{ cookiecutter.name }} hooks: when each phase of a run began and ended, in a file of its own.

``aiperf plugins hooks`` lists every hook there is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from aiperf import Artifact, PhasePlan, Summary, Target, atomic, hookimpl


class {{ cookiecutter.__class }}:
    """One instance serves a whole run.  *now_ns* gives the wall clock, in ns since 1970."""

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        self._phases: list[dict[str, object]] = []

    @hookimpl
    def aiperf_phase_started(self, phase: PhasePlan) -> None:
        self._phases.append({"name": phase.name, "kind": phase.kind, "started_ns": self._now_ns(), "ended_ns": None})

    @hookimpl
    def aiperf_phase_ended(self) -> None:
        self._phases[-1]["ended_ns"] = self._now_ns()

    @hookimpl
    def aiperf_export(self, summary: Summary, target: Target) -> list[Artifact]:
        path = target.file("{{ cookiecutter.__key }}.json")
        with atomic(path) as draft:
            draft.write_text(json.dumps({"run_id": summary.run_id, "phases": self._phases}, indent=2) + "\n", encoding="utf-8")
        return [Artifact("{{ cookiecutter.__title }} Export", path)]
