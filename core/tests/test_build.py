"""From a plan to files: the data set, its exports, and due times."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import signal
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf import logs
from aiperf.errors import AiperfError, BadDataset, BadTokenizer, ConfigError, PluginError
from aiperf.prepare.build import build
from aiperf.prepare.tokenizers import open_tokenizer
from aiperf.run.builder import Builder
from aiperf.rundir.store import Store
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.plan import PhasePlan, Plan, Replay
from aiperf_testing.plans import sample_plan, sample_ref
from msgspec.structs import replace
from schedule_fakes import random, shuffle

FAKES = '''
import time
import msgspec
import numpy as np
from aiperf import BadDataset, BadTokenizer, Capabilities, Conversation, Dataset, DatasetExporter, Endpoint, HttpRequest
from aiperf.sdk.dataset import Promise
from aiperf import Grader, Media, Options, Turn, hookimpl, option, uniforms
from aiperf.sdk.endpoint import ChatPrompt, Prompt


class Echo(Endpoint):
    """Says everything it was told."""

    capabilities = Capabilities(tokenizes_input=True, produces_tokens=True, multi_turn=True, media_in=("image",))

    def encode(self, turn):
        if turn.texts == ("explode",):
            raise ZeroDivisionError("no luck")
        said = [[message.role, *message.texts] for message in turn.messages]
        body = {"said": said, "model": turn.model, "stream": turn.stream, **turn.extra}
        return HttpRequest("/echo", msgspec.json.encode(body), {"X-Kind": "echo"})


class Spliced(Echo):
    splices_text, encoded = True, 0

    def encode(self, turn):
        Spliced.encoded += 1
        return super().encode(turn)


class Chats(Echo):
    """Says messages; a turn of "nothing" has none."""

    def chat_of(self, request):
        said = [] if request.body == b"{}" else msgspec.json.decode(request.body)["said"]
        messages = [{"role": role, "content": " ".join(texts)} for role, *texts in said]
        return ChatPrompt(messages, ["a", "tool"]) if said else None


class Ids(Echo):
    """Sends token ids."""

    capabilities = Capabilities(tokenizes_input=True, produces_tokens=True, takes_ids=True)
    splices_text = True

    def encode(self, turn):
        return HttpRequest("/ids", msgspec.json.encode([turn.ids, turn.end_id]))

    def prompt_of(self, request):
        return Prompt(ids=msgspec.json.decode(request.body)[0])


class ChatIds(Ids):
    templates_ids = True


class EachText(Echo):
    answers_each_text = True


class Roads(Echo):
    """Sends each turn and model another way."""

    def encode(self, turn):
        path, method = ("/{model}/ask", "POST") if len(turn.texts) == 1 else (f"/sets/{turn.model}", "PUT")
        return HttpRequest(path, turn.text.encode(), {"X-Model": turn.model}, "text/plain", method)


class Lost(Echo):
    def encode(self, turn):
        return HttpRequest("echo", b"")


class Slices(Echo):
    framing = "lines"


class Single(Echo):
    capabilities = Capabilities(tokenizes_input=True)


class NumberedOptions(Options):
    there: int | None = option("--there", help="Conversations; None is the requested number.")
    turns: int = option("--turns", default=1, help="Turns of each.")


class Numbered(Dataset):
    """As many conversations as *there* says, else as were asked for."""

    def __iter__(self):
        options = self.options or NumberedOptions()
        there, turns = options.there, options.turns
        for number in range(self.context.entries if there is None else there):
            draw = uniforms(self.context.seed, "numbered", number, 1)[0]
            lines = tuple(Turn((f"{number}.{turn} {draw}",), max_tokens=7) for turn in range(turns))
            yield Conversation(f"c{number}", lines)


class ListedOptions(Options):
    rows: list[dict] = option("--rows", default=[], help="Conversations.")
    then: str | None = option("--then", help="Text of the error after the last one.")


class Listed(Dataset):
    """What stands in the options."""

    preferred_sampling = "shuffle"

    def __iter__(self):
        for row in self.options.rows:
            yield msgspec.convert(row, Conversation)
        if self.options.then is not None:
            raise KeyError(self.options.then)


class PromisedOptions(Options):
    promise: int | None = option("--promise", default=50, help="Conversations that it promises.")
    there: int = option("--there", default=50, help="Conversations that there are.")
    turns: int = option("--turns", default=1, help="Turns of the last one.")
    each: int | None = option("--each", default=1, help="Turns of the others, and promised for all; 0 promises none.")
    any_order: bool = option("--any", default=False, help="Gives them in any order.")
    timed: bool = option("--timed", default=False, help="Promises their times.")
    back: bool = option("--back", default=False, help="Their times go back.")
    expects: int | None = option("--expects", help="Number of the row that has an expected answer.")
    fails: int | None = option("--fails", help="Number of a bad row.")
    several: int | None = option("--several", help="Number of a row that asks for two answers.")
    hangs: bool = option("--hangs", default=False, help="Never ends.")
    sparing: bool = option("--sparing", default=False, help="They are large.")


class Promised(Dataset):
    """Says how many conversations it has."""

    def source_facts(self):
        return {"promised": self.options.promise}

    def promise(self):
        options = self.options
        single = self.at_ms if options.timed and options.each == 1 else None
        several = self.turn_at_ms if options.timed and options.each != 1 else None
        given = options.promise, options.each or None, single, options.any_order, several
        return options.promise and Promise(*given, sparing=options.sparing)

    def at_ms(self, number):
        return 100.0 * (self.options.there - number if self.options.back else number)

    def turn_at_ms(self, number, turn):
        return self.at_ms(number) + turn

    def __iter__(self):
        return self.chosen(range(self.options.there))

    def chosen(self, numbers):
        options = self.options
        for number in numbers:
            if number == options.fails:
                raise BadDataset("rows.jsonl:1000001: no JSON", "write one JSON object per line")
            turns = options.turns if number == options.there - 1 and options.turns > 1 else options.each or 1 + number % 3
            extra = {"n": 2} if number == options.several else {}
            expected = "yes" if number == options.expects else None
            turn = Turn((f"t{number}",), timestamp_ms=self.at_ms(number), extra=extra, expected=expected)
            times = (self.turn_at_ms(number, index) for index in range(turns))
            yield Conversation(f"c{number}", tuple(msgspec.structs.replace(turn, timestamp_ms=at_ms) for at_ms in times))
        while options.hangs:
            time.sleep(0.01)


class Sourced(Numbered):
    def __iter__(self):
        self.read = 0
        for conversation in super().__iter__():
            self.read += 1
            yield conversation

    def source_facts(self):
        return {"commit": "abc", "rows_read": self.read}


class Odd(Dataset):
    preferred_sampling = "backwards"

    def __iter__(self):
        yield Conversation("c", (Turn(("x",)),))


class Huge(Dataset):
    def __iter__(self):
        for number in range(self.context.entries):
            yield Conversation(f"c{number}", (Turn(("x" * 2000,)),))


class Words:
    name = "words"
    size = 1

    def encode(self, text):
        return [0] * len(text.split(" "))

    def decode(self, ids):
        return "x"

    def count(self, text):
        return len(self.encode(text))


class Spelled(Words):
    """Each word's length is its id."""

    name, size, end_id = "spelled", 99, 7

    def encode(self, text):
        return [len(word) for word in text.split()]


class IdTemplate:
    """50 before each message, 60 before the answer."""

    def ids(self, messages, *, asks=True):
        return [id for each in messages for id in (50, *Spelled().encode(each["content"]))] + [60] * asks

    def count(self, messages, *, asks=True):
        return len(self.ids(messages, asks=asks))


