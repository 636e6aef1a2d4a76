"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf.testing import EndpointContract

from aiperf_endpoint_audio_speech import AudioSpeech

_HEADER = (
    b"RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00"
    b"data\xff\xff\xff\xff"
)
"""A stream of 8,000 samples a second, 16 bits, one channel."""


class AudioSpeechContract(EndpointContract):
    endpoint = AudioSpeech()
    transcript = (
        b'{"type":"speech.audio.delta","audio":"UklGRv////9XQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0Yf////8="}',
        b'{"type":"speech.audio.delta","audio":"' + b"AAAA" * 2000 + b'"}',
        b'{"type":"speech.audio.done","usage":{"input_tokens":3,"output_tokens":40}}',
    )
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"input_tokens": 3, "output_tokens": 40}
    numbers: ClassVar[dict[str, float] | None] = {"made_sound_s": 6000 / 16000}
    silent = (b'{"type":"speech.audio.delta","audio":""}',)
    drained = _HEADER + bytes(16000)
