"""``--config``: pictures that a file declares, in the reference's form; each mistake is named with its line."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from aiperf import AiperfError, Figure, Plot, PlotRun, UsageError
from aiperf_plotting.preset import LEVELS, SEVERAL, SOURCES, STATISTICS, TYPES, Preset, PresetPlot, Value
from msgspec import Struct
from yaml.constructor import SafeConstructor

_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_MOST_BYTES = 1 << 20
_VALUE = ("metric", "stat", "source")
_NOT_DRAWN = ("autoscale", "primary_style", "secondary_style", "supplementary_col", "use_slice_duration")
_PRESET = (
    "type", "x", "y", "y2", "stat", "source", "labels", "groups", "title", "description", "x_label", "y_label", "ci_level",
    *_NOT_DRAWN,
)  # fmt: skip
_CLASSES = ("baselines", "treatments", "default", "group_extraction_pattern", "group_display_names")
_PLOTS, _DEFAULTS = ("multi_run_plots", "single_run_plots"), ("multi_run_defaults", "single_run_defaults")
_NUMBERS = ("request_number", "request_start_ns", "time", "timestamp", "timestamp_s", "slice", "throughput",
            "dispersed_throughput", "output_token_throughput_per_gpu")  # fmt: skip
"""What an axis may show beside a metric."""
_LOADS = ("concurrency", "request_rate", "load")
_ANY_NUMBER = ("scatter", "scatter_with_percentiles", "area")
"""Types of one run that show several beside each other, too."""
_BESIDE = ("gpu_telemetry", "server_metrics")
"""Sources of a second axis."""
_DOWNSAMPLING = "server_metrics_downsampling"
_MOST_TOLD = 20
"""Series that are told where another is asked for."""
_SLICE = {"Timeslice": "slice"}
"""What the reference calls an axis."""


class ConfiguredPlot(PresetPlot):
    """A picture that a file declares.  description: a note below it."""

    def __init__(self, name: str, preset: Preset, description: str) -> None:
        super().__init__(None, preset)
        self.name, self.description = name, description
        self.runs = 2 if preset.type in ("pareto", "scatter_line") else 1  # type: ignore[misc]  # of this picture
        self.title = preset.title or name  # type: ignore[misc]

    @property
    def several(self) -> bool:
        return self._preset.several

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        """The figure.

        Raises:
            AiperfError: No run has a metric that it names.
        """
        from msgspec.structs import replace

        kind = self._preset.type
        if not self._preset.several and len(runs) > 1 and kind not in _ANY_NUMBER:
            raise AiperfError(f"{kind} shows one run, and {len(runs)} are given", "name one directory")
        for value in (self._preset.x, self._preset.y):
            _check_metric(value.metric, runs)
        if self._preset.y2 is not None:
            _check_samples(self._preset.y2.metric, runs)
        figure = super().draw(runs)
        if figure is None or not self.description:
            return figure
        return replace(figure, notes=(*figure.notes, self.description))


def _check_metric(metric: str, runs: Sequence[PlotRun]) -> None:
    tags = {tag for run in runs for tag, entry in run.summary.items() if isinstance(entry, Mapping) and "unit" in entry}
    if metric in tags or metric in _NUMBERS:
        return
    tag, _, last = metric.rpartition("_")
    if tag in tags:
        near, hint = difflib.get_close_matches(last, STATISTICS, 1), f"there are: {', '.join(STATISTICS)}"
        raise AiperfError(f"{tag!r} has no statistic {last!r}", f"did you mean {tag}_{near[0]}?" if near else hint)
    near = difflib.get_close_matches(metric, [*tags, *_NUMBERS], 1)
    raise AiperfError(f"no run has the metric {metric!r}", f"did you mean {near[0]!r}?" if near else "aiperf plugins metrics")


def _check_samples(name: str, runs: Sequence[PlotRun]) -> None:
    """Name the series that are near, where no run has samples of the series *name*."""
    names = {series.name for run in runs for series in run.telemetry()}
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        none = "there are none" if not names else f"there are: {', '.join(sorted(names)[:_MOST_TOLD])}"
        raise AiperfError(f"no run has samples of {name!r}", f"did you mean {near[0]!r}?" if near else none)


class PlotFile(Struct, frozen=True):
    """A file of ``--config``.

    single, several: names of the pictures of one run and of several, in their order; None where the file does not say.
    plots: the pictures that it declares.  classes: of ``experiment_classification``.  idle: a sentence for each key without an
    effect.  places: file and line of each name of the lists.
    """

    single: tuple[str, ...] | None
    several: tuple[str, ...] | None
    plots: dict[str, ConfiguredPlot]
    classes: dict[str, Any]
    idle: tuple[str, ...] = ()
    places: dict[str, str] = {}

    def names(self, runs: int) -> list[str]:
        """The pictures of so many runs."""
        listed = self.single if runs == 1 else self.several
        mine = [name for name, plot in self.plots.items() if plot._preset.several == (runs > 1)]
        return mine if listed is None else list(listed)

    def classify(self, runs: Iterable[PlotRun]) -> None:
        """Give each run its role and group."""
        if not self.classes:
            return
        pattern, shown = self.classes.get("group_extraction_pattern"), self.classes.get("group_display_names") or {}
        for run in runs:
            roles = {"baseline": self.classes.get("baselines") or (), "treatment": self.classes.get("treatments") or ()}
            matching = (role for role, globs in roles.items() if any(fnmatch.fnmatch(run.label, glob) for glob in globs))
            run.role = next(matching, str(self.classes.get("default") or ""))
            found = re.search(pattern, run.label) if pattern else None
            group = run.role if found is None else found[1] or "" if found.groups() else found[0]
            run.group = str(shown.get(group, group))


def chosen(
    file: PlotFile, runs: int, only: Sequence[str], installed: Callable[[Sequence[str]], list[tuple[str, str, Plot]]]
) -> list[tuple[str, str, Plot]]:
    """Name, package and plot of the pictures of so many runs, or of those in *only*; *installed* gives those of packages.

    Raises:
        UsageError: There is none.
        PluginError: A name is neither declared nor installed.
    """
    names = list(dict.fromkeys(only or file.names(runs)))
    if not names:
        many = "one run" if runs == 1 else f"{runs} runs"
        raise UsageError(f"--config declares no picture of {many}", f"name some in {_DEFAULTS[runs == 1]}")
    made: list[tuple[str, str, Plot]] = []
    for name in names:
        try:
            made += [(name, "--config", file.plots[name])] if name in file.plots else installed([name])
        except AiperfError as error:
            error.message = f"{'--only' if only else file.places.get(name, '--config')}: {error.message}"
            near = difflib.get_close_matches(name, file.plots, 1)
            error.hints = (*error.hints, *(f"did you mean {each!r}, which the file declares?" for each in near))
            raise
    return made


def read(path: Path) -> PlotFile:
    """The file at *path*.

    Raises:
        UsageError: It can't be read, or has a mistake; names the line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--config {path} can't be read: {error.strerror or error}") from error
    return parsed(data, f"--config {path}")


