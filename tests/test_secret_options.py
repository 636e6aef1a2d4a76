"""A plugin's secret reaches the plugin, in whatever process it works, and no file."""

from __future__ import annotations

from pathlib import Path

from aiperf_command_simulate.testing import Simulator
from program import Program

SOURCE = '''
from aiperf import Artifact, BatchExporter, SummaryExporter
from aiperf import Options, option

class UploadOptions(Options):
    token: str | None = option("--upload-token", help="Key of the store.", secret=True)

class Upload(SummaryExporter):
    def export(self, summary):
        path = self.target.directory / "upload.txt"
        path.write_text(f"{self.options.token is not None} {len(self.options.token or '')}")
        return [Artifact("Upload", path)]

class Rows(BatchExporter):
    label, kind = "Rows", "rows.txt"
    def rows(self, scored):
        return f"{len(self.options.token or '')}\\n".encode() * len(scored.batch)
'''
MANIFEST = '''
schema_version: 1
api: ">=1,<2"
plugins:
'''
ROW = '''
  - category: exporters
    name: {name}
    summary: Sends results away.
    options_model: "acme_upload:UploadOptions"
    options:
      - {{field: token, flags: [--upload-token], help: Key of the store., secret: true}}
'''


def install(folder: Path) -> None:
    """As a wheel leaves it."""
    package, about = folder / "acme_upload", folder / "acme_upload-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text(SOURCE)
    (package / "aiperf.yaml").write_text(MANIFEST + ROW.format(name="upload") + ROW.format(name="rows"))
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-upload\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[aiperf.exporters]\nupload = acme_upload:Upload\nrows = acme_upload:Rows\n")


def test_a_secret_option_is_used_and_written_nowhere(aiperf: Program, simulator: Simulator) -> None:
    folder = aiperf.folder / "site"
    install(folder)
    aiperf.environment["PYTHONPATH"] = f"{folder}:{aiperf.environment.get('PYTHONPATH', '')}"
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 10, "--request-count", 3,
        "--upload-token", "hush-hush", "--export-level", "raw", "-v", "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert (done.artifacts / "upload.txt").read_text() == "True 9", "in the parent"
    assert (done.artifacts / "rows.txt").read_text() == "9\n9\n9\n", "in the reducer"
    assert "hush" not in done.out + done.err
    for path in done.artifacts.rglob("*"):
        if path.is_file():
            assert b"hush" not in path.read_bytes(), path
    again = aiperf("report", done.artifacts)
    assert again.code == 0, again.err
    assert (done.artifacts / "upload.txt").read_text() == "False 0", "nobody has it any more"
