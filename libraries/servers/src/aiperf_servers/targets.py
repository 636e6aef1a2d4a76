"""The engines of each target of a run, and how far their counts are those of the phase."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Evidence
from aiperf.sdk.summary import SeriesSummary

from aiperf_servers.client import Client
from aiperf_servers.engines import Engine, engine_of
from aiperf_servers.server import ServerCounts


def servers(evidence: Evidence, phase: int | None = None) -> Iterator[tuple[str, ServerCounts]]:
    """The targets with the series of a known engine, in their order; one with two engines comes twice.

    phase: its index; None is the profiling phase.
    """
    main = evidence.phase.index if phase is None else phase
    found: dict[tuple[str, str], tuple[Engine, list[SeriesSummary]]] = {}
    for one in (each for source in evidence.summary.telemetry for each in source.series if each.phase == main):
        if engine := engine_of(one.name):
            found.setdefault((one.target, engine.name), (engine, []))[1].append(one)
    for (target, _), (engine, own) in found.items():
        yield target, ServerCounts(engine, own)


def lacks(evidence: Evidence, target: str) -> str:
    """Why the target's counts are not those of the whole phase; empty where they are."""
    main = evidence.phase.index
    for one in (each for source in evidence.summary.telemetry for each in source.targets if each.name == target):
        if main in one.late:
            return f"its first figures came {one.late[main]:.1f} s behind the begin"
        if any(index < main for index in one.unsettled):
            return "its counters still grew when the phase before had ended"
        if main in one.partial:
            return "it has no figures of the end"
        if main in one.unsettled:
            return "its counters still grew when the last figures were taken"
    if any(server.began_again for name, server in servers(evidence) if name == target):
        return "its counters began again"
    return ""


def counts_requests(evidence: Evidence, server: ServerCounts) -> bool:
    """Whether the server's number of requests can be compared with the run's.

    Engines count each of several answers, and each of several inputs of a request that makes no tokens, as a request.  Counters
    that began again count too many where several servers answer for the page in turn, and else too few.
    """
    several = evidence.plan.data.several_answers or not _generates(evidence)
    return not several and not server.began_again


def _generates(evidence: Evidence) -> bool:
    """Whether requests make tokens."""
    return evidence.plan.target.streaming or any((made > 0).any() for (made,) in evidence.columns("output_tokens"))


def carried(evidence: Evidence, target: str, server: ServerCounts, client: Client) -> str:
    """Why requests of the phases before may be among those of this one; empty where they aren't.

    A server that counts late, or a machine that is too busy to read its page in time.
    """
    answered = server.counted("requests")
    if answered is None or answered <= client.sent or not client.whole:
        return ""
    main = evidence.phase.index
    earlier = [
        one for source in evidence.summary.telemetry for one in source.series
        if one.phase < main and one.target == target and engine_of(one.name) == server.engine
    ]  # fmt: skip
    seen = sum(each.valid for each in evidence.summary.phases if each.index < main)
    lacking = seen - (ServerCounts(server.engine, earlier).counted("requests") or 0) if earlier else 0
    if not 0 < answered - client.sent <= lacking:
        return ""
    return f"it counted {answered - client.sent:g} of the requests of the phase before in this one"
