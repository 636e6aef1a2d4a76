import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from aiperf import (
    Aggregation,
    AiperfError,
    Artifact,
    BatchExporter,
    Capabilities,
    ConfigError,
    Conversation,
    Definition,
    Delta,
    Endpoint,
    Finding,
    HttpRequest,
    Metric,
    Options,
    Over,
    PhasePlan,
    Readings,
    SummaryExporter,
    Turn,
    Unit,
    UsageError,
    Verdict,
    option,
)  # fmt: skip
from aiperf.registry.registry import Registry
from aiperf.rundir import journal as frames
from aiperf.rundir.journal import RunClock, load_run, save_run
from aiperf.rundir.store_writer import StoreWriter
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.descriptor import Descriptor, OptionSpec, PluginRef
from aiperf.testing import CommandContract
from aiperf_command_report import Report
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_testing.plans import sample_plan, sample_ref

ZERO, WALL = 1_000_000_000, 1_795_188_652_000_000_000
KILLED = 1
"""The exit code for a journal that is incomplete (spec: cli §7.1)."""


FILES = {"aiperf.json": "{prefix_aiperf}.json", "jsonl": "{prefix}.jsonl",
         "timeslices.json": "{prefix_aiperf}_timeslices.json"}  # fmt: skip


class Words(Endpoint):
    capabilities = Capabilities(path="/words")

    def decode(self, event):
        return Delta(text=event.decode())


class Counts(SummaryExporter):
    def export(self, summary):
        path = self.target.file("aiperf.json")
        arrivals = summary.measurement.arrivals
        path.write_text(json.dumps({"ok": arrivals.completed, "failed": arrivals.errors, "open": arrivals.unfinished}))
        return [Artifact("JSON Export", path)]


class Fails(SummaryExporter):
    def export(self, summary):
        raise RuntimeError("no")


class Outcomes(BatchExporter):
    label, kind = "Record Export", "jsonl"

    def rows(self, scored):
        return b"".join(b"%d\n" % outcome for outcome in scored.batch["outcome"].astype(int))


class Loud(SummaryExporter):
    def export(self, summary):
        print(f"verbose: {self.target.verbose}")
        return []


def ref(name: str, cls: type) -> PluginRef:
    return sample_ref("exporters", f"{__name__}:{cls.__name__}", name=name)


@pytest.fixture
def run(tmp_path) -> Path:
    """A run of three requests, killed while the last was in flight: nothing but a segment was written."""
    return make_run(tmp_path / "run", exporters=(ref("json", Counts), ref("records", Outcomes)))


def make_run(directory: Path, exporters: tuple[PluginRef, ...], level: str = "records") -> Path:
    journal = directory / "journal"
    journal.mkdir(parents=True)
    endpoint = ref("words", Words)
    plan = sample_plan(
        directory, run_id="be4a9683ef6c", phases=(PhasePlan("profiling", "profiling", 0, "burst", request_count=3, entries=1),),
        path="/words", endpoint=endpoint, journal="/elsewhere/journal", artifacts="/elsewhere", exporters=exporters,
        files=FILES, export_level=level,
    )  # fmt: skip
    save_run(journal, plan, RunClock(ZERO, WALL))
    with StoreWriter(journal) as store:
        store.add(Conversation("session_000000", (Turn(("hi",)),)), [[HttpRequest("/words", b"{}")]])
    clocks = (ZERO, WALL)
    about = {"run_id": plan.run.run_id, "shard": 0, "shards": 1, "pid": 1}
    segment = frames.pack(frames.PLAN, msgspec.msgpack.encode(about), *clocks)
    phase = {"phase": 0, "event": "begin", "at_ns": ZERO}
    segment += frames.pack(frames.PHASE, msgspec.msgpack.encode(phase), *clocks)
    sent = array("q")
    for request in range(3):
        sent.extend([request, request, 0, request, 0, 0, 0, 0, -1, ZERO + 10 + request, 0])
    segment += frames.pack(frames.SENT, sent.tobytes(), *clocks, 3, 1)
    chunk = array("q", [0, WALL + 50, ZERO + 60, 5, 0])
    segment += frames.pack(frames.CHUNKS, chunk.tobytes() + b"hello", *clocks, 1, 2)
    done = array("q", [0, frames.COMPLETED, 200, 0, *[ZERO + at for at in (11, 12, 13, 40, 60)], 2, 5, 0, 0, 0])
    done.extend([1, frames.ERROR, 500, 0, *[ZERO + at for at in (11, 12, 13, 40, 70)], 2, 0, 0, 0, 0])
    segment += frames.pack(frames.DONE, done.tobytes(), *clocks, 2, 3)
    frames.segment_path(journal, 0, 0).write_bytes(segment)
    return directory


