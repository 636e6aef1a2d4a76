"""Errors by kind: their number is bounded, whatever a server writes into its messages."""

from __future__ import annotations

import random

import msgspec
from aiperf.sdk.model import ErrorDetails
from aiperf_reducer_columns.statistics.phase_counts import MOST, Counts, bounded, counted


def error(message: str, kind: str | None = "Busy", code: int | None = 503) -> str:
    return msgspec.json.encode(ErrorDetails(message, type=kind, code=code)).decode()


def counts(*errors: str) -> Counts:
    found: Counts = {}
    for at, one in enumerate(errors):
        counted(found, one, 1, float(at))
    return found


def by_message(errors: Counts) -> dict[str, tuple[int, float]]:
    return {msgspec.json.decode(text)["message"]: seen for text, seen in errors.items()}


def test_few_messages_stay_as_they_are():
    few = counts(*(error(f"request {i}") for i in range(MOST)))
    assert bounded(few) == few


def test_too_many_messages_of_one_kind_are_counted_as_one():
    many = counts(*(error(f"request {i}") for i in range(MOST + 1)), error("gone", "Gone", 410))
    assert by_message(bounded(many)) == {"more than 100 different messages": (MOST + 1, 0.0), "gone": (1, MOST + 1.0)}


def test_types_and_codes_are_bounded_too():
    types = counts(*(error("m", f"Type{i}", 500) for i in range(MOST + 1)), error("m", "Other", 400))
    assert by_message(bounded(types)) == {"more than 100 different types of error": (MOST + 1, 0.0), "m": (1, MOST + 1.0)}
    codes = counts(*(error("m", None, i) for i in range(MOST + 1)))
    assert by_message(bounded(codes)) == {"more than 100 different codes of errors": (MOST + 1, 0.0)}


def test_neither_order_nor_merging_changes_the_outcome():
    draw = random.Random(3)
    errors = [error(f"request {i % 150}", "Busy") for i in range(400)] + [error(f"m{i}", "Rare", 400) for i in range(60)]
    errors += [error("m", f"Type{i}", 418) for i in range(130)]
    whole = bounded(counts(*errors))
    for _ in range(5):
        marked = list(enumerate(errors))
        draw.shuffle(marked)
        merged: Counts = {}
        for begin in range(0, len(marked), 70):
            part: Counts = {}
            for at, one in marked[begin : begin + 70]:
                counted(part, one, 1, float(at))
                part = bounded(part)
            for one, (count, first_ns) in part.items():
                counted(merged, one, count, first_ns)
            merged = bounded(merged)
        assert merged == whole
