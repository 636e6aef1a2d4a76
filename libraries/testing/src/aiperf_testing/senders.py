"""The contract of exporters that send files elsewhere: a run never suffers from a receiver."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.sdk.exporter import StudyExporter, SummaryExporter, Target
from msgspec.structs import replace

from aiperf_testing.findings import shown
from aiperf_testing.manifests import check_exporter_row, row_of
from aiperf_testing.studies import sample_study
from aiperf_testing.summaries import sample_summary


class SendingExporterContract:
    """Subclass with the class of an exporter that ``sends``, and options that name a receiver which is not there::

        class TestMineKeepsTheContract(SendingExporterContract):
            exporter = Mine
            options = MyOptions(url="http://127.0.0.1:9")
    """

    exporter: ClassVar[type[SummaryExporter]]
    options: ClassVar[Any] = None

    def test_its_manifest_says_what_it_is(self) -> None:
        check_exporter_row(self.exporter)

    def test_it_runs_behind_all_files(self) -> None:
        assert self.exporter.sends and not self.exporter.early, "set sends = True: it reads what others write"

    def test_a_receiver_that_is_absent_is_a_warning(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "profile_export_aiperf.json").write_text("{}")
        exporter = type(self).exporter(Target(tmp_path), type(self).options)
        assert exporter.wanted(), "the contract's options don't ask for it"
        with caplog.at_level(logging.WARNING):
            written = [*exporter.export(replace(sample_summary(), directory=str(tmp_path)))]
        assert caplog.messages, "it didn't say that nothing was sent: log a warning"
        assert any("profile_export_aiperf.json" in message for message in caplog.messages), (
            f"no warning names the file that was not sent: {shown(caplog.messages)}"
        )
        absent = [artifact.path.name for artifact in written if not artifact.path.exists()]
        assert not absent, f"it names {shown(absent)}, and wrote no such file"
        assert {path.name for path in tmp_path.iterdir()} <= {
            "profile_export_aiperf.json", *(artifact.path.name for artifact in written),
        }, f"it left {shown(sorted(path.name for path in tmp_path.iterdir()))}"  # fmt: skip


class SendingStudyExporterContract:
    """The same for an exporter of all runs of a study."""

    exporter: ClassVar[type[StudyExporter]]
    options: ClassVar[Any] = None

    def test_its_manifest_says_what_it_is(self) -> None:
        check_exporter_row(self.exporter)
        assert row_of("exporters", self.exporter).capabilities.get("studies") is True, "its manifest lacks studies: true"

    def test_it_runs_behind_all_files(self) -> None:
        assert self.exporter.sends, "set sends = True: it reads what others write"

    def test_a_receiver_that_is_absent_is_a_warning(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        study = sample_study(tmp_path, trials=1)
        first, *others = study.runs
        study = replace(study, runs=(replace(first, summary=None, failed="the server was not there"), *others))
        for run in study.runs:
            run.directory.mkdir(parents=True)
            (run.directory / "profile_export_aiperf.json").write_text("{}")
            (run.directory / ".aiperf_results_ready.json").write_text('{"files": ["profile_export_aiperf.json"]}')
        exporter = type(self).exporter(Target(tmp_path), type(self).options)
        assert exporter.wanted(), "the contract's options don't ask for it"
        with caplog.at_level(logging.WARNING):
            exporter.run_ended(study)
            written = [*exporter.export_study(study)]
        text = "\n".join(caplog.messages)
        unnamed = [run.label for run in others if run.label not in text and run.cell.name not in text]
        assert not unnamed, f"no warning names the run {unnamed[0]}, which was not sent: {shown(caplog.messages)}"
        absent = [artifact.path.name for artifact in written if not artifact.path.exists()]
        assert not absent, f"it names {shown(absent)}, and wrote no such file"
