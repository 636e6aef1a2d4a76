"""``aiperf plot``: pictures of one run, or of several beside each other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from aiperf import AiperfError, Command, Figure, UsageError
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.plot import checked
from aiperf_plotting.caption import caption_of
from aiperf_plotting.drawing import Drawing, counted
from aiperf_plotting.installed import wanted_plots
from aiperf_results import left_out, open_cells

from aiperf_command_plot.files import painter, sender, size_of, write_pictures
from aiperf_command_plot.options import PlotOptions

_DEFAULT = "artifacts"


class PlotCommand(Command[PlotOptions]):
    """Draws every installed plot whose numbers the runs have."""

    arguments = "[PATH...]"

    def run(self, options: PlotOptions, words: Sequence[str]) -> int:
        """0 where all that was asked for is drawn, 1 where a run or a plot failed, or there is no picture."""
        paths = [*map(Path, words), *options.paths] or [Path(_DEFAULT)]
        size_of(options.size)
        send = _sending(options, paths) if options.mlflow_upload else None
        plugin_options = self.plugin_options or PluginOptions(self.registry, {}, {})
        broken: list[str] = []
        if options.dashboard:
            from aiperf_command_plot.dashboard import show  # aiohttp: not for pictures

            wanted_plots(plugin_options, (), broken)
            runs = open_cells(paths)
            for sentence in broken + left_out(paths):
                print(f"error: {sentence}", file=sys.stderr)
            wanted = partial(wanted_plots, plugin_options, broken=[], option="the page")
            return show(runs, wanted, options.host, options.port)
        if options.config is None:
            plots, runs = wanted_plots(plugin_options, options.only, broken, "--only"), open_cells(paths)
        else:
            from aiperf_command_plot.configured import chosen, read

            file, runs = read(options.config), open_cells(paths)
            for sentence in file.idle:
                print(f"warning: {sentence}", file=sys.stderr)
            file.classify(runs)
            installed = partial(wanted_plots, plugin_options, broken=broken)
            plots = chosen(file, len(runs), options.only, installed)
        asked = bool(options.only) or options.config is not None
        drawing = Drawing(runs, asked=asked, verbose=options.verbose)
        drawing.failures += broken + left_out(paths)
        figures = drawing.figures(plots)
        if options.as_json:
            from aiperf_plotting.documents import as_json

            print(as_json(figures, drawing.runs))
        elif figures:
            drawn = write_pictures(figures, caption_of(drawing.runs), options, options.output or paths[0] / "plots")
            drawing.failures += [] if send is None else send(drawn)
        for sentence in drawing.failures:
            print(f"error: {sentence}", file=sys.stderr)
        if not figures and not drawing.failures:
            hint = "aiperf plugins plots says what each plot shows, and needs"
            raise AiperfError(f"there is nothing to draw of {counted(drawing.runs)}", hint)
        return 1 if drawing.failures else 0

    def paint(self, figure: Figure, path: Path, caption: Sequence[str] = ()) -> Path:
        """See :class:`aiperf.sdk.plot.Painter`."""
        painter().picture(checked(figure), path, theme="light", caption=caption)
        return path


def _sending(options: PlotOptions, paths: Sequence[Path]) -> Callable[[Sequence[Path]], list[str]]:
    """Sends pictures to the MLflow run of the results, and gives a sentence on what has not arrived.

    Raises:
        UsageError: Several directories are given, or the MLflow run is not known.
        AiperfError: What sends them is not installed.
    """
    if len(paths) > 1:
        hint = "give one directory, and name the others in further lines"
        raise UsageError(f"--mlflow-upload takes one directory, and {len(paths)} are given", hint)
    module = sender()
    uri, run = module.place_of(paths[0], options.mlflow_tracking_uri, options.mlflow_run_id)

    def send(pictures: Sequence[Path]) -> list[str]:
        sentences: list[str] = module.upload_pictures(pictures, uri, run)
        return sentences

    return send


__all__ = ["PlotCommand"]
