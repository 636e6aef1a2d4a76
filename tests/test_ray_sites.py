"""Sites on a real Ray cluster of three nodes on this machine; skipped with the reason where Ray isn't installed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiperf_command_simulate.testing import Simulator, running
from arrivals import ledger, same_due
from program import Done, Program, wait_for
from requirements import ROOT

KEY = "the-key-that-nobody-may-read"
PROMPT = "the prompt that nobody may read"
STUB = "raise ImportError('Ray 2.60 can not be imported with this package and without the library of ROCm')"
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_prestart_worker_first_driver": "0"}
"""Else each node starts an interpreter for each of its processors with the first actor; here they share two."""
CLUSTER = """
import sys
from ray.cluster_utils import Cluster

node = {"num_cpus": 4, "object_store_memory": 80 << 20, "include_log_monitor": False, "temp_dir": sys.argv[1]}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
others = [cluster.add_node(**node) for _ in range(2)]
cluster.wait_for_nodes()
print(cluster.address, flush=True)
for line in sys.stdin:
    if line == "remove\\n":
        cluster.remove_node(others.pop(), allow_graceful=False)
    else:
        others.append(cluster.add_node(**node))
        cluster.wait_for_nodes()
    print("done", flush=True)
cluster.shutdown()
"""


READER = """
import json, sys
from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr

