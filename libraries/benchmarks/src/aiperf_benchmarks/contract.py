"""The contract of benchmarks: what :class:`DatasetContract` asks, and problems that can be graded.  For tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf import Capabilities, Conversation, DatasetContext
from aiperf.testing import DatasetContract, check_row

from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.options import BenchmarkOptions

CHAT = Capabilities(system_message=True, multi_turn=True, produces_tokens=True)
TEXT = Capabilities(produces_tokens=True)
"""Endpoints with roles, and without."""


class BenchmarkContract(DatasetContract):
    """Subclass with the class and some rows; a fixture writes them to a file, which :meth:`make` reads.

    benchmark: the class.  named: the name that is tried.  rows: at most six problems, and those that examples come from.
    examples: how many, as far as the rows have them.
    """

    benchmark: ClassVar[type[Benchmark]]
    named: ClassVar[str]
    rows: ClassVar[Sequence[dict[str, Any]]]
    examples: ClassVar[int | None] = None
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "problems.jsonl"
        write(self.file, self.rows)

    def make(self, entries: int, seed: int) -> Benchmark:
        return opened(self.benchmark, self.named, self.file, n_shots=self.examples, entries=entries, seed=seed)

    def test_every_problem_has_its_answer_and_task(self) -> None:
        for conversation in self.make(6, 1):
            (turn,) = conversation.turns
            assert turn.expected and turn.task, f"{conversation.id!r} can't be graded: give the turn expected and task"

    def test_no_example_is_the_question(self) -> None:
        for conversation in self.make(6, 1):
            asked = conversation.turns[0].text.strip()
            assert all(message.text.strip() != asked for message in conversation.opening), (
                f"{conversation.id!r} has its own question among the examples"
            )

    def test_a_text_endpoint_gets_everything_in_one_text(self) -> None:
        data = opened(self.benchmark, self.named, self.file, n_shots=self.examples, can=TEXT)
        for chat, text in zip(self.make(6, 1), data, strict=True):
            assert not text.opening and text.system is None, "an endpoint without roles takes no earlier messages"
            for message in chat.prelude:
                assert message.text.strip() in text.turns[0].text, f"{chat.id!r} loses {message.text!r} in the flat text"


def opened(
    benchmark: type[Benchmark], name: str, data: Path | None, *, can: Capabilities = CHAT, entries: int = 100, seed: int = 7,
    **options: Any,
) -> Benchmark:  # fmt: skip
    """The benchmark with a local copy of its data; *options* are fields of :class:`BenchmarkOptions`."""
    row = check_row("datasets", benchmark).capabilities["names"][name]
    given = {field: value for field, value in options.items() if value is not None}
    context = DatasetContext(entries, seed, True, None, can, None, name, row)
    return benchmark(BenchmarkOptions(data=data, **given), context)


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """The path, with the rows as lines of JSON."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def flat(conversation: Conversation) -> str:
    """All of a conversation's text, message by message."""
    return "\n\n".join((*(message.text for message in conversation.prelude), conversation.turns[0].text))


__all__ = ["CHAT", "TEXT", "BenchmarkContract", "flat", "opened", "write"]
