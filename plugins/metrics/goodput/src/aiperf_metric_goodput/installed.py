"""Whether objectives name metrics that installed packages have, before a run is planned."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from aiperf_metric_goodput.slos import ABBREVIATIONS, Slo

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EXAMPLES = ("time_to_first_token", "inter_token_latency", "request_latency", "output_token_throughput_per_user")
_FAMILY = "goodput"


def check(slos: Iterable[Slo]) -> None:
    """Refuse an objective on a metric that no installed package has.

    Names of entry points are the usual tags, so that nothing is imported for a known one.  Where only a run can tell (a family
    makes its tags, a package can't be imported), nothing is refused here.

    Raises:
        ValueError: No metric has the tag; the message is for the user.
    """
    from importlib.metadata import entry_points  # 40 ms, only where there are objectives

    points = [point for point in entry_points(group="aiperf.metrics") if point.name != _FAMILY]
    named = {point.name.replace("-", "_").lower() for point in points}
    unknown = [slo.tag for slo in slos if slo.tag not in named]
    tags = _tags(points) if unknown else set()
    for tag in unknown:
        if tags is not None and tag not in tags:
            raise ValueError(f"there is no metric {tag!r}; {_instead(tag, tags)}")


def _tags(points: Iterable[EntryPoint]) -> set[str] | None:
    """The tags of the metrics; None where one doesn't tell."""
    try:
        return {point.load().tag for point in points}
    except Exception:  # noqa: BLE001  # code of other packages, whose failure the run reports
        return None


def _instead(tag: str, tags: Collection[str]) -> str:
    known = {each: each for each in tags} | {short: each for short, each in ABBREVIATIONS.items() if each in tags}
    close = get_close_matches(tag, known, 1, 0.6)
    return f"did you mean {known[close[0]]}?" if close else examples(tags)


def examples(tags: Collection[str]) -> str:
    """Metrics that people bound, of those with these *tags*."""
    known = [tag for tag in EXAMPLES if tag in tags]
    return f"for example: {', '.join(known)}" if known else "no metric of requests is installed"
