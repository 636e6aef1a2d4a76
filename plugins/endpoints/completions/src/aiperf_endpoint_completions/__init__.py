"""The text-completions dialect: encodes a prompt; decodes its continuation, streamed or whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from aiperf import BadDataset, Capabilities, Delta, Endpoint, HttpRequest, Turn, in_band_error, unreadable
from aiperf.sdk.endpoint import DecodingReader, Prompt
from aiperf_dialects.choices import Choices, documents, reason_of
from aiperf_dialects.spec_decode import NO_METRICS, SERVER_TIMING, SPEC_DECODE, server_metrics
from msgspec import Raw, Struct


class _Choice(Struct):
    text: str | None = None
    finish_reason: Any = None


class _Answer(Struct):
    """A chunk or a whole answer: both have the same form."""

    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    metrics: Raw = NO_METRICS


class _Request(Struct):
    prompt: str | list[str | int | list[int]]


_read = msgspec.json.Decoder(_Answer).decode
_read_prompt = msgspec.json.Decoder(_Request).decode


def _tokens(part: int | list[int]) -> list[int]:
    return [part] if isinstance(part, int) else part


class CompletionsReader(DecodingReader):
    """Reads each event by itself, and keeps the events for the texts of several choices."""

    def __init__(self, decode: Callable[[bytes], Delta | None]) -> None:
        super().__init__(decode)
        self._events: list[Sequence[bytes]] = []

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        self._events.append(events)
        return list(map(self.decode, events))

    def choices(self) -> Sequence[Delta] | None:
        """Each of several choices, in the order of their index; None for one."""
        texts: dict[int, list[str]] = {}
        choices = Choices()
        for document in documents(event for events in self._events for event in events):
            for index, choice in choices.take(document):
                texts.setdefault(index, []).append(text if isinstance(text := choice.get("text"), str) else "")
        return choices.told({index: Delta("".join(pieces)) for index, pieces in texts.items()})


class Completions(Endpoint):
    """``POST /v1/completions``."""

    capabilities = Capabilities(
        path="/v1/completions",
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
    )
    texts = (SPEC_DECODE, SERVER_TIMING)
    repeats_envelope = True
    plain_prompts = True
    splices_text = True
    answers_each_text = True

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The turn has media or earlier messages, which a prompt can't express.
        """
        if turn.history or turn.media:
            content = "media" if turn.media else "earlier messages"
            raise BadDataset(f"completions can't send {content}: a prompt is text alone", "use --endpoint-type chat")
        body: dict[str, Any] = {
            "prompt": list(turn.texts) if len(turn.texts) > 1 else turn.text,
            "model": turn.model,
            "stream": turn.stream,
        }
        if turn.max_tokens is not None:
            body["max_tokens"] = turn.max_tokens
        body.update(turn.extra)
        if body["stream"]:
            given = body.get("stream_options", {})
            if isinstance(given, dict):  # any other value is sent as given
                body["stream_options"] = {"include_usage": True} | given
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        """The ``prompt``: a text, texts, ids, or lists of ids; None for any other body."""
        try:
            prompt = _read_prompt(request.body).prompt
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # a payload of the data set may be anything
            return None
        if isinstance(prompt, str):
            return Prompt([prompt])
        texts = [part for part in prompt if isinstance(part, str)]
        return Prompt(texts, [token for part in prompt if not isinstance(part, str) for token in _tokens(part)])

    def reader(self) -> CompletionsReader:
        return CompletionsReader(self.decode)

    def decode(self, event: bytes) -> Delta | None:
        if event == b"[DONE]" or not event:
            return None
        try:
            answer = _read(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise in_band_error(event) or unreadable("completions", event, error) from error
        choices = answer.choices
        extra = server_metrics(answer.metrics) if answer.metrics else None
        if answer.error or not choices:
            failure = None if answer.usage and not answer.error else in_band_error(event)
            if failure is not None:
                raise failure
            return Delta(usage=answer.usage, extra=extra)
        if len(choices) == 1:
            return Delta(choices[0].text or "", "", "", answer.usage, reason_of(choices[0].finish_reason), 0, extra)
        finish = next((reason_of(choice.finish_reason) for choice in choices if choice.finish_reason), None)
        return Delta("".join(choice.text or "" for choice in choices), usage=answer.usage, finish=finish, extra=extra)
