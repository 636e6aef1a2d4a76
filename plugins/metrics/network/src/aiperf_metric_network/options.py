"""How the round trip of the network is known."""

from __future__ import annotations

from aiperf.sdk.options import Finite, Options, option

_GROUP = "Network latency"
DEFAULT_INTERVAL_S = 1.0


class NetworkOptions(Options):
    network_latency_automatic: bool = option("--network-latency-automatic", default=False, group=_GROUP,
        negative="--no-network-latency-automatic",
        place="network_latency.enabled",
        help="Measure the round trip to each server by connecting beside the load, and show latencies without it, too.")
    network_latency_mean: Finite | None = option("--network-latency-mean", group=_GROUP, metavar="MS", ge=0,
        place="network_latency.mean_ms",
        help="The round trip of the network where it is known; shows latencies without it, too.")
    network_latency_ping_interval: Finite | None = option("--network-latency-ping-interval", group=_GROUP, metavar="SECONDS",
        gt=0, le=3600, shown="1", place="network_latency.ping_interval",
        help="Time between two connections of --network-latency-automatic.")

    def problems(self, typed: dict[str, str]) -> list[str]:
        sentences = []
        automatic, mean = (typed.get(f"network_latency_{name}", "") for name in ("automatic", "mean"))
        if self.network_latency_automatic and automatic and mean and "-" in (automatic[0], mean[0]):
            sentences.append(f"{automatic} measures the round trip, and {mean} gives it\ndrop one of them")
        if automatic and mean and not self.network_latency_automatic:
            sentences.append(f"{automatic} is off, and {mean} gives the round trip\ndrop one of them")
        interval = typed.get("network_latency_ping_interval", "")
        if interval and not self.probing:
            sentences.append(f"{interval} is the time between two measurements, and nothing is measured\n"
                             "add --network-latency-automatic, or drop it")
        return sentences

    @property
    def fixed_ms(self) -> float | None:
        """The round trip that the user gave; None without one."""
        return self.network_latency_mean

    @property
    def probing(self) -> bool:
        """Whether the round trip is measured; not where a file has ``mean_ms`` beside ``enabled``, as the reference's have."""
        return self.network_latency_automatic and self.network_latency_mean is None

    @property
    def interval_s(self) -> float:
        return self.network_latency_ping_interval or DEFAULT_INTERVAL_S


__all__ = ["NetworkOptions"]
