"""One line a metric, for programs that read nothing cleverer."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import Artifact, Summary, SummaryExporter, atomic


class Ledger(SummaryExporter):
    files = {"ledger.txt": "{prefix_}ledger.txt"}

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file("ledger.txt")
        with atomic(path) as draft:
            draft.write_text("".join(f"{tag}={result.stats.get('avg')}\n" for tag, result in sorted(summary.results.items())))
        return [Artifact("Ledger", path)]
