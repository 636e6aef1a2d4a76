"""The run's summary as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from aiperf import Artifact, Summary, SummaryExporter, atomic
from aiperf.sdk.exporter import visible

from aiperf_exporter_json.document import document


class SummaryJson(SummaryExporter):
    """``profile_export_aiperf.json``: metrics, what makes them repeatable, and how far they can be trusted."""

    files = {"aiperf.json": "{prefix_aiperf}.json"}
    early = True

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file("aiperf.json")
        # msgspec writes a float that is not finite as null, so that the file is JSON whatever a plugin put into the summary.
        with atomic(path) as draft:
            draft.write_bytes(visible(msgspec.json.format(msgspec.json.encode(document(summary)), indent=2)) + b"\n")
        return [Artifact("JSON Export", path)]
