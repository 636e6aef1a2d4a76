"""How a server's engine writes what it accepted of drafts, and one form for all engines.

An engine is an adapter: an object with ``engine`` (its name), ``recognises(payload)`` and ``read(payload)``.  vLLM's is here;
another package adds its own under the entry-point group ``aiperf.spec_decode``.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any, Protocol

import msgspec
from msgspec import Struct

log = logging.getLogger(__name__)

GROUP = "aiperf.spec_decode"
MOST_PLACES, MOST_STEPS = 1 << 12, 1 << 40
"""No answer has a longer histogram, or more steps."""
_KNOWN_TEXTS = 4096
"""Texts of which the reading is remembered."""


class Acceptance(Struct, frozen=True, omit_defaults=True):
    """What the verify steps of one answer accepted.

    histogram: place j has the number of steps that accepted exactly j draft tokens.  steps: verify steps.  accepted, drafted:
    draft tokens.  depth: draft tokens of a step, at most.  per_step_accepted, per_step_drafted: of each step.
    """

    engine: str
    histogram: tuple[int, ...]
    steps: int
    accepted: int
    drafted: int
    depth: int | None = None
    per_step_accepted: tuple[int, ...] | None = None
    per_step_drafted: tuple[int, ...] | None = None

    @property
    def mean_length(self) -> float:
        """Tokens that a verify step gave, its own included; 1 without steps."""
        return 1.0 + self.accepted / self.steps if self.steps else 1.0

    @property
    def draft_rate(self) -> float:
        """Accepted share of the draft tokens; 0 without drafts."""
        return self.accepted / self.drafted if self.drafted else 0.0

    def entry(self, completion_tokens: int | None) -> dict[str, Any]:
        """The field of the request's line in the per-request file."""
        found = {
            "engine": self.engine, "mean_acceptance_length": self.mean_length, "draft_acceptance_rate": self.draft_rate,
            "acceptance_histogram": {str(place): count for place, count in enumerate(self.histogram) if count},
            "num_accepted_draft_tokens": self.accepted, "num_draft_tokens": self.drafted, "num_spec_steps": self.steps,
            "num_spec_tokens": self.depth, "completion_tokens": completion_tokens,
            "per_step_accepted": self.per_step_accepted, "per_step_drafted": self.per_step_drafted,
        }  # fmt: skip
        return {name: value for name, value in found.items() if value is not None}


class Adapter(Protocol):
    """Reads what one engine writes."""

    engine: str

    def recognises(self, payload: dict[str, Any]) -> bool:
        """Whether the payload has the form of this engine."""

    def read(self, payload: dict[str, Any]) -> Acceptance:
        """
        Raises:
            ValueError: The payload contradicts itself, or lacks something.
        """


class _Payload(Struct):
    acceptance_histogram: list[int]
    num_spec_steps: int
    num_accepted_draft_tokens: int
    num_draft_tokens: int
    mean_acceptance_length: float
    draft_acceptance_rate: float
    num_spec_tokens: int | None = None
    per_step_accepted: list[int] | None = None
    per_step_drafted: list[int] | None = None


class Vllm:
    """vLLM's ``metrics.speculative_decoding``, with ``--per-request-spec-decode-metrics summary`` or ``detailed``."""

    engine = "vllm"

    def recognises(self, payload: dict[str, Any]) -> bool:
        return "acceptance_histogram" in payload and "num_spec_steps" in payload

    def read(self, payload: dict[str, Any]) -> Acceptance:
        said = msgspec.convert(payload, _Payload)  # strict: a boolean is no number
        found = Acceptance(
            self.engine, tuple(said.acceptance_histogram), said.num_spec_steps, said.num_accepted_draft_tokens,
            said.num_draft_tokens, said.num_spec_tokens,
            None if said.per_step_accepted is None else tuple(said.per_step_accepted),
            None if said.per_step_drafted is None else tuple(said.per_step_drafted),
        )  # fmt: skip
        if fault := next((fault for fault, good in _checks(found) if not good), None):
            raise ValueError(fault)
        return found


def _checks(found: Acceptance) -> list[tuple[str, bool]]:
    """Sentences on faults, each with whether it is none."""
    histogram, accepted, drafted = found.histogram, found.per_step_accepted, found.per_step_drafted
    both = zip(accepted or (), drafted or (), strict=False)
    tokens = sum(place * count for place, count in enumerate(histogram))
    return [
        ("a count is below 0", min((*histogram, found.steps, found.accepted, found.drafted)) >= 0),
        ("the histogram is too long", len(histogram) < MOST_PLACES and found.steps < MOST_STEPS),
        ("the histogram has another number of places", found.depth is None or len(histogram) == found.depth + 1),
        ("the histogram has another number of steps", sum(histogram) == found.steps),
        ("the histogram has another number of tokens", tokens == found.accepted),
        ("more tokens are accepted than drafted", found.accepted <= found.drafted),
        ("per_step_accepted has another length", accepted is None or len(accepted) == found.steps),
        ("per_step_drafted has another length", drafted is None or len(drafted) == found.steps),
        ("per_step_accepted has another sum", accepted is None or sum(accepted) == found.accepted),
        ("per_step_drafted has another sum", drafted is None or sum(drafted) == found.drafted),
        ("a step has a count below 0", min((*(accepted or ()), *(drafted or ()), 0)) >= 0),
        ("a step accepts more than was drafted", all(taken <= given for taken, given in both)),
    ]


@lru_cache(maxsize=1)
def adapters() -> tuple[Adapter, ...]:
    """vLLM's, and those of other packages; one that can't be loaded is named once."""
    from importlib.metadata import entry_points  # costs 20 ms, which a run without such answers saves

    found: list[Adapter] = [Vllm()]
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            found.append(point.load()())
        except Exception as error:  # noqa: BLE001  # code of a stranger
            log.warning("the adapter %s of %s can't be loaded: %s", point.name, GROUP, error)
    return tuple(found)


@lru_cache(maxsize=_KNOWN_TEXTS)
def acceptance(text: str) -> Acceptance | None:
    """What a payload says; None where no engine writes so, or it contradicts itself."""
    try:
        payload = msgspec.json.decode(text)
        if not isinstance(payload, dict):
            return None
        adapter = next((each for each in adapters() if each.recognises(payload)), None)
        return None if adapter is None else adapter.read(payload)
    except Exception:  # noqa: BLE001  # counted by the metric of payloads that are ignored; an adapter may be a stranger's
        return None
