"""The directories of runs that ``aiperf analyze WORD DIR...`` reads, and the file that it makes of each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from aiperf import AiperfError, UsageError, atomic
from aiperf_results import FinishedRun, open_run


class NothingToShowError(AiperfError):
    """A directory that is skipped: it lacks what the word needs."""


def each_run(
    words: Sequence[str], output: Path | None, name: str, suffixes: Sequence[str], make: Callable[[FinishedRun, Path], None]
) -> int:  # fmt: skip
    """Make the file *name* in each directory, or *output* of the only one; 1 where a directory was skipped.

    *suffixes*: what *output* may end with.  *make* writes the file of a run to the path.

    Raises:
        UsageError: No directory, or an output that can't be.
    """
    if not words:
        raise UsageError("no directory of a run is given", "for example: artifacts/my-run")
    if output is not None and len(words) > 1:
        raise UsageError(f"-o {output} is one file, and {len(words)} directories are given", "leave -o out: each gets its own")
    if output is not None and output.suffix.lower() not in suffixes:
        kinds = " or ".join(suffixes)
        hint = "; a browser shows and prints it" if ".svg" in suffixes else ""
        raise UsageError(f"-o {output}: this word writes no such file", f"end the name in {kinds}{hint}")
    skipped = 0
    for word in words:
        made = output or Path(word) / name
        try:
            make(open_run(word), made)
        except AiperfError as error:
            said = "; ".join((error.message, *error.hints))
        except OSError as error:
            said = f"{error.filename or made}: {error.strerror}"
        else:
            continue
        skipped += 1
        print(f"skipped: {said if said.startswith(word) else f'{word}: {said}'}", file=sys.stderr)
    return 1 if skipped else 0


def written(path: Path, text: str) -> None:
    """Write a file that may hold prompts: for its owner alone."""
    with atomic(path) as draft:
        draft.touch(mode=0o600)
        draft.chmod(0o600)
        draft.write_text(text, encoding="utf-8")
    print(path)
