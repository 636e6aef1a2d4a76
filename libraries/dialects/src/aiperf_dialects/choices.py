"""Several choices of one answer (``n``): what is each choice's own, its reason and its token counts among it.

Servers count in three ways.  One usage is of the whole answer (OpenAI, vLLM, also behind the counts so far that it sends with
each piece of a choice).  Usages that stand with a choice are of that choice, the last one of all of it.  llama.cpp sends a
usage without a choice for each choice; of an answer that is no stream it sends that of the first choice alone, beside its
``timings``.  All else can't be told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from aiperf import Delta
from msgspec.structs import replace


class Choices:
    """Puts the choices of an answer apart by their index."""

    def __init__(self) -> None:
        self._reasons: dict[int, str] = {}
        self._usages: dict[int, Any] = {}
        self._alone: list[Any] = []  # usages that stand with no choice, or with several
        self._events = 0  # with a usage
        self._first_alone = False  # the one usage is of the first choice

    def take(self, document: Mapping[str, Any]) -> Iterable[tuple[int, dict[str, Any]]]:
        """Each choice in an event, or in a whole answer, with its index."""
        found = document.get("choices")
        choices = [choice for choice in found if isinstance(choice, dict)] if isinstance(found, list) else []
        indexed = [(index if isinstance(index := choice.get("index"), int) else 0, choice) for choice in choices]
        for index, choice in indexed:
            if (reason := reason_of(choice.get("finish_reason"))) is not None:
                self._reasons[index] = reason
        if (usage := document.get("usage")) not in (None, {}):
            self._events += 1
            if len(indexed) == 1:
                self._usages[indexed[0][0]] = usage
            else:
                self._alone.append(usage)
                self._first_alone = len(indexed) > 1 and _is_of_one(usage, document.get("timings"))
        return indexed

    def told(self, deltas: Mapping[int, Delta]) -> Sequence[Delta] | None:
        """The *deltas* of the choices in the order of their index, with the reason and the usage of each; None for one."""
        if len(deltas) < 2:
            return None
        usages = self._told_usages(sorted(deltas))
        return [
            replace(deltas[index], finish=self._reasons.get(index), usage=usage)
            for index, usage in zip(sorted(deltas), usages, strict=True)
        ]

    def _told_usages(self, indices: Sequence[int]) -> Sequence[Any]:
        """The usage of each choice; None for all: the usage is of all; {} for some: it can't be told."""
        count = len(indices)
        unknown: list[Any] = [{}, *[None] * (count - 1)]
        if self._first_alone:
            return unknown
        if self._events < 2 or len(self._alone) == 1:
            return [None] * count
        known = self._alone or [self._usages.get(index) for index in indices]
        return known if len(known) == count and None not in known else unknown


def reason_of(reason: Any) -> str | None:
    """A reason as sent; one that is no text as JSON."""
    return reason if isinstance(reason, str) or reason is None else msgspec.json.encode(reason).decode()


def documents(events: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    """The events that are JSON objects; the end marker is none."""
    for event in events:
        try:
            document = msgspec.json.decode(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(document, dict):
            yield document


def _is_of_one(usage: Any, timings: Any) -> bool:
    if not isinstance(usage, dict) or not isinstance(timings, dict):
        return False
    counted = usage.get("completion_tokens")
    return counted is not None and counted == timings.get("predicted_n")


__all__ = ["Choices", "documents", "reason_of"]
