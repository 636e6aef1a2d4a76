"""``aiperf {{ cookiecutter.__word }} DIR``: the slowest requests of a run."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from aiperf import AiperfError, Command
from msgspec import Struct

from {{ cookiecutter.__module }}.options import CommandOptions


class _Value(Struct):
    value: float


class _Metrics(Struct):
    request_latency: _Value | None = None


class _Metadata(Struct):
    x_request_id: str = ""


class _Line(Struct):
    metadata: _Metadata
    metrics: _Metrics


_read = msgspec.json.Decoder(_Line).decode


class {{ cookiecutter.__class }}(Command[CommandOptions]):
    """Reads ``profile_export.jsonl`` of an artifact directory and prints the slowest, slowest first."""

    arguments = "DIR"

    def run(self, options: CommandOptions, words: Sequence[str]) -> int:
        for latency_ms, request in heapq.nlargest(options.top, latencies(Path(words[0]) / "profile_export.jsonl")):
            print(f"{latency_ms:12.2f} ms  {request}")
        return 0


def latencies(path: Path) -> Iterator[tuple[float, str]]:
    """Latency in ms and id of every request that has a latency.

    Raises:
        AiperfError: The file can't be read, or a line isn't a request's; the message gives path and line number.
    """
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                try:
                    line = _read(text)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise AiperfError(f"{path}:{number} is not a request: {error}") from error
                if line.metrics.request_latency is not None:
                    yield line.metrics.request_latency.value, line.metadata.x_request_id
    except OSError as error:
        raise AiperfError(f"{path} can't be read: {error.strerror}", "give the artifact directory of a run") from error
