"""What a line holds, and its JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

PerfNs = Annotated[int, Meta(description="Monotonic clock, ns.")]
AfterNs = Annotated[PerfNs, Meta(description="Of a merged read: it came after this.")] | None


class Packet(Struct, frozen=True, gc=False):
    """A field of an event; lines of data are joined by line ends."""

    name: str
    value: str


class Events(Struct, frozen=True, omit_defaults=True):
    """One event of a stream."""

    perf_ns: PerfNs
    packets: list[Packet]
    after_perf_ns: AfterNs = None


class Text(Struct, frozen=True, omit_defaults=True, gc=False):
    """A whole body of text."""

    perf_ns: PerfNs
    text: str
    content_type: str | None = None
    after_perf_ns: AfterNs = None


class Binary(Struct, frozen=True, omit_defaults=True, gc=False):
    """A whole body of something else."""

    perf_ns: PerfNs
    raw_bytes: Annotated[str, Meta(extra_json_schema={"contentEncoding": "base64"})]
    content_type: str | None = None
    after_perf_ns: AfterNs = None


Response: TypeAlias = Events | Text | Binary


class Line(Struct, frozen=True, omit_defaults=True):
    """A request and its answer."""

    metadata: Annotated[Any, Meta(extra_json_schema={"type": "object", "description": "As in profile_export.jsonl."})]
    start_perf_ns: Annotated[PerfNs, Meta(description="When the request was started; perf_ns of responses is the same clock.")]
    request_headers: dict[str, str]
    responses: list[Any]
    payload: Annotated[Any, Meta(description="The body that was sent.")]
    responses_left_out: Annotated[str, Meta(description="Why the rest of the stream is not here.")] | None = None
    status: int | None = None
    cache_bust_marker: Annotated[str, Meta(description="What --cache-bust put into the prompt.")] | None = None
    cache_bust_target: Annotated[str, Meta(description="Where it stands.")] | None = None
    error: Annotated[Any, Meta(extra_json_schema={"type": "object", "required": ["message"]})] = None


def schema() -> dict[str, Any]:
    """The JSON Schema of a line; the package carries it as ``profile_export_raw.schema.json``."""
    shapes = [Events, Text, Binary]
    items, definitions = msgspec.json.schema_components(shapes, ref_template="#/$defs/{name}")
    found = msgspec.json.schema(Line)
    found["$defs"] |= definitions
    found["$defs"]["Line"]["properties"]["responses"]["items"] = {"anyOf": list(items)}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A line of profile_export_raw.jsonl", **found}
