"""``aiperf plugins validate``: every plugin is put to the contract of its category, in a process that may hang or die.

The contracts are pytest classes (``aiperf.testing``).  pytest is no dependency of the kernel: where it isn't installed, that is
said and nothing else.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from aiperf.descriptor import Descriptor

if TYPE_CHECKING:
    from aiperf.registry import Registry

PYTEST_MISSING = 'the contract suite was not run, it needs pytest: pip install "aiperf-core[testing]"'
LIMIT_S = 60.0
"""The longest a check may take."""
SUBJECTS = "subjects.json"
NEWS = "news.jsonl"
_POLL_S = 0.02
_TESTS = """\
from aiperf.testing.subjects import case
"""


class News(Struct, frozen=True, omit_defaults=True):
    """A check of the plugin number *subject* began (*outcome* ""), or ended: "failed", or "wanting" material, and why."""

    subject: int
    check: str
    outcome: str = ""
    why: str = ""


class Subjects(Struct, frozen=True):
    """What the tests are told: the plugins to try, and everything that is installed."""

    tried: tuple[Descriptor, ...]
    known: tuple[Descriptor, ...]


class Verdict(Struct, frozen=True):
    """faults: of each check that failed, the plugin and a sentence.  wanting: plugins without the material of some checks."""

    faults: tuple[tuple[Descriptor, str], ...]
    wanting: tuple[tuple[Descriptor, tuple[str, ...]], ...]


def available() -> bool:
    return find_spec("pytest") is not None


def write_subjects(place: Path, subjects: Subjects, module: str, names: Sequence[str]) -> Path:
    """A file of tests, *module*, with a class of that name for each subject."""
    told = place / SUBJECTS
    told.write_bytes(msgspec.json.encode(subjects))
    path = place / f"{module}.py"
    path.write_text(_TESTS + "".join(f"{name} = case({str(told)!r}, {i})\n" for i, name in enumerate(names)))
    return path


def check(registry: Registry, plugins: Sequence[Descriptor], limit_s: float = LIMIT_S) -> Verdict:
    """Put *plugins* to their contracts.

    One that hangs or takes the process down is a fault; those behind it are tried in another process.
    """
    left = tuple(plugins)
    known = tuple(one for category in registry.categories() for one in registry.all(category))
    faults: list[tuple[Descriptor, str]] = []
    wanting: dict[int, set[str]] = {}
    begun = 0
    while begun < len(left):
        reached = begun - 1
        for news in _tried(Subjects(left[begun:], known), limit_s):
            reached = begun + news.subject
            if news.outcome == "failed":
                faults.append((left[reached], f"{news.check}: {news.why}" if news.check else news.why))
            elif news.outcome == "wanting":
                wanting.setdefault(reached, set()).add(news.why)
        begun = max(reached, begun) + 1
    return Verdict(tuple(faults), tuple((left[i], tuple(sorted(what))) for i, what in sorted(wanting.items())))


def _tried(subjects: Subjects, limit_s: float) -> Iterator[News]:
    """What a process says of *subjects*, until it has tried them all or fails at one, which is said last."""
    with tempfile.TemporaryDirectory(prefix="aiperf-validate-") as name:
        place = Path(name)
        (place / NEWS).touch()
        write_subjects(place, subjects, "test_subjects", [f"TestSubject{i}" for i in range(len(subjects.tried))])
        (place / "pytest.ini").write_text("[pytest]\n")
        yield from _followed(place, limit_s)


def _followed(place: Path, limit_s: float) -> Iterator[News]:
    with (place / "output").open("w+b") as output, (place / NEWS).open("rb") as lines:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "aiperf.testing.reporting", "-p", "no:cacheprovider", "-p", "no:terminal",
             "--noconftest", "-c", str(place / "pytest.ini"), f"--basetemp={place / 'made'}", str(place / "test_subjects.py")],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=place, env=_environment(place), start_new_session=True,
        )  # fmt: skip
        try:
            last = News(0, "")
            until = time.monotonic() + limit_s
            begun = b""
            while True:
                ended = process.poll() is not None  # before the last look: what it wrote until then is seen
                *whole, begun = (begun + lines.read()).split(b"\n")
                for line in whole:
                    last, until = msgspec.json.decode(line, type=News), time.monotonic() + limit_s
                    yield last
                if ended or time.monotonic() > until:
                    break
                time.sleep(_POLL_S)
            if process.poll() is None:
                yield News(last.subject, last.check, "failed", f"it took longer than {limit_s:g} s and was ended")
            elif process.returncode not in (0, 1, 5):  # passed, some failed, nothing to do
                output.seek(0)
                yield News(last.subject, last.check, "failed", _death(process.returncode, output.read()))
        finally:
            _end(process)


def _environment(place: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return kept | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "AIPERF_VALIDATE_NEWS": str(place / NEWS)}


def _end(process: subprocess.Popen[bytes]) -> None:
    """It, and what it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _death(code: int, output: bytes) -> str:
    said = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return f"the process ended ({how})" + (f": {said[-1].strip()}" if said else "")
