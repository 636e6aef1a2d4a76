"""Bodies of ``multipart/form-data``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

_BOUNDARY = "aiperf-5f0c7a1e9d3b48268e4f"


class FilePart(Struct, frozen=True):
    """A file of a form.  *field*: name of its field; *filename*: name that the server is told."""

    field: str
    filename: str
    content: bytes
    content_type: str = "application/octet-stream"


class Form(Struct, frozen=True):
    """A body and its content type, for ``HttpRequest(path, form.body, content_type=form.content_type)``."""

    body: bytes
    content_type: str


def multipart(fields: Mapping[str, Any], files: Sequence[FilePart] = ()) -> Form:
    """A form with these fields, then these files.

    true and false are written so, numbers as decimal text, lists and objects as JSON; a field with None is left out.  The
    boundary is the same for all forms of all processes, so that all requests of a run have one content type; only a form whose
    content has that boundary gets another one, made from its content.
    """
    texts = {name: _text(value) for name, value in fields.items() if value is not None}
    heads = [(f'name="{_quoted(name)}"', text) for name, text in texts.items()]
    for file in files:
        place = f'name="{_quoted(file.field)}"; filename="{_quoted(file.filename)}"'
        heads.append((f"{place}\r\nContent-Type: {file.content_type}", file.content))
    boundary = _BOUNDARY
    while any(boundary.encode() in content or boundary in head for head, content in heads):
        boundary = f"aiperf-{sha256(b''.join((boundary.encode(), *(content for _, content in heads)))).hexdigest()[:32]}"
    pieces = [f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() for head, _ in heads]
    body = b"".join(part for piece, (_, content) in zip(pieces, heads, strict=True) for part in (piece, content, b"\r\n"))
    return Form(body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}")


def _text(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


def _quoted(name: str) -> str:
    """A name inside quotes, as browsers write it."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


__all__ = ["FilePart", "Form", "multipart"]
