"""Bodies that continue the one before: of a later turn, only its new messages are encoded.

For endpoints that promise it (``Endpoint.appends_messages``).  A body is a head, a list of messages and a tail.  New messages
are encoded alone, in a body with the same head and tail, and their part of it goes between the messages before and the tail.
Where more than the messages changes, the whole turn is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from aiperf.rundir.outline import Outline
from aiperf.sdk.endpoint import Endpoint, Prompt, encoded, prompt
from aiperf.sdk.model import Conversation, HttpRequest, Message, Turn
from aiperf.sdk.tokenizer import blank

_KEPT = 256
"""Characters at the end of a prompt, among which is a place from which the tokens of the next one can be counted."""

_WORD = "x"
STORED = -1
"""In place of the number of a request: the first turn as the data set has it."""


_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


class HistoryMessages:
    """Which messages of turns stand in the history, without live answers.  count: of them.

    It reads each turn once, and those again whose messages it is asked for.
    """

    __slots__ = ("_firsts", "_turn", "count", "turns")

    def __init__(self, turn: Callable[[int], Turn]) -> None:
        self._turn = turn
        self._firsts: list[tuple[int, int]] = []  # a turn's place, and the number of its first message; none of it was dropped
        self.count = self.turns = 0

    def follow(self, places: Sequence[int]) -> None:
        """Take the turns at *places* that it doesn't know yet, the last of them."""
        for place in places[self.turns :]:
            turn = self._turn(place)
            self.cut(0 if turn.reset else turn.keeps)
            self._firsts.append((place, self.count))
            self.count += len(turn.before) + len(turn.own)
        self.turns = len(places)

    def cut(self, kept: int | None) -> None:
        """The first *kept* messages stay; None keeps all."""
        if kept is not None and kept < self.count:
            self.count = kept
            while self._firsts and self._firsts[-1][1] >= kept:
                self._firsts.pop()

    def backwards(self) -> Iterator[Message]:
        """The messages, the latest first."""
        end = self.count
        for place, first in reversed(self._firsts):
            turn = self._turn(place)
            yield from (*turn.before, *turn.own)[: end - first][::-1]
            end = first


class KeptMessages(NamedTuple):
    """What stays of a body whose turn drops the last messages of the turns before.

    messages: of all that are in it now, opening ones included; stay: of these.  dropped: the others.  said: texts of those
    that stay, joined, or the end of that.
    """

    messages: int
    stay: int
    dropped: Sequence[Message]
    said: str


class Script:
    """What a session has said so far.

    outline: its conversation.  answers: to each turn, the messages that repeat its answer.  grown: what the next body may
    continue, in the *phase* of its request; it is of the turn *at* this place.  line: of a stream of a tree, the places of the
    turns that were said, those before a fork included.  said: where a turn drops messages of those before it, the messages that
    stand.
    """

    __slots__ = ("answers", "at", "grown", "line", "outline", "phase", "said")

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.line: list[int] = []
        self.answers: list[Sequence[Message]] = []
        self.grown: Grown | None = None
        self.phase = self.at = -1
        self.said: HistoryMessages | None = None

    def forked(self, place: int) -> Script:
        """The same for a stream that goes on from the turn at *place*; later turns may have been said by now."""
        script = Script(self.outline)
        end = self.line.index(place) + 1 if place in self.line else len(self.line)
        script.line, script.answers = self.line[:end], self.answers[:end]
        if self.grown is not None and self.at == place:
            script.grown, script.phase = self.grown.copy(), self.phase
        return script

    def kept(self, turn: Turn, places: Sequence[int]) -> KeptMessages | None:
        """What stays for a *turn* that keeps a number of messages, behind those at *places*; None where it drops none."""
        said = self.said = self.said or HistoryMessages(self.outline.turn)
        said.follow(places)
        count, opening = said.count, len(self.outline.of(()).prelude)
        dropped, ends, length = list[Message](), list[str](), 0
        for number, message in enumerate(said.backwards()):
            if count - number > (turn.keeps or 0):
                dropped.append(message)
            elif length < _KEPT:
                ends += [" ".join(message.words)] if message.words else []
                length = sum(map(len, ends))
            else:
                break
        if not dropped:
            return None
        return KeptMessages(opening + count, opening + count - len(dropped), dropped[::-1], " ".join(ends[::-1]))

    def history(self, conversation: Conversation) -> list[Message]:
        """The messages of all turns before the current one, and their answers.  *conversation*: the outline's."""
        history: list[Message] = []
        for turn, answer in zip(conversation.turns, self.answers, strict=False):
            if turn.reset or turn.keeps is not None:
                del history[0 if turn.reset else turn.keeps :]
            history += (*turn.before, *turn.own, *answer)
        return history


