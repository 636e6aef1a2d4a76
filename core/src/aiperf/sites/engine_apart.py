"""A site engine whose code runs in a process of its own, as the run sees it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from aiperf import environment
from aiperf.errors import AiperfError
from aiperf.processes.local import SideProcess, fate
from aiperf.registry.third_party import made
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.engine import Shard, SiteEngine, SiteStart
from aiperf.sdk.options import EncodedOptions
from aiperf.sites.engine_process import (
    Answer,
    AskAddress,
    AskHost,
    EndSite,
    Order,
    StartSite,
    decode_reply,
    encode_order,
)

_KILL_S, _END_S, _LOOK_S = 2.0, 5.0, 0.1


class EngineApart(SiteEngine[Any]):
    """The engine of *ref* in a process of its own, which may hang or die without the run.

    *options*: its own, None where it declares none.  *log*: for what its process prints.  A command whose process is gone has
    ended with 1, and its log says so; one that can't be killed within 2 s is given up.
    """

    def __init__(self, ref: PluginRef, options: EncodedOptions | None, log: Path) -> None:
        super().__init__(None if options is None else options.decoded())
        self._ref, self._encoded, self._log = ref, options, log
        self._process: SideProcess | None = None
        self._host: str | None = None
        self._questions = 0
        self._answers: dict[int, Answer] = {}
        self._codes: dict[int, int] = {}
        self._logs: list[Path] = []

    @property
    def pid(self) -> int | None:
        """The number of its process; None before it starts, and behind its end."""
        return None if self._process is None else self._process.pid

    def names(self) -> Sequence[str]:
        engine: SiteEngine = made(self._ref, self.options)
        return engine.names()

    def host(self) -> str:
        if self._host is None:
            self._process = SideProcess("aiperf.sites.engine_process", log=self._log, secrets=True)
            self.send(AskHost(self._ref, self._encoded))
            self._host = self._answer(0, "where the run listens")
        return self._host

    def address(self, index: int, port: int) -> str:
        self.host()
        self._questions += 1
        self.send(AskAddress(self._questions, index, port))
        return self._answer(self._questions, f"where site {index} connects")

    def start(self, start: SiteStart) -> Shard:
        self.host()
        number = len(self._logs)
        self._logs.append(start.log)
        self.send(StartSite(number, replace(start, log=start.log.absolute())))
        return CommandApart(self, number)

    def send(self, order: Order) -> None:
        if self._process is not None:
            self._process.send_encoded(encode_order(order) + b"\n")

    def code(self, number: int, wait_s: float = 0.0) -> int | None:
        """The exit code of a command, None while it runs; waits up to *wait_s* for it."""
        until_s = time.monotonic() + wait_s
        self._receive(0.0)
        while number not in self._codes and (left_s := until_s - time.monotonic()) > 0:
            self._receive(min(left_s, _LOOK_S))
        return self._codes.get(number)

    def give_up(self, number: int) -> None:
        """Nothing is heard of the command any more."""
        self._codes.setdefault(number, 1)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(0.0 if self._host is None else _END_S)
            process.close()
        for number in range(len(self._logs)):
            self.give_up(number)

    def _answer(self, number: int, what: str) -> str:
        """What the engine says to a question.

        Raises:
            AiperfError: Its own one; or there is none: its process has ended, or does not answer in time.
        """
        until_s = time.monotonic() + environment.plugin_s()
        while number not in self._answers and not self._over and time.monotonic() < until_s:
            self._receive(_LOOK_S)
        answer = self._answers.pop(number, None) or self._no_answer(number, what)
        if answer.refused:
            raise AiperfError(answer.text, *answer.hints)
        return answer.text

    @property
    def _over(self) -> bool:
        return self._process is None or self._process.ended_replies

    def _no_answer(self, number: int, what: str) -> Answer:
        if self._over:
            fallen = "has ended" if self._process is None else fate(self._process.wait(_LOOK_S))
            why, hint = f"the process of {self._ref} {fallen} before it said {what}", f"{self._log} has what it printed"
        else:
            why = f"{self._ref} does not say within {environment.plugin_s():g} s {what}"
            hint = "AIPERF_PLUGIN_TIMEOUT=SECONDS gives it more time"
        return Answer(number, why, (hint,), refused=True)

    def _receive(self, wait_s: float) -> None:
        if self._process is None:
            return
        _ = self._process.backlogged  # what did not fit into the pipe follows
        for reply in map(decode_reply, self._process.receive(wait_s)):
            if isinstance(reply, Answer):
                self._answers[reply.number] = reply
            else:
                self._codes.setdefault(reply.number, reply.code)
        if self._process.ended_replies:
            for number in {*range(len(self._logs))} - {*self._codes}:
                with self._logs[number].open("a") as log:
                    log.write(f"the process of {self._ref} {fate(self._process.wait(_LOOK_S))}\n")
                self.give_up(number)


class CommandApart(Shard):
    """The command of a site."""

    def __init__(self, engine: EngineApart, number: int) -> None:
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
            if self.wait(_KILL_S) is None:
                self._engine.give_up(self._number)
