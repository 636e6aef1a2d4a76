"""The parent process of a run."""

from aiperf.moved import absent

__getattr__ = absent(__name__)
