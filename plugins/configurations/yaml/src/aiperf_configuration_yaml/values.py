"""Options set by a file, and the file's errors."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from difflib import get_close_matches

from aiperf import UsageError
from aiperf.sdk.configuration import Option, OptionValue
from aiperf.sdk.descriptor import OptionSpec
from aiperf.sdk.redaction import redact

from aiperf_configuration_yaml.entries import Entry
from aiperf_configuration_yaml.names import snake, snaked
from aiperf_configuration_yaml.shape import where

log = logging.getLogger(__name__)

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class FileValues:
    """Options set by a file, and the file's errors.  *said*: warnings that were given before, of other cells of the file.

    secrets: by variable, the place that has its value and must not be seen.
    """

    def __init__(self, name: str, said: set[str]) -> None:
        self.given: dict[OptionSpec, OptionValue] = {}
        self.errors: list[UsageError] = []
        self.name = name
        self.secrets: dict[str, str] = {}
        self._said = said

    def named(self, entry: Entry, place: str | None = None) -> dict[str, Entry]:
        """A mapping's entries by key in snake_case, after *place* if it isn't None; another value is refused and gives none."""
        if not isinstance(entry.value, dict):
            self.wrong(entry, "it must be a mapping")
            return {}
        entries: dict[str, Entry] = {}
        for key, below in entry.value.items():
            name = f"{place}.{snake(key)}" if place else snake(key)
            if name in entries:
                self.wrong(below, f"the same as {self.where(entries[name])}", "keep one of them")
            else:
                entries[name] = below
        return entries

    def take(self, option: Option, entry: Entry) -> None:
        spec = option.spec
        used = entry.all_variables
        if used and (spec.secret or any(redact(text) != text for text in texts(entry))):
            self.secrets |= dict.fromkeys(used, self.where(entry))
        if spec in self.given:
            self.wrong(entry, f"the same as {self.given[spec].typed}", "keep one of them")
        elif spec.arity == "none":
            on = self.on(entry)
            if on or (on is not None and spec.negative):
                self.given[spec] = OptionValue(option, self.where(entry), [], on)
        elif spec.arity == "one" and isinstance(entry.value, list | dict):
            self.given[spec] = OptionValue(option, self.where(entry), [json.dumps(snaked(entry.plain))])
        else:
            values = seconds(texts(entry)) if spec.metavar == "SECONDS" else texts(entry, pairs=spec.metavar == "TAG:NUMBER")
            self.given[spec] = OptionValue(option, self.where(entry), values)

    def mark(self, option: Option, entry: Entry) -> None:
        """Set a flag that an entry implies."""
        self.given[option.spec] = OptionValue(option, self.where(entry), [], True)

    def on(self, entry: Entry) -> bool | None:
        word = {"true": True, "false": False}.get(str(entry.plain).lower())
        if word is None:
            self.wrong(entry, f"{entry.plain!r} is not true or false")
        return word

    def where(self, entry: Entry) -> str:
        return where(entry, self.name)

    def wrong(self, entry: Entry, sentence: str, *hints: str) -> None:
        self.errors.append(UsageError(f"{self.where(entry)}: {sentence}", *hints))

    def warn(self, entry: Entry, sentence: str) -> None:
        text = f"{self.where(entry)}: {sentence}"
        if text not in self._said:
            self._said.add(text)
            log.warning("%s", text)

    def unknown(self, entry: Entry, key: str, known: Iterable[str], why: str = "there is no such key") -> None:
        names = list(known)
        near = get_close_matches(snake(key), names, 2, 0.7)
        known_here = [f"known here: {', '.join(names)}"] if names else []
        self.wrong(entry, why, *([f"did you mean {' or '.join(near)}?"] if near else known_here))


def texts(entry: Entry, *, pairs: bool = False) -> list[str]:
    """The value as words of a command line; a mapping is one JSON object, or *pairs* with colons."""
    if isinstance(entry.value, list):
        return [text for one in entry.value for text in texts(one)]
    if isinstance(entry.value, dict):
        return [f"{key}:{value}" for key, value in entry.plain.items()] if pairs else [json.dumps(entry.plain)]
    return [] if entry.value is None else [str(entry.value)]


def seconds(texts: list[str]) -> list[str]:
    """``5m`` as 300; what is no duration stays, for the option to refuse."""
    found = [(text, _DURATION.fullmatch(text.strip())) for text in texts]
    return [f"{float(match[1]) * _SECONDS[match[2]]:g}" if match else text for text, match in found]
