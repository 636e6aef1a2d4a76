"""Pages of DCGM exporters, by its published list of fields, as series of GPUs."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf import Absent, AiperfError, Point
from aiperf.sdk.telemetry import Reading, TelemetryContext, TelemetryTarget
from aiperf_metric_gpu_dcgm import GpuDcgm
from aiperf_metric_gpu_dcgm.options import DcgmOptions, default_urls

FIELDS = {
    "DEV_SM_CLOCK": "1980", "DEV_MEM_CLOCK": "2619", "DEV_GPU_TEMP": "61", "DEV_POWER_USAGE": "312.5",
    "DEV_TOTAL_ENERGY_CONSUMPTION": "5000000000", "DEV_GPU_UTIL": "93", "DEV_MEM_COPY_UTIL": "41", "DEV_ENC_UTIL": "3",
    "DEV_DEC_UTIL": "4", "DEV_XID_ERRORS": "31", "DEV_POWER_VIOLATION": "2500000", "DEV_FB_USED": "10000", "DEV_FB_FREE": "1",
    "DEV_CLOCKS_EVENT_REASONS": "4", "PROF_SM_ACTIVE": "0.735", "DEV_PCIE_REPLAY_COUNTER": "0", "DEV_FAN_SPEED": "55",
}  # fmt: skip
COUNTERS = {"DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_POWER_VIOLATION", "DEV_PCIE_REPLAY_COUNTER"}


def labels(gpu: int = 0, **more: str) -> str:
    known = {
        "gpu": str(gpu), "UUID": f"GPU-{gpu}", "pci_bus_id": f"00000000:0{gpu + 1}:00.0", "device": f"nvidia{gpu}",
        "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "node", "DCGM_FI_DRIVER_VERSION": "550.90.07", **more,
    }  # fmt: skip
    return ",".join(f'{name}="{text}"' for name, text in known.items())


def page(*gpus: str, **fields: str) -> str:
    """A page with these GPUs, each with all fields."""
    lines = []
    for name, value in (FIELDS | fields).items():
        kind = "counter" if name in COUNTERS else "gauge"
        lines += [f"# HELP DCGM_FI_{name} About it (in its unit).", f"# TYPE DCGM_FI_{name} {kind}"]
        lines += [f"DCGM_FI_{name}{{{gpu}}} {value}" for gpu in gpus or (labels(),)]
    return "\n".join(lines) + "\n"


class Server:
    """Pages by path, which may change."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        pages = self.pages

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = pages.get(self.path)
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Length", str(len((body or "").encode())))
                self.end_headers()
                self.wfile.write((body or "").encode())

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.place = f"127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS", "")
    yield made
    made.server.shutdown()
    made.server.server_close()


def targets(*items: str) -> list[TelemetryTarget]:
    source = GpuDcgm(DcgmOptions(gpu_telemetry=list(items)), TelemetryContext())
    source.start()
    return list(source.targets())


def points(target: TelemetryTarget) -> list[Point]:
    given = target.sample()
    return list(given.points if isinstance(given, Reading) else given)


def values(found: list[Point], gpu: str = "0", mig: str | None = None) -> dict[str, object]:
    own = [each for each in found if each.labels["gpu"] == gpu and each.labels.get("mig") == mig]
    return {each.name: int(each.labels["code"]) if "code" in each.labels else each.value for each in own}


def test_every_field_has_the_name_and_unit_of_its_series(server: Server) -> None:
    server.pages["/metrics"] = page()
    (target,) = targets(server.place)
    found = points(target)
    assert values(found) == pytest.approx({
        "nvidia_sm_clock": 1980, "nvidia_memory_clock": 2619, "nvidia_temperature": 61, "nvidia_power_usage": 312.5,
        "nvidia_energy_consumption": 5.0, "nvidia_gpu_utilization": 93, "nvidia_memory_utilization": 41,
        "nvidia_encoder_utilization": 3, "nvidia_decoder_utilization": 4, "nvidia_xid_errors": 31,
        "nvidia_power_violation": 2500, "nvidia_memory_used": 10.48576, "nvidia_throttle_reasons": 4,
        "nvidia_sm_utilization": 73.5,
    })  # fmt: skip
    power = next(each for each in found if each.name == "nvidia_power_usage")
    assert power.unit == "W" and power.labels == {
        "gpu": "0", "uuid": "GPU-0", "pci_bus_id": "00000000:01:00.0", "device": "nvidia0", "hostname": "node",
        "model": "NVIDIA H100 80GB HBM3", "platform": "nvidia",
    }  # fmt: skip
    energy = next(each for each in found if each.name == "nvidia_energy_consumption")
    assert energy.flows and energy.kind.value == "counter" and energy.unit == "MJ"


