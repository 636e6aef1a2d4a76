"""Material for the contract of the API as a live view."""

from __future__ import annotations

from aiperf.testing import LiveContract

from aiperf_live_api import Api
from aiperf_live_api.options import ApiOptions


class ApiContract(LiveContract):
    live = Api
    options = ApiOptions(api_port=0)


__all__ = ["ApiContract"]
