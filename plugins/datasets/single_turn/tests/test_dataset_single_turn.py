"""Rows of a file as conversations of one turn, or of several that don't know of each other."""

from __future__ import annotations

import base64
import csv
import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext, Media
from aiperf.sdk.dataset import Promise
from aiperf_dataset_single_turn import lone
from aiperf_dataset_single_turn.contract import SingleTurnContract
from aiperf_dataset_single_turn.dataset import SingleTurn, counted_rows, grouped
from aiperf_dataset_single_turn.options import SingleTurnOptions
from aiperf_dataset_single_turn.scan import csv_rows
from aiperf_rows.row_files import lines, tables

PICTURE = b"\x89PNG\r\n\x1a\npicture"
CHAT = Capabilities(system_message=True, multi_turn=True, media_in=("image", "audio", "video"))


def options(**given: Any) -> SingleTurnOptions:
    return SingleTurnOptions(**given)


def read(path: Path, text: str, **given: Any) -> list[Conversation]:
    file = path / "rows.jsonl"
    file.write_text(text)
    return list(SingleTurn(options(**given), DatasetContext(100, 7, True, None, CHAT, file)))


class TestSingleTurnKeepsTheContract(SingleTurnContract):
    pass


def test_every_field_of_a_row_is_carried(tmp_path: Path) -> None:
    (one,) = read(tmp_path, '{"type": "single_turn", "text": "a", "role": "tool", "output_length": 9, "timestamp": 12.5,'
                            ' "model": "n", "extra": {"temperature": 0}, "other": 1}')  # fmt: skip
    (turn,) = one.turns
    assert (turn.texts, turn.role, turn.max_tokens, turn.timestamp_ms, turn.model) == (("a",), "tool", 9, 12.5, "n")
    assert turn.extra == {"temperature": 0}
    assert one.id == "session_000000"


def test_several_texts_may_be_a_list_or_named_lists(tmp_path: Path) -> None:
    named = '{"texts": [{"name": "query", "contents": ["c"]}, {"contents": ["d", "e"]}]}'
    found = read(tmp_path, f'{{"texts": ["a", "b"]}}\n{named}\n')
    assert [each.turns[0].texts for each in found] == [("a", "b"), ("c", "d", "e")]
    assert [dict(each.turns[0].named) for each in found] == [{}, {"query": ("c",)}]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('{"text": "a"}\n\n \t\r\n{"text": "b"}', 2), ('\ufeff{"text": "a"}\n', 1), ("\ufeff\n", 0), ("", 0),
        ('{"text": "a"}\n{"text": "b", "session_id": "s"}\n', 2), ('{"text": "no \\"session_id\\""}', 1),
    ],
)  # fmt: skip
def test_rows_without_a_session_are_counted_before_they_are_read(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "rows.jsonl").write_text(text)
    source = SingleTurn(options(), DatasetContext(100, 7, True, None, CHAT, tmp_path / "rows.jsonl"))
    assert source.promise() == Promise(count, any_order=True)
    assert list(source) == read(tmp_path, text)
    assert count == len(list(source))


def test_a_session_behind_escapes_is_an_error_where_rows_were_counted(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}\n{"text": "b", "session\\u005fid": "s"}\n')
    source = SingleTurn(options(), DatasetContext(100, 7, True, None, CHAT, tmp_path / "rows.jsonl"))
    assert source.promise() == Promise(2, any_order=True)
    with pytest.raises(BadDataset, match=":2: the key session_id is written with escapes"):
        list(source)


def test_a_directory_promises_nothing(tmp_path: Path) -> None:
    assert SingleTurn(options(), DatasetContext(100, 7, True, None, CHAT, tmp_path)).promise() is None


def sessions_of(rows: list[dict[str, Any]], draw: Random) -> str:
    pieces = [json.dumps(row) + draw.choice(["\n", "\r\n", "\n \t\n\n"]) for row in rows]
    return draw.choice(["", "\ufeff", "\n"]) + "".join(pieces).rstrip() + draw.choice(["", "\n"])


