"""What `aiperf plugins validate` runs."""

from __future__ import annotations

from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from acme_seminar.collections import Collections
from acme_seminar.options import CollectionsOptions
from acme_seminar.quiz import Quiz


class CollectionsContract(DatasetContract):
    drawn = endless = False

    def make(self, entries: int, seed: int) -> Collections:
        context = DatasetContext(
            entries, seed, True, None, Capabilities(), name="acme-house", row={"answers": ["piano", "towel"]}
        )
        return Collections(CollectionsOptions(), context)


class QuizContract(DatasetContract):
    drawn = endless = False

    def make(self, entries: int, seed: int) -> Quiz:
        return Quiz(None, DatasetContext(entries, seed, True, None, Capabilities()))
