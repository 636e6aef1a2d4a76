"""The compared clients behind one interface: a load in, a result out."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from aiperf.rundir.journal import load_run

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Load:
    """What to ask of a server that answers every request with *tokens* tokens; *connections* 0 doesn't limit them."""

    connections: int
    requests: int
    tokens: int
    streaming: bool = True
    rate: float | None = None
    """Requests per second, evenly; None sends one whenever a connection is free."""
    ca_file: str | None = None
    """Of a server that speaks https."""
    workers: int | None = None
    """Of this tool; None leaves the number to it."""
    further_ports: tuple[int, ...] = ()
    """Of more servers, which this tool shares the load among."""


@dataclass(frozen=True)
class Said:
    """What a client made of a load.  Times in ms, *wall_s* and *cpu_s* of the whole program, None where it doesn't say."""

    wall_s: float
    cpu_s: float
    ttft_p50_ms: float | None = None
    ttft_p99_ms: float | None = None
    peak_mb: float | None = None
    reducer_lag: float | None = None
    """Time from the last answer until everything was reduced, as a share of the load's time."""
    response_p99_ms: float | None = None
    """Latency from the due time to the last byte."""
    service_p99_ms: float | None = None
    """Latency from the send to the last byte."""
    due_ns: npt.NDArray[np.int64] | None = None
    """When each request was to leave, wall clock."""


class LoadError(Exception):
    """A client failed to run a load; the message is its output."""


class Tool(Protocol):
    name: str
    reports: bool
    """Whether it makes a report at all; a bare loop is no tool to choose instead."""

    def run(self, port: int, load: Load, *, memory: bool = False) -> Said: ...


class Ours:
    """``aiperf profile``, from the command line to the exports, records included."""

    name, reports = "this", True

    def __init__(self) -> None:
        self.program = str(Path(sys.executable).parent / "aiperf")
        os.environ["AIPERF_DISABLE_PLUGINS"] = "exporters:parquet"  # an extra: a default install hasn't got it

    def run(self, port: int, load: Load, *, memory: bool = False) -> Said:
        with tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_DIR")) as temporary:
            ran = timed(profile_words(self.program, port, load, temporary, "builtin"), memory)
            report = json.loads((Path(temporary) / "profile_export_aiperf.json").read_text())
            done = report["request_count"]["avg"]
            if done != load.requests:
                raise LoadError(f"{done:g} of {load.requests} requests succeeded: {report['error_summary']}")
            return Said(
                ran.wall_s,
                ran.cpu_s,
                *_ttft(report),
                ran.peak_mb,
                _reducer_lag(Path(temporary)),
                report.get("response_latency", {}).get("p99"),
                report["request_latency"]["p99"],
                _due_ns(Path(temporary)) if load.rate is not None else None,
            )


class Reference:
    """The tool whose command line this one keeps, from an environment of its own; named by ``AIPERF_REFERENCE``."""

    name, reports = "reference", True

    def __init__(self, program: str) -> None:
        self.program = program

    def run(self, port: int, load: Load, *, memory: bool = False) -> Said:
        with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
            tokenizer = byte_tokenizer(Path(temporary) / "tokenizer")
            ran = timed(profile_words(self.program, port, load, f"{temporary}/out", str(tokenizer)), memory)
            report = json.loads((Path(temporary) / "out" / "profile_export_aiperf.json").read_text())
            return Said(ran.wall_s, ran.cpu_s, *_ttft(report), ran.peak_mb)


class AiohttpLoop:
    name, reports = "aiohttp loop", False

    def run(self, port: int, load: Load, *, memory: bool = False) -> Said:
        words = [port, load.connections, load.requests, load.tokens, int(load.streaming), load.rate or 0, load.ca_file or ""]
        ran = timed([sys.executable, str(HERE / "aiohttp_loop.py"), *map(str, words)], memory)
        said = json.loads(ran.output)
        return Said(ran.wall_s, ran.cpu_s, said["ttft_p50_ms"], said["ttft_p99_ms"], ran.peak_mb)


class BareLoop:
    name, reports = "socket loop", False

    def run(self, port: int, load: Load, *, memory: bool = False) -> Said:
        words = [port, load.connections, load.requests, load.tokens, int(load.streaming), 1]
        ran = timed([sys.executable, str(HERE / "truthd" / "bareloop.py"), *map(str, words)], memory)
        found = re.search(r"ttft p50 ([\d.]+) p99 ([\d.]+)", ran.output)
        if found is None:
            raise LoadError(ran.output)
        return Said(ran.wall_s, ran.cpu_s, float(found[1]), float(found[2]), ran.peak_mb)


