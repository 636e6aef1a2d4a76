"""Answers of which nobody kept more than their start."""

from __future__ import annotations

import pytest
from aiperf.sdk.endpoint import Drained
from aiperf.sdk.errors import ENDPOINT_ERROR, BadResponse
from aiperf.sdk.model import Delta
from aiperf_reducer_columns.reduce.drained import read_drained

READS = [(10, 10, 0, b"RIFF"), (20, 20, 0, b"head" * 10), (30, 30, 0, b"sound"), (90, 90, 0, b"")]


@pytest.mark.parametrize(("begins", "first_ns"), [(0, 10), (4, 20), (43, 20), (44, 30), (48, 30), (49, 90)])
def test_content_came_with_the_read_behind_the_header(begins: int, first_ns: int) -> None:
    answer = read_drained(READS, 5000, lambda start, received: Drained(Delta(items=1, extra={"n": received}), begins))
    assert answer.stamps == ([90] if first_ns == 90 else [first_ns, 90])
    assert (answer.first_output_ns, answer.items, answer.extra) == (first_ns, 1, {"n": 5000})


def test_an_answer_of_an_unknown_end_has_the_bytes_that_are_known() -> None:
    answer = read_drained(READS[:3], None, lambda start, received: Drained(Delta(text=str(received))))
    assert answer.text == "49"


def test_errors_of_drained_answers_are_the_request_s() -> None:
    def bad(start: bytes, received: int) -> Drained:
        raise BadResponse("busy", raw=start)

    error = read_drained(READS, 5000, bad).error
    assert error is not None and error.message == "busy"
    for wrong in (lambda start, received: None, lambda start, received: 1 / 0):
        error = read_drained(READS, 5000, wrong).error  # type: ignore[arg-type]
        assert error is not None and error.kind == ENDPOINT_ERROR


def test_an_answer_without_content_has_no_instant() -> None:
    assert read_drained(READS, 5000, lambda start, received: Drained()).stamps == []
