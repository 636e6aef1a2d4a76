"""``aiperf datasets``: known data sets, and their files on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from aiperf import Command, UsageError
from aiperf.sdk.exporter import visible

from aiperf_command_datasets.options import DatasetsOptions

if TYPE_CHECKING:
    from aiperf_command_datasets.cache import CachedSet
    from aiperf_command_datasets.names import NamedSet

_FOR_EXAMPLE = "for example: aiperf datasets list, aiperf datasets fetch sharegpt, aiperf datasets where sharegpt"


class Datasets(Command[DatasetsOptions]):
    """Lists data sets, fetches them, and says where they are."""

    arguments = "list|fetch|where [NAME...]"

    def run(self, options: DatasetsOptions, words: Sequence[str]) -> int:
        """0 where all went well; ``where`` gives 1 where files are missing."""
        actions: dict[str, Callable[[DatasetsOptions, Sequence[str]], int]] = {
            "list": self._list, "fetch": self._fetch, "where": self._where,
        }  # fmt: skip
        if not words or words[0] not in actions:
            given = f"{words[0]!r} is no action of datasets" if words else "datasets needs an action"
            raise UsageError(f"{given}: list, fetch or where", _FOR_EXAMPLE)
        action, *names = words
        if action == "list" and names:
            raise UsageError(f"datasets list takes no name, {names[0]!r} was given", f"aiperf datasets where {names[0]}")
        if action != "list" and not names:
            raise UsageError(f"datasets {action} needs a name", "aiperf datasets list shows all")
        unused = {"list": ("hf_revision", "hf_subset", "files"), "where": ("files",)}.get(action, ())
        for field in unused:
            if getattr(options, field) is not None:
                flag = f"--{field.replace('_', '-')}"
                raise UsageError(f"{flag} has no use for datasets {action}", f"drop {flag}")
        return actions[action](options, names)

    def _list(self, options: DatasetsOptions, _: Sequence[str]) -> int:
        from aiperf_command_datasets.cache import found
        from aiperf_command_datasets.names import named_sets

        sets = [(one, None if one.source is None else found(one.name, one.source)) for one in named_sets(self.registry)]
        if options.as_json:
            _print_json([_facts(one, here) for one, here in sets])
            return 0
        for one, here in sets:
            print(f"{one.name:26} {_told(one, here)}")
        print("\naiperf datasets fetch NAME prepares a machine without a network; *: at a branch, no commit is pinned")
        return 0

    def _fetch(self, options: DatasetsOptions, names: Sequence[str]) -> int:
        from aiperf_command_datasets.cache import fetch

        fetched = []
        for one in self._with_files(names):
            assert one.source is not None
            here = fetch(one.name, one.source, options.hf_revision, options.hf_subset, options.files, sys.stderr)
            fetched.append(here)
            if not options.as_json:
                _print_fetched(one, here)
        if options.as_json:
            _print_json(fetched)
        return 0

    def _where(self, options: DatasetsOptions, names: Sequence[str]) -> int:
        from aiperf_command_datasets.cache import found

        sets = []
        for one in self._with_files(names):
            assert one.source is not None
            sets.append(found(one.name, one.source, options.hf_revision, options.hf_subset))
        if options.as_json:
            _print_json(sets)
        else:
            for here in sets:
                _print_place(here)
        return 0 if all(here.whole for here in sets) else 1

    def _with_files(self, names: Sequence[str]) -> list[NamedSet]:
        """The data sets, of which the packages tell where their files are.

        Raises:
            UsageError: There is none of the name, or its package doesn't tell.
        """
        from aiperf_command_datasets.names import named_set

        sets = [named_set(name, self.registry) for name in names]
        for one in sets:
            if one.source is None:
                raise UsageError(f"{one.name} has no files on a hub: the package {one.package} alone knows where it is")
        return sets


def _told(one: NamedSet, here: CachedSet | None) -> str:
    if one.source is None or here is None:
        return f"{one.summary} ({one.package}, {one.option})"
    source = one.source
    revision = "*" if source.repository and len(source.revision) < 40 else ""
    there = f"; here: {_bytes(here)}" + ("" if here.whole else f" of {len(here.files)} files") if here.bytes else ""
    gate = {"": "", "login": ", login", "terms": ", login and terms"}.get(source.gate, f", {source.gate}")
    rows = f", {source.rows:,} rows" if source.rows else ""
    needs = f", needs {' and '.join(source.needs)}" if source.needs else ""
    return f"{source.repository or source.url}{revision}{rows}{gate}{needs}{there}"


def _facts(one: NamedSet, here: CachedSet | None) -> dict[str, Any]:
    return {
        "name": one.name, "option": one.option, "package": one.package, "summary": one.summary,
        "source": one.source, "page": None if one.source is None else one.source.page,
        "cached": None if here is None else {"commit": here.commit, "whole": here.whole, "bytes": here.bytes},
    }  # fmt: skip


def _print_fetched(one: NamedSet, here: CachedSet) -> None:
    assert one.source is not None
    gated = here.gate or ("yes" if one.source.gate and not one.source.repository else "")
    gate = f"gated ({gated}): {one.source.page}" if gated else "none"
    if bool(here.gate) != bool(one.source.gate) and one.source.repository:
        gate += " (changed since it was listed here)"
    print(f"{here.name}: {here.repository}")
    if here.commit is not None:
        print(f"  commit   {here.commit}" + ("" if here.revision == here.commit else f" ({here.revision})"))
    print(f"  licence  {here.licence or 'not told by its card'}")
    print(f"  gate     {gate}")
    print(f"  files    {len(here.files)}, {_bytes(here)}")
    print(f"  folder   {here.folder}")


def _print_place(here: CachedSet) -> None:
    missing = [file.name for file in here.files if file.path is None]
    if here.folder is None or len(missing) == len(here.files):
        print(f"{here.name} is not in the cache: aiperf datasets fetch {here.name}", file=sys.stderr)
        return
    print(here.folder)
    if missing:
        what = f"{len(missing)} of {len(here.files)} files are missing"
        print(f"{here.name}: {what}: aiperf datasets fetch {here.name}", file=sys.stderr)


def _bytes(here: CachedSet) -> str:
    from aiperf_dataset_public.download import megabytes

    return megabytes(here.bytes)


def _print_json(value: Any) -> None:
    import msgspec

    print(visible(msgspec.json.format(msgspec.json.encode(value), indent=2)).decode())
