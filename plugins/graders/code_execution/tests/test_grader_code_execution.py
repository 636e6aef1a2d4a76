"""The grader code_execution: programs from answers, good and bad."""

from __future__ import annotations

import base64
import json
import os
import pickle
import select
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Literal

import pytest
from aiperf.sdk.errors import ConfigError
from aiperf.testing import GradedAnswer
from aiperf_grader_code_execution import grader as grader_module
from aiperf_grader_code_execution.contract import VECTORS, CodeExecutionContract, UnisolatedCodeContract
from aiperf_grader_code_execution.grader import CodeExecution, limit_s, same_output, same_value
from aiperf_grader_code_execution.material import BadMaterialError, last_block, material_of, unpacked
from aiperf_grader_code_execution.options import CodeExecutionOptions
from aiperf_grader_code_execution.runs import missing, run

ISOLATED = pytest.mark.skipif(missing() is not None, reason="this machine can't isolate a process")
ONE = json.dumps({"public_test_cases": [{"input": "", "output": "done"}]})
HOME = Path.home() / "aiperf-written-by-a-program"


class TestItKeepsTheContract(CodeExecutionContract):
    pass


class TestTheVerdictKeepsTheContract(UnisolatedCodeContract):
    pass


def test_every_answer_gets_its_grade() -> None:
    assert len(VECTORS) >= 40
    grader = CodeExecution(CodeExecutionOptions(allowed="unisolated"))
    grades = [(vector, vector.grade(grader)) for vector in VECTORS]
    assert [pair for pair in grades if (pair[1].correct, pair[1].unparsed) != (pair[0].correct, pair[0].unparsed)] == []


def explained(code: str, *, how: Literal["isolated", "unisolated"] = "isolated") -> str:
    """Why the program fails; \"\" where it passes."""
    grade = GradedAnswer(ONE, f"```python\n{code}\n```", correct=False).grade(CodeExecution(CodeExecutionOptions(allowed=how)))
    assert not grade.unparsed
    return "" if grade.correct else grade.explanation


def children() -> set[str]:
    """Processes of this one, by number."""
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


def test_without_leave_it_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing allows it"):
        CodeExecution(CodeExecutionOptions(allowed=None))


def test_without_isolation_isolated_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grader_module, "missing", lambda: "namespaces: Operation not permitted")
    with pytest.raises(ConfigError, match="can't isolate a process: namespaces"):
        CodeExecution(CodeExecutionOptions(allowed="isolated"))
    assert CodeExecution(CodeExecutionOptions(allowed="unisolated")) is not None


@ISOLATED
@pytest.mark.parametrize(("code", "said"), [
    ("import os\nwhile True:\n    os.fork()", "exit code 1"),
    ("import subprocess\nsubprocess.run(['sleep', '1'])", "exit code 1"),
    ("x = bytearray(10 << 30)", "exit code 1"),
    ("while True:\n    print('x' * 1000)", "more than 1 MB of output"),
    ("import time\ntime.sleep(100)", "it took longer than 1 s"),
    ("while True:\n    pass", "it took longer than 1 s"),
    ("import os, time\nos.close(1)\ntime.sleep(100)", "it took longer than 1 s"),
    ("import socket\nsocket.socket()", "exit code 1"),
    (f"open({str(HOME)!r}, 'w')", "exit code 1"),
    (f"import os, ctypes\nctypes.CDLL(None).mount(b'none', b'/', None, 36, None)\nopen({str(HOME)!r}, 'w')", "exit code 1"),
    ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", "exit code 1"),
    ("import os\nos.killpg(0, 9)", "exit code 1"),
    ("import os\nos.setsid()", "exit code 1"),
    ("with open('big', 'wb') as file:\n    file.write(bytes(20 << 20))", "exit code 1"),
    ("def f(n): return f(n + 1)\nf(0)", "exit code 1"),
    ("import os\nos.abort()", "signal"),
])  # fmt: skip
def test_a_bad_program_fails_its_case_and_leaves_nothing(
    code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if said.endswith(" 1 s"):
        monkeypatch.setattr(grader_module, "CASE_S", 1.0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = children()
    assert said in explained(code)
    assert children() == before and [*tmp_path.iterdir()] == []
    assert not HOME.exists()


@ISOLATED
def test_an_isolated_program_sees_neither_environment_nor_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_API_KEY", "a-secret-of-the-run")
    code = "import os\nprint(dict(os.environ), os.listdir('/proc'))"
    assert run(code, None, "", isolated=True, limit_s=60.0).output == "{} []\n"


@pytest.mark.parametrize("how", [pytest.param("isolated", marks=ISOLATED), "unisolated"])
def test_a_program_ends_with_the_process_that_grades_it(how: str, tmp_path: Path) -> None:
    words = "from aiperf_grader_code_execution.runs import run; run('import time; time.sleep(600)', None, '', isolated="
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", f"{words}{how == 'isolated'}, limit_s=600.0)"], env=environment) as grading:
        path = Path(f"/proc/{grading.pid}/task/{grading.pid}/children")
        until_s = time.monotonic() + 60.0
        while not (pids := path.read_text().split()) or b"jail.py" not in Path(f"/proc/{pids[0]}/cmdline").read_bytes():
            assert time.monotonic() < until_s
        program = os.pidfd_open(int(pids[0]))
        while "Seccomp:\t2" not in Path(f"/proc/{pids[0]}/status").read_text():  # it runs the program from then on
            assert time.monotonic() < until_s
        grading.kill()
        assert select.select([program], [], [], 60.0)[0] == [program], "the program goes on"
    os.close(program)


@ISOLATED
def test_a_program_may_write_in_its_own_directory_and_start_threads() -> None:
    code = "import threading\nopen('a', 'w').write('done')\nt = threading.Thread(target=lambda: print(open('a').read()))\n"
    code += "t.start(); t.join()"
    assert explained(code) == ""


def test_an_unisolated_program_starts_no_process_either() -> None:
    assert explained("print('done')", how="unisolated") == ""
    assert "exit code 1" in explained("import os\nos.fork()", how="unisolated")


def packed(value: object) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def test_packed_test_cases_are_text_and_nothing_else() -> None:
    cases = json.dumps([{"input": "1", "output": "2"}])
    assert unpacked(packed(cases)) == cases
    assert material_of(json.dumps({"private_test_cases": packed(cases)})).cases[0].output == "2"
    for other in (os.system, Path("x"), [cases], 5):
        with pytest.raises(BadMaterialError):
            unpacked(packed(other))
    for text in ("!", "YQ==", base64.b64encode(zlib.compress(b"")).decode()):
        with pytest.raises(BadMaterialError):
            unpacked(text)


def test_the_last_block_counts() -> None:
    assert last_block("```\na\n```\n```py\nb\n```") == "b\n"
    assert last_block("a `b` c") is None


@pytest.mark.parametrize(("expected", "output", "same"), [
    ("1 2\n3", "1 2 \n3\n", True), ("0.5", "0.50", True), ("yes", "Yes", False), ("1", "1\n2", False),
    ("", "", True), ("1 2", "12", False),
])  # fmt: skip
def test_outputs_are_compared_line_by_line(expected: str, output: str, same: bool) -> None:
    assert same_output(expected, output) is same


def test_values_are_compared_as_json() -> None:
    assert same_value("[1, 2]", "[1,2]") and not same_value("[1]", "1") and not same_value("1", "none")


def test_the_time_grows_with_the_cases_up_to_five_minutes() -> None:
    assert (limit_s(1), limit_s(10), limit_s(100)) == (42.0, 105.0, 300.0)
