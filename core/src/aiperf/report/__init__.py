"""From columns to a summary."""

from aiperf.moved import absent

__getattr__ = absent(__name__)
