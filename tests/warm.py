"""A process that has imported the kernel's part of the program, and forks a run of it when ``program.py`` asks.

usage: warm.py FD
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

import aiperf.__main__
import aiperf.cli.main
import aiperf.planning.configure
import aiperf.registry.option_specs
import aiperf.run.run
import aiperf.sdk.exporter
import aiperf.sdk.grader
import aiperf.sdk.metric
import aiperf.sdk.telemetry
import aiperf.sdk.verdict
import yaml  # noqa: F401
import zmq  # noqa: F401
from aiperf_command_simulate.nursery import ForkServer


def play(given: dict[str, Any]) -> int:
    """The program with the ``words`` given, in a session of its own, as in a terminal."""
    os.setsid()
    sys.argv = [str(aiperf.__main__.__file__), *given["words"]]
    return aiperf.__main__.main()


if __name__ == "__main__":
    ForkServer(socket.socket(fileno=int(sys.argv[1])), play).run()
