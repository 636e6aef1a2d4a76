"""A batch as lines of ``accuracy_export.jsonl``."""

from __future__ import annotations

import msgspec
import numpy as np
from aiperf import RecordBatch, Target, integers
from aiperf.sdk.columns import REPEAT
from aiperf.sdk.exporter import visible
from aiperf.sdk.grader import Grade
from msgspec import Struct


class _Graded(Struct):
    """The text ``grade`` of a batch, as far as lines have it."""

    expected: str
    task: str | None = None
    response: str = ""
    grade: Grade | None = None
    ungraded: str | None = None


class Line(Struct):
    """A line; None where something is not known.

    passed, unparsed: None where the answer was not graded, and *explanation* says why.  confidence: 0 to 1, the grader's
    partial mark.  actual: what the grader extracted.  timestamp_ns: when the request ended.  problem_id: the same for repeats.
    """

    session_num: int | None
    conversation_id: str | None
    x_request_id: str | None
    worker_id: str | None
    benchmark_phase: str | None
    timestamp_ns: int | None
    task: str | None
    grader_name: str
    passed: bool | None
    unparsed: bool | None
    confidence: float | None
    expected: str
    actual: str | None
    explanation: str
    model_output: str | None
    model_thinking: str | None
    problem_id: str | None
    repeat: int | None
    finish_reason: str | None
    output_tokens: int | None


_read = msgspec.json.Decoder(_Graded).decode
_encode = msgspec.json.Encoder().encode


def lines(batch: RecordBatch, target: Target) -> bytes:
    """The lines of the profiling requests with an expected answer."""
    profiling = [number for number, kind in enumerate(target.kinds) if kind == "profiling"]
    batch = batch.select(np.isin(batch["phase"], profiling) & np.isfinite(batch["graded"]))
    grades = batch.texts.get("grade")
    if not len(batch) or grades is None:
        return b""
    phases = [target.kinds[int(phase)] for phase in batch["phase"].tolist()]
    ids = (integers(batch["session"]), *(batch.texts[name] for name in ("conversation_id", "request_id", "worker")), phases)
    ended = integers(batch["ended_ns"], target.started_wall_ns)
    told = (batch.texts.get(name) or [None] * len(batch) for name in ("answer", "reasoning", "finish_reason"))
    counted = (integers(batch[name]) for name in (REPEAT, "output_tokens"))
    grader = str(target.config.get("accuracy", {}).get("grader", ""))
    made = bytearray()
    for session, name, request, worker, phase, at_ns, text, answer, thinking, finish, repeat, tokens in zip(
        *ids, ended, grades, *told, *counted, strict=True
    ):
        if text is None:
            continue
        graded = _read(text)
        grade = graded.grade
        line = Line(
            session, name, request, worker, phase, at_ns, graded.task, grader,
            None if grade is None else grade.correct, None if grade is None else grade.unparsed,
            None if grade is None else float(grade.correct) if grade.score is None else grade.score, graded.expected,
            None if grade is None else grade.extracted, graded.ungraded or "" if grade is None else grade.explanation,
            answer or (None if thinking else graded.response or None), thinking or None, name, repeat, finish, tokens,
        )  # fmt: skip
        made += visible(_encode(line)) + b"\n"
    return bytes(made)


__all__ = ["Line", "lines"]
