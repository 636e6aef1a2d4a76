"""``--dashboard``: the page, whose figures are those of the command."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import Callable, Sequence

from aiperf import Figure, Plot, PlotRun
from aiperf_pages.guard import is_loopback
from aiperf_pages.ports import address_of, listen
from aiperf_pages.tokens import new_token, token_of_environment
from aiperf_plot_site.catalog import RunCatalog
from aiperf_plot_site.drawer import Change, Drawn, OfferedPlot, RunCard
from aiperf_plot_site.serving import serve
from aiperf_plotting.caption import caption_of, facts
from aiperf_plotting.documents import as_documents
from aiperf_plotting.drawing import Drawing, checked_summary
from aiperf_plotting.loads import load_label, load_unit, loads

from aiperf_command_plot.configured import chosen, parsed
from aiperf_command_plot.saving import saved

Wanted = Callable[[Sequence[str]], list[tuple[str, str, Plot]]]


class CommandDrawer:
    """Draws for the page what the command draws; *wanted* gives name, package and plot, of all with no name."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def offered(self) -> list[OfferedPlot]:
        return [OfferedPlot(name, plot.title, plot.runs, plot.most_runs) for name, _, plot in self._wanted(())]

    def card(self, run: PlotRun) -> RunCard:
        checked_summary(run)
        known, unit = facts(run), load_unit([run])
        load = None if unit is None else loads(run)[unit]
        label = "" if unit is None else load_label(run, unit)
        return RunCard(
            known.models, load, unit or "", label, known.requests, known.failed, known.cut_off, known.verdict, known.reasons
        )  # fmt: skip

    def draw(self, runs: Sequence[PlotRun], names: Sequence[str], file: bytes, change: Change) -> Drawn:
        drawing, figures = self._figures(runs, names, file, change)
        caption = caption_of(drawing.runs) if drawing.runs else []
        return Drawn(as_documents(figures, drawing.runs), drawing.failures, caption)

    def files(self, runs: Sequence[PlotRun], file: bytes, change: Change) -> dict[str, bytes]:
        drawing, figures = self._figures(runs, (), file, change)
        caption = caption_of(drawing.runs) if drawing.runs else []
        return saved(figures, caption, drawing.failures)

    def _figures(
        self, runs: Sequence[PlotRun], names: Sequence[str], file: bytes, change: Change
    ) -> tuple[Drawing, list[tuple[str, Figure]]]:  # fmt: skip
        columns = dict.fromkeys(column for _, _, plot in self._wanted(()) for column in plot.columns)
        for run in runs:  # the columns of all pictures are read at once
            run.expect(columns)
        drawing = Drawing(runs, asked=True, change=change)
        if names:
            plots = self._wanted(names)
        else:
            declared = parsed(file, "")
            declared.classify(runs)
            plots = chosen(declared, len(runs), (), self._wanted)
            drawing.failures += declared.idle
        return drawing, drawing.figures(plots)


def show(runs: Sequence[PlotRun], wanted: Wanted, host: str, port: int) -> int:
    """Serve the page of *runs* until Ctrl-C, and open a browser where there is a screen.

    Raises:
        AiperfError: The port is taken, or the host is none of this machine's.
    """
    drawer = CommandDrawer(wanted)
    catalog = RunCatalog(runs, drawer.card)
    token = token_of_environment() or new_token()
    listening = listen(host, port)
    url = f"{address_of(host, listening)}/"
    where = url if is_loopback(host) else f"{url}#{token}"

    def ready() -> None:
        print(f"{len(runs)} run{'' if len(runs) == 1 else 's'} on {where}", flush=True)
        if sys.stdout.isatty() and (sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()):
            webbrowser.open(where)

    asyncio.run(serve(catalog, drawer, listening, host, token, ready))
    print("stopped", file=sys.stderr)
    return 0


__all__ = ["CommandDrawer", "show"]
