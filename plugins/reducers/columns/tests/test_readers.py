"""Readers of answers: state from event to event, the end of an answer, and events of other framings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from aiperf.errors import BadResponse
from aiperf.parts.segments import Read
from aiperf.sdk.endpoint import Reader
from aiperf.sdk.framing import JsonArray, Lines
from aiperf.sdk.model import Delta
from aiperf_reducer_columns.reduce.answer import MARKED, REASONING, TEXT, Answer, read_answer
from aiperf_testing.journals import Plain, event


class Late(Reader):
    """Numbers the texts, keeps the last one back until the end, and reads events named ``think`` as reasoning."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.fed = 0

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        self.fed += len(events)
        return [self._one(*pair) for pair in zip(events, names, strict=True)]

    def _one(self, data: bytes, name: str | None) -> Delta | None:
        delta = Plain().decode(data)
        if delta is None or not delta.text:
            return delta
        if name == "think":
            return Delta(reasoning=delta.text)
        self.texts.append(f"{len(self.texts)}{delta.text}")
        return Delta(self.texts[-2]) if len(self.texts) > 1 else None

    def close(self) -> Delta | None:
        return Delta(self.texts[-1], finish="closed", usage={"last": 1}) if self.texts else None


def named(name: str, data: bytes) -> bytes:
    return b"event: %b\n%b" % (name.encode(), data)


STREAM = (
    named("start", event(usage={"in": 5, "out": 0})),
    named("think", event(text="hm")),
    named("text", event(text="a")),
    named("text", event(text="b")),
    named("end", event(usage={"out": 3})),
)


def reads_of(stream: Sequence[bytes]) -> list[Read]:
    return [(10 * at, 10 * at + 1, 0, body) for at, body in enumerate(stream, 1)]


def fields(answer: Answer) -> dict[str, Any]:
    return {name: getattr(answer, name) for name in Answer.__slots__}


def test_a_reader_sees_names_and_keeps_its_state() -> None:
    answer = read_answer(reads_of(STREAM), Late, streamed=True)
    assert (answer.text, answer.reasoning, answer.finish) == ("0a1b", "hm", "closed")
    assert answer.usage == {"in": 5, "out": 3, "last": 1}
    assert (answer.stamps, list(answer.kinds)) == ([20, 40, 50], [REASONING, TEXT, TEXT]), "the end came with the last read"
    assert (answer.first_output_ns, answer.events, answer.error) == (40, 4, None)


def test_an_answer_in_any_pieces_reads_the_same() -> None:
    expected = fields(read_answer(reads_of(STREAM), Late, streamed=True))
    for stream in (
        [*STREAM[:-1], STREAM[-1][:-1]],  # without its last line end
        [STREAM[0], b": still here\n\n" + STREAM[1], *STREAM[2:]],
        [piece.replace(b"\n", b"\r\n") for piece in STREAM],
    ):
        assert fields(read_answer(reads_of(stream), Late, streamed=True)) == expected
    whole = b"".join(STREAM)
    for cut in range(1, len(whole)):
        answer = read_answer(reads_of([whole[:cut], whole[cut:]]), Late, streamed=True)
        assert (answer.text, answer.reasoning, answer.usage) == ("0a1b", "hm", expected["usage"]), cut


def test_a_body_is_the_only_event() -> None:
    answer = read_answer([(10, 11, 0, b'{"text":"a b"}')], Late, streamed=False)
    assert (answer.text, answer.stamps, answer.usage, answer.finish) == ("0a b", [10], {"last": 1}, "closed")


def test_a_promise_of_envelopes_shows_a_reader_both_ends_of_a_series() -> None:
    class Passing(Late):
        def _one(self, data: bytes, name: str | None) -> Delta | None:
            return Plain().decode(data)

    made: list[Passing] = []

    def new_reader() -> Passing:
        made.append(Passing())
        return made[-1]

    words = [named("text", event(text=f" {at}")) for at in range(100)]
    words[50:50] = [named("other", event(text=" other"))]
    answer = read_answer(reads_of(words), new_reader, streamed=True, repeats=True)
    assert answer.text == "".join(f" {at}" for at in range(50)) + " other" + "".join(f" {at}" for at in range(50, 100))
    assert len(made) == 1 and made[0].fed == 5, "two ends of each series of one name, and the event between them"


class Bad(Late):
    def __init__(self, **methods: Any) -> None:
        super().__init__()
        for name, method in methods.items():
            setattr(self, name, method)


