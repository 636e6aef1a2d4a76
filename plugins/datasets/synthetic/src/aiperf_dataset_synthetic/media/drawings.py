"""Four pictures that are drawn here, for ``--image-source assets``: a chart, a landscape, a page of text, a table of tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiperf.sdk.draws import uniform

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

_SIDE = 1024
"""Pixels of a drawing's side."""
_Colour = tuple[int, int, int]
_PAPER, _INK, _GRID = (250, 249, 245), (35, 38, 46), (215, 214, 208)
_COLOURS: tuple[_Colour, ...] = ((46, 110, 178), (214, 106, 48), (72, 150, 92), (160, 80, 140), (196, 168, 56))
_TEXT = "tokens arrive one after the other while the clock of the server runs and nobody waits for the last of them"


def _canvas(colour: _Colour) -> tuple[Image, ImageDraw]:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (_SIDE, _SIDE), colour)
    return image, ImageDraw.Draw(image)


def chart() -> Image:
    """Bars with a line over them."""
    image, draw = _canvas(_PAPER)
    for row in range(1, 9):
        draw.line((80, 940 - 105 * row, 980, 940 - 105 * row), fill=_GRID, width=2)
    tops = []
    for bar in range(9):
        height = 150 + int(650 * uniform(1, "chart", bar))
        left = 100 + 98 * bar
        draw.rectangle((left, 940 - height, left + 64, 940), fill=_COLOURS[bar % len(_COLOURS)])
        tops.append((left + 32, 900 - int(height * (0.6 + 0.3 * uniform(1, "line", bar)))))
    draw.line(tops, fill=_INK, width=6, joint="curve")
    draw.line((80, 60, 80, 940, 990, 940), fill=_INK, width=5)
    return image


def landscape() -> Image:
    """A sky, a sun, hills and a lake."""
    image, draw = _canvas((90, 150, 210))
    for row in range(620):
        draw.line((0, row, _SIDE, row), fill=(90 + row // 5, 150 + row // 9, 210 + row // 30))
    draw.ellipse((700, 90, 850, 240), fill=(255, 236, 170))
    for depth in range(4):
        shade = 150 - 32 * depth
        base, points = 520 + 70 * depth, [(0, _SIDE)]
        points += [(64 * at, base - int(170 * uniform(2, f"hill{depth}", at))) for at in range(17)]
        draw.polygon([*points, (_SIDE, _SIDE)], fill=(shade // 2, shade, shade // 2 + 18))
    draw.ellipse((180, 860, 900, 1010), fill=(70, 120, 165))
    return image


def page() -> Image:
    """Lines of text below a heading."""
    from PIL import ImageFont

    image, draw = _canvas((255, 255, 255))
    words = _TEXT.split()
    heading, body = ImageFont.load_default(56), ImageFont.load_default(26)
    draw.text((90, 80), "On waiting for tokens", fill=_INK, font=heading)
    for line in range(24):
        shown = [words[(line * 7 + place * 3) % len(words)] for place in range(11 if line % 6 < 5 else 5)]
        draw.text((90, 190 + 33 * line), " ".join(shown), fill=_INK, font=body)
    return image


def tiles() -> Image:
    """Shapes of many colours in a grid."""
    image, draw = _canvas(_PAPER)
    shapes: tuple[Callable[..., None], ...] = (draw.rectangle, draw.ellipse)
    for tile in range(64):
        left, top = 128 * (tile % 8), 128 * (tile // 8)
        edge = 8 + int(40 * uniform(4, "edge", tile))
        colour = _COLOURS[int(len(_COLOURS) * uniform(4, "colour", tile))]
        shapes[tile % 2]((left + edge, top + edge, left + 128 - edge, top + 128 - edge), fill=colour, outline=_INK, width=3)
    return image


DRAWINGS: dict[str, Callable[[], Image]] = {"chart": chart, "landscape": landscape, "page": page, "tiles": tiles}
