"""Code of other plugins: loading it, and stopping its errors where they can be named."""

from __future__ import annotations

from aiperf.registry.imports import IMPORTS, ImportTimeoutError
from aiperf.registry.patience import calls, is_strange
from aiperf.registry.third_party import blamed, endpoint_of, failure, isolated, left_out, load, made, why

__all__ = [
    "IMPORTS", "ImportTimeoutError", "blamed", "calls", "endpoint_of", "failure", "is_strange", "isolated", "left_out", "load",
    "made", "why",
]  # fmt: skip
