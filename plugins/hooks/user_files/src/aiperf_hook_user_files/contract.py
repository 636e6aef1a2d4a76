"""The hooks for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import HooksContract

from aiperf_hook_user_files import UserFiles


class UserFilesContract(HooksContract):
    hooks = UserFiles
