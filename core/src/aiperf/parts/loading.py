"""Code of other plugins: loading it, and stopping its errors where they can be named."""

from __future__ import annotations

from aiperf.registry.third_party import blamed, failure, isolated, left_out, load, made, why

__all__ = ["blamed", "failure", "isolated", "left_out", "load", "made", "why"]
