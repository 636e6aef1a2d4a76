"""Lanes and messages of finished runs, this program's and the reference's."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from aiperf import UsageError
from aiperf.sdk.figures import described
from aiperf_command_analyze.contract import SwimLaneContract, TurnMessagesContract
from aiperf_command_analyze.drawing import PLOT_PX
from aiperf_command_analyze.figures import BUSY, FAILED, LIFE, STAGES, TITLED, curves_figure, lanes_figure
from aiperf_command_analyze.lanes import busy_spans, counted, lanes_of
from aiperf_command_analyze.messages import said
from aiperf_command_analyze.options import SwimLaneOptions, TurnMessagesOptions
from aiperf_command_analyze.sessions import sessions_of
from aiperf_command_analyze.swim_lane import SwimLane
from aiperf_command_analyze.turn_messages import TurnMessages
from aiperf_results import open_run

BEGIN_NS = 1_795_188_652_752_565_783
_SVG = "{http://www.w3.org/2000/svg}"


class TestSwimLaneKeepsTheContract(SwimLaneContract):
    pass


class TestTurnMessagesKeepsTheContract(TurnMessagesContract):
    pass


def line(session: str, start_s: float, end_s: float, **more: Any) -> dict[str, Any]:
    """A line of a file of requests as the reference 0.13 writes it, as far as it is read; *more*: of its metadata."""
    about = {
        "session_num": 0, "x_correlation_id": session, "root_correlation_id": session, "conversation_id": f"c-{session}",
        "turn_index": 0, "request_start_ns": BEGIN_NS + round(start_s * 1e9), "request_end_ns": BEGIN_NS + round(end_s * 1e9),
        "benchmark_phase": "profiling", "was_cancelled": False, "agent_depth": 0,
    }  # fmt: skip
    error = more.pop("error", None)
    first = {"time_to_first_token": {"value": (end_s - start_s) * 250, "unit": "ms"}} if error is None else {}
    return {"metadata": about | more, "metrics": first} | ({"error": error} if error else {})


TREE = (
    line("r", 0, 1), line("r", 4, 6, turn_index=1),
    line("x", 1, 3, agent_depth=1, root_correlation_id="r", parent_correlation_id="r"),
    line("y", 1.5, 2, agent_depth=1, root_correlation_id="r", parent_correlation_id="r", error={"message": "busy"}),
    line("z", 2.5, 3, agent_depth=2, root_correlation_id="r", parent_correlation_id="x"),
    line("s", 2, 3), line("t", 5, 8), line("u", 9, 9.5, was_cancelled=True), line("w", 0, 1, benchmark_phase="warmup"),
)  # fmt: skip


def directory(path: Path, lines: Any = TREE, **files: Any) -> Path:
    """The directory of a run of the reference; *files*: documents by the end of their name."""
    path.mkdir(exist_ok=True)
    (path / "profile_export_aiperf.json").write_text(json.dumps({"input_config": {}} | files.get("summary", {})))
    (path / "profile_export.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def drawn(path: Path, **options: Any) -> ElementTree.Element:
    assert SwimLane().run(SwimLaneOptions(**options), [str(path)]) == 0
    return ElementTree.fromstring((path / "swim_lane.svg").read_text())


def test_a_session_takes_the_first_lane_that_is_free(tmp_path: Path) -> None:
    lanes = lanes_of(sessions_of(open_run(directory(tmp_path))).trees)
    assert [[tree.root for tree in lane.trees] for lane in lanes] == [["r"], ["s", "t"]]
    rows = [[session.id for session in row.sessions] for row in lanes[0].rows]
    assert rows == [["r"], ["x"], ["y", "z"]]  # z begins when y is over


@pytest.mark.parametrize("lacking", ["root_correlation_id", ""])
def test_trees_are_found_by_roots_or_by_parents(tmp_path: Path, lacking: str) -> None:
    lines = [dict(each, metadata={k: v for k, v in each["metadata"].items() if k != lacking}) for each in TREE]
    trees = sessions_of(open_run(directory(tmp_path, lines))).trees
    assert [(tree.root, sorted(each.id for each in tree.sessions)) for tree in trees] == [
        ("r", ["r", "x", "y", "z"]), ("s", ["s"]), ("t", ["t"]),
    ]  # fmt: skip


def test_a_child_that_calls_itself_a_root_has_its_parents(tmp_path: Path) -> None:
    """The reference 0.13 writes so from the turn on that follows a join of the child."""
    child = {"agent_depth": 1, "parent_correlation_id": "r"}
    lines = [line("r", 0, 9), line("x", 1, 2, **child, root_correlation_id="r"), line("x", 3, 4, **child, turn_index=1)]
    alone = [lines[0], lines[2]]
    for number, given in enumerate((lines, alone)):
        (tree,) = sessions_of(open_run(directory(tmp_path / str(number), given))).trees
        assert [each.id for each in tree.sessions] == ["r", "x"]


def test_a_child_whose_root_sent_nothing_is_below_an_empty_row(tmp_path: Path) -> None:
    lines = [line("x", 0, 1, agent_depth=1, root_correlation_id="gone")]
    (lane,) = lanes_of(sessions_of(open_run(directory(tmp_path, lines))).trees)
    assert [[session.id for session in row.sessions] for row in lane.rows] == [[], ["x"]]


def test_each_request_is_where_and_as_long_as_it_was(tmp_path: Path) -> None:
    picture = drawn(directory(tmp_path))
    time = picture.find(f"{_SVG}g[@id='time']")
    assert time is not None
    found = {}
    for group in time.findall(f"{_SVG}g"):
        title, *shapes = group
        found[title.text] = [(one.get("class"), float(one.get("x", "")), float(one.get("width", ""))) for one in shapes]
    assert len(found) == 7
    second = PLOT_PX / 8  # the last request ends after 8 s
    by_name = {text.split(":")[0]: shapes for text, shapes in found.items() if text}
    assert by_name["c-r, turn 1"] == [
        ("d0", pytest.approx(4 * second, abs=0.01), pytest.approx(second / 2, abs=0.01)),
        ("d0 late", pytest.approx(4.5 * second, abs=0.01), pytest.approx(1.5 * second, abs=0.01)),
    ]
    assert [shape[0] for shape in by_name["c-y, turn 0, depth 1"]] == ["bad"]
    assert [shape[0] for shape in by_name["c-z, turn 0, depth 2"]] == ["d2", "d2 late"]
    assert "7 requests, 1 failed in 3 trees of 6 conversations, on 2 lanes, 8 s" in {text.text for text in picture.iter()}


def test_lanes_and_curves_are_figures(tmp_path: Path) -> None:
    sessions = sessions_of(open_run(directory(tmp_path)))
    figure = lanes_figure("Sessions", sessions, lanes_of(sessions.trees))
    assert [(lane.name, lane.depth) for lane in figure.lanes] == [("0", 0), ("", 1), ("", 1), ("1", 0)]
    found = {one.name: one for one in figure.series}
    assert {one.kind for one in figure.series} == {"lanes"}
    assert list(found) == [LIFE, *STAGES], "everything that the tree has"
    late = found["root, after it"]
    assert late.x_low is not None and late.x_high is not None and late.rows is not None
    assert list(zip(late.y, late.x_low, late.x_high, strict=True)) == [
        (0, 0.25, 1), (0, 4.5, 6), (3, 2.25, 3), (3, 5.75, 8),
    ]  # fmt: skip
    assert late.labels[1].startswith("c-r, turn 1: at 4.000 s, 2 s, first token after 0.5 s")
    assert found[FAILED].labels == ("c-y, turn 0, depth 1: at 1.500 s, failed after 0.5 s",)
    assert described(figure).startswith("Sessions. x: time (s). y: lane. 4 lanes.")
    curves = curves_figure("Sessions", sessions, 5, [(4.0, "ramp done")])
    assert curves is not None
    assert [(line.axis, line.value, line.label) for line in curves.lines] == [("x", 4, "ramp done"), ("y", 5, "target")]
    assert next(one.y.tolist() for one in curves.series if one.name == BUSY) == [1, 2, 0, 1, 2, 1, 0]


def test_a_run_without_a_lasting_request_has_lanes_and_no_curve(tmp_path: Path) -> None:
    run = directory(tmp_path, [line("r", 0, 0), line("s", 1, 0.5)])
    assert curves_figure("Sessions", sessions_of(open_run(run)), None, ()) is None
    assert drawn(run).tag == f"{_SVG}svg"


def test_curves_count_what_is_under_way(tmp_path: Path) -> None:
    sessions = sessions_of(open_run(directory(tmp_path)))
    busy = counted(span for tree in sessions.trees for span in busy_spans(tree))
    assert list(zip(busy.at_s, busy.values, strict=True)) == [(0, 1), (2, 2), (3, 0), (4, 1), (5, 2), (6, 1), (8, 0)]
    alive = counted((tree.start_s, tree.end_s) for tree in sessions.trees)
    assert list(zip(alive.at_s, alive.values, strict=True)) == [(0, 1), (2, 2), (3, 1), (5, 2), (6, 1), (8, 0)]


@pytest.mark.parametrize(("phase", "words"), [
    ({"concurrency_ramp": {"duration": 3}, "duration": 7.5}, ["ramp done", "duration"]),
    ({"kind": "profiling", "concurrency_ramp": 3}, ["ramp done"]),
    ({"exclude_from_results": True, "duration": 2}, []),
])  # fmt: skip
def test_the_ends_of_ramp_and_duration_are_marked(tmp_path: Path, phase: dict[str, Any], words: list[str]) -> None:
    picture = drawn(directory(tmp_path, summary={"input_config": {"phases": [phase]}}))
    assert [text.text for text in picture.iter(f"{_SVG}text") if text.get("class") == "marked"] == words


def test_a_target_and_a_ramp_may_be_given(tmp_path: Path) -> None:
    picture = drawn(directory(tmp_path), concurrency=5, ramp=4)
    marks = [one.get("d") for one in picture.iter(f"{_SVG}path") if one.get("class") == "mark"]
    assert len(marks) == 3 and str(marks[0]).startswith(f"M{PLOT_PX / 2:.2f} ")
    assert "5" in {text.text for text in picture.iter(f"{_SVG}text")}


def test_many_requests_are_drawn_where_they_are(tmp_path: Path) -> None:
    lines = [line(f"s{n}", n, n + 0.1) for n in range(TITLED)]
    lines += [line("last", TITLED - 0.9 + n / 1000, TITLED - 0.9 + (n + 1) / 1000) for n in range(1000)]  # drawn as one
    picture = drawn(directory(tmp_path, lines))
    late = [one.get("d", "") for one in picture.iter(f"{_SVG}path") if one.get("class") == "d0 late"]
    starts = [float(x) for path in late for x in re.findall(r"M([\d.]+) ", path)]
    second = PLOT_PX / (TITLED + 0.1)
    assert starts == [pytest.approx((n + 0.025) * second, abs=0.01) for n in range(TITLED)]


def test_names_are_texts_and_no_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\x07&\"'"
    drawn(directory(tmp_path, [line("r", 0, 1, conversation_id=evil)]), html=True)
    page = (tmp_path / "swim_lane.html").read_text()
    assert "<script>alert" not in page and "\x07" not in page and "&lt;script&gt;alert(1)" in page
    assert "prefers-color-scheme: dark" in page
    assert "translate(${left} 0) scale(${zoom} 1)" in page and re.search(r"\[left, plot, right\] = \[\d+, \d+, \d+\]", page)
    assert "@" not in re.sub("@media", "", page), "something was not filled in"
    assert not re.search(r"""(?:src|href)\s*=|@import|url\(""", page), "the page asks for another file"


def test_a_directory_without_requests_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bare = directory(tmp_path / "good"), tmp_path / "bare"
    directory(bare, []).joinpath("profile_export.jsonl").unlink()
    empty = directory(tmp_path / "empty", [TREE[-1]])
    broken = directory(tmp_path / "broken", [{"metadata": {"request_start_ns": "soon"}}])
    words = [str(each) for each in (good, bare, empty, broken, tmp_path / "missing")]
    assert SwimLane().run(SwimLaneOptions(), words) == 1
    said = capsys.readouterr().err
    assert (good / "swim_lane.svg").is_file()
    assert all(f"skipped: {word}" in said for word in words[1:])
    assert "no request of a profiling phase" in said and "Traceback" not in said


@pytest.mark.parametrize(("words", "out", "told"), [
    ([], None, "no directory"), (["a", "b"], "x.svg", "2 directories"), (["a"], "x.png", "end the name in .svg or .html"),
])  # fmt: skip
def test_what_cannot_be_written_is_refused(words: list[str], out: str | None, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        SwimLane().run(SwimLaneOptions(out=None if out is None else Path(out)), words)
    assert told in "\n".join(caught.value.lines())


def raw(session: str, turn: int, messages: Any, **more: Any) -> dict[str, Any]:
    whole = line(session, turn, turn + 0.5, turn_index=turn, **more)
    return {**whole, "payload": messages if isinstance(messages, dict) else {"model": "m", "messages": messages}}


def unpacked(path: Path) -> dict[str, Any]:
    page = path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    found = re.search(r'id="packed" type="text/plain">([^<]*)<', page)
    assert found is not None
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return data


def test_each_message_stands_once_and_each_turn_has_its_own(tmp_path: Path) -> None:
    system, hello = {"role": "system", "content": "be brief"}, {"role": "user", "content": "hello </script><b>"}
    more = {"role": "user", "content": [{"type": "text", "text": "look"}]}
    lines = [
        raw("x", 0, [hello], agent_depth=1, parent_correlation_id="r", root_correlation_id="r"),
        raw("r", 1, [system, hello, {"role": "assistant", "content": "hi" * 50}, more], error={"message": "busy"}),
        raw("r", 0, [system, hello]),
    ]  # fmt: skip
    directory(tmp_path)
    (tmp_path / "profile_export_raw.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert TurnMessages().run(TurnMessagesOptions(content_cap=40), [str(tmp_path)]) == 0
    page = tmp_path / "turn_messages.html"
    assert "hello </script>" not in page.read_text()
    data = unpacked(page)
    texts = data["texts"]
    assert sorted(text[0] for text in texts) == ["assistant", "system", "user", "user"]
    assert ["assistant", "hi" * 20, 60] in texts
    first, second = data["conversations"]
    assert (first["session"], first["depth"], second["session"], second["parent"]) == ("r", 0, "x", "c-r")
    said_of = [[texts[place][1] for place in places] for _, _, _, places in first["turns"]]
    assert said_of[0] == ["be brief", "hello </script><b>"] and len(said_of[1]) == 4
    assert [turn[2] for turn in first["turns"]] == ["", "busy"]


def test_the_files_of_the_references_processors_are_read(tmp_path: Path) -> None:
    directory(tmp_path)
    (tmp_path / "raw_records").mkdir()
    for number in range(3):
        text = json.dumps(raw(f"s{number}", 0, [{"role": "user", "content": "same"}]))
        (tmp_path / "raw_records" / f"raw_records_{number}.jsonl").write_text(text + "\n")
    assert TurnMessages().run(TurnMessagesOptions(limit_conversations=2, max_turns=1), [str(tmp_path)]) == 0
    data = unpacked(tmp_path / "turn_messages.html")
    assert ([each["session"] for each in data["conversations"]], data["hidden"]) == (["s0", "s1"], 1)
    assert data["texts"] == [["user", "same", 0]]


def test_turns_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    directory(tmp_path)
    lines = "".join(json.dumps(raw("s", turn, [{"role": "user", "content": f"t{turn}"}])) + "\n" for turn in (2, 0, 1))
    (tmp_path / "profile_export_raw.jsonl").write_text(lines)
    assert TurnMessages().run(TurnMessagesOptions(max_turns=2), [str(tmp_path)]) == 0
    (conversation,) = unpacked(tmp_path / "turn_messages.html")["conversations"]
    assert ([turn[0] for turn in conversation["turns"]], conversation["hidden"]) == ([0, 1], 1)


def test_a_run_without_its_raw_file_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert TurnMessages().run(TurnMessagesOptions(), [str(directory(tmp_path))]) == 1
    said = capsys.readouterr().err
    assert "--export-level raw" in said
    assert said.count(str(tmp_path)) == 1


@pytest.mark.parametrize(("payload", "messages"), [
    ({"prompt": "once"}, [("prompt", "once")]),
    ({"input": "text"}, [("prompt", "text")]),
    ({"input": [{"role": "user", "content": "a"}], "instructions": "b"}, [("system", "b"), ("user", "a")]),
    ({"system": "s", "messages": [{"role": "user", "content": "a"}]}, [("system", "s"), ("user", "a")]),
    ({"odd": 1}, [("payload", '{\n "odd": 1\n}')]),
    (None, [("payload", "null")]),
])  # fmt: skip
def test_every_kind_of_payload_says_something(payload: Any, messages: list[tuple[str, str]]) -> None:
    assert list(said(payload)) == messages
