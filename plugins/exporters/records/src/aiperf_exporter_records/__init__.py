"""One line of JSON per request that was answered, failed or was cancelled, of every phase, in completion order."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from aiperf import BatchExporter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiperf import RecordBatch


class Records(BatchExporter):
    """``profile_export.jsonl``: metrics in display units, times as wall-clock ns.

    Requests that never came to an end (aborted, unfinished, never sent) have no line; the arrivals ledger has them.
    """

    label = "Record Export"
    kind = "jsonl"
    files = {kind: "{prefix}.jsonl"}

    def rows(self, batch: RecordBatch) -> bytes:
        from aiperf_exporter_records.lines import lines  # numpy: not in the parent, which only joins parts

        return lines(batch, self.target, self._off)

    def left_out(self) -> Sequence[str]:
        return [*self._off.values()]

    @cached_property
    def _off(self) -> dict[str, str]:
        """A sentence for each metric whose details failed."""
        return {}
