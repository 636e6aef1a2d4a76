"""``aiperf analyze``: a sweep of genai-perf as a line of ``aiperf profile``."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from aiperf import Command, UsageError

from aiperf_command_analyze.options import TYPES, AnalyzeOptions

_CONCURRENCY, _RATE = "concurrency", "request_rate"
_MOST = 10_000
"""Values of a range."""
_EXAMPLE = "for example: aiperf analyze --sweep-type concurrency --sweep-range 1:16 -- --model m"


class Analyze(Command[AnalyzeOptions]):
    """Prints the line, and runs nothing."""

    arguments = "[WORD...]"

    def run(self, options: AnalyzeOptions, words: Sequence[str]) -> int:
        flag = TYPES[options.sweep_type]
        if (given := next((word for word in words if word == flag or word.startswith(f"{flag}=")), None)) is not None:
            raise UsageError(f"{given} has one value, and --sweep-type {options.sweep_type} gives it several", f"drop {given}")
        if options.sweep_range is not None:
            values = values_of_range(options.sweep_range, options.sweep_type)
        elif options.sweep_list:
            values = [_number(text, options.sweep_type, "--sweep-list") for text in options.sweep_list]
        else:
            raise UsageError("analyze needs --sweep-range or --sweep-list: it says which values the runs have", _EXAMPLE)
        shown = ",".join(f"{value:g}" if value % 1 else str(int(value)) for value in values)
        print(shlex.join(["aiperf", "profile", *words, flag, shown]))
        return 0


def values_of_range(text: str, kind: str) -> list[float]:
    """The values of ``MIN:MAX``, powers of two, or of ``MIN:MAX:STEP``.

    Raises:
        UsageError: The text has another form, or the bounds are none that genai-perf takes.
    """
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise UsageError(f"--sweep-range {text!r} is not MIN:MAX or MIN:MAX:STEP", "for example: --sweep-range 1:16")
    low, high, *step = (_number(part, kind, "--sweep-range") for part in parts)
    if high < low:
        raise UsageError(f"--sweep-range {text}: the greatest value lies below the least", f"write {parts[1]}:{parts[0]}")
    if step:
        if kind == _CONCURRENCY:
            hint = "list others with --sweep-list"
            raise UsageError(f"--sweep-range {text}: concurrency has powers of two, and no step", hint)
        if (high - low) / step[0] >= _MOST:
            raise UsageError(f"--sweep-range {text} has more than {_MOST:,} values", "take a greater step")
        return [low + number * step[0] for number in range(math.floor((high - low) / step[0] + 1e-9) + 1)]
    if odd := [bound for bound in (low, high) if not _is_power(bound)]:
        step_hint = "" if kind == _CONCURRENCY else f"add a step, {parts[0]}:{parts[1]}:STEP, or "
        hint = f"{step_hint}list the values with --sweep-list"
        raise UsageError(f"--sweep-range {text}: {odd[0]:g} is no power of two", hint)
    return [low * 2**number for number in range(round(math.log2(high / low)) + 1)]


def _is_power(value: float) -> bool:
    return value >= 1 and value % 1 == 0 and int(value).bit_count() == 1


def _number(text: str, kind: str, flag: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf or (value % 1 and kind != _RATE):
        what = "a number above 0" if kind == _RATE else "a whole number above 0"
        raise UsageError(f"{flag}: {text!r} is not {what}", _EXAMPLE)
    return value


__all__ = ["Analyze", "values_of_range"]