class Template:
    """Three tokens around each message, and one that opens the answer."""

    def count(self, messages, *, asks=True):
        if messages[-1]["content"] == "nonsense":
            raise BadTokenizer("the chat template of 'words' refuses the messages: no nonsense", "drop the flag")
        return sum(3 + len(each["content"].split(" ")) for each in messages) + asks


class WordSource:
    def __init__(self, options=None):
        pass

    def recognises(self, name):
        return True

    def open(self, name):
        if name == "nowhere":
            raise BadTokenizer("there is no nowhere")
        if name == "broken":
            raise ZeroDivisionError("a bug of its own")
        words = Spelled() if name.startswith("spelled") else Words()
        if name == "chatty":
            words.chat_template = Template()
        if name == "spelled chat":
            words.chat_template = IdTemplate()
        return words


class Any(Grader):
    """A grader that is never asked for a grade."""


class Unfit(Grader):
    def unfit(self, expected):
        return "it is " + expected


class Lines(DatasetExporter):
    label, kind = "Lines", "lines.txt"

    def header(self):
        return b"begin\\n"

    def entry(self, conversation, bodies, *, first):
        return b"%s%s %s\\n" % (b"" if first else b",", conversation.id.encode(), b" ".join(bodies))

    def footer(self):
        return b"end\\n"


class Bad(Lines):
    kind = "bad.txt"

    def entry(self, conversation, bodies, *, first):
        raise ZeroDivisionError("a bug of its own")


class Given:
    """A schedule of a stranger's."""

    paced = True
    times = [10, 20, 30]

    def __init__(self, context):
        pass

    def due_block(self, first, count):
        return np.array(self.times[first:first + count], dtype=np.int64)


class Backwards(Given):
    times = [10, 5, 30]


class Fractions(Given):
    def due_block(self, first, count):
        return np.array([0.5] * count)


class Hooked:
    @hookimpl
    def aiperf_make_schedule(self, phase):
        return Given(None) if phase.schedule == "theirs" else None


class Buggy:
    @hookimpl
    def aiperf_make_schedule(self, plan, phase):
        raise ZeroDivisionError("a bug of its own")
