"""The latest requests with the causes of their failures, for a run that warns while it goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from aiperf.parts import journal
from aiperf.parts.loading import isolated, load
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.errors import PluginError
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import Plan
from aiperf.sdk.reducer import Ended
from aiperf.sdk.verdict import Finding, Verdict

log = logging.getLogger("aiperf.reducer")

MOST = 100
"""Requests that are kept: the latest ones."""
_read = msgspec.json.Decoder(ErrorDetails).decode


class Recent:
    """Keeps the latest requests that succeeded or failed; what was cancelled or cut off by the end of the run is neither."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._rows: list[tuple[int, int, str | None, str]] = []
        self._verdicts: list[Verdict[Any]] | None = None
        self._urls: dict[str, set[str]] = {}

    def add(self, batch: RecordBatch) -> None:
        """Take note of a batch.  Its cost doesn't grow with the number of requests, but for one look at two columns."""
        outcomes = batch["outcome"]
        rows = np.flatnonzero((outcomes == journal.COMPLETED) | (outcomes == journal.ERROR))
        ends = batch["ended_ns"][rows]
        latest = rows[np.argsort(ends, kind="stable")[-MOST:]]
        errors, urls = batch.texts["error"], batch.texts["url"]
        for row in latest.tolist():
            end, phase = int(batch["ended_ns"][row]), int(batch["phase"][row])
            self._rows.append((end, phase, errors[row], urls[row] or ""))
        self._rows = sorted(self._rows, key=lambda row: row[0])[-MOST:]

    def taken(self) -> list[Ended]:
        """The requests since the last call."""
        rows, self._rows = self._rows, []
        kinds: dict[str, str] = {}
        for _, _, error, url in rows:
            if error is not None:
                if error not in kinds:
                    kinds[error] = self._cause(_read(error), self._plan)[0]
                self._urls.setdefault(kinds[error], set()).add(url)
        causes = {error: self._cause(_read(error), self._narrowed(kind)) for error, kind in kinds.items()}
        return [Ended(end, phase, None if error is None else causes[error]) for end, phase, error, _ in rows]

    def _narrowed(self, kind: str) -> Plan:
        urls = tuple(url for url in self._plan.target.urls if url in self._urls[kind])
        return self._plan if urls == self._plan.target.urls else self._plan.replacing(urls=urls)

    def _cause(self, error: ErrorDetails, plan: Plan) -> tuple[str, str]:
        """Kind and sentence; of a cause that no verdict knows, the error's own."""
        if self._verdicts is None:
            self._verdicts = [verdict for _, verdict in loaded(self._plan)]
        for verdict in list(self._verdicts):
            finding: Finding | None = None
            try:
                finding = verdict.explain(error, plan)
            except Exception as problem:  # noqa: BLE001  # code of a plugin; at the end the run reports what fails there
                log.warning("%s can't explain an error: %s", type(verdict).__name__, problem)
                self._verdicts.remove(verdict)
            if finding is not None:
                return finding.kind, finding.sentence
        return f"{error.type} {error.code}", error.message or str(error.type)


def loaded(plan: Plan) -> Sequence[tuple[PluginRef, Verdict[Any]]]:
    """The verdicts of the plan; one that can't be made is reported at the end of the run."""
    verdicts: list[tuple[PluginRef, Verdict[Any]]] = []
    for ref in plan.plugins.verdicts:
        try:
            made = load(ref)
        except PluginError:
            continue
        with isolated(ref, log.debug):
            verdicts.append((ref, made(plan.plugins.options_of(ref))))
    return verdicts
