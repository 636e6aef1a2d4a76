"""random_pool: files of rows, of which each conversation draws one of every file."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Media, Turn
from aiperf.sdk.dataset import Promise
from aiperf.sdk.draws import uniform
from aiperf_dataset_single_turn.dataset import MODALITIES, Rows, jsonl_files, typed
from aiperf_dataset_synthetic.file import FileDefaults
from aiperf_rows.row_files import first_row as first_row_of

from aiperf_dataset_random_pool.options import RandomPoolOptions

log = logging.getLogger(__name__)

_MEANINGLESS = ("timestamp", "delay", "session_id", "output_length", "extra", "model", "role")
_ONE_FILE = "--batch-size-text draws texts and media by themselves"


class Pool:
    """The rows of a file.  Media are read again for each draw, so that they need no memory.

    *name*: of texts without a name; "" gives none.

    Raises:
        BadDataset: A row breaks a rule; the message gives path and line.
    """

    def __init__(self, path: Path, name: str, *, anywhere: bool = False) -> None:
        self.reader, self._key, self._name = Rows(path, anywhere=anywhere), path.name, name
        self.rows = list(typed(path))
        if not self.rows:
            raise BadDataset(f"{path} has no rows", "each row of a pool has text, image, audio or video")
        ignored: set[str] = set()
        for line, row in self.rows:
            self.reader.turn(row, line)
            ignored.update(key for key in _MEANINGLESS if row.get(key) is not None)
        if ignored:
            log.warning("%s: rows are drawn by chance, so %s means nothing", path, ", ".join(sorted(ignored)))

    def drawn(self, seed: int, number: int) -> Turn:
        """The row of conversation *number*, with its texts under the pool's name where it has one."""
        line, row = self.rows[int(uniform(seed, f"random_pool.{self._key}", number) * len(self.rows))]
        turn = self.reader.turn(row, line)
        named = turn.named or ({self._name: turn.texts} if self._name and turn.texts else {})
        return Turn(texts=turn.texts, media=turn.media, named=named)


class RandomPool(Dataset[RandomPoolOptions]):
    """Conversations of one turn each, as many as asked for."""

    preferred_sampling = "shuffle"

    def __init__(self, options: RandomPoolOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        if not path.is_dir():
            return False
        first = [first_row_of(file) for _, file in jsonl_files(path)]
        return bool(first) and all(row is not None and any(key in row for key in MODALITIES) for row in first)

    def promise(self) -> Promise:
        return Promise(self.context.entries, any_order=True)

    def __iter__(self) -> Iterator[Conversation]:
        return self.chosen(range(self.context.entries))

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        path, seed = self._defaults.path, self.context.seed
        files = jsonl_files(path) if path.is_dir() else [("", path)]
        if not files:
            raise BadDataset(f"{path} has no .jsonl files", "each file is a pool")
        pools = [Pool(file, name, anywhere=self.options.allow_paths) for name, file in files]
        if {"queries", "passages"} <= {name for name, _ in files}:
            log.info("%s: queries and passages are drawn by chance; --input-file pairs:%s pairs them by row", path, path)
        batches = Batches(pools[0], self.options.prompt_batch_size) if self.options.prompt_batch_size != 1 else None
        if batches is not None and path.is_dir():
            raise BadDataset(f"{_ONE_FILE}, and {path} is a directory", "give a single file, or drop --batch-size-text")
        for number in numbers:
            turn = _joined([pool.drawn(seed, number) for pool in pools]) if batches is None else batches.drawn(seed, number)
            yield self._defaults.conversation(number, None, (turn,), alone=True)


class Batches:
    """Texts and media of a pool, drawn by themselves: *size* texts, and one of each kind of medium.

    Raises:
        BadDataset: A row has names or UUIDs, or there would be nothing to send.
    """

    def __init__(self, pool: Pool, size: int) -> None:
        self._pool, self._size = pool, size
        self._texts: list[str] = []
        self._media: dict[str, list[tuple[int, int]]] = {}
        for index, (line, row) in enumerate(pool.rows):
            if any(isinstance(each, dict) for value in row.values() if isinstance(value, list) for each in value):
                raise pool.reader.wrong(line, f"{_ONE_FILE}, and the row has names")
            if row.get("image_uuids") is not None:
                raise pool.reader.wrong(line, f"{_ONE_FILE}, and the row has image_uuids")
            turn = pool.reader.turn(row, line)
            self._texts += turn.texts
            for at, media in enumerate(turn.media):
                self._media.setdefault(media.kind, []).append((index, at))
        if not (size and self._texts) and not self._media:
            raise BadDataset(f"--batch-size-text {size} leaves nothing to send", "give a number of at least 1")

    def drawn(self, seed: int, number: int) -> Turn:
        """The turn of conversation *number*."""
        draws = range(number * self._size, (number + 1) * self._size) if self._texts else ()
        texts = tuple(self._texts[int(uniform(seed, "random_pool.texts", each) * len(self._texts))] for each in draws)
        return Turn(texts=texts, media=tuple(self._medium(kind, seed, number) for kind in self._media))

    def _medium(self, kind: str, seed: int, number: int) -> Media:
        places = self._media[kind]
        index, at = places[int(uniform(seed, f"random_pool.{kind}", number) * len(places))]
        line, row = self._pool.rows[index]
        return self._pool.reader.turn(row, line).media[at]


def _joined(turns: list[Turn]) -> Turn:
    named: dict[str, tuple[str, ...]] = {}
    for turn in turns:
        for name in turn.named:
            named[name] = (*named.get(name, ()), *turn.texts_of(name))
    texts = tuple(text for turn in turns for text in turn.texts)
    return Turn(texts=texts, media=tuple(media for turn in turns for media in turn.media), named=named)


__all__ = ["RandomPool"]
