"""Where the files of a benchmark are: a local copy, or the hub and its cache; and which split and task each is of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from aiperf import BadDataset
from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    pass

_ALIASES = {"val": "validation"}
_SPLITS = ("test", "validation", "val", "dev", "train")


class DataFile(Struct, frozen=True):
    """A file.  split, task: as its name tells; "" where it doesn't."""

    path: Path
    split: str = ""
    task: str = ""


class Locations:
    """Finds the files of the benchmark *name*.  row: of the manifest, with its place on the hub.  facts: of what was found.

    tasks: whose names may stand in those of files.  divided: it has several splits, or files for each task.
    """

    def __init__(self, name: str, row: dict[str, Any], tasks: Sequence[str], *, divided: bool = False) -> None:
        from aiperf_dataset_public.sets import source_of

        source = source_of(row)
        if source is None:
            raise BadDataset(f"the manifest's row of the benchmark {name!r} has no repository")
        self._name, self._source, self._divided = name, source, divided
        self._tasks = {plain(task): task for task in tasks}
        self.facts: dict[str, Any] = {}

    def of_copy(self, path: Path) -> list[DataFile]:
        """The files of a local copy: a file, a directory, a repository of the hub's cache, or a commit's folder in it.

        Raises:
            BadDataset: There is no such path, or it has no file of the benchmark.
        """
        if not path.exists():
            raise BadDataset(f"--accuracy-data: there is no file {path}", *self.expected())
        if path.is_file():
            if path.stat().st_size == 0:
                raise BadDataset(f"--accuracy-data: {path} is empty", *self.expected())
            found = [DataFile(path, *self._told(path.name))]
        else:
            try:
                found = self._in_folder(path)
            except BadDataset as error:
                said = error.message.replace("public data set", "benchmark")
                raise BadDataset(f"--accuracy-data: {said}", *self.expected()) from error
        self.facts = {"data_source": str(path), "files": [str(each.path) for each in found]}
        return found

    def _in_folder(self, path: Path) -> list[DataFile]:
        """The files of a directory, by what their names tell; of a benchmark with one split as the hub names them.

        Raises:
            BadDataset: It has none.
        """
        from aiperf_dataset_public.files import ENDINGS, Parts, snapshot_in

        if self._divided:
            home = snapshot_in(path, self._source.revision)
            files = sorted(each for each in home.rglob("*") if each.is_file() and each.name.endswith(ENDINGS))
            found = [DataFile(each, *self._told(str(each.relative_to(home)))) for each in files]
            if told := _by_task([each for each in found if each.split]):
                return told
        return [DataFile(each, *self._told(each.name)) for each in Parts(self._name, self._source).of_copy(path)]

    def of_hub(self, revision: str | None, splits: Sequence[str], tasks: Sequence[str]) -> list[DataFile]:
        """The files on the hub, fetched where the cache lacks them; only those of these splits and tasks (() is all).

        Raises:
            BadDataset: They can't be fetched; the message says which files are expected, and how to get them.
        """
        from aiperf_dataset_public.dataset import Lines
        from aiperf_dataset_public.download import Downloads
        from aiperf_dataset_public.files import Parts
        from aiperf_dataset_public.waiting import Patience

        source, patience, found = self._source, Patience(), list[DataFile]()
        try:
            listing, files = Parts(self._name, source).of_hub(revision, patience)
            downloads = Downloads(self._name, listing, Lines(), patience)
            named = _by_task([DataFile(Path(file.name), *self._told(file.name)) for file in files])
            there = {file.name: file for file in files}
            for one in named:
                if one.split in ("", *splits) and (not tasks or one.task in ("", *tasks)):
                    found.append(replace(one, path=downloads.file(there[str(one.path)])))
        except BadDataset as error:
            hints = [hint for hint in error.hints if "--input-file" not in hint and "aiperf datasets fetch" not in hint]
            raise BadDataset(f"the benchmark {self._name}: {error.message}", *hints, *self.expected()) from error
        self.facts = {
            "repository": source.repository, "revision": revision or source.revision, "commit": listing.commit,
            "licence": source.licence or listing.licence, "data_source": source.page,
            "files": [str(each.path) for each in found],
        }  # fmt: skip
        return found

    def expected(self) -> tuple[str, ...]:
        """Hints: the files that are expected, and the ways to get them."""
        source = self._source
        files = ", ".join(source.files) or f"{source.split}-*.parquet, or {source.split}.jsonl"
        return (
            f"expected: the files of {source.page} ({files}), or one file with their rows",
            f"with a network: aiperf datasets fetch {self._name}, then carry its HF_HOME here",
            "or give a local copy: --accuracy-data PATH",
        )

    def _told(self, name: str) -> tuple[str, str]:
        """Split and task in the name of a file."""
        return told(name, self._tasks)


def _by_task(files: list[DataFile]) -> list[DataFile]:
    """The files; without those of all tasks together, where others are of one task each."""
    return [file for file in files if file.task] or files


def told(name: str, tasks: Mapping[str, str]) -> tuple[str, str]:
    """Split and task of a file, from its name and its folders; "" where they don't tell.  tasks: by their plain names.

    ``anatomy/test-00000-of-00001.parquet``, ``anatomy_test.jsonl`` and ``test/anatomy.csv`` are of ``test`` and ``anatomy``.
    """
    path = PurePosixPath(name)
    split = task = ""
    for word in (path.name.partition(".")[0], *reversed(path.parts[:-1])):
        of_word, rest = _split_in(word)
        if of_word and not split:
            split = of_word
        task = task or tasks.get(plain(rest), "")
    return split, task


def _split_in(word: str) -> tuple[str, str]:
    """The split that a word begins or ends with, or is; and the rest of the word."""
    for split in _SPLITS:
        if match := re.fullmatch(rf"{split}(?:[-_](.*))?|(.*)[-_]{split}", word):
            return _ALIASES.get(split, split), match[1] or match[2] or ""
    return "", word


def plain(name: str) -> str:
    """A name without what people write differently: case, spaces, hyphens, commas."""
    return re.sub(r"[\W_]+", "_", name.lower()).strip("_")


def split_of(values: dict[str, Any], file: DataFile) -> str:
    """The split of a row: as its column ``split`` tells, else its file's name; "" where neither does."""
    own = values.get("split")
    return _ALIASES.get(own, own) if isinstance(own, str) and own else file.split


def read(file: DataFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and values of each row; of a table a null, and an empty cell of CSV, is None.

    Raises:
        BadDataset: The file can't be read; the message has its path.
    """
    from aiperf_dataset_public.records import records
    from aiperf_rows.row_files import is_csv, is_table, tables

    path = file.path
    if not is_table(path):
        yield from records(path, ())
        return
    unit, csv = (":", True) if is_csv(path) else (": row ", False)
    for number, row in tables(path):
        values = {name: None if value == "" else value for name, value in row.items()} if csv else row
        yield f"{path}{unit}{number}", values


def all_rows(files: Iterable[DataFile]) -> Iterator[tuple[DataFile, str, dict[str, Any]]]:
    """Each row of the files, with its file and its place."""
    for file in files:
        for place, values in read(file):
            yield file, place, values
