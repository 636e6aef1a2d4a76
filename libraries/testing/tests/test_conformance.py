"""The conformance suite itself: it must let good plugins pass, and catch bad ones."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import numpy as np
import pytest
from _pytest.outcomes import Failed, Skipped
from aiperf import (
    BadResponse,
    Conversation,
    Dataset,
    Delta,
    Endpoint,
    HttpRequest,
    Media,
    Metric,
    RecordBatch,
    Target,
    Turn,
    Unit,
)
from aiperf.registry.manifest import read_row
from aiperf.sdk.asking import Ask, Reply
from aiperf.sdk.columns import GRADE_COLUMNS, LIST_COLUMNS, NUMBERS, TEXTS, Column
from aiperf.sdk.dataset import DatasetContext, Promise
from aiperf.sdk.endpoint import Answered, Capabilities, Done, Drained, Follow, Prompt, Reader, in_band_error, unreadable
from aiperf.sdk.exporter import BatchExporter
from aiperf.sdk.framing import Event, JsonArray, LengthPrefixed, Lines
from aiperf.sdk.grader import Case, Grade, Grader
from aiperf.sdk.telemetry import Digest, Histogram, Point, SeriesKind, TelemetrySource
from aiperf.sdk.ui import NoUi, Ui
from aiperf.testing import (
    BatchExporterContract,
    DatasetContract,
    EndpointContract,
    GradedAnswer,
    GraderContract,
    MetricContract,
    TelemetryContract,
    TokenizerContract,
    UiContract,
    absent,
    sample_batch,
)
from aiperf_testing.manifests import check_taken, row_of

_NEEDS_A_PACKAGE = {
    "test_the_capabilities_are_the_manifests",
    "test_its_manifest_says_what_it_is",
    "test_importing_it_stays_light_for_workers",
}


def verdicts(contract: Any, **given: Any) -> set[str]:
    """Names of the contract's tests that fail, for a plugin that no package registers."""
    failed = set()
    for name, test in inspect.getmembers(contract, callable):
        if not name.startswith("test_") or name in _NEEDS_A_PACKAGE:
            continue
        for arguments in _arguments(test, given):
            try:
                test(**arguments)
            except Skipped:
                pass
            except (Exception, Failed):  # noqa: BLE001  # that it failed is the finding
                failed.add(name)
    return failed


