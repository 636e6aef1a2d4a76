"""What two runs of the same plan wrote: does anything differ but whose it is and how long things took?

usage: alike.py DIRECTORY DIRECTORY

Names, rows, keys and values must be equal.  May differ: what tells runs apart (ids, directories, command line); instants,
durations, rates, and what is averaged over time; and the plugin of the API, which a run of the service has.  Of journals the
data set's files are compared byte by byte, columns and samples by their presence: the records made from them are compared.  Of
text, such as the console's, numbers may differ.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_WHOSE = frozenset((
    "benchmark_id", "run_id", "x_request_id", "x_correlation_id", "root_correlation_id", "cli_command", "command", "dir",
    "journal", "artifacts", "pid", "log",
))  # fmt: skip
_WHEN = re.compile(
    r"(.*_)?(ns|ms|us|s|seconds|time|duration|latency|window|lag)"
    r"|rate|sent_rate|worker_cpu_pct|columns-.*|unique_updates|total_fetches|timestamp"
)
_TIMED_UNITS = frozenset(("ms", "sec", "s", "us", "ns", "requests/sec", "tokens/sec", "tokens/sec/user"))
_OVER_TIME = frozenset((
    "effective_concurrency", "effective_prefill_concurrency", "effective_decode_concurrency", "tokens_in_flight",
    "http_req_data_received", "http_req_connection_reused", "telemetry", "server_families", "metrics_over_time", "series",
    "http_req_chunks_received", "lower", "upper", "intervals", "estimated_gaps", "coalesced_chunks", "chunk_stamp_share",
    "first_stamp_share", "merged_first", "findings", "record_line",
))  # fmt: skip
"""What is averaged over time, counts bytes of the server's own stamps, samples the server, or says how well times are known."""
_API = frozenset(("live:api", "api_port", "api_host"))
_BINARY = re.compile(r"journal/(columns-|telemetry-|summary\.msgpack|shard-|lock)")
_NUMBER = re.compile(r"\d[\d,]*(\.\d+)?(e[-+]?\d+)?")
_BLANK = re.compile(r"[\s│┌┐└┘├┤┬┴┼─━]+")
_COMMAND = re.compile(r"^CLI Command:.*?(?=^\S+ ?\S*: )", re.MULTILINE | re.DOTALL)
_FRACTION = "a number"
_MOST = 20
"""Differences of a file that are named."""


def differing(one: Path, other: Path) -> list[str]:
    """What differs, one line each, with the file's name first; none where nothing does."""
    names = [{str(path.relative_to(side)) for path in side.rglob("*") if path.is_file()} for side in (one, other)]
    found = [f"{name}: in {one if name in names[0] else other} alone" for name in sorted(names[0] ^ names[1])]
    for name in sorted(names[0] & names[1]):
        found += [f"{name}: {line}" for line in _file(name, one / name, other / name)][:_MOST]
    return found


def _file(name: str, one: Path, other: Path) -> Iterator[str]:
    if _BINARY.match(name) or one.read_bytes() == other.read_bytes():
        return
    match Path(name).suffix:
        case ".json":
            yield from _values(json.loads(one.read_text()), json.loads(other.read_text()), "")
        case ".jsonl":
            yield from _values(_rows(one), _rows(other), "line ")
        case ".csv":
            yield from _table(one, other)
        case ".parquet":
            from pyarrow import parquet

            rows, others = ([*map(_whole, parquet.read_table(path).to_pylist())] for path in (one, other))
            yield from _values(_ordered(rows), _ordered(others), "row ")
        case ".log" | ".txt":
            mine, yours = _lines(one), _lines(other)
            yield from (f"in one alone: {line}" for line in [*(mine - yours), *(yours - mine)] if line)
        case _:
            yield "its bytes"


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a table without units: what is measured is a number with a fraction there, what is counted has none."""
    return {name: _FRACTION if isinstance(value, float) else value for name, value in row.items()}


def _lines(path: Path) -> Counter[str]:
    """Lines without their numbers and the width that these give to columns."""
    lines = _COMMAND.sub("", path.read_text()).splitlines()
    return Counter(_BLANK.sub(" ", _NUMBER.sub("#", line)).replace("-#", "#").strip() for line in lines)


def _rows(path: Path) -> list[dict[str, Any]]:
    return _ordered([json.loads(line) for line in path.read_text().splitlines()])


def _ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by their place in the plan: answers end in another order each time."""

    def place(row: dict[str, Any]) -> tuple[str, int]:
        about = row.get("metadata", row)
        return str(about.get("phase")), about.get("n", about.get("session_num", 0))

    return sorted(rows, key=place)


def _table(one: Path, other: Path) -> Iterator[str]:
    """The same rows and columns, and cells that are filled in both; a CSV says what its rows measure in their first cell."""
    tables = []
    for path in (one, other):
        with path.open(newline="") as file:
            rows = (row for row in csv.reader(file) if row and not row[0].startswith("#"))
            tables.append([[row[0], *(bool(cell) for cell in row[1:])] for row in rows])
    yield from _values(tables[0], tables[1], "row ")


def _values(one: Any, other: Any, place: str, *, timed: bool = False) -> Iterator[str]:
    """*timed*: these are measured in time, so that numbers may differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        one, other = _without_api(one), _without_api(other)
        yield from (f"{place}{key}: in one alone" for key in sorted((one.keys() ^ other.keys()) - _OVER_TIME))
        timed = timed or one.get("unit") in _TIMED_UNITS
        for key in sorted((one.keys() & other.keys()) - _WHOSE - _OVER_TIME):
            when = _WHEN.fullmatch(key) is not None
            if not when or isinstance(one[key], dict | list):
                yield from _values(one[key], other[key], f"{place}{key}.", timed=timed or when)
    elif isinstance(one, list) and isinstance(other, list):
        one, other = ([each for each in side if not _of_api(each)] for side in (one, other))
        if len(one) != len(other):
            yield f"{place.rstrip('.')}: {len(one)} and {len(other)}"
        for at, (mine, yours) in enumerate(zip(one, other, strict=False)):
            yield from _values(mine, yours, f"{place}{at}.", timed=timed)
    elif one != other and not (timed and _number(one) and _number(other)):
        yield f"{place.rstrip('.')}: {str(one)[:60]} and {str(other)[:60]}"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without_api(value: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key not in _API and not (key == "live" and isinstance(each, list))}


def _of_api(value: Any) -> bool:
    return value == "live:api" or (isinstance(value, dict) and (value.get("category"), value.get("name")) == ("live", "api"))


def main() -> int:
    if len(sys.argv) != 3:
        print((__doc__ or "").split("\n")[2], file=sys.stderr)
        return 2
    found = differing(*map(Path, sys.argv[1:]))
    print(*found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
