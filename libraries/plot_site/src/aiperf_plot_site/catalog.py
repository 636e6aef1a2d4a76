"""The runs that may be chosen: what the list says of each, read in the background; runs in use are kept open."""

from __future__ import annotations

import copy
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from aiperf import AiperfError, PlotRun
from aiperf_results import FinishedRun

from aiperf_plot_site.drawer import RunCard

MOST_CHOSEN = 500
"""Runs of one figure: their names must fit into a URL."""
MOST_OPEN = 600
"""Runs whose summary and columns stay in memory."""
PAGE = 50
"""Runs of a page of the list."""


class RunCatalog:
    """*runs* by short names; *card* reads what the list has of one.  May be asked from several threads."""

    def __init__(self, runs: Sequence[PlotRun], card: Callable[[PlotRun], RunCard]) -> None:
        self._runs = {_name_of(run, index): run for index, run in enumerate(runs)}
        self._card = card
        self._cards: dict[str, RunCard | str] = {}
        self._open: OrderedDict[str, PlotRun] = OrderedDict()
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def __len__(self) -> int:
        return len(self._runs)

    def names(self) -> list[str]:
        """The names of all runs, in their order."""
        return list(self._runs)

    def label(self, name: str) -> str:
        return self._runs[name].label

    def read(self) -> None:
        """Read every run's card, one after the other, until :meth:`end`: the work of a thread of its own."""
        for name in self._runs:
            if self._ended.wait(0.0002):  # lets the threads of answers run
                return
            self.card(name)

    def end(self) -> None:
        self._ended.set()

    def card(self, name: str) -> RunCard | str:
        """What the list has of a run, or the sentence why it can't be read."""
        found = self._cards.get(name)
        if found is None:
            try:
                found = self._card(copy.deepcopy(self._runs[name]))
            except AiperfError as error:
                found = error.message
            except Exception as error:  # noqa: BLE001  # a summary of another form, whatever it holds
                found = f"its summary is not in the form that this program and the reference write: {type(error).__name__}"
            self._cards[name] = found
        return found

    def listed(self, find: str, model: str, load: str, page: int) -> dict[str, Any]:
        """A page of the runs whose label has all words of *find*, whose models one that has *model*, and whose load is *load*.

        Runs that are not read yet are read here where they are on the page; *model* and *load* look at those that are, and
        ``read`` says how many that is.
        """
        words, wanted = find.lower().split(), model.lower().strip()
        names = [name for name, run in self._runs.items() if all(word in run.label.lower() for word in words)]
        if wanted or load:
            names = [name for name in names if self._fits(name, wanted, load)]
        shown = names[page * PAGE : (page + 1) * PAGE]
        known = [card for card in list(self._cards.values()) if isinstance(card, RunCard)]
        loads = sorted({(card.unit, card.load, card.load_label) for card in known if card.load is not None})
        return {
            "total": len(self._runs), "read": len(self._cards), "found": len(names), "page": page,
            "pages": max(1, -(-len(names) // PAGE)), "names": names[:MOST_CHOSEN],
            "models": sorted({each for card in known for each in card.models})[:200],
            "loads": [label for _, _, label in loads][:200],
            "runs": [{"id": name, "label": self._runs[name].label, **_shown(self.card(name))} for name in shown],
        }  # fmt: skip

    def _fits(self, name: str, model: str, load: str) -> bool:
        card = self._cards.get(name)
        if not isinstance(card, RunCard):
            return False
        return any(model in each.lower() for each in card.models or ("",)) and load in ("", card.load_label)

    def opened(self, names: Sequence[str]) -> list[PlotRun]:
        """The runs of these names, the same object each time while it is in use.

        Raises:
            AiperfError: There is no such run, or they are too many.
        """
        if len(names) > MOST_CHOSEN:
            raise AiperfError(f"{len(names):,} runs are chosen; a figure shows {MOST_CHOSEN} at most", "choose fewer")
        if unknown := [name for name in names if name not in self._runs]:
            raise AiperfError(f"no run is called {unknown[0][:100]!r}; /api/runs lists them")
        with self._lock:
            for name in names:
                if name not in self._open:
                    self._open[name] = copy.deepcopy(self._runs[name])
                self._open.move_to_end(name)
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
            return [self._open[name] for name in names]


def _shown(card: RunCard | str) -> dict[str, Any]:
    if isinstance(card, str):
        return {"problem": card}
    return {
        "models": card.models, "load": card.load, "load_label": card.load_label, "requests": card.requests,
        "failed": card.failed, "verdict": card.verdict,
    }  # fmt: skip


def _name_of(run: PlotRun, index: int) -> str:
    """The run's name in URLs: of its directory, so that an address means the same run tomorrow."""
    part = run.parts()[0] if type(run) is not PlotRun else run
    about = f"{part.directory.resolve()}" if isinstance(part, FinishedRun) else f"{run.label} {index}"
    return hashlib.blake2b(about.encode(), digest_size=5).hexdigest()


__all__ = ["MOST_CHOSEN", "PAGE", "RunCatalog"]
