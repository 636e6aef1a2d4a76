"""OpenAI's images: generated of a prompt, or edited; whole, or in a stream with partial ones before."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64encode
from functools import lru_cache
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import (
    Ask,
    AskError,
    Dialect,
    Opened,
    Page,
    Piece,
    Reply,
    Usage,
    Writer,
    check_lengths,
    decoded,
    part_bytes,
    to_json,
)
from aiperf_command_simulate.forms import form_of
from aiperf_command_simulate.http1 import Request
from aiperf_command_simulate.server import Server

STEPS = 4
"""Tokens of an image that comes whole; of one that is streamed they are its partial images, and itself."""
_SIZE = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")
_MOST_IMAGES, _MOST_PARTIAL_IMAGES = 10, 3
_USUAL_SIZE = "256x256"


class _Body(Struct):
    prompt: str
    model: str = ""
    n: int | None = 1
    size: str | None = None
    response_format: str | None = None
    stream: bool | None = False
    partial_images: int | None = 0


class _Wanted(Struct, frozen=True):
    """What the answer needs to know of its images.  kind: word of its events.  host: of this server, for URLs."""

    kind: str
    width: int
    height: int
    host: str | None


_read = msgspec.json.Decoder(_Body)


@lru_cache(64)
def png(width: int, height: int, shade: int) -> bytes:
    """A picture of one grey, as PNG."""
    rows = zlib.compress((b"\0" + bytes([shade]) * width) * height, 1)
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b""))
    parts = (struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


class _Images(Writer):
    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._wanted: _Wanted = opened.ask.own

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        kind = self._wanted.kind
        event: dict[str, Any] = {**self._about(), "created_at": self.opened.created_s, "b64_json": self._b64(piece.made)}
        if piece.finish is None:
            event |= {"type": f"{kind}.partial_image", "partial_image_index": piece.made - 1}
        else:
            event |= {"type": f"{kind}.completed", "usage": _counts(self._end if usage is None else usage)}
        return self.frame(to_json(event), event["type"].encode())

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        count = len(pieces) if self.opened.faults.items is None else self.opened.faults.items
        body = {"created": self.opened.created_s, "data": [self._image(index) for index in range(count)], **self._about()}
        return to_json(body if usage is None else {**body, "usage": _counts(usage)})

    @property
    def _end(self) -> Usage:
        """The counts at the end of an image."""
        ask = self.opened.ask
        prompt = sum(-(-len(text) // 4) for text in ask.prompts)
        return Usage(prompt, (ask.max_tokens or 1) * ask.choices)

    def _about(self) -> dict[str, str]:
        size = f"{self._wanted.width}x{self._wanted.height}"
        return {"background": "opaque", "output_format": "png", "quality": "medium", "size": size}

    def _image(self, index: int) -> dict[str, str]:
        wanted = self._wanted
        if wanted.host is None:
            return {"b64_json": self._b64(index)}
        return {"url": f"http://{wanted.host}/v1/images/files/{wanted.width}x{wanted.height}-{self._shade(index)}.png"}

    def _b64(self, index: int) -> str:
        wanted = self._wanted
        return b64encode(png(wanted.width, wanted.height, self._shade(index)) + bytes(self.opened.faults.pad)).decode()

    def _shade(self, index: int) -> int:
        return (self.opened.number * 31 + index * 7) % 256


def _counts(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt, "output_tokens": usage.completion, "total_tokens": usage.prompt + usage.completion,
        "input_tokens_details": {"text_tokens": usage.prompt, "image_tokens": 0},
    }  # fmt: skip


class Generations(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/v1/images/generations",)
    done: ClassVar[bytes | None] = None

    def read(self, request: Request) -> Ask:
        sent = decoded(_read, request, "image generation request")
        return _ask(sent, (sent.prompt.encode(),), "image_generation", request)

    def writer(self, opened: Opened) -> Writer:
        return _Images(opened)


class Edits(Generations):
    """A form: the prompt, and images as files or at a URL."""

    paths = ("/v1/images/edits",)

    def read(self, request: Request) -> Ask:
        form = form_of(request)
        images = [file.content for file in form.files.get("image", ())]
        if not images and "url" not in form.fields:
            raise AskError("image is missing: a file, or a url")
        if "prompt" not in form.fields:
            raise AskError("prompt is missing")
        sent = _Body(
            form.fields["prompt"], form.fields.get("model", ""), form.whole("n", 1, _MOST_IMAGES), form.fields.get("size"),
            form.fields.get("response_format"), form.switch("stream"),
            form.whole("partial_images", 0, _MOST_PARTIAL_IMAGES, least=0),
        )  # fmt: skip
        media = images or [form.fields["url"].encode()]
        prompts = sent.prompt.encode() + b"".join(part_bytes({"image": b64encode(each).decode()}) for each in media)
        return _ask(sent, (prompts,), "image_edit", request)


def _ask(sent: _Body, prompts: tuple[bytes, ...], kind: str, request: Request) -> Ask:
    size = _SIZE.fullmatch(_USUAL_SIZE if sent.size in (None, "auto") else sent.size or "")
    if size is None:
        raise AskError(f"size is {sent.size!r}; WIDTHxHEIGHT is needed, or auto")
    count, partial, stream = sent.n or 1, sent.partial_images or 0, bool(sent.stream)
    if not 1 <= count <= _MOST_IMAGES or not 0 <= partial <= _MOST_PARTIAL_IMAGES:
        most = f"up to {_MOST_IMAGES} and {_MOST_PARTIAL_IMAGES} can be made"
        raise AskError(f"n is {count} and partial_images {partial}; {most}")
    if sent.response_format not in (None, "b64_json", "url"):
        raise AskError(f"response_format is {sent.response_format!r}; b64_json and url are known")
    host = request.headers.get("host", "localhost") if sent.response_format == "url" else None
    steps = 1 + partial if stream else STEPS
    return check_lengths(Ask(
        model=sent.model, prompts=prompts, stream=stream, choices=count, max_tokens=steps, min_tokens=steps, ignore_eos=True,
        own=_Wanted(kind, int(size[1]), int(size[2]), host),
    ))  # fmt: skip


class Files(Page):
    """The images of answers with URLs."""

    paths: ClassVar[tuple[str, ...]] = ("/v1/images/files/{name}",)
    recorded: ClassVar[bool] = True

    def answer(self, request: Request, server: Server) -> Reply:
        place = re.fullmatch(r"(\d{1,4})x(\d{1,4})-(\d{1,3})\.png", request.variables["name"])
        if place is None:
            return Reply(404, to_json({"error": {"message": "there is no such image"}}))
        width, height, shade = map(int, place.groups())
        return Reply(200, png(width, height, shade % 256), "image/png")


ROUTES = (Generations(), Edits(), Files())
