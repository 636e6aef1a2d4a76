"""Work of others on a server, by requests, by tokens and by what is in work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from aiperf.sdk.columns import Floats
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Line, Moment, Sample, SeriesHeader, SourceHeader, TargetHeader, Window
from aiperf.sdk.summary import PhaseSummary, SeriesSummary, SourceSummary, TargetSummary
from aiperf.sdk.telemetry import SeriesKind
from aiperf.sdk.verdict import Evidence, Finding
from aiperf_testing.verdicts import sample_evidence
from aiperf_verdict_other_tenants import OtherTenants
from aiperf_verdict_other_tenants.contract import OtherTenantsContract, answered
from aiperf_verdict_other_tenants.running import _in_flight
from msgspec.structs import replace

S = 1_000_000_000


class TestItKeepsTheContract(OtherTenantsContract):
    pass


def judged(evidence: Evidence) -> list[Finding]:
    return list(OtherTenants(None).judge(evidence))


def counted(phase: int = 0, requests: float | None = 24.0, tokens: float | None = None) -> tuple[SeriesSummary, ...]:
    known = {"request_success_total": requests, "generation_tokens_total": tokens}
    return tuple(
        SeriesSummary("server_metrics", phase, f"vllm:{name}", "counter", "", {}, "", {"total": total})
        for name, total in known.items() if total is not None
    )  # fmt: skip


def run(*series: SeriesSummary, target: TargetSummary | None = None, **columns: float) -> Evidence:
    targets = () if target is None else (target,)
    source = SourceSummary("server_metrics", "acme", "1", 0.3, 9, 0, 0, series, targets=targets)

    def column(name: str) -> Floats:
        return np.full(24, columns.get(name, 10.0 if name == "output_tokens" else 0.0))

    return sample_evidence(telemetry=(source,), read_column=column)


def test_the_share_of_others_is_in_the_sentence() -> None:
    (finding,) = judged(run(*counted(requests=30.0, tokens=300.0), usage_completion_tokens=10.0))
    assert finding.sentence.startswith(
        "vllm worked for others, too: 6 of the 30 requests that it answered in this time (20 %), and 60 of the 300 tokens that"
        " it generated were not of this run"
    )
    assert finding.confidence == 1.0 and finding.numbers["foreign_requests"] == 6.0


def test_requests_of_several_answers_are_not_counted() -> None:
    evidence = answered(48)
    assert judged(evidence)
    assert judged(replace(evidence, plan=evidence.plan.replacing(several_answers=True))) == []


@pytest.mark.parametrize(("left", "there"), [(2, True), (6, False)])
def test_requests_that_the_run_before_left_are_no_others(left: int, *, there: bool) -> None:
    evidence = answered(30)
    assert bool(judged(replace(evidence, plan=evidence.plan.replacing(carried_over=left)))) is there


@pytest.mark.parametrize(("earlier", "there"), [(4.0, False), (10.0, True)])
def test_requests_of_the_warmup_that_are_counted_late_are_no_others(earlier: float, *, there: bool) -> None:
    phase = replace(answered(24).phase, index=1)
    evidence = run(*counted(0, earlier), *counted(1, 30.0))
    phases = tuple(PhaseSummary(f"{i}", "warmup", i, i, i + 1, {}, valid=valid) for i, valid in enumerate((10, 24)))
    evidence = replace(evidence, phase=phase, summary=replace(evidence.summary, phases=phases))
    assert bool(judged(evidence)) is there


@pytest.mark.parametrize(("tokens", "there"), [(250.0, False), (300.0, True)])
def test_tokens_tell_where_requests_agree(tokens: float, *, there: bool) -> None:
    found = judged(run(*counted(tokens=tokens), usage_completion_tokens=10.0))
    assert bool(found) is there
    if found:
        assert found[0].confidence == 0.8 and "the answers of this run account for 240 (20 % are others')" in found[0].sentence


@pytest.mark.parametrize(("tokens", "there"), [(2400.0, False), (3000.0, True)])
def test_inputs_of_embeddings_are_no_requests(tokens: float, *, there: bool) -> None:
    counts = {"request_success_total": 96.0, "prompt_tokens_total": tokens}
    series = (
        SeriesSummary("server_metrics", 0, f"vllm:{name}", "counter", "", {}, "", {"total": total})
        for name, total in counts.items()
    )
    found = judged(run(*series, usage_prompt_tokens=100.0, output_tokens=0.0))
    assert bool(found) is there
    if found:
        assert "it read 3,000 tokens in this time" in found[0].sentence


def test_a_page_that_several_servers_answer_in_turn_tells_nothing() -> None:
    series = counted(requests=2400.0, tokens=9000.0)
    again = [replace(one, stats=one.stats | {"resets": 9.0}) for one in series]
    assert judged(run(*series, usage_completion_tokens=10.0)) and judged(run(*again, usage_completion_tokens=10.0)) == []


def test_the_page_of_a_server_at_two_places_is_not_added_up() -> None:
    url = run().plan.target.urls[0]
    places = (f"{url}/metrics", "http://elsewhere:9000/metrics")
    assert judged(run(*(replace(each, target=place) for place in places for each in counted()))) == []
    (one, other) = judged(run(*(replace(each, target=place) for place in places for each in counted(requests=30.0))))
    assert one.numbers == other.numbers and one.numbers["foreign_requests"] == 6.0


def levels(running: Callable[[float], float]) -> Evidence:
    """A run of 60 s with 4 requests in flight all the time, whose server tells how many run."""
    header = SourceHeader(PluginRef("telemetry", "server_metrics", "m:S", "acme", "1"), 0.5, (TargetHeader("", 0.5),))
    lines: list[Line] = [header, SeriesHeader(0, "vllm:num_requests_running", SeriesKind.GAUGE)]
    lines += [Sample(Moment(place * S // 2, 0, 0, 0), {0: running(place / 2)}) for place in range(121)]
    gauge = SeriesSummary("server_metrics", 0, "vllm:num_requests_running", "gauge", "", {}, "", {"avg": 4.0})
    columns = {"sent_ns": np.repeat(np.arange(6) * 10.0 * S, 4), "ended_ns": np.repeat(np.arange(1, 7) * 10.0 * S, 4)}

    def column(name: str) -> Floats:
        return columns.get(name, np.zeros(24))

    return replace(
        run(gauge), windows=(Window(0, 0, 60 * S),), read_samples=lambda name: iter(lines), read_column=column,
    )  # fmt: skip


def test_the_last_value_of_a_page_that_died_is_no_load() -> None:
    """Two servers behind a gateway; the page of the second dies, and then requests go to the first alone."""
    header = SourceHeader(PluginRef("telemetry", "server_metrics", "m:S", "acme", "1"), 0.5, tuple(
        TargetHeader(f"http://w{number}/metrics", 0.5) for number in range(2)
    ))  # fmt: skip
    lines: list[Line] = [header]
    lines += [SeriesHeader(number, "vllm:num_requests_running", SeriesKind.GAUGE, target=number) for number in range(2)]
    for place in range(121):
        for number in range(2 if place < 10 else 1):
            running = 2.0 if place < 10 else 4.0
            lines.append(Sample(Moment(place * S // 2, 0, 0, 0), {number: running}, target=number))
    gauges = [
        SeriesSummary("server_metrics", 0, "vllm:num_requests_running", "gauge", "", {}, "", {"avg": 3.0}, target=target.name)
        for target in header.targets
    ]
    made = levels(lambda at_s: 4.0)
    telemetry = replace(made.summary.telemetry[0], series=tuple(gauges))
    evidence = replace(made, summary=replace(made.summary, telemetry=(telemetry,)), read_samples=lambda name: iter(lines))
    assert judged(evidence) == []


@pytest.mark.parametrize(
    ("running", "there"),
    [
        (lambda at_s: 4.0, False), (lambda at_s: 5.0, True),
        (lambda at_s: 4.0 + (1.0 if round(at_s) % 2 else -1.0), False),
        (lambda at_s: 12.0 if 20 <= at_s < 25 else 4.0, False),  # once: it may be anything
    ],
)  # fmt: skip
def test_requests_in_work_tell_where_nothing_is_counted(running: Callable[[float], float], *, there: bool) -> None:
    found = judged(levels(running))
    assert bool(found) is there
    if found:
        assert found[0].numbers["foreign_avg"] == pytest.approx(1.0, abs=0.2) and found[0].confidence == 0.8


@pytest.mark.parametrize("size", [1, 7, 100])
def test_requests_in_flight_are_counted_block_by_block(size: int) -> None:
    draw = np.random.default_rng(1)
    sent = draw.integers(0, 50, 100) * S / 4
    ended = np.where(draw.random(100) < 0.1, np.nan, sent + draw.integers(0, 9, 100) * S / 4)
    sent, url = np.where(draw.random(100) < 0.1, np.nan, sent), draw.integers(0, 3, 100)
    known = {"sent_ns": sent, "ended_ns": ended, "url": url.astype(np.float64)}
    plan = sample_evidence().plan.replacing(urls=("http://a", "http://b", "http://c"))
    evidence = sample_evidence(
        plan=plan,
        read_columns=lambda names: (tuple(known[name][at : at + size] for name in names) for at in range(0, 100, size)),
    )
    at_s = np.array([3.0, 0.0, 12.5, 2.25, 40.0])  # in no order
    for urls in ((0, 2), (0, 1, 2)):
        own = ~np.isnan(sent) & np.isin(url, urls)
        expected = [int((own & (sent <= at * S) & ~(ended <= at * S)).sum()) for at in at_s.tolist()]
        assert _in_flight(evidence, at_s, urls).tolist() == expected