def report(
    *words: Path | str, as_json: bool = False, output: Path | None = None, slices: float | None = None,
    others: PluginOptions | None = None, definitions: bool = False, level: str | None = None,
    percentiles: Sequence[float] = (), columns: Sequence[str] = (), verbose: bool = False, html: bool = False,
    baseline: Path | None = None,
) -> int:  # fmt: skip
    command = Report()
    command.plugin_options = others
    options = SimpleNamespace(definitions=definitions, as_json=as_json, output=output, slice_duration_s=slices)
    options.accuracy_grader, options.export_level = None, level
    options.grading_processes = options.grading_timeout_s = None
    options.percentiles, options.columns, options.verbose = percentiles, columns, verbose
    options.html, options.baseline = html, baseline
    return command.run(options, [str(word) for word in words])


def test_a_run_that_was_killed_is_reported_from_what_it_wrote(run, capsys):
    assert report(run) == KILLED
    assert json.loads((run / "profile_export_aiperf.json").read_text()) == {"ok": 1, "failed": 1, "open": 1}
    assert (run / "profile_export.jsonl").read_text().split() == ["0", "1", "4"]
    assert capsys.readouterr().out == (
        f"Record Export: {run}/profile_export.jsonl\nJSON Export: {run}/profile_export_aiperf.json\n"
    )
    assert json.loads((run / ".aiperf_results_ready.json").read_text())["partial"] is False


def test_a_second_report_gives_the_same(run):
    report(run)
    first = (run / "profile_export.jsonl").read_bytes()
    assert report(run) == KILLED
    assert (run / "profile_export.jsonl").read_bytes() == first


def test_a_quiet_run_can_be_reported_with_every_table(tmp_path, capsys):
    run = make_run(tmp_path / "run", exporters=(ref("loud", Loud),))
    assert report(run) == report(run, verbose=True) == KILLED
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("verbose")]
    assert said == ["verbose: False", "verbose: True"]


def test_results_may_go_elsewhere(run, tmp_path):
    assert report(run, output=tmp_path / "other") == KILLED
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == [
        ".aiperf_results_ready.json", "profile_export.jsonl", "profile_export_aiperf.json"
    ]  # fmt: skip
    assert not (run / "profile_export.jsonl").exists()


def test_per_request_files_of_a_run_without_them_are_made_later(tmp_path):
    run = make_run(tmp_path / "run", (ref("json", Counts), ref("records", Outcomes)), level="summary")
    assert report(run) == KILLED
    assert not (run / "profile_export.jsonl").exists()
    assert report(run, level="records") == KILLED
    assert (run / "profile_export.jsonl").read_text().split() == ["0", "1", "4"]


def test_what_a_run_did_not_keep_is_not_made_later(run):
    with pytest.raises(ConfigError, match="the run kept records, not its requests and answers"):
        report(run, level="raw")
    assert not (run / "profile_export_aiperf.json").exists()


def test_json_goes_to_standard_output_and_nothing_is_written(run, capsys):
    assert report(run, as_json=True) == KILLED
    assert json.loads(capsys.readouterr().out) == {"ok": 1, "failed": 1, "open": 1}
    assert not (run / "profile_export_aiperf.json").exists()


def test_json_without_the_json_exporter_is_refused_with_a_sentence(tmp_path):
    run = make_run(tmp_path / "run", exporters=(ref("records", Outcomes),))
    with pytest.raises(AiperfError, match="needs the json exporter"):
        report(run, as_json=True)