print(json.dumps(_derive_autoscaling_config_from_ray_cr(json.load(sys.stdin))["available_node_types"]))
"""


class Cluster:
    """A cluster of three nodes with four processors each.  folder: where Ray writes."""

    def __init__(self, folder: Path, stub: Path) -> None:
        self.folder = folder
        self._log = (folder / "cluster.log").open("wb")
        (folder / "ray").mkdir()  # Ray notes the address of a cluster there, and does not make it
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLUSTER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            env=os.environ | {"PYTHONPATH": str(stub), "RAY_TMPDIR": str(folder)} | QUIET, start_new_session=True, text=True,
        )  # fmt: skip
        self.address = self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line, (self.folder / "cluster.log").read_text()
        return line

    def tell(self, word: str) -> None:
        """``remove`` a node, or ``add`` one."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        assert self._line() == "done"

    def processes(self, word: str) -> list[int]:
        """Processes of the cluster whose command line has this word."""
        parents: dict[int, int] = {}
        commands: dict[int, str] = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                commands[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return sorted(pid for pid, command in commands.items() if word in command and self._has(pid, parents))

    def _has(self, pid: int, parents: dict[int, int]) -> bool:
        while pid > 1:
            if pid == self.process.pid:
                return True
            pid = parents.get(pid, 0)
        return False

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._log.close()


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for Ray's own processes, which the engine does not start."""
    folder = tmp_path_factory.mktemp("stub")
    (folder / "amdsmi.py").write_text(STUB)
    return folder


@pytest.fixture(scope="module")
def cluster(stub: Path) -> Iterator[Cluster]:
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: run make test")
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:  # sockets are below it
        cluster = Cluster(Path(folder), stub)
        try:
            yield cluster
        finally:
            cluster.close()


def words(simulator: Simulator, *more: str | int, name: str = "run") -> list[str | int]:
    return [
        "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 30, "--osl", 4, "--streaming",
        "--random-seed", 7, "--ui", "none", "--artifact-dir", name, *more,
    ]  # fmt: skip


def sites(cluster: Cluster, count: int = 3) -> tuple[str | int, ...]:
    return "--engine", "ray", "--ray-address", cluster.address, "--ray-sites", count


def run(aiperf: Program, simulator: Simulator, *more: str | int, name: str = "run", code: int = 0) -> Done:
    simulator.reset()
    done = aiperf(*words(simulator, *more, name=name))
    assert done.code == code, done.err
    return Done(done.code, done.out, done.err, aiperf.folder / name)


def test_three_nodes_send_what_one_machine_sends(aiperf: Program, simulator: Simulator, cluster: Cluster) -> None:
    data = aiperf.folder / "data.jsonl"
    data.write_text(json.dumps({"text": PROMPT}) + "\n")
    load = (
        "--request-rate", 100, "--request-count", 60, "--concurrency", 50, "--api-key", KEY, "--input-file", data.name,
        "--custom-dataset-type", "single_turn",
    )  # fmt: skip
    found = []
    for name, more in (("here", ()), ("there", sites(cluster))):
        simulator.reset()
        done = aiperf(*[word for word in words(simulator, *load, *more, name=name) if word not in ("--isl", 30)])
        assert done.code == 0, done.err
        found.append(Done(done.code, done.out, done.err, aiperf.folder / name))
    here, there = found
    assert same_due(here, there)
    truth = simulator.truth()["requests"]
    assert {row["request_id"] for row in truth} == {row["x_request_id"] for row in ledger(there)} and len(truth) == 60
    assert Counter(row["worker"] for row in ledger(there)) == {"worker-0": 20, "worker-1": 20, "worker-2": 20}
    assert there.json()["request_count"]["avg"] == 60 and there.json()["is_complete"]
    assert [site["name"] for site in there.json()["measurement"]["sites"]] == ["ray-0", "ray-1", "ray-2"]
    # The nodes' clock is that of this machine, so that the offset is known: 0.
    assert all(abs(site["ahead_ms"]) <= site["within_ms"] for site in there.json()["measurement"]["sites"])
    assert all("at the node" in (there.artifacts / "logs" / f"site-{n}.log").read_text() for n in range(3))
    files = [path for path in [*cluster.folder.rglob("*"), *(there.artifacts / "logs").iterdir()] if path.is_file()]
    assert len(files) > 10
    told = [path for path in files if any(secret.encode() in path.read_bytes() for secret in (KEY, PROMPT))]
    assert told == [], "a key or a prompt stands in a file of Ray's, or in a log"
    assert cluster.processes("site_process") == [], "the sites have ended"


def test_the_cluster_of_kubernetes_is_read_by_ray(stub: Path) -> None:
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: run make test")
    manifest = yaml.safe_load((ROOT / "deploy" / "raycluster.yaml").read_text())
    manifest["metadata"]["namespace"] = "default"  # which the cluster adds
    read = subprocess.run(
        [sys.executable, "-c", READER], input=json.dumps(manifest), env=os.environ | {"PYTHONPATH": str(stub)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert read.returncode == 0, read.stderr
    types = json.loads(read.stdout)
    head, nodes = types["headgroup"], types["sites"]
    assert head["resources"]["CPU"] == 0 and nodes["resources"]["CPU"] == 4
    assert nodes["min_workers"] == nodes["max_workers"] == 3
    for group in (manifest["spec"]["headGroupSpec"], *manifest["spec"]["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        assert container["resources"]["requests"] == container["resources"]["limits"]
    line = (ROOT / "deploy" / "raycluster.yaml").read_text()
    workers, count = (int(line.partition(f"{flag} ")[2].split()[0]) for flag in ("--workers", "--ray-sites"))
    assert count == nodes["max_workers"] and workers // count + 1 == nodes["resources"]["CPU"], "workers and a reducer fit"


@pytest.fixture
def slow() -> Iterator[Simulator]:
    with running(first_token_ms=20, decode_ms=2, decode_batch_us=0) as simulator:
        yield simulator


@pytest.mark.long
def test_nodes_divide_a_ceiling_and_send_each_arrival_of_a_burst_once(
    aiperf: Program, slow: Simulator, cluster: Cluster
) -> None:
    done = run(aiperf, slow, "--concurrency", 5, "--request-count", 50, "--workers", 6, *sites(cluster))
    assert slow.summary()["in_flight_max"] <= 5 and slow.summary()["requests"] == 50
    assert [row["n"] for row in ledger(done)] == [*range(50)]
    assert {row["worker"] for row in ledger(done)} <= {f"worker-{i}" for i in range(6)}


@pytest.mark.long
def test_sessions_and_a_recorded_trace_are_whole_on_nodes(aiperf: Program, simulator: Simulator, cluster: Cluster) -> None:
    sessions = ("--request-rate", 200, "--num-sessions", 12, "--session-turns-mean", 3)
    here, there = (run(aiperf, simulator, *sessions, *more, name=f"s{len(more)}") for more in ((), sites(cluster)))
    assert len(ledger(here)) == len(ledger(there)) and there.json()["is_complete"]
    trace = aiperf.folder / "trace.jsonl"
    rows = [{"timestamp": 10 * n, "text_input": f"line {n}", "output_length": 3} for n in range(30)]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    replay = ("--input-file", trace.name, "--custom-dataset-type", "mooncake_trace", "--fixed-schedule")
    found = []
    for name, more in (("here", ()), ("there", sites(cluster))):
        plain = words(simulator, *replay, *more, name=name)
        done = aiperf(*[word for word in plain if word not in ("--isl", 30, "--osl", 4)])
        assert done.code == 0, done.err
        found.append(Done(0, "", "", aiperf.folder / name))
    assert same_due(found[0], found[1], count=30)


LOAD = ("--request-rate", 40, "--request-count", 400)


def disturbed(aiperf: Program, simulator: Simulator, cluster: Cluster, disturb: Any) -> Done:
    """A run of ten seconds, with *disturb* in its midst."""
    simulator.reset()
    started = aiperf.start(*words(simulator, *LOAD, *sites(cluster)))
    columns = [aiperf.folder / "run" / "journal" / f"columns-{site}.0" for site in range(3)]
    wait_for(lambda: all(path.exists() and path.stat().st_size > 0 for path in columns))
    disturb()
    done = started.end()
    return Done(done.code, done.out, done.err, aiperf.folder / "run")


def check_lost(done: Done, why: str) -> None:
    assert done.code == 1, done.err
    (site,) = [site for site in done.json()["measurement"]["sites"] if "lost" in site]
    lost = f"the site {site['name']} was lost: {why}"
    assert done.json()["incomplete_reason"].startswith(lost) and f"results are partial: {lost}" in done.last_words
    rows = Counter((row.get("worker"), row["outcome"]) for row in ledger(done))
    assert sum(rows.values()) == 400 and rows[f"worker-{site['shards'][0]}", "completed"] > 0 and rows[None, "unknown"] > 0


@pytest.mark.long
def test_a_site_that_is_killed_is_named(aiperf: Program, simulator: Simulator, cluster: Cluster) -> None:
    done = disturbed(aiperf, simulator, cluster, lambda: os.kill(cluster.processes("run.site_process")[0], signal.SIGKILL))
    check_lost(done, "its command was killed by SIGKILL (at the node")


@pytest.mark.long
def test_a_node_that_is_removed_takes_its_site_along(aiperf: Program, simulator: Simulator, cluster: Cluster) -> None:
    done = disturbed(aiperf, simulator, cluster, lambda: cluster.tell("remove"))
    cluster.tell("add")
    check_lost(done, "its command exited with 1 (its node has died)")


@pytest.mark.long
def test_a_site_that_is_stopped_for_five_seconds_loses_nothing(aiperf: Program, simulator: Simulator, cluster: Cluster) -> None:
    def stop() -> None:
        site = cluster.processes("run.site_process")[0]
        tree = [site, *(pid for pid in cluster.processes("aiperf.") if parent(pid) == site)]
        assert len(tree) > 2
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in tree:
                os.kill(pid, number)
            time.sleep(5.0 if number == signal.SIGSTOP else 0.0)

    done = disturbed(aiperf, simulator, cluster, stop)
    assert done.code == 0, done.err
    assert [row["outcome"] for row in ledger(done)] == ["completed"] * 400
    assert simulator.summary()["requests"] == 400


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.long
def test_the_runs_of_a_study_have_the_same_actors(aiperf: Program, simulator: Simulator, cluster: Cluster) -> None:
    done = run(aiperf, simulator, *LOAD[:-1], 40, "--num-profile-runs", 3, *sites(cluster))
    logs = [path.read_text() for path in done.artifacts.rglob("site-*.log")]
    assert sum(log.count("at the node") for log in logs) == 3, "each actor was started once"
    assert simulator.summary()["requests"] == 120
    assert cluster.processes("site_process") == [], "the sites have ended"


@pytest.mark.long
def test_two_runs_share_a_cluster_and_a_third_is_refused(aiperf: Program, simulator: Simulator, cluster: Cluster) -> None:
    runs = [aiperf.start(*words(simulator, *LOAD, *sites(cluster), name=name)) for name in ("one", "two")]
    for started in runs:
        started.hears("Phase profiling (profiling) started")
    refused = aiperf(*words(simulator, *LOAD, *sites(cluster), "--ray-wait", 1, name="three"))
    assert refused.code == 1
    said = "site ray-0: its command exited with 1 (the cluster has no room for 3 sites of 2 CPUs: 0 of 12 are free on 3 nodes"
    assert said in refused.err
    for started, name in zip(runs, ("one", "two"), strict=True):
        assert started.end().code == 0
        assert len(ledger(Done(0, "", "", aiperf.folder / name))) == 400


@pytest.mark.long
def test_an_interrupt_while_sites_start_ends_them(aiperf: Program, simulator: Simulator, cluster: Cluster) -> None:
    started = aiperf.start(*words(simulator, *LOAD, *sites(cluster)))
    wait_for(lambda: any("engine_process" in command for command in started.processes().values()))
    started.interrupt()
    done = started.end()
    assert done.code == 130 and started.survivors() == []
    wait_for(lambda: not cluster.processes("run.site_process") and not cluster.processes("SiteActor"))
    assert simulator.summary()["requests"] == 0


@pytest.mark.long
def test_a_cluster_that_is_not_there_is_said(aiperf: Program, simulator: Simulator) -> None:
    with socket.create_server(("127.0.0.2", 0)) as free:
        address = f"127.0.0.2:{free.getsockname()[1]}"
    done = run(aiperf, simulator, *LOAD, "--engine", "ray", "--ray-address", address, "--ray-sites", 1, code=1)
    assert f"error: the Ray cluster {address} can't be reached: " in done.err and simulator.summary()["requests"] == 0
