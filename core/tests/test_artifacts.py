import errno
import json
import logging
import os
import stat
import subprocess
import threading
from pathlib import Path
from typing import ClassVar

import pytest
from aiperf import (  # fmt: skip
    AiperfError,
    Artifact,
    BatchExporter,
    DatasetExporter,
    Measurement,
    PhasePlan,
    Plan,
    Summary,
    SummaryExporter,
    Target,
    atomic,
)
from aiperf.rundir import artifacts  # fmt: skip
from aiperf.rundir.journal import RunClock
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.options import EncodedOptions, Options, option
from aiperf.sdk.reducer import Reducer
from aiperf.sdk.summary import Arrivals, DeliveredLoad
from aiperf_testing.plans import sample_plan, sample_ref


class Fine(SummaryExporter):
    def export(self, summary):
        path = self.target.file("fine.txt")
        path.write_text(summary.run_id)
        return [Artifact("Fine Export", path)]


class Raises(SummaryExporter):
    def export(self, summary):
        raise ValueError("no good")


class NoSpace(SummaryExporter):
    def export(self, summary):
        raise OSError(28, "No space left on device", "/disk/file")


class Refuses(SummaryExporter):
    def export(self, summary):
        raise AiperfError("it can't be", "do that")


class Sender(SummaryExporter):
    """Sends the files that are there."""

    sends = True

    def export(self, summary: Summary) -> list[Artifact]:
        path = self.target.directory / "sent.txt"
        path.write_text(" ".join(sorted(each.name for each in self.target.directory.glob("*.txt"))))
        return [Artifact("Sent", path)]


class Unwanted(Fine):
    def wanted(self):
        return False


class Word(Options):
    word: str = option("--word", default="", help="A word.")


class Curious(SummaryExporter):
    def export(self, summary):
        self.target.file("told.txt").write_text(self.options.word)
        return []


class Rows(BatchExporter):
    label, kind = "Rows Export", "jsonl"
    files = {"jsonl": "{prefix}.jsonl"}

    def header(self):
        return b"header\n"

    def rows(self, scored):
        return b""


class Plain(Rows):
    def header(self):
        return b""


class RawRows(Rows):
    level, kind = "raw", "raw.jsonl"
    files = {"raw.jsonl": "{prefix}_raw.jsonl"}


class TwoForms(Rows):
    """A long file is of another kind."""

    files = {"jsonl": "{prefix}.jsonl", "long": "{prefix}.long"}

    def form(self, parts):
        return "long" if sum(part.stat().st_size for part in parts) > 4 else "jsonl"


class Looks(SummaryExporter):
    """Tells whether the per-request file is there."""

    def export(self, summary):
        path = self.target.file(f"{type(self).__name__}.txt")
        path.write_text(str((self.target.directory / "profile_export.jsonl").exists()))
        return [Artifact(type(self).__name__, path)]


class LooksEarly(Looks):
    early = True


class Meets(Rows):
    """Its join ends when both of two have begun."""

    kind = "a"
    files = {"a": "{prefix}.a"}
    begun: ClassVar[threading.Barrier] = threading.Barrier(2)

    def join(self, parts):
        self.begun.wait(60)
        return super().join(parts)


class MeetsToo(Meets):
    kind = "b"
    files = {"b": "{prefix}.b"}


class BrokenJoin(Rows):
    kind = "arrivals.jsonl"
    files = {"arrivals.jsonl": "{prefix}_arrivals.jsonl"}

    def join(self, parts):
        yield b"half"
        raise RuntimeError("torn")


class Asked(DatasetExporter):
    label, kind = "Asked Export", "inputs.json"
    files = {"inputs.json": "inputs.json"}


class BrokenFromBirth(SummaryExporter):
    def __init__(self, target, options=None):
        raise KeyError("missing")


def ref(name: str, module: str = __name__) -> PluginRef:
    return sample_ref("exporters", f"{module}:{name}")


def plan(directory: Path, *names: str, level: str = "records", **more) -> Plan:
    phases = (PhasePlan("warmup", "warmup", 0, "burst"), PhasePlan("load", "profiling", 1, "burst"))
    return sample_plan(
        directory,
        run_id="be4a9683ef6c",
        phases=phases,
        reducers=2,
        export_level=level,
        exporters=tuple(map(ref, names)),
        **more,
    )


def target(plan: Plan) -> Target:
    return artifacts.target_for(plan, RunClock(5, 7))


