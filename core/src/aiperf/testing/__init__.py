"""The conformance suite: a plugin's test file names its class, its transcript, and is done.

Needs pytest, which the kernel itself doesn't: install ``aiperf-core`` beside it.
"""

from aiperf.testing.transports import TransportContract

__all__ = ["TransportContract"]
