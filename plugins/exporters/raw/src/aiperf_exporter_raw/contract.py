"""What the exporter is tried with: a run of one request.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import msgspec
from aiperf import Target
from aiperf.parts.journal import request_id
from aiperf.testing import Recording, SummaryExporterContract

from aiperf_exporter_raw import RawRecords


class RawContract(SummaryExporterContract):
    exporter = RawRecords

    def target(self, directory: Path) -> Target:
        return Target(directory, level="raw", journal=directory / "journal")

    def prepare(self, directory: Path) -> None:
        run = Recording(directory, export_level="raw")
        run.text(0, "request", {"headers": {"User-Agent": "contract"}, "body": b"{}"})
        run.answered(0, 1_000, (2_000, b"data: x\n\n"))
        run.flush(3_000)
        metadata = {"session_num": 0, "worker_id": "worker-0", "x_request_id": request_id(run.plan.run.run_id, 0, 0)}
        row = {"metadata": metadata, "metrics": {"request_latency": {"value": 1.5, "unit": "ms"}}}
        self.target(directory).file("jsonl").write_bytes(msgspec.json.encode(row) + b"\n")
