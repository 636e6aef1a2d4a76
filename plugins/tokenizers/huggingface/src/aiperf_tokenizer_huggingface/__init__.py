"""Tokenizers by path or hub id; files on this machine are read without any network request."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiperf import BadTokenizer, Tokenizer

from aiperf_tokenizer_huggingface.absence import NotThere

if TYPE_CHECKING:
    from aiperf_tokenizer_huggingface.slow import Slow

_HUB_ID = re.compile(r"(?!.*(?:--|\.\.))[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)?")
_MAX_ID = 96
"""Characters of a repository's name on the Hub."""
_OF_TIKTOKEN = (
    "cl100k_base", "p50k_base", "p50k_edit", "r50k_base", "gpt-4", "gpt-4-turbo", "gpt-3.5-turbo", "text-embedding-3-small",
    "text-embedding-3-large", "text-embedding-ada-002",
)  # fmt: skip
"""Names of tiktoken's that are none of the hub."""
_FILE = "tokenizer.json"
_OLDER = ("tokenizer.model", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer_config.json")


class HuggingFace:
    """Opens a directory, a tokenizer.json, or a hub id: its cached files first, then the hub."""

    def __init__(self, options: Any = None, *, patience_s: float = 5.0) -> None:
        """*patience_s*: time limit for the hub's first answer, in s."""
        self._revision: str | None = options.tokenizer_revision if options is not None else None
        self._trust: bool = options is not None and options.tokenizer_trust_remote_code
        self._patience_s = patience_s

    def recognises(self, name: str) -> bool:
        return _is_hub_id(name) or Path(name).expanduser().exists()

    def open(self, name: str) -> Tokenizer:
        """The tokenizer.

        Raises:
            BadTokenizer: The tokenizer is unavailable; the hints list the places that were tried.
        """
        path = Path(name).expanduser()
        # An unrelated directory with the name of a model doesn't hide the model.
        if path.is_file() or _has_tokenizer(path) or (path.exists() and not _is_hub_id(name)):
            return self._local(name, path)
        if name.lower() in _OF_TIKTOKEN:
            raise BadTokenizer(
                f"{name} is an encoding of tiktoken, or a model with it, and no file of its vocabulary is installed",
                "'--tokenizer builtin' counts with o200k_base, without a download",
                "'--tokenizer Xenova/gpt-4' is cl100k_base as a tokenizer of the hub",
            )
        if not _is_hub_id(name):
            raise BadTokenizer(
                f"the tokenizer {name!r} is neither a file, a directory nor a hub id",
                "a hub id is NAME or OWNER/NAME; '--tokenizer builtin' needs neither",
            )
        return self._from_hub(name)

    def open_from(self, directory: Path, name: str) -> Tokenizer:
        """The tokenizer whose tokenizer.json is in *directory*, with what :meth:`Fast.files` has beside it.

        Raises:
            BadTokenizer: The file is missing, or can't be read.
        """
        return _fast(name, directory / _FILE)

    def _local(self, name: str, path: Path) -> Tokenizer:
        if self._revision is not None:
            raise BadTokenizer(
                f"--tokenizer-revision {self._revision} has no meaning for {name}, which is on this machine",
                "remove --tokenizer-revision",
            )
        if path.is_dir() and not _has_tokenizer(path):
            raise BadTokenizer(
                f"the directory {name} has no tokenizer: it lacks {_FILE}",
                "download the model's tokenizer files into it, or use '--tokenizer builtin'",
            )
        file = path / _FILE if path.is_dir() else path
        if path.is_dir() and (self._trust or not file.is_file()):
            return self._slow(str(path), network=False)
        return _fast(name, file)

    def _from_hub(self, name: str) -> Tokenizer:
        from aiperf_tokenizer_huggingface import hub

        forbidden = hub.offline()
        if not self._trust:
            with contextlib.suppress(hub.NoSuchFile):
                path = hub.cached(name, self._revision)
                if path is None and forbidden is not None:
                    raise hub.bad(name, f"it is not in the cache, and {forbidden} forbids the network", asked=False)
                path = path or hub.downloaded(name, self._revision, self._patience_s)
                return _fast(name, path, hub.beside(name, path, self._patience_s))
        try:
            return self._slow(name, network=False)
        except NotThere:
            if forbidden is not None:
                raise
        with contextlib.suppress(hub.NoSuchFile):
            hub.probe(name, self._revision, self._patience_s)
        return self._slow(name, network=True)

    def _slow(self, name: str, *, network: bool) -> Slow:
        from aiperf_tokenizer_huggingface.slow import loaded

        why = "--tokenizer-trust-remote-code was given" if self._trust else f"it has no {_FILE}, only older files"
        return loaded(name, why, revision=self._revision, trust=self._trust, network=network)


def _fast(name: str, path: Path, beside: Callable[[str], Path | None] | None = None) -> Tokenizer:
    from aiperf_tokenizer_huggingface.fast import Fast

    return Fast(name, path, beside)


def _has_tokenizer(path: Path) -> bool:
    return any((path / file).is_file() for file in (_FILE, *_OLDER))


def _is_hub_id(name: str) -> bool:
    return len(name) <= _MAX_ID and _HUB_ID.fullmatch(name) is not None
