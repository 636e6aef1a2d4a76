"""Which data set a run has: named, recognised from the file, or synthetic."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from aiperf.errors import AiperfError
from aiperf.registry.manifest import ManifestError, read_row
from msgspec.structs import replace
from test_load_options import folder, plan, refusals, row

__all__ = ["folder"]  # the fixture: a directory with trace.jsonl, whose rows have times
LOAD = "--request-count 2"
LOOKS_AWAY = replace(row("hooks", "looks", "dataset_fakes:LooksAway"), priority=1)
"""In place of the hook that looks at files."""


def test_without_a_file_it_is_synthetic() -> None:
    assert (plan(LOAD).plugins.dataset.name, plan(LOAD).data.source) == ("synthetic", None)


def test_a_file_is_given_to_the_one_format_that_knows_it(tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text('\n{"turns": [{"text": "a"}]}\n')
    found = plan(f"--input-file chats.jsonl {LOAD}")
    assert (found.plugins.dataset.name, found.data.source) == ("turns", str(tmp_path / "chats.jsonl"))


def test_a_format_whose_rows_all_have_times_needs_no_timestamp(tmp_path: Path) -> None:
    timed = row("datasets", "timed", "dataset_fakes:Anything", reads=True, trace=True, timed=True, endings=[".table", "/"])
    (tmp_path / "x.table").write_text("a;b")
    for name in ("x.table", "."):
        assert plan(f"--input-file {name} --custom-dataset-type timed", timed).load.phases[-1].schedule == "fixed_schedule"


def test_a_refused_file_is_named_with_its_option(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text('{"question": "?"}\n')
    (said,) = refusals(f"--input-file none.jsonl {LOAD}")
    assert said == "--input-file: nothing knows none.jsonl\n  name it with --custom-dataset-type"


def test_what_is_seen_of_a_file_is_logged_where_the_run_starts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert plan(f"--input-file trace.jsonl {LOAD}").plugins.dataset.name == "trace"
    said = [(record.levelname, record.message) for record in caplog.records]
    assert said[:2] == [("WARNING", "trace.jsonl was seen in a hurry"), ("INFO", "trace.jsonl is read as trace")]


def test_without_a_package_that_looks_at_files_the_format_is_named(tmp_path: Path) -> None:
    (said,) = refusals(f"--input-file trace.jsonl {LOAD}", LOOKS_AWAY)
    assert "--input-file: no installed package recognises the format of trace.jsonl" in said
    assert "pip install aiperf-suite" in said
    assert "or name the format with --custom-dataset-type" in said
    named = "--input-file trace.jsonl --custom-dataset-type"
    assert plan(f"{named} trace", LOOKS_AWAY).load.phases[-1].schedule == "fixed_schedule", "it may have times"
    assert plan(f"{named} trace --fixed-schedule", LOOKS_AWAY).load.phases[-1].schedule == "fixed_schedule"
    assert plan(f"{named} turns {LOAD}", LOOKS_AWAY).load.phases[-1].schedule == "burst"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"turns": []}\n')
    (tmp_path / "mine.jsonl").chmod(0)
    (said,) = refusals(f"--input-file mine.jsonl {LOAD}")
    assert "permission denied" in said


@pytest.mark.parametrize(("line", "words"), [
    ("--input-file gone.jsonl", ["--input-file", "gone.jsonl"]),
    ("--input-file empty.jsonl", ["--input-file", "empty"]),
    ("--custom-dataset-type trace", ["--custom-dataset-type trace", "--input-file"]),
    ("--custom-dataset-type synthetic --input-file trace.jsonl", ["synthetic", "reads no file"]),
    ("--custom-dataset-type tracee --input-file trace.jsonl", ["tracee", "trace"]),
])  # fmt: skip
def test_what_cannot_be_a_source_is_refused(tmp_path: Path, line: str, words: list[str]) -> None:
    (tmp_path / "empty.jsonl").touch()
    (said,) = refusals(f"{line} {LOAD}")
    assert all(word in said for word in words), said


def test_a_named_trace_is_replayed_unless_replay_is_off() -> None:
    named = "--input-file trace.jsonl --custom-dataset-type trace"
    assert plan(named).load.phases[-1].schedule == "fixed_schedule"
    assert plan(f"{named} --no-fixed-schedule --request-rate 5 --request-count 2").load.phases[-1].schedule == "request_rate"
    assert plan("--input-file trace.jsonl --request-count 2").load.phases[-1].schedule == "burst", "it was only recognised"


def test_a_replayed_trace_and_a_rate_exclude_each_other() -> None:
    (said,) = refusals("--input-file trace.jsonl --custom-dataset-type trace --request-rate 5 --request-count 2")
    assert "--request-rate" in said
    assert "--no-fixed-schedule" in said


def test_a_fixed_schedule_needs_recorded_times(tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text('{"turns": [{"text": "a"}]}\n')
    (said,) = refusals("--input-file chats.jsonl --fixed-schedule")
    assert "'timestamp'" in said
    assert "chats.jsonl" in said
    (tmp_path / "chats.jsonl").write_text('{"turns": [{"text": "a", "timestamp": 0}]}\n')
    assert (
        plan("--input-file chats.jsonl --custom-dataset-type turns --fixed-schedule").load.phases[-1].schedule
        == "fixed_schedule"
    )


def test_a_word_before_the_file_chooses_its_format(tmp_path: Path) -> None:
    old = row("datasets", "old", "no_such_module:Format", reads=True, prefixes=["load"])
    (tmp_path / "x.jsonl").write_text('{"turns": []}\n')
    found = plan(f"--input-file load:x.jsonl {LOAD}", old)
    assert (found.plugins.dataset.name, found.data.source) == ("old", str(tmp_path / "x.jsonl"))
    made = row("datasets", "made", prefixes=["make"])
    found = plan(f"--input-file make:a,b {LOAD}", made)
    assert (found.plugins.dataset.name, found.data.source, found.data.name) == ("made", None, "a,b")
    (said,) = refusals(f"--input-file load:gone.jsonl {LOAD}", old)
    assert "there is no file gone.jsonl" in said
    assert "both choose a data set" in "".join(refusals(f"--input-file load:x.jsonl --custom-dataset-type turns {LOAD}", old))
    (tmp_path / "load:x.jsonl").write_text('{"turns": [{"text": "a"}]}\n')
    assert plan(f"--input-file load:x.jsonl {LOAD}", old).plugins.dataset.name == "turns", "the name of a file wins"


def test_a_url_is_read_from_its_local_copy(tmp_path: Path) -> None:
    copies = row("hooks", "copies", "dataset_fakes:Copies")
    (tmp_path / "copy.jsonl").write_text('{"turns": [{"text": "a"}]}\n')
    found = plan(f"--input-file far://bucket/x.jsonl {LOAD}", copies)
    assert (found.plugins.dataset.name, found.data.source) == ("turns", str(tmp_path / "copy.jsonl"))
    assert refusals(f"--input-file far://gone.jsonl {LOAD}", copies) == ["--input-file: there is no file far://gone.jsonl"]
    for more in ((), (copies,)):
        (said,) = refusals(f"--input-file other://x.jsonl {LOAD}", *more)
        assert "no installed package reads files of other://" in said
        assert "pip install aiperf-suite" in said
    (tmp_path / "far:").mkdir()
    (tmp_path / "far:" / "x.jsonl").write_text('{"turns": [{"text": "a"}]}\n')
    assert plan(f"--input-file far:/x.jsonl {LOAD}").data.source == str(tmp_path / "far:" / "x.jsonl"), "a file wins"


def test_a_format_may_have_further_names(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"question": 1}\n')
    bench = row("datasets", "bench", "dataset_fakes:Anything", reads=True, keys=["question"],
                names={"bench_math": {"of": "math"}})  # fmt: skip
    found = plan(f"--input-file x.jsonl --custom-dataset-type bench-math {LOAD}", bench)
    assert (found.plugins.dataset.name, found.data.name, found.data.row) == ("bench", "bench_math", {"of": "math"})
    found = plan(f"--input-file x.jsonl {LOAD}", bench)
    assert (found.plugins.dataset.name, found.data.name, found.data.row) == ("bench", "", {})
    assert "--custom-dataset-type" in refusals(f"--custom-dataset-type bench_math {LOAD}", bench)[0]


HOUSES = {"selected_by": "public", "names": {"mm-star": {"rows": 90}, "mm_vu": {"rows": 7}}}


def test_a_public_data_set_is_chosen_by_any_of_its_names() -> None:
    found = plan(f"--public-dataset MM_Star {LOAD}", row("datasets", "pictures", **HOUSES))
    assert (found.plugins.dataset.name, found.data.name, found.data.row) == ("pictures", "mm_star", {"rows": 90})
    found = plan(f"--accuracy-benchmark aime {LOAD}", row("datasets", "aime", selected_by="benchmark"))
    assert (found.plugins.dataset.name, found.data.name, found.data.row) == ("aime", "aime", {})


def test_a_public_data_set_may_have_a_local_copy() -> None:
    found = plan(f"--public-dataset mm_vu --input-file trace.jsonl {LOAD}", row("datasets", "pictures", reads=True, **HOUSES))
    assert (found.plugins.dataset.name, Path(found.data.source or "").name) == ("pictures", "trace.jsonl")


def test_a_name_may_say_that_its_rows_have_times(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"spans": []}\n')
    shows = row("datasets", "shows", reads=True, selected_by="public", names={"live": {"timed": True}, "still": {}})
    found = plan("--public-dataset live --input-file rows.jsonl --fixed-schedule", shows)
    assert found.load.phases[-1].schedule == "fixed_schedule"
    assert plan("--public-dataset live --fixed-schedule", shows).load.phases[-1].schedule == "fixed_schedule"
    (said,) = refusals("--public-dataset still --input-file rows.jsonl --fixed-schedule", shows)
    assert "needs recorded times" in said
    (said,) = refusals("--public-dataset still --fixed-schedule", shows)
    assert "--fixed-schedule needs recorded times, and the data set still has none" in said


def test_a_benchmark_is_used_once_and_refuses_a_fixed_schedule() -> None:
    exam = row("datasets", "exam", selected_by="benchmark")
    found = plan("--accuracy-benchmark exam --user-centric-rate 2 --num-users 3", exam)
    assert found.data.once and found.load.phases[-1].session_count is None
    said, *_ = refusals("--accuracy-benchmark exam --fixed-schedule", exam)
    assert "--fixed-schedule needs recorded times, and the data set exam has none" in said


def test_entries_that_are_used_once_need_no_count_and_no_repeating_order() -> None:
    exam = row("datasets", "exam", selected_by="benchmark", once=True)
    found = plan("--accuracy-benchmark exam --warmup-request-count 7 --num-dataset-entries 20", exam)
    assert (found.data.once, found.data.entries, found.data.first) == (True, 20, 20)
    assert (found.load.phases[-1].request_count, found.load.phases[-1].session_count) == (None, None)
    assert plan("--accuracy-benchmark exam --request-count 5", exam).load.phases[-1].request_count == 5
    backwards, dice = row("samplers", "backwards"), row("samplers", "dice", repeats=True)
    assert plan("--accuracy-benchmark exam --dataset-sampling-strategy backwards", exam, backwards).data.sampling == "backwards"
    with pytest.raises(AiperfError) as caught:
        plan("--accuracy-benchmark exam --dataset-sampling-strategy dice", exam, dice)
    assert "--dataset-sampling-strategy dice repeats entries" in str(caught.value.errors[0].message)


@pytest.mark.parametrize(("line", "words"), [
    ("--public-dataset mmstar", ["'mmstar'", "installed: mm_star, mm_vu", "did you mean 'mm_star'"]),
    ("--accuracy-benchmark mm_vu", ["--accuracy-benchmark", "'mm_vu'", "installed: none"]),
    ("--public-dataset mm_vu --custom-dataset-type trace --input-file trace.jsonl", ["exclude each other"]),
    ("--public-dataset mm_vu --input-file trace.jsonl", ["--public-dataset mm_vu has data of its own"]),
    ("--custom-dataset-type pictures", ["chosen by --public-dataset", "mm-star, mm_vu"]),
])  # fmt: skip
def test_a_wrong_name_or_option_of_a_public_data_set_is_refused(line: str, words: list[str]) -> None:
    with pytest.raises(AiperfError) as caught:
        plan(f"{line} {LOAD}", row("datasets", "pictures", **HOUSES))
    said = "\n".join(text for error in getattr(caught.value, "errors", [caught.value]) for text in error.lines())
    assert all(word in said for word in words), said


def test_two_packages_with_one_name_are_told_apart() -> None:
    with pytest.raises(AiperfError) as caught:
        plan(f"--public-dataset mm_vu {LOAD}", row("datasets", "pictures", **HOUSES), row("datasets", "films", **HOUSES))
    assert "--disable-plugin datasets:films or --disable-plugin datasets:pictures" in str(caught.value.errors[0].hints)


@pytest.mark.parametrize(("capabilities", "words"), [
    ({"selected_by": "name"}, "selected_by"), ({"keys": [["a", 1]]}, "Expected `str`, got `int`"),
    ({"selected_by": "public", "names": {"a-b": {}, "A_b": {}}}, "names has one twice"),
])  # fmt: skip
def test_a_wrong_manifest_is_refused(capabilities: dict[str, object], words: str) -> None:
    with pytest.raises(ManifestError, match=words):
        read_row({"category": "datasets", "name": "x", "capabilities": capabilities})
