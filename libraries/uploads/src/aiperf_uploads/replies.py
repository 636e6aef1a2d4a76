"""What the process of an upload says to the run, a line of JSON each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct


class ItemSent(Struct, frozen=True, tag=True):
    """An item has arrived."""

    item: str


class ItemLeft(Struct, frozen=True, tag=True):
    """An item has not arrived; item None: none of those that are not sent yet."""

    item: str | None
    why: str


class UploadFacts(Struct, frozen=True, tag=True):
    """What the receiver says of the upload, such as its identity there."""

    facts: dict[str, Any]


class UploadEnded(Struct, frozen=True, tag=True):
    """All was tried."""


Reply: TypeAlias = ItemSent | ItemLeft | UploadFacts | UploadEnded

decode_reply: Callable[[bytes], Reply] = msgspec.json.Decoder(Reply).decode

__all__ = ["ItemLeft", "ItemSent", "Reply", "UploadEnded", "UploadFacts", "decode_reply"]
