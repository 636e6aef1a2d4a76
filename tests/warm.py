"""A process that has imported what a usual run imports, and forks a run of it when ``program.py`` asks.

usage: warm.py FD
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import aiperf.__main__
import aiperf.cli.main
import aiperf.cli.scenarios
import aiperf.planning.configure
import aiperf.prepare.build
import aiperf.registry.option_specs
import aiperf.run.reducer_process
import aiperf.run.run
import aiperf.sdk.exporter
import aiperf.sdk.grader
import aiperf.sdk.metric
import aiperf.sdk.telemetry
import aiperf.sdk.verdict
import aiperf.worker.process
import yaml  # noqa: F401
import zmq  # noqa: F401
from aiperf_command_simulate.nursery import ForkServer

USUAL = (
    "numpy", "uvloop", "aiperf_reducer_columns.reduce.reducer", "aiperf_reducer_columns.running",
    "aiperf_reducer_columns.report.report", "aiperf_transport_sockets", "aiperf_driver_standard",
    "aiperf_schedule_standard", "aiperf_endpoint_chat", "aiperf_tokenizer_builtin",
    "aiperf_dataset_synthetic.dataset", "aiperf_dataset_mooncake_trace.options", "aiperf_exporter_console",
    "aiperf_exporter_csv", "aiperf_exporter_inputs", "aiperf_exporter_json", "aiperf_exporter_otel.options",
    "aiperf_exporter_records.lines", "aiperf_exporter_arrivals.lines", "aiperf_exporter_server_metrics.options",
    "aiperf_metric_concurrency", "aiperf_metric_energy.rows", "aiperf_metric_gpu_dcgm",
    "aiperf_metric_latency.replay", "aiperf_metric_network.probe", "aiperf_metric_network.table",
    "aiperf_metric_network.metrics", "aiperf_metric_server_metrics", "aiperf_metric_trees",
    "aiperf_metric_spec_decode.metrics", "aiperf_table_gpus", "aiperf_table_reconciliation",
    "aiperf_verdict_failures", "aiperf_verdict_measurement", "aiperf_verdict_advice",
)  # fmt: skip
"""Modules of packages that most runs import, in one of their processes; an environment may lack some."""


def play(given: dict[str, Any]) -> int:
    """The program with the ``words`` given, in a session of its own, as in a terminal.

    ``path``: where it finds packages first.
    """
    os.setsid()
    sys.path[:0] = given["path"]
    sys.argv = [str(aiperf.__main__.__file__), *given["words"]]
    return aiperf.__main__.main()


def warm() -> None:
    """Import them.  A run forks its processes only where no thread runs, so numpy must begin none."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in USUAL:
        with contextlib.suppress(ModuleNotFoundError):
            import_module(name)
    tasks = Path("/proc/self/task")
    if tasks.is_dir() and len([*tasks.iterdir()]) > 1:
        raise SystemExit("warm.py: an import began a thread, so runs would fork none of their processes")


if __name__ == "__main__":
    warm()
    ForkServer(socket.socket(fileno=int(sys.argv[1])), play).run()
