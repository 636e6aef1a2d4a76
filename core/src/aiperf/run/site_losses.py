"""What becomes of a run whose sites are lost while it goes on."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from aiperf.errors import AiperfError

if TYPE_CHECKING:
    from aiperf.run.children import Children
    from aiperf.run.live_parts import LiveParts
    from aiperf.run.start import Outcome
    from aiperf.sites.remote import RemoteSites
    from aiperf.sites.remote_site import RemoteSite


class SiteLosses:
    """Starts lost sites again, where the plan says so, or goes on without them.  *parts*: live figures of their reducers."""

    def __init__(
        self, sites: RemoteSites, children: Children, outcome: Outcome, parts: LiveParts, *, again: bool
    ) -> None:  # fmt: skip
        self._sites, self._children, self._outcome, self._parts, self._again = sites, children, outcome, parts, again

    @property
    def gaps(self) -> str | None:
        """Why the results are partial though every site is there; None where none was lost."""
        return "; ".join(gap for site in self._sites.all if (gap := site.gap) is not None) or None

    @property
    def fresh(self) -> bool:
        """Whether a site is lost of which nothing became yet."""
        return any(site.lost is not None and not site.workers <= self._outcome.lost for site in self._sites.all)

    def first_requests(self) -> dict[int, tuple[int, ...]]:
        """Numbers for the run's end, by worker of a site that was started again."""
        return {worker: site.first_requests for site in self._sites.all if site.losses for worker in site.workers}

    def handle(self, *, load: bool) -> tuple[set[int], set[int]]:
        """Look for sites that are lost: workers that are gone with them, and workers in whose place others were started.

        *load*: a phase goes on.
        """
        gone, replaced = set[int](), set[int]()
        ends = not load or self._outcome.signals.count > 0 or self._outcome.incomplete is not None
        for site in self._sites.all:
            workers = site.workers
            if ends and load and site.lost is None and site.losses and not self._ready(workers):
                site.lose("the load ended before another one was there")
            if site.lost is None or workers <= self._outcome.lost:
                continue
            if not ends and self._again and self._starts_again(site):
                self._outcome.died |= workers
                replaced |= workers
            else:
                self._note(site)
                gone |= workers
        return gone, replaced

    def _ready(self, workers: Collection[int]) -> bool:
        return all(child.ready for child in self._children.workers if child.index in workers)

    def _starts_again(self, site: RemoteSite) -> bool:
        why = site.lost
        try:
            again = self._sites.start_again(site)
        except AiperfError as error:
            site.lost = f"{why}; {error.message}"
            return False
        self._parts.lose(site.reducers)
        self._children.move(again)
        self._outcome.warn(f"the site {site.name} was lost: {why}; another one is started in its place")
        return True

    def _note(self, site: RemoteSite) -> None:
        self._outcome.warn(site.sentence)
        self._outcome.incomplete = self._outcome.incomplete or site.sentence
