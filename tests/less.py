"""A configuration file with less of everything, so that its run takes a second or two."""

from __future__ import annotations

import re

LESS = (
    (r"(?<=oncurrency: )\d+", "3"),
    (r"\[1, 2, 4, 8, .*\]", "[1, 2]"),
    (r"(?<=requests: )\d+", "6"),
    (r"(?<=sessions: )\d+", "3"),
    (r"(?<=entries: )\d+", "8"),
    (r"(?<=duration: )\d+\w*", "1"),
    (r"(?<=duration: )\$\{DURATION:5m\}", "1"),
    (r"(?<=rate: )\d+$", "40"),
    (r"(?<=Ramp: )\w+$", "100ms"),
    (r"(?<=cooldownSeconds: )\d+", "0"),
    (r"(?<=numRuns: )\d+", "2"),
    (r"(?<=users: )\d+$", "4"),
    (r"(?<=gracePeriod: )\w+", "5"),
    (r"\d{4,5}(?=,? (stddev|osl|median))|(?<=isl: )\d{4,}", "600"),
    (r"turnDelay: .*", "turnDelay: {mean: 20}"),
    (r"(?<=seconds: )120", "8"),
    (r"osl: \{mean: \d+, stddev: \d+\}", "osl: {mean: 6, stddev: 1}"),
    (r"isl: 32000", "isl: 900"),
)


def less(text: str) -> str:
    """The text of a file with smaller numbers."""
    for pattern, fewer in LESS:
        text = re.sub(pattern, fewer, text, flags=re.MULTILINE)
    return text
