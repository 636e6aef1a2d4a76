"""An upload's process that works, fails, dies and hangs."""

import os
import signal
import threading
import time

import msgspec
import pytest
from aiperf_uploads import exported_files, limit_s, upload

ALL = """
import json
from aiperf_uploads.process_side import serve

def work(message, teller):
    for item in json.loads(message)["items"]:
        teller.sent(item)
    teller.facts(run_id="r1")

serve(work)
"""
SOME = ALL.replace('teller.sent(item)', '''if item == "b":
            teller.left(item, OSError("disk of http://me:word-of-mine@host"))
        elif item == "c":
            raise ValueError(f"no\\n{__import__('os').environ['THEIR_API_KEY']} here")
        else:
            teller.sent(item)''')
DIES = ALL.replace("teller.sent(item)", "teller.sent(item); __import__('os')._exit(7)")
HANGS = ALL.replace('teller.facts(run_id="r1")', "__import__('threading').Event().wait()")
READS = ALL.replace("teller.sent(item)", "input('name? ')")
ASLEEP = "__import__('threading').Event().wait()"


class Job(msgspec.Struct):
    items: list[str]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("THEIR_API_KEY", "key-of-theirs")
    monkeypatch.setenv("AIPERF_API_KEY", "key-of-the-run")

    def run(code, *items, limit=60.0):
        (tmp_path / "fake_tracker.py").write_text(code)
        return upload("fake_tracker", Job([*items]), items, limit)

    return run


def test_all_that_has_arrived_is_named(run):
    outcome = run(ALL, "a", "b")
    assert (outcome.sent, outcome.left, outcome.facts) == (["a", "b"], {}, {"run_id": "r1"})
    assert outcome.sentences("--to x") == []


def test_each_item_that_is_left_has_a_reason_without_secrets(run):
    outcome = run(SOME, "a", "b", "c", "d")
    assert outcome.sent == ["a"]
    assert outcome.left == {"b": "disk of http://<redacted>@host", "c": "no <redacted> here", "d": "no <redacted> here"}
    assert outcome.sentences("--to x") == [
        "--to x: disk of http://<redacted>@host; not uploaded: b", "--to x: no <redacted> here; not uploaded: c, d",
    ]  # fmt: skip


def test_a_process_that_dies_leaves_the_rest(run):
    outcome = run(DIES, "a", "b")
    assert (outcome.sent, outcome.left) == (["a"], {"b": "its process exited with 7"})


@pytest.mark.parametrize("code", [HANGS, ASLEEP])
def test_a_process_that_hangs_is_broken_off(run, code):
    outcome = run(code, "a", limit=1.5)
    left = {} if outcome.sent else {"a": "it took longer than 1.5 s, and was broken off"}
    assert outcome.left == left and (code is HANGS or left)


class _PressedAgain(BaseException):
    pass


def test_what_ends_the_wait_ends_the_process(run, tmp_path):
    def pressed(number, frame):
        raise _PressedAgain

    code = HANGS.replace("def work", f"open({str(tmp_path / 'pid')!r}, 'w').write(str(__import__('os').getpid()))\n\ndef work")
    before = signal.signal(signal.SIGUSR1, pressed)

    def press():
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    threading.Thread(target=press).start()
    try:
        with pytest.raises(_PressedAgain):
            run(code, "a")
    finally:
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_question_is_answered_by_nobody(run):
    assert run(READS, "a").left == {"a": "EOF when reading a line"}


def test_the_process_has_no_key_of_the_run(run):
    outcome = run(ALL.replace('run_id="r1"', "names=[*__import__('os').environ]"), "a")
    assert "THEIR_API_KEY" in outcome.facts["names"] and "AIPERF_API_KEY" not in outcome.facts["names"]


def test_results_and_pictures_are_found_and_nothing_else(tmp_path):
    names = ["a.json", "b.csv", "c_timeslices.csv", "plots/x/d.png", "plots/e.html", "notes.txt", ".hidden.json",
             "journal/run.json", "journal/f.png", "logs/g.html", "mlflow_export.json"]  # fmt: skip
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path.parent / "outside.json").touch()
    (tmp_path / "link.json").symlink_to(tmp_path.parent / "outside.json")
    found = exported_files(tmp_path, leave=["mlflow_export.json"])
    assert [(file.name, file.folder) for file in found] == [
        ("a.json", "exports"), ("b.csv", "exports"), ("c_timeslices.csv", "exports"), ("plots/e.html", "plots"),
        ("plots/x/d.png", "plots"),
    ]  # fmt: skip
    assert [file.name for file in exported_files(tmp_path, ["*.txt", "../*.json"])] == ["notes.txt"]


def test_the_time_for_an_upload_comes_from_the_environment(monkeypatch):
    assert limit_s("AIPERF_UPLOAD_TIMEOUT_SECONDS") == 30
    monkeypatch.setenv("AIPERF_UPLOAD_TIMEOUT_SECONDS", "5")
    assert limit_s("AIPERF_UPLOAD_TIMEOUT_SECONDS") == 5
