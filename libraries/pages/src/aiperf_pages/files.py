"""Files of a run as answers: whole or a range of them, shown by a browser and never run."""

from __future__ import annotations

from pathlib import Path

from aiohttp import hdrs, web

from aiperf_pages.guard import FILE_POLICY, Refusal


def file_answer(request: web.Request, path: Path) -> web.FileResponse:
    """The file, or the range of it that the request asks for; 304 where the client has it, 412 where it wants another one.

    Raises:
        Refusal: 416: the header Range is no range of bytes, or begins behind the file's end.
    """
    size = path.stat().st_size
    try:
        start = request.http_range.start
    except ValueError:
        start = size
    if start is not None and start >= size:
        sentence = f"Range: {request.headers[hdrs.RANGE][:100]}: the file has {size:,} bytes; ask for bytes=FIRST-LAST"
        raise Refusal(416, sentence, {hdrs.CONTENT_RANGE: f"bytes */{size}"})
    plain = path.name.encode("ascii", "replace").decode().replace('"', "'").replace("\\", "_")
    return web.FileResponse(path, headers={
        "Content-Security-Policy": FILE_POLICY, hdrs.CONTENT_DISPOSITION: f'attachment; filename="{plain}"',
    })  # fmt: skip


__all__ = ["file_answer"]