class BodyFrame(NamedTuple):
    """A body without its messages.

    turn: has the system messages at the start alone.  head, tail: the body up to the end of the list, and from there on.
    ahead: number of the prompt's texts before those of further messages.  behind: the texts of tools.
    """

    turn: Turn
    head: bytes
    tail: bytes
    ahead: int
    behind: tuple[str, ...]


class Grown:
    """A session's latest request.

    request: its number, or STORED.  mark: where the tail of *frame* begins in *body*.  items: it has verbatim messages.
    plain: the texts of its messages are its prompt.  said: the texts of the prompt before those of tools, joined; where counts
    add up, the end of that.  own: where the messages of a turn begin in its body of the data set, -1 before that is known.
    ends: where each of the messages behind the head ends in the body, () before anybody asked.
    """

    __slots__ = ("body", "ends", "frame", "items", "mark", "own", "plain", "request", "said")

    def __init__(
        self, request: int, frame: BodyFrame, body: bytes | bytearray, said: str, *, items: bool, plain: bool
    ) -> None:  # fmt: skip
        self.request, self.frame, self.said, self.items, self.plain = request, frame, said, items, plain
        self.body, self.mark = bytearray(body), len(body) - len(frame.tail)
        self.own = -1
        self.ends: list[int] = []

    def copy(self) -> Grown:
        """The same for a stream that goes on by itself."""
        grown = Grown(self.request, self.frame, self.body, self.said, items=self.items, plain=self.plain)
        grown.own, grown.ends = self.own, self.ends[:]
        return grown

    def end_of(self, kept: KeptMessages) -> int | None:
        """Where the messages end that stay; None where nobody can tell."""
        opening = len(self.frame.turn.history)
        if not self.ends:
            self.ends = _ends(self.body[len(self.frame.head) : self.mark], len(self.frame.head))
        if len(self.ends) != kept.messages - opening or kept.stay <= opening:
            return None
        del self.ends[kept.stay - opening :]
        return self.ends[-1]


class Continued(NamedTuple):
    """A request that continues another.

    request: of the new messages alone.  prompt, part: the journal's texts, of the prompt (None where nothing is counted) and
    of the body.
    """

    request: HttpRequest
    prompt: str | dict[str, Any] | None
    part: dict[str, Any]


