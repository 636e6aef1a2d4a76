"""What each request of a run said, from its raw file: each message once, and which of them each turn sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from aiperf import AiperfError
from aiperf_results import FinishedRun
from aiperf_results.table import lines
from msgspec import Raw, Struct

from aiperf_command_analyze.runs import NothingToShowError
from aiperf_command_analyze.sessions import About

_TEXT_FIELDS = ("prompt", "inputs", "query", "text_input", "text")
"""Fields of a payload without messages that are its text."""


class _Head(Struct):
    metadata: About


class _Line(Struct):
    metadata: About
    payload: Raw = Raw(b"null")
    error: Any = None


class SentConversation(Struct):
    """A conversation as it was sent.  hidden: turns beyond the limit.

    turns: index, start in s from the run's first request on, error ("" for none), and places in ``Messages.texts``.
    """

    id: str
    session: str
    depth: int
    parent: str
    turns: list[tuple[int, float, str, list[int]]]
    hidden: int = 0


class Messages(Struct):
    """texts: role, text, and how many characters more it had.  hidden: conversations beyond the limit."""

    texts: list[tuple[str, str, int]]
    conversations: list[SentConversation]
    hidden: int = 0


def messages_of(run: FinishedRun, most: int, most_turns: int, cap: int) -> Messages:
    """The messages of at most *most* conversations, roots first, then by their first request.

    *most_turns*: of a conversation.  *cap*: characters of a message.

    Raises:
        NothingToShowError: The directory has no raw file, none that can be read, or no request in it.
    """
    paths = _raw_files(run)
    firsts: dict[str, tuple[int, int, str, str]] = {}
    names: dict[str, str] = {}
    begin_ns = 0
    for number, head in enumerate(_read(paths, _Head)):
        about = head.metadata
        key = about.x_correlation_id or f"request {number}"
        begin_ns = min(begin_ns or about.request_start_ns, about.request_start_ns)
        names[key] = about.conversation_id or key
        place = about.agent_depth, about.request_start_ns, key, about.parent_correlation_id
        firsts[key] = min(firsts.get(key, place), place)
    if not firsts:
        raise NothingToShowError(f"{paths[0]} has no request")
    ordered = sorted(firsts.values(), key=lambda place: (place[0] > 0, *place[1:3]))
    found = {
        key: SentConversation(names[key], key, depth, names.get(parent, parent), []) for depth, _, key, parent in ordered[:most]
    }
    texts = _Texts(cap)
    for number, line in enumerate(_read(paths, _Line)):
        conversation = found.get(line.metadata.x_correlation_id or f"request {number}")
        if conversation is not None:
            _add(conversation, line, begin_ns, texts)
    for conversation in found.values():
        conversation.turns.sort(key=lambda turn: turn[:2])
        conversation.hidden = max(0, len(conversation.turns) - most_turns)
        del conversation.turns[most_turns:]
    return Messages(texts.kept, list(found.values()), len(ordered) - len(found))


def _raw_files(run: FinishedRun) -> list[Path]:
    """The raw file; of the reference, else, the files of its processors."""
    if run.has("raw.jsonl"):
        return [run.file("raw.jsonl")]
    parts = sorted((run.directory / "raw_records").glob("raw_records_*.jsonl"))
    if not parts:
        raise NothingToShowError(f"{run.directory} has no {run.file('raw.jsonl').name}", "run it with --export-level raw")
    return parts


def _read(paths: Sequence[Path], shape: Any) -> Iterator[Any]:
    for path in paths:
        try:
            yield from lines(path, shape)
        except (AiperfError, msgspec.MsgspecError) as error:
            raise NothingToShowError(str(error)) from error


class _Texts:
    """Messages by role and text, each once."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._places: dict[tuple[str, str], int] = {}
        self.kept: list[tuple[str, str, int]] = []

    def place(self, role: str, text: str) -> int:
        key = role, text
        if key not in self._places:
            self._places[key] = len(self.kept)
            self.kept.append((role, text[: self._cap], max(0, len(text) - self._cap)))
        return self._places[key]


def _add(conversation: SentConversation, line: _Line, begin_ns: int, texts: _Texts) -> None:
    about = line.metadata
    payload = msgspec.json.decode(line.payload)
    places = [texts.place(role, text) for role, text in said(payload)]
    conversation.turns.append((about.turn_index, (about.request_start_ns - begin_ns) / 1e9, _fault(line), places))


def _fault(line: _Line) -> str:
    if line.metadata.was_cancelled:
        return "cancelled"
    if not line.error:
        return ""
    message = line.error.get("message") if isinstance(line.error, dict) else None
    return str(message or "failed")[:200]


def said(payload: Any) -> Iterator[tuple[str, str]]:
    """Role and text of each message of a payload; of one without messages its text, else all of it as JSON."""
    if not isinstance(payload, dict):
        yield "payload", _shown(payload)
        return
    for name in ("system", "instructions"):  # beside the messages, in some dialects
        if payload.get(name):
            yield "system", _shown(payload[name])
    for name in ("messages", "input"):
        if isinstance(found := payload.get(name), list) and found and all(isinstance(each, dict) for each in found):
            yield from ((str(each.get("role", each.get("type", "message"))), _message(each)) for each in found)
            return
    text = next((payload[name] for name in ("input", *_TEXT_FIELDS) if payload.get(name)), None)
    yield ("payload", _shown(payload)) if text is None else ("prompt", _shown(text))


def _message(message: dict[str, Any]) -> str:
    """The content alone where that is a text and all; else everything but the role."""
    rest = {name: value for name, value in message.items() if name != "role"}
    return str(rest["content"]) if rest.keys() == {"content"} and isinstance(rest["content"], str) else _shown(rest)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
