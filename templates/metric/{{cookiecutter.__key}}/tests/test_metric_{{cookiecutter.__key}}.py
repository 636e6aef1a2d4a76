"""The {{ cookiecutter.name }} metric: a difference of two instants."""

from __future__ import annotations

import numpy as np
from aiperf.testing import MetricContract, sample_batch, scored

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(MetricContract):
    metric = {{ cookiecutter.__class }}()


def test_a_request_that_was_never_answered_has_none() -> None:
    batch = sample_batch()
    values = scored([{{ cookiecutter.__class }}()], batch).values["{{ cookiecutter.__key }}"]
    assert isinstance(values, np.ndarray)
    assert np.array_equal(np.isnan(values), np.isnan(batch["ack_ns"]))
    assert values[0] == batch["ack_ns"][0] - batch["sent_ns"][0]
