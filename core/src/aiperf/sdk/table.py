"""The contract of tables: the evidence of a finished run in, tables of the summary out.

Every installed plugin of the category gives its tables at the end of a run and again in ``aiperf report``, before the verdicts
judge.  The console prints them, the summary JSON has each table's rows under its name, ``aiperf.results.open_run`` reads them
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from aiperf.sdk.options import OptionsT, WithOptions

if TYPE_CHECKING:
    from aiperf.sdk.telemetry import Point
    from aiperf.sdk.verdict import Evidence

Cell: TypeAlias = str | bool | int | float | tuple[float, ...] | None
"""A cell of a table; None where there is nothing to say.  A number that isn't finite is left out of files.  Several numbers, as
the points of a curve, are a list in JSON; people see how many there are."""

_Name: TypeAlias = Annotated[str, Meta(pattern="^[a-z][a-z0-9_]*$", max_length=64)]


TAKEN = frozenset((
    "aiperf_version", "benchmark_id", "delivered_load", "end_time", "error_summary", "incomplete_reason", "input_config",
    "is_complete", "measurement", "observation_window", "outcomes", "phases", "plugins", "run_info", "schema_version",
    "start_time", "survival", "tables", "telemetry", "telemetry_data", "urls", "was_cancelled", "warmup_metrics", "warnings",
    "finish_reasons", "failures", "lost", "dataset", "groups", "metadata",
))  # fmt: skip
"""Keys of the summary JSON beside the tags of metrics: no table has one of these names."""


class WhenShown(StrEnum):
    """Whether the console prints a table: in every report, with ``-v``, or never, as what only programs read."""

    ALWAYS = "always"
    VERBOSE = "verbose"
    NEVER = "never"


class TableColumn(Struct, frozen=True):
    """A column.  name: its key in JSON.  unit: of its numbers (``ms``, ``tokens``); empty for texts and plain counts."""

    name: _Name
    unit: str = ""


class SummaryTable(Struct, frozen=True):
    """A table of a finished run.

    name: its key in the summary JSON, which no metric's tag, no other key and no other table has.  title: for people.
    rows: each has a cell for each column.  notes: sentences below the table.
    shown: where people see it; files have it always.
    plugin, package: name of the plugin, and ``distribution version``; the kernel fills them in.
    """

    name: _Name
    title: Annotated[str, Meta(min_length=1)]
    columns: Annotated[tuple[TableColumn, ...], Meta(min_length=1)]
    rows: tuple[tuple[Cell, ...], ...] = ()
    notes: tuple[str, ...] = ()
    shown: WhenShown = WhenShown.ALWAYS
    plugin: str = ""
    package: str = ""


class SummaryFacts(Struct, frozen=True):
    """An object that the summary JSON has under *name*, which is taken as a table's: facts of a run that are no numbers of
    metrics.  What JSON can't hold is an error; numbers that aren't finite are left out."""

    name: _Name
    facts: dict[str, Any]


def checked_facts(facts: SummaryFacts) -> SummaryFacts:
    """The facts as JSON has them.

    Raises:
        TypeError, ValueError: Something in them can't be JSON.
    """
    return msgspec.json.decode(msgspec.json.encode(facts), type=SummaryFacts)


def checked_table(table: object) -> SummaryTable:
    """The table, with the types that it declares; a number of numpy becomes a float.

    Raises:
        TypeError, ValueError: It has others, or a row has not a cell for each column.
    """
    if not isinstance(table, SummaryTable):
        raise TypeError(f"tables gave {type(table).__name__}, not SummaryTable")
    made = msgspec.convert(msgspec.to_builtins(table, enc_hook=float), SummaryTable)
    names = [column.name for column in made.columns]
    if len(set(names)) < len(names):
        raise ValueError(f"the table {made.name} has two columns of one name: {', '.join(names)}")
    for number, row in enumerate(made.rows, 1):
        if len(row) != len(names):
            raise ValueError(f"row {number} of the table {made.name} has {len(row)} cells for {len(names)} columns")
    return made


class Tables(WithOptions[OptionsT]):
    """Makes tables of finished runs.  options: the plugin's own (None where it declares none)."""

    def tables(self, evidence: Evidence) -> SummaryTable | Iterable[SummaryTable | SummaryFacts] | None:
        """The tables of the run, and objects for its summary JSON; None or no table where there is nothing to show.

        The same evidence gives the same tables.  An exception is reported with package and name; the tables before it stay.
        """
        raise NotImplementedError(f"{type(self).__name__} must define tables(evidence)")

    @classmethod
    def queued(cls, points: Sequence[Point]) -> float | None:
        """How many requests the servers under test have in work or in their queues, by the latest *points* of their series.
        None where no series tells.  Asked between two plans, in the process of a telemetry source."""
        return None


__all__ = [
    "TAKEN", "Cell", "SummaryFacts", "SummaryTable", "TableColumn", "Tables", "WhenShown", "checked_facts", "checked_table",
]  # fmt: skip
