"""Messages that a command makes, as genai-perf has them in its rows."""

from __future__ import annotations

import shlex
import subprocess
import sys
from base64 import b64encode
from typing import Any

from aiperf import BadDataset

LONGEST_S = 10.0
"""Longest time of a command."""
FIELD = "message_generator"


def command_of(row: dict[str, Any]) -> str | None:
    """The command of a row: ``{"data": [{"message_generator": …}]}``, or ``text`` that is one; None where it has none."""
    data = row.get("data")
    first = data[0] if isinstance(data, list) and data else data
    command = first.get(FIELD) if isinstance(first, dict) else row.get(FIELD)
    if command is None and set(row) == {"text"}:
        command = row["text"]
    return command if isinstance(command, str) else None


def messages_of(command: str, place: str) -> list[str]:
    """The messages that the command writes, in base64: each behind its length, 4 bytes in this machine's order.

    Raises:
        BadDataset: It can't be run, fails, takes too long, or its last message is cut.
    """
    try:
        done = subprocess.run(
            shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST_S, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise BadDataset(f"{place}: the command takes longer than {LONGEST_S:g} s", "make its messages beforehand") from error
    except (OSError, ValueError) as error:
        raise BadDataset(f"{place}: the command can't be run: {error}", "it is run without a shell") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise BadDataset(f"{place}: the command ended with {done.returncode}: {''.join(said)[:200]}", "run it yourself first")
    return [b64encode(message).decode() for message in _messages(done.stdout, place)]


def _messages(data: bytes, place: str) -> list[bytes]:
    messages, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], sys.byteorder)
        if at + 4 + size > len(data) or len(data) - at < 4:
            raise BadDataset(f"{place}: the last message of the command is cut", "each is 4 bytes of length, and the message")
        messages.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    if not messages:
        raise BadDataset(f"{place}: the command makes no message", "each is 4 bytes of length, and the message")
    return messages
