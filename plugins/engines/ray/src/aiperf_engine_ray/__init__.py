"""Sites on the nodes of a Ray cluster: an actor for each, which starts its command and watches it."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from aiperf import AiperfError, ConfigError, Shard, SiteEngine, SiteStart

from aiperf_engine_ray.options import RayOptions

_REACH_S = 5.0


class Ray(SiteEngine[RayOptions]):
    """Ray ends its driver where it loses the cluster, and the run must go on: the driver has a process of its own."""

    own_process = True

    def __init__(self, options: RayOptions) -> None:
        super().__init__(options)
        self._lock = Lock()
        self._group: Any = None

    def names(self) -> Sequence[str]:
        if self.options.sites is None:
            raise ConfigError("nothing says how many sites the Ray cluster gets", "add --ray-sites N")
        if re.fullmatch(r"auto|([^\s/:]+|\[[0-9a-fA-F:]+\]):\d{1,5}", self.options.address) is None:
            hint = "write auto or HOST:PORT, and run aiperf on a machine of the cluster"
            raise ConfigError(f"--ray-address {self.options.address!r} is no address of a Ray cluster", hint)
        return [f"ray-{index}" for index in range(self.options.sites)]

    def host(self) -> str:
        # Ray 2.60 can't be imported where this package is, but not the library of ROCm: it expects an ImportError.
        sys.modules["amdsmi"] = None  # type: ignore[assignment]
        # Ray adds the directory of the program and the working directory to the module paths of its actors.
        os.chdir("/")
        sys.argv = [""]
        host, _, port = self.options.address.rpartition(":")
        cluster = f"the Ray cluster {self.options.address}"
        try:
            import ray

            if host not in ("", "localhost", "127.0.0.1"):  # Ray takes these for this machine's address in the cluster
                socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
            if not ray.is_initialized():
                ray.init(address=self.options.address, log_to_driver=False, logging_level="CRITICAL")
            return str(ray.util.get_node_ip_address())
        except ImportError as error:
            raise AiperfError(f"{cluster} can't be used: {error}", "install Ray: pip install 'aiperf-suite[ray]'") from error
        except Exception as error:
            versions = re.findall(r"Ray: (\S+)\s+Python: (\S+)", str(error))
            if len(versions) == 2:
                theirs, ours = (f"Ray {found[0]} and Python {found[1]}" for found in versions)
                raise AiperfError(f"{cluster} has {theirs}, and this machine {ours}", "install the same versions") from error
            raise AiperfError(f"{cluster} can't be reached: {_sentence(error)}", "see whether it runs: ray status") from error

    def start(self, start: SiteStart) -> Shard:
        from nacl.public import PublicKey, SealedBox
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        from aiperf_engine_ray.actor import SiteActor

        cpus = start.workers + start.reducers
        place = PlacementGroupSchedulingStrategy(self._placed(cpus), placement_group_bundle_index=start.index)
        with _ray() as ray:
            actor = ray.remote(SiteActor).options(num_cpus=cpus, scheduling_strategy=place).remote()
            node, key = ray.get(actor.where.remote())
            with start.log.open("a") as log:
                log.write(f"at the node {node}\n")
            ray.get(actor.start.remote(start.words, SealedBox(PublicKey(key)).encrypt(start.input)))
        return RaySite(actor, start)

    def _placed(self, cpus: int) -> Any:
        """The processors of all sites, on as many nodes as there are."""
        import ray
        from ray.util.placement_group import placement_group

        with self._lock:
            self._group = self._group or placement_group([{"CPU": cpus}] * len(self.names()), strategy="SPREAD")
        if self._group.wait(self.options.wait_s):
            return self._group
        free, has = (round(resources.get("CPU", 0)) for resources in (ray.available_resources(), ray.cluster_resources()))
        nodes = sum(node["Alive"] for node in ray.nodes())
        raise AiperfError(
            f"the cluster has no room for {self.options.sites} sites of {cpus} CPUs: {free} of {has} are free on {nodes} nodes",
            "use fewer --ray-sites or --workers, or a longer --ray-wait",
        )


class RaySite(Shard):
    """The command of a site."""

    def __init__(self, actor: Any, start: SiteStart) -> None:
        self._actor, self._log, self._offset = actor, start.log, 0

    def poll(self) -> int | None:
        return self.wait(0.0)

    def wait(self, seconds: float) -> int | None:
        with _ray() as ray:
            try:
                said, code = ray.get(self._actor.look.remote(self._offset, seconds))
            except ray.exceptions.ActorUnavailableError:  # a broken connection, or a dead node: Ray finds out which
                time.sleep(seconds)
                return None
        with self._log.open("ab") as log:
            log.write(said)
        self._offset += len(said)
        return None if code is None else int(code)

    def let_go(self) -> None:
        self._actor.end.remote(False)

    def kill(self) -> None:
        with _ray() as ray:
            ray.get(self._actor.end.remote(True))


@contextmanager
def _ray() -> Iterator[Any]:
    """Ray, whose errors become sentences."""
    import ray

    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise AiperfError(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    """What an error says, in one line; of a dead actor without the numbers that Ray has for it."""
    if "its node has died" in str(error):
        return "its node has died"
    if (missing := re.search(r"ip=([^,]+),.*No module named '(\w+)", str(error), re.DOTALL)) is not None:
        package = missing[2].replace("_", "-")
        return f"the node {missing[1]} has no {package}: install the same packages there"
    return " ".join(re.sub(r"\n\s+\w+: \S+|\x1b\[\d+m", "", str(error)).split()).removesuffix(".")


__all__ = ["Ray"]
