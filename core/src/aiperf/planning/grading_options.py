"""The kernel's options of slow graders."""

from __future__ import annotations

from aiperf.sdk.options import Finite, Options, option


class GradingOptions(Options):
    """How answers are graded after the load."""

    grading_processes: int = option("--grading-processes", default=1, ge=1, le=256, group="Accuracy", metavar="INT",
        place="accuracy.grading_processes", help="Answers that a slow grader grades at a time, each in a process of its own.")
    grading_timeout_s: Finite = option("--grading-timeout", default=600.0, gt=0, group="Accuracy", metavar="SECONDS",
        place="accuracy.grading_timeout",
        help="Longest time for a slow grader to grade all answers after the load; the rest is left to aiperf report.")
