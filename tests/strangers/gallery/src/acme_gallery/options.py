"""Options of the postcard endpoint."""

from __future__ import annotations

from aiperf.sdk.options import Options


class PostcardOptions(Options):
    field: str = "small"
