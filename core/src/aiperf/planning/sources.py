"""The data of a run: its source, the order of entries, and the tokenizer.

The source is the named data set plugin, the plugin that recognises the input file, or synthetic.

The manifest tells whether a plugin reads a file (``reads: true``), whether its rows have recorded times (``trace: true``), how
its file is recognised (``keys`` and ``endings``, for the hook ``aiperf_recognise_file``), and which words choose it in front of
a file's name (``prefixes``): :class:`aiperf.sdk.dataset.DatasetFacts`.
``selected_by`` says which option names it, ``names`` which names it serves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from msgspec import Struct, field

from aiperf.errors import ConfigError, UnknownPlugin
from aiperf.foreign import DATASET, TOKENIZER
from aiperf.planning.load_checks import fixed, selector
from aiperf.redaction import without_secrets
from aiperf.registry.guides import INSTALL_SUITE, where_is
from aiperf.registry.registry import strongest
from aiperf.sdk.descriptor import Descriptor, PluginRef, canonical
from aiperf.sdk.model import names

if TYPE_CHECKING:
    from aiperf.planning.problems import Draft
    from aiperf.planning.target import EndpointChoice
    from aiperf.registry.registry import Registry
    from aiperf.sdk.recognition import Recognition
    from aiperf.sdk.registry import InstalledPlugins

_PLACEHOLDER_MODELS = ("mock_model", "test_model", "fake_model")
_URL = re.compile(r"([a-z][a-z0-9+.-]*):/+([^/].*)")
_BY_NAME = {"public_dataset": "public", "accuracy_benchmark": "benchmark"}
_SELECTING = {"format": "dataset_type", **{word: option for option, word in _BY_NAME.items()}}


class Source(Struct, frozen=True):
    """The chosen plugin, and facts about its file.

    explicit: its name was given.  trace: its format records times.  timestamped: the first row has one.
    name, row: the chosen one of the names that the plugin serves.  once: its manifest says so.  grader: the one that it names.
    """

    dataset: PluginRef | None
    path: Path | None = None
    explicit: bool = False
    trace: bool = False
    timestamped: bool = False
    name: str = ""
    row: dict[str, Any] = field(default_factory=dict)
    once: bool = False
    grader: str = ""


def source(draft: Draft) -> Source:
    """The source that the options choose; errors go to the draft."""
    path, kind = draft.kernel.input_file, draft.kernel.dataset_type
    unusable = Source(None, path, explicit=kind is not None)
    for one, other in combinations(("dataset_type", *_BY_NAME), 2):
        draft.exclusive(one, other, "a run has one data set")
    prefixed, path = (None, None) if path is None else _prefixed(draft, path)
    if prefixed is not None and path is None:
        return Source(draft.chosen("datasets", prefixed.name), name=str(draft.kernel.input_file).partition(":")[2])
    local = None if path is None else _local(draft, path)
    if path is not None and (local is None or not _readable(draft, local)):
        draft.missing.add("datasets")
        if kind is not None and not _is_further_name(draft, kind):
            draft.chosen("datasets", kind, "dataset_type")  # its name may be wrong as well
        return unusable
    path = None if local is None else _held(draft, local)
    if local is not None and path is None:
        draft.missing.add("datasets")
        return unusable
    by_name, implied = next(filter(draft.given, _BY_NAME), None), _implied(draft)
    unnamed = kind is None and prefixed is None and by_name is None and implied is None
    seen = None if path is None else _seen(draft, path, unnamed=unnamed)
    timestamped = path is not None and (seen is None or (seen.row is not None and _timestamped(seen.row)))
    if by_name is not None or implied is not None:
        return _named(draft, by_name or "public_dataset", path, timestamped, implied) or unusable
    if prefixed is not None:
        ref, kind = draft.chosen("datasets", prefixed.name), prefixed.name
    elif kind is not None and path is not None and _is_further_name(draft, kind):
        return _named(draft, "dataset_type", path, timestamped) or unusable
    elif kind is not None:
        ref = draft.chosen("datasets", kind, "dataset_type")
    elif path is None:
        return Source(draft.chosen("datasets", DATASET))
    elif name := _recognised(draft, path, seen):
        ref = draft.chosen("datasets", name)
    else:
        draft.missing.add("datasets")
        return unusable
    if ref is None:
        return unusable
    can = draft.registry.descriptor("datasets", ref.name).capabilities
    flag, file, reads = draft.flag("dataset_type"), draft.flag("input_file"), bool(can.get("reads"))
    if (selecting := _SELECTING[can.get("selected_by", "format")]) != "dataset_type":
        right = draft.flag(selecting)
        draft.refuse(f"{flag}: {kind} is chosen by {right}", f"write {right} {', '.join(can.get('names', [])) or kind}")
        return unusable
    if reads and path is None:
        draft.refuse_alone(f"{flag} {kind}", file, "it is the format of a file", drop=flag)
    elif path is not None and not reads:
        draft.refuse(f"{flag} {kind} reads no file, and {file} gives one", f"drop {flag}, or drop {file}")
    once = bool(can.get("once"))
    grader = str(can.get("grader", ""))
    if path is None or not reads:
        return Source(ref, None, explicit=True, once=once, grader=grader)
    timestamped = bool(can.get("timed")) or timestamped
    return Source(ref, path.absolute(), kind is not None, bool(can.get("trace")), timestamped, once=once, grader=grader)


def _prefixed(draft: Draft, path: Path) -> tuple[Descriptor | None, Path | None]:
    """The format of a path such as ``payload:FILE``, and the path behind it, None where the format reads none.

    A path without a prefix, or of a file with a colon in its name, is given back.
    """
    word, colon, rest = str(path).partition(":")
    owners = [plugin for plugin in draft.registry.all("datasets") if colon and word in plugin.capabilities.get("prefixes", ())]
    if not owners or path.exists():
        return None, path
    for option in ("dataset_type", *_BY_NAME):
        if draft.given(option):
            file, flag = draft.flag("input_file"), draft.flag(option)
            draft.refuse(f"{file} {word}: and {flag} both choose a data set", f"drop {flag}, or the {word!r} before the file")
    return owners[0], Path(rest) if owners[0].capabilities.get("reads") else None


def _local(draft: Draft, path: Path) -> Path | None:
    """The path, or that of the local copy of a URL, which as a path has lost a slash; None, reported, where there is none."""
    match = _URL.match(str(path))
    if match is None or path.exists():
        return path
    if match[1] == "file":
        return Path(f"/{unquote(match[2].removeprefix('localhost/'))}")
    url = f"{match[1]}://{match[2]}"
    copy: Path | None = None
    with draft.collected(draft.flag("input_file")):
        copy = draft.registry.hooks().call("aiperf_local_copy", url=url)
        if copy is None:
            raise ConfigError(f"no installed package reads files of {match[1]}://", INSTALL_SUITE)
        draft.hint(f"{without_secrets(url)} is read from its copy {copy}")
    return copy


def _held(draft: Draft, path: Path) -> Path | None:
    """The path, or of a pipe a file with what it gives; None, reported, where it gives nothing."""
    if not path.exists() or path.is_file() or path.is_dir():
        return path
    from aiperf.planning import piped  # only where a pipe is given

    with draft.collected(draft.flag("input_file")):
        return piped.held(path)
    return None


def _seen(draft: Draft, path: Path, *, unnamed: bool) -> Recognition | None:
    """What a package sees of the file: its first row and, where it is *unnamed*, its format; None where no package looks.

    A file that no package looks at may have recorded times: the schedule refuses one that has none.
    """
    formats = list(filter(_is_format, draft.registry.all("datasets"))) if unnamed else None
    hooks, option = draft.registry.hooks(), draft.flag("dataset_type")
    return cast("Recognition | None", hooks.call("aiperf_recognise_file", path=path, formats=formats, option=option))


def _recognised(draft: Draft, path: Path, seen: Recognition | None) -> str:
    """The name of the file's format; "", reported, where there is none or several."""
    file = draft.flag("input_file")
    if seen is None:
        hints = (INSTALL_SUITE, f"or name the format with {draft.flag('dataset_type')}")
        draft.refuse(f"{file}: no installed package recognises the format of {path}", *hints)
        return ""
    for warning in seen.warnings:
        draft.warn(warning)
    if seen.format:
        draft.hint(seen.remark)
    else:
        draft.refuse(f"{file}: {seen.refusal}", *seen.hints)
    return seen.format


