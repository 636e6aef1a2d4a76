"""A token signed with a key: the time of its making, and a signature of it."""

from __future__ import annotations

import hashlib
import hmac
import time

from aiperf import HttpRequest, Turn, hookimpl
from msgspec.structs import replace

from acme_office.options import BadgeOptions


class Badge:
    options: BadgeOptions

    def __init__(self, options: BadgeOptions | None = None) -> None:
        self._token, self._old_at = "", 0.0

    @hookimpl
    def aiperf_request_prepared(self, request: HttpRequest, turn: Turn) -> HttpRequest | None:
        if self.options.key is None:
            return None
        if (now := time.monotonic()) >= self._old_at:
            made = str(time.time_ns())
            signature = hmac.new(self.options.key.encode(), made.encode(), hashlib.sha256).hexdigest()
            self._token, self._old_at = f"Bearer {made}.{signature}", now + self.options.lifetime_s
        return replace(request, headers={**request.headers, "Authorization": self._token})
