"""Quantities of both sides, and whether they agree."""

from __future__ import annotations

import math

from aiperf.sdk.table import Cell, TableColumn
from aiperf_servers.client import Client
from aiperf_servers.engines import Count, Latency
from aiperf_servers.server import Levels, ServerCounts, Spread
from msgspec import Struct

AGREES, DIFFERS, WIDE = "agrees", "differs", "wider than the bucket"
COLUMNS = (
    TableColumn("quantity"), TableColumn("unit"), TableColumn("client"), TableColumn("server_estimate"),
    TableColumn("verdict"), TableColumn("difference"), TableColumn("server_low"), TableColumn("server_high"),
    TableColumn("engine"), TableColumn("target"),
)  # fmt: skip
"""A narrow terminal has no room for the last ones."""
_OFF = 0.02
"""A mean acceptance length that is further off than this share of the expected one is said."""
_TTFT = "time_to_first_token"


class Row(Struct, frozen=True):
    """A quantity: the client's value, the server's, and the edges between which the server's must lie.  None is unknown.

    verdict: AGREES, DIFFERS, WIDE (the histogram's bucket is too wide to tell), or empty where nothing can be compared.
    """

    quantity: str
    unit: str
    client: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str = ""

    @property
    def difference(self) -> float | None:
        """The client's less the server's."""
        return None if self.client is None or self.estimate is None else self.client - self.estimate

    def cells(self, engine: str, target: str) -> tuple[Cell, ...]:
        judged = (self.client, self.estimate, self.verdict or None, self.difference)
        return (self.quantity, self.unit, *judged, self.low, self.high, engine, target)


class Compared(Struct, frozen=True):
    """A target of an engine, compared.  levels: unit and values over time, by quantity.  shared: it answered others, too."""

    target: str
    server: ServerCounts
    rows: tuple[Row, ...]
    levels: dict[str, tuple[str, Levels]]
    notes: tuple[str, ...]
    shared: bool


def compare(
    server: ServerCounts, client: Client, target: str, expected_acceptance: float | None, lacks: str = "", *,
    alone: bool = False, counts_requests: bool = True,
) -> Compared:  # fmt: skip
    """All quantities that the engine is known to have, with sentences on what is odd.

    *lacks*: why the server's counts are not those of the whole phase, and can't be judged; empty where they are.
    *alone*: requests that it has more are the run's own.  *counts_requests*: it counts each request once.
    """
    engine = server.engine
    where = f"{engine.name} at {target}" if target else engine.name
    rows: list[Row] = []
    notes: list[str] = []
    for wanted in engine.latencies:
        for statistic, spread in server.latency(wanted).items():
            row = _latency(wanted, statistic, spread, client)
            rows.append(row)
            if wanted.quantity == _TTFT and row.client is not None and spread.low - client.error_ms > row.client:
                notes.insert(0, _too_early(where, row, spread))
    levels = {
        level.quantity: (level.unit, known) for level in engine.levels if (known := server.level(level)) is not None
    }
    rows += [Row(name, unit, None, known.avg, known.least, known.most) for name, (unit, known) in levels.items()]
    counts = {each.quantity: (each, total) for each in engine.counts if (total := server.count(each)) is not None}
    answered = counts["requests"][1] if "requests" in counts else None
    shared = answered is not None and answered > client.sent and not alone and counts_requests
    if shared and answered is not None:
        notes.append(
            f"{where} answered {answered:,.0f} requests in this time, and this run sent {client.sent:,}: it served others, too"
        )
    if lacks and counts:
        notes.append(f"the counts of {where} are not judged: {lacks}")
    whole = client.completed == client.sent and not shared and not lacks
    for count, total in counts.values():
        judged = not lacks and (counts_requests or count.quantity != "requests")
        rows += _counts(count, total, client, whole=whole, judged=judged)
    for share in engine.shares:
        percent = server.share(share)
        if percent is not None:
            seen = client.cached_share() if share.quantity == "prefix_hits" else None
            rows.append(Row(share.quantity, "%", seen, percent))
            levels[share.quantity] = "%", Levels(percent, None, None)
    accepted = _accepted(server, counts, levels)
    if accepted is not None:
        off = expected_acceptance is not None and abs(accepted - expected_acceptance) > _OFF * expected_acceptance
        verdict = "" if expected_acceptance is None else DIFFERS if off else AGREES
        rows = [row for row in rows if row.quantity != "acceptance_length"]
        rows.append(Row("acceptance_length", "tokens", expected_acceptance, accepted, verdict=verdict))
        if off:
            notes.append(
                f"{where} accepted {accepted:.3g} tokens a step, and --expected-acceptance-length is {expected_acceptance:g}:"
                " the drafts of this load are not those that were expected"
            )
    if "preemptions" in counts and counts["preemptions"][1]:
        levels["preemptions"] = "requests", Levels(counts["preemptions"][1], None, None)
    return Compared(target, server, tuple(rows), levels, tuple(notes), shared)


