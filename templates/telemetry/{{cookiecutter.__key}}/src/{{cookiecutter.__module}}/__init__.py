"""The {{ cookiecutter.name }} telemetry source: this machine's load average."""

from __future__ import annotations

import os
from collections.abc import Iterable

from aiperf import Absent, Point, SeriesDeclaration, SeriesTable, TelemetrySource


class {{ cookiecutter.__class }}(TelemetrySource):
    """Samples how many tasks ran or waited for a core in the last minute.

    It is asked at both edges of each phase and every *interval_s* in between, in a process of its own.  A source of several
    servers or devices gives a ``TelemetryTarget`` for each in ``targets``, with a thread of its own.  One that reads a page
    over HTTP uses ``self.context.fetch(url)``: it has the run's certificates, and its headers for the tested servers.
    """

    interval_s = 1.0
    table = SeriesTable(
        SeriesDeclaration("{{ cookiecutter.__key }}_load", "tasks", help="Tasks that ran or waited, mean of a minute"),
    )

    def start(self) -> None:
        """Once, before the first sample."""
        if not hasattr(os, "getloadavg"):
            raise Absent("this system tells no load average")

    def sample(self) -> Iterable[Point]:
        minute, _, _ = os.getloadavg()
        yield self.table.point("{{ cookiecutter.__key }}_load", minute)
