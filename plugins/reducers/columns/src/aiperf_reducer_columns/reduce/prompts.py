"""Input tokens of requests.  The journal has the prompt of a later turn, or how it differs from that of the turn before."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any

from aiperf.parts.journal import Store
from aiperf.parts.segments import ForkedTurns, JournalRequest
from aiperf.parts.tokenizers import ChatCounter
from aiperf.sdk.columns import Floats
from aiperf.sdk.errors import BadTokenizer


class Prompts:
    """Counts prompts.  Of each stream that goes on it keeps the count of its latest request, and of those that others fork off.

    behind: counts of texts behind others, by text; None where they are those of the texts.
    chats: counts bodies, which the journal has in place of prompts with ``--apply-chat-template``; None before it is known.
    unknown: requests that continue one whose count is lost with a frame of the journal.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._latest: dict[tuple[int, int, int], tuple[int, int]] = {}  # by phase, session and first turn of the stream
        self._forked = ForkedTurns[int]()
        self.behind: Mapping[str, int] | None = None
        self.chats: ChatCounter | None = None
        self.unknown = self._refused = 0
        self._refusal = ""

    def tokens(self, request: JournalRequest, counts: Mapping[str, int]) -> int | None:
        """Tokens of the request's prompt; None where they aren't known.  *counts*: of texts, by text."""
        number, _, phase, session, turn, entry, *_ = request.sent
        prompt = request.texts.get("prompt")
        forked = self._forked.take(self._store, phase, session, entry, turn) if turn else None
        if isinstance(prompt, dict):
            tokens = self._before(prompt["of"], phase, session, turn, entry, forked)
            if tokens is None:
                self.unknown += 1
            else:
                behind = counts if self.behind is None else self.behind
                tokens += behind[self._now(prompt, entry, turn)] - behind[prompt["was"]]
        elif isinstance(prompt, bytes):
            tokens = self._of_chat(prompt)
        elif prompt is None:
            known = self._store.input_tokens(entry, turn)
            tokens = known if known >= 0 else None
        else:
            text, ids = prompt if isinstance(prompt, list) else (prompt, 0)
            tokens = counts[text] + ids
        if turn or prompt is not None:
            self._keep(number, phase, session, turn, entry, tokens)
        return tokens

    def _of_chat(self, body: bytes) -> int | None:
        try:
            return None if self.chats is None else self.chats.tokens(body)
        except BadTokenizer as error:
            self._refused += 1
            self._refusal = self._refusal or error.message
            return None

    @property
    def notes(self) -> dict[str, str]:
        """A sentence for the report on requests that the chat template refuses, by name; nothing without any."""
        requests = "1 request has" if self._refused == 1 else f"{self._refused:,} requests have"
        return {"chat_template": f"{requests} no input tokens: {self._refusal}"} if self._refused else {}

    def _now(self, prompt: dict[str, Any], entry: int, turn: int) -> str:
        """The text that the prompt has in place of ``was``."""
        now: str = prompt["now"]
        if not prompt["own"]:
            return now
        own = self._store.outline(entry).turn(turn)
        return " ".join((now, *(text for message in (*own.before, *own.own) for text in message.words)))

    def _before(
        self, number: int, phase: int, session: int, turn: int, entry: int, forked: tuple[int, int] | None
    ) -> int | None:  # fmt: skip
        """Tokens of the request *number*, which the current *turn* of its stream continues.

        *forked*: the request from which the stream forks off, and its tokens.
        """
        if number < 0:  # the data set has it
            known = self._store.input_tokens(entry, 0)
            return known if known >= 0 else None
        latest = forked or self._latest.get((phase, session, self._store.span(entry, turn).start))
        return latest[1] if latest is not None and latest[0] == number else None

    def _keep(self, number: int, phase: int, session: int, turn: int, entry: int, tokens: int | None) -> None:
        span = self._store.span(entry, turn)
        if tokens is not None:
            self._forked.keep(self._store, phase, session, entry, turn, number, tokens)
        if tokens is None or turn + 1 >= span.stop:
            self._latest.pop((phase, session, span.start), None)
        else:
            self._latest[phase, session, span.start] = number, tokens

    def resume(self, columns: Mapping[str, Floats]) -> None:
        """Go on behind these requests, which are in columns."""
        if self._store.max_turns < 2:
            return
        names = ("request", "phase", "session", "turn", "entry", "input_tokens")
        for *place, tokens in zip(*(columns[name].tolist() for name in names), strict=True):
            number, phase, session, turn, entry = map(int, place)
            self._keep(number, phase, session, turn, entry, None if isnan(tokens) else int(tokens))