def _is_format(plugin: Descriptor) -> bool:
    return bool(plugin.capabilities.get("reads")) and plugin.capabilities.get("selected_by", "format") == "format"


def _is_further_name(draft: Draft, kind: str) -> bool:
    """Whether a format serves the name beside its own."""
    if draft.registry.find("datasets", kind) is not None:
        return False
    formats = filter(_is_format, draft.registry.all("datasets"))
    return canonical(kind) in (canonical(name) for plugin in formats for name in plugin.capabilities.get("names", ()))


def _implied(draft: Draft) -> tuple[str, str] | None:
    """The public data set that is chosen by an option of its own, and the option's flag; None where none is.

    Beside another data set that is named it is reported.
    """
    for plugin in draft.registry.all("datasets"):
        for field_, name in plugin.capabilities.get("implied", {}).items():
            flag = draft.settings.typed.get(f"{plugin.key}.{field_}")
            others = [option for option in ("dataset_type", *_BY_NAME) if flag and draft.given(option)]
            for option in others:
                if option != "public_dataset" or canonical(draft.kernel.public_dataset or "") != canonical(name):
                    other = draft.flag(option)
                    draft.refuse(f"{flag} and {other} both choose a data set", f"drop {flag} or {other}")
            if flag is not None:
                return name, flag
    return None


