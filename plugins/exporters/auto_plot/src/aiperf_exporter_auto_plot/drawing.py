"""The run's side of the pictures: start their process, wait for it, and say what failed."""

from __future__ import annotations

import logging
from pathlib import Path

from aiperf import AiperfError, Artifact, atomic
from aiperf_uploads import upload

from aiperf_exporter_auto_plot.job import PictureJob, limit_s
from aiperf_exporter_auto_plot.options import AutoPlotOptions

log = logging.getLogger("aiperf.exporters.auto_plot")

_PROCESS = "aiperf_exporter_auto_plot.process"
_FOLDER, _CONFIG, _LIST = "plots", "plot_config.yaml", "summary.txt"
_ITEM = "pictures"


def draw(directory: Path, options: AutoPlotOptions) -> list[Artifact]:
    """Draw the pictures of the results in *directory*; those that are there.  What is missing is a warning.

    Raises:
        AiperfError: Some are missing, and they are required.
    """
    folder, seconds = directory / _FOLDER, limit_s()
    job = PictureJob(str(directory), str(folder), _kept(folder / _CONFIG, options.plot_config))
    log.info("drawing pictures, for %g s at most", seconds)
    outcome = upload(_PROCESS, job, [_ITEM], seconds, secrets=False)
    failures = [*outcome.facts.get("failures", ()), *outcome.left.values()]
    if failures and options.plot_required:
        raise AiperfError(f"--plot-required: {failures[0]}", *failures[1:], f"try again: aiperf plot {directory}")
    for sentence in failures:
        log.warning("--auto-plot: %s", sentence)
    told = [Artifact("Pictures", path) for path in (folder / _LIST, folder / _CONFIG) if path.is_file()]
    return [*(Artifact("Picture", Path(path)) for path in outcome.facts.get("files", ())), *told]


def _kept(path: Path, config: str | None) -> str | None:
    """The file that declares the pictures; one of an earlier run is taken away."""
    if config is None:
        path.unlink(missing_ok=True)
        return None
    with atomic(path) as draft:
        draft.write_text(config, encoding="utf-8")
    return str(path)


__all__ = ["PictureJob", "draw", "limit_s"]
