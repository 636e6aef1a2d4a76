"""The per-request file's lines, each with what the journal has of its request."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from aiperf import STREAMED, AiperfError, Target
from aiperf.parts.journal import DRAINED, OUTCOMES, Store, load_end, load_run
from aiperf.parts.segments import Observation, observations
from aiperf.sdk.errors import BadJournal, BadResponse
from aiperf.sdk.exporter import visible
from aiperf.sdk.sse import Splitter
from aiperf.sdk.transport import MESSAGES
from msgspec import Struct

from aiperf_exporter_raw.shape import Binary, Events, Line, Packet, Response, Text

log = logging.getLogger(__name__)

_NOTHING: dict[str, Any] = {"headers": {}, "body": None}
"""Of a request that was not journaled."""


class _Key(Struct):
    """Which request a line of the per-request file is about."""

    worker_id: str
    x_request_id: str


class _Record(Struct):
    """A line's parts as they are; an empty error is none."""

    metadata: msgspec.Raw
    error: msgspec.Raw = msgspec.Raw()


def lines(target: Target) -> Iterator[bytes]:
    """The file's lines.  Those of a lost site have no request and answer of which the journal didn't come; a warning counts
    them.

    Raises:
        AiperfError: There is no per-request file to go by, or the journal doesn't have its requests any more.
    """
    records = target.file("jsonl")
    if target.journal is None or not records.exists():
        hint = "the records exporter failed, or is switched off"
        raise AiperfError(f"{records} is not there, whose lines the raw file follows", hint)
    found = _Found(target.journal)
    read, read_key = msgspec.json.Decoder(_Record).decode, msgspec.json.Decoder(_Key).decode
    encode = msgspec.json.Encoder().encode
    with records.open("rb") as file:
        for text in file:
            record = read(text)
            key = read_key(record.metadata)
            one = found.observation(int(key.worker_id.rpartition("-")[2]), int(key.x_request_id[-12:], 16))
            if one is not None:
                yield visible(encode(_line(record, one, found.store, target))) + b"\n"
    for site, count in found.left_out.items():
        of = "1 request" if count == 1 else f"{count:,} requests"
        lacking = "%s has no line for %s of the site %s, which was lost before its journal was fetched"
        log.warning(lacking, target.file("raw.jsonl").name, of, site)


class _Found:
    """Observations by request.  A shard's requests are asked for in the order in which they ended.

    left_out: by the name of a lost site, how many of its requests the journal doesn't have.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._shards: dict[int, Iterator[Observation]] = {}
        self._clock = load_run(journal)[1]
        end = load_end(journal)
        self._sites = () if end is None else end.sites
        self.store = Store(journal)
        self.left_out = Counter[str]()

    def observation(self, shard: int, request: int) -> Observation | None:
        """The request; None where it was lost with its site.

        Raises:
            BadJournal: The journal lacks it, or a part of it.
        """
        site = self._sites[shard % len(self._sites)] if self._sites else None
        if shard not in self._shards:
            self._shards[shard] = observations(self._journal, shard, self._clock)
        for one in self._shards[shard]:
            if one.sent["request"] != request:
                continue
            if OUTCOMES[one.done["outcome"]] == "damaged":
                whose = f"don't have the whole answer to request {request} of worker {shard}"
                raise BadJournal(f"the segments in {self._journal} {whose}: a frame is damaged or missing")
            if "body" not in one.texts.get("request", _NOTHING):
                whose = f"don't have the request before request {request} of worker {shard}, which it continues"
                raise BadJournal(f"the segments in {self._journal} {whose}: a frame is damaged or missing")
            return one
        if site is not None and site.lost is not None:
            self.left_out[site.name] += 1
            return None
        raise BadJournal(f"the segments in {self._journal} don't have request {request} of worker {shard}")


def _line(record: _Record, one: Observation, store: Store, target: Target) -> Line:
    sent, request = one.sent, one.texts.get("request", _NOTHING)
    body = request["body"]
    if body is None:
        body = store.body(sent["entry"], sent["turn"], sent["model"])
    responses, left_out = _responses(one)
    return Line(
        metadata=record.metadata,
        start_perf_ns=sent["started_ns"],
        request_headers=request["headers"],
        status=one.done["status"] or None,
        responses=responses,
        responses_left_out=left_out,
        payload=_payload(target.shown_body(body)),
        cache_bust_marker=request.get("marker"),
        cache_bust_target=target.config["datasets"][0]["cache_bust"]["target"] if "marker" in request else None,
        error=record.error if bytes(record.error) else None,
    )


def _responses(one: Observation) -> tuple[list[Response], str | None]:
    """What came back, and why not all of it is here; the body of an error status stands in the record's error."""
    if not one.reads or not 200 <= one.done["status"] < 300:
        return [], None
    if DRAINED in one.texts:
        count = one.texts[DRAINED]
        return [], f"{'its' if count is None else f'{count:,}'} bytes were counted, and not kept"
    kind = _content_type(one.texts.get("head"))
    if one.done["flags"] & MESSAGES:
        read = zip(one.reads, one.merged_since, strict=True)
        return [_whole(at_ns, piece, kind, after_ns) for (at_ns, piece), after_ns in read], None
    if one.done["flags"] & STREAMED:
        return _events(one)
    return [_whole(one.reads[-1][0], b"".join([piece for _, piece in one.reads]), kind)], None


def _whole(at_ns: int, body: bytes, kind: str | None, after_ns: int | None = None) -> Text | Binary:
    try:
        return Text(at_ns, body.decode(), kind, after_ns)
    except UnicodeDecodeError:
        return Binary(at_ns, b64encode(body).decode(), kind, after_ns)


def _events(one: Observation) -> tuple[list[Response], str | None]:
    """Events by the read that completed them; what was in the middle of one when the stream ended is one, too.

    With them, why there are no more; None where these are all.
    """
    splitter = Splitter()
    found: list[Response] = []
    try:
        for (at_ns, piece), empty_ns, whole in zip(one.reads, one.merged_since, one.all_merged, strict=True):
            events = splitter.feed(piece)
            # The last segment completes the last event at the stamp, unless it is of another exchange.
            merged = 0 if empty_ns is None else len(events) - (piece.endswith((b"\n", b"\r")) and not whole)
            found += [_event(at_ns, *event, empty_ns if place < merged else None) for place, event in enumerate(events)]
        found += [_event(one.reads[-1][0], *event) for event in splitter.close()]
    except BadResponse as error:
        return found, error.message
    return found, None


def _event(at_ns: int, data: bytes, name: bytes, after_ns: int | None = None) -> Events:
    named = [Packet("event", name.decode("utf-8", "replace"))] if name else []
    return Events(at_ns, [*named, Packet("data", data.decode("utf-8", "replace"))], after_ns)


def _content_type(head: dict[str, Any] | None) -> str | None:
    headers = head["headers"] if head is not None else []
    return next((value for name, value in headers if name.lower() == "content-type"), None)


def _payload(body: bytes) -> msgspec.Raw:
    """The body as the JSON it is; what isn't JSON, as inputs.json has it."""
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except msgspec.DecodeError:
        return msgspec.Raw(b'{"body_base64":"%b"}' % b64encode(body))
    return msgspec.Raw(body)
