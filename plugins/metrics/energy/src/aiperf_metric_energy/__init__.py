"""Energy and cost of a run, from the series of its GPUs and its tokens and requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aiperf import MetricDeclaration, MetricFamily, Needs

from aiperf_metric_energy.options import EnergyOptions


class EnergyMetrics(MetricFamily):
    """Joules, watts and money by token, request and user.  A metric without its GPUs, or its other metrics, is left out."""

    def __init__(self, options: EnergyOptions) -> None:
        self._options = options

    def metrics(self, others: Mapping[str, MetricDeclaration], unfit: Mapping[str, Needs]) -> Iterable[MetricDeclaration]:
        from aiperf_metric_energy.rows import rows

        found = rows(self._options.gpu_cost_per_hour, self._options.gpu_count)
        return [metric for metric in found if set(metric.needs) <= others.keys() - unfit.keys()]


__all__ = ["EnergyMetrics", "EnergyOptions"]
