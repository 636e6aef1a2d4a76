"""Exchanges of an endpoint's requests: what follows an answer, and answers whose bytes are thrown away.

:mod:`aiperf.sdk.endpoint` has these names, too.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aiperf.sdk.model import Delta, HttpRequest

DRAINED_START = 4096
"""Bytes that are kept of a drained answer, its first ones: formats have their headers there."""


class Answered(Struct, frozen=True):
    """A whole answer with a good status (2xx), for :meth:`Endpoint.follow`.

    number: of the exchange in its request, from 0.  headers: by names in small letters, of several the last.
    before: the request that it answers; None for that of ``encode``.  url: where that went.  state: that of the ``Follow``
    which asked for it.
    body: of a drained answer its first DRAINED_START bytes.
    """

    number: int
    status: int
    body: bytes
    headers: dict[str, str] = {}
    before: HttpRequest | None = None
    state: Any = None
    url: str = ""


class Follow(Struct, frozen=True):
    """The next exchange of a request, *after_s* seconds from now, to the same server: its path is below the base URL, or is a
    whole URL.

    0 is at once.  Any other wait is that of a poll, and is spread: it takes 0.6 to 1.4 times *after_s*, by the run's seed, so
    that requests which began together don't poll together.  Between two polls it is the time from start to start, though about
    a tenth of *after_s* from now at least.  Polls of nearly one time go out in one round, up to 2 ms sooner or later (a 32nd of
    *after_s* where that is less).

    keep: the answer behind which this follows is the request's, though others follow; the last one kept counts.
    drain: bytes of the next answer are counted and stamped, and not kept, as with ``HttpRequest.drain``.
    failure: type of the request's error where the next exchange fails; None leaves the one that any request would have.
    state: what ``follow`` finds as ``Answered.state`` behind the next answer.
    """

    request: HttpRequest
    after_s: float = 0.0
    keep: bool = False
    drain: bool = False
    failure: str | None = None
    state: Any = None


class Done(Struct, frozen=True):
    """No exchange follows.  The answer is the request's, unless an earlier one was kept."""


class Drained(Struct, frozen=True):
    """What :meth:`Endpoint.drained` says of an answer.

    delta: its content; None is none.  begins: number of bytes before the content (a format's header): the first content came
    with the read that brought a byte behind them.
    """

    delta: Delta | None = None
    begins: int = 0


__all__ = ["DRAINED_START", "Answered", "Done", "Drained", "Follow"]
