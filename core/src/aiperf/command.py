"""The contract of a subcommand: ``aiperf simulate`` and the like are plugins too.

Options come from the command's pydantic model, exactly as everywhere else; positional words are named by *arguments*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

if TYPE_CHECKING:
    from aiperf.registry import Registry


class Others(Struct, frozen=True):
    """What a command line said of other plugins, to a command whose manifest takes their options (``options_of``).

    options: the model of each installed plugin of those categories, by ``category:name``; one that needs an option which
    nobody gave has none.  given: the fields that were given, likewise.
    """

    registry: Registry
    options: dict[str, Any]
    given: dict[str, tuple[str, ...]]


class Command:
    """A subcommand of ``aiperf``.

    arguments: metavar of positional words as help shows them ("DIR..."); "" takes none.
    others: set before ``run`` where the manifest's capability ``options_of`` lists categories, whose plugins' options the
    command takes then like ``profile`` does.
    """

    arguments: ClassVar[str] = ""
    others: Others | None = None

    def run(self, options: Any, words: Sequence[str]) -> int:
        """Do it; returns the exit code.  *options* is the validated model (None where the command declares none).

        Raises:
            AiperfError: Printed as a sentence, with its exit code.
        """
        raise NotImplementedError(f"{type(self).__name__} must define run(options, words)")
