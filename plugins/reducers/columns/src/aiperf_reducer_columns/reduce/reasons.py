"""Why answers ended, as their servers say it: a text for each request, of which a run has few."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from aiperf.sdk.model import REFUSAL

BETWEEN = ", "
"""Between the reasons of a request's several answers, where they differ."""
_MOST_CHARACTERS = 200


def joined(reasons: Iterable[str | None]) -> str | None:
    """The reasons of several answers to a request, each once, in their order; None where there is none."""
    return BETWEEN.join(dict.fromkeys(filter(None, reasons))) or None


def refused(reason: str | None) -> str:
    """The reason of an answer that is a refusal by its form."""
    return joined((reason, REFUSAL)) or REFUSAL


def coded(reasons: Sequence[str | None], shown: Callable[[str], str]) -> tuple[list[str], bytes]:
    """The different reasons as they are *shown*, and a place among them for each request: 1 is the first, 0 none (uint16)."""
    texts = list(dict.fromkeys(filter(None, reasons)))
    if not texts:
        return [], b""
    places: dict[str | None, int] = {None: 0, "": 0} | {text: place for place, text in enumerate(texts, 1)}
    return [_short(shown(text)) for text in texts], np.array(list(map(places.__getitem__, reasons)), dtype=np.uint16).tobytes()


def decoded(texts: Sequence[str], codes: bytes) -> list[str | None]:
    """The reason of each request."""
    words = [None, *texts]
    return list(map(words.__getitem__, np.frombuffer(codes, dtype=np.uint16).tolist()))


def _short(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # of a plugin, it may have halves of characters
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
