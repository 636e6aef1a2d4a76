"""What runs on a node of the cluster: an actor that holds the command of one site."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

import ray
from aiperf import LocalProcess
from nacl.public import PrivateKey, SealedBox


class SiteActor:
    """Gets the input of the command in an envelope that it alone can open: an actor's arguments pass Ray's own channel."""

    def __init__(self) -> None:
        self._key = PrivateKey.generate()

    def where(self) -> tuple[str, bytes]:
        """The address of the node, and the public key for the envelope."""
        return ray.util.get_node_ip_address(), bytes(self._key.public_key)

    def start(self, words: Sequence[str], sealed: bytes) -> None:
        """Start the command: *words* behind this node's interpreter.  *sealed*: its input."""
        with NamedTemporaryFile(prefix="aiperf-ray-") as log:  # its name goes at once: it can't be left behind
            self._process = LocalProcess([sys.executable, *words], Path(log.name), sends=True)
            self._log = os.dup(log.fileno())
        self._process.give(SealedBox(self._key).decrypt(sealed))

    def look(self, offset: int, seconds: float) -> tuple[bytes, int | None]:
        """What the command has said from *offset* on, and its exit code, None while it runs; waits for that a while."""
        code = self._process.wait(seconds)
        return os.pread(self._log, max(0, os.fstat(self._log).st_size - offset), offset), code

    def end(self, kill: bool) -> None:
        """Close the standard input of the command, or *kill* it."""
        if kill:
            self._process.kill()
        else:
            self._process.let_go()
