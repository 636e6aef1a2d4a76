"""One row as one turn: fields, their rules, and media that are files."""

from __future__ import annotations

import base64
import reprlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Media, Turn

_FIELDS = {"text": "texts", "image": "images", "audio": "audios", "video": "videos"}
_ALIASES = {"text_input": "text"}
"""genai-perf's name."""
_MIME = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".mp4": "video/mp4", ".webm": "video/webm"}
_AUDIO = (".wav", ".mp3")
MODALITIES = (*_FIELDS, *_FIELDS.values(), *_ALIASES)
"""Keys any of which makes a row one of this kind."""


class Rows:
    """Reads the rows of one file; *path* is for messages, and for media whose paths are relative to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def turn(self, row: dict[str, Any], line: int, what: str = "row") -> Turn:
        """A row, or a turn within one, as a turn.

        Raises:
            BadDataset: It breaks a rule; the message gives path and line.
        """
        row = {_ALIASES.get(key, key): value for key, value in row.items()}
        texts = tuple(self._strings(row, "text", line))
        media = tuple(self._media(row, line))
        if not texts and not media:
            raise self.wrong(line, f"the {what} has none of text, image, audio and video")
        timestamp, delay = self.number(row, "timestamp", line), self.number(row, "delay", line)
        if timestamp is not None and delay is not None:
            raise self.wrong(line, "timestamp and delay exclude each other: a turn has a time of its own or follows the last")
        length = self.whole(row, "output_length", line)
        return Turn(
            texts=texts,
            media=media,
            role=self.string(row, "role", line) or "user",
            model=self.string(row, "model", line) or "",
            max_tokens=length,
            delay_ms=delay,
            timestamp_ms=timestamp,
            extra=self.mapping(row, "extra", line) or {},
        )

    def wrong(self, line: int, why: str) -> BadDataset:
        return BadDataset(f"{self.path}:{line}: {why}")

    def number(self, row: dict[str, Any], key: str, line: int) -> float | None:
        """A time in ms, >= 0; None where there is none."""
        value = row.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise self.wrong(line, f"{key} is {shown(value)}; it is a number of milliseconds, 0 or more")
        return float(value)

    def whole(self, row: dict[str, Any], key: str, line: int) -> int | None:
        """A number of tokens, >= 1; None where there is none."""
        value = row.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.wrong(line, f"{key} is {shown(value)}; it is a whole number of at least 1")
        return value

    def string(self, row: dict[str, Any], key: str, line: int) -> str | None:
        value = row.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(line, f"{key} is {shown(value)}; it is a text")
        return value

    def mapping(self, row: dict[str, Any], key: str, line: int) -> dict[str, Any] | None:
        value = row.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(line, f"{key} is {shown(value)}; it is an object")
        return value

    def session(self, row: dict[str, Any], line: int) -> str | None:
        """The row's session id; numbers are taken for their digits."""
        value = row.get("session_id")
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.string(row, "session_id", line)

    def _strings(self, row: dict[str, Any], field: str, line: int) -> Iterator[str]:
        """The texts, or media, of a field and its plural, which exclude each other."""
        one, many = row.get(field), row.get(_FIELDS[field])
        if one is not None and many is not None:
            raise self.wrong(line, f"{field} and {_FIELDS[field]} exclude each other")
        for given in [one] if one is not None else many if isinstance(many, list) else [] if many is None else [many]:
            # A named list: {"name": "query", "contents": ["…"]}.
            contents = given.get("contents") if isinstance(given, dict) else [given]
            if not isinstance(contents, list) or not all(isinstance(each, str) for each in contents):
                raise self.wrong(line, f"{field} is {shown(given)}; it is a text, a list of texts, or {{name, contents}}")
            if not all(contents):
                raise self.wrong(line, f"{field} is empty")
            yield from contents

    def _media(self, row: dict[str, Any], line: int) -> Iterator[Media]:
        uuids = row.get("image_uuids")
        images = list(self._strings(row, "image", line))
        if uuids is not None:
            named = any(isinstance(each, dict) for each in row.get("images") or ())
            good = isinstance(uuids, list) and all(isinstance(each, str) and each for each in uuids)
            if not good or named or "image" in row:
                raise self.wrong(line, "image_uuids is a list of ids, one for each text of images")
            if images and len(images) != len(uuids):
                raise self.wrong(line, f"there are {len(uuids)} image_uuids for {len(images)} images")
            images = images or [""] * len(uuids)
        for i, value in enumerate(images):
            yield Media("image", self._value("image", value, line) if value else "", uuids[i] if uuids is not None else None)
        for kind in ("audio", "video"):
            for value in self._strings(row, kind, line):
                yield Media(kind, self._value(kind, value, line))

    def _value(self, kind: str, value: str, line: int) -> str:
        """URLs and data URIs as they are; else a file, read and encoded."""
        head, comma, _ = value.partition(",")
        if value.startswith(("http://", "https://", "data:")) or (kind == "audio" and comma and f".{head}" in _AUDIO):
            return value
        try:
            path = next((each for each in (Path(value), self.path.parent / value) if each.is_file()), None)
            if path is None:
                raise self.wrong(line, f"there is no {kind} file {shown(value)}; data itself begins with data:")
            ending = path.suffix.lower()
            known = _AUDIO if kind == "audio" else tuple(each for each, mime in _MIME.items() if mime.startswith(kind))
            if ending not in known:
                raise self.wrong(line, f"{value} is no {kind} that can be sent; those end with {', '.join(known)}")
            data = base64.b64encode(path.read_bytes()).decode()
        except OSError as error:  # a name that is too long, too: such as the data itself
            raise self.wrong(line, f"the {kind} file {shown(value)} can't be read: {error.strerror or error}") from error
        return f"{ending[1:]},{data}" if kind == "audio" else f"data:{_MIME[ending]};base64,{data}"


def shown(value: object) -> str:
    """A value of a row, for a message: a picture in base64 is cut short."""
    return reprlib.repr(value)
