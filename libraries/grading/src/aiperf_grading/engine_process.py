"""The process of :class:`aiperf_grading.engine.MathVerify`: a line with two texts in, a line with 1 or 0 out."""

from __future__ import annotations

import json
import resource
import signal
import sys
from typing import Any

from aiperf_grading.engine_limits import LIMIT_BYTES, LIMIT_S


def _verdict(parse: Any, verify: Any, expected: str, answer: str) -> bool:
    """Whether the engine takes the two for equal; a failure of it is no equality."""
    try:
        gold, found = (parse(f"${text}$", parsing_timeout=None) for text in (expected, answer))
        return bool(gold and found and verify(gold, found, timeout_seconds=None))
    except Exception:  # noqa: BLE001  # another package's code
        return False


def main() -> None:
    """Answer until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from math_verify import parse, verify  # takes a second

    for line in sys.stdin:
        expected, answer = json.loads(line)
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)  # its signal ends the process, also inside a long multiplication
        right = _verdict(parse, verify, expected, answer)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        sys.stdout.write("1\n" if right else "0\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
