"""What servers counted more than the run can have caused."""

from __future__ import annotations

import math
from collections.abc import Iterator

from aiperf import Evidence
from aiperf.sdk.verdict import CERTAIN, LIKELY
from aiperf_servers import Client, ServerCounts, counts_requests, is_at_url, lacks, servers, urls_of
from msgspec import Struct

from aiperf_verdict_other_tenants.running import foreign_running

REQUESTS_SHARE = 0.01
"""The part of the requests that must be others' to be spoken of, and *FEWEST_REQUESTS* must be."""
FEWEST_REQUESTS = 2
WORK_SHARE = 0.05
"""The part of tokens, or of requests in work, that must be others': these counts differ from ours for other reasons, too."""


class ForeignWork(Struct, frozen=True):
    """A sentence on the work of others on one server, with its numbers."""

    sentence: str
    numbers: dict[str, int | float]
    confidence: float


class _Group(Struct, frozen=True):
    """Targets that have the same requests of the run together: the page at a URL, or all pages at other places.

    The page at a URL stands alone: pages at other places may be those of the servers behind it, or its own once more.
    """

    targets: tuple[str, ...]
    servers: tuple[ServerCounts, ...]
    urls: tuple[int, ...]

    def counted(self, quantity: str) -> float | None:
        """The sum over the targets; None where one of them lacks it."""
        known = [server.counted(quantity) for server in self.servers]
        return None if None in known else sum(each for each in known if each is not None)

    @property
    def it(self) -> str:
        return "it" if len(self.targets) == 1 else "they"

    @property
    def place(self) -> str:
        name, target = self.servers[0].engine.name, self.targets[0]
        if len(self.targets) > 1:
            return f"{len(self.targets)} servers ({name})"
        return f"{name} at {target}" if target else name


def foreign_work(evidence: Evidence) -> Iterator[ForeignWork]:
    """The servers that worked for others."""
    for group in _groups(evidence):
        client = Client(evidence, group.urls)
        found = _by_requests(evidence, group, client) or _by_tokens(evidence, group, client) or _by_running(evidence, group)
        if found is not None:
            yield found


def _groups(evidence: Evidence) -> list[_Group]:
    found: dict[tuple[str, tuple[int, ...], bool], list[tuple[str, ServerCounts]]] = {}
    for target, server in servers(evidence):
        key = server.engine.name, urls_of(evidence, target), is_at_url(evidence, target)
        found.setdefault(key, []).append((target, server))
    return [
        _Group(tuple(target for target, _ in own), tuple(server for _, server in own), urls)
        for (_, urls, _), own in found.items()
    ]


def _by_requests(evidence: Evidence, group: _Group, client: Client) -> ForeignWork | None:
    answered = group.counted("requests")
    if answered is None or not all(counts_requests(evidence, server) for server in group.servers):
        return None
    others = answered - client.sent - _late(evidence, group)
    if others < FEWEST_REQUESTS or others < REQUESTS_SHARE * answered:
        return None
    percent = 100 * others / answered
    numbers: dict[str, int | float] = {"requests": answered, "own_requests": client.sent, "foreign_requests": others}
    tokens = _foreign_tokens(group, client)
    said = ""
    if tokens is not None and tokens[0] > 0:
        said = f", and {tokens[0]:,.0f} of the {tokens[1]:,.0f} tokens that {group.it} {tokens[2]}"
    if tokens is not None:
        numbers |= {f"{tokens[2]}_tokens": tokens[1], "foreign_tokens": max(0.0, tokens[0])}
    levels = [server.leveled("running") for server in group.servers]
    sentence = (
        f"{group.place} worked for others, too: {others:,.0f} of the {answered:,.0f} requests that {group.it} answered in this"
        f" time ({percent:.3g} %){said} were not of this run. Latencies are longer, and throughput is lower, than those of this"
        " load alone: keep others away, or measure again"
    )
    unknown = [] if tokens is not None else ["how many of the tokens were others'"]
    unknown += [] if all(level is not None for level in levels) else ["how many were computed at a time"]
    return ForeignWork(_with(sentence, unknown), numbers | {"foreign_pct": percent}, CERTAIN)


def _late(evidence: Evidence, group: _Group) -> float:
    """The run's own requests of before that the servers may have counted in this phase."""
    late = float(evidence.plan.run.carried_over)
    for phase in evidence.summary.phases:
        if phase.index >= evidence.phase.index:
            continue
        known = [server.counted("requests") for target, server in servers(evidence, phase.index) if target in group.targets]
        sent = phase.valid + phase.failed
        late += max(0.0, sent - sum(each for each in known if each is not None))
    return late


def _foreign_tokens(group: _Group, client: Client) -> tuple[float, float, str] | None:
    """Tokens for others, all, and what the server did with them; None where one side doesn't count them."""
    if client.completed != client.sent or any(server.began_again for server in group.servers):
        return None
    for quantity, usage, verb in (
        ("generated_tokens", "usage_completion_tokens", "generated"), ("prompt_tokens", "usage_prompt_tokens", "read"),
    ):  # fmt: skip
        counted, own = group.counted(quantity), client.usage(usage)
        if counted and own:
            return counted - own, counted, verb
    return None


def _by_tokens(evidence: Evidence, group: _Group, client: Client) -> ForeignWork | None:
    tokens = _foreign_tokens(group, client)
    earlier = any(phase.index < evidence.phase.index for phase in evidence.summary.phases)
    # Tokens of requests that the phase before left are nobody else's.
    left = earlier and any(lacks(evidence, target) for target in group.targets)
    if tokens is None or left or evidence.plan.run.carried_over:
        return None
    others, counted, verb = tokens
    if others < WORK_SHARE * counted:
        return None
    percent = 100 * others / counted
    sentence = (
        f"{group.place} worked for others, too: {group.it} {verb} {counted:,.0f} tokens in this time, and by their usage the"
        f" answers of this run account for {counted - others:,.0f} ({percent:.3g} % are others'). Latencies are longer than"
        " those of this load alone: keep others away, or measure again"
    )
    unknown = _unknown_requests(group)
    numbers: dict[str, int | float] = {f"{verb}_tokens": counted, "foreign_tokens": others, "foreign_pct": percent}
    return ForeignWork(_with(sentence, unknown), numbers, LIKELY)


def _by_running(evidence: Evidence, group: _Group) -> ForeignWork | None:
    found = foreign_running(evidence, group.targets, group.servers[0].engine.name, group.urls)
    if found is None or not math.isfinite(found.least) or found.least < WORK_SHARE * found.server:
        return None
    percent = 100 * found.mean / found.server
    sentence = (
        f"{group.place} had {found.server:.3g} requests in work or waiting on average, and this run"
        f" {found.server - found.mean:.3g} in flight: {percent:.3g} % were others'. Latencies are longer than those of this"
        " load alone: keep others away, or measure again"
    )
    unknown = _unknown_requests(group)
    numbers: dict[str, int | float] = {
        "in_work_avg": found.server, "foreign_avg": found.mean, "foreign_least": found.least, "foreign_pct": percent,
    }  # fmt: skip
    return ForeignWork(_with(sentence, unknown), numbers, LIKELY)


def _unknown_requests(group: _Group) -> list[str]:
    known = group.counted("requests") is not None
    return ["how many requests others sent"] if known else [f"how many requests {group.it} answered"]


def _with(sentence: str, unknown: list[str]) -> str:
    return f"{sentence}; not known: {', '.join(unknown)}" if unknown else sentence