def _named(
    draft: Draft, option: str, path: Path | None, timestamped: bool, implied: tuple[str, str] | None = None
) -> Source | None:  # fmt: skip
    """The source that has the name of the *option*; None, reported, where no package or several have it.

    *implied*: name and flag where another option stands for it.
    """
    word, flag = implied or (getattr(draft.kernel, option), draft.flag(option))  # dataset_type or one of _BY_NAME
    name = canonical(word)
    serving: dict[str, list[Descriptor]] = {}
    for plugin in draft.registry.all("datasets"):
        if plugin.capabilities.get("selected_by", "format") == _BY_NAME.get(option, "format"):
            for one in plugin.capabilities.get("names") or [plugin.name]:
                serving.setdefault(canonical(one), []).append(plugin)
    name = respelled(name, serving) if option == "accuracy_benchmark" else name  # gsm8-k, as the reference lists it
    rivals = strongest(serving[name], draft.registry.rank)[0] if name in serving else []
    if not rivals:
        close = [f"did you mean {near!r}?" for near in get_close_matches(name, serving, 1, 0.6)]
        close = close or [f"a file of your own is given with {draft.flag('input_file')}"]
        hints = (f"installed: {', '.join(serving) or 'none'}", *where_is("datasets", name, draft.registry, close))
        draft.errors.append(UnknownPlugin(f"{flag}: no installed package has {word!r}", *hints))
    elif len(rivals) > 1:
        keys = [f"--disable-plugin {rival.key}" for rival in rivals]
        draft.refuse(f"{flag}: {names([rival.package for rival in rivals])} both have {word!r}", f"write {' or '.join(keys)}")
    elif ref := draft.chosen("datasets", rivals[0].name, option):
        can = rivals[0].capabilities
        if path is not None and not can.get("reads"):
            file = draft.flag("input_file")
            draft.refuse(f"{flag} {word} has data of its own, and {file} names others", f"drop {file}")
        data: dict[str, Any] = next((data for one, data in can.get("names", {}).items() if canonical(one) == name), {})
        timestamped = bool(can.get("timed") or data.get("timed")) or timestamped
        once = bool(can.get("once")) or option == "accuracy_benchmark"  # accuracy is a share of different problems
        grader = str(data.get("grader", can.get("grader", "")))
        return Source(ref, path and path.absolute(), True, bool(can.get("trace")), timestamped, name, data, once, grader)
    draft.missing.add("datasets")
    return None


def respelled(name: str, known: Iterable[str]) -> str:
    """The one of the *known* names that has the letters and digits of *name*, such as ``gsm8k`` for ``gsm8-k``; else *name*."""
    near = {one for one in known if canonical(one).replace("_", "") == canonical(name).replace("_", "")}
    return name if name in near or len(near) != 1 else near.pop()


def choosing(draft: Draft, keys: Iterable[str]) -> str:
    """The flag that chooses every one of these plugins, where they are data sets with an option of their own; else ""."""
    found = set()
    for category, _, name in (key.partition(":") for key in keys):
        plugin = draft.registry.find(category, name) if category == "datasets" else None
        found.add("format" if plugin is None else plugin.capabilities.get("selected_by", "format"))
    (one, *others) = found or {"format"}
    return "" if others or one == "format" else draft.flag(_SELECTING[one])


def _timestamped(row: dict[str, Any]) -> bool:
    """Whether the row, or its first turn, has a timestamp."""
    turns = row.get("turns")
    first = turns[0] if isinstance(turns, list) and turns and isinstance(turns[0], dict) else {}
    return row.get("timestamp") is not None or first.get("timestamp") is not None


def _readable(draft: Draft, path: Path) -> bool:
    flag = draft.flag("input_file")
    if not path.exists():
        draft.refuse(f"{flag}: there is no file {path}", "check the path")
    elif not os.access(path, os.R_OK):
        draft.refuse(f"{flag}: {path} can't be read: permission denied", "check its permissions")
    elif path.is_file() and path.stat().st_size == 0:
        draft.refuse(f"{flag}: {path} is empty", "give a file with at least one row")
    else:
        return True
    return False


