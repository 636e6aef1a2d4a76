"""Run in evalscope's environment: make the run of a command as its AgentX scenario does, and print what its reader says of it.

Words: the mode, the trace file, its directory of results, then the command.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from evalscope.perf.scenarios import agentx

mode, trace, results, *command = sys.argv[1:]
agentx._require_aiperf()  # asks for the distribution by name and version
scenario = agentx.parse_agentx_scenario({"name": "agentx", "mode": mode})
dataset = agentx.AgentXDatasetProvenance(
    source="local", dataset_id=trace, trace_file=trace, sha256=agentx._sha256(Path(trace)), verified=True
)
summary = agentx._run_one_agentx(
    command=command, env=dict(os.environ), scenario=scenario, dataset=dataset, concurrency=2, duration=3.0, seed=20260707,
    run_path=Path(results).parent, artifacts_path=Path(results),
)  # fmt: skip
print("SUMMARY", summary.model_dump_json())
