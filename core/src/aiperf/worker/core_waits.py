"""How long this process had no core: another program had it, or its cgroup had used up its limit of CPU."""

from __future__ import annotations

import re
from pathlib import Path

_PERIOD_NS = 100_000_000
"""The kernel's usual period of a limit, where a group does not say its own."""
_THROTTLED = re.compile(rb"^nr_throttled (\d+)$", re.MULTILINE)


class CoreWaits:
    """What the system tells of this process, and of its limited groups, its own and those above it, looked up once.

    root: where the hierarchies are mounted.  membership: as ``/proc/self/cgroup`` has it.  Both versions of cgroups are read
    (https://docs.kernel.org/admin-guide/cgroup-v2.html, and cgroup-v1/cpuacct and scheduler/sched-bwc of the same guide).
    """

    def __init__(self, root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> None:
        self._groups: list[tuple[Path, int]] = []
        """The ``cpu.stat`` of each limited group, and its period in ns."""
        try:
            lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
        except OSError:
            return
        for _, controllers, path in lines:
            if not controllers:
                self._add(root, path)
            elif "cpu" in controllers.split(","):
                self._add(root / controllers, path)

    def _add(self, mount: Path, path: str) -> None:
        place = mount / path.strip("/")
        for group in (place, *place.parents):
            if group.is_relative_to(mount) and (period_ns := _period_ns(group)) is not None:
                self._groups.append((group / "cpu.stat", period_ns))

    def times(self) -> dict[str, int]:
        """``waited_ns`` and ``throttled_ns`` so far."""
        return {"waited_ns": _waited_ns(), "throttled_ns": self.throttled_ns()}

    def throttled_ns(self) -> int:
        """Length of the periods in which a limit was used up, so far, of the group that met it most; 0 without limits."""
        longest_ns = 0
        for stat, period_ns in self._groups:
            try:
                found = _THROTTLED.search(stat.read_bytes())
            except OSError:
                continue
            longest_ns = max(longest_ns, int(found[1]) * period_ns if found else 0)
        return longest_ns


def _period_ns(group: Path) -> int | None:
    """The period of a group's limit; None where it has none."""
    try:
        if (group / "cpu.max").exists():
            quota, _, period = (group / "cpu.max").read_text().strip().partition(" ")
            return None if quota == "max" else int(period) * 1000
        if int((group / "cpu.cfs_quota_us").read_text()) < 0:
            return None
        return int((group / "cpu.cfs_period_us").read_text()) * 1000
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return _PERIOD_NS


def _waited_ns() -> int:
    """How long the loop was ready to run and had no core, in ns; 0 where the system doesn't tell."""
    try:
        return int(Path("/proc/self/schedstat").read_bytes().split()[1])
    except (OSError, IndexError):
        return 0


__all__ = ["CoreWaits"]
