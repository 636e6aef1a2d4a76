"""What many requests of a data set share, so that it is stored once."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from aiperf.sdk.model import HttpRequest


class StoredShape(Struct, frozen=True):
    """The fields that many requests of a data set share: all of an HttpRequest but its body.

    parts: of each its bytes, and ns to wait before it.
    """

    path: str
    method: str = "POST"
    content_type: str = "application/json"
    headers: dict[str, str] = {}
    drain: bool = False
    parts: tuple[tuple[int, int], ...] = ()


def shape_of(request: HttpRequest) -> StoredShape:
    parts = tuple((len(part.data), round(part.after_s * 1e9)) for part in request.parts)
    return StoredShape(request.path, request.method, request.content_type, request.headers, request.drain, parts)


def with_path(shapes: list[StoredShape], one: str | None, other: str | None) -> list[StoredShape]:
    """The shapes, those of the path *one* with the path *other*."""
    if not one or not other or one == other:
        return shapes
    return [replace(shape, path=other) if shape.path == one else shape for shape in shapes]


def same_shape(one: HttpRequest, other: HttpRequest) -> bool:
    """Whether both have the same shape."""
    if one.parts or other.parts:
        return shape_of(one) == shape_of(other)
    if one.headers is other.headers and one.path is other.path:  # made from one template
        return True
    alike = one.path == other.path and one.method == other.method and one.content_type == other.content_type
    return alike and one.drain == other.drain and one.headers == other.headers
