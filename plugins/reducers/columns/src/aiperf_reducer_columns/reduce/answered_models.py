"""The names of the models that answer, as the first answers say them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import product

import msgspec
from aiperf.parts.journal import COMPLETED
from aiperf.parts.segments import JournalRequest

_NAME = re.compile(rb'"model"\s*:\s*("(?:[^"\\]|\\.){1,500}")')
"""In text that was generated, the quotes of this would be escaped."""
_ANSWERS, _REQUESTS, _BYTES = 4, 1000, 1 << 14
"""Answers of each model and server that are looked at; requests for each of these; bytes of an answer."""


class AnsweredModels:
    """Looks into some good answers of each model and server of a run."""

    def __init__(self, models: Sequence[str], servers: int) -> None:
        self._models = models
        self._left = dict.fromkeys(product(range(len(models)), range(servers)), _ANSWERS)
        self._requests = _REQUESTS * len(self._left)  # not for ever where some never answer
        self._new: list[tuple[str, str]] = []

    def look(self, requests: Iterable[JournalRequest]) -> None:
        """Note what the answers to *requests* say, while more is to be known."""
        for request in requests if self._left else ():
            self._requests -= 1
            (_, outcome, status, *_), (_, _, _, _, _, _, url, model, *_) = request.done, request.sent
            left = self._left.get((model, url), 0)
            if not left or outcome != COMPLETED or not 200 <= status < 300:
                continue
            self._left[model, url] = left - 1
            if found := _NAME.search(b"".join(request.pieces[:8])[:_BYTES]):
                with suppress(msgspec.DecodeError, UnicodeDecodeError):
                    self._new.append((self._models[model], msgspec.json.decode(found[1], type=str)))
        self._left = {key: left for key, left in self._left.items() if left} if self._requests > 0 else {}

    def taken(self) -> list[tuple[str, str]]:
        """The model asked for and the model that answered, of each answer since the call before."""
        new, self._new = self._new, []
        return list(dict.fromkeys(new))
