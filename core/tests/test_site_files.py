"""Files of a site for its run; segments where the disk is full: what is on the disk, and behind it what is in memory."""

from __future__ import annotations

from pathlib import Path

from aiperf.processes.control import Unwritten
from aiperf.sites.files import FileCopy
from aiperf.sites.site_files import SiteFiles

NAME = "shard-1.0.seg"


def test_a_segment_goes_on_in_memory_where_the_disk_ends(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    (there / NAME).write_bytes(b"on the disk,")
    (there / "shard-2.0.seg").write_bytes(b"whole")
    files = SiteFiles(there)
    assert files.whole and files.told({1: 7}).segments == {}
    files.take(Unwritten(NAME, b" and "))
    files.take(Unwritten(NAME, b"in memory"))
    files.take(Unwritten("shard-3.0.seg", b"in memory alone"))
    files.wanted = True
    told = files.told({1: 7})
    assert not files.whole and told.requests == {1: 7}
    assert told.segments == {NAME: 26, "shard-2.0.seg": 5, "shard-3.0.seg": 15}
    copy = FileCopy(here, 5)
    for name, size in told.segments.items():
        copy.grow(name, size)
    while (wanted := next(copy.wanted(), None)) is not None:
        piece = files.part(wanted)
        assert len(piece.data) <= 5
        copy.take(piece)
    assert {path.name: path.read_bytes() for path in here.iterdir()} == {
        NAME: b"on the disk, and in memory", "shard-2.0.seg": b"whole", "shard-3.0.seg": b"in memory alone",
    }  # fmt: skip


def test_files_that_are_needed_no_more_are_forgotten(tmp_path: Path) -> None:
    copy = FileCopy(tmp_path, 100)
    copy.grow("one", 10)
    copy.grow("other", 10)
    copy.keep_only({"other": 10})
    assert [path.name for path in tmp_path.iterdir()] == copy.names == ["other"] and copy.missing_bytes == 10
