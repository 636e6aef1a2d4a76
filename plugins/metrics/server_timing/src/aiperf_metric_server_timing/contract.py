"""Contracts with material for these metrics.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf import RecordBatch
from aiperf.testing import MetricContract, sample_batch
from aiperf_dialects.spec_decode import SERVER_TIMING

from aiperf_metric_server_timing import (
    ServerGenerationTime,
    ServerMeanItl,
    ServerQueueTime,
    ServerTimeToFirstToken,
    ServerTokensPerSecond,
)

SAID = (
    '{"time_to_first_token_ms":12.5,"generation_time_ms":70.0,"queue_time_ms":0.25,"mean_itl_ms":10.0,"tokens_per_second":96.0}'
)


class _Timed(MetricContract):
    """Every other request is timed, and every fourth says its queue alone."""

    def batch(self) -> RecordBatch:
        given = sample_batch()
        texts = [(None, SAID, None, '{"queue_time_ms":1.5}')[row % 4] for row in range(len(given))]
        return RecordBatch(given.columns, given.valid, {**given.texts, SERVER_TIMING: texts})


class TimeToFirstTokenContract(_Timed):
    metric = ServerTimeToFirstToken()


class GenerationTimeContract(_Timed):
    metric = ServerGenerationTime()


class QueueTimeContract(_Timed):
    metric = ServerQueueTime()


class MeanItlContract(_Timed):
    metric = ServerMeanItl()


class TokensPerSecondContract(_Timed):
    metric = ServerTokensPerSecond()
