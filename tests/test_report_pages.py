"""Pages of ``aiperf report --html`` of the reference's directories, with the installed plots, and of a study."""

from __future__ import annotations

import json
import re
import tarfile
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from aiperf.registry.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf.testing import sample_runs
from aiperf_report_page import PageRequest, write_page
from aiperf_results import metrics_of

ROWS = re.compile(r"<tr>(.*?)</tr>")
CELLS = re.compile(r"<t[dh][^>]*>(.*?)</t[dh]>")


class Unpainted:
    """In the place of the extra ``plots``."""

    Size = staticmethod(lambda width, height: None)

    def picture(self, figure: Any, path: Path, *, theme: str, size: Any) -> Path:
        path.write_bytes(b"")
        return path


def page_of(*directories: Path) -> str:
    """The page, which lacks nothing."""
    options = PluginOptions(Registry.discover(), {}, {})
    path = directories[0].parent / "page.html"
    made = write_page(PageRequest(directories, options, lambda place: {}, "1", None, path, Unpainted()))
    assert made.failures == ()
    return made.path.read_text()


def rows_of(text: str) -> list[list[str]]:
    return [[unescape(re.sub("<.*?>", "", cell)) for cell in CELLS.findall(row)] for row in ROWS.findall(text)]


@pytest.mark.parametrize("version", ["0.7.0", "0.13.0"])
def test_runs_of_the_reference_stand_side_by_side(tmp_path: Path, version: str) -> None:
    with tarfile.open(Path(__file__).parent / "reference" / f"runs-{version}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    runs = [tmp_path / version / name for name in ("c2", "c4", "c8")]
    text = page_of(*runs)
    rows = rows_of(text)
    head = next(row for row in rows if row[:3] == ["metric", "statistic", "unit"])
    assert head[3:] == ["c2 (baseline)", "c4", "c8"]
    shown = [row for row in rows if len(row) == 6 and row[1] in ("avg", "p50", "p99", "std", "count")]
    summaries = [json.loads((run / "profile_export_aiperf.json").read_text()) for run in runs]
    known = [metrics_of(summary) for summary in summaries]
    wanted = sorted(
        known[0][tag][statistic] for tag in known[0] for statistic in ("avg", "p50", "p99", "std", "count")
        if known[0][tag].get(statistic) is not None
    )  # fmt: skip
    found = sorted(float(row[3].replace(",", "")) for row in shown if row[3] != "–")
    assert found == pytest.approx(wanted, rel=1e-5)
    assert text.count('class="panel figure"') >= 8
    assert "NVIDIA H100" in text and "no verdict" in text
    (cancelled,) = [row for row in rows if row[0] == "RequestCancellationError"]
    assert cancelled[4:] == ["0", str(sum(each["count"] for each in summaries[1]["error_summary"])), "0"]


def test_a_study_is_its_cells_with_means_of_repeats(tmp_path: Path) -> None:
    for run, trial in zip(sample_runs(tmp_path, 2), ("trial_0001", "trial_0002"), strict=True):
        place = tmp_path / "study" / "profile_runs" / trial
        place.parent.mkdir(parents=True, exist_ok=True)
        run.directory.rename(place)
        (place / "run_config.json").write_text("{}")
    text = page_of(tmp_path / "study")
    assert "numbers of metrics are means of 2 repeats" in text
    (row,) = [row for row in rows_of(text) if row[0] == "Requests per second"]
    assert row[2] == "3.75"  # of 2.5 and 5
