"""Writes what a process of the program calls to a file of its own in the folder ``AIPERF_TEST_CALLS``.

Python imports this module at its start where the folder of this file stands in ``PYTHONPATH``.  A call of a function of the
project is a line ``module:function``.  Where ``AIPERF_TEST_LANDMARKS`` has the function, or the qualified name of one in C,
a line ``@landmark module:function module:function …`` follows, with the project's functions on the stack, outermost first.
"""

from __future__ import annotations

import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

_FOLDER = os.environ.get("AIPERF_TEST_CALLS")
_LANDMARKS = set(os.environ.get("AIPERF_TEST_LANDMARKS", "").split())
_ROOT = __file__.rpartition("/tests/")[0]
_OURS = (f"{_ROOT}/core/", f"{_ROOT}/libraries/", f"{_ROOT}/plugins/")
_INSIDE = ("<module>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
"""Code that is part of a function, or none: of most of it later versions of Python have no frame."""
_BEGIN = "aiperf.processes.spare:_work"
"""Calls the ``main`` of a process that is forked ahead, as ``runpy`` does in a new one; above it is its parent."""
_NAMES: dict[CodeType, str] = {}


def _name(code: CodeType) -> str:
    """``module:function`` of the project, "" for other code."""
    name = _NAMES.get(code)
    if name is None:
        path, _, inside = code.co_filename.partition("/src/")
        ours = inside and f"{path}/".startswith(_OURS) and code.co_name not in _INSIDE
        module = inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        name = _NAMES[code] = f"{module}:{code.co_qualname}" if ours else ""
    return name


def _note(frame: FrameType, event: str, argument: Any) -> None:
    if event == "call":
        called = _name(frame.f_code)
        if called:
            _write(called)
    elif event == "c_call":
        called = argument.__qualname__
    else:
        return
    if called in _LANDMARKS:
        names = []
        caller: FrameType | None = frame
        while caller is not None:
            names.append(_name(caller.f_code))
            caller = caller.f_back
        names = names[: names.index(_BEGIN)] if _BEGIN in names else names
        _write(" ".join([f"@{called}", *filter(None, reversed(names))]))


def _write(line: str) -> None:
    with open(f"{_FOLDER}/{os.getpid()}", "a") as file:  # noqa: PTH123  a path's own calls would be looked at, too
        file.write(f"{line}\n")


if _FOLDER:
    # A reducer beside the load takes idle cores alone, and a machine that runs tests may have none.
    os.sched_setscheduler = lambda *_: None
    sys.setprofile(_note)
    threading.setprofile(_note)
