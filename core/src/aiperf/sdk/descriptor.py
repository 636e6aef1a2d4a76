"""A plugin's description, known without importing the plugin."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

API_VERSION = 1
"""Of the public surface that plugins import; a manifest's ``api`` range must include it."""


class OptionSpec(Struct, frozen=True, omit_defaults=True):
    """One option of the command line; generated from a field of an options class, stored in the manifest.

    field: attribute name in the class.  flags: canonical first.  type: ``flag``, ``int``, ``float``, ``str``, ``path``,
    ``choice``.  arity: ``none`` (a flag), ``one``, ``many`` (repeatable, several values, commas), ``maybe`` (zero or
    more values).  default: as shown in help; None shows nothing.  negative: the flag that switches it off.  place: where
    it stands in a configuration file, below ``benchmark``; "" is below its plugin's name alone.  cells: a comma separates
    values of which each has a run of its own (``--concurrency 1,2,4``).
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
    cells: bool = False


class PluginDocs(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a manifest says for the generated section of its package's README.

    example: words of a command line, behind ``aiperf profile``.  servers: real servers that it was tried on, with the version
    and what was seen.  notes: further sentences.  variables: of the environment that it reads, by name: default and meaning.
    """

    example: str = ""
    servers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    variables: dict[str, tuple[str, str]] = {}


class PluginRef(Struct, frozen=True):
    """Enough of a plugin to load it in another process.  *value* is ``module:object``."""

    category: str
    name: str
    value: str
    distribution: str
    version: str

    def __str__(self) -> str:
        """The plugin in a message: ``the plugin endpoints:echo of acme-endpoint-echo 0.1.0``."""
        return f"the plugin {self.key} of {self.package}".removesuffix(" of ")

    @property
    def key(self) -> str:
        """``category:name``: the key of the plugin's options."""
        return f"{self.category}:{self.name}"

    @property
    def package(self) -> str:
        """``distribution version``."""
        return f"{self.distribution} {self.version}".rstrip()


class Descriptor(PluginRef, frozen=True, omit_defaults=True):
    """One plugin, known from its manifest without importing it.  *broken* says why it can't be used, None if it can.

    api: range of the plugin API that its manifest asks for; "" where that couldn't be read.
    shadows: ``distribution version`` of every plugin of the same name that lost to this one.
    options_model: ``module:Class`` of its options.  contract: likewise, of the tests that it must pass.
    lost_flags: flags of its class, and places in configuration files, that belong to others, each with the reason; *options*
    lacks them.
    """

    summary: str = ""
    aliases: tuple[str, ...] = ()
    priority: int = 0
    capabilities: dict[str, Any] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    options: tuple[OptionSpec, ...] = ()
    options_model: str | None = None
    contract: str | None = None
    docs: PluginDocs = PluginDocs()
    api: str = ""
    first_party: bool = False
    shadows: tuple[str, ...] = ()
    lost_flags: dict[str, str] = field(default_factory=dict)
    broken: str | None = None

    @property
    def ref(self) -> PluginRef:
        """The part that other processes need."""
        return PluginRef(self.category, self.name, self.value, self.distribution, self.version)


def canonical(name: str) -> str:
    """Names compare without case, and ``-`` is ``_``."""
    return name.strip().lower().replace("-", "_")


def normal(distribution: str) -> str:
    """The normal form of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution.strip()).lower()


__all__ = ["Descriptor", "OptionSpec", "PluginDocs", "PluginRef", "canonical"]
