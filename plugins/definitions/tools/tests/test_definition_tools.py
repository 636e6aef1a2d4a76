"""Hand-computed: two good requests and a failed one, read four ways."""

import numpy as np
import pytest
from aiperf import RecordBatch, ragged
from aiperf.comparison import numbers
from aiperf.testing import DefinitionContract
from aiperf_definition_tools import GenaiPerf, GuideLlm, This, Vllm

MS = 1e6
NAN = float("nan")


def batch() -> RecordBatch:
    """In ms.  A: role at 10, content at 20 and 60 (5 tokens, several a chunk), usage at 70.  B: one token, at 130.
    C fails at 500."""
    rows = {
        "started_ns": [0, 100, 200], "ended_ns": [70, 130, 500], "first_byte_ns": [10, 130, NAN],
        "last_byte_ns": [70, 130, NAN], "first_token_ns": [20, 130, NAN], "first_output_ns": [20, 130, NAN],
        "last_token_ns": [60, 130, NAN],
    }  # fmt: skip
    columns = {name: np.array(values, dtype=float) * MS for name, values in rows.items()}
    columns |= {
        "output_tokens": np.array([5, 1, NAN]), "reasoning_tokens": np.full(3, NAN), "first_tokens": np.full(3, NAN),
        "usage_completion_tokens": np.array([5, 1, NAN]),
        "gap_ns": ragged([[40 * MS], [], []], [[60 * MS], [], []]),
        "piece_count": ragged([[1, 1], [1], []], [[20 * MS, 60 * MS], [130 * MS], []]),
    }  # fmt: skip
    return RecordBatch(columns, np.array([True, True, False]))


@pytest.mark.parametrize(
    ("definition", "ttft", "itl", "tpot", "span_s"),
    [
        (This(), 25, 10, 10, 0.5),  # (20 + 30) / 2; 40 / 4; to the failure's end
        (Vllm(), 20, 25, 15, 0.5),  # (10 + 30) / 2; gaps 10 and 40; (70 - 10) / 4
        (GuideLlm(), 25, 10, 15, 0.5),  # (60 / 5 x 5 + 30 x 1) / 6
        (GenaiPerf(), 25, 10, 10, 0.13),  # ends with the last content
    ],
)
def test_each_tool_reads_its_own_numbers(definition, ttft, itl, tpot, span_s):
    found = numbers(definition, batch())
    assert found.ttft_ms.mean == pytest.approx(ttft)
    assert found.itl_ms.mean == pytest.approx(itl)
    assert found.tpot_ms.mean == pytest.approx(tpot)
    assert found.requests_per_s == pytest.approx(2 / span_s)
    assert found.output_tokens_per_s == pytest.approx(6 / span_s)


@pytest.mark.parametrize("definition", [This(), Vllm(), GuideLlm(), GenaiPerf()])
def test_where_every_request_failed_nothing_is_measured(definition):
    found = numbers(definition, batch().select(np.array([False, False, True])))
    assert (found.ttft_ms, found.itl_ms, found.tpot_ms) == (None, None, None)
    assert not found.requests_per_s


class TestThisKeepsTheContract(DefinitionContract):
    definition = This


class TestVllmKeepsTheContract(DefinitionContract):
    definition = Vllm


class TestGuideLlmKeepsTheContract(DefinitionContract):
    definition = GuideLlm


class TestGenaiPerfKeepsTheContract(DefinitionContract):
    definition = GenaiPerf
