"""Long conversations: a turn's body, its input tokens and its place in the journal, made from what is new in it."""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
import pytest
from aiperf.errors import BadTokenizer
from aiperf.parts.segments import ShardReader, observations
from aiperf.prepare.tokenizers import ChatCounter
from aiperf.registry.third_party import load
from aiperf.rundir.store import Store
from aiperf.rundir.store_writer import StoreWriter
from aiperf.sdk.cache_bust import CacheBust, marked, marker
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.driver import Session
from aiperf.sdk.endpoint import Capabilities, ChatPrompt, Endpoint, Prompt, completed, encoded, prompt
from aiperf.sdk.model import Answers, Conversation, Delta, HttpRequest, Media, Message, Turn
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.transport import Exchange
from aiperf.sdk.trees import Branch, TreeBuilder, fork_of
from aiperf.testing import Words
from aiperf.worker.requests import Requests
from aiperf_dialects.prompts import chat_of, prompt_of
from aiperf_reducer_columns.reduce.prompts import Prompts
from aiperf_testing.plans import sample_ref
from hypothesis import given, settings
from hypothesis import strategies as st
from worker_fakes import FakeTransport, make_engine, make_plan

CHATTING = PluginRef("endpoints", "chatting", f"{__name__}:Chatting", "aiperf-core", "0")
PIECE = re.compile(r"▁[\s▁]*\w*| ?\w+| ?[^\s\w▁]+|\s+(?!\S)|\s+")


class Counted(dict[str, int]):
    """Tokens of texts by a pattern like those of real tokenizers: a space, or the mark of one, belongs to the word behind it.

    asked: every text that was counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def __missing__(self, text: str) -> int:
        self.asked.append(text)
        return sum(-(-len(piece) // 3) for piece in PIECE.findall(text))


class Chatting(Endpoint):
    """A chat whose system message stands apart."""

    appends_messages = True
    plain_prompts = True
    broken: ClassVar[bool] = False
    encoded: ClassVar[list[int]] = []
    """Messages of each turn that was encoded."""

    capabilities = Capabilities(multi_turn=True, tokenizes_input=True)

    def encode(self, turn: Turn) -> HttpRequest:
        self.encoded.append(len(turn.messages))
        messages = list(turn.messages)
        body: dict[str, Any] = {"model": turn.model}
        if messages and messages[0].role == "system":
            body["system"] = messages.pop(0).text
        body["messages"] = [
            {"role": each.role, "content": list(each.texts)} if each.item is None else each.item for each in messages
        ]
        if self.broken:
            body["messages"] = [{**each, "place": place} for place, each in enumerate(body["messages"])]
        if turn.tools:
            body["tools"] = turn.tools
        if turn.max_tokens is not None:
            body["max_tokens"] = turn.max_tokens
        return HttpRequest("/v1/x", msgspec.json.encode(body | turn.extra))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(self.with_texts(request))

    def with_texts(self, request: HttpRequest) -> bytes:
        """The body with texts in a usual form."""
        sent = msgspec.json.decode(request.body)
        for each in sent["messages"]:
            if isinstance(each["content"], list):
                each["content"] = [{"text": text} for text in each["content"]]
        return msgspec.json.encode(sent)

    def decode(self, event: bytes) -> Delta | None:
        return Delta(text=event.decode())


class Uncounted(Chatting):
    """Encodes whole turns, to compare with."""

    encoded: ClassVar[list[int]] = []


class Sent(NamedTuple):
    """A request of the conversation: its body and prompt, made whole; what was sent; and its tokens by the journal."""

    whole: bytes
    texts: Sequence[str]
    body: bytes
    tokens: int | None
    raw: bytes | None


class Answering(FakeTransport):
    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.bodies: list[bytes] = []

    def send(self, exchange: Exchange) -> None:
        super().send(exchange)
        self.bodies.append(bytes(exchange.body))

    def say(self, text: str | None) -> None:
        """Answer; None fails the request."""
        exchange = self.open.pop(0)
        exchange.status = 200 if text is not None else 500
        self.engine.sink.chunk(exchange, (text or "").encode(), 1, 2, 0)
        self.engine.sink.done(exchange, None)


def store_of(directory: Path, conversation: Conversation, counts: Counted, *, adds_up: bool) -> Store:
    """As the build makes it."""
    endpoint, target = Chatting(), make_plan(directory).target
    alone = msgspec.structs.replace(conversation, system=None, context=None, opening=())
    turns = [completed(alone if at else conversation, at, target, "m") for at in range(len(conversation.turns))]
    requests = [[encoded(endpoint, turn)] for turn in turns]
    known = [counts[" ".join(prompt(endpoint, turn, request).texts)] for turn, (request,) in zip(turns, requests, strict=True)]
    with StoreWriter(directory / "journal") as writer:
        writer.counts_add_up = adds_up
        writer.add(conversation, requests, known if conversation.alone else [known[0], *[None] * (len(turns) - 1)])
    return Store(directory / "journal")


def begun(
    directory: Path, conversation: Conversation, *, adds_up: bool = True, warn: Callable[[str], None] = lambda _: None,
    cache_bust: CacheBust = CacheBust.NONE, chat_template: bool = False, limit: int | None = None,
) -> tuple[Requests, Answering, Session]:  # fmt: skip
    """The conversation's first request is sent.  *limit*: of the output of each."""
    (directory / "journal").mkdir(parents=True)
    phase = PhasePlan("profiling", "profiling", 0, "burst", request_count=99, concurrency=1, entries=1)
    plan = make_plan(
        directory, endpoint=CHATTING, tokenizer=sample_ref("tokenizers"), export_level="raw", path=None, phases=(phase,),
        journal=str(directory / "journal"), cache_bust=cache_bust,
        chat_template=chat_template,
    )  # fmt: skip
    store = store_of(directory, conversation, Counted(), adds_up=adds_up)
    engine = make_engine(plan, asyncio.new_event_loop(), store=store, warn=warn)
    transport = Answering(engine)
    engine.send_through(transport)  # type: ignore[arg-type]
    session = engine.session(phase, 0, entry=0)
    session.limit = limit
    engine.send(session, 0, -1)
    return engine, transport, session


