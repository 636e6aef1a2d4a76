"""An answer that no row can be made of is an error of its own request; all others have their rows."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf import Delta
from aiperf.rundir import journal
from aiperf.rundir.store import Store
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.exporter import BatchExporter
from aiperf.sdk.metric import PluginUnit
from aiperf.sdk.model import Conversation, Turn
from aiperf.sdk.summary import Summary
from aiperf_reducer_columns.reduce.batches import batch_of, read_batches
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_reducer_columns.report.report import write_summary
from aiperf_testing.journals import CLOCK, Plain, Recording, event
from aiperf_testing.plans import sample_ref
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MS = 1_000_000
HUGE = 10**400
GOOD = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}


class Loose(Plain):
    """Believes whatever the server sends, as an endpoint of a stranger may."""

    numbers = {"items": PluginUnit("vectors"), "joules": PluginUnit("J", "energy")}

    def decode(self, event: bytes) -> Delta | None:
        value: Any = None if event == b"[DONE]" else json.loads(event)
        if not isinstance(value, dict):
            return value  # type: ignore[no-any-return]
        delta = Delta()
        return msgspec.structs.replace(delta, **{key: value[key] for key in value.keys() & set(Delta.__struct_fields__)})


class Answers(BatchExporter):
    label, kind, answers = "Answers", "answers.txt", True

    def rows(self, batch: RecordBatch) -> bytes:
        return "".join(f"{text}\n" for text in batch.texts["answer"]).encode()


def answered(directory: Path, *bodies: bytes, **changes: Any) -> tuple[RecordBatch, Summary]:
    """The rows of requests that were answered with these, and the summary."""
    made = Recording(directory, **changes)
    made.data_set(*(Conversation(f"c{n}", (Turn(("one",), expected="x"),)) for n in range(len(bodies))))
    for number, body in enumerate(bodies):
        made.answered(number, number * MS, (number * MS + 500_000, body), entry=number)
    made.flush(len(bodies) * MS)
    reducer = ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK)
    reducer.finish()
    made.ended()
    write_summary(made.journal)
    (stored,) = [each for each, _ in read_batches(journal.columns_path(made.journal, 0, 0)) if each.count]
    summary = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    return batch_of(stored, made.plan, Store(made.journal)), summary


def stream(usage: dict[str, Any], text: str = "a b") -> bytes:
    return b"data: " + json.dumps({"text": text}).encode() + b"\n\ndata: " + json.dumps({"usage": usage}).encode() + b"\n\n"


BAD_USAGES: list[dict[str, Any]] = [
    {**GOOD, "total_tokens": HUGE}, {"completion_tokens": HUGE}, {"completion_tokens_details": {"reasoning_tokens": -HUGE}},
    {**GOOD, "prompt_audio_seconds": HUGE},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BAD_USAGES)))
@pytest.mark.parametrize("alone", [False, True], ids=["many at a time", "one at a time"])
def test_a_count_of_400_digits_is_not_used_and_costs_nothing_else(tmp_path: Path, number: int, alone: bool) -> None:
    changes = {"exporters": (sample_ref("exporters", f"{__name__}:Answers"),)} if alone else {}
    usages = [GOOD] * 20
    usages[7] = BAD_USAGES[number]
    batch, summary = answered(tmp_path, *map(stream, usages), **changes)
    assert not summary.errors and batch["output_tokens"].tolist() == [2.0] * 20
    assert np.flatnonzero(batch["unread_usage"] == 1).tolist() == [7]


def test_deltas_of_wrong_types_cost_their_own_request_alone(tmp_path: Path) -> None:
    bad = [
        {"text": 5}, {"text": "a", "usage": [1]}, {"text": "a", "extra": 3}, {"text": "\ud800"}, {"items": HUGE, "text": "a"},
    ]  # fmt: skip
    bodies = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in ({"text": "fine"}, *bad, {"text": "fine"})]
    exporters = (sample_ref("exporters", f"{__name__}:Answers"),)
    batch, _ = answered(tmp_path, *bodies, endpoint=sample_ref("endpoints", f"{__name__}:Loose"), exporters=exporters)
    assert len(batch["outcome"]) == len(bodies)
    assert batch["outcome"][[0, -1]].tolist() == [journal.COMPLETED] * 2
    assert batch.texts["answer"][0] == batch.texts["answer"][-1] == "fine"


def test_texts_of_a_transport_that_are_no_text_cost_their_own_request_alone(tmp_path: Path) -> None:
    made = Recording(tmp_path)
    for number in range(3):
        made.answered(number, number * MS, (number * MS + 500_000, event(text="a b")))
    made.text(1, "head", {"reason": 7, "headers": 3})
    made.flush(9 * MS)
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    (stored,) = [each for each, _ in read_batches(journal.columns_path(made.journal, 0, 0)) if each.count]
    outcomes = stored.columns()["outcome"].tolist()
    assert outcomes == [journal.COMPLETED, journal.ERROR, journal.COMPLETED]


NUMBERS = st.one_of(
    st.integers(), st.integers(min_value=10**300, max_value=10**400), st.floats(), st.just(-HUGE), st.booleans(), st.none()
)
VALUES = st.recursive(
    st.one_of(NUMBERS, st.text(max_size=5), st.just("\ud800")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
COUNTS = st.sampled_from(["prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "usage", "prompt_audio_seconds",
                          "completion_tokens_details", "cache_read_input_tokens", "tokens"])  # fmt: skip
FIELDS = st.fixed_dictionaries(
    {}, optional={"text": VALUES, "reasoning": VALUES, "tool": VALUES, "usage": st.dictionaries(COUNTS, VALUES) | VALUES,
                  "finish": VALUES, "items": VALUES, "extra": VALUES},
)  # fmt: skip


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(FIELDS, VALUES), min_size=1, max_size=4))
def test_any_json_makes_one_row_for_each_request(values: list[Any]) -> None:
    bodies = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in values]
    for endpoint in ("Loose", None):
        with tempfile.TemporaryDirectory() as name:
            changes = {} if endpoint is None else {
                "endpoint": sample_ref("endpoints", f"{__name__}:{endpoint}"),
                "exporters": (sample_ref("exporters", f"{__name__}:Answers"),),
            }  # fmt: skip
            good = event(text="a b")
            batch, _ = answered(Path(name), good, *bodies, good, **changes)
            assert len(batch["outcome"]) == len(bodies) + 2
            assert batch["outcome"][[0, -1]].tolist() == [journal.COMPLETED] * 2
            assert not math.isnan(batch["first_token_ns"][0])
