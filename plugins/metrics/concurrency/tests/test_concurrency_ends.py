"""When requests end, by outcome."""

import numpy as np
import pytest
from aiperf.parts.journal import ABORTED, CANCELLED, COMPLETED, ERROR, OVERFLOWED
from aiperf_metric_concurrency.flow import ends_of


@pytest.mark.parametrize(
    ("outcome", "end"), [(COMPLETED, 5.0), (ERROR, 5.0), (CANCELLED, 5.0), (OVERFLOWED, 5.0), (ABORTED, 9.0)]
)
def test_a_request_with_a_record_ends_with_its_last_byte(outcome, end):
    columns = {"outcome": np.array([outcome]), "last_byte_ns": np.array([5.0]), "ended_ns": np.array([9.0])}
    assert ends_of(columns).tolist() == [end]
