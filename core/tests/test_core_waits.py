"""Limits of CPU, as both versions of cgroups tell of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf.worker.core_waits import CoreWaits


def group(folder: Path, throttled: int, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.stat").write_text(f"nr_periods 900\nnr_throttled {throttled}\nthrottled_usec 7\n")
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def throttling(root: Path, membership: str) -> CoreWaits:
    (root / "self").write_text(membership)
    return CoreWaits(root, root / "self")


def test_the_group_that_met_its_limit_most_counts(tmp_path: Path) -> None:
    group(tmp_path / "pods" / "one", 3, cpu__max="200000 100000\n")
    group(tmp_path / "pods", 10, cpu__max="400000 50000\n")
    assert throttling(tmp_path, "0::/pods/one\n").throttled_ns() == 10 * 50_000_000
    group(tmp_path / "pods", 10, cpu__max="max 100000\n")
    assert throttling(tmp_path, "0::/pods/one\n").throttled_ns() == 3 * 100_000_000


@pytest.mark.parametrize(("quota", "ns"), [("50000", 300_000_000), ("-1", 0)])
def test_groups_of_version_one_are_read(tmp_path: Path, quota: str, ns: int) -> None:
    group(tmp_path / "cpu" / "job", 3, cpu__cfs_quota_us=quota, cpu__cfs_period_us="100000\n")
    group(tmp_path / "cpu", 9, cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000\n")
    assert throttling(tmp_path, "3:cpuset:/\n1:cpu:/job\n0::/\n").throttled_ns() == ns


def test_a_system_that_does_not_tell_has_no_limit(tmp_path: Path) -> None:
    assert CoreWaits(tmp_path / "none", tmp_path / "none").throttled_ns() == 0
    assert throttling(tmp_path, "0::/gone\n").throttled_ns() == 0
    group(tmp_path / "odd", 4, cpu__max="nonsense\n")
    assert throttling(tmp_path, "0::/odd\n").throttled_ns() == 400_000_000