SUMMARY = Summary(
    "be4a9683ef6c", "0", {}, (), (), Measurement("kernel", True, Arrivals(), "trustworthy"), DeliveredLoad(None, None, 0), (),
    0, 1, "LLM Metrics", "", {},
)  # fmt: skip


def test_the_target_is_the_plans(tmp_path, monkeypatch):
    monkeypatch.delenv("AIPERF_UI_CONSOLE_EXPORT_WIDTH", raising=False)
    made = target(plan(tmp_path, level="raw", config={"a": 1}))
    assert (made.directory, made.level, made.width, made.started_wall_ns) == (tmp_path, "raw", 140, 7)
    assert (made.phases, made.kinds, made.config) == (("warmup", "load"), ("warmup", "profiling"), {"a": 1})


def test_the_width_of_the_copy_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("AIPERF_UI_CONSOLE_EXPORT_WIDTH", "99")
    assert target(plan(tmp_path)).width == 99


def test_exporters_are_those_of_their_kind_and_level(tmp_path):
    records = plan(tmp_path, "Fine", "Rows", "RawRows", "Asked")
    written, _ = artifacts.run_summary_exporters(SUMMARY, records, target(records))
    assert [artifact.label for artifact in written] == ["Fine Export"]
    assert [one.name for one, _ in artifacts.exporters(records, target(records), BatchExporter)] == ["rows"]
    assert [one.name for one, _ in artifacts.exporters(records, target(records), DatasetExporter)] == ["asked"]
    raw = plan(tmp_path, "Rows", "RawRows", level="raw")
    assert [one.name for one, _ in artifacts.exporters(raw, target(raw), BatchExporter)] == ["rows", "rawrows"]
    summary = plan(tmp_path, "Rows", level="summary")
    assert artifacts.exporters(summary, target(summary), BatchExporter) == []


def test_an_exporter_gets_its_own_options(tmp_path):
    asked = plan(tmp_path, "Curious", options={"exporters:curious": EncodedOptions(f"{__name__}:Word", {"word": "hello"})})
    artifacts.run_summary_exporters(SUMMARY, asked, target(asked))
    assert (tmp_path / "told.txt").read_text() == "hello"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Raises", "failed: ValueError: no good"),
        ("NoSpace", "failed: /disk/file: No space left on device"),
        ("Refuses", "failed: it can't be; do that"),
        ("BrokenFromBirth", "can't be used: KeyError: 'missing'"),
    ],
)
def test_a_failing_exporter_is_named_and_the_others_still_run(tmp_path, caplog, name, reason):
    both = plan(tmp_path, name, "Fine")
    with caplog.at_level(logging.ERROR, "aiperf"):
        written, failures = artifacts.run_summary_exporters(SUMMARY, both, target(both))
    assert [artifact.label for artifact in written] == ["Fine Export"]
    (sentence,) = failures
    assert sentence.startswith(f"the plugin exporters:{name.lower()} of acme 1.2 {reason}")
    assert caplog.messages == [sentence]


def test_an_exporter_whose_import_fails_is_one_warning_and_no_failure(tmp_path, caplog):
    both = plan(tmp_path, "NotThere", "Fine")
    with caplog.at_level(logging.WARNING, "aiperf"):
        assert artifacts.exporters(both, target(both), DatasetExporter) == []
        assert artifacts.exporters(both, target(both), BatchExporter) == []
        written, failures = artifacts.export(SUMMARY, both, tmp_path / "journal", target(both))
    assert [artifact.label for artifact in written] == ["Fine Export"]
    assert failures == []
    (sentence,) = caplog.messages
    assert sentence.startswith("the plugin exporters:notthere of acme 1.2 can't be imported: Attr")


def test_parts_are_joined_below_the_header_in_the_order_of_reducers(tmp_path):
    both = plan(tmp_path, "Rows")
    journal = Path(both.output.journal)
    journal.mkdir()
    for reducer in (10, 2, 0):
        artifacts.part_path(journal, "rows", reducer).write_bytes(b"%d\n" % reducer)
    (journal / "part-rows-draft").write_bytes(b"not a part\n")
    (journal / "part-rowsandmore-0").write_bytes(b"another's\n")
    (artifact,), _ = artifacts.export(SUMMARY, both, journal, target(both))
    assert artifact == Artifact("Rows Export", tmp_path / "profile_export.jsonl")
    assert artifact.path.read_bytes() == b"header\n0\n2\n10\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "profile_export.jsonl"]
    assert artifacts.parts(journal, "rows") == []
    assert (journal / "part-rowsandmore-0").exists()


