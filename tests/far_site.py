"""A site that is reached with ssh through a slow wire that loses packets, with its server beside it in another network."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ssh_server import ssh_server
from two_networks import SERVER, Namespace, Wire, two_networks

_PORT = 2222
DELAY_S, LOSS = 0.02, 0.01
"""Of the wire: each way, and the part of packets that it loses."""


@dataclass(frozen=True)
class FarSite:
    """here: the network of the run.  there: that of the site.  folder: for the files of the server of ssh."""

    here: Namespace
    there: Namespace
    wire: Wire
    folder: Path

    @contextlib.contextmanager
    def engine(self, ahead_s: float = 0.0) -> Iterator[list[str]]:
        """Words for the command line of a run.  *ahead_s*: of the site's monotonic clock.

        Raises:
            NoSshError: No server of ssh can be started.
        """
        with ssh_server(self.folder, SERVER, lambda words: self.there.command(words, ahead_s), _PORT) as (port, options):
            host = f"{SERVER}:{port}"
            yield ["--engine", "ssh", "--ssh-hosts", host, "--ssh-python", sys.executable, "--ssh-options", options]


@contextlib.contextmanager
def far_site(folder: Path, delay_s: float = DELAY_S, loss: float = LOSS) -> Iterator[FarSite]:
    """Two networks, for a site in the second one.

    Raises:
        NoNetworksError: They can't be made here.
    """
    with two_networks(delay_s, loss) as (here, there, wire):
        yield FarSite(here, there, wire, folder)
