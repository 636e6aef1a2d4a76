"""Checks of a template and of a JMESPath, when the command line is read.  Both libraries are imported there alone."""

from __future__ import annotations

import stat
from pathlib import Path

NAMED = {"nv-embedqa": '{"text": {{ texts|tojson }}}'}
"""Templates with a name."""


def checked_template(value: str | None) -> str | None:
    """The template's text: of a name, of a file, or as typed.

    Raises:
        ValueError: No such file, or a template that can't be used; the message says why.
    """
    if value is None:
        return None
    text = NAMED.get(value) or _file(value)
    from aiperf_endpoint_template.rendering import Renderer  # jinja2, only where a template is used

    Renderer(text).check()
    return text


def checked_path(value: str | None) -> str | None:
    """The same; None for ``text``, which asks for the search of usual places, too.

    Raises:
        ValueError: It is no JMESPath.
    """
    if value is None or not value.strip() or value.strip() == "text":
        return None
    from aiperf_endpoint_template.extraction import extractor  # jmespath, only where an expression is used

    extractor(value)
    return value


def _file(value: str) -> str:
    """The content of the file with this name, else *value*, which is a template then."""
    if "{" in value or "\n" in value:
        return value
    path = Path(value).absolute()
    links = [each for each in (path, *path.parents) if each.is_symlink()]
    if links:
        raise ValueError(f"must not be read through a symbolic link, and {str(links[0])!r} is one")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError(f"names {value!r}, which is no regular file")
        return path.read_text("utf-8")
    except FileNotFoundError:
        names = ", ".join(NAMED)
        raise ValueError(f"names {value!r}: there is no such file, and a template has braces (or is {names})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"names {value!r}, which can't be read: {error}") from None
