"""What the data set says of requests: the repeat of a problem, settings as they were sent, and records they came from."""

from __future__ import annotations

import msgspec
import numpy as np
from aiperf.parts.journal import Store
from aiperf.sdk.columns import ABSENT, Floats
from aiperf.sdk.plan import TargetPlan
from aiperf.sdk.redaction import shown_fields


def repeats(store: Store, entries: Floats, turns: Floats) -> Floats:
    """The column REPEAT of requests for these turns."""
    if not store.repeats:
        return np.full(len(entries), ABSENT)
    asked = zip(entries.astype(np.int64).tolist(), turns.astype(np.int64).tolist(), strict=True)
    found = (store.told(entry, turn).repeat for entry, turn in asked)
    return np.array([ABSENT if repeat is None else float(repeat) for repeat in found])


def settings(store: Store, target: TargetPlan, entries: list[int], turns: list[int]) -> list[str | None]:
    """The text ``settings`` of requests for these turns."""
    texts: dict[bytes, str | None] = {}
    found = []
    for entry, turn in zip(entries, turns, strict=True):
        told = store.told(entry, turn)
        sent = target.sent(told.settings, told.extra)
        key = msgspec.json.encode(sent)  # a benchmark has few
        if key not in texts:
            texts[key] = msgspec.json.encode(shown_fields(sent)).decode() if sent else None
        found.append(texts[key])
    return found


def sources(store: Store, entries: list[int], turns: list[int]) -> list[str | None]:
    """The text ``source`` of requests for these turns."""
    found = store.sources(entries, turns)
    return [None if source is None else msgspec.json.encode(source).decode() for source in found]


__all__ = ["repeats", "settings", "sources"]
