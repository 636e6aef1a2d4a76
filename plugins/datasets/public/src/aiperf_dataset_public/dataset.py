"""Public data sets: each is a row of the manifest, which says where it is and what its columns mean."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Turn
from aiperf.sdk.model import names
from aiperf_dataset_synthetic.file import FileDefaults
from msgspec.structs import replace

from aiperf_dataset_public.options import PublicOptions
from aiperf_dataset_public.sets import SESSIONS, PublicSet, public_set

if TYPE_CHECKING:
    from aiperf_dataset_public.agents import Agents
    from aiperf_dataset_public.download import Progress
    from aiperf_dataset_public.records import Row

log = logging.getLogger("aiperf.datasets.public")
_on_the_way = logging.getLogger("aiperf.progress")  # for the console alone
_EVERY_S = 5.0


class Public(Dataset[PublicOptions]):
    """A data set of the hub, fetched as far as the run needs it, or its local copy."""

    def __init__(self, options: PublicOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._set: PublicSet = public_set(context.name, context.row)
        self._defaults = FileDefaults(options, replace(context, source=context.source or Path(context.name)))
        self._facts: dict[str, Any] = {}
        self._read: list[str] = []
        self._count, self._skipped = 0, Counter[str]()
        self._agents: Agents | None = None
        if options.dataset_filter and not self._set.filters:
            raise BadDataset(f"--dataset-filter has no use: {context.name} has no filters", "drop --dataset-filter")
        if context.source is not None and options.hf_revision is not None:
            raise BadDataset("--hf-revision has no use for a local copy, which --input-file gives", "drop --hf-revision")
        if options.hf_subset is not None and not self._set.repository:
            raise BadDataset(f"--hf-subset has no use: {context.name} is one file, and has no subsets", "drop --hf-subset")

    def source_facts(self) -> dict[str, Any]:
        read = {"files": self._read, "rows_read": self._count, "rows_skipped": dict(self._skipped)}
        commit, subset = str(self._facts.get("commit", "")), self.options.hf_subset or ""
        provenance = self._set.provenance(self.context.name, commit, subset)
        return {"name": self.context.name, **self._facts, **read, "provenance": provenance}

    def __iter__(self) -> Iterator[Conversation]:
        from aiperf_dataset_public.records import records
        from aiperf_dataset_public.skip import Skip

        made, wanted, number = self._maker(), self.context.entries, 0
        self._facts, self._read, self._count, self._skipped = {}, [], 0, Counter()
        for path, name in self._files():
            self._read.append(name)
            for place, row in records(path, self._set.columns):
                self._count += 1
                try:
                    for identity, turns in made(row, place):
                        yield self._defaults.conversation(number, identity, turns, alone=identity is not None)
                        number += 1
                        if number == wanted:
                            break
                except Skip as skip:
                    self._skipped[str(skip)] += 1
                if number == wanted:
                    break
            if number == wanted:
                break
        skipped = self._skipped
        if skipped:
            why = names([f"{times:,} for {reason}" for reason, times in skipped.most_common()])
            log.info("%s: %d of %d rows were skipped: %s", self.context.name, skipped.total(), self._count, why)
        if self._agents is not None:
            self._agents.finish(self.context.name)
        elif number == 0:
            why = f": {names([f'{times:,} rows have {reason}' for reason, times in skipped.most_common()])}" if skipped else ""
            raise BadDataset(f"the public data set {self.context.name} gives no conversation{why}")

    def _maker(self) -> Callable[[Row, str], Iterable[tuple[str | None, tuple[Turn, ...]]]]:
        """What makes the conversations of a row, from the row and its place: names, None for one of the kernel's, and turns."""
        if self._set.shape == SESSIONS:
            from aiperf_dataset_public.agents import Agents

            if self._defaults.stands_before:
                what = self._defaults.stands_before
                raise BadDataset(f"{self.context.name}: messages are sent unchanged: the {what} can't come before them")
            self._agents = Agents(self.context.name, self._set, self.context, self.options.filters)
            return self._agents.of
        from aiperf_dataset_public.shapes import Shapes

        given = self.options.osl is not None or self.options.answers is not None
        shapes = Shapes(self._set, self.context, answers_given=given)
        return lambda row, _: [(None, shapes.turns(row))]

    def _files(self) -> Iterator[tuple[Path, str]]:
        """The files and their names, each fetched when it is needed."""
        from aiperf_dataset_public.files import Parts
        from aiperf_dataset_public.waiting import Patience

        public, options, patience = self._set, self.options, Patience()
        if (copy := self.context.source) is not None:
            for path in Parts(self.context.name, public, options.hf_subset).of_copy(copy):
                yield path, str(path)
            return
        if not public.repository:
            from aiperf_dataset_public.single_file import fetched

            path = fetched(self.context.name, public, patience)
            self._facts |= {"url": public.url}
            yield path, public.url
            return
        from aiperf_dataset_public.download import Downloads

        listing, files = Parts(self.context.name, public, options.hf_subset).of_hub(options.hf_revision, patience)
        self._facts |= {
            "repository": public.repository, "revision": options.hf_revision or public.revision, "commit": listing.commit,
            "licence": public.licence or listing.licence,
        }  # fmt: skip
        downloads = Downloads(self.context.name, listing, Lines(), patience)
        for file in files:
            yield downloads.file(file), file.name


class Lines:
    """Says on the console how far a download is, every five seconds."""

    def __init__(self) -> None:
        self._due_s = time.monotonic() + 1.0

    def __call__(self, progress: Progress) -> None:
        from aiperf_dataset_public.download import megabytes

        if time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + _EVERY_S
            of = "" if progress.total is None else f" of {megabytes(progress.total)}"
            _on_the_way.info("Fetching %s: %s%s", progress.name, megabytes(progress.done), of)


__all__ = ["Public"]
