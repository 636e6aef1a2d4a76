"""The settings of a run: validated options of the kernel and of the plugins that it may use."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from aiperf import environment
from aiperf.cli.commandline import FIRST, Scan
from aiperf.errors import AiperfError, ConfigErrors
from aiperf.sdk.categories import CATEGORIES, chosen_by
from aiperf.sdk.configuration import OptionValue
from aiperf.sdk.descriptor import Descriptor

if TYPE_CHECKING:
    from aiperf.planning.problems import Settings
    from aiperf.registry.registry import Registry

FIRST_FIELDS = frozenset(spec.field for spec in FIRST)
"""Fields that no options class has."""


OF_STUDIES = frozenset((
    "num_profile_runs", "run_cooldown_s", "confidence_level", "warmup_first_only", "consistent_seed", "vary_seed", "sweep_type",
    "variants", "sweep_order", "sweep_cooldown_s", "sweep_same_seed", "no_sweep_table", "max_cells", "objectives", "no_resume",
    "isolate_runs", "sla_filters",
))  # fmt: skip
"""Fields of :class:`aiperf.planning.study_options.StudyOptions`, which this module doesn't import."""


def is_study(scan: Scan) -> bool:
    """Whether the line, with its file, asks for more than one run."""
    return scan.sweep is not None or any(map(asks_for_several, scan.given))


def asks_for_several(value: OptionValue) -> bool:
    """Whether the option with this value makes more than one run."""
    spec, text = value.option.spec, "".join(value.values[:1])
    return (spec.cells and "," in text) or spec.field == "variants" or (spec.field == "num_profile_runs" and text != "1")


def single(error: AiperfError) -> list[AiperfError]:
    return error.errors if isinstance(error, ConfigErrors) else [error]


def raise_all(errors: Iterable[AiperfError]) -> None:
    """Raise a single error as itself, several as one report.  An option that two packages share is wrong once."""
    distinct = list({tuple(error.lines()): error for error in errors}.values())
    if distinct:
        raise distinct[0] if len(distinct) == 1 else ConfigErrors(distinct)


def validated(
    registry: Registry, plugins: Iterable[Descriptor], scan: Scan, errors: list[AiperfError], *, own: str = ""
) -> dict[str, Any]:
    """The options of these plugins, by ``category:name``; a plugin with a fault in them is left out.

    All invalid values join *errors*, each with the flag as typed.  A plugin without any option on the line has no error here:
    the option that it requires is reported when the plugin is selected.  *own*: the plugin of the command itself.
    """
    from aiperf.registry.option_specs import conflicts, validate

    values = scan.values()
    validated: dict[str, Any] = {}
    for plugin in plugins:
        key = plugin.key
        try:
            options_class = registry.load_options_model(plugin)
        except AiperfError as error:
            errors += [error] if key in values or key == own else []
            registry.mark_broken(plugin, error.message)
            continue
        if options_class is None:
            continue
        options, wrong = validate(options_class, plugin.options, values.get(key, {}), scan.typed_of(key))
        errors += wrong if key in values or key == own else []
        if options is not None:
            validated[key] = options
            errors += conflicts(key, options, scan.typed_of(key)) if own and key in values else []
    return validated


def run_plugins(registry: Registry) -> list[Descriptor]:
    """The plugins that a run may use."""
    return [plugin for category in registry.categories() if category != "commands" for plugin in registry.all(category)]


def _takes_part(plugin: Descriptor) -> bool:
    """Whether the plugin is in a run where none of its options is given.

    It needs none, or a flag that is on anyway, or a variable of the environment stands for it; or its options decide, with the
    capability ``by_default``.
    """
    field = plugin.capabilities.get("needs_option")
    if plugin.capabilities.get("by_default"):
        return True
    if os.environ.get(str(plugin.capabilities.get("variable", "")), "").strip():
        return True
    return field is None or any(spec.field == field and spec.default == "on" for spec in plugin.options)


def _unknown_names(registry: Registry, scan: Scan) -> Iterable[AiperfError]:
    """The errors of options that name a plugin which isn't installed."""
    for value in scan.given:
        category = chosen_by(value.option.spec.flags)
        for name in value.values if category is not None else ():
            try:
                registry.descriptor(category or "", name)
            except AiperfError as error:
                error.message = f"{value.typed}: {error.message}"
                yield error


def profile_settings(registry: Registry, scan: Scan) -> Settings:
    """The validated settings of a run by itself.

    Raises:
        UsageError, ConfigErrors: All invalid values, and all options of several runs, each with the flag as typed.
    """
    if any(value.option.spec.field in OF_STUDIES or owned_by_planners(value) for value in scan.given):
        from aiperf.study.checks import of_one_run

        errors = of_one_run(scan.given)
        try:
            settings = run_settings(registry, scan)
        except AiperfError as error:
            errors += single(error)
        raise_all(errors)
        return settings
    return run_settings(registry, scan)


def owned_by_planners(value: OptionValue) -> bool:
    return any(target.owner.startswith("planners:") for target in value.option.targets)


def run_settings(registry: Registry, scan: Scan, *, studies: bool = False, lists: Sequence[str] = ()) -> Settings:
    """The validated settings of a run, which may be one of several.  *studies*: with the options of plugins for studies alone.

    *lists*: options, as typed, of whose values each has a run of its own.

    Raises:
        UsageError, ConfigErrors: All invalid values, each with the flag as typed.
    """
    from aiperf.cli.scenarios import filled
    from aiperf.planning.kernel_options import KernelOptions
    from aiperf.planning.problems import Settings
    from aiperf.registry.option_specs import validate

    of_plugins = run_plugins(registry)
    scan, asked, made = filled(registry, scan, of_plugins, lists)
    own = {field: text for field, text in scan.values().get("", {}).items() if field not in FIRST_FIELDS}
    kernel, errors = validate(KernelOptions, registry.kernel_options, own, scan.typed_of(""))
    # Options of the others are made when the plan selects them: importing them all is what packages would cost a start.
    every, given = {name for name, category in CATEGORIES.items() if category.every}, scan.values()
    needed = [
        each for each in of_plugins
        if each.key in given
        or (each.category in every and _takes_part(each) and (studies or not each.capabilities.get("studies")))
    ]  # fmt: skip
    plugins = validated(registry, needed, scan, errors)
    if errors or scan.errors:  # else each name is looked up where its plugin is chosen, and the environment with the plan
        errors += [*_unknown_names(registry, scan), *environment.problems()]
    raise_all(errors)
    assert kernel is not None  # its errors are raised above
    return Settings(kernel, plugins, scan.typed(), shown_command(scan), scan.configuration, asked, made)


def shown_command(scan: Scan) -> str:
    """The command as typed, secrets redacted."""
    return shlex.join(["aiperf", *scan.shown])
