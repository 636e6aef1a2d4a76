"""``aiperf`` and ``python -m aiperf``.

The installed command never has the working directory on ``sys.path``.  ``python -m aiperf`` has it there first; this module
removes it before it imports anything.  What the interpreter imports to get here still comes from the working directory:
``runpy``, ``importlib``, ``typing`` and ``aiperf`` itself.  ``python -P -m aiperf`` has no such gap.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    if sys.argv[1:] == ["--version"]:  # answered here, so that it costs nothing but the interpreter
        from aiperf import __version__

        print(__version__)
        return 0
    from aiperf.cli import surroundings

    if sys.argv[1:2] == ["profile"]:
        surroundings.end_at_signals()
    streams = surroundings.Streams()
    from aiperf.cli.main import main as run
    from aiperf.registry.imports import leave

    return leave(streams.finished(run(sys.argv[1:])))


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    sys.exit(main())
