"""Options of the endpoint type."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aiperf import Options, option
from aiperf.sdk.options import After

GROUP = "gRPC endpoint"


def _checked_method(text: str | None) -> str | None:
    """
    Raises:
        ValueError: The text is no name of a method.
    """
    if text is None:
        return None
    service, slash, method = text.strip("/").rpartition("/")
    if not slash or not service or not method or "/" in service or not text.isascii() or any(map(str.isspace, text)):
        raise ValueError("must be package.Service/Method")
    return f"{service}/{method}"


class DynamicGrpcOptions(Options):
    grpc_method: Annotated[str | None, After(_checked_method)] = option(
        "--grpc-method", group=GROUP, metavar="SERVICE/METHOD",
        help="Method to call, as package.Service/Method.",
    )  # fmt: skip
    grpc_descriptors: Path | None = option(
        "--grpc-descriptors", group=GROUP, metavar="FILE",
        help="Descriptors of the service (protoc --include_imports --descriptor_set_out=FILE).",
        shown="the server's reflection",
    )  # fmt: skip