def written(folder: Path, ending: str, rows: list[dict[str, Any]], draw: Random) -> Path:
    """A file of this name's ending with the rows; values that are None are left out."""
    file = folder / f"rows{ending}"
    rows = [{key: value for key, value in row.items() if value is not None} for row in rows]
    if ending == ".parquet":
        pyarrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
        schema = pyarrow.schema([("text", "string"), ("session_id", "string"), ("timestamp", "double")])
        parquet.write_table(pyarrow.Table.from_pylist(rows, schema), file, row_group_size=3)
    elif ending == ".csv":
        with file.open("w", newline="") as out:
            table = csv.DictWriter(out, ["text", "session_id", "timestamp"])
            table.writeheader()
            table.writerows(rows)
    else:
        text = sessions_of(rows, draw).encode()
        file.write_bytes(gzip.compress(text) if ending == ".jsonl.gz" else text)
    return file


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".csv", ".parquet"])
def test_sessions_are_counted_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(lone, "_AT_ONCE", 11)
    monkeypatch.setattr("aiperf_rows.row_files._BLOCK_BYTES", 90)
    draw = Random(3)
    for _ in range(60):
        rows = [
            {"text": draw.choice(["a", 'b "c",\nd']), "session_id": draw.choice([None, "s", "t", "7"]),
             "timestamp": draw.choice([None, 5.0, 7.5])} for _ in range(draw.randrange(1, 9))
        ]  # fmt: skip
        file = written(tmp_path, ending, rows, draw)
        context = DatasetContext(100, 7, True, None, CHAT, file, replay=True)
        wanted, source = list(SingleTurn(options(), context)), SingleTurn(options(), context)
        promise = source.promise()
        assert promise is not None
        assert list(source) == wanted
        assert promise.count == len(wanted)
        sizes = [len(one.turns) for one in wanted]
        assert [promise.turns(number) if callable(promise.turns) else promise.turns for number in range(len(wanted))] == sizes
        assert callable(promise.turns) is (max(sizes) > 1)
        single, several = promise.timestamp_ms, promise.turn_timestamp_ms
        for number, one in enumerate(wanted):
            times = [turn.timestamp_ms for turn in one.turns]
            if several is not None:
                assert [several(number, turn) for turn in range(len(times))] == times
            else:
                assert single is not None
                assert [single(number)] == times
        assert promise.any_order is (ending == ".jsonl")
        if promise.any_order:
            numbers = draw.sample(range(len(wanted)), len(wanted))
            assert list(source.chosen(iter(numbers))) == [wanted[number] for number in numbers]


def test_lines_that_are_no_rows_end_the_scan_with_their_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiperf_rows.row_files._BLOCK_BYTES", 50)
    file = tmp_path / "rows.jsonl"
    for line in ('{"text": "b"', "null", '{"text":', '{"text": "a"} {"text": "b"}'):
        file.write_text('{"text": "a", "session_id": 7}\n' * 20 + f"{line}\n" + '{"text": "a", "session_id": 7}\n' * 20)
        with pytest.raises(BadDataset, match=r"rows\.jsonl:21: "):
            counted_rows(file)


@pytest.mark.parametrize("given", ["7.5", "true", "{}", '["a"]'])
def test_a_session_id_that_is_none_is_told_by_the_scan(tmp_path: Path, given: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(f'{{"text": "a", "session_id": 7}}\n\n{{"text": "b", "session_id": {given}}}\n')
    with pytest.raises(BadDataset, match=r"rows\.jsonl:3: session_id is .*; it must be a text"):
        SingleTurn(options(), DatasetContext(100, 7, True, None, CHAT, file)).promise()


@pytest.mark.parametrize("alphabet", ['ab,"\né', 'ab,"\n\r; é', "ab,\n"])
def test_lines_and_quotes_tell_how_many_rows_csv_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alphabet: str
) -> None:
    monkeypatch.setattr("aiperf_rows.row_files._BLOCK_BYTES", 16)
    file, draw, told = tmp_path / "rows.csv", Random(1), 0
    for _ in range(300):
        with file.open("w", encoding=draw.choice(["utf-8", "utf-8-sig"]), newline="") as out:
            table = csv.writer(out, lineterminator=draw.choice(["\n", "\r\n"]), quoting=draw.choice([0, 1]))
            table.writerow(["text", "b"])
            table.writerows(
                ["".join(draw.choices(alphabet, k=draw.randrange(6))) for _ in range(2)] for _ in range(draw.randrange(6))
            )
        file.write_bytes(file.read_bytes()[: draw.choice([None, -1])])
        try:
            expected = len(list(tables(file)))
        except BadDataset:  # cut within a quoted value
            continue
        found = csv_rows(file)
        assert found in (None, expected), file.read_bytes()
        told += found is not None
    assert told > 50


