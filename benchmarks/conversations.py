"""What a long conversation costs: a turn should cost what is new in it, not what was said before.

usage: conversations.py [BASE] [--conversations 20] [--turns 40] [--isl 2500] [--osl 40] [--level raw] [--pairs 1]
                        [--tokenizer builtin]

Each run sends conversations, all at once, to truthd, whose answers are short.  New bytes are the bodies of the data set, each
turn by itself.  The end is the time from the last answer to the program's.  BASE, another checkout with its environment, runs
in alternating pairs with this one.  --tokenizer gemma: a small one in the form of Gemma's, which is made for the run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from bench import machine
from tools import HERE, timed
from truth import Truth, truthd

TTFT_MS, ITL_MS = 50, 5


def words(program: Path, port: int, given: argparse.Namespace, folder: str) -> list[str]:
    count = str(given.conversations)
    return [
        str(program), "profile", "--model", "truth", "--url", f"http://127.0.0.1:{port}", "--endpoint-type", "chat",
        "--streaming", "--tokenizer", given.tokenizer, "--num-conversations", count, "--num-dataset-entries", count,
        "--concurrency", count,
        "--session-turns-mean", str(given.turns), "--session-turns-stddev", "0", "--isl", str(given.isl), "--isl-stddev", "0",
        "--osl", str(given.osl), "--random-seed", "1", "--artifact-dir", folder, "--ui", "none",
        "--export-level", given.level,
    ]  # fmt: skip


def gemma(folder: Path) -> Path:
    """A tokenizer.json of 16,000 tokens, trained on the standard library: a BPE without pieces, whose spaces are U+2581."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    made.normalizer = normalizers.Replace(" ", "\u2581")
    made.pre_tokenizer = pre_tokenizers.Split(Regex("\u2581*[^\u2581]+|\u2581+"), "isolated")
    special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=16_000, special_tokens=special, show_progress=False, initial_alphabet=["\u2581"]
    )
    made.train([str(path) for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:100]], trainer)
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    made.save(str(folder / "tokenizer.json"))
    return folder


def run(checkout: Path, server: Truth, given: argparse.Namespace) -> dict[str, float]:
    """The figures of one run; times in s, sizes in MB."""
    server.reset()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        ran = timed(words(checkout / ".venv" / "bin" / "aiperf", server.port, given, folder), memory=True)
        ended_s = time.time()
        journal, seen = Path(folder) / "journal", server.requests()
        report = json.loads((Path(folder) / "profile_export_aiperf.json").read_text())
        times = json.loads((journal / "run-times.json").read_text())
        load_s = (seen.last.max() - seen.received.min()) / 1e9
        inputs, measured = report["total_isl"]["avg"], report["measurement"]
        segments = sum(path.stat().st_size for path in journal.glob("shard-*.seg"))
        return {
            "new bytes, MB": (journal / "dataset.bodies").stat().st_size / 1e6,
            "segments of the journal, MB": segments / 1e6,
            "load, s": load_s,
            "reduced behind the last answer, s": (times["reduced_ns"] - times["last_answer_ns"]) / 1e9,
            "end behind the last answer, s": ended_s - seen.last.max() / 1e9,
            "CPU time, all processes, s": ran.cpu_s,
            "peak memory, MB": ran.peak_mb or 0.0,
            "loop lag p99, ms": measured["loop_lag_ms"]["p99"],
            "loop lag max, ms": measured["loop_lag_ms"]["max"],
            "input tokens, millions": inputs / 1e6,
            "verdict is trustworthy": float(measured["verdict"] == "trustworthy"),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", type=Path, nargs="?", help="another checkout with its environment")
    parser.add_argument("--conversations", type=int, default=20)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--isl", type=int, default=2500)
    parser.add_argument("--osl", type=int, default=40)
    parser.add_argument("--level", default="raw")
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--tokenizer", default="builtin")
    given = parser.parse_args()
    sides = {"base": given.base.resolve()} if given.base else {}
    sides["this"] = HERE.parent
    found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    with truthd(TTFT_MS, ITL_MS) as server, tempfile.TemporaryDirectory(prefix="tokenizer-") as folder:
        if given.tokenizer == "gemma":
            given.tokenizer = str(gemma(Path(folder)))
        for pair in range(given.pairs):
            for side in list(sides) if pair % 2 == 0 else list(sides)[::-1]:
                found[side].append(run(sides[side], server, given))
                print(side, {name: round(value, 3) for name, value in found[side][-1].items()}, file=sys.stderr, flush=True)
    print(f"| what | {' | '.join(sides)} |\n|---|{'---|' * len(sides)}")
    for name in found["this"][0]:
        cells = [sorted(figures[name] for figures in found[side]) for side in sides]
        texts = [f"{statistics.median(cell):,.3f} ({cell[0]:,.3f}–{cell[-1]:,.3f})" for cell in cells]
        print(f"| {name} | {' | '.join(texts)} |")
    print(f"\n{machine()}. {given.pairs} runs of each side.")


if __name__ == "__main__":
    main()
