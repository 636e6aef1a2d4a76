"""Options of ``aiperf plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from aiperf import Options, option


class PlotOptions(Options):
    paths: list[Path] = option(
        "--paths",
        default=[],
        metavar="PATH",
        shown="artifacts",
        help="Directories of runs, or that hold some; the flag itself may be left out.",
    )
    output: Path | None = option(
        "--output", metavar="DIR", shown="plots, in the first path", help="Directory to write the pictures to."
    )
    config: Path | None = option(
        "--config", metavar="FILE", help="YAML file that declares pictures; docs/pictures.md has its keys."
    )
    only: list[str] = option(
        "--only", "--plots", default=[], metavar="NAME", help="Draw these plots alone; aiperf plugins plots lists them."
    )
    format: Literal["png", "svg"] = option("--format", default="png", metavar="WORD", help="Kind of file.")
    theme: Literal["light", "dark"] = option("--theme", default="light", metavar="WORD", help="Colours.")
    size: str = option("--size", default="1600x800", metavar="WIDTHxHEIGHT", help="Pixels of a picture.")
    as_json: bool = option("--json", default=False, help="Print the figures as JSON to standard output; draw nothing.")
    verbose: bool = option("--verbose", default=False, help="Show the traceback of a plot that fails.")
    dashboard: bool = option(
        "--dashboard", default=False, help="Serve a page on which runs, metrics and pictures are chosen; Ctrl-C ends it."
    )
    host: str = option(
        "--host", default="127.0.0.1", min_length=1, metavar="ADDRESS",
        help="Address of --dashboard; beyond this machine every request needs the token that is printed.",
    )  # fmt: skip
    port: int = option(
        "--port", default=8050, ge=0, le=65_535, metavar="PORT",
        help="Port of --dashboard; 0 takes a free one, which is printed.",
    )  # fmt: skip
    mlflow_upload: bool = option(
        "--mlflow-upload", default=False, help="Send the pictures to the MLflow run of the results, too (extra mlflow)."
    )
    mlflow_tracking_uri: str | None = option(
        "--mlflow-tracking-uri", metavar="URI", shown="that of mlflow_export.json", help="MLflow server, or store, of the run."
    )
    mlflow_run_id: str | None = option(
        "--mlflow-run-id", metavar="ID", shown="that of mlflow_export.json", help="The MLflow run that gets the pictures."
    )

    def problems(self, typed: dict[str, str]) -> list[str]:
        """A setting of an upload or of a page that isn't made, and an upload of nothing."""
        found = self._idle_beside(typed)
        if found:
            return found
        if not self.mlflow_upload:
            idle = [flag for field, flag in typed.items() if field.startswith("mlflow_") and field != "mlflow_upload"]
            return [f"{flag} needs --mlflow-upload: it says where to\nadd --mlflow-upload, or drop {flag}" for flag in idle]
        if self.as_json:
            return ["--json and --mlflow-upload exclude each other: no picture is drawn\ndrop one of them"]
        return []

    def _idle_beside(self, typed: dict[str, str]) -> list[str]:
        """Options without an effect beside, or without, --dashboard."""
        if not self.dashboard:
            idle = [flag for field, flag in typed.items() if field in ("host", "port")]
            return [f"{flag} needs --dashboard: it says where the page is\nadd --dashboard, or drop {flag}" for flag in idle]
        drawn = ("output", "config", "only", "format", "theme", "size", "as_json", "verbose", "mlflow_upload")
        idle = [flag for field, flag in typed.items() if field in drawn]
        why = "the page chooses and saves pictures"
        return [f"{flag} has no effect beside --dashboard: {why}\ndrop one of them" for flag in idle]
