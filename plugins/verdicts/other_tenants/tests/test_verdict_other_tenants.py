"""The verdict other_tenants keeps its contract."""

from __future__ import annotations

from aiperf_verdict_other_tenants.contract import OtherTenantsContract


class TestItKeepsTheContract(OtherTenantsContract):
    pass
