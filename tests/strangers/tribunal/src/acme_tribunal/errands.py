"""Errands, each of which the tool ``fetch`` runs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from aiperf import Conversation, Dataset, Turn

THINGS = ("milk", "bread", 'a "big" box', "two\nlines", "tea", "salt", "rice", "oil")
_PARAMETERS = {"type": "object", "properties": {"text": {"type": "string"}}}


def _tool(path: str) -> dict[str, object]:
    """The tool's definition as the API of this path has it."""
    described = {"name": "fetch", "description": "Brings a thing."}
    if path == "/v1/messages":
        return {**described, "input_schema": _PARAMETERS}
    function = {**described, "parameters": _PARAMETERS}
    return {"type": "function", **function} if path == "/v1/responses" else {"type": "function", "function": function}


class Errands(Dataset):
    def __iter__(self) -> Iterator[Conversation]:
        tool = _tool(self.context.capabilities.path)
        for number, thing in enumerate(THINGS[: self.context.entries]):
            expected = json.dumps([{"name": "fetch", "arguments": {"text": thing}}])
            asked = f"Errand {number}: what do we need?"
            yield Conversation(f"errand-{number}", (Turn((asked,), tools=(tool,), max_tokens=40, expected=expected),))
