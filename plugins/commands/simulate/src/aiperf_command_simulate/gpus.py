"""GPUs that the engine seems to run on, as NVIDIA's exporter shows them: they draw more power while the engine works.

Power has two levels, so that the energy until any instant is exact: idle power times the time, and the rest times the time of
the engine's steps.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from aiperf_command_simulate.families import Family, Labelled
from aiperf_command_simulate.slowdown import NEVER, Slowdown

_NS = 1_000_000_000
_AVERAGED_NS = _NS
"""Power and use are those of the last second."""
_MODEL = "NVIDIA H100 80GB HBM3"
_SM_MHZ, _MEMORY_MHZ = 1980, 2619
"""The clocks; that of the SMs is lower while the engine is slow."""
_IDLE, _POWER_CAP = 1, 4
"""Reasons why clocks are held down: nothing to do, and the limit of power."""
_MEMORY_MIB, _PER_SEQUENCE_MIB = 20_000, 64
"""Memory of the model, and of each sequence in work."""


class GpuScenario(Struct, frozen=True):
    """count: GPUs, 0 for none.  instances: MIG instances of the last one; 0 leaves it whole.  gone_ns: when GPU 0 vanishes from
    the page, since the start; None never.  xid: a code that GPU 0 shows from *xid_ns* on; 0 for none.  slowdown: that of the
    engine, which clocks held down by the limit of power seem to cause."""

    count: int = 0
    instances: int = 0
    gone_ns: int | None = None
    xid: int = 0
    xid_ns: int = 0
    slowdown: Slowdown = NEVER


class Work:
    """When the engine worked: instants in ns, monotonic."""

    def __init__(self) -> None:
        self._begins, self._ends = array("q"), array("q")
        self._before_ns = array("q")
        """By interval, the work before it."""

    def add(self, begin_ns: int, end_ns: int) -> None:
        """A step of the engine; steps come in the order of time."""
        if self._ends and begin_ns <= self._ends[-1]:
            self._ends[-1] = max(end_ns, self._ends[-1])
            return
        self._before_ns.append(self._before_ns[-1] + self._ends[-1] - self._begins[-1] if self._ends else 0)
        self._begins.append(begin_ns)
        self._ends.append(end_ns)

    def until(self, at_ns: int) -> int:
        """The time worked until an instant, in ns."""
        place = bisect_right(self._begins, at_ns) - 1
        return 0 if place < 0 else self._before_ns[place] + min(at_ns, self._ends[place]) - self._begins[place]


class Gpus:
    """The GPUs of a scenario.  started_ns: monotonic; energy counts from then on."""

    def __init__(self, scenario: GpuScenario, started_ns: int) -> None:
        self._scenario, self._work, self._started_ns = scenario, Work(), started_ns
        self.worked = self._work.add if scenario.count else None
        """What the engine tells of its steps."""

    def joules(self, gpu: int, at_ns: int) -> float:
        """The energy of a GPU from the start until an instant, in J."""
        idle_w, full_w = _watts(gpu)
        return (idle_w * (at_ns - self._started_ns) + (full_w - idle_w) * self._work.until(at_ns)) / _NS

    def truth(self, instants: list[int]) -> list[dict[str, Any]]:
        """The exact energies of all GPUs until these instants."""
        return [
            {"uuid": _uuid(gpu), "joules": [self.joules(gpu, at_ns) for at_ns in instants]}
            for gpu in range(self._scenario.count)
        ]

    def families(self, at_ns: int, running: int) -> list[Family]:
        """The page at an instant with so many sequences in work."""
        rows: dict[str, list[Labelled]] = {}
        for gpu in self._shown(at_ns):
            for labels, number in self._entities(gpu):
                for name, value in self._values(gpu, number, at_ns, running):
                    rows.setdefault(name, []).append(Labelled(labels, value))
        return [Family(name, *_ABOUT[name], tuple(series), suffixed=False) for name, series in rows.items()]

    def _shown(self, at_ns: int) -> Iterator[int]:
        gone_ns = self._scenario.gone_ns
        for gpu in range(self._scenario.count):
            if gpu or gone_ns is None or at_ns - self._started_ns < gone_ns:
                yield gpu

    def _entities(self, gpu: int) -> Iterator[tuple[dict[str, str], int | None]]:
        """The labels of a GPU, or of each of its instances with its number."""
        whole = {
            "gpu": str(gpu), "UUID": _uuid(gpu), "pci_bus_id": f"00000000:{gpu + 1:02X}:00.0", "device": f"nvidia{gpu}",
            "modelName": _MODEL, "Hostname": "simulated",
        }  # fmt: skip
        instances = self._scenario.instances if gpu == self._scenario.count - 1 else 0
        if not instances:
            yield whole, None
        for number in range(instances):
            yield {**whole, "GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": str(number + 3)}, number

    def _values(self, gpu: int, instance: int | None, at_ns: int, running: int) -> Iterator[tuple[str, float]]:
        """An instance has the figures of its whole GPU, but for its memory, as the real exporter shows it."""
        idle_w, full_w = _watts(gpu)
        begin_ns = max(self._started_ns, at_ns - _AVERAGED_NS)
        worked_ns, lasted_ns = self._work.until(at_ns) - self._work.until(begin_ns), max(1, at_ns - begin_ns)
        share = worked_ns / lasted_ns
        since_ns, slowdown = at_ns - self._started_ns, self._scenario.slowdown
        xid = gpu == 0 and self._scenario.xid and since_ns >= self._scenario.xid_ns
        slower = slowdown.factor(since_ns)
        yield "DCGM_FI_DEV_SM_CLOCK", round(_SM_MHZ / slower)
        yield "DCGM_FI_DEV_MEM_CLOCK", _MEMORY_MHZ
        yield "DCGM_FI_DEV_GPU_TEMP", round(30 + 35 * share)
        yield "DCGM_FI_DEV_POWER_USAGE", round(idle_w + (full_w - idle_w) * share, 3)
        yield "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", round(self.joules(gpu, at_ns) * 1000)
        yield "DCGM_FI_DEV_GPU_UTIL", round(100 * share)
        yield "DCGM_FI_DEV_MEM_COPY_UTIL", round(40 * share)
        yield "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", (0 if share else _IDLE) | (_POWER_CAP if slower > 1 else 0)
        yield "DCGM_FI_DEV_XID_ERRORS", self._scenario.xid if xid else 0
        yield "DCGM_FI_DEV_POWER_VIOLATION", slowdown.lasted_ns(since_ns)
        used_mib = _MEMORY_MIB + _PER_SEQUENCE_MIB * running
        yield "DCGM_FI_DEV_FB_USED", used_mib if instance is None else used_mib // self._scenario.instances
        yield "DCGM_FI_PROF_SM_ACTIVE", round(0.9 * share, 6)


_ABOUT = {
    "DCGM_FI_DEV_SM_CLOCK": ("gauge", "SM clock frequency (in MHz)."),
    "DCGM_FI_DEV_MEM_CLOCK": ("gauge", "Memory clock frequency (in MHz)."),
    "DCGM_FI_DEV_GPU_TEMP": ("gauge", "GPU temperature (in C)."),
    "DCGM_FI_DEV_POWER_USAGE": ("gauge", "Power draw (in W)."),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("counter", "Total energy consumption since boot (in mJ)."),
    "DCGM_FI_DEV_GPU_UTIL": ("gauge", "GPU utilization (in %)."),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("gauge", "Memory utilization (in %)."),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("gauge", "Reasons why the clocks are held down (bit mask)."),
    "DCGM_FI_DEV_XID_ERRORS": ("gauge", "Value of the last XID error encountered."),
    "DCGM_FI_DEV_POWER_VIOLATION": ("counter", "Throttling duration due to power constraints (in ns)."),
    "DCGM_FI_DEV_FB_USED": ("gauge", "Framebuffer memory used (in MiB)."),
    "DCGM_FI_PROF_SM_ACTIVE": ("gauge", "The ratio of cycles an SM has at least 1 warp assigned."),
}
"""Type and help by family."""


def _watts(gpu: int) -> tuple[float, float]:
    """Idle and at work; each GPU has its own."""
    return 70.0 + 5 * gpu, 400.0 - 50 * (gpu % 4)


def _uuid(gpu: int) -> str:
    return f"GPU-51a10000-0000-0000-0000-{gpu:012d}"
