"""Public data sets: files by the hub's API, its cache, bad days, and rows of each set in its real schema."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sys
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext, Tokenizer
from aiperf.sdk.media import media_bytes
from aiperf.testing import check_row
from aiperf_dataset_exgentic.contract import call, session
from aiperf_dataset_public.contract import PublicContract
from aiperf_dataset_public.dataset import Public
from aiperf_dataset_public.options import PublicOptions
from aiperf_dataset_public.records import records
from aiperf_dataset_public.testing import Hub, Repository, used_hub
from huggingface_hub import constants
from PIL import Image

ROWS: dict[str, dict[str, Any]] = check_row("datasets", Public).capabilities["names"]
CHAT = {"id": "a", "conversations": [{"from": "human", "value": "one two three four"}, {"from": "gpt", "value": "a b c d e"}]}
PINNED = "192ab2185289094fc556ec8ce5ce1e8e587154ca"
CHATS = "ShareGPT_V3_unfiltered_cleaned_split.json"
SHAREGPT = "anon8231489123/ShareGPT_Vicuna_unfiltered"


class TestPublicKeepsTheContract(PublicContract):
    pass


class Words:
    """A tokenizer whose tokens are words."""

    name, size = "words", 1000

    def encode(self, text: str) -> list[int]:
        return [len(word) for word in text.split()]

    def decode(self, ids: Any) -> str:
        return " ".join("x" * each for each in ids)

    def count(self, text: str) -> int:
        return len(text.split())


WORDS: Tokenizer = Words()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with used_hub(monkeypatch, tmp_path / "home") as hub:
        yield hub


def made(name: str, source: Path | None = None, entries: int = 100, row: dict[str, Any] | None = None, **given: Any) -> Public:
    media = ("image", "audio", "video")
    capabilities = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True, media_in=media)
    context = DatasetContext(entries, 7, True, WORDS, capabilities, source, name, {**ROWS[name], **(row or {})})
    return Public(PublicOptions(**given), context)


def read(name: str, source: Path | None = None, **given: Any) -> list[Conversation]:
    return list(made(name, source, **given))


def prompts(conversations: list[Conversation]) -> list[list[str]]:
    return [[turn.text for turn in one.turns] for one in conversations]


def chats(*rows: dict[str, Any]) -> bytes:
    return json.dumps(list(rows or [CHAT])).encode()


def sharegpt(hub: Hub, content: bytes | None = None, **given: Any) -> Repository:
    repository = hub.add(Repository(SHAREGPT, **given))
    repository.commit({CHATS: content or chats(), "README.md": b"# ShareGPT"}, commit=PINNED)
    return repository


def said(error: pytest.ExceptionInfo[BadDataset]) -> str:
    return "\n".join(error.value.lines())


# The hub


def test_a_set_is_fetched_at_its_pinned_commit_once(hub: Hub) -> None:
    repository = sharegpt(hub)
    repository.commit({CHATS: chats({**CHAT, "conversations": []})})  # the branch has moved on
    dataset = made("sharegpt")
    (conversation,) = dataset
    assert prompts([conversation]) == [["one two three four"]]
    assert conversation.turns[0].max_tokens == 5
    asked = len(hub.asked)
    assert read("sharegpt") == [conversation]
    assert len(hub.asked) == asked, "what a commit has doesn't change"
    assert dataset.source_facts() == {
        "name": "sharegpt", "repository": SHAREGPT, "revision": PINNED, "commit": PINNED, "licence": "", "files": [CHATS],
        "rows_read": 1, "rows_skipped": {},
        "provenance": {
            "source_type": "public_dataset", "loader": "sharegpt", "hf_dataset_name": SHAREGPT, "hf_split": "train",
            "hf_revision": PINNED,
        },
    }  # fmt: skip


def test_other_programs_find_the_files_in_the_hubs_cache(hub: Hub) -> None:
    from huggingface_hub import try_to_load_from_cache

    sharegpt(hub)
    read("sharegpt")
    found = try_to_load_from_cache(SHAREGPT, CHATS, cache_dir=constants.HF_HUB_CACHE, revision=PINNED, repo_type="dataset")
    assert isinstance(found, str)
    assert Path(found).read_bytes() == chats()


def test_another_revision_is_resolved_each_time(hub: Hub) -> None:
    repository = sharegpt(hub)
    repository.commit({CHATS: chats(CHAT, CHAT)})
    dataset = made("sharegpt", hf_revision="main")
    assert len(list(dataset)) == 2
    assert dataset.source_facts()["commit"] == repository.refs["main"]
    repository.commit({CHATS: chats(CHAT, CHAT, CHAT)})
    assert len(read("sharegpt", hf_revision="main")) == 3
    with pytest.raises(BadDataset) as error:
        read("sharegpt", hf_revision="none")
    assert said(error) == f"{SHAREGPT} has no revision 'none'\n  check --hf-revision"


@pytest.mark.parametrize("name", ["../../../../outside.json", "/outside.json"])
def test_a_hub_that_names_a_file_outside_of_its_folder_is_refused(hub: Hub, tmp_path: Path, name: str) -> None:
    repository = sharegpt(hub)
    repository.commit({CHATS: chats(CHAT), name: b"x"})
    with pytest.raises(BadDataset) as error:
        read("sharegpt", hf_revision="main")
    assert f"outside of its folder: '{name}'" in said(error)
    assert not list(tmp_path.rglob("outside.json"))


@pytest.mark.parametrize("commit", ["../../../outside", "", "main"])
def test_a_hub_that_names_no_commit_is_refused(hub: Hub, tmp_path: Path, commit: str) -> None:
    repository = sharegpt(hub)
    repository.commit({CHATS: chats(CHAT)}, commit="0" * 40)
    repository.commits[commit] = repository.commits["0" * 40]
    repository.refs["main"] = commit
    with pytest.raises(BadDataset) as error:
        read("sharegpt", hf_revision="main")
    assert f"names no commit of {SHAREGPT}: {commit!r}" in said(error)
    assert not list(tmp_path.rglob("outside*"))


def test_a_checksum_that_would_be_a_path_is_refused(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = sharegpt(hub)
    repository.commit({CHATS: chats(CHAT)})
    hub.plain.add(CHATS)
    monkeypatch.setattr("aiperf_dataset_public.testing._git_sha1", lambda content: "../../../outside")
    with pytest.raises(BadDataset) as error:
        read("sharegpt", hf_revision="main")
    assert f"gives '../../../outside' for the checksum of {CHATS}" in said(error)
    assert not list(tmp_path.rglob("outside*"))


@pytest.mark.parametrize(("token", "status", "words"), [
    (None, 401, "set HF_TOKEN, or log in"), ("other", 403, "with the account of HF_TOKEN"),
])  # fmt: skip
def test_a_gated_set_says_where_its_terms_are(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, token: str | None, status: int, words: str
) -> None:
    sharegpt(hub, gated="manual", admitted=("mine",))
    if token is not None:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(BadDataset) as error:
        read("sharegpt")
    assert "is gated, and" in said(error)
    assert f"answers {status}" in said(error)
    assert f"accept its terms at {hub.url}/datasets/{SHAREGPT}" in said(error)
    assert words in said(error)
    monkeypatch.setenv("HF_TOKEN", "mine")
    assert len(read("sharegpt")) == 1


def test_a_set_that_the_hub_does_not_show_is_named(hub: Hub) -> None:
    with pytest.raises(BadDataset) as error:
        read("sharegpt")
    assert f"{hub.url} shows no data set {SHAREGPT} to this login" in said(error)


def test_a_download_goes_on_where_it_broke_off(hub: Hub) -> None:
    content = chats(*({**CHAT, "id": "x" * 500} for _ in range(40)))
    sharegpt(hub, content)
    hub.broken_after = [3000, 5000]
    assert len(read("sharegpt")) == 40
    assert [span for _, path, span in hub.asked if path.endswith(CHATS)] == [None, "bytes=3000-", "bytes=8000-"]


def test_an_interrupted_run_is_resumed_by_the_next(hub: Hub) -> None:
    content = chats(*({**CHAT, "id": "x" * 500} for _ in range(40)))
    sharegpt(hub, content)
    hub.broken_after = [3000] + [0] * 5
    with pytest.raises(BadDataset, match=r"broke off at 3 kB of 24\.8 kB") as error:
        read("sharegpt")
    assert "the next run goes on there" in said(error)
    hub.asked.clear()
    assert len(read("sharegpt")) == 40
    assert [span for method, path, span in hub.asked if path.endswith(CHATS)] == ["bytes=3000-"]


def test_a_wrong_beginning_is_fetched_again(hub: Hub) -> None:
    sharegpt(hub, chats(CHAT, CHAT))
    hub.broken_after = [20] + [0] * 5
    with pytest.raises(BadDataset):
        read("sharegpt")
    (part,) = Path(constants.HF_HUB_CACHE).rglob("*.incomplete")
    part.write_bytes(b"?" * 20)
    assert len(read("sharegpt")) == 2


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(hub: Hub) -> None:
    sharegpt(hub)
    hub.damaged.add(CHATS)
    with pytest.raises(BadDataset, match=r"has the checksum [0-9a-f]{12}…, and the hub promised"):
        read("sharegpt")
    assert not list(Path(constants.HF_HUB_CACHE).rglob("blobs/*"))
    hub.damaged.clear()
    assert len(read("sharegpt")) == 1


def test_a_file_that_git_keeps_is_checked_too(hub: Hub) -> None:
    hub.plain.add(CHATS)
    sharegpt(hub)
    assert len(read("sharegpt")) == 1
    shutil.rmtree(constants.HF_HUB_CACHE)
    hub.damaged.add(CHATS)
    with pytest.raises(BadDataset, match="has the checksum"):
        read("sharegpt")


def test_a_busy_hub_is_waited_for_as_it_asks(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    sharegpt(hub)
    hub.busy = ["7", "Mon, 01 Jan 2001 00:00:00 GMT", "soon"]
    assert len(read("sharegpt")) == 1
    assert hub.slept == [7.0, 1.0, 10.0]
    assert "the hub has had too many requests (429): waiting 7 s, as it asks" in caplog.text


def test_a_hub_that_asks_for_an_hour_ends_the_run(hub: Hub) -> None:
    sharegpt(hub)
    hub.busy = ["3600"]
    with pytest.raises(BadDataset, match="asks to wait 3600 s; this run waits at most 900 s"):
        read("sharegpt")
    assert hub.slept == []


def test_without_a_network_the_message_names_both_ways_out(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(BadDataset) as error:
        read("sharegpt")
    assert "http://127.0.0.1:9 can't be reached" in said(error)
    assert "aiperf datasets fetch sharegpt" in said(error)
    assert "--public-dataset sharegpt --input-file PATH" in said(error)


def test_offline_reads_the_cache_alone(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = sharegpt(hub)
    repository.commit({CHATS: chats(CHAT, CHAT)})
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadDataset, match=f"has nothing of {SHAREGPT} at {PINNED}, and HF_HUB_OFFLINE forbids the network"):
        read("sharegpt")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    online = [read("sharegpt"), read("sharegpt", hf_revision="main")]
    hub.asked.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert [read("sharegpt"), read("sharegpt", hf_revision="main")] == online
    shutil.rmtree(Path(constants.HF_HOME) / "aiperf")  # as if another program had fetched it
    assert read("sharegpt") == online[0]
    assert hub.asked == []


def test_a_full_disk_is_seen_before_the_download(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    sharegpt(hub)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(BadDataset, match=r"needs \d+ bytes more, and the disk of .* has 1 bytes free"):
        read("sharegpt")
    assert hub.fetched() == []


def test_a_page_in_place_of_the_list_of_files_is_told(hub: Hub) -> None:
    hub.pages[f"/api/datasets/{SHAREGPT}/revision/{PINNED}"] = b"<html>log in to the network</html>"
    with pytest.raises(BadDataset) as error:
        read("sharegpt")
    assert f"{hub.url} gives no list of the files of {SHAREGPT}" in said(error)
    assert "aiperf datasets fetch sharegpt" in said(error)


def test_a_cache_that_can_not_be_written_is_told(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sharegpt(hub)
    (tmp_path / "file").write_text("no directory")
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setattr(constants, name, str(tmp_path / "file" / "hub"))
    with pytest.raises(BadDataset, match=r"the hub's cache .* can't be written: Not a directory") as error:
        read("sharegpt")
    assert "set HF_HOME to a directory of yours" in said(error)


# Files of a set


def parquet(*rows: dict[str, Any]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), sink, row_group_size=2)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def problems(*texts: str) -> bytes:
    return parquet(*({"problem": text, "solution": "?"} for text in texts))


def test_a_few_conversations_of_a_large_set_fetch_one_file(hub: Hub) -> None:
    repository = hub.add(Repository("AI-MO/NuminaMath-CoT"))
    names = [f"data/train-{n:05}-of-00003.parquet" for n in range(3)]
    files = {name: problems(*(f"{n}.{k}" for k in range(5))) for n, name in enumerate(names)}
    repository.commit({**files, "data/test-00000-of-00001.parquet": problems("no")}, commit=ROWS["aimo_numina_cot"]["revision"])
    assert prompts(read("aimo_numina_cot", entries=4)) == [["0.0"], ["0.1"], ["0.2"], ["0.3"]]
    assert hub.fetched() == names[:1]
    assert len(read("aimo_numina_cot", entries=6)) == 6
    assert hub.fetched() == names[:2]
    assert len(read("aimo_numina_cot")) == 15


@pytest.mark.parametrize(("card", "files", "wanted"), [
    ({"configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "x/*.parquet"}]}]},
     ["data/train-0.parquet", "x/a.parquet", "x/b.parquet"], ["x/a.parquet", "x/b.parquet"]),
    ({"configs": [{"config_name": "only", "data_files": "a.*"}]}, ["a.parquet", "b.parquet"], ["a.parquet"]),
    ({"configs": [{"config_name": "default", "data_files": {"train": ["b.parquet"]}}]}, ["a.parquet", "b.parquet"],
     ["b.parquet"]),
    ({}, ["data/train-0.parquet", "data/test-0.parquet"], ["data/train-0.parquet"]),
    ({}, ["train.parquet", "test.parquet", "README.md"], ["train.parquet"]),
    ({}, ["default/train/0000.parquet", "default/test/0000.parquet"], ["default/train/0000.parquet"]),
])  # fmt: skip
def test_the_card_or_the_usual_names_tell_the_files(hub: Hub, card: Any, files: list[str], wanted: list[str]) -> None:
    hub.add(Repository("AI-MO/NuminaMath-TIR", card=card)).commit({name: problems(name) for name in files})
    assert prompts(read("aimo")) == [[name] for name in wanted]


def test_another_subset_is_read_and_unknown_ones_are_listed(hub: Hub) -> None:
    rows = {name: parquet({"question": name}) for name in ("main/test-0.parquet", "socratic/test-0.parquet")}
    hub.add(Repository("openai/gsm8k")).commit(rows, commit=ROWS["spec_al_gsm8k"]["revision"])
    assert prompts(read("spec_al_gsm8k")) == [["main/test-0.parquet"]]
    assert prompts(read("spec_al_gsm8k", hf_subset="socratic")) == [["socratic/test-0.parquet"]]
    with pytest.raises(BadDataset) as error:
        read("spec_al_gsm8k", hf_subset="platonic")
    assert "has no files of the split test of the subset 'platonic'" in said(error)
    assert "its subsets: main, socratic" in said(error)


def test_a_repository_with_a_script_is_read_as_the_hub_converted_it(hub: Hub) -> None:
    repository = hub.add(Repository("AI-MO/NuminaMath-TIR"))
    repository.commit({"NuminaMath.py": b"import os", "data.tar.gz": b"?"})
    commit = repository.commit({"default/train/0000.parquet": problems("a")}, ref="refs/convert/parquet")
    dataset = made("aimo")
    assert prompts(list(dataset)) == [["a"]]
    assert dataset.source_facts()["commit"] == commit


def test_rows_of_few_columns_are_read_in_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from aiperf_dataset_public import records

    monkeypatch.setattr(records, "_BATCH_BYTES", 1)
    path = tmp_path / "train-0.parquet"
    path.write_bytes(problems("a", "b", "c", "d", "e"))
    assert prompts(read("aimo", path)) == [["a"], ["b"], ["c"], ["d"], ["e"]], "row by row, over the row groups"
    found = records.records(path, ["problem"])
    assert next(found) == (f"{path}: row 1", {"problem": "a"}), "other columns are not read"


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "train-0.parquet").write_bytes(problems("a")[:-20])
    with pytest.raises(BadDataset, match=r"train-0\.parquet can't be read"):
        read("aimo", tmp_path / "train-0.parquet")


def test_without_pyarrow_the_message_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train-0.parquet").write_bytes(b"not read")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadDataset, match=r"train-0\.parquet is Parquet, which needs the package pyarrow") as error:
        read("aimo", tmp_path / "train-0.parquet")
    assert error.value.hints == ("pip install 'aiperf-core[tables]'",)


def test_a_missing_column_is_named_with_those_that_there_are(hub: Hub, tmp_path: Path) -> None:
    path = tmp_path / "train-0.parquet"
    path.write_bytes(parquet({"prompt": "a", "answer": "b"}))
    with pytest.raises(BadDataset) as error:
        read("aimo", path)
    assert said(error) == f"{path} has no column problem\n  its columns: prompt, answer"
    path = tmp_path / "x.jsonl"
    path.write_text('{"prompt": "a"}\n')
    with pytest.raises(BadDataset) as error:
        read("aimo", path)
    assert said(error) == f"{path}:1 has no column problem\n  its columns: prompt"


# Local copies


def test_a_local_copy_may_have_any_of_its_forms(tmp_path: Path) -> None:
    row = {"problem": "a"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (tmp_path / "a.json").write_text(json.dumps([row], indent=2))
    (tmp_path / "a.parquet").write_bytes(parquet(row))
    (tmp_path / "a.csv").write_text("problem,level\na,b\n")
    for name in ("a.jsonl", "a.json", "a.parquet", "a.csv"):
        assert prompts(read("aimo", tmp_path / name)) == [["a"]], name
    folder = tmp_path / "copy" / "data"
    folder.mkdir(parents=True)
    for name in ("train-00001-of-00002", "train-00000-of-00002", "test-00000-of-00001"):
        (folder / f"{name}.parquet").write_bytes(problems(name))
    wanted = [["train-00000-of-00002"], ["train-00001-of-00002"]]
    assert prompts(read("aimo", folder.parent)) == prompts(read("aimo", folder)) == wanted


def test_a_folder_of_the_hubs_cache_is_a_local_copy(hub: Hub) -> None:
    sharegpt(hub)
    fetched = read("sharegpt")
    folder = Path(constants.HF_HUB_CACHE) / "datasets--anon8231489123--ShareGPT_Vicuna_unfiltered"
    assert read("sharegpt", folder) == read("sharegpt", folder / "snapshots" / PINNED) == fetched


def test_a_directory_without_its_files_says_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(BadDataset, match=r"has no files of the public data set 'aimo': it has notes\.txt"):
        read("aimo", tmp_path)


def test_options_of_the_hub_have_no_use_for_other_sources(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="--hf-revision has no use for a local copy"):
        made("aimo", tmp_path, hf_revision="main")
    with pytest.raises(BadDataset, match="--hf-subset has no use: spec_bench is one file"):
        made("spec_bench", hf_subset="x")


# Arrays


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_an_array_is_read_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int | None, size: int
) -> None:
    from aiperf_dataset_public import records

    monkeypatch.setattr(records, "_PIECE", size)
    path = tmp_path / "a.json"
    path.write_text("\ufeff" + json.dumps([{"problem": f'{n} "]}},[" é'} for n in range(5)], indent=indent, ensure_ascii=False))
    assert prompts(read("aimo", path)) == [[f'{n} "]}},[" é'] for n in range(5)]


def test_a_damaged_compressed_array_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps([{"problem": str(number)} for number in range(9000)]).encode())
    whole = whole[:12] + b"\xff" * 64 + whole[76:]  # what zlib itself refuses
    (tmp_path / "a.json.gz").write_bytes(whole)
    with pytest.raises(BadDataset, match=r"a\.json\.gz can't be read"):
        list(records(tmp_path / "a.json.gz", ["problem"]))


def test_an_array_that_is_nested_too_deeply_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"problem": ' + "[" * 100_000)
    with pytest.raises(BadDataset, match=r"a\.json can't be read"):
        list(records(tmp_path / "a.json", ["problem"]))


@pytest.mark.parametrize(("content", "words"), [
    ('[{"problem": "a"}, {"pro', "can't be read after row 1: its JSON is cut off or damaged"),
    ('[{"problem": "a"}', "can't be read after row 1: the array is cut off"),
    ('[{"problem": "a"} {}]', "'{' stands where a comma is expected"), ("[1]", "row 1 is no JSON object, but int"),
    ("[]", "gives no conversation"), ('[{"problem": " "}]', "gives no conversation: 1 rows have no prompt"),
])  # fmt: skip
def test_a_damaged_array_is_named_with_its_row(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(BadDataset) as error:
        read("aimo", tmp_path / "a.json")
    assert words in said(error)


def test_an_array_larger_than_memory_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from aiperf_dataset_public import records

    monkeypatch.setattr(records, "_LARGEST_ROW", 10_000)
    monkeypatch.setattr(records, "_PIECE", 1000)
    (tmp_path / "a.json").write_text(json.dumps([{"problem": "x" * 500}] * 200))
    assert len(read("aimo", tmp_path / "a.json")) == 100
    (tmp_path / "a.json").write_text(json.dumps([{"problem": "x" * 50_000}]))
    with pytest.raises(BadDataset, match="a row is larger than"):
        read("aimo", tmp_path / "a.json")


# Shapes


def turn(who: str, words: int) -> dict[str, str]:
    return {"from": who, "value": " ".join(["w"] * words)}


@pytest.mark.parametrize(("said", "given", "lengths"), [
    ([turn("human", 4), turn("gpt", 4)], {}, [(4, 4)]),
    ([turn("human", 4), turn("gpt", 4), turn("human", 1024), turn("gpt", 1024)], {}, [(4, 4), (1024, 1024)]),
    ([turn("system", 9), turn("human", 5), turn("gpt", 6)], {}, [(5, 6)]),
    ([turn("human", 5), turn("human", 6), turn("gpt", 6)], {}, [(6, 6)]),
    ([turn("human", 3), turn("gpt", 40)], {}, None), ([turn("human", 1025), turn("gpt", 40)], {}, None),
    ([turn("human", 4), turn("gpt", 3)], {}, None), ([turn("human", 4), turn("gpt", 3)], {"osl": 9}, [(4, 3)]),
    ([turn("human", 1000), turn("gpt", 1049)], {}, None), ([turn("gpt", 40)], {}, None),
    ([turn("human", 4), turn("gpt", 4), turn("human", 3), turn("gpt", 9)], {}, None),
])  # fmt: skip
def test_sharegpt_keeps_chats_of_usual_lengths(
    tmp_path: Path, said: list[Any], given: dict[str, Any], lengths: list[tuple[int, int]] | None
) -> None:
    (tmp_path / "a.json").write_bytes(chats(CHAT, {"conversations": said}))
    dataset = made("sharegpt", tmp_path / "a.json", **given)
    found = [[(len(turn.text.split()), turn.max_tokens) for turn in one.turns] for one in dataset]
    assert found[1:] == ([] if lengths is None else [lengths])
    assert sum(dataset.source_facts()["rows_skipped"].values()) == (lengths is None)


REAL: dict[str, tuple[dict[str, Any], list[str]]] = {
    "aimo": ({"problem": "p", "solution": "s", "messages": [{"content": "p", "role": "user"}]}, ["p"]),
    "aimo_aime": ({"id": 0, "problem": "p", "solution": "s", "answer": "1", "url": "u"}, ["p"]),
    "aimo_numina_cot": ({"source": "s", "problem": "p", "solution": "s", "messages": []}, ["p"]),
    "aimo_numina_1_5": ({"problem": "p", "solution": "s", "answer": "1", "problem_type": "Algebra", "source": "s"}, ["p"]),
    "spec_bench": ({"question_id": 81, "category": "writing", "turns": ["first", "second"]}, ["first"]),
    "spec_al_gsm8k": ({"question": "q", "answer": "a #### 1"}, ["q"]),
    "spec_al_math500": ({"problem": "p", "solution": "s", "answer": "1", "subject": "x", "level": 2, "unique_id": "u"}, ["p"]),
    "spec_al_humaneval": (
        {"task_id": "HumanEval/0", "prompt": "def f(", "canonical_solution": "c", "test": "t", "entry_point": "f"}, ["def f("],
    ),
    "spec_al_mbpp": ({"task_id": 11, "text": "t", "code": "c", "test_list": ["assert f()"], "test_setup_code": ""}, ["t"]),
    "spec_al_mtbench": ({"prompt": ["one", " ", "two"], "reference": [], "category": "x", "prompt_id": 1}, ["one", "two"]),
    "mmvu": (
        {"id": "v0", "video": "https://example.org/a.mp4", "question_type": "multiple-choice", "question": "q", "answer": "A",
         "choices": {"A": "one", "B": "", "C": "three"}, "metadata": {"subject": "Physics"}}, ["q A.one C.three"],
    ),
    "instruct_coder": ({"instruction": "i", "input": "x", "output": "y"}, ["i"]),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REAL))
def test_a_row_of_each_set_in_its_real_schema(tmp_path: Path, name: str) -> None:
    row, wanted = REAL[name]
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    assert prompts(read(name, tmp_path / "rows.jsonl")) == [wanted]


@pytest.mark.parametrize("name", ["blazedit_5k", "blazedit_10k"])
def test_a_code_change_has_the_file_and_the_request(tmp_path: Path, name: str) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"code": "x = 1", "change_request": "make it 2", "other": 1}))
    ((prompt,),) = prompts(read(name, tmp_path / "rows.jsonl"))
    parts = prompt.split("\n\n")
    assert parts[1:3] == ["Original file:\n```python\nx = 1\n```", "Change request:\nmake it 2"]


# Pictures, films and sound


def image(mode: str = "RGB", form: str = "PNG", size: tuple[int, int] = (8, 4)) -> bytes:
    file = io.BytesIO()
    Image.new(mode, size).save(file, form)
    return file.getvalue()


PICTURE = {"bytes": image(), "path": None}
BROKEN = {"bytes": b"no picture", "path": "a.png"}
SEEN: dict[str, tuple[dict[str, Any], str]] = {
    "mmstar": (
        {"index": 0, "question": "q", "image": PICTURE, "answer": "A", "category": "c", "meta_info": {"source": "s"}}, "q",
    ),
    "vision_arena": (
        {"images": [BROKEN, PICTURE], "conversation_id": "c", "conversation": [[{"role": "user", "content": "q"}]]}, "q",
    ),
    "llava_onevision": (
        {"id": "i", "image": PICTURE, "data_source": "sharegpt4o",
         "conversations": [{"from": "human", "value": "<image>\nq"}, {"from": "gpt", "value": "a"}]}, "q",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SEEN))
def test_a_row_with_pictures_in_its_real_schema(tmp_path: Path, name: str) -> None:
    row, wanted = SEEN[name]
    (tmp_path / "rows.parquet").write_bytes(parquet(row))
    (conversation,) = read(name, tmp_path / "rows.parquet")
    (media,) = conversation.turns[0].media
    assert (conversation.turns[0].text, media.kind) == (wanted, "image")
    mime, content = media_bytes(media)
    assert (mime, Image.open(io.BytesIO(content)).size) == ("image/jpeg", (8, 4))


def test_every_kind_of_picture_becomes_jpeg_and_others_are_skipped(tmp_path: Path) -> None:
    kinds = [image("RGBA"), image("P", "GIF"), image("L", "JPEG"), image("RGB", "WEBP"), image("1", "PNG")]
    rows = [{"question": f"{n}", "image": {"bytes": kind, "path": None}} for n, kind in enumerate(kinds)]
    none, cut = {"bytes": None, "path": "a"}, {"bytes": kinds[0][:40], "path": None}
    bad = [{"question": "x", "image": one} for one in (BROKEN, none, cut)]
    huge = {"question": "y", "image": {"bytes": image("1", size=(20_000, 10_000)), "path": None}}
    (tmp_path / "rows.parquet").write_bytes(parquet(*rows, *bad, huge))
    dataset = made("mmstar", tmp_path / "rows.parquet")
    found = list(dataset)
    assert [one.turns[0].text for one in found] == ["0", "1", "2", "3", "4"]
    assert {media_bytes(one.turns[0].media[0])[0] for one in found} == {"image/jpeg"}
    assert dataset.source_facts()["rows_skipped"] == {"no readable picture": 4}


@pytest.mark.parametrize(("video", "address"), [
    ("https://example.org/a.mp4", "https://example.org/a.mp4"), ("/data/a.mp4", "file:///data/a.mp4"), ("", None), (None, None),
])  # fmt: skip
def test_a_film_is_passed_on_by_its_address(tmp_path: Path, video: str | None, address: str | None) -> None:
    rows = [{"question": "q", "choices": {"A": "a"}, "video": one} for one in (video, "https://example.org/z.mp4")]
    (tmp_path / "validation.json").write_text(json.dumps(rows))
    found = [one.turns[0].media[0].value for one in read("mmvu", tmp_path)]
    assert found == [one for one in (address, "https://example.org/z.mp4") if one is not None]


def sound(form: str, seconds: float = 0.5, rate: int = 16_000, channels: int = 1, **given: Any) -> dict[str, Any]:
    """Undecoded sound, as a column has it."""
    soundfile = pytest.importorskip("soundfile")
    file = io.BytesIO()
    wave = numpy.sin(numpy.arange(int(seconds * rate)) / 9)[:, None].repeat(channels, axis=1) / 2
    soundfile.write(file, wave, rate, format=form, **given)
    return {"bytes": file.getvalue(), "path": f"a.{form.lower()}"}


HEARD: dict[str, dict[str, Any]] = {
    "librispeech": {"file": "a.flac", "text": "T", "speaker_id": 1, "chapter_id": 2, "id": "1-2-3"},
    "voxpopuli": {"audio_id": "a", "language": 0, "raw_text": "t", "normalized_text": "t", "gender": "male", "speaker_id": "1"},
    "gigaspeech": {"segment_id": "s", "speaker": "N/A", "text": "T", "begin_time": 0.0, "end_time": 0.5},
    "ami": {"meeting_id": "m", "audio_id": "a", "text": "T", "begin_time": 0.0, "end_time": 0.5, "speaker_id": "s"},
    "spgispeech": {"wav_filename": "a.wav", "wav_filesize": 16_044, "transcript": "t"},
}


@pytest.mark.parametrize("name", sorted(HEARD))
def test_a_row_with_speech_in_its_real_schema(tmp_path: Path, name: str) -> None:
    (tmp_path / "rows.parquet").write_bytes(parquet({**HEARD[name], "audio": sound("FLAC")}))
    (conversation,) = read(name, tmp_path / "rows.parquet")
    (media,) = conversation.turns[0].media
    assert (conversation.turns[0].text, media.kind, media.seconds) == ("Transcribe this audio.", "audio", 0.5)


@pytest.mark.parametrize(("form", "given"), [
    ("WAV", {}), ("WAV", {"subtype": "FLOAT"}), ("FLAC", {}), ("OGG", {"subtype": "OPUS"}), ("OGG", {}), ("MP3", {}),
])  # fmt: skip
def test_sound_of_every_compression_becomes_wav(form: str, given: dict[str, Any]) -> None:
    from aiperf_dataset_public.sound import clip

    media = clip(sound(form, channels=2, **given))
    mime, content = media_bytes(media)
    with wave.open(io.BytesIO(content)) as out:
        assert (mime, out.getnchannels(), out.getsampwidth(), out.getframerate()) == ("audio/wav", 2, 2, 16_000)
        samples = numpy.frombuffer(out.readframes(out.getnframes()), "<i2")
        assert out.getnframes() / 16_000 == media.seconds == pytest.approx(0.5, abs=0.15)
    assert samples.std() == pytest.approx(2**14 / 2**0.5, rel=0.1), "as loud as before"


def test_clips_that_are_no_use_are_skipped_and_counted(tmp_path: Path) -> None:
    usable, long = sound("FLAC", 30), sound("FLAC", 30.1)
    rows = [usable, long, long, {"bytes": b"x", "path": "a"}, {"bytes": None, "path": "a"}, {"bytes": b"", "path": "a"}]
    (tmp_path / "rows.parquet").write_bytes(parquet(*({"audio": one} for one in rows)))
    dataset = made("ami", tmp_path / "rows.parquet")
    assert len(list(dataset)) == 1
    assert dataset.source_facts()["rows_skipped"] == {
        "a clip longer than 30 s": 2, "sound that can't be decoded": 1, "no sound": 2,
    }  # fmt: skip


def test_without_soundfile_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from aiperf_dataset_public.sound import clip

    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(BadDataset) as error:
        clip({"bytes": b"x", "path": None})
    assert "sound needs the package soundfile" in said(error)
    assert error.value.hints == ("pip install 'aiperf-dataset-public[audio]'",)


# Agents


def agents(path: Path, *rows: dict[str, Any]) -> Path:
    (path / "train-0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


ONE = session("a", call(0, "x"), call(9, "y"), harness="claude_code", models=["aws/claude-opus-4-5"], benchmark="swebench")
OTHER = session("b", call(0, "z"), models=["azure/gpt-4.1"], benchmark="appworld")


def test_sessions_of_agents_are_conversations(tmp_path: Path) -> None:
    found = read("exgentic", agents(tmp_path, ONE, OTHER))
    assert [(one.id, one.alone, len(one.turns)) for one in found] == [("a", True, 2), ("b", True, 1)]
    assert found[0].turns[0].headers == {"x-dynamo-session-id": "a"}
    assert found[0].turns[1].delay_ms == 8000.0
    pytest.importorskip("pyarrow")
    (tmp_path / "t.parquet").write_bytes(parquet(ONE, {**OTHER, "harness": "smolagents_code"}))
    assert [one.id for one in read("exgentic", tmp_path / "t.parquet")] == ["a", "b"]


@pytest.mark.parametrize(("filters", "wanted"), [
    (["harness=Claude_Code"], ["a"]), (["source_model=gpt-4.1"], ["b"]),
    (["harness=claude_code", "source_model=Kimi-K2.5"], None),
])  # fmt: skip
def test_sessions_are_filtered(tmp_path: Path, filters: list[str], wanted: list[str] | None) -> None:
    path = agents(tmp_path, ONE, OTHER)
    if wanted is not None:
        assert [one.id for one in read("exgentic", path, dataset_filter=filters)] == wanted
        return
    with pytest.raises(BadDataset, match="has no session with harness claude_code and source_model kimi-k2") as error:
        read("exgentic", path, dataset_filter=filters)
    assert "it has harness/model claude_code/claude-opus-4-5, tool_calling/gpt-4.1" in said(error)


@pytest.mark.parametrize(("name", "filters", "words"), [
    ("exgentic", ["colour=red"], "--dataset-filter colour: exgentic has no such filter"),
    ("exgentic", ["benchmark=swebench"], "exgentic has no such filter"),
    ("exgentic_v2", ["benchmark=x"], "--dataset-filter benchmark=x: exgentic_v2 has no such benchmark"),
    ("exgentic", ["harness=openai_solo", "source_model=GPT-5.2-2025-12-11"], "has no session with harness=openai_solo and"),
    ("exgentic_v2", ["source_model=gpt-4.1"], "exgentic_v2 has no session with source_model=gpt-4.1"),
    ("aimo", ["problem=x"], "--dataset-filter has no use: aimo has no filters"),
])  # fmt: skip
def test_filters_that_can_not_match_are_refused(tmp_path: Path, name: str, filters: list[str], words: str) -> None:
    with pytest.raises(BadDataset) as error:
        read(name, agents(tmp_path, ONE, OTHER), dataset_filter=filters)
    assert words in said(error)


def test_a_single_file_is_fetched_once(hub: Hub) -> None:
    hub.pages["/question.jsonl"] = b'{"question_id": 1, "turns": ["a", "b"]}\n'
    row = {"url": f"{hub.url}/question.jsonl"}
    for _ in range(2):
        assert prompts(read("spec_bench", row=row)) == [["a"]]
    assert [path for _, path, _ in hub.asked] == ["/question.jsonl"]
    with pytest.raises(BadDataset, match=r"/none.jsonl: the server answers 404"):
        read("spec_bench", row={"url": f"{hub.url}/none.jsonl"})


def test_rows_of_the_manifest_are_sets() -> None:
    from aiperf_dataset_public.sets import SESSIONS, public_set
    from aiperf_dataset_public.shapes import SHAPES

    for name, row in ROWS.items():
        public = public_set(name, row)
        assert public.shape in SHAPES or public.shape == SESSIONS, name
        assert bool(public.repository) != bool(public.url), name
    elsewhere = {"sharegpt", "blazedit_5k", "blazedit_10k", "exgentic", "exgentic_v2", *SEEN, *HEARD}
    assert set(REAL) | elsewhere == set(ROWS)
