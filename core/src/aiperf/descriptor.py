"""What is known of a plugin without importing it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

REDACTED = "<redacted>"
"""What stands in the place of a secret."""

API_VERSION = 1
"""Of the public surface that plugins import; a manifest's ``api`` range must include it."""

CATEGORIES: dict[str, str] = {
    "endpoints": "API dialects: bytes out, meaning back. Chosen by --endpoint-type.",
    "datasets": "Sources of conversations.",
    "exporters": "Readers of results: files, tables, uploads.",
    "metrics": "What a request, or a run, is worth.",
    "graders": "Accuracy graders. Chosen by --accuracy-grader.",
    "telemetry": "Sources of samples beside the load: GPUs, server metrics.",
    "tokenizers": "Text to tokens. Chosen by --tokenizer.",
    "schedules": "Scheduling modes: which arrival is due when.",
    "arrivals": "Distributions of the time between arrivals. Chosen by --arrival-pattern.",
    "ramps": "How a limit or rate grows.",
    "samplers": "Order in which data set entries are used.",
    "url_strategies": "Which base URL a session uses.",
    "transports": "Ways to move bytes. Chosen by --transport.",
    "engines": "Where shards run.",
    "uis": "Live displays. Chosen by --ui-type.",
    "plots": "Pictures of results. Drawn by aiperf plot.",
    "definitions": "What tools mean by latency and throughput. Shown by aiperf report --definitions.",
    "commands": "Subcommands of aiperf.",
    "hooks": "Free pluggy plugins: any hook of the run's life cycle.",
}
"""Every plugin category; the entry-point group is ``aiperf.<category>``."""


class OptionSpec(Struct, frozen=True, omit_defaults=True):
    """One option as a person types it; generated from a pydantic field, stored in the manifest.

    field: attribute name in the model.  flags: canonical first.  type: ``flag``, ``int``, ``float``, ``str``, ``path``,
    ``choice``.  arity: ``none`` (a flag), ``one``, ``many`` (repeatable, several values, commas), ``maybe`` (zero or
    more values).  default: as shown in help; None shows nothing.  negative: the flag that switches it off.  place: where
    it stands in a configuration file, below ``benchmark``; "" is below its plugin's name alone.
    """

    field: str
    flags: tuple[str, ...]
    help: str
    type: str = "str"
    arity: str = "one"
    metavar: str = ""
    default: str | None = None
    choices: tuple[str, ...] = ()
    group: str = ""
    negative: str | None = None
    secret: bool = False
    commas: bool = True
    hidden: bool = False
    place: str = ""


class Descriptor(Struct, frozen=True, omit_defaults=True):
    """One plugin.  *value* is ``module:object``; *broken* says why it can't be used, None if it can.

    api: range of the plugin API that its manifest asks for; "" where that couldn't be read.
    shadows: ``distribution version`` of every plugin of the same name that lost to this one.
    options_model: ``module:Class`` of its pydantic model.  contract: likewise, of the tests it shall pass.
    """

    category: str
    name: str
    value: str
    distribution: str
    version: str
    summary: str = ""
    aliases: tuple[str, ...] = ()
    priority: int = 0
    capabilities: dict[str, Any] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    options: tuple[OptionSpec, ...] = ()
    options_model: str | None = None
    contract: str | None = None
    api: str = ""
    first_party: bool = False
    shadows: tuple[str, ...] = ()
    broken: str | None = None


class PluginRef(Struct, frozen=True):
    """Enough of a descriptor to load a plugin in another process."""

    category: str
    name: str
    value: str
    distribution: str
    version: str

    def load(self) -> Any:
        """Import the object.  ImportError and AttributeError are the caller's to translate."""
        from importlib import import_module

        module, _, attribute = self.value.partition(":")
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        return found


def canonical(name: str) -> str:
    """Names compare without case, and ``-`` is ``_``."""
    return name.strip().lower().replace("-", "_")
