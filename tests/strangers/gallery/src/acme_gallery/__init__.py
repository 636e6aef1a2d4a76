"""Guided tours of a gallery: pictures, a tool, recorded answers, and an example to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf.sdk.dataset import Dataset
from aiperf.sdk.media import MediaReader
from aiperf.sdk.model import Answers, Conversation, Media, Message, Turn

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "description": "How warm it is.", "parameters": {"type": "object", "properties": {}}},
}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"place":"Lucca"}'}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "18"}
OPENING = (Message("user", ("What is 2+2?",)), Message("assistant", ("4",)))
KITE = Media("image", str(Path(__file__).with_name("kite.png")))


class Gallery(Dataset):
    """Two tours, a recorded body, a call of a tool, and again; for an endpoint without tools a picture with a title."""

    def __iter__(self) -> Iterator[Conversation]:
        can = self.context.capabilities
        reader = MediaReader()
        for number in range(self.context.entries):
            media = (KITE,) if can.inline_media else reader.inlined((KITE,))
            seed = {"seed": self.context.seed + number}
            shown = Turn(("What is shown?",), media, named={"title": "What is shown?"}, extra=seed)
            if not can.verbatim:
                yield Conversation(f"card-{number}", (shown,))
            elif number % 4 < 2:
                yield self._tour(number, shown)
            elif number % 4 == 3:
                turns = Turn(("How warm is it?",), tools=(TOOL,)), Turn(items=(Message.of(RESULT),))
                yield Conversation(f"call-{number}", turns)
            else:
                body = {"model": "recorded", "messages": [CALL, RESULT], "tools": [TOOL]}
                yield Conversation(f"record-{number}", (Turn(payload=body),))

    def _tour(self, number: int, shown: Turn) -> Conversation:
        turns = (
            Turn(shown.texts, shown.media, named=shown.named, extra=shown.extra, tools=(TOOL,), max_tokens=8, blocks=(1, 2)),
            Turn(items=(Message.of(CALL),), role="assistant", silent=True),
            Turn(items=(Message.of(RESULT),), silent=True, delay_ms=1),
            Turn(("And how warm is it?",), max_tokens=8),
            Turn(("18 degrees.",), role="assistant", silent=True),
            Turn(("Thank you.",), max_tokens=8),
            Turn(("Once more: what is shown?",), tools=(), max_tokens=8, reset=True),
        )
        return Conversation(f"tour-{number}", turns, opening=OPENING, answers=Answers.AUTHORED)
