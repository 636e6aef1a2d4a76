"""Runs many command lines in one warm interpreter, each in a fork of it: a start costs milliseconds instead of a second.

As a program it reads a list of lines as JSON, and writes what each did: exit code, standard output, standard error.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path
from typing import IO, Any, NamedTuple, NotRequired, TypedDict

_START = ["-m", "m", "--tokenizer", "builtin"]
_WARM = (
    ["profile", *_START, "--request-rate", "-3"],
    ["profile", *_START, "--input-file", "nothing.jsonl"],
    ["report", "nowhere"],
    ["validate", "nowhere"],
    ["plot", "nowhere"],
    ["simulate", "--fault", "explode"],
)


class Given(TypedDict):
    """A command line: its words behind ``aiperf``, and the variables of its environment.

    columns: it runs on a terminal of this width, and standard output has all that it writes there.
    """

    words: list[str]
    environment: dict[str, str]
    columns: NotRequired[int]


class Did(NamedTuple):
    code: int
    out: str
    err: str


def run(given: Sequence[Given], folder: Path, *, at_once: int = 1, loads: bool = False) -> list[Did]:
    """What each of the lines does in *folder*, *at_once* at a time, in an environment without the program's variables.

    loads: they send requests, and so import what all processes of a run do.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AIPERF_", "COLUMNS"))}
    done = subprocess.run(
        [sys.executable, __file__, str(at_once), *["loads"] * loads], input=json.dumps(given), stdout=subprocess.PIPE,
        cwd=folder, env=environment, text=True, check=True,
    )  # fmt: skip
    return [Did(*row) for row in json.loads(done.stdout)]


def _play(given: Given, registry: Any, out: int, err: int) -> None:
    """The line, in a process that is there for it alone; never returns."""
    import aiperf.cli.main

    code = 99  # of a traceback
    try:
        if "columns" in given:
            _become_terminal(given["columns"], out)
        else:
            for number, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, out), (2, err)):
                os.dup2(file, number)
        os.environ |= given["environment"]
        code = aiperf.cli.main.main(given["words"], registry)
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001  # a process has no caller
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _become_terminal(columns: int, out: int) -> None:
    """Go on in a fork on a terminal; this process writes what comes there to *out*, and ends as the fork does."""
    pid, screen = pty.fork()
    if not pid:
        ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        return
    with contextlib.suppress(OSError):  # EIO: nobody holds the other end any more
        while piece := os.read(screen, 1 << 16):
            os.write(out, piece)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _warm(lines: Sequence[Given], registry: Any) -> None:
    """Run a wrong line of each command here, whose output nobody reads: what they import, no fork imports again."""
    import aiperf.cli.main

    for words in _WARM:
        if any(line["words"][:1] == words[:1] for line in lines):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                aiperf.cli.main.main(words, registry)
    gc.freeze()  # so that no collection in a fork copies the pages of all modules


def _text(file: IO[bytes]) -> str:
    with file:
        file.seek(0)
        return file.read().decode(errors="replace")


def main() -> None:
    import aiperf.cli.main
    import aiperf.planning.configure
    import aiperf.registry.option_specs
    import aiperf.run.run
    import aiperf.sdk.endpoint  # noqa: F401
    import pydantic  # noqa: F401  # imported once for all forks
    from aiperf.registry.registry import Registry

    registry = Registry.discover()  # the packages are the same for all
    lines: list[Given] = json.load(sys.stdin)
    at_once = int(sys.argv[1])
    begun: list[tuple[int, Any, Any]] = []
    codes: dict[int, int] = {}
    if "loads" in sys.argv[2:]:
        from warm import warm

        warm()
    _warm(lines, registry)
    for given in lines:
        if len(begun) - len(codes) >= at_once:
            pid, status = os.wait()
            codes[pid] = os.waitstatus_to_exitcode(status)
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  # closed by _text
        pid = os.fork()
        if pid == 0:
            _play(given, registry, out.fileno(), err.fileno())
        begun.append((pid, out, err))
    while len(codes) < len(begun):
        pid, status = os.wait()
        codes[pid] = os.waitstatus_to_exitcode(status)
    print(json.dumps([(codes[pid], _text(out), _text(err)) for pid, out, err in begun]), flush=True)
    os._exit(0)  # a thread that an installed package left would keep the interpreter


if __name__ == "__main__":
    main()
