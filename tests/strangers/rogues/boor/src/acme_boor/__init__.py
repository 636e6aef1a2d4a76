"""A package whose import is slow, talks, and leaves nothing as it was."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

time.sleep(2.5)
print("Welcome to acme-boor!")
print("acme-boor is here", file=sys.stderr)
os.chdir("/")
os.umask(0)
os.environ["ACME_BOOR"] = "was here"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.Thread(target=time.sleep, args=(3600,), name="acme-boor").start()
