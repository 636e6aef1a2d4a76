"""Why answers ended, and counts that are none: rows, batches and counts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.rundir import journal
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.endpoint import DecodingReader
from aiperf.sdk.model import REFUSED, Delta
from aiperf.sdk.summary import Summary
from aiperf.testing.journals import CLOCK, Plain, Recording, event
from aiperf.testing.plans import sample_ref
from aiperf_reducer_columns.reduce import batches as stored_batches
from aiperf_reducer_columns.reduce.heads import said_in
from aiperf_reducer_columns.reduce.reasons import coded, decoded, joined
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_reducer_columns.reduce.several_answers import prompts_in
from aiperf_reducer_columns.reduce.usage import Usage, added, counted
from aiperf_reducer_columns.report.report import write_summary
from aiperf_reducer_columns.statistics.phase_counts import PhaseCounts

DONE = b"data: [DONE]\n\n"


def reduced(made: Recording) -> RecordBatch:
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    (batch,) = stored_batches.batches(made.journal, made.plan)
    return batch


def summary_of(made: Recording) -> Summary:
    made.ended()
    write_summary(made.journal)
    return msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)


def value(batch: RecordBatch, name: str, row: int = 0) -> float | None:
    found = float(batch[name][row])
    return None if math.isnan(found) else found


def error(batch: RecordBatch) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(batch.texts["error"][0] or "{}")
    return told


def answered(made: Recording, *bodies: bytes) -> None:
    for number, body in enumerate(bodies):
        made.answered(number, 1, (10, body), n=number)
    made.flush(60)


def test_the_reason_of_each_end_is_a_text_of_its_batch(tmp_path: Path) -> None:
    made = Recording(tmp_path)
    ends = [{"finish": reason} for reason in ("stop", "odd", "stop", "", None)]
    answered(made, *(event(text="a", **end) + DONE for end in (*ends, {"extra": {REFUSED: 1.0}})))
    assert list(reduced(made).texts["finish_reason"]) == ["stop", "odd", "stop", None, None, "refusal"]
    assert summary_of(made).finish_reasons == {"stop": 2, "odd": 1, "refusal": 1}


def test_a_reason_is_kept_without_secrets_and_not_at_any_length() -> None:
    texts, places = coded(["key-1", None, "x" * 900, "key-1"], lambda text: text.replace("key-1", "***"))
    assert texts == ["***", "x" * 200 + "…"]
    assert decoded(texts, places) == ["***", None, texts[1], "***"]
    assert coded([None, ""], str) == ([], b"")


def test_different_reasons_stand_once_each_in_their_order() -> None:
    assert joined(["length", None, "stop", "length"]) == "length, stop"
    assert joined([None, ""]) is None


def test_reasons_beyond_a_hundred_are_counted_together() -> None:
    whole = PhaseCounts()
    for number in range(150):
        whole.merge(PhaseCounts(reasons={f"reason {number}": 2}))
    assert len(whole.reasons) == 101 and sum(whole.reasons.values()) == 300


@pytest.mark.parametrize(("said", "usage", "unread"), [
    ({"prompt_tokens": -5, "completion_tokens": 3, "total_tokens": 8}, Usage(completion=3, total=8), True),
    ({"prompt_tokens": 5, "completion_tokens": 3.5}, Usage(prompt=5), True),
    ({"prompt_tokens": 5.0, "completion_tokens": "3"}, Usage(prompt=5), True),
    ({"prompt_tokens": True, "completion_tokens": 1 << 31}, Usage(), True),
    ({"prompt_tokens": None, "completion_tokens": 3}, Usage(completion=3), False),
    ({"prompt_tokens": 5, "prompt_tokens_details": "none"}, Usage(prompt=5), True),
    ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": -1}}, Usage(prompt=5), True),
    ({"prompt_tokens": 5, "service": "fast", "queue_time": -0.5}, Usage(prompt=5), False),
    ({"usage": "unlimited"}, Usage(), True),
    ({"prompt_audio_seconds": -1}, Usage(), True),
    ({"prompt_tokens": float("nan"), "completion_tokens": float("inf")}, Usage(), True),
])  # fmt: skip
def test_what_is_no_count_is_not_used(said: dict[str, Any], usage: Usage, unread: bool) -> None:
    assert counted(said) == (usage, unread)


def test_answers_with_counts_that_are_none_are_counted(tmp_path: Path) -> None:
    made = Recording(tmp_path, use_server_token_count=True, tokenizer=None, tokenizer_name=None)
    said = ({"prompt_tokens": -5, "completion_tokens": 3}, {"prompt_tokens": 5, "completion_tokens": 3}, {})
    answered(made, *(event(text="a") + event(usage=usage) + DONE for usage in said))
    batch = reduced(made)
    assert [value(batch, "input_tokens", row) for row in range(3)] == [None, 5, None]
    assert [value(batch, "unread_usage", row) for row in range(3)] == [1, None, None]
    counts = PhaseCounts()
    counts.add(batch)
    assert (counts.unread_usage, counts.silent) == (1, 1)


ONE, TWO = Usage(9, 3, 12, cached=4), Usage(9, 4, 13, cached=5)


@pytest.mark.parametrize(("usages", "prompts", "total", "unread"), [
    ([ONE, TWO], 1, Usage(9, 7, 16), False),  # what each found in the cache differs: unknown
    ([ONE, ONE], 1, Usage(9, 6, 15, cached=4), False),
    ([ONE, TWO], 2, Usage(18, 7, 25, cached=9), False),
    ([ONE, ONE, ONE, ONE], 2, Usage(18, 12, 30, cached=8), False),
    ([Usage(9, 3), Usage(8, 3)], 1, Usage(completion=6), True),  # of one prompt
    ([ONE, ONE, ONE], 2, Usage(completion=9), True),
    ([Usage(9, 3), Usage(9)], 1, Usage(9), False),
])  # fmt: skip
def test_the_counts_of_several_answers_are_added(usages: list[Usage], prompts: int, total: Usage, unread: bool) -> None:
    assert added(usages, prompts) == (total, unread)


@pytest.mark.parametrize(("body", "prompts"), [
    (b'{"prompt":["a","b"],"n":2}', 2), (b'{"prompt":[5,6,7]}', 1), (b'{"prompt":[[5],[6],[7]]}', 3), (b'{"prompt":"a"}', 1),
    (b'{"messages":[]}', 1), (b"<html>", 1), (b"[]", 1),
])  # fmt: skip
def test_the_prompts_of_a_body_are_known(body: bytes, prompts: int) -> None:
    assert prompts_in(body) == prompts


@pytest.mark.parametrize(("body", "said"), [
    (event(finish="content_filter") + DONE, ": the server says that it ended with 'content_filter'"),
    (event(usage={"completion_tokens": 0}) + DONE, ": the server counts no output tokens"),
    (
        event(finish="length", usage={"completion_tokens": 8}) + DONE,
        ": the server says that it ended with 'length' and counts output tokens",
    ),
    (event(usage={"prompt_tokens": 3}) + DONE, ""),
])  # fmt: skip
def test_an_empty_answer_is_told_by_its_end(tmp_path: Path, body: bytes, said: str) -> None:
    made = Recording(tmp_path)
    answered(made, body)
    batch = reduced(made)
    assert error(batch)["message"] == f"the answer has no content{said}"
    assert np.isfinite(batch["fault"]).all()


STREAM = {"headers": [["Content-Type", "text/event-stream; charset=utf-8"]]}


@pytest.mark.parametrize(("body", "message"), [
    (b'data: {"error":{"message":"out of memory","type":"server_error","code":"500"}}\n\ndata: [DONE]\n\n', "out of memory"),
    (b': here\n\nevent: error\ndata: {"error":\ndata: "gone"}\n\n', "gone"),
    (b"data: plainly gone\n\n", "plainly gone"),
    (b'data: {"detail":"no"}', '{"detail":"no"}'),
    (b"data: [DONE]\n\n", "data: [DONE]\n\n"),
    (b"gone", "gone"),
    (b"", ""),
])  # fmt: skip
def test_an_error_status_with_an_event_stream_has_the_message_of_its_first_data(body: bytes, message: str) -> None:
    assert said_in(body, STREAM) == message
    assert said_in(body, None) == body.decode()


def test_a_failed_request_says_what_its_event_stream_says(tmp_path: Path) -> None:
    made = Recording(tmp_path)
    made.sent(0, 1)
    made.read(0, 10, b'data: {"error": {"message": "out of memory", "type": "x", "code": 500}}\n\ndata: [DONE]\n\n')
    made.text(0, "head", {"status": 500, "reason": "Internal Server Error", **STREAM})
    made.done(0, 12, outcome=journal.ERROR, status=500)
    made.flush(60)
    assert error(reduced(made)) == {"message": "out of memory", "type": "Internal Server Error", "code": 500}


class Shrinking(DecodingReader):
    """An answer that shrinks to what it began with."""

    first: Delta | None = None

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        deltas = list(map(self.decode, events))
        self.first = self.first or deltas[0]
        return deltas

    def choices(self) -> Sequence[Delta] | None:
        return None if self.first is None else [self.first]


class TakesBack(Plain):
    takes_back = True

    def reader(self) -> Shrinking:
        return Shrinking(self.decode)


def test_text_that_was_taken_back_is_not_counted(tmp_path: Path) -> None:
    made = Recording(tmp_path, endpoint=sample_ref("endpoints", f"{__name__}:TakesBack"))
    made.answered(0, 1, (10, event(text="a b")), (20, event(text=" STOP STOP")))
    made.flush(60)
    assert value(reduced(made), "output_tokens") == 2
