"""OpenAI's transcriptions: a clip as a form, and words for its length; streamed as OpenAI, or as vLLM sends them."""

from __future__ import annotations

import math
from base64 import b64encode
from typing import Any, ClassVar

from aiperf.sdk.sound import sound_of

from aiperf_command_simulate.dialect import (
    Ask,
    AskError,
    Dialect,
    Opened,
    Piece,
    Usage,
    Writer,
    check_lengths,
    part_bytes,
    to_json,
)
from aiperf_command_simulate.forms import form_of
from aiperf_command_simulate.http1 import Request

WORDS_PER_S = 2.5
_FORMS = ("json", "verbose_json", "text", "srt", "vtt")
_PLAIN = {"text": "text/plain; charset=utf-8", "srt": "text/plain; charset=utf-8", "vtt": "text/vtt; charset=utf-8"}


def _time(seconds: float, point: str) -> str:
    whole_ms = round(seconds * 1000)
    return f"{whole_ms // 3_600_000:02}:{whole_ms // 60_000 % 60:02}:{whole_ms // 1000 % 60:02}{point}{whole_ms % 1000:03}"


class _Transcript(Writer):
    def __init__(self, opened: Opened) -> None:
        super().__init__(opened)
        self._form, self._seconds, _ = opened.ask.own
        self.whole_type = _PLAIN.get(self._form, self.whole_type)
        self._said: list[str] = []

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        self._said.append(piece.text)
        return self.frame(to_json({"type": "transcript.text.delta", "delta": piece.text}))

    def closing(self, usage: Usage | None) -> bytes:
        done: dict[str, Any] = {"type": "transcript.text.done", "text": "".join(self._said)}
        return self.frame(to_json(done if usage is None else {**done, "usage": _counts(usage)}))

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        text, end = "".join(piece.text for piece in pieces).strip(), self._seconds or 1.0
        if self._form == "text":
            return f"{text}\n".encode()
        if self._form == "srt":
            return f"1\n{_time(0, ',')} --> {_time(end, ',')}\n{text}\n".encode()
        if self._form == "vtt":
            return f"WEBVTT\n\n{_time(0, '.')} --> {_time(end, '.')}\n{text}\n".encode()
        if self._form == "json":
            body: dict[str, Any] = {"text": text}
            return to_json(body if usage is None else {**body, "usage": _counts(usage)})
        segment: dict[str, Any] = {
            "id": 0, "seek": 0, "start": 0.0, "end": end, "text": text, "tokens": [], "temperature": 0.0, "avg_logprob": -0.1,
            "compression_ratio": 1.0, "no_speech_prob": 0.0,
        }  # fmt: skip
        return to_json({
            "task": "transcribe", "language": "english", "duration": end, "text": text, "segments": [segment],
            "usage": {"type": "duration", "seconds": math.ceil(end)},
        })  # fmt: skip


class _Chunks(_Transcript):
    """A stream of vLLM's."""

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        choice = {"delta": {"content": piece.text}, "finish_reason": piece.finish}
        return self._chunk([choice], None)

    def closing(self, usage: Usage | None) -> bytes:
        return b"" if usage is None else self._chunk([], usage.written())

    def _chunk(self, choices: list[dict[str, Any]], usage: dict[str, Any] | None) -> bytes:
        return self.frame(to_json({
            "id": f"trsc-{self.opened.number}", "object": "transcription.chunk", "created": self.opened.created_s,
            "model": self.opened.model, "choices": choices, "usage": usage,
        }))  # fmt: skip


def _counts(usage: Usage) -> dict[str, Any]:
    return {
        "type": "tokens", "input_tokens": usage.prompt, "output_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "input_token_details": {"audio_tokens": usage.prompt, "text_tokens": 0},
    }  # fmt: skip


class Transcriptions(Dialect):
    """The stream is OpenAI's, unless the form has ``stream_include_usage``, which vLLM takes."""

    paths: ClassVar[tuple[str, ...]] = ("/v1/audio/transcriptions",)
    done: ClassVar[bytes | None] = None

    def read(self, request: Request) -> Ask:
        form = form_of(request)
        files = form.files.get("file", [])
        if len(files) != 1 or not files[0].content:
            raise AskError("file is missing: a clip of sound is needed")
        kind = form.fields.get("response_format", "json")
        if kind not in _FORMS:
            raise AskError(f"response_format is {kind!r}; known are {', '.join(_FORMS)}")
        content = files[0].content
        sound = sound_of(content[: 1 << 16], len(content))
        seconds = None if sound is None else sound.seconds
        words = None if seconds is None else max(1, round(seconds * WORDS_PER_S))
        chunked = "stream_include_usage" in form.fields
        return check_lengths(Ask(
            model=form.fields.get("model", ""), prompts=(part_bytes({"audio": b64encode(content).decode()}),),
            stream=form.switch("stream"), include_usage=not chunked or form.switch("stream_include_usage"), max_tokens=words,
            min_tokens=words or 0, ignore_eos=words is not None, own=(kind, seconds, chunked),
        ))  # fmt: skip

    def writer(self, opened: Opened) -> Writer:
        return _Transcript(opened)


class ChunkedTranscriptions(Transcriptions):
    done = b"[DONE]"

    def claims(self, request: Request) -> bool:
        return b'name="stream_include_usage"' in request.body

    def writer(self, opened: Opened) -> Writer:
        return _Chunks(opened)


ROUTES = (ChunkedTranscriptions(), Transcriptions())
