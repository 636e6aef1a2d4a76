"""Options of ``aiperf plugins``."""

from __future__ import annotations

from pathlib import Path

from aiperf import Options, option


class PluginsOptions(Options):
    everything: bool = option("--all", "-a", default=False, help="Every category with the names in it.")
    check: bool = option("--validate", "-v", default=False, help="Import and check every plugin; exit 1 on a fault.")
    as_json: bool = option("--json", default=False, help="Print JSON.")
    markdown: bool = option("--markdown", default=False,
        help="metrics, endpoints, options, sdk, variables: print their page in Markdown.")
    category: str | None = option("--category", metavar="CATEGORY", help="The category, instead of a word.")
    name: str | None = option("--name", metavar="NAME", help="The name, instead of a word.")
    output: Path | None = option("--output", metavar="DIR", shown=".",
        help="new: where to make the package's directory; sdk: the directory to write its pages to.")
    pins: list[str] = option("--plugin", default=[], metavar="CATEGORY:NAME=DISTRIBUTION", group="Plugins",
        help="Take a plugin from this distribution where several provide it.")
    disabled: list[str] = option("--disable-plugin", default=[], metavar="CATEGORY:NAME", group="Plugins",
        help="Leave a plugin out, as if it were not installed.")
