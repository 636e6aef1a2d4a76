"""``aiperf`` and ``python -m aiperf``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    if sys.argv[1:] == ["--version"]:  # answered here, so that it costs nothing but the interpreter
        from aiperf import __version__

        print(__version__)
        return 0
    from aiperf.cli import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
