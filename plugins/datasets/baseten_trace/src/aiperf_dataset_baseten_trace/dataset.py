"""baseten_trace: recorded prompts with times, sessions and hashes of blocks, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Turn
from aiperf.sdk.dataset import Promise
from aiperf.sdk.draws import uniform
from aiperf.sdk.trace import Trace, TraceRow
from aiperf_dataset_single_turn.dataset import shown
from aiperf_dataset_synthetic.file import FileDefaults
from aiperf_rows.row_files import tables

from aiperf_dataset_baseten_trace.cells import SESSIONS, Cells, session_of
from aiperf_dataset_baseten_trace.options import BasetenTraceOptions
from aiperf_dataset_baseten_trace.times import Request, replayed

_TIME, _PROMPT = "timestamp_start_unix_ms", "prompt"
_REQUIRED = (_TIME, _PROMPT, "input_tokens", "output_tokens")
_LENGTH, _HASHES, _BLOCK = "duration_e2e_ms", "total_hashes", "block_size"
_BLOCK_TOKENS = 64


class BasetenTrace(Dataset[BasetenTraceOptions]):
    """Rows of a trace; rows of one session are a conversation, and each prompt is sent by itself."""

    trace = True

    def __init__(self, options: BasetenTraceOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)
        self._cells = Cells(self._defaults.path)
        self._replay: list[list[Request]] = []

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and all(column in first_row for column in _REQUIRED)

    @classmethod
    def recorded(cls, path: Path) -> Trace:
        _, first = next(tables(path), (0, None))
        if first is None:
            raise BadDataset(f"{path} has no rows", f"a row needs {', '.join(_REQUIRED)}")
        size = first.get(_BLOCK)
        return Trace(_recorded(path, first), Cells(path).tokens(first, _BLOCK, 1) if size is not None else _BLOCK_TOKENS)

    def promise(self) -> Promise:
        self._replay = replay = self._replayed(self._first())
        return Promise(
            len(replay), lambda number: len(replay[number]),
            turn_timestamp_ms=lambda number, turn: replay[number][turn].timestamp_ms,
        )  # fmt: skip

    def _first(self) -> dict[str, Any]:
        path = self._defaults.path
        _, first = next(tables(path), (0, None))
        if first is None:
            raise BadDataset(f"{path} has no rows", f"a row needs {', '.join(_REQUIRED)}")
        return first

    def _replayed(self, first: dict[str, Any]) -> list[list[Request]]:
        """The requests by conversation, of a table with the columns of its *first* row."""
        present = [name for name in (*SESSIONS, _LENGTH) if name in first]
        return replayed(self._sampled(self._sessions(self._defaults.path, present)), self.options)

    def __iter__(self) -> Iterator[Conversation]:
        path, first = self._defaults.path, self._first()
        replay = self._replay or self._replayed(first)
        # Rows are nearly in the order of their sessions: memory holds the turns of sessions that are not whole.
        place_of = {request.row: (place, at) for place, requests in enumerate(replay) for at, request in enumerate(requests)}
        waiting: dict[int, dict[int, Turn]] = {}
        place = 0
        columns = [*_REQUIRED, *(name for name in (_HASHES, _BLOCK) if name in first)]
        for number, row in tables(path, columns):
            if number not in place_of:
                continue
            session, at = place_of[number]
            waiting.setdefault(session, {})[at] = self._turn(row, number, replay[session][at])
            while place < len(replay) and len(waiting.get(place, ())) == len(replay[place]):
                turns = waiting.pop(place)
                name = replay[place][0].session
                yield self._defaults.conversation(place, name, tuple(turns[at] for at in sorted(turns)), alone=True)
                place += 1

    def _sessions(self, path: Path, present: list[str]) -> list[list[Request]]:
        """The requests by session, each in the order of its times, sessions in that of their first requests."""
        sessions: dict[str | int, list[Request]] = {}
        for number, row in tables(path, [_TIME, *present]):
            start = self._cells.number(row, _TIME, number)
            length = self._cells.number(row, _LENGTH, number) if row.get(_LENGTH) is not None else 0.0
            name = session_of(row)
            alone = name is None or self.options.open_loop_strict
            request = Request(number, start, length, name if not alone else None)
            sessions.setdefault(number if name is None or alone else name, []).append(request)
        for requests in sessions.values():
            requests.sort(key=lambda request: request.start_ms)
        return sorted(sessions.values(), key=lambda requests: requests[0].start_ms)

    def _sampled(self, sessions: list[list[Request]]) -> list[list[Request]]:
        ratio, seed = self.options.session_sample_ratio, self.context.seed
        kept = [each for index, each in enumerate(sessions) if uniform(seed, "baseten.sessions", index) < ratio]
        if not kept:
            why = f"--trace-session-sample-ratio {ratio:g} keeps none of {len(sessions)} sessions"
            raise BadDataset(why, "give a greater ratio")
        return kept

    def _turn(self, row: dict[str, Any], number: int, request: Request) -> Turn:
        prompt, tokens = row[_PROMPT], self._cells.tokens(row, "output_tokens", number) or 1
        self._cells.tokens(row, "input_tokens", number)
        if not isinstance(prompt, str) or not prompt:
            raise self._cells.wrong(number, f"prompt is {shown(prompt)}; it must be a text")
        extra: dict[str, Any] = {"min_tokens": tokens} if self.options.force_min_tokens else {}
        if not self.options.omit_kv_hints:
            if row.get(_HASHES) is not None:
                extra["hash_ids"] = self._cells.hashes(row, _HASHES, number)
            if row.get(_BLOCK) is not None:
                extra["block_size"] = self._cells.tokens(row, _BLOCK, number)
        return Turn(
            texts=(prompt,), max_tokens=tokens, timestamp_ms=request.timestamp_ms, delay_ms=request.delay_ms, extra=extra
        )


def _recorded(path: Path, first: dict[str, Any]) -> Iterator[TraceRow]:
    """The rows of the file, in its order, which has the columns of its *first* row."""
    cells, prompt, answer = Cells(path), "input_tokens", "output_tokens"
    further = [name for name in (_LENGTH, _HASHES, *SESSIONS) if name in first]
    for number, row in tables(path, [_TIME, prompt, answer, *further]):
        yield TraceRow(
            cells.tokens(row, prompt, number),
            cells.tokens(row, answer, number),
            blocks=cells.hashes(row, _HASHES, number) if row.get(_HASHES) is not None else (),
            timestamp_ms=cells.number(row, _TIME, number),
            duration_ms=cells.number(row, _LENGTH, number) if row.get(_LENGTH) is not None else None,
            session=session_of(row),
        )


__all__ = ["BasetenTrace"]
