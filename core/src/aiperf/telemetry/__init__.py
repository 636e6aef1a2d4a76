"""Samples telemetry sources beside the run."""

from aiperf.moved import absent

__getattr__ = absent(__name__)
