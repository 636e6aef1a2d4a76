"""A real NVIDIA GPU under load: what a run with ``--gpu-telemetry pynvml`` has, beside ``nvidia-smi`` in the same seconds.

usage: gpu.py [--seconds S] [--json FILE] [--keep DIR]

A load (matrix products of torch, where it is installed) takes turns: idle, all, half of the time, idle.  Meanwhile
``aiperf profile`` runs against ``aiperf simulate``, and ``nvidia-smi`` is read four times a second.  Each reading is compared
with the sample of the run that is nearest in time.  Energy is compared with the power that ``nvidia-smi`` showed, integrated
over the profiling phase, and with the energy counter that is read here.  Exit 1 where a quantity differs by more than its
tolerance.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from aiperf.results import open_run

_NEAR_S = 0.2
"""A sample and a reading that are further apart are not compared."""
_FIELDS = {
    "nvidia_power_usage": ("power.draw", 1.0, 0.03), "nvidia_sm_clock": ("clocks.sm", 1.0, 0.02),
    "nvidia_memory_clock": ("clocks.mem", 1.0, 0.01), "nvidia_memory_used": ("memory.used", 1.048576e-3, 0.01),
    "nvidia_gpu_utilization": ("utilization.gpu", 1.0, 0.05), "nvidia_memory_utilization": ("utilization.memory", 1.0, 0.05),
    "nvidia_temperature": ("temperature.gpu", 1.0, 0.03),
}  # fmt: skip
"""By series: the field of ``nvidia-smi``, its scale, and the tolerance of the mean, relative to the largest value."""
_ENERGY = {"the energy counter, read here": 0.01, "power of nvidia-smi, integrated": 0.05}
_LOAD = """
import sys, time
import torch
seconds, size = float(sys.argv[1]), 8192
one = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
other, kept = torch.randn_like(one), []
begin = time.monotonic()
print("ready", torch.cuda.get_device_name(), flush=True)
while (share := (time.monotonic() - begin) / seconds) < 1:
    if share < 0.15 or share > 0.85:
        time.sleep(0.02)
        continue
    if share > 0.5 and not kept:
        kept.append(torch.empty(8 << 30, dtype=torch.uint8, device="cuda").fill_(1))
    until = time.monotonic() + 0.05
    while time.monotonic() < until:
        for _ in range(4):
            one @ other
        torch.cuda.synchronize()
    if share > 0.5:
        time.sleep(0.05)
"""


class Row(NamedTuple):
    """A comparison.  pairs: of samples near in time.  difference: relative; median: of the pairs' absolute differences."""

    what: str
    ours: float
    other: float
    difference: float
    tolerance: float
    pairs: int = 0
    median: float | None = None

    @property
    def good(self) -> bool:
        return abs(self.difference) <= self.tolerance


