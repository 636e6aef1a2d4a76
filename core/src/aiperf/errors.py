"""Every error that a command reports, with its exit code.

A message is one sentence about the input; *hint* lines name the possible values and the next thing to do.
"""

from __future__ import annotations

from collections.abc import Sequence


class AiperfError(Exception):
    """An error of input, plugin or machine.  Printed without a traceback.

    *hints* are further lines, printed indented below the message.
    """

    exit_code = 1

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.message, self.hints = message, hints

    def lines(self) -> list[str]:
        return [self.message, *(f"  {hint}" for hint in self.hints)]


class UsageError(AiperfError):
    """The command line cannot be read: unknown option, bad value, left-over word."""

    exit_code = 2


class ConfigError(AiperfError):
    """The options can be read, but no run can have them."""


class ConfigErrors(ConfigError):  # noqa: N818  # the public name
    """All the configuration errors of one command, reported together."""

    def __init__(self, errors: Sequence[AiperfError]) -> None:
        super().__init__(f"{len(errors)} configuration errors")
        self.errors = list(errors)
        self.exit_code = max((error.exit_code for error in self.errors), default=1)

    def __str__(self) -> str:
        return "\n".join([f"{self.message}:", *self.lines()])

    def lines(self) -> list[str]:
        return [line for error in self.errors for line in error.lines()]


class PluginError(AiperfError):
    """A plugin is missing, broken, ambiguous or breaks its contract.  The message names package and version."""


class UnknownPlugin(PluginError):  # noqa: N818  # like its neighbours
    """No plugin has the name that was given: a bad value, like a word that is not one of an option's choices."""

    exit_code = 2


class BadDataset(ConfigError):  # noqa: N818  # the public name
    """A source of conversations cannot be read; the message gives path and line number."""


class BadTokenizer(ConfigError):  # noqa: N818  # the public name
    """A tokenizer cannot be opened."""


class BadJournal(AiperfError):  # noqa: N818  # the public name
    """A directory holds no run to report."""


ENDPOINT_ERROR = "EndpointError"
"""Kind of a request's error where the code of the endpoint failed."""


class BadResponse(AiperfError):  # noqa: N818  # the public name
    """A server's answer breaks its dialect, or carries an error in-band.

    *raw* keeps the bytes; *code* and *kind* are the server's own where it gave them (spec: error records).  *unreadable*:
    the bytes have no meaning at all; in the middle of a stream they are skipped.
    """

    def __init__(
        self, message: str, *, raw: bytes = b"", code: int | None = None, kind: str | None = None, unreadable: bool = False
    ) -> None:
        super().__init__(message)
        self.raw, self.code, self.kind, self.unreadable = raw, code, kind, unreadable