def installed() -> list[Tool]:
    """This tool and all available tools for comparison."""
    tools: list[Tool] = [Ours(), AiohttpLoop(), BareLoop()]
    reference = os.environ.get("AIPERF_REFERENCE")
    if reference:
        program = shutil.which(reference)
        if program is None:
            raise SystemExit(f"AIPERF_REFERENCE is {reference!r}, which is no program")
        tools.append(Reference(program))
    return tools


def profile_words(program: str, port: int, load: Load, directory: str, tokenizer: str) -> list[str]:
    """The common command line of this tool and the reference."""
    words = [
        program, "profile", "--model", "truth", "--url", f"http{'s' if load.ca_file else ''}://127.0.0.1:{port}",
        "--endpoint-type", "chat",
        "--tokenizer", tokenizer, "--request-count", load.requests,
        "--isl", 100, "--osl", load.tokens, "--num-dataset-entries", 100, "--random-seed", 1,
        "--artifact-dir", directory, "--ui", "none",
    ]  # fmt: skip
    if load.ca_file:
        words += ["--ca-file", load.ca_file]
    for further in load.further_ports:
        words += ["--url", f"http://127.0.0.1:{further}"]
    if load.workers:
        words += ["--workers", load.workers]
    if load.connections:
        words += ["--concurrency", load.connections]
    if load.rate is not None:
        words += ["--request-rate", load.rate, "--arrival-pattern", "constant"]
    return [str(word) for word in words] + (["--streaming"] if load.streaming else [])


class Ran(NamedTuple):
    """What a program took: CPU time with that of its children, peak memory of its process tree where asked for."""

    wall_s: float
    cpu_s: float
    peak_mb: float | None
    output: str


def timed(words: list[str], memory: bool = False) -> Ran:
    """Run a program.

    Raises:
        LoadError: It failed; with what it said.
    """
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        watch = Watch(process.pid) if memory else None
        code = process.wait()
        wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        peak_mb = watch.end() if watch else None
        output.seek(0)
        errors.seek(0)
        said = output.read()
        if code:
            raise LoadError(f"{Path(words[0]).name} exits {code}: {(errors.read() or said).strip()[-2000:]}")
        return Ran(wall_s, cpu_s, peak_mb, said)


class Watch:
    """Samples the summed PSS of a process and all that descend from it, four times a second."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak_kb = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> float:
        """Stop; the peak in MB."""
        self._over.set()
        self._thread.join()
        return self._peak_kb / 1000

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            self._peak_kb = max(self._peak_kb, sum(pss_kb(pid) for pid in tree(self._pid)))


def tree(root: int) -> list[int]:
    """A process and all that descend from it."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                waiting += map(int, task.read_text().split())
            except OSError:  # it has just ended
                continue
    return found


def pss_kb(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return float(text.partition("\nPss:")[2].split()[0]) * 1.024


def _ttft(report: dict[str, Any]) -> tuple[float | None, float | None]:
    found = report.get("time_to_first_token", {})
    return found.get("p50"), found.get("p99")


def _reducer_lag(artifacts: Path) -> float | None:
    times = json.loads((artifacts / "journal" / "run-times.json").read_text())
    return float((times["reduced_ns"] - times["last_answer_ns"]) / (times["last_answer_ns"] - times["begin_ns"]))


def _due_ns(artifacts: Path) -> npt.NDArray[np.int64]:
    """The plan's due times on the wall clock."""
    journal = artifacts / "journal"
    clock = load_run(journal)[1]
    begin_ns = json.loads((journal / "run-times.json").read_text())["begin_ns"]
    due_ns: npt.NDArray[np.int64] = np.fromfile(journal / "due-0.bin", dtype="<i8")
    due_ns += begin_ns - clock.started_mono_ns + clock.started_wall_ns
    return due_ns


def byte_tokenizer(folder: Path) -> Path:
    """A tokenizer of 256 bytes and no merges, for a tool that would download one."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(byte) for byte in kept] + [chr(256 + n) for n in range(256 - len(kept))]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    vocabulary = {letter: number for number, letter in enumerate(letters)} | {"<end>": 256}
    model = {
        "type": "BPE",
        "vocab": vocabulary,
        "merges": [],
        "byte_fallback": False,
        "fuse_unk": False,
        "ignore_merges": False,
    }
    end = {
        "id": 256,
        "content": "<end>",
        "special": True,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
    }
    folder.mkdir()
    (folder / "tokenizer.json").write_text(
        json.dumps({"version": "1.0", "added_tokens": [end], "pre_tokenizer": level, "decoder": level, "model": model})
    )
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>", "model_max_length": 100_000})
    )
    return folder
