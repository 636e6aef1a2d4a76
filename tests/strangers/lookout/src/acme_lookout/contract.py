"""Material for the contracts of both views."""

from __future__ import annotations

from aiperf.testing import LiveContract

from acme_lookout import Brake
from acme_lookout.options import BrakeOptions


class BrakeContract(LiveContract):
    view = Brake
    options = BrakeOptions(bound_ms=50.0)