def parsed(data: bytes, name: str) -> PlotFile:
    """The pictures that the text of a file declares.  *name*: of the file, in messages; "" is said as ``line 3``.

    Raises:
        UsageError: It has a mistake; names the line.
    """
    whole = name or "the text"
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{whole}: it has {len(data):,} bytes; pictures need no more than {_MOST_BYTES:,}")
    try:
        root = yaml.compose(data, Loader=yaml.SafeLoader)
        document = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = whole if mark is None else _where(name, mark.line + 1)
        raise UsageError(f"{where} is no YAML: {getattr(error, 'problem', None) or error}") from error
    if root is None or not isinstance(document, dict):
        raise UsageError(f"{whole} declares no picture: it is no mapping with visualization")
    return _Reader(name).file(root, document)


def _tag(metric: str) -> str:
    """The tag of a metric that may be named by its title, ``Time to First Token``."""
    tag = "_".join(metric.split())
    return _SLICE.get(metric, metric if tag == metric else tag.lower())


def _where(name: str, line: int) -> str:
    return f"{name}:{line}" if name else f"line {line}"


class _Reader:
    def __init__(self, name: str) -> None:
        self._name, self._classified = name, False
        self._idle: dict[str, str] = {}

    def _wrong(self, node: yaml.Node, sentence: str, *hints: str) -> UsageError:
        return UsageError(f"{_where(self._name, node.start_mark.line + 1)}: {sentence}", *hints)

    def _members(self, node: yaml.Node, allowed: Sequence[str] | None, what: str) -> dict[str, yaml.Node]:
        """The values of a mapping by key; *allowed*: None is any key."""
        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(node, f"{what} is no mapping")
        found: dict[str, yaml.Node] = {}
        if merged := any(key.tag == _MERGE for key, _ in node.value):
            SafeConstructor().flatten_mapping(node)  # what is merged comes first
        for key, value in node.value:
            name = str(key.value)
            if key.tag != _TEXT:
                raise self._wrong(key, f"the key {name!r} of {what} is no text", f'write "{name}", with quotes')
            if allowed is not None and name not in allowed:
                near = difflib.get_close_matches(name, allowed, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(allowed)}"
                raise self._wrong(key, f"{what} has no key {name!r}", hint)
            if name in found and not merged:
                raise self._wrong(key, f"{what} has {name!r} twice")
            found[name] = value
        return found

    def file(self, root: yaml.Node, document: dict[str, Any]) -> PlotFile:
        top = self._members(root, ("visualization", "settings", "experiment_classification"), "the file")
        if "settings" in top:
            for node in self._members(top["settings"], (_DOWNSAMPLING,), "settings").values():
                self._note(node, _DOWNSAMPLING, "curves keep their lowest and highest points")
        classes = self._classes(top.get("experiment_classification"), document.get("experiment_classification"))
        self._classified = bool(classes)
        shown = document.get("visualization") or {}
        plots: dict[str, ConfiguredPlot] = {}
        places: dict[str, str] = {}
        listed: dict[str, tuple[str, ...] | None] = dict.fromkeys(_DEFAULTS)
        if "visualization" in top:
            members = self._members(top["visualization"], (*_DEFAULTS, *_PLOTS), "visualization")
            for key in _PLOTS:
                for name, node in self._members(members[key], None, key).items() if key in members else ():
                    plots[name] = self._plot(name, node, shown[key][name], several=key == _PLOTS[0])
            for key in _DEFAULTS:
                if key in members:
                    listed[key] = tuple(self._texts(members[key], shown[key], key))
                    for node in members[key].value:
                        places.setdefault(str(node.value), _where(self._name, node.start_mark.line + 1))
        single, several = listed[_DEFAULTS[1]], listed[_DEFAULTS[0]]
        return PlotFile(single, several, plots, classes, tuple(self._idle.values()), places)

    def _note(self, node: yaml.Node, key: str, why: str) -> None:
        """The first place of a key that has no effect."""
        where = _where(self._name, node.start_mark.line + 1)
        self._idle.setdefault(key, f"{where}: {key} has no effect here: {why}")

    def _texts(self, node: yaml.Node, value: Any, what: str) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(node, f"{what} is no list of texts")
        return value

    def _classes(self, node: yaml.Node | None, value: Any) -> dict[str, Any]:
        if node is None:
            return {}
        members = self._members(node, _CLASSES, "experiment_classification")
        for key in ("baselines", "treatments"):
            if key in members:
                self._texts(members[key], value[key], key)
        if value.get("default") not in (None, "baseline", "treatment"):
            raise self._wrong(members["default"], f"default is {value['default']!r}, not baseline or treatment")
        if "group_extraction_pattern" in members:
            try:
                re.compile(value["group_extraction_pattern"])
            except (re.error, TypeError) as error:
                raise self._wrong(members["group_extraction_pattern"], f"it is no regular expression: {error}") from error
        if "group_display_names" in members:
            self._members(members["group_display_names"], None, "group_display_names")
        return dict(value)

    def _plot(self, name: str, node: yaml.Node, value: Any, *, several: bool) -> ConfiguredPlot:
        what = f"the picture {name!r}"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
            raise self._wrong(node, f"{name!r} can't name a file: letters, digits, '_', '-' and '.' can")
        members = self._members(node, _PRESET, what)
        for key in _NOT_DRAWN:
            if key in members:
                self._note(members[key], key, "all pictures have one style")
        for key in ("type", "x", "y"):
            if key not in members:
                raise self._wrong(node, f"{what} has no {key}")
        self._one_of(members["type"], value["type"], TYPES, f"type of {what}")
        shared = self._shared(members, value, what)
        kind = value["type"]
        sources = ("aggregated",) if kind in SEVERAL else ("timeslices",) if kind == "timeslice" else ("requests",)
        stats = {"x": kind in SEVERAL, "y": kind in SEVERAL or kind == "timeslice"}
        x, y = (
            self._value(members[key], value[key], own, f"{key} of {what}", sources, stat=stat)
            for key, stat in stats.items()
            for own in (shared if stat or key == "y" else {"source": shared.get("source", "")},)
        )  # fmt: skip
        y2 = self._value(members["y2"], value["y2"], {}, f"y2 of {what}", _BESIDE, stat=False) if "y2" in members else None
        if (value["type"] == "dual_axis") != (y2 is not None):
            raise self._wrong(node, f"{what} needs y2 where its type is dual_axis, and only there")
        texts = {key: self._text(members[key], value[key], f"{key} of {what}") if key in members else ""
                 for key in ("title", "x_label", "y_label", "description")}  # fmt: skip
        level = value.get("ci_level", 0.95)
        if level not in LEVELS:
            raise self._wrong(members["ci_level"], f"ci_level of {what} is {level!r}, not {', '.join(map(str, LEVELS))}")
        labels = self._labels(members, value, what)
        by_model = self._by_model(members, value, what)
        preset = Preset(kind, x, y, y2, texts["title"], texts["x_label"], texts["y_label"], labels, float(level), by_model)
        if preset.several != several:
            raise self._wrong(node, f"{what} of type {preset.type} belongs in {_PLOTS[0 if preset.several else 1]}")
        return ConfiguredPlot(name, preset, texts["description"])

    def _shared(self, members: dict[str, yaml.Node], value: Any, what: str) -> dict[str, str]:
        """Statistic and source of a picture, for values that have none of their own."""
        shared = {}
        for key, words in (("stat", STATISTICS), ("source", SOURCES)):
            if key in members:
                shared[key] = self._one_of(members[key], value[key], words, f"{key} of {what}")
        return shared

    def _by_model(self, members: dict[str, yaml.Node], value: Any, what: str) -> bool:
        """Whether the picture's runs are joined by model; a classification of the runs goes before."""
        groups = value.get("groups") or []
        named = tuple(groups) if isinstance(groups, list) else (groups,)
        if named not in ((), ("experiment_group",), ("model",)):
            hint = "experiment_classification groups runs; cells of a study are grouped by their values"
            sentence = f"groups of {what} is {value['groups']!r}, not model or experiment_group"
            raise self._wrong(members["groups"], sentence, hint)
        return named == ("model",) and not self._classified

    def _labels(self, members: dict[str, yaml.Node], value: Any, what: str) -> str:
        labels = value.get("labels", ["load"])
        first = labels[0] if isinstance(labels, list) and len(labels) == 1 else labels
        if first in _LOADS:
            return "load"
        if first in ("run", "run_name"):
            return "run"
        raise self._wrong(members["labels"], f"labels of {what} is {labels!r}, not {', '.join(_LOADS)}, run or run_name")

    def _value(
        self, node: yaml.Node, value: Any, shared: Mapping[str, str], what: str, sources: Sequence[str], *, stat: bool
    ) -> Value:
        """What an axis shows.  *sources*: where its picture reads.  stat: whether a value has a statistic."""
        found = {key: shared.get(key, "") for key in ("stat", "source")}
        if isinstance(value, str):
            metric, _, last = value.rpartition("_")
            if stat and metric and last in STATISTICS:
                value, found["stat"] = metric, last
            metric = value
        else:
            members = self._members(node, _VALUE, what)
            if "metric" not in members or not isinstance(value["metric"], str):
                raise self._wrong(node, f"{what} has no metric")
            metric = value["metric"]
            for key, words in (("stat", STATISTICS), ("source", SOURCES)):
                if key in members:
                    found[key] = self._one_of(members[key], value[key], words, f"{key} of {what}")
        if found["source"] and found["source"] not in sources:
            raise self._wrong(node, f"{what} has the source {found['source']}, and its type reads {' or '.join(sources)}")
        if found["stat"] and not stat:
            sentence = f"{what} has the statistic {found['stat']}, and its type shows single values"
            raise self._wrong(node, sentence, "leave it out")
        return Value(_tag(metric), found["stat"], found["source"])

    def _one_of(self, node: yaml.Node, value: Any, words: Sequence[str], what: str) -> str:
        if value in words:
            return str(value)
        near = difflib.get_close_matches(str(value), words, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(words)}"
        raise self._wrong(node, f"{what} is {value!r}", hint)

    def _text(self, node: yaml.Node, value: Any, what: str) -> str:
        if not isinstance(value, str):
            raise self._wrong(node, f"{what} is no text")
        return value