class Readings:
    """What ``nvidia-smi`` says, by GPU and field: (wall clock in s, value)."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], list[tuple[float, float]]] = {}
        names = [field for field, _, _ in _FIELDS.values()]
        self._process = subprocess.Popen(
            ["nvidia-smi", f"--query-gpu=timestamp,uuid,{','.join(names)}", "--format=csv,noheader,nounits", "-lms", "250"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._names = names
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for row in csv.reader(self._process.stdout, skipinitialspace=True):
            at_s = datetime.strptime(row[0], "%Y/%m/%d %H:%M:%S.%f").astimezone().timestamp()
            for name, text in zip(self._names, row[2:], strict=True):
                with contextlib.suppress(ValueError):  # N/A
                    self.values.setdefault((row[1], name), []).append((at_s, float(text)))

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._thread.join()


class Counters:
    """The energy counters of all GPUs, read here: (wall clock in s, J) by UUID."""

    def __init__(self) -> None:
        self.values: dict[str, list[tuple[float, float]]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        import pynvml

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        while not self._over.wait(0.1):
            for handle in handles:
                with contextlib.suppress(pynvml.NVMLError):
                    before_s, joules = time.time(), pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000
                    point = (before_s + time.time()) / 2, joules
                    self.values.setdefault(pynvml.nvmlDeviceGetUUID(handle), []).append(point)

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=40.0, help="length of the load")
    parser.add_argument("--json", type=Path, help="a file for the rows")
    parser.add_argument("--keep", type=Path, help="a directory for the results of the run")
    given = parser.parse_args()
    if shutil.which("nvidia-smi") is None:
        print("not run: this machine has no nvidia-smi")
        return 0
    print(_said("nvidia-smi", "--query-gpu=name,driver_version,pstate,power.limit,mig.mode.current", "--format=csv,noheader"))
    with tempfile.TemporaryDirectory() as folder:
        directory = given.keep or Path(folder) / "run"
        with _loaded(given.seconds) as loaded:
            readings, counters = Readings(), Counters()
            try:
                code = _profile(directory, given.seconds)
            finally:
                readings.end()
                counters.end()
        if code:
            print(f"aiperf profile ended with {code}")
            return 1
        rows = list(_compared(directory, readings, counters))
    print(f"\nload: {loaded}\n")
    print(_table(rows))
    if given.json:
        given.json.write_text(json.dumps({"load": loaded, "rows": [row._asdict() | {"good": row.good} for row in rows]}))
    return 0 if rows and all(row.good for row in rows) else 1


@contextlib.contextmanager
def _loaded(seconds: float) -> Iterator[str]:
    """A load of the GPU; gives what it is."""
    process = subprocess.Popen([sys.executable, "-c", _LOAD, str(seconds)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    try:
        yield f"matrix products of torch on {said.removeprefix('ready ')}" if said else "none: torch has no GPU here"
    finally:
        process.terminate()
        process.wait()


def _profile(directory: Path, seconds: float) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    simulator = subprocess.Popen([sys.executable, "-m", "aiperf", "simulate", "--port", str(port)], stdout=subprocess.DEVNULL)
    try:
        until_s = time.monotonic() + 30
        while time.monotonic() < until_s:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        words = [
            "profile", "--model", "m", "--url", f"http://127.0.0.1:{port}", "--tokenizer", "builtin", "--streaming",
            "--isl", "200", "--osl", "50", "--request-rate", "20", "--benchmark-duration", str(seconds),
            "--gpu-telemetry", "pynvml", "--ui", "none", "--artifact-dir", str(directory),
        ]  # fmt: skip
        return subprocess.run([sys.executable, "-m", "aiperf", *words], check=False).returncode
    finally:
        simulator.terminate()
        simulator.wait()


def _compared(directory: Path, readings: Readings, counters: Counters) -> Iterator[Row]:
    summary = json.loads((directory / "profile_export_aiperf.json").read_text())
    phase = next(each for each in summary["phases"] if each["kind"] == "profiling")
    begin_s, end_s = (datetime.fromisoformat(phase[name]).timestamp() for name in ("start_time", "end_time"))
    source = next(each for each in summary["telemetry"] if each["source"] == "gpu_nvml")
    for series in open_run(directory).telemetry():
        if series.source != "gpu_nvml" or series.name not in _FIELDS or "mig" in series.labels:
            continue
        field, scale, tolerance = _FIELDS[series.name]
        theirs = [(at_s, value * scale) for at_s, value in readings.values.get((series.labels["uuid"], field), ())]
        ours = [(at_ns / 1e9, float(value)) for at_ns, value in zip(series.at_ns.tolist(), series.values.tolist(), strict=True)]
        if row := _row(f"{series.name} of GPU {series.labels['gpu']} ({series.unit})", ours, theirs, tolerance):
            yield row
    for each in source["series"]:
        if each["name"] == "nvidia_energy_consumption" and each["phase"] == phase["index"]:
            uuid, joules = each["labels"]["uuid"], each["stats"]["total"] * 1e6
            read = counters.values.get(uuid, [])
            power = readings.values.get((uuid, "power.draw"), [])
            others = (_at(read, end_s) - _at(read, begin_s), _integral(power, begin_s, end_s))
            for (what, tolerance), other in zip(_ENERGY.items(), others, strict=True):
                yield Row(f"energy of GPU {each['labels']['gpu']} (J) and {what}", joules, other, joules / other - 1, tolerance)


def _row(what: str, ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]], tolerance: float) -> Row | None:
    """The values of both that are near in time."""
    instants, pairs = [at_s for at_s, _ in ours], []
    for at_s, value in theirs:
        place = bisect_left(instants, at_s)
        near = min(ours[max(0, place - 1) : place + 1], key=lambda point: abs(point[0] - at_s), default=None)
        if near is not None and abs(near[0] - at_s) <= _NEAR_S:
            pairs.append((near[1], value))
    if not pairs:
        return None
    mean, other = (statistics.fmean(values) for values in zip(*pairs, strict=True))
    largest = max(value for _, value in pairs) or 1.0
    median = statistics.median(abs(one - two) for one, two in pairs)
    return Row(what, mean, other, (mean - other) / largest, tolerance, len(pairs), median)


def _at(points: Sequence[tuple[float, float]], at_s: float) -> float:
    """The value at an instant, on a straight line between points."""
    place = min(max(1, bisect_left(points, (at_s, 0.0))), len(points) - 1)
    (begin_s, first), (end_s, last) = points[place - 1 : place + 1]
    return first + (last - first) * (at_s - begin_s) / (end_s - begin_s)


def _integral(points: Sequence[tuple[float, float]], begin_s: float, end_s: float) -> float:
    inner = [(at_s, value) for at_s, value in points if begin_s < at_s < end_s]
    line = [(begin_s, _at(points, begin_s)), *inner, (end_s, _at(points, end_s))]
    return sum((one + two) / 2 * (to_s - from_s) for (from_s, one), (to_s, two) in pairwise(line))


def _table(rows: Sequence[Row]) -> str:
    lines = ["| quantity | aiperf | the other | difference | within | pairs | median difference | |", f"|{'---|' * 8}"]
    for row in rows:
        median = "" if row.median is None else f"{row.median:.4g}"
        lines.append(
            f"| {row.what} | {row.ours:.5g} | {row.other:.5g} | {row.difference:+.2%} | {row.tolerance:.0%} |"
            f" {row.pairs or ''} | {median} | {'' if row.good else 'differs'} |"
        )
    return "\n".join(lines)


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
