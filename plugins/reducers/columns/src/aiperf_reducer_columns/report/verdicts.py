"""The verdict on a run: what the plugins of the category find in its evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from aiperf.parts.loading import isolated, left_out, load
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.errors import PluginError
from aiperf.sdk.model import names
from aiperf.sdk.plan import Plan
from aiperf.sdk.summary import Measurement, Summary
from aiperf.sdk.verdict import Evidence, Finding, FindingLevel
from msgspec.structs import replace

_NOTHING = "no request succeeded, and there is nothing to trust"


def findings(plan: Plan, evidence: Evidence, report: Callable[[str], object]) -> list[Finding]:
    """The findings of each verdict of the plan.  A sentence on each verdict that fails goes to *report*."""
    found: list[Finding] = []
    absent: list[tuple[PluginRef, PluginError]] = []
    for ref in plan.plugins.verdicts:
        try:
            verdict = load(ref)
        except PluginError as error:
            absent.append((ref, error))
            continue
        with isolated(ref, report):
            judged = verdict(plan.plugins.options_of(ref)).judge(evidence)
            for finding in (judged,) if isinstance(judged, Finding) else () if judged is None else judged:
                found.append(replace(checked(finding), plugin=ref.name, package=ref.package))  # noqa: PERF401  # some may fail
    for sentence in left_out(absent):
        report(sentence)
    return found


def checked(finding: object) -> Finding:
    """The finding, with the types that it declares; a number of numpy becomes a float.

    Raises:
        TypeError, ValueError: It has others.
    """
    if not isinstance(finding, Finding):
        raise TypeError(f"judge gave {type(finding).__name__}, not Finding")
    return msgspec.convert(msgspec.to_builtins(finding, enc_hook=float), Finding)


def sentences(found: Sequence[Finding], level: FindingLevel) -> tuple[str, ...]:
    """The sentences of the findings of this level."""
    return tuple(finding.sentence for finding in found if finding.level is level)


def concluded(summary: Summary, found: Sequence[Finding], missing: str | None) -> Measurement:
    """The summary's measurement with its verdict.

    *missing*: why the findings are not those of all verdicts; None where they are.
    """
    reasons, notes = sentences(found, FindingLevel.SUSPECT), sentences(found, FindingLevel.NOTE)
    verdict = "suspect" if reasons else "none" if missing is not None else "trustworthy" if summary.complete else "partial"
    if not summary.valid:  # whatever else is suspect: of nothing there is nothing to say
        verdict, missing = "none", _NOTHING
    if verdict == "none":
        notes = (*notes, f"no verdict was made: {missing}")
    scopes = {finding.scope for finding in found if finding.level is FindingLevel.SUSPECT}
    scope = names(sorted(filter(None, scopes))) if scopes and None not in scopes else None
    return replace(summary.measurement, verdict=verdict, reasons=reasons, notes=notes, scope=scope, findings=tuple(found))
