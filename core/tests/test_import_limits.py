"""An import of a plugin may hang, or leave a thread behind: the process names it, and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from aiperf.errors import PluginError
from aiperf.registry.imports import Imports, ImportTimeoutError
from aiperf.registry.third_party import load
from aiperf.sdk.descriptor import PluginRef

ASLEEP = "import time\ntime.sleep(3600)\n"
STUBBORN = "import time\nwhile True:\n    try:\n        time.sleep(3600)\n    except Exception:\n        pass\n"
BUSY = "n = 0\nwhile True:\n    n += 1\n"
DEAF = "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\ntime.sleep(3600)\n"


def plugin(name: str) -> PluginRef:
    return PluginRef("metrics", "late", f"{name}:Late", "acme-late", "1.0")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("code", [ASLEEP, STUBBORN, BUSY], ids=["sleep", "caught", "busy"])
def test_an_import_that_hangs_fails_with_its_name_and_is_not_tried_again(site: Path, code: str) -> None:
    name = f"hangs_{abs(hash(code))}"
    (site / f"{name}.py").write_text(code)
    imports = Imports(0.2)
    for _ in range(2):
        with pytest.raises(ImportTimeoutError, match=r"did not end within 0\.2 s"), imports.limited(name, plugin(name)):
            __import__(name)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_the_error_names_the_plugin(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "hangs_in_load.py").write_text(ASLEEP)
    monkeypatch.setenv("AIPERF_PLUGIN_IMPORT_TIMEOUT", "200ms")
    with pytest.raises(PluginError) as caught:
        load(plugin("hangs_in_load"))
    assert caught.value.message == (
        "the plugin metrics:late of acme-late 1.0 can't be imported: its import did not end within 0.2 s"
        " (AIPERF_PLUGIN_IMPORT_TIMEOUT)"
    )


def test_an_import_within_an_import_has_its_own_limit(site: Path) -> None:
    (site / "outer_import.py").write_text("VALUE = 1\n")
    (site / "inner_import.py").write_text(ASLEEP)
    imports = Imports(0.3)
    with imports.limited("outer_import", "outer"):
        __import__("outer_import")
        with pytest.raises(ImportTimeoutError), Imports(0.1).limited("inner_import", "inner"):
            __import__("inner_import")
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.3


def run(site: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(site), "AIPERF_PLUGIN_IMPORT_TIMEOUT": "0.2"}
    return subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=600, env=environment
    )


@pytest.mark.parametrize("thread", [False, True], ids=["no signal arrives", "another thread"])
def test_an_import_that_no_signal_reaches_ends_the_process_with_a_sentence(site: Path, thread: bool) -> None:
    (site / "deaf.py").write_text(DEAF)
    call = "load(PluginRef('metrics', 'late', 'deaf:Late', 'acme-late', '1.0'))"
    if thread:
        call = f"import threading; threading.Thread(target=lambda: {call}).start()"
    done = run(site, f"from aiperf.registry.third_party import load\nfrom aiperf.sdk.descriptor import PluginRef\n{call}")
    assert done.returncode == 1
    assert done.stderr.startswith("error: the plugin metrics:late of acme-late 1.0 can't be imported: its import did not end")


def test_a_thread_left_by_an_import_does_not_keep_the_process(site: Path) -> None:
    (site / "threaded.py").write_text("import threading, time\nthreading.Thread(target=time.sleep, args=(3600,)).start()\n")
    done = run(site, "import sys, threaded\nfrom aiperf.registry.imports import leave\nprint('said')\nsys.exit(leave(7))")
    assert (done.returncode, done.stdout) == (7, "said\n")
