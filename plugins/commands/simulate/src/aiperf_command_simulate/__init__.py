"""``aiperf simulate``: a local server that behaves like an inference engine and serves its own truth."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf.sdk.command import Command

from aiperf_command_simulate.options import SimulateOptions


class Simulate(Command[SimulateOptions]):
    """Serves until Ctrl-C or SIGTERM; both end it with 0."""

    def run(self, options: SimulateOptions, words: Sequence[str]) -> int:
        from aiperf_command_simulate.process import serve
        from aiperf_command_simulate.scenario import scenario

        serve(scenario(options))
        return 0
