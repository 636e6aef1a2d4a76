"""The page of ``aiperf report --html``: what it shows, what it never shows, and which file it writes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf import AiperfError, Axis, Figure, Plot, PlotRun, PlotSeries, UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.descriptor import Descriptor
from aiperf.testing import sample_runs
from aiperf_report_page import PageRequest, write_page
from aiperf_report_page.conditions import command
from aiperf_report_page.markup import change, number
from aiperf_report_page.opening import ReportedRun

CANARY = "<script>window.canary=1</script><img src=x onerror=\"window.canary=1\">'\"&</script><!--"
SECRET = "sk-0123456789abcdefSECRET"
STATISTICS = ("avg", "p50", "p90", "p99", "min", "max", "std")


class Latencies(Plot):
    title = f"Latency {CANARY}"
    columns = ("request_latency",)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        drawn = [(run.label, run.column("request_latency")) for run in runs]
        series = tuple(PlotSeries(f"{name} {CANARY}", np.arange(len(y)) / 3, y, "points") for name, y in drawn if len(y))
        return Figure(self.title, Axis("time (s)"), Axis(f"latency {CANARY} (ms)"), series) if series else None


class Torn(Plot):
    title = "Torn"

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        raise ValueError(f"no ink, api_key={SECRET}")


def offered(*plots: type[Plot]) -> PluginOptions:
    rows = [Descriptor("plots", each.__name__.lower(), f"{__name__}:{each.__name__}", "acme-plots", "2.0") for each in plots]
    registry = Registry(rows, kernel_options=())
    registry.load = lambda category, name: {each.__name__.lower(): each for each in plots}[name]  # type: ignore[method-assign]
    return PluginOptions(registry, {}, {})


class NoPictures:
    """Stands for the extra ``plots``, which makes a page slowly."""

    Size = staticmethod(lambda width, height: (width, height))

    def picture(self, figure: Figure, path: Path, *, theme: str, size: Any) -> Path:
        path.write_bytes(b"\x89PNG drawn")
        return path


def written(
    *paths: Path, baseline: Path | None = None, output: Path | None = None, plots: Sequence[type[Plot]] = (Latencies,)
) -> Any:  # fmt: skip
    def summarise(directory: Path) -> dict[str, Any]:
        raise AssertionError(f"{directory} has a summary")

    request = PageRequest(paths, offered(*plots), summarise, "9.9", baseline, output, NoPictures())
    return write_page(request)


class Elements(HTMLParser):
    """Names and attributes of a page's elements, its texts, and the rows of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: list[list[str]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        self._in = tag
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            about, text = self.scripts[-1]
            self.scripts[-1] = about, text + data
        elif self._in in ("td", "th", "small") and self.rows:
            self.rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._in = ""


def change_summary(directory: Path, **fields: Any) -> Path:
    path = directory / "profile_export_aiperf.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return directory


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [run.directory for run in sample_runs(tmp_path, 3, everything=True)]


def test_every_metric_stands_with_every_statistic(runs: list[Path]) -> None:
    text = written(runs[0]).path.read_text()
    rows = {row[0]: row for row in Elements(text).rows if row}
    head = next(row for row in Elements(text).rows if row[:2] == ["metric", "unit"] and "p90" in row and "count" in row)
    summary = json.loads((runs[0] / "profile_export_aiperf.json").read_text())
    for tag, name in (("time_to_first_token", "Time to first token"), ("effective_concurrency", "Requests in flight")):
        shown = dict(zip(head, rows[name], strict=True))
        for statistic in ("p50", "p90", "p99", "min", "max", "std", "count", "avg"):
            assert float(shown[statistic].replace(",", "")) == pytest.approx(summary[tag][statistic], rel=1e-5)


