"""Two live views: one stops a run whose time to first token passes a bound, one posts the end of a run to a URL."""

from __future__ import annotations

import json
import logging
from urllib.request import Request, urlopen

from aiperf import LiveEnd, LiveView, Snapshot
from aiperf.sdk.live import LiveRun

from acme_lookout.options import BrakeOptions, MessengerOptions


class Brake(LiveView[BrakeOptions]):
    def begin(self, run: LiveRun) -> None:
        self._asked = False

    def show(self, snapshot: Snapshot) -> None:
        ttft, bound = snapshot.metric("time_to_first_token"), self.options.bound_ms
        if self._asked or ttft is None or ttft.so_far.p99 is None or bound is None:
            return
        if snapshot.kind == "profiling" and ttft.so_far.p99 > bound:
            self._asked = True
            self.ask_stop(f"TTFT p99 {ttft.so_far.p99:.1f} ms passed {bound:g} ms")


class Messenger(LiveView[MessengerOptions]):
    def begin(self, run: LiveRun) -> None:
        self._last: Snapshot | None = None

    def show(self, snapshot: Snapshot) -> None:
        self._last = snapshot

    def end(self, end: LiveEnd) -> None:
        summary, last = end.summary, self._last
        told = {
            "code": end.code, "failure": end.failure, "files": list(end.files),
            "requests": None if summary is None else summary.valid,
            "reason": None if summary is None else summary.incomplete_reason,
            "last": None if last is None else {"done": last.completed + last.errors, "last": last.last},
        }  # fmt: skip
        request = Request(str(self.options.url), json.dumps(told).encode(), {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=60) as answer:
                self.say(f"posted: {answer.status}")
        except OSError as error:
            self.say(f"the end can't be posted: {error}", logging.WARNING)
