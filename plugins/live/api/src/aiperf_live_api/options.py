"""Options of the API; where none is given, the variables of the environment."""

from __future__ import annotations

import os
from typing import Any

from aiperf import ConfigError, Options, option

HOST, PORT = "AIPERF_API_SERVER_HOST", "AIPERF_API_SERVER_PORT"
DEFAULT_HOST = "127.0.0.1"
_GROUP = "Service"
_MOST_PORT = 65_535
"""The last port."""


def port_of_environment() -> int | None:
    """``AIPERF_API_SERVER_PORT``; None where it is not set.

    Raises:
        ConfigError: It is no port.
    """
    text = os.environ.get(PORT, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) > _MOST_PORT:
        raise ConfigError(f"{PORT} is {text!r}; it must be a port from 0 to {_MOST_PORT}", "0 takes a free one")
    return int(text)


def _token_of_environment() -> str | None:
    from aiperf_pages.tokens import token_of_environment  # only in runs with a port

    return token_of_environment()


class ApiOptions(Options):
    api_port: int | None = option("--api-port", ge=0, le=_MOST_PORT, group=_GROUP, metavar="PORT", shown="none",
        place="runtime.api_port",
        help="Serve the run on this port while it goes on: a page, JSON, Prometheus; 0 takes a free one, which is printed.")
    api_host: str | None = option("--api-host", min_length=1, group=_GROUP, metavar="ADDRESS", shown=DEFAULT_HOST,
        place="runtime.api_host",
        help="Name or address to serve on; beyond this machine every request needs the token.")

    api_token: str | None = option("--api-token", secret=True, hidden=True, group=_GROUP, metavar="TOKEN",
        place="runtime.api_token", help="The token; better in AIPERF_API_TOKEN, which no list of processes shows.")

    def __init__(self, **values: Any) -> None:
        given = {name: value for name, value in values.items() if value is not None}
        for name, read in (("api_port", port_of_environment), ("api_token", _token_of_environment)):
            if name not in given and (name == "api_port" or "api_port" in given):
                try:
                    value = read()
                except ConfigError:
                    value = 0 if name == "api_port" else None  # problems() says what is wrong
                given |= {} if value is None else {name: value}
        super().__init__(**given)

    @property
    def host(self) -> str:
        return self.api_host or os.environ.get(HOST, "").strip() or DEFAULT_HOST

    def problems(self, typed: dict[str, str]) -> list[str]:
        """A host without a port; variables with another value than they may have; a port that was given and is taken."""
        if "api_port" not in typed:
            try:
                port_of_environment()
            except ConfigError as error:
                return ["\n".join(error.lines())]
        if self.api_port is None:
            flag = typed.get("api_host")
            hint = f"add --api-port, 0 takes a free one; or drop {flag}"
            return [] if flag is None else [f"{flag} needs --api-port or {PORT}: it says where to serve\n{hint}"]
        from aiperf_live_api.limits import Limits, occupied  # only in runs with a port

        try:
            _token_of_environment()
            Limits.of_environment()
            if "api_port" in typed:
                occupied(self.host, self.api_port, typed["api_port"])
        except ConfigError as error:
            return ["\n".join(error.lines())]
        return []


__all__ = ["DEFAULT_HOST", "HOST", "PORT", "ApiOptions", "port_of_environment"]
