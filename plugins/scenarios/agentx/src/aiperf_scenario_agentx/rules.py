"""Names and numbers of the scenario (spec: agentic §2, §4)."""

from __future__ import annotations

NAME = "inferencex-agentx-mvp"
AGENTIC = "agentic_replay"
"""The scheduling mode."""
CACHE_BUST = "first_turn_prefix"
USUAL_S, SHORTEST_S = 1800, 900
"""``--benchmark-duration`` where none is given, and the shortest one, in s."""
SYSTEM_CAP_S = 10
LOCAL, ANY_REPOSITORY = "weka_trace", "weka_hf"
"""Formats whose corpus is the user's: files, and a repository of the hub or a directory."""
REPOSITORY = "semianalysisai/cc-traces-weka-062126"
"""The one repository of ``--hf-weka-dataset`` that counts."""
_SETS = (
    "with_subagents", "with_subagents_060226", "with_subagents_060526", "with_subagents_060826", "061326", "061526", "062126",
)  # fmt: skip
PUBLIC = tuple(f"semianalysis_cc_traces_weka_{name}{context}" for name in _SETS for context in ("", "_256k"))
"""The public sets with subagents."""

__all__ = [
    "AGENTIC", "ANY_REPOSITORY", "CACHE_BUST", "LOCAL", "NAME", "PUBLIC", "REPOSITORY", "SHORTEST_S", "SYSTEM_CAP_S", "USUAL_S",
]  # fmt: skip
