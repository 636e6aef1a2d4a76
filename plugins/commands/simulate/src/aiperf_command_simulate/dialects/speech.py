"""OpenAI's speech: a tone for as long as a text would take, as bytes that come as they are made, or as events."""

from __future__ import annotations

import math
import re
import struct
from base64 import b64encode
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import (
    Ask,
    AskError,
    Dialect,
    Lines,
    Opened,
    Piece,
    RawBytes,
    ServerSentEvents,
    Usage,
    Writer,
    check_lengths,
    decoded,
    to_json,
)
from aiperf_command_simulate.http1 import Request

TOKEN_S = 0.24
"""Sound of a token: ten frames of MP3."""
_LETTERS_PER_S = 15
_RATE_PER_S = 24_000
_SAMPLES = [round(8000 * math.sin(at / 12)) for at in range(round(_RATE_PER_S * TOKEN_S))]
_PCM = struct.pack(f"<{len(_SAMPLES)}h", *_SAMPLES)
_FRAMES = (b"\xff\xf3\x84\xc0" + bytes(188)) * 10
"""MPEG 2, layer III, 64 kbit/s, 24,000 Hz, one channel: 24 ms each, silent."""
_FORM = struct.pack("<IHHIIHH", 16, 1, 1, _RATE_PER_S, 2 * _RATE_PER_S, 2, 16)
_WAV = b"RIFF\xff\xff\xff\xffWAVEfmt " + _FORM + b"data\xff\xff\xff\xff"
"""The header of a stream, whose length isn't known yet."""
_SOUNDS = {"wav": ("audio/wav", _WAV, _PCM), "pcm": ("audio/pcm", b"", _PCM), "mp3": ("audio/mpeg", b"", _FRAMES)}
_EVENTS = re.compile(rb'"stream_format"\s*:\s*"sse"')


class _Body(Struct):
    input: str
    model: str = ""
    voice: str | dict[str, str] = ""
    response_format: str = "mp3"
    stream_format: str = "audio"


_read = msgspec.json.Decoder(_Body)


class _Sound(Writer):
    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self.content_type, self._header, self._sound = _SOUNDS[opened.ask.own]
        self._made = 0

    def begin(self, prompt_tokens: int) -> bytes:
        return self._header

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        count, self._made = piece.made - self._made, piece.made
        return self._sound * count


class _SoundEvents(_Sound):
    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self.content_type = None

    def begin(self, prompt_tokens: int) -> bytes:
        return b""

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        head = b"" if self._made else self._header
        audio = b64encode(head + super().event(piece, usage)).decode()
        return self.frame(to_json({"type": "speech.audio.delta", "audio": audio}))

    def closing(self, usage: Usage | None) -> bytes:
        done: dict[str, Any] = {"type": "speech.audio.done"}
        if usage is not None:
            prompt, made = usage.prompt, usage.completion
            done["usage"] = {"input_tokens": prompt, "output_tokens": made, "total_tokens": prompt + made}
        return self.frame(to_json(done))


class Speech(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/v1/audio/speech",)
    done: ClassVar[bytes | None] = None
    framing: ClassVar[type[ServerSentEvents] | type[Lines] | type[RawBytes]] = RawBytes

    def read(self, request: Request) -> Ask:
        sent = decoded(_read, request, "speech request")
        if not sent.input or not sent.voice:
            raise AskError("input and voice must not be empty")
        if sent.response_format not in _SOUNDS:
            raise AskError(f"response_format is {sent.response_format!r}; known are {', '.join(_SOUNDS)}")
        tokens = max(1, round(len(sent.input) / _LETTERS_PER_S / TOKEN_S))
        return check_lengths(Ask(
            model=sent.model, prompts=(sent.input.encode(),), stream=True, max_tokens=tokens, min_tokens=tokens,
            ignore_eos=True, own=sent.response_format,
        ))  # fmt: skip

    def writer(self, opened: Opened) -> Writer:
        return _Sound(opened)


class SpeechEvents(Speech):
    framing = ServerSentEvents

    def claims(self, request: Request) -> bool:
        return _EVENTS.search(request.body) is not None

    def writer(self, opened: Opened) -> Writer:
        return _SoundEvents(opened)


ROUTES = (SpeechEvents(), Speech())
