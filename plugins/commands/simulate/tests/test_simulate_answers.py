"""Answers to known questions: which question a prompt has, what is said, and how often it is right."""

from __future__ import annotations

import http.client
import json
import math
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiperf.sdk.errors import ConfigErrors
from aiperf_command_simulate.known_answers import FORMS, KnownAnswer, KnownAnswers, formed
from aiperf_command_simulate.options import SimulateOptions
from aiperf_command_simulate.scenario import scenario
from aiperf_command_simulate.testing import Simulator, running

SUMS = [KnownAnswer(f"What is {n} + {n}?", str(2 * n)) for n in range(400)]


def written(folder: Path, *rows: dict[str, Any] | str) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize(("prompt", "place"), [
    ("2 + 2?", 0), ("What is 2 + 2?", 1), ("What is 2 + 2? 4\n2 + 2?", 0), ("user\nName it\u00e9\n", 2), ("2 + 3?", None),
    ("", None),
    ("Question: What is 2 + 2?\nAnswer: 4\n\nQuestion: Name it\u00e9\nAnswer:", 2),
    ("Name it\u00e9\nA. What is 2 + 2?x", 1),
])  # fmt: skip
def test_the_question_that_ends_last_counts(prompt: str, place: int | None) -> None:
    known = [KnownAnswer("2 + 2?", "4"), KnownAnswer(" What is 2 + 2? ", "4"), KnownAnswer("Name it\u00e9", "x")]
    assert KnownAnswers(known, 1, "letter", 0).place_of(prompt.encode()) == place


def test_questions_that_begin_alike_are_told_apart() -> None:
    stem = "A question whose first words stand in many others: what is "
    answers = KnownAnswers([KnownAnswer(f"{stem}{n}?", "x") for n in range(50)], 1, "letter", 0)
    assert [answers.place_of(f"{stem}{n}?\nAnswer:".encode()) for n in range(50)] == [*range(50)]


@pytest.mark.parametrize("share", [0.05, 0.5, 0.7, 1.0])
def test_the_share_of_right_answers_is_the_given_one(share: float) -> None:
    answers = KnownAnswers(SUMS, share, "letter", 7)
    told = [answers.told(place, 0) for place in range(len(SUMS))]
    right = sum(each.right for each in told)
    assert abs(right / len(SUMS) - share) <= 4 * math.sqrt(share * (1 - share) / len(SUMS))
    assert [each.text == SUMS[place].answer for place, each in enumerate(told)] == [each.right for each in told]


def test_right_depends_on_seed_line_and_repeat_and_not_on_order() -> None:
    def drawn(places: list[int], seed: int = 1) -> dict[int, list[bool]]:
        answers, found = KnownAnswers(SUMS, 0.5, "letter", seed), dict[int, list[bool]]()
        for place in places:
            told = answers.told(place, 0)
            found.setdefault(place, []).append(told.right)
            answers.noted([told])
        return found

    order = [*range(60)] * 2
    assert drawn(order) == drawn(order[::-1]) == drawn(sorted(order))
    assert drawn(order) != drawn(order, seed=2)
    assert len({tuple(each) for each in drawn(order).values()}) == 4, "a repeat draws anew"


@pytest.mark.parametrize(("form", "answer", "text"), [
    ("letter", "B", "B"), ("sentence", "B", "The answer is (B)."), ("sentence", "12", "The answer is 12."),
    ("box", "42", "So the result is \\boxed{42}"), ("hashes", "42", "That makes 42.\n#### 42"),
    ("code", "print(1)\n", "Here is the program:\n```python\nprint(1)\n```"),
])  # fmt: skip
def test_an_answer_stands_in_its_form(form: str, answer: str, text: str) -> None:
    assert form in FORMS and formed(answer, form) == text


