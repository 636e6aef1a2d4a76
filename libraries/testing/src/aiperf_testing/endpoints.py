"""The contract of endpoints: a deterministic codec."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product, repeat
from typing import Any, ClassVar

import msgspec
import pytest
from aiperf.errors import BadResponse
from aiperf.sdk.endpoint import Answered, Capabilities, Done, Endpoint, Follow, Reader, encoded, follows, prompt
from aiperf.sdk.framing import Event, ServerSentEvents, framing_of
from aiperf.sdk.headers import check_header_name, check_header_value
from aiperf.sdk.model import Delta, HttpRequest, Message, Turn
from aiperf.worker.continuing import Continuing

from aiperf_testing.findings import unlike
from aiperf_testing.manifests import check_row, check_taken
from aiperf_testing.pipeline import Answer, add_delta, faulty_numbers, merged_usage, read_envelopes
from aiperf_testing.streams import JOINS

_ITEM = {"role": "user", "content": "18 degrees", "name": "sensor", "marks": [{"at": 1}]}
_TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}, "mark": 1}
_HEAVY = ("pydantic", "typer", "numpy", "stevedore", "tiktoken", "transformers")


_TEXTS = (" and", "", "é\\u00e9", '\\"quoted\\"', "[DONE]", "\\n\\n", "data: ", '{\\"error\\":1}', "null", "0", "\U0001f600")
"""Contents of JSON strings that a careless endpoint misreads."""


def _alike(event: bytes, delta: Delta | None) -> Iterator[list[bytes]]:
    """The event followed by copies with other texts; only for events with a single string."""
    for string in (delta.text, delta.reasoning) if delta is not None else ():
        quoted = msgspec.json.encode(string)
        if string and event.count(quoted) == 1:
            yield [event, *(event.replace(quoted, b'"%b"' % text.encode()) for text in _TEXTS)]


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


class _ProbeTurn:
    """The endpoint's probe, where the contract has no turn of its own."""

    def __get__(self, instance: object, owner: type[EndpointContract]) -> Turn:
        probe = owner.endpoint.probe()
        assert isinstance(probe, Turn), f"probe gave {type(probe).__name__}, not Turn"
        return msgspec.structs.replace(probe, model="model", max_tokens=8, extra={"seed": 1})


