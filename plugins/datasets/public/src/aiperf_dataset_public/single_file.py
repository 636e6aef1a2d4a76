"""A set that is one file of a web server."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from aiperf import BadDataset
from huggingface_hub import constants

from aiperf_dataset_public.hub import offline, ways_out
from aiperf_dataset_public.sets import Source
from aiperf_dataset_public.waiting import Patience

_TIMEOUT_S, _MOST_BYTES, _PIECE = 30.0, 1 << 30, 1 << 20
"""Seconds without an answer; bytes of a file; bytes that are read together."""


def place(name: str, public: Source) -> Path:
    """Where the file is kept."""
    return Path(constants.HF_HOME) / "aiperf" / "datasets" / name / Path(urlsplit(public.url).path).name


def fetched(name: str, public: Source, patience: Patience) -> Path:
    """The file, which is kept once it was fetched: its address names a commit, so it doesn't change.

    Raises:
        BadDataset: It can't be fetched.
    """
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen  # 40 ms

    path = place(name, public)
    if path.exists():
        return path
    if forbidden := offline():
        raise BadDataset(f"{path} is not there, and {forbidden} forbids the network", *ways_out(name))
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            with urlopen(Request(public.url, headers={"User-Agent": "aiperf"}), timeout=_TIMEOUT_S) as answer:
                size = answer.headers.get("Content-Length")
                done = _copied(answer, draft)
            if size is not None and done != int(size):
                raise OSError(f"{done:,} of {int(size):,} bytes came")
            draft.replace(path)
            return path
        except HTTPError as error:
            if not patience.told_to_wait(error.code, {"Retry-After": error.headers.get("Retry-After", "")}):
                raise BadDataset(f"{public.url}: the server answers {error.code} {error.reason}", *ways_out(name)) from error
        except OSError as error:
            why = getattr(error, "reason", None) or error.strerror or error
            raise BadDataset(f"{public.url} can't be fetched: {why}", *ways_out(name)) from error


def _copied(answer: object, draft: Path) -> int:
    done = 0
    with draft.open("wb") as out:
        while piece := answer.read(_PIECE):  # type: ignore[attr-defined]  # urlopen's answers have several types
            out.write(piece)
            done += len(piece)
            if done > _MOST_BYTES:
                raise OSError(f"it has more than {_MOST_BYTES:,} bytes")
    return done
