"""What may mislead in numbers that were measured well: wrong token counts, hidden reasoning, other models and lengths."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel, Verdict
from aiperf.sdk.model import LENGTH_FIELDS
from aiperf.sdk.verdict import CERTAIN, LIKELY

from aiperf_verdict_advice.ends import stopped_answers, unreadable_usage

MEDIA = {"num_images", "audio_duration"}
"""Metrics of requests with pictures or sound."""
TEMPLATE_SPREAD = 2.0
"""Tokens: a chat template adds the same number to each prompt, and where the two meet they may merge."""
COUNT_PCT, LATENCY_SHARE = 10.0, 0.02
"""A tokenizer is another one where answers differ by more; a latency is told from a difference of this share on."""


class Advice(Verdict[None]):
    """Faults of the server's counts, unreadable events, hidden reasoning, lengths, models."""

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        if evidence.plan.target.use_server_token_count:
            yield from _server_counts(evidence)
        yield from unreadable_usage(evidence)
        yield from _unreadable_events(evidence)
        yield from stopped_answers(evidence)
        yield from _hidden_reasoning(evidence)
        yield from _mismatches(evidence)
        yield from _server_latency(evidence)
        yield from _other_models(evidence)
        yield from _unchecked_certificates(evidence)
        yield from _carried_over(evidence)


def _unchecked_certificates(evidence: Evidence) -> Iterator[Finding]:
    target = evidence.plan.target
    if not target.tls.verify and any(url.startswith("https://") for url in target.urls):
        sentence = "certificates were not checked (--insecure, or AIPERF_HTTP_SSL_VERIFY): any server may have answered"
        yield Finding("unchecked_certificates", FindingLevel.NOTE, sentence)


def _carried_over(evidence: Evidence) -> Iterator[Finding]:
    if left := evidence.plan.run.carried_over:
        sentence = (
            f"{left:,} requests of the run before were aborted, and the server may have worked on them when this run began:"
            " leave a pause with --parameter-sweep-cooldown-seconds or --profile-run-cooldown-seconds"
        )
        yield _advice("carried_over", sentence, {"aborted": left}, LIKELY)


def _advice(kind: str, sentence: str, numbers: dict[str, int | float], confidence: float = CERTAIN) -> Finding:
    return Finding(kind, FindingLevel.ADVICE, sentence, confidence, numbers)


def _server_counts(evidence: Evidence) -> Iterator[Finding]:
    """Faults of the server's token counts, where the run uses them."""
    counts = evidence.all_answers
    end = "those have no token metrics; drop --use-server-token-count to count them here"
    if counts.silent:
        sentence = f"the server sent no token counts with {counts.silent:,} of {counts.valid:,} answers: {end}"
        yield _advice("no_server_counts", sentence, {"silent": counts.silent, "answers": counts.valid})
    if counts.zeroed:
        share = f"{counts.zeroed:,} of {counts.valid:,} answers"
        sentence = f"the server counts 0 tokens for {share} that have content: {end}"
        yield _advice("zero_server_counts", sentence, {"zeroed": counts.zeroed, "answers": counts.valid})
    if counts.clamped:
        sentence = f"{counts.clamped:,} answers say more reasoning tokens than output tokens; their output is taken to be 0"
        yield _advice("impossible_server_counts", sentence, {"clamped": counts.clamped, "answers": counts.valid})


def _unreadable_events(evidence: Evidence) -> Iterator[Finding]:
    counts = evidence.answers
    if counts.unreadable:
        bound = (
            f"; in {counts.unread_first:,} of them they came before all content: the mean time to first token may be up to"
            f" {counts.unread_first_ns / counts.valid / 1e6:.3g} ms shorter than stated"
        )
        yield _advice(
            "unreadable_events",
            f"{counts.unreadable:,} of {counts.valid:,} answers have unreadable events, {counts.unreadable_events:,} in all:"
            f" their content is not counted{bound if counts.unread_first else ''}",
            {"unreadable": counts.unreadable, "answers": counts.valid, "events": counts.unreadable_events},
        )


def _hidden_reasoning(evidence: Evidence) -> Iterator[Finding]:
    if count := evidence.answers.hidden_reasoning:
        yield _advice(
            "hidden_reasoning",
            f"the server counts reasoning tokens with {_answers(count)} without any to be seen: time to first"
            " token is to the first word behind the reasoning; is a reasoning parser switched on?",
            {"answers": count},
        )


def _other_models(evidence: Evidence) -> Iterator[Finding]:
    """Answers of another model than the one asked for.  A name may have a version or a path more, or other capitals."""
    for asked, answered in evidence.models:
        one, other = (name.lower().strip("/").rpartition("/")[2] for name in (asked, answered))
        if not (one.startswith(other) or other.startswith(one)):
            sentence = (
                f"the server answers as the model {answered!r}, and {asked!r} was asked for: are tokenizer and lengths those of"
                " the model that answers?"
            )
            yield _advice("other_model", sentence, {}, LIKELY)


