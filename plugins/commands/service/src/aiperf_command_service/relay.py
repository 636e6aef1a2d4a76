"""Answers of the API of a run under way, passed on; at most a hundred of them are streams."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import aiohttp
from aiohttp import hdrs, web
from aiperf_pages.guard import Refusal

MOST_STREAMS = 100
ALIVE_S = 15.0
_ANSWER_S, _SILENT_S = 30.0, 4 * ALIVE_S
"""Longest time without a byte of an answer, and of a stream, which says every 15 s that it is there."""
_ASKED = (hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.IF_NONE_MATCH, "Last-Event-ID", hdrs.RANGE)
_ANSWERED = (
    hdrs.CONTENT_TYPE, hdrs.CONTENT_ENCODING, hdrs.ETAG, hdrs.CONTENT_DISPOSITION, hdrs.CACHE_CONTROL, hdrs.VARY, hdrs.ALLOW,
    hdrs.CONTENT_RANGE, hdrs.ACCEPT_RANGES, hdrs.LAST_MODIFIED, hdrs.RETRY_AFTER, hdrs.UPGRADE,
)  # fmt: skip
"""Headers that go to the run, and come from it."""


def _patience(url: str) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=_SILENT_S if url.endswith("/events") else _ANSWER_S)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Faults of the connection to a run, as refusals; those of the client's own pass."""
    try:
        yield
    except ConnectionResetError:
        raise
    except TimeoutError as error:
        raise Refusal(503, "the run does not answer; ask again, or DELETE it", {"Retry-After": "5"}) from error
    except aiohttp.ClientError as error:
        raise Refusal(503, "the run has just ended; ask again", {"Retry-After": "1"}) from error


class Relay:
    """Asks runs under way by *client*."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client
        self._streams = 0

    @contextlib.contextmanager
    def place(self, url: str) -> Iterator[None]:
        """A place among the streams, where the URL is one.

        Raises:
            Refusal: There is none.
        """
        count = int(url.endswith(("/events", "/ws")))
        if count and self._streams >= MOST_STREAMS:
            raise Refusal(503, f"{MOST_STREAMS} streams are open, which is the most; close one", {"Retry-After": "5"})
        self._streams += count
        try:
            yield
        finally:
            self._streams -= count

    async def passed(self, request: web.Request, url: str, token: str) -> web.StreamResponse:
        """The run's own answer.

        Raises:
            Refusal: 503: there is no place, the run has just ended, or it does not answer.
        """
        if request.headers.get(hdrs.UPGRADE, "").lower() == "websocket":
            return await self.socket(request, url, token)
        headers = {name: request.headers[name] for name in _ASKED if name in request.headers}
        headers[hdrs.AUTHORIZATION] = f"Bearer {token}"
        with self.place(url), _told():
            async with self._client.request(
                request.method, url, params=request.query, headers=headers, timeout=_patience(url), allow_redirects=False
            ) as answer:
                given = {name: answer.headers[name] for name in _ANSWERED if name in answer.headers}
                response = web.StreamResponse(status=answer.status, headers=given)
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                await response.write_eof()
                return response

    async def socket(self, request: web.Request, url: str, token: str) -> web.StreamResponse:
        """A WebSocket of the run's.

        Raises:
            Refusal: 400: the request is no WebSocket's; 503 as :meth:`passed`.
        """
        ours = web.WebSocketResponse(heartbeat=ALIVE_S, max_msg_size=1 << 16)
        if not ours.can_prepare(request).ok:
            raise Refusal(400, "this is no request of a WebSocket: it has Connection, Sec-WebSocket-Version: 13 and a key")
        with self.place("/ws"), _told():
            headers = {hdrs.AUTHORIZATION: f"Bearer {token}"}
            async with self._client.ws_connect(url.replace("http://", "ws://", 1), headers=headers, max_msg_size=0) as theirs:
                await ours.prepare(request)

                async def back() -> None:
                    async for message in ours:
                        if message.type is aiohttp.WSMsgType.TEXT:
                            await theirs.send_str(message.data)
                    await theirs.close()

                listening = asyncio.create_task(back())
                try:
                    async for message in theirs:
                        if message.type is aiohttp.WSMsgType.TEXT:
                            await ours.send_str(message.data)
                finally:
                    listening.cancel()
            await ours.close(code=theirs.close_code or aiohttp.WSCloseCode.OK)
            return ours

    async def events(self, request: web.Request, response: web.StreamResponse, url: str, token: str) -> None:
        headers = _plain(token)
        if "Last-Event-ID" in request.headers:
            headers["Last-Event-ID"] = request.headers["Last-Event-ID"]
        try:
            async with self._client.get(url, headers=headers, timeout=_patience(url)) as answer:
                async for piece in answer.content.iter_any():
                    await response.write(piece)
        except ConnectionResetError:
            raise  # of the client
        except (aiohttp.ClientError, TimeoutError):
            return  # the run has ended: its state follows

    async def text(self, url: str, token: str) -> str:
        """What a page of text has; "" where the run has just ended."""
        try:
            async with self._client.get(url, headers=_plain(token), timeout=aiohttp.ClientTimeout(total=2)) as answer:
                return await answer.text() if answer.status == 200 else ""
        except (aiohttp.ClientError, TimeoutError):
            return ""


def _plain(token: str) -> dict[str, str]:
    """Headers of a request whose answer is read here: the client leaves compressed ones as they are."""
    return {hdrs.AUTHORIZATION: f"Bearer {token}", hdrs.ACCEPT_ENCODING: "identity"}


__all__ = ["ALIVE_S", "Relay"]
