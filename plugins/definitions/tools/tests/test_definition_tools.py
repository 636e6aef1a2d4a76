"""Hand-computed: two good requests, one cut and one empty, read each way."""

import re

import numpy as np
import pytest
from aiperf import RecordBatch, ragged
from aiperf.testing import DefinitionContract
from aiperf_command_report.comparison import numbers
from aiperf_definition_tools import GenaiPerf, GuideLlm, This, Vllm, VllmOutput, VllmUntil032

MS = 1e6
NAN = float("nan")
ALL = (This(), Vllm(), VllmOutput(), VllmUntil032(), GuideLlm(), GenaiPerf())


def batch() -> RecordBatch:
    """In ms.  A: role at 10, content at 20 and 60 (5 tokens, several a chunk), a closing event at 64, usage at 70.  B: 2 tokens
    in one event, at 130.  C fails at 500, after two pieces, at 300 and 340.  D ends well at 260, with a role at 240 alone."""
    rows = {
        "started_ns": [0, 100, 200, 220], "ended_ns": [70, 130, 500, 260], "first_event_ns": [10, 130, 300, 240],
        "last_event_ns": [64, 130, 340, 240], "first_token_ns": [20, 130, 300, NAN],
        "first_output_ns": [20, 130, 300, NAN], "last_token_ns": [60, 130, 340, NAN],
    }  # fmt: skip
    columns = {name: np.array(values, dtype=float) * MS for name, values in rows.items()}
    columns |= {
        "output_tokens": np.array([5, 2, 3, NAN]), "reasoning_tokens": np.full(4, NAN), "first_tokens": np.full(4, NAN),
        "usage_completion_tokens": np.array([5, 2, NAN, 0]), "events": np.array([4.0, 1, 2, 1]),
        "fault": np.array([NAN, NAN, 1, 2]),
    }  # fmt: skip
    instants = [[20 * MS, 60 * MS], [130 * MS], [300 * MS, 340 * MS], []]
    columns |= {
        "chunk_ns": ragged(instants, instants),
        "piece_count": ragged([[1] * len(each) for each in instants], instants),
    }
    return RecordBatch(columns, np.array([True, True, False, False]))


@pytest.mark.parametrize(
    ("definition", "ttft", "itl", "tpot", "requests", "tokens", "span_s"),
    [
        (This(), 25, 10, 10, 2, 7, 0.5),  # (20 + 30) / 2; 40 / 4, B's came at once; to the failure's end
        (Vllm(), 25, 40, 5, 2, 7, 0.5),  # (20 + 30) / 2, no role and no closing event; A's gap; A's 40 / 4 and B's 0
        (VllmOutput(), 25, 40, 5, 2, 7, 0.5),  # no reasoning
        # (10 + 30 + 20) / 3, the empty D too; gaps 10, 40 and 4; A's 54 / 4 and B's 0
        (VllmUntil032(), 20, 18, 6.75, 3, 7, 0.5),
        # (40 / 4 x 4 + 0 x 1) / 5; (60 / 5 x 5 + 30 / 2 x 2) / 7; all four, with C's pieces for tokens
        (GuideLlm(), 25, 8, 90 / 7, 4, 9, 0.5),
        (GenaiPerf(), 25, 10, 10, 3, 7, 0.13),  # D counts for the rate alone; ends with the last content of a good one
    ],
)
def test_each_tool_reads_its_own_numbers(definition, ttft, itl, tpot, requests, tokens, span_s):
    found = numbers(definition, batch())
    assert found.ttft_ms.mean == pytest.approx(ttft)
    assert found.itl_ms.mean == pytest.approx(itl)
    assert found.tpot_ms.mean == pytest.approx(tpot)
    assert found.requests_per_s == pytest.approx(requests / span_s)
    assert found.output_tokens_per_s == pytest.approx(tokens / span_s)


@pytest.mark.parametrize(
    ("definition", "p50", "p99"),
    [(This(), 25, 29.9), (Vllm(), 25, 29.9), (VllmUntil032(), 20, 29.8), (GuideLlm(), 20, 30), (GenaiPerf(), 25, 29.9)],
)
def test_percentiles_of_ttft_lie_where_each_tool_puts_them(definition, p50, p99):
    """Of 20 and 30 (earlier vLLM: 10, 20 and 30): half-way for those that mix neighbours, one of both for GuideLLM."""
    found = numbers(definition, batch()).ttft_ms
    assert (found.p50, found.p99) == (pytest.approx(p50), pytest.approx(p99))


