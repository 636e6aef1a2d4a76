"""The generated section of a package's README: its endpoint types, metrics, options and environment variables.

A page over all packages would be a file outside the package that each new option edits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aiperf import UsageError
from aiperf.parts.tools import read_row
from aiperf.sdk.registry import InstalledPlugins

from aiperf_command_plugins import endpoint_page, metric_page, option_page, variable_page
from aiperf_command_plugins.generate import manifest_at, manifest_path

BEGIN = "<!-- generated: aiperf plugins readme -->"
END = "<!-- end of the generated section -->"


def readme_path(where: Path) -> Path:
    """The README of the package in a directory.

    Raises:
        UsageError: There is none.
    """
    path = where / "README.md"
    if not path.is_file():
        raise UsageError(f"{where} has no README.md", "name the directory of one plugin package")
    return path


def updated(registry: InstalledPlugins, where: Path) -> str:
    """The README's text with its section made anew: between the two marks, at the end where it had none.

    The section is taken out where the package has nothing to list.  Rows of metrics come from their classes, so the package
    must be installed.

    Raises:
        UsageError: The directory has no README or no manifest, or the README has one mark without the other.
        PluginError: The manifest can't be read, or a metric can't be imported.
    """
    path = readme_path(where)
    text = path.read_text(encoding="utf-8")
    if (text.count(BEGIN), text.count(END)) not in ((0, 0), (1, 1)) or text.find(END) < text.find(BEGIN):
        raise UsageError(f"{path}: the marks of the generated section are not one pair", f"{BEGIN} stands above {END}, once")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    made = "\n".join(_section(registry, where))
    parts = [before.strip("\n"), f"{BEGIN}\n{made}\n\n{END}" if made else "", after.strip("\n")]
    return "\n\n".join(filter(None, parts)) + "\n"


def _section(registry: InstalledPlugins, where: Path) -> Iterator[str]:
    manifest = manifest_at(manifest_path(where))
    rows = [read_row(plain) for plain in manifest.plugins]
    for row in rows:
        if row.category == "endpoints":
            yield from ("", f"## Endpoint type `{row.name}`", "", endpoint_page.COLUMNS, endpoint_page.row(row))
            yield from endpoint_page.notes(row)
    yield from metric_page.section(registry, [row.name for row in rows if row.category == "metrics"])
    for row in rows:
        if row.options or row.option_groups:
            yield from ("", f"## Options of {option_page.owner(row)}", "")
            owner = "" if row.category == "commands" else f"{row.category}:{row.name}"
            yield from option_page.table(row.options, owner) if row.options else ()
            groups = " and ".join(f"`{name}`" for name in row.option_groups)
            if groups:
                yield from ("", f"Also the options of {groups}.") if row.options else (f"The options of {groups}.",)
    for name, specs in manifest.option_groups.items():
        yield from ("", f"## Options of `{name}`", "", *option_page.table(specs, "CATEGORY:NAME"))
    variables = {name: row for row in rows for name in row.docs.variables}
    if variables:
        yield from ("", "## Environment variables", "", "| variable | default | what |", "|---|---|---|")
        yield from (variable_page.cells(name, *variables[name].docs.variables[name]) for name in sorted(variables))
