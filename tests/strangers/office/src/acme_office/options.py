from __future__ import annotations

from aiperf import Options, option


class BadgeOptions(Options):
    key: str | None = option("--badge-key", metavar="KEY", secret=True, help="Signs the tokens; without it none is sent.")
    lifetime_s: float = option("--badge-lifetime", default=300.0, gt=0, metavar="SECONDS", help="How long a token is used.")
