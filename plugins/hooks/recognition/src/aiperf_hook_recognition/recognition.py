"""The format of a file by its head: keys of its first row and the end of its name, as manifests have them.

Of the formats that fit, the one with the longest list of keys is the file's.  That one alone is imported, and asked.  Formats
that say neither keys nor endings are asked where no other fits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from aiperf import BadDataset
from aiperf.parts.loading import isolated, load
from aiperf.sdk.descriptor import Descriptor, canonical
from aiperf.sdk.model import names
from aiperf.sdk.recognition import Recognition
from aiperf_rows.row_files import head, is_table, rows, tables
from msgspec import Struct

_HEAD_BYTES, _LINE_BYTES = 1 << 16, 1 << 20
"""What is looked at of JSON over several lines, and of a first line."""
_MOST_NEAR, _NEAR = 3, 0.5
"""Near misses that are named, and the share of a list's keys that makes one."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:(")|\\?\Z)|[\[\]{},]', re.DOTALL)
_CLOSING = {"[": "]", "{": "}"}
_DEEPEST = 1000
"""No reader of JSON follows arrays and objects deeper."""


class Fit(Struct, frozen=True):
    """How a format fits a file.  score: of the best list of keys, 0 where it has none.  why: for the user."""

    plugin: Descriptor
    score: int
    why: str


def row_at_head(path: Path) -> dict[str, Any] | None:
    """The first row of a file, or of the first file in a directory; of a long one what its first 64 KiB have.

    None where there is none.
    """
    if path.is_dir():
        patterns = ("*.jsonl*", "**/*.jsonl*", "*.json", "**/*.json")
        first = next((found for pattern in patterns if (found := min(path.glob(pattern), default=None))), None)
        return None if first is None else row_at_head(first)
    try:
        if is_table(path):
            return next((row for _, row in tables(path)), None)
        text = head(path, _HEAD_BYTES).decode("utf-8", "replace").lstrip()
        line = text if "\n" in text else head(path, _LINE_BYTES).decode("utf-8", "replace").lstrip()
    except BadDataset:
        return None
    for candidate in (line.partition("\n")[0], beginning(text)):
        try:
            row = msgspec.json.decode(candidate)
        except (msgspec.DecodeError, RecursionError):
            continue
        return row if isinstance(row, dict) else None
    return None


def beginning(text: str) -> str:
    """The JSON value at the start of *text*, which may be cut off anywhere: what is whole of it, closed."""
    open_: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        token, place = match[0], match.start()
        if token[0] == '"':
            if not match[1] and text[:place].rstrip().endswith(":"):  # the value of a key, cut
                return f'{text[:place]}""{"".join(reversed(open_))}'
            if not match[1]:
                break
            continue
        if token == ",":
            end = place
        else:
            if token in _CLOSING:
                open_.append(_CLOSING[token])
            elif not open_ or open_[-1] != token:
                break
            else:
                open_.pop()
            end = place + 1
        if not open_ or len(open_) > _DEEPEST:
            break
    return text[:end] + "".join(reversed(open_))


def has(row: dict[str, Any], key: str) -> bool:
    """Whether the row has the key, or ``key.below`` one of the objects below it, and not as null."""
    if row.get(key) is not None:
        return True
    found: list[Any] = [row]
    for part in key.split("."):
        objects = [inner for value in found for inner in (value if isinstance(value, list) else [value])]
        found = [inner[part] for inner in objects if isinstance(inner, dict) and inner.get(part) is not None]
    return bool(found)


def recognition(path: Path, formats: Sequence[Descriptor] | None, option: str) -> Recognition:
    """The first row of the file, and the only one of *formats* that fits the file best, or why there is none.

    *formats*: None where the format is named.  *option*: how messages name the option that names a format.
    """
    row = row_at_head(path)
    if formats is None:
        return Recognition(row)
    formats = [plugin for plugin in formats if plugin.capabilities.keys() & {"keys", "endings"} or not _prefixes(plugin)]
    stated = row.get("type") if row is not None else None
    if isinstance(stated, str) and (named := _called(formats, canonical(stated))) is not None:
        return Recognition(row, named.name, f"{path} is read as {named.name}: its first row says so")
    warnings: list[str] = []
    fits = [fit for plugin in formats if (fit := _fit(plugin, path, row)) is not None]
    best = [fit for fit in fits if fit.score == max(each.score for each in fits)]
    if not best or len(best) == 1 or best[0].score == 0:  # ties of lists of keys are settled by name, without an import
        best = [fit for fit in best if _agrees(warnings, fit.plugin, path, row)]
    if len(best) == 1:
        remark = f"{path} is read as {best[0].plugin.name}: {best[0].why}"
        return Recognition(row, best[0].plugin.name, remark, warnings=tuple(warnings))
    if best:
        refusal = f"{path} could be {names([fit.plugin.name for fit in best])}"
        return Recognition(row, refusal=refusal, hints=(f"say which with {option}",), warnings=tuple(warnings))
    if not row and (damaged := _damaged(path)) is not None:  # the list of formats would bury it
        return Recognition(row, refusal=damaged.message, hints=damaged.hints, warnings=tuple(warnings))
    hints = (
        *_near_misses(formats, path, row),
        *(f"{plugin.name}: {_expected(plugin)}" for plugin in formats),
        f"name one with {option} to learn what is wrong",
    )
    refusal = f"no installed format knows {path}: {_appearance(path, row)}"
    return Recognition(row, refusal=refusal, hints=hints, warnings=tuple(warnings))


