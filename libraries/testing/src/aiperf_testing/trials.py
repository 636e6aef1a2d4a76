"""What ``aiperf plugins validate`` and the process that tries plugins tell each other: structs, and the file of tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from aiperf.sdk.descriptor import Descriptor
from msgspec import Struct

_TESTS = """\
from aiperf_testing.subjects import case
"""


class CheckReport(Struct, frozen=True, omit_defaults=True):
    """A check of the plugin number *subject* began (*outcome* ""), or ended: "failed", or "wanting" material, and why."""

    subject: int
    check: str
    outcome: str = ""
    why: str = ""


class Subjects(Struct, frozen=True):
    """Input of the tests: the plugins to try, and every installed plugin."""

    tried: tuple[Descriptor, ...]
    known: tuple[Descriptor, ...]


def write_subjects(folder: Path, subjects: Subjects, module: str, names: Sequence[str]) -> Path:
    """A file of tests, *module*, with a class of that name for each subject; returns its path."""
    listed = folder / "subjects.json"
    listed.write_bytes(msgspec.json.encode(subjects))
    path = folder / f"{module}.py"
    path.write_text(_TESTS + "".join(f"{name} = case({str(listed)!r}, {i})\n" for i, name in enumerate(names)))
    return path
