"""What a command line of ``aiperf profile`` asks for, read and checked as that command does it.  Nothing is started or sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from aiperf.cli.commandline import CommandLine, Scan
from aiperf.cli.configuration_file import ConfigurationFile
from aiperf.cli.main import checked, complain, opened, profile_command
from aiperf.cli.settings import is_study, profile_settings
from aiperf.errors import AiperfError, UsageError
from aiperf.planning import configure
from aiperf.planning.problems import Settings
from aiperf.registry.registry import Registry
from aiperf.sdk.configuration import Option, OptionValue
from aiperf.sdk.plan import Plan
from aiperf.sdk.planner import Space
from aiperf.sdk.registry import InstalledPlugins
from aiperf.sdk.study import Setting, StudyCell
from aiperf.study import trials
from aiperf.study.lists import is_list
from aiperf.study.preparation import Preparation
from aiperf.study.request import StudyRequest


class AskedCell(Struct, frozen=True):
    """A cell of a study, or a run by itself.

    directory: of its first run.  runs: how many are planned now.  given: its options in the file, where that has cells.
    """

    cell: StudyCell
    directory: Path
    runs: int = 1
    given: tuple[OptionValue, ...] = ()


class AskedRuns(Struct, frozen=True):
    """What a line asks for.

    given: options outside of lists, variants and cells, those of the file too.  cells: as planned now; a planner that searches
    plans more of them later.  space, planner: of several runs.  most: runs at most; None where the planner doesn't know.
    plan: of the run by itself, or of the first cell.
    """

    given: tuple[OptionValue, ...]
    cells: tuple[AskedCell, ...]
    plan: Plan
    space: Space | None = None
    planner: str = ""
    most: int | None = 1


def profile_options(registry: InstalledPlugins) -> tuple[Option, ...]:
    """The options of ``aiperf profile``."""
    assert isinstance(registry, Registry)
    return profile_command(registry, whole=True).options


def asked(registry: InstalledPlugins, words: Sequence[str], *, with_cells: bool = True) -> AskedRuns:
    """What the words behind ``aiperf profile`` ask for.  *with_cells*: the cells have their options (:attr:`AskedCell.given`).

    Raises:
        AiperfError: All faults of the line, of its file and of its cells.
    """
    assert isinstance(registry, Registry)
    errors: list[AiperfError] = []
    line = CommandLine(words)
    chosen, file = opened(registry, line, errors, with_file=True)
    command = profile_command(chosen, whole=True)
    scan = line.resolve(command.options, command=command.name, dashes=False, extra=command.foreign)
    if scan.help:
        raise UsageError("--help asks for no run", "leave it out")
    scan.shown.insert(0, command.name)
    on_line = [value for value in scan.given if not is_list(value) and value.option.spec.field != "variants"]

    def made(scan: Scan) -> Settings | StudyRequest:
        if is_study(scan):
            from aiperf.cli import studies

            return studies.requested(chosen, scan, command.options)
        return profile_settings(chosen, scan)

    result = checked(command, scan, file, errors, made)
    values = _Values(command.options, on_line, file)
    if isinstance(result, StudyRequest):
        return _of_study(result, values, with_cells=with_cells)
    plan, _ = configure.plan(result, chosen)
    return AskedRuns(values.of({}), (AskedCell(StudyCell(0, {}), Path(plan.output.artifacts)),), plan)


def told(registry: InstalledPlugins, words: Sequence[str]) -> tuple[OptionValue, ...]:
    """What the words behind ``aiperf profile`` and their file say, of all cells: nothing is checked, and no file that they name
    is opened.  A value that can't be read is left out.

    Raises:
        AiperfError: The file can't be read.
    """
    assert isinstance(registry, Registry)
    errors: list[AiperfError] = []
    line = CommandLine(words)
    chosen, file = opened(registry, line, errors, with_file=True)
    options = profile_command(chosen, whole=True).options
    scan = line.resolve(options, command="profile", dashes=False)
    if file is None:
        return tuple(scan.given)
    section = file.sweep(options)
    cells: list[Mapping[str, Setting]] = [{}]
    if section is not None:
        cells += [{each.path: value} for each in section.dimensions for value in (*each.values, *each.choices)]
        cells += [each.parameters for each in section.scenarios]
    found = list(scan.given)
    for parameters in cells:
        found += [value for value in file.values(options, parameters or None) if isinstance(value, OptionValue)]
    return tuple(found)


class _Values:
    """The options of a line and of its file."""

    def __init__(self, options: Sequence[Option], on_line: Sequence[OptionValue], file: ConfigurationFile | None) -> None:
        self._options, self._on_line, self._file = options, on_line, file

    def of(self, parameters: Mapping[str, Setting]) -> tuple[OptionValue, ...]:
        scan = Scan(list(self._on_line), [], [], [])
        if self._file is not None:
            scan.add(self._file.values(self._options, parameters or None))
        return tuple(scan.given)


def _of_study(request: StudyRequest, values: _Values, *, with_cells: bool) -> AskedRuns:
    prepared = Preparation(request)
    paths = {dimension.key: dimension.path for dimension in request.space.dimensions}
    of_file = request.base.configuration is not None and with_cells
    cells: dict[int, AskedCell] = {}
    for planned in prepared.planned:
        cell = planned.cell
        if cell.index in cells:
            first = cells[cell.index]
            cells[cell.index] = AskedCell(cell, first.directory, first.runs + 1, first.given)
            continue
        parameters = {paths.get(key, key): value for key, value in cell.parameters.items()}
        directory = trials.directory_of(prepared.base, request.space, planned, sweeps=request.sweeps)
        cells[cell.index] = AskedCell(cell, directory, 1, values.of(parameters) if of_file else ())
    in_order = tuple(cells[index] for index in sorted(cells))
    return AskedRuns(values.of({}), in_order, prepared.plan, request.space, request.planner.name, prepared.most)


__all__ = ["AskedCell", "AskedRuns", "asked", "complain", "profile_options", "told"]
