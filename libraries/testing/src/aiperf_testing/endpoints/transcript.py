"""An endpoint with an answer of its server, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, ClassVar

import msgspec
from aiperf.sdk.asking import Reply
from aiperf.sdk.endpoint import Answered, Endpoint, Reader
from aiperf.sdk.model import Delta, ToolCall, Turn


class _ProbeTurn:
    """The endpoint's probe, where the contract has no turn of its own."""

    def __get__(self, instance: object, owner: type[OnTranscript]) -> Turn:
        probe = owner.endpoint.probe()
        assert isinstance(probe, Turn), f"probe gave {type(probe).__name__}, not Turn"
        return msgspec.structs.replace(probe, model="model", max_tokens=8, extra={"seed": 1})


class OnTranscript:
    """What an author gives, and how it is read; :class:`~aiperf_testing.EndpointContract` says what each attribute is."""

    endpoint: ClassVar[Endpoint]
    transcript: ClassVar[Sequence[bytes]]
    names: ClassVar[Sequence[str | None]] = ()
    stream: ClassVar[bytes | None] = None
    answer: ClassVar[str]
    usage: ClassVar[dict[str, Any] | None] = None
    numbers: ClassVar[dict[str, float] | None] = None
    whole: ClassVar[bytes | None] = None
    calling: ClassVar[Sequence[Sequence[bytes]]] = ()
    called: ClassVar[Sequence[ToolCall]] = ()
    followed: ClassVar[Sequence[Answered]] = ()
    drained: ClassVar[bytes] = b""
    replies: ClassVar[Sequence[Reply]] = ()
    ready: ClassVar[Sequence[Reply]] = ()
    silent: ClassVar[Sequence[bytes]] = ()
    garbage: ClassVar[Sequence[bytes]] = (b"<html>502 Bad Gateway</html>", b'{"unfinished":', b"\xff\xfe\x00", b"null", b"7")
    failure: ClassVar[bytes] = b'{"error":{"message":"busy","type":"overloaded","code":503}}'
    turn: ClassVar[Turn] = _ProbeTurn()  # type: ignore[assignment]

    def _text(self, deltas: list[Delta | None]) -> str:
        return "".join(delta.reasoning + delta.text + delta.tool for delta in deltas if delta is not None)

    def _named(self, events: Sequence[bytes]) -> list[tuple[bytes, str | None]]:
        # The names are asked first: a transcript that only the author has is not asked for where events have none.
        return list(zip(events, self.names if self.names and events is self.transcript else repeat(None), strict=False))

    def _read(self, *batches: Sequence[tuple[bytes, str | None]]) -> list[Delta | None]:
        """The Deltas of one answer, whose events come in batches, and that of its end where it has one."""
        reader, deltas = self.endpoint.reader(), list[Delta | None]()
        for batch in filter(None, batches):
            read = reader.feed([event for event, _ in batch], [name for _, name in batch])
            assert len(read) == len(batch), f"feed gave {len(read)} Deltas for {len(batch)} events"
            assert all(delta is None or isinstance(delta, Delta) for delta in read), f"feed gave {read!r:.200}"
            deltas += read
        last = reader.close()
        assert last is None or isinstance(last, Delta), f"close gave {last!r:.200}"
        return deltas if last is None else [*deltas, last]

    def _decoded(self, events: Sequence[bytes]) -> list[Delta | None]:
        return self._read(self._named(events))

    def _reader_at(self, at: int) -> Reader:
        """A reader that has read the transcript up to event *at*."""
        reader = self.endpoint.reader()
        for event, name in self._named(self.transcript)[:at]:
            reader.feed([event], [name])
        return reader
