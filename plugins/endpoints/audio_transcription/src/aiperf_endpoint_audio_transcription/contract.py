"""Answers for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf.testing import EndpointContract

from aiperf_endpoint_audio_transcription import AudioTranscription


class AudioTranscriptionContract(EndpointContract):
    """A stream of OpenAI's."""

    endpoint = AudioTranscription()
    transcript = (
        b'{"type":"transcript.text.delta","delta":"Hello"}', b'{"type":"transcript.text.delta","delta":" there."}',
        b'{"type":"transcript.text.done","text":"Hello there.","usage":{"type":"tokens","input_tokens":14,"output_tokens":4}}',
    )  # fmt: skip
    answer = "Hello there."
    usage: ClassVar[dict[str, Any] | None] = {"type": "tokens", "input_tokens": 14, "output_tokens": 4}
    whole = b'{"text":"Hello there.","usage":{"type":"tokens","input_tokens":14,"output_tokens":4}}'
    silent = (b'{"type":"transcript.text.segment","text":"Hello","speaker":"A"}',)


class ChunkedTranscriptionContract(EndpointContract):
    """A stream of vLLM's."""

    endpoint = AudioTranscription()
    transcript = (
        b'{"object":"transcription.chunk","choices":[{"delta":{"content":"Hello"}}]}',
        b'{"object":"transcription.chunk","choices":[{"delta":{"content":" there."},"finish_reason":"stop"}]}',
        b'{"object":"transcription.chunk","choices":[],"usage":{"prompt_tokens":14,"completion_tokens":4,"total_tokens":18}}',
        b"[DONE]",
    )
    answer = "Hello there."
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 14, "completion_tokens": 4, "total_tokens": 18}
    silent = (b'{"object":"transcription.chunk","choices":[{"delta":{}}]}',)