def _latency(wanted: Latency, statistic: str, spread: Spread, client: Client) -> Row:
    seen, name = client.latency(wanted.client, statistic), f"{wanted.quantity}_{statistic}"
    high = None if spread.high == math.inf else spread.high
    verdict = ""
    if seen is not None and statistic != "avg":
        if spread.high - spread.low > seen:
            verdict = WIDE
        else:
            verdict = AGREES if spread.low - client.error_ms <= seen <= spread.high + client.error_ms else DIFFERS
    return Row(name, "ms", seen, spread.estimate, spread.low, high, verdict)


def _too_early(where: str, row: Row, spread: Spread) -> str:
    name = row.quantity.replace("_", " ")
    return (
        f"the client's {name} is {row.client:,.3g} ms and that of {where} at least {spread.low:,.3g} ms:"
        " no client can have a token before the server made it, so the server's figure has other requests, or another begin"
    )


def _counts(count: Count, known: float, client: Client, *, whole: bool, judged: bool) -> list[Row]:
    """The count beside the client's; of tokens beside the server's own ``usage`` and beside what was counted here.

    *whole*: both sides have the same requests, all with whole answers.  *judged*: the server's number of requests is that of
    the whole phase.
    """
    name, unit = count.quantity, count.unit
    if name == "requests":
        fits = AGREES if client.completed <= known <= client.sent else DIFFERS
        return [Row(name, unit, client.completed, known, known, known, fits if judged else "")]
    if name not in ("prompt_tokens", "generated_tokens"):
        return [Row(name, unit, None, known)]
    prompt = name == "prompt_tokens"
    used = client.usage("usage_prompt_tokens" if prompt else "usage_completion_tokens")
    own = client.counted("input_tokens") if prompt else client.counted("output_tokens", "reasoning_tokens")
    verdict = "" if used is None or not whole else AGREES if used == known else DIFFERS
    # Tokens that were counted here are by another tokenizer, or without a chat template: unequal ones are no fault.
    alike = AGREES if whole and own == known else ""
    return [
        *([Row(f"{name}_usage", unit, used, known, known, known, verdict)] if used is not None else []),
        Row(name, unit, own, known, known, known, alike),
    ]


def _accepted(
    server: ServerCounts, counts: dict[str, tuple[Count, float]], levels: dict[str, tuple[str, Levels]]
) -> float | None:
    """Mean tokens a step of speculative decoding: one by the target model, and those of the draft that it accepted."""
    drafts, accepted = (counts[name][1] if name in counts else 0.0 for name in ("drafts", "accepted_tokens"))
    if drafts:
        mean = 1 + accepted / drafts
        levels["acceptance_length"] = "tokens", Levels(mean, None, None)
        return mean
    known = levels.get("acceptance_length")
    return known[1].avg if known is not None else None
