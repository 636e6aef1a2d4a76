"""The priority of a view's process until it has begun: which changes come, in which order."""

from __future__ import annotations

import pytest
from aiperf.run.views import ViewPriority


class Process:
    """Notes what is asked of it.  allows: whether the system does it; unread: bytes that it has not read."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.allows, self.unread = True, 10

    def raise_priority(self) -> bool:
        self.asked.append("raise")
        return self.allows

    def lower_priority(self) -> bool:
        self.asked.append("lower")
        return self.allows


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_view_that_begins_soon_is_only_lowered(process: Process, clock: Clock) -> None:
    priority = ViewPriority(process, clock)
    assert priority.follow() and process.asked == []
    process.unread = 0
    assert not priority.follow() and process.asked == ["lower"]


def test_a_view_without_a_core_is_raised_until_it_has_begun(process: Process, clock: Clock) -> None:
    priority = ViewPriority(process, clock)
    clock.now_s += 0.6
    assert priority.follow() and priority.follow() and process.asked == ["raise"]
    process.unread = 0
    assert not priority.follow() and process.asked == ["raise", "lower"]


def test_the_load_lowers_a_view_and_two_seconds_raise_it_once_more(process: Process, clock: Clock) -> None:
    priority = ViewPriority(process, clock)
    clock.now_s += 0.6
    priority.follow()
    priority.stand_back()
    clock.now_s += 1.9
    assert priority.follow() and process.asked == ["raise", "lower"]
    clock.now_s += 0.2
    assert priority.follow() and process.asked == ["raise", "lower", "raise"]


def test_a_view_that_hangs_keeps_the_priority_for_ten_seconds(process: Process, clock: Clock) -> None:
    priority = ViewPriority(process, clock)
    clock.now_s += 0.6
    priority.follow()
    clock.now_s += 10.1
    assert not priority.follow() and process.asked == ["raise", "lower"]


def test_what_the_system_puts_off_is_asked_for_again(process: Process, clock: Clock) -> None:
    priority = ViewPriority(process, clock)
    process.allows, process.unread = False, 0
    assert priority.follow()
    process.allows, process.unread = True, 10  # a snapshot has come meanwhile
    assert not priority.follow() and process.asked == ["lower", "lower"]
