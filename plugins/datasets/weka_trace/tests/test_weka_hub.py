"""Public corpora of Weka traces, from a hub on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, DatasetContext
from aiperf.testing import check_row
from aiperf_dataset_public.testing import Hub, Repository, used_hub
from aiperf_dataset_synthetic.contract import WordTokens
from aiperf_dataset_weka_trace.contract import WekaHubContract, sample_trace
from aiperf_dataset_weka_trace.hub import WekaHub, WekaHubOptions

ROWS: dict[str, dict[str, Any]] = check_row("datasets", WekaHub).capabilities["names"]
CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)
SET = "semianalysis_cc_traces_weka_061326"
TRACES = "".join(json.dumps(sample_trace(f"w{number}", 10 * number)) + "\n" for number in range(3)).encode()


class TestHubKeepsTheContract(WekaHubContract):
    """Of all data sets."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))
    with used_hub(monkeypatch, tmp_path / "home") as hub:
        yield hub


def made(name: str, source: Path | None = None, row: dict[str, Any] | None = None, **given: Any) -> WekaHub:
    context = DatasetContext(20, 1, True, WordTokens(), CHAT, source, name, {**ROWS[name], **(row or {})})
    return WekaHub(WekaHubOptions(**given), context)


def offered(hub: Hub, repository: str, content: bytes = TRACES) -> str:
    found = Repository(repository)
    commit = found.commit({"traces.jsonl": content, "README.md": b"traces"})
    hub.add(found)
    return commit


def test_every_public_corpus_of_the_reference_is_there():
    names = json.loads((Path(__file__).parents[4] / "tests" / "reference" / "names.json").read_text())["public_dataset_loader"]
    assert set(ROWS) == {name for name in names if "weka" in name}
    assert len(ROWS) == 17


def test_pinned_corpora_have_a_commit_and_a_digest():
    pinned = {name: row for name, row in ROWS.items() if "revision" in row}
    assert len(pinned) == 4
    assert all(re.fullmatch("[0-9a-f]{40}", row["revision"]) for row in pinned.values())
    assert all(re.fullmatch("[0-9a-f]{64}", row["sha256"]) for row in pinned.values())


def test_a_corpus_is_fetched_and_told(hub):
    commit = offered(hub, "semianalysisai/cc-traces-weka-061326")
    dataset = made(SET)
    assert [one.id for one in dataset] == ["w0", "w1", "w2"]
    facts = dataset.source_facts()
    assert facts["repository"] == "semianalysisai/cc-traces-weka-061326"
    assert (facts["commit"], facts["files"]) == (commit, ["traces.jsonl"])
    assert (facts["traces"], len(facts["sha256"])) == (3, 64)
    assert facts["provenance"] == {
        "source_type": "public_dataset", "loader": SET, "hf_dataset_name": "semianalysisai/cc-traces-weka-061326",
        "hf_split": "train", "hf_revision": commit, "sha256": facts["sha256"],
    }  # fmt: skip
    list(made(SET))
    assert hub.fetched() == ["traces.jsonl"]


def test_a_moving_name_says_what_it_stands_for(hub, caplog):
    offered(hub, "semianalysisai/cc-traces-weka-062126")
    with caplog.at_level("INFO"), pytest.raises(BadDataset):
        list(made("semianalysis_cc_traces_weka_with_subagents", row={"revision": "main"}))
    assert "semianalysis_cc_traces_weka_with_subagents stands for semianalysisai/cc-traces-weka-062126 today" in caplog.text


def test_another_file_than_the_pinned_one_is_refused(hub):
    offered(hub, "semianalysisai/cc-traces-weka-061326")
    with pytest.raises(BadDataset, match="has another file than the one that is known at main"):
        list(made(SET, row={"sha256": "0" * 64}))


def test_any_repository_and_any_directory_can_be_named(hub, tmp_path):
    offered(hub, "me/mine")
    assert len(list(made("weka_hf", repository="me/mine"))) == 3
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "traces.jsonl").write_bytes(TRACES)
    there = made("weka_hf", repository=str(folder))
    assert len(list(there)) == len(list(made(SET, folder / "traces.jsonl"))) == 3
    told = {"source_type": "public_dataset", "loader": "weka_hf", "hf_dataset_name": str(folder), "hf_split": "train"}
    assert there.source_facts()["provenance"] == told
    assert len(list(made(SET, folder))) == 3


@pytest.mark.parametrize(("name", "given", "sentence"), [
    ("weka_hf", {}, "weka_hf names no traces"),
    ("weka_hf", {"repository": "nowhere"}, "there is no directory nowhere, and no repository is called so"),
    (SET, {"repository": "me/mine"}, "--hf-weka-dataset has no use"),
])  # fmt: skip
def test_what_names_no_corpus_is_refused(hub, name, given, sentence):
    with pytest.raises(BadDataset, match=sentence):
        list(made(name, **given))


def test_two_sources_are_refused(hub, tmp_path):
    with pytest.raises(BadDataset, match="--hf-weka-dataset and --input-file both name the traces"):
        list(made("weka_hf", tmp_path, repository="me/mine"))
    with pytest.raises(BadDataset, match="--hf-revision has no use for a local copy"):
        made("weka_hf", tmp_path, hf_revision="main")
