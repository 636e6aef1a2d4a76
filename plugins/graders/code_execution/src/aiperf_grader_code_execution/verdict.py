"""A warning in the report of a run whose programs were not cut off."""

from __future__ import annotations

from aiperf.sdk.verdict import Evidence, Finding, FindingLevel, Verdict


class UnisolatedCode(Verdict):
    """Tells that programs from answers ran as the user."""

    def judge(self, evidence: Evidence) -> Finding | None:
        plugins = evidence.plan.plugins
        if plugins.grader is None or plugins.grader.name != "code_execution":
            return None
        if plugins.options_of(plugins.grader).allowed != "unisolated":
            return None
        return Finding(
            "unisolated_code", FindingLevel.ADVICE,
            "programs from answers ran without a network namespace (--accuracy-allow-code-execution unisolated): they could"
            " reach what this user can; 'isolated' cuts them off",
        )  # fmt: skip


__all__ = ["UnisolatedCode"]
