"""``aiperf analyze turn-messages DIR...``: what each turn of finished runs said, as a page to unfold."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import msgspec
from aiperf import Command
from aiperf_results import FinishedRun

from aiperf_command_analyze.drawing import clean
from aiperf_command_analyze.messages import Messages, messages_of
from aiperf_command_analyze.options import TurnMessagesOptions
from aiperf_command_analyze.runs import each_run, written


class TurnMessages(Command[TurnMessagesOptions]):
    """Makes a page of each directory's raw file: conversations, their turns, and the messages of each."""

    arguments = "DIR..."

    def run(self, options: TurnMessagesOptions, words: Sequence[str]) -> int:
        """0; 1 where a directory was skipped."""

        def make(run: FinishedRun, path: Path) -> None:
            found = messages_of(run, options.limit_conversations, options.max_turns, options.content_cap)
            written(path, page(f"Messages of {run.label}", found))

        return each_run(words, options.out, "turn_messages.html", (".html",), make)


def page(title: str, messages: Messages) -> str:
    """The page: the messages are data in it, packed, and no markup."""
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(messages), mtime=0)).decode()
    text = files("aiperf_command_analyze").joinpath("turn_messages.html").read_text()
    return text.replace("@packed@", packed).replace("@title@", clean(title))
