"""How a reducer goes on behind columns that are stored, and what it then needs no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from aiperf.parts import journal
from aiperf.parts.segments import ShardReader
from aiperf.sdk.columns import NUMBERS
from aiperf.sdk.plan import Plan

from aiperf_reducer_columns.reduce.batches import StoredBatch, read_batches
from aiperf_reducer_columns.reduce.losses import lacking
from aiperf_reducer_columns.reduce.regrading import segments_are_whole
from aiperf_reducer_columns.reduce.rows import RowMaker


def skip_stored(stored: StoredBatch, readers: Mapping[int, ShardReader], rows: RowMaker) -> None:
    """Leave the batch's requests out of what the segments still hold."""
    numbers = stored.columns()
    shards, requests = numbers["shard"].astype(np.int64), numbers["request"].astype(np.int64)
    for shard in np.unique(shards).tolist():
        readers[shard].skip_stored(requests[shards == shard])
    rows.prompts.resume(numbers)
    for i in np.flatnonzero(np.isnan(numbers["due_ns"])).tolist():
        rows.ends.add(int(shards[i]), (int(requests[i]),), (float(numbers["ended_ns"][i]),))
    for shard, position in stored.positions.items():
        readers[shard].skip_events(position)
    rows.live.done += stored.count


def drop_segments(directory: Path, readers: Mapping[int, ShardReader], *, ended: bool) -> None:
    """Delete the segments that the readers need no more; all of them at the end."""
    for shard, reader in readers.items():
        for path in journal.numbered(directory, f"shard-{shard}.*.seg"):
            if ended or int(path.name.split(".")[1]) < reader.oldest_segment:
                path.unlink()


def prefers_segments(
    plan: Plan, directory: Path, further: Sequence[str], note: Callable[[str], None]
) -> bool:
    """Whether a report reads the segments again, because the columns of another version lack some that they have.

    *further*: columns beside NUMBERS.  *note*: gets a sentence on the missing columns where the segments are gone.
    """
    first = next(iter(journal.numbered(directory, "columns-*.*")), None)
    stored = None if first is None else next(read_batches(first), None)
    there = () if stored is None else (*(stored[0].names or NUMBERS), *stored[0].further)
    missing = [name for name in (*NUMBERS, *further) if there and name not in there]
    if not missing:
        return False
    if segments_are_whole(plan, directory):
        return True
    note(lacking(missing, plan.run.version))
    return False
