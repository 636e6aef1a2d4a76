"""``aiperf config``: configuration files; its words do the work."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import Command, UsageError

from aiperf_command_config.options import ConfigOptions

_WORDS = ("init", "validate", "expand", "schema")


class Config(Command[ConfigOptions]):
    """Names its words, and what does the work of genai-perf's command of this name."""

    def run(self, options: ConfigOptions, words: Sequence[str]) -> int:
        if options.file is not None:
            raise UsageError("aiperf config runs no file", f"aiperf profile --config {options.file} does")
        raise UsageError(f"aiperf config needs a word: {', '.join(_WORDS)}", "see aiperf config --help")


__all__ = ["Config"]
