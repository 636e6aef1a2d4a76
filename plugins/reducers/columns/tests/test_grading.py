"""Grading: each answer that has something to compare, and nothing else, gets a grade that stays with its columns."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from aiperf.errors import AiperfError, BadDataset, ConfigError
from aiperf.prepare.build import build
from aiperf.rundir import journal
from aiperf.rundir.store import Store
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.dataset import Dataset
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.endpoint import DecodingReader
from aiperf.sdk.exporter import BatchExporter
from aiperf.sdk.grader import Case, Grade, Grader
from aiperf.sdk.model import Conversation, Delta, ToolCall, Turn
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.summary import Summary
from aiperf.sdk.transport import STREAMED
from aiperf_reducer_columns.reduce import slow_grading
from aiperf_reducer_columns.reduce.batches import batches
from aiperf_reducer_columns.reduce.grading import Pending, case_of
from aiperf_reducer_columns.reduce.reducer import Outlets, ShardReducer
from aiperf_reducer_columns.report.report import report, write_summary
from aiperf_testing.journals import CLOCK, Plain, Recording, event, plan_for
from aiperf_testing.plans import sample_ref

MS = 1_000_000
QUESTIONS = Conversation(
    "questions",
    (
        Turn(("two and two",), expected="4", task="sums"),
        Turn(("capital of France",), expected="Paris", task="towns"),
        Turn(("how are you",)),
    ),
    alone=True,
)


class Same(Grader):
    def grade(self, expected: str, response: str) -> Grade:
        return Grade(expected == response, unparsed=not response, extracted=response)


class Cut(Grader):
    """Tells all that a case has."""

    def grade(self, case: Case) -> Grade:
        told = [case.conversation_id, case.number, case.task, case.turn.texts[0], case.text, case.reasoning, case.finish_reason]
        return Grade(case.response == case.expected, explanation=json.dumps([*told, case.usage]))


class Half(Grader):
    def grade(self, expected: str, response: str) -> Grade:
        return Grade(False, score=0.5)


class Breaks(Grader):
    def grade(self, expected: str, response: str) -> Grade:
        if response == "Lyon":
            raise ZeroDivisionError("no idea")
        return Grade(True)


class Vague(Grader):
    def grade(self, expected: str, response: str) -> Grade:
        return expected == response  # type: ignore[return-value]


class Needy(Grader):
    def __init__(self, options: Any = None) -> None:
        raise ConfigError("the grader needs sympy", "pip install sympy")


class Ask(Dataset):
    def __iter__(self) -> Any:
        yield QUESTIONS


class Hello(Dataset):
    def __iter__(self) -> Any:
        yield Conversation("hello", (Turn(("hello",)),))


def ref(category: str, plugin: type) -> PluginRef:
    return sample_ref(category, f"{__name__}:{plugin.__name__}")


def answered(directory: Path, grader: type[Grader] | None, *answers: Any, **changes: Any) -> tuple[Recording, RecordBatch]:
    """A run in which the turns of QUESTIONS were answered so; None is an error of the server."""
    made = Recording(directory, grader=None if grader is None else ref("graders", grader), **changes)
    made.data_set(QUESTIONS)
    for turn, answer in enumerate(answers):
        made.sent(turn, (turn + 1) * 10 * MS, turn=turn, entry=0)
        if isinstance(answer, dict):
            made.read(turn, (turn + 1) * 10 * MS + MS, event(**answer))
        made.done(
            turn, (turn + 1) * 10 * MS + 2 * MS,
            **({} if answer is not None else {"outcome": journal.ERROR, "status": 500}),
        )  # fmt: skip
    made.flush(90 * MS)
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    (batch,) = batches(made.journal, made.plan)
    return made, batch


def columns(batch: RecordBatch, *names: str) -> list[list[float | None]]:
    return [[None if math.isnan(value) else value for value in batch[name].tolist()] for name in names]


def grades(batch: RecordBatch) -> list[Any]:
    return [None if text is None else json.loads(text) for text in batch.texts["grade"]]


def test_answers_are_compared_with_what_their_turn_expects(tmp_path: Path) -> None:
    _, batch = answered(tmp_path, Same, {"text": "4"}, {"text": "Lyon"}, {"text": "fine"})
    assert columns(batch, "graded", "correct", "unparsed", "score") == [
        [1, 1, None], [1, 0, None], [0, 0, None], [1, 0, None],
    ]  # fmt: skip
    first, second, third = grades(batch)
    assert first == {"expected": "4", "task": "sums", "response": "4", "grade": {"correct": True, "extracted": "4"}}
    assert (second["task"], second["response"]) == ("towns", "Lyon")
    assert third is None


def test_a_score_of_the_graders_own_is_kept(tmp_path: Path) -> None:
    _, batch = answered(tmp_path, Half, {"text": "4"})
    assert columns(batch, "correct", "score") == [[0], [0.5]]


def test_reasoning_is_graded_only_where_there_is_nothing_else(tmp_path: Path) -> None:
    _, batch = answered(tmp_path, Same, {"reasoning": "4"}, {"reasoning": "Lyon?", "text": "Paris"})
    assert columns(batch, "correct") == [[1, 1]]


def test_a_grader_of_cases_gets_all_that_is_known_of_an_answer(tmp_path: Path) -> None:
    finished = {"text": "4", "finish": "length", "usage": {"completion_tokens": 1}}
    _, batch = answered(tmp_path, Cut, finished, {"reasoning": "Paris", "finish": "stop"})
    assert columns(batch, "graded", "correct") == [[1, 1], [1, 1]]
    assert [json.loads(each["grade"]["explanation"]) for each in grades(batch)] == [
        ["questions", 0, "sums", "two and two", "4", "", "length", {"completion_tokens": 1}],
        ["questions", 1, "towns", "capital of France", "", "Paris", "stop", None],
    ]


def test_repeats_and_settings_as_sent_stand_in_columns_and_texts(tmp_path: Path) -> None:
    made = Recording(tmp_path, grader=ref("graders", Cut))
    made.plan = msgspec.structs.replace(made.plan, target=msgspec.structs.replace(
        made.plan.target, extra={"temperature": 0.7, "api_key": "s3cret"}, setting_names={"seed": ""}))  # fmt: skip
    settings = {"temperature": 0.0, "stop": ["\n"], "seed": 7, "api_key": "none"}
    turn = Turn(("two and two",), expected="4", settings=settings)
    asked = [Conversation("sum", (msgspec.structs.replace(turn, repeat=n),)) for n in range(2)]
    made.data_set(*asked, Conversation("x", (Turn(("x",)),)))
    for entry in range(3):
        made.sent(entry, (entry + 1) * 10 * MS, entry=entry)
        made.read(entry, (entry + 1) * 10 * MS + MS, event(text="4"))
        made.done(entry, (entry + 1) * 10 * MS + 2 * MS)
    made.flush(90 * MS)
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    (batch,) = batches(made.journal, made.plan)
    assert columns(batch, "repeat", "correct") == [[0, 1, None], [1, 1, None]]
    sent = [None if text is None else json.loads(text) for text in batch.texts["settings"]]
    assert sent == [{"temperature": 0.7, "stop": ["\n"], "api_key": "<redacted>"}] * 2 + [None]
    assert case_of(Store(made.journal), 1, 0, Pending("4")).repeat == 1


class Calling(DecodingReader):
    """Each piece of a tool is a call; one of "?" breaks it."""

    def __init__(self) -> None:
        super().__init__(Plain().decode)
        self.tools: list[str] = []

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        deltas = list(map(self.decode, events))
        self.tools += [delta.tool for delta in deltas if delta is not None and delta.tool]
        return deltas

    def tool_calls(self) -> Sequence[ToolCall]:
        if "?" in self.tools:
            raise LookupError("what is ?")
        return [ToolCall(f"c{number}", tool, "{}") for number, tool in enumerate(self.tools)]


class Calls(Plain):
    repeats_envelope = True

    def reader(self) -> Calling:
        return Calling()


class Names(Grader):
    def grade(self, case: Case) -> Grade:
        return Grade([call.name for call in case.tool_calls] == case.expected.split(), explanation=repr(case.tool_calls))


@pytest.mark.parametrize("streaming", [True, False])
def test_a_grader_gets_the_tool_calls_apart(tmp_path: Path, streaming: bool) -> None:
    made = Recording(tmp_path, grader=ref("graders", Names), endpoint=ref("endpoints", Calls), streaming=streaming)
    expected = ("clock weather" if streaming else "clock", "", "clock")
    made.data_set(Conversation("calls", tuple(Turn(("x",), expected=text) for text in expected), alone=True))
    pieces = ([{"text": "hm"}, {"tool": "clock"}, {"tool": "weather"}], [{"text": "no"}], [{"tool": "?"}])
    for turn, deltas in enumerate(pieces):
        made.sent(turn, (turn + 1) * 10 * MS, turn=turn, entry=0)
        whole = b"".join(event(**delta) for delta in deltas) if streaming else msgspec.json.encode(deltas[min(turn == 0, 1)])
        made.read(turn, (turn + 1) * 10 * MS + MS, whole)
        made.done(turn, (turn + 1) * 10 * MS + 2 * MS, flags=STREAMED if streaming else 0)
    made.flush(90 * MS)
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    (batch,) = batches(made.journal, made.plan)
    assert columns(batch, "graded", "correct") == [[1, 1, 0], [1, 1, None]]
    first, second, third = grades(batch)
    told = [{"id": f"c{number}", "name": name, "arguments": "{}"} for number, name in enumerate(expected[0].split())]
    assert first["tool_calls"] == told and "tool_calls" not in second
    assert third["ungraded"] == "the endpoint can't tell the tool calls: LookupError: what is ?"


class Pairs(DecodingReader):
    """The text of an event is several answers, with commas between."""

    def __init__(self) -> None:
        super().__init__(Plain().decode)
        self.text = ""

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        deltas = list(map(self.decode, events))
        self.text += "".join(delta.text for delta in deltas if delta is not None)
        return deltas

    def choices(self) -> Sequence[Delta] | None:
        return list(map(Delta, self.text.split(",")))


class Several(Plain):
    def reader(self) -> Pairs:
        return Pairs()


@pytest.mark.parametrize("grader", [Same, Cut])
def test_of_several_answers_the_first_is_graded(tmp_path: Path, grader: type[Grader]) -> None:
    _, batch = answered(
        tmp_path, grader, {"text": "4,5"}, {"text": "Lyon,Paris"}, endpoint=ref("endpoints", Several), several_answers=True
    )
    assert columns(batch, "correct") == [[1, 0]]
    assert [each["response"] for each in grades(batch)] == ["4", "Lyon"]


def test_a_failed_request_is_not_a_wrong_answer(tmp_path: Path) -> None:
    _, batch = answered(tmp_path, Same, None, {"text": "Paris"})
    assert columns(batch, "graded", "correct") == [[0, 1], [None, 1]]
    assert grades(batch)[0] == {"expected": "4", "task": "sums", "ungraded": "no answer: error"}


@pytest.mark.parametrize(
    ("grader", "why", "graded"),
    [(Breaks, "ZeroDivisionError: no idea", [1, 0]), (Vague, "TypeError: it gives bool, not Grade", [0, 0])],
)
def test_a_grader_that_fails_costs_its_grades_and_is_named(
    tmp_path: Path, grader: type[Grader], why: str, graded: list[float]
) -> None:
    made, batch = answered(tmp_path, grader, {"text": "4"}, {"text": "Lyon"})
    assert columns(batch, "graded") == [graded]
    assert grades(batch)[1]["ungraded"] == f"the grader failed: {why}"
    made.ended()
    write_summary(made.journal)
    summary = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    sentence = f"the plugin graders:{grader.__name__.lower()} of acme 1.2 failed: {why}"
    assert summary.extra["failures"] == [sentence]
    assert sentence in summary.warnings
    assert summary.valid == 2


SLOW = """
import os, sys, tempfile, threading
from aiperf import Grade, Grader

