"""The options of the ssh engine."""

from __future__ import annotations

from aiperf import Options, option


class SshOptions(Options):
    """hosts: as the ssh program takes them, with a port behind a colon.  python: the interpreter there that has aiperf.
    more: further words for the ssh program."""

    hosts: tuple[str, ...] = option(
        "--ssh-hosts", default=(), metavar="HOSTS", help="A site on each of these machines: HOST, USER@HOST or USER@HOST:PORT.",
    )  # fmt: skip
    python: str = option(
        "--ssh-python", default="python3", metavar="PATH", help="The Python interpreter there that has aiperf installed.",
    )  # fmt: skip
    more: str = option(
        "--ssh-options", default="", metavar="TEXT",
        help="Further options of the ssh program, for example '-i KEY -o Name=Value'.",
    )  # fmt: skip
