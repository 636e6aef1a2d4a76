"""The GPUs of a phase or time slice: series put together by GPU, and each GPU once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aiperf.sdk.summary import SeriesSummary
from msgspec import Struct

from aiperf_gpus.series import CODE


class Gpu(Struct, frozen=True):
    """A GPU, or an instance of one (MIG).

    source, target: who told of it.  labels: those of its series, without that of codes.  series: by name; codes: by name, the
    values that were seen.
    """

    source: str
    target: str
    labels: dict[str, str]
    series: dict[str, SeriesSummary]
    codes: dict[str, tuple[int, ...]]

    @property
    def uuid(self) -> str:
        return self.labels.get("uuid", "")

    @property
    def title(self) -> str:
        """The GPU for people: ``GPU 0 NVIDIA H100 on node1``."""
        about = [f"GPU {self.labels.get('gpu', '?')}", self.labels.get("model", "")]
        about += [f"MIG instance {self.labels['mig']}"] if "mig" in self.labels else []
        host = self.labels.get("hostname", "")
        about += [f"on {host}"] if host and host != "localhost" else []
        return " ".join(filter(None, about))

    def statistic(self, name: str, statistic: str) -> float | None:
        """A statistic of the series *name*, in the unit of its series; None where there is none."""
        series = self.series.get(name)
        return None if series is None else series.stats.get(statistic)


def fleet(series: Iterable[SeriesSummary]) -> list[Gpu]:
    """The GPUs and instances with these series of one phase or slice, in the order of target, host, index and instance."""
    found: dict[tuple[tuple[str, str], ...], Gpu] = {}
    for each in series:
        if "uuid" not in each.labels and "gpu" not in each.labels:
            continue
        labels = {name: text for name, text in each.labels.items() if name != CODE}
        key = (("", each.source), ("", each.target), *sorted(labels.items()))
        gpu = found.setdefault(key, Gpu(each.source, each.target, labels, {}, {}))
        code = each.labels.get(CODE)
        if code is None:
            gpu.series[each.name] = each
        else:
            gpu.codes[each.name] = tuple(sorted({*gpu.codes.get(each.name, ()), int(code)}))
    return sorted(found.values(), key=_place)


def whole(gpus: Sequence[Gpu]) -> list[Gpu]:
    """Each GPU once, by its UUID: itself, or else its first instance, which has the figures of the whole GPU."""
    found: dict[tuple[str, str], Gpu] = {}
    for gpu in sorted(gpus, key=lambda gpu: "mig" in gpu.labels):
        key = gpu.uuid or gpu.target, "" if gpu.uuid else gpu.labels.get("gpu", "")
        found.setdefault(key, gpu)
    return sorted(found.values(), key=_place)


def _place(gpu: Gpu) -> tuple[str, str, str, int, int]:
    numbers = (gpu.labels.get(name, "") for name in ("gpu", "mig"))
    index, instance = (int(text) if text.isdecimal() else -1 for text in numbers)
    return gpu.source, gpu.target, gpu.labels.get("hostname", ""), index, instance


__all__ = ["Gpu", "fleet", "whole"]
