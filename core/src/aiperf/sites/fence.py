"""One process of a site after the other: the next one begins when none is left of the one before, nor of its workers.

A name in the abstract namespace of sockets (unix(7)) is taken as long as any process has the socket open, and workers inherit
it.  So a site that was given up, but goes on because nobody could tell it, sends nothing beside the one in its place, where
that is on the same machine.
"""

from __future__ import annotations

import errno
import socket
import sys
import time

from aiperf.errors import AiperfError

_WAIT_S = 60.0
"""A site that hears nothing of its run is over before."""
_LOOK_S = 0.1


def held(place: str) -> socket.socket | None:
    """The socket that is open as long as this process or a worker of it is there; None where the system has no such names.

    It waits until the ones before have ended.

    Raises:
        AiperfError: They don't.
        OSError: The system refuses the name for another reason.
    """
    if not sys.platform.startswith("linux"):
        return None
    fence = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    until_s = time.monotonic() + _WAIT_S
    while True:
        try:
            fence.bind(f"\0aiperf-site-{place}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                fence.close()
                raise
        else:
            return fence
        if time.monotonic() > until_s:
            fence.close()
            raise AiperfError(f"processes of the site before, which was given up, still run after {_WAIT_S:g} s")
        time.sleep(_LOOK_S)
