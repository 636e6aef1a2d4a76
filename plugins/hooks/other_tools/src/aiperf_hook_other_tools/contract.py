"""What the package promises, for aiperf plugins validate and its own tests."""

from __future__ import annotations

from aiperf.testing import HooksContract

from aiperf_hook_other_tools import OtherTools


class OtherToolsContract(HooksContract):
    hooks = OtherTools
