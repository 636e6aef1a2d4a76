"""How a benchmark is asked: facts of its published protocol."""

from __future__ import annotations

from msgspec import Struct


class Protocol(Struct, frozen=True, kw_only=True):
    """The facts of a benchmark.

    columns: those that its rows must have, beside that of the task.
    split: of the problems.  shot_splits: where solved examples come from, the first one that there is; () for none, or
    where the package has them.
    subsets: the hub has a subset for each task.
    task_column: has the task of a row; "" where there are no tasks.  tasks: all that there are; () where the rows tell.
    shots, most_shots: number of examples by default, and at most.
    cot: whether the reasoning is asked for by default; None where the protocol has one form alone, which leaves that to the
    model.  both: whether there are both forms.
    tokens, tokens_cot: longest answer, in tokens, without and with reasoning.
    stop: texts that end an answer without reasoning.
    system_prompt: "" for none.
    large: its rows don't fit into memory: they are read twice in place of once.
    """

    columns: tuple[str, ...]
    split: str
    tokens: int
    tokens_cot: int = 0
    shot_splits: tuple[str, ...] = ()
    subsets: bool = False
    task_column: str = ""
    tasks: tuple[str, ...] = ()
    shots: int = 0
    most_shots: int = 0
    cot: bool | None = None
    both: bool = False
    stop: tuple[str, ...] = ()
    system_prompt: str = ""
    large: bool = False

    def budget(self, cot: bool) -> int:
        """The longest answer, in tokens."""
        return self.tokens_cot if cot and self.tokens_cot else self.tokens


class AskedProblem(Struct, frozen=True):
    """A problem in the two forms in which it is asked.

    text: all of it, for endpoints without roles.
    question: the last message, for endpoints with roles.  shots: question and answer of each example before it.
    """

    text: str
    question: str
    shots: tuple[tuple[str, str], ...] = ()


def one_text(text: str) -> AskedProblem:
    """A problem without examples, which is the same in both forms."""
    return AskedProblem(text, text)