def promoted(draft: Draft, source: Source) -> bool:
    """Whether the input file is replayed at its recorded times without the flag."""
    named = draft.kernel.scheduling_mode
    if fixed(draft):
        _refuse_untimed(draft, source, selector(draft, "trace"))
    if draft.given("warmup_fixed_schedule"):
        _refuse_untimed(draft, source, draft.flag("warmup_fixed_schedule"))
    if draft.typed("fixed_schedule") or named is not None:
        return False
    if source.trace and source.timestamped and not source.explicit:
        draft.hint(f"{source.path} has recorded times; pass --fixed-schedule to keep to them")
    # Of a trace named by its type the recorded times count (spec: timing §2).
    return source.explicit and source.trace and source.timestamped and source.path is not None


def _refuse_untimed(draft: Draft, source: Source, schedule: str) -> None:
    if source.path is not None and not source.timestamped:
        draft.refuse(
            f"{schedule} needs recorded times, and the first row of {source.path} has no 'timestamp'",
            f"add timestamps (ms), or drop {schedule}",
        )
    elif source.name and not source.timestamped:
        draft.refuse(f"{schedule} needs recorded times, and the data set {source.name} has none", f"drop {schedule}")


def sampling(draft: Draft, source: Source) -> str:
    """The chosen order of entries, "" for the data set's own."""
    name = draft.kernel.sampling
    ref = None if name is None else draft.chosen("samplers", name, "sampling")
    if ref is None:
        return ""
    if source.once and draft.registry.descriptor("samplers", ref.name).capabilities.get("repeats"):
        flag = f"{draft.flag('sampling')} {ref.name}"
        draft.refuse(f"{flag} repeats entries, and this data set's entries are used once", f"drop {flag}")
    return ref.name


def tokenizer(draft: Draft, choice: EndpointChoice) -> tuple[PluginRef | None, str | None]:
    """The tokenizer plugin and the name it opens; None where nothing is tokenized, or the tokenizer is unusable."""
    given, flag = draft.kernel.tokenizer, draft.flag("tokenizer")
    if choice.descriptor is None or not choice.models or not choice.models[0]:
        return None, None
    if not choice.can.tokenizes_input and not choice.can.produces_tokens:
        if given is not None:
            kind = choice.descriptor.name
            draft.refuse(f"{flag} has no use: the endpoint type {kind!r} neither takes nor gives tokens", f"drop {flag}")
        return None, None
    name = choice.models[0] if given is None else given.strip()
    if not name:
        draft.refuse(f"{flag} is given an empty name", f"write {flag} {TOKENIZER}, which needs no download")
        return None, None
    if given is None and canonical(name) in _PLACEHOLDER_MODELS and draft.registry.find("tokenizers", TOKENIZER):
        draft.warn(f"{name} is a placeholder, not a model: counting with {flag} {TOKENIZER}")
        name = TOKENIZER
    # The plugin of that name, else one that opens any name.
    opener = draft.registry.find("tokenizers", name)
    if opener is None or opener.capabilities.get("any_name"):
        openers = [plugin for plugin in draft.registry.all("tokenizers") if plugin.capabilities.get("any_name")]
        opener = max(openers, key=lambda plugin: plugin.priority, default=None)
    if opener is None:
        draft.missing.add("tokenizers")
        what = f"{flag} {name!r}" if given is not None else f"the tokenizer of the model {name!r}"
        installed = draft.registry.names("tokenizers")
        offline = f"{flag} {TOKENIZER} counts with the o200k_base vocabulary and needs no download"
        hints = [offline] if TOKENIZER in installed else []
        draft.refuse(f"no installed tokenizer package opens {what}", f"installed: {', '.join(installed) or 'none'}", *hints)
        return None, None
    return draft.chosen("tokenizers", opener.name, "tokenizer"), name


def data_source(path: Path, name: str | None, registry: InstalledPlugins, typed: Mapping[str, str]) -> Source:
    """The source that ``--input-file PATH`` is: of the format called *name*, else (None) of the one that a run would choose.

    *typed*: how messages name ``input_file`` and ``dataset_type``.  The source has the plugin (``dataset``), the file
    (``path``) and the chosen one of the plugin's further names (``name``, ``row``).

    Raises:
        AiperfError: No format has the name or knows the file, or the file cannot be opened.
    """
    from aiperf.planning.kernel_options import KernelOptions
    from aiperf.planning.problems import Draft, Settings

    settings = Settings(KernelOptions(input_file=path, dataset_type=name), {}, dict(typed), "")
    draft = Draft(settings, cast("Registry", registry))  # commands see no more of it than InstalledPlugins
    chosen = source(draft)
    draft.refuse_if_any()
    return chosen


def format_of(path: Path, name: str | None, registry: InstalledPlugins, typed: Mapping[str, str]) -> PluginRef:
    """The plugin of :func:`data_source`.

    Raises:
        AiperfError: No format has the name or knows the file, or the file cannot be opened.
    """
    chosen = data_source(path, name, registry, typed).dataset
    assert chosen is not None  # the draft has what is missing
    return chosen
