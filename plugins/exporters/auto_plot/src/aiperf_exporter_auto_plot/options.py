"""Options of the pictures behind a run."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

from aiperf import AiperfError, ConfigError, Options, option
from aiperf.sdk.options import After

from aiperf_exporter_auto_plot.job import limit_s

_GROUP = "Output"
_PAINTING = "aiperf_painting"


def _declared(text: str) -> str:
    from aiperf_command_plot.configured import parsed  # PyYAML and numpy: not in a run without the option

    try:
        parsed(text.encode(), "")
    except AiperfError as error:
        raise ValueError("; ".join((error.message, *error.hints))) from error
    return text


class AutoPlotOptions(Options):
    auto_plot: bool = option("--auto-plot", default=False, negative="--no-auto-plot", group=_GROUP, place="artifacts.auto_plot",
        help="Draw the pictures of the run, or of all runs, behind the last file (extra plots).")
    plot_required: bool = option("--plot-required", default=False, group=_GROUP, place="artifacts.plot_required",
        help="A picture that can't be drawn is an error, and no warning.")
    plot_config: Annotated[str, After(_declared)] | None = option("--plot-config", metavar="YAML", group=_GROUP, place="plot",
        help="The pictures to draw, as aiperf plot --config has them: the text itself.")


class StudyPlotOptions(AutoPlotOptions):
    """The options of the pictures of all runs of a study."""


class RunPlotOptions(AutoPlotOptions):
    """The options of the pictures of a run; they speak for both plugins."""

    def problems(self, typed: dict[str, str]) -> list[str]:
        """A setting of pictures that aren't drawn, and pictures that are required and can't be."""
        if not self.auto_plot:
            idle = [] if "auto_plot" in typed else [flag for field, flag in typed.items() if field != "auto_plot"]
            return [f"{flag} needs --auto-plot: it draws the pictures\nadd --auto-plot, or drop {flag}" for flag in idle]
        sentences = []
        if self.plot_required and find_spec(_PAINTING) is None:
            flag = typed.get("plot_required", "--plot-required")
            sentences.append(f"{flag} needs the extra plots, which is not installed\npip install 'aiperf-suite[plots]'")
        try:
            limit_s()
        except ConfigError as error:
            sentences.append(error.message)
        return sentences


__all__ = ["AutoPlotOptions", "RunPlotOptions", "StudyPlotOptions"]
