"""What is installed, hooks at run time, and the options of plugins."""

from aiperf.moved import absent

__getattr__ = absent(__name__)
