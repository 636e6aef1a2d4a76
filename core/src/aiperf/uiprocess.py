"""The process of a live display: what the run tells it, to the plugin.

    python -m aiperf.uiprocess REPLIES
"""

from __future__ import annotations

import signal
import sys
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from aiperf.aside import Heard, say
from aiperf.descriptor import PluginRef
from aiperf.progress import Snapshot
from aiperf.strangers import why
from aiperf.ui import Ui


class Opened(Struct, frozen=True, tag=True):
    """The first message: which plugin, with which options."""

    ref: PluginRef
    options: dict[str, Any] | None


class Shown(Struct, frozen=True, tag=True):
    snapshot: Snapshot


class Logged(Struct, frozen=True, tag=True):
    line: str


Message: TypeAlias = Opened | Shown | Logged
_decode = msgspec.json.Decoder(Message).decode


class Process:
    """Messages in, calls of the plugin out."""

    def __init__(self) -> None:
        self._ui: Ui | None = None

    def take(self, line: bytes) -> None:
        match _decode(line):
            case Opened(ref, options):
                from types import SimpleNamespace

                self._ui = ref.load()(None if options is None else SimpleNamespace(**options))
            case Shown(snapshot) if self._ui is not None:
                self._ui.show(snapshot)
            case Logged(text) if self._ui is not None:
                self._ui.log(text)
            case _:
                pass

    def close(self) -> None:
        if self._ui is not None:
            self._ui.close()


def main(arguments: list[str]) -> int:
    (replies,) = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides what Ctrl-C means
    process = Process()
    heard = Heard(process.take)
    try:
        while not heard.over:
            heard.wait(None)
        process.close()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # strangers' code
        say(int(replies), why(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
