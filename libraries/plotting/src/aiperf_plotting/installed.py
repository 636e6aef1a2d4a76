"""The installed plots that are to be drawn."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import AiperfError, Plot, PluginError, UsageError
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.registry import canonical


def wanted_plots(
    plugin_options: PluginOptions, only: Sequence[str], broken: list[str], option: str = ""
) -> list[tuple[str, str, Plot]]:  # fmt: skip
    """Name, package and plot of what is to be drawn.  option: where *only* comes from, for messages.

    broken: gets a sentence for each plot that nobody asked for by name and that can't be imported.

    Raises:
        UsageError: None is installed.
        PluginError: One of *only* isn't, or is broken; with what is near.
    """
    registry = plugin_options.registry
    installed = [plugin.name for plugin in registry.all("plots")]
    if not installed and not only:
        hints = ("pip install aiperf-plot-basics", "or write one: aiperf plugins new plot my-plot")
        raise UsageError("no plot is installed", *hints)
    try:
        names = list(dict.fromkeys(registry.descriptor("plots", canonical(name)).name for name in only)) or installed
    except AiperfError as error:
        error.message = f"{option}: {error.message}" if option else error.message
        raise
    made: list[tuple[str, str, Plot]] = []
    for name in names:
        try:
            plot = registry.load("plots", name)(plugin_options.options.get(f"plots:{name}"))
        except PluginError as error:
            if only:
                raise
            broken.append(error.message)
        else:
            made.append((name, registry.descriptor("plots", name).package, plot))
    return made


__all__ = ["wanted_plots"]
