"""A warning where the server is on another machine than the AMD GPUs that are sampled."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from aiperf import hookimpl

from aiperf_metric_gpu_amd.options import AmdOptions

if TYPE_CHECKING:
    from aiperf import Plan

log = logging.getLogger("aiperf.telemetry.gpu_amd")


class AmdElsewhere:
    """Looks at the servers of a run with ``--gpu-telemetry amdsmi``."""

    options: AmdOptions | None = None

    @hookimpl
    def aiperf_plan_validated(self, plan: Plan) -> None:
        from aiperf_gpus.here import warning  # few runs need it

        if self.options is not None and self.options.asked and (sentence := warning("amdsmi", plan.target.urls)):
            log.warning("%s", sentence)


__all__ = ["AmdElsewhere"]
