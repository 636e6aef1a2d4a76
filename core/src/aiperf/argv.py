"""Reading a command line by the options it may hold: how many values each takes, and what must never be shown.

Four arities: ``none`` (a flag), ``one``, ``many`` (several values after one flag, the flag repeated, commas) and ``maybe``
(like many, or no value at all).  Everything stays text here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from msgspec import Struct

from aiperf.descriptor import REDACTED as REDACTED
from aiperf.descriptor import OptionSpec
from aiperf.errors import UsageError

_NUMBER = re.compile(r"-(\d|\.\d|inf\b)")


PINS = OptionSpec(
    "pins", ("--plugin",), "Take a plugin from this distribution where several provide it.",
    arity="many", metavar="CATEGORY:NAME=DISTRIBUTION", group="Plugins", place="pins",
)  # fmt: skip
DISABLED = OptionSpec(
    "disabled", ("--disable-plugin",), "Leave a plugin out, as if it were not installed.",
    arity="many", metavar="CATEGORY:NAME", group="Plugins", place="disabled",
)  # fmt: skip
CONFIG = OptionSpec(
    "config", ("--config", "-f"), "Read options from a YAML file; what is typed wins over it.", "path", metavar="FILE",
    group="Input",
)  # fmt: skip
FIRST = (PINS, DISABLED, CONFIG)
"""Options of ``aiperf profile`` that are read before all others: which others there are, and what is given, depends on them."""


class Target(Struct, frozen=True):
    """Whose an option is: *owner* is ``category:name`` of a plugin, "" for the command itself."""

    owner: str
    field: str


class Option(Struct, frozen=True):
    """An option as a command line knows it: declared once or by several packages alike, delivered to all of them."""

    spec: OptionSpec
    targets: tuple[Target, ...]


class Given(Struct):
    """What a person gave for an option.  *typed*: the flag as typed.  *on*: of a flag, None of others."""

    option: Option
    typed: str
    values: list[str]
    on: bool | None = None


class Scan(Struct):
    """A command line, read.  *shown*: as typed, secrets redacted.  *words*: what belongs to no option."""

    given: list[Given]
    words: list[str]
    errors: list[UsageError]
    shown: list[str]
    help: bool = False

    def typed(self) -> dict[str, str]:
        """The flag as typed, by field (``concurrency``, ``datasets:synthetic.isl``)."""
        return {
            f"{target.owner}.{target.field}" if target.owner else target.field: one.typed
            for one in self.given
            for target in one.option.targets
        }

    def plain(self) -> list[str]:
        """The same command line in the one form that every parser reads alike: ``--flag``, ``--flag=value``, words last."""
        out = []
        for one in self.given:
            spec = one.option.spec
            flag = next((flag for flag in spec.flags if flag.startswith("--")), spec.flags[0])
            if one.on is not None:
                out.append(flag if one.on else str(spec.negative))
            elif flag.startswith("--"):
                out += [f"{flag}={value}" for value in one.values or [""]]
            else:
                out += [part for value in one.values or [""] for part in (flag, value)]
        return [*out, "--", *self.words] if self.words else out


def scan(words: Sequence[str], options: Iterable[Option], *, dashes: bool = True, extra: dict[str, str] | None = None) -> Scan:
    """Read *words*.  Errors are collected, all of them.

    *dashes*: whether ``--`` may separate words from options.  *extra*: flags that are none, with the sentence to say.
    """
    index: dict[str, tuple[Option, bool]] = {}
    for option in options:
        index |= dict.fromkeys(option.spec.flags, (option, True))
        if option.spec.negative:
            index[option.spec.negative] = (option, False)
    return _Reader(list(words), index, dashes, extra or {}).read()


class _Reader:
    def __init__(self, words: list[str], index: dict[str, tuple[Option, bool]], dashes: bool, extra: dict[str, str]) -> None:
        self._words = words
        self._index = index
        self._dashes = dashes
        self._extra = extra
        self._at = 0
        self._given: dict[OptionSpec, Given] = {}
        self._read = Scan([], [], [], [])

    def read(self) -> Scan:
        while self._at < len(self._words):
            word = self._words[self._at]
            self._at += 1
            if word == "--":
                self._rest()
            elif word in ("--help", "-h") and word not in self._index:
                self._read.help = True
                self._read.shown.append(word)
            elif self._is_flag(word):
                self._flag(word)
            else:
                self._read.words.append(word)
                self._read.shown.append(redact(word))
        self._read.given = list(self._given.values())
        return self._read

    def _rest(self) -> None:
        self._read.shown.append("--")
        if self._dashes:
            rest, self._at = self._words[self._at :], len(self._words)
            self._read.words += rest
            self._read.shown += map(redact, rest)
        else:
            self._read.errors.append(UsageError("'--' separates nothing here: drop it, all options are native"))

    def _is_flag(self, word: str) -> bool:
        return len(word) > 1 and word[0] == "-" and (word in self._index or not _NUMBER.match(word))

    def _flag(self, word: str) -> None:
        flag, equals, attached = word.partition("=")
        value = attached if equals else None
        if flag not in self._index and not word.startswith("--") and word[:2] in self._index and len(word) > 2:
            option, _ = self._index[word[:2]]
            if option.spec.arity != "none":  # -b16
                flag, value, equals = word[:2], word[2:].removeprefix("="), ""
        found = self._index.get(flag)
        if found is None:
            self._unknown(flag)
            return
        option, on = found
        spec = option.spec
        if spec.arity == "none":
            self._switch(option, flag, on, value)
            return
        values = [value] if value is not None else self._values(spec)
        hidden = [_hide(spec, one) for one in values]
        if value is None:
            self._read.shown += [flag, *hidden]
        else:
            self._read.shown.append(f"{flag}{equals}{hidden[0]}")
        if not values and spec.arity != "maybe":
            self._read.errors.append(UsageError(f"{flag} needs a value", f"{flag} {spec.metavar or 'VALUE'}  {spec.help}"))
            return
        self._take(option, flag, values)

    def _values(self, spec: OptionSpec) -> list[str]:
        """The words after a flag that are its values."""
        values: list[str] = []
        while self._at < len(self._words) and (spec.arity != "one" or not values):
            word = self._words[self._at]
            if word in ("--", "--help", "-h") or self._is_flag(word):
                break
            values.append(word)
            self._at += 1
        return values

    def _switch(self, option: Option, flag: str, on: bool, value: str | None) -> None:
        self._read.shown.append(flag)
        following = self._words[self._at] if self._at < len(self._words) else ""
        if value is None and following.lower() in ("true", "false", "yes", "no", "on", "off", "0", "1"):
            value = following
            self._at += 1
        if value is not None:
            off = f", or {option.spec.negative} to switch it off" if option.spec.negative else ", or leave it out"
            self._read.errors.append(UsageError(f"{flag} takes no value, and {value!r} was given", f"pass {flag} alone{off}"))
        elif option.spec in self._given:
            self._repeated(option.spec, flag)
        else:
            self._given[option.spec] = Given(option, flag, [], on)

    def _take(self, option: Option, flag: str, values: list[str]) -> None:
        spec = option.spec
        split = values
        if spec.arity != "one" and spec.commas:
            split = [part for value in values for part in _commas(value)]
        before = self._given.get(spec)
        if before is None:
            self._given[spec] = Given(option, flag, split)
        elif spec.arity == "one":
            self._repeated(spec, flag)
        else:
            before.values += split

    def _repeated(self, spec: OptionSpec, flag: str) -> None:
        first = self._given[spec].typed
        same = "" if first == flag else f", first as {first}"
        self._read.errors.append(UsageError(f"{flag} is specified multiple times{same}", "keep one of them"))

    def _unknown(self, flag: str) -> None:
        # What follows is most likely its value; to call that a left-over word too would be noise.
        if self._at < len(self._words) and not self._is_flag(self._words[self._at]):
            self._at += 1
        close = get_close_matches(flag, self._index, 3, 0.8) if flag.startswith("--") else []
        hints = [self._extra[flag]] if flag in self._extra else []
        hints += [f"did you mean {' or '.join(close)}?"] if close and not hints else []
        self._read.errors.append(UsageError(f"unknown option {flag}", *hints))


def _commas(value: str) -> list[str]:
    """Values between commas; a JSON object or list is one value."""
    if value.lstrip()[:1] in ("{", "["):
        return [value]
    return [part for part in (piece.strip() for piece in value.split(",")) if part] or [value]


def _hide(spec: OptionSpec, value: str) -> str:
    if not spec.secret:
        return redact(value)
    name, colon, _ = value.partition(":")
    named = colon and ":" in spec.metavar and name.strip() and not name.lstrip().startswith("{")
    return f"{name}:{REDACTED}" if named else REDACTED


_SECRET = (
    r"(?:(?:api|access)[-_]?key|(?:access|auth|api|bearer|refresh|id|hf)[-_]?token"
    r"|secret|passw(?:or)?d|authorization|credential)"
)
_IN_QUERY = r"(?:key|token|secret|passw|auth|sig|credential)"
_REDACTIONS = (
    (re.compile(r"([a-zA-Z][\w+.-]*://)[^/?#\s]+@"), rf"\1{REDACTED}@"),
    (re.compile(r"^[^/?#\s@:=\"{]+:[^/?#\s@]+@(?=[\w.\[])"), f"{REDACTED}@"),
    (re.compile(rf"([?&;][^=&#\s]*{_IN_QUERY}[^=&#\s]*=)[^&#\s]*", re.IGNORECASE), rf"\1{REDACTED}"),
    (re.compile(rf"(\"[\w-]*{_SECRET}[\w-]*\"\s*:\s*)\"(?:[^\"\\]|\\.)*\"", re.IGNORECASE), rf'\1"{REDACTED}"'),
    (re.compile(rf"((?:^|[\s,])[\w-]*{_SECRET}[\w-]*[:=])[^\s,]+", re.IGNORECASE), rf"\1{REDACTED}"),
)


def redact(text: str) -> str:
    """*text* without what looks like a secret: passwords in URLs, keys and tokens in queries, maps and JSON."""
    for pattern, instead in _REDACTIONS:
        text = pattern.sub(instead, text)
    return text


def quoted(words: Iterable[str]) -> str:
    """The words as one line that a shell reads back."""
    return shlex.join(words)