class Slow(Grader):
    def grade(self, case):
        if case.text == "raise":
            raise ZeroDivisionError("no idea")
        if case.text == "hang":
            threading.Event().wait()
        if case.text == "die":
            print("left behind", tempfile.mkdtemp(), flush=True)
            os._exit(3)
        if case.text == "vague":
            return True
        print("noise", sys.stdin.read())
        return Grade(case.text == case.expected, explanation=f"{os.getpid()} {case.task} {case.finish_reason}")

class Meeting(Grader):
    def grade(self, case):
        place = os.environ["MEETING"]
        open(os.path.join(place, case.text), "w").close()
        while not all(os.path.exists(os.path.join(place, name)) for name in "ab"):
            threading.Event().wait(0.01)
        return Grade(True)

class Absent(Grader):
    def __init__(self, options=None):
        raise RuntimeError("it is out")
"""


def slowly(
    directory: Path, grader: str, monkeypatch: pytest.MonkeyPatch, *texts: str, timeout_s: float = 60.0,
    cancelled: bool = False, processes: int = 1, limit_s: float = 600.0, job: Any = None,
) -> tuple[Recording, RecordBatch, Summary]:  # fmt: skip
    """A run whose answers a slow grader gets, the batch of its report, and its summary."""
    (directory / "slow_graders.py").write_text(SLOW)
    monkeypatch.syspath_prepend(directory)
    monkeypatch.setenv("PYTHONPATH", str(directory), prepend=os.pathsep)
    made = Recording(
        directory, grader=sample_ref("graders", f"slow_graders:{grader}"), grading_timeout_s=timeout_s,
        grading_processes=processes, grading_limit_s=limit_s,
    )  # fmt: skip
    made.data_set(Conversation("q", tuple(Turn((text,), expected="4", task="sums") for text in texts), alone=True))
    for turn, text in enumerate(texts):
        made.sent(turn, (turn + 1) * 10 * MS, turn=turn, entry=0)
        made.read(turn, (turn + 1) * 10 * MS + MS, event(text=text, finish="stop"))
        made.done(turn, (turn + 1) * 10 * MS + 2 * MS)
    made.flush(90 * MS)
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    made.ended(cancelled=cancelled)
    (waiting,) = batches(made.journal, made.plan)
    assert columns(waiting, "graded") == [[0] * len(texts)]
    assert {each["ungraded"] for each in grades(waiting)} == {"not graded yet"}
    seen: list[RecordBatch] = []
    monkeypatch.setattr(Outlets, "give", lambda _, batch: seen.append(batch))
    return made, seen[0] if (summary := write_summary(made.journal, job=job)) and seen else waiting, summary


def test_a_slow_grader_works_in_a_process_of_its_own_and_its_failures_cost_one_grade_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, batch, summary = slowly(tmp_path, "Slow", monkeypatch, "4", "raise", "5", "hang", "4", "die", "vague", timeout_s=2.0)
    assert columns(batch, "graded", "correct") == [[1, 0, 1, 0, 1, 0, 0], [1, None, 0, None, 1, None, None]]
    told = [each["grade"]["explanation"].split() for each in grades(batch) if "grade" in each]
    pids = [int(pid) for pid, *_ in told]
    assert pids[0] == pids[1] != pids[2] and os.getpid() not in pids
    assert {tuple(rest) for _, *rest in told} == {("sums", "stop")}
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    (sentence,) = summary.extra["failures"]
    assert sentence == (
        "the plugin graders:slow of acme 1.2 left 4 of 7 answers ungraded:"
        " the grader failed: ZeroDivisionError: no idea (1: q);"
        " the grader took longer than 2 s (1: q); the grader's process exited with 3 (1: q);"
        " the grader failed: TypeError: it gives bool, not Grade (1: q)"
    )
    assert summary.valid == 7 and sentence in summary.warnings
    log = (made.journal / "grader.log").read_text()
    assert "noise" in log and f"left behind {made.journal / 'grading'}" in log and not (made.journal / "grading").exists()
    (read,) = batches(made.journal, made.plan)
    assert grades(read) == grades(batch) and columns(read, "correct") == columns(batch, "correct")
    kept = (made.journal / "grades").read_text()
    (made.journal / "grades").write_text(kept + '{"shard":0,"requ')  # a report was killed
    again, _, _ = report(made.journal.parent)
    assert again.extra["failures"] == [sentence]
    assert (made.journal / "grades").read_text() == kept, "what was graded is not graded again"


@pytest.mark.parametrize(
    ("grader", "text", "reason"),
    [
        ("Slow", "die", "the grader's process exited with 3"),
        ("Absent", "4", "the grader failed: the plugin graders:absent of acme 1.2 can't be used: RuntimeError: it is out"),
    ],
)  # fmt: skip
def test_each_answer_that_a_slow_grader_loses_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grader: str, text: str, reason: str
) -> None:
    made, batch, summary = slowly(tmp_path, grader, monkeypatch, *[text] * 4)
    assert columns(batch, "graded") == [[0] * 4]
    name = f"the plugin graders:{grader.lower()} of acme 1.2"
    assert summary.extra["failures"] == [f"{name} left 4 of 4 answers ungraded: {reason} (4: q)"]
    # A grader that never starts has seen no answer: the next report tries again.
    assert len((made.journal / "grades").read_text().splitlines()) == (4 if grader == "Slow" else 0)


def test_several_processes_give_the_grades_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("4", "raise", "5", "4", "die", "vague", "4", "5", "die", "4")
    grades_of = []
    for processes in (1, 3):
        (folder := tmp_path / str(processes)).mkdir()
        made, batch, summary = slowly(folder, "Slow", monkeypatch, *texts, processes=processes)
        monkeypatch.undo()
        graded = [{**each, "grade": {**each.get("grade", {}), "explanation": ""}} for each in grades(batch)]
        grades_of.append((graded, summary.extra["failures"]))
        lines = [json.loads(line) for line in (made.journal / "grades").read_text().splitlines()]
        assert sorted(line["request"] for line in lines) == list(range(len(texts)))
    assert grades_of[0] == grades_of[1]


def test_processes_grade_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer waits until another one is graded beside it."""
    monkeypatch.setenv("MEETING", str(tmp_path))
    _, batch, summary = slowly(tmp_path, "Meeting", monkeypatch, "a", "b", processes=2)
    assert columns(batch, "graded", "correct") == [[1, 1], [1, 1]] and not summary.extra.get("failures")


