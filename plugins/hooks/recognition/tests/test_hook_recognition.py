"""Which of some formats a file has, by its first row and the end of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf import Dataset, hookimpl
from aiperf.parts.hooks import Hooks
from aiperf.sdk.descriptor import Descriptor, PluginRef
from aiperf.sdk.recognition import Recognition
from aiperf_hook_recognition import FileRecognition
from aiperf_hook_recognition.contract import FileRecognitionContract


class TestFileRecognitionKeepsTheContract(FileRecognitionContract):
    pass


class Traces(Dataset):
    """Rows with a time."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and "timestamp" in first_row


class Turns(Dataset):
    """Rows with turns."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and "turns" in first_row


class Failing(Dataset):
    """Can't look at a file."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return bool(first_row["rows"])


class Anything(Dataset):
    """Knows every file."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return True


def row(name: str, value: str = "no_such_module:Format", *aliases: str, **capabilities: Any) -> Descriptor:
    """A format; *value*: one of the classes above, or a ``module:Class`` that can't be imported."""
    value = value if ":" in value else f"{__name__}:{value}"
    return Descriptor("datasets", name, value, "acme", "1.0", aliases=aliases, capabilities={"reads": True, **capabilities})


FORMATS = [row("trace", "Traces", trace=True), row("turns", "Turns", "talks", keys=["turns"])]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tests' directory, with a trace."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.jsonl").write_text('{"timestamp": 0, "text": "a"}\n{"timestamp": 5, "text": "b"}\n')
    return tmp_path


def seen(name: str, *more: Descriptor) -> Recognition:
    """What is seen of the file *name* in the directory; *more*: formats beside those above."""
    formats = sorted([*FORMATS, *more], key=lambda each: each.name)
    return FileRecognition().aiperf_recognise_file(Path(name), formats, "--custom-dataset-type")


def refusal(name: str, *more: Descriptor) -> str:
    """The refusal of a file, with its hints."""
    found = seen(name, *more)
    assert not found.format
    return "\n".join((found.refusal, *found.hints))


def row_at_head(path: Path) -> object:
    return FileRecognition().aiperf_recognise_file(path, None, "").row


class Elsewhere:
    """Knows files of another kind."""

    @hookimpl
    def aiperf_recognise_file(self, path: Path) -> Recognition | None:
        return Recognition(format="far") if path.suffix == ".far" else None


def test_another_package_is_asked_first() -> None:
    hooks = Hooks()
    for name, plugin in (("elsewhere", Elsewhere), ("recognition", FileRecognition)):
        hooks.register(PluginRef("hooks", name, "", "acme", "1.0"), plugin)
    formats = [hooks.call("aiperf_recognise_file", path=Path(name), formats=FORMATS, option="-f").format
               for name in ("x.far", "trace.jsonl")]  # fmt: skip
    assert formats == ["far", "trace"]


def test_of_a_named_format_the_first_row_alone_is_told() -> None:
    found = FileRecognition().aiperf_recognise_file(Path("trace.jsonl"), None, "--custom-dataset-type")
    assert found == Recognition({"timestamp": 0, "text": "a"})


def test_a_row_may_say_itself_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "both.jsonl").write_text('{"type": "turns", "timestamp": 1, "turns": []}\n')
    found = seen("both.jsonl")
    assert (found.format, found.remark) == ("turns", "both.jsonl is read as turns: its first row says so")
    (tmp_path / "both.jsonl").write_text('{"type": "Talks", "timestamp": 1}\n')
    assert seen("both.jsonl").format == "turns", "its alias"
    assert seen("both.jsonl", row("others", "Turns", "talks")).format == "trace", "whose alias isn't known"


def test_a_file_of_several_or_no_formats_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "both.jsonl").write_text('{"timestamp": 1, "turns": []}\n')
    timed = row("timed", "no_such_module:Format", keys=["timestamp"])
    said = refusal("both.jsonl", timed)
    assert "could be timed and turns" in said
    assert "--custom-dataset-type" in said


@pytest.mark.parametrize("text", ['{"a": \n', "Timestamp,Tokens\n1,2\n", "<html>", "hello"])
def test_a_file_of_json_lines_that_has_none_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "none.jsonl").write_text(text)
    sentence, hint = refusal("none.jsonl").split("\n")
    assert sentence.startswith("none.jsonl:1: no JSON: ") and hint == "write one JSON object per line"


