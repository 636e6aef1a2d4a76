"""Which problems a run asks: those of its tasks, a drawn part of them, and what their examples come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any
from typing import Protocol as Interface

from aiperf import BadDataset
from msgspec import Struct

from aiperf_benchmarks.locations import DataFile, Locations, all_rows, plain, split_of
from aiperf_benchmarks.options import BenchmarkOptions
from aiperf_benchmarks.problems import Problem, ProblemRow, drawn, identified
from aiperf_benchmarks.protocol import Protocol

ALL = "all"
"""The word for all tasks."""


class Rules(Interface):
    """What the rows of a benchmark are: methods of :class:`aiperf_benchmarks.benchmark.Benchmark`."""

    def content(self, row: ProblemRow) -> str: ...

    def expected(self, row: ProblemRow) -> str: ...

    def usable(self, row: ProblemRow) -> bool: ...

    def task_of(self, row: ProblemRow, file: DataFile) -> str: ...

    def example_rows(self, rows: Iterator[tuple[str, ProblemRow]], count: int) -> dict[str, tuple[ProblemRow, ...]]: ...


class Selection(Struct, frozen=True):
    """What a run asks.  rows: of all problems by number, None where they are read again; shots: candidates by task."""

    problems: tuple[Problem, ...]
    rows: tuple[ProblemRow, ...] | None
    shots: dict[str, tuple[ProblemRow, ...]]


class ProblemFiles:
    """The files of the benchmark *name*, and the problems in them.

    place: where they are, as the manifest's row says.  shots: number of examples of a problem.  seed: of the draw of a limit.
    """

    def __init__(
        self, name: str, protocol: Protocol, rules: Rules, options: BenchmarkOptions, place: dict[str, Any], shots: int,
        seed: int,
    ) -> None:  # fmt: skip
        divided = protocol.subsets or any(split != protocol.split for split in protocol.shot_splits)
        self.locations = Locations(name, place, protocol.tasks, divided=divided)
        self._name, self._protocol, self._rules, self._options = name, protocol, rules, options
        self._shots, self._seed = shots, seed
        self._found: list[DataFile] | None = None

    def selection(self) -> Selection:
        """What is asked.

        Raises:
            BadDataset: The data can't be had, lacks what is asked for, or a row breaks a rule.
        """
        keeps, held, contents = not self._protocol.large, list[ProblemRow](), list[tuple[str, str]]()
        for task, row in self.rows():
            contents.append((task, self._rules.content(row)))
            if keeps:
                self._rules.expected(row)  # a row without its answer is found before the load
                held.append(row)
        if not contents:
            raise BadDataset(f"the benchmark {self._name} has no problem in its data", *self.locations.expected())
        found = [Problem(identity, task, number) for number, (identity, task) in enumerate(identified(self._name, contents))]
        chosen = self._of_tasks(found)
        if self._options.limit is not None:
            chosen = drawn(chosen, self._options.limit, self._seed)
        return Selection(tuple(chosen), tuple(held) if keeps else None, self._examples({each.task for each in chosen}))

    def rows(self) -> Iterator[tuple[str, ProblemRow]]:
        """Task and row of each problem."""
        yield from self._rows_of(self._protocol.split)

    def _examples(self, tasks: set[str]) -> dict[str, tuple[ProblemRow, ...]]:
        """The candidates for examples by task, "" for all tasks together.

        Raises:
            BadDataset: There are too few.
        """
        splits = self._protocol.shot_splits
        if not self._shots or not splits:
            return {}
        for split in splits:
            found = self._rules.example_rows(self._rows_of(split), self._shots + 1)
            if found:
                break
        else:
            raise BadDataset(
                f"{self._name} with {self._shots} examples needs rows of the split {' or '.join(splits)}; its data has none",
                "add them, or write --accuracy-n-shots 0", *self.locations.expected(),
            )  # fmt: skip
        for task in sorted(tasks):
            there = len(found.get(task, found.get("", ())))
            if there < self._shots:
                raise BadDataset(
                    f"--accuracy-n-shots {self._shots}: the data of {self._name} has {there} examples of {task or 'any task'}",
                    f"write --accuracy-n-shots {there}, or less",
                )
        return found

    def _rows_of(self, split: str) -> Iterator[tuple[str, ProblemRow]]:
        """Task and row of each problem of a split; a row whose split nothing tells is one that is asked."""
        splits, checked = (split, "") if split == self._protocol.split else (split,), False
        for file, place, values in all_rows(self._files()):
            if split_of(values, file) in splits:
                row = ProblemRow(place, values)
                if not checked:
                    self._check_columns(row)
                    checked = True
                if self._rules.usable(row):
                    yield self._rules.task_of(row, file), row

    def _check_columns(self, row: ProblemRow) -> None:
        """
        Raises:
            BadDataset: The row lacks a column.
        """
        columns = self._protocol.columns
        if missing := [column for column in columns if column not in row.values]:
            what = f"column{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            held = ", ".join(row.values) or "none"
            raise BadDataset(f"{row.place} has no {what}", f"{self._name} needs {', '.join(columns)}", f"its columns: {held}")

    def _of_tasks(self, problems: Sequence[Problem]) -> list[Problem]:
        """The problems of the tasks that the options name.

        Raises:
            BadDataset: There is no such task.
        """
        wanted = self._wanted(tuple(dict.fromkeys(problem.task for problem in problems)))
        return [problem for problem in problems if problem.task in wanted] if wanted else list(problems)

    def _wanted(self, found: Sequence[str]) -> tuple[str, ...]:
        """The tasks that the options name, () for all.  found: those of the data.

        Raises:
            BadDataset: There is no such task.
        """
        asked = [task for task in self._options.tasks if plain(task) != ALL]
        if not asked:
            return ()
        known = {plain(task): task for task in (*self._protocol.tasks, *found)}
        for task in asked:
            if plain(task) not in known:
                near = [f"did you mean {known[one]!r}?" for one in get_close_matches(plain(task), known, 2, 0.6)]
                listed = ", ".join(list(known.values())[:60])
                raise BadDataset(f"--accuracy-tasks: {self._name} has no task {task!r}", *near, f"its tasks: {listed}")
        wanted = tuple(dict.fromkeys(known[plain(task)] for task in asked))
        if found and (absent := [task for task in wanted if task not in found]):
            raise BadDataset(
                f"--accuracy-tasks: the data of {self._name} has no problem of {absent[0]}", f"it has: {', '.join(found[:60])}"
            )
        return wanted

    def _files(self) -> list[DataFile]:
        if self._found is None:
            where, data, protocol = self.locations, self._options.data, self._protocol
            if data is not None:
                self._found = where.of_copy(data)
            else:
                splits = (protocol.split, *(protocol.shot_splits if self._shots else ()))
                wanted = self._wanted(()) if protocol.tasks else ()
                self._found = where.of_hub(self._options.hf_revision, splits, wanted if protocol.subsets else ())
        return self._found


__all__ = ["ALL", "ProblemFiles", "Rules", "Selection"]
