"""Proxies that the environment names, and the transport that can use them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from aiperf import environment
from aiperf.planning.problems import Draft
from aiperf.redaction import without_secrets
from aiperf.registry.guides import INSTALL_SUITE
from aiperf.sdk.descriptor import Descriptor

_VARIABLE = "AIPERF_HTTP_TRUST_ENV"


def proxied(urls: Iterable[str]) -> list[str]:
    """The URLs that are reached through a proxy, by the variables of the environment where they may be used."""
    if not environment.trust_env():
        return []
    from urllib.request import getproxies, proxy_bypass  # 40 ms

    proxies = getproxies()
    asked = [(url, urlsplit(url)) for url in urls]
    return [
        url for url, parts in asked
        if parts.netloc and (proxies.get(parts.scheme) or proxies.get("all")) and not proxy_bypass(parts.netloc)
    ]  # fmt: skip


def usual_for(draft: Draft, usual: str, serving: Sequence[Descriptor], behind: Sequence[str]) -> str:
    """The transport for URLs of which those *behind* a proxy are some: *usual*, unless it is another one that can."""
    if not behind or any(each.name == usual and uses_proxies(each) for each in serving):
        return usual
    able = next((each.name for each in serving if uses_proxies(each)), usual)
    if able != usual:
        draft.hint(f"{_VARIABLE}: {without_secrets(behind[0])} is behind a proxy; the transport {able!r} uses it")
    return able


def uses_proxies(transport: Descriptor) -> bool:
    """Whether it does: ``proxies`` in the capabilities of its manifest."""
    return bool(transport.capabilities.get("proxies"))


def check(draft: Draft, transport: Descriptor, behind: Sequence[str]) -> None:
    """Refuse a transport without proxies for URLs *behind* one."""
    if not behind or uses_proxies(transport):
        return
    able = [each.name for each in draft.registry.all("transports") if uses_proxies(each)]
    instead = f"write {draft.flag('transport')} {' or '.join(able)}" if able else INSTALL_SUITE
    draft.refuse(
        f"{_VARIABLE} asks for the proxy of {without_secrets(behind[0])}, and the transport {transport.name!r} uses none",
        f"{instead}, or unset {_VARIABLE}",
    )
