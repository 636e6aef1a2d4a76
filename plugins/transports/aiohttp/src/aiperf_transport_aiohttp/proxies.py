"""Which proxy the environment names for a URL."""

from __future__ import annotations

import urllib.request

from yarl import URL


def proxy_for(url: URL) -> URL | None:
    """By ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, in capitals or not; None is a direct connection."""
    proxies = urllib.request.getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    if not named or urllib.request.proxy_bypass(f"{url.host}:{url.port}"):
        return None
    return URL(named if "://" in named else f"http://{named}")
