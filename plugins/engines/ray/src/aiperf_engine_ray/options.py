"""The options of the ray engine."""

from __future__ import annotations

from aiperf.sdk.options import Finite, Options, option


class RayOptions(Options):
    """address: of the cluster, ``auto`` for the one that this machine belongs to.  sites: how many actors; None is refused.
    wait_s: longest wait for the processors of all of them."""

    address: str = option(
        "--ray-address", default="auto", metavar="auto|HOST:PORT", help="The Ray cluster; this machine belongs to it.",
    )  # fmt: skip
    sites: int | None = option(
        "--ray-sites", metavar="N", ge=1, help="Sites on the cluster: each an actor, on as many nodes as there are.",
    )  # fmt: skip
    wait_s: Finite = option(
        "--ray-wait", default=15.0, gt=0, metavar="SECONDS", help="Longest wait until the cluster has the processors free.",
    )  # fmt: skip