def fails(*_: object) -> Any:
    raise KeyError("seq")


def refuses() -> Delta | None:
    raise BadResponse("cut off")


@pytest.mark.parametrize(
    ("methods", "message", "kind"),
    [
        ({"feed": fails}, "the endpoint can't read the answer: KeyError: 'seq'", "EndpointError"),
        ({"close": fails}, "the endpoint can't read the answer: KeyError: 'seq'", "EndpointError"),
        ({"close": None}, "the endpoint can't read the answer: TypeError: 'NoneType' object is not callable", "EndpointError"),
        ({"close": refuses}, "cut off", None),
        ({"close": lambda: "Hi"}, "the endpoint can't read the answer: close returned str, not Delta", "EndpointError"),
        (
            {"feed": lambda events, names: ["Hi"] * len(events)},
            "the endpoint can't read the answer: feed returned str, not Delta", "EndpointError",
        ),
        (
            {"feed": lambda events, names: [Delta("x")]},
            "the endpoint can't read the answer: feed returned 1 Deltas for 5 events", "EndpointError",
        ),
        (
            {"feed": lambda events, names: []},
            "the endpoint can't read the answer: feed returned 0 Deltas for 5 events", "EndpointError",
        ),
    ],
)  # fmt: skip
def test_a_bad_reader_fails_its_answer_alone(methods: dict[str, Any], message: str, kind: str | None) -> None:
    error = read_answer(reads_of(STREAM), lambda: Bad(**methods), streamed=True).error
    assert error is not None and (error.message, error.kind) == (message, kind)
    if "1 Deltas" not in message:  # the right number of one event
        merged = [(at, seen, 1, b": comment\n\n" + body) for at, seen, _, body in reads_of(STREAM)]
        error = read_answer(merged, lambda: Bad(**methods), streamed=True).error
        assert error is not None and error.message.replace("1 events", "5 events") == message


def test_an_endpoint_without_a_reader_fails_its_answer_alone() -> None:
    error = read_answer(reads_of(STREAM), fails, streamed=True).error
    assert error is not None and error.kind == "EndpointError"


# Other framings


def lines(*texts: str) -> list[bytes]:
    return [b'{"text":"%b"}\n' % text.encode() for text in texts]


def test_events_of_another_framing_have_the_stamp_of_the_read_that_completed_them() -> None:
    whole = b"".join(lines("a", "b", "c"))
    reads = reads_of([whole[:20], whole[20:21], whole[21:]])
    answer = read_answer(reads, Plain().reader, streamed=True, framing=Lines)
    assert (answer.text, answer.stamps, answer.whole) == ("abc", [10, 30, 30], False)


def test_merged_reads_of_another_framing_have_intervals() -> None:
    merged = [(10, 11, 0, lines("a")[0]), (20, 21, 2, b"".join(lines("b", "c", "d")))]
    empty = [0, *(read[1] for read in merged)]
    answer = read_answer(merged, Plain().reader, streamed=True, framing=Lines, empty=empty)
    assert (list(answer.kinds), answer.since) == ([TEXT, TEXT | MARKED, TEXT | MARKED, TEXT], [11, 11])
    array = [(10, 11, 0, b'[{"text":"a"}'), (20, 21, 1, b',{"text":"b"},{"text":"c"}')]
    answer = read_answer(array, Plain().reader, streamed=True, framing=JsonArray)
    assert answer.marked == 2, "nobody knows what the last segment completed"


def test_a_stream_of_one_event_is_whole() -> None:
    answer = read_answer(reads_of(lines("a b")), Plain().reader, streamed=True, framing=Lines)
    assert (answer.text, answer.whole, answer.events, answer.stamps) == ("a b", True, 0, [10])


class Bytes(Lines):
    def feed(self, data: bytes) -> Any:
        return data.split(b"\n")


class Broken(Lines):
    def feed(self, data: bytes) -> Any:
        raise KeyError("line")


@pytest.mark.parametrize(("framing", "cause"), [(Bytes, "AttributeError"), (Broken, "KeyError: 'line'"), (dict, "")])
def test_a_bad_framing_fails_its_answer_alone(framing: Any, cause: str) -> None:
    error = read_answer(reads_of(lines("a", "b")), Plain().reader, streamed=True, framing=framing).error
    assert error is not None and error.kind == "EndpointError"
    assert error.message.startswith(f"the endpoint can't read the answer: {cause}")