'''
SCHEDULES = {"request_rate": "Rate", "burst": "Slots", "fixed_schedule": "Trace", "user_centric": "Lines"}
ARRIVALS = {name: sample_ref("arrivals", f"schedule_fakes:{name}_gaps") for name in ("constant", "exponential")}
NAMED = sample_ref("hooks", "aiperf.prepare.named_schedules:NamedSchedules")


@pytest.fixture(autouse=True)
def no_priority_of_the_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build in the tests' own process would lower the priority of all tests behind it."""
    monkeypatch.setattr(os, "nice", lambda _: None)


@pytest.fixture(autouse=True)
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "fake_parts.py").write_text(FAKES)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.delitem(sys.modules, "fake_parts", raising=False)


def ref(category: str, value: str) -> PluginRef:
    return sample_ref(category, value if ":" in value else f"fake_parts:{value}")


def phase(**changes: Any) -> PhasePlan:
    return PhasePlan(**{"name": "profiling", "kind": "profiling", "index": 0, "schedule": "burst", "entries": 3, **changes})


def rate(**changes: Any) -> PhasePlan:
    return phase(**{"schedule": "request_rate", "rate": 10.0, "pattern": "constant", **changes})


def make(folder: Path, *phases: PhasePlan, dataset: str = "Numbered", endpoint: str = "Echo", **changes: Any) -> Plan:
    (folder / "journal").mkdir(parents=True, exist_ok=True)
    phases = phases or (phase(request_count=3),)
    encoded = EncodedOptions(f"fake_parts:{dataset}Options", changes.pop("data", {}))
    options = {f"datasets:{dataset.lower()}": encoded} if encoded.values else {}
    plan = sample_plan(
        folder, phases=phases, path="/echo", endpoint=ref("endpoints", endpoint), dataset=ref("datasets", dataset),
        tokenizer=ref("tokenizers", "WordSource"), tokenizer_name="words", sampling="", options=options,
        entries=sum(phase.entries for phase in phases),
        schedules={name: ref("schedules", f"schedule_fakes:{value}") for name, value in SCHEDULES.items()},
        arrivals=ARRIVALS,
        ramps={"linear": ref("ramps", "schedule_fakes:linear")}, hooks=(NAMED,), samplers=SAMPLERS,
    )  # fmt: skip
    return plan.replacing(**changes)


def listed(folder: Path, *rows: dict[str, Any], **changes: Any) -> Plan:
    return make(folder, dataset="Listed", data={"rows": list(rows)}, **changes)


def body(plan: Plan, entry: int, turn: int = 0, model: int = 0) -> Any:
    return json.loads(Store(Path(plan.output.journal)).body(entry, turn, model))


def due(plan: Plan, index: int = 0) -> list[int]:
    name = plan.load.phases[index].due_file
    assert name is not None
    return [int(time) for time in np.fromfile(name, dtype="<i8")]


def sessions(plan: Plan, index: int = 0) -> list[list[int]]:
    """Rows of (entry, turns, number of the first arrival)."""
    name = plan.load.phases[index].sessions_file
    assert name is not None
    rows: list[list[int]] = np.fromfile(name, dtype="<i8").reshape(-1, 3).tolist()
    return rows


# The data set


def test_every_turn_is_encoded_for_every_model(tmp_path: Path) -> None:
    plan = build(make(tmp_path, models=("a", "b"), data={"turns": 2}, streaming=True))
    assert [body(plan, 1, turn, model)["model"] for turn in (0, 1) for model in (0, 1)] == ["a", "b", "a", "b"]
    assert body(plan, 1, 1)["stream"] is True
    assert body(plan, 1, 1)["said"][0][1].startswith("1.1 ")
    assert Store(tmp_path / "journal").max_tokens(0, 0) == 7


def test_every_request_has_its_own_path_method_and_headers(tmp_path: Path) -> None:
    row = {"id": "c", "turns": [{"texts": ["a"]}, {"texts": ["a", "b"], "headers": {"X-Row": "1"}}]}
    build(listed(tmp_path, row, endpoint="Roads", models=("m/1", "two")))
    store = Store(tmp_path / "journal")
    shapes = [store.shapes[store.shape(0, turn, model)] for turn in (0, 1) for model in (0, 1)]
    assert [(shape.method, shape.path, shape.headers) for shape in shapes] == [
        ("POST", "/m%2F1/ask", {"X-Model": "m/1"}), ("POST", "/two/ask", {"X-Model": "two"}),
        ("PUT", "/sets/m/1", {"X-Model": "m/1", "X-Row": "1"}), ("PUT", "/sets/two", {"X-Model": "two", "X-Row": "1"}),
    ]  # fmt: skip
    assert {shape.content_type for shape in shapes} == {"text/plain"}


def test_a_given_path_replaces_the_endpoints(tmp_path: Path) -> None:
    row = {"id": "c", "turns": [{"texts": ["a"]}, {"texts": ["a", "b"]}]}
    build(listed(tmp_path, row, endpoint="Roads", models=("one", "two"), path="/go/{model}", path_given=True))
    store = Store(tmp_path / "journal")
    assert {store.shapes[store.shape(0, turn, 1)].path for turn in (0, 1)} == {"/go/two"}


def test_a_path_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="encode gave the path 'echo', which must begin with /"):
        build(make(tmp_path, endpoint="Lost"))


def test_a_framing_that_is_none_is_refused_before_load(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="can't be used: TypeError: framing is 'lines', not a class with feed"):
        build(make(tmp_path, endpoint="Slices"))


def test_the_prelude_stands_before_the_first_turn_alone(tmp_path: Path) -> None:
    row = {"id": "c", "system": "be kind", "context": "in Rome", "turns": [{"texts": ["hi"]}, {"texts": ["bye"]}]}
    plan = build(listed(tmp_path, row))
    assert body(plan, 0)["said"] == [["system", "be kind"], ["user", "in Rome"], ["user", "hi"]]
    assert body(plan, 0, 1)["said"] == [["user", "bye"]]


@pytest.mark.parametrize(("ratio", "delays_ms"), [(1.0, [0, 300, 0]), (0.5, [0, 150, 0]), (0.0, [0, 0, 0])])
def test_every_think_time_is_multiplied_by_the_ratio(ratio: float, delays_ms: list[int], tmp_path: Path) -> None:
    row = {"id": "c", "turns": [{"texts": ["a"]}, {"texts": ["b"], "delay_ms": 300}, {"texts": ["c"]}]}
    store = Store(Path(build(listed(tmp_path, row, delay_ratio=ratio)).output.journal))
    assert [store.delay_ns(0, turn) // 10**6 for turn in range(3)] == delays_ms


def test_fields_of_a_turn_override_those_of_the_run(tmp_path: Path) -> None:
    rows = [{"id": "c", "turns": [{"texts": ["x"], "model": "own", "extra": {"a": 2}, "headers": {"x-kind": "row"}}]}]
    plan = build(listed(tmp_path, *rows, extra={"a": 1, "b": 1}))
    assert {key: body(plan, 0)[key] for key in ("model", "a", "b")} == {"model": "own", "a": 2, "b": 1}
    store = Store(tmp_path / "journal")
    assert store.shapes[store.shape(0, 0)].headers == {"x-kind": "row"}


@pytest.mark.parametrize(("row", "tokens"), [
    ({"turns": [{"texts": ["one two", "three"]}]}, 3),
    ({"system": "be kind", "turns": [{"texts": ["one two"], "input_tokens": 2}]}, 4),
    ({"turns": [{"texts": ["one two"], "input_tokens": 99}]}, 99),
    ({"turns": [{"texts": ["one", "two"], "input_tokens": 99}]}, 2),
])  # fmt: skip
def test_input_tokens_are_those_of_all_parts_joined_with_one_space(tmp_path: Path, row: dict[str, Any], tokens: int) -> None:
    build(listed(tmp_path, {"id": "c", **row}))
    assert Store(tmp_path / "journal").input_tokens(0, 0) == tokens


def test_server_counts_and_live_history_leave_input_tokens_unknown(tmp_path: Path) -> None:
    row = {"id": "c", "turns": [{"texts": ["one"]}, {"texts": ["two"]}]}
    build(listed(tmp_path, row))
    assert [Store(tmp_path / "journal").input_tokens(0, turn) for turn in (0, 1)] == [1, -1]
    build(listed(tmp_path, row, use_server_token_count=True))
    assert Store(tmp_path / "journal").input_tokens(0, 0) == -1


def test_the_order_defaults_to_the_data_sets_own(tmp_path: Path) -> None:
    row = {"id": "c", "turns": [{"texts": ["x"]}]}
    config = {"datasets": [{"type": "listed", "entries": 3}], "other": 1}
    plan = build(listed(tmp_path, row, config=config))
    assert plan.data.sampling == "shuffle"
    assert plan.run.config == {"datasets": [{"type": "listed", "entries": 1, "sampling": "shuffle"}], "other": 1}
    assert config["datasets"] == [{"type": "listed", "entries": 3}]
    assert build(listed(tmp_path, row, sampling="random")).data.sampling == "random"
    assert build(make(tmp_path)).data.sampling == "sequential"


def test_what_a_data_set_tells_of_its_source_is_in_the_plan(tmp_path: Path) -> None:
    assert build(make(tmp_path, dataset="Sourced")).data.facts == {"commit": "abc", "rows_read": 3}
    assert build(make(tmp_path)).data.facts == {}


@pytest.mark.parametrize(
    ("turn", "extra", "reported"),
    [
        ({"max_tokens": 9}, {}, True),
        ({}, {}, False),
        ({"max_tokens": 9}, {"ignore_eos": True}, False),
        ({"max_tokens": 9, "extra": {"min_tokens": 9}}, {}, False),
        ({"max_tokens": 9, "payload": {"min_tokens": 9}}, {}, False),
    ],
)
def test_an_unenforced_output_length_is_reported_once(
    tmp_path: Path, turn: dict[str, Any], extra: dict[str, Any], reported: bool, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"id": f"c{n}", "turns": [{"texts": ["x"], **turn}]} for n in range(3)]
    build(listed(tmp_path, *rows, extra=extra))
    assert caplog.text.count("answers may be shorter than the length asked for") == reported


@pytest.mark.parametrize(("there", "profiling", "warmup"), [
    (13, (0, 10), (10, 3)), (40, (0, 37), (37, 3)), (8, (0, 5), (5, 3)), (6, (0, 6), (3, 3)), (2, (0, 2), (0, 2)),
])  # fmt: skip
def test_phases_share_the_real_entries(
    tmp_path: Path, there: int, profiling: tuple[int, int], warmup: tuple[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    warm = phase(name="warmup", kind="warmup", first_entry=10, entries=3, request_count=3)
    plan = build(make(tmp_path, warm, phase(index=1, entries=10, request_count=10), data={"there": there}))
    assert [(part.first_entry, part.entries) for part in plan.load.phases] == [warmup, profiling]
    assert ("use the same ones" in caplog.text) == (there in (6, 2))
    assert plan.data.entries == there


def test_a_trace_is_replayed_whole_and_a_warmup_shares_its_entries(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    warm = phase(name="warmup", kind="warmup", first_entry=10, entries=2, request_count=2)
    rows = [{"id": f"c{n}", "turns": [{"texts": ["x"], "timestamp_ms": 1000.0 - n}]} for n in range(12)]
    replay = phase(index=1, schedule="fixed_schedule", replay=Replay(), entries=10)
    plan = build(listed(tmp_path, *rows, phases=(warm, replay), entries=12, sampling="sequential"))
    assert [(part.first_entry, part.entries) for part in plan.load.phases] == [(10, 2), (0, 12)]
    assert "use the same ones" in caplog.text
    assert due(plan, 1) == [n * 10**6 for n in range(12)]
    assert sessions(plan, 1) == [[11 - n, 1, n] for n in range(12)]


def test_a_recorded_warmup_shares_all_entries(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"id": f"c{n}", "turns": [{"texts": ["x"], "timestamp_ms": 100.0 * n}]} for n in range(12)]
    warm = phase(name="warmup", kind="warmup", schedule="fixed_schedule", replay=Replay(), entries=10)
    plan = build(listed(tmp_path, *rows, phases=(warm, phase(index=1, entries=10, request_count=20)), entries=20))
    assert [(part.first_entry, part.entries) for part in plan.load.phases] == [(0, 12), (0, 12)]
    assert sessions(plan, 0) == [[n, 1, n] for n in range(12)]
    assert due(plan) == [n * 10**8 for n in range(12)] and "use the same ones" not in caplog.text


@pytest.mark.parametrize(("given", "count"), [({}, 4), ({"session_count": 2}, 2), ({"duration_ns": 10**9}, 4)])
def test_entries_that_are_used_once_end_the_phase(
    tmp_path: Path, given: dict[str, int], count: int, caplog: pytest.LogCaptureFixture
) -> None:
    warm = phase(name="warmup", kind="warmup", first_entry=3, entries=3, request_count=9)
    plan = build(make(tmp_path, warm, phase(index=1, **given), data={"there": 4, "turns": 2}, once=True))
    assert [(part.first_entry, part.entries, part.session_count) for part in plan.load.phases] == [(1, 3, None), (0, 4, count)]
    assert "use the same ones" in caplog.text


def test_a_rate_ends_with_the_last_entry_too(tmp_path: Path) -> None:
    plan = build(make(tmp_path, rate(entries=100), data={"there": 5}, once=True))
    assert (plan.load.phases[0].turns, len(due(plan))) == (5, 5)
    assert build(make(tmp_path, rate(request_count=2), data={"there": 5}, once=True)).load.phases[0].session_count is None


@pytest.mark.parametrize(("given", "flag"), [("request_count", "--request-count"), ("session_count", "--num-sessions")])
def test_a_count_above_entries_that_are_used_once_is_refused(tmp_path: Path, given: str, flag: str) -> None:
    with pytest.raises(ConfigError, match=f"{flag} 6: numbered has 5 entries, and each is used once"):
        build(make(tmp_path, phase(**{given: 6}), data={"there": 5, "turns": 2}, once=True))


def test_memory_does_not_grow_with_the_entries(tmp_path: Path) -> None:
    peaks = []
    for entries in (500, 8000):
        tracemalloc.start()
        build(make(tmp_path, phase(request_count=9, entries=entries), dataset="Huge"))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 500_000, "while 7,500 more bodies of 2 kB were written"


# Faults


@pytest.mark.parametrize(("row", "endpoint", "said"), [
    ({"turns": []}, "Echo", "conversation 'c' has no turns"),
    ({"turns": [{}, {}]}, "Single", "conversation 'c' has 2 turns, and the endpoint type 'single' sends single turns only"),
    ({"turns": [{"media": [{"kind": "video", "value": "u"}]}]}, "Echo", "turn 0 of conversation 'c' has video"),
    ({"turns": [{"media": [{"kind": "video", "value": "u"}]}]}, "Single", "takes text alone"),
    ({"turns": [{"headers": {"X": "a\nb"}}]}, "Echo", "turn 0 of conversation 'c': the value of X has a line break"),
])  # fmt: skip
def test_a_conversation_the_endpoint_cannot_take_is_refused(
    tmp_path: Path, row: dict[str, Any], endpoint: str, said: str
) -> None:
    with pytest.raises(BadDataset) as caught:
        build(listed(tmp_path, {"id": "c", **row}, endpoint=endpoint))
    assert said in caught.value.message
    assert "media" not in str(row) or "an endpoint type that takes video" in caught.value.hints[0]


def test_an_entry_of_a_file_is_refused_with_its_place(tmp_path: Path) -> None:
    rows = [{"id": "a", "turns": [{}]}, {"id": "9f3c", "turns": []}]
    with pytest.raises(BadDataset) as caught:
        build(listed(tmp_path, *rows, source="prompts.jsonl"))
    assert caught.value.message.startswith("prompts.jsonl, entry 2: conversation '9f3c' has no turns")


def test_an_empty_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="empty"):
        build(listed(tmp_path))


@pytest.mark.parametrize(("changes", "said"), [
    ({"data": {"rows": [{"id": "a", "turns": [{}]}], "then": "line 2"}},
     "datasets:listed of acme 1.2 failed after 1 conversations: KeyError: 'line 2'"),
    ({"data": {"rows": [{"id": "a", "turns": [{"texts": ["explode"]}]}]}},
     "endpoints:echo of acme 1.2 can't encode turn 0 of conversation 'a': ZeroDivisionError: no luck"),
    ({"dataset": "Odd"}, "datasets:odd of acme 1.2 prefers the order 'backwards'"),
    ({"dataset": "Missing"}, "datasets:missing of acme 1.2 can't be imported"),
    ({"endpoint": "nowhere_at_all:X"},
     "the plugin endpoints:x of acme 1.2 can't be imported: No module named 'nowhere_at_all'"),
])  # fmt: skip
def test_a_plugin_that_breaks_is_named_with_package_and_version(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PluginError) as caught:
        build(make(tmp_path, **{"dataset": "Listed", **changes}))
    assert said in caught.value.message
    with pytest.raises(AiperfError):
        Store(tmp_path / "journal")


@pytest.mark.parametrize(("changes", "message"), [
    ({"drivers": {}}, "schedules:slots of acme 1.2 wants a driver that sends whenever a slot is free; installed are nothing"),
    ({"samplers": {}}, "datasets:numbered of acme 1.2 prefers the order 'sequential'; there are nothing"),
])  # fmt: skip
def test_a_missing_package_of_this_project_is_told(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError) as caught:
        build(make(tmp_path, **changes))
    assert caught.value.message == f"the plugin {message}"
    assert caught.value.hints[-1].startswith("pip install aiperf-"), "the suite names the package, where it is installed"


def chatty(folder: Path, *rows: dict[str, Any], **changes: Any) -> Plan:
    """Prompts are counted with a chat template."""
    changes = {"tokenizer_name": "chatty", **changes}
    return listed(folder, *rows, endpoint="Chats", chat_template=True, **changes)


def test_a_chat_template_counts_the_whole_prompt(tmp_path: Path) -> None:
    turns = [{"texts": ["a b", "c"], "input_tokens": 77}, {"texts": ["d"]}]
    rows = [{"id": "c", "turns": turns, "system": "be brief"}, {"id": "d", "turns": turns, "alone": True}]
    plan = build(chatty(tmp_path, *rows))
    store = Store(Path(plan.output.journal))
    assert store.input_tokens(0, 0) == (3 + 2) + (3 + 3) + 1 + 2
    assert store.input_tokens(0, 1) == -1, "only the run knows the answer before it"
    assert [store.input_tokens(1, turn) for turn in (0, 1)] == [(3 + 3) + 1 + 2, (3 + 1) + 1 + 2]


@pytest.mark.parametrize(("row", "changes", "sentence"), [
    ({}, {"tokenizer_name": "words"}, "--apply-chat-template: the tokenizer 'words' has no chat template"),
    ({"texts": ["nonsense"]}, {}, "turn 0 of conversation 'c': the chat template of 'words' refuses the messages: no nonsense"),
    ({"payload": {}}, {}, "turn 0 of conversation 'c': the body has no messages for a chat template"),
])  # fmt: skip
def test_what_a_chat_template_cannot_count_is_refused_before_load(
    row: dict[str, Any], changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises((BadTokenizer, BadDataset)) as caught:
        build(chatty(tmp_path, {"id": "c", "turns": [row]}, **changes))
    assert caught.value.message == sentence
    assert caught.value.hints


@pytest.mark.parametrize(("endpoint", "changes", "ids"), [
    ("Ids", {"tokenizer_name": "spelled"}, [1, 2]),
    ("Ids", {"tokenizer_name": "spelled chat", "chat_template": True}, [50, 1, 2, 60]),
    ("ChatIds", {"tokenizer_name": "spelled chat"}, [50, 1, 2, 60]),
])  # fmt: skip
def test_a_type_that_takes_ids_gets_those_of_the_tokenizer(
    endpoint: str, changes: dict[str, Any], ids: list[int], tmp_path: Path
) -> None:
    rows = [{"id": "c", "turns": [{"texts": ["a bc"]}]}, {"id": "d", "turns": [{"texts": ["def"], "ids": [8, 9, 10]}]}]
    plan = build(listed(tmp_path, *rows, endpoint=endpoint, **changes))
    store = Store(Path(plan.output.journal))
    assert [body(plan, entry) for entry in (0, 1)] == [[ids, 7], [[8, 9, 10], 7]]
    assert [store.input_tokens(entry, 0) for entry in (0, 1)] == [len(ids), 3]
    assert store.conversation(0).turns[0].ids == tuple(ids), "a worker that encodes the turn has them, too"


@pytest.mark.parametrize(("changes", "sentence"), [
    ({"tokenizer": None, "tokenizer_name": None}, "the endpoint type 'chatids' sends token ids"),
    ({"tokenizer_name": "chatty"}, "the chat template of the tokenizer 'words' gives no ids"),
])  # fmt: skip
def test_ids_that_nobody_makes_are_refused(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, BadTokenizer)) as caught:
        build(listed(tmp_path, {"id": "c", "turns": [{"texts": ["a"]}]}, endpoint="ChatIds", **changes))
    assert caught.value.message == sentence


def test_no_prompt_is_counted_with_a_template_where_the_server_counts(tmp_path: Path) -> None:
    plan = build(chatty(tmp_path, {"id": "c", "turns": [{"texts": ["nonsense"]}]}, use_server_token_count=True))
    assert Store(Path(plan.output.journal)).input_tokens(0, 0) == -1


def test_a_tokenizer_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadTokenizer, match="there is no nowhere"):
        open_tokenizer(make(tmp_path, tokenizer_name="nowhere"))
    with pytest.raises(BadTokenizer, match="'broken' can't be opened: ZeroDivisionError") as caught:
        open_tokenizer(make(tmp_path, tokenizer_name="broken"))
    assert "--tokenizer builtin" in caught.value.hints[0]
    assert open_tokenizer(make(tmp_path, tokenizer=None)) is None


def test_a_journal_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    plan = make(tmp_path).replacing(journal=str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="the data set can't be written to"):
        build(plan)


# Exporters


def test_a_data_set_exporter_sees_each_entry_with_the_first_body(tmp_path: Path) -> None:
    plan = make(tmp_path, models=("a", "b"), exporters=(ref("exporters", "Lines"),))
    build(plan)
    lines = (tmp_path / "lines.txt").read_text().splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("begin", "end", 5)
    assert [line.split(" ")[0] for line in lines[1:-1]] == ["c0", ",c1", ",c2"]
    assert [('"model":"a"' in line) for line in lines[1:-1]] == [True, False, True]


def test_an_exporter_that_fails_is_reported_and_leaves_no_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    build(make(tmp_path, exporters=(ref("exporters", "Bad"), ref("exporters", "Lines"))))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "lines.txt", "modules"]
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    why = "failed, and bad.txt is not written: ZeroDivisionError: a bug of its own"
    assert errors == [f"the plugin exporters:bad of acme 1.2 {why}"]


def test_a_data_set_that_breaks_leaves_no_half_written_export(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("of an earlier run")
    rows: list[dict[str, Any]] = [{"id": "a", "turns": [{}]}, {"id": "b", "turns": []}]
    with pytest.raises(BadDataset):
        build(listed(tmp_path, *rows, exporters=(ref("exporters", "Lines"),)))
    assert (tmp_path / "lines.txt").read_text() == "of an earlier run"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "lines.txt", "modules"]


# Due times


def test_a_burst_has_no_due_times(tmp_path: Path) -> None:
    burst = build(make(tmp_path)).load.phases[0]
    assert (burst.planned, burst.due_file) == (None, None)


@pytest.mark.parametrize(("given", "times"), [
    ({"request_count": 4}, [100, 200, 300, 400]),
    ({"duration_ns": 350_000_000}, [100, 200, 300]),
    ({"duration_ns": 300_000_000}, [100, 200]),
    ({"request_count": 2, "duration_ns": 350_000_000}, [100, 200]),
    ({"session_count": 3}, [100, 200, 300]),
])  # fmt: skip
def test_arrivals_stay_below_the_count_and_before_the_end(tmp_path: Path, given: dict[str, int], times: list[int]) -> None:
    plan = build(make(tmp_path, rate(**given)))
    assert due(plan) == [time * 10**6 for time in times]
    assert plan.load.phases[0].planned == len(times)


def test_long_phases_are_written_in_blocks(tmp_path: Path) -> None:
    plan = build(make(tmp_path, rate(rate=1000.0, duration_ns=10 * 10**9)))
    assert due(plan) == [n * 10**6 for n in range(1, 10_000)]


def test_sessions_of_several_turns_get_ticks_to_spare(tmp_path: Path) -> None:
    """11 turns, and an hour of waiting for answers at 10 ticks/s."""
    plan = build(make(tmp_path, rate(session_count=11), data={"turns": 1}))
    assert plan.load.phases[0].planned == 11
    plan = build(make(tmp_path, rate(session_count=11), data={"turns": 3}))
    assert (plan.load.phases[0].planned, len(due(plan))) == (None, 3 * 11 + 36_000 - 1)
    plan = build(make(tmp_path, rate(session_count=11, request_count=20), data={"turns": 3}))
    assert plan.load.phases[0].planned == 20


def test_each_phase_has_its_own_due_times(tmp_path: Path) -> None:
    warm = rate(name="warmup", kind="warmup", rate=20.0, request_count=2, first_entry=3, entries=2)
    plan = build(make(tmp_path, warm, rate(index=1, request_count=2)))
    assert (due(plan, 0), due(plan, 1)) == ([50_000_000, 100_000_000], [100_000_000, 200_000_000])


def test_a_phase_without_due_requests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no request is due within the profiling of 0\.05 s at 10 requests/s"):
        build(make(tmp_path, rate(duration_ns=50_000_000)))


def test_ramped_rates_and_limits_are_written_before_load(tmp_path: Path) -> None:
    plan = build(make(tmp_path, rate(request_count=3, rate_ramp_ns=10**9, concurrency=3, concurrency_ramp_ns=10**9)))
    # 1 + 9 t requests/s: 1, 2 and 3 of them by the roots of t + 4.5 t² = n.
    assert due(plan) == [round(((1 + 18 * n) ** 0.5 - 1) / 9 * 1e9) for n in (1, 2, 3)]
    assert np.fromfile(str(plan.load.phases[0].limits_file), dtype="<i8").tolist() == [500_000_000, 10**9]


def test_a_rate_series_replaces_the_rate(tmp_path: Path) -> None:
    series = ((0.0, 10.0), (0.5, 0.0), (0.6, 0.0), (0.7, 10.0))
    assert len(due(build(make(tmp_path, rate(rate=None, rate_series=series, duration_ns=650_000_000))))) == 2
    with pytest.raises(ConfigError, match=r"no request is due within the profiling of 0\.05 s"):
        build(make(tmp_path, rate(rate=None, rate_series=series, duration_ns=50_000_000)))


def test_users_are_planned_by_session(tmp_path: Path) -> None:
    plan = build(make(tmp_path, phase(schedule="user_centric", rate=5.0, users=5, session_count=7), data={"turns": 4}))
    assert [turns for _, turns, _ in sessions(plan)] == [4, 1, 2, 3, 4, 4, 4]
    assert (plan.load.phases[0].planned, plan.load.phases[0].spacing_ns) == (22, 10**9)


def test_only_the_requested_conversations_of_a_file_are_used(tmp_path: Path) -> None:
    plan = build(make(tmp_path, phase(entries=5, request_count=5), first=2))
    assert (plan.data.entries, plan.load.phases[0].entries) == (2, 2)


@pytest.mark.parametrize(("requests", "turns", "message"), [
    (6, 3, ""), (7, 3, "3 sessions use 2 data set entries"), (12, 3, "4 sessions use 2 data set entries"),
    (3, 1, "3 sessions use 2 data set entries"),
])  # fmt: skip
def test_repeated_entries_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, requests: int, turns: int, message: str
) -> None:
    caplog.set_level("INFO")
    build(make(tmp_path, phase(request_count=requests, entries=2), data={"turns": turns}))
    assert message in caplog.text and (bool(message) or "sessions use" not in caplog.text)


def test_a_file_without_times_is_named(tmp_path: Path) -> None:
    plan = make(tmp_path, phase(schedule="fixed_schedule", replay=Replay()), source="/data/trace.jsonl")
    with pytest.raises(ConfigError, match=r"^/data/trace\.jsonl has no 'timestamp'"):
        build(plan)


def test_a_strangers_schedule_may_end_by_itself(tmp_path: Path) -> None:
    plan = make(tmp_path, phase(schedule="given", duration_ns=10**9), schedules={"given": ref("schedules", "Given")})
    assert due(build(plan)) == [10, 20, 30]


def test_a_hook_may_make_the_schedule_although_another_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hooks = (ref("hooks", "Hooked"), NAMED, ref("hooks", "Buggy"), ref("hooks", "Missing"))
    plan = build(make(tmp_path, phase(schedule="theirs", request_count=2), rate(index=1, request_count=1), hooks=hooks))
    assert (due(plan, 0), due(plan, 1)) == ([10, 20], [100_000_000])
    assert "hooks:buggy of acme 1.2 failed in aiperf_make_schedule: ZeroDivisionError" in caplog.text
    assert "hooks:missing of acme 1.2 can't be imported: AttributeError" in caplog.text


@pytest.mark.parametrize(("name", "said"), [("Backwards", "go back in time"), ("Fractions", "float64")])
def test_a_schedule_that_breaks_its_contract_is_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(PluginError, match=said) as caught:
        build(make(tmp_path, phase(schedule="x", request_count=3), schedules={"x": ref("schedules", name)}))
    assert "of acme 1.2" in caught.value.message


# Shards


def test_one_seed_gives_the_same_bytes_for_any_shards(tmp_path: Path) -> None:
    def files(workers: int, seed: int = 7) -> dict[str, bytes]:
        folder = tmp_path / f"{workers}-{seed}"
        warm = rate(name="warmup", kind="warmup", pattern="exponential", request_count=50, first_entry=20, entries=5)
        phases = warm, rate(index=1, pattern="exponential", request_count=5000, entries=20)
        build(make(folder, *phases, workers=workers, seed=seed, exporters=(ref("exporters", "Lines"),)))
        return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    one = files(1)
    assert {"lines.txt", "due-0.bin", "due-1.bin", "dataset.bodies"} <= set(one)
    assert files(2) == one
    assert files(5) == one
    other = files(1, seed=8)
    assert other.keys() == one.keys()
    assert all(other[name] != one[name] for name in ("lines.txt", "due-0.bin", "due-1.bin", "dataset.bodies"))


# A load that begins before the data set is whole


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The load begins with the first wave, however soon the rest is made."""
    monkeypatch.setattr("aiperf.prepare.entries._HEAD_S", 0.0)


def promised(folder: Path, *phases: PhasePlan, data: dict[str, Any] | None = None, **changes: Any) -> Plan:
    phases = phases or (phase(concurrency=4, request_count=50, entries=50),)
    return make(folder, *phases, dataset="Promised", data={"promise": 50, **(data or {})}, **changes)


class Publisher:
    """Notes the plan that is published, and the entries that can be read then.  stop: what the builder is told."""

    def __init__(self, *, stop: bool = False) -> None:
        self.stop = stop
        self.plans: list[Plan] = []
        self.readable: list[int] = []
        self.ready = -1

    def __call__(self, plan: Plan) -> Callable[[], bool]:
        self.plans.append(plan)
        self.readable = list(Store(Path(plan.output.journal)).readable())
        self.ready = len(self.readable)
        return lambda: self.stop


@pytest.mark.usefixtures("at_once")
def test_what_is_known_of_a_source_is_in_the_published_plan(tmp_path: Path) -> None:
    publisher = Publisher()
    build(promised(tmp_path), publisher)
    assert [plan.data.facts for plan in publisher.plans] == [{"promised": 50}]


LINES: dict[str, Any] = {"exporters": (ref("exporters", "Lines"),)}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("phases", "wave"),
    [((), 4), ((rate(rate=5.0, request_count=50, entries=50),), 9), ((phase(prefill_concurrency=6, entries=50),), 6)],
)
def test_a_load_begins_with_its_first_wave(tmp_path: Path, phases: tuple[PhasePlan, ...], wave: int) -> None:
    publisher = Publisher()
    plan = build(promised(tmp_path / "early", *phases, **LINES), publisher)
    assert publisher.plans == [plan]
    assert publisher.ready == wave
    whole = build(promised(tmp_path / "whole", *phases, **LINES))
    early, late = (Path(one.output.journal) for one in (plan, whole))
    for name in ("entries", "turns", "offsets", "bodies", "conversations", "json"):
        assert (early / f"dataset.{name}").read_bytes() == (late / f"dataset.{name}").read_bytes()
    assert [one.load.phases[0].planned for one in (plan, whole)] == [whole.load.phases[0].planned] * 2
    for name in ("due-0.bin", "../artifacts/lines.txt"):
        assert not (late / name).exists() or (early / name).read_bytes() == (late / name).read_bytes()


@pytest.mark.usefixtures("at_once")
def test_entries_that_would_come_late_are_made_before_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = itertools.count()
    monkeypatch.setattr("aiperf.prepare.pace.monotonic", lambda: next(clock))  # an entry takes a second
    publisher = Publisher()
    with caplog.at_level("INFO"):
        build(promised(tmp_path, rate(rate=20.0, request_count=50, entries=50)), publisher)
    assert publisher.ready == -1 or publisher.ready > 40
    assert "so entries are made before the load, as many as it takes, all 50 in about" in caplog.text


WARM = (
    phase(name="warmup", kind="warmup", concurrency=2, request_count=3, first_entry=47, entries=3),
    phase(index=1, concurrency=4, request_count=47, entries=47),
)
SAMPLERS = {name: ref("samplers", f"schedule_fakes:{name}") for name in ("sequential", "shuffle", "random")}
REPLAY = phase(schedule="fixed_schedule", replay=Replay(), entries=50)
USERS = phase(schedule="user_centric", rate=10.0, users=4, request_count=60, entries=50)


def used(sampling: Callable[[int, int, int], int], count: int) -> list[int]:
    return list(dict.fromkeys(sampling(7, session, 50) for session in range(count)))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("phases", "changes", "first"),
    [
        (WARM, {}, [47, 48, 0, 1, 2, 3]),
        ((phase(concurrency=4, request_count=50, entries=50),), {"sampling": "shuffle"}, used(shuffle, 4)),
        ((rate(rate=5.0, request_count=90, entries=50),), {"sampling": "random"}, used(random, 90)[:9]),
        ((phase(concurrency=4, request_count=50, entries=50),), {"data": {"each": 3}}, [0, 1, 2, 3]),
        ((phase(concurrency=4, request_count=50, entries=50),), {"data": {"each": 0}}, [0, 1, 2, 3]),
        ((rate(rate=5.0, session_count=50, entries=50),), {"data": {"each": 3}}, [*range(9)]),
        ((REPLAY,), {"data": {"timed": True}}, [*range(20)]),
        ((REPLAY,), {"data": {"timed": True, "back": True}}, [*range(30, 50)]),
        ((REPLAY,), {"data": {"timed": True, "each": 3, "any_order": False}}, [*range(20)]),
        ((USERS,), {"data": {"each": 3}}, [*range(9)]),
    ],
)  # fmt: skip
def test_a_load_begins_with_the_entries_that_it_uses_first(
    tmp_path: Path, phases: tuple[PhasePlan, ...], changes: dict[str, Any], first: list[int]
) -> None:
    publisher = Publisher()
    data = {"any_order": True, **changes.pop("data", {})}
    changes = {"samplers": SAMPLERS, "data": data, **LINES, **changes}
    plan = build(promised(tmp_path / "early", *phases, **changes), publisher)
    assert publisher.readable == sorted(first)
    whole = build(promised(tmp_path / "whole", *phases, **changes))
    early, late = (Path(one.output.journal) for one in (plan, whole))
    for name in ("due-0.bin", "due-1.bin", "sessions-0.bin", "../artifacts/lines.txt"):
        assert (early / name).exists() is (late / name).exists()
        assert not (late / name).exists() or (early / name).read_bytes() == (late / name).read_bytes()
    found, wanted = Store(early), Store(late)
    assert (found.entries, found.max_turns) == (wanted.entries, wanted.max_turns)
    for entry in range(50):
        assert found.conversation(entry) == wanted.conversation(entry)
        assert found.turns(entry) == wanted.turns(entry)
        for turn in range(found.turns(entry)):
            assert found.body(entry, turn) == wanted.body(entry, turn)
            assert found.timestamp_ns(entry, turn) == wanted.timestamp_ns(entry, turn)
    assert [replace(one, due_file=None, sessions_file=None) for one in plan.load.phases] == [
        replace(one, due_file=None, sessions_file=None) for one in whole.load.phases
    ]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("expects", [2, 30])
def test_a_load_that_is_graded_begins_once_an_answer_is_expected(tmp_path: Path, expects: int) -> None:
    publisher = Publisher()
    build(promised(tmp_path, data={"expects": expects}, grader=ref("graders", "Any")), publisher)
    assert publisher.ready == max(4, expects)


def test_a_grader_that_does_not_fit_is_refused_before_the_load(tmp_path: Path) -> None:
    publisher, plan = Publisher(), promised(tmp_path, data={"expects": 2}, grader=ref("graders", "Unfit"))
    with pytest.raises(ConfigError, match="the grader unfit can't compare with the expected answer 'yes' of c2: it is yes"):
        build(plan, publisher)
    assert publisher.plans == []


@pytest.mark.usefixtures("at_once")
def test_a_grader_without_expected_answers_is_refused_before_the_load(tmp_path: Path) -> None:
    publisher = Publisher()
    with pytest.raises(BadDataset, match="has nothing to grade"):
        build(promised(tmp_path, grader=ref("graders", "Any")), publisher)
    assert publisher.plans == []


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("phases", "changes"),
    [
        ((), {"data": {"promise": None}}), ((), {"whole": True}), ((), {"sampling": "shuffle"}), (WARM, {}), ((REPLAY,), {}),
        ((REPLAY,), {"data": {"timed": True, "back": True}}),
        ((rate(rate=5.0, session_count=50, entries=50),), {"data": {"each": 0}}),
        ((phase(concurrency=50, request_count=50, entries=50),), {}),
    ],
)  # fmt: skip
def test_other_loads_wait_for_the_whole(tmp_path: Path, phases: tuple[PhasePlan, ...], changes: dict[str, Any]) -> None:
    publisher = Publisher()
    plan = build(promised(tmp_path, *phases, samplers=SAMPLERS, **changes), publisher)
    assert publisher.plans == []
    assert Store(Path(plan.output.journal)).entries == 50


def test_what_is_made_in_a_moment_is_made_before_the_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiperf.prepare.entries._HEAD_S", 1e9)
    publisher = Publisher()
    build(promised(tmp_path), publisher)
    assert publisher.plans == []


@pytest.mark.parametrize("far", [0.0, 1e9])
def test_a_load_begins_as_soon_as_the_end_is_seen_to_be_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: float
) -> None:
    monkeypatch.setattr("aiperf.prepare.entries._GLANCE_S", 0.0)
    monkeypatch.setattr("aiperf.prepare.entries._FAR", far)
    monkeypatch.setattr("aiperf.prepare.entries._HEAD_S", 1e9)
    publisher = Publisher()
    build(promised(tmp_path, source="rows.jsonl"), publisher)
    assert publisher.ready == (4 if far == 0.0 else -1)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("check_s", "streams"), [(1e9, False), (0.0, True)])
def test_a_file_that_is_read_soon_is_checked_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, check_s: float, streams: bool
) -> None:
    monkeypatch.setattr("aiperf.prepare.entries._CHECK_S", check_s)
    publisher = Publisher()
    build(promised(tmp_path, source="rows.jsonl"), publisher)
    assert bool(publisher.plans) is streams
    assert ("rows.jsonl is not checked whole" in caplog.text) is streams


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("data", "what"), [
        ({"there": 49}, "50 conversations, and gave 49"), ({"there": 51}, "50 conversations, and gave 51"),
        ({"turns": 2}, "1 turn in conversation 'c49', and gave 2 turns"),
    ],
)
@pytest.mark.parametrize("concurrency", [4, 50])
def test_a_broken_promise_is_an_error(
    tmp_path: Path, data: dict[str, Any], what: str, concurrency: int
) -> None:
    with pytest.raises(PluginError, match=f"promised {what}"):
        build(promised(tmp_path, phase(concurrency=concurrency, entries=50), data=data), Publisher())


@pytest.mark.usefixtures("at_once")
def test_a_build_that_no_request_needs_ends_early(tmp_path: Path) -> None:
    plan = build(promised(tmp_path, data={"hangs": True}, **LINES), Publisher(stop=True))
    entries = Store(Path(plan.output.journal)).entries
    assert 4 < entries < 50
    assert (Path(plan.output.artifacts) / "lines.txt").read_text().splitlines()[-1] == "end"


def grown(plan: Plan) -> tuple[Builder, Plan]:
    builder = Builder(plan)
    while not builder.poll():
        time.sleep(0.001)
    return builder, builder.result()


def failure(builder: Builder) -> str:
    while (why := builder.failure()) is None:
        time.sleep(0.001)
    return why


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("sampling", ["sequential", "shuffle", "random"])
def test_a_bad_row_behind_the_first_wave_is_told_with_its_line(tmp_path: Path, sampling: str) -> None:
    plan = promised(tmp_path, data={"fails": 30, "any_order": True}, samplers=SAMPLERS, sampling=sampling)
    with contextlib.closing(grown(plan)[0]) as builder:
        assert failure(builder) == ("the data set is not whole: rows.jsonl:1000001: no JSON; write one JSON object per line")
        assert builder.failure() is None


@pytest.mark.usefixtures("at_once")
def test_a_row_that_asks_for_several_answers_behind_the_begin_of_the_load_ends_it(tmp_path: Path) -> None:
    with contextlib.closing(grown(promised(tmp_path, data={"several": 30}))[0]) as builder:
        said = failure(builder)
    assert "conversation 31 asks for several answers (n, or several prompts) behind the begin of the load" in said
    assert "--check-data" in said
    whole = build(promised(tmp_path / "whole", whole=True, data={"several": 30}))
    assert whole.data.several_answers


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("concurrency", [4, 50])
def test_several_answers_to_the_first_wave_are_known_ahead_of_the_load(tmp_path: Path, concurrency: int) -> None:
    publisher = Publisher()
    plan = build(promised(tmp_path, phase(concurrency=concurrency, entries=50), data={"several": 2}), publisher)
    assert plan.data.several_answers
    assert all(each.data.several_answers for each in publisher.plans)


@pytest.mark.parametrize(("endpoint", "several"), [("EachText", True), ("Echo", False)])
def test_several_texts_are_several_answers_where_the_endpoint_says_so(
    tmp_path: Path, endpoint: str, several: bool
) -> None:
    plan = listed(tmp_path, {"id": "two", "turns": [{"texts": ["a", "b"]}]}, endpoint=endpoint)
    assert build(plan).data.several_answers is several


PICTURE = f"data:,{5_000 * 'y'}"
KINDS: list[dict[str, Any]] = [
    {"turns": [{}]},
    {"turns": [{"input_tokens": 3}]},
    {"turns": [{"input_tokens": 4, "max_tokens": 5}]},
    {"turns": [{"input_tokens": 4, "max_tokens": 6, "delay_ms": 2.5}]},
    {"turns": [{"input_tokens": 5, "extra": {"n": 2}}]},
    {"turns": [{"input_tokens": 5, "extra": {"prompt": "more words"}}]},
    {"turns": [{"input_tokens": 6, "expected": "yes"}]},
    {"turns": [{"input_tokens": 7, "role": "critic", "model": "own"}]},
    {"turns": [{"input_tokens": 8, "media": [{"kind": "image", "value": "data:,x"}]}]},
    {"turns": [{"input_tokens": 9, "before": [{"role": "user", "media": [{"kind": "image", "value": PICTURE}]}]}]},
    {"turns": [{"input_tokens": 9, "before": [{"role": "user", "texts": ["five words are counted here"]}]}]},
    {"turns": [{"input_tokens": 10}], "system": "Be brief."},
    {"turns": [{"input_tokens": 11}, {"input_tokens": 12}]},
]


def varied(kind: dict[str, Any], name: str, number: int) -> dict[str, Any]:
    """A conversation of the kind with texts and tokens of its own; one of them has two texts."""
    turns = [{"texts": [f'"{number}" words\n'] * (2 if number == 5 else 1), **turn} for turn in kind["turns"]]
    known = [{**turn, "input_tokens": turn["input_tokens"] + number} if "input_tokens" in turn else turn for turn in turns]
    return {**kind, "id": name, "turns": known}


@pytest.mark.parametrize(
    "changes", [{}, {"models": ("a", "b")}, {"delay_ratio": 2.0}, {"use_server_token_count": True}], ids=str
)
def test_conversations_of_one_kind_are_stored_as_those_that_are_encoded_one_by_one(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    rows = [varied(kind, f"c{index}.{again}", again) for index, kind in enumerate(KINDS) for again in range(12)]

    def files(endpoint: str) -> dict[str, bytes]:
        folder = tmp_path / endpoint
        build(listed(folder, *rows, endpoint=endpoint, phases=(phase(entries=len(rows)),), **LINES, **changes))
        return {path.name: path.read_bytes() for path in (*(folder / "journal").glob("dataset.*"), folder / "lines.txt")}

    one_by_one = files("Echo")
    assert len(one_by_one["dataset.bodies"]) > 100 * len(rows) / 12
    assert files("Spliced") == one_by_one


def test_a_text_that_is_no_unicode_is_the_endpoints_matter_among_others_of_its_kind(tmp_path: Path) -> None:
    rows = [{"id": f"c{again}", "turns": [{"texts": ["two words"], "input_tokens": 2}]} for again in range(9)]
    rows[5]["turns"][0]["texts"] = ["\ud800"]
    with pytest.raises(AiperfError) as whole:
        build(listed(tmp_path / "Echo", *rows, endpoint="Echo"))
    with pytest.raises(AiperfError) as spliced:
        build(listed(tmp_path / "Spliced", *rows, endpoint="Spliced"))
    assert str(spliced.value).replace("Spliced", "Echo").replace("spliced", "echo") == str(whole.value)


@pytest.mark.parametrize(
    ("turns", "limits", "said"),
    [
        (2, {}, r"\(Accept-Encoding: gzip\) can't be repeated in later turns"),
        (1, {"prefill_concurrency": 2}, "can't be watched for their first token"),
    ],
)
def test_encoded_answers_that_a_worker_would_have_to_read_are_refused(
    tmp_path: Path, turns: int, limits: dict[str, Any], said: str
) -> None:
    plan = promised(tmp_path, phase(request_count=50, entries=50, **limits), whole=True, data={"turns": turns})
    with pytest.raises(ConfigError, match=said):
        build(plan.replacing(accept_encoding="gzip"))
    build(plan.replacing(accept_encoding="identity"))


@pytest.mark.usefixtures("at_once")
def test_a_killed_builder_is_told_and_what_it_made_can_be_read(tmp_path: Path) -> None:
    builder, plan = grown(promised(tmp_path, data={"hangs": True}))
    with contextlib.closing(builder):
        assert builder.failure() is None
        os.kill(builder.pid, signal.SIGKILL)
        assert failure(builder) == "the data set is not whole: its process was killed by signal 9"
    assert Store(Path(plan.output.journal)).entries >= 4


def test_a_failure_right_behind_the_first_line_is_heard(tmp_path: Path) -> None:
    """Both lines of a kept builder come in one read: nothing is left in the pipe, which it keeps open."""
    plan, (read, write) = promised(tmp_path), os.pipe()
    with contextlib.closing(Builder(plan, kept=True)) as builder:
        builder.result()
        builder._pipe.close()
        builder._pipe, builder._busy = os.fdopen(read, "rb", buffering=0), True
        os.write(write, msgspec.json.encode({"plan": plan, "grows": True}) + b"\n")
        os.write(write, msgspec.json.encode({"lines": ["no room"], "code": 1}) + b"\n")
        assert builder.result().data.entries == plan.data.entries
        assert builder.failure() == "the data set is not whole: no room"
    os.close(write)


@pytest.mark.usefixtures("at_once")
def test_a_builder_is_stopped(tmp_path: Path) -> None:
    builder, plan = grown(promised(tmp_path, data={"there": 10**9, "promise": 10**9}))
    builder.stop()
    builder.finish()
    assert builder.failure() is None
    assert Store(Path(plan.output.journal)).entries < 10**9


def test_what_the_builder_logs_is_printed_by_the_process_that_has_the_terminal(tmp_path: Path) -> None:
    said: list[str] = []
    logs.to_console(logging.INFO, said.append)
    try:
        begin = lambda: logging.getLogger("aiperf.prepare").warning("line 1\nline 2")  # noqa: E731
        with contextlib.closing(Builder(promised(tmp_path, **LINES), begin, said.append)) as builder:
            while not builder.poll():
                time.sleep(0.001)
            builder.result()
    finally:
        logging.getLogger("aiperf").handlers.clear()
    assert [line.partition(" WARNING ")[2] for line in said] == ["line 1\nline 2"]
