"""Waiting until the servers under test are ready, before anything is measured: ``--wait-for-model-*``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.sdk.companion import Companion, CompanionContext, Waiting
from aiperf.sdk.model import names

from aiperf_companion_readiness.options import ReadinessOptions

if TYPE_CHECKING:
    from aiperf_companion_readiness.wait import Wait


class Readiness(Companion[ReadinessOptions]):
    """Asks beside the making of the data set."""

    def __init__(self, options: ReadinessOptions, context: CompanionContext) -> None:
        super().__init__(options, context)
        self._wait: Wait | None = None
        self._what = ""

    def begin(self) -> None:
        from aiperf_companion_readiness.wait import Wait  # 20 ms: not where options are read

        given = self.options
        self._wait = Wait(self.context.plan, self.context.secrets, given.mode, given.timeout_s, given.interval_s)

    def waiting(self) -> Waiting | None:
        if self._wait is None:
            return None
        self._what = self._what or f"Waiting for {names(self._wait.shown)}"
        if not self._wait.over():
            return Waiting(self._what, *self._wait.far())
        self._wait.settle()
        return None

    def close(self) -> None:
        if self._wait is not None:
            self._wait.close()


__all__ = ["Readiness"]
