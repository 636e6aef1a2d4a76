"""Sites on the nodes of a Ray cluster: an actor for each, which starts its command and watches it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from aiperf import AiperfError, ConfigError, Shard, SiteEngine, SiteStart
from aiperf.parts.processes import SideProcess, fate

from aiperf_engine_ray.messages import Connect, Connected, EndSite, StartSite, decode_reply
from aiperf_engine_ray.options import RayOptions

_CONNECT_S, _KILL_S, _END_S, _LOOK_S = 30.0, 2.0, 5.0, 0.1


class Ray(SiteEngine[RayOptions]):
    """What speaks to Ray is a process of its own: Ray ends its driver where it loses the cluster, and the run must go on."""

    def __init__(self, options: RayOptions) -> None:
        super().__init__(options)
        self._link: SideProcess | None = None
        self._connected = Connected()
        self._codes: dict[int, int] = {}
        self._logs: list[Path] = []

    def names(self) -> Sequence[str]:
        if self.options.sites is None:
            raise ConfigError("nothing says how many sites the Ray cluster gets", "add --ray-sites N")
        if re.fullmatch(r"auto|([^\s/:]+|\[[0-9a-fA-F:]+\]):\d{1,5}", self.options.address) is None:
            hint = "write auto or HOST:PORT, and run aiperf on a machine of the cluster"
            raise ConfigError(f"--ray-address {self.options.address!r} is no address of a Ray cluster", hint)
        return [f"ray-{index}" for index in range(self.options.sites)]

    def host(self) -> str:
        if self._link is None:
            self._link = SideProcess("aiperf_engine_ray.link", log=Path(os.devnull), secrets=True)
            self._link.send(Connect(self.options.address, self.options.sites or 1, self.options.wait_s))
            until_s = time.monotonic() + _CONNECT_S
            while self._connected == Connected() and not self._link.ended_replies and time.monotonic() < until_s:
                self._receive(_LOOK_S)
            if not self._connected.host:
                late = f"did not answer within {_CONNECT_S:g} s", "see whether it runs: ray status"
                why, hint = self._connected.refusal if self._connected.refusal[0] else late
                self._end(0.0)
                raise AiperfError(f"the Ray cluster {self.options.address} {why}", hint)
        return self._connected.host

    def start(self, start: SiteStart) -> RaySite:
        self.host()
        number, cpus = len(self._logs), start.workers + start.reducers
        self._logs.append(start.log)
        self.send(StartSite(number, start.index, start.words, start.input, str(start.log.absolute()), cpus))
        return RaySite(self, number)

    def send(self, order: StartSite | EndSite) -> None:
        if self._link is not None:
            self._link.send(order)

    def code(self, number: int, wait_s: float = 0.0) -> int | None:
        """The exit code of a command, None while it runs; waits up to *wait_s* for it."""
        until_s = time.monotonic() + wait_s
        self._receive(0.0)
        if self._link is None:
            self.give_up(number)
        while number not in self._codes and (left_s := until_s - time.monotonic()) > 0:
            self._receive(min(left_s, _LOOK_S))
        return self._codes.get(number)

    def give_up(self, number: int) -> None:
        """Nothing is heard of the command any more."""
        self._codes.setdefault(number, 1)

    def close(self) -> None:
        self._end(_END_S)

    def _end(self, patience_s: float) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.end(patience_s)
            link.close()

    def _receive(self, wait_s: float) -> None:
        if self._link is None:
            return
        _ = self._link.backlogged  # what did not fit into the pipe follows
        for reply in map(decode_reply, self._link.receive(wait_s)):
            if isinstance(reply, Connected):
                self._connected = reply
            else:
                self._codes.setdefault(reply.number, reply.code)
        if self._link.ended_replies:
            for number in {*range(len(self._logs))} - {*self._codes}:
                with self._logs[number].open("a") as log:
                    log.write(f"the process that is connected to Ray {fate(self._link.wait(_LOOK_S))}\n")
                self.give_up(number)


class RaySite(Shard):
    """The command of a site."""

    def __init__(self, engine: Ray, number: int) -> None:
        self._engine, self._number = engine, number

    def poll(self) -> int | None:
        return self._engine.code(self._number)

    def wait(self, seconds: float) -> int | None:
        return self._engine.code(self._number, seconds)

    def let_go(self) -> None:
        self._engine.send(EndSite(self._number, kill=False))

    def kill(self) -> None:
        if self.poll() is None:
            self._engine.send(EndSite(self._number, kill=True))
            if self.wait(_KILL_S) is None:  # its node is gone, or can't be reached
                self._engine.give_up(self._number)


__all__ = ["Ray"]
