"""Input files that are wrong, or strange and right: one sentence with the place, or the rows, without a run."""

from __future__ import annotations

import base64
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from aiperf import AiperfError
from aiperf.registry.registry import Registry
from aiperf_command_validate.dataset import Read, read
from program import Program

TRACE = [{"timestamp": at, "input_length": 20, "output_length": 3} for at in (0, 10, 20)]
CUT = gzip.compress(b"".join(b'{"text": "%d"}\n' % (number * 7919 % 10_007) for number in range(20_000)))[:-40]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover()


def lines(*rows: Any) -> bytes:
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)


def parquet(**columns: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(columns), path)

    return write


def made(path: Path, content: bytes | Callable[[Path], None]) -> Path:
    content(path) if callable(content) else path.write_bytes(content)
    return path


def grown(head: bytes, piece: bytes, times: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with gzip.open(path, "wb") as file:
            file.write(head)
            for _ in range(times):
                file.write(piece)

    return write


WRONG: dict[str, tuple[str, bytes | Callable[[Path], None], str]] = {
    "an empty file": ("x.jsonl", b"", "x.jsonl is empty"),
    "blank lines alone": ("x.jsonl", b"\n \n\t\n", "it has no rows"),
    "a byte order mark alone": ("x.jsonl", b"\xef\xbb\xbf", "it has no rows"),
    "a directory without files": ("x", Path.mkdir, "it is a directory"),
    "rows of two formats": ("x.jsonl", lines({"text": "a"}, TRACE[0]), "x.jsonl:2: the row has none of text, image"),
    "a trace with a row of a chat": (
        "x.jsonl", lines(TRACE[0], {"turns": [{"text": "a"}]}), "x.jsonl:2: a row has exactly one of"),
    "a negative time": ("x.jsonl", lines(TRACE[0], {**TRACE[1], "timestamp": -5}), "x.jsonl:2: timestamp is -5; it must be"),
    "a time that is no number": ("x.jsonl", b'{"text": "a", "delay": NaN}\n', "x.jsonl:1: no JSON"),
    "a negative time of chats": (
        "x.jsonl", lines({"chat_id": 1, "timestamp": -1, "input_length": 3, "output_length": 2}),
        "x.jsonl:1: timestamp is -1; it"),
    "a long line that ends early": (
        "x.jsonl", b'{"text": "' + b"a" * 100_000_000, "x.jsonl:1: the line has more than 16,777,216 bytes"),
    "half a character": (
        "x.jsonl", b'{"text": "a"}\n{"text": "\\ud800!"}\n',
        "x.jsonl:2: no JSON: a lone surrogate (\\ud800 to \\udfff) is half a character"),
    "a line that ends early": ("x.jsonl", b'{"text": "a"}\n{"text": "b', "x.jsonl:2: no JSON: Input data was truncated"),
    "UTF-16": ("x.jsonl", '{"text": "a"}\n'.encode("utf-16"), "x.jsonl:1: no JSON: it is not UTF-8, but looks like UTF-16"),
    "gzip without its name": ("x.jsonl", gzip.compress(lines({"text": "a"})), "x.jsonl:1: no JSON: its content is gzip, which"),
    "brackets": (
        "x.jsonl", b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "its arrays or objects are nested too deep"),
    "a line of brackets alone": ("x.jsonl", b"[" * 65_536, "its arrays or objects are nested too deep"),
    "a gzip file that grows": (
        "x.jsonl.gz", grown(lines({"text": "a"}), lines({"text": "a" * 1000}) * 1000, 200),
        "unpacks to more than 200 times its size and 64 MiB"),
    "a table of one value": ("x.csv", b"text\n" + b"a" * 20_000_000, "x.csv:2: the line has more than 16,777,216 bytes"),
    "bytes that are no UTF-8": ("x.jsonl", b'{"text": "good"}\n{"text": "\xff\xfe"}\n', "x.jsonl:2: no JSON"),
    "more hashes than tokens": (
        "x.jsonl", lines({"input_length": 20, "hash_ids": [1, 2]}),
        "x.jsonl:1: input_length 20 is too short for 2 hash_ids of 512"),
    "a hash that is no number": (
        "x.jsonl", lines({"input_length": 20, "hash_ids": ["a"]}), "x.jsonl:1: hash_ids must be a list"),
    "a gzip file cut off": ("x.jsonl.gz", CUT, "x.jsonl.gz can't be read after line"),
    "a name that promises gzip": (
        "x.jsonl.gz", b'{"text": "a"}\n', "x.jsonl.gz can't be read: its name says gzip, and its content is none"),
    "a column of texts for lengths": (
        "x.parquet", parquet(input_length=["20"], timestamp=[0]), "x.parquet:1: input_length is '20'"),
    "a column of instants for times": (
        "x.parquet", parquet(input_length=[20], timestamp=[datetime(2025, 1, 1, tzinfo=UTC)]),
        "it must be a number of milliseconds, 0 or more"),
    "a column of fractions for lengths": ("x.parquet", parquet(input_length=[20.5]), "x.parquet:1: input_length is 20.5"),
    "a column of bytes for texts": ("x.parquet", parquet(text=[b"a"]), "x.parquet:1: text is b'a'"),
    "a Parquet file of zeros": ("x.parquet", b"\0" * 500, "x.parquet can't be read"),
    "a CSV file with a quote left open": ("x.csv", b'text,output_length\n"a,5\n', "x.csv can't be read"),
    "a CSV row with too many values": ("x.csv", b"text,output_length\na,5\nb,6,7\n", "x.csv:3: 3 values for 2 columns"),
    "a CSV cell that is no number": ("x.csv", b"text,output_length\na,many\n", "x.csv:2: output_length is 'many'"),
    "a data URI that is no base64": (
        "x.jsonl", lines({"image": "data:image/png;base64,!!!"}), "x.jsonl:1: the base64 of the image"),
    "a data URI without base64": (
        "x.jsonl", lines({"image": "data:image/png,abc"}), "x.jsonl:1: the image 'data:image/png,abc' has no"),
    "a medium outside the folder": (
        "x.jsonl", lines({"image": "/etc/hostname"}), "the image file '/etc/hostname' is outside the folder"),
    "a medium above the folder": (
        "x.jsonl", lines({"audio": "../outside.wav"}), "the audio file '../outside.wav' is outside the folder"),
    "a medium that is not there": ("x.jsonl", lines({"video": "gone.mp4"}), "x.jsonl:1: there is no video file 'gone.mp4'"),
    "a session of inputs.json twice": (
        "x.json", json.dumps({"data": [{"session_id": "s", "payloads": [{"a": 1}]}] * 2}).encode(),
        "data[1]: the session id 's' occurs twice"),
    "a chat id twice": (
        "x.jsonl", lines(*[{"chat_id": 1, "timestamp": 1, "input_length": 3, "output_length": 2}] * 2),
        "x.jsonl:2: chat_id is 1"),
    "a session with rows of two kinds": (
        "x.jsonl", lines({"session_id": "s", **TRACE[0]}, {"session_id": "s", "payload": {"a": 1}}),
        "mixes input_length and payload"),
}  # fmt: skip
RIGHT: dict[str, tuple[str, bytes | Callable[[Path], None], tuple[str, int, int]]] = {
    "a byte order mark": ("x.jsonl", b'\xef\xbb\xbf{"text": "a"}\n', ("single_turn", 1, 1)),
    "blank lines between": ("x.jsonl", b'\n{"text": "a"}\n\n  \n{"text": "b"}', ("single_turn", 2, 2)),
    "line ends of Windows": ("x.jsonl", b'{"text": "a"}\r\n{"text": "b"}\r\n', ("single_turn", 2, 2)),
    "rows out of order": ("x.jsonl", lines(*reversed(TRACE)), ("mooncake_trace", 3, 3)),
    "a line of 15 MB": ("x.jsonl", lines({"text": "a" * 15_000_000}, {"text": "b"}), ("single_turn", 2, 2)),
    "CSV with quotes over lines": ("x.csv", b'text,output_length\n"a\nb ""c""",5\nd,\n', ("single_turn", 2, 2)),
    "CSV with semicolons": ("x.csv", b'text;output_length\n"a;b";5\n"c, d";6\n', ("single_turn", 2, 2)),
    "CSV with lists": ("x.csv", b'input_length,hash_ids\n20,[1]\n"30","[1]"\n', ("mooncake_trace", 2, 2)),
    "compressed CSV": ("x.csv.gz", gzip.compress(b"text\na\n"), ("single_turn", 1, 1)),
    "Parquet with lists and nulls": ("x.parquet", parquet(
        turns=[[{"text": "a", "delay": None}, {"text": "b", "delay": 5}], [{"text": "c",
        "delay": None}]], session_id=["s", None],
    ), ("multi_turn", 2, 3)),
    "whole fractions": ("x.parquet", parquet(input_length=[20.0, 30.0], timestamp=[0, 1]), ("mooncake_trace", 2, 2)),
    "bodies in Parquet": ("x.parquet", parquet(
        messages=[[{"role": "user", "content": "a"}]] * 2, model=["m", "n"], max_tokens=[5, None],
    ), ("raw_payload", 2, 2)),
    "lengths in Parquet": ("x.parquet", parquet(
        Timestamp=[0.5, 1.0, None], **{"Request tokens": [5, 6, 7], "Response tokens": [1, 2, 3]}
    ), ("burst_gpt_trace", 2, 2)),
    "a session id in two rows": ("x.jsonl", lines(*[{"session_id": "s", "turns": [{"text": "a"}]}] * 2), ("multi_turn", 1, 2)),
    "many turns in one session": (
        "x.jsonl", lines({"session_id": "s", "turns": [{"text": "a"}] * 50_000}), ("multi_turn", 1, 50_000)),
    "a data URI": (
        "x.jsonl", lines({"image": "data:image/png;base64," + base64.b64encode(b"x").decode()}), ("single_turn", 1, 1)),
}  # fmt: skip


def said(path: Path, registry: Registry) -> Read | str:
    try:
        done = read(path, "dataset", registry)
    except AiperfError as error:
        return "\n".join(error.lines())
    return done if done.fault is None else done.fault


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_is_refused_with_its_place(what: str, tmp_path: Path, registry: Registry) -> None:
    name, content, words = WRONG[what]
    (tmp_path / "outside.wav").write_bytes(b"sound")
    (tmp_path / "in").mkdir()
    answer = said(made(tmp_path / "in" / name, content), registry)
    assert isinstance(answer, str)
    assert words in answer
    sentence = answer.partition("\n")[0].replace(str(tmp_path), "")
    assert len(sentence) < 250, "a sentence, not the row"


@pytest.mark.parametrize("what", RIGHT)
def test_a_strange_file_is_read(what: str, tmp_path: Path, registry: Registry) -> None:
    name, content, expected = RIGHT[what]
    answer = said(made(tmp_path / name, content), registry)
    assert isinstance(answer, Read), answer
    assert (answer.format, answer.conversations, answer.turns) == expected


def test_a_pipe_is_read_once_and_kept(registry: Registry, tmp_path: Path) -> None:
    pipe = tmp_path / "rows"
    os.mkfifo(pipe)
    Thread(target=pipe.write_bytes, args=(lines({"text": "a"}, {"text": "b"}),), daemon=True).start()
    found = read(pipe, "dataset", registry)
    assert (found.valid, found.format, found.conversations) == (True, "single_turn", 2)


def test_a_pipe_that_gives_nothing_is_said(registry: Registry) -> None:
    with pytest.raises(AiperfError, match=r"/dev/null is a pipe that gave nothing"):
        read(Path("/dev/null"), "dataset", registry)


def test_a_pipe_that_gives_too_much_is_left(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_DATASET_MAX_PIPE_BYTES", "1000000")
    with pytest.raises(AiperfError, match=r"/dev/zero gave more than 1,000,000 bytes"):
        read(Path("/dev/zero"), "dataset", registry)


def test_a_file_url_is_its_file(registry: Registry, tmp_path: Path) -> None:
    path = made(tmp_path / "a b.jsonl", lines({"text": "a"}))
    assert read(Path(path.as_uri()), "dataset", registry).conversations == 1


MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stderr=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss)
print(done.stderr)
"""
"""A parent of its own: a child begins with the memory of the process that starts it."""


HARMFUL: dict[str, bytes | Callable[[Path], None]] = {
    "brackets.jsonl": b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "open.jsonl": b"[" * 65_536,
    "prompt.jsonl": b'{"text": "' + b"word " * 10_000_000 + b'"}\n',
    "line.jsonl.gz": grown(b'{"text": "', b"a" * 1_000_000, 400),
    "blank.jsonl.gz": grown(b'{"text": "a"}\n', b"\n" * 1_000_000, 100),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_a_file_made_to_harm_costs_little(name: str, aiperf: Program) -> None:
    made(aiperf.folder / name, HARMFUL[name])
    command = [*aiperf.program, "profile", "--model", "m", "--url", "127.0.0.1:1", "--tokenizer", "builtin", "--ui", "none",
               "--input-file", name]  # fmt: skip
    words = [sys.executable, "-c", MEASURED, *command]
    done = subprocess.run(words, cwd=aiperf.folder, capture_output=True, text=True, check=True)
    numbers, _, said = done.stdout.partition("\n")
    code, processor_s, memory_kb = map(float, numbers.split())
    assert code == 1, said
    assert f"{name}:" in said
    assert "Traceback" not in said
    assert processor_s < 5
    assert memory_kb < 300_000, "of the largest of its processes"


@pytest.mark.parametrize("words", [["validate", "dataset", "rows"], ["profile", "--model", "m", "--input-file", "rows"]])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_waits_for_a_pipe_can_be_ended(words: list[str], number: int, aiperf: Program) -> None:
    os.mkfifo(aiperf.folder / "rows")
    (temporary := aiperf.folder / "tmp").mkdir()
    running = subprocess.Popen(
        [*aiperf.program, *words], cwd=aiperf.folder, stderr=subprocess.PIPE, text=True,
        env={**aiperf.environment, "TMPDIR": str(temporary)},
    )  # fmt: skip
    assert running.stderr is not None
    line = running.stderr.readline()
    assert "rows is a pipe, and nobody writes to it yet" in line
    running.send_signal(number)
    running.communicate(timeout=600)
    assert running.returncode in (128 + number, -number)
    assert [*temporary.iterdir()] == []