class EndpointContract:
    """Subclass with an endpoint and an answer of its server, event by event::

        class TestMineKeepsTheContract(EndpointContract):
            endpoint = Mine()
            transcript = (b'{"t":"Hi"}', b"[END]")
            answer = "Hi"

    transcript: data of the events of a streamed answer; of an endpoint without streaming, its one body.
    names: their names, where the server names its events.
    stream: the bytes of the transcript, as the server frames them; None makes them where the framing is one of the kernel's.
    answer: text, reasoning and tool calls of the whole transcript, in order.  usage: of all its events, merged.
    numbers: values of the endpoint's ``numbers`` after the transcript; None checks only their names.
    whole: the same answer without streaming; None skips its test.
    followed: of an endpoint with ``follow``, an answer of each exchange of a request, the last one included.
    turn: what is encoded; the endpoint's probe unless given.
    silent: events without visible content.  garbage: bytes that are no answer.
    """

    endpoint: ClassVar[Endpoint]
    transcript: ClassVar[Sequence[bytes]]
    names: ClassVar[Sequence[str | None]] = ()
    stream: ClassVar[bytes | None] = None
    answer: ClassVar[str]
    usage: ClassVar[dict[str, Any] | None] = None
    numbers: ClassVar[dict[str, float] | None] = None
    whole: ClassVar[bytes | None] = None
    followed: ClassVar[Sequence[Answered]] = ()
    silent: ClassVar[Sequence[bytes]] = ()
    garbage: ClassVar[Sequence[bytes]] = (b"<html>502 Bad Gateway</html>", b'{"unfinished":', b"\xff\xfe\x00", b"null", b"7")
    failure: ClassVar[bytes] = b'{"error":{"message":"busy","type":"overloaded","code":503}}'
    turn: ClassVar[Turn] = _ProbeTurn()  # type: ignore[assignment]

    def _text(self, deltas: list[Delta | None]) -> str:
        return "".join(delta.reasoning + delta.text + delta.tool for delta in deltas if delta is not None)

    def _named(self, events: Sequence[bytes]) -> list[tuple[bytes, str | None]]:
        # The names are asked first: a transcript that only the author has is not asked for where events have none.
        return list(zip(events, self.names if self.names and events is self.transcript else repeat(None), strict=False))

    def _read(self, *batches: Sequence[tuple[bytes, str | None]]) -> list[Delta | None]:
        """The Deltas of one answer, whose events come in batches, and that of its end where it has one."""
        reader, deltas = self.endpoint.reader(), list[Delta | None]()
        for batch in filter(None, batches):
            read = reader.feed([event for event, _ in batch], [name for _, name in batch])
            assert len(read) == len(batch), f"feed gave {len(read)} Deltas for {len(batch)} events"
            assert all(delta is None or isinstance(delta, Delta) for delta in read), f"feed gave {read!r:.200}"
            deltas += read
        last = reader.close()
        assert last is None or isinstance(last, Delta), f"close gave {last!r:.200}"
        return deltas if last is None else [*deltas, last]

    def _decoded(self, events: Sequence[bytes]) -> list[Delta | None]:
        return self._read(self._named(events))

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

    def test_what_follows_an_answer_is_a_request(self) -> None:
        endpoint, before = self.endpoint, None
        claims = endpoint.capabilities.follows
        assert claims is follows(type(endpoint)), "the capability 'follows' says something else than the method follow"
        if not claims:
            pytest.skip("a request of this endpoint is one exchange")
        assert len(self.followed) > 1, "followed has no answers to follow"
        for number, given in enumerate(self.followed):
            answer = msgspec.structs.replace(given, number=number, before=before)
            step = endpoint.follow(answer)
            assert step == type(endpoint)(endpoint.options).follow(answer), "the same answer is followed by something else"
            if number == len(self.followed) - 1:
                assert isinstance(step, Done), f"the last answer is followed by {step!r:.200}"
                assert self._text(self._decoded((given.body,))) == self.answer, "the last answer is another"
                continue
            assert isinstance(step, Follow), f"answer {number} is followed by {step!r:.200}"
            assert step.request.path.startswith("/") and isinstance(step.request.body, bytes), (
                unlike(step.request, "a path with / and a body of bytes", "make it as encode does")
            )
            assert 0 <= step.after_s < math.inf, (
                unlike(step.after_s, "finite seconds, 0 or more", "that is how long to wait before the next exchange")
            )
            before = step.request

    def test_the_probe_is_a_request(self) -> None:
        probe = msgspec.structs.replace(self.endpoint.probe(), model="model", stream=self.endpoint.capabilities.streaming)
        assert isinstance(encoded(self.endpoint, probe).body, bytes), (
            "the body of the probe is not bytes: encode must take the turn of probe()"
        )

    def test_the_capabilities_are_the_manifests(self) -> None:
        row = check_row("endpoints", type(self.endpoint))
        assert msgspec.convert(row.capabilities, Capabilities) == self.endpoint.capabilities, (
            unlike(row.capabilities, self.endpoint.capabilities, "write the class's capabilities into the manifest row")
        )
        check_taken(row)

    def test_the_transcript_is_the_answer(self) -> None:
        assert self._text(self._decoded(self.transcript)) == self.answer, (
            unlike(self._text(self._decoded(self.transcript)), self.answer, "the transcript must decode to the answer")
        )

    def test_the_transcript_tells_the_usage(self) -> None:
        usages = [delta.usage for delta in self._decoded(self.transcript) if delta is not None and delta.usage]
        assert merged_usage(usages) == self.usage, (
            unlike(
                merged_usage(usages), self.usage,
                "give usage in a Delta, and set usage of the contract to what the events have",
            )
        )

    def test_the_numbers_of_its_answers_are_declared(self) -> None:
        endpoint, told = self.endpoint, Answer()
        fault = faulty_numbers(endpoint.numbers)
        assert fault is None, f"{fault}: correct numbers of the class"
        for delta in self._decoded(self.transcript):
            add_delta(told, delta, 0)
        undeclared = [name for name in told.extra or () if name not in (*endpoint.numbers, *endpoint.texts)]
        assert not undeclared, f"Delta.extra has {undeclared}, which numbers and texts lack: the kernel ignores them"
        numbers = {name: told.number(name) for name in endpoint.numbers}
        assert not numbers or not all(map(math.isnan, numbers.values())), "the transcript has none of the declared numbers"
        if self.numbers is not None:
            assert {name: value for name, value in numbers.items() if not math.isnan(value)} == self.numbers, (
                unlike(numbers, self.numbers, "give them in Delta.extra or items, and set numbers to what the events have")
            )

    def test_the_whole_answer_says_the_same(self) -> None:
        if self.whole is None:
            pytest.skip("no whole answer is given")
        assert self._text(self._decoded((self.whole,))) == self.answer, (
            unlike(self._text(self._decoded((self.whole,))), self.answer, "read a whole answer as the streamed one")
        )

    def test_the_answer_has_as_many_items_as_the_request_asks_for(self) -> None:
        endpoint = self.endpoint
        if type(endpoint).items_of is Endpoint.items_of:
            pytest.skip("any number of items is good")
        asked = endpoint.items_of(encoded(endpoint, self.turn).body)
        assert asked == sum(delta.items for delta in self._decoded(self.transcript) if delta is not None), "see items_of"
        for payload in (b"", b"\xff", b"null", b"[]", b"{}"):  # a data set may have any
            assert endpoint.items_of(payload) is None, (
                f"items_of found items in {payload!r}: give None for a body that is not the endpoint's own"
            )

    def test_an_event_means_the_same_every_time(self) -> None:
        assert self._decoded(self.transcript) == self._decoded(self.transcript), (
            "the same events gave other Deltas the second time: keep state in the reader of an answer, not in the endpoint"
        )

    def test_the_size_of_a_batch_says_nothing(self) -> None:
        events = self._named(self.transcript)
        deltas = self._read(events)
        assert self._read(*([event] for event in events)) == deltas, "one by one the events mean something else"
        for at in range(1, len(events)):
            assert self._read(events[:at], events[at:]) == deltas, f"two batches, the second from event {at} on"

    def test_two_answers_at_a_time_keep_apart(self) -> None:
        readers, texts = [self.endpoint.reader() for _ in range(2)], ["", ""]
        assert readers[0] is not readers[1], "reader gave the reader of another answer"
        for event, name in self._named(self.transcript):
            for at, reader in enumerate(readers):
                texts[at] += self._text(list(reader.feed([event], [name])))
        for at, reader in enumerate(readers):
            texts[at] += self._text([reader.close()])
        assert texts == [self.answer] * 2, (
            unlike(texts, [self.answer] * 2, "make a new reader in reader(), with state of its own")
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

    def test_a_stream_cut_anywhere_gives_the_same_answer(self) -> None:
        if not self.endpoint.capabilities.streaming:
            pytest.skip("this endpoint does not stream")
        framing, stream = framing_of(self.endpoint), self.stream
        if stream is None and framing not in JOINS:
            self._read(self._named(self.transcript))  # skips where the author has to give a transcript, too
            pytest.skip("only its author has: stream")
        stream = JOINS[framing](self._named(self.transcript)) if stream is None else stream
        for at in range(len(stream) + 1):
            splitter = framing()
            events = [*splitter.feed(stream[:at]), *splitter.feed(stream[at:]), *splitter.close()]
            wrong = [event for event in events if not isinstance(event, Event)]
            assert not wrong, f"the framing gave {wrong[0]!r:.80}, not Event"
            if framing is not ServerSentEvents:
                assert [event.data for event in events] == list(self.transcript), f"cut at {at} the events are others"
            assert self._text(self._read([(event.data, event.name) for event in events])) == self.answer, f"cut at {at}"

    def test_the_framing_divides_streams(self) -> None:
        framing = framing_of(self.endpoint)
        assert framing() is not framing(), "two answers have one framing"

    def test_events_in_one_envelope_say_nothing_but_their_text(self) -> None:
        if not self.endpoint.repeats_envelope:
            pytest.skip("this endpoint makes no such promise")
        for at, (event, name) in enumerate(self._named(self.transcript)):
            for run in _alike(event, *self._reader_at(at).feed([event], [name])):
                found = read_envelopes(run, self._reader_at(at).feed, [name] * len(run))
                deltas = [delta or Delta() for delta in self._reader_at(at).feed(run, [name] * len(run))]
                assert found is not None, "events in one envelope are not recognised as such: drop repeats_envelope"
                assert found.texts == [delta.text for delta in deltas], (
                    "texts read by their envelope differ from decoded ones: drop repeats_envelope"
                )
                assert found.reasonings == [delta.reasoning for delta in deltas], (
                    "reasonings read by their envelope differ from decoded ones: drop repeats_envelope"
                )

    def _reader_at(self, at: int) -> Reader:
        """A reader that has read the transcript up to event *at*."""
        reader = self.endpoint.reader()
        for event, name in self._named(self.transcript)[:at]:
            reader.feed([event], [name])
        return reader

    def test_garbage_is_a_bad_response_that_keeps_its_bytes(self) -> None:
        for garbage in self.garbage:
            with pytest.raises(BadResponse) as caught:
                self._decoded((garbage,))
            assert caught.value.raw == garbage, (
                unlike(caught.value.raw, garbage, "give BadResponse the event: BadResponse(message, raw=event)")
            )
            assert str(caught.value), "BadResponse has no message: say what is wrong with the event"

    def test_an_error_in_band_is_a_bad_response_in_the_servers_words(self) -> None:
        with pytest.raises(BadResponse, match="busy") as caught:
            self._decoded((self.failure,))
        assert caught.value.raw == self.failure, (
            unlike(caught.value.raw, self.failure, "give BadResponse the event: BadResponse(message, raw=event)")
        )

    def test_what_shows_nothing_is_not_content(self) -> None:
        if not self.silent:
            pytest.skip("no silent events are given")
        for event in self.silent:
            assert not any(delta is not None and delta.content for delta in self._decoded((event,))), (
                f"{event!r:.80} is content: give None, or a Delta without text, for what shows nothing"
            )

    def test_importing_it_stays_light_for_workers(self) -> None:
        # It may print, and leave a thread: the last line counts, and the process doesn't wait.
        code = f"import os, sys, {type(self.endpoint).__module__}; print(); print(*sys.modules, flush=True); os._exit(0)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        heavy = sorted({*_HEAVY} & {*done.stdout.splitlines()[-1].split()})
        assert not heavy, f"its module imports {', '.join(heavy)}, which every worker waits for: import it where it is used"
