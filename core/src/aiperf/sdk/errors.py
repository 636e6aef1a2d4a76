"""Errors that a plugin raises or catches; each is printed as a sentence with its hints, never as a traceback."""

from aiperf.errors import (  # isort: skip
    ENDPOINT_ERROR, AiperfError, BadDataset, BadJournal, BadResponse, BadTokenizer, ConfigError, ConfigErrors, PluginError,
    UsageError,
)  # fmt: skip

__all__ = [
    "ENDPOINT_ERROR", "AiperfError", "BadDataset", "BadJournal", "BadResponse", "BadTokenizer", "ConfigError", "ConfigErrors",
    "PluginError", "UsageError",
]  # fmt: skip
