"""Instants of sites whose clocks drift, on the clock of the run.

All instants of a request move together, by what its site's clock was off when it was started, so that its latencies stay those
of the site's own clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from aiperf.parts import journal
from aiperf.sdk.columns import NUMBERS, Floats, Ints, Leg, WireTrace
from aiperf.sdk.redaction import private
from msgspec.structs import replace

from aiperf_reducer_columns.reduce.answer import MARKED
from aiperf_reducer_columns.reduce.batches import StoredBatch, framed, read_batches

_DURATIONS = ("dns_ns", "connect_ns", "tls_ns", "held_ns", "turnaround_ns")
"""Columns in ns that are no instants."""


def drifted(clock: journal.RunClock) -> bool:
    """Whether the clock of a site is known to have drifted."""
    return any(site.knots for site in clock.sites)


def corrected(stored: StoredBatch, clock: journal.RunClock) -> StoredBatch:
    """The batch with instants of the run's clock; as it is where it has them already."""
    if stored.corrected or not drifted(clock):
        return stored
    names, table = stored.names or NUMBERS, stored.table.copy()
    moved = _moved(table[names.index("shard")], table[names.index("started_ns")], clock)
    for place, name in enumerate(names):
        if name.endswith("_ns") and name not in _DURATIONS:
            table[place] -= moved
    by_row: Ints = moved.astype(np.int64)
    by_piece = np.repeat(by_row, np.frombuffer(stored.lengths, dtype=np.int64))
    marked = np.frombuffer(stored.kinds, dtype=np.uint8) & MARKED > 0
    stamps, since = (np.frombuffer(each, dtype=np.int64) for each in (stored.stamps, stored.since))
    return replace(
        stored, numbers=table.tobytes(), stamps=(stamps - by_piece).tobytes(), since=(since - by_piece[marked]).tobytes(),
        traces={row: _trace(text, int(by_row[row])) for row, text in stored.traces.items()},
        legs={row: _legs(text, int(by_row[row])) for row, text in stored.legs.items()},
        events=[(shard, kind, _event(value, shard, clock)) for shard, kind, value in stored.events], corrected=True,
    )  # fmt: skip


def correct_columns(directory: Path, reducer: int, clock: journal.RunClock) -> None:
    """Write the reducer's files of columns anew, with instants of the run's clock.

    Raises:
        OSError: The disk is full; the files that are not written anew are as they were.
    """
    if not drifted(clock):
        return
    for path in journal.numbered(directory, f"columns-{reducer}.*"):
        if all(stored.corrected for stored, _ in read_batches(path)):
            continue
        draft = directory / f"draft-{path.name}"
        with private(draft).open("wb") as file:
            for stored, _ in read_batches(path):
                file.write(framed(corrected(stored, clock)))
        draft.replace(path)


def _moved(shards: Floats, started_ns: Floats, clock: journal.RunClock) -> Floats:
    """By how much instants of each request are too late, in whole ns."""
    moved = np.zeros(len(shards))
    for place, site in enumerate(clock.sites):
        of_site = shards % len(clock.sites) == place
        if site.knots:
            at_ns, by_ns = zip(*site.knots, strict=True)
            moved[of_site] = np.interp(started_ns[of_site] + clock.started_mono_ns, at_ns, by_ns)
    found: Floats = np.rint(moved)
    return found


def _trace(text: str, moved_ns: int) -> str:
    trace = msgspec.json.decode(text, type=WireTrace)
    return msgspec.json.encode(replace(trace, reads=tuple((at - moved_ns, size) for at, size in trace.reads))).decode()


def _legs(text: str, moved_ns: int) -> str:
    legs = [
        replace(
            leg, started_ns=leg.started_ns - moved_ns, ended_ns=leg.ended_ns - moved_ns,
            first_byte_ns=None if leg.first_byte_ns is None else leg.first_byte_ns - moved_ns,
        )
        for leg in msgspec.json.decode(text, type=list[Leg])
    ]  # fmt: skip
    return msgspec.json.encode(legs).decode()


def _event(value: dict[str, Any], shard: int, clock: journal.RunClock) -> dict[str, Any]:
    at_ns = value.get("at_ns")
    return value if at_ns is None else value | {"at_ns": at_ns - clock.moved_ns(shard, at_ns)}
