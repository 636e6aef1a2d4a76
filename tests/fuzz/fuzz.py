"""Fuzzes with atheris: one target, or all of them one after the other.

usage: fuzz.py [--seconds N] [TARGET ...]

--seconds: of each target (default: 600).  An input that raises, takes 20 s or 2 GiB is kept in tests/fuzz/corpus and ends its
target with a failure: mend what it found, and commit it.  Exits 1 where a target failed; 0, with the reason, where atheris is
not installed (it is for CPython 3.11 on Linux).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("framing", "decode", "rows", "yaml", "options", "frames")
_TIMEOUT_S, _MOST_MB = 20, 2048


def run(name: str, folder: Path, seconds: int) -> int:
    """Fuzz one target in a process of its own; its exit code."""
    own, artifacts = folder / name, folder / f"{name}-found"
    own.mkdir()
    artifacts.mkdir()
    command = [
        sys.executable, str(HERE / "fuzz.py"), "--inside", name, str(own), f"-max_total_time={seconds}",
        f"-timeout={_TIMEOUT_S}", f"-rss_limit_mb={_MOST_MB}", f"-artifact_prefix={artifacts}/", "-print_final_stats=1",
        "-verbosity=1", "-close_fd_mask=0",
    ]  # fmt: skip
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent)])
    code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    for found in artifacts.iterdir():
        kept = HERE / "corpus" / name / hashlib.sha256(found.read_bytes()).hexdigest()[:12]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(found.read_bytes())
        print(f"{name}: found {kept}", flush=True)
    return code


def inside(name: str, words: list[str]) -> None:
    """The process of a target; never returns."""
    import atheris

    with atheris.instrument_imports(include=["aiperf", *(f"aiperf_{part}" for part in _packages())]):
        import targets

        targets.prepare(name)
    own = Path(words[0])
    for number, seed in enumerate(targets.seeds(name)):
        (own / f"seed-{number}").write_bytes(seed)
    for path in targets.corpus(name):
        (own / path.name).write_bytes(path.read_bytes())
    target = targets.TARGETS[name]
    target(next(own.iterdir()).read_bytes())  # what is loaded once is no growth

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        changed = targets.mutated(data, random.Random(seed)) if seed % 4 else None
        mutated: bytes = atheris.Mutate(data, len(data)) if changed is None or len(changed) > most else changed
        return mutated

    more = {"custom_mutator": mutate} if name in ("decode", "rows") else {}
    atheris.Setup([sys.argv[0], *words, f"-max_len={targets.MOST_BYTES[name]}"], target, **more)
    atheris.Fuzz()


def _packages() -> list[str]:
    """The import names of our packages, without their common beginning."""
    root = HERE.parent.parent
    sources = [*root.glob("plugins/*/*/src/aiperf_*"), *root.glob("libraries/*/src/aiperf_*")]
    return sorted(path.name.removeprefix("aiperf_") for path in sources if path.is_dir() and ".egg" not in path.name)


def main(words: list[str]) -> int:
    if words[:1] == ["--inside"]:
        inside(words[1], words[2:])
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("usage: ")[1].split("\n")[0])
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("targets", nargs="*", choices=[*NAMES, []], default=[])
    given = parser.parse_args(words)
    if importlib.util.find_spec("atheris") is None:
        print("not fuzzed: atheris is not installed (it is for CPython 3.11 on Linux)")
        return 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        failed = [name for name in given.targets or NAMES if run(name, Path(folder), given.seconds)]
    print(f"fuzzing failed: {', '.join(failed)}" if failed else "fuzzing found nothing")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
