"""What a table says of its run, in the metadata of its schema."""

from __future__ import annotations

from aiperf import Target
from aiperf.parts.journal import load_run
from aiperf.sdk.errors import BadJournal


def about(target: Target) -> dict[str, str]:
    """The run's id, its seed, its command line without secrets, and the version of the program; empty without a journal."""
    if target.journal is None:
        return {}
    try:
        run = load_run(target.journal)[0].run
    except BadJournal:  # of another version: the rows are as good
        return {}
    told = {"benchmark_id": run.run_id, "random_seed": str(run.seed), "cli_command": run.command, "version": run.version}
    return {f"aiperf.{name}": value for name, value in told.items()}
