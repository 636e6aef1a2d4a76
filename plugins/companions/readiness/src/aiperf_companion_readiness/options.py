"""Options of the wait."""

from __future__ import annotations

from enum import StrEnum

from aiperf import Options, option
from aiperf.sdk.options import Finite


class ReadyMode(StrEnum):
    """What says that a server is ready: its list of models, an answer to a request, or both."""

    MODELS = "models"
    INFERENCE = "inference"
    BOTH = "both"


class ReadinessOptions(Options):
    timeout_s: Finite = option("--wait-for-model-timeout", default=0.0, ge=0, group="Connection", metavar="SECONDS",
        place="endpoint.wait_for_model_timeout",
        help="Wait so long for the server to be ready before anything is measured; 0 doesn't ask.")
    mode: ReadyMode = option("--wait-for-model-mode", default=ReadyMode.INFERENCE, group="Connection",
        place="endpoint.wait_for_model_mode",
        help="What says that it is ready: its list of models, an answer to a request, or both.")
    interval_s: Finite = option("--wait-for-model-interval", default=5.0, gt=0, group="Connection", metavar="SECONDS",
        place="endpoint.wait_for_model_interval", help="Time between two looks at the server.")

    def problems(self, typed: dict[str, str]) -> list[str]:
        """A setting of a wait that doesn't take place."""
        wanted = typed.get("timeout_s", "--wait-for-model-timeout")
        idle = [typed[field] for field in ("mode", "interval_s") if field in typed and not self.timeout_s]
        return [f"{flag} needs {wanted}: without it nobody waits\nadd {wanted}, or drop {flag}" for flag in idle]
