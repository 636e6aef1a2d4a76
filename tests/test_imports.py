"""What each process of a run imports by itself, by list: a name that is not in it costs every run its time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program

TELL = """
import atexit, os, sys

inherited = set()
os.register_at_fork(after_in_child=lambda: inherited.update(sys.modules))

def tell():
    names = (
        "aiperf_companion_telemetry.process", "aiperf_reducer_columns.reduce.reducer", "aiperf.worker.requests",
        "aiperf.prepare.build", "aiperf.run.run",
    )
    role = next((name for name in names if name in sys.modules and name not in inherited), None)
    if role is not None:
        with open(os.path.join(os.environ["TOLD"], role), "w") as file:
            file.write("\\n".join(set(sys.modules) - inherited))

def leave(code, leave=os._exit):
    tell()
    leave(code)

os._exit = leave
atexit.register(tell)
"""
PARENT, BUILDER, WORKER = "aiperf.run.run", "aiperf.prepare.build", "aiperf.worker.requests"
REDUCER, SAMPLING = "aiperf_reducer_columns.reduce.reducer", "aiperf_companion_telemetry.process"
"""The module that tells each process from the others."""
COMMON = {"aiperf", "msgspec", "typing_extensions", "zmq"}
PACKAGES = {
    PARENT: {*COMMON, "pluggy"},
    BUILDER: {*COMMON, "pluggy"},
    WORKER: {
        *COMMON, "uvloop", "httptools", "aiperf_dialects", "aiperf_driver_standard", "aiperf_endpoint_chat",
        "aiperf_reader", "aiperf_schedule_standard", "aiperf_transport_sockets",
    },
    REDUCER: {*COMMON, "numpy"},
    SAMPLING: {*COMMON, "httptools", "pluggy", "prometheus_client"},
}  # fmt: skip
"""Packages; plugins only where the list is short."""
COSTLY = {
    "asyncio", "ctypes", "email", "http.client", "importlib.metadata", "importlib.resources", "logging.handlers",
    "multiprocessing", "numpy._core", "ssl", "yaml", "zipfile",
}  # fmt: skip
"""Modules that cost 5 ms or more."""
NEEDED: Mapping[str, set[str]] = {
    PARENT: set(), BUILDER: set(), WORKER: {"asyncio", "ctypes", "ssl"}, REDUCER: {"ctypes", "numpy._core"},
    SAMPLING: set(),
}  # fmt: skip


@pytest.fixture(scope="module")
def imports(shared_simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The modules that each process has imported by itself at the end of a short run with the usual options."""
    folder = tmp_path_factory.mktemp("imports")
    (folder / "sitecustomize.py").write_text(TELL)
    aiperf = Program(folder, server_metrics=True)
    cached = {"AIPERF_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder), "TOLD": str(folder)}
    aiperf.environment |= cached | {"AIPERF_DISABLE_PLUGINS": "exporters:parquet"}  # not in a usual installation
    aiperf("--help")
    done = aiperf("profile", "--model", "m", "--url", shared_simulator.url, "--request-count", 2, "--isl", 9, "--osl", 2,
        "--streaming", "--tokenizer", "builtin", "--ui", "none")  # fmt: skip
    assert done.code == 0, done.err
    return {path.name: set(path.read_text().splitlines()) for path in folder.glob("aiperf*.*")}


@pytest.mark.parametrize("process", [PARENT, BUILDER, WORKER, REDUCER, SAMPLING])
def test_a_process_of_a_short_run_imports_nothing_that_is_not_listed(imports: dict[str, set[str]], process: str) -> None:
    modules = imports[process]
    tops = {name for name in (module.partition(".")[0] for module in modules) if not name.startswith("_")}
    others = tops - sys.stdlib_module_names - {"sitecustomize", "cython_runtime"}
    if process != WORKER:
        others = {name for name in others if not name.startswith("aiperf_")}
    assert others <= PACKAGES[process]
    assert modules & COSTLY <= NEEDED[process]


def test_verdicts_import_nothing_that_costs_much() -> None:
    # A parent whose requests all failed asks every verdict for a look at the server.
    modules = {verdict.module for verdict in entry_points(group="aiperf.verdicts")}
    assert len(modules) > 5
    code = f"import sys, {', '.join(sorted(modules))}; print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pydantic", "typer"} & {*imported}
