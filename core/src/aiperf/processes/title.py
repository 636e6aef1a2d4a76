"""What the list of processes shows of this one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
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
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        words, words_end, variables, variables_end = map(int, fields[_MEMORY : _MEMORY + 4])
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            for begin, end, before in ((words, words_end, b""), (variables, variables_end, f"{API_KEY}=".encode())):
                memory.seek(begin)
                shown = text = memory.read(end - begin)
                for secret in hidden:
                    text = text.replace(before + secret, before + b"*" * len(secret))
                if text != shown:
                    memory.seek(begin)
                    memory.write(text)