class Job(msgspec.Struct):
    """What summarising asks a run: to stop after *after* progress calls."""

    after: int
    told: list[tuple[str, int, int, str]] = []

    def far(self, *what: Any) -> None:
        self.told.append(what)

    def hurried(self) -> bool:
        return any(done >= self.after for _, done, _, _ in self.told)


def test_whoever_interrupts_grading_keeps_the_grades_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(2)
    made, batch, summary = slowly(tmp_path, "Slow", monkeypatch, "4", "4", "hang", "4", job=job)
    assert columns(batch, "graded", "correct") == [[1, 1, 0, 0], [1, 1, None, None]]
    assert [each["ungraded"] for each in grades(batch)[2:]] == ["not graded yet"] * 2
    assert "2 answers are not graded yet: aiperf report grades them" in summary.warnings and not summary.extra.get("failures")
    assert job.told[-1] == ("Grading", 2, 4, "answers")
    kept = (made.journal / "grades").read_text()
    assert len(kept.splitlines()) == 2
    report(made.journal.parent, lambda plan: plan.replacing(grading_timeout_s=1.0))
    assert (made.journal / "grades").read_text().startswith(kept) and batch is not None
    assert len((made.journal / "grades").read_text().splitlines()) == 4


def test_grading_ends_with_its_time_and_a_report_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tmp_path / "journal" / "grades"
    clock = SimpleNamespace(monotonic=lambda: 1e9 if first.exists() and first.read_bytes() else 0.0)
    monkeypatch.setattr(slow_grading, "time", clock)
    made, batch, summary = slowly(tmp_path, "Slow", monkeypatch, "4", "hang", "4", limit_s=60.0)
    monkeypatch.undo()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert columns(batch, "graded") == [[1, 0, 0]]
    late = "the 60 s of --grading-timeout were over, and aiperf report goes on"
    assert summary.extra["failures"] == [f"the plugin graders:slow of acme 1.2 left 2 of 3 answers ungraded: {late} (2: q)"]
    again, _, _ = report(made.journal.parent, lambda plan: plan.replacing(grading_timeout_s=1.0))
    (sentence,) = again.extra["failures"]
    assert sentence.endswith("left 1 of 3 answers ungraded: the grader took longer than 1 s (1: q)")


