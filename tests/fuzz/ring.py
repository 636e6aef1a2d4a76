"""Random turns of the compiled reader's life under the sanitizers of C compilers, until the time is over.

usage: ring.py [--seconds N]

--seconds: of each sanitizer (default: 600).  Each seed is another run of libraries/reader/tests/turns.c.  Exits 1, naming the
seed and the sanitizer, where one finds something, or a stream has other bytes than were sent; 0, with a reason, where there is
no compiler with sanitizers.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

READER = Path(__file__).resolve().parents[2] / "libraries" / "reader"
SANITIZERS = "address,undefined", "thread"
TURNS = 20_000
_HANGS_S = 300


def built(folder: Path, sanitizer: str) -> Path | str:
    """The program, or why there is none."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return "there is no C compiler"
    program, source = folder / f"turns-{sanitizer}", READER / "src" / "aiperf_reader"
    words = ["-std=c11", "-O1", "-g", f"-fsanitize={sanitizer}", "-pthread", f"-I{source}", "-o", str(program)]
    files = [str(READER / "tests" / "turns.c"), str(source / "reader.c")]
    made = subprocess.run([compiler, *words, *files], capture_output=True, text=True, check=False)
    return program if made.returncode == 0 else f"{compiler} has no -fsanitize={sanitizer}"


def fuzz(program: Path, sanitizer: str, seconds: float) -> str | None:
    """What was found; None for nothing."""
    end, runs = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        seed = random.randrange(1 << 31)
        try:
            done = subprocess.run(
                [program, str(seed), str(TURNS)], capture_output=True, text=True, check=False, timeout=_HANGS_S
            )
        except subprocess.TimeoutExpired:
            return f"seed {seed} hangs with {sanitizer}: turns {seed} {TURNS}"
        if done.returncode or done.stderr:
            return f"seed {seed} exits {done.returncode} with {sanitizer}: turns {seed} {TURNS}\n{done.stderr}"
        runs += 1
    print(f"ring, {sanitizer}: {runs:,} seeds of {TURNS:,} turns, nothing found", flush=True)
    return None


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("usage: ")[1].split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="ring-") as folder:
        for sanitizer in SANITIZERS:
            program = built(Path(folder), sanitizer)
            if isinstance(program, str):
                print(f"not fuzzed: {program}")
                return 0
            if found := fuzz(program, sanitizer, given.seconds):
                print(found, file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
