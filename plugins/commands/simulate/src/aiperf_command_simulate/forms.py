"""Bodies of ``multipart/form-data`` (RFC 7578), read."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import AskError
from aiperf_command_simulate.http1 import Request

_BOUNDARY = re.compile(r'boundary="?([^";]+)"?', re.IGNORECASE)
_NAME = re.compile(r'[; ]name="([^"]*)"')
_FILENAME = re.compile(r'[; ]filename="([^"]*)"')


class File(Struct, frozen=True):
    """A file of a form."""

    name: str
    content: bytes


class Form(Struct, frozen=True):
    """The last value of each field, and the files of each field, in their order."""

    fields: dict[str, str]
    files: dict[str, list[File]]

    def whole(self, name: str, default: int, most: int, *, least: int = 1) -> int:
        """A field that is a whole number from *least* to *most*.

        Raises:
            AskError: It is none.
        """
        value = self.fields.get(name, str(default))
        if not value.isdecimal() or not least <= int(value) <= most:
            raise AskError(f"{name} is {value!r}; a whole number from {least} to {most} is needed")
        return int(value)

    def switch(self, name: str) -> bool:
        """Whether a field says true."""
        return self.fields.get(name, "").lower() in ("true", "1")


def form_of(request: Request) -> Form:
    """The form of a request; a JSON object counts as one of fields.

    Raises:
        AskError: The body is neither.
    """
    kind = request.headers.get("content-type", "")
    if kind.startswith("application/json"):
        try:
            sent = msgspec.json.decode(request.body, type=dict[str, str | int | float | bool | None])
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise AskError(f"the body is no JSON object: {exc}") from exc
        return Form({name: _text(value) for name, value in sent.items() if value is not None}, {})
    boundary = _BOUNDARY.search(kind)
    if not kind.startswith("multipart/form-data") or boundary is None:
        raise AskError(f"the content type is {kind!r}; a form is needed: multipart/form-data with its boundary")
    fields: dict[str, str] = {}
    files: dict[str, list[File]] = {}
    parts = request.body.split(b"--" + boundary[1].encode())
    if len(parts) < 2 or parts[-1][:2] != b"--":
        raise AskError("the form has no end")
    for part in parts[1:-1]:
        head, mark, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name, filename = (pattern.search(head.decode("utf-8", "replace")) for pattern in (_NAME, _FILENAME))
        if not mark or name is None or not content.endswith(b"\r\n"):
            raise AskError("a part of the form has no name, or no end")
        if filename is None:
            fields[name[1]] = content[:-2].decode("utf-8", "replace")
        else:
            files.setdefault(name[1].removesuffix("[]"), []).append(File(filename[1], content[:-2]))
    return Form(fields, files)


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
