"""Anthropic's Messages API: encodes messages; decodes blocks of text, thinking and tool use, streamed or whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from aiperf import BadDataset, Capabilities, Delta, Endpoint, HttpRequest, Media, Message, Turn
from aiperf.sdk.endpoint import ChatPrompt, Prompt
from aiperf_dialects.prompts import chat_of, prompt_of

from aiperf_endpoint_messages.reader import MessagesReader

MAX_TOKENS = 1024
"""Sent where no output length is requested: the API needs one."""
VERSION = "2023-06-01"


class Messages(Endpoint):
    """``POST /v1/messages``.  The key goes into ``x-api-key``."""

    capabilities = Capabilities(
        path="/v1/messages",
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
        media_in=("image",),
        system_message=True,
        multi_turn=True,
        verbatim=True,
        cache_bust=True,
        chat_template=True,
        # The API has stop_sequences, and refuses blank ones, which benchmarks have.
        settings=dict.fromkeys(("stop", "seed", "frequency_penalty", "presence_penalty"), ""),
    )
    repeats_envelope = True
    plain_prompts = True
    splices_text = True
    appends_messages = True

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: A message has media other than images.
        """
        system, messages = _system(turn)
        body: dict[str, Any] = {
            "model": turn.model,
            "max_tokens": MAX_TOKENS if turn.max_tokens is None else turn.max_tokens,
        }
        if system is not None:
            body["system"] = system
        body["messages"] = [
            {"role": message.role, "content": _content(message)} if message.item is None else message.item
            for message in messages
        ]
        if turn.stream:
            body["stream"] = True
        if turn.tools:
            body["tools"] = turn.tools
        body.update(turn.extra)
        if system is not None and "system" in turn.row_extra:
            body["system"] = system
        headers = {"anthropic-version": VERSION}
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body), headers)

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def chat_of(self, request: HttpRequest) -> ChatPrompt | None:
        return chat_of(request.body)

    def reader(self) -> MessagesReader:
        return MessagesReader()

    def decode(self, event: bytes) -> Delta | None:
        return MessagesReader().each(event)

    def auth_headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key}


def _system(turn: Turn) -> tuple[str | list[Any] | None, Sequence[Message]]:
    """The system messages at the start and the ``system`` of the data set's row, as one; and the other messages.

    Texts are joined by a blank line; blocks stay blocks, behind a block for each text.
    """
    messages, parts = turn.messages, list[Any]()
    for message in messages:
        if message.role != "system" or message.media:
            break
        parts.append(message.text if message.item is None else message.item.get("content"))
    rest = messages[len(parts) :]
    if "system" in turn.row_extra and parts:
        parts.append(turn.row_extra["system"])
    if not parts:
        return None, rest
    if all(isinstance(part, str) for part in parts):
        return "\n\n".join(parts), rest
    blocks: list[Any] = []
    for part in parts:
        blocks += part if isinstance(part, list) else [{"type": "text", "text": part}]
    return blocks, rest


def _content(message: Message) -> str | list[dict[str, Any]]:
    if not message.media and len(message.texts) <= 1:
        return message.text
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in message.texts if text]
    return blocks + [_image(media) for media in message.media]


def _image(media: Media) -> dict[str, Any]:
    if media.kind != "image":
        raise BadDataset(f"messages can't send {media.kind}", "use images, or --endpoint-type chat")
    head, comma, data = media.value.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        source = {"type": "base64", "media_type": head[5:].partition(";")[0], "data": data}
    else:
        source = {"type": "url", "url": media.value}
    return {"type": "image", "source": source}