class Continuing:
    """Continues the bodies of an endpoint.  counts: prompts are counted.  adds_up: and counts of their parts add up."""

    def __init__(self, endpoint: Endpoint, path: str | None, *, counts: bool, adds_up: bool) -> None:
        self._endpoint, self._path, self._counts, self._adds_up = endpoint, path, counts, adds_up
        self._asks = type(endpoint).prompt_of is not Endpoint.prompt_of

    def begin(self, number: int, turn: Turn, body: bytes, counted: Prompt | None = None) -> Grown | None:
        """The request *number*, of which *body* is encoded whole, for the next one to continue; None where none may.

        *counted*: its prompt, where that is known already.
        """
        if turn.payload is not None or turn.named or turn.state:
            return None
        items, plain = any(message.item is not None for message in turn.messages), not self._asks
        plain = plain or (self._endpoint.plain_prompts and turn.plain)
        frame, said = self._frame(_bare(turn, _opening(turn.messages)), body, plain=plain), ""
        if frame is not None and self._counts:
            counted = prompt(self._endpoint, turn, HttpRequest("", body)) if counted is None else counted
            texts, behind = tuple(counted.texts), len(frame.behind)
            if counted.ids or len(texts) <= behind or texts[len(texts) - behind :] != frame.behind:
                return None
            said = self._kept(" ".join(texts[: len(texts) - behind]))
        return None if frame is None else Grown(number, frame, body, said, items=items, plain=plain)

    def grow(
        self, grown: Grown, turn: Turn, new: Sequence[Message], number: int, stored: bytes, kept: KeptMessages | None = None
    ) -> Continued | None:  # fmt: skip
        """Make the body of *grown* that of the request *number*, by its *new* messages; None where it must be encoded whole.

        *turn*: completed, without history.  *stored*: its body without earlier turns, of the data set.  *kept*: what stays of
        the body, None for all.
        """
        items = grown.items or any(message.item is not None for message in new)
        plain = not self._asks or (self._endpoint.plain_prompts and not items and turn.plain)
        if turn.payload is not None or turn.named or turn.state or turn.reset or plain != grown.plain:
            return None
        if not new or any(message.role == "system" for message in new):
            return None
        before = grown.frame
        bare = _bare(turn, before.turn.history)
        longer = replace(bare, history=(*bare.history, *new))
        added = encoded(self._endpoint, longer, self._path)
        frame = before if bare == before.turn else self._frame(bare, added.body, plain=plain)
        if frame is None or frame.head != before.head:
            return None
        piece = added.body[len(frame.head) : len(added.body) - len(frame.tail)]
        if not piece or not (added.body.startswith(frame.head) and added.body.endswith(frame.tail)):
            return None
        mark = grown.mark if kept is None else grown.end_of(kept)
        if mark is None:
            return None
        text: str | dict[str, Any] | None = None
        if self._counts:
            texts = self._texts(new, longer, added, frame, plain=plain)
            own = [text for message in (*turn.before, *turn.own) for text in message.words]
            before_new = (grown.said, "") if kept is None else self._dropped(grown, kept)
            text = None if texts is None or before_new is None else self._prompt(grown, frame, texts, own, *before_new)
            if text is None:
                return None
        piece = piece if piece[:1] == b"," else b"," + piece
        part = _part(grown, frame, piece, stored, mark)
        grown.body = _spliced(grown.body, mark, piece, frame.tail)
        if grown.ends:
            grown.ends += _ends(piece, mark)
        grown.mark, grown.frame = len(grown.body) - len(frame.tail), frame
        grown.request, grown.items = number, items
        return Continued(added, text, part)

    def _frame(self, bare: Turn, whole: bytes, *, plain: bool) -> BodyFrame | None:
        """The frame of the body *whole*; None where the end of its list isn't found."""
        found = _divided(encoded(self._endpoint, bare, self._path).body, whole)
        if found is None or plain or not self._counts:
            return None if found is None else BodyFrame(bare, *found, 0, ())
        one = replace(bare, history=(*bare.history, Message("user", (_WORD,))))
        extra = {name: value for name, value in one.extra.items() if name != "tools"}
        alone, texts = self._counted(replace(one, tools=None, extra=extra)), self._counted(one)
        fits = alone[-1:] == (_WORD,) and texts[: len(alone)] == alone
        return BodyFrame(bare, *found, len(alone) - 1, texts[len(alone) :]) if fits else None

    def _counted(self, turn: Turn) -> tuple[str, ...]:
        return tuple(prompt(self._endpoint, turn, encoded(self._endpoint, turn, self._path)).texts)

    def _texts(
        self, new: Sequence[Message], longer: Turn, added: HttpRequest, frame: BodyFrame, *, plain: bool
    ) -> Sequence[str] | None:  # fmt: skip
        """The texts of new messages in the prompt; None where they can't be told."""
        if plain:
            return [text for message in new for text in message.words]
        counted = prompt(self._endpoint, longer, added)
        end = len(counted.texts) - len(frame.behind)
        if counted.ids or end < frame.ahead or tuple(counted.texts[end:]) != frame.behind:
            return None
        return counted.texts[frame.ahead : end]

    def _dropped(self, grown: Grown, kept: KeptMessages) -> tuple[str, str] | None:
        """What was said before the dropped messages, or its end, and their texts; None where they can't be told."""
        if not grown.plain:
            return None
        gone = "".join(f" {text}" for message in kept.dropped for text in message.words)
        if not self._adds_up:
            return (grown.said[: len(grown.said) - len(gone)], gone) if grown.said.endswith(gone) else None
        said = self._kept(kept.said)
        alike = min(len(said) + len(gone), len(grown.said))
        return (said, gone) if said and f"{said}{gone}"[-alike:] == grown.said[-alike:] else None

    def _kept(self, said: str) -> str:
        return said[-_KEPT:] if self._adds_up else said

    def _prompt(
        self, grown: Grown, frame: BodyFrame, texts: Sequence[str], own: list[str], said: str, gone: str
    ) -> str | dict[str, Any] | None:  # fmt: skip
        """What the journal says of the prompt: all of it, or how it differs from the one before.

        None where the one before has no place to count from.  *own*: texts of the turn, which the data set has.
        *said*: before the new texts, or its end; *gone*: what the prompt before has behind it.
        """
        old, behind = " ".join(grown.frame.behind), " ".join(frame.behind)
        longer = " ".join((said, *texts))
        if self._adds_up:
            cut = _cut(said)
            if cut is None:
                return None
            was, now = f"{said}{gone}"[cut:], longer[cut:]
            # Tools count the same behind both, where these end with a cut.
            apart = bool(old or behind) and (old != behind or was != "" or blank(now[-1:]))
            if apart:
                was, now = (f"{each} {tools}" if tools else each for each, tools in ((was, old), (now, behind)))
            known = bool(own) and not apart and list(texts[-len(own) :]) == own
            grown.said = self._kept(longer)
            return {"of": grown.request, "was": was, "now": now[: -1 - len(" ".join(own))] if known else now, "own": known}
        grown.said = longer
        return f"{longer} {behind}" if frame.behind else longer


