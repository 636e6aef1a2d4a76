"""What endpoints of rankings share: a query and passages go out, a score for each passage comes back.

The names are in the package ``aiperf-endpoint-rankings`` and loaded from there; a package that uses them declares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

__all__ = [
    "PASSAGES", "QUERY", "SCORE_NUMBERS", "QueryAndPassages", "count_passages", "ranking_probe", "read_scores",
]  # fmt: skip

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, "aiperf_endpoint_rankings.scores"))

if TYPE_CHECKING:
    from aiperf_endpoint_rankings.scores import (  # isort: skip
        PASSAGES, QUERY, SCORE_NUMBERS, QueryAndPassages, count_passages, ranking_probe, read_scores,
    )  # fmt: skip
