"""A hook plugin whose import starts a thread that never ends, and takes the alarm's time to do so."""

from __future__ import annotations

import threading
import time

from aiperf import hookimpl

threading.Thread(target=time.sleep, args=(3600,), name="acme-lingering").start()


class Lingering:
    @hookimpl
    def aiperf_teardown(self) -> None:
        threading.Thread(target=time.sleep, args=(3600,), name="acme-lingering-again").start()
