"""Pictures: sizes and formats drawn by seed and entry, noise or pictures of a source, PNG and JPEG."""

from __future__ import annotations

import io
import struct
import zlib
from base64 import b64encode
from collections import OrderedDict
from typing import TYPE_CHECKING

from aiperf import Media
from aiperf.sdk.draws import shuffled, uniform

from aiperf_dataset_synthetic.draws import positive_normal
from aiperf_dataset_synthetic.media.noise import noise
from aiperf_dataset_synthetic.media.options import DEVIATIONS, MediaOptions
from aiperf_dataset_synthetic.media.sources import opened

if TYPE_CHECKING:
    from PIL.Image import Image

QUALITY, LEVEL = 85, 6
"""Of JPEG (without subsampling of colours), and of PNG's compression."""
_FORMATS = ("png", "jpeg")
_CACHED_BYTES = 64 << 20
_ORDERS = 1 << 53
"""Orders in which pictures may be used: whole numbers that a float holds."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_RGB, _EIGHT_BITS = 2, 8
"""Colour type and bits per sample in the header of a PNG."""


class Images:
    """Draws the pictures of all turns.  entries: conversations of the data set, for the order of a source's pictures.

    Raises:
        BadDataset: The source has no picture.
    """

    def __init__(self, options: MediaOptions, seed: int, entries: int) -> None:
        self._options, self._seed, self._entries = options, seed, entries
        self._shapes = options.picture_shapes
        self._source = None if options.image_source == "noise" else opened(options.image_source)
        self._order = int(uniform(seed, "synthetic.image.order", 0) * _ORDERS)
        self._encoded: OrderedDict[tuple[int, int, int, str], str] = OrderedDict()
        self._cached_bytes = 0

    def of(self, entry: int, turn: int) -> list[Media]:
        """The pictures of a turn of conversation *entry*."""
        return [Media("image", self._url(entry, turn, place)) for place in range(self._options.pictures)]

    def _url(self, entry: int, turn: int, place: int) -> str:
        options, seed, what = self._options, self._seed, f"synthetic.image.{turn}.{place}"
        width, height = (
            round(shape.size(seed, f"{what}.{side}", entry, 1.0))
            if shape is not None else positive_normal(*normal, seed, f"{what}.{side}", entry, DEVIATIONS)
            for side, shape, normal in zip(("width", "height"), self._shapes, options.picture_sides, strict=True)
        )  # fmt: skip
        size = width, height
        form = options.image_format
        if form == "random":
            form = _FORMATS[int(uniform(seed, f"{what}.format", entry) * len(_FORMATS))]
        if self._source is None:
            return data_url(form, noise_picture(seed, f"{what}.noise", entry, size, form))
        at = self._source.readable(self._drawn(entry, turn, place, len(self._source)))
        key = (at, *size, form)
        if (known := self._encoded.get(key)) is not None:
            self._encoded.move_to_end(key)
            return known
        url = data_url(form, encoded(self._source.resized(at, size), form))
        self._keep(key, url)
        return url

    def _drawn(self, entry: int, turn: int, place: int, count: int) -> int:
        """The number of a picture among *count*; a cycle goes through all first turns, then through the second ones."""
        if self._options.image_source_sampling == "random_with_replacement":
            return int(uniform(self._seed, f"synthetic.image.{turn}.{place}.picture", entry) * count)
        cycle, at = divmod((turn * self._entries + entry) * self._options.pictures + place, count)
        return shuffled(self._order, cycle, count, at) if self._options.image_source_sampling == "shuffle_cycle" else at

    def _keep(self, key: tuple[int, int, int, str], url: str) -> None:
        self._encoded[key] = url
        self._cached_bytes += len(url)
        while self._cached_bytes > _CACHED_BYTES:
            self._cached_bytes -= len(self._encoded.popitem(last=False)[1])


def noise_picture(seed: int, stream: str, index: int, size: tuple[int, int], form: str) -> bytes:
    """A picture of uniform noise, encoded as ``png`` or ``jpeg``."""
    width, height = size
    pixels = noise(seed, stream, index, 3 * width * height)
    if form == "png":
        # No filter makes noise smaller, so the bytes are compressed as they are: twice as fast as trying the filters.
        return _png(width, height, pixels.tobytes())
    from PIL import Image

    return encoded(Image.frombytes("RGB", size, pixels.data), form)


def encoded(image: Image, form: str) -> bytes:
    """The picture as ``png`` or ``jpeg``."""
    file = io.BytesIO()
    if form == "png":
        image.save(file, "PNG", compress_level=LEVEL)
    else:
        image.save(file, "JPEG", quality=QUALITY, subsampling=0)
    return file.getvalue()


def data_url(form: str, content: bytes) -> str:
    return f"data:image/{form};base64,{b64encode(content).decode()}"


def _png(width: int, height: int, pixels: bytes) -> bytes:
    """A PNG of colours without transparency (ISO 15948)."""
    row = 3 * width
    rows = b"".join(b"\0" + pixels[at : at + row] for at in range(0, len(pixels), row))
    head = struct.pack(">2I5B", width, height, _EIGHT_BITS, _RGB, 0, 0, 0)
    return b"".join((_SIGNATURE, _chunk(b"IHDR", head), _chunk(b"IDAT", zlib.compress(rows, LEVEL)), _chunk(b"IEND", b"")))


def _chunk(name: bytes, content: bytes) -> bytes:
    return b"".join((struct.pack(">I", len(content)), name, content, struct.pack(">I", zlib.crc32(content, zlib.crc32(name)))))