def test_a_single_part_without_a_header_becomes_the_file(tmp_path):
    one = plan(tmp_path, "Plain")
    journal = Path(one.output.journal)
    journal.mkdir()
    part = artifacts.part_path(journal, "plain", 0)
    part.write_bytes(b"row\n")
    artifacts.part_path(journal, "plain", 1).write_bytes(b"")
    inode = part.stat().st_ino
    (artifact,), _ = artifacts.export(SUMMARY, one, journal, target(one))
    assert artifact.path.read_bytes() == b"row\n"
    assert artifact.path.stat().st_ino == inode


def test_what_needs_the_summary_alone_runs_before_the_per_request_files(tmp_path):
    both = plan(tmp_path, "Looks", "LooksEarly", "Rows")
    Path(both.output.journal).mkdir()
    written, failures = artifacts.export(SUMMARY, both, Path(both.output.journal), target(both))
    assert [artifact.label for artifact in written] == ["Rows Export", "LooksEarly", "Looks"] and failures == []
    assert [(tmp_path / f"{name}.txt").read_text() for name in ("Looks", "LooksEarly")] == ["True", "False"]


def test_large_parts_are_joined_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr(artifacts, "_LARGE_BYTES", 0)
    several = plan(tmp_path, "Meets", "BrokenJoin", "MeetsToo")
    journal = Path(several.output.journal)
    journal.mkdir()
    for name in ("meets", "meetstoo"):
        artifacts.part_path(journal, name, 0).write_bytes(name.encode())
    written, failures = artifacts.export(SUMMARY, several, journal, target(several))
    assert [artifact.path.read_bytes() for artifact in written] == [b"header\nmeets", b"header\nmeetstoo"]
    assert failures == ["the plugin exporters:brokenjoin of acme 1.2 failed: RuntimeError: torn"]


def test_a_file_in_one_form_replaces_an_earlier_one_in_another(tmp_path):
    one = plan(tmp_path, "TwoForms")
    journal = Path(one.output.journal)
    journal.mkdir()
    for rows, name in ((b"row\n", "profile_export.jsonl"), (b"long row\n", "profile_export.long")):
        artifacts.part_path(journal, "twoforms", 0).write_bytes(rows)
        (artifact,), _ = artifacts.export(SUMMARY, one, journal, target(one))
        assert artifact == Artifact("Rows Export", tmp_path / name)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", name]


def test_a_run_without_a_request_gets_an_empty_file(tmp_path):
    one = plan(tmp_path, "Plain")
    Path(one.output.journal).mkdir()
    (artifact,), _ = artifacts.export(SUMMARY, one, Path(one.output.journal), target(one))
    assert artifact.path.read_bytes() == b""


class Rowless(Reducer):
    rows = False


def test_files_of_rows_are_not_written_where_the_reducer_makes_none(tmp_path, caplog):
    one = plan(tmp_path, "Plain", "Fine", reducer=sample_ref("reducers", f"{__name__}:Rowless"))
    Path(one.output.journal).mkdir()
    written, failures = artifacts.export(SUMMARY, one, Path(one.output.journal), target(one))
    assert [artifact.label for artifact in written] == ["Fine Export"] and failures == []
    name = "profile_export.jsonl"
    assert f"reducers:rowless of acme 1.2 makes no rows of requests; not written: {name}" in caplog.text
    assert not (tmp_path / name).exists()


def test_a_file_that_fails_halfway_leaves_what_was_there_before(tmp_path):
    broken = plan(tmp_path, "BrokenJoin", "Rows")
    old = target(broken).file("arrivals.jsonl")
    old.write_text("older")
    Path(broken.output.journal).mkdir()
    written, failures = artifacts.export(SUMMARY, broken, Path(broken.output.journal), target(broken))
    assert [artifact.label for artifact in written] == ["Rows Export"]
    assert failures == ["the plugin exporters:brokenjoin of acme 1.2 failed: RuntimeError: torn"]
    assert old.read_text() == "older"


def test_a_broken_plugin_is_reported_once_by_a_whole_export(tmp_path):
    broken = plan(tmp_path, "BrokenFromBirth", "Fine")
    _, failures = artifacts.export(SUMMARY, broken, tmp_path, target(broken))
    assert len(failures) == 1


