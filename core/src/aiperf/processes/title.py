"""What the list of processes shows of this one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from aiperf.environment import API_KEY

_MEMORY = 45
"""Where the addresses of the command line and the environment stand in ``/proc/self/stat``, behind the name."""


def hide(secrets: Iterable[str]) -> None:
    """Overwrite the exact *secrets* in the command line, and the API key in the environment, as ``/proc`` shows them.

    Nothing happens where the system does not allow it.  ``os.environ`` stays as it is.
    """
    hidden = [secret.encode() for secret in secrets]
    with contextlib.suppress(OSError, ValueError):
        words, words_end, variables, variables_end = _addresses()
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            for begin, end, before in ((words, words_end, b""), (variables, variables_end, f"{API_KEY}=".encode())):
                memory.seek(begin)
                shown = text = memory.read(end - begin)
                for secret in hidden:
                    text = text.replace(before + secret, before + b"*" * len(secret))
                if text != shown:
                    memory.seek(begin)
                    memory.write(text)


def show(words: Iterable[str], dropped: Mapping[str, str]) -> None:
    """Let ``/proc`` show *words* as the command line of this process, as far as they fit into its own, and *dropped* variables
    without their values.

    Nothing happens where the system does not allow it.
    """
    with contextlib.suppress(OSError, ValueError):
        begin, end, variables, variables_end = _addresses()
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(begin)
            memory.write("\0".join(words).encode(errors="replace")[: end - begin - 1].ljust(end - begin, b"\0"))
            memory.seek(variables)
            shown = text = b"\0" + memory.read(variables_end - variables)
            for name, value in ((os.fsencode(name), os.fsencode(value)) for name, value in dropped.items()):
                text = text.replace(b"\0%b=%b\0" % (name, value), b"\0%b=%b\0" % (name, b"*" * len(value)))
            if text != shown:
                memory.seek(variables)
                memory.write(text[1:])


def _addresses() -> list[int]:
    """Where the command line begins and ends, then the environment."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return [*map(int, fields[_MEMORY : _MEMORY + 4])]
