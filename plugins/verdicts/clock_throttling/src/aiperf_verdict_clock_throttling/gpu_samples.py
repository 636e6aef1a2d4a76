"""The samples of each GPU while the run's requests were in flight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from aiperf import Evidence
from aiperf.sdk.columns import Floats
from aiperf.sdk.series import Line, Sample, SeriesHeader, SourceHeader
from aiperf_gpus import SOURCES
from aiperf_gpus.fleet import Gpu
from aiperf_gpus.series import CODE
from msgspec import Struct, field
from numpy.typing import NDArray

CLOCK, USE, REASONS, VIOLATION, STATUS = (
    "nvidia_sm_clock", "nvidia_gpu_utilization", "nvidia_throttle_reasons", "nvidia_power_violation", "amd_throttle_status",
)  # fmt: skip
IDLE = 1
"""The bit of the mask of reasons that says that the GPU has nothing to do."""
_WANTED = {CLOCK, USE, REASONS, VIOLATION, STATUS}
_SETTLED_S = 1.0
"""The time that requests have been in flight before a sample counts: use and power are means of about a second."""


class GpuSamples(Struct, frozen=True):
    """The samples of a GPU, one value each, NaN where it has none; of *reasons* the mask, -1 without any.

    at_s: since the begin of the phase.
    """

    title: str
    at_s: Floats
    clock: Floats
    use: Floats
    reasons: NDArray[np.int64]
    violation_us: Floats
    status: Floats

    def chosen(self, rows: NDArray[np.bool_]) -> GpuSamples:
        return GpuSamples(
            self.title, self.at_s[rows], self.clock[rows], self.use[rows], self.reasons[rows], self.violation_us[rows],
            self.status[rows],
        )  # fmt: skip

    @property
    def works(self) -> NDArray[np.bool_]:
        """Whether nothing says that it idles."""
        return ~(self.use <= 0) & ~((self.reasons > 0) & (self.reasons & IDLE > 0))


class _Known(Struct):
    """The latest values of a GPU, and all of its samples."""

    labels: dict[str, str]
    target: int
    values: dict[str, float] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)
    rows: list[tuple[float, ...]] = field(default_factory=list)


def gpu_samples(evidence: Evidence) -> list[GpuSamples]:
    """Each GPU once, with its samples under load."""
    window = next((each for each in evidence.windows if each.phase == evidence.phase.index), None)
    if window is None or window.end_ns <= window.begin_ns:
        return []
    begin_s = (window.begin_ns - evidence.zero_ns) / 1e9
    loaded = _loaded(evidence, begin_s)
    found: dict[tuple[str, ...], GpuSamples] = {}
    for source in evidence.summary.telemetry:
        if source.name in SOURCES:
            for known in _read(evidence.samples(source.name), window.begin_ns, window.end_ns):
                one = _of(known, source.name)
                uuid = known.labels.get("uuid", "")
                key = (uuid,) if uuid else (source.name, str(known.target), one.title)
                if key not in found:
                    rows = _within(one.at_s, loaded)
                    found[key] = one.chosen(rows & one.works)
    return [one for one in found.values() if len(one.at_s)]


def _read(lines: Iterable[Line], begin_ns: int, end_ns: int) -> Iterator[_Known]:
    """The GPUs of a source with their samples from *begin_ns* to *end_ns*; an instance (MIG) stands for its GPU."""
    gpus: dict[tuple[int, tuple[tuple[str, str], ...]], _Known] = {}
    series: dict[int, tuple[_Known, str, int]] = {}
    for line in lines:
        if isinstance(line, SeriesHeader) and line.name in _WANTED:
            labels = {name: text for name, text in line.labels.items() if name not in (CODE, "mig")}
            known = gpus.setdefault((line.target, tuple(sorted(labels.items()))), _Known(labels, line.target))
            series[line.id] = known, line.name, int(line.labels.get(CODE, "-1"))
        elif isinstance(line, Sample):
            _take(line, series)
            if begin_ns <= line.moment.at_ns <= end_ns:
                for known in gpus.values():
                    if known.target == line.target:
                        known.rows.append(_row((line.moment.at_ns - begin_ns) / 1e9, known))
        elif isinstance(line, SourceHeader):
            continue
    yield from gpus.values()


def _take(sample: Sample, series: dict[int, tuple[_Known, str, int]]) -> None:
    for number in sample.ended:
        if number in series:
            known, name, code = series[number]
            if code >= 0:
                known.codes.pop(number, None)
            else:
                known.values.pop(name, None)
    for number, value in sample.values.items():
        if number in series and isinstance(value, int | float):
            known, name, code = series[number]
            if code >= 0:
                known.codes[number] = code
            else:
                known.values[name] = float(value)


def _row(at_s: float, known: _Known) -> tuple[float, ...]:
    mask = -1
    for code in known.codes.values():
        mask = max(mask, 0) | code
    values = (known.values.get(name, np.nan) for name in (CLOCK, USE, VIOLATION, STATUS))
    return at_s, *values, float(mask)


def _of(known: _Known, source: str) -> GpuSamples:
    rows = np.array(known.rows).reshape(len(known.rows), 6)
    at_s, clock, use, violation, status, reasons = rows.T
    title = Gpu(source, "", known.labels, {}, {}).title
    return GpuSamples(title, at_s, clock, use, reasons.astype(np.int64), violation, status)


def _loaded(evidence: Evidence, begin_s: float) -> tuple[Floats, Floats]:
    """Begins and ends of the times with a request in flight, in s since the begin of the phase."""
    begins = ends = np.empty(0)
    for sent, ended in evidence.columns("sent_ns", "ended_ns"):
        known = ~np.isnan(sent) & ~np.isnan(ended)
        begins = np.concatenate((begins, sent[known] / 1e9 - begin_s))
        ends = np.concatenate((ends, ended[known] / 1e9 - begin_s))
        begins, ends = _joined(begins, ends)
    return begins, ends


def _joined(begins: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """The same times, in order and apart from each other."""
    if not len(begins):
        return begins, ends
    order = np.argsort(begins)
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    new = np.concatenate(([True], begins[1:] > ends[:-1]))
    return begins[new], ends[np.concatenate((new[1:], [True]))]


def _within(at_s: Floats, loaded: tuple[Floats, Floats]) -> NDArray[np.bool_]:
    """Whether requests have been in flight for a second."""
    begins, ends = loaded
    if not len(begins):
        return np.zeros(len(at_s), dtype=bool)
    place = np.searchsorted(begins, at_s - _SETTLED_S, side="right") - 1
    known: NDArray[np.bool_] = (place >= 0) & (at_s <= ends[np.maximum(place, 0)])
    return known
