"""Which requests were good, by the objectives (SLOs) that ``--goodput`` gives, and how many of them there were in a second.

An objective of single requests bounds a metric's value; one of the run bounds a percentile.  Each objective has metrics of
its own, so the package is a family: it has as many as there are objectives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from aiperf import ConfigError, Declared, Metric, MetricFamily, Needs, Over

from aiperf_metric_goodput.slos import Slo, read_slos

_LACKING = {
    Needs.STREAMING: "--streaming",
    Needs.TOKENS_OUT: "an endpoint type that produces tokens",
    Needs.TOKENS_IN: "an endpoint type whose input is tokenized",
    Needs.CLIENT_TOKENS: "tokens counted here, without --use-server-token-count",
    Needs.PACED: "a rate or a schedule",
    Needs.EXPERIMENTAL: "AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS",
}
_EXAMPLES = ("time_to_first_token", "inter_token_latency", "request_latency", "output_token_throughput_per_user")


class GoodputMetrics(MetricFamily):
    """Requests that meet the objectives of --goodput, their rate and share, and what each objective costs alone."""

    def __init__(self, options: Any) -> None:
        try:
            self.slos = read_slos(options.goodput)
        except ValueError as error:  # of a run that another version configured
            raise ConfigError(f"--goodput: {error}") from error

    def metrics(self, others: Mapping[str, Declared], unfit: Mapping[str, Needs]) -> Iterable[Declared]:
        bounds = [(slo, _bound(slo, others, unfit)) for slo in self.slos]
        if not bounds:
            return []
        from aiperf_metric_goodput.metrics import metrics_of  # numpy: not in the parent, which only reads the options

        return metrics_of(bounds)


def _bound(slo: Slo, others: Mapping[str, Declared], unfit: Mapping[str, Needs]) -> Metric:
    """The metric that the objective bounds.

    Raises:
        ConfigError: There is none of that name that fits.
    """
    metric = others.get(slo.tag)
    if slo.tag in unfit:
        lacking = " and ".join(_LACKING[need] for need in unfit[slo.tag])
        raise ConfigError(f"--goodput: {slo.tag} doesn't apply to this run: it needs {lacking}", _examples(others))
    if metric is None or metric.hidden:
        near = _near(slo.tag, others)
        raise ConfigError(f"--goodput: there is no metric {slo.tag!r}", f"did you mean {near}?" if near else _examples(others))
    if not isinstance(metric, Metric):
        raise ConfigError(f"--goodput: {slo.tag} is a number of the whole run, not of a request", _examples(others))
    if metric.over is Over.FAILED:
        raise ConfigError(f"--goodput: {slo.tag} is of failed requests, and those are not good", _examples(others))
    if slo.above is not None and slo.above != metric.larger_is_better:
        better, sign = ("larger", ">") if metric.larger_is_better else ("smaller", "<")
        raise ConfigError(
            f"--goodput: of {slo.tag} {better} is better", f"write {slo.tag}:{slo.percentile}{sign}{slo.bound:g}"
        )
    return metric


def _near(word: str, others: Mapping[str, Declared]) -> str | None:
    """The tag that was meant, perhaps by the metric's abbreviation."""
    named = {tag: tag for tag, metric in others.items() if isinstance(metric, Metric) and not metric.hidden}
    named |= {others[tag].short.lower(): tag for tag in [*named] if others[tag].short}
    close = get_close_matches(word, named, 1, 0.6)
    return named[close[0]] if close else None


def _examples(others: Mapping[str, Declared]) -> str:
    known: Sequence[str] = [tag for tag in _EXAMPLES if tag in others]
    return f"for example: {', '.join(known)}" if known else "no metric of requests is installed"
