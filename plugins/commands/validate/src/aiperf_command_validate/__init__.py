"""``aiperf validate``: whether the files of a run are whole, well-formed and agree, or a data set's file can be read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from aiperf import AiperfError, Command, UsageError
from aiperf.sdk.exporter import visible

from aiperf_command_validate.options import ValidateOptions

if TYPE_CHECKING:
    from aiperf.sdk.registry import InstalledPlugins

    from aiperf_command_validate.results import Findings


class Validate(Command[ValidateOptions]):
    """Reads results or a data set; changes nothing."""

    arguments = "DIR...|FORMAT"

    def run(self, options: ValidateOptions, words: Sequence[str]) -> int:
        """0 where nothing is wrong, 1 where something is, or a directory holds no results."""
        if not words:
            raise UsageError(
                "validate needs a directory, or a file",
                "for example: aiperf validate artifacts/my-run",
                "or: aiperf validate dataset prompts.jsonl",
            )
        files = list(map(Path, words[1:])) + ([] if options.input is None else [options.input])
        if self._reads_a_file(words, files):
            return _read(files, words[0], self.registry, as_json=options.as_json)
        if options.input is not None:
            raise UsageError(f"--input is a data set's file, and {words[0]!r} is no format", "aiperf validate dataset FILE")
        return self._directories(words, as_json=options.as_json)

    def _reads_a_file(self, words: Sequence[str], files: list[Path]) -> bool:
        """Whether the first word is a format.  A lone word that names a directory means results."""
        from aiperf_command_validate.dataset import is_form

        return is_form(words[0], self.registry) and (bool(files) or not Path(words[0]).is_dir())

    def _directories(self, words: Sequence[str], *, as_json: bool) -> int:
        verdicts: list[Findings] = []
        wrong = 0
        for word in words:
            try:
                verdicts += _all_of(Path(word), self.registry)
            except AiperfError as error:
                if len(words) == 1:
                    raise
                wrong += 1
                print("\n".join(["error: " + error.lines()[0], *error.lines()[1:]]), file=sys.stderr)
        if as_json:
            _print_json(verdicts[0] if len(verdicts) == 1 else verdicts)
        else:
            for verdict in verdicts:
                _print(verdict)
        return 1 if wrong or any(verdict.faults for verdict in verdicts) else 0


def _print_json(value: object) -> None:
    print(visible(msgspec.json.format(msgspec.json.encode(value), indent=2)).decode())


def _read(files: list[Path], form: str, registry: InstalledPlugins, *, as_json: bool) -> int:
    """Print what a data set's file holds, and the first fault."""
    from aiperf_command_validate.dataset import read

    if len(files) != 1:
        raise UsageError(f"validate {form} takes one file, {len(files)} were given", f"aiperf validate {form} FILE")
    content = read(files[0], form, registry)
    if as_json:
        _print_json(content)
    else:
        if content.fault is not None:
            print(content.fault)
        verdict = "nothing is wrong" if content.valid else "the rest was not read"
        others = f" and {content.started:,} started by others" if content.started else ""
        held = f"{_counted(content.conversations, 'conversation')}{others}, {_counted(content.turns, 'turn')}"
        print(f"{content.file}: {content.format}: {held}: {verdict}")
    return 0 if content.valid else 1


def _all_of(directory: Path, registry: InstalledPlugins) -> list[Findings]:
    """What is wrong with a run, or with each run of a study and with what they have in common."""
    from aiperf.results import is_study, open_study

    if not directory.is_dir() or not is_study(directory):
        return [_validate(directory, registry)]
    from aiperf_command_validate.study import check_study

    runs = [run.directory for run in open_study(directory).runs if run.run is not None]
    return [*(_validate(run, registry) for run in runs), check_study(directory)]


def _validate(directory: Path, registry: InstalledPlugins) -> Findings:
    from aiperf_command_validate.results import check
    from aiperf_command_validate.schemas import schemas

    try:
        return check(directory, schemas(registry), registry)
    except OSError as error:
        raise AiperfError(f"{error.filename or directory} can't be read: {error.strerror or error}") from error


def _print(verdict: Findings) -> None:
    """Print a line for each fault, then the total."""
    for fault in verdict.faults:
        print(fault)
    files = ", ".join(f"{name} ({count:,} lines)" if count is not None else name for name, count in verdict.files.items())
    print(f"{verdict.directory}: results of {verdict.made_by}: {files or 'no files'}")
    for note in verdict.notes:
        print(f"{verdict.directory}: {note}")
    print(f"{verdict.directory}: {_counted(len(verdict.faults), 'fault') if verdict.faults else 'nothing is wrong'}")


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
