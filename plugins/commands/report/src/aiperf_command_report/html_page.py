"""``--html``: the page of one run, or of several side by side; a package of its own makes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from aiperf import AiperfError, UsageError, __version__
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.model import names

from aiperf_command_report.options import ReportOptions

_MAKER = "aiperf_report_page"


def refuse(options: ReportOptions) -> None:
    """Refuse options without an effect beside ``--html``.

    Raises:
        UsageError: One of them is given.
    """
    idle = [flag for flag, given in (("--json", options.as_json), ("--definitions", options.definitions)) if given]
    if idle:
        raise UsageError(f"--html writes a page, and {names(idle)} print: they exclude each other", "drop one of them")
    if options.verbose:
        raise UsageError("--verbose has no effect beside --html: the page has every table", "drop it")


def write(
    directories: Sequence[Path], plugin_options: PluginOptions, summarise: Callable[[Path], dict[str, Any]],
    options: ReportOptions,
) -> int:  # fmt: skip
    """Write the page, print its path, and a sentence on all that it lacks: 0 where that is nothing, else 1.

    summarise: makes the summary of a run that has none.

    Raises:
        AiperfError: What makes pages is not installed, no run can be read, or the file can't be written.
    """
    try:
        module = import_module(_MAKER)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != _MAKER:
            raise
        hint = "pip install aiperf-report-page"
        raise AiperfError("--html needs the package aiperf-report-page, which is not installed", hint) from error
    request = module.PageRequest(
        tuple(directories), plugin_options, summarise, __version__, options.baseline, options.output
    )
    written = module.write_page(request)
    print(f"Report: {written.path.absolute()}", flush=True)
    for sentence in written.failures:
        print(f"error: {sentence}", file=sys.stderr)
    return 1 if written.failures else 0