@pytest.mark.parametrize("text", ['a,b\n1,5" disk\n2,6" disk\n', "a,b\n\n1,2\n", "a,b\n1,2\n\r\n", "a,b\r1,2\r"])
def test_other_csv_is_counted_by_a_reader(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(text.encode())
    counted = counted_rows(file)
    assert csv_rows(file) is None
    assert counted is not None
    assert counted.count == len(list(tables(file)))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables_without_sessions_are_counted(tmp_path: Path, ending: str) -> None:
    rows = [{"text": f"a {number}"} for number in range(5)]
    file = written(tmp_path, ending, rows, Random(1))
    source = SingleTurn(options(), DatasetContext(100, 7, True, None, CHAT, file))
    assert source.promise() == Promise(5)
    assert [one.turns[0].text for one in source] == [row["text"] for row in rows]


def test_a_table_without_rows_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("text,session_id\n")
    assert SingleTurn(options(), DatasetContext(100, 7, True, None, CHAT, file)).promise() == Promise(0)


def test_sessions_are_made_as_soon_as_they_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, read_lines = tmp_path / "rows.jsonl", list[int]()
    file.write_text("".join(f'{{"text": "x", "session_id": {n // 2}}}\n' for n in range(1000)))
    counted = counted_rows(file)
    assert counted is not None
    conversations = counted.conversations(note=lambda _, line: read_lines.append(line))
    assert [next(conversations)[:2] for _ in range(3)] == [(0, "0"), (1, "1"), (2, "2")]
    assert read_lines == [1, 2, 3, 4, 5, 6]


def test_a_compressed_file_is_counted_and_has_one_order(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"text": "a"}\n\n{"text": "b"}'))
    source = SingleTurn(options(), DatasetContext(100, 7, True, None, CHAT, file))
    assert source.promise() == Promise(2)
    assert [one.turns[0].text for one in source] == ["a", "b"]
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(BadDataset, match=r"rows\.jsonl\.gz can't be read"):
        SingleTurn(options(), DatasetContext(100, 7, True, None, CHAT, file)).promise()


def test_rows_are_found_by_their_numbers_with_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lone, "_SMALL", 0)
    monkeypatch.setattr(lone, "_AT_ONCE", 7)
    pieces = ["\n", "\r\n", " \t\n", " " * 20 + "\n", '{"text": "a"}\n', ' {"b": 1}\r\n', "{}\n", "no JSON\n", "\ufeff\n"]
    file, draw = tmp_path / "rows.jsonl", Random(5)
    for _ in range(200):
        text = draw.choice(["", "\ufeff"]) + "".join(draw.choices(pieces, k=draw.randrange(9))) + draw.choice(["", "x", " "])
        file.write_text(text, newline="")
        expected = [(number, line, one.removeprefix(b"\n")) for number, (line, one) in enumerate(lines(file))]
        found = lone.lone_rows(file)
        assert found is not None
        assert found.count == len(expected), text
        numbers = draw.sample(range(found.count), found.count)
        assert list(found.lines(numbers)) == [expected[number] for number in numbers], text
        assert list(found.lines()) == expected


def test_a_bad_row_is_told_with_its_line_in_any_order(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "a"}\n\n{"text": 7}\n{"text": "b"}\n')
    source = SingleTurn(options(), DatasetContext(100, 7, True, None, CHAT, file))
    assert source.promise() == Promise(3, any_order=True)
    chosen = source.chosen([2, 1])
    assert next(chosen).id == "session_000002"
    with pytest.raises(BadDataset, match=r"rows\.jsonl:3: "):
        next(chosen)


