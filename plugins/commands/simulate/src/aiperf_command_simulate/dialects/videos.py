"""OpenAI's videos: a job for a prompt, its status, and its film."""

from __future__ import annotations

import time
from typing import ClassVar

from aiperf_command_simulate.dialect import Ask, AskError, Dialect, Opened, Page, Piece, Reply, Usage, Writer, to_json
from aiperf_command_simulate.forms import form_of
from aiperf_command_simulate.http1 import Request
from aiperf_command_simulate.jobs import film_pieces
from aiperf_command_simulate.server import Server


class _Submitted(Writer):
    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        opened = self.opened
        job = opened.jobs.begin(opened.number, opened.model, opened.ask.own, opened.faults.job, opened.faults.film)
        opened.record.job_ends_mono_ns = job.ends_ns
        return to_json(job.state(job.begun_ns))


class Videos(Dialect):
    """The engine computes the prompt alone; the film takes ``--film-ms``, however many are made."""

    paths: ClassVar[tuple[str, ...]] = ("/v1/videos",)

    def read(self, request: Request) -> Ask:
        fields = form_of(request).fields
        if not fields.get("prompt"):
            raise AskError("prompt is missing")
        asked = fields["prompt"], fields.get("seconds", "4"), fields.get("size", "720x1280")
        return Ask(model=fields.get("model", ""), prompts=(fields["prompt"].encode(),), prefill_only=True, own=asked)

    def writer(self, opened: Opened) -> Writer:
        return _Submitted(opened)


_LOST = Reply(404, to_json({"error": {"message": "there is no such video", "type": "NotFoundError", "code": 404}}))


class Status(Page):
    paths: ClassVar[tuple[str, ...]] = ("/v1/videos/{name}",)
    recorded: ClassVar[bool] = True

    def answer(self, request: Request, server: Server) -> Reply:
        job = server.jobs.get(request.variables["name"])
        return _LOST if job is None else Reply(body=to_json(job.state(time.monotonic_ns())))


class Content(Page):
    """The film, of ``--film-bytes`` bytes."""

    paths: ClassVar[tuple[str, ...]] = ("/v1/videos/{name}/content",)
    recorded: ClassVar[bool] = True

    def answer(self, request: Request, server: Server) -> Reply:
        job, length = server.jobs.get(request.variables["name"]), server.jobs.film_bytes
        if job is None or job.film == "missing" or job.state(time.monotonic_ns())["status"] != "completed":
            return _LOST
        sent = length // 2 if job.film == "cut" else length
        return Reply(content_type="video/mp4", pieces=film_pieces(sent), length=length)


ROUTES = (Videos(), Status(), Content())