def test_sections_come_in_order_and_failures_have_their_text(runs: list[Path]) -> None:
    errors = [{"error_details": {"type": "Timeout", "code": 408, "message": f"slow {at}"}, "count": 2} for at in range(2)]
    measured = {"verdict": "suspect", "reasons": ["the loop lagged"], "clock": "kernel"}
    change_summary(runs[0], error_summary=errors, measurement=measured)
    text = written(runs[0]).path.read_text()
    names = re.findall(r'<section class="panel" id="([\w-]+)"', text)
    assert names[:4] == ["verdict", "key-numbers", "workload", "figures-of-runs"]
    assert {"metrics", "failures", "measurement", "phases", "telemetry", "settings"} <= set(names)
    assert text.index("suspect") < text.index("the loop lagged") < text.index("Key numbers</h2>")
    assert ["Timeout", "408", "slow 0", "2", "4"] in Elements(text).rows


def test_the_policy_lets_one_style_and_one_script_run(runs: list[Path]) -> None:
    text = written(*runs).path.read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    found = Elements(text)
    running = [body for about, body in found.scripts if about.get("type") is None]
    assert policy is not None and len(running) == 1 and found.names.count("style") == 1
    style = text[text.index("<style>") + 7 : text.index("</style>")]
    for body in (running[0], style):
        assert base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() in policy[1]
    assert "default-src 'none'" in policy[1] and "unsafe" not in policy[1]
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "style"]
    assert not re.search(r'(?:src|href|action)="(?!#|data:)', text)


def test_texts_of_others_are_shown_as_texts(runs: list[Path]) -> None:
    wild = {
        "models": {"items": [{"name": CANARY}]}, "endpoint": {"type": CANARY, CANARY: CANARY},
        "phases": [{"kind": "profiling", "concurrency": 1}],
    }  # fmt: skip
    plain = Elements(written(*runs).path.read_text())
    for run in runs:
        change_summary(
            run, input_config=wild, run_info={"cli_command": f"aiperf {CANARY}"}, warnings=[CANARY], outcomes={CANARY: 3},
            error_summary=[{"error_details": {"type": CANARY, "message": CANARY}, "count": 1}],
            measurement={"verdict": CANARY, "reasons": [CANARY], "notes": [CANARY]}, a_fact={CANARY: [CANARY]},
            phases=[{"name": CANARY}], urls=[{"url": CANARY}], t=[{CANARY: CANARY}],
            groups=[{"text": CANARY, "key": CANARY, "metrics": {CANARY: {"unit": CANARY, "avg": 1}}}],
            tables={"t": {"title": CANARY, "columns": [{"name": CANARY}], "notes": [CANARY]}},
        )  # fmt: skip
    odd = runs[0].rename(runs[0].parent / "<b>r'un\u202e&")
    text = written(odd, *runs[1:]).path.read_text()
    found = Elements(text)
    assert set(found.names) - set(plain.names) <= {"pre", "ul", "li"}
    assert sum(about.get("type") is None for about, _ in found.scripts) == 1 and "\u202e" not in text
    assert text.count("<img") == text.count("data:image/png") == 1
    island = next(body for about, body in found.scripts if about.get("type") == "application/json")
    assert json.loads(island)["title"] == Latencies.title and "<" not in island


def test_keys_and_values_of_headers_are_nowhere(runs: list[Path]) -> None:
    config = {
        "endpoint": {
            "api_key": SECRET, "headers": {"X-Tenant": SECRET, "Authorization": f"Bearer {SECRET}"},
            "urls": [f"http://me:{SECRET}@127.0.0.1/?api_key={SECRET}"],
        },
        "input": {"headers": [["X-Key", SECRET], f"X-Other:{SECRET}"]},
    }  # fmt: skip
    line = f"aiperf profile -m m --api-key {SECRET} --header 'X-A: {SECRET}' 'X-B:{SECRET}' -H=X-C:{SECRET} --streaming"
    used = [{"category": "exporters", "name": "up", "options": {"secret_key": SECRET}}]
    for run in runs:
        change_summary(
            run, input_config=config, run_info={"cli_command": line}, plugins={"used": used},
            error_summary=[{"error_details": {"message": f"refused: api_key={SECRET}"}, "count": 1}],
        )  # fmt: skip
    text = written(*runs, plots=(Latencies, Torn)).path.read_text()
    assert SECRET not in text and "--streaming" in text and "X-Tenant" in text


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("aiperf profile -m 'a b' --streaming", "aiperf profile -m 'a b' --streaming"),
        ("aiperf profile --api-key abc -m x", "aiperf profile --api-key <redacted> -m x"),
        ("aiperf profile --api-key 'abc", "(not shown: it has a key, and can't be parsed)"),
        ("aiperf profile --header A:b C:d -m x", "aiperf profile --header <redacted> <redacted> -m x"),
    ],
)
def test_a_command_is_shown_without_its_keys(line: str, shown: str) -> None:
    assert command(ReportedRun(PlotRun("r", {"run_info": {"cli_command": line}}))) == shown


