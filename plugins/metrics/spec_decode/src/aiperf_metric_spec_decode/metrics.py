"""How much of its drafts a speculative decoder accepted, by request and in all (spec: metrics §13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import msgspec
import numpy as np
from aiperf import Aggregation, Column, Metric, Ragged, RecordBatch, RunMetric, Totals, Unit
from aiperf.sdk.columns import Floats, integers, ragged
from aiperf.sdk.metric import PluginFold
from aiperf_dialects.spec_decode import SPEC_DECODE

from aiperf_metric_spec_decode.acceptance import MOST_PLACES, Acceptance, acceptance

if TYPE_CHECKING:
    from aiperf.sdk.metric import AnyUnit

GROUP = "Spec Decode"


def read(batch: RecordBatch) -> list[Acceptance | None]:
    """What each request's server says; None where it says nothing, or nothing that can be used."""
    texts = batch.texts.get(SPEC_DECODE)
    return [] if texts is None else [None if text is None else acceptance(text) for text in texts]


def _column(batch: RecordBatch, value: Callable[[Acceptance], float]) -> Floats:
    found = read(batch)
    if not found:
        return np.full(len(batch), np.nan)
    return np.array([np.nan if each is None else value(each) for each in found], dtype=np.float64)


def _ratio(above: Floats, below: Floats) -> Floats:
    """Absent where there is nothing to divide by."""
    return above / np.where(below > 0, below, np.nan)


class SpecDecodeSteps(Metric):
    """Verify steps."""

    tag, title, unit = "spec_decode_steps", "Spec Decode Steps", Unit.COUNT
    group, order = GROUP, 5040
    detail_field = "spec_decode_acceptance"

    def column(self, batch: RecordBatch) -> Column:
        return _column(batch, lambda each: each.steps)

    def details(self, batch: RecordBatch) -> Sequence[bytes | None]:
        found = read(batch)
        if not found:
            return [None] * len(batch)
        counts = integers(batch["usage_completion_tokens"])
        pairs = zip(found, counts, strict=True)
        return [None if each is None else msgspec.json.encode(each.entry(count)) for each, count in pairs]


class SpecDecodeAcceptedDraftTokens(Metric):
    """Draft tokens that were accepted."""

    tag, title, unit = "spec_decode_accepted_draft_tokens", "Accepted Draft Tokens", Unit.TOKENS
    group, larger_is_better = GROUP, True

    def column(self, batch: RecordBatch) -> Column:
        return _column(batch, lambda each: each.accepted)


class SpecDecodeDraftTokens(Metric):
    """Draft tokens."""

    tag, title, unit, group = "spec_decode_draft_tokens", "Draft Tokens", Unit.TOKENS, GROUP

    def column(self, batch: RecordBatch) -> Column:
        return _column(batch, lambda each: each.drafted)


class SpecDecodeAcceptanceLength(Metric):
    """Tokens of a verify step, its own included; absent without steps."""

    tag, title, unit = "spec_decode_acceptance_length", "Acceptance Length", Unit.RATIO
    needs = ("spec_decode_steps", "spec_decode_accepted_draft_tokens")
    group, order, larger_is_better = GROUP, 5000, True

    def column(self, batch: RecordBatch) -> Column:
        return 1 + _ratio(batch["spec_decode_accepted_draft_tokens"], batch["spec_decode_steps"])


class SpecDecodeDraftAcceptanceRate(Metric):
    """Accepted share of the draft tokens; absent without drafts or steps."""

    tag, title, unit = "spec_decode_draft_acceptance_rate", "Draft Acceptance Rate", Unit.PERCENT
    needs = ("spec_decode_steps", "spec_decode_accepted_draft_tokens", "spec_decode_draft_tokens")
    group, order, larger_is_better = GROUP, 5020, True

    def column(self, batch: RecordBatch) -> Column:
        rate = 100 * _ratio(batch["spec_decode_accepted_draft_tokens"], batch["spec_decode_draft_tokens"])
        return np.where(batch["spec_decode_steps"] > 0, rate, np.nan)


class SpecDecodeAcceptedPerVerified(Metric):
    """Accepted tokens and steps, of draft tokens and steps; absent without steps."""

    tag, title, unit = "spec_decode_accepted_per_verified", "Accepted per Verified", Unit.RATIO
    needs = ("spec_decode_steps", "spec_decode_accepted_draft_tokens", "spec_decode_draft_tokens")
    group, order, larger_is_better = GROUP, 5030, True

    def column(self, batch: RecordBatch) -> Column:
        steps = batch["spec_decode_steps"]
        rate = _ratio(batch["spec_decode_accepted_draft_tokens"] + steps, batch["spec_decode_draft_tokens"] + steps)
        return np.where(steps > 0, rate, np.nan)


