"""What the scenario of a command line fills in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from aiperf.cli.commandline import FIRST, Scan, options_of
from aiperf.errors import PluginError
from aiperf.redaction import REDACTED
from aiperf.registry.guides import INSTALL_SUITE
from aiperf.sdk.configuration import Option, OptionValue
from aiperf.sdk.descriptor import Descriptor
from aiperf.sdk.model import names
from aiperf.sdk.scenario import AskedOption, AskedSettings, BenchmarkScenario, Filling

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry

FIELD = "scenario"


def name_of(scan: Scan) -> OptionValue | None:
    """The option that names the scenario; None where it isn't given."""
    return next((value for value in scan.given if value.option.spec.field == FIELD and not value.option.targets[0].owner), None)


def filled(
    registry: Registry, scan: Scan, plugins: Sequence[Descriptor], lists: Sequence[str] = ()
) -> tuple[Scan, AskedSettings | None, tuple[str, ...]]:
    """The scan with what its scenario fills in, what was asked before, and each option that was filled in, with its value.

    As it is without a scenario.  A name that no plugin has is left for whoever chooses plugins.
    *plugins*: whose options there are.  *lists*: options, as typed, with several cells.

    Raises:
        PluginError: The scenario fails, or fills in options that no installed package has.
    """
    chosen = name_of(scan)
    if chosen is None:
        return scan, None, ()
    asked = AskedSettings({flag: _asked(value) for value in scan.given for flag in value.option.spec.flags}, tuple(lists))
    plugin = registry.find("scenarios", chosen.values[0]) if chosen.values else None
    if plugin is None or plugin.broken:
        return scan, asked, ()
    from aiperf.registry.third_party import blamed, load

    with blamed(plugin, "failed"):
        rules: type[BenchmarkScenario[object]] = load(plugin)
        fillings = dict(rules.fill(asked))
    options = options_of((*registry.kernel_options, *FIRST), plugins)
    index = {flag: option for option in options for flag in option.spec.flags}
    if unknown := sorted(fillings.keys() - index.keys()):
        lacking = f"{chosen.typed} {chosen.values[0]} fills in {names(unknown)}, which no installed package has"
        raise PluginError(lacking, INSTALL_SUITE)
    new = list(_new(fillings, index, scan, f"filled in by {chosen.typed}"))
    replaced = {value.option.spec for value in new} | {index[flag].spec for flag, text in fillings.items() if text is None}
    shown = tuple(_shown(flag, text) for flag, text in fillings.items() if any(flag in v.option.spec.flags for v in new))
    given = [value for value in scan.given if value.option.spec not in replaced]
    return replace(scan, given=[*given, *new]), asked, shown


def _asked(value: OptionValue) -> AskedOption:
    texts = tuple(value.values)
    return AskedOption(value.typed, (REDACTED,) * len(texts) if value.option.spec.secret else texts, value.on)


def _new(fillings: Mapping[str, Filling], index: Mapping[str, Option], scan: Scan, why: str) -> Iterator[OptionValue]:
    """The values of options that were not given, and of options with several values those with what is added."""
    given = {value.option.spec: value for value in scan.given}
    for flag, text in fillings.items():
        option = index[flag]
        before = given.get(option.spec)
        if text is None or (before is not None and isinstance(text, str | bool)):
            continue
        on = text if isinstance(text, bool) else None
        values = [] if isinstance(text, bool) else [text] if isinstance(text, str) else list(text)
        if before is not None:
            yield OptionValue(option, before.typed, [*before.values, *values])
        else:
            yield OptionValue(option, f"{flag} ({why})", values, on)


def _shown(flag: str, text: Filling) -> str:
    """The option as one would type it."""
    if isinstance(text, bool) or text is None:
        return flag
    return f"{flag} {text if isinstance(text, str) else ' '.join(text)}"
