"""Files that take longer to read than a person waits: the load begins meanwhile, and a bad row behind its begin ends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program

ROWS, BAD = 200_000, 30_000
"""How many a file has, and where the bad one is: behind what is made in the first moment, and long before the end."""
TEXT = " ".join(f"word{number}" for number in range(30))


class File(NamedTuple):
    """line: the line of a row's number.  bad: one that stands in for it, and *said* of it.  words: of the command line."""

    name: str
    line: Callable[[int], str]
    bad: str
    said: str
    words: str
    head: str = ""


def in_session(number: int, fields: str) -> str:
    return f'{{"session_id": "s{number // 2}", {fields}}}'


FILES = {
    "sessions": File(
        "rows.jsonl", lambda number: in_session(number, f'"text": "{TEXT}"'), in_session(BAD, '"text": ""'),
        "the row has none of text, image, audio and video", "--concurrency 2 --benchmark-duration 60",
    ),
    "a table": File(
        "rows.csv", lambda number: f"{TEXT},3", "one two,-3", "output_length is -3",
        "--concurrency 2 --benchmark-duration 60", head="text,output_length\n",
    ),
    "the times of sessions": File(
        "trace.jsonl", lambda number: in_session(number, f'"timestamp": {number}, "text_input": "{TEXT}", "output_length": 2'),
        in_session(BAD, f'"timestamp": {BAD}, "text_input": "one", "output_length": 0'), "output_length is 0",
        "--fixed-schedule",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_requests_are_sent_before_a_bad_row_is_read(name: str, tmp_path: Path, simulator: Simulator) -> None:
    file = FILES[name]
    lines = [file.bad if number == BAD else file.line(number) for number in range(ROWS)]
    (tmp_path / file.name).write_text(file.head + "\n".join(lines) + "\n")
    command = ["profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "chat", "--tokenizer", "builtin",
               "--ui", "none", "--input-file", file.name, *file.words.split()]  # fmt: skip
    done = Program(tmp_path)(*command)
    assert done.code == 1
    assert f"not whole: --input-file: {tmp_path / file.name}:{BAD + 1 + bool(file.head)}: {file.said}" in done.last_words
    assert simulator.truth()["summary"]["requests"] > 0
    assert done.json()["request_count"]["avg"] > 0
