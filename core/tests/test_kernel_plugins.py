"""What the kernel registers itself keeps the contracts that strangers keep."""

from __future__ import annotations

from aiperf.sdk.ui import NoUi
from aiperf.testing import UiContract


class TestNoUi(UiContract):
    ui = NoUi
