"""What a site has for its run: the columns of its reducers, and where they are wanted the segments of its workers.

A segment is what the disk has of it, and behind that, in memory, what the disk had no room for.
"""

from __future__ import annotations

from pathlib import Path

from aiperf.processes.control import Unwritten
from aiperf.rundir.journal import numbered
from aiperf.sites.files import DOWN_BYTES, part
from aiperf.sites.messages import Columns, FilePiece, FileWanted


class SiteFiles:
    """The files in *directory*.

    whole: whether the disk has all of the segments.  wanted: whether the run wants them; as a rule they go when columns have
    them.
    """

    def __init__(self, directory: Path) -> None:
        self._directory, self.wanted = directory, False
        self._unwritten: dict[str, bytearray] = {}

    @property
    def whole(self) -> bool:
        return not self._unwritten

    def take(self, message: Unwritten) -> None:
        """Keep what its worker could not write."""
        self._unwritten.setdefault(message.segment, bytearray()).extend(message.data)

    def told(self, requests: dict[int, int]) -> Columns:
        """What there is now.  *requests*: how many each worker has sent."""
        return Columns(self._sizes("columns-*.*"), requests, self._segments() if self.wanted else {})

    def _segments(self) -> dict[str, int]:
        written = self._sizes("shard-*.seg")
        return written | {name: written.get(name, 0) + len(rest) for name, rest in self._unwritten.items()}

    def _sizes(self, pattern: str) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in numbered(self._directory, pattern)}

    def part(self, wanted: FileWanted) -> FilePiece:
        """The piece that is wanted.

        Raises:
            OSError: The file is not there, or can't be read.
        """
        path = self._directory / Path(wanted.name).name
        if (rest := self._unwritten.get(wanted.name)) is None:
            return part(path, wanted)
        written = path.stat().st_size if path.exists() else 0
        data = part(path, wanted).data if wanted.offset < written else b""
        begin, most = max(0, wanted.offset - written), min(wanted.most, DOWN_BYTES) - len(data)
        return FilePiece(wanted.name, wanted.offset, data + bytes(rest[begin : begin + most]))
