"""Pictures before they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiperf import Figure
from aiperf.sdk.figures import checked
from aiperf_painting import picture, pictures
from matplotlib.figure import Figure as Canvas


@pytest.fixture
def painted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Canvas]:
    """Draws a figure, and gives the picture that would be written."""

    def paint(figure: Figure, **more: Any) -> Canvas:
        found: list[Canvas] = []
        monkeypatch.setattr(pictures, "_write", lambda canvas, *_: found.append(canvas))
        picture(checked(figure), Path("unused.png"), **({"theme": "light"} | more))
        (canvas,) = found
        canvas.draw_without_rendering()
        return canvas

    return paint
