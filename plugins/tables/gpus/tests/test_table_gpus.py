"""Tables of GPUs."""

from __future__ import annotations

import pytest
from aiperf.sdk.table import SummaryTable, WhenShown
from aiperf.sdk.verdict import Evidence
from aiperf_table_gpus import GpuTables
from aiperf_table_gpus.codes import reasons
from aiperf_table_gpus.contract import GpuTablesContract, evidence, series
from aiperf_table_gpus.options import TableOptions
from msgspec.structs import replace


class TestItKeepsTheContract(GpuTablesContract):
    pass


def tables(given: Evidence, items: list[str] | None = None) -> dict[str, SummaryTable]:
    return {each.name: each for each in GpuTables(TableOptions(gpu_telemetry=items)).tables(given)}


def cells(table: SummaryTable) -> dict[object, object]:
    return {row[0]: row[2] for row in table.rows}


def test_a_gpu_has_its_quantities_in_order_and_its_codes_below() -> None:
    table = tables(evidence(
        series("nvidia_energy_consumption", 0.002), series("nvidia_power_usage", 300.0), series("nvidia_xid_errors", 31),
        series("nvidia_xid_errors", 0), series("nvidia_throttle_reasons", 5), series("nvidia_throttle_reasons", 64),
    ))["gpu_0"]  # fmt: skip
    assert table.title == "GPU 0 H100 on node"
    assert table.rows == (
        ("NVIDIA GPU Power Usage", "W", 300.0, 150.0, 600.0, 300.0, 300.0, 300.0, 0.0),
        ("NVIDIA Energy Consumption", "MJ", 0.002, None, None, None, None, None, None),
    )
    assert table.notes == (
        "NVIDIA XID Errors seen: 31.", "Clocks were held down: software power cap, hardware thermal slowdown.",
    )  # fmt: skip


def test_with_the_option_people_see_them_always() -> None:
    given = evidence(series("nvidia_power_usage", 300.0))
    assert {each.shown for each in tables(given).values()} == {WhenShown.VERBOSE}
    assert {each.shown for each in tables(given, []).values()} == {WhenShown.ALWAYS}


def test_the_totals_say_what_energy_was_divided_by() -> None:
    given = evidence(
        series("nvidia_power_usage", 300.0), series("nvidia_energy_consumption", 0.002),
        series("nvidia_power_usage", 70.0, gpu=1), series("nvidia_gpu_utilization", 0.25, gpu=1),
    )  # fmt: skip
    table = tables(given)["gpu_totals"]
    found = cells(table)
    seconds = found["length of the phase"]
    assert isinstance(seconds, float) and seconds > 0
    assert found["nvidia GPUs"] == 2 and found["energy of nvidia GPUs"] == pytest.approx(2000 + 70 * seconds)
    assert table.notes == (
        "1 of 2 exporters answered: ✔ http://node:9400/metrics, ✘ http://localhost:9401/metrics",
        "Energy from mean power, for want of a counter: GPU 1 H100 on node.",
        "Idle all the time, and in the total: GPU 1 H100 on node.",
    )


def test_a_gpu_that_was_seen_for_a_part_of_the_phase_is_said() -> None:
    given = evidence(series("nvidia_energy_consumption", 0.002))
    (phase,) = (each for each in given.summary.phases if each.index == given.phase.index)
    seconds = (phase.end_ns - phase.start_ns) / 1e9
    stats = {"total": 0.002, "rate": 0.002 / (seconds / 4)}
    part = evidence(replace(series("nvidia_energy_consumption", 0.002), stats=stats))
    note = f"Energy of a part of the phase, and more was drawn: GPU 0 H100 on node ({seconds / 4:.1f} of {seconds:.1f} s)."
    assert note in tables(part)["gpu_totals"].notes


def test_instances_of_a_gpu_are_one_gpu_of_the_totals() -> None:
    parts = [series("nvidia_energy_consumption", 0.002, mig=mig) for mig in ("3", "4")]
    found = tables(evidence(*parts))
    assert [each.title for each in found.values()] == [
        "GPU 0 H100 MIG instance 3 on node", "GPU 0 H100 MIG instance 4 on node", "GPUs in all",
    ]  # fmt: skip
    assert cells(found["gpu_totals"])["energy of nvidia GPUs"] == 2000


def test_gpus_of_this_machine_beside_a_server_elsewhere_are_said() -> None:
    given = evidence(series("nvidia_power_usage", 300.0, source="gpu_nvml"))
    (host,) = {url.partition("://")[2].partition(":")[0] for url in given.plan.target.urls}
    note = f"These are the GPUs of this machine, and the server is at {host}."
    assert (note in tables(given)["gpu_totals"].notes) is (host not in ("127.0.0.1", "localhost"))


def test_the_dashboard_without_its_display_is_said() -> None:
    given = evidence(series("nvidia_power_usage", 300.0))
    asked, plain = (tables(given, items)["gpu_totals"].notes for items in (["dashboard"], []))
    assert set(asked) - set(plain) == {
        "The dashboard of GPUs is a part of --ui dashboard; without it these tables come at the end."
    }


def test_a_bit_without_a_name_is_a_number() -> None:
    assert reasons([0, 1]) == "" and reasons([0x1000]) == "bits 0x1000"
