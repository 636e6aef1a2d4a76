from __future__ import annotations

from aiperf import Options, option


class ParrotOptions(Options):
    greeting: str = option("--parrot-greeting", default="Please:", metavar="TEXT", help="What every prompt begins with.")
