"""Descriptors of a service: of a file, or of the server.  Imports protocol buffers, which takes 40 ms."""

from __future__ import annotations

from pathlib import Path

from aiperf import ConfigError, HttpRequest
from aiperf.sdk.asking import Ask, AskError
from aiperf_rpc.calls import CONTENT_TYPE, UNIMPLEMENTED
from aiperf_rpc.methods import Method, MethodError, method_of, read_set, set_of
from aiperf_rpc.pool import DecodeError
from aiperf_rpc.protos.health import HealthCheckResponse
from aiperf_rpc.reflected import NoReflectionError, reflected


def described(path: Path) -> bytes:
    """The descriptors of a file.

    Raises:
        ConfigError: It can't be read, or has none.
    """
    hint = "protoc --include_imports --descriptor_set_out=FILE writes one"
    try:
        data = path.read_bytes()
        read_set(data)
    except OSError as error:
        raise ConfigError(f"--grpc-descriptors: {path} can't be read: {error.strerror or error}", hint) from error
    except MethodError as error:
        raise ConfigError(f"--grpc-descriptors: {path}: {error}", hint) from error
    return data


def descriptors(ask: Ask, name: str, path: Path | None) -> bytes:
    """The descriptors of a method's service: of the file *path*, else those that the server's reflection gives.

    Raises:
        ConfigError: They can't be had.
        AskError: The server gives no answer.
    """
    if path is not None:
        return described(path)
    try:
        return set_of(reflected(ask, name.partition("/")[0]))
    except NoReflectionError as error:
        raise ConfigError(
            f"the server at {ask.url} doesn't describe its services: its reflection is off, in v1 and in v1alpha",
            "give the descriptors with --grpc-descriptors FILE, or switch reflection on at the server",
        ) from error
    except MethodError as error:
        raise ConfigError(f"--grpc-method {name}: {error}", "name a method of the server at " + ask.url) from error


def unhealthy(ask: Ask) -> str | None:
    """Why the server's own health check says that it isn't ready; None where it is, or has no such check.

    Raises:
        AskError: The server gives no answer.
    """
    try:
        reply = ask(HttpRequest("/grpc.health.v1.Health/Check", b"", content_type=CONTENT_TYPE))
        status = HealthCheckResponse.FromString(reply.messages[0]).status if reply.messages else HealthCheckResponse.UNKNOWN
    except AskError as error:
        if error.code in UNIMPLEMENTED:
            return None
        raise
    except DecodeError:
        return "its health check gives another message"
    if status == HealthCheckResponse.SERVING:
        return None
    return f"its health check says {HealthCheckResponse.ServingStatus.Name(status)}"


def named(data: bytes, name: str, whose: str) -> Method:
    """The method of these descriptors.  *whose*: what they are of.

    Raises:
        ConfigError: They have no such method, or don't match each other.
    """
    try:
        return method_of(read_set(data), name)
    except MethodError as error:
        raise ConfigError(f"--grpc-method {name}: {error}", f"these are the descriptors of {whose}") from error
