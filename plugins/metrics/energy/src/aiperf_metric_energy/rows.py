"""The metrics: formulas of the GPUs' energy over the phase in J, their mean power in W, and other results of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from aiperf import RunMetric, Totals
from aiperf.sdk.metric import PluginUnit
from aiperf_gpus.energy import VENDORS, FleetEnergy, energy
from aiperf_gpus.fleet import fleet, whole

_SOURCES = {"nvidia": ("gpu_dcgm", "gpu_nvml"), "amd": ("gpu_amd",)}
"""Telemetry sources of a vendor's GPUs."""
_USED = {"nvidia": "nvidia_gpu_utilization", "amd": "amd_gfx_activity"}
_WATTS, _JOULES = PluginUnit("W"), PluginUnit("J")
_MJ_PER_TOKEN, _TOKENS_PER_JOULE = PluginUnit("mJ/token"), PluginUnit("tokens/J")
_Formula: TypeAlias = Callable[[FleetEnergy, Totals], float | None]
_FIRST_ORDER = {"nvidia": 700, "amd": 800}
_MILLION, _HOUR_S = 1e6, 3600.0
"""Tokens that a price is for, and the time."""


def _of(*tags: str, formula: Callable[..., float]) -> _Formula:
    """A formula of E and the values of these metrics; None where one is unknown, or nothing divides."""

    def number(all_gpus: FleetEnergy, run: Totals) -> float | None:
        values = [run.value(tag) for tag in tags]
        if all_gpus.joules is None or None in values:
            return None
        try:
            return formula(all_gpus.joules, *values)
        except ZeroDivisionError:
            return None

    return number


def _per_watt(tag: str) -> _Formula:
    def number(all_gpus: FleetEnergy, run: Totals) -> float | None:
        value = run.value(tag)
        return None if value is None or not all_gpus.average_watts else value / all_gpus.average_watts

    return number


def _per_user(all_gpus: FleetEnergy, run: Totals) -> float | None:
    return None if all_gpus.joules is None or not run.concurrency else all_gpus.joules / run.concurrency


_ROWS: tuple[tuple[str, str, PluginUnit, tuple[str, ...], bool, _Formula], ...] = (
    ("total_gpu_power", "Total GPU Power", _WATTS, (), False, lambda gpus, run: gpus.watts),
    ("average_gpu_power", "Average GPU Power", _WATTS, (), False, lambda gpus, run: gpus.average_watts),
    ("total_gpu_energy", "Total GPU Energy", _JOULES, (), False, lambda gpus, run: gpus.joules),
    ("output_tokens_per_joule", "Output Tokens per Joule", _TOKENS_PER_JOULE, ("total_osl",), True,
     _of("total_osl", formula=lambda joules, tokens: tokens / joules)),
    ("energy_per_output_token", "Energy per Output Token", _MJ_PER_TOKEN, ("total_osl",), False,
     _of("total_osl", formula=lambda joules, tokens: 1000 * joules / tokens)),
    ("energy_per_total_token", "Energy per Total Token", _MJ_PER_TOKEN, ("total_isl", "total_osl"), False,
     _of("total_isl", "total_osl", formula=lambda joules, prompt, output: 1000 * joules / (prompt + output))),
    ("energy_per_request", "Energy per Request", PluginUnit("joules/request"), ("request_count",), False,
     _of("request_count", formula=lambda joules, requests: joules / requests)),
    ("energy_per_user", "Energy per User", PluginUnit("joules/user"), (), False, _per_user),
    ("energy_delay_product", "Energy Delay Product", PluginUnit("J*s"), ("request_count", "request_latency"), False,
     _of("request_count", "request_latency", formula=lambda joules, requests, mean_ns: joules / requests * mean_ns / 1e9)),
    ("performance_per_watt", "Performance per Watt", PluginUnit("requests/sec/W"), ("request_throughput",), True,
     _per_watt("request_throughput")),
    ("output_tps_per_watt", "Output Tokens per Second per Watt", PluginUnit("tokens/sec/W"), ("output_token_throughput",), True,
     _per_watt("output_token_throughput")),
    ("goodput_per_watt", "Goodput per Watt", PluginUnit("good-req/s/W"), ("goodput",), True, _per_watt("goodput")),
)  # fmt: skip
"""Name behind the vendor's prefix, title, unit, metrics that it needs, whether more is better, and formula."""


