"""Files that a site keeps between two plans, by their content: what the next plan has, too, is not sent again."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from aiperf.sites.files import TLS_NAMES
from aiperf.sites.messages import SentFile


class KeptFiles:
    """*directory*: where they are, each under its SHA-256; it is made when it is needed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, journal: Path, files: Iterable[SentFile]) -> None:
        """A plan is over: move the files that were sent for it here.  Certificates and keys are left, to end with *journal*."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for file in files:
            if file.name not in TLS_NAMES:
                (journal / file.name).replace(self._directory / file.sha256)

    def give(self, journal: Path, files: Iterable[SentFile]) -> Iterator[SentFile]:
        """Move those *files* that are here to *journal*, and drop what nobody wants; gives the files that are missing."""
        for file in files:
            kept = self._directory / file.sha256
            if kept.exists():
                kept.replace(journal / file.name)
            else:
                yield file
        shutil.rmtree(self._directory, ignore_errors=True)
