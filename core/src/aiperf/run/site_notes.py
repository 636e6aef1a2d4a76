"""What the workers of a site tell those of other sites (``DriverContext.notes``): sent to the run when it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aiperf.sites.messages import Notes
from aiperf.worker.shared import Shared

LOOK_S = 0.01
"""Between two looks at what they tell."""


class SiteNotes:
    """*workers*: indices of the site's own.  *send*: to the run, for the other sites."""

    def __init__(self, shared: Shared, workers: Sequence[int], send: Callable[[Notes], None]) -> None:
        self._shared, self._workers, self._send = shared, workers, send
        self._told: dict[int, list[int]] = {}

    def tell(self) -> None:
        """Tell what has changed."""
        notes = self._shared.notes(self._workers)
        if changed := {worker: told for worker, told in notes.items() if told != self._told.get(worker)}:
            self._told = notes
            self._send(Notes(changed))
