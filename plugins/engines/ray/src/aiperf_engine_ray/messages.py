"""What the engine and the process that is connected to Ray say to each other, in lines of JSON."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class Connect(Struct, frozen=True, tag=True):
    """The first message.  sites: how many will be started.  wait_s: how long they may wait for processors."""

    address: str
    sites: int
    wait_s: float


class StartSite(Struct, frozen=True, tag=True):
    """Start a command.  number: of the start.  index: of the site.  log: path of a file.  cpus: how many it needs."""

    number: int
    index: int
    words: tuple[str, ...]
    input: bytes
    log: str
    cpus: int


class EndSite(Struct, frozen=True, tag=True):
    """Close the standard input of a command, or *kill* it."""

    number: int
    kill: bool


class Connected(Struct, frozen=True, tag=True):
    """host: the IP address of this machine in the cluster; "" where it can't be used, for the reason in *refusal*: a sentence,
    and what to do."""

    host: str = ""
    refusal: tuple[str, str] = ("", "")


class SiteEnded(Struct, frozen=True, tag=True):
    number: int
    code: int


decode_order = msgspec.json.Decoder(Connect | StartSite | EndSite).decode
decode_reply = msgspec.json.Decoder(Connected | SiteEnded).decode