@pytest.mark.parametrize(("text", "words"), [
    ('{"question": "?"}\n', "its first row has question"), ("\n \n", "it has no rows"),
])  # fmt: skip
def test_a_file_that_no_format_knows_is_refused_with_what_each_wants(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "none.jsonl").write_text(text)
    said = refusal("none.jsonl")
    assert words in said
    assert "turns: rows with turns" in said
    assert "--custom-dataset-type" in said


def test_a_directory_that_no_format_knows_is_called_one(tmp_path: Path) -> None:
    said = refusal(".")
    assert "it is a directory" in said


def test_a_format_is_imported_only_when_its_manifest_keys_match(tmp_path: Path) -> None:
    elsewhere = row("elsewhere", "no_such_module:Format", keys=["elsewhere"])
    (tmp_path / "chats.jsonl").write_text('{"turns": [{"text": "a"}]}\n')
    assert seen("chats.jsonl", elsewhere).format == "turns"


@pytest.mark.parametrize(("name", "text", "known"), [
    ("x.table", "a;b", "tables"), ("x.table", '{"turns": [{"text": "a"}]}', None), ("x.tables", "a;b", None),
    ("pool/b.jsonl", '{"color": "red"}', "pools"), ("pool/deep/a.jsonl", '{"color": "red"}', "pools"),
    ("pool/b.jsonl", '{"turns": [{"text": "a"}]}', None), ("pool/b.txt", '{"color": "red"}', None),
])  # fmt: skip
def test_a_format_may_say_how_names_of_its_files_end(tmp_path: Path, name: str, text: str, known: str | None) -> None:
    tables = row("tables", "Anything", endings=[".table"])
    pools = row("pools", "Anything", endings=["/"], keys=["color"])
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    given = name.partition("/")[0]
    if known is not None:
        assert seen(given, tables, pools).format == known
        return
    said = refusal(given, tables, pools)
    if "turns" in text and "/" not in name:
        assert "could be tables and turns" in said
    else:
        assert "tables: a .table file" in said
        assert "pools: a directory of rows with color" in said


def test_a_format_failing_detection_is_named_and_others_are_asked() -> None:
    found = seen("trace.jsonl", row("failing", "Failing"))
    assert (found.format, found.remark) == ("trace", "trace.jsonl is read as trace: that format knows it")
    (warning,) = found.warnings
    assert "datasets:failing of acme 1.0 can't say whether it knows trace.jsonl: KeyError: 'rows'" in warning


def test_the_longest_list_of_keys_decides_without_importing_others(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"turns": [{"role": "user"}], "id": 3, "note": null}\n')
    short = row("short", "gone:Format", keys=[["turns", "!turns.role"], ["note", "id", "turns"]])
    long = row("long", "Anything", keys=[["turns.role", "id"]])
    found = seen("x.jsonl", short, long)
    assert (found.format, found.remark) == ("long", "x.jsonl is read as long: its first row has turns.role and id")


def test_near_misses_are_named_first(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"chat_ids": 1, "length": 5, "end": 1}\n')
    chats = row("chats", keys=[["chat_id", "length", "start", "!end"]])
    said = refusal("x.jsonl", chats)
    assert "nearly chats: chat_id is missing (did you mean it by 'chat_ids'?), start is missing and end must not be" in said


@pytest.mark.parametrize(("text", "row"), [
    ('{\n "data": [\n  {"a": "b\\"]", "rows": [{"c": "cut o', {"data": [{"a": 'b"]', "rows": [{"c": ""}]}]}),
    ('{"a": [1, "cut o', {"a": [1]}), ('{"a": 1, "cut o', {"a": 1}),
    ('{"a": {"b": 1}} {"a": 2}', {"a": {"b": 1}}), ('[{"a": 1}]', None), ("{]", {}), ("", None), ("plain", None),
])  # fmt: skip
def test_the_head_of_json_over_several_lines_has_a_row(tmp_path: Path, text: str, row: object) -> None:
    (tmp_path / "x.json").write_text(text)
    assert row_at_head(tmp_path / "x.json") == row
    (tmp_path / "x.json").write_text('{"data": [' + '{"a": "' + "x" * 200_000 + '"}]}')
    assert row_at_head(tmp_path / "x.json") == {"data": [{"a": "x" * 200_000}]}, "a whole line"
    (tmp_path / "x.json").write_text('{"a": 1, "b": "' + "x" * 5_000_000)
    assert row_at_head(tmp_path / "x.json") == {"a": 1, "b": ""}
