"""The contract of a subcommand: ``aiperf simulate`` and the like are plugins too.

Options come from the command's pydantic model, exactly as everywhere else; positional words are named by *arguments*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class Command:
    """A subcommand of ``aiperf``.

    arguments: metavar of positional words as help shows them ("DIR..."); "" takes none.
    """

    arguments: ClassVar[str] = ""

    def run(self, options: Any, words: Sequence[str]) -> int:
        """Do it; returns the exit code.  *options* is the validated model (None where the command declares none).

        Raises:
            AiperfError: Printed as a sentence, with its exit code.
        """
        raise NotImplementedError(f"{type(self).__name__} must define run(options, words)")
