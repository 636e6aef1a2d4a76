"""The parent of many sites: how long it takes, and how much memory, to make a summary of what many shards have folded.

usage: sites.py [--records N ...] [--shards N] [--chunks N] [--kinds N]

What each shard's reducer leaves (``folds-<n>`` and its files of values) is made by the reducer's own code: of *kinds* different
shards, each linked under the names of many, since ten million requests fold to 4 GB.  Numbers of arrivals are each shard's own.
Then a process of its own merges all shards into a summary, without verdicts, which read columns.  Must reach: ten times the
records in 10.5 times the time and 1.2 times the memory, and 300 MB at most.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from aiperf.registry.third_party import load
from aiperf.rundir import journal
from aiperf.rundir.store import Store
from aiperf.sdk.columns import Ints
from aiperf.sdk.plan import Plan
from aiperf_reducer_columns.reduce.batches import batch_of
from aiperf_reducer_columns.reduce.reducer import Reduction, groupings
from aiperf_reducer_columns.report.report import write_summary
from aiperf_reducer_columns.statistics.catalogue import catalogue
from aiperf_reducer_columns.statistics.fold import Samples
from aiperf_reducer_columns.statistics.pipeline import ARRIVAL, Pipeline
from reduce import CLOCK, Cost, batch, begun

TIME, MEMORY, MOST_MB = 10.5, 1.2, 300
_BATCH = 2048
_LOOP = {"lag_ns": [50_000] * 20, "in_phase": True, "encode_ns": 0, "disk_ns": 0, "waited_ns": 0, "throttled_ns": 0}
_LOOPS = 10
"""LOOP frames of a shard: ten seconds."""


class Shards:
    """Reductions of many shards in the journal of *plan*: *kinds* different ones, each under many names."""

    def __init__(self, plan: Plan, records: int, shards: int, chunks: int, kinds: int) -> None:
        self._plan, self._records, self._shards, self._chunks = plan, records, shards, chunks
        self._journal = Path(plan.output.journal)
        self._kinds = min(kinds, shards)

    def write(self) -> None:
        for kind in range(self._kinds):
            first = self._reduced(kind)
            for shard in range(kind, self._shards, self._kinds):
                self._named(first, kind, shard).save(self._journal, shard)
        for path in self._journal.glob("fold-kind*"):
            path.unlink()

    def _numbers(self, shard: int) -> Ints:
        return np.arange(shard, self._records, self._shards)

    def _reduced(self, kind: int) -> Reduction:
        """What the reducer makes of a shard's requests."""
        plan, rows, draw = self._plan, self._numbers(kind), np.random.default_rng(kind)
        known = catalogue(plan, load(plan.plugins.endpoint))
        pipeline, store = Pipeline(known, self._journal, f"kind{kind}", groupings(plan, known)), Store(self._journal)
        pipeline.begins_ns[0] = 0.0
        reduction, last_ns = Reduction(), 0
        for at in range(0, len(rows), _BATCH):
            stored, last_ns = batch(rows[at : at + _BATCH], self._chunks, draw)
            reduction.add(stored)
            pipeline.feed(pipeline.score(batch_of(stored, plan, store, finishing=False)))
        reduction.folds, reduction.counts, reduction.groups = pipeline.folds(), pipeline.counts, pipeline.groups()
        reduction.raw_values, reduction.plugin_folds = pipeline.dump_raw_values(), pipeline.dump_plugin_folds()
        for _, _, samples in reduction.folds:
            samples.spool.spill()
        reduction.events = [*self._events(kind, last_ns)]
        return reduction

    def _events(self, shard: int, last_ns: int) -> Iterator[tuple[int, int, dict[str, object]]]:
        zero = CLOCK.started_mono_ns
        yield shard, journal.PHASE, {"phase": 0, "event": "begin", "at_ns": zero}
        for number in range(_LOOPS):
            counters = {"reads": 0, "coalesced_reads": 0, "stamps_missing": 0, "readers": 1, "compiled_readers": 1}
            times = {"cpu_ns": number * 10**8, "wall_ns": number * 10**9}
            yield shard, journal.LOOP, {**_LOOP, **times, "statistics": counters}
        yield shard, journal.PHASE, {"phase": 0, "event": "end", "at_ns": zero + last_ns}

    def _named(self, made: Reduction, kind: int, shard: int) -> Reduction:
        """The reduction of *kind* as that of *shard*, with files of its own names."""

        def own(path: Path) -> Path:
            to = path.with_name(path.name.replace(f"fold-kind{kind}-", f"fold-{shard}-"))
            for suffix in ("", "-lists"):
                if (source := Path(f"{path}{suffix}")).exists():
                    os.link(source, f"{to}{suffix}")
            return to

        folds = []
        for phase, tag, samples in made.folds:
            same = Samples(own(samples.spool.path), listed=samples.listed, count=samples.count, buckets=samples.buckets)
            folds.append((phase, tag, same))
            if tag == ARRIVAL:
                same.spool.path.unlink(missing_ok=True)
                same.spool.path.write_bytes(self._numbers(shard).astype(np.float64).tobytes())
                same.count = len(self._numbers(shard))
        raw = []
        for phase, tag, state in made.raw_values:
            path, *rest = msgspec.msgpack.decode(state)
            raw.append((phase, tag, msgspec.msgpack.encode((str(own(Path(path))), *rest))))
        events = [(shard, kind_of, value) for _, kind_of, value in made.events]
        return msgspec.structs.replace(made, folds=folds, raw_values=raw, events=events)


def merged(records: int, shards: int, chunks: int = 8, kinds: int = 10) -> Cost:
    """What the parent's process takes for the summary."""
    with tempfile.TemporaryDirectory(prefix="aiperf-sites-", dir=os.environ.get("BENCH_DIR")) as folder:
        directory = Path(folder) / "run"
        plan = begun(directory, records, "summary", shards)
        Shards(plan, records, shards, chunks, kinds).write()
        words, began = [sys.executable, __file__, "--merge", plan.output.journal], time.monotonic()
        process = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert process.stdout is not None
        found = int(process.stdout.read() or 0)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode or found != records:
            raise SystemExit(f"the summary has {found} of {records} requests")
        return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--records", type=int, nargs="+", default=[1_000_000, 10_000_000], help="in all")
    parser.add_argument("--shards", type=int, default=1000, help="shards that are merged (1,000)")
    parser.add_argument("--chunks", type=int, default=8, help="of each request (8)")
    parser.add_argument("--kinds", type=int, default=10, help="different shards; the others are as these (10)")
    parser.add_argument("--merge", metavar="JOURNAL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.merge:
        print(write_summary(Path(options.merge)).valid)
        return 0
    costs = [merged(records, options.shards, options.chunks, options.kinds) for records in options.records]
    for records, cost in zip(options.records, costs, strict=True):
        took = f"{cost.wall_s:.1f} s wall, {cost.cpu_s:.1f} s CPU, {cost.peak_mb:.0f} MB"
        print(f"{records:,} requests of {options.shards:,} shards: {took}")
    least, most = costs[0], costs[-1]
    more = options.records[-1] / options.records[0]
    time_ratio, memory_ratio = most.cpu_s / least.cpu_s, most.peak_mb / least.peak_mb
    print(f"{more:g} times the requests: {time_ratio:.2f} × the CPU time, {memory_ratio:.2f} × the memory")
    return 0 if time_ratio <= TIME * more / 10 and memory_ratio <= MEMORY and most.peak_mb <= MOST_MB else 1


if __name__ == "__main__":
    sys.exit(main())
