"""``aiperf config expand FILE``: its variations, each with its number, directory and values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from aiperf import Command, UsageError
from aiperf.parts.plans import AskedCell, AskedRuns, asked

from aiperf_command_config.files import given
from aiperf_command_config.options import ExpandFormat, ExpandOptions
from aiperf_command_config.writing import dumped, tree


class Expand(Command[ExpandOptions]):
    """Reads a file as ``aiperf profile --config`` does, and shows the runs that it would make.

    Raises:
        AiperfError: The file has faults, or no variation of that number.
    """

    arguments = "FILE"

    def run(self, options: ExpandOptions, words: Sequence[str]) -> int:
        with given(words[0]) as path:
            found = asked(self.registry, ["--config", str(path)])
        cells = [cell for cell in found.cells if options.index in (None, cell.cell.index)]
        if not cells:
            last = found.cells[-1].cell.index
            raise UsageError(f"--index {options.index}: there is no such variation", f"they have the numbers 0 to {last}")
        rows = [_row(found, cell, full=options.full) for cell in cells]
        if options.format is ExpandFormat.JSON:
            print(json.dumps(rows, indent=2, ensure_ascii=False))
        elif options.format is ExpandFormat.YAML:
            print(yaml.safe_dump(rows, sort_keys=False, allow_unicode=True, width=100), end="")
        else:
            print("\n".join(_lines(rows)))
        return 0


def _row(found: AskedRuns, cell: AskedCell, *, full: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "index": cell.cell.index, "label": cell.cell.label or cell.cell.name or "run", "directory": str(cell.directory),
        "runs": cell.runs, "parameters": dict(cell.cell.parameters),
    }  # fmt: skip
    return row | {"config": tree(cell.given or found.given)[0]} if full else row


def _lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    count = len(rows)
    yield f"{count} variation{'' if count == 1 else 's'}:"
    for row in rows:
        runs = f", {row['runs']} runs, the first" if row["runs"] > 1 else ""
        yield f"  {row['index']}: {row['label']}{runs} in {row['directory']}"
        for key, value in row["parameters"].items():
            yield f"      {key} = {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        if "config" in row:
            yield from (f"      {line}" for line in dumped(row["config"]).splitlines())


__all__ = ["Expand"]
