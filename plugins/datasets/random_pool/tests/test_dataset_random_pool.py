"""Pools: rows drawn by chance, files joined, texts and media drawn by themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext, Media
from aiperf_dataset_random_pool.contract import RandomPoolContract
from aiperf_dataset_random_pool.dataset import RandomPool
from aiperf_dataset_random_pool.options import RandomPoolOptions

CHAT = Capabilities(system_message=True, multi_turn=True, media_in=("image", "audio", "video"))


def read(path: Path, entries: int = 200, seed: int = 7, **given: Any) -> list[Conversation]:
    return list(RandomPool(RandomPoolOptions(**given), DatasetContext(entries, seed, True, None, CHAT, path)))


def pool(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class TestRandomPoolKeepsTheContract(RandomPoolContract):
    pass


def test_each_conversation_draws_a_row_with_replacement(tmp_path: Path) -> None:
    file = pool(tmp_path / "p.jsonl", {"text": "red"}, {"text": "green"})
    found = [one.turns[0] for one in read(file)]
    counts = [sum(turn.text == word for turn in found) for word in ("red", "green")]
    assert sum(counts) == 200
    assert min(counts) > 60
    assert all(not turn.named for turn in found), "a single file gives no names"
    assert found[:50] == [one.turns[0] for one in read(file, 50)]


def test_the_files_of_a_directory_are_joined_under_their_names(tmp_path: Path) -> None:
    pool(tmp_path / "query.jsonl", {"text": "what is rain"}, {"text": "what is snow"})
    pool(tmp_path / "passages.jsonl", {"texts": ["water falls", "sun shines"]})
    found = read(tmp_path, 40)
    assert {one.turns[0].texts_of("query") for one in found} == {("what is rain",), ("what is snow",)}
    assert {one.turns[0].texts_of("passages") for one in found} == {("water falls", "sun shines")}
    assert found[0].turns[0].texts[:2] == ("water falls", "sun shines"), "in the order of names"


def test_names_of_rows_stay(tmp_path: Path) -> None:
    pool(tmp_path / "a.jsonl", {"texts": [{"name": "query", "contents": ["q"]}]})
    pool(tmp_path / "b.jsonl", {"texts": [{"name": "query", "contents": ["r"]}], "image": "https://h/x.png"})
    (turn,) = read(tmp_path, 1)[0].turns
    assert (dict(turn.named), turn.media) == ({"query": ("q", "r")}, (Media("image", "https://h/x.png"),))


def test_batches_draw_texts_and_media_by_themselves(tmp_path: Path) -> None:
    images = [f"https://h/{n}.png" for n in range(3)]
    file = pool(tmp_path / "p.jsonl", {"texts": ["a", "b"], "images": images[:2]}, {"text": "c", "image": images[2]})
    turns = [one.turns[0] for one in read(file, prompt_batch_size=3)]
    assert {len(turn.texts) for turn in turns} == {3}
    assert {len(turn.media) for turn in turns} == {1}
    assert len({turn.texts for turn in turns}) == 27
    assert len({(turn.texts[0], turn.media[0].value) for turn in turns}) == 9
    assert {turn.texts for turn in (one.turns[0] for one in read(file, 5, prompt_batch_size=0))} == {()}


@pytest.mark.parametrize(("rows", "words"), [
    ([{"texts": [{"name": "a", "contents": ["x"]}]}], "p.jsonl:1: --batch-size-text draws texts and media by themselves"),
    ([{"text": "a"}, {"images": ["https://h/a.png"], "image_uuids": ["u"]}], "p.jsonl:2: "),
])  # fmt: skip
def test_batches_refuse_what_belongs_together(tmp_path: Path, rows: list[Any], words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(pool(tmp_path / "p.jsonl", *rows), prompt_batch_size=2)
    assert words in caught.value.message
    with pytest.raises(BadDataset, match="is a directory"):
        read(pool(tmp_path / "d" / "p.jsonl", {"text": "a"}).parent, prompt_batch_size=2)
    with pytest.raises(BadDataset, match="leaves nothing to send"):
        read(pool(tmp_path / "t.jsonl", {"text": "a"}), prompt_batch_size=0)


def test_what_means_nothing_in_a_pool_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    unused = {"timestamp": 1, "session_id": "s", "output_length": 9, "extra": {"n": 2}, "model": "m"}
    file = pool(tmp_path / "p.jsonl", *[{"text": "a", **unused}] * 3)
    (turn,) = read(file, 1)[0].turns
    assert (turn.timestamp_ms, turn.max_tokens) == (None, None)
    said = "rows are drawn by chance, so extra, model, output_length, session_id, timestamp means nothing"
    assert caplog.text.count(said) == 1


@pytest.mark.parametrize(("rows", "words"), [
    ([{"text": "a"}, {}], "p.jsonl:2: the row has none of text, image, audio and video"),
    ([{"text": "a"}, {"text": 1}], "p.jsonl:2: text is 1"), ([], "p.jsonl has no rows"),
    ([{"image": "gone.png"}], "p.jsonl:1: there is no image file 'gone.png'"),
])  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named_though_it_is_not_drawn(tmp_path: Path, rows: list[Any], words: str) -> None:
    file = pool(tmp_path / "p.jsonl", *rows)
    for path in (file, tmp_path):
        with pytest.raises(BadDataset) as caught:
            read(path, 1)
        assert words in caught.value.message


def test_the_order_is_shuffled() -> None:
    assert RandomPool.preferred_sampling == "shuffle"


def test_a_directory_without_pools_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=r"has no \.jsonl files"):
        read(tmp_path)


def test_it_knows_directories_whose_files_all_begin_with_a_row(tmp_path: Path) -> None:
    assert not RandomPool.recognises(tmp_path, None)
    file = pool(tmp_path / "p.jsonl", {"text": "a"})
    assert RandomPool.recognises(tmp_path, {"text": "a"})
    assert not RandomPool.recognises(file, {"text": "a"}), "a file is named by its type"
    pool(tmp_path / "q.jsonl", {"messages": []})
    assert not RandomPool.recognises(tmp_path, {"text": "a"})