def test_an_output_directory_that_is_a_file_is_refused_before_anything_is_written(run, tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(AiperfError, match=r"--output: .*taken can't be the directory of the results: it is a file"):
        report(run, output=tmp_path / "taken")
    with pytest.raises(AiperfError, match=r"--output: .*below can't be the directory of the results: Not a directory"):
        report(run, output=tmp_path / "taken" / "below")
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_failing_exporter_gives_exit_code_1_and_the_others_write(tmp_path):
    run = make_run(tmp_path / "run", exporters=(ref("fails", Fails), ref("json", Counts)))
    assert report(run) == 1
    assert (run / "profile_export_aiperf.json").exists()
    assert json.loads((run / ".aiperf_results_ready.json").read_text())["partial"] is True


class Sliced(SummaryExporter):
    def export(self, summary):
        path = self.target.file("timeslices.json")
        path.write_text(json.dumps([[one.started, one.outcomes] for one in summary.slices]))
        return [Artifact("Slices", path)]


class SloOptions(Options):
    slo_ns: float = option("--slo", default=30.0, help="What is fast.")


class Fast(Metric):
    """How many ended within the SLO."""

    tag, title, unit, fold, over = "fast", "Fast", Unit.REQUESTS, Aggregation.SUM, Over.ALL

    def __init__(self, options=None) -> None:
        self.slo_ns = options.slo_ns

    def column(self, batch):
        return (batch["ended_ns"] - batch["started_ns"] <= self.slo_ns).astype(float)


class Results(SummaryExporter):
    def export(self, summary):
        path = self.target.file("aiperf.json")
        path.write_text(json.dumps({tag: result.stats for tag, result in summary.results.items()}))
        return [Artifact("JSON Export", path)]


def installed(slo_ns: float | None = None) -> PluginOptions:
    """A metric that the run did not have, installed now, and what was typed for it."""
    fast = Descriptor(
        "metrics", "fast", f"{__name__}:Fast", "new", "2", "", options_model=f"{__name__}:SloOptions",
        options=(OptionSpec("slo_ns", ("--slo",), ""),),
    )  # fmt: skip
    options = SloOptions() if slo_ns is None else SloOptions(slo_ns=slo_ns)
    return PluginOptions(Registry([fast]), {"metrics:fast": options}, {} if slo_ns is None else {"metrics:fast": ("slo_ns",)})


def test_other_slices_need_no_server(tmp_path):
    run = make_run(tmp_path / "run", exporters=(ref("sliced", Sliced),))
    assert report(run, slices=30e-9) == KILLED
    assert json.loads((run / "profile_export_aiperf_timeslices.json").read_text()) == [
        [3, {}], [0, {"completed": 1}], [0, {"failed": 1}],
    ]  # fmt: skip


@pytest.mark.parametrize(("slo_ns", "fast"), [(None, 0), (50.0, 1), (60.0, 2)])
def test_a_metric_installed_since_is_computed_with_the_options_given_now(tmp_path, slo_ns, fast):
    run = make_run(tmp_path / "run", exporters=(ref("json", Results),))
    assert report(run, others=installed(slo_ns)) == KILLED
    assert json.loads((run / "profile_export_aiperf.json").read_text()) == {"fast": {"avg": fast}}


class Stern(Verdict):
    def judge(self, evidence):
        yield Finding("stern", "suspect", f"{evidence.summary.valid} is not enough")


class Verdicts(SummaryExporter):
    def export(self, summary):
        path = self.target.file("aiperf.json")
        path.write_text(json.dumps(summary.measurement.reasons))
        return [Artifact("JSON Export", path)]


def test_a_verdict_installed_since_judges_the_run(tmp_path):
    run = make_run(tmp_path / "run", exporters=(ref("json", Verdicts),))
    stern = Descriptor("verdicts", "stern", f"{__name__}:Stern", "new", "2")
    assert report(run, others=PluginOptions(Registry([stern]), {}, {})) == KILLED
    assert json.loads((run / "profile_export_aiperf.json").read_text()) == ["1 is not enough"]


class Everything(Definition):
    title, source, differs = "everything", "here", "It counts all that ended."

    def read(self, batch):
        nothing = batch["started_ns"][:0]
        return Readings(
            nothing, nothing, nothing, len(batch), 0.0, float(np.min(batch["started_ns"], initial=np.inf)),
            float(np.max(batch["ended_ns"], initial=-np.inf)),
        )  # fmt: skip


@pytest.fixture
def defined() -> PluginOptions:
    return PluginOptions(Registry([Descriptor("definitions", "all", f"{__name__}:Everything", "new", "2")]), {}, {})


def columns_of(run: Path) -> Path:
    """The run with its columns written, and no request left open."""
    plan, clock = load_run(run / "journal")
    reducer = ShardReducer(plan.replacing(journal=str(run / "journal")), run / "journal", 0, 1, clock=clock)
    reducer.finish()
    return run


def test_a_comparison_can_be_written_to_files(run, tmp_path, defined, capsys):
    assert report(columns_of(run), definitions=True, output=tmp_path / "there", others=defined) == 0
    written = json.loads((tmp_path / "there" / "definitions.json").read_text())
    assert written["all"]["title"] == "everything"
    assert "It counts all that ended." in (tmp_path / "there" / "definitions.txt").read_text()
    assert capsys.readouterr().out.splitlines() == [
        f"Definitions: {tmp_path / 'there' / name}" for name in ("definitions.json", "definitions.txt")
    ]
    assert not (run / "definitions.json").exists()


def test_a_comparison_is_printed_as_a_table_or_as_json(run, defined, capsys):
    assert report(columns_of(run), definitions=True, others=defined) == 0
    assert capsys.readouterr().out.split()[0] == "everything"
    assert report(run, definitions=True, as_json=True, others=defined) == 0
    assert json.loads(capsys.readouterr().out)["all"]["source"] == "here"


class Nothing(Everything):
    def read(self, batch):
        raise ValueError("no idea")


def test_a_definition_that_fails_is_named_and_the_others_are_shown(run, capsys):
    values = {"all": f"{__name__}:Everything", "bad": f"{__name__}:Nothing", "gone": f"{__name__}:Absent"}
    rows = [Descriptor("definitions", name, value, "new", "2") for name, value in values.items()]
    assert report(columns_of(run), definitions=True, as_json=True, others=PluginOptions(Registry(rows), {}, {})) == 1
    said = capsys.readouterr()
    assert list(json.loads(said.out)) == ["all"]
    gone, bad = said.err.splitlines()
    assert gone.startswith("error: the plugin definitions:gone of new 2 can't be imported: AttributeError: ")
    assert bad == "error: the plugin definitions:bad of new 2 failed: ValueError: no idea"


@pytest.mark.parametrize(("options", "flag"), [
    ({"slices": 1.0}, "--slice-duration"), ({"percentiles": (50,)}, "--percentiles"), ({"columns": ("avg",)}, "--columns"),
    ({"level": "records"}, "--export-level"), ({"others": installed(50.0)}, "--slo"),
])  # fmt: skip
def test_a_comparison_refuses_what_makes_another_report(run, options, flag):
    with pytest.raises(UsageError, match=f"--definitions reads a run as it was made, and {flag} would"):
        report(run, definitions=True, **options)


class Whole(SummaryExporter):
    def export(self, summary):
        path = self.target.file("aiperf.json")
        fields = {"is_complete": summary.complete, "incomplete_reason": summary.incomplete_reason}
        path.write_text(json.dumps({**fields, "request_count": {"unit": "requests", "avg": summary.valid}}))
        return [Artifact("JSON Export", path)]


def test_a_killed_run_has_a_page_that_says_so_in_its_verdict(tmp_path, capsys):
    pytest.importorskip("aiperf_report_page")
    run = make_run(tmp_path / "run", exporters=(ref("json", Whole),))
    assert report(run, html=True, others=PluginOptions(Registry([]), {}, {})) == KILLED
    said, text = capsys.readouterr(), (run / "report.html").read_text()
    assert said.out == f"Report: {run / 'report.html'}\n" and said.err.startswith("error: results of run are partial: ")
    assert "partial: the run was cut short" in text and "these were made now, from its journal" in text
    assert not (run / "profile_export_aiperf.json").exists()


@pytest.mark.parametrize(("options", "sentence"), [
    ({"html": True, "as_json": True}, "--html writes a page, and --json print"),
    ({"html": True, "verbose": True}, "--verbose has no effect beside --html"),
    ({"html": True, "slices": 1.0}, "--html reads a run as it was made, and --slice-duration would"),
    ({"baseline": Path("x")}, "--baseline needs --html"),
])  # fmt: skip
def test_a_page_and_what_makes_none_are_told_apart(run, options, sentence):
    with pytest.raises(UsageError, match=sentence):
        report(run, **options)


def test_results_of_another_tool_are_refused_by_name(tmp_path):
    (tmp_path / "profile_export_aiperf.json").write_text('{"aiperf_version": "0.13.0"}')
    with pytest.raises(AiperfError, match="no journal to compute them from: another tool wrote them"):
        report(tmp_path)


@pytest.mark.parametrize("name", ["nothing", "file", "empty"])
def test_what_holds_no_run_gets_a_sentence_and_exit_code_1(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(AiperfError, match=name) as caught:
        report(tmp_path / name)
    assert caught.value.exit_code == 1


def test_one_of_several_that_holds_no_run_leaves_the_others_their_report(run, tmp_path, capsys):
    assert report(tmp_path, run) == 1
    assert (run / "profile_export_aiperf.json").exists()
    assert capsys.readouterr().err.startswith(f"error: {tmp_path} holds no run")


@pytest.mark.parametrize(
    ("words", "options"),
    [([], {}), (["a"], {"as_json": True, "output": Path("x")}), (["a", "b"], {"output": Path("x")})],
)
def test_what_excludes_each_other_is_refused(words, options):
    with pytest.raises(UsageError):
        report(*words, **options)


class TestReportKeepsTheContract(CommandContract):
    command = Report