def test_a_run_that_was_ended_is_not_kept_waiting_by_a_slow_grader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, batch, summary = slowly(tmp_path, "Slow", monkeypatch, "4", "5", cancelled=True)
    assert columns(batch, "graded") == [[0, 0]] and not (made.journal / "grades").exists()
    assert "2 answers are not graded yet: aiperf report grades them" in summary.warnings
    monkeypatch.undo()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert not report(made.journal.parent)[0].extra
    assert len((made.journal / "grades").read_text().splitlines()) == 2


def test_a_run_without_answers_is_not_graded_again(tmp_path: Path) -> None:
    made, _ = answered(tmp_path, None, {"text": "4"})
    made.ended()
    with pytest.raises(AiperfError, match="can't be graded again: the run has not kept them"):
        report(made.journal.parent, lambda plan: plan.replacing(grader=ref("graders", Half), grading_again=True))


class Keeping(BatchExporter):
    answers = True

    def rows(self, batch: RecordBatch) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("first", "changes"),
    [(Same, {"export_level": "raw"}), (Same, {}), (None, {"exporters": (sample_ref("exporters", f"{__name__}:Keeping"),)})],
    ids=["raw", "graded", "answers"],
)
def test_answers_are_graded_again_from_whatever_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: type[Grader] | None, changes: dict[str, Any]
) -> None:
    cut = {"text": "Lyon", "finish": "length"}
    made, batch = answered(tmp_path, first, {"text": "4", "finish": "stop"}, cut, None, **changes)
    made.ended()
    seen: list[RecordBatch] = []
    monkeypatch.setattr(Outlets, "give", lambda _, batch: seen.append(batch))
    report(made.journal.parent, lambda plan: plan.replacing(grader=ref("graders", Cut), grading_again=True))
    report(made.journal.parent)
    assert columns(seen[0], "graded", "score") == [[1, 1, None], [1, 0, None]]
    told = [json.loads(each["grade"]["explanation"])[:-1] for each in grades(seen[0])[:2]]
    assert told == [
        ["questions", 0, "sums", "two and two", "4", "", "stop"],
        ["questions", 1, "towns", "capital of France", "Lyon", "", "length"],
    ]
    assert columns(seen[1], "score") == columns(batch, "score")


