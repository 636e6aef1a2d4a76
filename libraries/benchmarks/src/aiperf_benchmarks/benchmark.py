"""The base of accuracy benchmarks: problems, each a conversation of one turn."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from aiperf import BadDataset, Conversation, Dataset, DatasetContext, Turn
from aiperf.sdk.dataset import Promise
from aiperf.sdk.model import Message

from aiperf_benchmarks.locations import DataFile, plain
from aiperf_benchmarks.options import BenchmarkOptions
from aiperf_benchmarks.problems import Problem, ProblemRow
from aiperf_benchmarks.protocol import AskedProblem, Protocol
from aiperf_benchmarks.selection import ALL, ProblemFiles, Selection

log = logging.getLogger("aiperf.datasets.benchmark")


class Benchmark(Dataset[BenchmarkOptions]):
    """A benchmark: a subclass says its :class:`~aiperf_benchmarks.protocol.Protocol`, and how a row is asked.

    Raises:
        BadDataset: The options ask for what the protocol doesn't have.
    """

    protocol: Protocol

    def __init__(self, options: BenchmarkOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self.name = context.name
        self._check()
        protocol = self.protocol
        self.shots = protocol.shots if options.n_shots is None else options.n_shots
        self.cot = bool(protocol.cot) if options.cot is None else options.cot
        self._files = ProblemFiles(
            self.name, protocol, self, options, self.place(), self.shots if protocol.shot_splits else 0, context.seed
        )  # fmt: skip
        self._selected: Selection | None = None

    # What a subclass says.

    def content(self, row: ProblemRow) -> str:
        """The question as it stands in the row: what makes a problem the same as another one.

        Raises:
            BadDataset: The row has none; the message has its place.
        """
        raise NotImplementedError(f"{type(self).__name__} must define content(row)")

    def expected(self, row: ProblemRow) -> str:
        """The expected answer, for the grader.

        Raises:
            BadDataset: The row has none; the message has its place.
        """
        raise NotImplementedError(f"{type(self).__name__} must define expected(row)")

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        """The problem behind its examples.

        Raises:
            BadDataset: The row, or an example, lacks a column; the message has its place.
        """
        raise NotImplementedError(f"{type(self).__name__} must define asked(row, task, shots)")

    def usable(self, row: ProblemRow) -> bool:
        """Whether the row is a problem, and no other one."""
        return True

    def task_of(self, row: ProblemRow, file: DataFile) -> str:
        """The group of the row, for results by task."""
        column = self.protocol.task_column
        if not column:
            return self.name
        if row.has(column):
            return row.text(column)
        if not file.task:
            raise BadDataset(
                f"{row.place} has no task: neither its column {column} nor the name of its file tells it",
                f"add {column}, or name the file after its task",
            )
        return file.task

    def example_rows(self, rows: Iterator[tuple[str, ProblemRow]], count: int) -> dict[str, tuple[ProblemRow, ...]]:
        """The rows that may be examples, by task.  rows: task and row of the splits of examples; *count* are needed."""
        by_task: dict[str, list[ProblemRow]] = {}
        for task, row in rows:
            by_task.setdefault(task, []).append(row)
        return {task: tuple(found) for task, found in by_task.items()}

    # What the kernel asks.

    def _selection(self) -> Selection:
        if self._selected is None:
            self._selected = self._files.selection()
        return self._selected

    def promise(self) -> Promise | None:
        if self.protocol.large:
            return None
        return Promise(len(self._selection().problems) * self.options.repeats, any_order=True)

    def chosen(self, numbers: Iterable[int]) -> Iterator[Conversation]:
        selection = self._selection()
        assert selection.rows is not None  # it promised any order
        count = len(selection.problems)
        for number in numbers:
            problem = selection.problems[number % count]
            yield self._conversation(problem, selection.rows[problem.number], number // count)

    def __iter__(self) -> Iterator[Conversation]:
        selection = self._selection()
        if selection.rows is not None:
            yield from self.chosen(range(len(selection.problems) * self.options.repeats))
            return
        wanted = {problem.number: problem for problem in selection.problems}
        for repeat in range(self.options.repeats):
            rows = islice(self._files.rows(), max(wanted) + 1)
            for number, (_, row) in enumerate(rows):
                if number in wanted:
                    yield self._conversation(wanted[number], row, repeat)

    def source_facts(self) -> dict[str, Any]:
        """Where the problems are from, and what is asked of them."""
        options, protocol, selection = self.options, self.protocol, self._selection()
        return {
            "name": self.name, **self._files.locations.facts, "n_shots": self.shots,
            "cot": self.cot if protocol.both else protocol.cot, "limit": options.limit, "repeats": options.repeats,
            "problems": len(selection.problems), "tasks": list(dict.fromkeys(each.task for each in selection.problems)),
            "settings": {**self._settings(0), "max_tokens": self._budget},
        }  # fmt: skip

    # Making

    @property
    def _budget(self) -> int:
        return self.options.osl or self.protocol.budget(self.cot)

    @property
    def _system(self) -> str:
        own = self.options.system_prompt
        return self.protocol.system_prompt if own is None else own

    def _conversation(self, problem: Problem, row: ProblemRow, repeat: int) -> Conversation:
        asked = self.asked(row, problem.task, self._shots_of(row, problem.task))
        expected, can, system = self.expected(row), self.context.capabilities, self._system
        if self.options.verbose:
            log.info("%s, task %s: expects %r", problem.identity, problem.task, expected[:200])
        opening: tuple[Message, ...] = ()
        text = asked.text
        if can.multi_turn:
            pairs = ((Message("user", (question,)), Message("assistant", (answer,))) for question, answer in asked.shots)
            text, opening = asked.question, tuple(message for pair in pairs for message in pair)
        if system and not can.system_message:
            text = f"{system}\n\n{text}"
        turn = Turn(
            texts=(text,), max_tokens=self._budget, expected=expected, task=problem.task, settings=self._settings(repeat),
            repeat=repeat if self.options.repeats > 1 else None,
        )  # fmt: skip
        return Conversation(
            problem.identity, (turn,), system if system and can.system_message else None, opening=opening
        )  # fmt: skip

    def _settings(self, repeat: int) -> dict[str, Any]:
        """What every answer is asked with.  A repeat has its own seed: with one, a server would give the same answer again."""
        stop = () if self.cot else self.protocol.stop
        return {"temperature": 0, "seed": repeat, **({"stop": list(stop)} if stop else {})}

    def _shots_of(self, row: ProblemRow, task: str) -> list[ProblemRow]:
        """The examples of a problem, which is none of them."""
        if not self.shots or not self.protocol.shot_splits:
            return []
        found = self._selection().shots
        candidates, content = found.get(task, found.get("", ())), self.content(row)
        return [each for each in candidates if self.content(each) != content][: self.shots]

    def place(self) -> dict[str, Any]:
        """Where the files are, as the manifest's row says."""
        return self.context.row

    def _check(self) -> None:
        """
        Raises:
            BadDataset: The options ask for what the protocol doesn't have.
        """
        options, protocol, name = self.options, self.protocol, self.name
        if options.n_shots is not None and options.n_shots > protocol.most_shots:
            most = protocol.most_shots
            has = f"has at most {most} examples" if most else "is asked without examples"
            raise BadDataset(f"--accuracy-n-shots {options.n_shots}: {name} {has}", f"write {most}, or drop --accuracy-n-shots")
        if options.cot is not None and not protocol.both and options.cot is not protocol.cot:
            flag = "--accuracy-enable-cot" if options.cot else "--accuracy-no-enable-cot"
            raise BadDataset(f"{flag} has no use: the protocol of {name} has one form alone", f"drop {flag}")
        if options.tasks and not protocol.task_column:
            raise BadDataset(f"--accuracy-tasks has no use: {name} has no tasks", "drop --accuracy-tasks")
        if len(options.tasks) > 1 and ALL in map(plain, options.tasks):
            raise BadDataset(
                f"--accuracy-tasks {','.join(options.tasks)}: all stands alone", "drop all, or drop the other tasks"
            )


__all__ = ["Benchmark"]
