"""What to do instead of options and commands of other programs, and of later versions of this one."""

from __future__ import annotations

from aiperf import hookimpl
from aiperf.sdk.command import LATER

_NOT_HERE = "belongs to the {} endpoint package, which is not installed"
OPTIONS = {
    "--session-concurrency": "use --concurrency", "--service-kind": "name the API with --endpoint-type, and the server with -u",
    **dict.fromkeys(("--server-metrics-url", "--server-metrics-urls"), "use --gpu-telemetry URL, not --server-metrics"),
    "--max-threads": "use --workers-max",
    "--backend": _NOT_HERE.format("kserve"),
    "--grpc-method": _NOT_HERE.format("dynamic_grpc"),
    "--output-tokens-mean-deterministic": _NOT_HERE.format("kserve or tensorrtllm_engine"),
    **dict.fromkeys(("--checkpoint-dir", "--enable-checkpointing"), "the journal does it: aiperf report DIR after a crash"),
    "--generate-plots": "run aiperf plot afterwards",
    **dict.fromkeys(
        ("--measurement-interval", "-p", "--stability-percentage", "-s"),
        "not applicable here; use --request-count or --benchmark-duration",
    ),
}  # fmt: skip
"""Options that have no equivalent of that name, and what to do instead."""
LATER_BEGINNINGS = (
    "accuracy", "agentic", "convergence", "gpu-telemetry", "mlflow", "network-latency", "num-profile-runs", "optuna", "otel",
    "parameter-sweep", "profile-run", "search", "server-metrics", "sweep", "wandb",
)  # fmt: skip
"""How options begin that the reference has, and a later version of this program."""
COMMANDS = {
    "analyze": "sweeps: run aiperf profile once for each load; aiperf plot compares the directories",
    "config": "a configuration file is given as aiperf profile --config FILE",
    "create-template": "docs/config.md describes configuration files; aiperf plugins new makes packages",
    "process-export-files": "aiperf report DIR reads a run again",
    "service": "the processes of a run are started by aiperf profile",
    "speed-bench-report": LATER,
    "help": "aiperf --help lists the commands", "version": "aiperf --version prints it",
}  # fmt: skip
"""Commands of other programs, and what to do instead."""


class OtherTools:
    """A guide: it answers for words that nothing installed has."""

    @hookimpl
    def aiperf_unknown_option(self, flag: str) -> str | None:
        name = flag.removeprefix("--no-").removeprefix("--")
        return OPTIONS.get(flag) or (LATER if flag.startswith("--") and name.startswith(LATER_BEGINNINGS) else None)

    @hookimpl
    def aiperf_unknown_command(self, name: str) -> str | None:
        return COMMANDS.get(name)


__all__ = ["OtherTools"]
