"""Options of the metrics that are sent by OpenTelemetry."""

from __future__ import annotations

import contextlib
import json
from typing import Annotated

from aiperf import ConfigError, Options, option
from aiperf.sdk.environment import number
from aiperf.sdk.options import After, Word
from aiperf.sdk.redaction import without_secrets
from msgspec import Struct

METRICS, TIMING, DEFAULT = "metrics", "timing", "default"
_GROUP = "Trackers"
_PATH = "/v1/metrics"


class Limits(Struct, frozen=True):
    """interval_s, most_records: what is sent after so long or so many requests.  buffered: requests that wait in a reducer.

    request_s: for one sending.
    """

    interval_s: float = 2.0
    most_records: int = 500
    buffered: int = 10_000
    request_s: float = 10.0

    @classmethod
    def of_environment(cls) -> Limits:
        """The limits that the variables of the environment set, or their defaults.

        Raises:
            ConfigError: One of them is no number in its range.
        """
        return cls(
            number("AIPERF_OTEL_FLUSH_INTERVAL_SECONDS", 0.1, 3600, 2),
            round(number("AIPERF_OTEL_MAX_BATCH_RECORDS", 1, 1e6, 500)),
            round(number("AIPERF_OTEL_MAX_BUFFERED_RECORDS", 1, 1e7, 10_000)),
            number("AIPERF_OTEL_REQUEST_TIMEOUT_SECONDS", 0.1, 3600, 10),
        )


def endpoint(given: str) -> str:
    """The URL of the collector: ``http://`` is put before, and ``/v1/metrics`` behind it, where they are absent.

    Raises:
        ValueError: Another scheme, no host, or credentials.
    """
    text = given.strip()
    scheme, mark, rest = text.partition("://") if "://" in text else ("http", "://", text)
    if scheme.lower() not in ("http", "https"):
        raise ValueError("must be an address for OTLP over HTTP, such as http://127.0.0.1:4318; OTLP over gRPC is not spoken")
    if "@" in without_secrets(f"{scheme}://{rest}") or "?" in rest:
        raise ValueError("must have no credentials, which files would show: set OTEL_EXPORTER_OTLP_HEADERS")
    host, slash, path = rest.partition("/")
    if not host or host.startswith(":") or " " in host:
        raise ValueError("must be HOST, HOST:PORT or a URL, such as http://127.0.0.1:4318")
    path = f"{slash}{path}".rstrip("/")
    return f"{scheme.lower()}{mark}{host}{path if path.endswith(_PATH) else path + _PATH}"


def attributes(given: list[str]) -> dict[str, str]:
    """The attributes of ``KEY=VALUE``, or of a JSON object, as a mapping of a configuration file comes.

    Raises:
        ValueError: A text has another form.
    """
    found: dict[str, str] = {}
    for text in given:
        if text.lstrip().startswith("{"):
            with contextlib.suppress(ValueError):
                found |= {str(name): str(value) for name, value in json.loads(text).items()}
                continue
        key, mark, value = text.partition("=")
        if not mark or not key.strip():
            raise ValueError(f"{text!r} is no KEY=VALUE")
        found[key.strip()] = value.strip()
    return found


def _attributes(given: list[str]) -> list[str]:
    attributes(given)
    return given


class OtelOptions(Options):
    url: Annotated[str, After(endpoint)] | None = option("--otel-url", group=_GROUP, metavar="URL", place="otel.url",
        help="Send metrics there by OpenTelemetry while the run goes on: HOST:PORT or a URL, for OTLP over HTTP.")
    stream: list[Word] = option("--stream", default=[DEFAULT], arity="many", group=_GROUP, metavar="WORD",
        choices=(METRICS, TIMING, DEFAULT), place="otel.stream",
        help="What is sent: the metrics of each request, the course of each phase, or by default both.")
    resource_attributes: Annotated[list[str], After(_attributes)] = option("--otel-resource-attributes", default=[],
        group=_GROUP, metavar="KEY=VALUE", place="otel.resource_attributes", help="Attributes of all that is sent.")
    gen_ai_provider: str | None = option("--gen-ai-provider", group=_GROUP, metavar="NAME", min_length=1,
        shown="by the URL's host, else _OTHER", place="otel.gen_ai_provider", help="Value of gen_ai.provider.name.")

    def sends(self, what: str) -> bool:
        """Whether *what* is sent, METRICS or TIMING."""
        return what in self.stream or DEFAULT in self.stream


class BatchOptions(OtelOptions):
    """The options in a reducer."""


class StreamOptions(OtelOptions):
    """The options of the stream; it speaks for both plugins."""

    def problems(self, typed: dict[str, str]) -> list[str]:
        """A setting of what isn't sent."""
        if self.url is None:
            idle = [flag for field, flag in typed.items() if field != "url"]
            hints = {flag: "; answers are streamed with --streaming" if flag == "--stream" else "" for flag in idle}
            return [f"{flag} needs --otel-url: it says where to\nadd --otel-url, or drop {flag}{hints[flag]}" for flag in idle]
        try:
            Limits.of_environment()
        except ConfigError as error:
            return [error.message]
        return []


__all__ = ["METRICS", "TIMING", "BatchOptions", "Limits", "OtelOptions", "StreamOptions", "attributes", "endpoint"]