def talk(
    directory: Path, conversation: Conversation, answers: Sequence[str | None], *, adds_up: bool = True,
    cache_bust: CacheBust = CacheBust.NONE, limit: int | None = None,
) -> list[Sent]:  # fmt: skip
    engine, transport, _ = begun(directory, conversation, adds_up=adds_up, cache_bust=cache_bust, limit=limit)
    for answer in answers:
        transport.say(answer)
    engine.logbook.close()
    plan, store = engine.plan, engine.store
    if cache_bust is not CacheBust.NONE:
        conversation = marked(conversation, cache_bust, marker(plan, 0, 0, conversation.id))
    endpoint, history, wholes = Uncounted(), list[Message](), []
    for at, (turn, answer) in enumerate(zip(conversation.turns, answers, strict=True)):
        asked = completed(conversation, at, plan.target, "m", history)
        asked = asked if limit is None else msgspec.structs.replace(asked, max_tokens=limit)
        wholes.append((request := encoded(endpoint, asked), prompt(endpoint, asked, request)))
        history = ([] if turn.reset else history[: turn.keeps]) + [*turn.before, *turn.own]
        if answer and conversation.answers == Answers.LIVE:
            history.append(Message("assistant", (answer,)))
    prompts, counts = Prompts(store), Counted()
    tokens = [prompts.tokens(request, counts) for request in ShardReader(directory / "journal", 0).finished()]
    raws = [one.texts["request"]["body"] for one in observations(directory / "journal", 0)]
    return [
        Sent(request.body, counted.texts, body, count, raw or (store.body(0, at) if at == 0 else None))
        for at, ((request, counted), body, count, raw) in enumerate(
            zip(wholes, transport.bodies[: len(wholes)], tokens, raws, strict=True)
        )
    ]