def test_times_are_read_first_where_they_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "a", "timestamp": 5}\n\n{"text": "b"}\n{"text": "c", "timestamp": 7.5}\n')

    def promised(*, replay: bool = True) -> Promise:
        given = SingleTurn(options(), DatasetContext(100, 7, True, None, CHAT, file, replay=replay)).promise()
        assert given is not None
        return given

    at_ms = promised().timestamp_ms
    assert at_ms is not None
    assert [at_ms(number) for number in range(3)] == [5.0, None, 7.5]
    assert promised(replay=False).timestamp_ms is None
    for bad in ('{"text": "a", "timestamp": -1}', '{"text": "a", "timestamp": "x"}', "[]"):
        file.write_text(f'{{"text": "a"}}\n{bad}\n')
        at_ms = promised().timestamp_ms
        assert at_ms is not None
        with pytest.raises(BadDataset, match=r"rows\.jsonl:2: "):
            at_ms(0)


def test_the_text_field_of_genai_perf_is_accepted(tmp_path: Path) -> None:
    assert read(tmp_path, '{"text_input": "a"}')[0].turns[0].texts == ("a",)


def test_a_session_is_one_conversation_at_its_first_row(tmp_path: Path) -> None:
    rows = [(None, "a"), ("s", "b"), (None, "c"), ("t", "d"), ("s", "e")]
    text = "\n".join(f'{{"text": "{text}"' + (f', "session_id": "{session}"}}' if session else "}") for session, text in rows)
    found = read(tmp_path, text)
    assert [[turn.text for turn in each.turns] for each in found] == [["a"], ["b", "e"], ["c"], ["d"]]
    assert [each.id for each in found] == ["session_000000", "s", "session_000002", "t"]
    assert all(each.alone for each in found)


def test_sessions_are_given_as_soon_as_they_are_whole(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f'{{"text": "x", "session_id": {n // 2}}}\n' for n in range(1000)))
    groups = grouped(file, lambda row, line: str(row["session_id"]))
    assert [len(next(groups)[1]) for _ in range(500)] == [2] * 500


def test_files_of_media_are_read_and_encoded(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PICTURE)
    (tmp_path / "b.wav").write_bytes(b"sound")
    images = '"images": ["a.png", "https://h/x.jpg"], "image_uuids": ["u", "v"]'
    found = read(tmp_path, f'{{{images}, "audio": "b.wav", "video": "data:video/mp4;base64,AAAA"}}')
    coded = base64.b64encode(PICTURE).decode(), base64.b64encode(b"sound").decode()
    assert found[0].turns[0].media == (
        Media("image", f"data:image/png;base64,{coded[0]}", "u"), Media("image", "https://h/x.jpg", "v"),
        Media("audio", f"wav,{coded[1]}"), Media("video", "data:video/mp4;base64,AAAA"),
    )  # fmt: skip


def test_a_file_that_is_no_picture_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"<html>not found</html>")
    with pytest.raises(BadDataset, match=r"rows\.jsonl:2: '.*a\.png' is no image: its first bytes are those of none of PNG"):
        read(tmp_path, '{"text": "x"}\n{"image": "a.png"}')


def test_a_picture_is_sent_as_what_it_is_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(PICTURE)
    (found,) = read(tmp_path, '{"image": "a.jpg"}')
    assert found.turns[0].media[0].value.startswith("data:image/png;base64,")


def test_of_texts_one_may_be_empty_and_empty_fields_are_absent(tmp_path: Path) -> None:
    found = read(tmp_path, '{"text": "", "texts": ["a", ""], "images": [], "audio": ""}')
    assert (found[0].turns[0].texts, found[0].turns[0].media) == (("a", ""), ())


def test_media_outside_the_files_folder_need_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "a.png").write_bytes(PICTURE + b"secret")
    (tmp_path / "data" / "link.png").symlink_to(tmp_path / "a.png")
    (tmp_path / "data" / "deep" / "b.png").write_bytes(PICTURE)
    monkeypatch.chdir(tmp_path)
    for value in ("a.png", "../a.png", str(tmp_path / "a.png"), "link.png"):
        with pytest.raises(BadDataset, match=r"rows\.jsonl:1: the image file .* is outside the folder") as caught:
            read(tmp_path / "data", json.dumps({"image": value}))
        assert caught.value.hints == ("move it there, or pass --allow-paths",)
        (one,) = read(tmp_path / "data", json.dumps({"image": value}), allow_paths=True)
        assert one.turns[0].media[0].value.endswith(base64.b64encode(PICTURE + b"secret").decode())
    for value in ("deep/b.png", "deep/../deep/b.png", str(tmp_path / "data" / "deep" / "b.png")):
        assert read(tmp_path / "data", json.dumps({"image": value}))


