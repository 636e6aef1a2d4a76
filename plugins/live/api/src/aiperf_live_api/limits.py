"""The limits of the API, and the look whether its port is free.  Cheap: the run's own process imports it."""

from __future__ import annotations

from aiperf import ConfigError
from aiperf.sdk.environment import number
from aiperf.sdk.errors import AiperfError
from aiperf_pages.ports import listen
from msgspec import Struct

_MOST_GRACE_S = 50.0


class Limits(Struct, frozen=True):
    """grace_s: how long the port is open behind the run, where anybody has asked for anything.  shutdown_s: from the answer to
    ``POST /api/shutdown`` to the end.  most_clients: of events."""

    grace_s: float = 5.0
    shutdown_s: float = 0.5
    most_clients: int = 100

    @classmethod
    def of_environment(cls) -> Limits:
        """The limits that the variables of the environment set, or their defaults.

        Raises:
            ConfigError: One of them is no number in its range.
        """
        return cls(
            number("AIPERF_API_SERVER_POST_COMPLETE_GRACE", 0, _MOST_GRACE_S, 5.0),
            number("AIPERF_API_SERVER_SHUTDOWN_RESPONSE_DELAY_SECONDS", 0, 60, 0.5),
            round(number("AIPERF_API_SERVER_WEBSOCKET_MAX_CONNECTIONS", 1, 100_000, 100)),
        )


def occupied(host: str, port: int, flag: str) -> None:
    """Refuse a port that can't be listened on.

    Raises:
        ConfigError: It is taken, or the host is no address of this machine.
    """
    try:
        listen(host, port).close()
    except AiperfError as error:
        raise ConfigError(f"{flag}: {error.message}", *error.hints) from error


__all__ = ["Limits", "occupied"]
