"""Families of metrics as text: the format of Prometheus, and OpenMetrics."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from aiperf_command_simulate.meters import Histogram

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Buckets(Struct, frozen=True):
    """A histogram as a family shows it; *scale* turns its unit into the family's."""

    of: Histogram
    scale: float = 1.0


class Labelled(Struct, frozen=True):
    labels: dict[str, str]
    value: float | Buckets


class Family(Struct, frozen=True):
    """*name*: without the ``_total`` of counters.  suffixed: a counter has it in the text format, too, as most have."""

    name: str
    kind: str
    help: str
    series: tuple[Labelled, ...]
    suffixed: bool = True


def exposition(families: Iterable[Family], *, openmetrics: bool) -> str:
    """The page."""
    lines: list[str] = []
    for family in families:
        suffix = "_total" if family.kind == "counter" and (openmetrics or family.suffixed) else ""
        shown = family.name if openmetrics else family.name + suffix
        lines += (f"# HELP {shown} {_escaped(family.help)}", f"# TYPE {shown} {family.kind}")
        for series in family.series:
            labels = ",".join(f'{name}="{_escaped(text, quoted=True)}"' for name, text in series.labels.items())
            if isinstance(series.value, Buckets):
                lines += _histogram(family.name, labels, series.value)
            else:
                lines.append(f"{family.name}{suffix}{{{labels}}} {series.value}")
    if openmetrics:
        lines.append("# EOF")
    return "\n".join(lines) + "\n"


def _histogram(name: str, labels: str, buckets: Buckets) -> list[str]:
    histogram, lines, total = buckets.of, list[str](), 0
    bounds = [str(bound * buckets.scale) for bound in histogram.bounds]
    for bound, count in zip((*bounds, "+Inf"), histogram.counts, strict=True):
        total += count
        lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {total}')
    observed = histogram.total / histogram.unit * buckets.scale
    return [*lines, f"{name}_sum{{{labels}}} {observed}", f"{name}_count{{{labels}}} {total}"]


def _escaped(text: str, *, quoted: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quoted else text
