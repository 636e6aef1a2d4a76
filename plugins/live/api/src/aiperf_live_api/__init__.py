"""``--api-port``: a run on a port while it goes on: its page, JSON, server-sent events, Prometheus; and the way to stop it."""

from __future__ import annotations

import logging

from aiperf.sdk.errors import AiperfError
from aiperf.sdk.live import LiveEnd, LiveFeed, LiveRun, LiveView, Step
from aiperf.sdk.snapshot import LogLine, Snapshot

from aiperf_live_api.options import ApiOptions

_STOPS = "asked over the API"


class Api(LiveView[ApiOptions]):
    """Serves the run until a little behind its end."""

    def __init__(self, options: ApiOptions | None = None) -> None:
        super().__init__(options or ApiOptions(api_port=0))
        from aiperf_live_api.board import Board  # the run's own process imports this module, and needs no server
        from aiperf_live_api.limits import Limits
        from aiperf_live_api.watching import Watch

        self._limits = Limits.of_environment()
        self.board = Board(live=True, most_clients=self._limits.most_clients)
        self._watch = Watch(self.board)

    def begin(self, run: LiveRun) -> None:
        self._watch.begin(run)

    def step(self, step: Step) -> None:
        self._watch.step(step)

    def show(self, snapshot: Snapshot) -> None:
        self._watch.show(snapshot)

    def log(self, line: LogLine) -> None:
        self._watch.log(line)

    def end(self, end: LiveEnd) -> None:
        self._watch.end(end)

    def run(self, feed: LiveFeed) -> None:
        """Serve; without its port the run goes on, and a warning says why."""
        import asyncio

        from aiperf_live_api.serving import Serving

        serving = Serving(self.options, self.board, self._limits, self._ask)
        try:
            url = serving.listen()
        except AiperfError as error:
            self.say(f"the run is not served: {error.message}; {'; '.join(error.hints)}", logging.WARNING)
            super().run(feed)
            return
        known = self.options.api_token is not None  # whoever gave it has it, and standard error may be kept
        self.tell(f"the run is served on {url}/{'' if known else f'#{serving.token}'}")
        asyncio.run(serving.run(feed))

    def _ask(self, kind: str) -> None:
        (self.ask_stop if kind == "stop" else self.ask_cancel)(_STOPS)


__all__ = ["Api", "ApiOptions"]
