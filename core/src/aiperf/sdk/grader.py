"""The grader contract: whether an answer is the expected one.

The data set's turns hold the expected answers (:attr:`aiperf.sdk.model.Turn.expected`).  The reducer grades while it has the
answer's text, and stores each grade with the columns of its request.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from aiperf.sdk.model import ToolCall, Turn
from aiperf.sdk.options import OptionsT, WithOptions


class Case(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer, with the turn of the data set that it answers.

    turn: as the data set gave it, without the history that the kernel adds.  conversation_id, number: the turn's conversation,
    and its place there, from 0.
    expected, task, repeat: those of *turn*; task None: the data set has no groups; repeat None: it asks each problem once.
    text: the answer without its reasoning, "" where it has none; of several choices (``n``) the first; names and arguments of
    tool calls stand in it, too.  reasoning: likewise, "" where the endpoint told none apart.
    tool_calls: the answer's calls of tools; () where it has none, or the endpoint doesn't tell them apart.
    finish_reason: the server's word for the end; None where it sent none.
    usage: the server's counts as it sent them; None where it sent none.
    """

    expected: str
    turn: Turn
    text: str
    conversation_id: str
    number: int = 0
    task: str | None = None
    reasoning: str = ""
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    repeat: int | None = None
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def response(self) -> str:
        """What is graded: the text, or the reasoning of an answer without text."""
        return self.text or self.reasoning


class Grade(Struct, frozen=True, omit_defaults=True):
    """The grade of one answer.

    unparsed: the rules extracted nothing from the answer, so *correct* is a guess or False.
    extracted: the part that was compared with the expected answer; None where the answer has none.
    score: 0 to 1, for graders with partial marks; None is 1 or 0, like *correct*.
    explanation: a sentence for readers of the results.
    """

    correct: bool
    unparsed: bool = False
    extracted: str | None = None
    score: float | None = None
    explanation: str = ""


class GraderCapabilities(Struct, frozen=True):
    """What a grader's manifest says, below ``capabilities``.

    slow: the grader takes long, or does I/O: answers are graded after the load, in a process of its own.
    timeout_s: the longest that a slow grader may take for one answer, in s, above 0; the answer is ungraded then.
    engine: the distribution of an optional package that the grader compares with where it is installed; the results name it
    with its version, or say that it was absent.  "" for none.
    """

    slow: bool = False
    timeout_s: Annotated[float, Meta(gt=0)] = 600.0
    engine: str = ""


def timeout_s(capabilities: Mapping[str, Any]) -> float | None:
    """The limit per answer of a slow grader, in s, from its manifest's capabilities; None where it is fast."""
    known = msgspec.convert(dict(capabilities), GraderCapabilities)
    return known.timeout_s if known.slow else None


def engine_of(capabilities: Mapping[str, Any]) -> str | None:
    """The optional package of a grader with its version, such as ``math-verify 0.9.0``; None where it is absent, or needs none.

    capabilities: of the grader's manifest.
    """
    name = msgspec.convert(dict(capabilities), GraderCapabilities).engine
    if not name:
        return None
    from importlib.metadata import PackageNotFoundError, version  # not in a reducer

    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return None


class Grader(WithOptions[OptionsT]):
    """Compares answers.  options: the grader's own (None where it declares none).

    Pure: no clock, no I/O, no draw; the same texts give the same grade in any process and order.  One that is slow,
    or does I/O, says ``slow: true`` in its manifest (:class:`GraderCapabilities`).  The constructor raises
    ConfigError where an optional package is missing, before any request is sent.
    """

    def grade(self, *args: Any, **kwargs: Any) -> Grade:
        """Grade an answer: define ``grade(case)``, or ``grade(expected, response)``.

        case: a :class:`Case`.  expected: from the data set; response: the answer's text, or its reasoning where it has no text.
        """
        raise NotImplementedError(f"{type(self).__name__} must define grade(case) or grade(expected, response)")

    def unfit(self, expected: str) -> str | None:
        """Why no answer could be right where this is expected, such as ``it is no letter``; None where the grader takes it.

        Asked of a data set's first expected answer before the load: a grader that doesn't fit the data set is refused.
        """
        return None


def takes_case(grader: Grader[Any]) -> bool:
    """Whether the grader defines ``grade(case)``: its method has one parameter without a default."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature(grader.grade).parameters.values()
    needed = [each for each in parameters if each.kind in positional and each.default is Parameter.empty]
    return len(needed) == 1 and all(each.kind is not Parameter.VAR_POSITIONAL for each in parameters)


__all__ = ["Case", "Grade", "Grader", "GraderCapabilities", "engine_of", "takes_case", "timeout_s"]
