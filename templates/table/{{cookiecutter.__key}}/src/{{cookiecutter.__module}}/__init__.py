"""The {{ cookiecutter.name }} table: requests by worker."""

from __future__ import annotations

from collections import Counter

from aiperf import Evidence
from aiperf.sdk.table import SummaryTable, TableColumn, Tables

COLUMNS = (TableColumn("worker"), TableColumn("requests"), TableColumn("share", "%"))


class {{ cookiecutter.__class }}(Tables[None]):
    """Counts what the journal has of each request, beside what the summary says."""

    def tables(self, evidence: Evidence) -> SummaryTable | None:
        if not evidence.summary.valid:
            return None
        workers: Counter[float] = Counter()
        for (shards,) in evidence.columns("shard"):
            workers.update(shards.tolist())
        rows = [(int(worker), count, 100 * count / workers.total()) for worker, count in sorted(workers.items())]
        return SummaryTable("{{ cookiecutter.__key }}", "Requests by worker", COLUMNS, tuple(rows))
