"""What the reference's ``service TYPE`` starts, and what does that here."""

from __future__ import annotations

TYPES = {
    "api": "aiperf profile --api-port serves a run, and aiperf service takes runs",
    "dataset-manager": "the builder, a process of aiperf profile, makes the data set",
    "gpu-telemetry-manager": "aiperf profile starts a process for each source of GPU telemetry",
    "network-latency-manager": "aiperf profile measures the network's latency itself",
    "record-processor": "reducers, processes of aiperf profile, make records",
    "records-manager": "reducers, processes of aiperf profile, keep records, and the run's own process merges them",
    "server-metrics-manager": "aiperf profile starts a process for each source of server metrics",
    "system-controller": "aiperf profile itself watches its processes",
    "timing-manager": "workers have the schedule; there is no process for it",
    "worker": "workers are processes of aiperf profile: --workers-max",
    "worker-manager": "aiperf profile itself watches its workers",
    "worker-group-manager": "aiperf profile itself watches its workers",
}
"""By type."""

__all__ = ["TYPES"]
