"""The templates of ``aiperf config init`` run against the simulator, each with less of everything."""

from __future__ import annotations

import json
import re
from pathlib import Path

import aiperf
import pytest
from aiperf_command_config.library import Template, templates
from aiperf_command_simulate.testing import Simulator
from less import less
from program import Program

TRACE = "".join(f'{{"timestamp": {40 * n}, "input_length": 30, "output_length": 4, "hash_ids": [{n}]}}\n' for n in range(3))
SUBJECTS = "coding humanities math multilingual qa rag reasoning roleplay stem summarization writing"
FEW = ("minimal", "warmup_profiling", "goodput_slo", "inline_dataset", "http_trace_metrics", "user_files", "embeddings")


def smaller(each: Template, url: str) -> str:
    text = re.sub(r"median: \d+", "median: 400", less(each.made("m", [url])))
    text = text.replace("  model: m\n", "  model: m\n  tokenizer: builtin\n")
    return text.replace("dataset: sharegpt\n", "dataset: sharegpt\n    path: conversations.json\n")


def data(folder: Path) -> None:
    """The files that templates name."""
    for name in ("schedule.jsonl", "trace.jsonl"):
        (folder / name).write_text(TRACE)
    messages = [{"role": "user", "content": "Say a."}]
    rows = [{"question_id": f"{name:x<32}", "category": name, "messages": messages} for name in SUBJECTS.split()]
    (folder / "qualitative.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    turns = [{"from": word, "value": f"Say {n}, and say why, at some length."} for n, word in enumerate(["human", "gpt"])]
    (folder / "conversations.json").write_text(json.dumps([{"id": str(n), "conversations": turns} for n in range(9)]))


def test_several_templates_run_one_after_the_other(
    simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data(tmp_path)
    with aiperf.Run() as run:
        for each in (each for each in templates() if each.name in FEW):
            Path("run.yaml").write_text(smaller(each, simulator.url))
            summary = run.profile(["--config", "run.yaml", "--artifact-dir", f"out/{each.name}"])
            assert summary.results["request_count"].stats["avg"] > 0, each.name
            assert "error_request_count" not in summary.results, each.name
    written = json.loads(Path("out/user_files/deployment.json").read_text())
    assert written == {"deployment": "two-nodes", "gpus": 8, "concurrency": 32, "model": "m", "server": simulator.url}
    assert Path("out/user_files/notes/README.md").read_text().startswith("# user_files\n\nm on 8 GPUs (two-nodes), begun at 1")
    assert simulator.truth()["summary"]["requests"] > len(FEW)


@pytest.mark.long
@pytest.mark.parametrize("each", templates(), ids=lambda each: each.name)
def test_a_template_runs(aiperf: Program, simulator: Simulator, each: Template) -> None:
    data(aiperf.folder)
    (aiperf.folder / "run.yaml").write_text(smaller(each, simulator.url))
    done = aiperf("profile", "--config", "run.yaml", "--artifact-dir", "out", "--ui", "none")
    assert done.code == 0, done.err
    found = [*(aiperf.folder / "out").rglob("profile_export_aiperf.json")]
    assert found, [*(aiperf.folder / "out").rglob("*")]
    for path in found:
        assert json.loads(path.read_text())["request_count"]["avg"] > 0
