"""The {{ cookiecutter.name }} engine: sites in other directories of this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from aiperf import ConfigError, LocalProcess, Shard, SiteEngine, SiteStart

from {{ cookiecutter.__module }}.options import DirectoryOptions


class {{ cookiecutter.__class }}(SiteEngine[DirectoryOptions]):
    """Runs the Python interpreter of each site with ``start.words``; it could as well run it on another machine.

    ``start.input`` holds keys: it goes to the standard input of the command, which stays open, and nowhere else.
    """

    def names(self) -> Sequence[str]:
        missing = [str(directory) for directory in self.options.directories if not directory.is_dir()]
        if missing:
            raise ConfigError(f"--{{ cookiecutter.__word }}-directories: {', '.join(missing)} is no directory", "make it, or name others")
        return [directory.name for directory in self.options.directories]

    def address(self, index: int, port: int) -> str:
        """Where a program of the site reaches *port* of the run's loopback: here by loopback itself."""
        return f"tcp://127.0.0.1:{port}"

    def start(self, start: SiteStart) -> Shard:
        place = self.options.directories[start.index].absolute()
        # env, since a child of this process would share its working directory and its directory for temporary files.
        site = LocalProcess(("env", "-C", str(place), f"TMPDIR={place}", sys.executable, *start.words), start.log, sends=True)
        site.give(start.input)
        return site
