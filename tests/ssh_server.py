"""Debian's server of ssh for tests and benchmarks: one's own, with keys of its own, for as long as a ``with`` lasts."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

SERVER = """
Port {port}
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/login.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
PidFile none
"""
_SEPARATION = Path("/run/sshd")
"""Where the server puts the processes that speak to strangers; a service manager makes it."""


class NoSshError(Exception):
    """No server of ssh can be started here; the message says why."""


def _as_it_is(words: Sequence[object]) -> list[str]:
    return [*map(str, words)]


@contextlib.contextmanager
def ssh_server(
    folder: Path, address: str = "127.0.0.1", command: Callable[[Sequence[object]], list[str]] = _as_it_is, port: int = 0
) -> Iterator[tuple[int, str]]:  # fmt: skip
    """The port of a server that lets this user in, and options of the ssh program for it.

    *folder*: for its files.  *command*: gives the command line that runs words elsewhere, where *port* must be free.

    Raises:
        NoSshError: There is none here.
    """
    program, maker = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin"), shutil.which("ssh-keygen")
    if program is None or maker is None or shutil.which("ssh") is None:
        raise NoSshError("no server of ssh is installed")
    with contextlib.suppress(OSError):
        _SEPARATION.mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "login"):
        if not (folder / name).exists():
            subprocess.run([maker, "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    if not port:
        with socket.create_server((address, 0)) as free:
            port = int(free.getsockname()[1])
    (folder / "config").write_text(SERVER.format(port=port, folder=folder, address=address))
    (folder / "known").write_text(f"[{address}]:{port} {(folder / 'host.pub').read_text()}")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command([program, "-D", "-e", "-f", folder / "config"]), stderr=log)
    try:
        until_s = time.monotonic() + 60
        while "Server listening" not in (said := (folder / "log").read_text()):
            if server.poll() is not None or time.monotonic() > until_s:
                raise NoSshError(f"a server of ssh can't be started here: {said.strip()}")
            time.sleep(0.02)
        yield port, f"-i {folder}/login -o UserKnownHostsFile={folder}/known"
    finally:
        server.terminate()
        server.wait()
