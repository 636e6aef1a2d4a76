"""Markers in prompts that keep a server from finding them in its prefix cache (``--cache-bust``; spec: datasets §1.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from aiperf.errors import BadDataset
from aiperf.sdk.model import Conversation, Message, Turn

if TYPE_CHECKING:
    from aiperf.sdk.plan import Plan
    from aiperf.sdk.tokenizer import Tokenizer

_DIGITS = 12
_WARMUP = "[warmup]\n\n"
_SAMPLES = 8
"""Markers whose tokens are counted, for the mean."""
_ROW_SYSTEM = ("system", "instructions")
"""Fields of a row that are system messages: of messages, and of responses."""


class CacheBust(StrEnum):
    """Where the marker stands, and in which requests.

    The first four have a marker for each session: before or behind the system message or the text of the first turn.  The
    others have the same marker in every request of a warmup, and none in other requests.
    """

    NONE = "none"
    SYSTEM_PREFIX = "system_prefix"
    SYSTEM_SUFFIX = "system_suffix"
    FIRST_TURN_PREFIX = "first_turn_prefix"
    FIRST_TURN_SUFFIX = "first_turn_suffix"
    WARMUP_ISOLATION_SYSTEM = "warmup_isolation_system"
    WARMUP_ISOLATION_FIRST_TURN = "warmup_isolation_first_turn"

    @property
    def isolates(self) -> bool:
        """Whether requests of a warmup alone have the marker."""
        return self in (CacheBust.WARMUP_ISOLATION_SYSTEM, CacheBust.WARMUP_ISOLATION_FIRST_TURN)

    @property
    def in_system(self) -> bool:
        """Whether the marker stands in the system message."""
        return self in (CacheBust.SYSTEM_PREFIX, CacheBust.SYSTEM_SUFFIX, CacheBust.WARMUP_ISOLATION_SYSTEM)

    @property
    def behind(self) -> bool:
        """Whether the marker stands behind the text, and not before it."""
        return self in (CacheBust.SYSTEM_SUFFIX, CacheBust.FIRST_TURN_SUFFIX)

    def marks(self, kind: str) -> bool:
        """Whether requests of a phase of this kind have a marker."""
        return self is not CacheBust.NONE and (not self.isolates or kind == "warmup")


def marker(plan: Plan, phase: int, session: int, conversation: str, lap: int | None = None) -> str:
    """The marker of a session's requests, with its blank line; "" for none.

    ``[rid:<12 hex digits of sha256("run:lap:session:conversation")>]``.  *phase*: index, which stands for *lap* where that is
    None; *session*: its number in the phase, or its lane; *conversation*: id.
    """
    where = plan.data.cache_bust
    if not where.marks(plan.load.phases[phase].kind):
        return ""
    lap = phase if lap is None else lap
    return _WARMUP if where.isolates else _rid(where, f"{plan.run.run_id}:{lap}:{session}:{conversation}")


def marker_tokens(where: CacheBust, tokenizer: Tokenizer | None) -> int:
    """The length that markers of profiling add to a prompt, on average."""
    if where is CacheBust.NONE or where.isolates or tokenizer is None:
        return 0
    return round(sum(tokenizer.count(_rid(where, str(number))) for number in range(_SAMPLES)) / _SAMPLES)


def _rid(where: CacheBust, what: str) -> str:
    import hashlib  # workers of other runs start without it

    text = f"[rid:{hashlib.sha256(what.encode()).hexdigest()[:_DIGITS]}]"
    return f"\n\n{text}" if where.behind else f"{text}\n\n"


def marked(conversation: Conversation, where: CacheBust, text: str) -> Conversation:
    """The conversation with the marker *text*.

    Every turn that begins a prompt is marked: the first one, one that drops those before it, and each that is sent alone.
    Without a system message a marker for it goes to the first message of the user.

    Raises:
        BadDataset: There is no place for the marker.
    """

    def join(given: str) -> str:
        return given + text if where.behind else text + given

    if where.in_system:
        if conversation.system is not None:
            return replace(conversation, system=join(conversation.system))
        if any(name in turn.extra for turn in conversation.turns for name in _ROW_SYSTEM):
            turns = tuple(replace(turn, extra=_marked_row(turn.extra, join, where)) for turn in conversation.turns)
            return replace(conversation, turns=turns)
        opening = _marked_first(conversation.opening, "system", join, where)
        if opening is not None:
            return replace(conversation, opening=opening)
    turns = tuple(
        _marked_turn(turn, conversation, join, where) if not index or turn.reset or conversation.alone else turn
        for index, turn in enumerate(conversation.turns)
    )
    return replace(conversation, turns=turns)


def _marked_turn(turn: Turn, conversation: Conversation, join: Callable[[str], str], where: CacheBust) -> Turn:
    if turn.payload is not None:
        raise BadDataset(
            f"conversation {conversation.id!r} has a payload, which is sent as it is: --cache-bust can't mark it",
            "drop --cache-bust, or use a data set of messages",
        )
    for role in ("system", "user") if where.in_system else ("user",):
        if role == "user" and where is CacheBust.WARMUP_ISOLATION_SYSTEM:
            break
        before = _marked_first(turn.before, role, join, where)
        if before is not None:
            return replace(turn, before=before)
        own = _marked_first(turn.own, role, join, where)
        if own is not None:
            if turn.items is None:
                return replace(turn, texts=own[0].texts, input_tokens=None)
            return replace(turn, items=own)
    role = "system" if where is CacheBust.WARMUP_ISOLATION_SYSTEM else "user"
    hint = "give one with --system-prompt" if role == "system" else "use another data set"
    raise BadDataset(f"conversation {conversation.id!r} has no {role} message with a text for --cache-bust {where}", hint)


def _marked_first(
    messages: Sequence[Message], role: str, join: Callable[[str], str], where: CacheBust
) -> tuple[Message, ...] | None:
    """The messages with a marker in the first one of *role*; None where it has no place."""
    for place, message in enumerate(messages):
        if message.role != role:
            continue
        if message.item is None:
            texts = _marked_texts(message.texts or ("",), join, where)
            return (*messages[:place], replace(message, texts=texts), *messages[place + 1 :])
        content = _marked_content(message.item.get("content"), join, where)
        if content is None:
            return None
        return (*messages[:place], replace(message, item={**message.item, "content": content}), *messages[place + 1 :])
    return None


def _marked_texts(texts: tuple[str, ...], join: Callable[[str], str], where: CacheBust) -> tuple[str, ...]:
    return (*texts[:-1], join(texts[-1])) if where.behind else (join(texts[0]), *texts[1:])


def _marked_content(content: Any, join: Callable[[str], str], where: CacheBust) -> Any:
    """The content of a verbatim message, a text or parts, with the marker; None where no part is a text."""
    if isinstance(content, str):
        return join(content)
    parts = list(content) if isinstance(content, list | tuple) else []
    places = [at for at, part in enumerate(parts) if isinstance(part, dict) and isinstance(part.get("text"), str)]
    if not places:
        return None
    at = places[-1 if where.behind else 0]
    parts[at] = {**parts[at], "text": join(parts[at]["text"])}
    return parts


def _marked_row(extra: dict[str, Any], join: Callable[[str], str], where: CacheBust) -> dict[str, Any]:
    """The fields of a row with a marker in its system message; as they are where that has no place."""
    found = {name: _marked_content(extra[name], join, where) for name in _ROW_SYSTEM if name in extra}
    return {**extra, **{name: content for name, content in found.items() if content is not None}}


__all__ = ["CacheBust"]
