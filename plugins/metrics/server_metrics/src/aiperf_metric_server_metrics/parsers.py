"""The parsers of prometheus-client, without the servers and collectors of its package, whose import takes 20 ms of a run."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator

_PACKAGE = "prometheus_client"


@contextlib.contextmanager
def _package_not_run() -> Iterator[None]:
    """In the block modules of the package are imported, and itself is not run; who imports it later gets it whole."""
    spec = None if _PACKAGE in sys.modules else importlib.util.find_spec(_PACKAGE)
    if spec is None:
        yield
        return
    sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            del sys.modules[name]


with _package_not_run():
    from prometheus_client.metrics_core import Metric
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
    from prometheus_client.parser import text_string_to_metric_families as text_families
    from prometheus_client.samples import Sample

__all__ = ["Metric", "Sample", "openmetrics_families", "text_families"]
