"""What a builder that outlives its plan keeps for the next one: its tokenizer, and the data set.

A data set is kept while nothing differs on which its bytes depend.  Its files are linked into the next run's directory, so that
each directory is complete by itself, also when others are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from aiperf.prepare.tokenizers import open_tokenizer
from aiperf.rundir.links import link
from aiperf.sdk.dataset import Promise
from aiperf.sdk.plan import Plan
from aiperf.sdk.tokenizer import Tokenizer

log = logging.getLogger(__name__)

_MOST_FILES = 1000
"""Files of a source that are looked at to see whether it changed; a larger one is read again."""
_OF_A_PLAN = ("aiperf.prepare.shares", "aiperf.prepare.entries", "aiperf.prepare.due_times")
"""Loggers of what depends on more than the data set: it is said anew."""


class KeptDataset(Struct, frozen=True):
    """A whole data set on disk.

    identity: equal ones have equal bytes.  journal: where its files are.  order, total, facts, several_answers,
    tokenizer_files: what the build told of it.  promise: what the data set promised, which schedules go by.  exports: files of
    data set exporters, by ``category:name``.  told: warnings of its making: logger, level and text.
    """

    identity: bytes
    journal: Path
    order: str
    total: int
    facts: dict[str, Any]
    several_answers: bool
    tokenizer_files: dict[str, str]
    promise: Promise | None
    exports: dict[str, Path]
    told: list[tuple[str, int, str]]

    def tell(self) -> None:
        """Say again what was said of it: each run has a log of its own."""
        for name, level, text in self.told:
            logging.getLogger(name).log(level, "%s", text)


class Kept:
    """For the plans of one builder.  told: warnings since the begin of a build."""

    def __init__(self) -> None:
        self._dataset: KeptDataset | None = None
        self._tokenizer: tuple[bytes, Tokenizer | None] | None = None
        self.told: list[tuple[str, int, str]] = []

    def tokenizer(self, plan: Plan) -> Tokenizer | None:
        """The tokenizer of the plan before, where it is the same.  Raises as :func:`open_tokenizer`."""
        ref, name = plan.plugins.tokenizer, plan.data.tokenizer_name
        with contextlib.suppress(_UnknownError):
            identity = _digest([ref, name, plan.plugins.options.get(ref.key) if ref else None], [name])
            if self._tokenizer is None or self._tokenizer[0] != identity:
                self._tokenizer = None
                self._tokenizer = identity, open_tokenizer(plan)
            return self._tokenizer[1]
        return open_tokenizer(plan)

    def linked(self, plan: Plan) -> KeptDataset | None:
        """The data set of a plan before, now with its files in the journal of *plan*; None where it is another one.

        Raises:
            OSError: The disk has no room.
        """
        dataset, journal = self._dataset, Path(plan.output.journal)
        if dataset is None or identity_of(plan) != dataset.identity:
            return None
        try:
            for path in sorted(dataset.journal.glob("dataset.*")):
                link(path, journal / path.name)
        except FileNotFoundError:
            pass
        if not (journal / "dataset.json").exists():  # somebody has removed the run
            self._dataset = None
            return None
        self._dataset = msgspec.structs.replace(dataset, journal=journal)
        log.info("the data set is that of the run before")
        return self._dataset

    def keep(self, asked: Plan, built: Plan, promise: Promise | None, exports: dict[str, Path]) -> None:
        """Keep the data set of the plan *asked*, and *built*: it is whole, and stands in its journal."""
        self._dataset = None
        journal, data = Path(built.output.journal), built.data
        media = journal / "dataset.media"
        if data.source is not None and media.exists() and media.stat().st_size:
            return  # it names files that may change
        if (identity := identity_of(asked)) is not None:
            self._dataset = KeptDataset(
                identity, journal, data.sampling, data.entries, data.facts, data.several_answers, data.tokenizer_files, promise,
                exports, self.told,
            )  # fmt: skip

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """In the block, warnings that are about the data set are noted."""
        ears = _Ears()
        self.told = ears.told
        root = logging.getLogger("aiperf")
        root.addHandler(ears)
        try:
            yield
        finally:
            root.removeHandler(ears)


class _Ears(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name not in _OF_A_PLAN:
            self.told.append((record.name, record.levelno, record.getMessage()))


class _UnknownError(Exception):
    """Nobody can tell whether a source has changed."""


def identity_of(plan: Plan) -> bytes | None:
    """A digest of all on which the bytes of a data set depend; None where that can't be told.

    It has the options of the plugins that make it, and of files that these options name their places, sizes and times.
    """
    plugins, data, run = plan.plugins, plan.data, plan.run
    makers = [ref for ref in (plugins.dataset, plugins.endpoint, plugins.tokenizer, plugins.grader) if ref is not None]
    options = [plugins.options.get(ref.key) for ref in makers]
    replayed = any(phase.replay is not None for phase in plan.load.phases)
    try:
        return _digest(
            [data, plan.target, run.seed, run.seeded, makers, options, replayed, plugins.engine, sorted(plugins.samplers)],
            [data.source, data.tokenizer_name, msgspec.to_builtins(options, enc_hook=str), data.row],
        )  # fmt: skip
    except _UnknownError:
        return None


def _digest(values: list[object], named: list[object]) -> bytes:
    stamps: list[object] = []
    for each in named:
        _add_stamps(each, stamps)
    return hashlib.sha256(msgspec.json.encode([values, stamps], enc_hook=str)).digest()


def _add_stamps(value: object, stamps: list[object]) -> None:
    """Place, size and time of the files that the texts in *value* name."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            _add_stamps(each, stamps)
    elif isinstance(value, str) and value and "\0" not in value:
        with contextlib.suppress(OSError):
            _add_stamp(Path(value), stamps)


def _add_stamp(path: Path, stamps: list[object]) -> None:
    about = path.stat()
    stamps.append((os.fspath(path), about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns))
    if len(stamps) > _MOST_FILES:
        raise _UnknownError
    if path.is_dir():
        for each in sorted(path.iterdir()):
            _add_stamp(each, stamps)