def check(sent: Sequence[Sent]) -> None:
    """What was sent, counted and kept is what encoding and counting everything gives."""
    for at, one in enumerate(sent):
        assert one.body == one.whole, f"turn {at} is sent otherwise"
        assert one.raw == one.whole, f"turn {at} is kept otherwise"
        assert one.tokens == Counted()[" ".join(one.texts)], f"turn {at} is counted otherwise"


WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
TEXTS = ("Say more", "a mark ▁", "and  then?\n", "\n", "don't", "42 is 1 number ", " ", "", "a" * 300, "x y " * 90)


def said(*texts: str, **changes: Any) -> tuple[Turn, ...]:
    return tuple(Turn((text,), **changes) for text in texts)


def user(text: str) -> Message:
    return Message.of({"role": "user", "content": text})


CONVERSATIONS = {
    "plain": Conversation("c", said("One", "two", "three", "four")),
    "a system message": Conversation("c", said("One", "two", "three"), system="Be brief"),
    "all at the start": Conversation(
        "c", said("One", "two", "three"), system="Be brief", context="So far", opening=(Message("user", ("Hi",)),)
    ),
    "odd texts": Conversation("c", said(*TEXTS, *TEXTS[::-1])),
    "several texts": Conversation("c", (Turn(("a ", "b")), Turn(("c", "d\n")), Turn(()), Turn(("e",)))),
    "tools": Conversation("c", (Turn(("One",), tools=(WEATHER,)), *said("two ", "three", "four"))),
    "other tools": Conversation(
        "c", (Turn(("One",), tools=(WEATHER,)), *said("two"), Turn(("three",), tools=()), Turn(("four",), tools=(WEATHER,) * 2))
    ),
    "tools among the fields": Conversation("c", said("One", "two", "three", "four", extra={"tools": [WEATHER]})),
    "tools of one turn": Conversation("c", (*said("One", "two", extra={"tools": [WEATHER]}), *said("three", "four"))),
    "a system text among the fields": Conversation("c", said("One", "two", "three", "four", extra={"system": "Be brief"})),
    "verbatim": Conversation("c", tuple(Turn(items=(user(f"turn {n} "),), before=(user("more"),)) for n in range(5))),
    "once verbatim": Conversation("c", (*said("One", "two"), Turn(items=(user("three"),)), *said("four", "five"))),
    "once items": Conversation("c", (*said("One"), Turn(items=(Message("user", ("two", "x")),)), *said("three", "four"))),
    "lengths": Conversation("c", tuple(Turn((f"turn {n}",), max_tokens=n // 2) for n in range(5))),
    "fields": Conversation("c", tuple(Turn((f"turn {n}",), extra={"seed": n // 2}) for n in range(5))),
    "a reset": Conversation("c", (*said("One", "two"), Turn(("three",), reset=True), *said("four", "five"))),
    "a payload": Conversation("c", (*said("One", "two"), Turn(payload={"messages": []}), *said("four", "five"))),
    "a later system message": Conversation("c", (*said("One"), Turn(("two",), role="system"), *said("three", "four"))),
    "pictures": Conversation("c", tuple(Turn((f"turn {n}",), media=(Media("image", "http://h/1"),)) for n in range(3))),
    "no live answers": Conversation("c", said("One", "two", "three"), answers=Answers.NONE),
    "authored answers": Conversation(
        "c", tuple(Turn((f"turn {n}",), before=(Message("assistant", ("Yes",)),)) for n in range(4)), answers=Answers.AUTHORED
    ),
    "some messages kept": Conversation(
        "c", (
            *said("One " * 90, "two", "three"), Turn(("four",), keeps=2), *said("five", "x" * 300, before=(user("more"),)),
            Turn(("six",), keeps=5), Turn(("seven",), keeps=9), Turn(("eight",), keeps=1), *said("nine"),
            Turn(("ten",), reset=True), *said("eleven", "twelve"), Turn(("thirteen",), keeps=2, max_tokens=3),
        ), answers=Answers.NONE,
    ),
    "some messages kept behind a start": Conversation(
        "c", (*said("One", "two", before=(Message("user", ("so",)),)), Turn(("three",), keeps=3), Turn(("four",), keeps=3)),
        system="Be brief", context="So far", opening=(Message("user", ("Hi",)),), answers=Answers.AUTHORED,
    ),
    "alone": Conversation("c", said("One", "two", "three"), alone=True),
}  # fmt: skip


@pytest.mark.parametrize("adds_up", [True, False], ids=["adds up", "whole"])
@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_bodies_and_counts_are_those_of_whole_turns(tmp_path: Path, conversation: Conversation, adds_up: bool) -> None:
    answers = [None if at == 1 else f"answer {at}" + " \n" * (at % 3) for at in range(len(conversation.turns))]
    check(talk(tmp_path, conversation, answers, adds_up=adds_up))


@pytest.mark.parametrize("name", ["plain", "tools", "lengths", "a reset", "some messages kept", "alone"])
def test_limits_of_a_session_stand_in_continued_bodies(tmp_path: Path, name: str) -> None:
    conversation = CONVERSATIONS[name]
    check(talk(tmp_path, conversation, [f"answer {at}" for at in range(len(conversation.turns))], limit=1))


class Begun(Counted):
    """Every text begins with a token that stands at its begin alone."""

    def __missing__(self, text: str) -> int:
        return super().__missing__(text) + bool(text)


@pytest.mark.parametrize(("extra", "more"), [({"tools": [WEATHER]}, 'weather {"type":"object"}'), ({"system": "Be"}, "Be")])
def test_fields_of_a_row_count_as_input(tmp_path: Path, extra: dict[str, Any], more: str) -> None:
    first, second, _ = talk(tmp_path, Conversation("c", said("One", "two", "three", extra=extra)), ["x", "y", "z"])
    behind = "tools" in extra
    for one, text in ((first, "One"), (second, "One x two")):
        assert one.tokens == Counted()[f"{text} {more}" if behind else f"{more} {text}"]


def test_texts_behind_others_are_counted_as_such(tmp_path: Path) -> None:
    sent = talk(tmp_path, CONVERSATIONS["tools"], ["x y"] * 4)
    prompts = Prompts(Store(tmp_path / "journal"))
    prompts.behind = Counted()
    tokens = [prompts.tokens(request, Begun()) for request in ShardReader(tmp_path / "journal", 0).finished()]
    assert tokens == [one.tokens for one in sent]


class Tagged:
    """A template of one token for each message and one for the answer; it refuses a text twice."""

    def count(self, messages: Sequence[Mapping[str, Any]], *, asks: bool = True) -> int:
        texts = [each["content"] for each in messages]
        if len(texts) > 1 and texts[-1] == texts[-2]:
            raise BadTokenizer(f"it heard {texts[-1]!r}")
        return len(texts) + sum(len(text.split()) for text in texts) + asks


class Heard(Chatting):
    def chat_of(self, request: HttpRequest) -> ChatPrompt | None:
        return chat_of(self.with_texts(request))


class WithTemplate(Words):
    chat_template = Tagged()


@pytest.mark.parametrize("cache_bust", [CacheBust.NONE, CacheBust.FIRST_TURN_PREFIX])
@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_for_a_chat_template_the_journal_has_whole_bodies(
    tmp_path: Path, conversation: Conversation, cache_bust: CacheBust
) -> None:
    if cache_bust is not CacheBust.NONE and any(turn.payload for turn in conversation.turns):
        pytest.skip("a payload has no marker")
    engine, transport, _ = begun(tmp_path, conversation, cache_bust=cache_bust, chat_template=True)
    for at in range(len(conversation.turns)):
        transport.say(f"answer {at}")
    engine.logbook.close()
    known = 0 if cache_bust is not CacheBust.NONE else len(conversation.turns) if conversation.alone else 1
    kept = [request.texts.get("prompt") for request in ShardReader(tmp_path / "journal", 0).finished()]
    assert kept[:known] == [None] * min(known, len(kept))
    assert kept[known:] == transport.bodies[known : len(kept)]


def test_a_chat_template_counts_the_turns_and_what_it_refuses_is_told(tmp_path: Path) -> None:
    conversation = Conversation("c", (Turn(("a b",), tools=(WEATHER,)), *said("c", "d", "d", "e")), system="Be brief")
    engine, transport, _ = begun(tmp_path, conversation, chat_template=True)
    for answer in ("x y z", "x", None, "x"):
        transport.say(answer)
    engine.logbook.close()
    prompts = Prompts(engine.store)
    prompts.chats = ChatCounter(Heard(), WithTemplate())
    _, *tokens = [prompts.tokens(request, Counted()) for request in ShardReader(tmp_path / "journal", 0).finished()]
    tools = 2  # "weather" and its parameters
    assert tokens == [4 + 2 + 2 + 3 + 1 + 1 + tools, 6 + 2 + 2 + 3 + 1 + 1 + 1 + 1 + tools, None]
    assert prompts.notes == {"chat_template": "1 request has no input tokens: it heard 'd'"}


words = st.text(st.sampled_from("ab1'. ▁\n\t\u00a0\u4e2d\"\\"), max_size=12)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(words, words), min_size=2, max_size=6), st.booleans(), st.none() | words,
    st.sampled_from([(), (WEATHER,), ({"name": "x "},)]),
)  # fmt: skip
def test_any_texts_are_counted_as_one(
    turns: list[tuple[str, str]], adds_up: bool, system: str | None, tools: tuple[dict[str, Any], ...]
) -> None:
    first, *others = said(*(text for text, _ in turns))
    conversation = Conversation("c", (msgspec.structs.replace(first, tools=tools or None), *others), system=system)
    with tempfile.TemporaryDirectory() as directory:
        check(talk(Path(directory), conversation, [answer for _, answer in turns], adds_up=adds_up))


@pytest.mark.parametrize("where", [CacheBust.SYSTEM_PREFIX, CacheBust.SYSTEM_SUFFIX, CacheBust.FIRST_TURN_PREFIX])
@pytest.mark.parametrize(
    "name", ["plain", "a system message", "tools", "fields", "a reset", "verbatim", "alone", "some messages kept"]
)
def test_markers_stand_where_they_would(tmp_path: Path, name: str, where: CacheBust) -> None:
    conversation = CONVERSATIONS[name]
    check(talk(tmp_path, conversation, [f"answer {at}" for at in range(len(conversation.turns))], cache_bust=where))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(words, words, st.none() | st.integers(1, 12)), min_size=3, max_size=8), st.booleans())
def test_any_number_of_messages_is_kept(turns: list[tuple[str, str, int | None]], adds_up: bool) -> None:
    made = tuple(Turn((own,), before=(Message("user", (before,)),), keeps=keeps) for own, before, keeps in turns)
    with tempfile.TemporaryDirectory() as directory:
        check(talk(Path(directory), Conversation("c", made, answers=Answers.NONE), [""] * len(made), adds_up=adds_up))


LONG = Conversation("c", tuple(Turn(("word " * 400 + str(n),)) for n in range(30)))
REWRITTEN = Conversation(
    "c", tuple(
        Turn(("word " * 400 + str(n),), before=(Message("user", (f"more {n}",)),), keeps=2 * n - 1 if n else None)
        for n in range(30)
    ), answers=Answers.NONE,
)  # fmt: skip
"""Each turn has another message in place of the last one of the turn before."""


@pytest.mark.parametrize(("conversation", "times", "limit"), [(LONG, 1, None), (REWRITTEN, 2, None), (LONG, 1, 1)])
def test_a_turn_is_encoded_and_counted_once(
    tmp_path: Path, conversation: Conversation, times: int, limit: int | None
) -> None:  # fmt: skip
    lengths = load(CHATTING).encoded
    lengths.clear()
    sent = talk(tmp_path, conversation, ["Yes"] * 30, limit=limit)
    journal = sum(path.stat().st_size for path in (tmp_path / "journal").glob("*.seg"))
    if limit is None:  # else the data set's own bodies end otherwise
        assert journal < times * len(sent[-1].body) / 3, "the journal repeats what the data set has"
    assert sum(count > 3 for count in lengths) <= 3, "only the checks of the promise encode the history again"
    counts, prompts = Counted(), Prompts(Store(tmp_path / "journal"))
    for request in ShardReader(tmp_path / "journal", 0).finished():
        prompts.tokens(request, counts)
    assert sum(map(len, counts.asked)) < times * sum(len(turn.text) + 20 for turn in conversation.turns)


def test_nothing_of_a_session_is_kept_behind_its_end(tmp_path: Path) -> None:
    engine, transport, session = begun(tmp_path, LONG)
    for _ in range(29):
        transport.say("Yes")
    assert len(session.script.grown.body) == len(transport.bodies[-1])
    transport.say("Yes")
    assert session.script is None
    engine.logbook.close()


def test_a_body_that_is_still_held_stays_as_it_is(tmp_path: Path) -> None:
    """A server may answer before it has read the request; the transport then still holds it."""
    engine, transport, _ = begun(tmp_path, LONG)
    held = []
    for _ in range(5):
        held.append(memoryview(transport.sent[-1].body))
        transport.say("Yes")
    assert [bytes(view) for view in held] == transport.bodies[:5]
    engine.logbook.close()


def test_a_transport_that_does_not_say_so_gets_bodies_that_never_change(tmp_path: Path) -> None:
    engine, transport, _ = begun(tmp_path, LONG)
    engine.transport.changing_bodies = False  # type: ignore[attr-defined]
    engine.begin(engine.phase, engine.driver)
    for _ in range(4):
        transport.say("Yes")
    assert [exchange.body for exchange in transport.sent] == transport.bodies
    assert {type(exchange.body) for exchange in transport.sent} == {bytes}
    engine.logbook.close()


def test_a_broken_promise_is_told_and_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chatting, "broken", True)
    monkeypatch.setattr(load(CHATTING), "broken", True)
    check(talk(tmp_path / "told", CONVERSATIONS["plain"], ["a", "b", "c", "d"]))
    told: list[str] = []
    engine, transport, _ = begun(tmp_path / "again", CONVERSATIONS["plain"], warn=told.append)
    transport.say("a")
    transport.say("b")
    engine.logbook.close()
    assert told == ["chatting promises appends_messages, and encodes a turn otherwise than behind the one before"]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_counts_behind_a_lost_request_are_unknown_and_not_wrong(tmp_path: Path, lost: int) -> None:
    sent = talk(tmp_path, CONVERSATIONS["plain"], ["a", "b", "c", "d"])
    store, counts = Store(tmp_path / "journal"), Counted()
    prompts, found = Prompts(store), []
    for at, request in enumerate(ShardReader(tmp_path / "journal", 0).finished()):
        if at != lost:
            found.append(prompts.tokens(request, counts))
    right = [one.tokens for one in sent]
    assert found == [count if at < lost or lost == 0 else None for at, count in enumerate(right) if at != lost]
    assert prompts.unknown == (0 if lost == 0 else 3 - lost), "the data set has the first turn's count"


def test_counting_goes_on_behind_columns(tmp_path: Path) -> None:
    sent = talk(tmp_path, CONVERSATIONS["plain"], ["a", "b", "c", "d"])
    prompts = Prompts(Store(tmp_path / "journal"))
    numbers = {"request": [0, 1, 2], "phase": [0] * 3, "session": [0] * 3, "turn": [0, 1, 2], "entry": [0] * 3}
    stored = {name: np.array(values, dtype=np.float64) for name, values in numbers.items()}
    stored["input_tokens"] = np.array([one.tokens for one in sent[:3]], dtype=np.float64)
    prompts.resume(stored)
    *_, last = ShardReader(tmp_path / "journal", 0).finished()
    assert prompts.tokens(last, Counted()) == sent[3].tokens


def tree() -> Conversation:
    """A root, a child with a child of its own, and two forks, of which one begins behind the root's last turn."""
    builder = TreeBuilder()
    root, child, fork, late, inner = (builder.stream(name, turns) for name, turns in zip("rcfli", (4, 4, 3, 2, 3), strict=True))
    builder.branch(root, Branch((child,), 0))
    builder.branch(root, Branch((fork,), 1, forks=True))
    builder.branch(root, Branch((late,), 3, forks=True))
    builder.branch(child, Branch((inner,), 1))
    return Conversation("c", said(*(f"turn {n} " + "x " * n for n in range(16))), streams=builder.streams())


class Walk:
    """Drives a tree in a random order, several requests at a time, and encodes each request whole beside it."""

    overflow_words = ()

    def __init__(self, directory: Path, conversation: Conversation, seed: int) -> None:
        self.engine, self.transport, root = begun(directory, conversation)
        self.engine.begin(self.engine.phase, self)  # type: ignore[arg-type]
        self.conversation, self.streams, self.draw = conversation, conversation.streams, random.Random(seed)
        self.complete = False
        self.history: dict[int, list[Message]] = {0: []}
        self.latest, self.late_forks = {0: 0}, 0
        self.ready, self.starts = list[Session](), list[tuple[Session, int]]()
        self.wholes = {0: self._whole(root)}
        while self.ready or self.starts or self.transport.open:
            if self.starts and self.draw.random() < 0.4:  # the parent may have gone on meanwhile
                parent, child = self.starts.pop()
                self.ready.append(self.engine.child(parent, child))
                self.late_forks += fork_of(self.streams, child) not in (None, self.latest[parent.stream])
            elif self.ready and self.draw.random() < 0.6:
                session = self.ready.pop(self.draw.randrange(len(self.ready)))
                self.wholes[len(self.wholes)] = self._whole(session)
                self.latest[session.stream] = session.turn
                self.engine.send(session, session.turn, -1)
            elif self.transport.open:
                self.transport.open.insert(0, self.transport.open.pop(self.draw.randrange(len(self.transport.open))))
                self.transport.say("hello")

    def first_token(self, session: Session) -> None: ...

    def request_ended(self, session: Session) -> None:
        turn = self.conversation.turns[session.turn]
        self.history[session.stream] += [*turn.own, Message("assistant", ("hello",))]
        for branch in self.streams[session.stream].branches:
            for child in branch.children if branch.after == session.turn - self.streams[session.stream].first else ():
                self.history[child] = [*self.history[session.stream]] if fork_of(self.streams, child) is not None else []
                self.starts.append((session, child))
        if not session.last:
            session.turn += 1
            self.ready.append(session)

    def _whole(self, session: Session) -> tuple[bytes, str]:
        history, turn = self.history[session.stream], self.conversation.turns[session.turn]
        alone = msgspec.structs.replace(self.conversation, turns=(turn,), streams=())
        asked = completed(alone, 0, self.engine.plan.target, "m", history)
        request = encoded(Uncounted(), asked)
        return request.body, " ".join(prompt(Uncounted(), asked, request).texts)


@pytest.mark.parametrize("seed", range(12))
def test_streams_of_a_tree_continue_each_by_itself(tmp_path: Path, seed: int) -> None:
    lengths = load(CHATTING).encoded
    lengths.clear()
    walk = Walk(tmp_path, tree(), seed)
    walk.engine.logbook.close()
    # A parent that has sent its next turn has no body left to fork off.
    assert sum(count > 3 for count in lengths) <= 4 + walk.late_forks, "only what checks the promise is encoded whole"
    assert walk.transport.bodies == [body for body, _ in walk.wholes.values()]
    prompts = Prompts(walk.engine.store)
    for request in ShardReader(tmp_path / "journal", 0).finished():
        assert prompts.tokens(request, Counted()) == Counted()[walk.wholes[request.sent[0]][1]]
    for one in observations(tmp_path / "journal", 0):
        body = one.texts["request"]["body"] or walk.engine.store.body(0, 0)
        assert body == walk.wholes[one.sent["request"]][0]
