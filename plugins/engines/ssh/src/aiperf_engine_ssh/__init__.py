"""Sites on other machines, reached with the ssh program: its configuration, keys and known hosts count."""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
from collections.abc import Sequence

from aiperf import ConfigError, LocalProcess, Shard, SiteEngine, SiteStart

from aiperf_engine_ssh.options import SshOptions

_USER, _NAME, _IPV6 = r"[^@\s:/-][^@\s:/]*@", r"[^@\s:/\[\]-][^@\s:/\[\]]*", r"\[[0-9a-fA-F:.%]+\]"
_HOST = re.compile(rf"(?P<login>(?:{_USER})?(?:{_IPV6}|{_NAME}))(?::(?P<port>\d{{1,5}}))?")
_SETTINGS = (
    "BatchMode=yes", "ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes", "ServerAliveInterval=5", "ServerAliveCountMax=6",
)  # fmt: skip
"""No question is asked, since nobody could answer; a connection that stays silent for 30 s ends, as a site does."""


class Ssh(SiteEngine[SshOptions]):
    """A command of the ssh program for each site.

    The site's way back to the run is a socket in the directory for temporary files there, which ssh forwards: no port is
    opened on either machine.
    """

    def names(self) -> Sequence[str]:
        if not self.options.hosts:
            raise ConfigError("no machine is named", "add --ssh-hosts HOST,USER@HOST:PORT")
        for host in self.options.hosts:
            _parts(host)
        _words(self.options.more)
        return self.options.hosts

    def address(self, index: int, port: int) -> str:
        return f"ipc:///tmp/aiperf-site-{secrets.token_hex(8)}.sock"

    def start(self, start: SiteStart) -> Shard:
        program = shutil.which("ssh")
        if program is None:
            raise ConfigError("the program ssh is not installed", "install it: the package is often called openssh-client")
        login, port = _parts(self.options.hosts[start.index])
        words = [program, "-T", "-x", *_words(self.options.more)]
        for setting in _SETTINGS:
            words += ["-o", setting]
        words += [] if port is None else ["-p", port]
        words += ["-R", f"{start.address.removeprefix('ipc://')}:127.0.0.1:{start.port}", "--", login]
        words += [f"exec {shlex.join([self.options.python, *start.words])}"]  # the shell there reads it
        site = LocalProcess(words, start.log)
        site.give(start.input)
        return site


def _parts(host: str) -> tuple[str, str | None]:
    """Login and port of a machine; None is ssh's own port.

    Raises:
        ConfigError: It is none.
    """
    match = _HOST.fullmatch(host)
    if match is None or int(match["port"] or 1) not in range(1, 65_536):
        forms = "write HOST, USER@HOST or USER@HOST:PORT; an IPv6 address in brackets"
        raise ConfigError(f"{host!r} is no machine for ssh", forms)
    return match["login"].replace("[", "").replace("]", ""), match["port"]


def _words(text: str) -> list[str]:
    """The words of ``--ssh-options``.

    Raises:
        ConfigError: A quotation mark has no other one.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"--ssh-options can't be read: {str(error).lower()}", "close the quotation mark") from error


__all__ = ["Ssh"]
