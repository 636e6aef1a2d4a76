"""``aiperf config validate FILE``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from aiperf import AiperfError, Command
from aiperf.parts.plans import asked, complain

from aiperf_command_config.files import given


class Validate(Command):
    """Reads a file on the way of ``aiperf profile --config``: 0 if the runs could begin, else 1 with all faults."""

    arguments = "FILE"

    def run(self, options: None, words: Sequence[str]) -> int:
        try:
            with given(words[0]) as path:
                found = asked(self.registry, ["--config", str(path)], with_cells=False)
        except AiperfError as error:
            complain(error)
            return 1
        name = "standard input" if words[0] == "-" else words[0]
        if found.space is None:
            print(f"{name} is valid: one run")
        else:
            runs = sum(cell.runs for cell in found.cells)
            more = ", and more as they are planned" if found.most is None else f", {found.most} at most"
            more = "" if found.most == runs else more
            cells = f"{len(found.cells)} variations, " if found.space.dimensions or found.space.scenarios else ""
            print(f"{name} is valid: {cells}{runs} runs{more}, planned by {found.planner}")
        sys.stdout.flush()
        return 0


__all__ = ["Validate"]
