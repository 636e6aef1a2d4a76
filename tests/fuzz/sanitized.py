"""The tests of the transport that uses the compiled reader, with the reader built for the sanitizers of C compilers.

usage: sanitized.py [WORD …]

WORD: for pytest, behind its own.  Exits 1 where a sanitizer finds something or a test fails; 0, with a reason, where there is
no compiler with sanitizers or no header of Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "libraries" / "reader" / "src" / "aiperf_reader"
TESTS = ROOT / "plugins" / "transports" / "sockets" / "tests"
LIBRARIES = {"address": "libasan.so", "thread": "libtsan.so"}
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "exitcode=66"}
"""The interpreter, which is not built for it, keeps memory until its end."""


def built(folder: Path, sanitizer: str) -> Path | str:
    """The sanitizer's library, which the interpreter must load first, with the package in *folder*; or why there is none."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return "there is no C compiler"
    package = folder / "aiperf_reader"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    words = ["-std=c11", "-O1", "-g", "-fPIC", "-shared", "-pthread", f"-fsanitize={sanitizer}"]
    words += [f"-I{sysconfig.get_path('include')}", "-o", str(package / "_reader.abi3.so")]
    words += [str(package / name) for name in ("module.c", "reader.c")]
    made = subprocess.run([compiler, *words], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"{compiler} does not build with -fsanitize={sanitizer}: {made.stderr.strip()[-300:]}"
    found = subprocess.run(
        [compiler, f"-print-file-name={LIBRARIES[sanitizer]}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return Path(found) if Path(found).is_absolute() else f"there is no {LIBRARIES[sanitizer]}"


def main(words: list[str]) -> int:
    failed = 0
    for sanitizer in LIBRARIES:
        with tempfile.TemporaryDirectory(prefix="sanitized-") as folder:
            library = built(Path(folder), sanitizer)
            if isinstance(library, str):
                print(f"transport, {sanitizer}: not run: {library}", flush=True)
                continue
            environment = {**os.environ, **OPTIONS, "LD_PRELOAD": str(library), "PYTHONPATH": folder}
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "compiled", str(TESTS), *words]
            code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
            print(f"transport, {sanitizer}: {'nothing found' if code == 0 else f'exit code {code}'}", flush=True)
            failed += code != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
