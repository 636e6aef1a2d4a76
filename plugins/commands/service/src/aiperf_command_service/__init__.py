"""``aiperf service``: one address that takes runs, shows them and keeps their files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from aiperf import Command, ConfigError, UsageError
from aiperf.sdk.environment import number

from aiperf_command_service.options import ServiceOptions
from aiperf_command_service.types import TYPES


class Service(Command[ServiceOptions]):
    """Takes runs until SIGTERM or Ctrl-C, or with FILE until that run has ended, with its exit code."""

    arguments = "[FILE]"

    def run(self, options: ServiceOptions, words: Sequence[str]) -> int:
        file = _file(options, words)
        from aiperf_pages.tokens import new_token, token_of_file

        from aiperf_command_service.book import Book
        from aiperf_command_service.intake import Limits
        from aiperf_command_service.keeper import size_of
        from aiperf_command_service.serving import Addresses, serve

        quota = None
        if options.disk_quota is not None and (quota := size_of(options.disk_quota)) is None:
            raise UsageError(
                f"--disk-quota {options.disk_quota}: it is no size", "write it as 20GB, 500MiB or a number of bytes"
            )
        data = None if options.data is None else options.data.resolve()
        if data is not None and not data.is_dir():
            raise ConfigError(f"--data {options.data}: there is no such folder", "make it, or name another one")
        missing = [name for name in options.allow_env if name not in os.environ]
        if missing:
            raise ConfigError(f"--allow-env {missing[0]}: the variable is not set", "set it, or leave it out")
        variables = {name: os.environ[name] for name in options.allow_env}
        token = new_token() if options.token_file is None else token_of_file(options.token_file, "--token-file")
        book = Book(options.directory)
        limits = Limits(options.queue, options.keep, quota, data, variables, tuple(options.allow_url))
        addresses = Addresses(options.host, options.port, *_probes(options))
        shown = options.token_file is None
        return asyncio.run(serve(book, limits, addresses, token, file, options.grace, shown=shown))


def _file(options: ServiceOptions, words: Sequence[str]) -> Path | None:
    """The operator's own run."""
    word = words[0] if words else None
    if word in TYPES:
        raise UsageError(f"aiperf service {word}: {TYPES[word]}", "aiperf service [FILE] is a service of whole runs")
    if len(words) > 1 or (word is not None and options.benchmark_run is not None):
        raise UsageError("aiperf service takes one file", "start a service for each, or POST them to one")
    file = options.benchmark_run if word is None else Path(word)
    if file is not None and not file.is_file():
        near = get_close_matches(str(file), TYPES, 1, 0.7)
        raise ConfigError(f"{file}: there is no such file", *(f"did you mean {each}? {TYPES[each]}" for each in near))
    return file


def _probes(options: ServiceOptions) -> tuple[str | None, int | None]:
    """Address and port of the probes, where they have their own."""
    host = options.health_host or os.environ.get("AIPERF_SERVICE_HEALTH_HOST") or None
    port = options.health_port
    if port is None and os.environ.get("AIPERF_SERVICE_HEALTH_PORT"):
        port = int(number("AIPERF_SERVICE_HEALTH_PORT", 0, 65_535, 0))
    if host is not None and port is None:
        raise UsageError(f"--health-host {host}: the probes have no port of their own", "give --health-port, too")
    return host, port


__all__ = ["Service"]
