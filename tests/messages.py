"""Write docs/troubleshooting.md from what the program says to wrong command lines and of wrong servers: ``make messages``."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import message_lines
import message_servers
from command_lines import Did
from message_lines import GROUPS, LINES, START, Line
from message_servers import SERVERS
from requirements import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
_LIST = re.compile(r"^((?:installed|commands|categories|known here|options follow a command|[^;]*; known are):?) .*")
_DETAIL = re.compile(r" \([^()]*: [^()]*\)$")
_ADDRESS = re.compile(r"\b127\.0\.0\.1:\d+")
_NO_SUCCESS = "aiperf: no request succeeded; "
_MOST_PARTS = 5
_HEAD = f"""# Troubleshooting

What the program says of mistakes, and of servers that a run can't use. Written by `make messages` from the tables of
`tests/message_lines.py` and `tests/message_servers.py`, whose tests hold this page and the program together.

A message is one sentence on standard error, with hints below it, which stand behind semicolons here. All mistakes of a command
line, of its configuration file and of the environment come together, before anything is started or sent; what the options can't
be together is only known once all of them can be read.

| exit code | what it says |
|---|---|
| 0 | the run is complete, also where some requests failed, or where the report calls its numbers `suspect` |
| 1 | the options can't be had together, or a file is missing; no request succeeded; results are partial |
| 2 | the command line can't be read: an unknown option, a bad value, a word too many |
| 130, 143, 129 | the run was ended by Ctrl-C, SIGTERM or SIGHUP; what was measured is written |

More about a run is in `logs/aiperf.log` of its directory; `-v` adds failures, second attempts and requests that hang, `-vv` a
line for every request. `--export-level raw` keeps the answers, and `aiperf report DIR` makes the report again.

## Wrong command lines

`…` stands for `{" ".join(START)}`. Lists of what is installed are cut to `…`.
"""
_SERVERS = f"""
## Wrong servers

Where no request succeeds, the cause is the last line on standard error, behind `{_NO_SUCCESS.strip()}`, and the exit
code is 1; of several causes it is that of most failures. Causes are also among the warnings of the report, with the number of
failures unless all requests failed of one. Behind a load of which nothing succeeded, and which met a missing path or model, the
server is asked once more, for 3 s at most: GET of the paths of the installed endpoint types, and of `/v1/models`.
While the load goes on, one warning tells the cause where all of the first ten requests of a phase failed, or half of the last
hundred (`the first 10 requests failed: …`), and another one where the cause changes.
The server of the table is `http://server:8000`, asked for streams of the endpoint type `chat`.

| the server | what the run says |
|---|---|
"""


def message(did: Did, folder: Path) -> str:
    """The message in one line: the error and its hints."""
    first, *hints = message_lines.sentences(did) or [""]
    parts = [_LIST.sub(r"\1 …", part) for part in (first.removeprefix("error: "), *map(str.strip, hints))]
    if len(parts) > _MOST_PARTS:
        parts = [parts[0], "…", parts[-1]]
    return "; ".join(parts).replace(f"{folder}/", "")


def last(did: Did, folder: Path) -> str:
    """The last line on standard error, without the system's own words on the cause."""
    line = did.err.rstrip().rpartition("\n")[2]
    return _DETAIL.sub(" (…)", _ADDRESS.sub("server:8000", line)).replace(f"{folder}/", "")


def page(lines: Sequence[str], servers: Sequence[str]) -> str:
    """The page with the messages of all lines, and the last lines of runs with all servers."""
    text, said = _HEAD, dict(zip(LINES, lines, strict=True))
    for heading, group in GROUPS.items():
        text += f"\n### {heading}\n\n| command line | exit code | message |\n|---|---|---|\n"
        text += "".join(f"| {_code(line)} | {line.code} | {_cell(said[line])} |\n" for line in group)
    text += _SERVERS
    rows = ((wrong.about, line.removeprefix(_NO_SUCCESS)) for wrong, line in zip(SERVERS, servers, strict=True))
    return text + "".join(f"| {about} | {_cell(line)} |\n" for about, line in rows)


def _code(line: Line) -> str:
    return re.sub(r"^((?:[A-Z_]+=\S+ )*)", r"`\1aiperf ", line.text, count=1) + "`"


def _cell(text: str) -> str:
    return re.sub(r"([<*|])", r"\\\1", text)


def measured(folder: Path) -> tuple[list[Did], list[Did]]:
    """What the program does with the lines, and with the servers."""
    places = folder / "lines", folder / "servers"
    for place in places:
        place.mkdir()
    return message_lines.told(places[0]), message_servers.told(places[1])


def written(lines: Iterable[Did], servers: Iterable[Did], folder: Path) -> str:
    texts = [message(did, folder / "lines") for did in lines]
    return page(texts, [last(did, folder / "servers") for did in servers])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory).resolve()
        PAGE.write_text(written(*measured(where), where))
    sys.exit(0)
