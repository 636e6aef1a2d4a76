"""Finished requests on their way from a reducer to the process that sends."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import hookimpl

from aiperf_exporter_otel.options import METRICS, BatchOptions, Limits

if TYPE_CHECKING:
    from aiperf import Plan, RecordBatch

    from aiperf_exporter_otel.link import Link

_END_S = 3.0
"""Longest wait until the process has taken the last requests."""


class OtelBatches:
    """Hands each batch of a run, not of a report, to the process that sends.  It never waits before the last one."""

    options: BatchOptions | None = None

    def __init__(self) -> None:
        self._link: Link | None = None
        self._reducer = 0

    @hookimpl
    def aiperf_batch_reduced(self, batch: RecordBatch, plan: Plan, live: bool) -> None:
        if not live or self.options is None or self.options.url is None:
            return
        from aiperf_exporter_otel.columns import batch_message  # numpy: not in the parent

        message = batch_message(batch, plan, metrics=self.options.sends(METRICS))
        if message.count:
            self._reducer = message.reducer
            self._linked(plan).give(message, message.count)

    @hookimpl
    def aiperf_reduction_ended(self, plan: Plan, live: bool) -> None:
        if not live or self.options is None or self.options.url is None:
            return
        self._linked(plan).end(self._reducer, _END_S)

    def _linked(self, plan: Plan) -> Link:
        from aiperf_exporter_otel.link import Link, address_file

        if self._link is None:
            file = address_file(Path(plan.output.journal))
            address = file.read_text() if file.is_file() else None
            self._link = Link(address, self._limits.buffered)
        return self._link

    @cached_property
    def _limits(self) -> Limits:
        return Limits.of_environment()


__all__ = ["OtelBatches"]
