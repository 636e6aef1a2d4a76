"""Public corpora of Weka traces on the hub, or their local copies."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import msgspec
from aiperf import BadDataset, DatasetContext
from aiperf.sdk.options import option
from aiperf_dataset_public.sets import Source

from aiperf_dataset_weka_trace.corpus import Corpus
from aiperf_dataset_weka_trace.dataset import RecordedAgents
from aiperf_dataset_weka_trace.files import ENDINGS, files_of
from aiperf_dataset_weka_trace.options import WekaOptions

log = logging.getLogger("aiperf.datasets.weka_trace")
_GROUP = "Input"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_OPTION = "--hf-weka-dataset"


class WekaHubOptions(WekaOptions):
    hf_revision: str | None = option("--hf-revision", group=_GROUP, metavar="REV", shown="the pinned commit", min_length=1,
        place="dataset.revision", help="Branch, tag or commit of a public data set on the hub.")
    repository: str | None = option("--hf-weka-dataset", group=_GROUP, metavar="REPOSITORY", shown="none", min_length=1,
        place="dataset.hf_weka_dataset",
        help="Weka traces of this repository of the hub, or of this directory; the same as --public-dataset weka_hf.")


class WekaSet(Source, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the manifest.  moves: the name that stands for another set from time to time.  sha256: of its file."""

    moves: bool = False
    sha256: str = ""


class WekaHub(RecordedAgents[WekaHubOptions]):
    """A corpus of the hub, read whole, or its local copy."""

    def __init__(self, options: WekaHubOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        try:
            self._set = msgspec.convert(context.row, WekaSet)
        except msgspec.ValidationError as error:
            raise BadDataset(f"the row of the public data set {context.name!r} can't be used: {error}") from error
        if context.source is not None and options.hf_revision is not None:
            raise BadDataset("--hf-revision has no use for a local copy, which --input-file gives", "drop --hf-revision")
        self._facts: dict[str, Any] = {"name": context.name}

    def source_facts(self) -> dict[str, Any]:
        return {**self._facts, **super().source_facts(), "provenance": self._provenance()}

    def _provenance(self) -> dict[str, Any]:
        """Where the traces came from: the hub, or the directory that stands for a repository."""
        facts = self._facts
        if "commit" not in facts:
            asked = {} if self.options.repository is None else {"hf_dataset_name": self.options.repository, "hf_split": "train"}
            return self._set.provenance(self.context.name) | asked
        wanted = msgspec.structs.replace(self._set, repository=facts["repository"])
        file = {"sha256": facts["sha256"]} if "sha256" in facts else {}
        return wanted.provenance(self.context.name, facts["commit"]) | file

    def corpus(self) -> Corpus:
        files = self._files()
        if odd := next((path for path in files if not path.name.endswith(ENDINGS)), None):
            raise BadDataset(f"{odd} has no traces as JSON", "give a file ending in .jsonl or .json, or a directory of them")
        self._facts |= {"files": [path.name for path in files]}
        return Corpus(files[0], self.options, files, self.context.name)

    def _files(self) -> list[Path]:
        from aiperf_dataset_public.files import Parts

        copy, asked = self.context.source, self.options.repository
        if self._set.repository and asked is not None:
            raise BadDataset(f"{_OPTION} has no use: {self.context.name} has a repository of its own", f"drop {_OPTION}")
        if copy is not None and asked is not None:
            raise BadDataset(f"{_OPTION} and --input-file both name the traces", f"drop {_OPTION} or --input-file")
        if copy is not None:
            return Parts(self.context.name, self._set).of_copy(copy)
        if asked is None and not self._set.repository:
            raise BadDataset(f"{self.context.name} names no traces", f"add {_OPTION} REPOSITORY, or --input-file PATH")
        if asked is None:
            return self._fetched(self._set)
        if (here := Path(asked)).exists():
            return files_of(here)
        if not _REPOSITORY.fullmatch(asked):
            raise BadDataset(f"{_OPTION}: there is no directory {asked}, and no repository is called so", "write OWNER/NAME")
        return self._fetched(msgspec.structs.replace(self._set, repository=asked))

    def _fetched(self, wanted: WekaSet) -> list[Path]:
        """The files in the hub's cache, fetched where they aren't there."""
        from aiperf_dataset_public.dataset import Lines
        from aiperf_dataset_public.download import Downloads
        from aiperf_dataset_public.files import Parts
        from aiperf_dataset_public.waiting import Patience

        name, patience, revision = self.context.name, Patience(), self.options.hf_revision
        if wanted.moves:
            log.info("%s stands for %s today", name, wanted.repository)
        listing, files = Parts(name, wanted).of_hub(revision, patience)
        promised = {file.sha256 for file in files} - {None}
        if revision is None and wanted.sha256 and promised and promised != {wanted.sha256}:
            raise BadDataset(f"{wanted.repository} has another file than the one that is known at {wanted.revision[:12]}",
                             "give --hf-revision to take it as it is")  # fmt: skip
        self._facts |= {
            "repository": wanted.repository, "revision": revision or wanted.revision, "commit": listing.commit,
            "licence": wanted.licence or listing.licence, "split": wanted.split,
        }  # fmt: skip
        if len(files) == 1 and files[0].sha256:
            self._facts["sha256"] = files[0].sha256
        downloads = Downloads(name, listing, Lines(), patience)
        return [downloads.file(file) for file in files]


__all__ = ["WekaHub", "WekaHubOptions", "WekaSet"]