def test_vllm_sees_a_gap_of_nothing_where_content_comes_together():
    """A's second arrival has three pieces: gaps of 40, 0 and 0."""
    instants = [[20 * MS, 60 * MS], [130 * MS], [300 * MS, 340 * MS], []]
    columns = {**batch().columns, "piece_count": ragged([[1, 3], [1], [1, 1], []], instants)}
    found = numbers(Vllm(), RecordBatch(columns, batch().valid))
    assert (found.itl_ms.mean, found.itl_ms.p50) == (pytest.approx(40 / 3), 0)


def test_earlier_vllm_sees_a_gap_of_nothing_where_events_come_together():
    """B's answer again, with its role and a closing event in the same read: 3 events, 2 gaps of 0 beside 10, 40 and 4."""
    columns = {**batch().columns, "events": np.array([4.0, 3, 2, 1])}
    found = numbers(VllmUntil032(), RecordBatch(columns, batch().valid))
    assert found.itl_ms.mean == pytest.approx(54 / 5)
    assert found.itl_ms.p50 == pytest.approx(4)


@pytest.mark.parametrize(("first", "itl"), [(NAN, 40 / 4), (3, 40 / 2), (0, 40 / 4), (5, 40 / 4)])
def test_this_excludes_the_servers_count_of_first_tokens(first, itl):
    """Of A's five tokens, if that leaves any."""
    columns = {**batch().columns, "first_tokens": np.array([first, NAN, NAN, NAN])}
    assert numbers(This(), RecordBatch(columns, batch().valid)).itl_ms.mean == pytest.approx(itl)


def test_vllm_counts_text_where_the_server_counts_nothing():
    columns = {**batch().columns, "usage_completion_tokens": np.full(4, NAN)}
    for definition in (Vllm(), VllmUntil032()):
        assert numbers(definition, RecordBatch(columns, batch().valid)).output_tokens_per_s == pytest.approx(7 / 0.5)


def test_reasoning_ends_ttft_except_where_only_output_counts():
    """A's first content is thought: 3 of 8 tokens, and its first output comes at 60."""
    columns = {**batch().columns, "reasoning_tokens": np.array([3, NAN, NAN, NAN])}
    columns["usage_completion_tokens"] = np.array([8.0, 2, NAN, 0])
    columns["first_output_ns"] = np.array([60, 130, 300, NAN]) * MS
    found = {type(one): numbers(one, RecordBatch(columns, batch().valid)) for one in ALL}
    assert [each.ttft_ms.mean for each in found.values()] == pytest.approx([25, 25, 45, 20, 25, 45])
    assert found[This].itl_ms.mean == pytest.approx(40 / 7)
    assert found[GenaiPerf].itl_ms is None  # one output in one event each
    assert found[Vllm].itl_ms.mean == pytest.approx(40) and found[VllmOutput].itl_ms is None
    assert found[Vllm].tpot_ms.mean == pytest.approx((40 / 7 + 0) / 2)  # by the server's 8 tokens
    assert found[GenaiPerf].output_tokens_per_s == pytest.approx(7 / 0.13)


def test_an_answer_of_reasoning_alone_is_a_failure_where_only_output_counts():
    columns = {**batch().columns, "first_output_ns": np.array([NAN, 130, 300, NAN]) * MS}
    found = {type(one): numbers(one, RecordBatch(columns, batch().valid)) for one in (Vllm(), VllmOutput())}
    assert [each.requests_per_s * 0.5 for each in found.values()] == pytest.approx([2, 1])


@pytest.mark.parametrize("definition", ALL[1:])
def test_each_source_names_repository_version_and_path(definition):
    assert re.search(r"\d+\.\d+\.\d+", definition.version)
    repository, path = definition.source.split(", ", 1)
    assert re.fullmatch(r"github\.com/[\w-]+/[\w-]+ (at [0-9a-f]{12}|v\d+\.\d+\.\d+)", repository)
    assert path.endswith(".py")


@pytest.mark.parametrize("definition", ALL)
def test_where_every_request_failed_nothing_is_measured(definition):
    found = numbers(definition, batch().select(np.array([False, False, True, False])))
    assert (found.ttft_ms, found.itl_ms, found.tpot_ms) == (None, None, None)


class TestThisKeepsTheContract(DefinitionContract):
    definition = This


class TestVllmKeepsTheContract(DefinitionContract):
    definition = Vllm


class TestVllmOutputKeepsTheContract(DefinitionContract):
    definition = VllmOutput


class TestVllmUntil032KeepsTheContract(DefinitionContract):
    definition = VllmUntil032


class TestGuideLlmKeepsTheContract(DefinitionContract):
    definition = GuideLlm


class TestGenaiPerfKeepsTheContract(DefinitionContract):
    definition = GenaiPerf
