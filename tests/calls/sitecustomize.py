"""Writes every call of a function of the program, in order, to a file per process in the folder ``AIPERF_TEST_CALLS``.

Python imports this module at its start where the folder of this file stands in ``PYTHONPATH``.
"""

from __future__ import annotations

import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

_FOLDER = os.environ.get("AIPERF_TEST_CALLS")
_NAMES: dict[CodeType, str] = {}


def _note(frame: FrameType, event: str, argument: Any) -> None:
    if event != "call":
        return
    name = _NAMES.get(frame.f_code)
    if name is None:
        module = str(frame.f_globals.get("__name__", ""))
        name = _NAMES[frame.f_code] = f"{module}:{frame.f_code.co_qualname}" if module.startswith("aiperf") else ""
    if name:
        with open(f"{_FOLDER}/{os.getpid()}", "a") as file:  # noqa: PTH123  pathlib's own calls would be written, too
            file.write(f"{name}\n")


if _FOLDER:
    sys.setprofile(_note)
    threading.setprofile(_note)
