"""The generate API of Text Generation Inference: encodes ``inputs`` and ``parameters``; decodes tokens, or the whole text."""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import BadResponse, Capabilities, Delta, Endpoint, HttpRequest, Turn, unreadable
from aiperf.sdk.endpoint import Prompt
from aiperf_dialects.choices import reason_of
from aiperf_dialects.growing import BatchReader
from aiperf_dialects.prompts import prompt_of
from msgspec import Struct

TOP_LEVEL = ("model", "stream")
"""Extra inputs that servers of this API read beside ``parameters``."""


class Token(Struct, gc=False):
    """special: of the model's own marks, as the end of the text; the server leaves them out of ``generated_text``."""

    text: str = ""
    special: bool = False

    @property
    def shown(self) -> str:
        return "" if self.special else self.text


class Details(Struct, gc=False):
    """generated_tokens, input_length: counts.  prefill: a list with each token of the prompt, empty unless asked for."""

    finish_reason: Any = None
    generated_tokens: Any = None
    input_length: Any = None
    prefill: Any = None

    @property
    def usage(self) -> dict[str, Any] | None:
        prefilled = len(self.prefill) if isinstance(self.prefill, list) else 0
        counts = {"prompt_tokens": prefilled or self.input_length, "completion_tokens": self.generated_tokens}
        return {name: count for name, count in counts.items() if count is not None} or None


class Answer(Struct, gc=False):
    """An event of a stream, with a token, or a whole answer."""

    token: Token | None = None
    generated_text: str | None = None
    details: Details | None = None


_read_list = msgspec.json.Decoder(list[Answer]).decode


class TgiReader(BatchReader[Answer]):
    """Reads one answer.  The last event of a stream repeats the text in ``generated_text``, which does not count."""

    dialect, event_type = "huggingface_generate", Answer

    def delta(self, event: Answer, data: bytes) -> Delta | None:
        text = event.generated_text if event.token is None else event.token.shown
        if event.details is not None:
            return Delta(text or "", usage=event.details.usage, finish=reason_of(event.details.finish_reason))
        return self.empty(data) if text is None else Delta(text)

    def each(self, data: bytes) -> Delta | None:
        """The Delta of one event; a whole answer may stand in a list."""
        try:
            return super().each(data)
        except BadResponse:
            if not data.lstrip().startswith(b"["):
                raise
        try:
            (answer,) = _read_list(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise unreadable(self.dialect, data, error) from error
        return self.delta(answer, data)


class HuggingfaceGenerate(Endpoint):
    """``POST /generate``, streamed ``/generate_stream``."""

    capabilities = Capabilities(
        path="/generate",
        streaming_path="/generate_stream",
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
        media_in=("image",),
        service_kind="tgi",
    )
    plain_prompts = True

    def encode(self, turn: Turn) -> HttpRequest:
        images = (piece for media in turn.media for piece in ("![](", media.value, ")"))  # joined once: each copy costs 0.3 ms
        parameters: dict[str, Any] = {} if turn.max_tokens is None else {"max_new_tokens": turn.max_tokens}
        parameters |= {name: value for name, value in turn.run_extra.items() if name not in TOP_LEVEL}
        body: dict[str, Any] = {"inputs": "".join((*images, " ".join(turn.texts))), "parameters": parameters}
        body |= {name: turn.run_extra[name] for name in TOP_LEVEL if name in turn.run_extra}
        body |= turn.row_extra
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def reader(self) -> TgiReader:
        return TgiReader()