@pytest.mark.parametrize(("known", "allowed"), [
    (KnownAnswer("?", "B"), set("ACD")), (KnownAnswer("?", "F"), set("ABCDEGHIJ")),
    (KnownAnswer("?", "x", ["y", "z"]), set("yz")), (KnownAnswer("?", 0.5), {str(0.5 + n) for n in range(1, 10)}),
    (KnownAnswer("?", "1,000"), {str(1000 + n) for n in range(1, 10)}),
    (KnownAnswer("?", "piano"), {"none of that"}), (KnownAnswer("?", "none of that"), {"all of that"}),
    (KnownAnswer("?", "print(1)", form="code"), {"Here is the program:\n```python\nraise SystemExit('this is wrong')\n```"}),
])  # fmt: skip
def test_a_wrong_answer_is_of_the_same_kind(known: KnownAnswer, allowed: set[str]) -> None:
    said = set()
    answers = KnownAnswers([known], 0, "letter", 3)
    for _ in range(200):
        told = answers.told(0, 0)
        assert (told.line, told.right) == (1, False)
        said.add(told.text)
        answers.noted([told])
    assert said == allowed


GOOD = {"question": "q", "answer": "a"}


@pytest.mark.parametrize(("rows", "words"), [
    ((), "has no lines"), (("nothing",), "line 1 can't be read"), ((GOOD, "[]"), "line 2 can't be read"),
    ((GOOD, ""), "line 2 is empty"),
    (({"question": "q"},), "missing required field `answer`"), ((GOOD | {"right": 1},), "unknown field `right`"),
    ((GOOD | {"question": "  "},), "line 1 has an empty question"), ((GOOD | {"answer": ""},), "line 1 has an empty answer"),
    ((GOOD, GOOD | {"question": " q"}), "line 2 has the question of line 1"),
    ((GOOD | {"form": "song"},), "line 1 has the form 'song'; there are letter, sentence, box, hashes, code"),
    ((GOOD | {"wrong": ["a "]},), "line 1 has a wrong answer that is empty, or the right one"),
    (('{"question":"\\ud800","answer":"a"}',), "line 1 can't be read"),
])  # fmt: skip
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, rows: tuple[Any, ...], words: str) -> None:
    path = written(tmp_path, *rows)
    with pytest.raises(ConfigErrors) as refused:
        scenario(SimulateOptions(answers=path))
    (line, hint) = refused.value.errors[0].lines()
    assert line.startswith(f"--answers {path}") and words in line and "question, answer" in hint


def test_a_file_that_is_not_there_and_options_without_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match="can't be read: No such file"):
        scenario(SimulateOptions(answers=tmp_path / "gone"))
    with pytest.raises(ConfigErrors) as refused:
        scenario(SimulateOptions(right=0.5, answer_form="box"))
    said = [error.lines()[0] for error in refused.value.errors]
    assert said == [f"{flag} needs --answers: without it nothing is known" for flag in ("--right", "--answer-form")]


def ask(simulator: Simulator, path: str, body: dict[str, Any], **headers: str) -> bytes:
    data = json.dumps({"model": "m", **body}).encode()
    request = urllib.request.Request(simulator.url + path, data, {"Content-Type": "application/json", **headers})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        found: bytes = answer.read()
        return found


def said(raw: bytes) -> tuple[str, str]:
    """Text and reason of an answer of any of the four APIs, streamed or whole."""
    events = [line[6:] for line in raw.splitlines() if line.startswith(b"data: {")] or [raw]
    text, reason = "", ""
    for event in map(json.loads, events):
        for choice in event.get("choices", ()):
            part = choice.get("delta") or choice.get("message") or choice
            text += part.get("content") or part.get("text") or ""
            reason = choice["finish_reason"] or reason
        if event.get("type") == "content_block_delta":
            text += event["delta"].get("text", "")
        if event.get("type") == "message":
            text += "".join(block["text"] for block in event["content"])
        if event.get("type") in ("message", "message_delta"):
            reason = (event.get("delta") or event)["stop_reason"]
        if event.get("type") == "response.output_text.delta":
            text += event["delta"]
        if event.get("object") == "response":
            text += "".join(part["text"] for item in event["output"] for part in item["content"])
        if "status" in event.get("response", event):
            reason = event.get("response", event)["status"]
    return text, reason


