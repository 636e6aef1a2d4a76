"""The {{ cookiecutter.name }} definitions."""

from __future__ import annotations

import numpy as np
from aiperf.testing import DefinitionContract, sample_batch

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(DefinitionContract):
    definition = {{ cookiecutter.__class }}


def test_a_tokens_time_includes_the_wait_for_the_first() -> None:
    batch = sample_batch()
    good = batch.select(batch.valid)
    read = {{ cookiecutter.__class }}().read(batch)
    known = np.isfinite(read.tpot_ns)
    assert known.any()
    assert (read.tpot_ns[known] * good["output_tokens"][known] >= read.ttft_ns[known]).all()
