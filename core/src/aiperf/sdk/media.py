"""Media as bytes: files and URLs become ``data:`` URIs while the data set is built, never while requests are in flight."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from urllib.parse import unquote_to_bytes, urlsplit

from msgspec.structs import replace

from aiperf.errors import BadDataset
from aiperf.sdk.model import Media
from aiperf.sdk.sound import sound_of, tag_bytes

MOST_BYTES = 256 << 20
"""The largest medium that is read."""
_MOST_CACHED_BYTES = 512 << 20
_AT_ONCE = 10
"""Media that are read at the same time, each by a thread."""
_PIECE_BYTES = 1 << 16
_HEAD_CHARACTERS = 1 << 14
"""Of base64, for the header of a clip of sound."""
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"), (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"), (b"MM\x00*", "image/tiff"), (b"\x00\x00\x01\x00", "image/x-icon"), (b"\xff\x0a", "image/jxl"),
    (b"\x00\x00\x00\x0cJXL ", "image/jxl"),
    (b"\x1a\x45\xdf\xa3", "video/webm"), (b"ID3", "audio/mpeg"), (b"\xff\xfb", "audio/mpeg"), (b"fLaC", "audio/flac"),
)  # fmt: skip
_BRANDS = {b"avif": "image/avif", b"avis": "image/avif", b"heic": "image/heic", b"heix": "image/heic", b"mif1": "image/heif"}
_REMOTE = ("http://", "https://")
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


class MediaReader:
    """Reads media, each file and URL once, several at a time.

    folder: of relative paths that the working directory doesn't have; None is the working directory alone.
    most_bytes: the largest medium.  timeout_s: for a whole answer of a server.  keeps_urls: http(s) URLs stay as they are.
    """

    def __init__(
        self, folder: Path | None = None, *, most_bytes: int = MOST_BYTES, timeout_s: float = 60.0, keeps_urls: bool = False
    ) -> None:
        self._folder, self._most_bytes, self._timeout_s = folder, most_bytes, timeout_s
        self._keeps_urls = keeps_urls
        self._cache: dict[tuple[str, str], str] = {}
        self._cached = 0

    def inlined(self, media: Sequence[Media]) -> tuple[Media, ...]:
        """The media with ``data:`` URIs in place of paths, ``file:`` and http(s) URLs; inline ones stay as they are.

        Raises:
            BadDataset: A medium can't be read, is too large, or is of another kind; the message names it.
        """
        stays = is_inline if not self._keeps_urls else _is_sent
        wanted = list(dict.fromkeys((each.kind, each.value) for each in media if not stays(each)))
        known = {key: self._cache[key] for key in wanted if key in self._cache}
        missing = [key for key in wanted if key not in known]
        if len(missing) > 1:
            from concurrent.futures import ThreadPoolExecutor  # 5 ms, which text alone doesn't need

            with ThreadPoolExecutor(_AT_ONCE) as pool:
                known |= zip(missing, pool.map(self._uri, missing), strict=True)
        else:
            known |= {key: self._uri(key) for key in missing}
        for key in missing:
            if self._cached + len(known[key]) <= _MOST_CACHED_BYTES:
                self._cache[key] = known[key]
                self._cached += len(known[key])
        return tuple(each if stays(each) else replace(each, value=known[each.kind, each.value]) for each in media)

    def _uri(self, key: tuple[str, str]) -> str:
        kind, value = key
        remote = value.startswith(_REMOTE)
        try:
            data, told = self._fetched(value) if remote else self._file(value)
        except (OSError, ValueError) as error:  # ValueError: a name with a zero byte, a malformed URL
            why = getattr(error, "strerror", None) or error
            raise BadDataset(f"the {kind} {_shown(value)} can't be read: {why}") from error
        if len(data) > self._most_bytes:
            raise BadDataset(f"the {kind} {_shown(value)} has more than {self._most_bytes:,} bytes")
        mime = _sniffed(data) or told or _guessed(value)
        if not (mime or "").startswith(f"{kind}/"):
            raise BadDataset(f"{_shown(value)} is no {kind}" + (f", but {mime}" if mime else ""))
        if kind == "image" and _sniffed(data) is None and not _is_drawing(data):
            known = "PNG, JPEG, GIF, WebP, BMP, TIFF, ICO, AVIF, HEIC, JPEG XL, SVG"
            raise BadDataset(f"{_shown(value)} is no image: its first bytes are those of none of {known}")
        return f"data:{mime};base64,{base64.b64encode(data).decode()}"

    def _file(self, value: str) -> tuple[bytes, str | None]:
        name = unquote_to_bytes(urlsplit(value).path).decode() if value.startswith("file:") else value
        folders = [Path(), *([] if self._folder is None else [self._folder])]
        path = next((path for folder in folders if (path := folder / name).is_file()), None)
        if path is None:
            raise FileNotFoundError("there is no such file; inline data must begin with data:")
        with path.open("rb") as file:
            return file.read(self._most_bytes + 1), None

    def _fetched(self, url: str) -> tuple[bytes, str | None]:
        from urllib.request import Request, urlopen  # 40 ms, and only where a data set has URLs

        pieces, size, deadline = [], 0, monotonic() + self._timeout_s
        with urlopen(Request(url, headers={"User-Agent": "aiperf"}), timeout=self._timeout_s) as answer:
            while size <= self._most_bytes and (piece := answer.read1(_PIECE_BYTES)):
                pieces.append(piece)
                size += len(piece)
                if monotonic() > deadline:
                    raise TimeoutError(f"no whole answer within {self._timeout_s:g} s")
            told = answer.headers.get_content_type() if "Content-Type" in answer.headers else None
        return b"".join(pieces), told


def inlined(media: Sequence[Media], folder: Path | None = None) -> tuple[Media, ...]:
    """The media of one turn, read by a new :class:`MediaReader`; a data set with many turns keeps a reader."""
    return MediaReader(folder).inlined(media)


def is_inline(media: Media) -> bool:
    """Whether the medium is in its value: a ``data:`` URI, ``format,base64`` audio, or nothing but a uuid."""
    head, comma, _ = media.value[:64].partition(",")
    return not media.value or media.value.startswith("data:") or (media.kind == "audio" and bool(comma) and head.isalnum())


def _is_sent(media: Media) -> bool:
    """Whether the medium is inline, or a URL that the server fetches."""
    return is_inline(media) or media.value.startswith(_REMOTE)


def media_bytes(media: Media) -> tuple[str, bytes]:
    """Content type and bytes of an inline medium.

    Raises:
        BadDataset: It is none, or its base64 is damaged.
    """
    if not media.value or not is_inline(media):
        raise BadDataset(f"the {media.kind} {_shown(media.value)} is not inline", "read it with aiperf.sdk.media.inlined")
    head, _, data = media.value.partition(",")
    mime, *marks = head.removeprefix("data:").split(";") if head.startswith("data:") else (f"{media.kind}/{head}", "base64")
    try:
        content = base64.b64decode(data, validate=True) if "base64" in marks else unquote_to_bytes(data)
    except binascii.Error as error:
        raise BadDataset(f"the base64 of the {media.kind} {_shown(media.value)} is damaged: {error}") from error
    return mime or "text/plain", content


def audio_seconds(media: Sequence[Media]) -> float | None:
    """Length of the sound among the media: as the data set knows it, else of a WAV, FLAC or MP3 file as its header says.

    None where there is no sound, or one whose length isn't known.
    """
    lengths = [_clip_seconds(each.value) if each.seconds is None else each.seconds for each in media if each.kind == "audio"]
    return sum(length for length in lengths if length) if lengths and None not in lengths else None


def _clip_seconds(value: str) -> float | None:
    """Length of an inline clip; None where its header doesn't tell."""
    comma = value.find(",", 0, _HEAD_CHARACTERS)
    if comma < 0 or (not (value.startswith("data:") and ";base64" in value[:comma]) and not value[:comma].isalnum()):
        return None
    size = 3 * (len(value) - comma - 1 - value.count("=", -2)) // 4
    start = _bytes_at(value, comma + 1, 0)
    before = tag_bytes(start)
    if before >= len(start):  # a tag with a picture
        start, size = _bytes_at(value, comma + 1, before), size - before
    sound = sound_of(start, size)
    return None if sound is None else sound.seconds


def _bytes_at(value: str, begin: int, place: int) -> bytes:
    """Bytes from *place* of the base64 that begins at *begin*; none where it is damaged."""
    first = begin + place // 3 * 4
    text = value[first : first + _HEAD_CHARACTERS]
    try:
        return base64.b64decode(text[: len(text) // 4 * 4])[place % 3 :]
    except binascii.Error:
        return b""


def _sniffed(data: bytes) -> str | None:
    """The type that the first bytes tell; None where they tell none."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12]) or ("audio/mp4" if data[8:11] == b"M4A" else "video/mp4")
    return next((mime for signature, mime in _SIGNATURES if data.startswith(signature)), None)


def _is_drawing(data: bytes) -> bool:
    """Whether it is an SVG, which has no signature."""
    return b"<svg" in data[:4096]


def _guessed(value: str) -> str | None:
    import mimetypes  # only where neither bytes nor the server tell

    return mimetypes.guess_type(value)[0]


def _shown(value: str) -> str:
    return repr(value if len(value) <= 80 else f"{value[:80]}…")


__all__ = ["MediaReader", "is_inline", "media_bytes"]
