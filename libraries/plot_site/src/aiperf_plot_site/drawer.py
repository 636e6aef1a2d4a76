"""What the page asks of the command: plots, their figures, and what is known of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from aiperf import Figure, PlotRun
from msgspec import Struct

Change = Callable[[Figure, Sequence[PlotRun]], Figure]


class OfferedPlot(Struct, frozen=True):
    """A plot that may be chosen.  most_runs: None is any number."""

    name: str
    title: str
    runs: int
    most_runs: int | None


class RunCard(Struct, frozen=True):
    """What the list has of a run.

    load: of the measure *unit*; None where it is unknown.  requests: that ended, failed ones included; None where the results
    do not say it.  verdict: None where they have none.
    """

    models: tuple[str, ...]
    load: float | None
    unit: str
    load_label: str
    requests: int | None
    failed: int
    cut_off: int
    verdict: str | None
    reasons: tuple[str, ...]


class Drawn(Struct, frozen=True):
    """Figures as JSON, with a sentence on each run and plot that failed, and lines for the caption."""

    figures: list[dict[str, Any]]
    failures: list[str]
    caption: list[str]


class Drawer(Protocol):
    """Draws figures for the page."""

    def offered(self) -> list[OfferedPlot]:
        """The installed plots."""

    def card(self, run: PlotRun) -> RunCard:
        """What the list has of *run*.

        Raises:
            AiperfError: Its summary can't be read.
        """

    def draw(self, runs: Sequence[PlotRun], names: Sequence[str], file: bytes, change: Change) -> Drawn:
        """The figures called *names*; with none, those that *file* declares, the text of a ``--config`` file.

        *change*: applied to each figure before its points are reduced.

        Raises:
            AiperfError: A name is not installed, or the file has a mistake.
        """

    def files(self, runs: Sequence[PlotRun], file: bytes, change: Change) -> dict[str, bytes]:
        """What is saved of the figures that *file* declares, by name: numbers, pictures where they can be drawn, and a list.

        Raises:
            AiperfError: The file has a mistake.
        """


__all__ = ["Change", "Drawer", "Drawn", "OfferedPlot", "RunCard"]
