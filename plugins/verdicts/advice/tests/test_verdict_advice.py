"""Advice on numbers that were measured well and mislead."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import PhasePlan, Plan, TlsPlan
from aiperf.sdk.summary import STATISTICS, Result
from aiperf.sdk.verdict import AnswerCounts
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_reducer_columns.report.evidence import arrivals, evidence, measurement, read_loops
from aiperf_reducer_columns.report.report import report
from aiperf_reducer_columns.statistics.fold import Buckets
from aiperf_reducer_columns.statistics.phase_counts import PhaseCounts
from aiperf_testing.journals import CLOCK, Recording, event, plan_for
from aiperf_testing.summaries import sample_summary
from aiperf_testing.verdicts import sample_evidence
from aiperf_verdict_advice import Advice
from aiperf_verdict_advice.contract import AdviceContract
from msgspec.structs import replace

PHASE = PhasePlan("profiling", "profiling", 0, "burst", concurrency=2, entries=50)


def result(tag: str, value: float, count: int | None = None) -> dict[str, Result]:
    stats = {"avg": value} if count is None else dict.fromkeys(STATISTICS, value) | {"count": count}
    return {tag: Result(tag, tag, "ms", stats)}


@pytest.fixture
def plan(tmp_path: Any) -> Plan:
    return plan_for(tmp_path, phases=(PHASE,))


ADVICE = PluginRef("verdicts", "advice", "aiperf_verdict_advice:Advice", "aiperf-verdict-advice", "0.1.0")
MS = 10**6
COUNTED = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}


def said(plan: Plan, census: PhaseCounts, results: dict[str, Result] | None = None, *, single: bool = True) -> str:
    """The sentences on what the kernel makes of these facts."""
    outcome = arrivals(PHASE, census, None)
    facts = measurement(plan, census, outcome, None, None, read_loops([], {0}), lateness=Buckets(), clock_steps=0)
    summary = replace(sample_summary(), results=results or {}, measurement=facts)
    seen = evidence(
        summary, plan, PHASE, {PHASE.index: census}, read_loops([], {0}), [], intervals=Buckets(), single_turn=single
    )
    found = list(Advice().judge(seen))
    assert {finding.level for finding in found} <= {"advice"}
    return "\n".join(finding.sentence for finding in found)


class TestItKeepsTheContract(AdviceContract):
    pass


def test_requests_that_the_run_before_left_are_told(plan: Plan) -> None:
    told = [
        [each.kind for each in Advice().judge(replace(sample_evidence(), plan=plan.replacing(carried_over=left)))]
        for left in (0, 3)
    ]
    assert "carried_over" not in told[0] and "carried_over" in told[1]


@pytest.mark.parametrize(("url", "verify", "noted"), [("https://h", False, 1), ("https://h", True, 0), ("http://h", False, 0)])
def test_certificates_that_were_not_checked_are_noted(plan: Plan, url: str, verify: bool, noted: int) -> None:
    to = plan.replacing(urls=("http://other", url), tls=TlsPlan(verify))
    found = list(Advice().judge(replace(sample_evidence(), plan=to)))
    assert [(finding.kind, finding.level.value) for finding in found] == [("unchecked_certificates", "note")] * noted


def test_an_ordinary_run_needs_no_advice(plan: Plan) -> None:
    fine = PhaseCounts(opening=[(0.0, 12e6), (1.0, 15e6)], prompt_tokens=1000, cached_tokens=50)
    assert said(plan, fine, result("time_to_first_token", 10.0, 100) | result("osl_mismatch_count", 0.0)) == ""


def test_reasoning_that_is_counted_and_not_shown_is_told(plan: Plan) -> None:
    assert "reasoning tokens with 7 answers" in said(plan, PhaseCounts(hidden_reasoning=7))


def test_token_counts_and_lengths_that_disagree_are_told(plan: Plan, tmp_path: Any) -> None:
    results = result("usage_discrepancy_count", 5.0) | result("osl_mismatch_count", 1200.0)
    text = said(plan, PhaseCounts(), results)
    assert "with 5 answers the server's token counts" in text
    assert "1,200 answers don't have the length that was asked for; where" in text
    kept = plan_for(tmp_path, phases=(PHASE,), extra={"ignore_eos": True})
    assert said(kept, PhaseCounts(), result("osl_mismatch_count", 3.0)) == "3 answers don't have the length that was asked for"


def test_one_answer_is_one(plan: Plan, tmp_path: Any) -> None:
    assert "with 1 answer the server's" in said(plan, PhaseCounts(), result("usage_discrepancy_count", 1.0))
    assert "reasoning tokens with 1 answer without" in said(plan, PhaseCounts(hidden_reasoning=1))
    kept = plan_for(tmp_path, phases=(PHASE,), extra={"min_tokens": 9})
    assert said(kept, PhaseCounts(), result("osl_mismatch_count", 1.0)) == "1 answer doesn't have the length that was asked for"


def recording(directory: Any, **changes: Any) -> Recording:
    return Recording(directory, verdicts=(ADVICE,), **changes)


def warnings(made: Recording) -> list[str]:
    return list(report(made.directory)[0].warnings)


@pytest.mark.parametrize(
    ("usages", "sentences"),
    [
        ((COUNTED, COUNTED), []),
        (
            (COUNTED, None),
            ["the server sent no token counts with 1 of 2 answers: those have no token metrics;"
             " drop --use-server-token-count to count them here"],
        ),
        (
            (COUNTED, COUNTED | {"completion_tokens_details": {"reasoning_tokens": 5}}),
            ["1 answers say more reasoning tokens than output tokens; their output is taken to be 0"],
        ),
    ],
)  # fmt: skip
def test_server_counts_that_are_missing_or_impossible_are_warned_about(
    tmp_path: Any, usages: tuple[Any, ...], sentences: list[str]
) -> None:
    for server, expected in ((True, sentences), (False, [])):
        made = recording(tmp_path / str(server), use_server_token_count=server)
        for request, usage in enumerate(usages):
            made.answered(request, MS, (2 * MS, event(reasoning="hm")), (3 * MS, event(text="a", usage=usage)))
        made.flush(9 * MS)
        assert warnings(made) == expected


@pytest.mark.parametrize("server", [True, False])
def test_zero_tokens_of_an_answer_with_content_are_told_where_they_count(tmp_path: Any, server: bool) -> None:
    made = recording(tmp_path, use_server_token_count=server)
    none = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    made.answered(0, 1, (10, event(text="two words", usage=none)))
    made.answered(1, 1, (10, event(text="two words", usage={"prompt_tokens": 3, "completion_tokens": 2})))
    made.flush(60)
    start = "the server counts 0 tokens for 1 of 2 answers that have content: those have no token metrics"
    assert [text.startswith(start) for text in warnings(made) if "counts 0" in text] == [True] * server


def test_unreadable_events_are_counted_and_bound_the_first_token(tmp_path: Any) -> None:
    made = recording(tmp_path)
    for request in range(4):
        early = [(4 * MS, b"data: {\"text\": NaN}\n\n")] if request == 0 else []
        late = [(7 * MS, b'data: {"text": "\\ud800"}\n\n')] if request < 2 else []
        made.answered(request, 0, *early, (6 * MS, event(text="a")), *late, (8 * MS, event(text="b")))
    made.flush(9 * MS)
    (sentence,) = [text for text in warnings(made) if "unreadable" in text]
    assert sentence == (
        "2 of 4 answers have unreadable events, 3 in all: their content is not counted; in 1 of them they came before all"
        " content: the mean time to first token may be up to 0.5 ms shorter than stated"
    )


def spread(tag: str, **stats: float) -> dict[str, Result]:
    values = dict.fromkeys(STATISTICS, stats.get("p50", 0.0)) | {"count": 24} | stats
    return {tag: Result(tag, tag, "tokens", values)}


def notes_of(**changes: Any) -> dict[str, str]:
    results = changes.pop("results", {})
    seen = sample_evidence(*results.values(), **changes) if results else sample_evidence(**changes)
    return {finding.kind: f"{finding.level}: {finding.sentence}" for finding in Advice().judge(seen)}


COUNTS = result("usage_discrepancy_count", 24.0)


@pytest.mark.parametrize("tag", ["num_images", "audio_duration"])
def test_tokens_of_media_are_no_other_tokenizer(tag: str) -> None:
    notes = notes_of(results=COUNTS | result(tag, 1.0))
    assert notes.keys() & {"media_tokens", "token_counts_differ", "template_tokens"} == {"media_tokens"}
    assert "with 24 answers" in notes["media_tokens"]
    assert "a server counts pictures and sound" in notes["media_tokens"]


@pytest.mark.parametrize(
    ("extra", "answers_pct", "kind"),
    [
        ({"p5": 13.0, "p50": 13.0, "p95": 13.0}, 0.0, "template_tokens"),
        ({"p5": 12.0, "p50": 13.0, "p95": 14.0}, 3.0, "template_tokens"),
        ({"p5": 4.0, "p50": 13.0, "p95": 21.0}, 0.0, "token_counts_differ"),  # another tokenizer: by length
        ({"p5": -9.0, "p50": -9.0, "p95": -9.0}, 0.0, "token_counts_differ"),
    ],
)
def test_a_chat_template_is_told_from_another_tokenizer(extra: dict[str, float], answers_pct: float, kind: str) -> None:
    results = COUNTS | spread("usage_prompt_tokens_extra", **extra)
    results |= spread("usage_completion_tokens_diff_pct", p50=answers_pct, p95=answers_pct)
    found = notes_of(results=results)
    assert list(found) == [kind]
    if kind == "template_tokens":
        assert found[kind].startswith("note: the server counts 13 prompt tokens more than were made")


@pytest.mark.parametrize(("extra", "kinds"), [(13.0, ["template_tokens", "answer_tokens"]), (0.0, ["answer_tokens"])])
def test_prompts_alone_show_the_tokenizer(extra: float, kinds: list[str]) -> None:
    results = COUNTS | spread("usage_prompt_tokens_extra", p5=extra, p50=extra, p95=extra)
    results |= spread("usage_completion_tokens_diff_pct", p50=20.0, p95=40.0)
    found = notes_of(results=results)
    assert list(found) == kinds
    assert "--tokenizer" not in "".join(found.values())


def test_prompts_of_endpoints_without_answers_are_told_as_those_of_chats() -> None:
    prompts, answers = result("usage_prompt_tokens_diff_pct", 394.0), AnswerCounts(valid=24, far_prompts=24)
    far = prompts | spread("usage_prompt_tokens", avg=1234.4) | spread("input_sequence_length", avg=250.0)
    found = notes_of(results=far | spread("usage_prompt_tokens_extra", p5=700.0, p50=984.0, p95=1200.0), answers=answers)
    assert found["token_counts_differ"].startswith(
        "advice: with 24 answers the server's token counts are far from those counted here, 1,234 for 250 a request on average"
    )
    assert "not characters" in found["token_counts_differ"]
    framed = notes_of(results=prompts | spread("usage_prompt_tokens_extra", p5=2.0, p50=2.0, p95=2.0), answers=answers)
    assert list(framed) == ["template_tokens"]
    assert "tokens of its own around each text" in framed["template_tokens"]


def test_lengths_are_judged_by_the_servers_count(plan: Plan) -> None:
    ours = result("osl_mismatch_count", 24.0)
    assert said(plan, PhaseCounts(length_shift=-24), ours) == ""
    assert "2 answers don't have" in said(plan, PhaseCounts(length_shift=-22), ours)
    assert "25 answers don't have" in said(plan, PhaseCounts(length_shift=1), ours)
    assert said(plan, PhaseCounts(length_shift=9)) == "", "lengths of several answers to a request are not compared"


def test_a_chat_template_that_is_counted_is_no_cause(plan: Plan) -> None:
    results = COUNTS | spread("usage_prompt_tokens_extra", p5=13.0, p50=13.0, p95=13.0)
    results |= spread("usage_completion_tokens_diff_pct", p50=0.0, p95=0.0)
    found = notes_of(results=results, single_turn=False, plan=plan.replacing(chat_template=True))
    assert list(found) == ["token_counts_differ"]
    assert "chat template" not in found["token_counts_differ"]


def test_turns_may_be_the_cause_of_other_counts() -> None:
    assert "chat template" in notes_of(results=COUNTS, single_turn=False)["token_counts_differ"]
    assert "chat template" not in notes_of(results=COUNTS)["token_counts_differ"]


@pytest.mark.parametrize(("theirs", "there"), [(10.1, False), (10.3, True), (9.7, True)])
def test_latency_by_the_servers_count_is_told_where_it_differs(theirs: float, *, there: bool) -> None:
    results = spread("inter_token_latency", avg=10.0) | spread("usage_inter_token_latency", avg=theirs)
    found = notes_of(results=results)
    assert ("server_inter_token_latency" in found) is there
    if theirs > 10.2:
        assert found["server_inter_token_latency"] == (
            "note: inter-token latency is 10.3 ms by the server's token counts, and 10 ms by those made here (+3.0 %)"
        )


@pytest.mark.parametrize(
    ("asked", "answered", "there"),
    [
        ("meta-llama/Llama-3-8B", "llama-3-8b", False), ("gpt-4o", "gpt-4o-2024-08-06", False), ("m", "m", False),
        ("/models/qwen/", "qwen", False), ("llama", "qwen", True), ("org/a", "org/b", True),
    ],
)  # fmt: skip
def test_another_model_than_the_one_asked_for_is_told(asked: str, answered: str, *, there: bool) -> None:
    found = notes_of(models=((asked, answered),))
    assert ("other_model" in found) is there
    if there:
        assert found["other_model"].startswith(f"advice: the server answers as the model {answered!r}, and {asked!r} was")


def test_the_model_of_an_answer_is_kept_for_reports(tmp_path: Any) -> None:
    made = Recording(tmp_path, verdicts=(ADVICE,))
    for number in range(6):
        made.sent(number, MS * (1 + number))
        body = event(text='no "model":"fake" here', finish="stop", usage=COUNTED)
        made.read(number, MS * (10 + number), body.replace(b"{", b'{"model":"other/one",', 1) + b"data: [DONE]\n\n")
        made.done(number, MS * (11 + number))
    made.flush(60 * MS)
    made.ended()
    sentence = f"the server answers as the model 'other/one', and {made.plan.target.models[0]!r} was asked for"
    assert sentence in "".join(report(made.directory)[0].warnings)
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()  # and drops the segments
    assert not list(made.journal.glob("*.seg"))
    assert sentence in "".join(report(made.directory)[0].warnings)
