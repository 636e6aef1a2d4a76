"""Options of ``aiperf service``."""

from __future__ import annotations

from pathlib import Path

from aiperf import Options, option
from aiperf.sdk.options import Finite


class ServiceOptions(Options):
    port: int = option(
        "--port", default=8080, ge=0, le=65_535, metavar="PORT", help="Port to listen on; 0 takes a free one. It is printed."
    )
    host: str = option(
        "--host",
        default="127.0.0.1",
        min_length=1,
        metavar="ADDRESS",
        help="Name or address to listen on. Every request but the probes needs the token, on this machine, too.",
    )
    directory: Path = option(
        "--directory",
        default=Path("aiperf-service"),
        metavar="DIR",
        help="Where the service keeps its queue, and the runs with their files. It belongs to one service at a time.",
    )
    token_file: Path | None = option(
        "--token-file",
        metavar="FILE",
        shown="one is made and printed",
        help="File with the token, mode 0600; one that is not there is made.",
    )
    queue: int = option(
        "--queue",
        default=16,
        ge=1,
        le=10_000,
        metavar="INT",
        help="Runs that may wait; further ones are refused until there is room.",
    )
    keep: int = option(
        "--keep",
        default=20,
        ge=1,
        le=1_000_000,
        metavar="INT",
        help="Ended runs that are kept; the oldest go, but for those that somebody asked to keep.",
    )
    disk_quota: str | None = option(
        "--disk-quota",
        metavar="SIZE",
        shown="none",
        help="Bytes that all runs together may take, such as 20GB; no run is taken beyond.",
    )
    data: Path | None = option(
        "--data",
        metavar="DIR",
        shown="none",
        help="The folder below which posted runs may name files; without it they may name none.",
    )
    allow_env: list[str] = option(
        "--allow-env", default=[], metavar="NAME", help="Variables of the environment that posted runs may use as ${NAME}."
    )
    allow_url: list[str] = option(
        "--allow-url",
        default=[],
        metavar="PREFIX",
        shown="all",
        help="What the URLs of posted runs begin with, such as http://llm:8000.",
    )
    grace: Finite = option(
        "--grace",
        default=30.0,
        ge=0,
        metavar="SECONDS",
        help="How long a run under way may go on after SIGTERM; then it is stopped, with its results.",
    )
    benchmark_run: Path | None = option(
        "--benchmark-run",
        metavar="FILE",
        help="Run this file, serve it meanwhile, and end with its exit code; as the word FILE.",
    )
    health_host: str | None = option(
        "--health-host",
        metavar="ADDRESS",
        shown="--host",
        help="Address of the probes, where it is another one (AIPERF_SERVICE_HEALTH_HOST).",
    )
    health_port: int | None = option(
        "--health-port",
        ge=0,
        le=65_535,
        metavar="PORT",
        shown="--port",
        help="Port of the probes, where it is another one (AIPERF_SERVICE_HEALTH_PORT).",
    )


__all__ = ["ServiceOptions"]
