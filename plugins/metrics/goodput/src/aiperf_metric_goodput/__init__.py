"""Requests that meet the objectives (SLOs) of ``--goodput``, and their number per second.

An objective of requests bounds a metric's value; an objective of the run bounds a percentile.  Each objective has its own
metrics, so the package is a metric family.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from aiperf import ConfigError, Metric, MetricDeclaration, MetricFamily, Needs, Over, UsageError

from aiperf_metric_goodput.installed import examples
from aiperf_metric_goodput.slos import ABBREVIATIONS, Slo, read_slos

_REQUIREMENTS = {
    Needs.STREAMING: "--streaming",
    Needs.TOKENS_OUT: "an endpoint type that produces tokens",
    Needs.TOKENS_IN: "an endpoint type whose input is tokenized",
    Needs.CLIENT_TOKENS: "token counts of the client, without --use-server-token-count",
    Needs.PACED: "a rate or a schedule",
    Needs.GRADED: "--accuracy-grader",
    Needs.EXPERIMENTAL: "AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS",
}


class GoodputMetrics(MetricFamily):
    """Requests that meet the objectives of --goodput, their rate and share, and the cost of each objective."""

    def __init__(self, options: Any) -> None:
        try:
            self.slos = read_slos(options.goodput)
        except ValueError as error:  # the options of a run of another version
            raise UsageError(f"--goodput: {error}") from error

    def metrics(self, others: Mapping[str, MetricDeclaration], unfit: Mapping[str, Needs]) -> Iterable[MetricDeclaration]:
        bounds = [(slo, _bound(slo, others, unfit)) for slo in self.slos]
        if not bounds:
            return []
        from aiperf_metric_goodput.metrics import metrics_of  # numpy: not in the parent, which only reads the options

        return metrics_of(bounds)


def _bound(slo: Slo, others: Mapping[str, MetricDeclaration], unfit: Mapping[str, Needs]) -> Metric:
    """The metric that the objective bounds.

    Raises:
        UsageError: No metric of requests has that name.
        ConfigError: The run lacks what the metric needs.
    """
    metric = others.get(slo.tag)
    if slo.tag in unfit:
        missing = " and ".join(_REQUIREMENTS[need] for need in unfit[slo.tag])
        step = f"add {missing}, or drop the objective" if missing.startswith("--") else examples(others)
        raise ConfigError(f"--goodput: {slo.tag} doesn't apply to this run: it needs {missing}", step)
    if metric is None or metric.hidden:
        near = _near(slo.tag, others, unfit)
        raise UsageError(f"--goodput: there is no metric {slo.tag!r}", f"did you mean {near}?" if near else examples(others))
    if not isinstance(metric, Metric):
        raise UsageError(f"--goodput: {slo.tag} is a number of the whole run, not of requests", examples(others))
    if metric.over is Over.FAILED:
        raise UsageError(f"--goodput: {slo.tag} covers only failed requests, which are never good", examples(others))
    if slo.above is not None and slo.above != metric.larger_is_better:
        better, sign = ("larger", ">") if metric.larger_is_better else ("smaller", "<")
        raise UsageError(
            f"--goodput: {better} values of {slo.tag} are better", f"write {slo.tag}:{slo.percentile}{sign}{slo.bound:g}"
        )
    return metric


def _near(word: str, others: Mapping[str, MetricDeclaration], unfit: Iterable[str]) -> str | None:
    """The tag closest to *word*, which may also be a metric's abbreviation; also of a metric that is *unfit*."""
    named = {tag: tag for tag, metric in others.items() if isinstance(metric, Metric) and not metric.hidden}
    named |= {others[tag].short.lower(): tag for tag in [*named] if others[tag].short}
    named |= {tag: tag for tag in unfit}
    named |= {short: tag for short, tag in ABBREVIATIONS.items() if tag in named}
    close = get_close_matches(word, named, 1, 0.6)
    return named[close[0]] if close else None
