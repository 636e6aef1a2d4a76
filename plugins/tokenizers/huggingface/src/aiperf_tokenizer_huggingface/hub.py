"""Files of a model hub, from its cache or from the network, with a quick failure where the hub is unreachable."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from difflib import get_close_matches
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

NAME, CONFIGURATION = "tokenizer.json", "tokenizer_config.json"


class NoSuchFile(Exception):  # noqa: N818 - an outcome, not a failure
    """The hub has the repository without a tokenizer.json."""


def cached(repository: str, revision: str | None) -> Path | None:
    """The tokenizer.json in the cache; None where the cache has none.

    Raises:
        NoSuchFile: The cache records that the repository has none.
    """
    path = try_to_load_from_cache(repository, NAME, cache_dir=constants.HF_HUB_CACHE, revision=revision)
    if isinstance(path, str):
        return Path(path)
    if path is not None:
        raise NoSuchFile
    return None


def beside(repository: str, path: Path, patience_s: float) -> Callable[[str], Path | None]:
    """Gives further files of the commit of which *path* is the tokenizer.json; None for one that the hub lacks.

    Where the network is forbidden, the cache has all: only its tokenizer_config.json must be there.

    Raises, when called:
        BadTokenizer: The hub can't be reached or refuses access, or the cache lacks what it must have.
    """
    commit = path.parent.name

    def file(name: str) -> Path | None:
        found = try_to_load_from_cache(repository, name, cache_dir=constants.HF_HUB_CACHE, revision=commit)
        if isinstance(found, str):
            return Path(found)
        forbidden = offline()
        if found is None and forbidden is not None and name == CONFIGURATION:
            raise bad(repository, f"{name} is not in the cache, and {forbidden} forbids the network", asked=False)
        if found is not None or forbidden is not None:
            return None
        try:
            return _download(repository, name, commit, patience_s)
        except NoSuchFile:
            return None

    return file


def offline() -> str | None:
    """Name of the variable that forbids the network; None without one."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(name, "").strip().upper() in ("1", "ON", "YES", "TRUE"):
            return name
    return "HF_HUB_OFFLINE" if constants.HF_HUB_OFFLINE else None


def downloaded(repository: str, revision: str | None, patience_s: float) -> Path:
    """The tokenizer.json, downloaded into the cache.

    An unreachable hub fails after *patience_s*; the download itself may take longer.

    Raises:
        NoSuchFile: The repository has none.
        BadTokenizer: The hub can't be reached, lacks the repository, or refuses access.
    """
    return _download(repository, NAME, revision, patience_s)


def _download(repository: str, name: str, revision: str | None, patience_s: float) -> Path:
    """The file, as :func:`downloaded` gets it, for any name."""
    probe(repository, revision, patience_s)
    try:
        return Path(
            hf_hub_download(
                repository, name, revision=revision, cache_dir=constants.HF_HUB_CACHE,
                endpoint=constants.ENDPOINT, etag_timeout=patience_s,
            )
        )  # fmt: skip
    except EntryNotFoundError as error:  # noted in the cache
        raise NoSuchFile from error
    except Exception as error:  # the hub's client and its HTTP library document no exceptions
        raise _refused(repository, revision, error) from error


def probe(repository: str, revision: str | None, patience_s: float) -> None:
    """Request the file's metadata once, because the client's download retries for half a minute without a network.

    A thread limits the time, because the name resolver has no timeout.

    Raises:
        NoSuchFile, BadTokenizer: As :func:`downloaded`.
    """
    url = hf_hub_url(repository, NAME, revision=revision, endpoint=constants.ENDPOINT)
    answers: list[BaseException | None] = []

    def ask() -> None:
        try:
            get_hf_file_metadata(url, timeout=patience_s)
            answers.append(None)
        except BaseException as error:  # noqa: BLE001 - handled by the waiting thread
            answers.append(error)

    thread = threading.Thread(target=ask, name="hub-probe", daemon=True)
    thread.start()
    thread.join(patience_s)
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
        return bad(repository, f"{where} requires that you accept its terms", "accept them there and set HF_TOKEN")
    if isinstance(error, RepositoryNotFoundError):
        return bad(repository, f"{where} has no such model, or it is private", "check the name; private models need HF_TOKEN")
    if isinstance(error, RevisionNotFoundError):
        return bad(repository, f"{where} has no revision {revision!r} of the model", "check --tokenizer-revision")
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if isinstance(error, HfHubHTTPError):
        return bad(repository, f"{where} refuses the request: {reason}")
    return bad(repository, f"{where} can't be reached: {reason}")


def bad(repository: str, why: str, *hints: str, asked: bool = True) -> BadTokenizer:
    """The error with its reason, the places that were tried, and the next thing to do."""
    near = ["did you mean --tokenizer builtin?"] if get_close_matches(repository.lower(), ("builtin",), 1, 0.7) else []
    near += ["the directory of that name here has no tokenizer.json"] if Path(repository).is_dir() else []
    return BadTokenizer(
        f"the tokenizer {repository!r} is unavailable: {why}",
        *near,
        *hints,
        f"tried: a file or directory of that name, the cache {_short(constants.HF_HUB_CACHE)}{', the hub' if asked else ''}",
        "use --tokenizer builtin, which needs no download, or --tokenizer PATH with a local directory",
    )


def _short(path: Any) -> str:
    home = str(Path.home())
    text = str(path)
    return f"~{text[len(home):]}" if text.startswith(f"{home}/") else text
