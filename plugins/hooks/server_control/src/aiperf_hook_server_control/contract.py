"""The hooks for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import HooksContract

from aiperf_hook_server_control import ServerControl


class ServerControlContract(HooksContract):
    hooks = ServerControl
