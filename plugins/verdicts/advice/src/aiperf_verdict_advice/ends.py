"""Answers that their server ended for a reason of its own, and counts of tokens that nobody can read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel

_STOPPED = re.compile(
    r"(?i)filter|refus|error|abort|safety|block|prohibited|recitation|moderat|malformed|cancel|guardrail|fail"
)
"""What stands in the reasons of servers for an answer that a filter, the model or a fault cut off."""


def stopped_answers(evidence: Evidence) -> Iterator[Finding]:
    """One finding on answers that ended with a filter, a refusal, an error or an abort."""
    reasons = evidence.summary.finish_reasons
    stopped = {reason: count for reason, count in reasons.items() if _STOPPED.search(reason)}
    if not stopped:
        return
    count, told = sum(stopped.values()), sum(reasons.values())
    kinds = ", ".join(f"{each:,} {reason}" for reason, each in stopped.items())
    sentence = (
        f"{count:,} of {told:,} answers ended with a filter, a refusal, an error or an abort ({kinds}): they are shorter than"
        " whole ones, and their times are those of less work; finish_reason in the records tells which they are"
    )
    yield Finding("stopped_answers", FindingLevel.ADVICE, sentence, numbers={"stopped": count, "answers": told})


def unreadable_usage(evidence: Evidence) -> Iterator[Finding]:
    """One finding on answers whose token counts, by the server, are none."""
    counts = evidence.all_answers
    if counts.unread_usage:
        sentence = (
            f"the server's token counts of {counts.unread_usage:,} of {counts.valid:,} answers can't be read: counts are whole"
            " numbers from 0 on, of all answers to a request or of each; what can't be read is not used"
        )
        numbers: dict[str, int | float] = {"unreadable": counts.unread_usage, "answers": counts.valid}
        yield Finding("unreadable_usage", FindingLevel.ADVICE, sentence, numbers=numbers)
