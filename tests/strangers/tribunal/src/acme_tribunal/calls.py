"""Calls of tools: expected is a JSON list of names and arguments; their order, and that of the arguments, is free."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from aiperf import Case, Grade, Grader


def _plain(value: Any) -> Any:
    """The value, where 3.0 is 3."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _written(name: str, arguments: Any) -> str:
    return f"{name}({json.dumps(_plain(arguments), sort_keys=True)})"


class Calls(Grader):
    def grade(self, case: Case) -> Grade:
        expected = Counter(_written(call["name"], call.get("arguments", {})) for call in json.loads(case.expected))
        try:
            made = Counter(_written(call.name, json.loads(call.arguments or "{}")) for call in case.tool_calls)
        except (ValueError, RecursionError):
            return Grade(correct=False, unparsed=True, explanation="the arguments of a call are no JSON")
        shown = ", ".join(sorted(made.elements()))
        share = (expected & made).total() / max(expected.total(), made.total(), 1) if expected or made else 1.0
        return Grade(correct=expected == made, unparsed=not made and bool(expected), extracted=shown or None, score=share)
