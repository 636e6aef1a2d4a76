"""The settings of a run, and the draft of its plan: problems with them, and the plugins that they select."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from aiperf import logs
from aiperf.errors import AiperfError, ConfigError, ConfigErrors
from aiperf.planning.kernel_options import KernelOptions
from aiperf.sdk.descriptor import Descriptor, PluginRef
from aiperf.sdk.options import Options
from aiperf.sdk.scenario import AskedSettings

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry

log = logging.getLogger(__name__)

_USUAL = {
    "models": "--model", "endpoint_path": "--endpoint", "artifact_dir": "--artifact-dir", "session_count": "--num-sessions",
}
"""Options that messages name by another flag than the canonical one."""


class ReadingInterrupted(Exception):  # noqa: N818  # the user's wish, not an error
    """A signal came while a pipe was read."""


class Settings(Struct, frozen=True):
    """Validated options.

    plugins: the options of installed plugins, by ``category:name``.
    typed: the flag as typed, by field (``request_rate``, or ``datasets:synthetic.isl`` for a plugin's).
    command: the command line as typed, secrets redacted.  configuration: the plugin that read --config.
    asked: what was asked for before a scenario filled anything in, None without one.  filled: what it filled in, as typed.
    """

    kernel: KernelOptions
    plugins: dict[str, Options]
    typed: dict[str, str]
    command: str
    configuration: PluginRef | None = None
    asked: AskedSettings | None = None
    filled: tuple[str, ...] = ()

    @property
    def log_level(self) -> int:
        kernel = self.kernel
        return logs.level_of(kernel.log_level, verbose=kernel.verbose, extra_verbose=kernel.extra_verbose)

    def flag(self, field: str, canonical: str) -> str:
        """The flag to name in a message: as typed, else *canonical*."""
        return self.typed.get(field, canonical)


class Draft:
    """Collects errors and warnings, each naming the flag as the person typed it, and resolves names of plugins.

    Unresolvable names are reported against the flag that requested them.
    *used*: plugins chosen by name.  *missing*: categories with an unresolvable name.
    """

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self.settings, self.registry = settings, registry
        self.kernel = settings.kernel
        self.errors: list[AiperfError] = []
        self._notes: list[tuple[int, str]] = []
        self.used: list[PluginRef] = []
        self.missing: set[str] = set()

    def refuse(self, message: str, *hints: str) -> None:
        self.errors.append(ConfigError(message, *hints))

    def warn(self, message: str) -> None:
        """Log a warning if the run starts."""
        self._notes.append((logging.WARNING, message))

    def hint(self, message: str) -> None:
        """Log a remark if the run starts."""
        self._notes.append((logging.INFO, message))

    @contextmanager
    def collected(self, flag: str = "") -> Iterator[None]:
        """Collect the errors raised inside, with *flag* before them."""
        try:
            yield
        except ConfigErrors as errors:
            self.errors += errors.errors
        except AiperfError as error:
            if flag:
                error.message = f"{flag}: {error.message}"
            self.errors.append(error)

    def refuse_if_any(self) -> None:
        """Raise the errors, if there are any.

        Raises:
            ConfigErrors: All errors, without repetitions.
        """
        if self.errors:
            raise ConfigErrors(list({tuple(error.lines()): error for error in self.errors}.values()))

    def settle(self) -> None:
        """Raise the errors; without errors log the warnings and hints."""
        self.refuse_if_any()
        for level, message in self._notes:
            log.log(level, "%s", message)

    # Kernel options

    def given(self, field: str) -> bool:
        """Whether the person gave it, with a value that asks for something."""
        value = getattr(self.kernel, field)
        return value is not None and value is not False

    def typed(self, field: str) -> bool:
        """Whether the person gave it, whatever the value: its default stands for something too."""
        return field in self.kernel.fields_set

    def flag(self, field: str) -> str:
        """The option's flag as typed, else the one that people know it by."""
        return self.settings.flag(field, _USUAL.get(field, self.kernel.option_faces[field].spec.flags[0]))

    def flags(self, fields: Sequence[str]) -> str:
        """``--a, --b or --c``."""
        flags = [self.flag(field) for field in fields]
        return " or ".join((", ".join(flags[:-1]), flags[-1])) if len(flags) > 1 else flags[0]

    def refuse_both(self, one: str, other: str, why: str, hint: str) -> None:
        """Refuse two settings together."""
        self.refuse(f"{one} and {other} exclude each other: {why}", hint)

    def refuse_alone(self, flag: str, wanted: str, why: str, *, drop: str | None = None) -> None:
        """Refuse a setting without what it depends on; *drop*: how the hint names it, if not as *flag*."""
        self.refuse(f"{flag} needs {wanted}: {why}", f"add {wanted}, or drop {drop or flag}")

    def exclusive(self, first: str, second: str, why: str) -> None:
        """Refuse two options together."""
        if self.given(first) and self.given(second):
            one, other = self.flag(first), self.flag(second)
            self.refuse_both(one, other, why, f"keep {one} and drop {other}, or the other way round")

    def needs(self, field: str, needed: Sequence[str], why: str) -> None:
        """Refuse an option without any of those that it depends on."""
        if self.given(field) and not any(map(self.given, needed)):
            self.refuse_alone(self.flag(field), self.flags(needed), why)

    def at_most(self, field: str, limit: str, relation: str, why: str = "") -> None:
        """Refuse a value of *field* above the value of *limit*; *relation* is the verb between the two."""
        value, most = getattr(self.kernel, field), getattr(self.kernel, limit)
        if value is not None and most is not None and value > most:
            flag, other = self.flag(field), self.flag(limit)
            self.refuse(f"{flag} {value} {relation} {other} {most}{why}", f"lower {flag}, or raise {other}")

    # Plugins

    def chosen(self, category: str, name: str, field: str | None = None) -> PluginRef | None:
        """The plugin of that name; None where there is none, which is reported against the option *field*."""
        with self.collected("" if field is None else self.flag(field)):
            ref = self.registry.ref(category, name)
            if ref not in self.used:
                self.used.append(ref)
            return ref
        self.missing.add(category)
        return None

    def everything(self, category: str, *, studies: bool = False) -> tuple[PluginRef, ...]:
        """Every usable plugin of a category, without those whose required option is not given.

        *studies*: only those with the capability ``studies``, which a run by itself leaves out.

        With the capability ``needs_option: FIELD`` it is left out where that option, or that property of its options, is none,
        false or, but for a live view, 0; with ``needs_plugins: CATEGORY`` where the run has no plugins of that category.
        Hooks are registered first: a hook that can't be registered is out of use before another process loads it.
        """
        if category == "hooks" and self.registry.all(category):
            self.registry.hooks()
        plugins = [
            plugin for plugin in self.registry.all(category)
            if not plugin.capabilities.get("guide") and bool(plugin.capabilities.get("studies")) == studies
        ]  # fmt: skip
        lacking = [plugin.key for plugin in plugins if self._lacks(plugin)]
        for key in lacking:
            log.debug("the plugin %s is left out: what it needs was not given", key)
        return tuple(plugin.ref for plugin in plugins if plugin.key not in lacking)

    def _lacks(self, plugin: Descriptor) -> bool:
        """Whether something that the plugin needs was not given."""
        options, can = self.settings.plugins.get(plugin.key), plugin.capabilities
        option, category = can.get("needs_option"), can.get("needs_plugins")
        if options is None and (plugin.options_model or option):
            return True
        given = getattr(options, str(option), None) if option else None  # of a third party it may be a mistake
        there = bool(given)
        if plugin.category == "live":
            there = given is not None and given is not False and given != ""  # 0 is a port
            there = there or bool(os.environ.get(str(can.get("variable"))))
        return bool((option and not there) or (category and not self.everything(category)))
