"""The samples of telemetry sources in a journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aiperf.parts.samples import read_samples, sample_files
from aiperf.sdk.series import Line, SourceHeader


def kept_samples(journal: Path, source: str) -> Iterator[Line]:
    """See :meth:`aiperf.sdk.verdict.Evidence.samples`."""
    for path in sample_files(journal):
        lines = read_samples(path)
        first = next(lines, None)
        if isinstance(first, SourceHeader) and first.ref.name == source:
            yield first
            yield from lines
