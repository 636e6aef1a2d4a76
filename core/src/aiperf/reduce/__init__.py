"""From the journal to columns."""

from aiperf.moved import absent

__getattr__ = absent(__name__)
