"""Times that the server gives: values worked out by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from aiperf import Metric, RecordBatch
from aiperf.sdk.spec_decode import SERVER_TIMING
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


@pytest.mark.parametrize(("metric", "values"), [
    (ServerTimeToFirstToken(), [12.5e6, None, None]), (ServerGenerationTime(), [70e6, None, None]),
    (ServerQueueTime(), [0.25e6, None, 1.5e6]), (ServerMeanItl(), [10e6, None, None]),
    (ServerTokensPerSecond(), [96, None, None]),
], ids=lambda each: each.tag if isinstance(each, Metric) else "")  # fmt: skip
def test_values_are_those_that_the_server_gave(metric: Metric, values: list[float | None]) -> None:
    column = metric.column(batch(SAID, None, '{"queue_time_ms":1.5}'))
    assert isinstance(column, np.ndarray)
    assert [None if math.isnan(value) else value for value in column.tolist()] == values


def test_a_line_has_what_the_server_gave_and_no_more() -> None:
    first, second = ServerTimeToFirstToken().details(batch('{"queue_time_ms":1.5}', None))
    assert (json.loads(first or b""), second) == ({"queue_time_ms": 1.5}, None)


def test_a_server_that_says_nothing_gives_nothing() -> None:
    silent = RecordBatch({"ended_ns": np.zeros(2)}, np.ones(2, dtype=bool), {})
    column = ServerQueueTime().column(silent)
    assert isinstance(column, np.ndarray)
    assert np.isnan(column).all()
    assert ServerTimeToFirstToken().details(silent) == [None, None]
