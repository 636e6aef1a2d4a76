"""A warning where the server is on another machine than the NVIDIA GPUs that are sampled."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from aiperf import hookimpl

from aiperf_metric_gpu_nvml.options import NvmlOptions

if TYPE_CHECKING:
    from aiperf import Plan

log = logging.getLogger("aiperf.telemetry.gpu_nvml")


class NvmlElsewhere:
    """Looks at the servers of a run with ``--gpu-telemetry pynvml``."""

    options: NvmlOptions | None = None

    @hookimpl
    def aiperf_plan_validated(self, plan: Plan) -> None:
        from aiperf_gpus.here import warning  # few runs need it

        if self.options is not None and self.options.asked and (sentence := warning("pynvml", plan.target.urls)):
            log.warning("%s", sentence)


__all__ = ["NvmlElsewhere"]
