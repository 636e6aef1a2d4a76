"""The option of all files of server metrics."""

from __future__ import annotations

from aiperf import Options, option
from aiperf.sdk.options import Word

FORMATS = ("json", "csv", "jsonl", "parquet")
_PARQUET = "server_metrics_parquet"
"""The plugin that writes the format parquet; its package is an extra, because of its size."""


class FormatOptions(Options):
    server_metrics_formats: list[Word] = option("--server-metrics-formats", default=["json", "csv"], arity="many",
        group="Server metrics", choices=FORMATS, metavar="FORMAT", place="server_metrics.formats",
        help="Files of the servers' metrics.")  # fmt: skip


class FileOptions(FormatOptions):
    """A file is written where the formats name it."""


class JsonOptions(FormatOptions):
    """The same; one package speaks for all of them."""

    def problems(self, typed: dict[str, str]) -> list[str]:
        if "parquet" not in self.server_metrics_formats:
            return []
        from importlib.metadata import entry_points  # 20 ms in each process that reads these options

        if entry_points(group="aiperf.exporters", name=_PARQUET):
            return []
        flag = typed.get("server_metrics_formats", "--server-metrics-formats")
        return [f"{flag} parquet needs a package that is not installed\npip install 'aiperf-suite[parquet]'"]
