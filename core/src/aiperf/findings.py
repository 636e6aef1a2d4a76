"""What is wrong with a command's options, and what is only worth a warning, on the way to a plan."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aiperf.errors import AiperfError, ConfigError, ConfigErrors

if TYPE_CHECKING:
    from aiperf.settings import Settings

log = logging.getLogger(__name__)

_USUAL = {
    "models": "--model",
    "endpoint_path": "--endpoint",
    "artifact_dir": "--artifact-dir",
    "session_count": "--num-sessions",
}
"""Options that nobody calls by their canonical name."""


class Findings:
    """Collects errors and warnings, each naming the flag as the person typed it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.kernel = settings.kernel
        self.errors: list[AiperfError] = []
        self._notes: list[tuple[int, str]] = []

    def refuse(self, message: str, *hints: str) -> None:
        self.errors.append(ConfigError(message, *hints))

    def warn(self, message: str) -> None:
        """Log it if there is a run."""
        self._notes.append((logging.WARNING, message))

    def hint(self, message: str) -> None:
        """Likewise, where it is no trouble."""
        self._notes.append((logging.INFO, message))

    @contextmanager
    def collected(self, flag: str = "") -> Iterator[None]:
        """Errors raised inside join the others, with *flag* before them."""
        try:
            yield
        except ConfigErrors as errors:
            self.errors += errors.errors
        except AiperfError as error:
            if flag:
                error.message = f"{flag}: {error.message}"
            self.errors.append(error)

    def refuse_if_any(self) -> None:
        """Raise what was found wrong.

        Raises:
            ConfigErrors: Everything, what was found twice once.
        """
        if self.errors:
            raise ConfigErrors(list({tuple(error.lines()): error for error in self.errors}.values()))

    def settle(self) -> None:
        """Raise what was found wrong, else log what was only worth a warning."""
        self.refuse_if_any()
        for level, message in self._notes:
            log.log(level, "%s", message)
        self._notes.clear()

    # Kernel options

    def given(self, field: str) -> bool:
        """Whether the person gave it, with a value that asks for something."""
        value = getattr(self.kernel, field)
        return value is not None and value is not False

    def typed(self, field: str) -> bool:
        """Whether the person gave it, whatever the value: its default stands for something too."""
        return field in self.kernel.model_fields_set

    def flag(self, field: str) -> str:
        """The option's flag as typed, else the one that people know it by."""
        extra = type(self.kernel).model_fields[field].json_schema_extra
        face: Any = extra["aiperf"] if isinstance(extra, dict) else {}
        return self.settings.flag(field, _USUAL.get(field, face["flags"][0]))

    def flags(self, fields: Sequence[str]) -> str:
        """``--a, --b or --c``."""
        flags = [self.flag(field) for field in fields]
        return " or ".join((", ".join(flags[:-1]), flags[-1])) if len(flags) > 1 else flags[0]

    def exclusive(self, first: str, second: str, why: str) -> None:
        """Refuse two options together."""
        if self.given(first) and self.given(second):
            one, other = self.flag(first), self.flag(second)
            self.refuse(f"{one} and {other} exclude each other: {why}", f"keep {one} and drop {other}, or the other way round")

    def needs(self, field: str, needed: Sequence[str], why: str) -> None:
        """Refuse an option without any of those that it depends on."""
        if self.given(field) and not any(map(self.given, needed)):
            wanted = self.flags(needed)
            self.refuse(f"{self.flag(field)} needs {wanted}: {why}", f"add {wanted}, or drop {self.flag(field)}")
