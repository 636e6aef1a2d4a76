"""The option of the user's files."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any

import msgspec
from aiperf import Options, option
from aiperf.sdk.options import After
from msgspec import Struct

FORMATS = ("json", "yaml", "text")
_OWN = re.compile(r"journal|logs|\..*|profile_export.*|inputs\.json|outputs\.json|server_metrics_export.*")
"""First parts of the run's own paths."""


class UserFile(Struct, frozen=True, forbid_unknown_fields=True):
    """content: plain; texts in it have expressions.  format: one of FORMATS; "" is chosen by content and path."""

    path: str
    content: Any
    format: str = ""

    @property
    def form(self) -> str:
        if self.format or isinstance(self.content, str):
            return self.format or "text"
        return "yaml" if self.path.endswith((".yaml", ".yml")) else "json"


class UserFileList(Struct, frozen=True, forbid_unknown_fields=True):
    """The option's value.  variables: of the configuration file, with plain values."""

    files: tuple[UserFile, ...]
    variables: dict[str, Any] = {}


def _checked(text: str) -> str:
    read(text)
    return text


def read(text: str) -> UserFileList:
    """The files of the option's text: an object with ``files`` and ``variables``, or a list of files.

    Raises:
        ValueError: It is neither, a path leads out of the directory or to a file of the run, or a text has another form.
    """
    try:
        plain = msgspec.json.decode(text)
        found = msgspec.convert({"files": plain} if isinstance(plain, list) else plain, UserFileList)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"it must be a list of {{path, content}}, with a format where it has one: {error}") from error
    seen: set[str] = set()
    for file in found.files:
        _check(file, seen)
        seen.add(file.path)
    return found


def _check(file: UserFile, seen: set[str]) -> None:
    path = PurePosixPath(file.path)
    if not file.path.strip() or path.is_absolute() or ".." in path.parts or "\0" in file.path or path.name in ("", "."):
        raise ValueError(f"the path {file.path!r} must lead into the artifact directory: notes/README.md")
    if _OWN.fullmatch(path.parts[0]):
        raise ValueError(f"the path {file.path!r} belongs to the run's own files: choose another name")
    if str(path) in seen or file.path in seen:
        raise ValueError(f"the path {file.path!r} stands there twice")
    if file.format not in ("", *FORMATS):
        raise ValueError(f"{file.path}: there is no format {file.format!r}; formats are {', '.join(FORMATS)}")
    if (file.form == "text") != isinstance(file.content, str):
        raise ValueError(f"{file.path}: the content of a text is a text, and that of json and yaml is none")


class UserFilesOptions(Options):
    user_files: Annotated[str, After(_checked)] | None = option("--user-files", group="Output", metavar="JSON",
        place="artifacts.user_files",
        help="Files to write beside the results, a list of {\"path\": …, \"content\": …}; their texts may have expressions.")


__all__ = ["FORMATS", "UserFile", "UserFileList", "UserFilesOptions", "read"]
