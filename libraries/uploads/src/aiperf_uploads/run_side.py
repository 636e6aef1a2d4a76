"""The run's side of an upload: start its process, and wait for it, but not for long."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiperf.parts.processes import SideProcess, fate
from aiperf.sdk.environment import number
from msgspec import Struct, field

from aiperf_uploads.replies import ItemLeft, ItemSent, UploadEnded, UploadFacts, decode_reply

_END_S = 1.0
"""Longest wait for a process that has said its last word; then it is killed."""


class UploadOutcome(Struct):
    """What became of an upload.

    sent: the items that have arrived, in their order.  left: why each other item has not.  facts: what the receiver says.
    """

    sent: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def sentences(self, who: str) -> list[str]:
        """A sentence for each reason, with all items that it kept; none where all have arrived.  *who*: the option."""
        reasons: dict[str, list[str]] = {}
        for item, why in self.left.items():
            reasons.setdefault(why, []).append(item)
        return [f"{who}: {why}; not uploaded: {', '.join(items)}" for why, items in reasons.items()]


def limit_s(variable: str) -> float:
    """The time for an upload in s, from the environment; 30 where *variable* is not set.

    Raises:
        ConfigError: It is no number from 0.1 to 86,400.
    """
    return number(variable, 0.1, 86_400, 30)


def upload(module: str, job: Struct, items: Sequence[str], limit_s: float, *, secrets: bool = True) -> UploadOutcome:
    """Run *module* in a process of its own, hand it *job*, and wait until it has tried all *items*, for *limit_s* at most.

    secrets: the process has the keys of the environment, which an upload needs.
    An exception of the wait, such as the second Ctrl-C, ends the process and passes.
    """
    process = SideProcess(module, log=Path(os.devnull), secrets=secrets)
    outcome = UploadOutcome()
    why = f"it took longer than {limit_s:g} s, and was broken off"
    until_s = time.monotonic() + limit_s
    ended = False
    try:
        process.send(job)
        while not ended and (left_s := until_s - time.monotonic()) > 0:
            _ = process.backlogged  # a long job is written piece by piece
            for line in process.receive(min(left_s, 0.1)):
                ended = _heed(outcome, line)
            if not ended and process.ended_replies:
                process.end(_END_S)
                why, ended = f"its process {fate(process.poll())}", True
    finally:
        process.end(_END_S if ended else 0.0)
        process.close()
    why = outcome.left.pop("", why)
    done = {*outcome.sent, *outcome.left}
    outcome.left |= {item: why for item in items if item not in done}
    return outcome


def _heed(outcome: UploadOutcome, line: bytes) -> bool:
    """Take a reply; whether it is the last."""
    match decode_reply(line):
        case ItemSent(item):
            outcome.sent.append(item)
        case ItemLeft(item, why):
            outcome.left[item or ""] = why
        case UploadFacts(facts):
            outcome.facts |= facts
        case UploadEnded():
            return True
    return False


__all__ = ["UploadOutcome", "limit_s", "upload"]
