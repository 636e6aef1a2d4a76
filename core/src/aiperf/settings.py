"""What the command line came to, before it is a plan."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aiperf.options import KernelOptions


class Settings(Struct, frozen=True):
    """Validated options.

    plugins: the option models of installed plugins, by ``category:name``.
    typed: the flag as the person typed it, by field (``request_rate``, or ``datasets:synthetic.isl`` for a plugin's).
    command: the command line as typed, secrets redacted.  pins: ``category:name`` to distribution.
    """

    kernel: KernelOptions
    plugins: dict[str, Any]
    typed: dict[str, str]
    command: str
    pins: dict[str, str]
    disabled: tuple[str, ...] = ()

    def flag(self, field: str, canonical: str) -> str:
        """The flag to name in a message: as typed, else *canonical*."""
        return self.typed.get(field, canonical)
