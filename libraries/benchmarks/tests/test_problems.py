"""Problems of a benchmark: where they are found, which are asked, and what a wrong file or option is told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.contract import CHAT, TEXT, write
from aiperf_benchmarks.locations import Locations, told
from aiperf_benchmarks.options import BenchmarkOptions
from aiperf_benchmarks.problems import Problem, ProblemRow, drawn, identified
from aiperf_benchmarks.protocol import AskedProblem, Protocol

ROW = {"repository": "them/sums", "split": "test", "files": ["*/test-*", "*/dev-*"]}


class Sums(Benchmark):
    protocol = Protocol(
        columns=("sum", "total"), split="test", shot_splits=("dev", "validation"), task_column="size",
        tasks=("small", "large one"), subsets=True, shots=1, most_shots=3,
        cot=False, both=True, tokens=7, tokens_cot=70, stop=("\n",), system_prompt="Add.",
    )  # fmt: skip

    def content(self, row: ProblemRow) -> str:
        return row.text("sum")

    def expected(self, row: ProblemRow) -> str:
        return row.text("total")

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        pairs = tuple((self.content(shot), self.expected(shot)) for shot in shots)
        text = "".join(f"{question} {answer}\n" for question, answer in pairs) + self.content(row)
        return AskedProblem(text, self.content(row), pairs)


class Streamed(Sums):
    protocol = Protocol(columns=("sum", "total"), split="test", task_column="size", tokens=7, large=True)


def sums(count: int, size: str = "small", split: str = "test") -> list[dict[str, Any]]:
    return [{"sum": f"{n} + 1", "total": n + 1, "size": size, "split": split} for n in range(count)]


def opened(
    data: Path, *, kind: type[Benchmark] = Sums, can: Capabilities = CHAT, seed: int = 7, **options: Any
) -> list[Conversation]:  # fmt: skip
    context = DatasetContext(100, seed, True, None, can, None, "sums", ROW)
    return list(kind(BenchmarkOptions(data=data, **options), context))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [*sums(6), *sums(3, "large one"), *sums(3, split="dev"), *sums(2, "large one", "dev")]
    return write(tmp_path / "sums.jsonl", rows)


@pytest.mark.parametrize(("name", "split", "task"), [
    ("anatomy/test-00000-of-00001.parquet", "test", "anatomy"), ("anatomy_test.jsonl", "test", "anatomy"),
    ("test/anatomy.csv", "test", "anatomy"), ("data/validation-00000-of-00002.parquet", "validation", ""),
    ("high-school_physics.val.jsonl", "", "high_school_physics"), ("val.jsonl", "validation", ""), ("x.jsonl", "", ""),
    ("anatomy/dev/0000.parquet", "dev", "anatomy"), ("test4.jsonl", "", ""), ("all/test-0.parquet", "test", ""),
])  # fmt: skip
def test_names_of_files_tell_split_and_task(name: str, split: str, task: str) -> None:
    assert told(name, {"anatomy": "anatomy", "high_school_physics": "high_school_physics"}) == (split, task)


def test_a_problem_is_a_turn_behind_its_examples(file: Path) -> None:
    first, *others = opened(file, n_shots=2)
    assert first.system == "Add." and [message.text for message in first.opening] == ["1 + 1", "2", "2 + 1", "3"]
    (turn,) = first.turns
    assert (turn.text, turn.expected, turn.task, turn.max_tokens, turn.repeat) == ("0 + 1", "1", "small", 7, None)
    assert turn.settings == {"temperature": 0, "seed": 0, "stop": ["\n"]}
    assert len(others) == 8
    (text, *_) = opened(file, n_shots=2, can=TEXT)
    assert (text.system, text.opening, text.turns[0].text) == (None, (), "Add.\n\n1 + 1 2\n2 + 1 3\n0 + 1")


def test_the_question_is_never_among_its_examples(file: Path) -> None:
    for conversation in opened(file, n_shots=2, tasks=["small"]):
        examples = [message.text for message in conversation.opening[::2]]
        assert conversation.turns[0].text not in examples and len(examples) == 2


def test_reasoning_has_its_own_budget_and_no_stop(file: Path) -> None:
    (turn,) = opened(file, cot=True)[0].turns
    assert (turn.max_tokens, turn.settings) == (70, {"temperature": 0, "seed": 0})
    assert opened(file, osl=9)[0].turns[0].max_tokens == 9
    assert opened(file, system_prompt="")[0].system is None
    assert opened(file, system_prompt="Be brief.")[0].system == "Be brief."


def test_repeats_come_pass_after_pass_with_seeds_of_their_own(file: Path) -> None:
    found = opened(file, repeats=3)
    assert [one.id for one in found] == [one.id for one in found[:9]] * 3
    assert [one.turns[0].repeat for one in found] == [0] * 9 + [1] * 9 + [2] * 9
    assert [one.turns[0].settings["seed"] for one in found] == [0] * 9 + [1] * 9 + [2] * 9


def test_verbose_logs_a_line_for_each_problem(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "aiperf.datasets.benchmark")
    first, *_ = opened(file, verbose=True)
    assert len(caplog.messages) == 9 and caplog.messages[0] == f"{first.id}, task small: expects '1'"
    caplog.clear()
    opened(file)
    assert caplog.messages == []


def test_tasks_are_named_in_any_spelling(file: Path) -> None:
    assert {one.turns[0].task for one in opened(file, tasks=["Large-One"])} == {"large one"}
    assert len(opened(file, tasks=["all"])) == 9


def test_a_problem_keeps_its_identity_in_other_files(file: Path, tmp_path: Path) -> None:
    few = write(tmp_path / "few.jsonl", [*reversed(sums(6)), *sums(2, split="dev")])
    identities = {one.turns[0].text: one.id for one in opened(file, tasks=["small"])}
    assert {one.turns[0].text: one.id for one in opened(few)} == identities
    assert [*identified("b", [("b", "x"), ("t", "x"), ("t", "x")])][1:] == [
        ("b/t/2d711642b726", "t"), ("b/t/2d711642b726.2", "t"),
    ]  # fmt: skip


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 12, 99])
def test_a_limit_takes_evenly_from_all_tasks(limit: int) -> None:
    problems = [Problem(f"p{number}", "abc"[min(number // 4, 2)], number) for number in range(14)]
    taken = drawn(problems, limit, seed=1)
    assert taken == drawn(problems, limit, seed=1) and len(taken) == min(limit, 14)
    assert [one.number for one in taken] == sorted({one.number for one in taken})
    by_task = Counter(one.task for one in taken)
    sizes = {"a": 4, "b": 4, "c": 6}
    assert all(by_task[task] >= min(limit // 3, size) for task, size in sizes.items())
    if limit == 7:
        assert taken != drawn(problems, limit, seed=2)


def test_the_drawn_problems_do_not_depend_on_the_order() -> None:
    problems = [Problem(f"p{number}", "ab"[number % 2], number) for number in range(20)]
    turned = [Problem(one.identity, one.task, 19 - one.number) for one in reversed(problems)]
    assert {one.identity for one in drawn(problems, 5, 3)} == {one.identity for one in drawn(turned, 5, 3)}


def test_large_files_are_read_row_by_row(file: Path) -> None:
    whole, streamed = opened(file, n_shots=0, system_prompt=""), opened(file, kind=Streamed)
    assert [one.id for one in streamed] == [one.id for one in whole]
    some = opened(file, kind=Streamed, limit=3, repeats=2)
    assert [one.id for one in some] == [one.id for one in opened(file, limit=3)] * 2


@pytest.mark.parametrize(("folder", "names"), [
    ("plain", {"small/test-0.jsonl": sums(2), "small/dev-0.jsonl": sums(2, split="dev")}),
    ("tables", {"test/small.csv": sums(2), "dev/small.csv": sums(3, split="dev")}),
])  # fmt: skip
def test_folders_of_files_are_read_by_their_names(
    tmp_path: Path, folder: str, names: dict[str, list[dict[str, Any]]]
) -> None:
    for name, rows in names.items():
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("csv"):
            path.write_text("sum,total\n" + "".join(f"{row['sum']},{row['total']}\n" for row in rows))
        else:
            write(path, [{"sum": row["sum"], "total": row["total"]} for row in rows])
    found = opened(tmp_path / folder)
    assert [(one.turns[0].text, one.turns[0].task) for one in found] == [("0 + 1", "small"), ("1 + 1", "small")]
    assert [one.opening[0].text for one in found] == ["1 + 1", "0 + 1"]


def test_parquet_and_a_snapshot_of_the_hub_are_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for split, rows in (("test", sums(2)), ("dev", sums(2, split="dev"))):
        path = tmp_path / "datasets--them--sums" / "snapshots" / "abc" / "small" / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.Table.from_pylist(rows).drop_columns(["split", "size"]), path)
    assert [one.turns[0].text for one in opened(tmp_path / "datasets--them--sums")] == ["0 + 1", "1 + 1"]


@pytest.mark.parametrize(("options", "words", "hint"), [
    ({"tasks": ["smal"]}, "--accuracy-tasks: sums has no task 'smal'", "did you mean 'small'?"),
    ({"tasks": ["all", "small"]}, "--accuracy-tasks all,small: all stands alone", "drop all"),
    ({"n_shots": 4}, "--accuracy-n-shots 4: sums has at most 3 examples", "write 3"),
    ({"n_shots": 3}, "--accuracy-n-shots 3: the data of sums has 2 examples of large one", "write --accuracy-n-shots 2"),
])  # fmt: skip
def test_options_out_of_range_get_a_sentence(file: Path, options: dict[str, Any], words: str, hint: str) -> None:
    with pytest.raises(BadDataset) as caught:
        opened(file, **options)
    assert words in caught.value.message and any(hint in each for each in caught.value.hints)


@pytest.mark.parametrize(("options", "words"), [
    ({"n_shots": 1}, "--accuracy-n-shots 1: sums is asked without examples"),
    ({"cot": True}, "--accuracy-enable-cot has no use: the protocol of sums has one form alone"),
    ({"cot": False}, "--accuracy-no-enable-cot has no use"),
])  # fmt: skip
def test_forms_that_a_protocol_lacks_are_refused(file: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadDataset, match=words):
        opened(file, kind=Streamed, **options)


@pytest.mark.parametrize(("rows", "words", "hint"), [
    ([{"sum": "1 + 1", "size": "small"}], "sums.jsonl:1 has no column total", "sums needs sum, total"),
    ([{"sum": "1 + 1", "total": 2}], "sums.jsonl:1 has no task: neither its column size nor the name of its file", "add size"),
    ([{"sum": "1 + 1", "total": [2], "size": "small"}], "sums.jsonl:1: total is [2]; it must be a text", ""),
    ([{"sum": "", "total": 2, "size": "small"}], "sums.jsonl:1: sum is ''; it must be a text", ""),
    (sums(2, split="dev"), "the benchmark sums has no problem in its data", "aiperf datasets fetch sums"),
    (sums(2), "sums with 1 examples needs rows of the split dev or validation", "write --accuracy-n-shots 0"),
])  # fmt: skip
def test_a_wrong_file_is_named_with_its_line(tmp_path: Path, rows: list[dict[str, Any]], words: str, hint: str) -> None:
    path = write(tmp_path / "sums.jsonl", rows)
    with pytest.raises(BadDataset) as caught:
        opened(path)
    assert words in caught.value.message and hint in " ".join(caught.value.hints)


@pytest.mark.parametrize(("name", "content", "words"), [
    ("none", None, "--accuracy-data: there is no file"), ("e.jsonl", "", "is empty"), ("x.jsonl", "{", "x.jsonl:1: no JSON"),
    ("folder", {}, "has no files of the benchmark 'sums'"),
])  # fmt: skip
def test_data_that_is_not_there_says_what_is_expected(tmp_path: Path, name: str, content: Any, words: str) -> None:
    path = tmp_path / name
    if isinstance(content, dict):
        path.mkdir()
    elif content is not None:
        path.write_text(content)
    with pytest.raises(BadDataset) as caught:
        opened(path)
    assert words in caught.value.message
    if "JSON" not in words:
        assert any("aiperf datasets fetch sums" in hint for hint in caught.value.hints)


def test_without_a_network_the_command_to_fetch_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadDataset) as caught:
        Locations("sums", ROW, ()).of_hub(None, ("test",), ())
    assert caught.value.message.startswith("the benchmark sums: the cache") and "HF_HUB_OFFLINE" in caught.value.message
    said = " ".join(caught.value.hints)
    assert "aiperf datasets fetch sums" in said and "*/test-*" in said and "--accuracy-data PATH" in said
    assert "--input-file" not in said


def test_choices_are_letters_or_indexes() -> None:
    row = ProblemRow("f:1", {"a": 2, "b": "C", "c": "2", "d": json.dumps(["x", "y"]), "e": 4, "f": True})
    assert [row.choice(column, 4) for column in "abc"] == [2, 2, 2]
    assert row.texts("d", 2) == ["x", "y"]
    for column, count in (("e", 4), ("f", 4), ("b", 2)):
        with pytest.raises(BadDataset, match="must be an index, 0 to"):
            row.choice(column, count)
    with pytest.raises(BadDataset, match="must be a list of 3 texts"):
        row.texts("d", 3)
