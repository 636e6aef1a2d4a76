"""Advice on answers that were cut, or that the grader could not read."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf import Evidence, Finding, FindingLevel, Verdict
from aiperf.sdk.verdict import LIKELY

from aiperf_exporter_accuracy.tasks import task_rows

MOST_CUT = 0.05
"""A greater share of graded answers that were cut at their length is advice."""


class AccuracyVerdict(Verdict[None]):
    """Says why accuracy may be lower than the model is good."""

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        rows = task_rows(evidence.summary)
        if not rows or not rows[-1].total:
            return
        overall, cut = rows[-1], evidence.summary.results["accuracy.answers"].counts.get("cut", 0)
        if cut > MOST_CUT * overall.total:
            sentence = (
                f"{cut:,} of {overall.total:,} graded answers ({cut / overall.total:.1%}) were cut at their length: "
                "raise the budget with --osl"
            )
            yield Finding("answers_cut", FindingLevel.ADVICE, sentence, numbers={"cut": cut, "graded": overall.total})
        if overall.unparsed == overall.total:
            sentence = (
                f"the grader could extract nothing from any of {overall.total:,} answers: it may not fit the benchmark, or the "
                "answers are cut or empty; read accuracy_export.jsonl"
            )
            yield Finding("nothing_parsed", FindingLevel.ADVICE, sentence, LIKELY, {"unparsed": overall.unparsed})


__all__ = ["MOST_CUT", "AccuracyVerdict"]
