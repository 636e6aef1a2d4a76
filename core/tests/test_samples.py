"""Files of samples are read as they were written: whole, cut anywhere, and those of earlier versions."""

from __future__ import annotations

import math
import random
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest
from aiperf.parts.samples import SampleWriter, read_samples, sample_files, sample_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.errors import AiperfError
from aiperf.sdk.series import Line, Moment, Sample, SourceHeader
from aiperf.sdk.telemetry import Histogram, Point, SeriesKind

ORIGIN = SourceHeader(PluginRef("telemetry", "t", "t:T", "t", "1"), 0.25)
BOUNDS = (*(0.001 * 1.5**number for number in range(19)), math.inf)


def histogram(number: int, counts: tuple[float, ...], total: float) -> Point:
    return Point("wait", Histogram(BOUNDS[-len(counts) :], counts, total), SeriesKind.HISTOGRAM, labels={"n": str(number)})


def drawn(draw: random.Random) -> list[Point]:
    """Series of all kinds, some with counts that are large, no whole numbers, or decrease."""
    points: list[Point] = []
    for number in range(draw.randrange(40)):
        steps = [draw.choice([0, 1, draw.randrange(1 << 40), draw.random(), 1e300]) for _ in range(draw.choice([1, 2, 20]))]
        counts = draw.choice([(*accumulate(steps),), (*steps,), (*(int(step % 1000) for step in steps),)])
        points.append(histogram(number, counts, draw.choice([0.5, draw.random() * 1e9, 7.0, -3.0])))
        points.append(Point("level", draw.choice([0, -1.5, 1e18, draw.random()]), labels={"n": str(number)}))
        points.append(Point("own", draw.random(), labels={"n": str(number)}, at_ns=draw.randrange(1 << 60)))
    return points


def written(folder: Path, seed: int) -> tuple[Path, list[Line]]:
    """A file, and the lines that were written."""
    path, lines, draw = sample_path(folder, 0), list[Line](), random.Random(seed)
    writer = SampleWriter(path, ORIGIN, lines.append)
    for step in range(1, 9):
        writer.add(drawn(draw), Moment(step * 20_000_000_000, 1, 2, 0))
    writer.failed(9, 0, "it \x85 rains")
    writer.close()
    return path, lines


@pytest.mark.parametrize("seed", range(20))
def test_lines_are_read_as_they_were_written(tmp_path: Path, seed: int) -> None:
    path, lines = written(tmp_path, seed)
    assert [*read_samples(path)] == lines


def test_a_file_may_be_cut_anywhere(tmp_path: Path) -> None:
    path, lines = written(tmp_path, 3)
    whole = path.read_bytes()
    for size in [*range(300), *range(300, len(whole), 97)]:
        path.write_bytes(whole[:size])
        read = [*read_samples(path)]
        assert read == lines[: len(read)]
    assert len(read) > len(lines) // 2


def test_damage_is_a_sentence_with_file_and_place(tmp_path: Path) -> None:
    path, _ = written(tmp_path, 3)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(AiperfError, match=r"telemetry-0\.samples is damaged before byte [\d,]+: "):
        [*read_samples(path)]


@pytest.mark.parametrize("seed", range(5))
def test_a_file_of_an_earlier_version_is_read(tmp_path: Path, seed: int) -> None:
    path, lines = written(tmp_path, seed)
    path.unlink()
    old = tmp_path / "telemetry-0.jsonl"
    old.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines) + b'{"type":"sam')
    assert sample_files(tmp_path) == [old]
    assert [*read_samples(old)] == lines


@pytest.mark.parametrize("most", [20, 10_000, 999_999])
def test_a_page_of_a_thousand_histograms_takes_at_most_80_kb(tmp_path: Path, most: int) -> None:
    draw = random.Random(most)
    path = sample_path(tmp_path, 0)
    sizes: list[int] = []

    def note(line: Line) -> None:
        sizes.append(path.stat().st_size)

    writer = SampleWriter(path, ORIGIN, note)
    points = []
    for number in range(1040):
        weights = [draw.expovariate(1) for _ in BOUNDS]
        share = draw.uniform(0.2, 1) * most / sum(weights)
        counts = tuple(math.floor(each * share) for each in accumulate(weights))
        points.append(histogram(number, counts, draw.random() * counts[-1]))
    sample, _ = writer.sample(points, Moment(0, 0, 0, 0))
    writer.write(sample)
    assert isinstance(sample, Sample) and sample.whole and len(sample.values) == 1040
    assert sizes[-1] - sizes[-2] <= 80_000
    assert sizes[-2] <= 30_000, "names, labels and bounds"
    writer.add(points, Moment(333_000_000, 0, 0, 0))
    assert path.stat().st_size - sizes[-2] <= 80_000 + 2_000
    writer.close()
