"""A command line: its subcommands and their options, how many values each takes, and what must never be shown.

Four arities: ``none`` (a flag), ``one``, ``many`` (several values after one flag, the flag repeated, commas) and ``maybe``
(like many, or no value at all).  Everything stays text here.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct, structs

from aiperf.cli import help_text
from aiperf.errors import AiperfError, UsageError
from aiperf.redaction import REDACTED, redact
from aiperf.registry.guides import INSTALL_SUITE
from aiperf.registry.option_claims import same
from aiperf.sdk.command import LATER, Command
from aiperf.sdk.configuration import Option, OptionTarget, OptionValue, SweepSection
from aiperf.sdk.descriptor import Descriptor, OptionSpec, PluginRef
from aiperf.sdk.options import OptionsT

if TYPE_CHECKING:
    from aiperf.sdk.study import Setting

_NUMBER = re.compile(r"-(\d|\.\d|inf\b)")
_HELP = ("--help", "-h")
_DASHES = "\u2013\u2014\u2212\u2010\u2011"
"""Dashes that word processors make of two hyphens."""

Text = str | bool | list[str]
"""Text of an option: a word, several words, or the state of a flag."""
Hint: TypeAlias = Callable[[str], str | None]
Values = dict[str, dict[str, Text]]
"""Text by owner (``category:name`` of a plugin, "" for the command itself), then by field."""

PINS = OptionSpec(
    "pins", ("--plugin",), "Take a plugin from this distribution where several provide it.",
    arity="many", metavar="CATEGORY:NAME=DISTRIBUTION", group="Plugins", place="pins",
)  # fmt: skip
DISABLED = OptionSpec(
    "disabled", ("--disable-plugin",), "Leave a plugin out, as if it were not installed.",
    arity="many", metavar="CATEGORY:NAME", group="Plugins", place="disabled",
)  # fmt: skip
CONFIG = OptionSpec(
    "config", ("--config", "-f"), "Read options from a configuration file; what is typed wins over it.", "path", metavar="FILE",
    group="Input",
)  # fmt: skip
FIRST = (PINS, DISABLED, CONFIG)
"""Options of ``aiperf profile`` that are read before all others: which others there are, and what is given, depends on them."""


def _no_hint(flag: str) -> None:
    return None


FileValues: TypeAlias = "Callable[[Sequence[Option], Mapping[str, Setting] | None], list[OptionValue | UsageError]]"


class Scan(Struct):
    """A command line with its options resolved.

    shown: the line as typed, secrets redacted.  words: positional words.  topics: the words behind
    ``--help``.  configuration: the plugin that read a file.  typed_alone: what was given without that of the file.
    sweep, file: where the file asks for several runs, its section, and what gives the values of each.
    """

    given: list[OptionValue]
    words: list[str]
    errors: list[AiperfError]
    shown: list[str]
    help: bool = False
    topics: list[str] = []
    configuration: PluginRef | None = None
    typed_alone: tuple[OptionValue, ...] = ()
    sweep: SweepSection | None = None
    file: FileValues | None = None

    def add(self, values: Iterable[OptionValue | UsageError]) -> None:
        """Add a file's values of options that are not on the line, and the file's errors.

        A mean on the line replaces the file's distribution of the same quantity, and a distribution its mean and spread.
        """
        typed = {value.option.spec for value in self.given}
        places = {spec.place for spec in typed if spec.place}
        for value in values:
            if isinstance(value, UsageError):
                self.errors.append(value)
                continue
            quantity, _, key = value.option.spec.place.rpartition(".")
            rivals = {"distribution": "mean", "mean": "distribution", "stddev": "distribution"}
            if value.option.spec not in typed and f"{quantity}.{rivals.get(key)}" not in places:
                self.given.append(value)

    def values(self) -> Values:
        values: Values = {}
        for value in self.given:
            text: Text = value.values if value.on is None else value.on
            if value.on is None and value.option.spec.arity == "one":
                text = value.values[0]
            for target in value.option.targets:
                values.setdefault(target.owner, {})[target.field] = text
        return values

    def typed(self) -> dict[str, str]:
        """The flag as typed, by field (``concurrency``, ``datasets:synthetic.isl``)."""
        return {
            f"{target.owner}.{target.field}" if target.owner else target.field: value.typed
            for value in self.given
            for target in value.option.targets
        }

    def typed_of(self, owner: str) -> dict[str, str]:
        """The flag as typed, by field, of one owner's options."""
        return {target.field: value.typed for value in self.given for target in value.option.targets if target.owner == owner}


