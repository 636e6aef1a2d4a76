"""``aiperf validate``: whether the files of a run are whole, well-formed and agree, or a data set's file can be read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from aiperf import AiperfError, Command, UsageError

if TYPE_CHECKING:
    from aiperf.registry import Registry

    from aiperf_command_validate.results import Findings


class Validate(Command):
    """Reads what is there; changes nothing."""

    arguments = "DIR...|FORMAT"

    def run(self, options: Any, words: Sequence[str]) -> int:
        """0 where nothing is wrong, 1 where something is, or a directory holds no results."""
        if not words:
            raise UsageError(
                "validate needs a directory, or a file",
                "for example: aiperf validate artifacts/my-run",
                "or: aiperf validate dataset prompts.jsonl",
            )
        from aiperf.registry import Registry

        registry = Registry.discover()
        files = list(map(Path, words[1:])) + ([] if options.input is None else [options.input])
        if self._reads_a_file(words, files, registry):
            return _read(files, words[0], registry, as_json=options.as_json)
        if options.input is not None:
            raise UsageError(f"--input is a data set's file, and {words[0]!r} is no format", "aiperf validate dataset FILE")
        return self._directories(words, registry, as_json=options.as_json)

    def _reads_a_file(self, words: Sequence[str], files: list[Path], registry: Registry) -> bool:
        """Whether the first word is what the others are read as.  A directory of that name alone is one of results."""
        from aiperf_command_validate.dataset import is_form

        return is_form(words[0], registry) and (bool(files) or not Path(words[0]).is_dir())

    def _directories(self, words: Sequence[str], registry: Registry, *, as_json: bool) -> int:
        found: list[Findings] = []
        wrong = 0
        for word in words:
            try:
                found.append(_validate(Path(word), registry))
            except AiperfError as error:
                if len(words) == 1:
                    raise
                wrong += 1
                print("\n".join(["error: " + error.lines()[0], *error.lines()[1:]]), file=sys.stderr)
        if as_json:
            print(msgspec.json.format(msgspec.json.encode(found[0] if len(words) == 1 else found), indent=2).decode())
        else:
            for one in found:
                _say(one)
        return 1 if wrong or any(one.faults for one in found) else 0


def _read(files: list[Path], form: str, registry: Registry, *, as_json: bool) -> int:
    """Say of a data set's file what it holds, and why it can't be read to its end where it can't."""
    from aiperf_command_validate.dataset import read

    if len(files) != 1:
        raise UsageError(f"validate {form} takes one file, {len(files)} were given", f"aiperf validate {form} FILE")
    found = read(files[0], form, registry)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        if found.fault is not None:
            print(found.fault)
        verdict = "nothing is wrong" if found.valid else "the rest was not read"
        held = f"{_counted(found.conversations, 'conversation')}, {_counted(found.turns, 'turn')}"
        print(f"{found.file}: {found.format}: {held}: {verdict}")
    return 0 if found.valid else 1


def _validate(directory: Path, registry: Registry) -> Findings:
    from aiperf_command_validate.results import check
    from aiperf_command_validate.schemas import schemas

    try:
        return check(directory, schemas(registry))
    except OSError as error:
        raise AiperfError(f"{error.filename or directory} can't be read: {error.strerror or error}") from error


def _say(found: Findings) -> None:
    """One line a fault, then what it comes to."""
    for fault in found.faults:
        print(fault)
    files = ", ".join(f"{name} ({count:,} lines)" if count is not None else name for name, count in found.files.items())
    print(f"{found.directory}: results of {found.made_by}: {files or 'no files'}")
    for note in found.notes:
        print(f"{found.directory}: {note}")
    print(f"{found.directory}: {_counted(len(found.faults), 'fault') if found.faults else 'nothing is wrong'}")


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
