"""How an endpoint makes requests of turns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import pytest
from aiperf.sdk.endpoint import Done, Drained, Endpoint, Follow, drains, encoded, follows, prompt
from aiperf.sdk.errors import BadResponse
from aiperf.sdk.exchanges import DRAINED_START
from aiperf.sdk.headers import check_header_name, check_header_value
from aiperf.sdk.model import HttpRequest, Message, Turn
from aiperf.worker.continuing import Continuing

from aiperf_testing.endpoints.transcript import OnTranscript
from aiperf_testing.findings import unlike

_ITEM = {"role": "user", "content": "18 degrees", "name": "sensor", "marks": [{"at": 1}]}
_TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}, "mark": 1}


def _with_verbatim(turn: Turn) -> Turn:
    """The turn with a tool and a verbatim message in place of its own; both are copies that an endpoint may spoil."""
    item, tool = msgspec.json.decode(msgspec.json.encode([_ITEM, _TOOL]))
    return msgspec.structs.replace(turn, tools=(tool,), items=(Message.of(item),))


def _values(value: Any) -> Iterator[Any]:
    """The value and every value inside it."""
    yield value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inside:
        yield from _values(one)


def _check_appended(endpoint: Endpoint, turn: Turn) -> None:
    """Whether turns behind *turn* continue its body."""
    continuing, first = Continuing(endpoint, None, counts=True, adds_up=False), turn
    grown = continuing.begin(0, turn, encoded(endpoint, turn).body)
    assert grown is not None, "a body does not go on behind its list of messages as one without messages does"
    for number, text in enumerate(("x", ' another "text"\n', "\u00e9\U0001f600\\ \t", '],"messages":['), 1):
        own = msgspec.structs.replace(first, texts=(text,), history=())
        new = (Message("assistant", (f"answer {number}",)), Message("user", (text, "more")), *own.own)
        turn = msgspec.structs.replace(own, history=(*turn.messages, *new[: len(new) - len(own.own)]))
        whole = encoded(endpoint, turn)
        continued = continuing.grow(grown, own, new, number, encoded(endpoint, own).body)
        assert continued is not None, f"the messages of turn {number} can't be told from the rest of its body"
        assert grown.body == whole.body, f"turn {number} is encoded otherwise than behind the messages before"
        assert continued.prompt == " ".join(prompt(endpoint, turn, whole).texts), f"turn {number} has another prompt"


class EncodingTests(OnTranscript):
    """Requests depend on their turns alone, and are what the endpoint promises of them."""

    def test_the_same_turn_gives_the_same_bytes(self) -> None:
        run, row = {"seed": 1}, {"user": "ada"}
        turns = [self.turn, msgspec.structs.replace(self.turn, extra={**run, **row}, run_extra=run, row_extra=row)]
        if self.endpoint.capabilities.verbatim:
            turns.append(_with_verbatim(self.turn))
        for turn in turns:
            before = msgspec.json.encode(turn)
            first, second = self.endpoint.encode(turn), type(self.endpoint)(self.endpoint.options).encode(turn)
            assert first == second, (
                unlike(second, first, "encode must depend on turn and options alone: no clock, no counter, no chance")
            )
            assert msgspec.json.encode(turn) == before, "encoding changed the turn"

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_request_is_whole(self, stream: bool) -> None:
        stream = stream and self.endpoint.capabilities.streaming
        request = self.endpoint.encode(msgspec.structs.replace(self.turn, stream=stream))
        assert isinstance(request.body, bytes), (
            unlike(type(request.body), bytes, "encode the body, for example with msgspec.json.encode")
        )
        assert request.path == "" or request.path.startswith("/"), (
            unlike(request.path, "a path that begins with /", "or '' for the path of the endpoint")
        )
        assert request.method.isupper(), unlike(request.method, "an upper-case method", "write 'POST'")
        for name, value in request.headers.items():
            check_header_name(name)
            check_header_value(name, value)
        if request.content_type == "application/json":
            msgspec.json.decode(request.body)

    def test_what_counts_as_input_can_be_counted(self) -> None:
        endpoint, turns = self.endpoint, [self.turn]
        if endpoint.capabilities.verbatim:
            turns.append(_with_verbatim(self.turn))
        for turn in turns:
            request = endpoint.encode(turn)
            counted = prompt(endpoint, turn, request)
            assert counted == prompt(endpoint, turn, request), (
                unlike(prompt(endpoint, turn, request), counted, "prompt_of must depend on the request alone")
            )
            assert all(isinstance(text, str) for text in counted.texts), "texts of a prompt are texts"
            assert all(isinstance(token, int) for token in counted.ids), "ids of a prompt are whole numbers"

    def test_a_chat_template_gets_the_messages(self) -> None:
        endpoint = self.endpoint
        if not endpoint.capabilities.chat_template:
            pytest.skip("no chat template stands behind this endpoint")
        earlier = (Message("user", ("Hello",)), Message("assistant", ("Hi",)))
        turn = msgspec.structs.replace(self.turn, history=earlier)
        chat = endpoint.chat_of(HttpRequest("", endpoint.encode(turn).body))
        assert chat is not None, "the body has no messages"
        said = [(message["role"], message["content"]) for message in chat.messages]
        assert said == [("user", "Hello"), ("assistant", "Hi"), ("user", " ".join(turn.texts))], (
            unlike(said, "user Hello, assistant Hi and the turn", "give chat_of the body's messages in their order")
        )
        assert [*chat.tools] == [], unlike([*chat.tools], [], "a body without tools has none")

    def test_a_plain_prompt_is_the_texts_of_its_messages(self) -> None:
        endpoint = self.endpoint
        counted = endpoint.prompt_of(endpoint.encode(self.turn))
        if not endpoint.plain_prompts or counted is None:
            pytest.skip("this endpoint makes no such promise")
        assert ([*counted.texts], [*counted.ids]) == ([*self.turn.texts], []), (
            unlike(counted, self.turn.texts, "leave plain_prompts away, or count just the texts of the messages")
        )

    def test_texts_are_spliced_as_they_are_encoded(self) -> None:
        endpoint = self.endpoint
        if not endpoint.splices_text:
            pytest.skip("this endpoint makes no such promise")
        one, *others = (
            endpoint.encode(msgspec.structs.replace(self.turn, texts=(text,)))
            for text in ("a text", "x", " another \"text\"\n", "\u00e9\U0001f600\\ \t", '"messages"')
        )
        before, _, behind = one.body.partition(b'"a text"')
        for text, other in zip(("x", " another \"text\"\n", "\u00e9\U0001f600\\ \t", '"messages"'), others, strict=True):
            spliced = msgspec.structs.replace(one, body=before + msgspec.json.encode(text) + behind)
            assert other == spliced, f"the text {text!r} is encoded otherwise than in the place of another"

    def test_new_messages_are_appended_as_they_are_encoded(self) -> None:
        endpoint, asked = self.endpoint, [self.turn]
        if not endpoint.appends_messages:
            pytest.skip("this endpoint makes no such promise")
        if endpoint.capabilities.verbatim:
            asked.append(_with_verbatim(self.turn))
        for turn, system in product(asked, ((), (Message("system", ("Be brief",)),))):
            first = msgspec.structs.replace(turn, stream=endpoint.capabilities.streaming, history=system)
            _check_appended(endpoint, first)

    def test_tools_and_verbatim_messages_are_sent_as_they_are(self) -> None:
        if not self.endpoint.capabilities.verbatim:
            pytest.skip("this endpoint does not claim to")
        turn = _with_verbatim(self.turn)
        sent = list(_values(msgspec.json.decode(self.endpoint.encode(turn).body)))
        assert _ITEM in sent, "the verbatim message is not in the body"
        assert _TOOL in sent, "the tool is not in the body"

    def test_the_path_is_the_declared_one(self) -> None:
        for stream in {False, self.endpoint.capabilities.streaming}:
            turn = msgspec.structs.replace(self.turn, stream=stream)
            declared = self.endpoint.path(streaming=stream)
            assert encoded(self.endpoint, turn).path == declared.replace("{model}", turn.model), (
                unlike(encoded(self.endpoint, turn).path, declared, "give encode the path that path() declares")
            )

    def test_the_ids_of_a_turn_are_in_its_request(self) -> None:
        can = self.endpoint.capabilities
        if not can.takes_ids:
            pytest.skip("this endpoint sends texts")
        assert can.tokenizes_input and not (can.multi_turn or can.cache_bust), (
            "only the build has a tokenizer: such an endpoint tokenizes its input, and has neither history nor markers"
        )
        ids = (1, 2, 1, 3)
        request = encoded(self.endpoint, msgspec.structs.replace(self.turn, ids=ids))
        counted = prompt(self.endpoint, self.turn, request)
        assert (tuple(counted.ids), tuple(counted.texts)) == (ids, ()), (
            unlike(counted, ids, "send the ids, and let prompt_of find them in the body")
        )

    def test_every_scheme_has_its_request(self) -> None:
        can = self.endpoint.capabilities
        default = can.url.partition("://")[0]
        assert not can.url or default in (can.schemes or ("http", "https")), (
            f"the default URL {can.url!r} has none of the schemes: write it with one"
        )
        if not can.schemes:
            pytest.skip("this endpoint takes any HTTP")
        usual = encoded(self.endpoint, self.turn)
        for at, scheme in enumerate(can.schemes):
            assert scheme == scheme.lower() and scheme.isascii() and "/" not in scheme, f"{scheme!r} is no scheme of a URL"
            made = encoded(self.endpoint, msgspec.structs.replace(self.turn, scheme=scheme))
            assert at or made == usual, (
                unlike(made, usual, "a turn without a scheme is one of the first: make the same request of both")
            )

    def test_what_follows_an_answer_is_a_request(self) -> None:
        endpoint, before, kept = self.endpoint, None, None
        claims = endpoint.capabilities.follows
        assert claims is follows(type(endpoint)), "the capability 'follows' says something else than the method follow"
        if not claims:
            pytest.skip("a request of this endpoint is one exchange")
        assert len(self.followed) > 1, "followed has no answers to follow"
        for number, given in enumerate(self.followed):
            asked, state = (None, None) if before is None else (before.request, before.state)
            answer = msgspec.structs.replace(given, number=number, before=asked, state=state, url=given.url or "http://here/jobs")
            step = endpoint.follow(answer)
            assert step == type(endpoint)(endpoint.options).follow(answer), "the same answer is followed by something else"
            if number == len(self.followed) - 1:
                assert isinstance(step, Done), f"the last answer is followed by {step!r:.200}"
                read = before is not None and before.drain and kept is None
                deltas = [endpoint.drained(given.body, len(given.body)).delta] if read else self._decoded((kept or given.body,))
                assert self._text(deltas) == self.answer, "the answer that is the request's is another"
                continue
            assert isinstance(step, Follow), f"answer {number} is followed by {step!r:.200}"
            assert step.request.path.startswith(("/", "http://", "https://")) and isinstance(step.request.body, bytes), (
                unlike(step.request, "a path with /, or a URL, and a body of bytes", "make it as encode does")
            )
            assert 0 <= step.after_s < math.inf, (
                unlike(step.after_s, "finite seconds, 0 or more", "that is how long to wait before the next exchange")
            )
            before, kept = step, given.body if step.keep else kept

    def test_a_drained_answer_is_read_from_its_start(self) -> None:
        endpoint, whole = self.endpoint, self.drained
        if not drains(type(endpoint)):
            pytest.skip("this endpoint drains no answer")
        assert whole, "drained has no answer"
        said = endpoint.drained(whole[:DRAINED_START], len(whole))
        assert isinstance(said, Drained), f"drained gave {said!r:.200}, not Drained"
        assert said == endpoint.drained(whole[:DRAINED_START], len(whole)), "the same answer is read as something else"
        assert said.delta is not None and said.delta.content, f"drained saw no content in an answer: {said!r:.200}"
        assert 0 <= said.begins <= len(whole), unlike(said.begins, f"0 to {len(whole)}", "it is a number of the answer's bytes")
        with pytest.raises(BadResponse):
            endpoint.drained(self.failure, len(self.failure))

    def test_the_probe_is_a_request(self) -> None:
        probe = msgspec.structs.replace(self.endpoint.probe(), model="model", stream=self.endpoint.capabilities.streaming)
        assert isinstance(encoded(self.endpoint, probe).body, bytes), (
            "the body of the probe is not bytes: encode must take the turn of probe()"
        )

    def test_the_next_turn_can_repeat_the_answer(self) -> None:
        if not self.endpoint.capabilities.multi_turn:
            pytest.skip("this endpoint has no history")
        reader, events = self.endpoint.reader(), self._named(self.transcript)
        text = self._text([*reader.feed([event for event, _ in events], [name for _, name in events]), reader.close()])
        messages, state = reader.replay(), reader.state()
        messages = [Message("assistant", (text,))] if messages is None else messages
        assert all(isinstance(message, Message) for message in messages), f"replay gave {messages!r:.200}"
        assert isinstance(state, dict), f"state gave {state!r:.200}"
        turn = msgspec.structs.replace(self.turn, history=(Message("user", ("Before",)), *messages), state=state)
        assert self.endpoint.encode(turn) == self.endpoint.encode(turn), (
            "the same turn with a history gives other bytes: encode must not change the history"
        )
