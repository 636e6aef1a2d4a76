"""The encoded data set: what was written comes back, and half of one is never read."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from aiperf.errors import BadJournal
from aiperf.rundir.store import Store, StoredShape, StoreWriter
from aiperf.sdk.model import Conversation, HttpRequest, Media, Turn
from hypothesis import given, settings
from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.none() | st.integers(0, 10**6)
turns = st.builds(
    Turn,
    texts=st.lists(texts, max_size=3).map(tuple),
    max_tokens=numbers,
    input_tokens=numbers,
    delay_ms=st.none() | st.integers(0, 10**7).map(float),
    timestamp_ms=st.none() | st.integers(0, 10**7).map(float),
)
conversations = st.builds(
    Conversation, id=texts, turns=st.lists(turns, min_size=1, max_size=4).map(tuple), system=st.none() | texts
)


def requests(conversation: Conversation, models: int) -> list[list[HttpRequest]]:
    return [
        [
            HttpRequest("/even" if index % 2 == 0 else "/odd", f"{conversation.id}|{index}|{model}".encode())
            for model in range(models)
        ]
        for index in range(len(conversation.turns))
    ]


def write(directory: Path, entries: list[Conversation], models: int = 1) -> Store:
    with StoreWriter(directory, models) as writer:
        for conversation in entries:
            writer.add(conversation, requests(conversation, models))
    return Store(directory)


@settings(max_examples=40, deadline=None)
@given(st.lists(conversations, max_size=8), st.integers(1, 3))
def test_everything_written_comes_back(entries: list[Conversation], models: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = write(Path(directory), entries, models)
        assert store.entries == len(entries)
        assert store.max_turns == max((len(entry.turns) for entry in entries), default=0)
        for number, entry in enumerate(entries):
            assert store.conversation(number) == entry
            assert store.id(number) == entry.id
            assert store.turns(number) == len(entry.turns)
            for index, turn in enumerate(entry.turns):
                bodies = [store.body(number, index, model) for model in range(models)]
                assert bodies == [request.body for request in requests(entry, models)[index]]
                assert store.shapes[store.shape(number, index)].path == ("/even" if index % 2 == 0 else "/odd")
                assert store.max_tokens(number, index) == (-1 if turn.max_tokens is None else turn.max_tokens)
                assert store.input_tokens(number, index) == (-1 if turn.input_tokens is None else turn.input_tokens)
                assert store.delay_ns(number, index) == (turn.delay_ms or 0) * 10**6
                assert store.timestamp_ns(number, index) == (-1 if turn.timestamp_ms is None else turn.timestamp_ms * 10**6)


def test_requests_that_differ_only_in_their_body_share_a_shape(tmp_path: Path) -> None:
    plain = HttpRequest("/a", b"1")
    with StoreWriter(tmp_path) as writer:
        for request in (plain, HttpRequest("/a", b"2"), HttpRequest("/a", b"3", {"X-Row": "1"}), HttpRequest("/a", b"4")):
            writer.add(Conversation("c", (Turn(),)), [[request]])
    store = Store(tmp_path)
    assert store.shapes == [StoredShape("/a"), StoredShape("/a", headers={"X-Row": "1"})]
    assert [store.shape(entry, 0) for entry in range(4)] == [0, 0, 1, 0]


def test_counted_tokens_win_over_what_the_data_set_says(tmp_path: Path) -> None:
    conversation = Conversation("c", (Turn(input_tokens=5), Turn(input_tokens=6), Turn(input_tokens=7)))
    with StoreWriter(tmp_path) as writer:
        writer.add(conversation, requests(conversation, 1), [50, None])
    store = Store(tmp_path)
    assert [store.input_tokens(0, turn) for turn in range(3)] == [50, -1, 7]


def test_media_survive(tmp_path: Path) -> None:
    conversation = Conversation("c", (Turn(media=(Media("image", "data:image/png;base64,AA=="),)),))
    assert write(tmp_path, [conversation]).conversation(0) == conversation


def test_the_index_of_a_turn_is_less_than_100_bytes(tmp_path: Path) -> None:
    write(tmp_path, [Conversation("c", (Turn(),))] * 100)
    indexes = ("entries", "turns", "offsets")
    assert sum((tmp_path / f"dataset.{name}").stat().st_size for name in indexes) <= 100 * 100


def test_half_a_data_set_is_not_read(tmp_path: Path) -> None:
    conversation = Conversation("c", (Turn(),))
    with pytest.raises(KeyError), StoreWriter(tmp_path) as writer:
        writer.add(conversation, requests(conversation, 1))
        raise KeyError("the source broke")
    with pytest.raises(BadJournal, match=r"dataset\.json"):
        Store(tmp_path)


def test_a_directory_without_a_data_set_gets_its_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadJournal, match="can't be read"):
        Store(tmp_path)


def test_pictures_of_earlier_turns_are_sent_again(tmp_path: Path) -> None:
    picture, sound = Media("image", "http://host/a.png"), Media("audio", "wav,AAAA")
    seen = Conversation("seen", (Turn(media=(picture, picture)), Turn(media=(sound,)), Turn(media=(picture,))))
    store = write(tmp_path, [seen, Conversation("read", (Turn(texts=("Hi",)),))])
    assert [store.images(0, turn) for turn in range(3)] == [2, 2, 3]
    assert store.images(1, 0) == 0


def test_the_query_of_the_given_path_is_not_written(tmp_path: Path) -> None:
    path = "/v1/x?sig=hush"
    with StoreWriter(tmp_path, path=path) as store:
        store.add(Conversation("a", (Turn(),)), [[HttpRequest(path, b"{}")]])
        store.add(Conversation("b", (Turn(),)), [[HttpRequest("/other?n=1", b"{}")]])
    assert "hush" not in (tmp_path / "dataset.json").read_text()
    assert [shape.path for shape in Store(tmp_path, path).shapes] == [path, "/other?n=1"]
    assert Store(tmp_path).shapes[0].path == "/v1/x?<redacted>"
