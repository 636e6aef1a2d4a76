"""Material for the contracts of both views."""

from __future__ import annotations

from aiperf.testing import LiveContract

from acme_lookout import Brake, Messenger
from acme_lookout.options import BrakeOptions, MessengerOptions


class BrakeContract(LiveContract):
    live = Brake
    options = BrakeOptions(bound_ms=50.0)


class MessengerContract(LiveContract):
    live = Messenger
    options = MessengerOptions(url="http://127.0.0.1:9/")
