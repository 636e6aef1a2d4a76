"""Which files of a repository, or of a local copy, are those of a data set's subset and split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from aiperf import BadDataset

from aiperf_dataset_public.hub import CONVERTED, HubFile, Listing, known, listing
from aiperf_dataset_public.sets import Source
from aiperf_dataset_public.waiting import Patience

ENDINGS = (".parquet", ".arrow", ".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".json.gz", ".csv")
_ANY_SUBSET = "default"


class Parts:
    """Finds the files of a set.  subset: in place of the set's own; None leaves that.  flag: how messages name it."""

    def __init__(self, name: str, public: Source, subset: str | None = None) -> None:
        self._name, self._public, self._given = name, public, subset
        self._subset = public.subset if subset is None else subset

    def of_hub(
        self, revision: str | None, patience: Patience, *, fresh: bool = False
    ) -> tuple[Listing, tuple[HubFile, ...]]:
        """The repository and the set's files in it, in their order; where it has a script in place of data, the hub's Parquet.

        *fresh*: the hub is asked also where the cache knows.

        Raises:
            BadDataset: It can't be listed, or has no such files.
        """
        public = self._public
        here = listing(self._name, public.repository, revision or public.revision, patience, fresh=fresh)
        if chosen := self.chosen(here):
            return here, chosen
        if any(file.name.endswith(".py") for file in here.files) and revision is None:
            converted = listing(self._name, public.repository, CONVERTED, patience, fresh=fresh)
            if chosen := self.chosen(converted):
                return converted, chosen
            here = converted
        raise self._nothing(here)

    def of_cache(self, revision: str | None) -> tuple[Listing, tuple[HubFile, ...]] | None:
        """The same as :meth:`of_hub`, without asking the hub; None where the cache doesn't know the revision."""
        for one in (revision or self._public.revision, *(() if revision else (CONVERTED,))):
            if (here := known(self._public.repository, one)) is not None and (chosen := self.chosen(here)):
                return here, chosen
        return None

    def of_copy(self, path: Path) -> list[Path]:
        """The set's files of a local copy: a file, a directory of files, a folder of the hub's cache or of one commit in it.

        Raises:
            BadDataset: It has none.
        """
        if not path.is_dir():
            return [path]
        path = snapshot_in(path, self._public.revision)
        files = {str(file.relative_to(path)): file for file in sorted(path.rglob("*")) if file.is_file()}
        readable = [name for name in files if _readable(name)]
        chosen = self.chosen(Listing(self._public.repository, "", files=tuple(map(HubFile, files))))
        names = [file.name for file in chosen] or [name for name in readable if self._matches_anywhere(name)]
        if not names and len({Path(name).suffix for name in readable}) == 1:
            names = readable
        if not names:
            held = ", ".join(list(files)[:5]) or "nothing"
            raise BadDataset(
                f"{path} has no files of the public data set {self._name!r}: it has {held}",
                f"its files are of the split {self._public.split}; give them by name, or as the hub has them",
            )
        return [files[name] for name in names]

    def chosen(self, here: Listing) -> tuple[HubFile, ...]:
        """The set's files of a repository, in the order of their names; () where it has none."""
        for patterns in self._ways(here):
            if found := _matching(here.files, patterns):
                return found
        return ()

    def _ways(self, here: Listing) -> Iterable[Sequence[str]]:
        """Patterns of names: the set's own, else those that the card tells, else the usual names."""
        public, subset, split = self._public, self._subset, self._public.split
        if public.files and self._given is None:
            yield public.files
        for name in (subset,) if subset else (_ANY_SUBSET, *(here.subsets if len(here.subsets) == 1 else ())):
            if split in here.subsets.get(name, {}):
                yield here.subsets[name][split]
        folders = [f"{subset}/", f"data/{subset}/"] if subset else [f"{_ANY_SUBSET}/", "data/", ""]
        for folder in folders:
            yield (f"{folder}{split}-*", f"{folder}{split}.*")
            yield (f"{folder}{split}/*", f"{folder}partial-{split}/*")

    def _matches_anywhere(self, name: str) -> bool:
        """Whether a file has the name of one of the set's, in whatever folder."""
        base, split = Path(name).name, self._public.split
        patterns = [Path(pattern).name for pattern in self._public.files] or [f"{split}-*", f"{split}.*"]
        return any(fnmatchcase(base, pattern) for pattern in patterns)

    def _nothing(self, here: Listing) -> BadDataset:
        what = f"the split {self._public.split}" + (f" of the subset {self._subset!r}" if self._subset else "")
        folders = {str(Path(file.name).parent) for file in here.files if _readable(file.name)} - {"."}
        known = sorted(here.subsets) or sorted(folders)
        hints = [f"its subsets: {', '.join(known[:40])}{', …' if len(known) > 40 else ''}"] if known else []
        if self._given is not None:
            hints.append("check --hf-subset")
        return BadDataset(f"{here.repository} has no files of {what} at {here.commit[:12]} that can be read", *hints)


def _matching(files: Iterable[HubFile], patterns: Sequence[str]) -> tuple[HubFile, ...]:
    found = (file for file in files if _readable(file.name) and any(fnmatchcase(file.name, pattern) for pattern in patterns))
    return tuple(sorted(found, key=lambda file: file.name))


def _readable(name: str) -> bool:
    return name.endswith(ENDINGS)


def snapshot_in(path: Path, revision: str) -> Path:
    """The commit's folder, where *path* is a repository's folder of the hub's cache; else *path*.

    Raises:
        BadDataset: It has several commits, none of them the revision.
    """
    snapshots = path / "snapshots"
    if not snapshots.is_dir():
        return path
    ref = path / "refs" / revision
    commit = ref.read_text().strip() if ref.is_file() else revision
    if (snapshots / commit).is_dir():
        return snapshots / commit
    commits = sorted(snapshots.iterdir())
    if len(commits) != 1:
        raise BadDataset(
            f"{path} has {len(commits)} commits, none of them {revision}", f"give the folder of one: {snapshots}/COMMIT"
        )
    return commits[0]
