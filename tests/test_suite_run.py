"""The second run of tests that failed: a flaky test is told and harms nothing, all other failures stay failures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from requirements import ROOT

FLAKY = """
from pathlib import Path

def test_fine():
    pass

def test_flaky():
    mark = Path(__file__).with_name("mark")
    seen = mark.exists()
    mark.touch()
    assert seen
"""
BROKEN = "import pytest\n\n@pytest.mark.parametrize('word', ['a::b', 'c d'])\ndef test_broken(word):\n    assert not word\n"
TEARDOWN = """
import pytest

@pytest.fixture(scope="session")
def look():
    yield
    pytest.fail("what was seen is bad")

def test_seen(look):
    pass
"""
MANY = "import pytest\n\n@pytest.mark.parametrize('n', range(11))\ndef test_one(n):\n    assert n < 0\n"


def run(folder: Path, *words: str, **files: str) -> tuple[int, str]:
    """Exit status and output of the script in a folder with these test files."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    script = [sys.executable, str(ROOT / "tests" / "suite_run.py"), "-p", "no:cacheprovider", *words]
    done = subprocess.run(script, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("words", [[], ["-n", "1"]], ids=["one process", "xdist"])
def test_a_flaky_test_is_named_and_harms_nothing(tmp_path: Path, words: list[str]) -> None:
    code, out = run(tmp_path, *words, test_flaky=FLAKY)
    assert code == 0
    assert out.splitlines()[-1] == "1 test failed once and passed alone: test_flaky.py::test_flaky"
    assert "1 passed in" in out, "the second run has this test alone"


def test_a_test_that_fails_twice_fails_the_suite(tmp_path: Path) -> None:
    code, out = run(tmp_path, test_flaky=FLAKY, test_broken=BROKEN)
    assert code == 1
    assert "2 failed, 1 passed in" in out
    assert out.splitlines()[-1] == (
        "3 tests failed once and did not all pass alone (status 1): "
        "test_broken.py::test_broken[a::b], test_broken.py::test_broken[c d], test_flaky.py::test_flaky"
    )


@pytest.mark.parametrize(("files", "code", "reason"), [
    ({"test_seen": TEARDOWN, "test_flaky": FLAKY}, 1, "no second run: the teardown of test_seen.py::test_seen failed"),
    ({"test_one": MANY}, 1, "no second run: 11 tests failed, which is more than 10"),
    ({"test_flaky": FLAKY, "test_unread": "import nothing_of_that_name"}, 2, "1 error in"),
    ({"test_fine": "def test_fine():\n    pass\n"}, 0, "1 passed in"),
])  # fmt: skip
def test_without_a_second_run_the_first_one_counts(tmp_path: Path, files: dict[str, str], code: int, reason: str) -> None:
    got, out = run(tmp_path, **files)
    assert (got, "once" in out) == (code, False)
    assert reason in out.splitlines()[-1]


def test_a_file_that_cannot_be_read_fails_the_suite_beside_a_flaky_test(tmp_path: Path) -> None:
    words = ("-n", "1", "--continue-on-collection-errors")
    code, out = run(tmp_path, *words, test_flaky=FLAKY, test_unread="import nothing_of_this")
    assert code != 0
    assert "no second run" in out and "test_unread.py could not be collected" in out
