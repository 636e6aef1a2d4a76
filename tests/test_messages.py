"""Wrong command lines and wrong servers get one sentence each, with what was typed and the next step; the page has them all."""

from __future__ import annotations

import shutil
from pathlib import Path

import message_lines
import message_servers
import messages
import pytest
from command_lines import Did
from message_lines import LINES, Line
from message_servers import SERVERS, Wrong

LAST = "aiperf: no request succeeded; "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("messages")


@pytest.fixture(scope="module")
def lines(folder: Path) -> dict[Line, Did]:
    (folder / "lines").mkdir()
    return dict(zip(LINES, message_lines.told(folder / "lines"), strict=True))


@pytest.fixture(scope="module")
def servers(folder: Path) -> dict[Wrong, Did]:
    (folder / "servers").mkdir()
    return dict(zip(SERVERS, message_servers.told(folder / "servers"), strict=True))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text)
def test_a_wrong_command_line_gets_one_sentence(lines: dict[Line, Did], line: Line) -> None:
    did, said = lines[line], "\n".join(message_lines.sentences(lines[line]))
    assert "Traceback" not in did.err + did.out
    assert [part for part in line.said if part not in said] == []
    assert (did.code, did.out, said.count("error: ")) == (line.code, "", 1)
    assert line.said[0] in said.splitlines()[0], "what is wrong, as it was typed"


needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make certificates")


@needs_openssl
@pytest.mark.parametrize("wrong", SERVERS, ids=lambda wrong: wrong.about)
def test_a_wrong_server_is_named_in_the_last_line(servers: dict[Wrong, Did], wrong: Wrong) -> None:
    did = servers[wrong]
    assert "Traceback" not in did.err + did.out
    last = did.err.rstrip().splitlines()[-1]
    assert last.startswith(LAST)
    assert [part for part in wrong.said if part not in last] == []
    assert did.code == 1
    assert "Verdict: none (no request succeeded, and there is nothing to trust)" in did.out
    assert "trustworthy" not in did.out


@needs_openssl
def test_the_page_is_what_the_program_says(lines: dict[Line, Did], servers: dict[Wrong, Did], folder: Path) -> None:
    assert messages.PAGE.read_text() == messages.written(lines.values(), servers.values(), folder)
