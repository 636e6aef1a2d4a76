"""The files that words of ``aiperf config`` read and write."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from aiperf import ConfigError, UsageError

STDIN = "standard-input.yaml"
"""The name of what is read from a pipe, in messages."""
_MOST_BYTES = 16 << 20


@contextlib.contextmanager
def given(name: str) -> Iterator[Path]:
    """The path of a file, ``-`` for a copy of standard input.

    Raises:
        ConfigError: There is no such file; or what the pipe has is too long, or no text.
    """
    if name != "-":
        path = Path(name)
        if not path.exists():
            raise ConfigError(f"there is no file {name}", "aiperf config init --output FILE makes one")
        yield path
        return
    if sys.stdin.isatty():
        raise UsageError("- stands for standard input, and nothing is piped into it", "aiperf config validate FILE")
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"standard input has more than {_MOST_BYTES >> 20} MiB", "a configuration file has a few kilobytes")
    with tempfile.TemporaryDirectory(prefix="aiperf-config-") as folder:
        path = Path(folder) / STDIN
        path.write_bytes(data)
        yield path


def written(text: str, output: Path | None, *, again: bool = False) -> None:
    """Print the text, or write it to a file that doesn't exist; *again*: or does.

    Raises:
        ConfigError: It exists, or can't be written.
    """
    if output is None:
        print(text, end="")
        return
    try:
        with output.open("w" if again else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigError(f"{output} exists and is not overwritten", "name another file, or remove it") from error
    except OSError as error:
        raise ConfigError(f"{output} can't be written: {error.strerror}", "name another file") from error
    print(f"written: {output}", file=sys.stderr)
