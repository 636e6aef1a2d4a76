"""Help as plain text: headings in a fixed order, one sentence an option, made to fit a narrow terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from aiperf.sdk.configuration import Option
from aiperf.sdk.descriptor import OptionSpec

HEADINGS = (
    "Endpoint", "Input", "Fixed schedule", "Goodput", "Output", "HTTP trace", "Tokenizer", "Load", "Warmup",
    "User-centric rate", "Request cancellation", "Conversation", "Prompt", "Prefix prompt", "Rankings", "Audio", "Image",
    "Video",
)  # fmt: skip
"""Order of the headings that people know; others follow in the order in which they are met, these last."""
_LAST = ("Service", "Synthesis", "Server metrics", "GPU telemetry", "Network latency", "Accuracy", "Multi-run", "Plugins")

_MOST, _LEAST = 100, 40
_NO_BREAK, _SHORT = "\u00a0", 44


def width() -> int:
    """Columns to use."""
    return max(_LEAST, min(_MOST, shutil.get_terminal_size().columns))


def command(usage: str, summary: str, options: Sequence[Option], installed: Mapping[str, Sequence[str]]) -> str:
    """A command's help.  *installed*: names to choose from, by the field of an option that takes one."""
    columns = width()
    lines = [*wrapped(f"Usage: {usage}", columns, "", "    "), "", *wrapped(summary, columns), ""]
    own = {option.spec for option in options if option.targets[0].owner == ""}
    for heading, specs in by_heading(option.spec for option in options):
        lines.append(f"{heading}:")
        for spec in specs:
            lines += _entry(spec, columns, installed.get(spec.field, ()) if spec in own else ())
        lines.append("")
    lines += ["Other:", *wrapped("-h, --help", columns, "  "), *wrapped("Show this text.", columns, "      ")]
    return "\n".join(lines) + "\n"


def top(summary: str, commands: Mapping[str, str]) -> str:
    """The help of ``aiperf`` itself."""
    columns = width()
    lines = ["Usage: aiperf COMMAND [OPTIONS]", "", *wrapped(summary, columns), "", "Commands:"]
    lines += [*table(commands.items(), columns), "", "Options:"]
    lines += table(
        [
            ("--version", "Show the version number."),
            ("-h, --help", "Show this text; after a command, that command's options."),
            ("--install-completion", "Install completion for the current shell."),
            ("--show-completion", "Show the completion script of the current shell."),
        ],
        columns,
    )
    return "\n".join(lines) + "\n"


def by_heading(specs: Iterable[OptionSpec]) -> list[tuple[str, list[OptionSpec]]]:
    """Options that are shown, under their headings, in the order of the help."""
    groups: dict[str, list[OptionSpec]] = {}
    for spec in specs:
        if not spec.hidden:
            groups.setdefault(spec.group or "Options", []).append(spec)
    return sorted(groups.items(), key=lambda group: _place(group[0]))


def _place(heading: str) -> int:
    if heading in HEADINGS:
        return HEADINGS.index(heading)
    return len(HEADINGS) + (1 + _LAST.index(heading) if heading in _LAST else 0)


def _entry(spec: OptionSpec, columns: int, names: Sequence[str]) -> list[str]:
    flags = ", ".join((*spec.flags, spec.negative) if spec.negative else spec.flags)
    form = {"none": "", "many": "{}...", "maybe": "[{}...]"}.get(spec.arity, "{}")
    sentence = spec.help
    if spec.choices:
        sentence += f" One of: {', '.join(spec.choices)}."
    elif names:
        sentence += f" Installed: {', '.join(names)}."
    if spec.default is not None:
        # A short default stays on one line: wrapping leaves no-break spaces alone.
        shown = f"[default: {spec.default}]"
        sentence += f" {shown.replace(' ', _NO_BREAK) if len(shown) <= _SHORT else shown}"
    usage = f"{flags} {form.format(spec.metavar)}".rstrip()
    return [*wrapped(usage, columns, "  ", "    "), *wrapped(sentence, columns, "      ")]


def table(rows: Iterable[tuple[str, str]], columns: int) -> list[str]:
    """Two columns, the second wrapped."""
    rows = list(rows)
    left = min(36, max((len(name) for name, _ in rows), default=0))
    indent = " " * (left + 4)
    cells = (wrapped(text, columns, f"  {name:<{left}}  ", indent) if text else [f"  {name}"] for name, text in rows)
    return [line for lines in cells for line in lines]


def wrapped(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """*text* as lines of at most *columns*; *first* and *rest* are what they begin with (rest None: as the first)."""
    lines = textwrap.wrap(
        text, columns, initial_indent=first, subsequent_indent=first if rest is None else rest, break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]
