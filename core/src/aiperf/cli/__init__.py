"""The command line: words in, an exit code out."""

from aiperf.moved import absent

__getattr__ = absent(__name__)
