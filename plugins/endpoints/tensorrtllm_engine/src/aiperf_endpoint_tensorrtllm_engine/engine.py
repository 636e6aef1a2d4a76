"""The transport to an engine in this process.  Of the library it uses what is published of ``LLM`` and ``SamplingParams``."""

from __future__ import annotations

import asyncio
import inspect
from time import monotonic_ns
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import REFUSED, REUSED, Exchange, Sink, TransportSettings

from aiperf_endpoint_tensorrtllm_engine import OUTPUT_LEN, Ids

_TENSORS = ("input_ids", "input_lengths", "request_output_len", "streaming", "min_length", "end_id", "pad_id")
_encode = msgspec.json.Encoder().encode


class BadRequest(ValueError):  # noqa: N818  # what the request is
    """The engine has no such input."""


class EngineTransport:
    """Loads one engine, and gives it requests.  Stamps are those of this process: when it has the ids."""

    stamps = "read"

    def __init__(self, settings: TransportSettings, sink: Sink, loop: asyncio.AbstractEventLoop) -> None:
        self.settings, self.sink, self.loop = settings, sink, loop
        self._engine: Any = None
        self._trouble: ErrorDetails | None = ErrorDetails("the engine is not loaded", type="EngineError", cause=REFUSED)
        self._parameters: Any = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._results: dict[int, Any] = {}

    @property
    def statistics(self) -> dict[str, int]:
        return {"stamps_missing": 0, "coalesced_reads": 0, "opened": int(self._engine is not None)}

    async def open(self) -> None:
        """Load the engine, in a thread: that takes minutes, and the run goes on hearing of this process."""
        url = self.settings.urls[0]
        try:
            import tensorrt_llm

            self._parameters = tensorrt_llm.SamplingParams
            directory = unquote(urlsplit(url).path)
            self._engine = await self.loop.run_in_executor(None, lambda: tensorrt_llm.LLM(model=directory))
            self._trouble = None
        except Exception as error:  # noqa: BLE001  # whatever the library raises is the error of every request
            self._trouble = ErrorDetails(f"{url} can't be loaded: {error}", type=type(error).__name__, cause=REFUSED)

    async def warm(self, connections: int) -> None:
        """There are no connections."""

    def send(self, exchange: Exchange) -> None:
        if self._trouble is not None:
            self.loop.call_soon(self._refuse, exchange, self._trouble)
            return
        exchange.flags |= REUSED
        exchange.connection = self
        exchange.connected_ns = exchange.sent_ns = monotonic_ns()
        self._tasks[exchange.request] = self.loop.create_task(self._generate(exchange))

    def _refuse(self, exchange: Exchange, error: ErrorDetails) -> None:
        if exchange.connection is None and exchange.request not in self._tasks:
            self.sink.done(exchange, error)

    async def _generate(self, exchange: Exchange) -> None:
        error: ErrorDetails | None = None
        try:
            ids, parameters = self._asked(exchange.body)
            result = self._results[exchange.request] = self._engine.generate_async(ids, parameters, streaming=True)
            exchange.sent_end_ns = monotonic_ns()
            if exchange.armed:
                self.sink.written(exchange)
            seen = 0
            async for item in result:
                read_ns = monotonic_ns()
                output = item.outputs[0]
                new = list(output.token_ids[seen:])
                seen += len(new)
                if not exchange.status:
                    exchange.status, exchange.ack_ns = 200, read_ns
                finish = (output.finish_reason or "stop") if item.finished else None
                line = _encode(Ids(new, len(ids), finish))
                exchange.bytes_received += len(line)
                if exchange.bytes_received > self.settings.most_bytes:
                    result.abort()
                    limit = f"the answer is longer than {self.settings.most_bytes:,} bytes"
                    error = ErrorDetails(limit, type="AnswerTooLong")
                    break
                self.sink.message(exchange, line, 0, read_ns)
        except Exception as trouble:  # noqa: BLE001  # whatever the library raises is this request's error
            error = ErrorDetails(str(trouble) or repr(trouble), type=type(trouble).__name__)
        else:
            if error is None and not exchange.status:
                error = ErrorDetails("the engine gave no answer", type="EngineError")
        self._forget(exchange)
        self.sink.done(exchange, error)

    def _asked(self, body: bytes) -> tuple[list[int], Any]:
        """The ids of a request, and its parameters in the library's type.

        Raises:
            BadRequest: It is no request to an engine, or names a parameter that the library doesn't have.
        """
        try:
            asked = msgspec.json.decode(body, type=dict[str, Any])
            ids = [int(each) for each in asked.get("input_ids", ())]
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError, ValueError) as error:
            raise BadRequest(f"no request to an engine: {error}") from error
        given = {name: value for name, value in asked.items() if name not in _TENSORS}
        known = [name for name in inspect.signature(self._parameters).parameters if name != "self"]
        if foreign := [name for name in given if name not in known]:
            raise BadRequest(f"SamplingParams has no {', '.join(foreign)}; it has {', '.join(known)}")
        for name, tensor in (("min_tokens", "min_length"), ("end_id", "end_id"), ("pad_id", "pad_id")):
            if tensor in asked:
                given[name] = asked[tensor][0] if isinstance(asked[tensor], list) else asked[tensor]
        most = (asked.get("request_output_len") or [OUTPUT_LEN])[0]
        return ids, self._parameters(**{"max_tokens": most, "detokenize": False, **given})

    def _forget(self, exchange: Exchange) -> None:
        self._tasks.pop(exchange.request, None)
        self._results.pop(exchange.request, None)
        exchange.connection = None

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        exchange.connection = self  # a refusal that waits is over, too
        if (result := self._results.get(exchange.request)) is not None:
            result.abort()
        if (task := self._tasks.get(exchange.request)) is not None:
            task.cancel()
        self._tasks.pop(exchange.request, None)
        self._results.pop(exchange.request, None)
        self.sink.done(exchange, error)

    async def close(self) -> None:
        for result in list(self._results.values()):
            result.abort()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        engine, self._engine = self._engine, None
        if engine is not None:
            await self.loop.run_in_executor(None, engine.shutdown)


__all__ = ["EngineTransport"]
