"""BIG-Bench Hard: how its rows are asked."""

from __future__ import annotations

from pathlib import Path

from aiperf_benchmarks.contract import TEXT, opened, write
from aiperf_dataset_bigbench.contract import BigbenchContract, sample
from aiperf_dataset_bigbench.dataset import SUBTASKS, Bigbench, texts


class TestBigbenchKeepsTheContract(BigbenchContract):
    pass


def test_examples_are_those_of_the_subtask(tmp_path: Path) -> None:
    path = write(tmp_path / "b.jsonl", sample(1))
    (chat,), (text,) = opened(Bigbench, "bigbench", path), opened(Bigbench, "bigbench", path, can=TEXT)
    lead = "Task description: Evaluate the result of a random Boolean expression.\n\n"
    assert len(chat.opening) == 6 and chat.opening[0].text == lead + "Q: not ( ( not not True ) ) is\nA:"
    assert chat.opening[1].text.startswith("Let's think step by step.\nRemember that (i)")
    closing = "\n\nOutput 'True' or 'False'. Full answer not needed."
    assert chat.turns[0].text == f"Q: not ( 0 ) is\nA: {closing}"
    pairs = [f"{chat.opening[at].text} {chat.opening[at + 1].text}" for at in (0, 2, 4)]
    assert text.turns[0].text == "\n\n".join((*pairs, chat.turns[0].text))
    assert (chat.turns[0].expected, chat.turns[0].max_tokens) == ("False", 1024)


def test_without_reasoning_examples_have_their_answers(tmp_path: Path) -> None:
    (chat,) = opened(Bigbench, "bigbench", write(tmp_path / "b.jsonl", sample(1)), cot=False, n_shots=1)
    assert [message.text for message in chat.opening[1:]] == ["False"]


def test_without_examples_the_task_is_described(tmp_path: Path) -> None:
    (chat,) = opened(Bigbench, "bigbench", write(tmp_path / "b.jsonl", sample(1)), n_shots=0)
    assert chat.opening == () and chat.turns[0].text.startswith("Task description: Evaluate the result of a random Boolean")


def test_every_subtask_has_texts_and_three_examples() -> None:
    assert sorted(texts()) == sorted(SUBTASKS) and len(SUBTASKS) == 27
    for cot in (True, False):
        sections = {task: [each for each in said.sections(cot) if each.startswith("Q: ")] for task, said in texts().items()}
        assert {task: len(each) for task, each in sections.items()} == dict.fromkeys(texts(), 3)
        assert all("\nA: " in example for each in sections.values() for example in each)


def test_a_question_that_is_an_example_has_the_others(tmp_path: Path) -> None:
    row = {"input": "True and False and not True and True is", "target": "False", "task": "boolean_expressions"}
    (chat,) = opened(Bigbench, "bigbench", write(tmp_path / "b.jsonl", [row]))
    assert len(chat.opening) == 4 and all(row["input"] not in message.text for message in chat.opening)
