"""Figures as numbers, for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from aiperf import Figure


def as_json(figures: Iterable[tuple[str, Figure]]) -> str:
    """``[{"plot", "title", "x", "y", "series": [{"name", "kind", "x", "y"}]}]``"""
    found = [
        {
            "plot": name, "title": figure.title, "x": figure.x, "y": figure.y,
            "series": [{"name": each.name, "kind": each.kind, "x": each.x, "y": each.y} for each in figure.series],
        }
        for name, figure in figures
    ]  # fmt: skip
    return msgspec.json.format(msgspec.json.encode(found, enc_hook=_plain), indent=2).decode()


def _plain(values: Any) -> Any:
    return values.tolist()
