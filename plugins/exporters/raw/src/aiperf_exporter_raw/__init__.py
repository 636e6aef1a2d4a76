"""Requests and answers as they were on the wire: the journal's segments, beside the per-request file's lines."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import Artifact, SummaryExporter, atomic
from aiperf.sdk.summary import Summary


class RawRecords(SummaryExporter):
    """``profile_export_raw.jsonl``: a line for each line of the per-request file, in its order."""

    level = "raw"
    files = {"raw.jsonl": "{prefix}_raw.jsonl"}

    def export(self, summary: Summary) -> Sequence[Artifact]:
        from aiperf_exporter_raw.lines import lines

        path = self.target.file("raw.jsonl")
        with atomic(path) as draft, draft.open("wb") as file:
            draft.chmod(0o600)  # prompts and answers
            file.writelines(lines(self.target))
        return [Artifact("Raw Records", path)]
