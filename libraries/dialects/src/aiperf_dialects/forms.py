"""What endpoints with forms share: fields that a data set can't set, and media as files."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from aiperf import HttpRequest, Media, Turn
from aiperf.sdk.media import media_bytes
from aiperf.sdk.multipart import FilePart, multipart

log = logging.getLogger(f"aiperf.{__name__}")

PNG_8X8 = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAD0lEQVR42mP4jwMwDC0JALoev0GJ6La7AAAAAElFTkSuQmCC"
)
"""A white image of 8 x 8 pixels, for probes."""
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": ("png", "image/png"), b"\xff\xd8\xff": ("jpg", "image/jpeg"), b"GIF8": ("gif", "image/gif"),
    b"RIFF": ("webp", "image/webp"), b"BM": ("bmp", "image/bmp"),
}  # fmt: skip
_SOUNDS = {
    "mpeg": ("mp3", "audio/mpeg"), "mp3": ("mp3", "audio/mpeg"), "mpga": ("mpga", "audio/mpeg"), "m4a": ("m4a", "audio/mp4"),
    "mp4": ("mp4", "audio/mp4"), "x-m4a": ("m4a", "audio/mp4"), "x-wav": ("wav", "audio/wav"), "wave": ("wav", "audio/wav"),
    "x-flac": ("flac", "audio/flac"),
}  # fmt: skip


class FormFields:
    """The form of an endpoint.  *reserved*: names of fields that are its own; a turn's extra fields of such a name are ignored,
    which is said once for each."""

    def __init__(self, dialect: str, path: str, reserved: Sequence[str]) -> None:
        self._dialect, self._path, self._reserved = dialect, path, frozenset(reserved)
        self._told: set[str] = set()

    def request(
        self, turn: Turn, fields: Mapping[str, Any], files: Sequence[FilePart] = (), *, headers: Mapping[str, str] | None = None
    ) -> HttpRequest:
        """The request of *fields*, the turn's extra fields over them, and *files*.  A field with None is left out."""
        extra = {name: value for name, value in turn.extra.items() if name not in self._reserved}
        for name in sorted(turn.extra.keys() - extra.keys() - self._told):
            self._told.add(name)
            log.warning("%s: the extra input %r is ignored: that field of the form is made of the row", self._dialect, name)
        form = multipart({**fields, **extra}, files)
        return HttpRequest(self._path, form.body, dict(headers or {}), form.content_type)


def image_file(media: Media, field: str = "image") -> FilePart:
    """An inline image as a file, of the type that its bytes tell, else of the one that the data set tells.

    Raises:
        BadDataset: Its base64 is damaged.
    """
    mime, content = media_bytes(media)
    usual = mime.partition("/")[2].partition("+")[0] or "png", mime
    ending, mime = next((known for start, known in _IMAGES.items() if content.startswith(start)), usual)
    return FilePart(field, f"image.{ending}", content, mime)


def sound_file(media: Media, field: str = "file") -> FilePart:
    """An inline clip as a file; *media* says its format.

    Raises:
        BadDataset: Its base64 is damaged.
    """
    mime, content = media_bytes(media)
    form = mime.partition("/")[2].lower() or "wav"
    ending, mime = _SOUNDS.get(form, (form, f"audio/{form}"))
    return FilePart(field, f"audio.{ending}", content, mime)


__all__ = ["PNG_8X8", "FormFields", "image_file", "sound_file"]
