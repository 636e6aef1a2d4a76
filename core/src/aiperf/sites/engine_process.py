"""The process of a site engine that has one of its own: it calls the engine as the run asks.

    python -P -m aiperf.sites.engine_process REPLIES

``host`` and ``address`` run in the main thread.  ``start`` and all methods of the command that it gives run in one thread for
each command: what waits for one site delays no other.  The process ends at once when the run is gone.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TypeAlias

import msgspec
from msgspec import Struct

from aiperf.errors import AiperfError
from aiperf.processes.local import Inbox, end_without_reader, ignore_endings, send_reply
from aiperf.registry.imports import leave
from aiperf.registry.third_party import blamed, made, why
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.engine import Shard, SiteEngine, SiteStart
from aiperf.sdk.options import EncodedOptions

_LOOK_S = 0.2
"""A command's thread looks for orders so often."""


class AskHost(Struct, frozen=True, tag=True):
    """The first message: make the engine, and say where the run listens."""

    engine: PluginRef
    options: EncodedOptions | None


class AskAddress(Struct, frozen=True, tag=True):
    """number: of the question, from 1 on; that of AskHost is 0."""

    number: int
    index: int
    port: int


class StartSite(Struct, frozen=True, tag=True):
    """Start a command.  number: of the start."""

    number: int
    start: SiteStart


class EndSite(Struct, frozen=True, tag=True):
    """Let a command go, or *kill* it."""

    number: int
    kill: bool


class Answer(Struct, frozen=True, tag=True):
    """What ``host`` or ``address`` gave; or, with *refused*, the sentence of its error."""

    number: int
    text: str
    hints: tuple[str, ...] = ()
    refused: bool = False


class SiteEnded(Struct, frozen=True, tag=True):
    number: int
    code: int


Order: TypeAlias = AskHost | AskAddress | StartSite | EndSite
encode_order = msgspec.json.Encoder(enc_hook=str).encode
decode_order = msgspec.json.Decoder(Order, dec_hook=lambda _, path: Path(path)).decode
decode_reply = msgspec.json.Decoder(Answer | SiteEnded).decode


class SiteCommand:
    """The command of a site, from its start to its end, in a thread of its own.  *ended*: is called with its exit code; the
    first call counts."""

    def __init__(self, engine: SiteEngine, start: SiteStart, ended: Callable[[int], object]) -> None:
        self._engine, self._start, self._ended = engine, start, ended
        self._kills: SimpleQueue[bool] = SimpleQueue()
        self._site: Shard | None = None
        Thread(target=self._serve, daemon=True).start()

    def end(self, kill: bool) -> None:
        if kill and self._site is None:  # it ends as soon as it has begun
            self._ended(-signal.SIGKILL)
        self._kills.put(kill)

    def _serve(self) -> None:
        try:
            self._site = self._engine.start(self._start)
            code = self._follow(self._site)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # code of a plugin
            with self._start.log.open("a") as log:
                log.write(f"{why(error)}\n")
            code = 1
        self._ended(code)

    def _follow(self, site: Shard) -> int:
        while (code := site.wait(_LOOK_S)) is None:
            try:
                if self._kills.get_nowait():
                    site.kill()
                else:
                    site.let_go()
            except Empty:
                continue
        return code


class EngineProcess:
    """*replies*: the pipe to the run."""

    def __init__(self, replies: int) -> None:
        self._replies, self._lock = replies, Lock()
        self._engine: SiteEngine | None = None
        self._commands: dict[int, SiteCommand] = {}

    def take(self, line: bytes) -> None:
        match decode_order(line):
            case AskHost(ref, options):
                self._who = ref
                self._answer(0, "can't say where the run listens", lambda: self._made(ref, options).host())
            case AskAddress(asked, index, port) if (engine := self._engine) is not None:
                self._answer(asked, "can't say where a site connects", lambda: engine.address(index, port))
            case StartSite(number, start) if self._engine is not None:
                self._commands[number] = SiteCommand(self._engine, start, lambda code: self._reply(SiteEnded(number, code)))
            case EndSite(number, kill) if number in self._commands:
                self._commands[number].end(kill)

    def _made(self, ref: PluginRef, options: EncodedOptions | None) -> SiteEngine:
        engine: SiteEngine = made(ref, None if options is None else options.decoded())
        self._engine = engine
        return engine

    def _answer(self, number: int, failing: str, ask: Callable[[], str]) -> None:
        try:
            with blamed(self._who, failing):
                self._reply(Answer(number, ask()))
        except AiperfError as error:
            self._reply(Answer(number, error.message, error.hints, refused=True))

    def _reply(self, reply: Answer | SiteEnded) -> None:
        with self._lock:
            send_reply(self._replies, reply)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()


def main(arguments: list[str]) -> int:
    (replies,) = map(int, arguments)
    ignore_endings()
    Thread(target=end_without_reader, args=[replies], daemon=True).start()
    process = EngineProcess(replies)
    inbox = Inbox(process.take)
    while not inbox.over:
        inbox.wait(None)
    process.close()
    return 0


if __name__ == "__main__":
    sys.exit(leave(main(sys.argv[1:])))
