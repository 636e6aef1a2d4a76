"""The shares of prompt tokens that came from a cache: what the run put there, and the rest."""

from __future__ import annotations

import numpy as np
from aiperf import Evidence
from aiperf.sdk.verdict import LIKELY, POSSIBLE
from aiperf_servers import Client, ServerCounts, carried, lacks, servers, urls_of
from msgspec import Struct

from aiperf_verdict_warm_cache.prompts import OwnPrompts, SentPrompts, own_prompts

FOREIGN_SHARE, REPEATED_SHARE = 0.05, 0.1
"""A smaller part of the prompt tokens is not spoken of."""
Told = tuple[str, float, dict[str, int | float]]
"""Sentence, confidence and numbers of a finding."""


class CachedShares(Struct, frozen=True):
    foreign_finding: Told | None
    repeated_finding: Told | None


class _Hits(Struct, frozen=True):
    """Prompt tokens from the cache: all, beyond what the run put there, and of prompts that it sent before.

    what: who counted them.  unknown: what there was not to judge by.
    """

    tokens: float
    cached: float
    foreign: float
    repeated: float
    what: str
    unknown: tuple[str, ...]
    prompts: OwnPrompts


def cached(evidence: Evidence) -> CachedShares | None:
    """What the caches had of the phase's prompts; None where nobody counts that."""
    hits = _of_server(evidence) or _of_usage(evidence) or _of_server(evidence, shared=True)
    if hits is None or hits.tokens <= 0 or not np.isfinite(hits.cached):
        return None
    return CachedShares(_foreign(evidence, hits), _repeated(evidence, hits))


def _of_usage(evidence: Evidence) -> _Hits | None:
    """By the answers' own counts."""
    prompts = own_prompts(SentPrompts(evidence))
    if prompts is None:
        return None
    beyond = prompts.beyond - _of_warmup(evidence, prompts)
    unknown = () if servers_have_hits(evidence) else ("prefix hits of the server",)
    return _Hits(prompts.tokens, prompts.hits, beyond, prompts.hits_repeated, "by its usage", unknown, prompts)


def servers_have_hits(evidence: Evidence) -> bool:
    return any(server.shared("prefix_hits") is not None for _, server in servers(evidence))


def _of_server(evidence: Evidence, *, shared: bool = False) -> _Hits | None:
    """By the counts of all servers.  *shared*: others' requests may be among them, and are taken to be hits as a whole."""
    found = [(target, server) for target, server in servers(evidence) if server.shared("prefix_hits") is not None]
    client = Client(evidence, tuple(range(len(evidence.plan.target.urls))))
    whole = {url for target, _ in found for url in urls_of(evidence, target)} == set(range(len(evidence.plan.target.urls)))
    if not found or not whole or len({server.engine.name for _, server in found}) > 1:
        return None
    alone = all(_alone(evidence, target, server) for target, server in found)
    if not alone and not shared:
        return None
    counts = [_tokens(server) for _, server in found]
    asked, hits = (sum(each[i] for each in counts if each is not None) for i in (0, 1))
    prompts = own_prompts(SentPrompts(evidence, asked / max(1, client.sent)))
    if prompts is None or None in counts or not asked:
        return None
    mine = prompts.tokens
    if alone:  # the server's tokens are the run's, whoever counts them
        scale = asked / mine if mine else 0.0
        others, mine = 0.0, asked
    else:
        scale, others = 1.0, max(0.0, asked - mine)
    own = prompts.own * scale
    foreign = hits - others - own - _of_warmup(evidence, prompts)
    again = prompts.own_repeated * scale
    repeated = min(again, max(0.0, hits - others - (own - again)))
    unknown: tuple[str, ...] = () if _usage_has_cached(evidence) else ("cached tokens of each answer",)
    unknown += ("which hits were others' (all of their prompts are left out)",) if not alone else ()
    return _Hits(mine, max(0.0, hits - others), foreign, repeated, "as it counts", unknown, prompts)


