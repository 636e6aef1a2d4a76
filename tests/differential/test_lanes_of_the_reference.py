"""The kept log of the reference's lanes is what the release and the nightly build tell of the corpus."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from lane_rows import SHARES, TRACES, kept, log, written
from test_agent_traces import PROGRAMS, WORDS, vocabulary

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="AIPERF_REFERENCE names no reference; make differential installs one")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_log_is_what_the_reference_tells(program: str, tmp_path: Path) -> None:
    given = [*WORDS, "--input-file", str(written(tmp_path / "traces")), "--custom-dataset-type", "weka_trace"]
    script, python = Path(__file__).with_name("reference_lanes.py"), Path(PROGRAMS[program]).with_name("python")
    env = {**os.environ, "TIKTOKEN_CACHE_DIR": str(vocabulary(tmp_path)), "AIPERF_DATASET_WEKA_PARALLEL_WORKERS": "1"}
    done = subprocess.run([str(python), str(script)], input=json.dumps([given, TRACES, SHARES]), capture_output=True, text=True,
                          timeout=600, check=False, env=env)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    (tmp_path / "lanes_of_the_reference.json").write_text(kept(told))  # to be kept where the corpus has changed
    assert told == log()
