"""Times that the server gives: values worked out by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from aiperf import Metric, RecordBatch
from aiperf_dialects.spec_decode import SERVER_TIMING
from aiperf_metric_server_timing import (
    ServerGenerationTime,
    ServerMeanItl,
    ServerQueueTime,
    ServerTimeToFirstToken,
    ServerTokensPerSecond,
)
from aiperf_metric_server_timing.contract import (
    SAID,
    GenerationTimeContract,
    MeanItlContract,
    QueueTimeContract,
    TimeToFirstTokenContract,
    TokensPerSecondContract,
)


class TestTimeToFirstTokenKeepsTheContract(TimeToFirstTokenContract):
    pass


class TestGenerationTimeKeepsTheContract(GenerationTimeContract):
    pass


class TestQueueTimeKeepsTheContract(QueueTimeContract):
    pass


class TestMeanItlKeepsTheContract(MeanItlContract):
    pass


class TestTokensPerSecondKeepsTheContract(TokensPerSecondContract):
    pass


def batch(*texts: str | None) -> RecordBatch:
    columns = {"ended_ns": np.arange(len(texts), dtype=float)}
    return RecordBatch(columns, np.ones(len(texts), dtype=bool), {SERVER_TIMING: [*texts]})


WORKED = {
    "server_timing_time_to_first_token": [12.5e6, None, None],
    "server_timing_generation_time": [70e6, None, None],
    "server_timing_queue_time": [0.25e6, None, 1.5e6],
    "server_timing_mean_itl": [10e6, None, None],
    "server_timing_tokens_per_second": [96.0, None, None],
}
"""Of three answers: one that says all, one that says nothing, and one that says its queue time alone; times in ns."""
KINDS: tuple[type[Metric], ...] = (
    ServerTimeToFirstToken, ServerGenerationTime, ServerQueueTime, ServerMeanItl, ServerTokensPerSecond,
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.tag)
def test_values_are_those_that_the_server_gave(kind: type[Metric]) -> None:
    metric = kind()
    column = metric.column(batch(SAID, None, '{"queue_time_ms":1.5}'))
    assert isinstance(column, np.ndarray)
    assert [None if math.isnan(value) else value for value in column.tolist()] == WORKED[metric.tag]


def test_a_line_has_what_the_server_gave_and_no_more() -> None:
    first, second = ServerTimeToFirstToken().details(batch('{"queue_time_ms":1.5}', None))
    assert (json.loads(first or b""), second) == ({"queue_time_ms": 1.5}, None)


def test_a_server_that_says_nothing_gives_nothing() -> None:
    silent = RecordBatch({"ended_ns": np.zeros(2)}, np.ones(2, dtype=bool), {})
    column = ServerQueueTime().column(silent)
    assert isinstance(column, np.ndarray)
    assert np.isnan(column).all()
    assert ServerTimeToFirstToken().details(silent) == [None, None]