def _called(formats: Sequence[Descriptor], name: str) -> Descriptor | None:
    """The format of that name, else the only one with that alias."""
    having = [plugin for plugin in formats if plugin.name == name] or [plugin for plugin in formats if name in plugin.aliases]
    return having[0] if len(having) == 1 else None


def _prefixes(plugin: Descriptor) -> Sequence[str]:
    """Words before a file's name; a format that says nothing else is chosen by them alone."""
    prefixes: Sequence[str] = plugin.capabilities.get("prefixes", ())
    return prefixes


def _lists(plugin: Descriptor) -> list[Sequence[str]]:
    return [[keys] if isinstance(keys, str) else keys for keys in plugin.capabilities.get("keys") or ()]


def _parts(keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """The keys that a row has, and those that it doesn't have."""
    return [key for key in keys if not key.startswith(("!", "/"))], [key[1:] for key in keys if key.startswith("!")]


def _named(plugin: Descriptor, path: Path) -> bool | None:
    """Whether an ending fits the name; None where every name does."""
    endings = tuple(plugin.capabilities.get("endings") or ("",))
    if path.is_dir():
        return "/" in endings
    told = tuple(ending for ending in endings if ending not in ("", "/"))
    return True if told and path.name.endswith(told) else None if "" in endings else False


def _fit(plugin: Descriptor, path: Path, row: dict[str, Any] | None) -> Fit | None:
    named, lists = _named(plugin, path), _lists(plugin)
    if named is False:
        return None
    by_name = int(named is True and not path.is_dir())
    if not lists:
        return Fit(plugin, by_name, "its name ends so" if by_name else "that format knows it")
    fitting = []
    for keys in lists:
        wanted, unwanted = _parts(keys)
        there = row is not None and _has_all(row, wanted) and not any(has(row, key) for key in unwanted)
        if there and ("/" not in keys or path.is_dir()):
            fitting.append(wanted)
    if not fitting:
        return None
    best = max(fitting, key=len)
    return Fit(plugin, len(best) + by_name, f"its first row has {names(best)}")


def _has_all(row: dict[str, Any], keys: Sequence[str]) -> bool:
    return all(has(row, key) for key in keys)


def _agrees(warnings: list[str], plugin: Descriptor, path: Path, row: dict[str, Any] | None) -> bool:
    with isolated(plugin, warnings.append, f"can't say whether it knows {path}"):
        return bool(load(plugin).recognises(path, row))
    return False


def _expected(plugin: Descriptor) -> str:
    endings = plugin.capabilities.get("endings")
    kinds = [{"/": "a directory", "": "a file"}.get(each, f"a {each} file") for each in endings or ()]
    wanted = [" or ".join(kinds)] if kinds else []
    lists = list(dict.fromkeys(names(_parts(keys)[0]) for keys in _lists(plugin)))
    wanted += [f"rows with {' or '.join(lists)}"] if lists else []
    return " of ".join(wanted) or plugin.summary or "asked, and doesn't know it"


def _near_misses(formats: Sequence[Descriptor], path: Path, row: dict[str, Any] | None) -> list[str]:
    """What is wrong with the row for the formats that it nearly fits, the nearest first."""
    found: list[tuple[float, str]] = []
    row = row or {}
    for plugin in formats:
        for wanted, unwanted in map(_parts, _lists(plugin) if _named(plugin, path) is not False else ()):
            missing = [key for key in wanted if not has(row, key)]
            similar = {key: f" (did you mean it by {near[0]!r}?)" for key in missing if (near := _alike(key, row))}
            faults = [f"{key} is missing{similar.get(key, '')}" for key in missing]
            faults += [f"{key} must not be there" for key in unwanted if has(row, key)]
            share = (len(wanted) - len(missing) + len(similar) / 2) / max(1, len(wanted))
            if faults and share >= _NEAR:
                found.append((share - len(faults) / 100, f"nearly {plugin.name}: {names(faults)}"))
    near = [text for _, text in sorted(found, key=lambda each: -each[0])]
    return list(dict.fromkeys(near))[:_MOST_NEAR]


def _damaged(path: Path) -> BadDataset | None:
    """Why a file of JSON lines, by its name, has no first row that can be read; None for other files and where it has."""
    if path.is_dir() or ".jsonl" not in path.suffixes:
        return None
    try:
        next(rows(path), None)
    except BadDataset as error:
        return error
    return None


def _alike(key: str, row: dict[str, Any]) -> list[str]:
    return get_close_matches(key, row, 1, 0.75)


def _appearance(path: Path, row: dict[str, Any] | None) -> str:
    """The look of an unrecognised file, for the message."""
    if path.is_dir():
        return "it is a directory" if row is None else f"it is a directory, and its first row has {names(sorted(row))}"
    if row:
        return f"its first row has {names(sorted(row))}"
    try:
        head(path, _HEAD_BYTES)  # refuses a damaged one
        return "it has no rows" if next(rows(path), None) is None else "it has changed meanwhile"
    except BadDataset as error:
        return "; ".join(error.lines())
