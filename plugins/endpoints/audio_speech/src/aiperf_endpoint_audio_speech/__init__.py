"""OpenAI's speech: a text out; sound back, as bytes that are counted and not kept, or as events of a stream."""

from __future__ import annotations

import binascii
from typing import Any

import msgspec
from aiperf import BadResponse, Capabilities, Delta, Endpoint, HttpRequest, Turn, Unit, in_band_error
from aiperf.sdk.endpoint import Drained, Prompt, Reader
from aiperf.sdk.exchanges import DRAINED_START
from aiperf.sdk.sound import sound_of
from aiperf_dialects.growing import BatchReader
from aiperf_dialects.prompts import prompt_of
from aiperf_dialects.turns import check_shared, one_text
from msgspec import Struct

from aiperf_endpoint_audio_speech.options import AudioSpeechOptions

_PCM_BYTES_PER_S = 24_000 * 2
"""The format ``pcm`` of OpenAI's API: 24,000 samples a second, 16 bits, one channel, no header."""
_TEXTS = (b"{", b"<")
_OWN = ("voice", "response_format", "stream_format")


class _Event(Struct):
    type: str | None = None
    audio: str | None = None
    usage: Any = None


class SpeechReader(BatchReader[_Event]):
    """Reads the events of one answer: ``speech.audio.delta`` has sound, ``speech.audio.done`` the usage."""

    dialect, event_type = "audio_speech", _Event

    def __init__(self, form: str) -> None:
        self._form, self._start, self._size = form, b"", 0

    def delta(self, event: _Event, data: bytes) -> Delta | None:
        if not event.audio:
            return Delta(usage=event.usage) if event.usage is not None else self.empty(data)
        try:
            sound = binascii.a2b_base64(event.audio, strict_mode=True)
        except (binascii.Error, ValueError) as error:  # ValueError: a character outside ASCII
            raise BadResponse(f"{self.dialect}: the base64 of the sound is damaged: {error}", raw=data[:80]) from error
        self._start += sound[: max(0, DRAINED_START - len(self._start))]
        self._size += len(sound)
        return Delta(usage=event.usage, items=1)

    def close(self) -> Delta | None:
        seconds, _ = clip_of(self._form, self._start, self._size)
        return None if seconds is None else Delta(extra={"made_sound_s": seconds})


def clip_of(form: str, start: bytes, size: int) -> tuple[float | None, int]:
    """Seconds of a clip of the format *form*, None where they aren't known; and the bytes before its sound."""
    if form == "pcm":
        return size / _PCM_BYTES_PER_S or None, 0
    sound = sound_of(start, size)
    return (None, 0) if sound is None else (sound.seconds or None, sound.begins)


class AudioSpeech(Endpoint[AudioSpeechOptions]):
    """``POST /v1/audio/speech``.  Sound that comes as bytes is drained."""

    capabilities = Capabilities(
        path="/v1/audio/speech", tokenizes_input=True, media_out=("audio",), takes=_OWN, title="Audio Speech Metrics"
    )
    numbers = {"made_sound_s": Unit.SECONDS}
    splices_text = True

    def __init__(self, options: AudioSpeechOptions | None = None) -> None:
        super().__init__(options or AudioSpeechOptions())
        self._events = self.options.stream_format == "sse"

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The turn has another number of texts than one, or a format of its own.
        """
        options, text = self.options, one_text("audio_speech", turn)
        check_shared(turn, "response_format", "stream_format")
        body: dict[str, Any] = {
            "model": turn.model, "input": text, "voice": options.voice, "response_format": options.response_format,
        }  # fmt: skip
        if options.stream_format is not None:
            body["stream_format"] = options.stream_format
        headers = {"Accept": "text/event-stream" if self._events else "*/*"}
        return HttpRequest(
            self.path(streaming=False), msgspec.json.encode(body | turn.extra), headers, drain=not self._events
        )

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def drained(self, start: bytes, received: int) -> Drained:
        if not received:
            return Drained()
        if start[:64].lstrip()[:1] in _TEXTS:
            raise in_band_error(start) or BadResponse("audio_speech: a text, not sound", raw=start)
        seconds, begins = clip_of(self.options.response_format, start, received)
        if begins >= received:
            raise BadResponse("audio_speech: a header without sound", raw=start)
        return Drained(Delta(items=1, extra=None if seconds is None else {"made_sound_s": seconds}), begins)

    def reader(self) -> Reader:
        return SpeechReader(self.options.response_format)

    def decode(self, event: bytes) -> Delta | None:
        return SpeechReader(self.options.response_format).each(event)
