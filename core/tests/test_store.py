"""The encoded data set: what was written comes back, and half of one is never read."""

from __future__ import annotations

import base64
import json
import math
import struct
import tempfile
from array import array
from pathlib import Path

import numpy as np
import pytest
from aiperf.errors import BadJournal
from aiperf.rundir.shapes import StoredShape
from aiperf.rundir.store import Store
from aiperf.rundir.store_form import made
from aiperf.rundir.store_writer import StoreWriter
from aiperf.sdk.model import Conversation, HttpRequest, Media, Message, Turn
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


def picture(number: int, size: int = 4000) -> str:
    return "data:image/png;base64," + "".join(f"{(at * 7919 + number * 104729) % 99991:05d}" for at in range(size // 5))


def encoded(conversation: Conversation, index: int, model: int = 0) -> HttpRequest:
    """A body with the texts and media of the turn's own messages, as chats have them."""
    messages = [*conversation.turns[index].before, *conversation.turns[index].own]
    messages = [*conversation.opening, *messages] if index == 0 else messages
    texts = [part for message in messages for part in (*message.texts, *(media.value for media in message.media))]
    return HttpRequest("/chat", json.dumps({"model": model, "content": texts}).encode())


values = st.one_of(
    st.integers(0, 2).map(picture), st.just("\0odd"), st.just("x" * 3000), st.just("wav," + "ab" * 700),
    st.sampled_from(["", "https://h/a.png", "data:image/png;base64,AA=="]),
)  # fmt: skip
media = st.lists(st.builds(Media, st.sampled_from(["image", "audio"]), values), max_size=3).map(tuple)
messages = st.lists(st.builds(Message, st.just("user"), st.lists(texts, max_size=1).map(tuple), media), max_size=2).map(tuple)
media_turns = st.builds(
    Turn, texts=st.lists(texts, max_size=1).map(tuple), media=media, before=messages, items=st.none() | messages
)
media_conversations = st.builds(
    Conversation, id=texts, turns=st.lists(media_turns, min_size=1, max_size=3).map(tuple), opening=messages
)


@settings(max_examples=60, deadline=None)
@given(st.lists(media_conversations, min_size=1, max_size=5), st.integers(1, 2))
def test_bodies_and_conversations_with_media_come_back(entries: list[Conversation], models: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        with StoreWriter(Path(directory), models) as writer:
            for entry in entries:
                turns = range(len(entry.turns))
                writer.add(entry, [[encoded(entry, index, model) for model in range(models)] for index in turns])
        store = Store(Path(directory))
        for number, entry in enumerate(entries):
            assert store.conversation(number) == entry
            for index in range(len(entry.turns)):
                bodies = [store.body(number, index, model) for model in range(models)]
                assert bodies == [encoded(entry, index, model).body for model in range(models)]
                assert store.images(number, index) == sum(message.images for message in entry.messages(index))


def disk_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("dataset.*"))


def test_a_medium_is_on_the_disk_once(tmp_path: Path) -> None:
    """For three models, and for entries with the same picture."""
    values = [picture(number, 100_000) for number in range(3)]
    media = [(Media("image", values[at % 3]), Media("image", values[0])) for at in range(9)]
    entries = [Conversation(f"c{at}", (Turn(("Hi",), pair),)) for at, pair in enumerate(media)]
    with StoreWriter(tmp_path, 3) as writer:
        for entry in entries:
            writer.add(entry, [[encoded(entry, 0, model) for model in range(3)]])
    assert disk_bytes(tmp_path) < 1.05 * sum(map(len, values))
    store = Store(tmp_path)
    assert [store.conversation(at) for at in range(9)] == entries
    assert store.body(5, 0, 2) == encoded(entries[5], 0, 2).body


def test_the_progress_of_entries_with_media_is_seen(tmp_path: Path) -> None:
    entries = [Conversation(f"c{at}", (Turn(media=(Media("image", picture(at, 200_000)),)),)) for at in range(5)]
    with StoreWriter(tmp_path) as writer:
        seen = []
        for entry in entries:
            writer.add(entry, [[encoded(entry, 0)]])
            seen.append(made(tmp_path))
    assert seen == [0, 2, 2, 4, 4]


def test_media_that_look_alike_are_kept_apart(tmp_path: Path) -> None:
    """The same length, middle and end."""
    same = "B" * 5000
    entries = [Conversation("c", (Turn(media=(Media("audio", f"wav,{letter}{same}"),)),)) for letter in "AZA"]
    with StoreWriter(tmp_path) as writer:
        for entry in entries:
            writer.add(entry, [[encoded(entry, 0)]])
    store = Store(tmp_path)
    assert [store.conversation(at) for at in range(3)] == entries
    assert [store.body(at, 0) for at in range(3)] == [encoded(entry, 0).body for entry in entries]


def test_a_medium_that_repeats_itself_is_still_right(tmp_path: Path) -> None:
    silence = Conversation("c", (Turn(media=(Media("audio", "wav," + "A" * 9000), Media("audio", "wav," + "A" * 8000))),))
    with StoreWriter(tmp_path) as writer:
        writer.add(silence, [[encoded(silence, 0)]])
    assert Store(tmp_path).body(0, 0) == encoded(silence, 0).body


def test_a_body_in_another_form_keeps_its_media(tmp_path: Path) -> None:
    form = HttpRequest("/form", bytes(range(256)) * 40)
    entry = Conversation("c", (Turn(media=(Media("image", picture(1)),)),))
    with StoreWriter(tmp_path) as writer:
        writer.add(entry, [[form]])
    assert Store(tmp_path).body(0, 0) == form.body


def test_a_reader_sees_media_that_come_later(tmp_path: Path) -> None:
    entries = [Conversation(f"c{at}", (Turn(media=(Media("image", picture(at)),) if at > 2 else ()),)) for at in range(400)]
    with StoreWriter(tmp_path) as writer:
        for at, entry in enumerate(entries[:-1]):
            writer.add(entry, [[encoded(entry, 0)]])
            if at == 1:
                writer.publish()
                store = Store(tmp_path)
            elif at and at % 50 == 0:
                writer.publish()
                assert store.grow()
                assert store.body(at - 1, 0) == encoded(entries[at - 1], 0).body
                assert store.conversation(at - 1) == entries[at - 1]
        writer.add(entries[-1], [[encoded(entries[-1], 0)]])
    assert [store.body(at, 0) for at in range(400)] == [encoded(entry, 0).body for entry in entries]


def test_the_sound_of_a_turn_is_its_own(tmp_path: Path) -> None:
    head = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data\xff\xff\xff\xff"
    wav = "wav," + base64.b64encode(head + bytes(4000)).decode()
    known, read, unknown = Media("audio", "mp3,AAAA", seconds=1.5), Media("audio", wav), Media("audio", "mp3,AAAA")
    film, damaged = Media("video", "data:", seconds=9.0), Media("audio", "wav,####")
    sounds = [(known,), (known, read), (known, unknown), (), (film,), (damaged,)]
    entry = Conversation("c", tuple(Turn(media=media) for media in sounds))
    store = write(tmp_path, [entry])
    found = [store.audio_s(0, turn) for turn in range(6)]
    assert [None if math.isnan(each) else each for each in found] == [1.5, 2.0, None, None, None, None]
    columns = store.numbers(np.zeros(6, dtype=int), np.arange(6))
    assert columns[3].tolist() == [1_500_000_000, 2_000_000_000, -1, -1, -1, -1]


def test_the_prefix_of_a_turn_is_kept(tmp_path: Path) -> None:
    turns = (Turn(prefix_blocks=7, prefix_hits=3), Turn(), Turn(prefix_blocks=2))
    store = write(tmp_path, [Conversation("c", turns)])
    assert [store.prefix(0, turn) for turn in (0, 2)] == [(7.0, 3.0), (2.0, 0.0)]
    assert all(map(math.isnan, store.prefix(0, 1)))
    blocks, hits = store.numbers(np.zeros(3, dtype=int), np.arange(3))[4:]
    assert (blocks.tolist(), hits.tolist()) == ([7, 0, 2], [3, 0, 0])
    assert [store.images(0, turn) for turn in range(3)] == [0, 0, 0]


def test_a_store_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Five numbers a turn, and no table of splices."""
    picture = Media("image", "http://host/a.png")
    entries = [Conversation("a", (Turn(media=(picture,)), Turn(max_tokens=7))), Conversation("b", (Turn(max_tokens=9),))]
    write(tmp_path, entries)
    numbers = array("q", (tmp_path / "dataset.turns").read_bytes())
    (tmp_path / "dataset.turns").write_bytes(array("q", [number for at, number in enumerate(numbers) if at % 8 < 5]).tobytes())
    about = json.loads((tmp_path / "dataset.json").read_text())
    del about["turn_fields"]
    (tmp_path / "dataset.json").write_text(json.dumps(about))
    (tmp_path / "dataset.splices").unlink()
    store = Store(tmp_path)
    assert [store.conversation(at) for at in range(2)] == entries
    assert [store.turns(at) for at in range(2)] == [2, 1]
    assert (store.max_tokens(1, 0), store.images(0, 1), store.images(1, 0)) == (9, 1, 0)
    columns = [column.tolist() for column in store.numbers(np.array([0, 1]), np.array([1, 0]))[1:]]
    assert columns == [[7, 9], [1, 0], [-1, -1], [0, 0], [0, 0]]
    assert math.isnan(store.audio_s(0, 0))


def test_recorded_times_come_back_where_there_are_any(tmp_path: Path) -> None:
    recorded = Turn(recorded_ms=(-2.5, 7.0000004))
    turns = {"a": (Turn(), Turn()), "b": (recorded, Turn()), "c": (Turn(),)}
    store = write(tmp_path, [Conversation(name, given) for name, given in turns.items()])
    times = [store.recorded_ns(entry, turn) for entry, turn in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0))]
    assert times == [None, None, (-2_500_000, 7_000_000), None, None]
    assert write(tmp_path, [Conversation("a", (Turn(),))]).recorded_ns(0, 0) is None
    (tmp_path / "dataset.recorded").unlink()
    assert Store(tmp_path).recorded_ns(0, 0) is None


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


def test_a_turn_has_its_task_with_or_without_an_expected_answer(tmp_path: Path) -> None:
    asked = Turn(("1 + 1",), task="sums"), Turn(("2 + 2",), expected="4"), Turn(("3 x 3",), task="products", expected="9")
    with StoreWriter(tmp_path) as writer:
        for number, turn in enumerate(asked):
            conversation = Conversation(f"c{number}", (turn,))
            writer.add(conversation, [[HttpRequest("/", b"{}")]])
    store = Store(tmp_path)
    assert store.tasks([2, 0, 1, 2], [0, 0, 0, 0]) == ["products", "sums", None, "products"]


def test_a_data_set_without_tasks_has_none(tmp_path: Path) -> None:
    with StoreWriter(tmp_path) as writer:
        writer.add(Conversation("c", (Turn(("1 + 1",), expected="2"),)), [[HttpRequest("/", b"{}")]])
    store = Store(tmp_path)
    assert not store.tasked and store.tasks([0, 0], [0, 0]) == [None, None]


def test_a_turn_tells_where_its_record_came_from(tmp_path: Path) -> None:
    told: dict[str, str | int] = {"source_trace_id": "w", "source_outer_idx": 1}
    for name in ("told", "other"):
        (tmp_path / name).mkdir()
    with StoreWriter(tmp_path / "told") as writer, StoreWriter(tmp_path / "other") as other:
        writer.add(Conversation("w", (Turn(source=told), Turn())), [[HttpRequest("/", b"{}")]] * 2)
        other.add(Conversation("c", (Turn(),)), [[HttpRequest("/", b"{}")]])
    assert Store(tmp_path / "told").sources([0, 0], [1, 0]) == [None, told]
    store = Store(tmp_path / "other")
    assert not store.sourced and store.sources([0], [0]) == [None]


def test_a_long_body_is_a_view_of_the_file(tmp_path: Path) -> None:
    long, short = bytes(range(256)) * 4096, b"{}"
    with StoreWriter(tmp_path) as writer:
        for number in range(80):
            request = HttpRequest("/a", short if number == 1 else long)
            writer.add(Conversation(f"c{number}", (Turn(("t",)),)), [[request]], [1])
    store = Store(tmp_path)
    assert store.view(1, 0) == short and isinstance(store.view(1, 0), bytes)
    first = store.view(0, 0)
    assert isinstance(first, memoryview)
    for number in range(2, 80):  # more than is viewed at a time
        assert store.view(number, 0) == long
    assert first == long, "a view stays whole when pages are given back"
