"""The process that is connected to Ray: an actor for each site, on nodes that a placement group chooses.

python -m aiperf_engine_ray.link REPLIES
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from typing import Any

from aiperf.parts.processes import Inbox, ignore_endings, leave, send_reply

from aiperf_engine_ray.messages import Connect, Connected, EndSite, SiteEnded, StartSite, decode_order

_REACH_S, _AGAIN_S = 5.0, 0.5


class ClusterLink:
    """*replies*: the pipe to the engine."""

    def __init__(self, replies: int) -> None:
        self._replies, self._connect = replies, Connect("", 0, 0.0)
        self._group: Any = None
        self._actors: dict[int, Any] = {}
        self._ends: dict[int, EndSite] = {}

    def take(self, line: bytes) -> None:
        match decode_order(line):
            case Connect() as connect:
                self._connect = connect
                send_reply(self._replies, connected(connect.address))
            case StartSite() as start:
                self._group = self._group or self._placed(start.cpus)
                threading.Thread(target=self._serve, args=(start,), daemon=True).start()
            case EndSite(number, kill) as end:
                self._ends[number] = end
                if number in self._actors:
                    self._actors[number].end.remote(kill)
                elif kill:  # it has no command yet, and ends as soon as it has
                    send_reply(self._replies, SiteEnded(number, -signal.SIGKILL))

    def _placed(self, cpus: int) -> Any:
        """The processors of all sites, on as many nodes as there are."""
        from ray.util.placement_group import placement_group

        return placement_group([{"CPU": cpus}] * self._connect.sites, strategy="SPREAD")

    def _serve(self, start: StartSite) -> None:
        """From the placing of a site to the end of its command; in a thread."""
        code = 1
        with open(start.log, "ab", buffering=0) as log:  # noqa: PTH123
            try:
                code = self._watch(start, log)
            except Exception as error:  # noqa: BLE001  # Ray's, and those that came from the node
                log.write(f"{_sentence(error)}\n".encode())
        send_reply(self._replies, SiteEnded(start.number, code))

    def _watch(self, start: StartSite, log: Any) -> int:
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        from aiperf_engine_ray.actor import SiteActor

        if not self._group.wait(self._connect.wait_s):
            raise RuntimeError(self._short_of(start.cpus))
        place = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=start.index)
        actor = ray.remote(SiteActor).options(num_cpus=start.cpus, scheduling_strategy=place).remote()
        try:
            return self._follow(actor, start, log)
        finally:
            ray.kill(actor)  # its processors are free for another

    def _follow(self, actor: Any, start: StartSite, log: Any) -> int:
        import ray
        from nacl.public import PublicKey, SealedBox

        node, key = ray.get(actor.where.remote())
        log.write(f"at the node {node}\n".encode())
        ray.get(actor.start.remote(start.words, SealedBox(PublicKey(key)).encrypt(start.input)))
        self._actors[start.number] = actor
        if start.number in self._ends:
            actor.end.remote(self._ends[start.number].kill)
        offset = 0
        while True:
            try:
                said, code = ray.get(actor.look.remote(offset))
            except ray.exceptions.ActorUnavailableError:  # a broken connection, or a dead node: Ray finds out which
                time.sleep(_AGAIN_S)
                continue
            log.write(said)
            offset += len(said)
            if code is not None:
                ray.get(actor.close.remote())
                return int(code)

    def _short_of(self, cpus: int) -> str:
        import ray

        free, has = (round(resources.get("CPU", 0)) for resources in (ray.available_resources(), ray.cluster_resources()))
        nodes = sum(node["Alive"] for node in ray.nodes())
        return (
            f"the cluster has no room for {self._connect.sites} sites of {cpus} CPUs: {free} of {has} are free "
            f"on {nodes} nodes; use fewer --ray-sites or --workers, or a longer --ray-wait"
        )


def connected(address: str) -> Connected:
    """Connect this process to the cluster."""
    # Ray 2.60 can't be imported where this package is, but not the library of ROCm: it expects an ImportError.
    sys.modules["amdsmi"] = None  # type: ignore[assignment]
    host, _, port = address.rpartition(":")
    try:
        import ray

        if host not in ("", "localhost", "127.0.0.1"):  # Ray takes these for this machine's address in the cluster
            socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
        # Ray adds the directory of the program and the working directory to the module paths of its actors.
        os.chdir("/")
        sys.argv = [""]
        ray.init(address=address, log_to_driver=False, logging_level="CRITICAL")
        return Connected(ray.util.get_node_ip_address())
    except ImportError as error:
        return Connected("", (f"can't be used: {error}", "install Ray: pip install 'aiperf-suite[ray]'"))
    except Exception as error:  # noqa: BLE001  # Ray's
        versions = re.findall(r"Ray: (\S+)\s+Python: (\S+)", str(error))
        if len(versions) == 2:
            theirs, ours = (f"Ray {found[0]} and Python {found[1]}" for found in versions)
            return Connected("", (f"has {theirs}, and this machine {ours}", "install the same versions"))
        return Connected("", (f"can't be reached: {_sentence(error)}", "see whether it runs: ray status"))


def _sentence(error: Exception) -> str:
    """What an error says, in one line; of a dead actor without the numbers that Ray has for it."""
    if "its node has died" in str(error):
        return "its node has died"
    if (missing := re.search(r"ip=([^,]+),.*No module named '(\w+)", str(error), re.DOTALL)) is not None:
        package = missing[2].replace("_", "-")
        return f"the node {missing[1]} has no {package}: install the same packages there"
    return " ".join(re.sub(r"\n\s+\w+: \S+|\x1b\[\d+m", "", str(error)).split()).removesuffix(".")


def main() -> None:
    ignore_endings()
    inbox = Inbox(ClusterLink(int(sys.argv[1])).take)
    while not inbox.over:
        inbox.wait(None)
    leave(0)


if __name__ == "__main__":
    main()
