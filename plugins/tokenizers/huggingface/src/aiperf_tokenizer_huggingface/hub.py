"""Files of a model hub: from the cache, else from the network, and quickly no."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from aiperf import BadTokenizer
from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

NAME = "tokenizer.json"


class NoSuchFile(Exception):  # noqa: N818 - an answer, not a failure
    """The hub has the tokenizer, but no tokenizer.json of it."""


def cached(repository: str, revision: str | None) -> Path | None:
    """The tokenizer.json that was downloaded before; None if none was.

    Raises:
        NoSuchFile: It is known that there is none.
    """
    found = try_to_load_from_cache(repository, NAME, cache_dir=constants.HF_HUB_CACHE, revision=revision)
    if isinstance(found, str):
        return Path(found)
    if found is not None:
        raise NoSuchFile
    return None


def offline() -> str | None:
    """The variable that forbids the network, None if none does."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(name, "").strip().upper() in ("1", "ON", "YES", "TRUE"):
            return name
    return "HF_HUB_OFFLINE" if constants.HF_HUB_OFFLINE else None


def downloaded(repository: str, revision: str | None, patience_s: float) -> Path:
    """The tokenizer.json, put into the cache.

    Whether the hub answers is known after *patience_s*; the download itself may take longer.

    Raises:
        NoSuchFile: The repository has none.
        BadTokenizer: The hub can't be reached, has no such repository, or doesn't give it.
    """
    probe(repository, revision, patience_s)
    try:
        return Path(
            hf_hub_download(
                repository, NAME, revision=revision, cache_dir=constants.HF_HUB_CACHE,
                endpoint=constants.ENDPOINT, etag_timeout=patience_s,
            )
        )  # fmt: skip
    except Exception as error:  # the hub's client and its HTTP library raise what they like
        raise _refused(repository, revision, error) from error


def probe(repository: str, revision: str | None, patience_s: float) -> None:
    """Ask once whether the file is there: the client's own download would try for half a minute where no network is.

    A thread, because the resolver's patience has no limit that we could set.

    Raises:
        NoSuchFile, BadTokenizer: As :func:`downloaded`.
    """
    url = hf_hub_url(repository, NAME, revision=revision, endpoint=constants.ENDPOINT)
    answers: list[BaseException | None] = []

    def ask() -> None:
        try:
            get_hf_file_metadata(url, timeout=patience_s)
            answers.append(None)
        except BaseException as error:  # noqa: BLE001 - told to the one who waits
            answers.append(error)

    asking = threading.Thread(target=ask, name="hub-probe", daemon=True)
    asking.start()
    asking.join(patience_s)
    if not answers:
        raise bad(repository, f"{constants.ENDPOINT} does not answer within {patience_s:g} s")
    error = answers[0]
    if isinstance(error, EntryNotFoundError):
        raise NoSuchFile from error
    if error is not None:
        raise _refused(repository, revision, error) from error


def _refused(repository: str, revision: str | None, error: BaseException) -> BadTokenizer:
    where = constants.ENDPOINT
    if isinstance(error, GatedRepoError):
        return bad(repository, f"{where} gives it only to those who accepted its terms", "set HF_TOKEN to a token of yours")
    if isinstance(error, RepositoryNotFoundError):
        return bad(repository, f"{where} has no such model, or not for you", "check the name; private ones need HF_TOKEN")
    if isinstance(error, RevisionNotFoundError):
        return bad(repository, f"{where} has no revision {revision!r} of it", "check --tokenizer-revision")
    said = str(error).strip().splitlines()
    if isinstance(error, HfHubHTTPError):
        return bad(repository, f"{where} refuses: {said[0] if said else type(error).__name__}")
    return bad(repository, f"{where} can't be reached: {said[0] if said else type(error).__name__}")


def bad(repository: str, why: str, *hints: str, asked: bool = True) -> BadTokenizer:
    """What could not be had, why, what was tried and what to do."""
    return BadTokenizer(
        f"the tokenizer {repository!r} can't be had: {why}",
        *hints,
        f"tried: a file or directory of that name, the cache {_short(constants.HF_HUB_CACHE)}{', the hub' if asked else ''}",
        "'--tokenizer builtin' counts with o200k_base and needs no download; '--tokenizer PATH' reads a directory",
    )


def _short(path: Any) -> str:
    home = str(Path.home())
    text = str(path)
    return f"~{text[len(home):]}" if text.startswith(f"{home}/") else text
