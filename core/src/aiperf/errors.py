"""Every error a person may be told about, and the exit code it ends a command with.

A message is one sentence that says what was given; *hint* lines say what was possible and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence


class AiperfError(Exception):
    """Something the user, a plugin or the machine can put right.  Printed without a traceback.

    *hints* are further lines, printed indented below the message.
    """

    exit_code = 1

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.message = message
        self.hints = hints

    def lines(self) -> list[str]:
        return [self.message, *(f"  {hint}" for hint in self.hints)]


class UsageError(AiperfError):
    """The command line could not be read: unknown option, bad value, left-over word."""

    exit_code = 2


class ConfigError(AiperfError):
    """The options can be read but not run."""


class ConfigErrors(ConfigError):  # noqa: N818  # the public name
    """All the configuration errors of one command, reported together."""

    def __init__(self, errors: Sequence[AiperfError]) -> None:
        super().__init__(f"{len(errors)} configuration errors")
        self.errors = list(errors)
        self.exit_code = max((error.exit_code for error in self.errors), default=1)

    def lines(self) -> list[str]:
        return [line for error in self.errors for line in error.lines()]


class PluginError(AiperfError):
    """A plugin is missing, broken, ambiguous or breaks its contract.  The message names package and version."""


class BadDataset(ConfigError):  # noqa: N818  # the public name
    """A source of conversations can't be read; the message gives path and line number."""


class BadTokenizer(ConfigError):  # noqa: N818  # the public name
    """A tokenizer can't be had."""


class BadJournal(AiperfError):  # noqa: N818  # the public name
    """A directory holds no run that can be reported."""


ENDPOINT_ERROR = "EndpointError"
"""Kind of a request's error where the endpoint's own code failed."""


class BadResponse(AiperfError):  # noqa: N818  # the public name
    """A server's answer is not what its dialect promises, or is an error said in-band.

    *raw* keeps the bytes; *code* and *kind* are the server's own where it gave them (spec: error records).  *unreadable*:
    the bytes said nothing at all; in the middle of a stream that is passed over.
    """

    def __init__(
        self, message: str, *, raw: bytes = b"", code: int | None = None, kind: str | None = None, unreadable: bool = False
    ) -> None:
        super().__init__(message)
        self.unreadable = unreadable
        self.raw = raw
        self.code = code
        self.kind = kind
