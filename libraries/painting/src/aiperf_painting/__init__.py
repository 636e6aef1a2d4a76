"""Figures as pictures, with matplotlib: no browser, no screen."""

from aiperf_painting.pictures import picture
from aiperf_painting.styles import Size

__all__ = ["Size", "picture"]
