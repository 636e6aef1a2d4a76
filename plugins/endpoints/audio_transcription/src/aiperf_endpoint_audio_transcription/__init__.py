"""OpenAI's transcription: a clip out as a form; its text back: JSON, plain text, subtitles, or a stream of either dialect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from aiperf import BadDataset, BadResponse, Capabilities, Delta, Endpoint, HttpRequest, Media, Turn
from aiperf.sdk.endpoint import Prompt, Reader
from aiperf_dialects.forms import FormFields, sound_file
from aiperf_dialects.growing import BatchReader
from aiperf_dialects.turns import check_shared
from msgspec import Struct

from aiperf_endpoint_audio_transcription.options import AudioTranscriptionOptions

_PLAIN = ("text", "srt", "vtt")
_SILENT_WAV = "wav,UklGRqQMAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YYAMAAAA" + "A" * 4268
"""A clip of 0.1 s: 16,000 samples a second, 16 bits, one channel."""
_MARKUP = re.compile(r"\s*<(?:!doctype|html|\?xml)\b", re.IGNORECASE)
_CUE = re.compile(r"^(?:\d+[ \t\r]*\n)?[ \t]*[\d:.,]+ --> [^\n]*\n?", re.MULTILINE)


class _Spoken(Struct):
    content: str | None = None


class _Choice(Struct):
    delta: _Spoken | None = None
    finish_reason: str | None = None


class _Event(Struct):
    """A whole answer (``text``), an event of OpenAI's streams (``type``), or a chunk of vLLM's (``choices``)."""

    type: str | None = None
    text: str | None = None
    delta: str | None = None
    choices: list[_Choice] | None = None
    usage: Any = None


class TranscriptReader(BatchReader[_Event]):
    """Reads one answer.  plain: answers may be plain text, too.

    The text of ``transcript.text.done`` counts where no delta came before it.  A transcript without any word is an answer.
    """

    dialect, event_type = "audio_transcription", _Event

    def __init__(self, *, plain: bool = False) -> None:
        self._plain, self._said, self._ended = plain, False, False

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        if self._plain and not (events and events[0].lstrip().startswith((b"{", b"[DONE]"))):
            return list(map(self._text, events))
        return super().feed(events, names)

    def delta(self, event: _Event, data: bytes) -> Delta | None:
        finish = None
        if event.choices is not None:
            choice = event.choices[0] if event.choices else _Choice()
            finish = choice.finish_reason
            text = "" if choice.delta is None else choice.delta.content or ""
            self._ended = self._ended or finish is not None
        elif event.type is not None and event.type != "transcript.text.done":
            if event.type != "transcript.text.delta":
                return self.empty(data)  # segments of speakers, which the deltas have, too; or an error
            text = event.delta or ""
        elif event.text is None:
            return self.empty(data)
        else:
            text, self._ended = "" if self._said else event.text, True
        self._said = self._said or bool(text)
        return Delta(text, usage=event.usage, finish=finish)

    def close(self) -> Delta | None:
        return Delta(items=1) if self._ended and not self._said else None

    def _text(self, data: bytes) -> Delta:
        """A whole body of plain text, or of subtitles.

        Raises:
            BadResponse: It is neither.
        """
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise BadResponse(f"{self.dialect}: neither JSON nor text: {error.reason}", raw=data, unreadable=True) from error
        if _MARKUP.match(text):
            raise BadResponse(f"{self.dialect}: a page of markup, not a transcript", raw=data, unreadable=True)
        text = _CUE.sub("", text.removeprefix("WEBVTT")).strip() if "-->" in text else text.strip()
        self._said, self._ended = bool(text), True
        return Delta(text)


class AudioTranscription(Endpoint[AudioTranscriptionOptions]):
    """``POST /v1/audio/transcriptions``.  Texts of a turn are not sent: they are what a chat would be told to do."""

    capabilities = Capabilities(
        path="/v1/audio/transcriptions", streaming=True, tokens_streamed=True, media_in=("audio",), inline_media=True,
        forms=True, takes=("response_format",), title="Audio Transcription Metrics",
    )  # fmt: skip

    def __init__(self, options: AudioTranscriptionOptions | None = None) -> None:
        super().__init__(options or AudioTranscriptionOptions())
        self._form = FormFields("audio_transcription", self.capabilities.path, ("file", "stream"))

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The turn has another number of clips than one, or a response_format of its own.
        """
        if len(turn.media) != 1 and turn.payload is None:
            count = f"{len(turn.media)} of them" if turn.media else "none"
            raise BadDataset(f"audio_transcription needs one clip, and the turn has {count}", "give each row one audio")
        check_shared(turn, "response_format")
        fields: dict[str, Any] = {"model": turn.model, "response_format": self.options.response_format}
        if turn.stream:
            fields["stream"] = True
            if turn.server_counts:
                fields["stream_include_usage"] = True
        return self._form.request(turn, fields, [sound_file(media) for media in turn.media])

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return Prompt()

    def probe(self) -> Turn:
        return Turn((), (Media("audio", _SILENT_WAV),))

    def reader(self) -> Reader:
        return TranscriptReader(plain=self.options.response_format in _PLAIN)

    def decode(self, event: bytes) -> Delta | None:
        (delta,) = self.reader().feed([event], [None])
        return delta
