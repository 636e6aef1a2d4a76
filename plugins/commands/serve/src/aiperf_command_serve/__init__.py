"""``aiperf serve DIR...``: finished runs in a browser: a list, and of each run the page and the routes of a run under way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aiperf import Command, UsageError

from aiperf_command_serve.options import ServeOptions


class Serve(Command[ServeOptions]):
    """Serves until Ctrl-C or SIGTERM; both end it with 0."""

    arguments = "DIR..."

    def run(self, options: ServeOptions, words: Sequence[str]) -> int:
        if not words:
            raise UsageError("serve needs a directory", "for example: aiperf serve artifacts")
        import asyncio

        from aiperf_pages.guard import is_loopback
        from aiperf_pages.ports import address_of, listen
        from aiperf_pages.tokens import new_token, token_of_environment

        from aiperf_command_serve.runs import ServedRuns
        from aiperf_command_serve.site import serve

        runs = ServedRuns([Path(word) for word in words])
        runs.look()  # a directory without results ends it before anything listens
        token = token_of_environment() or new_token()
        listening = listen(options.host, options.port)
        url = address_of(options.host, listening)
        count = len(runs.listed())
        where = f"{url}/" if is_loopback(options.host) else f"{url}/#{token}"

        def ready() -> None:
            print(f"{count} run{'' if count == 1 else 's'} on {where}", flush=True)

        asyncio.run(serve(runs, listening, options.host, token, ready))
        print("stopped", file=sys.stderr)
        return 0


__all__ = ["Serve"]
