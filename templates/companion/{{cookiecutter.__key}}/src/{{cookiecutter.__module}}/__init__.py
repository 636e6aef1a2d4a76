"""The {{ cookiecutter.name }} companion: this machine's load average at both ends of each phase, in a file of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

from aiperf import PhasePlan
from aiperf.sdk.companion import Companion, CompanionContext


class {{ cookiecutter.__class }}(Companion[None]):
    """``begin`` could start a process, and ``waiting`` could keep the load back until it is ready."""

    def __init__(self, options: None, context: CompanionContext) -> None:
        super().__init__(options, context)
        self._phases: list[dict[str, object]] = []

    def phase_begins(self, phase: PhasePlan) -> None:
        self._phases.append({"name": phase.name, "before": os.getloadavg()[0], "after": None})

    def phase_ended(self, phase: PhasePlan, at_ns: int) -> None:
        self._phases[-1]["after"] = os.getloadavg()[0]

    def finish(self) -> None:
        path = Path(self.context.plan.output.artifacts, "{{ cookiecutter.__key }}.json")
        path.write_text(json.dumps(self._phases, indent=2) + "\n", encoding="utf-8")