class _Total(RunMetric):
    """The sum of a metric."""

    group = GROUP

    def number(self, run: Totals) -> float | None:
        return run.sum(self.needs[0])


class TotalSpecDecodeSteps(_Total):
    """All verify steps."""

    tag, title, unit = "total_spec_decode_steps", "Total Spec Decode Steps", Unit.COUNT
    needs = ("spec_decode_steps",)


class TotalAcceptedDraftTokens(_Total):
    """All draft tokens that were accepted."""

    tag, title, unit = "total_accepted_draft_tokens", "Total Accepted Draft Tokens", Unit.TOKENS
    needs, larger_is_better = ("spec_decode_accepted_draft_tokens",), True


class TotalDraftTokens(_Total):
    """All draft tokens."""

    tag, title, unit, needs = "total_draft_tokens", "Total Draft Tokens", Unit.TOKENS, ("spec_decode_draft_tokens",)


class _Overall(RunMetric):
    """A quotient of two totals."""

    group, larger_is_better = GROUP, True
    factor, plus = 1.0, 0.0

    def number(self, run: Totals) -> float | None:
        above, below = map(run.value, self.needs)
        return None if above is None or not below else self.plus + self.factor * above / below


class SpecDecodeTokenWeightedAcceptanceLength(_Overall):
    """Tokens of a verify step, its own included, over all steps of the run."""

    tag, title = "spec_decode_token_weighted_acceptance_length", "Token-Weighted Acceptance Length"
    unit: AnyUnit = Unit.RATIO
    order, plus, needs = 5010, 1.0, ("total_accepted_draft_tokens", "total_spec_decode_steps")


class SpecDecodeOverallDraftAcceptanceRate(_Overall):
    """Accepted share of all draft tokens of the run."""

    tag, title = "spec_decode_overall_draft_acceptance_rate", "Overall Draft Acceptance Rate"
    unit: AnyUnit = Unit.PERCENT
    order, factor, needs = 5025, 100.0, ("total_accepted_draft_tokens", "total_draft_tokens")


class Places(PluginFold):
    """Steps in each place of a histogram.  A value is both in one number: ``steps * MOST_PLACES + place``."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def _take(self, counts: Mapping[int, int]) -> None:
        for place, count in counts.items():
            self._counts[place] = self._counts.get(place, 0) + count

    def add(self, values: Floats) -> None:
        steps, places = np.divmod(values.astype(np.int64), MOST_PLACES)
        for place in np.unique(places).tolist():
            self._take({place: int(steps[places == place].sum())})

    def merge(self, other: Self) -> None:
        self._take(other._counts)

    def dump(self) -> bytes:
        return msgspec.msgpack.encode(self._counts)

    @classmethod
    def load(cls, data: bytes) -> Self:
        fold = cls()
        fold._counts = msgspec.msgpack.decode(data, type=dict[int, int], strict=False)
        return fold

    def counts(self) -> Mapping[str, int]:
        return {str(place): self._counts[place] for place in sorted(self._counts)}

    def result(self) -> None:
        return None


class PooledHistogram(Metric):
    """Verify steps by the number of draft tokens that they accepted."""

    tag, title, unit = "pooled_spec_decode_acceptance_histogram", "Accepted Draft Tokens of a Step", Unit.COUNT
    fold, per_record = Places, False
    group, order = GROUP, 5050

    def column(self, batch: RecordBatch) -> Column:
        found = read(batch)
        if not found:
            return Ragged(np.empty(0), np.zeros(len(batch) + 1, dtype=np.int64), np.empty(0))
        rows = [[] if each is None else _packed(each.histogram) for each in found]
        return ragged(rows, [[end] * len(row) for end, row in zip(batch["ended_ns"].tolist(), rows, strict=True)])


def _packed(histogram: Sequence[int]) -> list[float]:
    """The places that have steps, as :class:`Places` takes them."""
    return [float(steps * MOST_PLACES + place) for place, steps in enumerate(histogram) if steps]


class SpecDecodeIgnored(Metric):
    """Answers whose account of speculative decoding contradicts itself, or is of an unknown engine."""

    tag, title, unit = "spec_decode_ignored_count", "Spec Decode Ignored Count", Unit.REQUESTS
    fold, per_record = Aggregation.SUM, False

    def column(self, batch: RecordBatch) -> Column:
        texts = batch.texts.get(SPEC_DECODE)
        if texts is None:
            return np.full(len(batch), np.nan)
        return np.array([1.0 if text is not None and acceptance(text) is None else np.nan for text in texts])
