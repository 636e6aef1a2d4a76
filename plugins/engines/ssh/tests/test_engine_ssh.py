"""The ssh engine: names of machines, and the command that is run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from aiperf import ConfigError, SiteStart
from aiperf.testing import SiteEngineContract
from aiperf_engine_ssh import Ssh
from aiperf_engine_ssh.options import SshOptions

TOLD = """#!{python}
import os, sys
words = sys.argv[1:]
print(words, flush=True)
way = words[words.index("-R") + 1]
os.execv("/bin/sh", ["/bin/sh", "-c", words[-1]])
"""


@pytest.fixture(autouse=True)
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that runs the command here, in place of ssh."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(TOLD.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


class TestSshKeepsTheContract(SiteEngineContract):
    engine = Ssh
    options = SshOptions(hosts=("here", "bench@there:2222"), python=sys.executable)


@pytest.mark.parametrize(
    ("host", "words"),
    [("a", ["--", "a"]), ("user@b:2222", ["-p", "2222", "--", "user@b"]), ("[::1]:22", ["-p", "22", "--", "::1"])],
)
def test_a_machine_becomes_words_of_the_program(tmp_path: Path, host: str, words: list[str]) -> None:
    log = tmp_path / "log"
    engine = Ssh(SshOptions(hosts=(host,), python="/bin/echo", more="-i 'my key'"))
    start = SiteStart(0, ("up",), b"\n", log, engine.address(0, 99), 99)
    assert engine.start(start).wait(60.0) == 0
    said, up = log.read_text().splitlines()
    assert up == "up" and "'-i', 'my key'" in said
    forwarded = f"{start.address.removeprefix('ipc://')}:127.0.0.1:99"
    assert said.endswith(f"{', '.join(map(repr, ['-R', forwarded, words[-2], words[-1]]))}, 'exec /bin/echo up']")
    assert ", ".join(map(repr, words[:-2])) in said


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a b", "a:b", "a:0", "a:70000", "u@", "", "u@-x"])
def test_what_is_no_machine_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="is no machine for ssh"):
        Ssh(SshOptions(hosts=(host,))).names()


def test_no_machine_and_half_a_quotation_get_sentences() -> None:
    with pytest.raises(ConfigError, match="no machine is named"):
        Ssh(SshOptions()).names()
    with pytest.raises(ConfigError, match="--ssh-options can't be read: no closing quotation"):
        Ssh(SshOptions(hosts=("a",), more="-i 'x")).names()


def test_without_the_program_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    engine = Ssh(SshOptions(hosts=("a",)))
    with pytest.raises(ConfigError, match="the program ssh is not installed"):
        engine.start(SiteStart(0, (), b"", tmp_path / "log", "ipc:///x", 1))
