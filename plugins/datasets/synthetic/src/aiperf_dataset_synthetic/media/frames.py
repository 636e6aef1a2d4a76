"""What films show: shapes that move, a grid with a clock, or noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from aiperf.sdk.draws import uniform

from aiperf_dataset_synthetic.media.noise import noise

if TYPE_CHECKING:
    from PIL.Image import Image

_SHAPES = 6
"""Shapes that move in a video."""
_Size = tuple[int, int]
_Key = tuple[int, str, int]
"""Seed, stream and index of a film."""


def frames(kind: str, size: _Size, fps: int, count: int, key: _Key) -> Iterator[Image]:
    """The first *count* frames of a film of this kind, one at a time."""
    return _KINDS[kind](size, fps, count, key)


def _moving_shapes(size: _Size, fps: int, count: int, key: _Key) -> Iterator[Image]:
    """Discs and boxes that cross the picture in one to four seconds, and return at its edges."""
    from PIL import Image, ImageDraw

    width, height = size
    back = _colour(key, "back")
    colours = [_colour(key, f"shape{number}") for number in range(_SHAPES)]
    for frame in range(count):
        image = Image.new("RGB", size, back)
        draw = ImageDraw.Draw(image)
        for number, colour in enumerate(colours):
            radius = max(1, round(min(size) * (0.05 + 0.12 * _draw(key, f"radius{number}"))))
            x = width * _place(key, f"x{number}", frame / fps)
            y = height * _place(key, f"y{number}", frame / fps)
            box = (x - radius, y - radius, x + radius, y + radius)
            (draw.ellipse if number % 2 else draw.rectangle)(box, fill=colour)
        yield image


def _grid_clock(size: _Size, fps: int, count: int, key: _Key) -> Iterator[Image]:
    """A grid, a hand that goes round in ten seconds, and the time and number of the frame."""
    from PIL import Image, ImageDraw, ImageFont

    width, height = size
    back, ink = _colour(key, "back", 0.5), (255, 255, 255)
    font = ImageFont.load_default(max(8, min(size) // 12))
    for frame in range(count):
        image = Image.new("RGB", size, back)
        draw = ImageDraw.Draw(image)
        for line in range(1, 8):
            draw.line((width * line // 8, 0, width * line // 8, height), fill=_colour(key, "grid"))
            draw.line((0, height * line // 8, width, height * line // 8), fill=_colour(key, "grid"))
        radius, (x, y) = min(size) * 0.35, (width / 2, height / 2)
        angle = 2 * math.pi * (frame / fps / 10 + _draw(key, "angle"))
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=ink, width=max(1, min(size) // 100))
        draw.line((x, y, x + radius * math.sin(angle), y - radius * math.cos(angle)), fill=ink, width=max(1, min(size) // 60))
        draw.text((width // 32, height // 32), f"{frame / fps:.2f} s  {frame}", fill=ink, font=font)
        yield image


def _noise(size: _Size, fps: int, count: int, key: _Key) -> Iterator[Image]:
    """Other noise in each frame."""
    from PIL import Image

    seed, what, index = key
    for frame in range(count):
        yield Image.frombytes("RGB", size, noise(seed, f"{what}.frame{frame}", index, 3 * size[0] * size[1]).data)


_KINDS: dict[str, Callable[[_Size, int, int, _Key], Iterator[Image]]] = {
    "moving_shapes": _moving_shapes, "grid_clock": _grid_clock, "noise": _noise,
}  # fmt: skip


def _draw(key: _Key, name: str) -> float:
    seed, what, index = key
    return uniform(seed, f"{what}.{name}", index)


def _colour(key: _Key, name: str, brightness: float = 1.0) -> tuple[int, int, int]:
    red, green, blue = (int(brightness * 256 * _draw(key, f"{name}.{channel}")) for channel in "rgb")
    return red, green, blue


def _place(key: _Key, name: str, seconds: float) -> float:
    """From 0 to 1 and back, again and again, at a drawn speed from a drawn place."""
    speed = 0.25 + 0.75 * _draw(key, f"{name}.speed")
    return 1 - abs(1 - (_draw(key, name) + speed * seconds) % 2)
