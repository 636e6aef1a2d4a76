"""Traces of agents: sessions of a set, filtered by harness, model and benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aiperf import BadDataset, DatasetContext, Turn
from aiperf_dataset_exgentic.dataset import Sessions

from aiperf_dataset_public.sets import PublicSet


class Agents:
    """Makes conversations of rows with spans.

    Raises:
        BadDataset: The set has no such filter or value, or no session has these together.
    """

    def __init__(self, name: str, public: PublicSet, context: DatasetContext, filters: Mapping[str, str]) -> None:
        check(name, public, filters)
        self._sessions = Sessions(context.capabilities, apart=context.replay, filters=filters)

    def of(self, row: dict[str, Any], place: str) -> Iterator[tuple[str, tuple[Turn, ...]]]:
        """Names and turns of the conversations of a row; none where the filters leave it out."""
        return self._sessions.of(_without_nulls(row), place)

    def finish(self, name: str) -> None:
        """
        Raises:
            BadDataset: No session was read; the message has the pairs of harness and model that there are.
        """
        self._sessions.finish(name)


def check(name: str, public: PublicSet, filters: Mapping[str, str]) -> None:
    """
    Raises:
        BadDataset: As :class:`Agents`.
    """
    flag = "--dataset-filter"
    for key, value in filters.items():
        if key not in public.filters:
            raise BadDataset(f"{flag} {key}: {name} has no such filter", f"its filters: {', '.join(public.filters)}")
        if value.casefold() not in map(str.casefold, public.filters[key]):
            raise BadDataset(f"{flag} {key}={value}: {name} has no such {key}", f"it has {', '.join(public.filters[key])}")
    chosen = {key: filters[key] for key in ("harness", "source_model") if key in filters}
    for absent in public.absent:
        if {value.casefold() for value in chosen.values()} >= {one.casefold() for one in absent}:
            pair = " and ".join(f"{key}={value}" for key, value in chosen.items())
            raise BadDataset(f"{flag}: {name} has no session with {pair}", "choose another harness or model")


def _without_nulls(value: Any) -> Any:
    """All rows of a column have the same fields: a null is a field that the row doesn't have."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
