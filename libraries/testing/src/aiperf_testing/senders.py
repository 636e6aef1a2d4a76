"""The contract of exporters that send files elsewhere: a run never suffers from a receiver."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.sdk.exporter import SummaryExporter, Target
from msgspec.structs import replace

from aiperf_testing.findings import shown
from aiperf_testing.manifests import check_exporter_row
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
        assert [artifact.path.name for artifact in written if not artifact.path.exists()] == []
        assert {path.name for path in tmp_path.iterdir()} <= {
            "profile_export_aiperf.json", *(artifact.path.name for artifact in written),
        }, f"it left {shown(sorted(path.name for path in tmp_path.iterdir()))}"  # fmt: skip
