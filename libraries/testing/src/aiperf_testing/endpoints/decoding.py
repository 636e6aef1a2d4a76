"""How an endpoint reads answers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import pytest
from aiperf.errors import BadResponse
from aiperf.sdk.endpoint import Endpoint, encoded
from aiperf.sdk.framing import Event, ServerSentEvents, framing_of
from aiperf.sdk.model import Delta

from aiperf_testing.endpoints.transcript import OnTranscript
from aiperf_testing.findings import unlike
from aiperf_testing.pipeline import Answer, add_delta, faulty_numbers, merged_usage, read_envelopes
from aiperf_testing.streams import JOINS

_TEXTS = (" and", "", "é\\u00e9", '\\"quoted\\"', "[DONE]", "\\n\\n", "data: ", '{\\"error\\":1}', "null", "0", "\U0001f600")
"""Contents of JSON strings that a careless endpoint misreads."""


def _alike(event: bytes, delta: Delta | None) -> Iterator[list[bytes]]:
    """The event followed by copies with other texts; only for events with a single string."""
    for string in (delta.text, delta.reasoning) if delta is not None else ():
        quoted = msgspec.json.encode(string)
        if string and event.count(quoted) == 1:
            yield [event, *(event.replace(quoted, b'"%b"' % text.encode()) for text in _TEXTS)]


class DecodingTests(OnTranscript):
    """The same events mean the same, however they came; what is no answer is a BadResponse."""

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

    def test_tool_calls_are_told_apart(self) -> None:
        if not self.calling:
            pytest.skip("no answers with tool calls are given")
        for events in self.calling:
            together, apart = self.endpoint.reader(), self.endpoint.reader()
            deltas = together.feed(events, [None] * len(events))
            for event in events:
                apart.feed([event], [None])
            ends = [reader.close() for reader in (together, apart)]
            assert any(delta is not None and delta.tool for delta in (*deltas, *ends)), (
                "no Delta of the answer has a tool: the kernel then asks for no calls"
            )
            for calls in (list(reader.tool_calls()) for reader in (together, apart)):
                assert calls == list(self.called), (
                    unlike(calls, list(self.called), "give each call with its id, name and arguments as sent")
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
