"""The judge that a mathematical grader uses: our own core, and math-verify where it is installed."""

from __future__ import annotations

from importlib.metadata import version

from aiperf_grading.engine import MathVerify, installed
from aiperf_grading.equality import equal


class Judgement:
    """Compares texts and notes who found them equal."""

    def __init__(self) -> None:
        self._engine = installed()
        self._asked = MathVerify() if self._engine else None
        self._own = f"aiperf-grading {version('aiperf-grading')}"

    @property
    def judges(self) -> str:
        """Who compares, with versions."""
        return f"{self._own} and {self._engine}" if self._engine else self._own

    def equal(self, gold: list[str], found: list[str]) -> tuple[str | None, str]:
        """The first of *found* that equals one of *gold*, None where none does; and who says so."""
        for each in found:
            if any(equal(one, each) for one in gold):
                return each, f"equal by {self._own}"
        if self._asked is not None:
            for each in found:
                if any(equal(one, each, self._asked) for one in gold):
                    return each, f"equal by {self._engine}"
        return None, f"unequal by {self.judges}"


__all__ = ["Judgement"]
