"""Energy and cost of made-up runs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from aiperf import MetricDeclaration, RunMetric, Unit
from aiperf.sdk.metric import Needs
from aiperf.sdk.summary import SeriesSummary
from aiperf.testing import MetricFamilyContract
from aiperf_gpus.energy import VENDORS
from aiperf_metric_energy import EnergyMetrics
from aiperf_metric_energy.options import EnergyOptions

RESULTS = {
    "total_osl": 600.0, "total_isl": 1500.0, "request_count": 30.0, "request_latency": 0.2e9, "request_throughput": 15.0,
    "output_token_throughput": 300.0, "goodput": 12.0,
}  # fmt: skip
"""A run of 2 s."""


class Declared(MetricDeclaration):
    def __init__(self, tag: str) -> None:
        self.tag, self.title, self.unit = tag, tag, Unit.COUNT


OTHERS: dict[str, MetricDeclaration] = {tag: Declared(tag) for tag in RESULTS}


class Run:
    """Totals of a run with these series."""

    duration_s: float | None = 1.9
    window_s: float | None = 2.0
    valid, failed = 30, 0
    concurrency: int | None = 4

    def __init__(self, series: Iterable[SeriesSummary], results: dict[str, float] | None = None) -> None:
        self._series, self._results = list(series), RESULTS if results is None else results

    def value(self, tag: str) -> float | None:
        return self._results.get(tag)

    def sum(self, tag: str) -> float | None:
        return self.value(tag)

    def count(self, tag: str) -> int:
        return 0

    def statistic(self, tag: str, name: str) -> float | None:
        return None

    def series(self, source: str, name: str, **labels: str) -> list[SeriesSummary]:
        return [each for each in self._series if (each.source, each.name) == (source, name)]


def gpu(number: int, watts: float | None, joules: float | None, vendor: str = "nvidia", **more: str) -> list[SeriesSummary]:
    names = VENDORS[vendor]
    source = "gpu_dcgm" if vendor == "nvidia" else "gpu_amd"
    labels = {"gpu": str(number), "uuid": f"{vendor}-{number}", **more}
    found = []
    if watts is not None:
        found.append(SeriesSummary(source, 0, names[0], "gauge", "W", labels, "", {"avg": watts}))
    if joules is not None:
        stats = {"total": joules * 1e-6, "rate": joules * 1e-6 / 2}
        found.append(SeriesSummary(source, 0, names[1], "counter", "MJ", labels, "", stats))
    return found


def numbers(run: Run, price: float | None = None, count: int | None = None) -> dict[str, float]:
    """The values by tag of all metrics that have one."""
    family = EnergyMetrics(EnergyOptions(gpu_cost_per_hour=price, gpu_count=count))
    found = {}
    for metric in family.metrics(OTHERS, {}):
        assert isinstance(metric, RunMetric)
        if (value := metric.number(run)) is not None:
            found[metric.tag] = value
    return found


WORKED = {
    "nvidia_total_gpu_power": 590.0, "nvidia_average_gpu_power": 600.0, "nvidia_total_gpu_energy": 1200.0,
    "nvidia_output_tokens_per_joule": 0.5, "nvidia_energy_per_output_token": 2000.0,
    "nvidia_energy_per_total_token": 1000 * 1200 / 2100, "nvidia_energy_per_request": 40.0, "nvidia_energy_per_user": 300.0,
    "nvidia_energy_delay_product": 8.0, "nvidia_performance_per_watt": 15 / 600, "nvidia_output_tps_per_watt": 0.5,
    "nvidia_goodput_per_watt": 0.02,
}  # fmt: skip
"""By hand, of the run below."""


def test_every_row_is_its_formula() -> None:
    """Two GPUs draw 1200 J in 2 s."""
    found = numbers(Run([*gpu(0, 380.0, 800.0), *gpu(1, 210.0, 400.0)]))
    assert found == pytest.approx(WORKED)


def test_gpus_of_the_other_vendor_have_metrics_of_their_own() -> None:
    found = numbers(Run([*gpu(0, 300.0, 600.0), *gpu(0, 500.0, 1000.0, "amd")]))
    assert (found["nvidia_total_gpu_energy"], found["amd_total_gpu_energy"]) == pytest.approx((600.0, 1000.0))


def test_without_counters_energy_is_mean_power_by_time() -> None:
    found = numbers(Run([*gpu(0, 300.0, None), *gpu(1, 100.0, 250.0)]))
    assert found["nvidia_total_gpu_energy"] == pytest.approx(300 * 2 + 250)
    assert found["nvidia_average_gpu_power"] == pytest.approx(425.0)


def test_instances_and_a_second_exporter_count_a_gpu_once() -> None:
    parts = [each for mig in ("3", "4") for each in gpu(0, 300.0, 600.0, mig=mig)]
    assert numbers(Run(parts))["nvidia_total_gpu_energy"] == pytest.approx(600.0)
    assert numbers(Run([*parts, *gpu(0, 310.0, 620.0)]))["nvidia_total_gpu_energy"] == pytest.approx(620.0)


def test_without_gpus_there_are_none() -> None:
    assert numbers(Run([])) == {}


def test_without_answers_nothing_is_divided() -> None:
    found = numbers(Run(gpu(0, 300.0, 600.0), {"total_osl": 0.0, "request_count": 0.0}), price=2.5)
    assert set(found) == {
        "nvidia_total_gpu_power", "nvidia_average_gpu_power", "nvidia_total_gpu_energy", "nvidia_output_tokens_per_joule",
        "nvidia_energy_per_user",
    }  # fmt: skip


def test_cost_is_price_by_gpus_and_time() -> None:
    found = numbers(Run([*gpu(0, 300.0, 600.0), *gpu(1, 300.0, 600.0)]), price=2.5)
    cost = 2.5 * 2 * 2.0 / 3600
    assert found["cost_per_million_output_tokens"] == pytest.approx(cost * 1e6 / 600)
    assert found["cost_per_million_total_tokens"] == pytest.approx(cost * 1e6 / 2100)
    assert found["cost_per_request"] == pytest.approx(cost / 30)


def test_the_count_of_gpus_may_be_given() -> None:
    assert numbers(Run([]), price=2.5, count=8)["cost_per_request"] == pytest.approx(2.5 * 8 * 2.0 / 3600 / 30)
    assert "cost_per_request" not in numbers(Run([]), price=2.5)


def test_a_count_without_a_price_is_refused() -> None:
    (sentence,) = EnergyOptions(gpu_count=8).problems({"gpu_count": "--gpu-count"})
    assert sentence.startswith("--gpu-count 8 counts GPUs for their cost, and there is no price")


def test_a_metric_without_what_it_needs_is_left_out() -> None:
    family = EnergyMetrics(EnergyOptions())
    tags = {metric.tag for metric in family.metrics({"total_osl": OTHERS["total_osl"]}, {})}
    assert "nvidia_goodput_per_watt" not in tags and "nvidia_output_tokens_per_joule" in tags
    unfit = {"total_osl": Needs.TOKENS_OUT}
    assert "nvidia_output_tokens_per_joule" not in {metric.tag for metric in family.metrics(OTHERS, unfit)}


class TestTheFamilyKeepsItsContract(MetricFamilyContract):
    family = EnergyMetrics(EnergyOptions(gpu_cost_per_hour=2.5))
    plugin_options = OTHERS
