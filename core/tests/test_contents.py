"""Contents of turns besides text: verbatim messages, tools, silent turns, authored answers; and what counts as a prompt."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf import BadDataset, Capabilities, Conversation, Endpoint, HttpRequest, Media, Message, Turn
from aiperf.prepare.conversations import check, without_silent_turns
from aiperf.prepare.encoder import Encoder
from aiperf.rundir.media import images_of
from aiperf.rundir.store import Store
from aiperf.rundir.store_writer import StoreWriter
from aiperf.sdk.endpoint import Prompt, completed, encoded, prompt
from aiperf.sdk.model import Answers
from aiperf.sdk.plan import TargetPlan
from aiperf_testing.plans import sample_plan
from msgspec.structs import replace

TARGET = TargetPlan(models=("m",), urls=("http://h",), path="/", streaming=True, timeout_ns=1, extra={"a": 1, "b": 1})
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}]}
TOOL = {"type": "function", "function": {"name": "f"}}


def said(role: str, *texts: str) -> Message:
    return Message(role, texts)


class Plain(Endpoint):
    capabilities = Capabilities(multi_turn=True, verbatim=True, tokenizes_input=True, media_in=("image",))

    def encode(self, turn: Turn) -> HttpRequest:
        return HttpRequest("/", msgspec.json.encode([message.text for message in turn.messages]))


class Counting(Plain):
    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return Prompt(["sent", *msgspec.json.decode(request.body)], [7, 7])


class Promising(Counting):
    plain_prompts = True


class Words:
    def count(self, text: str) -> int:
        return len(text.split())


# Silent turns and answers


TALK = (
    Turn(("How?",), delay_ms=5.0), Turn(("Thus.",), role="assistant", silent=True),
    Turn(("A note.",), silent=True, delay_ms=20.0, tools=(TOOL,)), Turn(("Why?",), delay_ms=10.0),
    Turn(("The end.",), role="assistant", silent=True),
)  # fmt: skip


@pytest.mark.parametrize(("answers", "before"), [
    (Answers.LIVE, [said("user", "A note.")]),
    (Answers.AUTHORED, [said("assistant", "Thus."), said("user", "A note.")]),
    (Answers.NONE, [said("user", "A note.")]),
])  # fmt: skip
def test_silent_turns_stand_before_the_next_request(answers: Answers, before: list[Message]) -> None:
    first, second = without_silent_turns(Conversation("c", TALK, answers=answers)).turns
    assert (first, second.texts, [*second.before]) == (TALK[0], ("Why?",), before)
    assert (second.delay_ms, second.tools) == (30.0, (TOOL,))


def test_a_silent_turn_may_be_verbatim_whoever_speaks() -> None:
    turns = (Turn(items=(Message.of(CALL),), role="assistant", silent=True), Turn(("x",)))
    (turn,) = without_silent_turns(Conversation("c", turns)).turns
    assert turn.before == (Message.of(CALL),)


def test_a_reset_drops_the_silent_turns_before_it() -> None:
    turns = (Turn(("a",), silent=True), Turn(("b",), silent=True, reset=True), Turn(("c",)))
    (turn,) = without_silent_turns(Conversation("c", turns)).turns
    assert (turn.before, turn.reset) == ((said("user", "b"),), True)


def test_a_conversation_without_silent_turns_stays_the_same_object() -> None:
    conversation = Conversation("c", (Turn(("x",)),))
    assert without_silent_turns(conversation) is conversation


@pytest.mark.parametrize(("conversation", "sentence"), [
    (Conversation("c", (Turn(silent=True), Turn()), alone=True), "has silent turns, and its turns are sent without history"),
    (Conversation("c", (Turn(),), answers="both"), "the answers of conversation 'c' are 'both'"),  # type: ignore[arg-type]
])  # fmt: skip
def test_a_contradiction_is_refused(conversation: Conversation, sentence: str) -> None:
    with pytest.raises(BadDataset, match=sentence):
        without_silent_turns(conversation)


@pytest.mark.parametrize("recorded_ms", [(0.0, math.inf), (math.nan, 1.0), (2.0, 1.0)])
def test_a_turn_whose_recorded_times_are_none_is_refused(recorded_ms: tuple[float, float]) -> None:
    conversation = Conversation("c", (Turn(("x",)), Turn(("y",), recorded_ms=recorded_ms)))
    with pytest.raises(BadDataset, match="turn 1 of conversation 'c' was recorded from"):
        check(conversation, Capabilities(multi_turn=True), "chat")


# What the endpoint gets


def test_the_opening_stands_between_system_prompt_and_context() -> None:
    conversation = Conversation("c", (Turn(("x",)),), "S", "C", opening=(said("user", "2+2?"), said("assistant", "4")))
    texts = [message.text for message in completed(conversation, 0, TARGET, "m").messages]
    assert texts == ["S", "2+2?", "4", "C", "x"]


def test_a_reset_keeps_the_opening_alone() -> None:
    conversation = Conversation("c", (Turn(("a",)), Turn(("b",), reset=True, before=(said("user", "n"),))), "S")
    turn = completed(conversation, 1, TARGET, "m", [said("user", "a"), said("assistant", "live")])
    assert [message.text for message in turn.messages] == ["S", "n", "b"]


THIRD = Turn(("d",), keeps=2, before=(said("user", "c"),))
KEEPS = Conversation(
    "c", (Turn(("a",)), Turn(("b",), before=(said("assistant", "A"),)), THIRD), "S", answers=Answers.AUTHORED
)  # fmt: skip


def test_a_turn_keeps_so_many_messages_of_those_before() -> None:
    history = [said("user", "a"), said("assistant", "A"), said("user", "b")]
    turn = completed(KEEPS, 2, TARGET, "m", history)
    assert [message.text for message in turn.messages] == ["S", "a", "A", "c", "d"]
    assert KEEPS.messages(2) == turn.messages
    picture = Media("image", "data:")
    turns = Turn(media=(picture,) * 2), Turn(media=(picture,)), Turn(("t",), keeps=1)
    assert images_of(Conversation("c", turns, answers=Answers.NONE)) == [2, 3, 2]


@pytest.mark.parametrize(("conversation", "sentence"), [
    (replace(KEEPS, answers=Answers.LIVE), "turn 2 of conversation 'c' keeps 2 messages, beside live answers"),
    (replace(KEEPS, turns=(Turn(keeps=-1),)), "turn 0 of conversation 'c' keeps -1 messages, below 0"),
])  # fmt: skip
def test_a_number_of_kept_messages_that_is_none_is_refused(conversation: Conversation, sentence: str) -> None:
    with pytest.raises(BadDataset, match=sentence):
        check(conversation, Capabilities(multi_turn=True, system_message=True), "chat")


def test_silent_turns_and_kept_messages_exclude_each_other() -> None:
    with pytest.raises(BadDataset, match="has silent turns, and keeps a number of the messages"):
        without_silent_turns(replace(KEEPS, turns=(Turn(("a",), silent=True), Turn(keeps=1))))


def test_both_extras_reach_the_endpoint_together_and_apart() -> None:
    turn = completed(Conversation("c", (Turn(extra={"b": 2}),)), 0, TARGET, "m")
    assert (turn.extra, turn.run_extra, turn.row_extra) == ({"a": 1, "b": 2}, {"a": 1, "b": 1}, {"b": 2})


def test_settings_yield_to_the_user_and_extra_does_not() -> None:
    row = Turn(extra={"b": 2}, settings={"a": 0, "temperature": 0.0, "stop": ["x"], "seed": 7})
    target = replace(TARGET, setting_names={"stop": "stop_sequences", "seed": ""})
    turn = completed(Conversation("c", (row,)), 0, target, "m")
    run = {"temperature": 0.0, "stop_sequences": ["x"], "a": 1, "b": 1}
    assert (turn.extra, turn.run_extra, turn.row_extra) == ({**run, "b": 2}, run, {"b": 2})
    assert target.sent(row.settings, row.extra) == {"a": 1, "temperature": 0.0, "stop_sequences": ["x"]}
    assert target.sent({"b": 9}, row.extra) == {"b": 2}


@pytest.mark.parametrize(("alone", "tools"), [(False, [(TOOL,), (TOOL,), ()]), (True, [(TOOL,), None, ()])])
def test_tools_stay_until_others_come(alone: bool, tools: list[Any]) -> None:
    conversation = Conversation("c", (Turn(tools=(TOOL,)), Turn(), Turn(tools=())), alone=alone)
    assert [completed(conversation, i, TARGET, "m").tools for i in range(3)] == tools


def test_named_texts_are_found_by_any_of_their_names() -> None:
    turn = Turn(("q", "p", "r"), named={"query": "q", "passages": ("p", "r")})
    assert (turn.texts_of("queries", "query"), turn.texts_of("passages"), turn.texts_of("x")) == (("q",), ("p", "r"), ())


@pytest.mark.parametrize("payload", [b"\x00not JSON", {"k": [1]}])
def test_a_payload_is_the_body(payload: Any) -> None:
    body = encoded(Plain(), Turn(("x",), payload=payload)).body
    assert body == (payload if isinstance(payload, bytes) else b'{"k":[1]}')


@pytest.mark.parametrize(("item", "words", "images"), [
    (CALL, (), 0),
    ({"role": "user", "content": "a"}, ("a",), 0),
    ({"content": [{"type": "input_text", "text": "a"}, {"type": "input_image"}, {"type": "text", "text": "b"}, 7]},
     ("a", "b"), 1),
])  # fmt: skip
def test_a_verbatim_message_tells_its_texts_and_pictures(item: dict[str, Any], words: tuple[str, ...], images: int) -> None:
    message = Message.of(item)
    assert (message.words, message.images, message.role) == (words, images, item.get("role", ""))


def test_unused_fields_are_one_empty_object_that_stays_empty() -> None:
    turn = Turn(("x",))
    assert turn.named is turn.run_extra is Turn().row_extra
    assert msgspec.json.encode([turn.run_extra, {**turn.row_extra}]) == b"[{},{}]"
    extra: Any = turn.run_extra
    for change in (lambda: extra.update(a=1), lambda: extra.setdefault("a", 1), lambda: extra.__setitem__("a", 1)):
        with pytest.raises(TypeError, match="make another one"):
            change()
    assert turn.run_extra == {}


# The store


def test_everything_survives_the_store(tmp_path: Path) -> None:
    turns = (
        Turn(("q",), named={"query": "q", "passages": ("p",)}, media=(Media("audio", "wav,AA", seconds=1.5),), blocks=(3, 9)),
        Turn(items=(Message.of(CALL),), tools=(TOOL,), payload=b"\xff", reset=True, before=(said("tool", "18"),)),
    )
    conversation = Conversation("c", turns, opening=(Message.of({"role": "user", "content": "o"}),), answers=Answers.AUTHORED)
    with StoreWriter(tmp_path) as writer:
        writer.add(conversation, [[HttpRequest("/", b"")]] * 2)
    assert Store(tmp_path).conversation(0) == conversation


def test_what_a_conversation_does_not_use_takes_no_room() -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Conversation("c", (Turn(("x",)),)))) == {
        "id": "c", "turns": [{"texts": ["x"]}],
    }  # fmt: skip


@pytest.mark.parametrize(("changes", "images"), [({}, [2, 4]), ({"alone": True}, [2, 3]), ({"reset": True}, [2, 3])])
def test_the_pictures_of_a_request_are_those_that_it_sends(tmp_path: Path, changes: dict[str, bool], images: list[int]) -> None:
    picture, part = Media("image", "u"), {"role": "user", "content": [{"type": "image_url"}, {"type": "image_url"}]}
    turns = (Turn(("a",), (picture,)), Turn(items=(Message.of(part),), reset=changes.get("reset", False)))
    conversation = Conversation("c", turns, opening=(Message("user", (), (picture,)),), alone=changes.get("alone", False))
    with StoreWriter(tmp_path) as writer:
        writer.add(conversation, [[HttpRequest("/", b"")]] * 2)
    assert [Store(tmp_path).images(0, turn) for turn in range(2)] == images


# Input tokens


@pytest.mark.parametrize(("endpoint", "turn", "counted"), [
    (Plain(), Turn(("a b",), history=(said("user", "c"),)), Prompt(["c", "a b"])),
    (Counting(), Turn(("a b",)), Prompt(["sent", "a b"], [7, 7])),
    (Promising(), Turn(("a b",)), Prompt(["a b"])),
    (Promising(), Turn(("a b",), tools=(TOOL,)), Prompt(["sent", "a b"], [7, 7])),
    (Promising(), Turn(("a",), history=(Message.of({"content": "h"}),)), Prompt(["sent", "h", "a"], [7, 7])),
])  # fmt: skip
def test_the_endpoint_says_what_counts(endpoint: Endpoint, turn: Turn, counted: Prompt) -> None:
    assert prompt(endpoint, turn, encoded(endpoint, turn)) == counted


def test_a_wrong_answer_is_named() -> None:
    class Wrong(Plain):
        def prompt_of(self, request: HttpRequest) -> Any:
            return "all"

    with pytest.raises(TypeError, match="prompt_of returned str, not Prompt"):
        prompt(Wrong(), Turn(), HttpRequest("/", b""))


@pytest.mark.parametrize(("endpoint", "turn", "tokens"), [
    (Plain(), Turn(("a b",), input_tokens=9), 9),
    (Counting(), Turn(("a b",), input_tokens=9), 5),
    (Promising(), Turn(("a b",), input_tokens=9), 9),
    (Promising(), Turn(("a b",), input_tokens=9, tools=(TOOL,)), 5),
    (Plain(), Turn(("a b",), input_tokens=9, before=(said("tool", "18"),)), 3),
])  # fmt: skip
def test_input_tokens_are_what_the_endpoint_counts(tmp_path: Path, endpoint: Endpoint, turn: Turn, tokens: int) -> None:
    tokenizer: Any = Words()
    encoder = Encoder(sample_plan(tmp_path), endpoint, tokenizer)
    conversation = Conversation("c", (turn,))
    ((request,),) = encoder.requests(conversation)
    assert encoder.tokens.of(conversation, 0, request) == tokens


@pytest.mark.parametrize("alone", [False, True])
def test_a_later_turn_is_encoded_without_looking_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    seen: list[tuple[int, Any]] = []

    class Watching(Plain):
        def encode(self, turn: Turn) -> HttpRequest:
            seen.append((len(turn.messages), turn.tools))
            return super().encode(turn)

    looked: list[int] = []

    def watched(conversation: Conversation, index: int, *given: Any) -> Turn:
        looked.append(len(conversation.turns))
        return completed(conversation, index, *given)

    monkeypatch.setattr("aiperf.prepare.encoder.completed", watched)
    turns = (Turn(("a",), tools=(TOOL,)), *(Turn((f"{number}",)) for number in range(20)), Turn(("z",), tools=()), Turn(("y",)))
    Encoder(sample_plan(tmp_path), Watching(), None).requests(Conversation("c", turns, "Be terse.", alone=alone))
    kept, system = (None, 2) if alone else ((TOOL,), 1)
    assert seen == [(2, (TOOL,)), *[(system, kept)] * 20, (system, ()), (system, None if alone else ())]
    assert looked[1:] == [1] * 22, "of a million turns each is as cheap as of two"


# What an endpoint can't send

ANY: Any = [1]


class Old(Plain):
    capabilities = Capabilities(multi_turn=True)


class Single(Plain):
    capabilities = Capabilities(verbatim=True)


@pytest.mark.parametrize(("endpoint", "conversation", "sentence"), [
    (Old(), Conversation("c", (Turn(tools=(TOOL,)),)), "has tools or verbatim messages"),
    (Old(), Conversation("c", (Turn(),), opening=(Message.of(CALL),)), "has tools or verbatim messages"),
    (Plain(), Conversation("c", (Turn(extra={"tools": 5}),)), "tools that are no list of objects: 5"),
    (Plain(), Conversation("c", (Turn(extra={"tools": {"name": "f"}}),)), "tools that are no list of objects"),
    (Plain(), Conversation("c", (Turn(settings=ANY),)), "turn 0 of conversation 'c' has settings that are no fields"),
    (Plain(), Conversation("c", (Turn(settings={ANY[0]: 2}),)), "settings that are no fields of a body: {1: 2}"),
    (Plain(), Conversation("c", (Turn(settings={"n": 1}, payload=b"{}"),)), "settings beside a whole body"),
    (Plain(), Conversation("c", (Turn(repeat=-1),)), "turn 0 of conversation 'c' has the repeat -1"),
    (Plain(), Conversation("c", (Turn(repeat=True),)), "has the repeat True"),
    (Plain(), Conversation("c", (Turn(), Turn(extra={"tools": [TOOL, "f"]}))), "turn 1 of conversation 'c' has tools"),
    (Old(), Conversation("c", (Turn(items=(Message.of(CALL),)),)), "has tools or verbatim messages"),
    (Single(), Conversation("c", (Turn(),), opening=(said("user", "x"),)), "has earlier messages"),
    (Single(), Conversation("c", (Turn(before=(said("user", "x"),)),)), "has earlier messages"),
])  # fmt: skip
def test_contents_that_an_endpoint_cannot_send_are_refused(
    tmp_path: Path, endpoint: Endpoint, conversation: Conversation, sentence: str
) -> None:
    with pytest.raises(BadDataset, match=sentence):
        Encoder(sample_plan(tmp_path), endpoint, None).requests(conversation)


def test_a_payload_needs_no_endpoint_that_sends_tools(tmp_path: Path) -> None:
    turn = Turn(tools=(TOOL,), payload={"tools": [TOOL]})
    ((request,),) = Encoder(sample_plan(tmp_path), Old(), None).requests(Conversation("c", (turn,)))
    assert msgspec.json.decode(request.body) == {"tools": [TOOL]}