def test_the_answer_length_of_the_options_is_for_rows_without_one(tmp_path: Path) -> None:
    found = read(tmp_path, '{"text": "a"}\n{"text": "b", "output_length": 3}\n', osl=8)
    assert [each.turns[0].max_tokens for each in found] == [8, 3]


def test_a_system_prompt_of_the_options_stands_before_every_row(tmp_path: Path) -> None:
    assert read(tmp_path, '{"text": "a"}', system_prompt="Be terse.")[0].system == "Be terse."


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"text": "a"}\n'))
    assert next(iter(SingleTurn(options(), DatasetContext(1, 7, True, None, CHAT, file)))).turns[0].text == "a"


@pytest.mark.parametrize(("row", "words"), [
    ('{"text": "a", "texts": ["b"]}', "text and texts exclude each other"),
    ('{"text": "a", "timestamp": 0, "delay": 0}', "timestamp and delay exclude each other"),
    ("{}", "none of text, image, audio and video"),
    ('{"text": 5}', "text is 5"),
    ('{"texts": [{"name": "a"}]}', "texts"),
    ('{"text": "a", "output_length": 0}', "output_length is 0"),
    ('{"text": "a", "delay": -1}', "delay is -1"),
    ('{"text": "a", "delay": true}', "delay is True"),
    ('{"text": "a", "extra": []}', "extra is []"),
    ('{"text": "a", "role": 1}', "role is 1"),
    ('{"image": "gone.png"}', "no image file 'gone.png'"),
    ('{"image": "rows.jsonl"}', "rows.jsonl is no supported image file; use .png, .jpg, .jpeg"),
    ('{"image": "' + "QUJD" * 2000 + '"}', "can't be read: File name too long"),
    ('{"text": ""}', "none of text, image, audio and video"), ('{"texts": [""]}', "text is empty"),
    ('{"images": ["", "https://h/a"]}', "image is empty"), ('{"text": "a", "text_input": "b"}', "exclude each other"),
    ('{"image": "data:image/png;base64,@@@@"}', "the base64 of the image 'data:image/png;base64,@@@@' is damaged"),
    ('{"image": "data:image/png,abc"}', "has no base64; write data:TYPE;base64,"),
    ('{"audio": "wav,QUJ"}', "the base64 of the audio 'wav,QUJ' is damaged"),
    ('{"text": [' + '"x",' * 5000 + '"x"]}', "text is ['x', 'x', 'x', 'x', 'x', 'x', ...]; it must be a text"),
    ('{"images": [{"contents": ["https://h/a"]}], "image_uuids": ["u"]}', "image_uuids must be a list"),
    ('{"images": ["https://h/a", "https://h/b"], "image_uuids": ["u"]}', "1 image_uuids for 2 images"),
])  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named_with_its_line(tmp_path: Path, row: str, words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, f'{{"text": "good"}}\n{row}\n')
    assert words in caught.value.message
    assert "rows.jsonl:2:" in caught.value.message


@pytest.mark.parametrize(("row", "known"), [
    ({"text": "a"}, True), ({"images": ["x"]}, True), ({"text_input": "a"}, True), ({"text_input": "a", "timestamp": 0}, False),
    ({"turns": [{"text": "a"}]}, False), ({"input_length": 5}, False),
    (None, False),
])  # fmt: skip
def test_it_knows_its_rows(row: Any, known: bool) -> None:
    assert SingleTurn.recognises(Path("x.jsonl"), row) is known


def test_an_unknown_key_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path, '{"text": "a"}\n{"text": "b", "max_tokens": 3}\n{"text": "c", "max_tokens": 4, "output_length": 1}\n')
    (message,) = caplog.messages
    said = "the key 'max_tokens' is unknown, and is not sent: fields of the body stand below 'extra'"
    assert message.endswith(f"rows.jsonl:2: {said}")


def test_an_extra_that_replaces_what_the_run_makes_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path, '{"text": "a", "extra": {"stream": false, "top_p": 1}}\n' * 2)
    (message,) = caplog.messages
    assert message.endswith("rows.jsonl:1: extra has 'stream', which replaces what the run makes of the row")
