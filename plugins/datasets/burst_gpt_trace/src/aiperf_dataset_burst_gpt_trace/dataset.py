"""burst_gpt_trace: a table of recorded requests, with times and lengths."""

from __future__ import annotations

import logging
import math
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Turn
from aiperf.sdk.dataset import Promise
from aiperf.sdk.trace import Trace, TraceRow
from aiperf_dataset_mooncake_trace.synthesis import Row
from aiperf_dataset_mooncake_trace.synthesis_options import synthesized
from aiperf_dataset_synthetic.file import FileDefaults
from aiperf_rows.row_files import MOST_TIME, tables

from aiperf_dataset_burst_gpt_trace.options import BurstGptTraceOptions

log = logging.getLogger(__name__)

_COLUMNS = ("Timestamp", "Request tokens", "Response tokens")
_NO_BLOCK = 512
"""Length of the blocks that no row has."""


class BurstGptTrace(Dataset[BurstGptTraceOptions]):
    """Rows of a table; each is a conversation with a generated prompt."""

    trace = True

    def __init__(self, options: BurstGptTraceOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)
        self._counted = False

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and first_row.keys() >= set(_COLUMNS)

    @classmethod
    def recorded(cls, path: Path) -> Trace:
        return Trace(TraceRow(request, response, (), seconds * 1000.0) for _, (seconds, request, response) in _requests(path))

    def promise(self) -> Promise | None:
        scaling, path = self.options.scaling, self._defaults.path
        if scaling is not None and scaling.max_isl is not None:  # it decides which rows there are
            return None
        times = array("d", (seconds * 1000.0 for _, (seconds, _, _) in _requests(path)))
        self._counted = True
        if scaling is None:
            return Promise(len(times), timestamp_ms=times.__getitem__)
        return Promise(len(times), timestamp_ms=lambda number: scaling.time(times[number]))

    def __iter__(self) -> Iterator[Conversation]:
        (writer, _), path = self._defaults.measured(), self._defaults.path
        for number, (_, row) in enumerate(self._rows(path)):
            prompt = writer.text("burst_gpt", number, row["input_length"])
            time, tokens = float(row["timestamp"]), row["output_length"]
            turn = Turn(texts=(prompt.text,), max_tokens=tokens, timestamp_ms=time, input_tokens=prompt.tokens)
            yield self._defaults.conversation(number, None, (turn,))
        writer.warn()

    def _rows(self, path: Path) -> Iterator[Row]:
        """The rows with the keys of a Mooncake trace, as the options scale them."""

        def read() -> Iterator[Row]:
            for line, (seconds, request, response) in _requests(path, told=self._counted):
                yield line, {"timestamp": seconds * 1000.0, "input_length": request, "output_length": response}

        wrong = lambda line, why: BadDataset(f"{path}:{line}: {why}")  # noqa: E731
        return (synthesized(self.options, self.context, read, lambda row, line: None, _NO_BLOCK, wrong) or read)()


def _requests(path: Path, *, told: bool = False) -> Iterator[tuple[int, tuple[float, int, int]]]:
    """The line, and time in seconds, length of the prompt and of the answer, of each row that can be sent.

    Others are counted in a warning, unless the person was *told*.

    Raises:
        BadDataset: No row can be sent.
    """
    number, skipped, why = 0, 0, ""
    for line, row in tables(path, _COLUMNS):
        try:
            request = _time(row), _length(row, "Request tokens"), _length(row, "Response tokens")
        except ValueError as error:
            skipped, why = skipped + 1, why or f"{path}:{line}: {error}"
            continue
        yield line, request
        number += 1
    if skipped and not number:
        raise BadDataset(f"no row can be sent, the first because of {why}", f"a row needs {', '.join(_COLUMNS)}")
    if skipped and not told:
        log.warning("%d of %d rows can't be sent and are skipped; the first is %s", skipped, skipped + number, why)


def _time(row: dict[str, Any]) -> float:
    seconds = _number(row, "Timestamp")
    if seconds < 0:
        raise ValueError(f"Timestamp is {row['Timestamp']}; it must be a number of seconds, 0 or more")
    return seconds


def _length(row: dict[str, Any], column: str) -> int:
    length = _number(row, column)
    if length < 1 or length != int(length):
        raise ValueError(f"{column} is {row[column]}; it must be a whole number of at least 1")
    return int(length)


def _number(row: dict[str, Any], column: str) -> float:
    try:
        number = float(row[column])
    except (TypeError, ValueError, OverflowError):  # a null, or another type of column
        number = math.nan
    if not abs(number) <= MOST_TIME:
        raise ValueError(f"{column} is {row[column]!r}; it must be a number")
    return number


__all__ = ["BurstGptTrace"]
