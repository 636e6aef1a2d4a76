"""A data set that is made shortly before its use: what the server gets when, and what files tell of it."""

from __future__ import annotations

import json
import time
from array import array
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import running
from program import Program, wait_for

ENTRIES, REQUESTS, GATED = 12, 3, 3
SOURCE = f"""
import time
from pathlib import Path

from aiperf import Conversation, Dataset, Turn
from aiperf.sdk.dataset import Promise

GATE = Path(__file__).parent.parent.parent / "gate"

class Gated(Dataset):
    def promise(self):
        return Promise({ENTRIES}, any_order=True, sparing=True)

    def __iter__(self):
        return self.chosen(range({ENTRIES}))

    def chosen(self, numbers):
        for number in numbers:
            while number == {GATED} and not GATE.exists():
                time.sleep(0.001)
            yield Conversation(f"c{{number}}", (Turn((str(number) * 9_000_000,), input_tokens=1, max_tokens=2),))
"""
MANIFEST = """
schema_version: 1
api: ">=1,<2"
plugins:
  - category: datasets
    name: gated
    summary: Large texts, of which the fourth is made once there is a gate.
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    package, about = (tmp_path / "site" / name for name in ("acme_gated", "acme_gated-1.0.dist-info"))
    for folder in (package, about):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text(SOURCE)
    (package / "aiperf.yaml").write_text(MANIFEST)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-gated\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[aiperf.datasets]\ngated = acme_gated:Gated\n")
    return package.parent


def test_a_text_that_is_not_ready_is_a_late_start_of_the_client(tmp_path: Path, site: Path) -> None:
    used = tmp_path / "artifacts" / "journal" / "dataset.used"
    with running(first_token_ms=1, decode_ms=0.1, tokens=2, max_context=10_000_000) as simulator:
        run = Program(tmp_path, site=site).start(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--use-server-token-count",
            "--tokenizer", "builtin", "--custom-dataset-type", "gated", "--ui", "none", "--concurrency", 1,
            "--request-count", REQUESTS,
        )  # fmt: skip

        def waits() -> bool:
            """Whether a request waits for its text, or the run is over."""
            return run.process.poll() is not None or (used.exists() and array("q", used.read_bytes())[1] == 1)

        wait_for(waits, 60)
        before = simulator.truth()["requests"]
        opened_ns, opened_mono_ns = time.time_ns(), time.monotonic_ns()
        (tmp_path / "gate").touch()
        done = run.end()
        seen = sorted(simulator.truth()["requests"], key=lambda request: request["received_mono_ns"])
    assert done.code == 0, done.err
    assert (len(before), len(seen)) == (2, REQUESTS)
    assert seen[1]["received_mono_ns"] < opened_mono_ns < seen[2]["received_mono_ns"]
    lines = sorted(done.lines("profile_export_arrivals.jsonl"), key=lambda line: line["started_ns"])
    assert lines[2]["due_ns"] < opened_ns < lines[2]["started_ns"]
    measured = done.json()["measurement"]
    assert measured["client_not_ready"] >= 1
    assert "due_ns" not in lines[0] and measured["arrivals"]["late"] >= 1 and measured["verdict"] == "suspect"
    made = [session["session_id"] for session in json.loads((done.artifacts / "inputs.json").read_text())["data"]]
    assert REQUESTS <= len(made) < ENTRIES and made == [f"c{number}" for number in range(len(made))]