def test_a_whole_export_lists_what_was_written_before_the_load_too(tmp_path):
    whole = plan(tmp_path, "Asked", "Rows", "Fine")
    (tmp_path / "inputs.json").write_text("{}")
    (tmp_path / artifacts.READY_FILE).write_text("stale")
    Path(whole.output.journal).mkdir()
    written, failures = artifacts.export(SUMMARY, whole, Path(whole.output.journal), target(whole))
    assert [artifact.label for artifact in written] == ["Asked Export", "Rows Export", "Fine Export"]
    assert failures == []
    assert not (tmp_path / artifacts.READY_FILE).exists()


def test_the_marker_says_how_it_went_to_its_owner_alone(tmp_path):
    written = [Artifact("B", tmp_path / "b"), Artifact("A", tmp_path / "a"), Artifact("Elsewhere", tmp_path.parent / "x")]
    artifacts.mark_ready(Target(tmp_path), written, cancelled=True, partial=False)
    path = tmp_path / ".aiperf_results_ready.json"
    assert json.loads(path.read_text()) == {
        "ready": True, "was_cancelled": True, "partial": False, "files": ["a", "b"],
    }  # fmt: skip
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_footer_names_absolute_paths(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    artifacts.print_footer([Artifact("CSV Export", Path("x.csv"))], Path("logs/aiperf.log"))
    assert capsys.readouterr().out == f"CSV Export: {tmp_path}/x.csv\nLog File: {tmp_path}/logs/aiperf.log\n"


def test_a_draft_that_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    names = (f".file.{ended.pid}.draft", f".file.{os.getppid()}.draft", ".file.notes.draft", f".other.{ended.pid}.draft")
    for name in names:
        (tmp_path / name).touch()
    with atomic(tmp_path / "file") as draft:
        draft.touch()
    assert {path.name for path in tmp_path.iterdir()} == {"file", *names[1:]}


def test_a_file_replaces_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no file, but a device or a pipe"), atomic(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()


def test_a_block_that_fails_leaves_no_draft(tmp_path):
    with pytest.raises(OSError, match="No space left") as full, atomic(tmp_path / "file"):
        raise OSError(errno.ENOSPC, "No space left on device")  # of a write, which names no file
    assert full.value.filename == str(tmp_path / "file")
    with pytest.raises(RuntimeError), atomic(tmp_path / "deep" / "file") as draft:
        draft.write_text("half")
        raise RuntimeError
    assert list((tmp_path / "deep").iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "plain", "prefixed"),
    [
        ("aiperf.json", "profile_export_aiperf.json", "mine.json"),
        ("aiperf.csv", "profile_export_aiperf.csv", "mine.csv"),
        ("jsonl", "profile_export.jsonl", "mine.jsonl"),
        ("arrivals.jsonl", "profile_export_arrivals.jsonl", "mine_arrivals.jsonl"),
        ("console.txt", "profile_export_console.txt", "mine_console.txt"),
        ("inputs.json", "inputs.json", "inputs.json"),
        ("ledger.txt", "ledger.txt", "mine_ledger.txt"),
    ],
)
def test_files_have_the_names_their_exporters_declare(kind, plain, prefixed):
    files = {
        "aiperf.json": "{prefix_aiperf}.json",
        "aiperf.csv": "{prefix_aiperf}.csv",
        "jsonl": "{prefix}.jsonl",
        "arrivals.jsonl": "{prefix}_arrivals.jsonl",
        "console.txt": "{prefix}_console.txt",
        "inputs.json": "inputs.json",
    }
    assert Target(Path(), files=files).file(kind).name == plain
    assert Target(Path(), prefix="mine", files=files).file(kind).name == prefixed


def test_an_exporter_that_the_run_did_not_ask_for_writes_nothing(tmp_path):
    whole = plan(tmp_path, "Unwanted", "Fine")
    written, failures = artifacts.run_summary_exporters(SUMMARY, whole, target(whole))
    assert [artifact.label for artifact in written] == ["Fine Export"]
    assert failures == []


def test_a_sender_runs_behind_all_files_and_not_in_a_report(tmp_path):
    both = plan(tmp_path, "Sender", "Fine")
    exporting = artifacts.Export(SUMMARY, both, tmp_path, target(both))
    exporting.begin()
    exporting.complete()
    (tmp_path / "hook.txt").touch()
    assert [artifact.label for artifact in exporting.written] == ["Fine Export"]
    exporting.send()
    assert [artifact.label for artifact in exporting.written] == ["Fine Export", "Sent"]
    assert "hook.txt" in (tmp_path / "sent.txt").read_text()
    written, failures = artifacts.export(SUMMARY, both, tmp_path, target(both))
    assert ([artifact.label for artifact in written], failures) == (["Fine Export"], [])
