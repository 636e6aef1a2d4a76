"""``aiperf validate DIR...``: whether the files of a run are whole, well-formed and agree with each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from aiperf import AiperfError, Command, UsageError

if TYPE_CHECKING:
    from aiperf_command_validate.results import Findings


class Validate(Command):
    """Reads what is there; changes nothing."""

    arguments = "DIR..."

    def run(self, options: Any, words: Sequence[str]) -> int:
        """0 where nothing is wrong, 1 where something is, or a directory holds no results."""
        if not words:
            raise UsageError("validate needs a directory", "for example: aiperf validate artifacts/my-run")
        found: list[Findings] = []
        wrong = 0
        for word in words:
            try:
                found.append(_validate(Path(word)))
            except AiperfError as error:
                if len(words) == 1:
                    raise
                wrong += 1
                print("\n".join(["error: " + error.lines()[0], *error.lines()[1:]]), file=sys.stderr)
        if options.as_json:
            print(msgspec.json.format(msgspec.json.encode(found[0] if len(words) == 1 else found), indent=2).decode())
        else:
            for one in found:
                _say(one)
        return 1 if wrong or any(one.faults for one in found) else 0


def _validate(directory: Path) -> Findings:
    from aiperf.registry import Registry

    from aiperf_command_validate.results import check
    from aiperf_command_validate.schemas import schemas

    try:
        return check(directory, schemas(Registry.discover()))
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
    count = len(found.faults)
    verdict = "nothing is wrong" if not count else "1 fault" if count == 1 else f"{count:,} faults"
    print(f"{found.directory}: {verdict}")
