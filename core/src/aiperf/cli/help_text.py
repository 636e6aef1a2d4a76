"""Help as plain text: headings in a fixed order, one sentence an option, made to fit a narrow terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from aiperf.errors import UsageError
from aiperf.sdk.configuration import Option
from aiperf.sdk.descriptor import OptionSpec
from aiperf.terminal import page_columns

_Groups: TypeAlias = list[tuple[str, list[OptionSpec]]]
"""Options under their headings."""

HEADINGS = (
    "Endpoint", "Load", "Prompt and answer length", "Input", "Conversations", "Prefixes and system prompts", "Warmup",
    "Goodput", "Output", "Tokenizer", "Connection", "Trace replay", "Rankings", "Audio", "Image", "Video",
)  # fmt: skip
"""Order of the headings that people know; others follow in the order in which they are met, these last."""
_LAST = ("Service", "Synthesis", "Server metrics", "GPU telemetry", "Network latency", "Accuracy", "Repeats", "Sweeps",
    "Plugins")

FIRST_RUN = (
    "--model", "--url", "--endpoint-type", "--streaming", "--concurrency", "--request-rate", "--request-count",
    "--benchmark-duration", "--isl", "--osl", "--input-file", "--tokenizer",
)  # fmt: skip
"""The options of the short help of ``aiperf profile``; they also come first under their own headings."""
REQUIRED = ("--model",)
EXAMPLE = "aiperf profile -m MODEL -u localhost:8000 --streaming --concurrency 8 --request-count 100 --isl 512 --osl 128"

_MOST, _LEAST = 100, 40
"""Characters of a line of help, whatever the terminal has."""
_NARROW = 60
"""Columns of a terminal on which a long word has no room beside another column."""
_NO_BREAK, _SHORT = "\u00a0", 44
"""A default of at most so many characters is not broken over lines."""


def width() -> int:
    """Columns to use."""
    return max(_LEAST, min(_MOST, page_columns()))


def command(
    usage: str, summary: str, options: Sequence[Option], installed: Mapping[str, Sequence[str]], *, grouped: bool = False,
    words: Mapping[str, str] = {},
) -> str:  # fmt: skip
    """A command's whole help.  *installed*: names to choose from, by the field of an option that takes one.

    *grouped*: it ends with how to ask for a part of it.  *words*: of commands below it, with their summaries.
    """
    columns = width()
    groups = by_heading(option.spec for option in options)
    lines = _title(usage, summary, columns)
    if words:
        lines += ["Words, each with options of its own:", *table(words.items(), columns), ""]
    lines += _sections(groups, options, installed)
    lines += ["Other:", *wrapped("-h, --help", columns, "  "), *wrapped("Show this text.", columns, "      ")]
    if grouped:
        parts = "These are all options.  Less: --help GROUP, or --help OPTION"
        lines += ["", *wrapped(f"{parts}.  Groups: {_group_words(groups)}", columns, "", "  ")]
    return "\n".join(lines) + "\n"


def short(usage: str, summary: str, options: Sequence[Option]) -> str:
    """The help of ``aiperf profile`` for a terminal: one screen with what a first run needs, and the names of the groups."""
    columns = width()
    by_flag = {flag: option.spec for option in options for flag in option.spec.flags}
    rows = [_line(flag, by_flag[flag]) for flag in FIRST_RUN if flag in by_flag]
    left = max((len(usage) for usage, _, _ in rows), default=0) + 4
    groups = _group_words(by_heading(option.spec for option in options))
    more = f"More: --help GROUP, --help OPTION, or --help all.  Groups: {groups}"
    lines = [
        *wrapped(f"Usage: {usage}", columns, "", "    "), *wrapped(summary, columns), "",
        *wrapped(f"Example: {EXAMPLE}", columns, "", "    "), "",
        "What a first run needs:",
        *table([(usage, _fitting(parts, columns - left)) for usage, *parts in rows], columns), "",
        *wrapped(more, columns, "", "  "),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _line(flag: str, spec: OptionSpec) -> tuple[str, str, str]:
    """An option of the short help: the flags that people type, the first clause of its sentence, and its default."""
    brief = [other for other in spec.flags if not other.startswith("--")]
    default = f" [default: {spec.default}]" if spec.default is not None and spec.arity != "none" else ""
    more = " (required)" if flag in REQUIRED else default
    return f"{', '.join([*brief, flag])} {spec.metavar}".rstrip(), re.split(r"[;:.](?:\s|$)", spec.help)[0], more


def _fitting(parts: Sequence[str], columns: int) -> str:
    """The sentence with its end, if both are at most *columns*; else the sentence."""
    whole = "".join(parts)
    return whole if len(whole) <= columns else parts[0]


def about(topics: Iterable[str], options: Sequence[Option], installed: Mapping[str, Sequence[str]]) -> str:
    """The help on groups, each by the first letters of its name, and on single options (``isl``).

    Raises:
        UsageError: A topic is neither.
    """
    groups = by_heading(option.spec for option in options)
    words = _words(heading for heading, _ in groups)
    sections = [section for topic in topics for section in _topic(topic.lower().replace("_", "-"), groups, words)]
    return "\n".join(_sections(sections, options, installed)).rstrip() + "\n"


def _topic(topic: str, groups: _Groups, words: Mapping[str, str]) -> _Groups:
    single = [
        (heading, [spec]) for heading, specs in groups for spec in specs
        if f"--{topic}" in spec.flags or f"--{topic}" == spec.negative
    ]  # fmt: skip
    same = [group for group in groups if words[group[0]] == topic]
    begun = [group for group in groups if group[0].lower().replace(" ", "-").startswith(topic)]
    if found := same or single or begun:
        return found
    flags = [flag.removeprefix("--") for _, specs in groups for spec in specs for flag in spec.flags]
    from difflib import get_close_matches  # not for a help that is found

    close = get_close_matches(topic, [*words.values(), *flags], 3, 0.7)
    hints = [f"groups: {', '.join(words.values())}, all", *([f"did you mean {' or '.join(close)}?"] if close else [])]
    raise UsageError(f"--help {topic}: there is no group and no option of that name", *hints)


def _group_words(groups: _Groups) -> str:
    return ", ".join(_words(heading for heading, _ in groups).values())


def _words(headings: Iterable[str]) -> dict[str, str]:
    """The word by which a group is asked for, by heading: its first, or all with dashes where two begin alike."""
    headings = list(headings)
    firsts = [heading.lower().split()[0] for heading in headings]
    return {
        heading: first if firsts.count(first) == 1 else heading.lower().replace(" ", "-")
        for heading, first in zip(headings, firsts, strict=True)
    }


def _title(usage: str, summary: str, columns: int) -> list[str]:
    return [*wrapped(f"Usage: {usage}", columns, "", "    "), "", *wrapped(summary, columns), ""]


def _sections(groups: _Groups, options: Sequence[Option], installed: Mapping[str, Sequence[str]]) -> list[str]:
    columns = width()
    own = {option.spec for option in options if option.targets[0].owner == ""}
    lines = []
    for heading, specs in groups:
        lines.append(f"{heading}:")
        for spec in specs:
            lines += _entry(spec, columns, installed.get(spec.field, ()) if spec in own else ())
        lines.append("")
    return lines


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


def by_heading(specs: Iterable[OptionSpec]) -> _Groups:
    """Options that are shown, under their headings, in the order of the help."""
    groups: dict[str, list[OptionSpec]] = {}
    for spec in specs:
        if not spec.hidden:
            groups.setdefault(spec.group or "Options", []).append(spec)
    in_order = sorted(groups.items(), key=lambda group: _place(group[0]))
    return [(heading, sorted(specs, key=_rank)) for heading, specs in in_order]


def _rank(spec: OptionSpec) -> int:
    return min((FIRST_RUN.index(flag) for flag in spec.flags if flag in FIRST_RUN), default=len(FIRST_RUN))


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
    """Two columns, the second wrapped; below the first where that takes half of the width, or a word has no room beside it."""
    rows = list(rows)
    left = min(36, max((len(name) for name, _ in rows), default=0))
    indent = " " * (left + 4)
    longest = max((len(word) for _, text in rows for word in text.split()), default=0)
    if 2 * len(indent) > columns or (columns < _NARROW and len(indent) + longest > columns):
        stacked = ([*wrapped(name, columns, "  ", "    "), *wrapped(text, columns, "      ")] for name, text in rows)
        return [line for lines in stacked for line in lines]
    cells = (wrapped(text, columns, f"  {name:<{left}}  ", indent) if text else [f"  {name}"] for name, text in rows)
    return [line for lines in cells for line in lines]


def wrapped(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """*text* as lines of at most *columns*; *first* and *rest* are what they begin with (rest None: as the first)."""
    lines = textwrap.wrap(
        text, columns, initial_indent=first, subsequent_indent=first if rest is None else rest, break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]