class _Flag(NamedTuple):
    """A flag and the words up to the next one.  flag: "" at the start of the line.  attached: the text after ``=``."""

    flag: str
    attached: str | None
    words: list[str]


class CommandLine:
    """The words of a command line, divided once into flags and what follows each.

    Which of the following words are a flag's values is decided by :meth:`resolve`, when the options are known.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._flags = [_Flag("", None, [])]
        for at, word in enumerate(words):
            if word == "--":
                self._flags.append(_Flag("--", None, list(words[at + 1 :])))
                break
            if len(word) > 1 and word[0] == "-" and not _NUMBER.match(word):
                flag, equals, attached = word.partition("=")
                self._flags.append(_Flag(flag, attached if equals else None, []))
            else:
                self._flags[-1].words.append(word)

    @property
    def asks_for_help(self) -> bool:
        return any(flag.flag in _HELP for flag in self._flags)

    def early(self, spec: OptionSpec) -> list[str]:
        """The values of an option that decides which other options there are; [] where it isn't given."""
        scan = _Resolution({flag: (Option(spec, ()), True) for flag in spec.flags}, _no_hint)
        for flag in self._flags:
            if scan.knows(flag):
                scan.add(flag)
        return scan.given[spec].values if spec in scan.given else []

    def resolve(
        self, options: Iterable[Option], *, command: str = "COMMAND", dashes: bool = True, extra: Hint = _no_hint
    ) -> Scan:
        """The values of *options*; all errors are collected.

        *command*: the name of whose options they are.  *dashes*: whether ``--`` may separate words from options.  *extra*: a
        hint for each unknown flag that has one.
        """
        index: dict[str, tuple[Option, bool]] = {}
        for option in options:
            index |= dict.fromkeys(option.spec.flags, (option, True))
            if option.spec.negative:
                index[option.spec.negative] = (option, False)
        resolution = _Resolution(index, extra, see=_all_options(command))
        flags = deque(self._flags)
        while flags:
            flag = flags.popleft()
            if flag.flag != "--":
                resolution.add(resolution.completed(flag, flags))
                continue
            resolution.scan.shown.append("--")
            if dashes:
                resolution.add_words(flag.words)
            else:
                resolution.refuse("'--' separates nothing here: drop it, all options are native")
                flags.extendleft(reversed(CommandLine(flag.words)._flags))
        resolution.scan.given = list(resolution.given.values())
        return resolution.scan