def test_several_runs_have_differences_to_the_baseline(runs: list[Path]) -> None:
    rows = Elements(written(*runs).path.read_text()).rows
    assert ["Requests per second", "requests/sec", "2.5", "5 +100.0 %", "10 +300.0 %"] in rows
    assert ["Requests per second", "avg", "requests/sec", "2.5", "5 +100.0 %", "10 +300.0 %"] in rows
    text = written(*runs, baseline=runs[1]).path.read_text()
    assert ["Requests per second", "requests/sec", "5", "2.5 -50.0 %", "10 +100.0 %"] in Elements(text).rows
    assert "run1 (baseline)" in text and "does not say whether they are larger than chance" in text


def test_conditions_that_differ_are_warned_of(runs: list[Path]) -> None:
    change_summary(
        runs[1], aiperf_version="0.13.0", run_info={"random_seed": 7},
        input_config={"models": {"items": [{"name": "other"}]}, "tokenizer": {"name": "t2"}, "datasets": [{"type": "d2"}]},
    )  # fmt: skip
    change_summary(
        runs[0], aiperf_version="0.12.0", run_info={"random_seed": 8},
        input_config={"models": {"items": [{"name": "one"}]}, "tokenizer": {"name": "t1"}, "datasets": [{"type": "d1"}]},
    )  # fmt: skip
    text = written(*runs[:2]).path.read_text()
    for name in ("model", "data set", "tokenizer", "seed", "version"):
        assert f"the {name} differs: run0 has " in text
    alike = written(runs[2], runs[2]).path.read_text()
    assert "differs" not in alike


def test_a_figure_has_the_numbers_of_its_series(runs: list[Path]) -> None:
    found = Elements(written(runs[0]).path.read_text())
    (series,) = json.loads(next(body for about, body in found.scripts if about.get("type") == "application/json"))["series"]
    lines = [json.loads(line) for line in (runs[0] / "profile_export.jsonl").read_text().splitlines()]
    values = sorted(line["metrics"]["request_latency"]["value"] for line in lines if line["error"] is None)
    assert np.allclose(sorted(series["y"]), values, rtol=1e-6)


def test_a_plot_that_fails_is_named_and_the_others_are_drawn(runs: list[Path]) -> None:
    made = written(runs[0], plots=(Torn, Latencies))
    assert len(made.failures) == 1 and made.failures[0].startswith("the plot torn of acme-plots 2.0 failed: ValueError: no ink")
    text = made.path.read_text()
    assert "no ink" in text and 'id="figure-latencies"' in text


def test_one_broken_run_leaves_the_others_their_page(runs: list[Path]) -> None:
    (runs[1] / "profile_export_aiperf.json").write_text("{")
    made = written(*runs, runs[0] / "absent")
    assert len(made.failures) == 2 and "run2" in made.path.read_text()
    assert "can't be read" in made.failures[0] and "absent is not there" in made.failures[1]


def test_a_section_of_another_form_is_named_and_the_others_are_made(runs: list[Path]) -> None:
    change_summary(runs[0], tables={"t": {"title": "T", "columns": 5}}, measurement={"verdict": "trustworthy"})
    made = written(runs[0])
    assert len(made.failures) == 1 and made.failures[0].startswith("the section Tables and groups can't be made: ")
    text = made.path.read_text()
    assert "the section Tables and groups can&#x27;t be made" in text and 'id="settings"' in text and "trustworthy" in text


