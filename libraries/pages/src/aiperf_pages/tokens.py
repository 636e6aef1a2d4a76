"""The token that changes a run, and that everything needs beyond loopback."""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from pathlib import Path

from aiperf.sdk.errors import ConfigError

TOKEN, TOKEN_FILE = "AIPERF_API_TOKEN", "AIPERF_API_TOKEN_FILE"
_FEWEST_CHARACTERS = 16
_MOST_BYTES = 4096


def token_of_environment() -> str | None:
    """The token of ``AIPERF_API_TOKEN``, or in the file that ``AIPERF_API_TOKEN_FILE`` names; None where neither is set.

    A file that is not there is made, with a new token and mode 0600.

    Raises:
        ConfigError: The token is too short, or others may read the file.
    """
    if given := os.environ.get(TOKEN, "").strip():
        return _checked(given, TOKEN)
    if not (named := os.environ.get(TOKEN_FILE, "").strip()):
        return None
    return token_of_file(Path(named), TOKEN_FILE)


def token_of_file(path: Path, called: str) -> str:
    """The token in a file of mode 0600, which is made where it is not there.  *called*: what named the file, for sentences.

    Raises:
        ConfigError: It can't be made or read, others may read it, or its token is too short.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return _of_file(path, called)
    except OSError as error:
        hint = "name a file in a directory of yours"
        raise ConfigError(f"{called}: {path} can't be made: {error.strerror}", hint) from error
    token = new_token()
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{token}\n")
    return token


def _of_file(path: Path, called: str) -> str:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(f"{called}: {path} is no file", "name a file with the token, mode 0600")
            if status.st_mode & 0o077:
                raise ConfigError(f"{called}: others may read {path}", f"chmod 600 {path}")
            text = file.read(_MOST_BYTES).decode("utf-8", "replace").strip()
    except OSError as error:
        raise ConfigError(f"{called}: {path} can't be read: {error.strerror}") from error
    return _checked(text, called)


def _checked(token: str, variable: str) -> str:
    if len(token) < _FEWEST_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"{variable}: the token must have {_FEWEST_CHARACTERS} or more printable ASCII characters and no space",
            "leave it out, and one is made",
        )
    return token


def new_token() -> str:
    """A token of 192 random bits, for a URL's fragment."""
    return secrets.token_urlsafe(24)


def bears(authorization: str | None, token: str) -> bool:
    """Whether a header ``Authorization`` has the token; the comparison takes the same time wherever they differ."""
    scheme, _, given = (authorization or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


__all__ = ["TOKEN", "TOKEN_FILE", "bears", "new_token", "token_of_environment", "token_of_file"]
