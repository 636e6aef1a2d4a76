"""The contract of the category with material for this verdict."""

from __future__ import annotations

from aiperf import ErrorDetails
from aiperf.sdk.verdict import ErrorSeen
from aiperf.testing import VerdictContract, sample_evidence

from aiperf_verdict_failures import Failures

_WRONG_KEY = ErrorSeen(ErrorDetails("who are you?", "Unauthorized", 401), 3, 1e6)
_UNKNOWN = ErrorSeen(ErrorDetails("a riddle", "Teapot", 418), 1, 2e6)


class FailuresContract(VerdictContract):
    """Runs with a known cause, with an unknown one, and without failures."""

    verdict = Failures
    cases = (
        (sample_evidence(), ()),
        (sample_evidence(errors=(_UNKNOWN,)), ()),
        (sample_evidence(errors=(_UNKNOWN, _WRONG_KEY)), ("not_authorized",)),
    )