def test_a_number_beyond_all_floats_costs_its_section_alone(runs: list[Path]) -> None:
    change_summary(runs[0], outcomes={"completed": 10**400}, telemetry=[{"source": "s", "targets": [{"begun_ns": 10**40}]}])
    made = written(runs[0])
    assert [failure.partition(" can't")[0] for failure in made.failures] == ["the section Failures", "the section Telemetry"]
    assert 'id="settings"' in made.path.read_text()


def test_what_was_cut_short_says_so_in_its_verdict(runs: list[Path]) -> None:
    change_summary(runs[0], is_complete=False, incomplete_reason="the disk was full")
    made = written(*runs)
    assert made.failures == ("results of run0 are partial: the disk was full",)
    text = made.path.read_text()
    assert text.index("partial: the run was cut short") < text.index("the disk was full") < text.index("Key numbers</h2>")
    change_summary(runs[0], was_cancelled=True)
    assert written(runs[0]).failures == ()


def test_what_holds_no_run_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "profile_export_aiperf_aggregate.json").write_text("{}")
    with pytest.raises(AiperfError, match="holds the aggregate of several runs, and no run"):
        written(tmp_path)
    with pytest.raises(AiperfError, match="none of the directories can be reported"):
        written(tmp_path / "a", tmp_path / "b")


def test_more_runs_than_a_table_has_columns_are_refused(tmp_path: Path) -> None:
    sample_runs(tmp_path, 1)
    for at in range(20):
        (tmp_path / f"more{at}").mkdir()
        (tmp_path / f"more{at}" / "profile_export_aiperf.json").write_text('{"request_count": {"unit": "requests", "avg": 1}}')
    with pytest.raises(AiperfError, match="20 runs side by side at most, and 21 are given"):
        written(tmp_path)


def test_a_page_is_replaced_and_any_other_file_is_not(runs: list[Path]) -> None:
    path = written(runs[0]).path
    assert path == runs[0] / "report.html" and written(runs[0]).path == path
    path.write_text("my notes")
    with pytest.raises(AiperfError, match="is there already, and is no report of aiperf"):
        written(runs[0])
    assert path.read_text() == "my notes"
    with pytest.raises(AiperfError, match="with --html it names the file"):
        written(runs[0], output=runs[1])
    with pytest.raises(AiperfError, match="can't be written"):
        written(runs[0], output=path / "below.html")


def test_the_same_runs_make_the_same_page(runs: list[Path]) -> None:
    first = written(*runs).path.read_bytes()
    assert written(*runs).path.read_bytes() == first


def test_a_baseline_is_one_run(runs: list[Path]) -> None:
    with pytest.raises(UsageError, match=r"--baseline: .* has 3 runs, and a baseline is one run"):
        written(*runs, baseline=runs[0].parent)
    text = written(runs[0], baseline=runs[2]).path.read_text()
    assert "run2 (baseline)" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (None, "–"), (float("nan"), "–"), (1234567.0, "1,234,567"), (1234.5678, "1,234.57"),
     (0.00123456789, "0.00123457"), (-2.5, "-2.5"), (1.5e12 + 0.5, "1.50000e+12"), (1e-7, "1.00000e-07")],
)  # fmt: skip
def test_numbers_have_six_digits(value: float | None, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "base", "shown"),
    [(110.0, 100.0, "+10.0 %"), (50.0, 100.0, "-50.0 %"), (1.0, 0.0, ""), (None, 1.0, ""), (1.0, None, ""),
     (-1.0, -2.0, "+50.0 %"), (1e9, 1e-3, "× 1,000,000,000,000"), (float("inf"), 1.0, "")],
)  # fmt: skip
def test_differences_are_in_percent(value: float | None, base: float | None, shown: str) -> None:
    assert change(value, base) == shown
