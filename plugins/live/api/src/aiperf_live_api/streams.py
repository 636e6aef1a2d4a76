"""Events to clients that read at their own pace: each has a queue of 256, which loses the oldest and says how many."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from msgspec import Struct

MOST_EVENTS, MOST_CLIENTS = 256, 100


class StreamEvent(Struct, frozen=True):
    """kind: of the event.  data: its JSON, encoded once for all clients."""

    kind: str
    data: bytes
    number: int


class Client:
    """One reader of events."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._queue: deque[StreamEvent] = deque(maxlen=most)
        self._come = asyncio.Event()
        self._over = False
        self.lost = 0
        """Events that were dropped since the last that was read."""

    def put(self, event: StreamEvent) -> None:
        if len(self._queue) == self._queue.maxlen:
            self.lost += 1
        self._queue.append(event)
        self._come.set()

    def end(self) -> None:
        """No event follows those that wait."""
        self._over = True
        self._come.set()

    async def next(self, patience_s: float) -> StreamEvent | None:
        """The next event; None where none comes in that time, or none follows: see :attr:`over`."""
        if not self._queue and not self._over:
            self._come.clear()
            try:
                await asyncio.wait_for(self._come.wait(), patience_s)
            except TimeoutError:
                return None
        return self._queue.popleft() if self._queue else None

    @property
    def over(self) -> bool:
        return self._over and not self._queue

    def taken(self) -> int:
        """How many events were lost since the last call."""
        lost, self.lost = self.lost, 0
        return lost


class Streams:
    """The clients of a board."""

    def __init__(self, most: int = MOST_CLIENTS) -> None:
        self.most = most
        self._clients: set[Client] = set()
        self._number = 0

    def __bool__(self) -> bool:
        """Whether anybody reads."""
        return bool(self._clients)

    @property
    def full(self) -> bool:
        return len(self._clients) >= self.most

    def join(self) -> Client:
        client = Client()
        self._clients.add(client)
        return client

    def leave(self, client: Client) -> None:
        self._clients.discard(client)

    def event(self, kind: str, data: bytes) -> StreamEvent:
        self._number += 1
        return StreamEvent(kind, data, self._number)

    def send(self, kind: str, data: bytes) -> None:
        """Queue an event for every client."""
        event = self.event(kind, data)
        for client in self._clients:
            client.put(event)

    def end(self) -> None:
        """Let every client go, once it has read what waits."""
        for client in self._clients:
            client.end()


async def events(client: Client, streams: Streams, patience_s: float) -> AsyncIterator[StreamEvent | None]:
    """The events of a client until there are no more; None every *patience_s* without one.  Losses are an event, too."""
    while not client.over:
        event = await client.next(patience_s)
        if lost := client.taken():
            yield streams.event("lost", b'{"events":%d}' % lost)
        if event is not None or not client.over:
            yield event


__all__ = ["MOST_CLIENTS", "MOST_EVENTS", "Client", "StreamEvent", "Streams", "events"]
