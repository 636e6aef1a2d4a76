"""The alarm on platforms without timerfd; the other one rings in every test of the server."""

from __future__ import annotations

from aiperf_command_simulate.alarm import LoopAlarm


class Timer:
    def __init__(self, at_s):
        self.at_s = at_s
        self.cancelled = False

    def cancel(self):
        self.cancelled = True


class Loop:
    def __init__(self):
        self.timers = []

    def call_at(self, at_s, callback):
        self.timers.append(Timer(at_s))
        return self.timers[-1]


def test_setting_an_alarm_anew_replaces_the_old_one():
    loop = Loop()
    alarm = LoopAlarm(loop, list)
    alarm.set(1_500_000_000)
    alarm.set(2_000_000_000)
    assert [(timer.at_s, timer.cancelled) for timer in loop.timers] == [(1.5, True), (2.0, False)]
    alarm.set(None)
    assert loop.timers[1].cancelled
    alarm.close()
    assert len(loop.timers) == 2
