"""Pictures behind whole runs: those of a file's section, those of a study, and none in time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program

pytestmark = pytest.mark.long
RUN = """
benchmark:
  model: m
  tokenizer: builtin
  endpoint: {{url: "{url}", streaming: true}}
  dataset: {{isl: 20, osl: 6}}
  profiling: {{type: concurrency, concurrency: 2, requests: 8}}
"""
SECTION = """
plot:
  visualization:
    single_run_defaults: [waits, ttft_distribution]
    single_run_plots:
      waits: {type: scatter, x: request_number, y: time_to_first_token}
"""


@pytest.fixture
def aiperf(tmp_path: Path, shared_simulator: Simulator) -> Program:
    (tmp_path / "run.yaml").write_text(RUN.format(url=shared_simulator.url) + SECTION)
    return Program(tmp_path)


def test_the_section_of_a_file_draws_its_pictures(aiperf: Program) -> None:
    done = aiperf("profile", "--config", "run.yaml", "--ui", "none")
    assert done.code == 0, done.err
    names = ["plots/plot_config.yaml", "plots/summary.txt", "plots/ttft_distribution.png", "plots/waits.png"]
    assert sorted(path.relative_to(done.artifacts).as_posix() for path in (done.artifacts / "plots").iterdir()) == names
    marker = json.loads((done.artifacts / ".aiperf_results_ready.json").read_text())
    assert set(names) <= set(marker["files"]) and not marker["partial"]
    off = aiperf("profile", "--config", "run.yaml", "--no-auto-plot", "--ui", "none")
    assert off.code == 0 and not [*off.artifacts.rglob("*.png")], "those of the earlier run are gone"


def test_a_study_is_drawn_once(aiperf: Program) -> None:
    section = SECTION.replace("single_run_defaults: [waits, ttft_distribution]", "multi_run_defaults: [ttft_distribution]")
    path = aiperf.folder / "run.yaml"
    path.write_text(path.read_text().replace(SECTION, section))
    done = aiperf("profile", "--config", "run.yaml", "--concurrency", "1,2", "--ui", "none")
    assert done.code == 0, done.err
    drawn = [path.relative_to(done.artifacts).as_posix() for path in done.artifacts.rglob("*.png")]
    assert drawn == ["plots/ttft_distribution.png"]


def test_pictures_that_take_too_long_are_told(aiperf: Program) -> None:
    words = ["profile", "--config", "run.yaml", "--ui", "none"]
    aiperf.environment["AIPERF_AUTO_PLOT_TIMEOUT_SECONDS"] = "0.1"
    late = aiperf(*words)
    assert late.code == 0 and "--auto-plot: it took longer than 0.1 s" in late.err
    required = aiperf(*words, "--plot-required")
    assert required.code == 1 and "--plot-required: it took longer than 0.1 s" in required.err
    assert (required.artifacts / "profile_export_aiperf.json").exists()
