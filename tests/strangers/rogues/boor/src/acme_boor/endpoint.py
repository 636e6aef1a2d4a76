"""An endpoint that takes anything for an answer, sends elsewhere than it says, and imports what workers don't need."""

from __future__ import annotations

import numpy as np
from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn


class Boorish(Endpoint):
    capabilities = Capabilities(path="/boorish")

    def encode(self, turn: Turn) -> HttpRequest:
        return HttpRequest("/elsewhere", b"{}")

    def decode(self, event: bytes) -> Delta | None:
        return Delta(text="x" * int(np.array([1])[0]))
