"""What tools for plugin authors need: manifests, option specs, texts for a terminal, and what the command line knows."""

from __future__ import annotations

from aiperf.cli.commandline import FIRST, LineCompleter, Subcommand
from aiperf.cli.help_text import by_heading, table, width, wrapped
from aiperf.cli.plugins import known_plugins, package_lines, trouble_lines
from aiperf.planning.kernel_options import KernelOptions
from aiperf.planning.sources import data_source, format_of
from aiperf.registry.manifest import FILE_NAME, ManifestError, ManifestRow, read, read_row
from aiperf.registry.option_claims import without_flags
from aiperf.registry.option_specs import options_schema, validate
from aiperf.registry.specs import specs

__all__ = [
    "FILE_NAME", "FIRST", "KernelOptions", "LineCompleter", "ManifestError", "ManifestRow", "Subcommand", "by_heading",
    "data_source", "format_of", "known_plugins", "options_schema", "package_lines", "read", "read_row", "specs", "table",
    "trouble_lines", "validate", "width", "without_flags", "wrapped",
]  # fmt: skip
