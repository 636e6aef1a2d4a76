"""What tools for plugin authors need of the kernel: manifests, texts for a terminal, and what the command line knows.

The names come from rooms above this one, so they are loaded when a tool uses them, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

_WHERE = {
    "cli.commandline": "FIRST Subcommand", "cli.help_text": "by_heading table width wrapped",
    "cli.plugins": "known_plugins package_lines trouble_lines", "planning.kernel_options": "KernelOptions",
    "planning.sources": "data_source format_of", "registry.hooks": "Hooks",
    "registry.manifest": "FILE_NAME ManifestError read read_row", "registry.option_claims": "without_flags",
    "registry.option_specs": "options_schema validate",
    "testing.specs": "specs",
}  # fmt: skip

__all__ = [
    "FILE_NAME", "FIRST", "Hooks", "KernelOptions", "ManifestError", "Subcommand", "by_heading", "data_source", "format_of",
    "known_plugins", "options_schema", "package_lines", "read", "read_row", "specs", "table", "trouble_lines", "validate",
    "width", "without_flags", "wrapped",
]  # fmt: skip


__getattr__ = door(__name__, _WHERE)

if TYPE_CHECKING:
    from aiperf.cli.commandline import FIRST, Subcommand
    from aiperf.cli.help_text import by_heading, table, width, wrapped
    from aiperf.cli.plugins import known_plugins, package_lines, trouble_lines
    from aiperf.planning.kernel_options import KernelOptions
    from aiperf.planning.sources import data_source, format_of
    from aiperf.registry.hooks import Hooks
    from aiperf.registry.manifest import FILE_NAME, ManifestError, read, read_row
    from aiperf.registry.option_claims import without_flags
    from aiperf.registry.option_specs import options_schema, validate
    from aiperf.testing.specs import specs
