"""A public data set, as its row in the manifest describes it."""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import BadDataset
from msgspec import Struct

SESSIONS = "sessions"
"""The shape whose rows are sessions of agents."""
HUB_PAGE = "https://huggingface.co/datasets/"


class Source(Struct, frozen=True):
    """Where the files of a data set are.  Rows of other packages may have these fields, too, and others beside them.

    repository, revision: on the hub; the revision is a commit, or a branch where none is pinned.
    url: of the only file, for a set that isn't on the hub.
    subset, split: the hub's words for parts of a repository.  files: patterns of the names of its files, where the repository's
    card and the usual names don't tell.
    rows: number of rows, 0 where it is not known.  licence: "" where the repository's card tells it.
    gate: "" needs no login, ``login`` needs one, ``terms`` also that its terms are accepted on its page.
    needs: packages beside those of a default install.
    """

    repository: str = ""
    revision: str = "main"
    url: str = ""
    subset: str = ""
    split: str = "train"
    files: tuple[str, ...] = ()
    rows: int = 0
    licence: str = ""
    gate: str = ""
    needs: tuple[str, ...] = ()

    @property
    def page(self) -> str:
        """The page that people read about the set."""
        return f"{HUB_PAGE}{self.repository}" if self.repository else self.url

    def provenance(self, name: str, commit: str = "", subset: str = "") -> dict[str, Any]:
        """Where a run's data came from, for ``provenance`` of :meth:`aiperf.Dataset.source_facts`.

        *commit*: that was read, "" where the hub was not asked, as of a local copy.  *subset*: in place of the set's own.
        """
        told = {"source_type": "public_dataset", "loader": name}
        if commit and self.repository:
            told |= {"hf_dataset_name": self.repository, "hf_split": self.split, "hf_revision": commit}
            told |= {"hf_subset": each} if (each := subset or self.subset) else {}
        return told


class PublicSet(Source, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A data set of this package.

    shape: how a row becomes a conversation (:data:`aiperf_dataset_public.shapes.SHAPES`).  columns: those that the shape reads,
    in its order.
    filters: values of each key of ``--dataset-filter``.  absent: pairs of a harness and a model that no session has, or models
    alone.
    timed: its rows have recorded times.
    """

    shape: str
    columns: tuple[str, ...]
    filters: dict[str, tuple[str, ...]] = {}
    absent: tuple[tuple[str, ...], ...] = ()
    timed: bool = False


def source_of(row: dict[str, Any]) -> Source | None:
    """Where the files of a row's data set are; None where the row doesn't tell."""
    try:
        found = msgspec.convert(row, Source)
    except msgspec.ValidationError:
        return None
    return found if found.repository or found.url else None


def public_set(name: str, row: dict[str, Any]) -> PublicSet:
    """The set of a manifest's row.

    Raises:
        BadDataset: The row is not one of a public set.
    """
    try:
        return msgspec.convert(row, PublicSet)
    except msgspec.ValidationError as error:
        raise BadDataset(f"the row of the public data set {name!r} can't be used: {error}") from error