class _Gpus:
    """The energy of a vendor's GPUs in a run, computed once for all metrics of it."""

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor
        self._known: tuple[Totals, FleetEnergy | None] | None = None

    def of(self, run: Totals) -> FleetEnergy | None:
        if self._known is None or self._known[0] is not run:
            names = (*VENDORS[self._vendor], _USED[self._vendor])
            series = [each for source in _SOURCES[self._vendor] for name in names for each in run.series(source, name)]
            self._known = run, energy(fleet(series), self._vendor, run.window_s)
        return self._known[1]


class EnergyMetric(RunMetric):
    """A formula of the energy of all GPUs of a vendor.  Over the exact phase: counters are interpolated to its edges."""

    group = "energy"

    def __init__(
        self, tag: str, title: str, unit: PluginUnit, needs: tuple[str, ...], formula: _Formula, gpus: _Gpus, *, order: int,
        larger_is_better: bool,
    ) -> None:  # fmt: skip
        self.tag, self.title, self.unit, self.needs = tag, title, unit, needs
        self.order, self.larger_is_better = order, larger_is_better
        self._formula, self._gpus = formula, gpus

    def number(self, run: Totals) -> float | None:
        gpus = self._gpus.of(run)
        return None if gpus is None else self._formula(gpus, run)


class CostMetric(RunMetric):
    """The cost of all GPUs over the phase, by what was made with it.  per: 1 of a request, a million of tokens."""

    group = "energy"
    unit = PluginUnit("money")

    def __init__(self, tag: str, title: str, needs: tuple[str, ...], per: float, price: float, count: int | None) -> None:
        self.tag, self.title, self.needs, self._per = tag, title, needs, per
        self.order = 900
        self._price, self._count = price, count
        self._gpus = [_Gpus(vendor) for vendor in VENDORS]

    def number(self, run: Totals) -> float | None:
        found = [gpu for each in self._gpus if (gpus := each.of(run)) is not None for gpu in gpus.gpus]
        count, made = self._count or len(whole(found)), [run.value(tag) for tag in self.needs]
        if not count or run.window_s is None or None in made:
            return None
        amount = sum(value for value in made if value is not None)
        return self._price * count * run.window_s / _HOUR_S * self._per / amount if amount else None


def rows(price: float | None, count: int | None) -> Iterator[EnergyMetric | CostMetric]:
    """The metrics of both vendors, and with a *price* of a GPU for an hour those of cost.  count: GPUs; None: those seen."""
    for vendor in VENDORS:
        gpus = _Gpus(vendor)
        for place, (name, title, unit, needs, more, formula) in enumerate(_ROWS):
            about = title if vendor == "nvidia" else f"{title} (AMD)"
            yield EnergyMetric(f"{vendor}_{name}", about, unit, needs, formula, gpus, order=_FIRST_ORDER[vendor] + 5 * place,
                larger_is_better=more)  # fmt: skip
    if price is not None:
        tokens = "Cost per Million Output Tokens", "Cost per Million Total Tokens"
        yield CostMetric("cost_per_million_output_tokens", tokens[0], ("total_osl",), _MILLION, price, count)
        yield CostMetric("cost_per_million_total_tokens", tokens[1], ("total_isl", "total_osl"), _MILLION, price, count)
        yield CostMetric("cost_per_request", "Cost per Request", ("request_count",), 1.0, price, count)


__all__ = ["CostMetric", "EnergyMetric", "rows"]
