"""The {{ cookiecutter.name }} choice of URLs: sessions in blocks."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import UrlStrategy

BLOCK = 8
"""Sessions in a row that use one URL."""


class {{ cookiecutter.__class }}(UrlStrategy):
    """BLOCK sessions in a row use one URL, the next BLOCK the next.

    One that goes by the load says ``uses_load = True``, here and among the manifest's capabilities, and looks at *in_flight*.
    """

    def choose(self, session: int, in_flight: Sequence[int]) -> int:
        """The URL's index, 0 to len(self.weights) - 1."""
        return session // BLOCK % len(self.weights)
