"""Options of ``aiperf config`` and of its words."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from aiperf.sdk.options import Options, option


class ExpandFormat(StrEnum):
    TEXT = "text"
    YAML = "yaml"
    JSON = "json"


class ConfigOptions(Options):
    file: Path | None = option("--file", "-f", hidden=True, metavar="FILE", help="For aiperf profile --config FILE.")
    override: bool = option("--override-config", default=False, hidden=True, help="What is typed always wins over a file.")


class InitOptions(Options):
    template: str | None = option("--template", "-t", metavar="NAME", shown="minimal", help="The template to begin with.")
    from_line: str | None = option("--from", metavar="LINE",
        help="Write the file of a command line instead: \"aiperf profile -m MODEL --concurrency 8\".")
    listed: bool = option("--list", "-l", default=False, help="List the templates.")
    search: str | None = option("--search", "-s", metavar="TEXT", help="List the templates with this text in name or purpose.")
    category: str | None = option("--category", "-c", metavar="TEXT", help="List the templates of a category.")
    verbose: bool = option("--verbose", "-v", default=False, help="Also list what each template uses.")
    model: str | None = option("--model", "-m", metavar="NAME", help="The model, in place of the template's.")
    url: list[str] = option("--url", "-u", default=[], metavar="URL", help="The server, in place of the template's.")
    output: Path | None = option("--output", "-o", metavar="FILE", shown="standard output",
        help="File to write, which must not exist.")


class CreateTemplateOptions(Options):
    output: Path = option("--output", "--file", "-o", "-f", default=Path("aiperf.yaml"), metavar="FILE",
        help="File to write, which must not exist.")


class ExpandOptions(Options):
    full: bool = option("--full", "-F", default=False, help="Show the whole file of each variation.")
    index: int | None = option("--index", "-i", ge=0, metavar="N", shown="all", help="Show one variation, from 0.")
    format: ExpandFormat = option("--format", "-f", default=ExpandFormat.TEXT, help="Form of the output.")


class SchemaOptions(Options):
    output: Path | None = option("--output", "-o", metavar="FILE", shown="standard output",
        help="File to write; one that exists is replaced.")