def test_older_names_of_fields_are_known(server: Server) -> None:
    text = page().replace("CLOCKS_EVENT_REASONS", "CLOCK_THROTTLE_REASONS")
    server.pages["/metrics"] = text.replace("DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_POWER_VIOLATION_total")
    (target,) = targets(server.place)
    found = values(points(target))
    assert found["nvidia_throttle_reasons"] == 4 and found["nvidia_power_violation"] == 2500.0


def test_a_gpu_of_two_exporters_counts_once(server: Server) -> None:
    server.pages |= {"/a/metrics": page(), "/b/metrics": page(labels(0), labels(1))}
    first, second = targets(f"{server.place}/a", f"{server.place}/b")
    for _ in range(2):
        assert {each.labels["uuid"] for each in points(first)} == {"GPU-0"}
        assert {each.labels["uuid"] for each in points(second)} == {"GPU-1"}


def test_instances_of_a_gpu_stand_apart(server: Server) -> None:
    parts = (labels(GPU_I_PROFILE="1g.10gb", GPU_I_ID="3"), labels(GPU_I_PROFILE="1g.10gb", GPU_I_ID="4"))
    server.pages["/metrics"] = page(*parts)
    (target,) = targets(server.place)
    found = points(target)
    assert values(found, mig="3") == values(found, mig="4") != {} and not values(found)


def test_gpus_without_uuid_of_two_hosts_stand_apart(server: Server) -> None:
    one, two = (labels().replace('UUID="GPU-0"', 'UUID=""').replace('"node"', f'"{host}"') for host in ("a", "b"))
    server.pages["/metrics"] = page(one, two)
    (target,) = targets(server.place)
    assert {each.labels["uuid"] for each in points(target)} == {"GPU-unknown-a-0", "GPU-unknown-b-0"}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-5", "2147483632", "9.223372036854775e+18"])
def test_a_value_that_is_none_leaves_out_its_series(server: Server, value: str) -> None:
    server.pages["/metrics"] = page(DEV_POWER_USAGE=value)
    (target,) = targets(server.place)
    found = values(points(target))
    assert "nvidia_power_usage" not in found and len(found) == 13