def _usage_has_cached(evidence: Evidence) -> bool:
    return any((~np.isnan(cached)).any() for (cached,) in evidence.columns("usage_cached_tokens"))


def _alone(evidence: Evidence, target: str, server: ServerCounts) -> bool:
    """Whether the target's counts are those of the run's own requests, and of all of them."""
    client = Client(evidence, urls_of(evidence, target))
    answered = server.counted("requests")
    if lacks(evidence, target) or carried(evidence, target, server, client):
        return False
    return answered is None or answered <= client.sent


def _tokens(server: ServerCounts) -> tuple[float, float] | None:
    """Prompt tokens that were looked up in the cache, and those found; of blocks their share of the prompt tokens."""
    share = next(each for each in server.engine.shares if each.quantity == "prefix_hits")
    percent, prompt = server.share(share), server.counted("prompt_tokens")
    if percent is None:
        return None
    looked_up = server.grown(share.whole) if share.whole else prompt
    return None if looked_up is None else (looked_up, percent / 100 * looked_up)


def _of_warmup(evidence: Evidence, prompts: OwnPrompts) -> float:
    """The most tokens that prompts of earlier phases may have put into the cache, where they are of the same entries."""
    most = 0.0
    main = evidence.phase
    for phase in evidence.summary.phases:
        plan = evidence.plan.load.phases[phase.index]
        apart = plan.first_entry + plan.entries <= main.first_entry or main.first_entry + main.entries <= plan.first_entry
        if phase.index < main.index and not (apart and plan.entries and main.entries):
            most += phase.valid + phase.failed
    return most * prompts.mean


def _foreign(evidence: Evidence, hits: _Hits) -> Told | None:
    share = hits.foreign / hits.tokens
    if share < FOREIGN_SHARE:
        return None
    own = max(0.0, hits.cached - hits.foreign)
    cause = "an earlier run" if not evidence.plan.run.study_id else "an earlier run of this study, with the same prompts,"
    most = f" (at most {100 * own / hits.tokens:.2g} % more were this run's own prefixes)" if own > 0.005 * hits.tokens else ""
    sentence = (
        f"the server had {100 * share:.0f} % of the prompt tokens in its prefix cache before this run sent them, {hits.what}:"
        f" {cause} or another client left them there, and time to first token is that of a warm cache{most}. Empty the cache"
        " (--reset-kv-cache), or send other prompts (--random-seed, --cache-bust first_turn_prefix)"
    )
    unknown = list(hits.unknown)
    if not hits.prompts.known:
        unknown.append("which prefixes the prompts share")
    if unknown:
        sentence += f"; not known: {', '.join(unknown)}"
    numbers: dict[str, int | float] = {
        "prompt_tokens": hits.tokens, "cached_tokens": hits.cached, "foreign_tokens": hits.foreign, "foreign_pct": 100 * share,
        "requests": hits.prompts.count,
    }  # fmt: skip
    return sentence, LIKELY if hits.prompts.known else POSSIBLE, numbers


def _repeated(evidence: Evidence, hits: _Hits) -> Told | None:
    share, count = hits.repeated / hits.tokens, hits.prompts.repeated
    if share < REPEATED_SHARE:
        return None
    entries = evidence.phase.entries or hits.prompts.count - count
    sentence = (
        f"the server took {100 * share:.0f} % of the prompt tokens from its prefix cache, because this run sent {count:,} of"
        f" its {hits.prompts.count:,} prompts before (it has {entries:,} entries): their time to first token is that of"
        " a warm cache; raise --num-dataset-entries, unless prompts repeat on purpose"
    )
    numbers: dict[str, int | float] = {
        "prompt_tokens": hits.tokens, "cached_tokens": hits.cached, "repeated_tokens": hits.repeated,
        "repeated_pct": 100 * share,
        "requests": hits.prompts.count, "entries": entries,
    }  # fmt: skip
    return sentence, LIKELY, numbers
