"""The whole summary, with all installed metrics, is the same for every cut into batches and reducers."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.registry.registry import Registry
from aiperf.rundir import journal
from aiperf.sdk import raw_values
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.metric import Metric, Needs, RunMetric
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.plan import PhasePlan, Replay
from aiperf.sdk.summary import Summary
from aiperf_dialects.spec_decode import SERVER_TIMING, SPEC_DECODE
from aiperf_reducer_columns.reduce.reducer import Reduction, groupings
from aiperf_reducer_columns.report.report import write_summary
from aiperf_reducer_columns.statistics import fold
from aiperf_reducer_columns.statistics.catalogue import catalogue
from aiperf_reducer_columns.statistics.fold import Buckets
from aiperf_reducer_columns.statistics.pipeline import Pipeline
from aiperf_testing.batches import busy_batch
from aiperf_testing.journals import CLOCK, Plain, Recording
from hypothesis import given, settings
from hypothesis import strategies as st

MS = 10**6
ENDS_MS = 300
SLICE_MS = 40
SLOS = [
    "request_latency:15", "time_to_first_token:12", "inter_chunk_latency:3.5", "output_token_throughput_per_user:1000",
    "request_latency:p50<25", "time_to_first_token:p99<5",
]  # fmt: skip
PHASES = (
    PhasePlan("warmup", "warmup", 0, "burst", request_count=10),
    PhasePlan("profiling", "profiling", 1, "fixed_schedule", request_count=60, due_file="due", replay=Replay()),
)
"""A replay has every metric there is."""


@pytest.fixture(autouse=True, scope="module")
def experimental() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS", "true")
        yield


def requests() -> RecordBatch:
    """Of both phases, some failed in one way and some in another."""
    batch = busy_batch(70)
    rows = batch["n"]
    phase = np.where(rows < 10, 0.0, 1.0)
    columns = {**batch.columns, "phase": phase, "n": np.where(rows < 10, rows, rows - 10)}
    texts = {
        **batch.texts, "error": [_error(row, text) for row, text in enumerate(batch.texts["error"])],
        SPEC_DECODE: [_drafts(row) for row in range(len(batch))],
        SERVER_TIMING: [_timing(row) for row in range(len(batch))],
    }  # fmt: skip
    return RecordBatch(columns, batch.valid, texts)


def _error(row: int, text: str | None) -> str | None:
    return text if text is None or row % 3 else '{"message":"maximum context length is 10","code":400}'


def _drafts(row: int) -> str | None:
    """What a server says of speculative decoding: nothing, what is right, or what contradicts itself."""
    steps = (None, 4, 5)[row % 3]
    said = {
        "acceptance_histogram": [1, 3], "num_spec_steps": steps, "num_accepted_draft_tokens": 3, "num_draft_tokens": 4,
        "mean_acceptance_length": 1.75, "draft_acceptance_rate": 0.75,
    }  # fmt: skip
    return None if steps is None else json.dumps(said)


def _timing(row: int) -> str | None:
    """What a server says of its own times: nothing, or more with each row."""
    said = {"time_to_first_token_ms": row, "generation_time_ms": 7, "queue_time_ms": 0.5, "mean_itl_ms": row / 2}
    return json.dumps({**said, "tokens_per_second": 100 + row}) if row % 2 else None


def summarised(directory: Path, cut: Sequence[Sequence[RecordBatch]]) -> Summary:
    """The summary that the batches of each of some reducers come to."""
    registry = Registry.discover()
    metrics = registry.all("metrics")
    installed = [one.ref for one in metrics]
    options = {one.key: EncodedOptions.of(registry.load_options_model(one)()) for one in metrics if one.options_model}
    options["metrics:goodput"] = EncodedOptions(options["metrics:goodput"].options_class, {"goodput": SLOS})
    made = Recording(
        directory, metrics=tuple(installed), options=options, phases=PHASES, slice_ns=SLICE_MS * MS,
        urls=("http://a", "http://b", "http://c"), reducers=len(cut),
    )  # fmt: skip
    (made.journal / "due").write_bytes(np.arange(60, dtype=np.int64).tobytes())
    zero = CLOCK.started_mono_ns
    marks = [
        (0, journal.PHASE, {"phase": phase, "event": event, "at_ns": zero + at_ms * MS})
        for phase, event, at_ms in ((0, "begin", 0), (0, "end", 40), (1, "begin", 20), (1, "end", ENDS_MS))
    ]
    for index, batches in enumerate(cut):
        known = catalogue(made.plan, Plain)
        pipeline = Pipeline(known, made.journal, str(index), groupings(made.plan, known))
        pipeline.begins_ns = {0: 0.0, 1: 20.0 * MS}
        for batch in batches:
            pipeline.feed(pipeline.score(batch))
        Reduction(
            pipeline.folds(), pipeline.counts, [] if index else marks, 0, Buckets(), Buckets(), off=pipeline.off,
            groups=pipeline.groups(), raw_values=pipeline.dump_raw_values(), plugin_folds=pipeline.dump_plugin_folds(),
        ).save(made.journal, index)  # fmt: skip
    made.ended()
    write_summary(made.journal)
    found = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    return msgspec.structs.replace(found, config={})


def shuffled(batch: RecordBatch, reducers: int, seed: int) -> list[list[RecordBatch]]:
    """Its requests in any order, in batches of any size, each to one of the reducers; some may get none."""
    draw = random.Random(seed)
    rows = list(range(len(batch)))
    draw.shuffle(rows)
    cut: list[list[RecordBatch]] = [[] for _ in range(reducers)]
    while rows:
        size = draw.randint(1, len(rows))
        draw.choice(cut).append(batch.take(np.array(rows[:size])))
        del rows[:size]
    return cut


@pytest.fixture(scope="module", params=[False, True], ids=["exact", "bucketed"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The summary of one batch in one reducer, while lists go into buckets or don't."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fold, "BUDGET", 40 if request.param else 10**6)
        patched.setattr(fold, "IN_MEMORY", 16)
        patched.setattr(raw_values, "LISTED", 200 if request.param else 10**6)
        yield summarised(tmp_path_factory.mktemp("whole"), [[requests()]])


@settings(deadline=None, max_examples=4)
@given(seed=st.integers(0, 10**6), reducers=st.integers(1, 3))
def test_shuffling_splitting_and_merging_change_nothing_of_the_summary(
    tmp_path_factory: pytest.TempPathFactory, whole: Summary, seed: int, reducers: int
) -> None:
    found = summarised(tmp_path_factory.mktemp("cut"), shuffled(requests(), reducers, seed))
    for field in Summary.__struct_fields__:
        assert getattr(found, field) == getattr(whole, field), field


def test_every_installed_metric_has_a_result_in_it(whole: Summary) -> None:
    installed = Registry.discover()
    kinds = {one.name: installed.load("metrics", one.name) for one in installed.all("metrics")}
    shown = {
        tag
        for tag, kind in kinds.items()
        # Numbers that only some endpoints' answers have, and grades, are folded by the tests of their packages.
        if issubclass(kind, Metric | RunMetric) and not kind.hidden and not kind.requires & (Needs.NUMBERS | Needs.GRADED)
    }
    assert sorted(shown - whole.results.keys()) == ["start_lag"], "of conversations that start others"
    assert {"goodput", "tokens_in_flight", "slo_request_latency_p50_margin", "adj_time_to_first_token"} <= whole.results.keys()
    assert not [sentence for sentence in whole.warnings if "switched off" in sentence or "left out" in sentence]


def test_every_part_of_the_summary_that_numbers_come_to_is_there(whole: Summary) -> None:
    assert whole.outcomes.keys() == {"completed", "failed", "cut", "empty", "aborted", "unfinished"}
    assert {"request_latency", "time_to_first_token"} <= whole.survival.keys()
    assert whole.survival["request_latency"].stats["censored"] > 0
    assert len(whole.urls) == 3 and all(one.results and one.errors for one in whole.urls)
    assert len(whole.slices) == (ENDS_MS - 20) // SLICE_MS
    assert sum(one.started for one in whole.slices) == sum(whole.outcomes.values()) == 60
    assert {tag for one in whole.slices for tag in one.results} >= {"goodput", "total_osl", "adj_request_latency"}
    assert [len(phase.results) > 50 for phase in whole.phases] == [True, True]
    assert len(whole.errors) == 2