def _server_latency(evidence: Evidence) -> Iterator[Finding]:
    """Inter-token latency by the server's count of tokens, where it is another one."""
    results = evidence.summary.results
    ours, theirs = results.get("inter_token_latency"), results.get("usage_inter_token_latency")
    if ours is None or theirs is None or not ours.stats["avg"]:
        return
    mine, other = ours.stats["avg"], theirs.stats["avg"]
    if abs(other - mine) > LATENCY_SHARE * mine:
        sentence = (
            f"inter-token latency is {other:.4g} ms by the server's token counts, and {mine:.4g} ms by those made here"
            f" ({100 * (other - mine) / mine:+.1f} %)"
        )
        yield Finding("server_inter_token_latency", FindingLevel.NOTE, sentence, CERTAIN, {"server_ms": other, "own_ms": mine})


def _prompt_extra(evidence: Evidence) -> int | None:
    """Tokens that the server counts beyond each prompt, 0 or more, and all alike; None where they are no such number.

    Another tokenizer differs by length.  Answers say nothing of that: their text is tokenized again here.
    """
    extra = evidence.summary.results.get("usage_prompt_tokens_extra")
    if extra is None:
        return None
    low, high = extra.stats["p5"], extra.stats["p95"]
    return round(extra.stats["p50"]) if low >= 0 and high - low <= TEMPLATE_SPREAD else None


def _mismatches(evidence: Evidence) -> Iterator[Finding]:
    counted, generates = _count(evidence, "usage_discrepancy_count"), "usage_discrepancy_count" in evidence.summary.results
    prompts = evidence.answers.far_prompts if "usage_prompt_tokens_diff_pct" in evidence.summary.results else 0
    extra = _prompt_extra(evidence) if counted or prompts else None
    if extra and evidence.plan.data.chat_template:
        extra = None
    if (counted or prompts) and MEDIA & evidence.summary.results.keys():
        sentence = (
            f"with {_answers(counted or prompts)} the server's token counts are far from those counted here, which are of text"
            " alone: a server counts pictures and sound, too, and --use-server-token-count takes its counts"
        )
        yield Finding("media_tokens", FindingLevel.NOTE, sentence, LIKELY, {"answers": counted or prompts})
    elif extra is not None:
        yield from _same_tokenizer(evidence, extra, counted or prompts, generates=generates)
    elif generates and counted:
        turns = "; a chat template, which adds tokens to each message, may be the cause, too (--apply-chat-template)"
        turns = "" if evidence.single_turn or evidence.plan.data.chat_template else turns
        yield _advice(
            "token_counts_differ",
            f"with {_answers(counted)} the server's token counts are far from those counted here: is"
            f" --tokenizer the model's? --use-server-token-count takes the server's{turns}",
            {"answers": counted},
        )
    elif prompts:
        yield _advice(
            "token_counts_differ",
            f"with {_answers(prompts)} the server's token counts are far from those counted here{_ratio(evidence)}: is"
            " --tokenizer the model's, and does the server count tokens, not characters? Where it does,"
            " --use-server-token-count takes its counts",
            {"answers": prompts},
        )
    yield from _other_lengths(evidence)


def _ratio(evidence: Evidence) -> str:
    """Means of both counts of a prompt, where they are known."""
    results = evidence.summary.results
    theirs, ours = results.get("usage_prompt_tokens"), results.get("input_sequence_length")
    if theirs is None or ours is None:
        return ""
    return f", {theirs.stats['avg']:,.0f} for {ours.stats['avg']:,.0f} a request on average"


def _same_tokenizer(evidence: Evidence, extra: int, differing: float, *, generates: bool) -> Iterator[Finding]:
    """What the differences are of, where prompts show that the tokenizer is the model's."""
    if extra:
        what = "its chat template" if generates else "tokens of its own around each text"
        step = "; --apply-chat-template counts them, --use-server-token-count takes the server's" if generates else ""
        sentence = (
            f"the server counts {extra:,} prompt tokens more than were made, alike for every request: {what}; input lengths are"
            f" without them{step}"
        )
        yield Finding("template_tokens", FindingLevel.NOTE, sentence, LIKELY, {"tokens": extra, "answers": differing})
    answers = evidence.summary.results.get("usage_completion_tokens_diff_pct")
    if answers is not None and answers.stats["p95"] > COUNT_PCT:
        sentence = (
            "the server's counts of answers are far from those made here of their text, though prompts show the same tokenizer:"
            " text that is tokenized again may have other tokens, and a server counts some that it does not show;"
            " --use-server-token-count takes the server's"
        )
        yield Finding("answer_tokens", FindingLevel.NOTE, sentence, LIKELY, {"diff_p95_pct": answers.stats["p95"]})


def _other_lengths(evidence: Evidence) -> Iterator[Finding]:
    """Answers of another length than was asked for: by the server's usage where there is any."""
    results = evidence.summary.results
    lengths = _count(evidence, "osl_mismatch_count") + evidence.answers.length_shift if "osl_mismatch_count" in results else 0
    if lengths > 0:
        free = not LENGTH_FIELDS & evidence.plan.target.extra.keys()
        hint = "; where the server knows it, --extra-inputs ignore_eos:true or min_tokens makes it keep to them" if free else ""
        have = "doesn't" if lengths == 1 else "don't"
        sentence = f"{_answers(lengths)} {have} have the length that was asked for{hint}"
        yield _advice("other_lengths", sentence, {"answers": lengths})


def _count(evidence: Evidence, tag: str) -> float:
    result = evidence.summary.results.get(tag)
    return 0.0 if result is None else result.stats["avg"]


def _answers(count: float) -> str:
    return "1 answer" if count == 1 else f"{count:,.0f} answers"
