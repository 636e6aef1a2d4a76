"""OpenAI's Responses API: encodes items; decodes streams of typed events, and whole answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
from aiperf import BadDataset, Capabilities, ConfigError, Endpoint, HttpRequest, Media, Message, Turn
from aiperf.sdk.endpoint import ChatPrompt, Prompt
from aiperf_dialects.chat_messages import audio_data
from aiperf_dialects.prompts import chat_of, prompt_of

from aiperf_endpoint_responses.reader import PREVIOUS, ResponsesReader

log = logging.getLogger(__name__)

_RANK = {"image": 0, "audio": 1}


class Responses(Endpoint):
    """``POST /v1/responses``.

    With ``store:true`` among the extra inputs, a turn behind a good answer sends its own messages and that answer's id; any
    other turn sends the whole history as items.
    """

    capabilities = Capabilities(
        path="/v1/responses",
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
        media_in=("image", "audio"),
        system_message=True,
        multi_turn=True,
        verbatim=True,
        cache_bust=True,
        chat_template=True,
        settings=dict.fromkeys(("stop", "seed", "frequency_penalty", "presence_penalty"), ""),
    )
    repeats_envelope = True
    plain_prompts = True
    splices_text = True
    appends_messages = True

    def __init__(self, options: None = None) -> None:
        super().__init__(options)
        self._told = False

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: A message has media that the API can't say.
            ConfigError: ``background:true``, or ``store:true`` where the tokens are counted here.
        """
        state: dict[str, Any] = {}
        if turn.extra.get("store") is True:
            self._check_store(turn)
            if PREVIOUS in turn.state:
                state = {PREVIOUS: turn.state[PREVIOUS]}
        if turn.extra.get("background"):
            raise ConfigError(
                "background:true makes an answer that is polled, and nothing of it would be measured",
                "drop it from the extra inputs",
            )
        instructions, messages = _instructions(turn.messages)
        if state:
            messages = (*turn.before, *turn.own)
        body: dict[str, Any] = {"model": turn.model, "stream": turn.stream}
        if instructions is not None:
            body["instructions"] = instructions
        body["input"] = [_item(message) if message.item is None else message.item for message in messages]
        if turn.max_tokens is not None:
            body["max_output_tokens"] = turn.max_tokens
        if turn.tools:
            body["tools"] = turn.tools
        body |= state
        body.update(turn.extra)
        if body["stream"] and turn.server_counts:
            given = body.get("stream_options", {})
            if isinstance(given, dict):  # any other value is sent as given
                body["stream_options"] = {"include_usage": True} | given
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def _check_store(self, turn: Turn) -> None:
        if not turn.server_counts:
            raise ConfigError(
                "store:true leaves earlier turns with the server, so that their tokens can't be counted here",
                "add --use-server-token-count, or drop store",
            )
        if not self._told and not turn.state:
            self._told = True
            log.warning(
                "store:true: later turns send their own messages alone; the server's prompt is longer than what is sent"
            )

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def chat_of(self, request: HttpRequest) -> ChatPrompt | None:
        return chat_of(request.body)

    def reader(self) -> ResponsesReader:
        return ResponsesReader()

    def decode(self, event: bytes) -> Any:
        return ResponsesReader().each(event)


def _instructions(messages: Sequence[Message]) -> tuple[str | None, Sequence[Message]]:
    """The system messages at the start, of the run and of the data set, joined by a blank line; and the other messages."""
    texts = []
    for message in messages:
        if message.role != "system" or message.item is not None or message.media:
            break
        texts.append(message.text)
    return "\n\n".join(texts) if texts else None, messages[len(texts) :]


def _item(message: Message) -> dict[str, Any]:
    kind = "output_text" if message.role == "assistant" else "input_text"
    parts: list[dict[str, Any]] = [{"type": kind, "text": text} for text in message.texts if text]
    if message.media:
        parts += [_part(media) for media in sorted(message.media, key=_rank)]
    if not parts:
        parts.append({"type": kind, "text": ""})
    return {"type": "message", "role": message.role, "content": parts}


def _rank(media: Media) -> int:
    try:
        return _RANK[media.kind]
    except KeyError:
        raise BadDataset(f"responses can't send {media.kind}", "use image or audio, or --endpoint-type chat") from None


def _part(media: Media) -> dict[str, Any]:
    if media.kind == "image":
        return {"type": "input_image", "image_url": media.value}
    form, data = audio_data(media.value)
    return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