CHAT = [{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "4"}]
QUESTION = {"role": "user", "content": "Question: Which of them?\nA. one \"quoted\"\nAnswer:"}
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [*CHAT, QUESTION]},
    "/v1/completions": {"prompt": f"What is 2 + 2? 4\n{QUESTION['content']}", "max_tokens": 90},
    "/v1/messages": {"messages": [*CHAT, QUESTION], "max_tokens": 90},
    "/v1/responses": {"input": [*CHAT, QUESTION]},
}


def test_each_api_gives_the_answer_streamed_and_whole(tmp_path: Path) -> None:
    which = {"question": "Which of them?", "answer": 'the "first"\n  one', "form": "sentence"}
    path = written(tmp_path, {"question": "What is 2 + 2?", "answer": 4}, which)
    with running(answers=path, decode_ms=0, prefill_us_per_token=0, truth_bodies=True) as simulator:
        for api, body in ASKED.items():
            for stream in (True, False):
                text, reason = said(ask(simulator, api, {**body, "stream": stream}))
                assert text == 'The answer is the "first"\n  one.', api
                assert reason in ("stop", "end_turn", "completed"), api
        short = {**ASKED["/v1/completions"], "max_tokens": 3, "stream": True}
        assert said(ask(simulator, "/v1/completions", short)) == ("The answer is", "length")
        words, _ = said(ask(simulator, "/v1/completions", {"prompt": "Who?", "max_tokens": 5}))
        assert len(words.split()) == 5
        call = ask(simulator, "/v1/chat/completions", ASKED["/v1/chat/completions"], **{"X-Simulate": "call"})
        (made,) = json.loads(call)["choices"][0]["message"]["tool_calls"]
        assert json.loads(made["function"]["arguments"]) == {"text": 'The answer is the "first"\n  one.'}
        thought = ask(simulator, "/v1/chat/completions", ASKED["/v1/chat/completions"], **{"X-Simulate": "reasoning=4"})
        message = json.loads(thought)["choices"][0]["message"]
        assert len(message["reasoning_content"].split()) == 4 and message["content"].endswith("one.")
        truth = simulator.truth()
    assert truth["summary"]["answers"] == {"right": 11, "unknown": 1}
    told = [row["answers"] for row in truth["requests"]]
    assert told[0] == [{"line": 2, "right": True, "text": 'The answer is the "first"\n  one.'}]
    assert told[9] == [{"line": None, "right": False, "text": ""}]


def test_refused_requests_draw_nothing_and_cut_answers_do(tmp_path: Path) -> None:
    rows = [{"question": f"Sum {n}?", "answer": n} for n in range(30)]
    plain = KnownAnswers([KnownAnswer(row["question"], row["answer"]) for row in rows], 0.5, "letter", 5)  # type: ignore[arg-type]
    expected = [plain.told(n, 0).right for n in range(30)]
    options = {"decode_ms": 0, "prefill_us_per_token": 0, "seed": 5, "right": 0.5, "faults": ["fail=429@0.3", "cut=1@0.2"]}
    with running(answers=written(tmp_path, *rows), **options) as simulator:
        for n in range(30):
            while True:
                try:
                    ask(simulator, "/v1/completions", {"prompt": f"Sum {n}?", "stream": True})
                except urllib.error.HTTPError as error:
                    assert error.code == 429
                    continue
                except (OSError, http.client.HTTPException):
                    pass  # cut
                break
        rows_of = simulator.truth()["requests"]
    outcomes = Counter(row["outcome"] for row in rows_of)
    assert outcomes["refused"] and outcomes["cut"] and outcomes["completed"] + outcomes["cut"] == 30
    assert [row["answers"] for row in rows_of if row["outcome"] == "refused"] == [None] * outcomes["refused"]
    assert [row["answers"][0]["right"] for row in rows_of if row["answers"]] == expected