def begun(body: bytes) -> dict[str, Any]:
    """How the journal has a whole body that others may continue."""
    return {"of": STORED, "keep": 0, "new": body, "own": (0, 0), "end": 0, "last": False}


def _part(grown: Grown, frame: BodyFrame, piece: bytes, stored: bytes, mark: int) -> dict[str, Any]:
    """How the journal has a body: *keep* bytes, up to *mark*, of that of the request *of*, *new* ones, those from *own* (first,
    behind the last) of the turn's in the data set, and *end* bytes from the end of the one before.
    """
    same = frame.tail == grown.frame.tail
    part = {"of": grown.request, "keep": mark, "end": len(frame.tail) if same else 0}
    end = len(stored) - len(frame.tail)
    if same and end > 0:
        if grown.own < 0 or not piece.endswith(stored[grown.own : end]):
            grown.own = end - _alike(piece, stored[:end])
        if grown.own < end:
            return {**part, "new": piece[: len(piece) - end + grown.own], "own": (grown.own, end)}
    return {**part, "new": piece if same else piece + frame.tail, "own": (0, 0)}


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes at the end of both are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one.endswith(other[len(other) - middle :]) else (low, middle - 1)
    return low


def _opening(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The system messages before all others."""
    return tuple(takewhile(lambda message: message.role == "system", messages))


def _bare(turn: Turn, opening: tuple[Message, ...]) -> Turn:
    """The turn with no messages but *opening*, and without what no body has."""
    return replace(
        turn, texts=(), media=(), items=(), history=opening, before=(),
        delay_ms=None, timestamp_ms=None, input_tokens=None, expected=None, task=None,
    )  # fmt: skip


def _divided(empty: bytes, whole: bytes) -> tuple[bytes, bytes] | None:
    """The bytes of *empty* before and from the place where a list ends that has more in *whole*; None without such a place."""
    low, high = 0, len(empty)
    while low < high:  # the length of what both begin with
        middle = (low + high + 1) // 2
        low, high = (middle, high) if whole.startswith(empty[:middle]) else (low, middle - 1)
    head, tail = empty[:low], empty[low:]
    fits = tail[:1] == b"]" and len(whole) > len(empty) and whole.endswith(tail)
    return (head, tail) if fits else None


def _cut(text: str) -> int | None:
    """The last place where a text with more behind a space may be cut: before a space, behind a character that isn't blank."""
    if text and not blank(text[-1]):
        return len(text)
    at = text.rfind(" ")
    while at > 0 and blank(text[at - 1]):
        at = text.rfind(" ", 0, at)
    return at if at > 0 else None


def _ends(messages: bytes | bytearray, first: int) -> list[int]:
    """Where each message of a list without its brackets ends, where that begins at *first*; [] where nobody can tell."""
    inner = bytes(messages).removeprefix(b",")
    found = [len(bytes(message)) for message in _decode_list(b"[%b]" % inner)]
    if sum(found) + len(found) - 1 != len(inner):  # there are blanks
        return []
    ends, at = list[int](), first + len(messages) - len(inner)
    for length in found:
        at += length
        ends.append(at)
        at += 1
    return ends


def _spliced(body: bytearray, mark: int, piece: bytes, tail: bytes) -> bytearray:
    """The body with *piece* and *tail* from *mark* on, in place."""
    try:
        del body[mark:]
    except BufferError:  # a transport still holds it: a server may answer before it has read the request
        body = bytearray(memoryview(body)[:mark])
    body += piece
    body += tail
    return body