def test_a_failed_request_stays_ungraded_when_graded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = answered(tmp_path, Same, None, {"text": "Paris"})
    made.ended()
    seen: list[RecordBatch] = []
    monkeypatch.setattr(Outlets, "give", lambda _, batch: seen.append(batch))
    report(made.journal.parent, lambda plan: plan.replacing(grader=ref("graders", Half), grading_again=True))
    assert grades(seen[0])[0] == {"expected": "4", "task": "sums", "ungraded": "no answer: error"}


def test_nothing_is_graded_where_no_grader_was_chosen(tmp_path: Path) -> None:
    _, batch = answered(tmp_path, None, {"text": "4"})
    assert columns(batch, "graded") == [[None]]
    assert "grade" not in batch.texts


def test_a_report_keeps_the_grades_without_the_grader(tmp_path: Path) -> None:
    made, _ = answered(tmp_path, Same, {"text": "4"}, {"text": "Lyon"})
    work = ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK, durable=False)
    work.finish()
    made.ended()
    write_summary(made.journal)
    summary = msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)
    assert [(used.category, used.name) for used in summary.plugins if used.category == "graders"] == [("graders", "same")]


def built(directory: Path, grader: type[Grader], data: type[Dataset]) -> None:
    (directory / "journal").mkdir()
    phase = PhasePlan("profiling", "profiling", 0, "burst", request_count=1, entries=1)
    burst = {"burst": PluginRef("schedules", "burst", "aiperf_schedule_standard.burst:Burst", "acme", "0")}
    hooks = (PluginRef("hooks", "schedules", "aiperf.prepare.named_schedules:NamedSchedules", "aiperf-core", "0"),)
    used = {"grader": ref("graders", grader), "dataset": ref("datasets", data), "schedules": burst, "hooks": hooks}
    build(plan_for(directory, phases=(phase,), entries=1, **used))


def test_a_data_set_with_nothing_to_grade_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="--accuracy-grader same has nothing to grade: the data set 'hello'"):
        built(tmp_path, Same, Hello)


def test_a_data_set_with_something_to_grade_is_built(tmp_path: Path) -> None:
    built(tmp_path, Same, Ask)
    asked = Store(tmp_path / "journal").expectation(0, 1)
    assert asked is not None and (asked.expected, asked.task) == ("Paris", "towns")


def test_a_grader_that_lacks_something_says_so_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the grader needs sympy"):
        built(tmp_path, Needy, Ask)
