"""What every endpoint must do: a codec without surprises."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any, ClassVar

import msgspec
import pytest

from aiperf.endpoint import Capabilities, Endpoint
from aiperf.envelopes import opened
from aiperf.errors import BadResponse
from aiperf.model import Delta, Turn
from aiperf.sse import Splitter
from aiperf.testing.manifests import check_row

_HEAVY = ("pydantic", "typer", "numpy", "stevedore", "tiktoken", "transformers")


_TEXTS = (" and", "", "é\\u00e9", '\\"quoted\\"', "[DONE]", "\\n\\n", "data: ", '{\\"error\\":1}', "null", "0", "\U0001f600")
"""Insides of JSON strings that an endpoint may take for something else."""


def _alike(event: bytes, delta: Delta | None) -> Iterator[list[bytes]]:
    """The event, and then the same with other texts; of an event that says one string."""
    for string in (delta.text, delta.reasoning) if delta is not None else ():
        quoted = msgspec.json.encode(string)
        if string and event.count(quoted) == 1:
            yield [event, *(event.replace(quoted, b'"%b"' % text.encode()) for text in _TEXTS)]


class EndpointContract:
    """Subclass with an endpoint and an answer of its server, event by event::

        class TestMineKeepsTheContract(EndpointContract):
            endpoint = Mine()
            transcript = (b'{"t":"Hi"}', b"[END]")
            answer = "Hi"

    transcript: data of a streamed answer's events; of an endpoint that doesn't stream, its one body.
    answer: text, reasoning and tool calls of it all, in order.  usage: the last the transcript tells.
    whole: the same answer, not streamed; None if there is none to show.
    silent: events in which nobody would see anything.  garbage: bytes that are no answer.
    """

    endpoint: ClassVar[Endpoint]
    transcript: ClassVar[Sequence[bytes]]
    answer: ClassVar[str]
    usage: ClassVar[dict[str, Any] | None] = None
    whole: ClassVar[bytes | None] = None
    silent: ClassVar[Sequence[bytes]] = ()
    garbage: ClassVar[Sequence[bytes]] = (b"<html>502 Bad Gateway</html>", b'{"unfinished":', b"\xff\xfe\x00", b"null", b"7")
    failure: ClassVar[bytes] = b'{"error":{"message":"busy","type":"overloaded","code":503}}'
    turn: ClassVar[Turn] = Turn(texts=("Hello",), model="model", max_tokens=8, extra={"seed": 1})

    def _said(self, deltas: list[Delta | None]) -> str:
        return "".join(each.reasoning + each.text + each.tool for each in deltas if each is not None)

    def _decoded(self, events: Sequence[bytes]) -> list[Delta | None]:
        return [self.endpoint.decode(event) for event in events]

    def test_the_same_turn_gives_the_same_bytes(self) -> None:
        before = msgspec.json.encode(self.turn)
        first, second = self.endpoint.encode(self.turn), type(self.endpoint)(self.endpoint.options).encode(self.turn)
        assert first == second
        assert msgspec.json.encode(self.turn) == before, "encoding changed the turn"

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_request_is_whole(self, stream: bool) -> None:
        stream = stream and self.endpoint.capabilities.streaming
        request = self.endpoint.encode(msgspec.structs.replace(self.turn, stream=stream))
        assert isinstance(request.body, bytes)
        assert request.path == "" or request.path.startswith("/")
        assert request.method.isupper()
        if request.content_type == "application/json":
            msgspec.json.decode(request.body)

    def test_the_path_is_the_declared_one(self) -> None:
        for stream in {False, self.endpoint.capabilities.streaming}:
            turn = msgspec.structs.replace(self.turn, stream=stream)
            assert self.endpoint.encode(turn).path == self.endpoint.path(streaming=stream)

    def test_the_capabilities_are_the_manifests(self) -> None:
        row = check_row("endpoints", type(self.endpoint))
        assert msgspec.convert(row.capabilities, Capabilities) == self.endpoint.capabilities

    def test_the_transcript_is_the_answer(self) -> None:
        assert self._said(self._decoded(self.transcript)) == self.answer

    def test_the_transcript_tells_the_usage(self) -> None:
        told = [each.usage for each in self._decoded(self.transcript) if each is not None and each.usage]
        assert (told[-1] if told else None) == self.usage

    def test_the_whole_answer_says_the_same(self) -> None:
        if self.whole is None:
            pytest.skip("no whole answer is given")
        assert self._said([self.endpoint.decode(self.whole)]) == self.answer

    def test_an_event_means_the_same_every_time(self) -> None:
        assert self._decoded(self.transcript) == self._decoded(self.transcript)

    def test_a_stream_cut_anywhere_gives_the_same_answer(self) -> None:
        if not self.endpoint.capabilities.streaming:
            pytest.skip("this endpoint does not stream")
        ends = cycle((b"\r\n", b"\n", b"\r"))  # the standard has all three, and servers mix them
        events = (event.replace(b"\n", b"\ndata: ") for event in self.transcript)
        stream = b"".join(b"data: %b%b" % (event, 2 * next(ends)) for event in events)
        for at in range(len(stream) + 1):
            splitter = Splitter()
            found = [*splitter.feed(stream[:at]), *splitter.feed(stream[at:]), *splitter.close()]
            assert self._said(self._decoded([event.data for event in found])) == self.answer, f"cut at {at}"

    def test_events_in_one_envelope_say_nothing_but_their_text(self) -> None:
        if not self.endpoint.repeats_envelope:
            pytest.skip("this endpoint doesn't promise it")
        for event in self.transcript:
            for run in _alike(event, self.endpoint.decode(event)):
                found = opened(run, self.endpoint.decode)
                deltas = [each or Delta() for each in self._decoded(run)]
                assert found is not None
                assert found.texts == [each.text for each in deltas]
                assert found.reasonings == [each.reasoning for each in deltas]

    def test_garbage_is_a_bad_response_that_keeps_its_bytes(self) -> None:
        for garbage in self.garbage:
            with pytest.raises(BadResponse) as caught:
                self.endpoint.decode(garbage)
            assert caught.value.raw == garbage
            assert str(caught.value)

    def test_an_error_in_band_is_a_bad_response_in_the_servers_words(self) -> None:
        with pytest.raises(BadResponse, match="busy") as caught:
            self.endpoint.decode(self.failure)
        assert caught.value.raw == self.failure

    def test_what_shows_nothing_is_not_content(self) -> None:
        if not self.silent:
            pytest.skip("no silent events are given")
        for event in self.silent:
            delta = self.endpoint.decode(event)
            assert delta is None or not delta.content, event

    def test_importing_it_stays_light_for_workers(self) -> None:
        code = f"import sys, {type(self.endpoint).__module__}; print(*sys.modules)"
        brought = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        assert not set(_HEAVY) & set(brought)
