"""Messages as OpenAI's chat API writes them; several dialects send them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiperf import BadDataset
from aiperf.sdk.model import Media, Message

_PART_ORDER = {"image": 0, "audio": 1, "video": 2}
_AUDIO_FORMATS = {"mpeg": "mp3", "mpga": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "x-m4a": "m4a"}


def chat_messages(messages: Sequence[Message], *, parts: bool = False) -> list[dict[str, Any]]:
    """The ``messages`` array; verbatim messages as they are.  *parts*: write a single text as a list of parts, too.

    Two system messages at the start (of the run and of the data set) become one, because servers accept only one.

    Raises:
        BadDataset: The API can't say the media.
    """
    return [
        {"role": message.role, "content": _content(message, parts)} if message.item is None else message.item
        for message in one_system(messages)
    ]


def one_system(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages, with two system messages at the start joined by a blank line, where both are text alone."""
    if len(messages) > 1 and messages[0].role == messages[1].role == "system" and _mergeable(messages[0], messages[1]):
        return [Message("system", ("\n\n".join((messages[0].text, messages[1].text)),)), *messages[2:]]
    return messages


def _mergeable(first: Message, second: Message) -> bool:
    """Whether *first*, of the run or of the conversation, and *second* are text alone.  A verbatim first one stays as it is."""
    if first.item is not None or first.media or second.media or second.images:
        return False
    return second.item is None or not second.item.keys() - {"role", "content"}


def _content(message: Message, parts: bool) -> str | list[dict[str, Any]]:
    if not message.media:
        if not message.texts:
            return ""
        if len(message.texts) == 1 and not parts:
            return message.texts[0]
    content: list[dict[str, Any]] = [{"type": "text", "text": text} for text in message.texts if text]
    content += [_part(media) for media in sorted(message.media, key=_rank)]
    return content


def _rank(media: Media) -> int:
    try:
        return _PART_ORDER[media.kind]
    except KeyError:
        raise BadDataset(f"a chat has no media of kind {media.kind!r}", "use image, audio or video") from None


def _part(media: Media) -> dict[str, Any]:
    part: dict[str, Any]
    if media.kind == "audio":
        form, data = audio_data(media.value)
        part = {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    else:
        name = f"{media.kind}_url"
        part = {"type": name, name: {"url": media.value}}
    if media.uuid is not None:
        part["uuid"] = media.uuid
    return part


def audio_data(value: str) -> tuple[str, str]:
    """Format and base64 of ``wav,UklGR…`` or ``data:audio/wav;base64,UklGR…``.

    Raises:
        BadDataset: It is neither.
    """
    head, comma, data = value.partition(",")
    if comma and head.startswith("data:audio/"):
        head = head.removeprefix("data:audio/").partition(";")[0]
        return _AUDIO_FORMATS.get(head, head), data
    if not comma or not head.isalnum():
        shown = value if len(value) <= 40 else f"{value[:40]}…"
        raise BadDataset(f"the audio {shown!r} is not inline", "write 'format,base64' or a data:audio/… URI")
    return head, data


__all__ = ["audio_data", "chat_messages", "one_system"]