class _Resolution:
    """The flags of a line matched with options, in the order of the line."""

    def __init__(self, index: dict[str, tuple[Option, bool]], extra: Hint, *, see: str = "") -> None:
        self.scan = Scan([], [], [], [])
        self.given: dict[OptionSpec, OptionValue] = {}
        self._index = index
        self._extra, self._see = extra, see

    def refuse(self, message: str, *hints: str) -> None:
        self.scan.errors.append(UsageError(message, *hints))

    def add_words(self, words: Iterable[str]) -> None:
        for word in words:
            self.scan.words.append(word)
            self.scan.shown.append(redact(word))

    def knows(self, piece: _Flag) -> bool:
        return piece.flag in self._index or self._joined(piece)

    def _joined(self, piece: _Flag) -> bool:
        """Whether it is a short flag with its value, ``-b16``."""
        known = None if piece.flag.startswith("--") else self._index.get(piece.flag[:2])
        if f"-{piece.flag}" in self._index:
            return False  # -model means --model
        return known is not None and known[0].spec.arity != "none"

    def completed(self, piece: _Flag, behind: deque[_Flag]) -> _Flag:
        """The piece with the one behind it, taken off, where that is a value which begins with a dash: a key, a pattern.

        A word that nearly is an option stays one, unless the value is secret: it would be printed.
        """
        option = None if piece.attached is not None or piece.words else self._index.get(piece.flag, (None,))[0]
        if option is None or option.spec.arity not in ("one", "many") or not behind:
            return piece
        flag, attached, words = behind[0]
        near = flag.startswith("--") and not option.spec.secret and near_flags(flag, self._index, 1)
        if flag == "--" or flag in _HELP or self.knows(behind[0]) or near:
            return piece
        behind.popleft()
        return piece._replace(words=[flag if attached is None else f"{flag}={attached}", *words])

    def add(self, piece: _Flag) -> None:
        flag, value, words = piece
        equals = "="
        if not flag:
            self.add_words(words)
            return
        if flag not in self._index and self._joined(piece):
            joined = flag[2:] if value is None else f"{flag[2:]}={value}"
            flag, value, equals = flag[:2], joined.removeprefix("="), ""
        if flag not in self._index:
            self._add_unknown(piece)
            return
        option, on = self._index[flag]
        spec = option.spec
        if spec.arity == "none":
            self._add_switch(option, flag, on, value, words)
            return
        taken = 0 if value is not None else 1 if spec.arity == "one" else len(words)
        values = words[:taken] if value is None else [value]
        hidden = [_hidden(spec, text) for text in values]
        self.scan.shown += [flag, *hidden] if value is None else [f"{flag}{equals}{hidden[0]}"]
        if not values and spec.arity != "maybe":
            self.refuse(f"{flag} needs a value", f"{flag} {spec.metavar or 'VALUE'}  {spec.help}")
        elif spec.arity == "one" and spec in self.given:
            self._refuse_repeated(spec, flag)
        else:
            if spec.arity != "one" and spec.commas:
                values = [part for value in values for part in _commas(value)]
            self.given.setdefault(spec, OptionValue(option, flag, [])).values.extend(values)
        if spec.secret and words[taken:]:
            self.refuse(f"{flag} takes one value, and more was given", "a value with white space stands in quotation marks")
        else:
            self.add_words(words[taken:])

    def _add_unknown(self, piece: _Flag) -> None:
        flag, value, words = piece
        if flag in _HELP:
            self.scan.help = True
            self.scan.shown.append(flag)
            self.scan.topics += words if value is None else [value]
            self.add_words(words)
            return
        hint = self._extra(flag)
        if hint is None or hint in (LATER, INSTALL_SUITE):
            shown = [name for name, (option, _) in self._index.items() if not option.spec.hidden]
            near = near_flags(flag, [*shown, "--help"], 3)
            self.refuse(f"unknown option {flag}", *(near or ([hint] if hint == LATER else [self._see, *filter(None, [hint])])))
        else:
            self.refuse(f"unknown option {flag}", hint)
        # The first word is most likely the flag's value: it is not reported a second time.
        self.add_words(words[1:])

    def _add_switch(self, option: Option, flag: str, on: bool, value: str | None, words: list[str]) -> None:
        self.scan.shown.append(flag)
        if value is None and words and words[0].lower() in ("true", "false", "yes", "no", "on", "off", "0", "1"):
            value, *words = words
        if value is not None:
            off = f", or {option.spec.negative} to switch it off" if option.spec.negative else ", or leave it out"
            self.refuse(f"{flag} takes no value, and {value!r} was given", f"pass {flag} alone{off}")
        elif option.spec in self.given:
            self._refuse_repeated(option.spec, flag)
        else:
            self.given[option.spec] = OptionValue(option, flag, [], on)
        self.add_words(words)

    def _refuse_repeated(self, spec: OptionSpec, flag: str) -> None:
        first = self.given[spec].typed
        same = "" if first == flag else f", first as {first}"
        self.refuse(f"{flag} is specified multiple times{same}", "keep one of them")


def _commas(value: str) -> list[str]:
    """Values between commas; a JSON object or list is one value."""
    if value.lstrip()[:1] in ("{", "["):
        return [value]
    return [part for part in (piece.strip() for piece in value.split(",")) if part] or [value]


def _hidden(spec: OptionSpec, value: str) -> str:
    if not spec.secret:
        return redact(value)
    name, colon, _ = value.partition(":")
    named = colon and ":" in spec.metavar and name.strip() and not name.lstrip().startswith("{")
    return f"{name}:{REDACTED}" if named else REDACTED


def _all_options(command: str) -> str:
    return f"see aiperf {command} --help"


def did_you_mean(word: str, names: Iterable[str], most: int, similarity: float) -> list[str]:
    """A hint with at most *most* similar names; [] where none is similar enough (0 to 1)."""
    from difflib import get_close_matches  # not where nothing is unknown: imports are what a help costs

    close = get_close_matches(word, list(names), most, similarity)
    return [f"did you mean {' or '.join(close)}?"] if close else []


def near_flags(flag: str, flags: Iterable[str], most: int) -> list[str]:
    """A hint like that of :func:`did_you_mean`, of options that mean what *flag* says.

    Letters alone make neighbours of ``--rate`` and ``--private``, of ``--max-idle-gap`` and ``--trace-idle-gap``: so each word
    of the shorter name must be like one of the longer, unless both are the same but for the places of their hyphens.
    """
    from difflib import SequenceMatcher

    def alike(one: str, other: str, least: float) -> bool:
        return one == other or SequenceMatcher(None, one, other).ratio() >= least

    def means(name: str) -> bool:
        less, more = sorted((flag.strip("-").split("-"), name.strip("-").split("-")), key=len)
        joined = alike("".join(less), "".join(more), 0.9) and len(less) != len(more)
        return joined or all(any(alike(word, other, 0.75) for other in more) for word in less)

    return did_you_mean(flag, filter(means, flags), most, 0.8)