def test_negative_power_is_said_once(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    (target,) = targets(server.place)
    for value in ("-5", "-6"):
        server.pages["/metrics"] = page(DEV_POWER_USAGE=value)
        points(target)
    assert caplog.messages == [f"{target.name}: DCGM_FI_DEV_POWER_USAGE of GPU 0 is negative (-5); such values are left out"]


def test_further_fields_keep_their_unit_and_kind(server: Server, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text(
        "DCGM_FI_DEV_FAN_SPEED, gauge, Fan speed (in %)\nDCGM_FI_DEV_PCIE_REPLAY_COUNTER, counter, PCIe replays (in mJ)\n"
        "DCGM_FI_DEV_POWER_USAGE, counter, It has a series already\n"
    )
    server.pages["/metrics"] = page()
    (target,) = targets(server.place, str(more))
    found = {each.name: each for each in points(target)}
    assert (found["nvidia_fan_speed"].value, found["nvidia_fan_speed"].unit) == (55, "%")
    replays = found["nvidia_pcie_replay_counter"]
    assert (replays.value, replays.unit, replays.kind.value, replays.flows) == (0, "mJ", "counter", True)
    assert found["nvidia_power_usage"].unit == "W"


def test_a_gpu_that_vanishes_has_no_points(server: Server) -> None:
    (target,) = targets(server.place)
    server.pages["/metrics"] = page(labels(0), labels(1))
    assert len({each.labels["gpu"] for each in points(target)}) == 2
    server.pages["/metrics"] = page(labels(1))
    assert {each.labels["gpu"] for each in points(target)} == {"1"}
    server.pages["/metrics"] = NODE
    with pytest.raises(AiperfError, match="has no figures of GPUs any more"):
        points(target)


def test_what_did_not_change_is_not_made_again(server: Server) -> None:
    (target,) = targets(server.place)
    server.pages["/metrics"] = page()
    before = points(target)
    server.pages["/metrics"] = page(DEV_POWER_USAGE="313")
    after = points(target)
    assert [one.name for one, other in zip(before, after, strict=True) if one is not other] == ["nvidia_power_usage"]


NODE = "# TYPE node_load1 gauge\nnode_load1 2.5\n# TYPE node_cpu_seconds_total counter\nnode_cpu_seconds_total 7\n"


def test_a_page_without_gpus_that_was_named_is_a_fault(server: Server) -> None:
    server.pages["/metrics"] = NODE
    (target,) = targets(server.place)
    with pytest.raises(AiperfError) as caught:
        target.sample()
    assert "has no figures of GPUs (DCGM_FI_…), but node_load1" in caught.value.message
    assert "--gpu-telemetry HOST:9400" in caught.value.message


@pytest.mark.parametrize("body", [NODE, None, "<html>"])
def test_something_else_at_a_default_port_is_no_fault(
    server: Server, monkeypatch: pytest.MonkeyPatch, body: str | None
) -> None:
    if body is not None:
        server.pages["/metrics"] = body
    monkeypatch.setenv("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS", server.place)
    (target,) = targets()
    with pytest.raises(Absent):
        target.sample()


def test_a_default_exporter_is_sampled_unasked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.pages["/metrics"] = page()
    monkeypatch.setenv("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS", f"['{server.place}', '127.0.0.1:1']")
    source = GpuDcgm(DcgmOptions(), TelemetryContext())
    source.start()
    (target,) = source.targets()
    assert values(points(target))["nvidia_power_usage"] == 312.5


def test_without_exporters_nothing_is_said_unasked(server: Server) -> None:
    with pytest.raises(Absent) as caught:
        GpuDcgm(DcgmOptions(), TelemetryContext()).start()
    assert caught.value.message == ""
    with pytest.raises(AiperfError, match="--gpu-telemetry: no DCGM exporter listens at no address"):
        targets()


def test_a_named_default_is_a_named_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS", f"{server.place}/a")
    first, second = targets(f"http://{server.place}/b", f"{server.place}/a/metrics/")
    assert [first.name, second.name] == [f"http://{server.place}/a/metrics", f"http://{server.place}/b/metrics"]
    with pytest.raises(AiperfError) as caught:
        first.sample()
    assert not isinstance(caught.value, Absent)


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"gpu_telemetry": []}, True), ({"gpu_telemetry": ["pynvml"]}, False),
        ({"gpu_telemetry_enabled": False}, False),
    ],
)  # fmt: skip
def test_exporters_are_asked_but_for_a_local_library(options: dict[str, Any], asked: bool) -> None:
    assert DcgmOptions(**options).exporters is asked


@pytest.mark.parametrize(("pages", "asked"), [("127.0.0.1:1,localhost:1", False), ("gpu-node:9400", True)])
def test_default_exporters_are_asked_where_somebody_may_listen(
    server: Server, monkeypatch: pytest.MonkeyPatch, pages: str, asked: bool
) -> None:
    monkeypatch.setenv("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS", pages)
    assert DcgmOptions().exporters is asked
    monkeypatch.setenv("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS", f"{pages},{server.place}")
    assert DcgmOptions().exporters is True


def test_a_bad_default_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS", "gpus")
    (sentence,) = DcgmOptions().problems({})
    assert sentence.startswith("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS: 'gpus' is no item")
    monkeypatch.setenv("AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS", "a:1,b:2")
    assert default_urls() == ("http://a:1/metrics", "http://b:2/metrics")
