"""Compiles the reader when a wheel is made, and an editable install with it.

Without a compiler, or Python's headers, the package is made without it: importing it then says what is missing.  The file has
CPython's stable ABI: one for all versions from 3.11.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES, HEADER = ("module.c", "reader.c"), "reader.h"
FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter")
FILE = "_reader.abi3.so"


def command(folder: Path) -> list[str]:
    """The compiler's words; ``CC`` and ``CFLAGS`` are heeded."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    sources = [str(folder / name) for name in SOURCES]
    more = shlex.split(os.environ.get("CFLAGS", ""))
    made_from = zlib.crc32(b"".join((folder / name).read_bytes() for name in (*SOURCES, HEADER)))
    more.append(f"-DREADER_SOURCES={made_from}")
    return [*shlex.split(compiler), *FLAGS, *more, f"-I{sysconfig.get_path('include')}", "-o", str(folder / FILE), *sources]


def compiled(folder: Path) -> str | None:
    """Compile the reader in its folder; why it can't be, None where it was."""
    (folder / FILE).unlink(missing_ok=True)
    if not sys.platform.startswith("linux"):
        return f"it is for Linux, and this is {sys.platform}"
    try:
        done = subprocess.run(command(folder), capture_output=True, text=True, check=False)
    except OSError as error:
        return f"no compiler: {error}"
    if done.returncode:
        return (done.stderr or done.stdout).strip() or f"the compiler exits with {done.returncode}"
    return None


class Compiled(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        why = compiled(Path(self.root) / "src" / "aiperf_reader")
        if why is not None:
            self.app.display_warning(f"aiperf-reader is made without its compiled file: {why}")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"], build_data["tag"] = False, f"cp311-abi3-{platform}"
        build_data["artifacts"].append(f"src/aiperf_reader/{FILE}")
