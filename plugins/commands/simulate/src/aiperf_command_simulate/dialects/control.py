"""What operators tell a server: vLLM's and SGLang's resets of the prefix cache, and the profiler's switch."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from aiperf_command_simulate.dialect import Page, Reply
from aiperf_command_simulate.http1 import Request

if TYPE_CHECKING:
    from aiperf_command_simulate.server import Server


class Reset(Page):
    """Forgets every block of the prefix cache."""

    method = "POST"
    paths: ClassVar[tuple[str, ...]] = ("/reset_prefix_cache", "/flush_cache")

    def answer(self, request: Request, server: Server) -> Reply:
        server.engine.cache.clear()
        server.truth.called(request.path)
        return Reply(body=b"")


class Profiler(Page):
    """Notes when it was switched."""

    method = "POST"
    paths: ClassVar[tuple[str, ...]] = ("/start_profile", "/stop_profile")

    def answer(self, request: Request, server: Server) -> Reply:
        server.truth.called(request.path)
        return Reply(body=b"")


ROUTES = (Reset(), Profiler())