class LineCompleter(Command[OptionsT]):
    """A command that also answers shells which complete a line; its manifest says ``completes_lines: true``."""

    def complete(self, commands: Sequence[Subcommand], words: Sequence[str]) -> int:
        """Answer a shell, or ``--install-completion`` and ``--show-completion``; returns the exit code.

        *commands*: all there are, with their options.  *words*: of the command line.

        Raises:
            AiperfError: Printed as a sentence, with its exit code.
        """
        raise NotImplementedError(f"{type(self).__name__} must define complete(commands, words)")


class Subcommand(Struct, frozen=True):
    """One subcommand.

    summary: one sentence, for the list of commands.  more: further sentences of its own help.
    arguments: metavars of positional words (``DIR...``, ``[CATEGORY]``); "" takes none.  prepare: validates a scan, and
    raises all its errors; gives what runs the command and returns the exit code.  dashes: whether ``--`` may separate words
    from options.  installed: names to choose from, by field.  foreign: a hint on a flag that is none of its own.
    grouped: whether its help is asked for by group, since it has more options than a screen shows.
    words: the first word of commands of their own (``init`` of ``config init``), with the summary of each.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    prepare: Callable[[Scan], Callable[[], int]]
    arguments: str = ""
    more: str = ""
    dashes: bool = True
    installed: Mapping[str, Sequence[str]] = {}
    foreign: Hint = _no_hint
    grouped: bool = False
    words: Mapping[str, str] = {}

    def help(self, topics: Sequence[str] = (), *, terminal: bool = False) -> str:
        """The whole help; of a *grouped* command that of the *topics*, or without any the short one for a *terminal*."""
        usage = f"aiperf {self.name} [OPTIONS] {self.arguments}".rstrip()
        text = f"{self.summary} {self.more}".rstrip()
        if self.grouped and topics and "all" not in topics:
            return help_text.about(topics, self.options, self.installed)
        if self.grouped and terminal and not topics:
            return help_text.short(usage, self.summary, self.options)
        return help_text.command(usage, text, self.options, self.installed, grouped=self.grouped, words=self.words)

    def miscounted(self, scan: Scan) -> list[UsageError]:
        """The errors of a scan with too few or too many words."""
        metavars = self.arguments.split()
        least = sum(not metavar.startswith("[") for metavar in metavars)
        most = None if "..." in self.arguments else len(metavars)
        if len(scan.words) < least and not scan.errors:
            return [UsageError(f"aiperf {self.name} needs {' '.join(metavars)}", _all_options(self.name))]
        if most == 0 and scan.words and self.words:
            near = did_you_mean(scan.words[0], self.words, 1, 0.6)
            wrong = f"there is no command '{self.name} {redact(scan.words[0])}'"
            return [UsageError(wrong, f"aiperf {self.name} has the words {', '.join(self.words)}", *near)]
        if most is not None and len(scan.words) > most:
            extra = ", ".join(map(repr, map(redact, scan.words[most:])))
            wanted = f"takes {self.arguments}" if self.arguments else "takes only options"
            dashed = [word for word in scan.words[most:] if word[0] in _DASHES]
            hint = f"an option begins with --, not with {dashed[0][0]}" if dashed else _all_options(self.name)
            return [UsageError(f"left over: {extra}; aiperf {self.name} {wanted}", hint)]
        return []


def options_of(own: Iterable[OptionSpec], plugins: Iterable[Descriptor] = ()) -> tuple[Option, ...]:
    """The command's own options and those of plugins.  What two declare alike is one option, delivered to both."""
    merged: dict[tuple[str, ...], Option] = {spec.flags: Option(spec, (OptionTarget("", spec.field),)) for spec in own}
    for plugin in plugins:
        whose = plugin.key
        for spec in plugin.options:
            target = OptionTarget(whose, spec.field)
            known = merged.get(spec.flags)
            if known is not None and same(known.spec, spec):
                merged[spec.flags] = Option(known.spec, (*known.targets, target))
            elif known is None:
                merged[spec.flags] = Option(_headed(spec, plugin), (target,))
    return tuple(merged.values())


def _headed(spec: OptionSpec, plugin: Descriptor) -> OptionSpec:
    """The option under the plugin's own heading, where it names none."""
    if spec.group or plugin.category == "commands":
        return spec
    return structs.replace(spec, group=plugin.name.replace("_", " ").capitalize())
