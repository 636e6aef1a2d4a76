"""The routes of the HTTP API beside the reference's: the same keys, but for those that docs/differences.md names."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from aiperf_live_api.openapi import SCHEMAS, document

REFERENCE = os.environ.get("AIPERF_REFERENCE", "")
pytestmark = pytest.mark.skipif(not REFERENCE, reason="AIPERF_REFERENCE names no reference; make differential installs one")
ITS = """
import json
from aiperf.api.models.responses import ProgressResponse, WorkersResponse
from aiperf.api.models.results import BenchmarkResultsResponse, ResultsListResponse
from aiperf.api.routers import core, metrics, progress, results, server_metrics, workers
from aiperf.common.mixins.progress_tracker_mixin import CombinedPhaseStats
from aiperf.common.models import WorkerStats
from aiperf.common.models.export_models import RunInfo
from aiperf.common.models.record_models import ProfileResults
models = {"Progress": ProgressResponse, "Phase": CombinedPhaseStats, "Metrics": metrics.MetricsResponse, "Run": RunInfo,
          "Workers": WorkersResponse, "Worker": WorkerStats, "Results": BenchmarkResultsResponse, "Files": ResultsListResponse,
          "ProfileResults": ProfileResults}
routers = (core.core_router, metrics.metrics_router, progress.progress_router, results.results_router,
           server_metrics.server_metrics_router, workers.workers_router)
routes = [[route.path, *route.methods] for router in routers for route in router.routes]
print(json.dumps({"models": {name: list(model.model_fields) for name, model in models.items()}, "routes": routes}))
"""
NOT_HERE = {"/api/results/upload/{filename:path}"}
"""Routes for its remote workers."""
NO_KEYS = {"ProfileResults": {
    "branch_stats", "context_overflow_count", "phase_records", "pooled_spec_decode_acceptance_histogram",
}}  # fmt: skip
"""Keys of what this program has elsewhere: in the summary."""


@pytest.fixture(scope="module")
def its() -> dict[str, dict[str, list[str]]]:
    """Fields of the reference's answers, and its routes."""
    words = [str(Path(REFERENCE).parent / "python"), "-c", ITS]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, dict[str, list[str]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_route_of_the_reference_is_there_or_named(its: dict[str, list[list[str]]]) -> None:
    ours = document()["paths"]
    for path, *methods in its["routes"]:
        if path not in NOT_HERE:
            named = path.replace("{filename:path}", "{name}")
            assert {method.lower() for method in methods} <= set(ours[named]), path


def test_answers_have_the_keys_of_the_reference(its: dict[str, dict[str, list[str]]]) -> None:
    ours = {name: set(schema.get("properties", ())) for name, schema in SCHEMAS.items()}
    ours["ProfileResults"] = set(SCHEMAS["Results"]["properties"]["results"]["anyOf"][0]["properties"]["results"]["properties"])
    lacking = {name: set(fields) - ours[name] - NO_KEYS.get(name, set()) for name, fields in its["models"].items()}
    assert {name: fields for name, fields in lacking.items() if fields} == {}
