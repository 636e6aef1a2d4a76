"""The contract of scenarios: what the rules of a benchmark fill in and refuse, and whether a run counts for it.

``--scenario NAME`` chooses one.  It fills in options before they are validated, looks at the plan before anything starts, and
judges the finished run: in the reducer at its end, and again in ``aiperf report``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import msgspec
from msgspec import Struct

from aiperf.sdk.options import OptionsT, WithOptions

if TYPE_CHECKING:
    from aiperf.sdk.plan import Plan
    from aiperf.sdk.verdict import Evidence

Filling: TypeAlias = str | bool | Sequence[str] | None
"""A text, the state of a flag, or values that are added to those of an option with several; None takes the option away."""


class AskedOption(Struct, frozen=True):
    """An option that was given.

    typed: the flag as typed, or its place in a configuration file.  values: its texts, secrets redacted; () of a flag.
    on: the state of a flag, None for other options.
    """

    typed: str
    values: tuple[str, ...] = ()
    on: bool | None = None

    @property
    def text(self) -> str:
        """The values as one text; ``on`` or ``off`` of a flag."""
        return ",".join(self.values) if self.on is None else "on" if self.on else "off"


class AskedSettings(Struct, frozen=True):
    """What was asked for, before anything is filled in.

    options: what was given, by each flag of the option (``--request-count`` and ``--num-requests``).
    lists: the options, as typed, of whose values each has a run of its own.
    """

    options: Mapping[str, AskedOption] = {}
    lists: tuple[str, ...] = ()

    def given(self, *flags: str) -> AskedOption | None:
        """The first of the options with these flags that was given; None where none was."""
        return next((self.options[flag] for flag in flags if flag in self.options), None)

    def flag(self, flag: str) -> str:
        """The flag to name in a message: as typed where it was given."""
        return self.options[flag].typed if flag in self.options else flag


class Conflict(Struct, frozen=True):
    """A setting that a scenario doesn't allow.

    flag: as typed.  value: what it was set to, "" where the flag says it.  required: what the scenario requires instead.
    why: a clause, the reason.  final: ``--unsafe-override`` doesn't allow it either.
    """

    flag: str
    value: str
    required: str
    why: str
    final: bool = False

    def sentence(self, scenario: str) -> str:
        """The conflict in words; *scenario*: its name."""
        return f"{f'{self.flag} {self.value}'.rstrip()}: {scenario} requires {self.required}: {self.why}"


class ScenarioFigure(Struct, frozen=True):
    """A number of a run that a scenario gives: a result of the summary, in place of a metric's with the same *tag*.  value:
    finite."""

    tag: str
    title: str
    unit: str
    value: float


class ScenarioVerdict(Struct, frozen=True):
    """Whether a finished run counts for a scenario.

    title: the scenario's name, for people.  valid: whether the run counts; *reasons*: why it doesn't, names for programs.
    notes: sentences for people, on the reasons and on what the scenario did.
    metadata: keys of ``metadata`` in the summary JSON.  fields: further objects of the summary JSON, by name, none of which is
    a metric's result.  figures: results of the run.
    fault: why the exit code is 1, "" where it need not be.
    aggregate: keys of ``metadata`` in aggregates that have the run; *unjudged*: those where another run of it has no verdict.
    """

    title: str
    valid: bool
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    fault: str = ""
    aggregate: dict[str, Any] = {}
    unjudged: dict[str, Any] = {}
    figures: tuple[ScenarioFigure, ...] = ()


def checked_verdict(verdict: object) -> ScenarioVerdict:
    """The verdict as it is stored: what JSON can hold.

    Raises:
        TypeError, ValueError: It is none, or has something else in it.
    """
    if not isinstance(verdict, ScenarioVerdict):
        raise TypeError(f"judge gave {type(verdict).__name__}, not ScenarioVerdict")
    return msgspec.json.decode(msgspec.json.encode(verdict), type=ScenarioVerdict)


def joined(verdicts: Sequence[ScenarioVerdict | None]) -> dict[str, Any]:
    """Keys of ``metadata`` in an aggregate of runs with these verdicts; {} where no run has one.

    True where it is of all runs; the values of all lists, each once; else the value of the first run that has the key.
    """
    found = [each for each in verdicts if each is not None]
    if not found:
        return {}
    parts = [each.aggregate for each in found]
    parts += [found[0].unjudged] if len(found) < len(verdicts) else []
    made: dict[str, Any] = {}
    for key, value in ((key, value) for part in parts for key, value in part.items()):
        before = made.setdefault(key, value)
        if isinstance(before, bool) and isinstance(value, bool):
            made[key] = before and value
        elif isinstance(before, list) and isinstance(value, list):
            made[key] = [*before, *(each for each in value if each not in before)]
    return made


class BenchmarkScenario(WithOptions[OptionsT]):
    """The rules of a benchmark.  options: the scenario's own (None where it declares none)."""

    title: ClassVar[str]
    """Its name, for people."""

    @classmethod
    def fill(cls, asked: AskedSettings) -> Mapping[str, Filling]:
        """Values of options, by a flag of each.  One that was given keeps its value; values of a list are added to it.

        Parent process, before options are validated; once a run.
        """
        return {}

    def conflicts(self, plan: Plan, asked: AskedSettings) -> Iterable[Conflict]:
        """All settings that the scenario doesn't allow.

        They are told together, and the run is refused; with ``--unsafe-override`` they are warnings, and
        ``plan.run.overridden`` has them.  Parent process, before anything starts; once a run.
        """
        return ()

    def judge(self, evidence: Evidence) -> ScenarioVerdict:
        """Whether the run counts.  The same evidence gives the same verdict.

        ``evidence.summary`` has the measurement's verdict, tables and warnings.  An exception is reported with package and
        name, and the run then has no verdict of the scenario.
        """
        raise NotImplementedError(f"{type(self).__name__} must define judge(evidence)")


__all__ = [
    "AskedOption", "AskedSettings", "BenchmarkScenario", "Conflict", "Filling", "ScenarioFigure", "ScenarioVerdict",
    "checked_verdict", "joined",
]  # fmt: skip