def _arguments(test: Callable[..., Any], given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    fixtures = {name: given[name] for name in inspect.signature(test).parameters if name in given}
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    if not marks:
        yield fixtures
    for mark in marks:
        for value in mark.args[1]:
            yield fixtures | {mark.args[0]: value}


# Graders


class Same(Grader):
    def grade(self, expected: str, response: str) -> Grade:
        return Grade(bool(response) and response == expected, unparsed=not response, extracted=response or None)


class SameContract(GraderContract):
    grader: ClassVar[type[Grader]] = Same
    cases = (
        GradedAnswer("B", "B", correct=True, extracted="B"), GradedAnswer("B", "C", correct=False),
        GradedAnswer("B", "", False, unparsed=True),
    )  # fmt: skip


def with_grader(*cases: GradedAnswer, **methods: Any) -> GraderContract:
    own = {"grader": type("Bad", (Same,), methods), **({"cases": cases} if cases else {})}
    contract = type("Changed", (SameContract,), own)()
    assert isinstance(contract, GraderContract)
    return contract


def test_a_grader_of_cases_keeps_the_contract_with_those_of_its_author_too() -> None:
    finished = Case(expected="B", turn=Turn(("A or B?",)), text="B", conversation_id="c", finish_reason="length")
    cases = (
        GradedAnswer("B", "B", correct=True), GradedAnswer("B", "", correct=False),
        GradedAnswer("B", "B", correct=False, case=finished),
    )  # fmt: skip

    class Whole(Grader):
        def grade(self, case: Case) -> Grade:
            return Grade(case.response == case.expected and case.finish_reason != "length", extracted=case.text)

    contract = type("WholeContract", (GraderContract,), {"grader": Whole, "cases": cases})()
    assert isinstance(contract, GraderContract)
    assert verdicts(contract) == set()


def test_a_good_grader_keeps_the_contract() -> None:
    assert verdicts(SameContract()) == set()


def test_what_a_bad_grader_does_is_caught() -> None:
    generous = lambda self, expected, response: Grade(True)  # noqa: E731
    assert "test_silence_is_not_right" in verdicts(with_grader(grade=generous))
    only_right = with_grader(GradedAnswer("B", "B", correct=True))
    assert verdicts(only_right) == {"test_the_cases_tell_right_from_wrong"}
    counted = iter(range(10_000))
    moody = lambda self, expected, response: Grade(next(counted) % 2 == 0)  # noqa: E731
    assert "test_it_is_pure" in verdicts(with_grader(grade=moody))
    picky = lambda self, expected, response: Grade(expected == response[0])  # noqa: E731
    assert "test_no_answer_is_too_odd_to_grade" in verdicts(with_grader(grade=picky))
    vague = lambda self, expected, response: Grade(int(expected == response))  # type: ignore[arg-type]  # noqa: E731
    assert "test_grades_are_whole" in verdicts(with_grader(grade=vague))


# Displays


class QuietContract(UiContract):
    ui: ClassVar[type[Ui]] = NoUi


def with_ui(**methods: Any) -> UiContract:
    contract = type("Changed", (QuietContract,), {"ui": type("Bad", (NoUi,), methods)})()
    assert isinstance(contract, UiContract)
    return contract


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> dict[str, Any]:
    return {"monkeypatch": monkeypatch, "capfd": capfd}


def test_a_quiet_display_keeps_the_contract(screen: dict[str, Any]) -> None:
    assert verdicts(QuietContract(), columns="20", **screen) == set()


def test_what_a_bad_display_does_is_caught(screen: dict[str, Any]) -> None:
    known = lambda self, snapshot: print(snapshot.share * 100)  # noqa: E731
    assert "test_it_shows_every_moment_of_a_run" in verdicts(with_ui(show=known), **screen)
    deaf = lambda self, line: None  # noqa: E731
    assert verdicts(with_ui(log=deaf), **screen) == {"test_no_line_of_the_log_is_lost"}


# Telemetry


class Beats(TelemetrySource):
    def start(self) -> None:
        self.beats = 0

    def sample(self) -> list[Point]:
        self.beats += 1
        counts = Histogram((1.0, math.inf), (self.beats, 2 * self.beats), 3.0 * self.beats)
        return [
            Point("beats", self.beats, SeriesKind.COUNTER, labels={"heart": "left"}),
            Point("beats", self.beats, SeriesKind.COUNTER, labels={"heart": "right"}),
            Point("length", counts, SeriesKind.HISTOGRAM, "s"),
            Point("pressure", math.nan),
            Point("pulse", 60.0, at_ns=5),
            Point("pulse", 61.0, at_ns=6),
            Point("pause", Digest({0.5: 0.4, 0.99: math.nan}, 2.0, 0.8), SeriesKind.SUMMARY, "s"),
            Point("valve", 1, SeriesKind.INFO, labels={"make": "acme"}),
        ]


class BeatsContract(TelemetryContract):
    source: ClassVar[type[TelemetrySource]] = Beats


def with_source(**methods: Any) -> tuple[TelemetryContract, list[list[Point]]]:
    contract = type("Changed", (BeatsContract,), {"source": type("Bad", (Beats,), methods)})()
    assert isinstance(contract, TelemetryContract)
    return contract, contract._taken()


def test_a_good_source_keeps_the_contract(tmp_path: Path) -> None:
    contract, samples = with_source()
    assert verdicts(contract, samples=samples, tmp_path=tmp_path) == set()


@pytest.mark.parametrize(
    ("points", "caught"),
    [
        ([], "test_there_is_something_in_every_sample"),
        ([1.0], "test_there_is_something_in_every_sample"),
        ([Point("a", 1), Point("a", 2)], "test_a_series_stands_once_in_a_sample"),
        ([Point("a", 1, unit="W", labels={"gpu": "0"}), Point("a", 1, unit="mW")], "test_a_series_keeps_its_kind_and_unit"),
        ([Point("a", 1.0, SeriesKind.HISTOGRAM)], "test_values_are_what_their_kind_says"),
        ([Point("a", Histogram((1.0, 2.0), (1, 2), 3), SeriesKind.HISTOGRAM)], "test_values_are_what_their_kind_says"),
        ([Point("a", Histogram((1.0, math.inf), (2, 1), 3), SeriesKind.HISTOGRAM)], "test_values_are_what_their_kind_says"),
        ([Point("a", 1.0, SeriesKind.SUMMARY)], "test_values_are_what_their_kind_says"),
        ([Point("a", Digest({0.5: 1.0}))], "test_values_are_what_their_kind_says"),
        ([Point("a", Digest({50: 1.0}), SeriesKind.SUMMARY)], "test_values_are_what_their_kind_says"),
        ([Point("a", 2, SeriesKind.INFO)], "test_values_are_what_their_kind_says"),
        ([Point("a", 1, at_ns=1.5)], "test_values_are_what_their_kind_says"),  # type: ignore[arg-type]
        ([Point("a", 1, at_ns=5), Point("a", 2, at_ns=5)], "test_a_series_stands_once_in_a_sample"),
        ([Point("a", 1, labels={"gpu": 0})], "test_labels_are_texts"),  # type: ignore[dict-item]
    ],
)
def test_what_a_bad_source_gives_is_caught(points: Any, caught: str) -> None:
    contract, samples = with_source(sample=lambda self: points)
    assert caught in verdicts(contract, samples=samples)


# Endpoints


class Plain(Endpoint):
    """``{"t": text}`` an event."""

    capabilities = Capabilities(path="/plain", streaming=True, produces_tokens=True)

    def encode(self, turn: Turn) -> HttpRequest:
        return HttpRequest("/plain", msgspec.json.encode({"q": turn.text, **turn.extra}))

    def decode(self, event: bytes) -> Delta | None:
        if event == b"[END]":
            return None
        try:
            said = msgspec.json.decode(event, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unreadable("plain", event, error) from error
        wrong = in_band_error(event)
        if wrong is not None:
            raise wrong
        return Delta(text=said["t"])


class PlainContract(EndpointContract):
    endpoint = Plain()
    transcript = (b'{"t":"a"}', b'{"t":"b"}', b"[END]")
    answer = "ab"
    whole = b'{"t":"ab"}'
    silent = (b'{"t":""}',)


def with_endpoint(**methods: Any) -> EndpointContract:
    own = {"endpoint": type("Bad", (Plain,), methods)(), "turn": Turn(texts=("Hello",), model="m", extra={"seed": 1})}
    contract = type("Changed", (PlainContract,), own)()
    assert isinstance(contract, EndpointContract)
    return contract


def test_a_good_endpoint_passes() -> None:
    assert verdicts(PlainContract()) == set()


ABLE = Capabilities(path="/plain", streaming=True, produces_tokens=True, verbatim=True)


def _verbatim(self: Endpoint, turn: Turn) -> HttpRequest:
    body = {"messages": [message.item or message.text for message in turn.messages], "tools": turn.tools}
    return HttpRequest("/plain", msgspec.json.encode(body))


def _without_tools(self: Endpoint, turn: Turn) -> HttpRequest:
    return HttpRequest("/plain", msgspec.json.encode([message.item or message.text for message in turn.messages]))


def test_an_endpoint_that_sends_tools_and_verbatim_messages_passes() -> None:
    methods = {"capabilities": ABLE, "encode": _verbatim}
    assert verdicts(with_endpoint(**methods)) == set()


@pytest.mark.parametrize(("taken", "model", "missing"), [
    (["entries"], "aiperf.planning.kernel_options:KernelOptions", ""),
    (["nothing", "entries"], "aiperf.planning.kernel_options:KernelOptions", "takes nothing, and"),
    (["field"], None, "takes field, and its options_model has no such field"),
])  # fmt: skip
def test_what_an_endpoint_takes_is_a_field_of_its_options(taken: list[str], model: str | None, missing: str) -> None:
    plain = {"category": "endpoints", "name": "x", "summary": "X.", "capabilities": {"takes": taken}, "options_model": model}
    row = read_row(plain)
    if not missing:
        check_taken(row)
        return
    with pytest.raises(AssertionError, match=missing):
        check_taken(row)


def _changing(self: Endpoint, turn: Turn) -> HttpRequest:
    turn.extra["n"] = turn.extra.get("n", 0) + 1
    return HttpRequest("/plain", msgspec.json.encode(turn.extra))


def _taking_apart(self: Endpoint, turn: Turn) -> HttpRequest:
    row: Any = turn.row_extra
    return HttpRequest("/plain", msgspec.json.encode({"user": row.pop("user", None), **turn.run_extra}))


def _marking(self: Endpoint, turn: Turn) -> HttpRequest:
    for message in turn.messages:
        if message.item is not None:
            message.item["cache_control"] = "ephemeral"
    return _verbatim(self, turn)


def _raising(self: Endpoint, event: bytes) -> Delta | None:
    return Delta(text=msgspec.json.decode(event)["t"]) if event != b"[END]" else None


def _forgetting(self: Plain, event: bytes) -> Delta | None:
    try:
        return Plain.decode(self, event)
    except BadResponse as error:
        raise BadResponse(str(error)) from error


def _remembering(self: Any, event: bytes) -> Delta | None:
    self.seen = getattr(self, "seen", "") + event.decode()
    return Delta(text=self.seen) if event != b"[END]" else None


@pytest.mark.parametrize(
    ("methods", "caught"),
    [
        ({"encode": _changing}, "test_the_same_turn_gives_the_same_bytes"),
        ({"encode": _taking_apart}, "test_the_same_turn_gives_the_same_bytes"),
        ({"capabilities": ABLE, "encode": _marking}, "test_the_same_turn_gives_the_same_bytes"),
        ({"encode": lambda self, turn: HttpRequest("/plain", b"{")}, "test_a_request_is_whole"),
        ({"capabilities": ABLE}, "test_tools_and_verbatim_messages_are_sent_as_they_are"),
        ({"capabilities": ABLE, "encode": _without_tools}, "test_tools_and_verbatim_messages_are_sent_as_they_are"),
        ({"prompt_of": lambda self, request: "Hello"}, "test_what_counts_as_input_can_be_counted"),
        ({"prompt_of": lambda self, request: Prompt((b"Hello",))}, "test_what_counts_as_input_can_be_counted"),
        ({"prompt_of": lambda self, request: Prompt((), ("1",))}, "test_what_counts_as_input_can_be_counted"),
        ({"plain_prompts": True, "prompt_of": lambda self, request: Prompt(("Please: Hello",))},
         "test_a_plain_prompt_is_the_texts_of_its_messages"),
        ({"encode": lambda self, turn: HttpRequest("/other", b"{}")}, "test_the_path_is_the_declared_one"),
        ({"decode": _raising}, "test_garbage_is_a_bad_response_that_keeps_its_bytes"),
        ({"decode": _raising}, "test_an_error_in_band_is_a_bad_response_in_the_servers_words"),
        ({"decode": _forgetting}, "test_garbage_is_a_bad_response_that_keeps_its_bytes"),
        ({"decode": _remembering}, "test_an_event_means_the_same_every_time"),
        ({"decode": lambda self, event: Delta(text="?")}, "test_what_shows_nothing_is_not_content"),
        ({"decode": lambda self, event: Delta(text="?")}, "test_the_transcript_is_the_answer"),
    ],
)
def test_a_bad_endpoint_is_caught(methods: dict[str, Any], caught: str) -> None:
    assert caught in verdicts(with_endpoint(**methods))


class Whole(Reader):
    """Reads ``{"t": text}``; the text of the first event comes with the end."""

    first = ""

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        return [self._one(event) for event in events]

    def _one(self, event: bytes) -> Delta | None:
        delta = Plain().decode(event)
        if delta is None or self.first:
            return delta
        self.first = delta.text
        return None

    def close(self) -> Delta | None:
        return Delta(self.first) if self.first else None


def with_reader(reader: Callable[[Any], Reader] = lambda self: Whole(), **methods: Any) -> EndpointContract:
    capabilities = msgspec.structs.replace(Plain.capabilities, multi_turn=True)
    made = with_endpoint(reader=reader, capabilities=capabilities, **methods)
    return cast(EndpointContract, type("Read", (type(made),), {"answer": "ba", "whole": None})())


def _reading(**methods: Any) -> Callable[[Any], Reader]:
    made = type("BadReader", (Whole,), methods)
    return lambda self: cast(Reader, made())


def _of_one(self: Any) -> Reader:
    self.only = getattr(self, "only", None) or Whole()
    return cast(Reader, self.only)


def _by_batch(self: Whole, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
    return [Plain().decode(event) if at else None for at, event in enumerate(events)]


def test_a_good_reader_passes() -> None:
    assert verdicts(with_reader()) == set()


class Semicolons:
    """A framing of the author's own."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, data: bytes) -> list[Event]:
        *whole, self.rest = (self.rest + data).split(b";")
        return [Event(event) for event in whole]

    def close(self) -> list[Event]:
        return []


def _framed(**methods: Any) -> EndpointContract:
    own = {"framing": type("BadFraming", (Semicolons,), methods)}
    stream = {"stream": b'{"t":"a"};{"t":"b"};[END];'}
    return cast(EndpointContract, type("Framed", (type(with_endpoint(**own)),), stream)())


@pytest.mark.parametrize("framing", [Lines, JsonArray, LengthPrefixed])
def test_a_good_framing_passes(framing: type[Any]) -> None:
    transcript = {"transcript": (b'{"t":"a"}', b'{"t":"b"}')}
    assert verdicts(cast(EndpointContract, type("Plain", (type(with_endpoint(framing=framing)),), transcript)())) == set()
    assert verdicts(_framed()) == set()


@pytest.mark.parametrize(
    ("contract", "caught"),
    [
        (with_endpoint(framing="lines"), "test_the_framing_divides_streams"),
        (with_endpoint(framing=Lines()), "test_the_framing_divides_streams"),
        (_framed(close=None), "test_the_framing_divides_streams"),
        (_framed(feed=lambda self, data: [Event(e) for e in data.split(b";") if e]), "test_a_stream_cut_anywhere"),
        (_framed(feed=lambda self, data: data.split(b";")), "test_a_stream_cut_anywhere"),
        (_framed(feed=lambda self, data: 1 / 0), "test_a_stream_cut_anywhere"),
    ],
)
def test_a_bad_framing_is_caught(contract: EndpointContract, caught: str) -> None:
    assert any(name.startswith(caught) for name in verdicts(contract))


@pytest.mark.parametrize(
    ("reader", "caught"),
    [
        (_of_one, "test_two_answers_at_a_time_keep_apart"),
        (_reading(feed=_by_batch), "test_the_size_of_a_batch_says_nothing"),
        (_reading(feed=lambda self, events, names: [Delta("ba")]), "test_the_transcript_is_the_answer"),
        (_reading(feed=lambda self, events, names: 1 / 0), "test_the_transcript_is_the_answer"),
        (_reading(close=None), "test_the_transcript_is_the_answer"),
        (_reading(close=lambda self: None), "test_the_transcript_is_the_answer"),
        (_reading(close=lambda self: self.first), "test_the_transcript_is_the_answer"),
        (_reading(replay=lambda self: ["Hi"]), "test_the_next_turn_can_repeat_the_answer"),
        (_reading(state=lambda self: "Hi"), "test_the_next_turn_can_repeat_the_answer"),
    ],
)
def test_a_bad_reader_is_caught(reader: Callable[[Any], Reader], caught: str) -> None:
    assert caught in verdicts(with_reader(reader))


# Questions before the load


def _limit(self: Endpoint, ask: Ask) -> dict[str, Any] | None:
    return {"limit": len(ask(HttpRequest("/limits", b"", method="GET")).body)}


def _limited(self: Any, turn: Turn) -> HttpRequest:
    return HttpRequest("/plain", msgspec.json.encode([self.prepared, turn.text, turn.extra]))


def _asking(**methods: Any) -> EndpointContract:
    contract = type(with_endpoint(encode=_limited, **methods))
    return cast(EndpointContract, type("Asking", (contract,), {"replies": (Reply(200, b"abc"),), "ready": (Reply(200),)})())


@pytest.mark.parametrize(("methods", "caught"), [
    ({"prepare": _limit}, set()),
    ({"prepare": lambda self, ask: {"limit": object()}}, {"test_what_it_prepares_is_the_same_in_every_process"}),
    ({"prepare": lambda self, ask: {"limit": (1, 2)}}, {"test_what_it_prepares_is_the_same_in_every_process"}),
    ({"prepare": lambda self, ask: ask(HttpRequest("limits", b"")) and None},
     {"test_what_it_prepares_is_the_same_in_every_process"}),
    ({"unready": lambda self, ask: None if ask(HttpRequest("/health", b"")).status == 200 else "no"}, set()),
    ({"unready": lambda self, ask: None}, {"test_a_server_that_is_not_ready_is_a_reason"}),
    ({"unready": lambda self, ask: "no"}, {"test_a_server_that_is_not_ready_is_a_reason"}),
])  # fmt: skip
def test_what_an_endpoint_asks_is_kept(methods: dict[str, Any], caught: set[str]) -> None:
    assert verdicts(_asking(**methods)) == caught


# Schemes

CALLS = {"calls": "frames", "http": ""}


def _by_scheme(usual: str) -> Callable[[Endpoint, Turn], HttpRequest]:
    def encode(self: Endpoint, turn: Turn) -> HttpRequest:
        return HttpRequest("/plain", msgspec.json.encode([turn.scheme or usual, turn.text, turn.extra]))

    return encode


@pytest.mark.parametrize(("fields", "usual", "caught"), [
    ({"schemes": CALLS, "url": "calls://h:1"}, "calls", set()),
    ({"schemes": CALLS}, "http", {"test_every_scheme_has_its_request"}),
    ({"schemes": {"Calls": ""}}, "Calls", {"test_every_scheme_has_its_request"}),
    ({"url": "calls://h:1"}, "calls", {"test_every_scheme_has_its_request"}),
    ({"url": "http://h:1"}, "http", set()),
])  # fmt: skip
def test_a_turn_without_a_scheme_is_one_of_the_first(fields: dict[str, Any], usual: str, caught: set[str]) -> None:
    capabilities = msgspec.structs.replace(Plain.capabilities, **fields)
    assert verdicts(with_endpoint(capabilities=capabilities, encode=_by_scheme(usual))) == caught


# Several exchanges

RESULT = b'{"t":"ab"}'


def _job(self: Endpoint, answer: Answered) -> Follow | Done:
    return Done() if answer.body else Follow(HttpRequest("/jobs/1", b"", {}, "", "GET"), 0.1)


def _following(follow: Callable[[Endpoint, Answered], Any]) -> EndpointContract:
    contract = type(with_endpoint(follow=follow, capabilities=msgspec.structs.replace(Plain.capabilities, follows=True)))
    followed = (Answered(0, 202, b""), Answered(1, 202, b""), Answered(2, 200, RESULT))
    return cast(EndpointContract, type("Jobs", (contract,), {"followed": followed, "transcript": (RESULT,)})())


def _endless(self: Endpoint, answer: Answered) -> Follow:
    return Follow(HttpRequest("/jobs/1", b"", {}, "", "GET"), 0.1)


@pytest.mark.parametrize(
    ("follow", "caught"),
    [
        (_job, set()),
        (_endless, {"test_what_follows_an_answer_is_a_request"}),
        (lambda self, answer: 1 / 0, {"test_what_follows_an_answer_is_a_request"}),
        (lambda self, answer: "/jobs/1", {"test_what_follows_an_answer_is_a_request"}),
        (lambda self, answer: Done(), {"test_what_follows_an_answer_is_a_request"}),
    ],
)
def test_what_follows_an_answer_ends_with_the_last(follow: Callable[[Endpoint, Answered], Any], caught: set[str]) -> None:
    assert verdicts(_following(follow)) == caught


def _fetching(answer: Answered, *, keep: bool) -> Follow | Done:
    file = HttpRequest("/jobs/1/file", b"", {}, "", "GET")
    return Done() if answer.state else Follow(file, keep=keep, drain=True, state="fetched")


@pytest.mark.parametrize("keep", [True, False])
def test_a_kept_answer_is_the_one_that_is_read(keep: bool) -> None:
    made = _following(lambda self, answer: _fetching(answer, keep=keep))
    made = type("Fetching", (type(made),), {"followed": (Answered(0, 200, RESULT), Answered(1, 200, b"file"))})()
    assert verdicts(made) == (set() if keep else {"test_what_follows_an_answer_is_a_request"})


@pytest.mark.parametrize(
    ("drained", "good"),
    [
        (lambda self, start, received: Drained(self.decode(start)), True),
        (lambda self, start, received: Drained(), False),
        (lambda self, start, received: self.decode(start), False),
        (lambda self, start, received: Drained(Delta("a"), begins=received + 1), False),
        (lambda self, start, received: Drained(Delta("a")), False),
    ],
)
def test_a_bad_reading_of_a_drained_answer_is_caught(drained: Callable[[Endpoint, bytes, int], Any], good: bool) -> None:
    contract = type(with_endpoint(drained=drained))
    made = cast(EndpointContract, type("Draining", (contract,), {"drained": RESULT})())
    assert verdicts(made) == (set() if good else {"test_a_drained_answer_is_read_from_its_start"})


# Metrics


class Wait(Metric):
    tag, title, unit = "wait", "Wait", Unit.NANOSECONDS

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_token_ns"] - batch["started_ns"]


def with_metric(column: Callable[[Any, RecordBatch], Column]) -> MetricContract:
    contract = type("Changed", (MetricContract,), {"metric": type("Bad", (Wait,), {"column": column})()})()
    assert isinstance(contract, MetricContract)
    return contract


def test_a_good_metric_passes() -> None:
    assert verdicts(with_metric(Wait.column)) == set()
    assert verdicts(with_metric(lambda self, batch: batch.lists("gap_ns"))) == set()


def _spoiling(self: Any, batch: RecordBatch) -> Column:
    batch["started_ns"][:] += 1
    return batch["started_ns"]


@pytest.mark.parametrize(
    ("column", "caught"),
    [
        (
            lambda self, batch: batch["started_ns"] - batch["started_ns"].min(initial=1e18),
            "test_halves_give_what_the_whole_gives",
        ),
        (lambda self, batch: np.arange(float(len(batch))), "test_order_does_not_matter"),
        (lambda self, batch: batch["started_ns"][batch.valid], "test_every_request_has_its_place"),
        (lambda self, batch: batch["started_ns"][:1] + batch["n"], "test_an_empty_batch_gives_an_empty_column"),
        (lambda self, batch: np.full(len(batch), np.nan), "test_some_request_has_a_value"),
        (lambda self, batch: 1 / (batch["n"] - 3), "test_no_value_is_infinite"),
        (lambda self, batch: np.array([int(each) for each in batch["status"]]), "test_where_nothing_is_known_nothing_fails"),
        (_spoiling, "test_the_batch_is_left_as_it_was"),
        (lambda self, batch: batch["other_metric"], "test_every_request_has_its_place"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_bad_metric_is_caught(column: Callable[[Any, RecordBatch], Column], caught: str) -> None:
    failed = verdicts(with_metric(column))
    assert caught in failed or (caught == "test_an_empty_batch_gives_an_empty_column" and failed)


def test_the_sample_has_what_a_run_gives() -> None:
    batch = sample_batch()
    assert set(batch.columns) == {*NUMBERS, *GRADE_COLUMNS, *LIST_COLUMNS}
    assert set(batch.texts) == set(TEXTS)
    assert {len(column) for column in batch.columns.values()} == {len(batch)}
    assert batch.valid.any() and not batch.valid.all()
    nothing = absent(batch)
    assert np.isnan(nothing["started_ns"]).all() and len(nothing.lists("gap_ns").values) == 0


# Exporters


class Lines(BatchExporter):
    kind = "lines.txt"
    files = {"lines.txt": "{prefix_}lines.txt"}

    def rows(self, batch: RecordBatch) -> bytes:
        return b"".join(b"%d\n" % n for n in batch["n"])


class Counted(Lines):
    written = 0

    def rows(self, batch: RecordBatch) -> bytes:
        self.written += 1
        return b"%d\n" % self.written + super().rows(batch)


class Writing(Lines):
    def rows(self, batch: RecordBatch) -> bytes:
        self.target.directory.joinpath("own").write_bytes(b"")
        return super().rows(batch)


@pytest.mark.parametrize(
    ("exporter", "caught"),
    [
        (Lines, set()),
        (
            Counted,
            {
                "test_the_same_batch_gives_the_same_bytes",
                "test_no_requests_are_no_rows",
                "test_parts_of_a_batch_join_to_the_whole",
            },
        ),
        (Writing, {"test_it_leaves_the_directory_to_the_kernel"}),
    ],
)
def test_a_bad_exporter_is_caught(exporter: type[BatchExporter], caught: set[str], tmp_path: Path) -> None:
    contract = type("Changed", (BatchExporterContract,), {"exporter": exporter})()
    assert verdicts(contract, target=Target(tmp_path)) == caught


# Data sets


class Numbers(Dataset):
    def __iter__(self) -> Iterator[Conversation]:
        for n in range(self.context.entries):
            yield Conversation(f"c{n}", (Turn(texts=(f"{self.context.seed}:{n}",)),))


class Listed(Numbers):
    def __iter__(self) -> Iterator[Conversation]:
        if self.context.entries > 1000:
            raise MemoryError("it would all have to be there at once")
        return iter(list(super().__iter__()))


class Alike(Numbers):
    def __iter__(self) -> Iterator[Conversation]:
        for each in super().__iter__():
            yield msgspec.structs.replace(each, id="same")


class Counting(Numbers):
    """Gives other conversations the second time."""

    def __iter__(self) -> Iterator[Conversation]:
        self.round = getattr(self, "round", 0) + 1
        for each in super().__iter__():
            yield msgspec.structs.replace(each, id=f"{self.round}-{each.id}")


def promising(promise: Promise, *, turns: int = 1, backwards: bool = True) -> type[Dataset]:
    """A data set with a promise; it gives any order where *backwards*."""

    class Promising(Numbers):
        def promise(self) -> Promise:
            return msgspec.structs.replace(promise, count=promise.count or self.context.entries)

        def __iter__(self) -> Iterator[Conversation]:
            for each in super().__iter__():
                yield msgspec.structs.replace(each, turns=each.turns * turns)

        def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
            everything = list(self)
            return (everything[number] for number in (numbers if backwards else sorted(numbers)))

    return Promising


_PROMISE = "test_its_promise_is_kept"


def writing(**contents: Any) -> type[Dataset]:
    """A data set whose turns have these contents."""

    class Writing(Numbers):
        def __iter__(self) -> Iterator[Conversation]:
            for each in super().__iter__():
                turns = (*each.turns, msgspec.structs.replace(each.turns[0], **contents))
                yield msgspec.structs.replace(each, turns=turns, alone=contents.get("silent", False))

    return Writing


_CONTRADICTS = "test_conversations_send_requests_and_contradict_nothing"


@pytest.mark.parametrize(
    ("dataset", "caught"),
    [
        (writing(silent=True), {_CONTRADICTS}),
        (writing(named={"query": "nowhere"}), {"test_named_texts_are_among_the_texts"}),
        (writing(media=(Media("audio", "wav,AA", seconds=-1.0),)), {"test_media_have_lengths_that_exist"}),
        (writing(tools=(object(),)), {"test_verbatim_contents_are_json", "test_conversations_can_be_stored"}),
        (writing(payload={"set": {1}, "pair": {(1, 2): 3}}),
         {"test_verbatim_contents_are_json", "test_conversations_can_be_stored"}),
        (writing(tools=({"name": "f"},), payload=b"\xff", blocks=(1, 2), reset=True), set()),
        (Numbers, set()),
        (Listed, {"test_it_streams"}),
        (Alike, {"test_conversations_can_be_told_apart_and_have_turns"}),
        (Counting, {"test_going_through_it_twice_gives_the_same_conversations"}),
        (promising(Promise(0, any_order=True)), set()),
        (promising(Promise(0, lambda number: 2), turns=2), set()),
        (promising(Promise(0, any_order=True), backwards=False), {_PROMISE}),
        (promising(Promise(5)), {_PROMISE}),
        (promising(Promise(0), turns=2), {_PROMISE}),
        (promising(Promise(0, timestamp_ms=float)), {_PROMISE}),
        (promising(Promise(0, 2, turn_timestamp_ms=lambda number, turn: None), turns=2), set()),
        (promising(Promise(0, 2, turn_timestamp_ms=lambda number, turn: turn or None), turns=2), {_PROMISE}),
    ],
)
def test_a_bad_data_set_is_caught(dataset: type[Dataset], caught: set[str]) -> None:
    class Contract(DatasetContract):
        def make(self, entries: int, seed: int) -> Dataset:
            return dataset(None, DatasetContext(entries, seed, True, None, Capabilities()))

    assert verdicts(Contract()) == caught


# Tokenizers


class Bytes:
    """A token a byte."""

    name = "bytes"
    size = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Any) -> str:
        return bytes(ids).decode("utf-8", "replace")

    def count(self, text: str) -> int:
        return len(text.encode())


class Strict(Bytes):
    def decode(self, ids: Any) -> str:
        return bytes(ids).decode()


class Characters(Bytes):
    def count(self, text: str) -> int:
        return len(text)


@pytest.mark.parametrize(
    ("tokenizer", "caught"),
    [
        (Bytes(), set()),
        (Strict(), {"test_half_a_character_is_replaced_and_never_fails", "test_every_ordinary_id_is_some_text"}),
        (Characters(), {"test_the_count_is_the_number_of_ids"}),
    ],
)
def test_a_bad_tokenizer_is_caught(tokenizer: Any, caught: set[str]) -> None:
    assert verdicts(type("Changed", (TokenizerContract,), {"tokenizer": tokenizer})()) == caught


class Sent(Bytes):
    """Bytes, moved by a number in a file."""

    def __init__(self, place: Path, name: str = "sent") -> None:
        self.place, self.name = place, name
        self._moved = int((place / "moved").read_text())

    def encode(self, text: str) -> list[int]:
        return [(each + self._moved) % 256 for each in text.encode()]

    def decode(self, ids: Any) -> str:
        return bytes((each - self._moved) % 256 for each in ids).decode("utf-8", "replace")

    def files(self) -> dict[str, Path]:
        return {"moved": self.place / "moved"}


class SentFrom:
    def open_from(self, directory: Path, name: str) -> Sent:
        return Sent(directory, name)


class Nameless(SentFrom):
    def open_from(self, directory: Path, name: str) -> Sent:
        return Sent(directory)


class Unmoved(SentFrom):
    def open_from(self, directory: Path, name: str) -> Sent:
        (directory / "moved").write_text("0")
        return Sent(directory, name)


class Reopened(SentFrom):
    """It can't be opened from a directory."""

    open_from = None  # type: ignore[assignment]


@pytest.mark.parametrize(("source", "bad"), [(SentFrom, False), (Nameless, True), (Unmoved, True), (Reopened, True)])
def test_a_tokenizer_that_is_another_one_elsewhere_is_caught(source: Any, bad: bool, tmp_path: Path) -> None:
    (tmp_path / "moved").write_text("3")
    contract = type("Changed", (TokenizerContract,), {"tokenizer": Sent(tmp_path), "source": source})()
    assert verdicts(contract) == ({"test_its_files_open_the_same_tokenizer_elsewhere"} if bad else set())


# Manifests


def test_a_plugin_that_no_package_registers_has_no_row() -> None:
    with pytest.raises(AssertionError, match="no entry point"):
        row_of("endpoints", Plain)
