"""GPUs put together from series, and what files have of them."""

from __future__ import annotations

from aiperf.sdk.summary import SeriesSummary
from aiperf_gpus.document import endpoint, keys
from aiperf_gpus.fleet import Gpu, fleet, whole


def power(gpu: str, host: str, uuid: str = "", target: str = "http://a:1/metrics", **more: str) -> SeriesSummary:
    labels = {"gpu": gpu, "hostname": host, "uuid": uuid or f"GPU-{host}-{gpu}", **more}
    return SeriesSummary("gpu_dcgm", 0, "nvidia_power_usage", "gauge", "W", labels, "", {"avg": 1.0}, target=target)


def code(value: int) -> SeriesSummary:
    labels = {"gpu": "0", "hostname": "x", "uuid": "GPU-x-0", "code": str(value)}
    return SeriesSummary("gpu_dcgm", 0, "nvidia_xid_errors", "info", "", labels, "", {"count": 1.0}, target="http://a:1/metrics")


def test_series_of_a_gpu_and_its_codes_come_together() -> None:
    (gpu,) = fleet([power("0", "x"), code(31), code(0), SeriesSummary("s", 0, "load", "gauge", "", {}, "", {})])
    assert list(gpu.series) == ["nvidia_power_usage"] and gpu.codes == {"nvidia_xid_errors": (0, 31)}


def test_gpus_stand_in_the_order_of_their_index() -> None:
    assert [gpu.labels["gpu"] for gpu in fleet([power("10", "x"), power("2", "x")])] == ["2", "10"]


def test_a_key_has_the_host_where_one_page_has_several() -> None:
    alone, both = fleet([power("0", "x"), power("1", "x", mig="3")]), fleet([power("0", "x"), power("0", "y"), power("1", "y")])
    assert keys(alone) == ["gpu_0", "gpu_1_mig_3"] and keys(both) == ["gpu_x_0", "gpu_y_0", "gpu_1"]


def test_a_gpu_is_whole_before_its_instances_and_once() -> None:
    series = [power("0", "x", mig="3"), power("0", "x", mig="4"), power("0", "x", target="http://b:1/metrics"), power("1", "x")]
    found: list[Gpu] = whole(fleet(series))
    assert [(gpu.labels["gpu"], "mig" in gpu.labels) for gpu in sorted(found, key=lambda gpu: gpu.uuid)] == [
        ("0", False), ("1", False),
    ]  # fmt: skip


def test_an_endpoint_is_host_port_and_path() -> None:
    assert endpoint("http://a:1/dcgm/metrics") == "a:1/dcgm" and endpoint("pynvml://localhost") == "localhost"
