"""Rows as turns: fields, their rules, and media files."""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Media, Turn
from aiperf.sdk.media import MediaReader, media_bytes
from aiperf_rows.row_files import MOST_TIME
from msgspec.structs import replace

log = logging.getLogger(__name__)

_FIELDS = {"text": "texts", "image": "images", "audio": "audios", "video": "videos"}
_ALIASES = {"text_input": "text"}
"""genai-perf's name."""
_MIME = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".mp4": "video/mp4", ".webm": "video/webm"}
_AUDIO = (".wav", ".mp3", ".flac")
MODALITIES = (*_FIELDS, *_FIELDS.values(), *_ALIASES)
"""Keys that identify a row of this format."""
_KNOWN = {
    *MODALITIES, "image_uuids", "role", "model", "timestamp", "delay", "output_length", "extra", "session_id", "type",
}  # fmt: skip
_MOST_TOLD = 10
"""Unknown fields that are told of; further ones are not."""
_REPLACING = ("messages", "stream")
"""Fields of a body that the run makes itself."""


class Rows:
    """Reads the rows of one file.  *path*: for messages, and for media with relative paths.

    anywhere: media may be files outside the folder of *path* (``--allow-paths``).
    """

    def __init__(self, path: Path, *, anywhere: bool = False) -> None:
        self.path, self._anywhere = path, anywhere
        self._folder = path.parent.resolve()
        self._reader = MediaReader()
        self._told: set[str] = set()

    def turn(self, row: dict[str, Any], line: int, what: str = "row") -> Turn:
        """A row, or a turn within one, as a turn.

        Raises:
            BadDataset: The row breaks a rule; the message gives path and line.
        """
        if row.get("text") and row.get("text_input"):
            raise self.wrong(line, "text and text_input exclude each other")
        self.tell_unknown(row, _KNOWN, line)
        row = {_ALIASES.get(key, key): value for key, value in row.items()}
        texts = self._strings(row, "text", line)
        media = tuple(self._media(row, line))
        if not texts and not media:
            raise self.wrong(line, f"the {what} has none of text, image, audio and video")
        timestamp, delay = self.number(row, "timestamp", line), self.number(row, "delay", line)
        if timestamp is not None and delay is not None:
            raise self.wrong(line, "timestamp and delay exclude each other: a turn has a time or follows the previous turn")
        length = self.whole(row, "output_length", line)
        turn = Turn(
            texts=texts,
            media=media,
            role=self.string(row, "role", line) or "user",
            model=self.string(row, "model", line) or "",
            max_tokens=length,
            delay_ms=delay,
            timestamp_ms=timestamp,
            extra=self.extra(row, line),
        )
        named = _named(row)
        return replace(turn, named=named) if named else turn

    def wrong(self, line: int, why: str) -> BadDataset:
        return BadDataset(f"{self.path}:{line}: {why}")

    def number(self, row: dict[str, Any], key: str, line: int) -> float | None:
        """A time in ms, >= 0; None where the row has none."""
        value = row.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TIME:
            raise self.wrong(line, f"{key} is {shown(value)}; it must be a number of milliseconds, 0 or more")
        return float(value)

    def whole(self, row: dict[str, Any], key: str, line: int) -> int | None:
        """A number of tokens, >= 1; None where the row has none."""
        value = row.get(key)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():  # a column with nulls is one of fractions in many tables
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.wrong(line, f"{key} is {shown(value)}; it must be a whole number of at least 1")
        return value

    def string(self, row: dict[str, Any], key: str, line: int) -> str | None:
        value = row.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(line, f"{key} is {shown(value)}; it must be a text")
        return value

    def mapping(self, row: dict[str, Any], key: str, line: int) -> dict[str, Any] | None:
        value = row.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(line, f"{key} is {shown(value)}; it must be an object")
        return value

    def extra(self, row: dict[str, Any], line: int) -> dict[str, Any]:
        """Further fields of the body; those that replace what the run makes are told, once each."""
        extra = self.mapping(row, "extra", line) or {}
        self.tell_replacing(extra, line, "extra")
        return extra

    def tell_replacing(self, extra: dict[str, Any], line: int, what: str) -> None:
        """Warn, once for each, of fields of *extra* that replace what the run makes.  *what* has them, for the message."""
        for key in _REPLACING:
            if key in extra and f"extra.{key}" not in self._told:
                self._told.add(f"extra.{key}")
                log.warning("%s:%d: %s has %r, which replaces what the run makes of the row", self.path, line, what, key)

    def tell_unknown(
        self, row: dict[str, Any], known: Container[str], line: int, hint: str = ": fields of the body stand below 'extra'"
    ) -> None:
        """Warn, once for each, of keys of the row that nobody reads.  *hint*: the message's end."""
        for key in row:
            if key not in known and key not in self._told and len(self._told) < _MOST_TOLD:
                self._told.add(key)
                log.warning("%s:%d: the key %s is unknown, and is not sent%s", self.path, line, shown(key), hint)

    def session(self, row: dict[str, Any], line: int) -> str | None:
        """The row's session id; a number becomes its digits."""
        value = row.get("session_id")
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.string(row, "session_id", line)

    def hash_ids(self, row: dict[str, Any], line: int) -> list[int]:
        """Ids of the blocks of the prompt; [] where the row has none."""
        ids = row.get("hash_ids")
        if ids is None:
            return []
        if not isinstance(ids, list) or not all(isinstance(number, int) and not isinstance(number, bool) for number in ids):
            raise self.wrong(line, "hash_ids must be a list of whole numbers")
        return ids

    def messages(self, row: dict[str, Any], line: int) -> list[dict[str, Any]]:
        """The chat of the row."""
        found = row.get("messages")
        if not isinstance(found, list) or not found or not all(isinstance(each, dict) and "role" in each for each in found):
            raise self.wrong(line, "messages must be a non-empty list of objects with a role")
        return found

    def _strings(self, row: dict[str, Any], field: str, line: int) -> tuple[str, ...]:
        """The texts, or media, of a field or its plural, which exclude each other; empty ones count as absent."""
        single, several = row.get(field) or None, row.get(_FIELDS[field]) or None
        if single is not None and several is not None:
            raise self.wrong(line, f"{field} and {_FIELDS[field]} exclude each other")
        if single is not None or not isinstance(several, list):
            value = single if single is not None else several
            several = [] if value is None else [value]
        found: list[str] = []
        for given in several:
            # A named list: {"name": "query", "contents": ["…"]}.
            contents = given.get("contents") if isinstance(given, dict) else [given]
            if not isinstance(contents, list) or not all(isinstance(text, str) for text in contents):
                raise self.wrong(line, f"{field} is {shown(given)}; it must be a text, a list of texts, or {{name, contents}}")
            found += contents
        if found and not all(found) and (field != "text" or not any(found)):  # of several texts one may be empty
            raise self.wrong(line, f"{field} is empty")
        return tuple(found)

    def _media(self, row: dict[str, Any], line: int) -> Iterator[Media]:
        uuids = row.get("image_uuids")
        images = list(self._strings(row, "image", line))
        if uuids is not None:
            named = any(isinstance(image, dict) for image in row.get("images") or ())
            good = isinstance(uuids, list) and all(isinstance(uuid, str) and uuid for uuid in uuids)
            if not good or named or "image" in row:
                raise self.wrong(line, "image_uuids must be a list of ids, one for each text of images")
            if images and len(images) != len(uuids):
                raise self.wrong(line, f"there are {len(uuids)} image_uuids for {len(images)} images")
            images = images or [""] * len(uuids)
        for i, value in enumerate(images):
            yield Media("image", self._value("image", value, line) if value else "", uuids[i] if uuids is not None else None)
        for kind in ("audio", "video"):
            for value in self._strings(row, kind, line):
                yield Media(kind, self._value(kind, value, line))

    def _value(self, kind: str, value: str, line: int) -> str:
        """A URL or data URI unchanged; else the content of a file, encoded."""
        if value.startswith(("http://", "https://")):
            return value
        head, comma, _ = value.partition(",")
        if value.startswith("data:") or (kind == "audio" and comma and f".{head}" in _AUDIO):
            self._check_inline(kind, value, line)
            return value
        try:
            path = next((path for path in (self.path.parent / value, Path(value)) if path.is_file()), None)
            if path is None:
                raise self.wrong(line, f"there is no {kind} file {shown(value)}; inline data must begin with data:")
            if not self._anywhere and not path.resolve().is_relative_to(self._folder):
                raise BadDataset(
                    f"{self.path}:{line}: the {kind} file {shown(value)} is outside the folder {self.path.parent}",
                    "move it there, or pass --allow-paths",
                )
            ending = path.suffix.lower()
            known = _AUDIO if kind == "audio" else tuple(suffix for suffix, mime in _MIME.items() if mime.startswith(kind))
            if ending not in known:
                raise self.wrong(line, f"{value} is no supported {kind} file; use {', '.join(known)}")
        except OSError as error:  # includes names that are too long, such as inline data
            raise self.wrong(line, f"the {kind} file {shown(value)} can't be read: {error.strerror or error}") from error
        try:
            (medium,) = self._reader.inlined((Media(kind, str(path)),))
        except BadDataset as error:
            raise self.wrong(line, error.message) from error
        return f"{ending[1:]},{medium.value.partition(',')[2]}" if kind == "audio" else medium.value

    def _check_inline(self, kind: str, value: str, line: int) -> None:
        if value.startswith("data:") and ";base64," not in value[:256]:
            raise self.wrong(line, f"the {kind} {shown(value)} has no base64; write data:TYPE;base64,…")
        try:
            media_bytes(Media(kind, value))
        except BadDataset as error:
            raise self.wrong(line, error.message) from error


def _named(row: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The texts of ``{name, contents}`` by their names; a name may come several times."""
    named: dict[str, tuple[str, ...]] = {}
    texts = row.get("texts")
    for given in texts if isinstance(texts, list) else ():
        if isinstance(given, dict) and isinstance(name := given.get("name"), str) and name:
            named[name] = (*named.get(name, ()), *given["contents"])
    return named


def shown(value: object) -> str:
    """A value of a row for a message; long values are shortened."""
    return reprlib.repr(value)
