"""``aiperf plot``: pictures of one run, or of several beside each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aiperf import AiperfError, Command, Figure, Plot, PlotRun, UsageError
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.plot import checked
from aiperf.sdk.registry import canonical
from aiperf_results import open_runs

from aiperf_command_plot.options import PlotOptions

_DEFAULT = "artifacts"


class PlotCommand(Command[PlotOptions]):
    """Draws every installed plot whose numbers the runs have."""

    arguments = "[PATH...]"

    def run(self, options: PlotOptions, words: Sequence[str]) -> int:
        """0 where there is a picture, 1 where a plot failed or there is none."""
        paths = [*map(Path, words), *options.paths] or [Path(_DEFAULT)]
        plugin_options = self.plugin_options or PluginOptions(self.registry, {}, {})
        names = _wanted(plugin_options, options.only)
        runs = open_runs(paths)
        figures, failures = _figures(plugin_options, names, runs, asked=bool(options.only))
        if options.as_json:
            from aiperf_command_plot.numbers import as_json

            print(as_json(figures, runs))
        elif figures:
            from aiperf_command_plot.caption import caption_of
            from aiperf_command_plot.pictures import picture

            caption = caption_of(runs)
            folder = options.output or paths[0] / "plots"
            for name, figure in figures:
                print(picture(figure, folder / f"{name}.{options.format}", theme=options.theme, caption=caption))
        for sentence in failures:
            print(f"error: {sentence}", file=sys.stderr)
        if not figures and not failures:
            raise AiperfError(
                f"there is nothing to draw of {_counted(runs)}", "aiperf plugins plots says what each plot shows, and needs"
            )
        return 1 if failures else 0

    def paint(self, figure: Figure, path: Path, caption: Sequence[str] = ()) -> Path:
        """See :class:`aiperf.sdk.plot.Painter`."""
        from aiperf_command_plot.pictures import picture

        return picture(checked(figure), path, theme="light", caption=caption)


def _wanted(plugin_options: PluginOptions, only: Sequence[str]) -> list[str]:
    """Names of the plots to draw.

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
        return list(dict.fromkeys(registry.descriptor("plots", canonical(name)).name for name in only)) or installed
    except AiperfError as error:
        error.message = f"--only: {error.message}"
        raise


def _figures(
    plugin_options: PluginOptions, names: Sequence[str], runs: Sequence[PlotRun], *, asked: bool
) -> tuple[list[tuple[str, Figure]], list[str]]:
    """The figures of the plots, and a sentence on each plot that failed; *asked* (by name): an empty one, too."""
    figures: list[tuple[str, Figure]] = []
    failures: list[str] = []
    for name in names:
        descriptor = plugin_options.registry.descriptor("plots", name)
        try:
            plot: Plot = plugin_options.registry.load("plots", name)(plugin_options.options.get(f"plots:{name}"))
            figure = None if len(runs) < plot.runs else plot.draw(runs)
            if figure is not None:
                figures.append((name, checked(figure)))
        except AiperfError as error:
            failures.append(f"the plot {name}: {error.message}")
            continue
        except Exception as error:  # noqa: BLE001  # strangers' code
            failures.append(f"the plot {name} of {descriptor.package} failed: {type(error).__name__}: {error}")
            continue
        if figure is None and asked:
            failures.append(f"the plot {name} {_lacks(plot, runs)}")
    return figures, failures


def _lacks(plot: Plot, runs: Sequence[PlotRun]) -> str:
    if len(runs) < plot.runs:
        return f"needs {plot.runs} runs; {_counted(runs)} given: name further directories"
    return f"finds nothing to show in {_counted(runs)}: the numbers it reads are not there"


def _counted(runs: Sequence[PlotRun]) -> str:
    return "one run" if len(runs) == 1 else f"{len(runs)} runs"


__all__ = ["PlotCommand"]
