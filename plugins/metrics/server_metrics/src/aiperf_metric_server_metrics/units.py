"""The unit of a family, from what it says of itself and from its name."""

from __future__ import annotations

import re

_RATIO = re.compile(r"\b1(?:\.0)? means 100 ?(?:percent|%)|\b0(?:\.0)?\s*(?:-|–|to|\.\.)\s*1(?:\.0)?\b(?![\d.])", re.IGNORECASE)
_PERCENT = re.compile(r"\b0(?:\.0)?\s*%?\s*(?:-|–|to|\.\.)\s*100(?:\.0)?\b", re.IGNORECASE)
_IN_WORDS = {
    "seconds": "s", "second": "s", "sec": "s", "s": "s", "milliseconds": "ms", "ms": "ms", "microseconds": "us", "us": "us",
    "nanoseconds": "ns", "ns": "ns", "bytes": "B", "kb": "KB", "mb": "MB", "gb": "GB", "tokens": "tokens", "%": "%",
    "percent": "%", "celsius": "°C", "watts": "W", "joules": "J",
}  # fmt: skip
_PHRASE = re.compile(r"\(in (\S+?)\)|\bin (seconds|milliseconds|microseconds|nanoseconds|bytes)\b", re.IGNORECASE)
_SUFFIXES = {
    "_seconds": "s", "_milliseconds": "ms", "_ms": "ms", "_microseconds": "us", "_us": "us", "_nanoseconds": "ns", "_ns": "ns",
    "_bytes": "B", "_kilobytes": "KB", "_megabytes": "MB", "_gigabytes": "GB", "_tokens": "tokens", "_requests": "requests",
    "_reqs": "requests", "request_success": "requests", "_errors": "errors", "_error_count": "errors", "_total": "count",
    "_count": "count", "_blocks": "blocks", "_block_count": "blocks", "_gb_s": "GB/s", "_ratio": "ratio", "_percent": "%",
    "_perc": "%", "_celsius": "°C", "_joules": "J", "_watts": "W",
}  # fmt: skip
_LONGEST_FIRST = sorted(_SUFFIXES, key=len, reverse=True)
_OPENMETRICS = {
    "seconds": "s", "milliseconds": "ms", "bytes": "B", "ratio": "ratio", "percent": "%", "celsius": "°C", "joules": "J",
    "watts": "W",
}  # fmt: skip


def unit_of(name: str, help: str, declared: str = "") -> str:
    """The unit; "" where nothing tells it.  declared: of OpenMetrics."""
    if declared:
        return _OPENMETRICS.get(declared, declared)
    if _RATIO.search(help):
        return "ratio"
    if _PERCENT.search(help):
        return "%"
    phrase = _PHRASE.search(help)
    if phrase is not None and (unit := _IN_WORDS.get((phrase[1] or phrase[2]).lower())):
        return unit
    for whole in (name.removesuffix("_total"), name):  # the unit before "_total" says more than it does
        for suffix in _LONGEST_FIRST:
            if whole.endswith(suffix):
                return _SUFFIXES[suffix]
    return "requests" if "num_requests_" in name else ""
